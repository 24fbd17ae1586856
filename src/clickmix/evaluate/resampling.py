"""The bootstrap over queries, for measures that are ratios of sums over queries.   measured -> intervals, differences

A measure is sum_q a_q / sum_q b_q. A mean over queries has b_q = 1; a share of pairs has b_q pairs of query q. All
measures use the same resamples, so that differences are paired. Thousands of queries are first put into blocks at
random: queries are independent, so resamples of blocks scatter like resamples of queries, at a bounded cost. The number
of times that a query is drawn is Poisson, which for ratios is as good as drawing a fixed number, and faster.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clickmix.types import Floats, Ints

RESAMPLES = 2_000
MOST_BLOCKS = 1_000
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Measured:
    """A measure of one ranking: the numerator (`above`) and denominator (`below`) of its ratio, per query.

    `scale` stretches deviations of resamples: a share of pairs between queries counts each pair twice, once for each
    query, and so moves half as far as it should. `root` is for the root of a mean.
    """

    above: Floats
    below: Floats
    scale: float = 1.0
    root: bool = False

    @property
    def value(self) -> float:
        """The measure on all queries; nan if there is nothing to measure."""
        below = float(self.below.sum())
        ratio = float(self.above.sum()) / below if below > 0 else math.nan
        return math.sqrt(ratio) if self.root else ratio


@dataclass(frozen=True)
class Resampled:
    """A value, the interval that contains 95% of the resamples, and their standard deviation.

    For a difference, `p` is twice the share of resamples on the other side of 0, at least 1 / resamples.
    """

    value: float
    low: float
    high: float
    spread: float
    p: float

    @property
    def margin(self) -> float:
        """Half the interval."""
        return (self.high - self.low) / 2


class Bootstrap:
    """Resamples of queries, drawn once."""

    def __init__(self, queries: int, *, seed: int = 0, resamples: int = RESAMPLES) -> None:
        rng = np.random.default_rng(seed)
        self._blocks = min(queries, MOST_BLOCKS)
        self._block: Ints = rng.permutation(queries) % max(self._blocks, 1)
        self._weights = rng.poisson(1.0, size=(resamples, self._blocks)).astype(np.float64)
        self._known: dict[Measured, Floats] = {}  # every difference uses the resamples of a measure again

    def interval(self, measured: Measured) -> Resampled:
        """A measure with its interval."""
        return _summary(measured.value, self._values(measured))

    def difference(self, first: Measured, second: Measured) -> Resampled:
        """The first minus the second, on the same resamples."""
        return _summary(first.value - second.value, self._values(first) - self._values(second))

    def tail(self, measured: Sequence[Measured]) -> float:
        """The share of resamples beyond either end of an interval of a difference, if one may pick any two.

        Intervals are so wide that 95% of the resamples lie inside those of all pairs. For one pair alone it is 2.5%.
        """
        pairs = itertools.combinations(measured, 2)
        ranks = [np.argsort(np.argsort(self._values(first) - self._values(second))) for first, second in pairs]
        last = len(self._weights) - 1
        outermost = np.max([np.maximum(rank, last - rank) for rank in ranks], axis=0) if ranks else np.zeros(1)
        return (last - float(np.quantile(outermost, LEVEL))) / (last + 1)

    def ends(self, first: Measured, second: Measured, tail: float) -> tuple[float, float]:
        """The interval of a difference that leaves out the share `tail` at either end."""
        found = self._values(first) - self._values(second)
        found = found[np.isfinite(found)]
        low, high = np.quantile(found, [tail, 1 - tail]) if len(found) else (math.nan, math.nan)
        return float(low), float(high)

    def _values(self, measured: Measured) -> Floats:
        """The measure on every resample; nan if a resample has nothing to measure."""
        if measured in self._known:
            return self._known[measured]
        above, below = (np.bincount(self._block, part, self._blocks) for part in (measured.above, measured.below))
        total = self._weights @ below
        ratio = np.divide(self._weights @ above, total, out=np.full(len(total), math.nan), where=total > 0)
        whole = measured.value**2 if measured.root else measured.value
        ratio = whole + measured.scale * (ratio - whole)
        self._known[measured] = np.asarray(np.sqrt(np.maximum(ratio, 0.0)) if measured.root else ratio)
        return self._known[measured]


def _summary(value: float, resampled: Floats) -> Resampled:
    found = resampled[np.isfinite(resampled)]
    if not len(found) or not math.isfinite(value):
        return Resampled(value, math.nan, math.nan, math.nan, math.nan)
    low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    across = min((found <= 0).mean(), (found >= 0).mean())
    p = min(1.0, max(2 * float(across), 1 / len(found)))
    return Resampled(value, float(low), float(high), float(found.std()), p)
