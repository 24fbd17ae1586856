r"""Pairs of a clicked and a skipped result, summed over all sessions of a list at once.   sessions, forces -> gradients

LambdaMART compares, in every session s, each clicked result i with each skipped one j. The pair's gradient is

    M_ij w_s,   w_s = (1 / ideal DCG of s) log2(1 + S_s) / S_s,   S_s = the sum of the session's pairs, both ends

where M_ij depends on scores and positions alone, and so is the same in all sessions of the list. The sum over sessions
is M_ij W_ij, where W_ij adds up w_s of the sessions that clicked i and skipped j. Trees can so grow on documents
instead of sessions, and are those that the libraries grow on single sessions.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from clickmix.lab.self_debiasing.clicked import ClickedLists, Sessions
from clickmix.types import Floats, Ints


class Pairs:
    """All sessions of all lists, ready to be summed for the forces between results."""

    def __init__(self, lists: ClickedLists, sessions: Sessions) -> None:
        self._lists, self._shape = len(lists.rows), lists.rows.shape[1]
        self._number = sessions.number.astype(np.float64)
        self.shown = lists.rows >= 0
        clicked, self._position = np.nonzero(sessions.clicks)  # one row per click, session by session
        self._of_click, self._list = clicked, sessions.list
        per_session = np.bincount(clicked, minlength=len(sessions.list))
        self._inverse_ideal = 1 / np.cumsum(discounts(self._shape))[per_session - 1]
        repeats = per_session[clicked]  # every click with every click of its session, itself included
        one = np.repeat(np.arange(len(clicked)), repeats)
        within = np.arange(len(one)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        start = np.cumsum(per_session) - per_session
        other = start[clicked[one]] + within
        self._both, self._of_both = self._at(one, self._position[other]), clicked[one]

    def _at(self, click: Ints, other: Ints) -> Ints:
        K = self._shape
        return np.asarray((self._list[self._of_click[click]] * K + self._position[click]) * K + other)

    def ranks(self, scores: Floats) -> tuple[Floats, Floats]:
        """(lists, positions, positions): by how much discounts differ in the order of scores, and score i - score j.

        Both are 0 where a list has no result.
        """
        shown = self.shown
        order = np.argsort(np.where(shown, -scores, np.inf), axis=1, kind="stable")
        discount = np.empty_like(scores)
        np.put_along_axis(discount, order, np.broadcast_to(discounts(self._shape), scores.shape), axis=1)
        pairs = shown[:, :, None] & shown[:, None, :]
        gap, apart = (np.where(pairs, x[:, :, None] - x[:, None, :], 0.0) for x in (discount, scores))
        # Both libraries damp pairs that are far apart, unless all scores are the same.
        level = (apart == 0).all(axis=(1, 2))
        return np.abs(gap) / np.where(level[:, None, None], 1.0, 0.01 + np.abs(apart)), apart

    def weights(self, forces: Floats) -> Floats:
        """W: how much each clicked result i counts against each skipped j, given M; (lists, positions, positions)."""
        rows = forces.sum(axis=2).ravel()
        click_at = self._list[self._of_click] * self._shape + self._position
        all_pairs = np.bincount(self._of_click, rows[click_at], len(self._list))
        both_clicked = np.bincount(self._of_both, forces.ravel()[self._both], len(self._list))
        total = 2 * self._inverse_ideal * (all_pairs - both_clicked)
        damped = np.divide(np.log2(1 + total), total, out=np.ones_like(total), where=total > 0)
        return self._summed(self._number * self._inverse_ideal * damped)

    @cached_property
    def plain_weights(self) -> Floats:
        """The same where sessions are not normalised by their sums."""
        return self._summed(self._number * self._inverse_ideal)

    def _summed(self, of_session: Floats) -> Floats:
        K = self._shape
        both = np.bincount(self._both, of_session[self._of_both], self._lists * K * K).reshape(-1, K, K)
        return np.asarray(np.diagonal(both, axis1=1, axis2=2)[:, :, None] - both)


def discounts(positions: int) -> Floats:
    """1 / log2(1 + rank), from rank 1."""
    return np.asarray(1 / np.log2(np.arange(2, positions + 2)))
