"""How places share what is learned: rates between knots, a walk from place to place, priors by where and how often.

Spread. In a log with few places, the rate of each has a parameter. If there are many, some are knots. Between the knots
of its context, the logarithm phi of a place's rate lies on a line in log position, plus the curve that contexts share:
    phi(k, c) = curve(k) + sum over the knots j around k of w_j (phi(j, c) - curve(j))
So close places need not be taken for one, and differ as they should.

Walk. The log itself says how far apart the parameters of neighbouring places, and of contexts, may lie. For each kind
of parameter phi (logarithms of the lowest and the highest rate, prior logits), from one position to the next,
    phi(k') - phi(k) ~ Normal(drift t, deviation^2 t),   t = log k' - log k
With several contexts, a common curve walks like this, and each context's distance from it has its own level and steps:
    phi(1, c) - curve(1) ~ Normal(0, level^2),   the same distance at k' - at k ~ Normal(0, step^2 t)
Each of these is an edge: a sparse row over all parameters. Drifts and deviations are estimated by EM, with a normal
approximation of the parameters' posterior (Laplace). Many clicks overrule the walk.

Prior. A document's prior depends on where and how often it was shown: hat functions of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array, csr_array, hstack
from scipy.special import log_expit

from clickmix.types import Floats, Ints

if TYPE_CHECKING:
    from clickmix.mixtures.hierarchical.cells import Cells, Places


MOST_KNOTS, MOST_OF_CURVE = 120, 40
GAPS = 0.05 * 1.25 ** np.arange(24)  # gaps of log position between knots
LARGEST_LOG = -1e-9  # upper bound of a rate's logarithm


@dataclass(frozen=True)
class Spread:
    """Which places are knots, where the common curve has its knots, and the weights of both at each place."""

    places: int
    knots: Ints
    curve: Floats  # log positions; none if there is one context
    at_curve: csr_array  # place x knot of the curve
    lines: csr_array  # place x (knots, then those of the curve)

    @classmethod
    def of(cls, position: Floats, context: Ints) -> Spread:
        """All places are knots if there are few."""
        at, k = np.log(position), len(position)
        order = np.lexsort((at, context))
        knots = np.arange(k)
        for gap in GAPS:
            if len(knots) <= MOST_KNOTS:
                break
            knots = np.sort(np.concatenate([own[_apart(at[own], gap)] for own in _runs(order, context)]))
        curve = np.unique(at) if context.any() else np.zeros(0)
        for gap in GAPS:
            if len(curve) <= MOST_OF_CURVE:
                break
            curve = curve[_apart(curve, gap)]
        at_curve = hats(at, curve) if len(curve) else csr_array((k, 0))
        column = np.full(k, -1)
        column[knots] = np.arange(len(knots))
        rows, columns, weights = [], [], []
        for own in _runs(order, context):
            held = own[column[own] >= 0]
            line = coo_array(hats(at[own], at[held]))
            rows.append(own[line.row])
            columns.append(column[held][line.col])
            weights.append(line.data)
        index = np.concatenate(rows), np.concatenate(columns)
        line = csr_array((np.concatenate(weights), index), shape=(k, len(knots)))
        return cls(k, knots, curve, at_curve, csr_array(hstack([line, at_curve - line @ at_curve[knots]])))

    @property
    def all_knots(self) -> bool:
        """Whether every place has its own parameter."""
        return len(self.knots) == self.places

    def free(self, x: Floats) -> Floats:
        """The parameters, from the logits of all places and what comes after them."""
        return np.concatenate([x[self.knots], x[self.places + self.knots], x[2 * self.places :]])

    def full(self, free: Floats) -> Floats:
        """The logits of all places and what comes after them, from the parameters."""
        return np.concatenate([self.logits(free), free[2 * len(self.knots) :]])

    def logits(self, free: Floats) -> Floats:
        """Logits of the lowest rates of all places, then of the highest."""
        n, m = len(self.knots), len(self.curve)
        if self.all_knots:
            return free[: 2 * n]
        curves = free[len(free) - 2 * m :].reshape(2, m)
        phi = self.lines @ np.hstack([log_expit(free[: 2 * n]).reshape(2, n), curves]).T
        phi = np.minimum(phi, LARGEST_LOG)
        return np.asarray(phi - np.log(-np.expm1(phi))).T.ravel()

    def pulled(self, free: Floats, logits: Floats, slope: Floats) -> Floats:
        """The slope in the parameters, from the slope in the logits of all places."""
        n, m = len(self.knots), len(self.curve)
        found = np.zeros(len(free))
        if self.all_knots:
            found[: 2 * n] = slope
            return found
        of_logs = (self._to_knots @ (slope / -np.expm1(log_expit(logits))).reshape(2, -1).T).T
        found[: 2 * n] = of_logs[:, :n].ravel() * -np.expm1(log_expit(free[: 2 * n]))
        found[len(found) - 2 * m :] = of_logs[:, n:].ravel()
        return found

    def change(self, free: Floats) -> Any:
        """How the logits of all places change with the parameters: sparse, place of both ends x parameter.

        It is for logs with many places: if all are knots, their logits are parameters.
        """
        n, m, size = len(self.knots), len(self.curve), len(free)
        slow = -np.expm1(log_expit(self.logits(free)))  # how fast log rates change with logits
        fast = -np.expm1(log_expit(free[: 2 * n])).reshape(2, n)
        line = self._line
        parts = []
        for end in (0, 1):
            factor = np.concatenate([fast[end], np.ones(m)])[line.col] / slow[line.row + end * self.places]
            column = np.where(line.col < n, line.col + end * n, line.col - n + size - (2 - end) * m)
            parts.append((line.data * factor, line.row + end * self.places, column))
        data, row, column = map(np.concatenate, zip(*parts, strict=True))
        return csr_array((data, (row, column)), shape=(2 * self.places, size))

    def variances(self, free: Floats, covariance: Floats) -> Floats:
        """The variances of the logits of all places, from the covariance of the parameters."""
        if self.all_knots:
            return np.diagonal(covariance)[: 2 * self.places]
        change = self.change(free)
        return np.asarray(((change @ covariance) * change.toarray()).sum(axis=1))

    @cached_property
    def _to_knots(self) -> Any:
        return csr_array(self.lines.T)

    @cached_property
    def _line(self) -> Any:
        return coo_array(self.lines)


def hats(values: Floats, knots: Floats) -> csr_array:
    """Value x knot: hat functions, which sum to 1 and are constant beyond the outer knots."""
    rows = np.arange(len(values))
    if len(knots) == 1:
        return csr_array((np.ones(len(values)), (rows, np.zeros_like(rows))), shape=(len(values), 1))
    left = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
    share = np.clip((values - knots[left]) / (knots[left + 1] - knots[left]), 0, 1)
    index = np.concatenate([rows, rows]), np.concatenate([left, left + 1])
    found = csr_array((np.concatenate([1 - share, share]), index), shape=(len(values), len(knots)))
    found.eliminate_zeros()
    return found


def _runs(order: Ints, context: Ints) -> list[Ints]:
    """The places of each context, in order of position."""
    return np.split(order, np.flatnonzero(np.diff(context[order])) + 1)


def _apart(at: Floats, gap: float) -> Ints:
    """Which of ascending values to keep so that they are a gap apart; the first and the last always."""
    kept = [0]
    for i in range(1, len(at) - 1):
        if at[i] - at[kept[-1]] >= gap:
            kept.append(i)
    return np.array(kept + [len(at) - 1] * (len(at) > 1))


FIRST_DEVIATION = 0.3
LEAST_DEVIATION = 0.06
LEAST_DETERMINED, MOST_CHANGE = (
    1e-3,
    4.0,
)  # smallest share of steps that clicks determine; largest factor of a variance in one round
LEAST_SPAN = 1e-6  # smallest span of log position
ORDER = 0.1  # times the log distance between both rates' logits, so that these keep their order
WEAK = 1e-3  # precision around 0 of every parameter, so that unknown ones stay finite


@dataclass(frozen=True)
class Walk:
    """Edges (sparse, edge x parameter) with their kind and span; a drift and a deviation per kind.

    The first `rates` parameters are logits of rates; edges hold the logarithms of these rates together. `pairs` has
    every two parameters on an edge: the edge, both parameters, and the product of their weights.
    """

    edges: Any
    pairs: tuple[Ints, Ints, Ints, Floats]
    kind: Ints
    span: Floats
    drifts: Ints  # which kinds have a drift: 1 or 0
    drift: Floats
    deviation: Floats
    rates: int

    @classmethod
    def of(cls, places: Places, knots: tuple[Floats, Floats], *, grades: int) -> Walk:
        """The walk of lowest and highest rates, prior logits (grade x knot) and the contexts' common curves."""
        spread, several = places.spread, bool(places.context.any())
        k = len(spread.knots)
        rows: list[tuple[list[tuple[int, float]], int, float]] = []
        columns = 2 * k + (grades - 1) * (len(knots[0]) + len(knots[1]) - 1)
        drifts: list[int] = []
        position, context = np.log(places.position[spread.knots]), places.context[spread.knots]
        steps = _chains(position, context)
        curve = spread.curve
        firsts = sorted(set(range(k)) - {b for _, b, _ in steps})
        for end in (0, k):
            if several:
                rows += [
                    ([(columns + i + 1, 1.0), (columns + i, -1.0)], len(drifts), curve[i + 1] - curve[i])
                    for i in range(len(curve) - 1)
                ]
                at = [_entries(spread.at_curve, i, columns) for i in spread.knots.tolist()]
                off = [[(end + i, 1.0), *((column, -w) for column, w in at[i])] for i in range(k)]
                rows += [(off[i], len(drifts) + 1, 1.0) for i in firsts]
                rows += [(off[b] + [(column, -w) for column, w in off[a]], len(drifts) + 2, t) for a, b, t in steps]
                drifts += [1, 0, 0]
                columns += len(curve)
            else:
                rows += [([(end + b, 1.0), (end + a, -1.0)], len(drifts), t) for a, b, t in steps]
                drifts += [1]
        at_knot = 2 * k
        for _ in range(grades - 1):
            where, often = knots
            rows += [
                ([(at_knot + i + 1, 1.0), (at_knot + i, -1.0)], len(drifts), where[i + 1] - where[i])
                for i in range(len(where) - 1)
            ]
            at_knot += len(where)
            # The first knot of how often a document was shown is 0, and no parameter.
            rows += [
                ([(at_knot + i, 1.0)] + [(at_knot + i - 1, -1.0)] * (i > 0), len(drifts) + 1, often[i + 1] - often[i])
                for i in range(len(often) - 1)
            ]
            at_knot += len(often) - 1
            drifts += [1, 1]
        return cls._of_rows(rows, columns, np.array(drifts), 2 * k)

    @classmethod
    def _of_rows(cls, rows: Any, columns: int, drifts: Ints, rates: int) -> Walk:
        index = [(r, c, v) for r, (entries, _, _) in enumerate(rows) for c, v in entries]
        r, c, v = zip(*index, strict=True) if index else ((), (), ())
        edges = csr_array((np.array(v, float), (np.array(r, int), np.array(c, int))), shape=(len(rows), columns))
        sizes = np.diff(edges.indptr)
        edge = np.repeat(np.arange(len(rows)), sizes**2)
        within = np.arange(len(edge)) - np.repeat(np.cumsum(sizes**2) - sizes**2, sizes**2)
        one, other = (edges.indptr[edge] + part for part in np.divmod(within, sizes[edge]))
        pairs = edge, edges.indices[one], edges.indices[other], edges.data[one] * edges.data[other]
        span = np.maximum(np.array([row[2] for row in rows], dtype=float), LEAST_SPAN)
        kind = np.array([row[1] for row in rows], dtype=np.int64)
        return cls(
            edges, pairs, kind, span, drifts, np.zeros(len(drifts)), np.full(len(drifts), FIRST_DEVIATION), rates
        )

    @property
    def parameters(self) -> int:
        """The number of parameters that the edges hold together."""
        return int(self.edges.shape[1])

    def phi(self, x: Floats) -> tuple[Floats, Floats]:
        """Parameters on the walk's scale (logarithms of rates), and how fast they change with x."""
        logs = -np.logaddexp(0, -x[: self.rates])
        return np.concatenate([logs, x[self.rates :]]), np.concatenate([-np.expm1(logs), np.ones(len(x) - self.rates)])

    def _off(self, phi: Floats) -> Floats:
        return np.asarray(self.edges @ phi - (self.drift * self.drifts)[self.kind] * self.span)

    def density(self, x: Floats) -> tuple[float, Floats]:
        """The log density of the parameters, up to a constant, and its slope."""
        phi, fast = self.phi(x)
        low, high = x[: self.rates].reshape(2, -1)
        if (low >= high).any():
            return -np.inf, np.zeros_like(x)
        off = self._off(phi)
        pull = off * self._springs
        value = -float((off * pull).sum() + WEAK * (x * x).sum()) / 2 + ORDER * float(np.log(high - low).sum())
        slope = -fast * (self._to_parameters @ pull) - WEAK * x
        slope[: self.rates] += np.concatenate([-ORDER / (high - low), ORDER / (high - low)])
        return value, np.asarray(slope)

    @cached_property
    def _to_parameters(self) -> Any:
        return csr_array(self.edges.T)

    @property
    def _springs(self) -> Floats:
        return np.asarray(1 / (self.deviation[self.kind] ** 2 * self.span))

    def precision(self, x: Floats) -> Floats:
        """How firmly the walk holds the parameters: parameter x parameter."""
        edge, one, other, weight = self.pairs
        fast, size = self.phi(x)[1], len(x)
        held = np.bincount(one * size + other, weight * self._springs[edge] * fast[one] * fast[other], size * size)
        matrix = held.reshape(size, size) + WEAK * np.eye(size)
        low, high = x[: self.rates].reshape(2, -1)
        i = np.arange(len(low))
        for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
            matrix[i + a * len(low), i + b * len(low)] += (1 if a == b else -1) * ORDER / (high - low) ** 2
        return matrix

    def of_steps(self, x: Floats) -> Walk:
        """The walk of parameters fitted before: their own steps show how far these may go."""
        phi = self.phi(x)[0]
        moved = self._drifted(phi)
        square = np.bincount(self.kind, moved._off(phi) ** 2 / self.span, len(self.drift))
        number = np.maximum(np.bincount(self.kind, minlength=len(self.drift)), 1)
        return replace(moved, deviation=np.maximum(np.sqrt(square / number), LEAST_DEVIATION))

    def freed(self) -> Walk:
        """The same walk with steps at least as long as at first."""
        return replace(self, deviation=np.maximum(self.deviation, FIRST_DEVIATION))

    def _drifted(self, phi: Floats) -> Walk:
        kinds = len(self.drift)
        spans = np.maximum(np.bincount(self.kind, self.span, kinds), LEAST_SPAN)
        return replace(self, drift=np.bincount(self.kind, self.edges @ phi, kinds) / spans)

    def estimated(self, x: Floats, covariance: Floats) -> Walk:
        """The walk that fits parameters x, known up to a covariance."""
        phi, fast = self.phi(x)
        moved = self._drifted(phi)
        edge, one, other, weight = self.pairs
        variance = np.bincount(edge, weight * fast[one] * fast[other] * covariance[one, other], len(self.kind))
        variance = np.clip(variance, 0, 1 / self._springs)
        # MacKay's rule divides by the steps that clicks determine, not by all; EM would take hundreds of rounds.
        kinds = len(self.drift)
        number = np.bincount(self.kind, minlength=kinds)
        square = np.bincount(self.kind, moved._off(phi) ** 2 / self.span, kinds)
        determined = number - np.bincount(self.kind, variance * self._springs, kinds)
        estimate = square / np.maximum(determined, LEAST_DETERMINED * np.maximum(number, 1))
        before = self.deviation**2
        kept = np.clip(estimate, before / MOST_CHANGE, before * MOST_CHANGE)
        return replace(moved, deviation=np.maximum(np.sqrt(kept), LEAST_DEVIATION))


def _chains(position: Floats, context: Ints) -> list[tuple[int, int, float]]:
    """Each place, the next of its context, and the span of log position between them."""
    order = np.lexsort((position, context))
    pairs = zip(order[:-1].tolist(), order[1:].tolist(), strict=True)
    return [(a, b, float(position[b] - position[a])) for a, b in pairs if context[a] == context[b]]


def _entries(matrix: Any, row: int, first: int) -> list[tuple[int, float]]:
    """The columns of a row of a sparse matrix, numbered from `first`, and their weights."""
    part = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return list(zip((matrix.indices[part] + first).tolist(), matrix.data[part].tolist(), strict=True))


TINY = 1e-9
LEAST_GAP = 0.3  # smallest gap of log impressions between knots


def prior_columns(cells: Cells, knots: tuple[Floats, Floats]) -> csr_array:
    """Pattern x knot, sparse: where a document was shown (the mean over its impressions), and how often.

    The first knot of how often is left out. A document with a place but no impression counts as shown once. In a part
    of a log, a document has the prior that it has in the whole log.
    """
    if cells.whole is not None:
        whole, pattern = cells.whole
        return prior_columns(whole, knots)[pattern]
    shown = np.maximum(cells.impressions, TINY)
    total = cells.per_pattern(shown)
    share = shown / total[cells.pattern]
    places = csr_array((share, (cells.pattern, cells.place)), shape=(cells.patterns, len(cells.places)))
    where = places @ hats(np.log(cells.places.position), knots[0])
    often = hats(np.log(np.maximum(total, 1)), knots[1])
    return csr_array(hstack([where, often[:, 1:]]))


def prior_knots(cells: Cells) -> tuple[Floats, Floats]:
    """Knots of mean log position, about a quarter apart; and of log impressions, at the quartiles of documents."""
    at = np.log(cells.places.position)
    steps = np.concatenate([np.arange(1, 7), np.rint(8 * 1.25 ** np.arange(60))])
    inner = np.log(steps[(steps > np.exp(at.min()) + 0.5) & (steps < np.exp(at.max()) - 0.5)])
    where = np.unique(np.concatenate([[at.min()], inner, [at.max()]]))
    shown, m = np.log(np.maximum(cells.per_pattern(cells.impressions), 1)), cells.multiplicity
    order = np.argsort(shown)
    share = np.cumsum(m[order]) / m.sum()
    quarters = shown[order][np.minimum(np.searchsorted(share, (0.0, 0.25, 0.5, 0.75, 1.0)), len(order) - 1)]
    often = [float(quarters[0])]
    for value in quarters[1:].tolist():
        if value > often[-1] + LEAST_GAP:
            often.append(value)
    return where, np.array(often)
