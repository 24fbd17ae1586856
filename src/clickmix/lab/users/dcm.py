"""DependentClick: people read down, and after each click decide whether to go on.   relevance <-> clicks"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlog1py, xlogy

from clickmix.errors import SettingError
from clickmix.lab.users.em import run_em
from clickmix.lab.users.fitting import Fit, check_clicked, shrunk
from clickmix.lab.users.sessions import Booleans, Sessions, totals
from clickmix.lab.users.trust import Trust, probabilities
from clickmix.lab.users.user import User
from clickmix.types import Floats, Ints

NORMALISATION = (
    "The model itself has everybody examine position 1 and go on until a click, so the attraction of a document is "
    "its click rate at position 1. Trust cannot be told from going on without documents of two known relevances at a "
    "position, so it is part of both."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class DependentClick(User):
    """People examine results from the top, one after the other, and stop only after a click.

    After a click at position k they go on to k + 1 with probability `going_on`[k]; without one always. There is one
    entry for each position but the last, below which there is nothing to see.
    """

    going_on: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "going_on", probabilities(self.going_on, name="probability to go on after a click"))
        if len(self.going_on) != self.positions - 1:
            raise SettingError(
                f"Going on after a click is given for {len(self.going_on)} positions, trust for {self.positions}. "
                "Expected one entry for each position but the last."
            )

    @classmethod
    def fit(cls, sessions: Sessions, *, tolerance: float = 1e-11, max_steps: int = 5000) -> Fit:
        """Going on by position and attraction by document that make these sessions most likely."""
        counts = CascadeCounts.of(sessions)
        check_clicked(int(counts.clicks.sum()))
        D, K = len(counts.clicks), sessions.positions
        path = run_em(counts.em_step, np.full(D + K - 1, 0.5), tolerance=tolerance, max_steps=max_steps)
        a, going_on = path.end.probabilities[:D], path.end.probabilities[D:]
        known = counts.known_going_on(a)
        observed = np.where(known, counts.passed + counts.ended, 0)
        careful = shrunk(going_on, observed)
        trust = Trust.perfect(K)
        return Fit(
            user=cls(going_on=np.where(known, going_on, careful), trust=trust),
            attraction=np.where(counts.shown > 0, a, np.nan),
            examined=counts.expected(a, going_on).examined,
            log_likelihoods=path.log_likelihoods,
            converged=path.converged,
            normalisation=NORMALISATION,
            unidentified=tuple(f"going on after a click at position {k + 1}" for k in np.flatnonzero(~known)),
            predictor=cls(going_on=careful, trust=trust),
        )

    def _marginal(self, a: Floats) -> Floats:
        """examined_1 = 1; examined_k+1 = examined_k (1 - a_k (1 - going_on_k)); P(click at k) = examined_k a_k."""
        K = a.shape[1]
        examined = np.ones_like(a)
        examined[:, 1:] = np.cumprod(1 - a[:, :-1] * (1 - self.going_on[: K - 1]), axis=1)
        p: Floats = examined * a
        return p

    def _conditional(self, a: Floats, clicks: Booleans) -> Floats:
        """After a click, examined = going_on; after none, examined (1 - a) / (1 - examined a), by Bayes' rule."""
        p = np.empty_like(a)
        examined = np.ones(len(a))
        for k in range(a.shape[1]):
            p[:, k] = examined * a[:, k]
            if k < len(self.going_on):
                unclicked = np.divide(examined - p[:, k], 1 - p[:, k], out=np.zeros(len(a)), where=p[:, k] < 1)
                examined = np.where(clicks[:, k], self.going_on[k], unclicked)
        return p

    def _draw(self, attraction: Floats, seen: Ints, rng: np.random.Generator) -> Booleans:
        clicks = np.empty((len(attraction), len(seen)), dtype=np.bool_)
        examined = np.ones(len(seen), dtype=np.bool_)
        for k, a in enumerate(attraction):
            u, p = rng.random(len(seen)), a.take(seen)
            np.less(u, p, out=clicks[k])
            clicks[k] &= examined
            if k < len(self.going_on):
                # Of a click, u is uniform on [0, p): the same draw says whether the person goes on.
                stops = u >= p * self.going_on[k]
                stops &= clicks[k]
                examined ^= stops
        return clicks


@dataclass(frozen=True, eq=False)
class Expectation:
    """E-step: examined impressions by document, goings-on by position, and the log-likelihood."""

    examined: Floats
    went_on: Floats
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class CascadeCounts:
    """All the fit needs of the sessions, counted per list and last click (a row).

    Down to the last click everything was examined. Below it, either the person had stopped, or went on and was not
    attracted: `below` marks those positions. By document: `clicks`, `certain` (impressions surely examined), `shown`.
    By position: `passed` (clicks with another below) and `ended` (last clicks with a result below).
    """

    documents: Ints
    below: Booleans
    last: Ints
    sessions: Ints
    clicks: Floats
    certain: Floats
    shown: Floats
    passed: Floats
    ended: Floats

    @classmethod
    def of(cls, sessions: Sessions) -> CascadeCounts:
        """Sessions with the same list and the same last click become one row."""
        K, D = sessions.positions, int(sessions.lists.max()) + 1
        positions = np.arange(1, K + 1)
        last_click = (sessions.clicks * positions).max(axis=1)
        pairs, n = np.unique(sessions.seen * (K + 1) + last_click, return_counts=True)
        documents, last = sessions.lists[pairs // (K + 1)], pairs % (K + 1)
        below = (positions > last[:, None]) & (documents >= 0)
        upto = positions <= last[:, None]
        weights = np.broadcast_to(n[:, None], below.shape)

        counts = sessions.counts()
        in_list = sessions.lists >= 0
        clicks = totals(sessions.lists[in_list], counts.clicks[in_list], size=D)
        certain = totals(documents[upto], weights[upto], size=D)
        clicks_by_position = counts.clicks.sum(axis=0)
        return cls(
            documents=documents,
            below=below,
            last=last,
            sessions=n,
            clicks=clicks,
            certain=certain,
            shown=certain + totals(documents[below], weights[below], size=D),
            passed=(clicks_by_position - totals(last, n, size=K + 1)[1:])[: K - 1],
            ended=totals(last, n * below.any(axis=1), size=K + 1)[1:K],
        )

    def expected(self, a: Floats, going_on: Floats) -> Expectation:
        """With T the probability that nothing below attracts: P(went on | no click below) = g T / (1 - g + g T)."""
        g = np.r_[1.0, going_on, 0.0][self.last] * self.below.any(axis=1)  # no click yet: everybody goes on
        T = np.prod(1 - a[self.documents], axis=1, where=self.below)
        unclicked = 1 - g + g * T
        went_on = self.sessions * np.divide(g * T, unclicked, out=np.zeros_like(T), where=unclicked > 0)
        below = np.broadcast_to(went_on[:, None], self.below.shape)[self.below]
        with np.errstate(divide="ignore"):
            log_likelihood = (
                np.sum(xlogy(self.clicks, a) + xlog1py(self.certain - self.clicks, -a))
                + np.sum(xlogy(self.passed, going_on))
                + np.sum(self.sessions * np.log(unclicked))
            )
        return Expectation(
            examined=self.certain + totals(self.documents[self.below], below, size=len(a)),
            went_on=self.passed + totals(self.last, went_on, size=len(going_on) + 2)[1:-1],
            log_likelihood=float(log_likelihood),
        )

    def em_step(self, parameters: Floats) -> tuple[Floats, float]:
        """attraction = clicks / examined; going on = went on / clicks with a result below."""
        D = len(self.clicks)
        expectation = self.expected(parameters[:D], parameters[D:])
        happened = np.r_[self.clicks, expectation.went_on]
        possible = np.r_[expectation.examined, self.passed + self.ended]
        after = np.divide(happened, possible, out=parameters.copy(), where=possible > 0)
        return after, expectation.log_likelihood

    def known_going_on(self, a: Floats) -> Booleans:
        """Where going on shows: a click followed by another, or a last click with something attractive below it."""
        attracts = self.below & (a[self.documents] > 0)
        telling = totals(self.last, np.any(attracts, axis=1), size=len(self.passed) + 2)[1:-1]
        known: Booleans = (self.passed > 0) | (telling > 0)
        return known
