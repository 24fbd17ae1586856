"""Fit: a user model learned from a log, and how it was learned.   sessions -> Fit -> Score on other sessions"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlog1py, xlogy

from clickmix.lab.users.sessions import Sessions
from clickmix.lab.users.user import User
from clickmix.types import Floats, Ints

SCORED_TOGETHER = 1 << 16


@dataclass(frozen=True, eq=False)
class Score:
    """How well held-out clicks were predicted, each given the clicks above it, by position.

    >>> Score(log_likelihoods=np.array([-2.0, -1.0]), impressions=np.array([4, 4])).log_likelihood
    -3.0
    """

    log_likelihoods: Floats
    impressions: Ints

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of all clicks and non-clicks, in nats."""
        return float(self.log_likelihoods.sum())

    @property
    def perplexities(self) -> Floats:
        """exp(-mean log-likelihood) at each position: 1 is certainty, 2 a tossed coin; NaN if nothing was shown."""
        shown = self.impressions > 0
        mean = np.divide(self.log_likelihoods, self.impressions, out=np.full(len(shown), np.nan), where=shown)
        perplexities: Floats = np.exp(-mean)
        return perplexities

    @property
    def perplexity(self) -> float:
        """Mean of the positions' perplexities."""
        return float(np.nanmean(self.perplexities))


@dataclass(frozen=True, eq=False)
class UserFit:
    """A user model that makes a log most likely.

    `user` has perfect trust, so that its relevance is attraction. `attraction` has one entry per document code (NaN:
    never shown), `examined` says how many examined impressions each rests on. `log_likelihoods` is the trace of the
    climb. `normalisation` says what was fixed because clicks cannot show it; `unidentified` names the parameters that
    these sessions say nothing about.

    Predictions are more careful than the fit: `predictor` and `predicted_attraction` include one more observation at
    the mean, so that nothing counts as impossible just because a few sessions did not show it.

    For models in which a clicked document can satisfy, `satisfaction` has one entry per document code (NaN: no click
    shows it), and `clicked` says how many clicks each rests on.

    >>> from clickmix.lab.users import Cascade, Trust
    >>> relevance, rng = np.random.default_rng(0).random((20, 3)), np.random.default_rng(0)
    >>> fit = Cascade.fit(Cascade(trust=Trust.perfect(3)).simulate(relevance, sessions=500, rng=rng))
    >>> fit.attraction.shape, bool(fit.log_likelihoods[-1] >= fit.log_likelihoods[0])
    ((60,), True)
    """

    user: User
    attraction: Floats
    examined: Floats
    log_likelihoods: tuple[float, ...]
    converged: bool
    normalisation: str
    unidentified: tuple[str, ...]
    predictor: User
    satisfaction: Floats | None = None
    clicked: Floats | None = None

    @property
    def mean_attraction(self) -> float:
        """The mean attraction of examined results; the prediction for a document that was never shown."""
        return mean(self.attraction, self.examined)

    @property
    def predicted_attraction(self) -> Floats:
        """(attraction * examined + mean) / (examined + 1)."""
        return shrunk(self.attraction, self.examined)

    @property
    def predicted_satisfaction(self) -> Floats | None:
        """(satisfaction * clicked + mean) / (clicked + 1), if the model has it."""
        if self.satisfaction is None or self.clicked is None:
            return None
        return shrunk(self.satisfaction, self.clicked)

    def score(self, sessions: Sessions) -> Score:
        """Log-likelihood and perplexity of other sessions with the same document codes.

        Documents that the fit has not seen are predicted with the mean attraction and satisfaction.
        """
        size = max(int(sessions.lists.max()) + 1, len(self.attraction))
        traits = [_predicted(self.attraction, self.examined, size=size)]
        if self.satisfaction is not None and self.clicked is not None:
            traits.append(_predicted(self.satisfaction, self.clicked, size=size))
        of_documents = np.stack(traits) if len(traits) > 1 else traits[0]
        log_likelihoods = np.zeros(sessions.positions)
        for start in range(0, len(sessions), SCORED_TOGETHER):
            some = sessions.take(slice(start, start + SCORED_TOGETHER))
            p = self.predictor.click_probabilities(of_documents[..., some.documents], clicks=some.clicks)
            log_likelihoods += np.nansum(xlogy(some.clicks, p) + xlog1py(~some.clicks, -p), axis=0)
        shown = sessions.lists >= 0
        impressions = np.bincount(sessions.seen, minlength=len(shown)) @ shown
        return Score(log_likelihoods=log_likelihoods, impressions=impressions)


def _predicted(estimates: Floats, observations: Floats, *, size: int) -> Floats:
    """Careful estimates of `size` documents, the mean for new ones; then NaN, for code -1, past the end of a list."""
    predicted = np.full(size + 1, mean(estimates, observations))
    predicted[: len(estimates)] = shrunk(estimates, observations)
    predicted[-1] = np.nan
    return predicted


def mean(estimates: Floats, observations: Floats) -> float:
    """Mean of the estimates, weighted by the observations each rests on; 1/2 if nothing was observed."""
    total = observations.sum()
    return float(np.nansum(estimates * observations) / total) if total > 0 else 0.5


def shrunk(estimates: Floats, observations: Floats) -> Floats:
    """(estimate * observations + mean) / (observations + 1): each estimate with one more observation, at the mean."""
    moved: Floats = (np.nan_to_num(estimates * observations) + mean(estimates, observations)) / (observations + 1)
    return moved
