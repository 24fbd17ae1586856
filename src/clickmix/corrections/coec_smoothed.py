"""Smoothed clicks over expected clicks, gamma-Poisson.   Counts -> Labels

    estimate = (C + a) / (E + a), low and high from Gamma(C + a, E + a)
with C clicks of a document and E = sum over its cells of n m_k, the clicks of the average document there; m_k is the
log's click-through rate at position k. The quality of documents follows Gamma(a, a), which has mean 1; a is fitted to
the log, on a sample of documents with about 400,000 cells. The prior counts as much as a expected clicks of an average
document: a document that was hardly ever shown gets an estimate near 1, while COEC gives 0 or a very large number.

Labels and the ends of their intervals are clipped as in COEC. Without expected clicks, the estimate is 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from clickmix.corrections.click_rates import PlacedCells
from clickmix.corrections.clipping import CLIP, LARGEST, Clip, checked_clip, clip_title, relevance_sql
from clickmix.corrections.coec import ClicksOverExpected
from clickmix.corrections.correction import CORRECTIONS, Labels, check_positions_only
from clickmix.corrections.empirical_bayes import GammaPrior, check_known, expected_rates, fit_gamma, gamma_interval
from clickmix.counts.counts import SUMS, Counts, TakesCounts
from clickmix.engines.sql import listed
from clickmix.groups.places import read_histogram
from clickmix.groups.sample import read_queries
from clickmix.types import Floats, Progress

NAME = "coec-smoothed"


@CORRECTIONS.register(NAME, help="Clicks over those of the average document, pulled towards 1.", options=(CLIP,))
@dataclass(frozen=True)
class SmoothedClicksOverExpected(TakesCounts):
    """Settings of smoothed COEC: how estimates become relevance."""

    clip: Clip = "one"

    def __post_init__(self) -> None:
        checked_clip(self.clip)

    @property
    def title(self) -> str:
        """The name in tables."""
        return clip_title("smoothed coec", self.clip)

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> FittedSmoothedClicksOverExpected:
        """Take the click-through rate at each position, and fit how far documents differ from it."""
        check_positions_only(counts, correction=NAME)
        rates = ClicksOverExpected().fit(counts).rates
        histogram = read_histogram(counts)
        sample = read_queries(counts, histogram)
        rate = np.array([rates[place.position] for place in histogram.places])
        expected = np.bincount(sample.document, sample.impressions * rate[sample.place])
        clicks = np.bincount(sample.document, sample.clicks)
        return FittedSmoothedClicksOverExpected(self.clip, rates, fit_gamma(clicks, expected))


@dataclass(frozen=True)
class FittedSmoothedClicksOverExpected(TakesCounts):
    """The click-through rate of every position of a log, and how far documents differ."""

    clip: Clip
    rates: Mapping[int, float]
    prior: GammaPrior

    @property
    def summary(self) -> str:
        """How far documents differ, in a sentence."""
        if self.prior.verdict is None:
            clicks = f"{self.prior.shape:.3g}"
            return f"Every document starts as an average one: with {clicks} clicks where {clicks} were expected."
        return f"Clicks cannot tell documents apart ({self.prior.verdict}): all estimates are close to 1."

    def label(self, counts: Counts) -> Labels:
        """Smoothed clicks over expected clicks of every document, with the interval."""
        check_positions_only(counts, correction=NAME)
        check_known(counts, self.rates, correction=NAME)
        rows = listed(f"({position}, CAST({rate!r} AS DOUBLE))" for position, rate in self.rates.items())
        shape = f"CAST({self.prior.shape!r} AS DOUBLE)"
        low, high = gamma_interval(f"(clicks + {shape})", f"expected + {shape}")
        # Sums of decimals, because sums of floats depend on the order of rows.
        documents = (
            f"SELECT query_id, doc_id, {SUMS}, "
            "CAST(sum(CAST(cells.impressions * rate AS DECIMAL(38, 12))) AS DOUBLE) AS expected "
            f"FROM {counts.table} AS cells JOIN rates USING (position) GROUP BY query_id, doc_id"
        )
        estimates = (
            f"SELECT query_id, doc_id, impressions, clicks, (clicks + {shape}) / (expected + {shape}) AS estimate, "
            f"{low} AS lowest, {high} AS highest FROM ({documents}) AS documents"
        )
        ends = (
            # If the quality is nearly always 0, its mean is above the upper end.
            "SELECT query_id, doc_id, impressions, clicks, estimate, least(lowest, estimate) AS lowest, "
            f"greatest(highest, estimate) AS highest FROM ({estimates}) AS estimates"
        )
        largest = float(LARGEST[self.clip])
        low, high = (f"least({end}, {largest}) / {largest}" for end in ("lowest", "highest"))
        return Labels(
            counts,
            f"WITH rates(position, rate) AS (VALUES {rows}) "
            f"SELECT query_id, doc_id, {relevance_sql(self.clip)} AS relevance, impressions, clicks, {low} AS low, "
            f"{high} AS high, estimate FROM ({ends}) AS ends",
        )

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        """The click rate of the asked position times the estimate, which is 1 for documents that were not seen."""
        return expected_rates(self.prior, seen, asked)
