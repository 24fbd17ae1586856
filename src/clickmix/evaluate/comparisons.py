"""Comparisons: the Scores of two rankers, or two sets of runs, in; which is better, and how sure, out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr

from clickmix.errors import InputError, SettingError
from clickmix.evaluate.scores import Scores
from clickmix.types import Floats

Sample = Scores | ArrayLike  # one number per query, or one per run
PAIRED = "paired t-test"
STUDENT = "Student's t-test"
ROUNDING = 1e-12  # numbers that differ by less than this, relative to the larger one or 1, count as equal
DRAWS_AT_ONCE = 4_000_000  # 32 MB of numbers at a time, however many queries and resamples


@dataclass(frozen=True)
class TTest:
    """Two means, their difference (first - second), and how likely so large a difference is by chance.

    `p` is two-sided. If the numbers do not vary, `t` is infinite and `p` is 0; if the means are also equal, `t` is 0
    and `p` is 1.

    >>> from clickmix.evaluate import paired_t_test
    >>> test = paired_t_test([0.5, 0.7, 0.9], [0.4, 0.5, 0.6])
    >>> round(test.first - test.second, 3), round(test.p, 3)
    (0.2, 0.074)
    """

    kind: str
    first: float
    second: float
    t: float
    degrees: int
    p: float

    @property
    def difference(self) -> float:
        """The first mean minus the second."""
        return self.first - self.second

    @property
    def mark(self) -> str:
        """The paper's marks: * for p < .01, † for p < .1, otherwise none."""
        return "*" if self.p < 0.01 else "†" if self.p < 0.1 else ""


@dataclass(frozen=True)
class Interval:
    """The interval that contains a mean with the probability `level`.

    >>> Interval(0.41, 0.47, level=0.95).high
    0.47
    """

    low: float
    high: float
    level: float


@dataclass(frozen=True)
class Outcomes:
    """On how many queries (or runs) the first was better, the same, worse.

    >>> str(Outcomes(wins=3, ties=1, losses=0))
    '3/1/0'
    """

    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        return f"{self.wins}/{self.ties}/{self.losses}"


def paired_t_test(first: Sample, second: Sample) -> TTest:
    """t = mean(d) / (sd(d) / sqrt(n)) of the n differences d, query by query; n - 1 degrees of freedom.

    Also for paired runs: give arrays in which the same index means the same seed.

    >>> test = paired_t_test([0.5, 0.7, 0.9], [0.4, 0.5, 0.6])
    >>> round(test.t, 3), test.degrees, round(test.p, 3)
    (3.464, 2, 0.074)
    """
    a, b = _pair(first, second)
    _check_enough(a, what="differences")
    d = differences(first, second)
    return _t_test(PAIRED, a, b, error=float(d.std(ddof=1)) / math.sqrt(len(d)), degrees=len(d) - 1)


def student_t_test(first: ArrayLike, second: ArrayLike) -> TTest:
    """t = (mean(a) - mean(b)) / sqrt(v (1/n + 1/m)), v the pooled variance; n + m - 2 degrees of freedom.

    For independent runs, as in the paper: two samples of run means with equal variances. Not for queries, which are
    paired.

    >>> round(student_t_test([0.61, 0.62, 0.63], [0.58, 0.59, 0.60]).p, 3)
    0.021
    """
    if isinstance(first, Scores) or isinstance(second, Scores):
        raise InputError("The scores of queries are paired, not independent runs. Use paired_t_test.")
    a, b = values_of(first, "first"), values_of(second, "second")
    _check_enough(a, what="runs of the first")
    _check_enough(b, what="runs of the second")
    n, m = len(a), len(b)
    v = (float(a.var()) * n + float(b.var()) * m) / (n + m - 2)
    return _t_test(STUDENT, a, b, error=math.sqrt(v * (1 / n + 1 / m)), degrees=n + m - 2)


def bootstrap_interval(
    sample: Sample, *, rng: np.random.Generator, level: float = 0.95, resamples: int = 10_000
) -> Interval:
    """The percentile interval of the mean, from `resamples` means, each over as many draws with replacement.

    For the difference between two rankers: `bootstrap_interval(differences(first, second), rng=rng)`.

    >>> found = bootstrap_interval([0.4, 0.5, 0.6, 0.5], rng=np.random.default_rng(0))
    >>> 0.4 < found.low < 0.5 < found.high < 0.6
    True
    """
    values = values_of(sample, "sample")
    if not 0 < level < 1:
        raise SettingError(f"level: {level!r} found, expected a number between 0 and 1, for instance 0.95.")
    if resamples < 1:
        raise SettingError(f"resamples: {resamples!r} found, expected a whole number from 1, for instance 10000.")
    n, rows = len(values), max(1, DRAWS_AT_ONCE // len(values))
    sizes = [min(rows, resamples - start) for start in range(0, resamples, rows)]
    means = np.concatenate([values[rng.integers(n, size=(size, n))].mean(axis=1) for size in sizes])
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)


def wins_ties_losses(first: Sample, second: Sample) -> Outcomes:
    """On how many queries the first scores higher, the same, lower.

    >>> str(wins_ties_losses([0.5, 0.7, 0.9], [0.4, 0.7, 0.6]))
    '2/1/0'
    """
    d = differences(first, second)
    return Outcomes(int((d > 0).sum()), int((d == 0).sum()), int((d < 0).sum()))


def differences(first: Sample, second: Sample) -> Floats:
    """first - second for each query; exactly 0 if they differ only by rounding.

    >>> differences([0.5, 0.75], [0.25, 0.75]).tolist()
    [0.25, 0.0]
    """
    a, b = _pair(first, second)
    same = np.abs(a - b) <= ROUNDING * np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
    return np.where(same, 0.0, a - b)


def _t_test(kind: str, a: Floats, b: Floats, *, error: float, degrees: int) -> TTest:
    first, second = float(a.mean()), float(b.mean())
    scale = ROUNDING * max(1.0, abs(first), abs(second))
    if abs(first - second) <= scale:
        t = 0.0
    elif error <= scale:
        t = math.copysign(math.inf, first - second)
    else:
        t = (first - second) / error
    return TTest(kind, first, second, t, degrees, p=float(2 * stdtr(degrees, -abs(t))))


def check_comparable(first: Sample, second: Sample) -> None:
    """Refuse Scores of different measures, or measured in different ways or on different queries."""
    if not isinstance(first, Scores) or not isinstance(second, Scores):
        return
    if first.measure != second.measure:
        raise InputError(f"{first.measure} against {second.measure}: compare scores of the same measure.")
    if first.no_relevant != second.no_relevant:
        raise InputError(
            f"Queries without relevant documents are treated as {first.no_relevant!r} in the first and as "
            f"{second.no_relevant!r} in the second. Evaluate both in the same way."
        )
    if not np.array_equal(first.query_ids, second.query_ids):
        shared = set(first.query_ids.tolist()) & set(second.query_ids.tolist())
        raise InputError(
            f"The queries differ: {len(first.query_ids)} in the first, {len(second.query_ids)} in the second, "
            f"{len(shared)} in both. Evaluate both on the same queries."
        )


def _pair(first: Sample, second: Sample) -> tuple[Floats, Floats]:
    check_comparable(first, second)
    a, b = values_of(first, "first"), values_of(second, "second")
    if len(a) != len(b):
        raise InputError(f"{len(a)} numbers against {len(b)}: a paired comparison needs one of each per query or run.")
    return a, b


def values_of(given: Sample, what: str) -> Floats:
    """The numbers of a sample, checked; `what` names it in messages."""
    if isinstance(given, Scores):
        return given.values
    found = np.asarray(given)
    if found.ndim != 1 or not len(found) or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise InputError(f"{what}: expected one finite number per query or run, and at least one.")
    return found.astype(np.float64)


def _check_enough(values: Floats, *, what: str) -> None:
    if len(values) < 2:
        raise InputError(f"{len(values)} {what}: a t-test needs at least 2.")
