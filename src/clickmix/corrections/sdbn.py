"""The simplified dynamic Bayesian network as published: shares with Beta priors.   Counts -> Labels

Chapelle, Zhang: A Dynamic Bayesian Network Click Model for Web Search Ranking, WWW 2009, with a continuation of 1.

    attraction   = (clicks + prior) / (impressions at or above the last click of their session + prior)
    satisfaction = (last clicks + prior) / (clicks + prior)
    relevance    = attraction * satisfaction
Both priors are Betas, fitted to the log. `low` and `high` contain 95% of the Beta that has the mean and the variance
of the product of both posteriors.

A session without a click has no last click, and says nothing here. Some programs assume that people examined everything
in such a session (`abandoned="examined"`): in the model, people go on until they are satisfied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from clickmix.corrections.click_models.clicked_lists import ClickedLists, read_clicked_lists, read_down, seen_lists
from clickmix.corrections.click_models.document_labels import document_labels
from clickmix.corrections.click_rates import PlacedCells
from clickmix.corrections.correction import CORRECTIONS, Labels
from clickmix.corrections.empirical_bayes import BetaPrior, fit_beta
from clickmix.counts.counts import Counts, TakesCounts
from clickmix.errors import SettingError
from clickmix.registry import Option
from clickmix.types import Floats, Progress

NAME = "sdbn"
TAIL = 0.025
Abandoned = Literal["ignored", "examined"]
ABANDONED = Option(
    "abandoned",
    "What sessions without a click say: nothing, or that everything was examined.",
    choices=get_args(Abandoned),
)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The Beta of a share of every document: a = happened + prior, b = possible - happened + prior."""

    a: Floats
    b: Floats

    @classmethod
    def of(cls, happened: Floats, possible: Floats, prior: BetaPrior) -> Posterior:
        """The posterior after `happened` of `possible` events."""
        return cls(happened + prior.mean * prior.strength, possible - happened + (1 - prior.mean) * prior.strength)

    @property
    def mean(self) -> Floats:
        """The expected share."""
        return np.asarray(self.a / (self.a + self.b))

    @property
    def square(self) -> Floats:
        """The expected square of the share."""
        total = self.a + self.b
        return np.asarray(self.a * (self.a + 1) / (total * (total + 1)))


@CORRECTIONS.register(
    NAME, help="Attraction x satisfaction from shares of clicks; needs session_id.", options=(ABANDONED,)
)
@dataclass(frozen=True)
class SimplifiedDynamicBayesianNetwork(TakesCounts):
    """What sessions without a click say: nothing ("ignored", as published), or that everything was "examined"."""

    needs_lists: ClassVar[Literal["clicks"]] = "clicks"

    abandoned: Abandoned = "ignored"

    def __post_init__(self) -> None:
        if self.abandoned not in get_args(Abandoned):
            raise SettingError(f"abandoned {self.abandoned!r}: expected one of {', '.join(get_args(Abandoned))}.")

    @property
    def title(self) -> str:
        """The name in tables."""
        more = ", abandoned sessions examined" if self.abandoned == "examined" else ""
        return f"simplified dynamic Bayesian network{more}"

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> SimplifiedDynamicBayesianFit:
        """Fit how far documents differ in both shares."""
        lists = read_clicked_lists(counts, correction=NAME)
        examined, clicks, last = self.shares(lists)
        attraction, satisfaction = _prior(clicks, examined), _prior(last, clicks)
        return SimplifiedDynamicBayesianFit(self, attraction, satisfaction, counts, lists)

    def shares(self, lists: ClickedLists) -> tuple[Floats, Floats, Floats]:
        """Per document: impressions that count as examined, clicks and last clicks."""
        reading = lists.reading_counts(cells=lists.document, number_of_cells=len(lists.doc_id))
        examined = reading.certain
        if self.abandoned == "examined":
            examined = examined + reading.by_document(np.broadcast_to(reading.last[0], reading.documents.shape))
        return examined, reading.document_clicks, reading.by_document(reading.last[1:])


@dataclass(frozen=True, eq=False)
class SimplifiedDynamicBayesianFit(TakesCounts):
    """The Betas that attraction and satisfaction of documents come from."""

    settings: SimplifiedDynamicBayesianNetwork
    attraction: BetaPrior
    satisfaction: BetaPrior
    _counts: Counts
    _lists: ClickedLists

    @property
    def summary(self) -> str:
        """What the priors are, in a sentence."""
        return (
            f"Documents start from an attraction of {self.attraction.mean:.3f} and a satisfaction of "
            f"{self.satisfaction.mean:.3f}, which count like {self.attraction.strength:.3g} examined impressions and "
            f"{self.satisfaction.strength:.3g} clicks."
        )

    def label(self, counts: Counts) -> Labels:
        """The expected attraction times satisfaction of every document, with its interval."""
        from scipy.special import betaincinv  # here, because --help loads this module

        lists = self._lists if counts is self._counts else read_clicked_lists(counts, correction=NAME)
        attraction, satisfaction = self.posteriors(lists)
        mean = attraction.mean * satisfaction.mean
        variance = attraction.square * satisfaction.square - mean**2
        strength = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-300) - 1, 1e-9)
        low, high = (betaincinv(mean * strength, (1 - mean) * strength, tail) for tail in (TAIL, 1 - TAIL))
        ends = {"low": np.minimum(low, mean), "high": np.maximum(high, mean)}  # a mean near 0 can be above both ends
        return document_labels(counts, lists.query_id, lists.doc_id, correction=NAME, relevance=mean, **ends)

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        """P(click) from the top down, of people who go on until they are satisfied."""
        attraction, satisfaction = (posterior.mean[asked.document] for posterior in self.posteriors(seen_lists(seen)))
        return read_down(asked, attraction, attraction * satisfaction)

    def posteriors(self, lists: ClickedLists) -> tuple[Posterior, Posterior]:
        """Every document's attraction and satisfaction, given these lists."""
        examined, clicks, last = self.settings.shares(lists)
        return Posterior.of(clicks, examined, self.attraction), Posterior.of(last, clicks, self.satisfaction)


def _prior(happened: Floats, possible: Floats) -> BetaPrior:
    """The Beta that shares come from, fitted to the distinct pairs of both numbers; flat if nothing was possible."""
    pairs, documents = np.unique(np.stack([possible, happened])[:, possible > 0], axis=1, return_counts=True)
    return fit_beta(pairs[0], pairs[1], documents) if pairs.size else BetaPrior(0.5, 2.0)
