"""The parts of a model file: groups and mixtures to JSON and back, every value checked for kind and range."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from clickmix.corrections.check import Check, Violation
from clickmix.corrections.mixture_based.cascade_patterns import Step
from clickmix.errors import FormatError
from clickmix.groups.places import Place
from clickmix.mixtures.group import Group, PlaceCounts
from clickmix.mixtures.mixture import Mixture, Verdict

MODEL_KIND = "clickmix model"
MODEL_VERSION = 2
LARGEST_COUNT = 2**63 - 1
MIXTURE_FIELDS = (
    "verdict",
    "weights",
    "rates",
    "variances",
    "standard_errors",
    "separation",
    "error",
    "log_likelihoods",
    "bic",
    "bic_one_rate",
    "own",
)


class _WrongError(Exception):
    """A value that cannot stand in a model file."""


@contextlib.contextmanager
def reading(where: str) -> Iterator[None]:
    """Turn anything wrong inside a model file into one clear error."""
    try:
        yield
    except _WrongError as error:
        raise FormatError(f"{where}: not a model this clickmix can use: {error}. Make the model again.") from None


def group_payload(group: Group) -> dict[str, Any]:
    """A group as JSON."""
    return {
        "places": [
            {
                "position": seen.place.position,
                "context": list(seen.place.context),
                "documents": seen.documents,
                "impressions": seen.impressions,
                "clicks": seen.clicks,
            }
            for seen in group.places
        ],
        "prior": list(group.prior),
        "mixture": _mixture_payload(group.mixture),
    }


def parse_groups(payload: dict[str, Any]) -> tuple[Group, ...]:
    """The groups of a model from JSON."""
    family, context = "gaussian" if payload["mixture"] == "gaussian" else "binomial", texts(payload, "context")
    groups = tuple(_parse_group(group, family, len(context)) for group in items(payload, "groups"))
    if not groups:
        raise _WrongError("a model without groups")
    grades = len(groups[0].prior)
    fitting = all(len(g.prior) == grades and len(g.mixture.rates) in (1, grades) for g in groups)
    if not fitting or (family == "gaussian" and grades != 2):
        raise _WrongError("groups with different numbers of grades")
    places = [seen.place for group in groups for seen in group.places]
    if len(set(places)) < len(places):
        raise _WrongError("a place in two groups")
    return groups


def step_payload(step: Step) -> dict[str, Any]:
    """The rule of a position as JSON."""
    return {
        "position": step.position,
        "frequent": list(step.frequent),
        "score": list(step.score),
        "bounds": list(step.bounds),
    }


def parse_steps(payload: dict[str, Any]) -> tuple[Step, ...]:
    """The rules of a walk from JSON: one digit more above each position, and the examination they belong to."""
    steps = tuple(_parse_step(step, above) for above, step in enumerate(items(payload, "steps")))
    if bool(steps) != (payload["examination"] != "pbm") or (steps and payload["context"] != ["above"]):
        raise _WrongError("an examination that does not fit the steps")
    if any(a.position >= b.position for a, b in itertools.pairwise(steps)):
        raise _WrongError("steps that are not in order")
    return steps


def _parse_step(payload: dict[str, Any], above: int) -> Step:
    fields(payload, "step", ("position", "frequent", "score", "bounds"))
    frequent = tuple(texts(payload, "frequent"))
    score, bounds = wholes(payload, "score"), wholes(payload, "bounds")
    if any(len(pattern) != above or set(pattern) - set("01234") for pattern in frequent) or len(score) != above + 1:
        raise _WrongError("patterns that do not fit their position")
    if sorted(bounds) != bounds:
        raise _WrongError("bounds that are not in order")
    return Step(whole(payload, "position", 1), frequent, tuple(score), tuple(bounds))


def parse_bics(payload: dict[str, Any]) -> dict[int, float]:
    """BIC by number of grades."""
    bics = payload["bics"]
    if not isinstance(bics, dict) or not all(key.isascii() and key.isdigit() for key in bics):
        raise _WrongError("bics, expected numbers of grades with their BIC")
    return {int(key): number(bics, key) for key in bics}


def check_payload(check: Check) -> dict[str, Any]:
    """A check as JSON."""
    return {
        "violation": str(check.violation),
        "statistic": check.statistic,
        "limit": check.limit,
        "evidence": check.evidence,
    }


def parse_checks(payload: dict[str, Any]) -> tuple[Check, ...]:
    """What was looked for, from JSON."""
    return tuple(_parse_check(check) for check in items(payload, "checks"))


def _parse_check(payload: dict[str, Any]) -> Check:
    fields(payload, "check", ("violation", "statistic", "limit", "evidence"))
    violation = Violation(choice(payload, "violation", tuple(map(str, Violation))))
    if not isinstance(payload["evidence"], str):
        raise _WrongError("evidence, expected text")
    return Check(violation, number(payload, "statistic"), number(payload, "limit"), payload["evidence"])


def _parse_group(payload: dict[str, Any], family: str, contexts: int) -> Group:
    fields(payload, "group", ("places", "prior", "mixture"))
    places = tuple(_parse_place(place, contexts) for place in items(payload, "places"))
    if not places:
        raise _WrongError("a group without places")
    prior = numbers(payload, "prior", 0, 1)
    if len(prior) < 2 or not all(0 < share < 1 for share in prior) or not math.isclose(sum(prior), 1, abs_tol=1e-9):
        raise _WrongError(f"prior {prior}, expected shares of grades, between 0 and 1, that add up to 1")
    return Group(places, _parse_mixture(payload["mixture"], family), tuple(prior))


def _parse_place(payload: dict[str, Any], contexts: int) -> PlaceCounts:
    fields(payload, "place", ("position", "context", "documents", "impressions", "clicks"))
    context = tuple(texts(payload, "context"))
    if len(context) != contexts:
        raise _WrongError("a place whose context does not fit the model's")
    counts = (whole(payload, key, least) for key, least in (("documents", 1), ("impressions", 1), ("clicks", 0)))
    return PlaceCounts(Place(whole(payload, "position", 1), context), *counts)


def _mixture_payload(mixture: Mixture) -> dict[str, Any]:
    return {
        "verdict": str(mixture.verdict),
        "weights": list(mixture.weights),
        "rates": list(mixture.rates),
        "variances": None if mixture.variances is None else list(mixture.variances),
        "standard_errors": None if mixture.standard_errors is None else list(mixture.standard_errors),
        "separation": mixture.separation,
        "error": mixture.error,
        "log_likelihoods": list(mixture.log_likelihoods),
        "bic": mixture.bic,
        "bic_one_rate": mixture.bic_one_rate,
        "own": mixture.own,
    }


def _parse_mixture(payload: Any, family: str) -> Mixture:
    fields(payload, "mixture", MIXTURE_FIELDS)
    weights, rates = numbers(payload, "weights", 0, 1), numbers(payload, "rates", -1, 2)
    variances = numbers(payload, "variances", 0) if payload["variances"] is not None else None
    errors = numbers(payload, "standard_errors", 0) if payload["standard_errors"] is not None else None
    parts = len(rates)
    if parts < 1 or len(weights) != parts or not math.isclose(sum(weights), 1, abs_tol=1e-9):
        raise _WrongError("weights and rates that do not fit together")
    if (variances is None) != (family == "binomial" or parts == 1):
        raise _WrongError("variances that do not fit the mixture")
    if (variances is not None and len(variances) != parts) or (errors is not None and len(errors) != min(parts, 2)):
        raise _WrongError("a number of variances or standard errors that does not fit the rates")
    if family == "binomial" and parts > 1 and not (rates[0] > 0 and rates == sorted(rates) and rates[-1] < 1):
        raise _WrongError("rates that are not in order between 0 and 1")
    return Mixture(
        family,
        Verdict(choice(payload, "verdict", tuple(map(str, Verdict)))),
        tuple(weights),
        tuple(rates),
        None if variances is None else tuple(variances),
        None if errors is None else tuple(errors),
        number(payload, "separation", 0, 1),
        _optional(payload, "error"),
        tuple(numbers(payload, "log_likelihoods")),
        _optional(payload, "bic"),
        _optional(payload, "bic_one_rate"),
        _optional(payload, "own"),
    )


def _optional(payload: Any, key: str) -> float | None:
    return None if payload[key] is None else number(payload, key)


def fields(payload: Any, what: str, names: Sequence[str]) -> None:
    """Refuse what is no object with exactly these fields."""
    if not isinstance(payload, dict):
        raise _WrongError(f"{what}, expected an object")
    if set(payload) != set(names):
        raise _WrongError(f"the fields of a {what} should be {', '.join(sorted(names))}")


def choice(payload: Any, key: str, among: Sequence[str]) -> str:
    """A text from a fixed list."""
    value = payload[key]
    if not isinstance(value, str) or value not in among:
        raise _WrongError(f"{key} {value!r}, expected one of {', '.join(among)}")
    return value


def number(payload: Any, key: str, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number within bounds."""
    return _number(payload[key], key, low, high)


def numbers(payload: Any, key: str, low: float = -math.inf, high: float = math.inf) -> list[float]:
    """A list of finite numbers within bounds."""
    return [_number(value, key, low, high) for value in _list(payload, key)]


def flag(payload: Any, key: str) -> bool:
    """True or false."""
    value = payload[key]
    if not isinstance(value, bool):
        raise _WrongError(f"{key} {value!r}, expected true or false")
    return value


def whole(payload: Any, key: str, low: int) -> int:
    """A whole number from `low` on."""
    value = payload[key]
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= LARGEST_COUNT:
        raise _WrongError(f"{key} {value!r}, expected a whole number from {low} on")
    return value


def wholes(payload: Any, key: str) -> list[int]:
    """A list of whole numbers."""
    values = _list(payload, key)
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        raise _WrongError(f"{key} {values!r}, expected whole numbers")
    return values


def texts(payload: Any, key: str) -> list[str]:
    """A list of texts."""
    values = _list(payload, key)
    if not all(isinstance(value, str) for value in values):
        raise _WrongError(f"{key} {values!r}, expected texts")
    return values


def items(payload: Any, key: str) -> list[dict[str, Any]]:
    """A list of objects."""
    values = _list(payload, key)
    if not all(isinstance(value, dict) for value in values):
        raise _WrongError(f"{key}, expected a list of objects")
    return values


def _list(payload: Any, key: str) -> list[Any]:
    if not isinstance(payload, dict) or not isinstance(payload.get(key), list):
        raise _WrongError(f"{key}, expected a list")
    return list(payload[key])


def _number(value: Any, key: str, low: float, high: float) -> float:
    real = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(value, int) and abs(value) > LARGEST_COUNT:
        raise _WrongError(f"{key}, a number too large")
    if not real or not math.isfinite(value) or not low <= value <= high:
        raise _WrongError(f"{key} {value!r}, expected a number from {low} to {high}")
    return float(value)
