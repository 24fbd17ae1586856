"""Walk: how far parameters of neighbouring places, and of contexts, may lie apart; estimated from the log itself.

Per kind of parameter phi (logarithms of the lowest and the highest rate, prior logits), from a position to the next,
    phi(k') - phi(k) ~ Normal(drift t, deviation^2 t),   t = log k' - log k
With several contexts a common curve walks so, and each context's distance from it has a level and steps of its own:
    phi(1, c) - curve(1) ~ Normal(0, level^2),   the same distance at k' - at k ~ Normal(0, step^2 t)
Every line is an edge: a sparse row over all parameters. Drifts and deviations are estimated by EM, the posterior of the
parameters taken as normal (Laplace). Many clicks overrule it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from clickmix.mixtures.hierarchical.cells import Places
from clickmix.types import Floats, Ints

FIRST_DEVIATION = 0.3
LEAST_DEVIATION = 0.06
LEAST_DETERMINED, MOST_CHANGE = 1e-3, 4.0  # share of steps; factor of a variance in one round
LEAST_SPAN = 1e-6  # of log position
ORDER = 0.1  # times log of the distance between both rates' logits: they never change places
WEAK = 1e-3  # precision around 0 of everything: what nothing is known of stays finite


@dataclass(frozen=True)
class Walk:
    """Edges (sparse, edge x parameter) with their kind and span; per kind its drift and deviation.

    The first `rates` parameters are logits of rates; edges hold their logarithms together.
    """

    edges: Any
    kind: Ints
    span: Floats
    drifts: Ints  # which kinds have a drift: 1 or 0
    drift: Floats
    deviation: Floats
    rates: int

    @classmethod
    def of(cls, places: Places, knots: tuple[Floats, Floats], *, grades: int) -> Walk:
        """For parameters: lowest and highest rates, prior logits (grade x knot), the contexts' common curves."""
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
            # How often a document was shown counts from the first knot, which is not a parameter.
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
        span = np.maximum(np.array([row[2] for row in rows], dtype=float), LEAST_SPAN)
        kind = np.array([row[1] for row in rows], dtype=np.int64)
        return cls(edges, kind, span, drifts, np.zeros(len(drifts)), np.full(len(drifts), FIRST_DEVIATION), rates)

    @property
    def parameters(self) -> int:
        """How many parameters the edges hold together."""
        return int(self.edges.shape[1])

    def phi(self, x: Floats) -> tuple[Floats, Floats]:
        """Parameters on the walk's scale, logarithms for rates, and how fast they change with x."""
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
        scaled = self.edges.multiply(self.phi(x)[1][None, :]).tocsr()
        held = scaled.T @ scaled.multiply(self._springs[:, None]).tocsr()
        matrix = np.asarray(held.todense() + WEAK * np.eye(len(x)))
        low, high = x[: self.rates].reshape(2, -1)
        i = np.arange(len(low))
        for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
            matrix[i + a * len(low), i + b * len(low)] += (1 if a == b else -1) * ORDER / (high - low) ** 2
        return matrix

    def estimated(self, x: Floats, covariance: Floats) -> Walk:
        """The walk that fits parameters x, known up to a covariance."""
        phi, fast = self.phi(x)
        scaled = self.edges.multiply(fast[None, :]).tocsr()
        variance = np.asarray((scaled @ covariance * scaled.todense()).sum(axis=1)).ravel()
        variance = np.clip(variance, 0, 1 / self._springs)
        kinds = len(self.drift)
        drift = np.bincount(self.kind, self.edges @ phi, kinds) / np.maximum(
            np.bincount(self.kind, self.span, kinds), LEAST_SPAN
        )
        moved = replace(self, drift=drift)
        # MacKay's rule: as many steps as the clicks determine, not as there are; EM would take hundreds of rounds.
        number = np.bincount(self.kind, minlength=kinds)
        square = np.bincount(self.kind, moved._off(phi) ** 2 / self.span, kinds)
        determined = number - np.bincount(self.kind, variance * self._springs, kinds)
        estimate = square / np.maximum(determined, LEAST_DETERMINED * np.maximum(number, 1))
        before = self.deviation**2
        kept = np.clip(estimate, before / MOST_CHANGE, before * MOST_CHANGE)
        return replace(moved, deviation=np.maximum(np.sqrt(kept), LEAST_DEVIATION))


def _chains(position: Floats, context: Ints) -> list[tuple[int, int, float]]:
    """From each place to the next of its context: both, and the span of log position."""
    order = np.lexsort((position, context))
    pairs = zip(order[:-1].tolist(), order[1:].tolist(), strict=True)
    return [(a, b, float(position[b] - position[a])) for a, b in pairs if context[a] == context[b]]


def _entries(matrix: Any, row: int, first: int) -> list[tuple[int, float]]:
    """The columns of a row of a sparse matrix, numbered from `first`, and their weights."""
    part = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return list(zip((matrix.indices[part] + first).tolist(), matrix.data[part].tolist(), strict=True))
