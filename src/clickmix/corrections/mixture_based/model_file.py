"""The model file: records with the shape of its JSON, and the checks that involve several fields.

    MixtureFit <-> ModelRecord <-> model.json
The names of fields are those of the file. Each version fixes them: 2 has only groups, 3 one model of the whole log, 4
the same with judgments, 5 with features, 6 with both.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Literal

from clickmix.corrections.check import Check, Violation
from clickmix.corrections.mixture import Examination, Prior
from clickmix.corrections.mixture_based.cascade_patterns import LEVELS, Step
from clickmix.corrections.mixture_based.featured import Featured
from clickmix.corrections.mixture_based.judged import Judged
from clickmix.errors import FormatError
from clickmix.groups.places import Place
from clickmix.log.not_logs import using_parameters
from clickmix.mixtures.kinds.kind import MIXTURES
from clickmix.mixtures.log_model import LogModel
from clickmix.mixtures.mixture import Group, Mixture, PlaceCounts, Verdict
from clickmix.storage.documents import PARAMETERS_KIND, THETA_KIND, document_kind, read_versions
from clickmix.storage.records import MismatchError, Range, decode

MODEL_KIND = "clickmix model"
GROUPS_VERSION, MODEL_VERSION, JUDGED_VERSION, FEATURED_VERSION, BOTH_VERSION = 2, 3, 4, 5, 6
Fitted = Literal["group by group", "all groups jointly"]
FITTED: Mapping[bool, Fitted] = {False: "group by group", True: "all groups jointly"}  # keys: `MixtureFit.jointly`
Share = Annotated[float, Range(0, 1)]
NotNegative = Annotated[float, Range(0)]
LEAST_RATE = sys.float_info.min  # the ratio of two smaller rates may be infinite
FromOne = Annotated[int, Range(1)]


@dataclass(frozen=True)
class PlaceRecord:
    """A place, and its counts."""

    position: FromOne
    context: tuple[str, ...]
    documents: FromOne
    impressions: FromOne
    clicks: Annotated[int, Range(0)]


@dataclass(frozen=True)
class MixtureRecord:
    """A mixture without its family, which the model names once for all of them."""

    verdict: Verdict
    weights: tuple[Share, ...]
    rates: tuple[Annotated[float, Range(-1, 2)], ...]
    variances: tuple[NotNegative, ...] | None
    standard_errors: tuple[NotNegative, ...] | None
    separation: Share
    error: float | None
    log_likelihoods: tuple[float, ...]
    bic: float | None
    bic_one_rate: float | None
    own: float | None

    def check_fields(self) -> None:
        """Weights add up to 1, and every list has as many numbers as there are rates."""
        parts = len(self.rates)
        if parts < 1 or len(self.weights) != parts or not math.isclose(sum(self.weights), 1, abs_tol=1e-9):
            raise MismatchError("expected a weight for each rate, adding up to 1", at="weights")
        if self.variances is not None and len(self.variances) != parts:
            raise MismatchError("expected one for each rate", at="variances")
        if self.standard_errors is not None and len(self.standard_errors) != min(parts, 2):
            raise MismatchError("expected one for the lowest and one for the highest rate", at="standard_errors")

    def check_family(self, family: str) -> None:
        """Only a Gaussian mixture of several rates has variances; binomial rates are in order between 0 and 1."""
        rates = self.rates
        if (self.variances is None) != (family == "binomial" or len(rates) == 1):
            raise MismatchError("these do not fit the model's mixture", at="variances")
        if (
            family == "binomial"
            and len(rates) > 1
            and not (rates[0] >= LEAST_RATE and sorted(rates) == [*rates] and rates[-1] < 1)
        ):
            raise MismatchError("expected rates in ascending order, between 0 and 1", at="rates")


@dataclass(frozen=True)
class GroupRecord:
    """A group: its places, the mixture fitted to them, and the share of each grade before any click."""

    places: tuple[PlaceRecord, ...]
    prior: tuple[Share, ...]
    mixture: MixtureRecord

    def check_fields(self) -> None:
        """There are places, and the prior is a distribution in which no grade is impossible."""
        if not self.places:
            raise MismatchError("expected at least one place", at="places")
        prior = self.prior
        if len(prior) < 2 or not (min(prior) > 0 and max(prior) < 1 and math.isclose(sum(prior), 1, abs_tol=1e-9)):
            raise MismatchError("expected shares of two or more grades, above 0, adding up to 1", at="prior")

    @classmethod
    def of(cls, group: Group) -> GroupRecord:
        """The record of a group."""
        places = (
            PlaceRecord(*seen.place, documents=seen.documents, impressions=seen.impressions, clicks=seen.clicks)
            for seen in group.places
        )
        mixture = MixtureRecord(**{field.name: getattr(group.mixture, field.name) for field in fields(MixtureRecord)})
        return cls(tuple(places), group.prior, mixture)

    def group(self, family: str) -> Group:
        """The group of this record."""
        places = (
            PlaceCounts(Place(seen.position, seen.context), seen.documents, seen.impressions, seen.clicks)
            for seen in self.places
        )
        return Group(tuple(places), Mixture(family, **vars(self.mixture)), self.prior)


@dataclass(frozen=True)
class CheckRecord:
    """A check of release 0.1, without the effect of a violation on labels."""

    violation: Violation
    statistic: float
    limit: float
    evidence: str


@dataclass(frozen=True, kw_only=True)
class ModelRecord:
    """A model of groups that were fitted one by one, or by release 0.1."""

    mixture: str
    prior: Prior
    context: tuple[str, ...]
    groups: tuple[GroupRecord, ...]
    fitted: Fitted
    moving: Share
    log_likelihoods: tuple[float, ...]
    bics: Mapping[int, float]
    shared: bool
    examination: Examination
    steps: tuple[Step, ...]
    joint_error: Share | None
    checks: tuple[CheckRecord, ...]

    @property
    def family(self) -> str:
        """The family of every group's mixture."""
        return "gaussian" if self.mixture == "gaussian" else "binomial"

    def fitted_groups(self) -> tuple[Group, ...]:
        """The groups, each with its mixture."""
        return tuple(group.group(self.family) for group in self.groups)

    def check_fields(self) -> None:
        """Groups fit the mixture, the context and each other, and steps fit the examination."""
        if self.mixture not in MIXTURES.names():
            raise MismatchError(f"found {self.mixture!r}, expected one of {', '.join(MIXTURES.names())}", at="mixture")
        self._check_groups()
        self._check_steps()

    def _check_groups(self) -> None:
        if not self.groups:
            raise MismatchError("expected at least one group", at="groups")
        grades = len(self.groups[0].prior)
        seen = set()
        for i, group in enumerate(self.groups):
            if (
                len(group.prior) != grades
                or len(group.mixture.rates) not in (1, grades)
                or (self.family == "gaussian" and grades != 2)
            ):
                raise MismatchError(
                    "expected the same number of grades in every group, and a rate for each", at=f"groups[{i}]"
                )
            try:
                group.mixture.check_family(self.family)
            except MismatchError as error:
                raise MismatchError(error.problem, at=f"groups[{i}].mixture.{error.at}") from None
            for j, place in enumerate(group.places):
                at = f"groups[{i}].places[{j}]"
                if len(place.context) != len(self.context):
                    raise MismatchError(
                        f"expected {len(self.context)} values, as in the model's context", at=f"{at}.context"
                    )
                if (place.position, place.context) in seen:
                    raise MismatchError("this place is already in another group", at=at)
                seen.add((place.position, place.context))

    def _check_steps(self) -> None:
        if bool(self.steps) != (self.examination != "pbm") or (self.steps and self.context != ("above",)):
            raise MismatchError("these do not fit the examination", at="steps")
        for above, step in enumerate(self.steps):
            digits = {str(level) for level in range(LEVELS + 1)}
            if any(len(pattern) != above or set(pattern) - digits for pattern in step.frequent):
                raise MismatchError(f"expected {above} digits from 0 to {LEVELS} each", at=f"steps[{above}].frequent")
            if len(step.score) != above + 1:
                raise MismatchError(f"expected {above + 1} numbers", at=f"steps[{above}].score")
            if sorted(step.bounds) != [*step.bounds]:
                raise MismatchError("expected ascending numbers", at=f"steps[{above}].bounds")
        positions = [0, *(step.position for step in self.steps)]
        if any(a >= b for a, b in itertools.pairwise(positions)):
            raise MismatchError("expected ascending positions from 1", at="steps")


@dataclass(frozen=True, kw_only=True)
class LogModelRecord(ModelRecord):
    """The model of a whole log: a group for each of its places."""

    model: LogModel
    checks: tuple[Check, ...]  # type: ignore[assignment]  # with the effect of a violation on labels

    def fitted_groups(self) -> tuple[Group, ...]:
        """The groups; the model says how much documents differ in appeal."""
        alike = self.model.alike
        if alike is None:
            return super().fitted_groups()
        return tuple(
            replace(group, mixture=replace(group.mixture, family="beta-binomial", alike=tuple(of_group.tolist())))
            for group, of_group in zip(super().fitted_groups(), alike.T, strict=True)
        )

    def check_fields(self) -> None:
        """There is a group for each place of the model, with as many grades."""
        super().check_fields()
        if len(self.groups) != len(self.model.positions) or len(self.groups[0].prior) != self.model.grades:
            raise MismatchError("expected a group for each place, and as many grades", at="model")


@dataclass(frozen=True, kw_only=True)
class JudgedModelRecord(LogModelRecord):
    """The same, with what judgments say about the clicks, and the judged documents."""

    judged: Judged


@dataclass(frozen=True, kw_only=True)
class FeaturedModelRecord(LogModelRecord):
    """The same, with what features say, and the trees that say it."""

    featured: Featured

    def check_fields(self) -> None:
        """The model fitted with features has the same places and grades."""
        super().check_fields()
        with_features = self.featured.model
        if (with_features.positions, with_features.contexts) != (self.model.positions, self.model.contexts):
            raise MismatchError("expected the places of the model without features", at="featured.model")
        if with_features.grades != self.model.grades:
            raise MismatchError("expected the grades of the model without features", at="featured.model")


@dataclass(frozen=True, kw_only=True)
class JudgedFeaturedModelRecord(FeaturedModelRecord, JudgedModelRecord):
    """The same, with both: judgments weigh evidence whose prior features know."""


# Fields with the same name in a MixtureFit.
SAME_FIELDS = tuple(field.name for field in fields(ModelRecord) if field.name not in ("groups", "fitted", "checks"))
OF_WHOLE_LOGS = ("model", "judged", "featured")  # the same for models of whole logs; not all of them have the last two


RECORDS: Mapping[int, type[ModelRecord]] = {
    GROUPS_VERSION: ModelRecord,
    MODEL_VERSION: LogModelRecord,
    JUDGED_VERSION: JudgedModelRecord,
    FEATURED_VERSION: FeaturedModelRecord,
    BOTH_VERSION: JudgedFeaturedModelRecord,
}


def read_model(path: str | Path) -> ModelRecord:
    """Read a model file; refuse a damaged one."""
    if (kind := document_kind(Path(path))) in (PARAMETERS_KIND, THETA_KIND):
        raise FormatError(f"{path}: {kind}, not a {MODEL_KIND}. {using_parameters(Path(path), kind)}")
    version, payload = read_versions(path, kind=MODEL_KIND, versions=tuple(RECORDS))
    try:
        return decode(RECORDS[version], payload)
    except MismatchError as error:
        raise FormatError(f"{path}: not a model this clickmix can use: {error}. Make the model again.") from None
