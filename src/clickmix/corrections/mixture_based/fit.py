"""A fitted mixture correction: groups, their mixtures and priors.   Counts -> Labels

A document has one relevance, and the evidence of its cells adds up: label_sql.py has the formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from clickmix.corrections.check import Check
from clickmix.corrections.click_rates import (
    PlacedCells,
    fitted_to,
    grouped_click_rates,
    model_click_rates,
    model_relevance,
)
from clickmix.corrections.correction import IN_ORDER, Labels, of_query
from clickmix.corrections.mixture import Examination, Prior
from clickmix.corrections.mixture_based.cascade_patterns import Step
from clickmix.corrections.mixture_based.cascade_walk import ABOVE, check_lists, walk_again
from clickmix.corrections.mixture_based.featured import Featured, FeatureFile, learn_features, open_feature_file
from clickmix.corrections.mixture_based.judged import Judged
from clickmix.corrections.mixture_based.label_sql import (
    NOT_ONE_STATEMENT,
    Numbers,
    labels_query,
    last_start,
    one_cell_query,
    patterns_query,
)
from clickmix.corrections.mixture_based.model_file import (
    BOTH_VERSION,
    FEATURED_VERSION,
    FITTED,
    GROUPS_VERSION,
    JUDGED_VERSION,
    MODEL_KIND,
    MODEL_VERSION,
    OF_WHOLE_LOGS,
    RECORDS,
    SAME_FIELDS,
    CheckRecord,
    GroupRecord,
    ModelRecord,
    read_model,
)
from clickmix.counts.counts import Counts, TakesCounts
from clickmix.counts.judgments import Grades
from clickmix.drawn import Drawn, Plot, report
from clickmix.engines.sql import listed, literal, name
from clickmix.errors import InputError, SettingError
from clickmix.groups.places import Place, checked_place, nearest, nearest_changes, read_places
from clickmix.mixtures.log_model import LogModel
from clickmix.mixtures.mixture import Evidence, Group, PlaceCounts, Verdict
from clickmix.storage.documents import document_text, write_document
from clickmix.storage.records import encode
from clickmix.types import Floats, Ints


@dataclass(frozen=True)
class CellEvidence:
    """A document's impressions and clicks at one place, and their evidence."""

    place: str
    impressions: int
    clicks: int
    log_ratios: tuple[float, ...]
    verdict: Verdict


@dataclass(frozen=True)
class LabelEvidence:
    """A document's label, its prior, and the evidence of its cells.

    `prior_logits` and each cell's `log_ratios` compare every grade above 0 with grade 0.
    """

    relevance: float
    prior_logits: tuple[float, ...]
    cells: tuple[CellEvidence, ...]

    @property
    def log_odds(self) -> tuple[float, ...]:
        """The log odds of each grade above 0 against grade 0: the sum of prior and cells."""
        columns = zip(self.prior_logits, *(cell.log_ratios for cell in self.cells), strict=True)
        return tuple(sum(column) for column in columns)


@dataclass(frozen=True)
class MixtureFit(Drawn, TakesCounts):
    """A fitted mixture correction: groups with their mixtures. It labels any counts with the same context columns.

    `moving` is the share of documents seen at several places. `model` is the model of the whole log, if one was
    fitted: groups were then fitted `jointly`, neighbours `shared` strength, and `joint_error` is the expected error of
    labels. If each group was fitted separately, `bics` has the BIC of every number of grades that was tried.
    `checks` are the results of testing the assumptions on the log. `judged` is what judgments say about clicks,
    `featured` what features say about documents, and `features` is where to find the features of the log's documents.

    >>> from clickmix import Counts, MixtureCorrection
    >>> counts = Counts.from_arrays(range(80), [0] * 80, [1] * 80, [50] * 80, [25] * 20 + [3] * 60)
    >>> MixtureCorrection().fit(counts)
    MixtureFit(auto mixture, 1 group, 2 grades, expected error 0.000)
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
    examination: Examination = "pbm"
    steps: tuple[Step, ...] = ()
    model: LogModel | None = None
    judged: Judged | None = None
    featured: Featured | None = None
    features: FeatureFile | None = field(default=None, repr=False, compare=False)  # of the log; not in model files

    def __repr__(self) -> str:
        """A summary; the whole fit would fill a screen."""
        return (
            f"MixtureFit({self.mixture} mixture, {len(self.groups)} group{'s' * (len(self.groups) != 1)}, "
            f"{self.grades} grades, "
            f"expected error {self.error:.3f})"
        )

    @property
    def grades(self) -> int:
        """The number of grades of relevance."""
        return len(self.groups[0].prior)

    @property
    def separation(self) -> float:
        """The share of the uncertainty about relevance that clicks remove, averaged over documents."""
        documents = sum(group.documents for group in self.groups)
        return sum(group.mixture.separation * group.documents for group in self.groups) / documents

    @property
    def error(self) -> float:
        """The expected root mean squared error of labels.

        For documents that stay, the mean over groups, weighted by documents; for others, from all their places.
        """
        if self.joint_error is not None:
            return self.joint_error
        documents = sum(group.documents for group in self.groups)
        return math.sqrt(sum(group.squared_error * group.documents for group in self.groups) / documents)

    def to_json(self) -> str:
        """The text of a model file."""
        return document_text(kind=MODEL_KIND, version=self._version, payload=self._payload())

    def write(self, path: str | Path) -> None:
        """Write a model file, atomically."""
        write_document(path, kind=MODEL_KIND, version=self._version, payload=self._payload())

    @classmethod
    def read(cls, path: str | Path) -> MixtureFit:
        """Read a model file; a damaged one is refused."""
        record = read_model(path)
        same = {name: getattr(record, name) for name in SAME_FIELDS}
        checks = tuple(Check(**vars(check)) for check in record.checks)
        jointly = record.fitted == FITTED[True]
        known: dict[str, Any] = {name: getattr(record, name, None) for name in OF_WHOLE_LOGS}
        return cls(groups=record.fitted_groups(), jointly=jointly, checks=checks, **known, **same)

    @property
    def _version(self) -> int:
        if self.model is None:
            return GROUPS_VERSION
        if self.featured:
            return BOTH_VERSION if self.judged else FEATURED_VERSION
        return JUDGED_VERSION if self.judged else MODEL_VERSION

    def _payload(self) -> dict[str, Any]:
        same = {name: getattr(self, name) for name in SAME_FIELDS}
        same |= {"groups": tuple(map(GroupRecord.of, self.groups)), "fitted": FITTED[self.jointly]}
        if self.model is not None:
            known = {name: value for name in ("checks", *OF_WHOLE_LOGS) if (value := getattr(self, name)) is not None}
            return dict(encode(RECORDS[self._version](**same, **known)))
        checks = (CheckRecord(each.violation, each.statistic, each.limit, each.evidence) for each in self.checks)
        return dict(encode(ModelRecord(checks=tuple(checks), **same)))

    def label(self, counts: Counts) -> Labels:
        """One relevance per query and document, computed where the counts live."""
        cells = self.in_groups(counts)
        if self._featured is not None:
            from clickmix.corrections.mixture_based.label_featured import label_featured  # scipy loads slowly

            return label_featured(self._featured, cells, self.number_of, self.features, self.judged)
        if self.model is not None and self.judged is not None:
            from clickmix.corrections.mixture_based.label_judged import label_judged

            return label_judged(self.model, cells, self.number_of, self.judged)
        if self.model is not None and self.model.queries_differ:
            from clickmix.corrections.mixture_based.label_queries import label_queries

            return label_queries(self.model, cells, self.number_of)
        numbers = self._numbers(read_places(cells))
        added_up = labels_query(numbers, cells.table, cells.keys)
        if self.moving or cells is not counts:
            return Labels(counts, added_up)
        # If no document moved, nothing needs adding up: one label per impressions and clicks at a place is enough.
        labelled = counts.engine.keep(patterns_query(numbers, counts.histogram, counts.keys))
        return Labels(counts, added_up, one_cell_query(counts.table, labelled, counts.keys))

    def with_judgments(self, counts: Counts, grades: Grades) -> MixtureFit:
        """The same fit, with its evidence weighed by judgments of documents in these counts, if that helps."""
        if self._featured is not None:
            from clickmix.corrections.mixture_based.judged_featured import judge_featured

            judged = judge_featured(self._featured, counts, self.number_of, self.features, grades)
        else:
            from clickmix.corrections.mixture_based.judged import judge_log

            judged = judge_log(self.model, counts, self.number_of, grades)
        return replace(self, judged=judged)

    def with_features(self, counts: Counts, features: FeatureFile) -> MixtureFit:
        """The same fit, with a prior learned from features, if that helps; judgments come later, and weigh it."""
        if self.model is None:
            return self
        featured, error = learn_features(self.model, counts, self.number_of, features)
        error = self.joint_error if error is None else error
        return replace(self, featured=featured, features=features, joint_error=error, judged=None)

    def using_features(self, features: Any) -> MixtureFit:
        """The same fit, which looks up the features of a log's documents here; a model file has none."""
        if self.featured is None:
            raise SettingError("features: this model was fitted without features. Leave them out.")
        return replace(self, features=open_feature_file(features))

    @property
    def _featured(self) -> Featured | None:
        """What features say, if the labels use it."""
        return self.featured if self.featured is not None and self.featured.helps else None

    def in_groups(self, counts: Counts) -> Counts:
        """The counts with the model's context columns; for a cascade, found by walking down the lists."""
        if self.steps and counts.context != (ABOVE,):
            check_lists(counts, self.examination)
            return walk_again(
                counts, self.steps, lambda c: labels_query(self._numbers(read_places(c)), c.table, c.keys)
            )
        if counts.context != self.context:
            raise SettingError(
                f"the model's context is {_named(self.context)}, the counts have {_named(counts.context)}. "
                "Count the log with the model's context columns."
            )
        return counts

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats | None:
        """The probability of a click in each asked cell; None for a cascade, whose places are not the cells'."""
        return None if self.steps else self.rates_in_groups(seen, asked)

    def rates_in_groups(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        """The same for cells at the fit's own places, also those of a cascade."""
        numbers = self._place_numbers(seen)
        if self.model is not None:
            return model_click_rates(self.model, numbers, seen, asked)
        return grouped_click_rates([self.groups[number] for number in numbers], seen, asked)

    def fitted_again(self, seen: PlacedCells) -> MixtureFit:
        """The same model with its parameters fitted to these cells, starting from their values; nothing is rechosen."""
        return replace(self, model=fitted_to(self._whole_log, self._place_numbers(seen), seen), checks=())

    def relevance(self, seen: PlacedCells) -> Floats:
        """The label of every document that was seen, from these cells alone; 0 for others."""
        return model_relevance(self._whole_log, self._place_numbers(seen), seen)

    def usual_click_rates(self, seen: PlacedCells) -> Floats:
        """How often documents of the same grades are clicked at each cell, whatever the cell's own clicks."""
        return model_click_rates(self._whole_log, self._place_numbers(seen), seen, seen, usual=True)

    @property
    def _whole_log(self) -> LogModel:
        if self.model is None:
            raise SettingError("groups were fitted separately; only a model of the whole log can be fitted again.")
        return self.model

    def _place_numbers(self, cells: PlacedCells) -> Ints:
        """The number of the group used for each place of the cells."""
        return np.array([self._standing_for(place)[0] for place in cells.places])

    def usual_rates(self, place: Place) -> tuple[float, float] | None:
        """How often people click documents of the lowest and of the highest grade there; None if clicks say nothing."""
        if len(checked_place(place).context) != len(self.context):
            return None  # a cascade's place depends on what is above it
        mixture = self.groups[self._standing_for(place)[0]].mixture
        return (mixture.rates[0], mixture.rates[-1]) if mixture.informative else None

    def plot(self) -> Plot:
        """The report's figures: click rates of relevant and other documents by position, and how much clicks tell."""
        plot: Plot = report().plot_fit(self)
        return plot

    def evidence(self, counts: Counts, query_id: object, doc_id: object) -> LabelEvidence:
        """A document's label in parts: its prior and the evidence of each of its cells."""
        counts = self.in_groups(counts)
        keys = listed(map(name, counts.keys))
        rows = counts.engine.rows(
            f"SELECT {keys}, impressions, clicks FROM {counts.table} WHERE {of_query(query_id)} "
            f"AND CAST(doc_id AS VARCHAR) = {literal(str(doc_id))} ORDER BY {keys}"
        )
        if not rows:
            raise InputError(f"query {query_id!r}, document {doc_id!r}: not in the log. Check the ids.")
        cells, prior, shown = [], np.zeros(self.grades - 1), 0
        for position, *context, n, c in rows:
            place = Place(position, tuple(context))
            number, seen = self._standing_for(place)
            logits, evidence = self._of_group(number)
            ratios = tuple(evidence.log_ratios(n, c).tolist())
            verdict = self.groups[number].verdict(seen)
            cells.append(CellEvidence(place.describe(self.context), n, c, ratios, verdict))
            prior, shown = prior + n * np.array(logits), shown + n
        query = f"(SELECT * FROM {counts.table} WHERE {of_query(query_id)})"
        labels = self.label(Counts(counts.engine, query, counts.context))
        own = (labels.query_id.astype(str) == str(query_id)) & (labels.doc_id.astype(str) == str(doc_id))
        (relevance,) = labels.relevance[own]
        added = [self._exposure(k, shown) for k in range(1, self.grades)]
        return LabelEvidence(float(relevance), tuple((prior / shown + added).tolist()), tuple(cells))

    @cached_property
    def _known(self) -> dict[Place, tuple[int, PlaceCounts]]:
        return {seen.place: (number, seen) for number, group in enumerate(self.groups) for seen in group.places}

    def unseen(self, counts: Counts) -> tuple[str, ...]:
        """The places of these counts that the fit has not seen, in words; labels use the nearest known ones."""
        if self.steps:
            return ()  # every position and every pattern falls into one of its groups
        return tuple(p.describe(self.context) for p in read_places(counts) if p not in self._known)

    def _standing_for(self, place: Place) -> tuple[int, PlaceCounts]:
        """The number of a place's group; for a place the fit has not seen, the nearest one's."""
        if place in self._known:
            return self._known[place]
        places = list(self._known)
        return self._known[places[nearest(place, places)]]

    def number_of(self, place: Place) -> int:
        """The number of the group that a place belongs to, or is nearest to."""
        return self._standing_for(place)[0]

    def statement(self, table: str) -> str:
        """SQL for the labels of a table of counts that is stored elsewhere.

        Unseen positions use the nearest known one; unseen contexts are left out.
        """
        differ = self.model is not None and self.model.queries_differ
        for is_so, reason in zip((self.steps, self.judged, self._featured, differ), NOT_ONE_STATEMENT, strict=True):
            if is_so:
                raise SettingError(reason)
        starts = nearest_changes(self._known)
        contexts = dict.fromkeys(place.context for place in self._known)
        places = (Place(position, context) for context in contexts for position in starts)
        keys = ("position", *self.context)
        position = f"{last_start(starts)} AS position"
        columns = listed(["query_id", "doc_id", position, *map(name, self.context)])
        cells = f"(SELECT {columns}, impressions, clicks FROM {table})"
        return f"{labels_query(self._numbers(places), cells, keys)} {IN_ORDER}"

    def _numbers(self, places: Iterable[Place]) -> Numbers:
        """What labels of documents at these places need."""
        exposure = () if self.model is None else [self.model.exposure(k) for k in range(1, self.grades)]
        return Numbers({place: self._of_group(self._standing_for(place)[0]) for place in places}, exposure)

    def _exposure(self, grade: int, shown: int) -> float:
        """What this many impressions add to the prior logit of a grade."""
        pieces = () if self.model is None else self.model.exposure(grade)
        return sum(slope * (min(max(math.log(shown), low), high) - low) for low, high, slope in pieces)

    def prior_at(self, number: int, impressions: int) -> tuple[float, ...]:
        """The prior of a document's grades, if it was shown this often in the group of this number."""
        if self.model is None:
            return self.groups[number].prior
        added = [self._exposure(grade, impressions) for grade in range(1, self.grades)]
        logits = np.concatenate([[0.0], self.model.place_logits[number] + added])
        return tuple(np.exp(logits - np.logaddexp.reduce(logits)).tolist())

    def _of_group(self, number: int) -> tuple[Sequence[float], Evidence]:
        group = self.groups[number]
        if self.model is None:
            return group.prior_logits, group.mixture.evidence(grades=self.grades)
        return self.model.place_logits[number].tolist(), self.model.evidence(number)


def _named(context: Sequence[str]) -> str:
    return ", ".join(context) if context else "no context columns"
