"""How labels of real logs agree with human grades: nDCG@10 of ordering judged documents by label, beside simple things.

python benchmarks/real_logs.py DATA       DATA/clara-half and DATA/trec-session: impressions.csv.gz, judgments.csv.gz

CLARA2 is Naver's log (half of its queries), TREC the session track of 2014. The logs are not part of clickmix.
Documents with equal labels are in no order: nDCG is the mean over all of them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import duckdb

import clickmix as cm
from clickmix.evaluate import evaluate
from measuring import write_result

LOGS = {
    "CLARA2": ("clara-half", 2),
    "TREC 2014": ("trec-session", 0),
}  # the folder, and the grade that is worth nothing
CORRECTIONS = ("none", "ctr-then-rank", "coec-smoothed", "pbm", "mixture")
PRODUCTION = "SELECT query_id, doc_id, -avg(position) AS relevance FROM log GROUP BY ALL"


def agreement(connection: duckdb.DuckDBPyConnection, labels: str, *, worthless: int) -> dict[str, float]:
    """nDCG@10 over the queries whose judged and labelled documents have at least two grades."""
    joined = connection.sql(
        f"WITH judged AS (SELECT j.query_id, greatest(j.grade - {worthless}, 0) AS grade, l.relevance "
        f"FROM judgments j JOIN ({labels}) l USING (query_id, doc_id)) "
        "SELECT * FROM judged WHERE query_id IN "
        "(SELECT query_id FROM judged GROUP BY ALL HAVING count(DISTINCT grade) > 1) ORDER BY ALL"
    ).fetchnumpy()
    scores = evaluate(joined["relevance"], joined["grade"], joined["query_id"], measure="ndcg@10")
    return {"ndcg@10": round(float(scores.mean), 4), "queries": len(scores.query_ids)}


def measure_log(folder: Path, *, worthless: int) -> dict[str, Any]:
    """The size of a log, and the agreement of each way to order its documents."""
    impressions = folder / "impressions.csv.gz"
    with duckdb.connect() as connection:
        connection.sql(f"CREATE TABLE log AS FROM '{impressions}'")
        connection.sql(f"CREATE TABLE judgments AS FROM '{folder / 'judgments.csv.gz'}'")
        size = connection.sql(
            "SELECT count(*) AS impressions, sum(clicked)::BIGINT AS clicks, "
            "count(DISTINCT query_id) AS queries FROM log"
        ).fetchnumpy()
        found = {"production order": agreement(connection, PRODUCTION, worthless=worthless)}
        for correction in CORRECTIONS:
            try:
                labels = cm.debias(impressions, correction=correction)
            except cm.ClickmixError as refused:
                found[correction] = {"refused": str(refused)}  # type: ignore[dict-item]
                continue
            connection.register("labels", labels.to_arrow())
            found[correction] = agreement(connection, "FROM labels", worthless=worthless)
            print(folder.name, correction, found[correction], flush=True)
    return {name: int(values[0]) for name, values in size.items()} | {"agreement": found}


if __name__ == "__main__":
    figures = {
        name: measure_log(Path(sys.argv[1]) / folder, worthless=worthless) for name, (folder, worthless) in LOGS.items()
    }
    write_result("real-logs", "python benchmarks/real_logs.py DATA", figures)
