"""How a cell's clicks scatter around its rate: binomial, or beta-binomial if documents differ in appeal.

A cell's log density is a sum of terms, each of which depends on its place and on its clicks, skips or impressions. A
family names the column of a table for each term, fills the table for rates r (grade x place x node), and turns the
columns' weights, summed over cells, back into slopes.
    binomial        c log r + s log(1 - r)
    beta-binomial   lnG(a + c) - lnG(a) + lnG(b + s) - lnG(b) - lnG(a + b + n) + lnG(a + b)
                    a = r m, b = (1 - r) m, m = e^d r^-k: with k = 0 the correlation is the same at every rate, with
                    k = 1 the same appeal multiplies the rate
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.special import gammaln, psi

from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.types import Floats, Ints

MOST_COUNTED = 32  # up to this count, sums are faster than series
PIECE = 2**14  # numbers that fit into a fast cache
HALF_LOG_2_PI = float(np.log(2 * np.pi) / 2)
MOST_ALIKE = 14.0  # log m; beyond it, beta-binomial is binomial, and gamma functions lose the digits that differ


class ClickDensity(Protocol):
    """What the fit needs to know about a distribution of clicks."""

    columns: int
    column: Ints  # cell x term
    factor: Floats  # cell x term: what the column is multiplied by; 0 if nothing was counted

    def table(self, r: Floats, scatter: Floats) -> Floats:
        """Column x node x grade."""

    def slopes(self, r: Floats, scatter: Floats) -> Floats:
        """The table's derivative in r: column x node x grade."""

    def slope(self, weights: Floats, r: Floats, scatter: Floats) -> tuple[Floats, Floats]:
        """Derivatives of the sum of weights x table: in r (grade x place x node), and in the scatter's parameters."""

    def next_rate(self, r: Floats, scatter: Floats, clicks: Floats, impressions: Floats) -> Floats:
        """P(click) at the next impression of cells with these clicks and impressions (grade x cell)."""


class Binomial:
    """Columns: clicks at each place, then skips at each place."""

    def __init__(self, cells: Cells) -> None:
        places = len(cells.places)
        self.columns = 2 * places
        self.column = np.stack([cells.place, cells.place + places], axis=1)
        self.factor = np.stack([cells.clicks, cells.impressions - cells.clicks], axis=1)

    def table(self, r: Floats, scatter: Floats) -> Floats:
        return np.concatenate([np.log(r), np.log1p(-r)], axis=1).transpose(1, 2, 0)

    def slopes(self, r: Floats, scatter: Floats) -> Floats:
        return np.concatenate([1 / r, -1 / (1 - r)], axis=1).transpose(1, 2, 0)

    def slope(self, weights: Floats, r: Floats, scatter: Floats) -> tuple[Floats, Floats]:
        clicks, skips = weights.transpose(2, 0, 1).reshape(len(r), 2, *r.shape[1:]).swapaxes(0, 1)
        return clicks / r - skips / (1 - r), np.zeros(0)

    def next_rate(self, r: Floats, scatter: Floats, clicks: Floats, impressions: Floats) -> Floats:
        """The rate itself: a cell's own clicks say nothing beyond the grade."""
        return r


class _Counted:
    """Distinct (place, count), and lnG(a + count) - lnG(a) and psi(a + count) - psi(a) for each place's a.

    Up to MOST_COUNTED these are sums of log(a + i) and of 1 / (a + i) over i < count, much faster than gamma functions.
    """

    def __init__(self, place: Ints, count: Floats, places: int) -> None:
        most = int(count.max(initial=0)) + 1
        keys, self.column = np.unique(place * most + count.astype(np.int64), return_inverse=True)
        self.place, self.count = keys // most, (keys % most).astype(np.float64)
        self.large, self.small = (
            np.flatnonzero(part) for part in (self.count > MOST_COUNTED, self.count <= MOST_COUNTED)
        )
        at, small = self.place[self.small], self.count[self.small].astype(np.int64)
        highest = np.zeros(places, dtype=np.int64)
        np.maximum.at(highest, at, small)
        start = np.cumsum(highest) - highest
        self.ladder_place = np.repeat(np.arange(places), highest)
        self.ladder = (np.arange(len(self.ladder_place)) - start[self.ladder_place]).astype(np.float64)[:, None]
        self.top, self.bottom = start[at] + small, start[at]

    def __len__(self) -> int:
        return len(self.place)

    def logs(self, a: Floats) -> Floats:
        """lnG(a + count) - lnG(a)."""
        return self._sums(np.log(a[:, self.ladder_place] + self.ladder), a, _log_gamma, gammaln)

    def inverses(self, a: Floats) -> Floats:
        """psi(a + count) - psi(a)."""
        return self._sums(1 / (a[:, self.ladder_place] + self.ladder), a, _digamma, psi)

    def _sums(self, steps: Floats, a: Floats, of_large: Any, exact: Any) -> Floats:
        sums = np.zeros((len(steps), steps.shape[1] + 1, steps.shape[2]))
        np.cumsum(steps, axis=1, out=sums[:, 1:])
        found = np.empty((len(a), len(self), a.shape[2]))
        found[:, self.small] = sums[:, self.top] - sums[:, self.bottom]
        begin = exact(a) if len(self.large) else a
        for part in np.array_split(self.large, len(self.large) * len(a) * a.shape[2] // PIECE + 1):
            at = self.place[part]
            found[:, part] = of_large(a[:, at] + self.count[part, None]) - begin[:, at]
        return found


def _log_gamma(x: Floats) -> Floats:
    """Stirling's series, exact to 1e-12 from MOST_COUNTED on."""
    y = 1 / x
    return np.asarray((x - 0.5) * np.log(x) - x + HALF_LOG_2_PI + y * (1 / 12 - y * y * (1 / 360 - y * y / 1260)))


def _digamma(x: Floats) -> Floats:
    y = 1 / x
    return np.asarray(np.log(x) - y * (0.5 + y * (1 / 12 - y * y * (1 / 120 - y * y / 252))))


class BetaBinomial:
    """Columns: distinct (place, clicks), (place, skips) and (place, impressions)."""

    def __init__(self, cells: Cells) -> None:
        counts = cells.clicks, cells.impressions - cells.clicks, cells.impressions
        self.factor = np.stack(counts, axis=1) > 0
        self.column = np.zeros(self.factor.shape, dtype=np.int64)
        self.counted, self.columns = [], 0
        for i, (count, some) in enumerate(zip(counts, self.factor.T, strict=True)):
            self.counted.append(_Counted(cells.place[some], count[some], len(cells.places)))
            self.column[some, i] = self.counted[-1].column + self.columns
            self.columns += len(self.counted[-1])

    def _parts(self, r: Floats, scatter: Floats) -> tuple[tuple[Floats, Floats, float], ...]:
        """a, b and m (grade x place x node), their derivatives in r, and the sign of their term."""
        m = self.alike(r, scatter)
        k = np.where(self._log_m(r, scatter) < MOST_ALIKE, scatter[1], 0.0)
        return (r * m, (1 - k) * m, 1.0), ((1 - r) * m, -m - k * m * (1 - r) / r, 1.0), (m, -k * m / r, -1.0)

    def alike(self, r: Floats, scatter: Floats) -> Floats:
        """m: how many impressions the grade's rate counts for, on top of the document's own."""
        return np.asarray(np.exp(self._log_m(r, scatter)))

    def _log_m(self, r: Floats, scatter: Floats) -> Floats:
        return np.asarray(np.minimum(scatter[0] - scatter[1] * np.log(r), MOST_ALIKE))

    def table(self, r: Floats, scatter: Floats) -> Floats:
        parts = zip(self._parts(r, scatter), self.counted, strict=True)
        return np.concatenate([sign * counted.logs(a) for (a, _, sign), counted in parts], axis=1).transpose(1, 2, 0)

    def slopes(self, r: Floats, scatter: Floats) -> Floats:
        parts = zip(self._parts(r, scatter), self.counted, strict=True)
        found = [sign * by[:, counted.place] * counted.inverses(a) for (a, by, sign), counted in parts]
        return np.concatenate(found, axis=1).transpose(1, 2, 0)

    def slope(self, weights: Floats, r: Floats, scatter: Floats) -> tuple[Floats, Floats]:
        total, of_scatter, begin, w = np.zeros_like(r), np.zeros(2), 0, weights.transpose(2, 0, 1)
        for (a, by, sign), counted in zip(self._parts(r, scatter), self.counted, strict=True):
            if not len(counted):
                continue
            pull = sign * w[:, begin : begin + len(counted)] * counted.inverses(a)
            begin += len(counted)
            first = np.flatnonzero(np.diff(counted.place, prepend=-1))
            sums = np.zeros_like(r)
            sums[:, counted.place[first]] = np.add.reduceat(pull, first, axis=1)
            total += sums * by
            free = sums * a * (self._log_m(r, scatter) < MOST_ALIKE)
            of_scatter += free.sum(), -(free * np.log(r)).sum()
        return total, of_scatter

    def next_rate(self, r: Floats, scatter: Floats, clicks: Floats, impressions: Floats) -> Floats:
        """(a + clicks) / (a + b + impressions)."""
        m = self.alike(r, scatter)
        return np.asarray((r * m + clicks) / (m + impressions))
