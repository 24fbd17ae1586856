"""Position bias from documents that moved, and labels by inverse propensity (IPS).   Counts -> InterventionFit

A. Agarwal et al.: Estimating Position Bias without Intrusive Interventions, WSDM 2019. A document shown at two
positions was as good at both, so its click rates compare them. Let s_jk be the sum, over the documents shown at both j
and k, of their click rates at k, and m the number of these documents.

    adjacent   AdjacentChain: theta_k+1 / theta_k = s_k,k+1 / s_k+1,k, down from position 1
    all        AllPairs: s_jk ~ m theta_k r_jk, where r_jk = r_kj is the mean relevance of these documents; theta and r
               maximise the sum of s log(theta r) + (m - s) log(1 - theta r) over all pairs, both ways
Clicks fix only ratios, so theta is 1 where it is highest. It covers position bias alone: trust bias stays in labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from clickmix.corrections.affine import affine_labels
from clickmix.corrections.clipping import CLIP, Clip, checked_clip, clip_title
from clickmix.corrections.correction import CORRECTIONS, Labels, check_positions_only
from clickmix.corrections.parameters import LEAST_ALPHA, BiasParameters
from clickmix.counts.counts import Counts, TakesCounts
from clickmix.errors import InputError, SettingError
from clickmix.registry import Option
from clickmix.types import Floats, Progress

NAME = "intervention"
Pairs = Literal["all", "adjacent"]
PAIRS = Option("pairs", "Which positions to compare: all that share documents, or neighbours.", choices=get_args(Pairs))
LEAST_RELEVANCE = 1e-9
FLAT = 1e-6  # slopes per document that count as 0


class Pair(NamedTuple):
    """Two positions, how many documents were shown at both, and the sums of their click rates at each."""

    upper: int
    lower: int
    documents: int
    upper_rates: float
    lower_rates: float


@CORRECTIONS.register(NAME, help="IPS with position bias from documents that moved.", options=(PAIRS, CLIP))
@dataclass(frozen=True)
class Intervention(TakesCounts):
    """Settings of intervention harvesting: which pairs of positions to compare."""

    saves_model: ClassVar[bool] = True

    pairs: Pairs = "all"
    clip: Clip = "one"

    def __post_init__(self) -> None:
        checked_clip(self.clip)
        if self.pairs not in get_args(Pairs):
            raise SettingError(f"pairs {self.pairs!r}: expected one of {', '.join(get_args(Pairs))}.")

    @property
    def title(self) -> str:
        """The name in tables."""
        return clip_title(f"intervention, {self.pairs} pairs", self.clip)

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> InterventionFit:
        """Estimate theta of every position; refuse a log in which documents do not move."""
        check_positions_only(counts, correction=NAME)
        positions = _positions(counts)
        # A comparison needs clicks on both sides: a ratio with 0 does not say how far apart the positions are.
        useful = [pair for pair in _read_pairs(counts) if pair.upper_rates > 0 and pair.lower_rates > 0]
        if self.pairs == "adjacent":
            useful = [pair for pair in useful if pair.lower == pair.upper + 1]
        _check_linked(useful, positions)
        if self.pairs == "adjacent":
            theta, converged = np.cumprod([1.0, *(pair.lower_rates / pair.upper_rates for pair in useful)]), True
        else:
            theta, converged = _all_pairs(useful, positions)
        theta = np.maximum(theta / theta.max(), LEAST_ALPHA)
        return InterventionFit(BiasParameters.of_examination(theta), self.clip, tuple(useful), converged)


@dataclass(frozen=True, eq=False)
class InterventionFit(TakesCounts):
    """Theta of every position (alpha of the parameters), the pairs it comes from, and whether the search converged."""

    parameters: BiasParameters
    clip: Clip
    pairs: tuple[Pair, ...]
    converged: bool

    @property
    def summary(self) -> str:
        """Where theta comes from, in a sentence."""
        fewest = min(self.pairs, key=lambda pair: pair.documents)
        stopped = "" if self.converged else " It was still improving when the search was stopped."
        return (
            f"Theta comes from {len(self.pairs):,} pairs of positions that share documents. Positions {fewest.upper} "
            f"and {fewest.lower} share the fewest: {fewest.documents:,}.{stopped}"
        )

    def write(self, path: str | Path) -> None:
        """Write a parameters file."""
        self.parameters.write(path)

    def label(self, counts: Counts) -> Labels:
        """The estimate of every document by IPS, and relevance by clipping it."""
        return affine_labels(counts, self.parameters, clip=self.clip, correction=NAME)


def _positions(counts: Counts) -> int:
    """How many positions there are; refuse a log that skips one."""
    found = [position for (position,) in counts.engine.rows(f"SELECT DISTINCT position FROM {counts.table} ORDER BY 1")]
    missing = next((k for k, position in enumerate(found, 1) if position != k), None)
    if missing is not None:
        raise InputError(
            f"Position {missing} was never shown but position {found[-1]} was, so its theta cannot be estimated. Use a "
            "log with every position down to the last."
        )
    return len(found)


def _read_pairs(counts: Counts) -> list[Pair]:
    """Every pair of positions that share documents."""
    # Sums of decimals, because sums of floats depend on the order of rows.
    upper, lower = (
        f"CAST(sum(CAST(CAST({side}.clicks AS DOUBLE) / {side}.impressions AS DECIMAL(38, 12))) AS DOUBLE)"
        for side in ("above", "below")
    )
    rows = counts.engine.rows(
        f"SELECT above.position, below.position, count(*), {upper}, {lower} FROM {counts.table} AS above "
        f"JOIN {counts.table} AS below ON above.query_id = below.query_id AND above.doc_id = below.doc_id "
        "AND above.position < below.position GROUP BY above.position, below.position ORDER BY 1, 2"
    )
    return [Pair(*row) for row in rows]


def _check_linked(pairs: Sequence[Pair], positions: int) -> None:
    """Refuse a log in which some positions cannot be compared with position 1, directly or through others."""
    if not pairs:
        raise InputError(
            "No two positions share documents that were clicked at both, so intervention cannot tell position bias "
            "from relevance. Use a log in which documents move, or use mixture, which needs no such "
            "documents."
        )
    linked, before = {1}, 0
    while len(linked) > before:
        before = len(linked)
        linked |= {k for pair in pairs if linked & {pair.upper, pair.lower} for k in (pair.upper, pair.lower)}
    apart = [str(k) for k in range(1, positions + 1) if k not in linked]
    if apart:
        raise InputError(
            f"Position(s) {', '.join(apart)}: no clicked documents link them with position 1, so intervention cannot "
            "compare them. Use a log in which documents move, or use mixture, which needs no such documents."
        )


def _all_pairs(pairs: Sequence[Pair], positions: int) -> tuple[Floats, bool]:
    """Theta of every position, where the likelihood of all pairs is highest (it is concave); whether that was found."""
    from scipy.optimize import minimize

    position = np.array([k - 1 for pair in pairs for k in (pair.upper, pair.lower)])
    index = positions + np.repeat(np.arange(len(pairs)), 2)
    s = np.array([rates for pair in pairs for rates in (pair.upper_rates, pair.lower_rates)])
    m = np.array([float(pair.documents) for pair in pairs for _ in range(2)])
    size = positions + len(pairs)

    def loss(point: Floats) -> tuple[float, Floats]:
        log_p = point[position] + point[index]
        odds = 1 / np.expm1(-log_p)  # p / (1 - p)
        slopes = s - (m - s) * odds
        by_point = np.bincount(position, slopes, size) + np.bincount(index, slopes, size)
        return -float((s * log_p - (m - s) * np.log1p(odds)).sum()) / m.sum(), -by_point / m.sum()

    lowest = np.log(np.repeat([LEAST_ALPHA, LEAST_RELEVANCE], [positions, len(pairs)]))
    highest = np.repeat([0.0, -LEAST_RELEVANCE], [positions, len(pairs)])
    start = np.full(size, np.log(0.5))
    settings = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxfun": 20_000}
    best = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=list(zip(lowest, highest, strict=True)), options=settings
    )
    # A slope that leads out of the bounds does not count; rounding can stop the climb just below the top.
    inside = (best.x > lowest) & (best.x < highest)
    flat = bool(np.abs(best.jac[inside]).max(initial=0) < FLAT)
    return np.exp(best.x[:positions]), flat
