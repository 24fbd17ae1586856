"""Every correction side by side, on real logs and in three simulated worlds, by `clickmix compare`.

Held-out click perplexity everywhere; nDCG@10 and AUC at the same position beside human judgments where the folder has
some; in simulated worlds the same beside the truth, and the error of labels. The worlds have 2,000 queries, popularity
1 / rank^.8, lists of ten of 12 documents that move by a few positions, a third of them relevant, and 60,000 sessions of
position-based, dependent-click and dynamic Bayesian users. SDBN takes part twice: sessions without a click say nothing,
as published, or that everything was examined, as in PyClick.

    python benchmarks/peers.py FOLDER       FOLDER/NAME/impressions.csv.gz, and judgments.csv.gz where there are some
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import clickmix as cm
from clickmix.corrections.correction import CORRECTIONS
from clickmix.corrections.sdbn import SimplifiedDynamicBayesianNetwork
from clickmix.engines.duckdb import DuckDB
from clickmix.lab.users.presets import preset
from measuring import SCRATCH, write_result

QUERIES, DOCUMENTS, LENGTH, VARIANTS, SESSIONS = 2_000, 12, 10, 6, 60_000
WORLDS = ("pbm-eta1", "dcm", "dbn")
LOGS = ("clara-half", "trec-session", "yandex-sample")


def world(user: str, *, seed: int = 0) -> tuple[Path, Path]:
    """The log and the truth of a simulated world."""
    rng = np.random.default_rng(seed)
    relevant = rng.random((QUERIES, DOCUMENTS)) < 1 / 3
    quality = rng.normal(0, 1, (QUERIES, 1, DOCUMENTS)) + 1.0 * relevant[:, None]  # what the production ranker sees
    noise = rng.normal(0, 0.7, (QUERIES, VARIANTS, DOCUMENTS))
    order = np.argsort(-(quality + noise), axis=2)[:, :, :LENGTH]
    codes = (np.arange(QUERIES)[:, None, None] * DOCUMENTS + order).reshape(-1, LENGTH)
    popularity = np.repeat(np.arange(1, QUERIES + 1) ** -0.8, VARIANTS)
    someone = preset(user, positions=LENGTH)
    found = someone.simulate(relevant.ravel()[codes].astype(float), sessions=SESSIONS, weights=popularity, rng=rng)
    documents = codes[found.seen]
    log, truth = SCRATCH / f"peers-{user}.parquet", SCRATCH / f"peers-{user}-truth.parquet"
    engine = DuckDB()
    engine.register(
        "impressions",
        {
            "session_id": np.repeat(np.arange(SESSIONS), LENGTH),
            "query_id": documents.ravel() // DOCUMENTS,
            "doc_id": documents.ravel(),
            "position": np.tile(np.arange(1, LENGTH + 1), SESSIONS),
            "clicked": np.ascontiguousarray(found.clicks).ravel().astype(np.int8),
        },
    )
    every = np.arange(QUERIES * DOCUMENTS)
    relevance = {"query_id": every // DOCUMENTS, "doc_id": every, "relevance": relevant.ravel().astype(float)}
    engine.register("relevances", relevance)
    engine.write("SELECT * FROM impressions", str(log))
    engine.write("SELECT * FROM relevances", str(truth))
    return log, truth


def compared(log: Path, **beside: Any) -> dict[str, Any]:
    """A row per correction: perplexity, nDCG@10, AUC at the same position, error of labels, seconds; and the advice."""
    found = cm.compare(str(log), **beside)
    rows = {}
    for row in found.rows:
        measures = {name: row.measures[name].value for name in ("ndcg", "same_place", "error") if name in row.measures}
        values = {"perplexity": row.prediction.perplexity if row.prediction else None, **measures}
        kept = {name: round(v, 4) for name, v in values.items() if v is not None and not math.isnan(v)}
        rows[row.name] = kept | ({"seconds": round(row.seconds, 2)} if row.seconds is not None else {})
    said = {"answer": found.results.answer.sentence, "advice": found.results.answer.advice}
    return {"rows": rows, **said, "left out": {each.name: each.reason for each in found.left_out}}


def measure(folder: Path) -> dict[str, Any]:
    """All logs, and all worlds."""
    SCRATCH.mkdir(exist_ok=True)
    CORRECTIONS.register("sdbn, examined", help="SDBN as in PyClick.")(
        lambda: SimplifiedDynamicBayesianNetwork("examined")
    )
    figures = {}
    for name in LOGS:
        judgments = folder / name / "judgments.csv.gz"
        beside = {"judgments": str(judgments)} if judgments.exists() else {}
        figures[name] = compared(folder / name / "impressions.csv.gz", **beside)
        print(name, figures[name], flush=True)
    for user in WORLDS:
        log, truth = world(user)
        figures[f"{user} users"] = compared(log, truth=str(truth))
        print(user, figures[f"{user} users"], flush=True)
    return figures


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    write_result("peers", "python benchmarks/peers.py FOLDER", measure(Path(sys.argv[1])))
