"""Judgments -> the body of a `_rank_eval` request of Elasticsearch or OpenSearch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clickmix.engines.sql import literal
from clickmix.export.indexes import INDEX, needed_index
from clickmix.export.judgments import LABEL_OPTIONS, ROWS, Judgments, JudgmentTarget, enclosed
from clickmix.export.models import upload
from clickmix.export.target import EXPORTS, Exported

TEMPLATE = {"id": "clickmix", "template": {"source": {"query": {"multi_match": {"query": "{{query}}"}}}}}
METRIC = {"dcg": {"k": 10, "normalize": True}}


@EXPORTS.register(
    "rank-eval", help="a _rank_eval request of Elasticsearch or OpenSearch", options=(*LABEL_OPTIONS, INDEX)
)
@dataclass(frozen=True, kw_only=True)
class RankEval(JudgmentTarget):
    """One object: a query template, a request per query with its rated documents, and the metric nDCG@10."""

    index: str | None = None

    limits = "_rank_eval takes whole ratings only: it reads 0.731 as 0, without an error."

    def put(self, judgments: Judgments, output: Path, called: str) -> Exported:
        index = needed_index(self.index, "rank-eval")
        body = {"metric": METRIC, "templates": [TEMPLATE], "requests": [ROWS]}
        rated = f"{{'_index': {literal(index)}, '_id': doc_id, 'rating': grade}}"
        value = (
            "{'id': any_value(query_id), 'template_id': 'clickmix', 'params': {'query': any_value(query)}, "
            f"'ratings': list({rated} ORDER BY place)}}"
        )
        rows = f"SELECT number AS place, {value} AS value FROM {judgments.table} GROUP BY number"
        judgments.write(enclosed(body, rows), output)
        return Exported(
            (output,),
            ("The template searches all fields of the index: replace it with your own query.",),
            (upload("POST", f"localhost:9200/{index}/_rank_eval", output),),
        )
