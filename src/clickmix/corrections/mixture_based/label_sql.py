"""The labels of a mixture as SQL that runs where the counts are, with the numbers of the fit as an inline table.

    l_k = log P(grade k) / P(grade 0) + sum over a document's cells of log P(clicks | grade k) / P(clicks | grade 0)
    relevance = sum_k k/(G-1) e^(l_k) / sum_k e^(l_k)
The prior's part is the mean over the document's cells, weighted by impressions, plus a piecewise linear function of the
logarithm of all its impressions.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clickmix.engines.sql import aliased, aliases, listed, literal
from clickmix.groups.places import Place
from clickmix.mixtures.mixture import EVIDENCE_SQL, NOTHING, Evidence

SURE = 0.95  # how often the interval of a label contains the document's grade
# Why labels are not one statement: lists, judgments, features, queries that differ.
NOT_ONE_STATEMENT = (
    "a model of dcm or ubm cannot be written as one SQL statement. Label the log with clickmix label.",
    "a model with judgments cannot be written as one SQL statement: judged documents are looked up by id. "
    "Label the log with clickmix label, or fit it without --judgments.",
    "a model with features cannot be written as one SQL statement: trees score every document. "
    "Label the log with clickmix label, or fit it without --features.",
    "in this model queries differ in attention or in their share of relevant documents, which one SQL "
    "statement cannot find out. Label the log with clickmix label, or fit it with --mixture binomial.",
)
Pieces = Sequence[tuple[float, float, float]]  # from, to, slope


@dataclass(frozen=True)
class Numbers:
    """What labels need from a fit: prior logits and evidence of each place, what log impressions add to each grade."""

    places: Mapping[Place, tuple[Sequence[float], Evidence]]
    exposure: Sequence[Pieces] = ()

    @property
    def family(self) -> str:
        """The family of every place's evidence."""
        return next(iter(self.places.values()))[1].family

    @property
    def grades(self) -> int:
        """How many grades there are."""
        return len(next(iter(self.places.values()))[0]) + 1


def labels_query(numbers: Numbers, table: str, keys: Sequence[str]) -> str:
    """One row per query and document. Sums of decimals, because sums of floats depend on the order of rows."""
    cells = f"(SELECT query_id, doc_id, {aliased(keys)}, impressions, clicks FROM {table})"
    return _labels(numbers, cells, keys, of=["query_id", "doc_id"], total="sum")


def patterns_query(numbers: Numbers, patterns: str, keys: Sequence[str]) -> str:
    """One row per place, impressions and clicks of `Counts.histogram`: the label of a document with one such cell."""
    return _labels(numbers, patterns, keys, of=aliases(keys), total="")


def one_cell_query(table: str, labelled: str, keys: Sequence[str]) -> str:
    """The labels of documents with one cell each, from a table that `patterns_query` has filled."""
    return (
        "SELECT query_id, doc_id, relevance, impressions, clicks, low, high "
        f"FROM (SELECT query_id, doc_id, {aliased(keys)}, impressions, clicks FROM {table}) AS cells "
        f"JOIN {labelled} USING ({listed([*aliases(keys), 'impressions', 'clicks'])})"
    )


def _labels(numbers: Numbers, cells: str, keys: Sequence[str], *, of: Sequence[str], total: str) -> str:
    """Labels of cells, added up with `total` over those with the same `of`.

    Log odds of each grade, their exponentials, then relevance and its interval.
    """
    grades = numbers.grades
    logs = ["0", *(f"l_{k}" for k in range(1, grades))]
    # The largest exponential is 1, and no other so small that an engine would complain.
    powers = [f"exp(greatest({log} - l_highest, -700)) AS e_{k}" for k, log in enumerate(logs)]
    sum_of_powers = " + ".join(f"e_{k}" for k in range(grades))
    relevance = " + ".join(f"e_{k} * {k / (grades - 1)!r}" for k in range(1, grades))
    low, high = (_quantile(share, sum_of_powers, grades) for share in ((1 - SURE) / 2, (1 + SURE) / 2))
    return (
        f"WITH {_numbers_table(numbers, keys)}, "
        f"odds AS (SELECT {listed(of)}, {_odds(numbers, total)} FROM {cells} AS cells "
        f"JOIN parameters USING ({listed(aliases(keys))}){f' GROUP BY {listed(of)}' if total else ''}), "
        f"logs AS (SELECT *, greatest({listed(logs)}) AS l_highest FROM odds), "
        f"powers AS (SELECT {listed(of)}, impressions, clicks, {listed(powers)} FROM logs), "
        f"labelled AS (SELECT {listed(of)}, ({relevance}) / ({sum_of_powers}) AS relevance, "
        f"impressions, clicks, {low} AS low, {high} AS high FROM powers) "
        # A mean can lie just beyond a quantile: if a grade has 98% of the probability, both quantiles are there.
        f"SELECT {listed(of)}, relevance, impressions, clicks, least(low, relevance) AS low, "
        "greatest(high, relevance) AS high FROM labelled"
    )


def last_start(starts: Sequence[int]) -> str:
    """SQL for the last of `starts` up to `position`; the first start is 1.

    >>> last_start([1, 2, 3])
    'least(position, 3)'
    >>> last_start([1, 2, 7])
    'CASE WHEN position < 7 THEN least(position, 2) ELSE least(position, 7) END'
    """
    jumps = [(before, after) for before, after in itertools.pairwise(starts) if after > before + 1]
    whens = " ".join(f"WHEN position < {after} THEN least(position, {before})" for before, after in jumps)
    last = f"least(position, {starts[-1]})"
    return f"CASE {whens} ELSE {last} END" if jumps else last


def _quantile(share: float, total: str, grades: int) -> str:
    """The lowest grade at or below which more than this share of the probability lies."""
    sums = [" + ".join(f"e_{j}" for j in range(k + 1)) for k in range(grades - 1)]
    whens = [f"WHEN {upto} > {share!r} * ({total}) THEN {k / (grades - 1)!r}" for k, upto in enumerate(sums)]
    return f"CAST(CASE {' '.join(whens)} ELSE 1 END AS DOUBLE)"


def _numbers_table(numbers: Numbers, keys: Sequence[str]) -> str:
    """A row per place: for each grade above 0 its prior logit and the numbers of its evidence."""
    columns = [f"{key}_{k}" for k in range(1, numbers.grades) for key in ("prior", *NOTHING[numbers.family])]
    rows: list[str] = []
    for place, (priors, evidence) in numbers.places.items():
        values = [
            value
            for prior, of_grade in zip(priors, evidence.numbers, strict=True)
            for value in (prior, *of_grade.values())
        ]
        # The types of the first row are those of all; a cast in each of 20,000 rows would take seconds to plan.
        doubles = map(_double, values) if rows else (f"CAST({value!r} AS DOUBLE)" for value in values)
        texts = [str(place.position), *map(literal, place.context), *doubles]
        rows.append(f"({listed(texts)})")
    return f"parameters({listed([*aliases(keys), *columns])}) AS (VALUES {listed(rows)})"


def _double(value: float) -> str:
    """A number that engines read as a double, and not as a decimal of a few digits, because it has an exponent."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _odds(numbers: Numbers, total: str) -> str:
    """Impressions, clicks, and the log odds l_k of each grade above 0."""
    shown = f"{total}(cells.impressions)"
    odds = [
        f"CAST({total}(CAST(cells.impressions * prior_{k} AS DECIMAL(38, 12))) AS DOUBLE) / {shown} "
        f"+ CAST({total}(CAST({_evidence(numbers.family, k)} AS DECIMAL(38, 12))) AS DOUBLE)"
        f"{_exposure(numbers, k, shown)} AS l_{k}"
        for k in range(1, numbers.grades)
    ]
    return f"CAST({shown} AS BIGINT) AS impressions, CAST({total}(cells.clicks) AS BIGINT) AS clicks, {listed(odds)}"


def _exposure(numbers: Numbers, k: int, shown: str) -> str:
    """What the impressions of a document add to grade k."""
    pieces = numbers.exposure[k - 1] if numbers.exposure else ()
    log = f"ln(CAST({shown} AS DOUBLE))"
    return "".join(
        f" + {slope!r} * (least(greatest({log}, {low!r}), {high!r}) - {low!r})" for low, high, slope in pieces
    )


def _evidence(family: str, k: int) -> str:
    """The log ratio of grade k in a cell."""
    text = EVIDENCE_SQL[family].replace("clicks", "cells.clicks").replace("impressions", "cells.impressions")
    for key in NOTHING[family]:
        text = re.sub(rf"\b{key}\b", f"{key}_{k}", text)
    return text
