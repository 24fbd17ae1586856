"""Judgments -> a Quepid book in JSON; the evidence and the interval explain each judgment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clickmix.export.judgments import LABEL_OPTIONS, ROWS, Judgments, JudgmentTarget, enclosed
from clickmix.export.target import EXPORTS, TITLE, Exported

ENDS = {0: "not relevant", 1: "relevant"}


@EXPORTS.register(
    "quepid-book", help="a Quepid book that explains each label by its interval", options=(*LABEL_OPTIONS, TITLE)
)
@dataclass(frozen=True, kw_only=True)
class QuepidBook(JudgmentTarget):
    """One object: the scale of the book, and a list of query-document pairs with a judgement each."""

    title: str | None = None

    limits = "A book holds any id and any number; it is read as a whole, so keep it to some 10,000 pairs with --top."
    ratings = ("grade", "probability", "expected-gain")

    def put(self, judgments: Judgments, output: Path, called: str) -> Exported:
        scale = range(self.scale + 1) if self.rating == "grade" else range(2)
        labels = {str(grade): ENDS.get(grade // max(scale), str(grade)) for grade in scale} | {"0": ENDS[0]}
        labels |= {str(grade): f"grade {grade}" for grade in scale if 0 < grade < max(scale)}
        book = {
            "name": self.title or called,
            "show_rank": False,
            "support_implicit_judgements": True,  # without it Quepid rounds ratings
            "scale": list(scale),
            "scale_with_labels": labels,
            "query_doc_pairs": [ROWS],
        }
        pair = (
            "{'query_text': query, 'doc_id': doc_id, 'position': NULL, 'document_fields': MAP {}, "
            f"'judgements': [{{'rating': CAST(rating AS JSON), 'explanation': {_remark()}}}]}}"
        )
        judgments.write(enclosed(book, f"SELECT place, {pair} AS value FROM {judgments.table}"), output)
        return Exported((output,))


def _remark() -> str:
    """SQL for the evidence in words; leaves out what labels do not have."""
    clicks = "format('{:d} clicks of {:d} impressions', CAST(clicks AS BIGINT), CAST(impressions AS BIGINT))"
    relevance = "format('relevance {:.2f}', relevance)"
    interval = "format('95% interval {:.2f} to {:.2f}', low, high)"
    return f"concat_ws('; ', {clicks}, {relevance}, {interval})"
