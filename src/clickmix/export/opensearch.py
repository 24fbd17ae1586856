"""Judgments -> requests for OpenSearch's Search Relevance Workbench.

A judgment list is one document of an index. A document holds 10,000 objects, so there can be several lists.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from clickmix.errors import InputError, SettingError
from clickmix.export.judgments import LABEL_OPTIONS, ROWS, Judgments, JudgmentTarget, enclosed
from clickmix.export.target import EXPORTS, TITLE, Exported
from clickmix.storage.atomic import new_folder

MOST_OBJECTS = 9_999  # `index.mapping.nested_objects.limit` is 10,000: queries and ratings of a list together
LONGEST_NAME = 2_000
SEND = "curl -X PUT localhost:9200/_plugins/_search_relevance/judgments -H 'Content-Type: application/json'"


@EXPORTS.register(
    "opensearch", help="judgment lists for OpenSearch's Search Relevance Workbench", options=(*LABEL_OPTIONS, TITLE)
)
@dataclass(frozen=True, kw_only=True)
class OpenSearch(JudgmentTarget):
    """A folder of request bodies, each a judgment list of whole queries with fewer than 10,000 nested objects."""

    title: str | None = None

    limits = f"A list holds up to {MOST_OBJECTS:,} queries and ratings together, so FILE is a folder of numbered lists."
    ratings = ("grade", "probability", "expected-gain")

    def put(self, judgments: Judgments, output: Path, called: str) -> Exported:
        title = self.title or called
        if not 0 < len(title) <= LONGEST_NAME or set(title) & set('"\\<>'):
            raise SettingError(
                f'title {title!r}: OpenSearch takes up to {LONGEST_NAME:,} letters without " \\ < >. Pass --title.'
            )
        parts, judgments = _parts(judgments)
        files = [f"judgments-{part:0{len(str(parts))}}.json" for part in range(1, parts + 1)]
        ratings = "list({'docId': doc_id, 'rating': rating} ORDER BY place)"
        value = f"{{'query': any_value(query), 'ratings': {ratings}}}"
        with new_folder(output) as folder:
            for part, file in enumerate(files):
                called = title if parts == 1 else f"{title} {part + 1} of {parts}"
                body = {"name": called, "type": "IMPORT_JUDGMENT", "judgmentRatings": [ROWS]}
                chosen = f"{judgments.table} WHERE part = {part}"
                rows = f"SELECT number AS place, {value} AS value FROM {chosen} GROUP BY number"
                judgments.write(enclosed(body, rows), folder / file)
        return Exported(
            tuple(output / file for file in files),
            self._notes(parts),
            (f'for list in {shlex.quote(str(output))}/*.json; do {SEND} --data-binary "@$list"; done',),
        )

    def _notes(self, parts: int) -> tuple[str, ...]:
        several = (
            f"{parts} lists, because one holds up to {MOST_OBJECTS:,} queries and ratings; experiments take several."
        )
        precise = (
            "Since version 3.6, Precision, Recall, MAP and MRR count only ratings of at least the 90th percentile of "
            "their query as relevant. Without ties that is a tenth of the documents: leave --as out for these measures."
        )
        return (*([several] if parts > 1 else []), *([precise] if self.rating != "grade" else []))


def _parts(judgments: Judgments) -> tuple[int, Judgments]:
    """How many lists there are, and the judgments with the number of their list, from 0, as the column `part`."""
    engine = judgments.engine
    sizes = engine.fetch(f"SELECT count(*) AS size FROM {judgments.table} GROUP BY number ORDER BY number")["size"]
    largest = int(sizes.max())
    if largest >= MOST_OBJECTS:
        ((query,),) = engine.rows(f"SELECT any_value(query) FROM {judgments.table} WHERE number = {sizes.argmax() + 1}")
        raise InputError(
            f"Query {query!r} has {largest:,} judgments, but a list in OpenSearch holds {MOST_OBJECTS - 1:,}. "
            f"Keep the best with --top {MOST_OBJECTS - 1}. Nothing was written."
        )
    firsts, filled = [1], 0
    for number, size in enumerate(sizes.tolist(), start=1):
        filled += size + 1
        if filled > MOST_OBJECTS:
            firsts.append(number)
            filled = size + 1
    engine.register("lists", {"first": np.array(firsts), "part": np.arange(len(firsts))})
    parted = engine.keep(f"SELECT * FROM {judgments.table} ASOF JOIN lists ON number >= first")
    return len(firsts), replace(judgments, table=parted)
