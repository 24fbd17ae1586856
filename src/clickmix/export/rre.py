"""Judgments -> the ratings file of the Rated Ranking Evaluator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clickmix.export.indexes import INDEX, needed_index
from clickmix.export.judgments import LABEL_OPTIONS, ROWS, Judgments, JudgmentTarget, enclosed
from clickmix.export.target import EXPORTS, Exported

TEMPLATE = "query.json"


@EXPORTS.register("rre", help="ratings of the Rated Ranking Evaluator (RRE)", options=(*LABEL_OPTIONS, INDEX))
@dataclass(frozen=True, kw_only=True)
class RRE(JudgmentTarget):
    """One topic with a query group per query; documents are listed by grade."""

    index: str | None = None

    limits = "RRE takes whole grades only, and 3 is the largest unless you set another in RRE."

    def put(self, judgments: Judgments, output: Path, called: str) -> Exported:
        index = needed_index(self.index, "rre")
        topic = {"description": called, "query_groups": [ROWS]}
        ratings = {"index": index, "id_field": "_id", "topics": [topic]}
        by_grade = (
            "SELECT number, any_value(query) AS query, grade, list(doc_id ORDER BY place) AS documents "
            f"FROM {judgments.table} GROUP BY number, grade"
        )
        value = (
            "{'name': any_value(query), "
            f"'queries': [{{'template': '{TEMPLATE}', 'placeholders': {{'$query': any_value(query)}}}}], "
            "'relevant_documents': map_from_entries(list((grade, documents) ORDER BY grade DESC))}"
        )
        rows = f"SELECT number AS place, {value} AS value FROM ({by_grade}) GROUP BY number"
        judgments.write(enclosed(ratings, rows), output)
        note = f"Put the file into RRE's ratings folder, and a query with $query in it into templates/{TEMPLATE}."
        larger = f"Tell RRE's metrics that the largest grade is {self.scale}." if self.scale != 3 else ""
        return Exported((output,), (note, *([larger] if larger else [])))
