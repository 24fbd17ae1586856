"""Spread: the rates of all places from those of some.   Places -> Spread

A log of few places has a parameter for the rate of each. Of many, some are knots. Between the knots of its context, the
logarithm phi of a place's rate lies on a line in log position, apart from the curve that contexts have in common:
    phi(k, c) = curve(k) + sum over the knots j around k of w_j (phi(j, c) - curve(j))
So places that are near each other need not be taken for one, and differ as they would.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, eye_array, hstack
from scipy.special import log_expit

from clickmix.types import Floats, Ints

MOST_KNOTS, MOST_OF_CURVE = 120, 40
GAPS = 0.05 * 1.25 ** np.arange(24)  # of log position between knots
LARGEST_LOG = -1e-9  # of a rate


@dataclass(frozen=True)
class Spread:
    """Which places are knots, where the common curve has its own, and what both weigh at each place."""

    places: int
    knots: Ints
    curve: Floats  # log positions; none if there is one context
    at_curve: csr_array  # place x knot of the curve
    lines: csr_array  # place x (knots, then those of the curve)

    @classmethod
    def of(cls, position: Floats, context: Ints) -> Spread:
        """All places are knots where there are few."""
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
        """Whether every place has a parameter of its own."""
        return len(self.knots) == self.places

    def free(self, x: Floats) -> Floats:
        """The parameters, of logits of all places and what comes after them."""
        return np.concatenate([x[self.knots], x[self.places + self.knots], x[2 * self.places :]])

    def full(self, free: Floats) -> Floats:
        """Logits of all places, and what comes after them."""
        return np.concatenate([self.logits(free), free[2 * len(self.knots) :]])

    def logits(self, free: Floats) -> Floats:
        """Of the lowest rates of all places, then of the highest."""
        n, m = len(self.knots), len(self.curve)
        if self.all_knots:
            return free[: 2 * n]
        curves = free[len(free) - 2 * m :].reshape(2, m)
        phi = self.lines @ np.hstack([log_expit(free[: 2 * n]).reshape(2, n), curves]).T
        phi = np.minimum(phi, LARGEST_LOG)
        return np.asarray(phi - np.log(-np.expm1(phi))).T.ravel()

    def pulled(self, free: Floats, logits: Floats, slope: Floats) -> Floats:
        """The slope in the parameters, from that in the logits of all places."""
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
        """How the logits of all places change with the parameters: sparse, place of both ends x parameter."""
        n, m, size = len(self.knots), len(self.curve), len(free)
        if self.all_knots:
            return csr_array(eye_array(2 * n, size))
        slow = -np.expm1(log_expit(self.logits(free)))  # of log rates beside logits
        fast = -np.expm1(log_expit(free[: 2 * n])).reshape(2, n)
        line = self._line
        parts = []
        for end in (0, 1):
            factor = np.concatenate([fast[end], np.ones(m)])[line.col] / slow[line.row + end * self.places]
            column = np.where(line.col < n, line.col + end * n, line.col - n + size - (2 - end) * m)
            parts.append((line.data * factor, line.row + end * self.places, column))
        data, row, column = map(np.concatenate, zip(*parts, strict=True))
        return csr_array((data, (row, column)), shape=(2 * self.places, size))

    @cached_property
    def _to_knots(self) -> Any:
        return csr_array(self.lines.T)

    @cached_property
    def _line(self) -> Any:
        return coo_array(self.lines)


def hats(values: Floats, knots: Floats) -> csr_array:
    """Value x knot: hat functions, which sum to 1; beyond the outer knots they stay as there."""
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
    """Which of ascending values to keep, so that they are a gap apart; the first and the last always."""
    kept = [0]
    for i in range(1, len(at) - 1):
        if at[i] - at[kept[-1]] >= gap:
            kept.append(i)
    return np.array(kept + [len(at) - 1] * (len(at) > 1))
