"""Real logs: held-out clicks on five fixed splits of sessions, agreement with human grades, and the verdict.

    python benchmarks/real_logs.py DATA [BEFORE]     DATA/NAME/impressions.csv.gz, and perhaps judgments.csv.gz

CLARA2 is Naver's log (half of its queries), TREC the session track of 2014, Yandex a sample of 20 queries of its
relevance prediction challenge. The logs are not part of clickmix. A split holds a quarter of the sessions out;
perplexity is 2^(-mean log2 likelihood) over all held-out impressions. Bits saved per 1,000 impressions are those of all
splits together, with a paired bootstrap over queries. Agreement: nDCG@10 over queries with at least two grades, and the
AUC of documents at the same position; documents with equal labels are in no order. BEFORE is the `src` folder of an
earlier release, which is measured in the same way.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import clickmix as cm
from clickmix.corrections.click_rates import predicted_rates
from clickmix.corrections.correction import CORRECTIONS
from clickmix.evaluate.agreement import JudgedDocuments
from clickmix.evaluate.resampling import Bootstrap, Measured
from gamma_pbm import GammaPositionModel
from measuring import write_result
from real_logs_release import SPLITS, Floats, bits_of, parts_of

LOGS = {"CLARA2": "clara-half", "TREC 2014": "trec-session", "Yandex": "yandex-sample"}
RIVALS = ("pbm", "ubm", "coec-smoothed", "gamma PBM + query factor")  # clickmix must not be significantly worse
PREDICTED = ("none", "ctr-smoothed", *RIVALS)
ORDERED = ("none", "ctr-then-rank", "ctr-smoothed", "coec-smoothed", "pbm", "mixture")
NOT_LOOKED_AT = "hash(CAST(query_id AS VARCHAR)) % 2 = 1"  # while the model was made
PRODUCTION = "SELECT query_id, doc_id, -avg(position) AS relevance FROM log GROUP BY ALL"


def predict(name: str, log: Path, scratch: Path, *, seed: int) -> tuple[Floats, Floats]:
    """The bits of one way to predict clicks on one split."""
    training, seen, asked = parts_of(log, scratch, seed=seed, lists="clicks" if name == "ubm" else False)
    if name.startswith("gamma"):
        return bits_of(GammaPositionModel.fit(seen).click_rates(seen, asked.hidden()), asked)
    return bits_of(np.asarray(predicted_rates(CORRECTIONS.make(name).fit(training), seen, asked)), asked)


def of_release(source: Path, what: str, log: Path, output: Path) -> Path:
    """Have the release whose `src` folder this is write its "labels" or "bits"."""
    command = [sys.executable, str(Path(__file__).with_name("real_logs_release.py")), what, str(log), str(output)]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(source.resolve())})
    return output


def predictions(log: Path, scratch: Path, earlier: dict[str, Floats]) -> dict[str, Any]:
    """Perplexity on every split, and how many bits clickmix saves over each other way, of all splits together."""
    bits = dict(earlier)
    for name in ("mixture", *PREDICTED):
        both = np.array(
            [predict(name, log, scratch, seed=seed) for seed in SPLITS]
        )  # split x (bits, impressions) x query
        bits[name], shown = both[:, 0], both[:, 1]
    boot = Bootstrap(shown.shape[1])
    rows: dict[str, dict[str, Any]] = {}
    for name, found in bits.items():
        perplexity = 2 ** (found.sum(axis=1) / shown.sum(axis=1))
        rows[name] = {"perplexity": float(perplexity.mean().round(5)), "splits": perplexity.round(5).tolist()}
        if name != "mixture":
            beside = boot.interval(Measured(1000 * (found - bits["mixture"]).sum(axis=0), shown.sum(axis=0)))
            ends = {"value": beside.value, "low": beside.low, "high": beside.high}
            rows[name]["bits saved by mixture"] = {key: round(value, 3) for key, value in ends.items()}
    best = min(RIVALS, key=lambda name: rows[name]["perplexity"])
    return {"rows": rows, "best rival": best, "worse than it": rows[best]["bits saved by mixture"]["high"] < 0}


def agreement(log: Path, labelled: dict[str, Path]) -> dict[str, Any]:
    """Of every way to label, `labelled` before among them: on all judged queries, and on those never looked at."""
    with duckdb.connect() as connection:
        connection.sql(f"CREATE TABLE log AS FROM '{log}'")
        connection.sql(f"CREATE TABLE judgments AS FROM '{log.with_name('judgments.csv.gz')}'")
        tables = {"production order": PRODUCTION}
        for name in ORDERED:
            connection.register(name, cm.debias(log, correction=name).to_arrow())
            tables[name] = f'FROM "{name}"'
        tables |= {name: f"FROM '{path}'" for name, path in labelled.items()}
        return {
            title: _agreement({name: _scored(connection, table, chosen) for name, table in tables.items()})
            for title, chosen in (("agreement", "true"), ("agreement of queries not looked at", NOT_LOOKED_AT))
        }


def _agreement(scores: dict[str, tuple[JudgedDocuments, Floats]]) -> dict[str, Any]:
    """nDCG@10 and AUC at the same position of every way to label, and how far the last release is from before."""
    documents = scores["production order"][0]
    measured = {name: documents.measures(values) for name, (_, values) in scores.items()}
    rows: dict[str, dict[str, Any]] = {
        name: {
            "ndcg@10": round(each["ndcg"].value, 4),
            "same position AUC": round(each["same_place"].value, 4),
            "queries": int(each["ndcg"].below.sum()),
        }
        for name, each in measured.items()
    }
    if "before" in measured:
        boot = Bootstrap(documents.queries)
        for key, measure in (("ndcg@10", "ndcg"), ("same position AUC", "same_place")):
            change = boot.difference(measured["mixture"][measure], measured["before"][measure])
            values = (change.value, change.low, change.high)
            rows["before"][f"{key}, mixture less before"] = [round(value, 4) for value in values]
    return rows


def _scored(connection: duckdb.DuckDBPyConnection, labels: str, chosen: str) -> tuple[JudgedDocuments, Floats]:
    """The judged documents of chosen queries that people saw, and their labels."""
    found = connection.sql(
        "SELECT dense_rank() OVER (ORDER BY query_id) - 1 AS query, grade, position, relevance FROM judgments JOIN "
        "(SELECT query_id, doc_id, avg(position) AS position FROM log GROUP BY ALL) USING (query_id, doc_id) JOIN "
        f"(SELECT query_id, doc_id, relevance FROM ({labels})) USING (query_id, doc_id) WHERE {chosen} "
        "ORDER BY query_id, doc_id"
    ).fetchnumpy()
    grade, position, relevance = (np.asarray(found[key], float) for key in ("grade", "position", "relevance"))
    return JudgedDocuments(found["query"], grade, position), relevance


def verdict(log: Path) -> dict[str, Any]:
    """What clickmix says of the log."""
    counts = cm.count(log)
    fit = cm.MixtureCorrection().fit(counts)
    judged = cm.judge(fit, counts, held_out=True)
    return {"verdict": str(judged), "sentences": list(judged.sentences), "expected error": round(fit.error, 4)}


def measure_log(folder: Path, before: Path | None) -> dict[str, Any]:
    """All figures of a log. Of the earlier release, which takes long, held-out clicks only where nothing is judged."""
    log = folder / "impressions.csv.gz"
    counts = cm.count(log)
    impressions, clicks = counts.totals()
    ((queries,),) = counts.engine.rows(f"SELECT count(DISTINCT query_id) FROM {counts.table}")
    judged = log.with_name("judgments.csv.gz").exists()
    with tempfile.TemporaryDirectory() as folder_name:
        scratch = Path(folder_name)
        labels, bits = scratch / "labels.parquet", scratch / "bits.npy"
        earlier = {"before": np.load(of_release(before, "bits", log, bits))} if before and not judged else {}
        figures: dict[str, Any] = {"impressions": impressions, "clicks": clicks, "queries": int(queries)}
        figures |= {"held-out clicks": predictions(log, scratch, earlier), "verdict": verdict(log)}
        if judged:
            known = {"before": of_release(before, "labels", log, labels)} if before else {}
            figures |= agreement(log, known)
    print(folder.name, figures, flush=True)
    return figures


if __name__ == "__main__":
    data, before = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None
    figures = {name: measure_log(data / folder, before) for name, folder in LOGS.items()}
    write_result("real-logs", "python benchmarks/real_logs.py DATA BEFORE", figures)
