"""Do clicks of one session depend on each other?   a log with sessions -> Dependence

Under the position-based model, clicks at different positions are independent, given the result list. If people read on
or stop because of a click, they are not. Of the n sessions that saw a list, c_i clicked position i and c_j position j.
If clicks are independent, the number of sessions that clicked both is hypergeometric:
    expected = c_i c_j / n,   variance = c_i c_j (n - c_i) (n - c_j) / (n^2 (n - 1)),
and pairs are uncorrelated. So the sums over all lists, by the distance of i and j, have a known mean and variance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from clickmix.counts.lists import sessions_query
from clickmix.engines.duckdb import DuckDB
from clickmix.errors import InputError
from clickmix.log.open import open_log
from clickmix.types import Floats

CHANCE = 0.01  # probability of a false alarm
LEAST_DEPARTURE = 0.05  # smallest relative departure from independence that matters, however sure it is
FARTHEST = 50  # positions apart


@dataclass(frozen=True)
class Together:
    """Sessions that clicked two positions `apart`: observed, and expected if clicks were independent."""

    apart: int
    observed: int
    expected: float
    deviation: float

    @property
    def z(self) -> float:
        """Standard deviations from independence; 0 if there is no data."""
        return (self.observed - self.expected) / self.deviation if self.deviation > 0 else 0.0


@dataclass(frozen=True)
class Dependence:
    """Positions clicked together, by distance."""

    together: tuple[Together, ...]

    @property
    def found(self) -> bool:
        """Whether clicks depend on each other: at some distance, by more than chance and by enough to matter."""
        tested = [pair for pair in self.together if pair.deviation > 0]
        bound = stats.norm.isf(CHANCE / 2 / max(len(tested), 1))
        return any(
            abs(pair.z) > bound and abs(pair.observed - pair.expected) > LEAST_DEPARTURE * pair.expected
            for pair in tested
        )

    def describe(self) -> str:
        """The result in words."""
        if not self.found:
            return "Clicks within a session look independent: the position-based model fits."
        worst = max(self.together, key=lambda pair: abs(pair.z))
        return (
            f"Clicks within a session depend on each other: positions {worst.apart} apart were clicked together "
            f"{worst.observed:,} times; {worst.expected:,.0f} times were expected. Try --examination dcm or ubm."
        )


def click_dependence(log: object, *, columns: Mapping[str, str] | None = None, memory: str | None = None) -> Dependence:
    """Test whether clicks within a session depend on each other; the log needs session_id and no bad rows."""
    engine = DuckDB(memory=memory)
    opened = open_log(log, engine=engine, columns=columns, lists=True)
    found: dict[int, Floats] = {}
    for part in opened.parts:
        if not part.layout.row_is_impression:
            raise InputError(
                f"{part.source}: these are counts, which do not show what was clicked together. Use the raw log."
            )
        for apart, *sums in _sums(engine, sessions_query(part)):
            found[apart] = found.get(apart, np.zeros(3)) + np.array([float(value or 0) for value in sums])
    engine.close()
    return Dependence(
        tuple(Together(apart, int(o), float(e), float(np.sqrt(v))) for apart, (o, e, v) in sorted(found.items()))
    )


def _sums(engine: DuckDB, sessions: str) -> list[tuple[int, int, float, float]]:
    """By distance: observed, expected and variance. Decimals, because sums of floats depend on the order of rows."""
    shown, clicked = engine.new_name("shown"), engine.new_name("clicked")
    page, near = "query_id, sum_0, sum_1", f"b.position - a.position BETWEEN 1 AND {FARTHEST}"
    engine.run(
        f"CREATE TEMP TABLE {shown} AS SELECT {page}, position, CAST(count(*) AS DOUBLE) AS n, "
        f"CAST(count(CASE WHEN clicked THEN 1 END) AS DOUBLE) AS c FROM ({sessions}) GROUP BY {page}, position"
    )
    engine.run(
        f"CREATE TEMP TABLE {clicked} AS SELECT DISTINCT query_id, session_id, position FROM ({sessions}) WHERE clicked"
    )
    expected, variance = "a.c * b.c / a.n", "a.c * b.c * (a.n - a.c) * (b.n - b.c) / (a.n * a.n * (a.n - 1))"
    return engine.rows(
        f"SELECT apart, coalesce(observed, 0), expected, variance FROM (SELECT b.position - a.position AS apart, "
        f"sum(CAST({expected} AS DECIMAL(38, 9))) AS expected, "
        f"sum(CASE WHEN a.n > 1 THEN CAST({variance} AS DECIMAL(38, 9)) END) AS variance "
        f"FROM {shown} AS a JOIN {shown} AS b USING ({page}) WHERE {near} GROUP BY 1) LEFT JOIN "
        f"(SELECT b.position - a.position AS apart, count(*) AS observed "
        f"FROM {clicked} AS a JOIN {clicked} AS b USING (query_id, session_id) WHERE {near} GROUP BY 1) USING (apart)"
    )
