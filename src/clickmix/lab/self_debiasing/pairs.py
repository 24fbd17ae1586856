r"""Pairs of a clicked and a skipped result, summed over all sessions of a list.   sessions, forces -> gradients

LambdaMART compares, in every session s, each clicked result i with each skipped one j. The pair's gradient is

    M_ij w_s,   w_s = (1 / ideal DCG of s) log2(1 + S_s) / S_s,   S_s = the sum of the session's pairs, both ends

where M_ij depends only on scores and positions, and so is the same in all sessions of the list. The sum over sessions
is M_ij W_ij, where W_ij sums w_s over the sessions that clicked i and skipped j. So trees can grow on documents instead
of sessions, and are the same as those that the libraries grow on single sessions.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from clickmix.lab.self_debiasing.clicked import FeatureLists, SessionKinds
from clickmix.types import Floats


class Pairs:
    """All sessions of all lists, prepared for sums over the forces between results."""

    def __init__(self, lists: FeatureLists, sessions: SessionKinds) -> None:
        self.shown = lists.rows >= 0
        self._both_shown = self.shown[:, :, None] & self.shown[:, None, :]
        self._number = sessions.number.astype(np.float64)
        clicked, position = np.nonzero(sessions.clicks)  # one row per click, session by session
        per_session = np.bincount(clicked, minlength=len(sessions.list))
        self._inverse_ideal = 1 / np.cumsum(discounts(self.shown.shape[1]))[per_session - 1]
        ends = np.concatenate(([0], np.cumsum(per_session)))
        result = sessions.list[clicked] * self.shown.shape[1] + position
        self._clicked = csr_array((np.ones(len(result)), result, ends), shape=(len(sessions.list), self.shown.size))
        repeats = per_session[clicked]  # every click with every click of its session, itself included
        one = np.repeat(np.arange(len(clicked)), repeats)
        other = ends[clicked[one]] + np.arange(len(one)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        pair = result[one] * self.shown.shape[1] + position[other]
        ends = np.concatenate(([0], np.cumsum(per_session**2)))
        self._both_clicked = csr_array((np.ones(len(pair)), pair, ends), shape=(len(ends) - 1, self._both_shown.size))

    def ranks(self, scores: Floats) -> tuple[Floats, Floats]:
        """(lists, positions, positions): how much discounts differ in the order of scores, and score i - score j.

        The first is 0 where a list has no result.
        """
        order = np.argsort(np.where(self.shown, -scores, np.inf), axis=1, kind="stable")
        discount = np.empty_like(scores)
        np.put_along_axis(discount, order, np.broadcast_to(discounts(scores.shape[1]), scores.shape), axis=1)
        apart = scores[:, :, None] - scores[:, None, :]
        gap = np.abs(discount[:, :, None] - discount[:, None, :])
        gap *= self._both_shown
        # Both libraries damp pairs that are far apart, unless all scores are the same.
        level = ((scores == scores[:, :1]) | ~self.shown).all(axis=1)
        damping = np.abs(apart)
        damping += 0.01
        damping[level] = 1.0
        gap /= damping
        return gap, apart

    def weights(self, forces: Floats) -> Floats:
        """W (lists, positions, positions): how much each clicked result i counts against each skipped j, given M."""
        all_pairs = self._clicked @ forces.sum(axis=2).ravel()
        total = 2 * self._inverse_ideal * (all_pairs - self._both_clicked @ forces.ravel())
        damped = np.divide(np.log2(1 + total), total, out=np.ones_like(total), where=total > 0)
        return self._summed(self._number * self._inverse_ideal * damped)

    @cached_property
    def plain_weights(self) -> Floats:
        """The same if sessions are not normalised by their sums."""
        return self._summed(self._number * self._inverse_ideal)

    def _summed(self, of_session: Floats) -> Floats:
        both = (of_session @ self._both_clicked).reshape(self._both_shown.shape)
        return np.asarray(np.diagonal(both, axis1=1, axis2=2)[:, :, None] - both)


def discounts(positions: int) -> Floats:
    """1 / log2(1 + rank), from rank 1."""
    return np.asarray(1 / np.log2(np.arange(2, positions + 2)))
