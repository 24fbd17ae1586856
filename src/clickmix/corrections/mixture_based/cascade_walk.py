"""The walk down result lists: at each position, what is above decides which documents share a group.

    counts by list -> counts with the group as a context column
All of it is SQL over the table by list, a handful of statements per position. Only sums, the frequent patterns and a
histogram of scores leave the engine; the size of all three is bounded, however long the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from clickmix.corrections.mixture_based.cascade_patterns import LEVELS, Step, expected_clicks, form_step, score_sql
from clickmix.counts.counts import Counts
from clickmix.engines.duckdb import DuckDB
from clickmix.engines.engine import embedded
from clickmix.engines.sql import listed
from clickmix.errors import InputError
from clickmix.groups.places import Place, join_small
from clickmix.groups.sample import SAMPLE_CELLS
from clickmix.types import Floats

SMALLEST_PATTERN = 30  # documents of a frequent pattern
SAMPLED_PATTERN = 100  # documents in a sample of cells: rarely fewer than the smallest in the whole
DEEPEST = 50  # positions walked one by one; deeper ones count as the last of them
ABOVE = "above"

Rule = Callable[["Ground", int], Step]
Relevance = Callable[[Counts, int], str]


@dataclass(frozen=True)
class Ground:
    """The tables of a walk: `pages` (query, list, pattern so far) and `cells` (with the group as a column)."""

    counts: Counts
    pages: str
    cells: str
    positions: tuple[int, ...]

    @classmethod
    def of(cls, counts: Counts, positions: Sequence[int]) -> Ground:
        """The tables before the first step: no cells yet, and empty patterns."""
        engine = _engine(counts)
        run = engine.run
        ground = cls(counts, engine.new_name("pages"), engine.new_name("walked"), tuple(positions))
        run(f"CREATE TEMP TABLE {ground.pages} AS SELECT DISTINCT query_id, list, '' AS pattern FROM {counts.by_list}")
        run(
            f"CREATE TEMP TABLE {ground.cells} AS SELECT query_id, doc_id, position, '' AS {ABOVE}, impressions, "
            f"clicks FROM {counts.by_list} LIMIT 0"
        )
        return ground

    def shown(self, position: int) -> str:
        """SQL for what was shown at a position, or between it and the next one walked, with the pattern above."""
        return (
            f"(SELECT query_id, list, doc_id, pattern, impressions, clicks FROM {self.counts.by_list} "
            f"JOIN {self.pages} USING (query_id, list) WHERE {self._here(position)})"
        )

    def _here(self, position: int) -> str:
        i = self.positions.index(position)
        low = "" if i == 0 else f"position >= {position}"
        high = "" if i + 1 == len(self.positions) else f"position < {self.positions[i + 1]}"
        return " AND ".join(filter(None, (low, high))) or "TRUE"

    def enter(self, step: Step) -> Counts:
        """Put the cells of a position into their groups; return all cells so far of the documents shown there."""
        run, recent = _engine(self.counts).run, f"{self.cells}_recent"
        run(
            f"INSERT INTO {self.cells} SELECT query_id, doc_id, {step.position}, {ABOVE}, "
            "CAST(sum(impressions) AS BIGINT), CAST(sum(clicks) AS BIGINT) FROM "
            f"(SELECT query_id, doc_id, {step.group_sql()} AS {ABOVE}, impressions, clicks "
            f"FROM {self.shown(step.position)}) GROUP BY query_id, doc_id, {ABOVE}"
        )
        run(
            f"CREATE OR REPLACE TEMP TABLE {recent} AS SELECT * FROM {self.cells} SEMI JOIN "
            f"(SELECT query_id, doc_id FROM {self.cells} WHERE position = {step.position}) USING (query_id, doc_id)"
        )
        return Counts(self.counts.engine, recent, (ABOVE,))

    def leave(self, position: int, labels: str) -> None:
        """Add the digit of a position to the patterns; if two documents share the position, the better one's."""
        run, following = _engine(self.counts).run, f"{self.pages}_next"
        digit = f"CAST(round({LEVELS} * relevance) AS INTEGER)"
        run(
            f"CREATE TEMP TABLE {following} AS SELECT query_id, list, concat(pattern, coalesce(digit, 0)) AS pattern "
            f"FROM {self.pages} LEFT JOIN (SELECT query_id, list, max({digit}) AS digit FROM "
            f"(SELECT query_id, list, doc_id FROM {self.counts.by_list} WHERE {self._here(position)}) "
            f"JOIN ({labels}) USING (query_id, doc_id) GROUP BY query_id, list) USING (query_id, list)"
        )
        run(f"DROP TABLE {self.pages}")
        run(f"ALTER TABLE {following} RENAME TO {self.pages}")


def walk(counts: Counts, positions: Sequence[int], *, rule: Rule, relevance: Relevance) -> tuple[Counts, list[Step]]:
    """Walk down: `rule` says how to group a position, `relevance` gives SQL for the labels of documents shown there.

    Returns the counts with the group in the context column `above`, and the rules of all positions.
    """
    ground, steps = Ground.of(counts, positions), []
    for position in positions:
        steps.append(rule(ground, position))
        labels = relevance(ground.enter(steps[-1]), position)
        if position != positions[-1]:
            ground.leave(position, labels)
    for table in (ground.pages, f"{ground.cells}_recent"):
        _engine(counts).run(f"DROP TABLE {table}")
    return Counts(counts.engine, ground.cells, (ABOVE,)), steps


def walk_again(counts: Counts, steps: Sequence[Step], labels: Callable[[Counts], str]) -> Counts:
    """The counts of any log in the groups of known rules; `labels` gives SQL for the labels of counts."""
    known = {step.position: step for step in steps}
    return walk(counts, tuple(known), rule=lambda _, at: known[at], relevance=lambda recent, _: labels(recent))[0]


def _engine(counts: Counts) -> DuckDB:
    """The engine, which must be DuckDB: only DuckDB counts lists separately."""
    return embedded(counts.engine, of="walking down result lists (dcm, ubm)")


def check_lists(counts: Counts, examination: str) -> None:
    """Refuse counts that do not show what was above a document."""
    if counts.by_list is None:
        raise InputError(
            f"examination {examination!r}: these counts have no result lists, so they do not show what was above a "
            "document. Count the log with clickmix counts --lists (in Python count(log, lists=True))."
        )


def walked_positions(counts: Counts) -> tuple[int, ...]:
    """The positions to walk: one with too few documents is joined to its neighbour, by `join_small`."""
    rows = counts.engine.rows(f"SELECT position, count(*) FROM {counts.table} GROUP BY position ORDER BY position")
    places, documents = [Place(position) for position, _ in rows], [count for _, count in rows]
    group = join_small(places, documents, smallest=smallest_group(counts))
    firsts = [place.position for i, place in enumerate(places) if i == 0 or group[i] != group[i - 1]]
    return tuple(firsts[:DEEPEST])


def smallest_group(counts: Counts) -> int:
    """How many documents a frequent pattern needs: enough to be found in a sample of cells as well."""
    ((cells,),) = counts.engine.rows(f"SELECT count(*) FROM {counts.by_list}")
    return SMALLEST_PATTERN if cells <= SAMPLE_CELLS else SAMPLED_PATTERN * int(cells) // SAMPLE_CELLS


def rule_from(ground: Ground, position: int) -> Step:
    """The rule of a position, from the log."""
    engine, smallest = ground.counts.engine, smallest_group(ground.counts)
    shown = ground.shown(position)
    score = expected_clicks(*_moments(ground, position))
    documents = (
        f"SELECT pattern, count(*) AS documents FROM (SELECT DISTINCT query_id, doc_id, pattern FROM {shown}) "
        "GROUP BY pattern"
    )
    patterns = engine.rows(f"{documents} HAVING count(*) >= {smallest} ORDER BY pattern")
    scores = engine.fetch(
        f"SELECT {score_sql(score)} AS score, CAST(sum(documents) AS BIGINT) AS documents FROM ({documents}) "
        "GROUP BY 1 ORDER BY 1"
    )
    return form_step(
        position, dict(patterns), score=score, scores=(scores["score"], scores["documents"]), smallest=smallest
    )


def _moments(ground: Ground, position: int) -> tuple[Floats, Floats]:
    """Sums of n x x' and of c x over the impressions at a position, x = (1, digits). Integers, so they are exact."""
    size = ground.positions.index(position) + 1
    x = ["1", *(f"CAST(substr(pattern, {i}, 1) AS BIGINT)" for i in range(1, size))]
    pairs = [(i, j) for i in range(size) for j in range(i, size)]
    columns = listed(f"{value} AS x{i}" for i, value in enumerate(x))
    sums = listed(
        [*(f"sum(impressions * x{i} * x{j})" for i, j in pairs), *(f"sum(clicks * x{i})" for i in range(size))]
    )
    (row,) = ground.counts.engine.rows(
        f"SELECT {sums} FROM (SELECT {columns}, impressions, clicks FROM {ground.shown(position)})"
    )
    moments = np.zeros((size, size))
    for (i, j), value in zip(pairs, row, strict=False):
        moments[i, j] = moments[j, i] = float(value)
    return moments, np.array([float(value) for value in row[len(pairs) :]])
