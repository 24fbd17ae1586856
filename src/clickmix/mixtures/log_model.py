"""The numbers of a model of a whole log, as in the model file.   hierarchical.Model <-> LogModel

mixtures/hierarchical/problem.py has the formulas. This module has what labels need: places with their lowest and
highest rates, the prior by position and by impressions, and how much queries and documents differ.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from clickmix.mixtures.mixture import Evidence, beta_binomial_evidence, binomial_evidence
from clickmix.storage.records import MismatchError, Range
from clickmix.types import Floats

if TYPE_CHECKING:
    from clickmix.mixtures.hierarchical.problem import Effects, Model

Logit = Annotated[float, Range(-60, 60)]
Log = Annotated[float, Range(-100, 100)]  # of positions, impressions and rates
ROUNDING = 1e-6
MOST_ALIKE = 14.0  # log of the impressions that a rate counts for; with more, documents are alike


@dataclass(frozen=True)
class Looked:
    """A model that was compared: its name, and how well it predicts held-out clicks of some queries."""

    name: str
    score: float
    queries: int


@dataclass(frozen=True)
class LogModel:
    """One entry per place in `positions`, `contexts`, `low` and `high` (logits of rates, with their errors).

    `prior` has a row per grade above 0: its logits at the knots `where` of log position, then what the knots `often` of
    log impressions add, from the second knot. `curves` are common to all contexts. `numbers` are the parameters of the
    effects. They were fitted to this `share` of the log's queries, and `looked` are the models that were compared.
    """

    positions: tuple[Annotated[float, Range(1)], ...]
    contexts: tuple[Annotated[int, Range(0)], ...]
    low: tuple[Logit, ...]
    high: tuple[Logit, ...]
    low_errors: tuple[Annotated[float, Range(0)], ...]
    high_errors: tuple[Annotated[float, Range(0)], ...]
    where: tuple[Log, ...]
    often: tuple[Log, ...]
    prior: tuple[tuple[Logit, ...], ...]
    curves: tuple[Log, ...]
    attention: Literal["examination", "odds"] | None
    shares: bool
    appeal: bool
    numbers: tuple[float, ...]
    share: Annotated[float, Range(0, 1)] = 1.0
    looked: tuple[Looked, ...] = ()

    def check_fields(self) -> None:
        """Every list has as many numbers as there are places, knots or effects."""
        for at in ("contexts", "low", "high", "low_errors", "high_errors"):
            if len(getattr(self, at)) != len(self.positions):
                raise MismatchError("expected a number for each place", at=at)
        for at in ("where", "often"):
            knots = getattr(self, at)
            if not knots or any(a >= b for a, b in itertools.pairwise(knots)):
                raise MismatchError("expected ascending numbers", at=at)
        if not self.prior or any(len(row) != len(self.where) + len(self.often) - 1 for row in self.prior):
            raise MismatchError("expected a number for each knot", at="prior")
        if len(self.numbers) != len(self.effects.numbers):
            raise MismatchError("these do not fit the effects", at="numbers")
        self._check_numbers()
        if len(self.curves) != 2 * len(self.model.places.spread.curve):
            raise MismatchError("expected two numbers for each knot of the contexts' common curve", at="curves")

    def _check_numbers(self) -> None:
        from clickmix.mixtures.hierarchical.climb import BOUNDS

        for i, (name, value) in enumerate(zip(self.effects.numbers, self.numbers, strict=True)):
            low, high = BOUNDS[name]
            if not low - ROUNDING <= value <= high + ROUNDING:
                raise MismatchError(f"expected a number from {low:.3g} to {high:.3g}", at=f"numbers[{i}]")

    @classmethod
    def of(cls, model: Model, *, share: float = 1.0) -> LogModel:
        """The numbers of a fitted model."""
        k, (where, often) = len(model.places), model.knots
        width = len(where) + len(often) - 1
        prior = model.x[2 * k : 2 * k + (model.grades - 1) * width].reshape(model.grades - 1, width)
        return cls(
            tuple(model.places.position.tolist()),
            tuple(model.places.context.tolist()),
            tuple(model.x[:k].tolist()),
            tuple(model.x[k : 2 * k].tolist()),
            tuple(model.errors[:k].tolist()),
            tuple(model.errors[k : 2 * k].tolist()),
            tuple(where.tolist()),
            tuple(often.tolist()),
            tuple(map(tuple, prior.tolist())),
            tuple(model.x[2 * k + prior.size :].tolist()),
            model.effects.attention,
            model.effects.shares,
            model.effects.appeal,
            tuple(model.numbers.tolist()),
            share,
            tuple(model.chosen),
        )

    @cached_property
    def model(self) -> Model:
        """The same as arrays, for computations."""
        from clickmix.mixtures.hierarchical.cells import Places
        from clickmix.mixtures.hierarchical.problem import Model
        from clickmix.mixtures.hierarchical.sharing import Walk

        places = Places(np.array(self.positions), np.array(self.contexts))
        knots = np.array(self.where), np.array(self.often)
        walk = Walk.of(places, knots, grades=self.grades)
        x = np.concatenate([self.low, self.high, np.array(self.prior).ravel(), self.curves])
        errors = np.zeros(len(x))
        errors[: 2 * len(places)] = np.concatenate([self.low_errors, self.high_errors])
        return Model(places, knots, self.grades, self.effects, x, np.array(self.numbers), walk, errors, converged=True)

    @property
    def grades(self) -> int:
        """How many grades there are."""
        return len(self.prior) + 1

    @cached_property
    def effects(self) -> Effects:
        """What differs between queries and documents."""
        from clickmix.mixtures.hierarchical.problem import Effects

        return Effects(self.attention, self.shares, self.appeal)

    @property
    def queries_differ(self) -> bool:
        """Whether a label depends on the other documents of its query."""
        return self.attention is not None or self.shares

    @cached_property
    def rates(self) -> Floats:
        """Grade x place: the click rates in a query of typical attention."""
        from scipy.special import expit

        x = np.linspace(0, 1, self.grades)[:, None]
        return np.asarray((1 - x) * expit(np.array(self.low)) + x * expit(np.array(self.high)))

    @cached_property
    def alike(self) -> Floats | None:
        """Grade x place: how many impressions the rate of a grade counts for; None if documents are alike."""
        if not self.appeal:
            return None
        d, k = self.numbers[-2:]
        return np.asarray(np.exp(np.minimum(d - k * np.log(self.rates), MOST_ALIKE)))

    def evidence(self, place: int) -> Evidence:
        """What clicks and skips at a place say, in a query of typical attention."""
        rates = tuple(self.rates[:, place].tolist())
        if self.alike is None:
            return binomial_evidence(rates)
        return beta_binomial_evidence(rates, tuple(self.alike[:, place].tolist()))

    @cached_property
    def place_logits(self) -> Floats:
        """Place x grade above 0: the prior logits of a document with as few impressions as the first knot."""
        from clickmix.mixtures.hierarchical.sharing import hats

        prior = np.array(self.prior)[:, : len(self.where)]
        return np.asarray(hats(np.log(np.array(self.positions)), np.array(self.where)) @ prior.T)

    def exposure(self, grade: int) -> list[tuple[float, float, float]]:
        """What log impressions add to a grade's logit: (from, to, slope) of each piece of a piecewise linear curve."""
        at = [0.0, *self.prior[grade - 1][len(self.where) :]]
        return [
            (low, high, (b - a) / (high - low))
            for low, high, a, b in zip(self.often[:-1], self.often[1:], at[:-1], at[1:], strict=True)
        ]
