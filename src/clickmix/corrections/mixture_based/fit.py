"""A fitted mixture correction: groups, their mixtures and priors.   Counts -> Labels

A document's cells add up under one relevance: corrections/label_sql.py has the formula.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np

from clickmix.corrections.check import Check
from clickmix.corrections.labels import IN_ORDER, Labels
from clickmix.corrections.mixture import Examination, Prior
from clickmix.corrections.mixture_based.cascade_patterns import Step
from clickmix.corrections.mixture_based.cascade_walk import ABOVE, check_lists, walk_again
from clickmix.corrections.mixture_based.label_sql import labels_query, last_start, one_cell_query, patterns_query
from clickmix.corrections.mixture_based.model_file import (
    MODEL_KIND,
    MODEL_VERSION,
    check_payload,
    choice,
    fields,
    flag,
    group_payload,
    number,
    numbers,
    parse_bics,
    parse_checks,
    parse_groups,
    parse_steps,
    reading,
    step_payload,
    texts,
)
from clickmix.counts.counts import Counts
from clickmix.engines.sql import listed, literal, name
from clickmix.errors import InputError, SettingError
from clickmix.groups.places import Place, nearest, nearest_changes, read_places
from clickmix.mixtures.group import Group, PlaceCounts
from clickmix.mixtures.kinds.kind import MIXTURES
from clickmix.mixtures.mixture import Verdict
from clickmix.mixtures.problem import mean_grade
from clickmix.storage.files import document_text, read_document, write_document

MODEL_FIELDS = (
    "mixture",
    "prior",
    "context",
    "groups",
    "fitted",
    "moving",
    "log_likelihoods",
    "bics",
    "shared",
    "examination",
    "steps",
    "joint_error",
    "checks",
)
FITTED = ("group by group", "all groups jointly")


@dataclass(frozen=True)
class CellEvidence:
    """What a document's impressions and clicks at one place say about it."""

    place: str
    impressions: int
    clicks: int
    log_ratios: tuple[float, ...]
    verdict: Verdict


@dataclass(frozen=True)
class Explanation:
    """A document's label, and what it is made of.

    For each grade above 0, beside grade 0: the log odds of its prior and the log ratios of its cells.
    """

    relevance: float
    prior_logits: tuple[float, ...]
    cells: tuple[CellEvidence, ...]

    @property
    def log_odds(self) -> tuple[float, ...]:
        """Of each grade above 0 beside grade 0: prior and cells added up."""
        columns = zip(self.prior_logits, *(cell.log_ratios for cell in self.cells), strict=True)
        return tuple(sum(column) for column in columns)


@dataclass(frozen=True)
class MixtureFit:
    """A fitted correction: the groups with their mixtures. Labels any counts with the same context columns.

    `moving` is the share of documents seen at several places; where it is high all groups were fitted `jointly`, with
    `log_likelihoods` on the way; else they were `shared` if neighbours learned from each other. `bics` has the BIC of
    every number of grades that was looked at. `joint_error` is the error to expect of labels as a joint fit knows it,
    and `checks` tell what was looked for that a mixture cannot explain.
    """

    mixture: str
    prior: Prior
    context: tuple[str, ...]
    groups: tuple[Group, ...]
    jointly: bool
    moving: float
    log_likelihoods: tuple[float, ...] = ()
    bics: Mapping[int, float] = field(default_factory=dict)
    shared: bool = False
    joint_error: float | None = None
    checks: tuple[Check, ...] = ()
    examination: str = "pbm"
    steps: tuple[Step, ...] = ()

    def __repr__(self) -> str:
        """In short: all of it would fill a screen."""
        return (
            f"MixtureFit({self.mixture} mixture, {len(self.groups)} groups, {self.grades} grades, "
            f"error to expect {self.error:.3f})"
        )

    @property
    def grades(self) -> int:
        """How many grades of relevance the log was found, or told, to have."""
        return len(self.groups[0].prior)

    @property
    def separation(self) -> float:
        """The share of the uncertainty about relevance that clicks remove: the groups' mean, weighted by documents."""
        documents = sum(group.documents for group in self.groups)
        return sum(group.mixture.separation * group.documents for group in self.groups) / documents

    @property
    def error(self) -> float:
        """The root mean squared error to expect of labels.

        Of documents that stay, the groups' mean, weighted by documents; of those that move, what all their places say.
        """
        if self.joint_error is not None:
            return self.joint_error
        documents = sum(group.documents for group in self.groups)
        return math.sqrt(sum(group.squared_error * group.documents for group in self.groups) / documents)

    def to_json(self) -> str:
        """The text of a model file."""
        return document_text(kind=MODEL_KIND, version=MODEL_VERSION, payload=self._payload())

    def write(self, path: str | Path) -> None:
        """Write a model file, whole or not at all."""
        write_document(path, kind=MODEL_KIND, version=MODEL_VERSION, payload=self._payload())

    @classmethod
    def read(cls, path: str | Path) -> MixtureFit:
        """Read a model file; a damaged one is refused."""
        payload = read_document(path, kind=MODEL_KIND, version=MODEL_VERSION)
        with reading(str(path)):
            fields(payload, "model", MODEL_FIELDS)
            return cls(
                choice(payload, "mixture", MIXTURES.names()),
                "flat" if choice(payload, "prior", ("position", "flat")) == "flat" else "position",
                tuple(texts(payload, "context")),
                parse_groups(payload),
                choice(payload, "fitted", FITTED) == FITTED[1],
                number(payload, "moving", 0, 1),
                tuple(numbers(payload, "log_likelihoods")),
                parse_bics(payload),
                flag(payload, "shared"),
                None if payload["joint_error"] is None else number(payload, "joint_error", 0, 1),
                parse_checks(payload),
                choice(payload, "examination", get_args(Examination)),
                parse_steps(payload),
            )

    def _payload(self) -> dict[str, Any]:
        return {
            "mixture": self.mixture,
            "prior": self.prior,
            "context": list(self.context),
            "groups": [group_payload(group) for group in self.groups],
            "fitted": FITTED[self.jointly],
            "moving": self.moving,
            "log_likelihoods": list(self.log_likelihoods),
            "bics": {str(grades): bic for grades, bic in self.bics.items()},
            "shared": self.shared,
            "examination": self.examination,
            "steps": [step_payload(step) for step in self.steps],
            "joint_error": self.joint_error,
            "checks": [check_payload(check) for check in self.checks],
        }

    def label(self, counts: Counts) -> Labels:
        """One relevance per query and document, computed where the counts live."""
        cells = self._in_groups(counts)
        places = self._standing_for_all(cells)
        added_up = labels_query(places, cells.table, cells.keys)
        if self.moving or cells is not counts:
            return Labels(counts, added_up)
        # If no document moved, nothing needs adding up: a label for each impressions and clicks at a place is enough.
        labelled = counts.engine.keep(patterns_query(places, counts.histogram, counts.keys))
        return Labels(counts, added_up, one_cell_query(counts.table, labelled, counts.keys))

    def _in_groups(self, counts: Counts) -> Counts:
        """The counts with the model's context columns; those of a cascade are found by walking down the lists."""
        if self.steps and counts.context != (ABOVE,):
            check_lists(counts, self.examination)
            return walk_again(counts, self.steps, lambda c: labels_query(self._standing_for_all(c), c.table, c.keys))
        if counts.context != self.context:
            raise SettingError(
                f"the model's context is {_named(self.context)}, the counts have {_named(counts.context)}. "
                "Count the log with the model's context columns."
            )
        return counts

    def explain(self, counts: Counts, query_id: object, doc_id: object) -> Explanation:
        """The cells of one document and what each says about its relevance."""
        counts = self._in_groups(counts)
        keys = listed(map(name, counts.keys))
        rows = counts.engine.rows(
            f"SELECT {keys}, impressions, clicks FROM {counts.table} WHERE CAST(query_id AS VARCHAR) = "
            f"{literal(str(query_id))} AND CAST(doc_id AS VARCHAR) = {literal(str(doc_id))} ORDER BY {keys}"
        )
        if not rows:
            raise InputError(f"query {query_id!r}, document {doc_id!r}: not in the log. Check the ids.")
        cells, prior, shown = [], np.zeros(self.grades - 1), 0
        for position, *context, n, c in rows:
            place = Place(position, tuple(context))
            group, seen = self._standing_for(place)
            ratios = group.mixture.evidence(grades=self.grades).log_ratios(n, c)
            cells.append(CellEvidence(place.describe(self.context), n, c, tuple(ratios.tolist()), group.verdict(seen)))
            prior, shown = prior + n * np.array(group.prior_logits), shown + n
        made = Explanation(0.0, tuple((prior / shown).tolist()), tuple(cells))
        logs = np.array([0.0, *made.log_odds])
        posterior = np.exp(logs - np.logaddexp.reduce(logs))
        return replace(made, relevance=float(mean_grade(posterior)))

    @cached_property
    def _known(self) -> dict[Place, tuple[Group, PlaceCounts]]:
        return {seen.place: (group, seen) for group in self.groups for seen in group.places}

    def unseen(self, counts: Counts) -> tuple[str, ...]:
        """The places of some counts that the fit has not seen, in words; the nearest ones stand in for them."""
        if self.steps:
            return ()  # every position and every pattern falls into one of its groups
        return tuple(p.describe(self.context) for p in read_places(counts) if p not in self._known)

    def _standing_for(self, place: Place) -> tuple[Group, PlaceCounts]:
        """The group of a place; of one that was not seen in the fit, the nearest one's."""
        if place in self._known:
            return self._known[place]
        places = list(self._known)
        return self._known[places[nearest(place, places)]]

    def statement(self, table: str) -> str:
        """SQL for the labels of a table of counts that lives elsewhere.

        Positions that the fit has not seen are read as the nearest it has; contexts that it has not seen are left out.
        """
        if self.steps:
            raise SettingError("a model of dcm or ubm walks down result lists, which no single statement does.")
        starts = nearest_changes(self._known)
        contexts = dict.fromkeys(place.context for place in self._known)
        places = (Place(position, context) for context in contexts for position in starts)
        keys = ("position", *self.context)
        position = f"{last_start(starts)} AS position"
        columns = listed(["query_id", "doc_id", position, *map(name, self.context)])
        cells = f"(SELECT {columns}, impressions, clicks FROM {table})"
        groups = {place: self._standing_for(place)[0] for place in places}
        return f"{labels_query(groups, cells, keys)} {IN_ORDER}"

    def _standing_for_all(self, counts: Counts) -> dict[Place, Group]:
        return {place: self._standing_for(place)[0] for place in read_places(counts)}


def _named(context: Sequence[str]) -> str:
    return ", ".join(context) if context else "no context columns"
