"""Smoothed click-through rate: the posterior mean of a click rate, beta-binomial, by position.   Counts -> Labels

    relevance = (C + M S) / (N + S), low and high from Beta(C + M S, N - C + (1 - M) S)
with N impressions and C clicks of a document. At every position k the click rates of documents follow a Beta of mean
m_k and strength s_k, fitted to the log. For a document at several positions M is the mean of m_k and 1 / S the mean of
1 / s_k, both weighted by its impressions: it has one click rate, for its mix of positions. 1 / S is how far documents
differ; with a mean of strengths, one position where they do not differ would drown out all others.

Position bias stays in these labels: they are click-through rates without the noise. Positions with fewer than 30
documents are fitted together with a neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from clickmix.corrections.click_rates import PlacedCells
from clickmix.corrections.correction import CORRECTIONS, Labels, check_positions_only
from clickmix.corrections.empirical_bayes import BetaPrior, beta_interval_query, check_known, fit_beta, posterior_rates
from clickmix.counts.counts import SUMS, Counts, TakesCounts
from clickmix.engines.sql import listed
from clickmix.groups.places import join_small, read_histogram
from clickmix.types import Floats, Progress

NAME = "ctr-smoothed"


@CORRECTIONS.register(NAME, help="The click-through rate, pulled towards that of its positions.")
@dataclass(frozen=True)
class SmoothedRate(TakesCounts):
    """The smoothed click-through rate; there is nothing to set."""

    title: ClassVar[str] = "smoothed click-through rate"

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> FittedSmoothedRate:
        """Fit how far the click rates of documents differ at each position."""
        check_positions_only(counts, correction=NAME)
        histogram = read_histogram(counts)
        documents = np.bincount(histogram.place, histogram.documents, len(histogram.places))
        groups = np.array(join_small(histogram.places, documents.astype(np.int64).tolist()))
        of_row = groups[histogram.place]
        columns = (histogram.impressions, histogram.clicks, histogram.documents)
        fitted = [fit_beta(*(column[of_row == group] for column in columns)) for group in range(groups.max() + 1)]
        return FittedSmoothedRate(
            {place.position: fitted[group] for place, group in zip(histogram.places, groups, strict=True)}
        )


@dataclass(frozen=True)
class FittedSmoothedRate(TakesCounts):
    """The Beta of every position of a log."""

    priors: Mapping[int, BetaPrior]

    @property
    def summary(self) -> str:
        """Where nothing could be fitted, and why."""
        verdicts = [f"{position} ({prior.verdict})" for position, prior in self.priors.items() if prior.verdict]
        if not verdicts:
            return "Documents differ at every position by more than chance."
        where = listed(verdicts)
        return f"Clicks cannot tell documents apart at position(s) {where}. They get the rate of the position."

    def label(self, counts: Counts) -> Labels:
        """The posterior mean of every document's click rate, with its interval."""
        check_positions_only(counts, correction=NAME)
        check_known(counts, self.priors, correction=NAME)
        rows = listed(
            f"({position}, CAST({prior.mean!r} AS DOUBLE), CAST({1 / prior.strength!r} AS DOUBLE))"
            for position, prior in self.priors.items()
        )
        # Sums of decimals, because sums of floats depend on the order of rows.
        mean, spread = (
            f"CAST(sum(CAST(cells.impressions * {column} AS DECIMAL(38, 12))) AS DOUBLE) / sum(cells.impressions)"
            for column in ("mean", "spread")
        )
        documents = (
            f"SELECT query_id, doc_id, {mean} AS mean, 1.0 / ({spread}) AS strength, {SUMS} "
            f"FROM {counts.table} AS cells JOIN priors USING (position) GROUP BY query_id, doc_id"
        )
        posteriors = (
            "(SELECT query_id, doc_id, impressions, clicks, (clicks + mean * strength) / (impressions + strength) AS "
            "relevance, clicks + mean * strength AS a, impressions - clicks + (1.0 - mean) * strength AS b "
            f"FROM ({documents}) AS documents) AS posteriors"
        )
        return Labels(
            counts,
            f"WITH priors(position, mean, spread) AS (VALUES {rows}) "
            # If a rate is nearly always 0, its mean is above the upper end.
            "SELECT query_id, doc_id, relevance, impressions, clicks, least(low, relevance) AS low, "
            f"greatest(high, relevance) AS high FROM ({beta_interval_query(posteriors)}) AS labels",
        )

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        """The posterior mean under the Beta of the asked position, with the clicks of all positions."""
        return posterior_rates(self.priors, seen, asked)
