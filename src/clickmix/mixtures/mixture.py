"""Mixture: the fit of a group of places, a verdict on it, and what clicks there say.   groups -> labels

Evidence is what clicks and skips in a group say about relevance, as numbers, in numpy and in SQL:
    log ratio of grade k = log P(clicks | grade k) - log P(clicks | grade 0)
If a skip becomes a click, the mean grade never falls.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from clickmix.groups.places import SMALLEST_GROUP, Place
from clickmix.types import Floats

_RATE = "least(greatest(clicks / impressions, lowest), highest)"


def _log_gamma(x: str) -> str:
    """SQL for ln Gamma(x), x > 0, exact to 1e-10: Stirling's series at x + 5. Few engines have the function."""
    z, below = f"({x} + 5)", " * ".join(f"({x} + {i})" for i in range(5))
    series = "0.0"
    for numerator, denominator in ((1, 1188), (-1, 1680), (1, 1260), (-1, 360), (1, 12)):
        series = f"({series} / ({z} * {z}) + {numerator / denominator!r})"
    return f"(({x} + 4.5) * ln({z}) - {z} + {series} / {z} - ln({below}))"


def _counted(a: str, b: str) -> str:
    """SQL for the part of a beta-binomial's log density that depends on a cell's counts and on a and b."""
    skips = "(impressions - clicks)"
    logs = _log_gamma(f"(clicks + {a})"), _log_gamma(f"({skips} + {b})"), _log_gamma(f"(impressions + {a} + {b})")
    return f"({logs[0]} + {logs[1]} - {logs[2]})"


# By family: SQL for the log ratio of a grade, with the names of its numbers.
EVIDENCE_SQL: Mapping[str, str] = {
    "binomial": "clicks * on_click + (impressions - clicks) * on_skip",
    "beta-binomial": f"{_counted('a', 'b')} - {_counted('a_of_0', 'b_of_0')} + level",
    "gaussian": f"(square * {_RATE} + slope) * {_RATE} + level",
}
NOTHING: Mapping[str, Mapping[str, float]] = {
    "binomial": {"on_click": 0.0, "on_skip": 0.0},
    "beta-binomial": {"a": 1.0, "b": 1.0, "a_of_0": 1.0, "b_of_0": 1.0, "level": 0.0},
    "gaussian": {"square": 0.0, "slope": 0.0, "level": 0.0, "lowest": 0.0, "highest": 1.0},
}


@dataclass(frozen=True)
class Evidence:
    """For each grade above 0, the numbers that `EVIDENCE_SQL` of its family names, for one group."""

    family: str
    numbers: tuple[Mapping[str, float], ...]

    def log_ratios(self, impressions: Any, clicks: Any) -> Floats:
        """Grade above 0 x cell: the log ratios, by the same formula as the SQL."""
        n, c = np.asarray(impressions, dtype=np.float64), np.asarray(clicks, dtype=np.float64)
        if self.family == "binomial":
            return np.array([c * w["on_click"] + (n - c) * w["on_skip"] for w in self.numbers])
        if self.family == "beta-binomial":
            from scipy.special import betaln  # here, because it is slow to load

            return np.array(
                [
                    betaln(w["a"] + c, w["b"] + n - c) - betaln(w["a_of_0"] + c, w["b_of_0"] + n - c) + w["level"]
                    for w in self.numbers
                ]
            )
        x = [np.clip(c / n, w["lowest"], w["highest"]) for w in self.numbers]
        return np.array([(w["square"] * r + w["slope"]) * r + w["level"] for w, r in zip(self.numbers, x, strict=True)])


def binomial_evidence(rates: tuple[float, ...]) -> Evidence:
    """A click counts log(p_k/p_0), a skip log((1-p_k)/(1-p_0))."""
    p0 = rates[0]
    return Evidence(
        "binomial",
        tuple({"on_click": float(np.log(p / p0)), "on_skip": float(np.log1p(-p) - np.log1p(-p0))} for p in rates[1:]),
    )


def beta_binomial_evidence(rates: tuple[float, ...], weights: tuple[float, ...]) -> Evidence:
    """Click rates of documents of grade k follow Beta(m p_k, m (1 - p_k)), with m its weight.

    The log ratio of B(a + clicks, b + skips) / B(a, b); `level` is the part that counts do not change.
    """
    from scipy.special import betaln

    ends = [(p * m, (1 - p) * m) for p, m in zip(rates, weights, strict=True)]
    (a0, b0), above = ends[0], ends[1:]
    level = betaln(a0, b0)
    return Evidence(
        "beta-binomial",
        tuple({"a": a, "b": b, "a_of_0": a0, "b_of_0": b0, "level": float(level - betaln(a, b))} for a, b in above),
    )


def gaussian_evidence(means: tuple[float, ...], variances: tuple[float, ...]) -> Evidence:
    """The log ratio of two normal densities is a parabola in the rate x: square x^2 + slope x + level.

    With unequal variances the wider component wins both tails, and fewer clicks could look more relevant. So the rate
    is limited to the rising side of the parabola.
    """
    (m0, m1), (v0, v1) = means, variances
    square = (1 / v0 - 1 / v1) / 2
    slope = m1 / v1 - m0 / v0
    level = float((m0**2 / v0 - m1**2 / v1 + np.log(v0 / v1)) / 2)
    vertex = -slope / (2 * square) if square else 0.0
    lowest = vertex if square > 0 else min(0.0, vertex)
    highest = vertex if square < 0 else max(1.0, vertex)
    numbers = {"square": square, "slope": slope, "level": level, "lowest": lowest, "highest": highest}
    return Evidence("gaussian", (numbers,))


SEPARATED_FROM = 0.8  # share of the uncertainty about relevance that clicks must remove


class Verdict(enum.StrEnum):
    """The verdicts on a group, a closed list.

    >>> Verdict("no clicks") is Verdict.NO_CLICKS, str(Verdict.ONE_RATE)
    (True, 'one rate')
    """

    SEPARATED = "separated"
    OVERLAPPING = "overlapping"  # fitted, but labels are unsure
    ONE_RATE = "one rate"
    NO_CLICKS = "no clicks"
    ALL_CLICKED = "all clicked"
    TOO_FEW_DOCUMENTS = "too few documents"  # joined to a neighbour
    NOT_CONVERGED = "not converged"


@dataclass(frozen=True)
class Mixture:
    """The grades of one group, lowest rate first: two or more, or one if clicks say nothing about relevance.

    `weights` are the shares of documents of each grade. `standard_errors` are those of the lowest and the highest rate
    on the logit scale, if the information matrix allows them. `separation` is the share of the uncertainty about
    relevance that clicks in this group remove (0 none, 1 all), and `error` what they leave: the expected root mean
    squared error of labels. `own` is how many parameters the group's own clicks determine; neighbours determine the
    rest. If documents of a grade differ in appeal, its rate counts for `alike` impressions of a document.

    >>> mixture = Mixture("binomial", Verdict.SEPARATED, weights=(0.8, 0.2), rates=(0.1, 0.5))
    >>> mixture.relevance([10, 10], [1, 6]).round(3).tolist()
    [0.006, 0.997]
    """

    family: str
    verdict: Verdict
    weights: tuple[float, ...]
    rates: tuple[float, ...]
    variances: tuple[float, ...] | None = None
    standard_errors: tuple[float, ...] | None = None
    separation: float = 0.0
    error: float | None = None
    log_likelihoods: tuple[float, ...] = ()
    bic: float | None = None
    bic_one_rate: float | None = None
    own: float | None = None
    alike: tuple[float, ...] | None = None

    @property
    def informative(self) -> bool:
        """Whether clicks in this group count as evidence."""
        return len(self.rates) > 1

    @property
    def iterations(self) -> int:
        """Steps of the climb; `log_likelihoods` has the value before and after each."""
        return max(0, len(self.log_likelihoods) - 1)

    def evidence(self, *, grades: int) -> Evidence:
        """What a click and a skip in this group say about relevance, in a log of that many grades."""
        if not self.informative:
            return Evidence(self.family, (NOTHING[self.family],) * (grades - 1))
        if self.alike is not None:
            return beta_binomial_evidence(self.rates, self.alike)
        if self.variances is None:
            return binomial_evidence(self.rates)
        return gaussian_evidence(self.rates, self.variances)

    def posterior(self, impressions: Any, clicks: Any) -> Floats:
        """Grade x document: the probability of each grade for a document seen in this group only."""
        ratios = self.evidence(grades=len(self.rates)).log_ratios(impressions, clicks)
        prior = np.log(np.maximum(self.weights, np.finfo(float).tiny))
        logs = np.concatenate([np.zeros((1, *np.shape(clicks))), ratios.reshape(-1, *np.shape(clicks))])
        logs = logs + prior.reshape(-1, *(1,) * np.ndim(clicks))
        return np.asarray(np.exp(logs - np.logaddexp.reduce(logs, axis=0)))

    def relevance(self, impressions: Any, clicks: Any) -> Floats:
        """The label of a document seen in this group only: the mean of its grades; nan if there is one rate."""
        if not self.informative:
            return np.full(np.shape(clicks), np.nan)
        return mean_grade(self.posterior(impressions, clicks))


def mean_grade(posterior: Floats) -> Floats:
    """The mean of grades 0 to 1 with probabilities grade x document."""
    return np.asarray(np.einsum("k,k...->...", np.linspace(0, 1, len(posterior)), posterior))


def silent(family: str, clicks: float, impressions: float) -> Mixture | None:
    """The mixture if nothing or everything was clicked, otherwise None: EM would give equal rates and any weights."""
    if clicks == 0:
        return Mixture(family, Verdict.NO_CLICKS, (1.0,), (0.0,))
    if clicks == impressions:
        return Mixture(family, Verdict.ALL_CLICKED, (1.0,), (1.0,))
    return None


def left_over(posterior: Floats, documents: Floats) -> tuple[float, float]:
    """What clicks say about relevance, by the law of total variance: separation, and the error they leave.

    separation = 1 - mean Var(relevance | clicks) / Var(relevance), error = the root of that mean.
    """
    x, total = np.linspace(0, 1, len(posterior)), documents.sum()
    mean, square = (np.einsum("k,kd->d", power, posterior) for power in (x, x * x))
    left = max(0.0, float((documents * (square - mean * mean)).sum() / total))
    spread = float((documents * square).sum() / total) - float((documents * mean).sum() / total) ** 2
    return (max(0.0, 1 - left / spread) if spread > 0 else 0.0), float(np.sqrt(left))


@dataclass(frozen=True)
class PlaceCounts:
    """A place, and its counts."""

    place: Place
    documents: int
    impressions: int
    clicks: int


@dataclass(frozen=True)
class Group:
    """Places with the same chance of being examined, the mixture fitted to them, and the prior of their documents.

    `prior` is the probability of each grade, before any click.

    >>> from clickmix import Counts, MixtureCorrection
    >>> counts = Counts.from_arrays(range(80), [0] * 80, [1] * 80, [50] * 80, [25] * 20 + [3] * 60)
    >>> (group,) = MixtureCorrection().fit(counts).groups
    >>> group.documents, group.clicks, round(group.prior_relevance, 2)
    (80, 680, 0.25)
    """

    places: tuple[PlaceCounts, ...]
    mixture: Mixture
    prior: tuple[float, ...]

    @property
    def documents(self) -> int:
        """Documents seen there; one seen at two of its places counts twice."""
        return sum(place.documents for place in self.places)

    @property
    def impressions(self) -> int:
        """Impressions there."""
        return sum(place.impressions for place in self.places)

    @property
    def clicks(self) -> int:
        """Clicks there."""
        return sum(place.clicks for place in self.places)

    @property
    def prior_relevance(self) -> float:
        """The relevance of a document without known clicks."""
        return float(np.linspace(0, 1, len(self.prior)) @ self.prior)

    @property
    def squared_error(self) -> float:
        """The expected squared error of labels from clicks here; if clicks say nothing, the variance of the prior."""
        return self.prior_variance if self.mixture.error is None else self.mixture.error**2

    @property
    def prior_variance(self) -> float:
        """The expected squared error of labels before any click."""
        x = np.linspace(0, 1, len(self.prior))
        return float((x * x) @ self.prior) - self.prior_relevance**2

    @property
    def prior_logits(self) -> tuple[float, ...]:
        """log P(grade k) / P(grade 0), for the grades above 0."""
        return tuple(np.log(np.array(self.prior[1:]) / self.prior[0]).tolist())

    def verdict(self, place: PlaceCounts) -> Verdict:
        """The verdict on one of its places; a small place was only joined."""
        small = place.documents < SMALLEST_GROUP and len(self.places) > 1
        return Verdict.TOO_FEW_DOCUMENTS if small else self.mixture.verdict
