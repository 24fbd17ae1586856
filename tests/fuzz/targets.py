"""Targets: every kind of file that clickmix reads, the ways to damage it, and the commands that read it.

To fuzz another file, write a good one in `seeds.py` and add a line here.
"""

from __future__ import annotations

import hashlib
import json
import random
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clickmix.storage.documents import checksum
from mutators import Mutator, document, json_file, json_lines, lines, numbers, packed, parquet, plain_pages, raw

CSV, NDJSON, PARQUET = (lines, lines, raw), (json_lines, json_lines, raw), (parquet, parquet, plain_pages, raw)
NONE = "debias {} -o out/labels.parquet --correction none"
LOG = (
    f"{NONE} --bad-rows skip",
    f"{NONE} --bad-rows skip",
    NONE.replace("parquet", "csv"),
    "counts {} -o out/counts.parquet --bad-rows skip",
    "counts {} -o out/counts.ndjson --context device --bad-rows skip",
)
EXPLAINED = "explain {} --query 'query 1' --correction none --bad-rows skip"
COMPARED = "compare in/rows.csv --corrections none -o out/compared.json"
FITTED = (
    "debias {} -o out/labels.parquet --model out/model.json --bad-rows skip",
    "fit {} -o out/model.json --bad-rows skip",
    "label {} --model in/model.json -o out/labels.parquet --bad-rows skip",
    "inspect {}",
)
NESTED = tuple(
    f"{words} --columns query_id=term,doc_ids=search.results[].doc.sku,clicked=search.results[].hit" for words in LOG
)
BY_LIST = ("counts {} -o out/counts.parquet --lists --bad-rows skip",)
LABELS = (
    f"{NONE.format('in/rows.csv')} --previous {{}}",
    "export {} --to quepid -o out/ratings.csv --as probability",
    "export {} --to qrels -o out/qrels.txt",
    "export {} --to rank-eval -o out/requests.json --index shop",
    "export {} --to ltr -o out/ltr.txt",
    "export {} --to quepid-book -o out/book.csv",
    "export {} --to rre -o out/ratings.json --index shop",
    "export {} --to opensearch -o out/judgments",
    "explain {} --query 'query 1'",
    f"{COMPARED} --labels {{}}",
    f"{COMPARED} --truth {{}}",
    "inspect {}",
)
FEATURES = (
    "score --ranker in/ranker --features {} -o out/scores.csv",
    "score --ranker in/ranker --features {} -o out/scores.parquet",
    "evaluate --ranker in/ranker --features {}",
    "evaluate --ranker in/ranker --features {} --labels in/feature-labels.csv",
    "train --features {} --labels in/feature-labels.csv -o out/ranker",
    "inspect {}",
)
RANKER = (
    "score --ranker in/{0} --features in/features.csv -o out/scores.csv",
    "evaluate --ranker in/{0} --features in/features.csv",
    "inspect in/{0}",
)
TREES = (
    *RANKER,
    "export in/{0} --to vespa -o out/model.json",
    "export in/{0} --to solr -o out/model.json",
    "export in/{0} --to elasticsearch-ltr -o out/model.json",
    "export in/{0} --to lightgbm -o out/model.txt",
    "export in/{0} --to elasticsearch -o out/model.json",
    "export in/{0} --to opensearch-ltr -o out/model.json",
    "export in/{0} --to onnx -o out/model.onnx",
)
MODEL = (
    "label in/rows.csv --model {} -o out/labels.parquet",
    "inspect {}",
    "sql labels --dialect duckdb --model {}",
    "explain in/rows.csv --query 'query 1' --model {}",
)
FEATURED = "label in/rows.csv --model in/featured-model.json --features in/log-features.csv -o out/labels.parquet"
NOT_IN_SQL = tuple(words for words in MODEL if not words.startswith("sql"))


@dataclass(frozen=True)
class Target:
    """A file in the folder `in`, how to damage it, the commands that read it, and how many inputs of 2,000 it gets."""

    file: str
    mutators: Sequence[Mutator]
    commands: Sequence[str]
    weight: int = 50

    @property
    def name(self) -> str:
        """The target's name in commands, messages and names of kept inputs."""
        return self.file.replace("/", "-")

    def mutated(self, seed: bytes, number: int) -> tuple[list[str], bytes]:
        """The command and the damaged file of input `number`; the same number always gives the same ones."""
        rng = random.Random(f"{self.file} {number}")
        command = rng.choice(self.commands)
        return shlex.split(command.format(f"in/{self.file}")), rng.choice(self.mutators)(seed, rng)

    def place(self, data: bytes) -> None:
        """Put the damaged file in its place; ranker.json gets the checksum of weights, else nobody reads them."""
        path = Path("in", self.file)
        if path.parent.name in ("in", "collection") or path.name == "ranker.json":
            path.write_bytes(data)
            return
        described = path.parent / "ranker.json"
        found, sha256 = json.loads(described.read_text()), hashlib.sha256(data).hexdigest()
        found["payload"]["sha256"] = sha256
        found["checksum"] = checksum(found["payload"])
        described.write_text(json.dumps(found))
        word, _, ending = found["payload"]["weights"].partition(".")
        path.rename(path.parent / "taken-away")
        (path.parent / f"{word}.{sha256[:16]}.{ending}").write_bytes(data)


def _weights(folder: str, ending: str, mutators: Sequence[Mutator], commands: Sequence[str], weight: int) -> Target:
    return Target(f"{folder}/*.{ending}", mutators, tuple(c.replace("{0}", folder) for c in commands), weight)


def _described(folder: str, commands: Sequence[str], weight: int) -> Target:
    made = tuple(command.replace("{0}", folder) for command in commands)
    return Target(f"{folder}/ranker.json", (document, document, raw), made, weight)


TARGETS = [
    Target("rows.csv", CSV, (*LOG, *LOG, *BY_LIST, *FITTED, EXPLAINED), 180),
    Target("rows.tsv", CSV, LOG, 60),
    Target("rows.csv.gz", (packed(lines), packed(raw), raw), LOG, 60),
    Target("rows.ndjson", NDJSON, (*LOG, *BY_LIST, *FITTED), 140),
    Target("rows.ndjson.gz", (packed(json_lines), packed(raw), raw), LOG, 40),
    Target("rows.parquet", PARQUET, (*LOG, *BY_LIST, *FITTED, EXPLAINED), 160),
    Target("counted.csv", CSV, LOG, 60),
    Target("counted.ndjson", NDJSON, LOG, 40),
    Target("counted.parquet", PARQUET, LOG, 60),
    Target("counts.parquet", PARQUET, (*LOG, "counts --merge {} in/other.csv", "inspect {}"), 100),
    Target("lists-counts.parquet", PARQUET, (*BY_LIST, "counts --merge {} in/rows.csv --lists"), 40),
    Target("lists.csv", CSV, LOG, 40),
    Target("lists.ndjson", NDJSON, LOG, 60),
    Target("lists.parquet", PARQUET, LOG, 60),
    Target("lists-ids.ndjson", NDJSON, LOG, 30),
    Target("lists-ids.parquet", PARQUET, LOG, 20),
    Target("lists-places.ndjson", NDJSON, LOG, 30),
    Target("lists-places.parquet", PARQUET, LOG, 20),
    Target("lists-nested.ndjson", NDJSON, NESTED, 30),
    Target("lists-nested.parquet", PARQUET, NESTED, 20),
    Target(
        "clicked-counts.parquet", PARQUET, ("counts {} -o out/counts.parquet --lists-by-clicks --bad-rows skip",), 20
    ),
    Target("ubi-bulk.ndjson", NDJSON, LOG, 30),
    Target("judgments.csv", CSV, (f"{COMPARED} --judgments {{}}",), 30),
    Target("judgments.ndjson", NDJSON, (f"{COMPARED} --judgments {{}}",), 20),
    Target("judgments.parquet", PARQUET, (f"{COMPARED} --judgments {{}}",), 20),
    Target("ubi.ndjson", NDJSON, (*LOG, *BY_LIST), 90),
    Target("ubi-events.parquet", PARQUET, tuple(f"{words} in/ubi-queries.parquet" for words in LOG), 40),
    Target("ubi-queries.parquet", PARQUET, tuple(f"{words} in/ubi-events.parquet" for words in LOG), 40),
    Target("ga4.ndjson", NDJSON, LOG, 70),
    Target("ga4.parquet", PARQUET, LOG, 40),
    Target("yandex.tsv", CSV, tuple(f"{words} --format yandex" for words in LOG), 60),
    Target("yandex.tsv.gz", (packed(lines), raw), tuple(f"{words} --format yandex" for words in LOG), 20),
    Target("histogram.csv", CSV, ("fit {} -o out/model.json", "inspect {}"), 40),
    Target("histogram.parquet", PARQUET, ("fit {} -o out/model.json", "inspect {}"), 30),
    Target("model.json", (document, numbers, raw), MODEL, 120),
    Target("gaussian-model.json", (document, numbers, raw), MODEL, 60),
    Target("device-model.json", (document, numbers, raw), MODEL, 40),
    Target("appeal-model.json", (document, numbers), MODEL, 50),
    Target("queries-model.json", (document, numbers), NOT_IN_SQL, 50),
    Target("cascade-model.json", (document, numbers), NOT_IN_SQL, 30),
    *(
        Target(name, (document, numbers), (FEATURED.replace("in/featured-model.json", "{}"),), 30)
        for name in ("featured-model.json", "judged-featured-model.json")
    ),
    Target(
        "log-features.csv",
        CSV,
        (FEATURED.replace("in/log-features.csv", "{}"), "debias in/rows.csv -o out/labels.parquet --features {}"),
        20,
    ),
    Target("parameters.json", (json_file, raw), (f"{NONE.format('in/rows.csv')[:-4]}affine --parameters {{}}",), 40),
    Target("theta.json", (json_file, raw), (f"{NONE.format('in/rows.csv')[:-4]}ips --parameters {{}}",), 20),
    Target("labels.csv", CSV, LABELS, 70),
    Target("labels.parquet", PARQUET, LABELS, 70),
    Target("labels.ndjson", NDJSON, LABELS, 30),
    Target("feature-labels.csv", CSV, ("train --features in/features.csv --labels {} -o out/ranker",), 30),
    Target("features.csv", CSV, FEATURES, 50),
    Target("features.ndjson", NDJSON, FEATURES, 40),
    Target("features.parquet", PARQUET, FEATURES, 40),
    Target("letor.txt", CSV, FEATURES, 60),
    Target("letor.txt.gz", (packed(lines), raw), FEATURES, 20),
    Target("collection/train.txt", CSV, ("simulate --data in/collection --clicks 50 -o out/simulated",), 20),
    _described("ranker", TREES, 50),
    _described("net", RANKER, 40),
    _described("lambdamart", TREES, 30),
    _described("dnn", RANKER, 20),
    _weights("ranker", "txt", (lines, raw), TREES, 60),
    _weights("net", "npy", (raw,), RANKER, 30),
]
