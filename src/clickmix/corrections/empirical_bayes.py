r"""Empirical Bayes: how much documents differ, and what that says about each.   histogram or documents -> priors

    beta-binomial   a document's click rate ~ Beta(m s, (1 - m) s), clicks ~ Binomial(n, rate)
    gamma-Poisson   a document's quality ~ Gamma(a, a), which has mean 1, clicks ~ Poisson(quality E)
Mean m, strength s and shape a maximise the marginal likelihood. A strength counts as much as s impressions, a shape as
much as a expected clicks. If documents differ no more than by chance, the likelihood keeps rising with the strength.
The verdict is then `one rate` and the strength `STRONGEST`.

No engine has the quantiles of Beta and Gamma, so intervals use the cube roots of Wilson and Hilferty. They contain 95%
of the posterior with two clicks or more, and a larger share with fewer, when the lower end can be 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clickmix.corrections.click_rates import PlacedCells, position_rates
from clickmix.counts.counts import Counts
from clickmix.errors import InputError
from clickmix.mixtures.mixture import Verdict
from clickmix.types import Floats

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

WEAKEST, STRONGEST = 0.01, 1e6
FIRST_STRENGTH, LARGEST_LOGIT = 10.0, 30.0
MOST_STEPS, HALVINGS = 100, 30
LONGEST = 2.0  # longest step of the logit of the mean, and of the logarithm of the strength
TRIED = 1e-5  # a step to see how slopes change
LEAST_BEND = 1e-12  # steps divide by how the likelihood bends, or by this
LEAST_RISE = 1e-15  # of the log-likelihood per document: the climb ends when a step promises less
FLAT = 1e-9  # the same; a climb that stops where a step promises more has not converged
EXACT = 1e-12  # of the logarithm of a shape
NORMAL = 1.959963984540054  # the 97.5% quantile of the normal distribution
# Below these shapes the cube root of a Gamma variable is far from normal; shapes raised to them give wider intervals.
LEAST_SHAPE, LEAST_LARGER_SHAPE = 0.1, 0.7


@dataclass(frozen=True)
class BetaPrior:
    """Beta(mean strength, (1 - mean) strength); `verdict` says why nothing was fitted, None if something was."""

    mean: float
    strength: float
    verdict: Verdict | None = None


@dataclass(frozen=True)
class GammaPrior:
    """Gamma(shape, shape), with mean 1; `verdict` says why nothing was fitted, None if something was."""

    shape: float
    verdict: Verdict | None = None


def fit_beta(impressions: Floats, clicks: Floats, documents: Floats) -> BetaPrior:
    """The most likely Beta for distinct (impressions, clicks) and how many documents have them.

    Without any click, or any skip, the mean is (clicks + 1/2) / (impressions + 1): 0 and 1 would be too sure.
    """
    n, c, weight = (np.asarray(column, dtype=np.float64) for column in (impressions, clicks, documents))
    shown, clicked = float(weight @ n), float(weight @ c)
    if clicked in (0, shown):
        verdict = Verdict.ALL_CLICKED if clicked else Verdict.NO_CLICKS
        return BetaPrior((clicked + 0.5) / (shown + 1), STRONGEST, verdict)
    m = clicked / shown
    # The slope of the log-likelihood in 1 / strength at 0, times 2.
    slope = weight @ (c * (c - 1) / m + (n - c) * (n - c - 1) / (1 - m) - n * (n - 1))
    if slope <= 0:
        return BetaPrior(m, STRONGEST, Verdict.ONE_RATE)
    return _climbed(n, c, weight, mean=m)


def _climbed(n: Floats, c: Floats, weight: Floats, *, mean: float) -> BetaPrior:
    """The most likely mean and strength, by Newton's method, starting from the mean of all impressions.

    Along a direction in which the likelihood bends upwards, a step is as long as if it bent downwards as much.
    """
    from scipy.special import betaln, digamma, expit, logit  # scipy.optimize takes longer to load than this to climb

    share = weight / weight.sum()

    def hill(point: Floats) -> tuple[float, Floats]:
        m, s = expit(point[0]), np.exp(point[1])
        a, b = m * s, (1 - m) * s
        value = betaln(a + c, b + n - c) - betaln(a, b)
        both = digamma(s + n) - digamma(s)
        by_a = digamma(a + c) - digamma(a) - both
        by_b = digamma(b + n - c) - digamma(b) - both
        return float(share @ value), np.array([share @ (by_a - by_b) * s * m * (1 - m), share @ (by_a * a + by_b * b)])

    low, high = np.array([[-LARGEST_LOGIT, np.log(WEAKEST)], [LARGEST_LOGIT, np.log(STRONGEST)]])
    point = np.array([logit(mean), np.log(FIRST_STRENGTH)])
    value, slope = hill(point)
    for _ in range(MOST_STEPS):
        free = ~(((point <= low) & (slope < 0)) | ((point >= high) & (slope > 0)))
        slope = slope * free
        bend = np.stack([(hill(point + TRIED * way)[1] - slope) / TRIED for way in np.eye(2)]) * np.outer(free, free)
        bends, ways = np.linalg.eigh((bend + bend.T) / 2)
        step = ways @ (ways.T @ slope / np.maximum(np.abs(bends), LEAST_BEND))
        rise = float(slope @ step)
        if rise < LEAST_RISE:
            break
        step *= LONGEST / max(LONGEST, np.abs(step).max())
        for halvings in range(HALVINGS):
            there = np.clip(point + step / 2**halvings, low, high)
            found = hill(there)
            if found[0] > value:
                break
        else:  # rounding hides the rest of the way
            break
        point, (value, slope) = there, found
    if rise > FLAT:
        return BetaPrior(mean, STRONGEST, Verdict.NOT_CONVERGED)
    return BetaPrior(float(expit(point[0])), float(np.exp(point[1])))


def fit_gamma(clicks: Floats, expected: Floats) -> GammaPrior:
    """The most likely Gamma with mean 1, from the clicks and the expected clicks of every document."""
    c, E = clicks[expected > 0], expected[expected > 0]
    if not len(E):
        return GammaPrior(STRONGEST, Verdict.NO_CLICKS)
    if ((c - E) ** 2 - c).sum() <= 0:  # the slope of the log-likelihood in 1 / shape at 0, times 2
        return GammaPrior(STRONGEST, Verdict.ONE_RATE)
    from scipy.special import digamma

    def slope(log_shape: float) -> float:
        a = np.exp(log_shape)
        return float(np.mean(a * (digamma(a + c) - digamma(a) + np.log(a / (a + E)) + (E - c) / (a + E))))

    low, high = np.log(WEAKEST), np.log(STRONGEST)
    if slope(low) <= 0:
        return GammaPrior(WEAKEST)
    # If rounding hides the slope, documents are so near to one rate that the likelihood is as high at the end.
    if slope(high) >= 0:
        return GammaPrior(STRONGEST)
    while high - low > EXACT:  # scipy.optimize has this, but takes longer to load than the search
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return GammaPrior(float(np.exp(low)))


def gamma_interval(shape: str, rate: str) -> tuple[str, str]:
    """SQL for both ends of the interval of Gamma(shape, rate)."""
    s = f"greatest({shape}, {LEAST_SHAPE})"
    low, high = (f"greatest(1.0 - 1.0 / (9.0 * {s}) {sign} {NORMAL!r} / (3.0 * sqrt({s})), 0.0)" for sign in ("-", "+"))
    return f"{s} / ({rate}) * {low} * {low} * {low}", f"{s} / ({rate}) * {high} * {high} * {high}"


def beta_interval_query(table: str) -> str:
    """SQL that adds to `table` the columns low and high: the interval of Beta(a, b), from its columns a and b.

    Beta is the share of one Gamma variable in two. With r the cube root of their ratio over that of the shapes,
    u = 1 / (9 smaller shape) and v = 1 / (9 larger shape), the ends solve ((1 - v) r - (1 - u))^2 = z^2 (v r^2 + u).
    """
    z2 = repr(NORMAL**2)
    middle = "(1.0 - u) * (1.0 - v)"
    width = f"sqrt({z2} * (u * (1.0 - v) * (1.0 - v) + v * (1.0 - u) * (1.0 - u) - {z2} * u * v))"
    scale = f"((1.0 - v) * (1.0 - v) - {z2} * v)"
    low, high = (f"v * r_{end} * r_{end} * r_{end}" for end in ("low", "high"))
    return (
        f"SELECT *, CASE WHEN a <= b THEN s_low ELSE 1.0 - s_high END AS low, "
        f"CASE WHEN a <= b THEN s_high ELSE 1.0 - s_low END AS high FROM ("
        f"SELECT *, {low} / ({low} + u) AS s_low, {high} / ({high} + u) AS s_high FROM ("
        f"SELECT *, greatest(({middle} - {width}) / {scale}, 0.0) AS r_low, "
        f"greatest(({middle} + {width}) / {scale}, 0.0) AS r_high FROM ("
        f"SELECT *, 1.0 / (9.0 * greatest(least(a, b), {LEAST_SHAPE})) AS u, "
        f"1.0 / (9.0 * greatest(a, b, {LEAST_LARGER_SHAPE})) AS v FROM {table}) AS shapes) AS ratios) AS shares"
    )


def posterior_rates(priors: Mapping[int, BetaPrior], seen: PlacedCells, asked: PlacedCells) -> Floats:
    """The posterior mean under the Beta of the asked position, or of the nearest known one, given all seen clicks."""
    known, at = np.array(sorted(priors)), np.array([place.position for place in seen.places])
    below = np.clip(np.searchsorted(known, at, side="right") - 1, 0, len(known) - 1)
    above = np.minimum(below + 1, len(known) - 1)
    nearest = known[np.where(np.abs(at - known[below]) <= np.abs(known[above] - at), below, above)].tolist()
    mean, strength = (np.array([getattr(priors[place], key) for place in nearest]) for key in ("mean", "strength"))
    clicks, shown = (seen.by_document(column)[asked.document] for column in (seen.clicks, seen.impressions))
    m, s = mean[asked.place], strength[asked.place]
    return np.asarray((clicks + m * s) / (shown + s))


def expected_rates(prior: GammaPrior, seen: PlacedCells, asked: PlacedCells) -> Floats:
    """The click rate of the asked position times the estimate, which is 1 for documents that were not seen."""
    rate = position_rates(seen)
    expected = seen.by_document(seen.impressions * rate[seen.place])
    estimate = (seen.by_document(seen.clicks) + prior.shape) / (expected + prior.shape)
    return np.asarray(np.minimum(rate[asked.place] * estimate[asked.document], 1.0))


def check_known(counts: Counts, known: Collection[int], *, correction: str) -> None:
    """Refuse a log with positions that the fit has not seen."""
    found = counts.engine.rows(f"SELECT DISTINCT position FROM {counts.table} ORDER BY position")
    unknown = [position for (position,) in found if position not in known]
    if unknown:
        raise InputError(
            f"Position {unknown[0]} is not in the log that {correction} was fitted on. "
            f"Fit {correction} on a log with every position that you want to label."
        )
