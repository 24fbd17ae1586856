"""PositionBased: people examine a position or not, whatever is above it.   relevance <-> clicks"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from clickmix.errors import InputError, SettingError
from clickmix.lab.families import USERS
from clickmix.lab.users.fitting import UserFit, shrunk
from clickmix.lab.users.products import CellCounts, fit_factors, linked_cells
from clickmix.lab.users.sessions import Booleans, ListCounts, Sessions
from clickmix.lab.users.simulation import BLOCK_SESSIONS, Goal, list_chances
from clickmix.lab.users.trust import Trust, positions_checked, probabilities
from clickmix.lab.users.user import TOP, User
from clickmix.registry import Option
from clickmix.types import Floats, Ints

NORMALISATION = (
    "Clicks show only examination times attraction, so examination at position 1 is set to 1 and the attraction of a "
    "document is its click rate there. Trust cannot be separated from examination without documents of two known "
    "relevances at a position, so it is part of both."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class PositionBased(User):
    """People examine position k with its own probability, and judge each result they examine independently.

    P(click at k) = alpha_k * relevance + beta_k, where alpha_k = examination_k (e1_k - e0_k), beta_k =
    examination_k e0_k, and e1, e0 are the trust in relevant and irrelevant results. Clicks do not depend on each other.

    >>> user = PositionBased(examination=[1.0, 0.5], trust=Trust.perfect(2))
    >>> user.click_probabilities([[1.0, 1.0]]).tolist()
    [[1.0, 0.5]]
    """

    examination: Floats

    examination_of_mixtures = "pbm"

    def __post_init__(self) -> None:
        object.__setattr__(self, "examination", probabilities(self.examination, name="examination"))
        if len(self.examination) != self.positions:
            raise SettingError(
                f"Examination is given for {len(self.examination)} positions, trust for {self.positions}. "
                "Give both for the same positions."
            )

    @classmethod
    def with_eta(cls, eta: float, *, positions: int, trust: Trust | None = None) -> PositionBased:
        """Examination k^-eta; the paper's trust unless another is given."""
        if not eta >= 0:
            raise SettingError(f"eta is {eta:g}, expected a number from 0: examination is k^-eta, at most 1.")
        k = np.arange(1, positions_checked(positions) + 1, dtype=np.float64)
        return cls(examination=k**-eta, trust=Trust.paper(positions) if trust is None else trust)

    @property
    def alpha(self) -> Floats:
        """How much the click rate at each position grows from relevance 0 to 1."""
        alpha: Floats = self.examination * (self.trust.relevant - self.trust.irrelevant)
        return alpha

    @property
    def beta(self) -> Floats:
        """Click rate of an irrelevant result at each position."""
        beta: Floats = self.examination * self.trust.irrelevant
        return beta

    def simulate_counts(
        self,
        relevance: npt.ArrayLike,
        *,
        sessions: int | None = None,
        clicks: int | None = None,
        weights: npt.ArrayLike | None = None,
        rng: np.random.Generator,
    ) -> ListCounts:
        """The counts of `simulate(...)`, drawn directly: clicks on a result are Binomial(impressions, p).

        With `clicks`, most are drawn as counts and the last few thousand session by session, up to the session that
        reaches the number.
        """
        goal = Goal.of(sessions=sessions, clicks=clicks)
        if goal.unit == "sessions":
            return self._binomial_counts(relevance, goal.remaining, weights, rng)
        self._check_clicks_happen(relevance, weights)
        per_session = self.clicks_per_session(relevance, weights=weights)
        counts, remaining = None, goal.remaining
        while (n := _sessions_safely_below(remaining, per_session, self.positions)) > BLOCK_SESSIONS:
            more = self._binomial_counts(relevance, n, weights, rng)
            counts, remaining = more if counts is None else counts + more, remaining - int(more.clicks.sum())
        if remaining <= 0 and counts is not None:
            return counts
        tail = self.simulate(relevance, clicks=remaining, weights=weights, rng=rng).counts()
        return tail if counts is None else counts + tail

    def _binomial_counts(
        self, relevance: npt.ArrayLike, sessions: int, weights: npt.ArrayLike | None, rng: np.random.Generator
    ) -> ListCounts:
        p = np.nan_to_num(self.click_probabilities(relevance))
        impressions = rng.multinomial(sessions, list_chances(weights, lists=len(p)))
        return ListCounts(impressions=impressions, clicks=rng.binomial(impressions[:, None], p))

    @classmethod
    def fit(cls, sessions: Sessions, *, tolerance: float = 1e-10, max_steps: int = 2000) -> UserFit:
        """Examination by position and attraction by document that make these sessions most likely."""
        k = np.broadcast_to(np.arange(1, sessions.positions + 1), sessions.lists.shape)
        counts = sessions.counts()
        n = np.broadcast_to(counts.impressions[:, None], sessions.lists.shape)
        shown = (sessions.lists >= 0) & (n > 0)
        columns = (sessions.lists[shown], k[shown], n[shown], counts.clicks[shown])
        return cls.fit_counts(*columns, tolerance=tolerance, max_steps=max_steps)

    @classmethod
    def fit_counts(
        cls,
        document: npt.ArrayLike,
        position: npt.ArrayLike,
        impressions: npt.ArrayLike,
        clicks: npt.ArrayLike,
        *,
        tolerance: float = 1e-10,
        max_steps: int = 2000,
    ) -> UserFit:
        """The same from counts: one row per document code (from 0) and position (from 1); rows can repeat."""
        d, k, n, c = _checked_counts(document, position, impressions, clicks)
        counts = CellCounts.of(d, k - 1, n, c, documents=int(d.max()) + 1, cells=int(k.max()))
        linked_cells(counts, positions=counts.cells)
        factors = fit_factors(counts, tolerance=tolerance, max_steps=max_steps)
        trust = Trust.perfect(counts.cells)
        return UserFit(
            user=cls(examination=factors.examination, trust=trust),
            attraction=factors.attraction,
            examined=factors.examined,
            log_likelihoods=factors.ascent.log_likelihoods,
            converged=factors.ascent.converged,
            normalisation=NORMALISATION,
            unidentified=(),
            predictor=cls(examination=shrunk(factors.examination, factors.attracted), trust=trust),
        )

    def _marginal(self, traits: Floats) -> Floats:
        (a,) = traits
        p: Floats = a * self.examination[: a.shape[1]]
        return p

    def _conditional(self, traits: Floats, clicks: Booleans) -> Floats:
        return self._marginal(traits)

    def _draw(self, traits: Floats, seen: Ints, rng: np.random.Generator) -> Booleans:
        (attraction,) = traits
        clicks = np.empty((len(attraction), len(seen)), dtype=np.bool_)
        for k, a in enumerate(attraction):
            np.less(rng.random(len(seen)), (a * self.examination[k]).take(seen), out=clicks[k])
        return clicks


@USERS.register(
    "pbm",
    help="examines position k with probability k^-eta",
    options=(Option("eta", "How fast attention falls: examination is k^-eta; default: 1.", float), TOP),
)
def paper_position_based(*, eta: float = 1.0, top: int = 20) -> PositionBased:
    """The paper's user; its lists have 20 results."""
    return PositionBased.with_eta(eta, positions=top)


def _sessions_safely_below(clicks: int, per_session: float, positions: int) -> int:
    """A number of sessions that stays below `clicks`, except in a case ten standard deviations out.

    Clicks in a session have at most the variance positions * per_session, so n sessions with about `clicks` clicks
    have at most the variance positions * clicks.
    """
    return int((clicks - 10 * np.sqrt(positions * max(clicks, 0))) / per_session)


def _checked_counts(*columns: npt.ArrayLike) -> list[Ints]:
    """Document, position, impressions and clicks as checked whole numbers."""
    d, k, n, c = arrays = [np.asarray(column) for column in columns]
    if len({column.shape for column in arrays}) > 1 or d.ndim != 1 or d.size == 0:
        shapes = ", ".join(str(column.shape) for column in arrays)
        raise InputError(f"document, position, impressions and clicks must be equally long columns, found {shapes}.")
    bad = (d < 0) | (k < 1) | (n < 0) | (c < 0) | (c > n)
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"Row {row + 1}: document {d[row]}, position {k[row]}, impressions {n[row]}, clicks {c[row]}. Expected "
            "document codes from 0, positions from 1 and no more clicks than impressions."
        )
    return [column.astype(np.int64) for column in arrays]
