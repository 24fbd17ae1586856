"""Judgments -> the CSV that a Quepid case imports, and OpenSearch's Search Relevance Workbench as well."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clickmix.export.judgments import LABEL_OPTIONS, Judgments, JudgmentTarget, Limit
from clickmix.export.target import EXPORTS, Exported

LONGEST_ID = 500
# Other quotes stay in the query unchanged: Quepid wants exactly two in a quoted line.
QUOTED = "(contains(query, ',') OR starts_with(query, '\"'))"


@EXPORTS.register("quepid", help="CSV for a Quepid case, or for OpenSearch's user interface", options=LABEL_OPTIONS)
@dataclass(frozen=True, kw_only=True)
class Quepid(JudgmentTarget):
    """query,docid,rating; lines end in a line feed, and only queries with a comma are quoted, as Quepid wants."""

    limits = (
        f"Quepid reads a line at a time: no line ends in ids, document ids without a comma, up to {LONGEST_ID} letters."
    )
    ratings = ("grade", "probability", "expected-gain")
    refused = (
        Limit("regexp_matches(query || doc_id, '[\\n\\r]')", "a line end in an id, and Quepid reads a line at a time."),
        Limit(
            "doc_id LIKE '%,%' OR doc_id LIKE '%\"%'", "a comma or a quote in the document id, which Quepid misreads."
        ),
        Limit(f"length(doc_id) > {LONGEST_ID}", f"a document id of more than {LONGEST_ID} letters, which Quepid cuts."),
    )
    doubtful = (
        Limit(
            f"{QUOTED} AND contains(query, '\"')",
            "a query with a comma and a quote, or a quote first: Quepid refuses the file, OpenSearch accepts it.",
        ),
        Limit(
            "NOT regexp_full_match(query || doc_id, '[\\x00-\\xFF]*')", "letters beyond Latin-1, which Quepid may lose."
        ),
    )

    def put(self, judgments: Judgments, output: Path, called: str) -> Exported:
        query = f"""CASE WHEN {QUOTED} THEN '"' || replace(query, '"', '""') || '"' ELSE query END"""
        judgments.write(
            "SELECT 'query,docid,rating' AS line UNION ALL "
            f"(SELECT {query} || ',' || doc_id || ',' || rating FROM {judgments.table} ORDER BY place)",
            output,
        )
        return Exported((output,))
