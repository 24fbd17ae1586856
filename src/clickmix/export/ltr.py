"""Judgments -> LTR text for RankLib, hello-ltr and the LTR plugins' demos."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clickmix.export.judgments import LABEL_OPTIONS, NO_BLANK, Judgments, JudgmentTarget, Limit
from clickmix.export.target import EXPORTS, Exported


@EXPORTS.register("ltr", help="LTR text: the judgment list of RankLib and hello-ltr", options=LABEL_OPTIONS)
@dataclass(frozen=True, kw_only=True)
class LTR(JudgmentTarget):
    """A header that numbers the queries, then a line per document: grade, qid, and after # its id and the query."""

    limits = "A line holds a grade of one digit, and ids without blanks or line ends."
    largest_scale = 9
    refused = (
        Limit("regexp_matches(query, '[\\n\\r]')", "a line end in the query, and LTR text has a line per judgment."),
        Limit(
            f"NOT regexp_full_match(doc_id, '{NO_BLANK}')", "a blank in the document id, which ends at a blank here."
        ),
    )
    doubtful = (
        Limit(
            "NOT regexp_full_match(doc_id, '\\w+')",
            "a document id that hello-ltr cuts: it reads letters, digits and _.",
        ),
        Limit("contains(query, '*')", "a * in the query, which hello-ltr reads as the beginning of a weight."),
    )

    def put(self, judgments: Judgments, output: Path, called: str) -> Exported:
        table = judgments.table
        # A blank line, because hello-ltr loses the first line after the header.
        judgments.write(
            "SELECT line FROM ("
            f"SELECT 0 AS part, number AS place, '# qid:' || number || ': ' || any_value(query) AS line FROM {table} "
            "GROUP BY number UNION ALL SELECT 1, 0, '' UNION ALL "
            f"SELECT 2, place, rating || '\t' || 'qid:' || number || '\t# ' || doc_id || ' ' || query FROM {table}"
            ") ORDER BY part, place",
            output,
        )
        return Exported((output,))
