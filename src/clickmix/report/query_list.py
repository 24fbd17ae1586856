"""Query list: queries with their result lists, as the page shows them.   ShownQuery -> HTML rows, embedded data"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from clickmix.errors import printable
from clickmix.report.query_numbers import ShownDocument, ShownQuery
from clickmix.report.rows import count_text, cut, label_text, percent

WITHOUT_SCRIPT = 20  # queries that can be read without JavaScript; the script shows all that are embedded


@dataclass(frozen=True)
class QueryList:
    """Queries, the largest gain first; `usual` has the click rates of irrelevant and relevant documents by position."""

    queries: Sequence[ShownQuery]
    usual: Mapping[int, tuple[float, float]]

    def first(self) -> Sequence[dict[str, Any]]:
        """Texts of the queries that are in the HTML itself."""
        return [self._texts(query) for query in self.queries[:WITHOUT_SCRIPT]]

    def json(self) -> dict[str, Any]:
        """All queries as short rows of raw values, for the script.

        Query: id, impressions, clicks, documents, unsure, gain, results. Result: id, label, low, high, impressions,
        clicks, mean position, rank by label, positions. Position: position, impressions, clicks.
        """
        return {
            "usual": {str(at): rates for at, rates in sorted(self.usual.items())},
            "queries": [_query_values(query) for query in self.queries],
        }

    def within(self, most_bytes: int) -> QueryList:
        """The first queries, as many as fit into that many bytes of the file."""
        sizes = (len(json_line(_query_values(query)).encode()) + 1 for query in self.queries)
        fitting = sum(upto <= most_bytes for upto in accumulate(sizes))
        return replace(self, queries=self.queries[:fitting])

    def _texts(self, query: ShownQuery) -> dict[str, Any]:
        return {
            "query": printable(cut(query.query_id)),
            "numbers": [
                label_text(query.gain),
                count_text(query.impressions),
                count_text(query.clicks),
                count_text(query.documents),
                "-" if query.unsure is None else percent(round(query.unsure, 3)),
            ],
            "results": [self._result(result) for result in query.results],
            "more": query.documents - len(query.results),
        }

    def _result(self, result: ShownDocument) -> dict[str, Any]:
        low, high = (result.label if end is None else end for end in (result.low, result.high))
        interval = "" if result.low is None else f" ({label_text(low)} to {label_text(high)})"
        return {
            "document": printable(cut(result.doc_id)),
            "position": f"{result.mean_position:.1f}",
            "rank": count_text(result.rank_by_label),
            "label": label_text(result.label) + interval,
            "bar": [round(100 * value, 1) for value in (low, max(high - low, 0.0), result.label)],
            "clicked": f"{result.clicks:,} of {result.impressions:,}",
            "evidence": [self._evidence(*position) for position in result.positions],
        }

    def _evidence(self, position: int, impressions: int, clicks: int) -> str:
        seen = f"position {position:,}: {clicks:,} of {impressions:,} ({percent(clicks / impressions)})"
        if position not in self.usual:
            return seen
        low, high = self.usual[position]
        return f"{seen}; usual: {percent(high)} if relevant, {percent(low)} if not"


def json_line(document: Any) -> str:
    """JSON on one line that is safe inside an HTML element: nothing in it can end that element."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e").replace("\u2028", r"\u2028")


def _query_values(query: ShownQuery) -> list[Any]:
    unsure = None if query.unsure is None else round(query.unsure, 3)
    results = [_result_values(result) for result in query.results]
    name = printable(cut(query.query_id))
    return [name, query.impressions, query.clicks, query.documents, unsure, round(query.gain, 2), results]


def _result_values(result: ShownDocument) -> list[Any]:
    low, high = (None if end is None else round(end, 2) for end in (result.low, result.high))
    numbers = [result.impressions, result.clicks, round(result.mean_position, 1), result.rank_by_label]
    return [printable(cut(result.doc_id)), round(result.label, 2), low, high, *numbers, result.positions]
