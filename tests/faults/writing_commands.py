"""Every command that writes, with small inputs, and with the outputs of an earlier run in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import clickmix as cm
from broken_system import HELPERS, Command
from clickmix.features import make_examples
from clickmix.rankers import LambdaMART
from logs import csv_text, small_log, write
from session_logs import session_log

OLD = b"old"
EXPORTS_OF_LABELS = {
    "quepid": "out.csv",
    "quepid-book": "out.csv",
    "qrels": "out.txt",
    "ltr": "out.txt",
    "rre": "out.json --index shop",
    "rank-eval": "out.json --index shop",
    "opensearch": "lists",
}
EXPORTS_OF_RANKERS = ("vespa", "solr", "elasticsearch", "elasticsearch-ltr", "opensearch-ltr", "lightgbm", "onnx")
REPORT = "debias log.csv -o labels.parquet --model model.json --report report.html"
COMMANDS = [
    Command("counts", "counts log.csv -o counts.parquet", ["counts.parquet"]),
    Command("counts-gz", "counts log.csv -o counts.csv.gz", ["counts.csv.gz"]),
    Command("counts-lists", "counts sessions.csv -o counts.parquet --lists-by-clicks", ["counts.parquet"]),
    Command("counts-merge", "counts --merge days.parquet log.csv", []),
    Command("counts-first-day", "counts --merge first.parquet log.csv", []),
    Command("debias", f"{REPORT} --previous labels-before.parquet", ["labels.parquet", "model.json", "report.html"]),
    Command("debias-csv", "debias log.csv -o labels.csv --correction none", ["labels.csv"]),
    Command("fit", "fit log.csv -o model.json", ["model.json"]),
    Command("label", "label log.csv --model fitted.json -o labels.ndjson", ["labels.ndjson"]),
    Command(
        "train",
        "train --features features.csv --labels labels-of-features.csv -o ranker --report ranker.html",
        ["ranker.html"],
    ),
    Command("train-new", "train --features features.csv --labels labels-of-features.csv -o new", []),
    Command("score", "score --ranker ranker --features features.csv -o scores.parquet", ["scores.parquet"]),
    Command("score-run", "score --ranker ranker --features features.csv -o run.txt", ["run.txt"]),
    *(
        Command(f"compare-{kind}", f"compare log.csv --corrections none -o compared.{kind}", [f"compared.{kind}"])
        for kind in ("html", "json")
    ),
    *(
        Command(
            f"export-{to}",
            f"export labels-before.parquet --to {to} -o {output}",
            [] if to == "opensearch" else [output.split()[0]],
        )
        for to, output in EXPORTS_OF_LABELS.items()
    ),
    *(Command(f"export-{to}", f"export ranker --to {to} -o model.out", ["model.out"]) for to in EXPORTS_OF_RANKERS),
    Command(
        "simulate",
        "simulate --clicks 200 --queries 20 --seed 2 -o simulated",
        [],
        whole={"simulated": "log.parquet"},
        slow=True,
    ),
    Command("simulate-new", "simulate --clicks 200 --queries 20 -o sim", [], whole={"sim": "log.parquet"}, slow=True),
    Command("reproduce", "reproduce table1 --scale 0.005 --runs 1 --ranker lambdamart -o tables", [], slow=True),
    Command("demo", "demo -o shown", [], slow=True),
]


def make_start(folder: Path) -> None:
    """All inputs, and what commands replace that must be more than any bytes."""
    folder.mkdir()
    write(folder / "log.csv", small_log(rows=200))
    write(folder / "sessions.csv", session_log(sessions=20))
    write(folder / "before.csv", small_log(rows=200, seed=1))
    before = cm.count(folder / "before.csv")
    before.write(folder / "days.parquet")
    fitted = cm.MixtureCorrection().fit(before)
    fitted.write(folder / "fitted.json")
    fitted.label(before).write(folder / "labels-before.parquet")
    keys = [(query, document) for query in range(1, 13) for document in range(5)]
    columns = {"query_id": [q for q, _ in keys], "doc_id": [d for _, d in keys]}
    features = {f"feature_{i}": [(q * 7 + d * (i + 2)) % 11 / 10 for q, d in keys] for i in (1, 2, 3)}
    write(folder / "features.csv", columns | features)
    labels = columns | {"relevance": [(q + d) % 3 / 2 for q, d in keys]}
    (folder / "labels-of-features.csv").write_text(csv_text(labels))
    LambdaMART(trees=2).fit(make_examples(folder / "features.csv", folder / "labels-of-features.csv")).save(
        folder / "ranker"
    )


def make_slow_start(folder: Path) -> None:
    """An earlier simulation, and a journal of experiments whose tables are still to be written."""
    from clickmix.lab.collections import production
    from clickmix.lab.simulate import Simulation, open_collection, write_simulation

    with mock.patch.object(production, "TREES", 2):  # as in the fork server
        write_simulation(open_collection(None, queries=20, seed=1), folder / "simulated", Simulation(clicks=100))
    notes = folder / "notes"
    notes.mkdir()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HELPERS), *sys.path]), "NOTES": str(notes)}
    words = [sys.executable, str(HELPERS / "fake_experiments.py"), "table1", str(folder / "tables"), "1", "lambdamart"]
    subprocess.run(words, env=environment, check=True)
    shutil.rmtree(notes)
    for file in (folder / "tables").iterdir():
        if file.suffix != ".jsonl":
            file.write_bytes(OLD)


def start_of(command: Command, inputs: Path, folder: Path) -> Path:
    """A copy of the inputs with old outputs of this command."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(inputs, folder)
    for output in command.outputs:
        (folder / output).write_bytes(OLD)
    return folder
