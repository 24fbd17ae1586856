"""A fitted mixture correction: groups, their mixtures and priors.   Counts -> Labels

    logit relevance = prior + sum over a document's cells of log P(clicks | relevant) / P(clicks | not relevant)
Computed by SQL where the counts live, with the few numbers of the fit as a small inline table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from scipy.special import expit, logit

from clickmix.corrections.group import Group, PlaceCounts
from clickmix.corrections.labels import Labels
from clickmix.corrections.model import (
    MODEL_KIND,
    MODEL_VERSION,
    choice,
    fields,
    group_payload,
    number,
    numbers,
    pair,
    parse_groups,
    reading,
    texts,
)
from clickmix.counts import Counts
from clickmix.errors import InputError, SettingError
from clickmix.files import document_text, read_document, write_document
from clickmix.groups import Place, nearest, read_places
from clickmix.mixtures import Verdict
from clickmix.mixtures.evidence import EVIDENCE_SQL
from clickmix.mixtures.families import FAMILIES
from clickmix.mixtures.fit import Prior
from clickmix.sql import listed, literal, name

MODEL_FIELDS = ("mixture", "prior", "context", "groups", "fitted", "moving", "log_likelihoods", "pull")
FITTED = ("each group by itself", "all groups jointly")


@dataclass(frozen=True)
class CellEvidence:
    """What a document's impressions and clicks at one place say about it."""

    place: str
    impressions: int
    clicks: int
    log_ratio: float
    verdict: Verdict


@dataclass(frozen=True)
class Explanation:
    """A document's label, and what it is made of: logit relevance = prior_logit + the sum of its cells' log ratios."""

    relevance: float
    prior_logit: float
    cells: tuple[CellEvidence, ...]


@dataclass(frozen=True)
class MixtureFit:
    """A fitted correction: the groups with their mixtures. Labels any counts with the same context columns.

    `moving` is the share of documents seen at several places; where it is high all groups were fitted `jointly`, with
    `log_likelihoods` on the way. Else `pull` is what clear groups said of the others' prior logits: mean, deviation.
    """

    mixture: str
    prior: Prior
    context: tuple[str, ...]
    groups: tuple[Group, ...]
    jointly: bool
    moving: float
    log_likelihoods: tuple[float, ...] = ()
    pull: tuple[float, float] | None = None

    @property
    def separation(self) -> float:
        """The share of the uncertainty about relevance that clicks remove: the groups' mean, weighted by documents."""
        documents = sum(group.documents for group in self.groups)
        return sum(group.mixture.separation * group.documents for group in self.groups) / documents

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
                choice(payload, "mixture", tuple(FAMILIES)),
                "flat" if choice(payload, "prior", ("position", "flat")) == "flat" else "position",
                tuple(texts(payload, "context")),
                parse_groups(payload),
                choice(payload, "fitted", FITTED) == FITTED[1],
                number(payload, "moving", 0, 1),
                tuple(numbers(payload, "log_likelihoods")),
                pair(payload, "pull"),
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
            "pull": None if self.pull is None else list(self.pull),
        }

    def label(self, counts: Counts) -> Labels:
        """One relevance per query and document, computed where the counts live."""
        if counts.context != self.context:
            raise SettingError(
                f"the model's context is {_named(self.context)}, the counts have {_named(counts.context)}. "
                "Count the log with the model's context columns."
            )
        return Labels(counts, self._query(counts))

    def explain(self, counts: Counts, query_id: object, doc_id: object) -> Explanation:
        """The cells of one document and what each says about its relevance."""
        keys = listed(map(name, counts.keys))
        rows = counts.engine.rows(
            f"SELECT {keys}, impressions, clicks FROM {counts.table} WHERE CAST(query_id AS VARCHAR) = "
            f"{literal(str(query_id))} AND CAST(doc_id AS VARCHAR) = {literal(str(doc_id))} ORDER BY {keys}"
        )
        if not rows:
            raise InputError(f"query {query_id!r}, document {doc_id!r}: not in the log. Check the ids.")
        cells, prior, shown = [], 0.0, 0
        for position, *context, n, c in rows:
            place = Place(position, tuple(context))
            group, seen = self._standing_for(place)
            ratio = float(group.mixture.evidence.log_ratio(n, c))
            cells.append(CellEvidence(place.describe(self.context), n, c, ratio, group.verdict(seen)))
            prior, shown = prior + n * float(logit(group.prior)), shown + n
        prior_logit = prior / shown
        relevance = float(expit(prior_logit + sum(cell.log_ratio for cell in cells)))
        return Explanation(relevance, prior_logit, tuple(cells))

    @cached_property
    def _known(self) -> dict[Place, tuple[Group, PlaceCounts]]:
        return {seen.place: (group, seen) for group in self.groups for seen in group.places}

    def unseen(self, counts: Counts) -> tuple[str, ...]:
        """The places of some counts that the fit has not seen, in words; the nearest ones stand in for them."""
        return tuple(p.describe(self.context) for p in read_places(counts) if p not in self._known)

    def _standing_for(self, place: Place) -> tuple[Group, PlaceCounts]:
        """The group of a place; of one that was not seen in the fit, the nearest one's."""
        if place in self._known:
            return self._known[place]
        places = list(self._known)
        return self._known[places[nearest(place, places)]]

    def statement(self, table: str) -> str:
        """SQL for the labels of a table of counts that lives elsewhere, at the places that the fit has seen."""
        return self._labels(tuple(self._known), table, ("position", *self.context), stay=False)

    def _query(self, counts: Counts) -> str:
        return self._labels(read_places(counts), counts.table, counts.keys, stay=self._all_stay(counts))

    def _labels(self, places: Sequence[Place], table: str, key_names: Sequence[str], *, stay: bool) -> str:
        """The labels as SQL. Sums of decimals, because sums of floats depend on the order rows happen to come in."""
        numbers = list(self.groups[0].mixture.evidence.numbers)
        # Names of ours for the keys: a context column may be called prior.
        keys = [f"k{i}" for i in range(len(key_names))]
        renamed = listed(f"{name(key)} AS {alias}" for key, alias in zip(key_names, keys, strict=True))
        rows = listed(f"({listed(row)})" for row in self._parameters(places, numbers))
        evidence = (
            EVIDENCE_SQL[self.mixture].replace("clicks", "cells.clicks").replace("impressions", "cells.impressions")
        )
        # Where every document has one cell nothing needs adding up: half the time, the same numbers.
        total, grouping = ("", "") if stay else ("sum", "GROUP BY query_id, doc_id")
        return (
            f"WITH parameters({listed([*keys, 'prior', *numbers])}) AS (VALUES {rows}) "
            "SELECT query_id, doc_id, 1 / (1 + exp(-least(greatest(log_odds, -700), 700))) AS relevance, "
            "impressions, clicks FROM (SELECT query_id, doc_id, "
            f"CAST({total}(CAST(cells.impressions * prior AS DECIMAL(38, 12))) AS DOUBLE) / {total}(cells.impressions) "
            f"+ CAST({total}(CAST({evidence} AS DECIMAL(38, 12))) AS DOUBLE) AS log_odds, "
            f"CAST({total}(cells.impressions) AS BIGINT) AS impressions, "
            f"CAST({total}(cells.clicks) AS BIGINT) AS clicks "
            f"FROM (SELECT query_id, doc_id, {renamed}, impressions, clicks FROM {table}) AS cells "
            f"JOIN parameters USING ({listed(keys)}) {grouping}) ORDER BY query_id, doc_id"
        )

    def _all_stay(self, counts: Counts) -> bool:
        """Whether every document of these counts was seen at one place only; looked for where the fit suggests it."""
        several = f"SELECT 1 FROM {counts.table} GROUP BY query_id, doc_id HAVING count(*) > 1"
        return self.moving == 0 and not counts.engine.rows(f"SELECT 1 FROM ({several}) LIMIT 1")

    def _parameters(self, places: Sequence[Place], numbers: Sequence[str]) -> list[list[str]]:
        """The rows of the small inline table: a place, its prior logit and the numbers of its evidence."""
        rows = []
        for place in places:
            group, _ = self._standing_for(place)
            evidence = group.mixture.evidence.numbers
            values = [float(logit(group.prior)), *(evidence[key] for key in numbers)]
            texts = [literal(value) for value in place.context]
            rows.append([str(place.position), *texts, *(f"CAST({value!r} AS DOUBLE)" for value in values)])
        return rows


def _named(context: Sequence[str]) -> str:
    return ", ".join(context) if context else "no context columns"
