"""Labels: what clicks say about each document's relevance, and about its next click.   Model, Cells -> Labels

P(grade g | all clicks of the query) = sum over nodes (u, v) of P(node | query) P(g | pattern, node)

If very many documents belong to queries that differ, most patterns occur once, but cells are of few kinds (place,
impressions, clicks). Queries with the same nodes are then looked at together: sums over the cells of their documents
are products of a sparse matrix and a small table. A query is looked at again until its nodes lie well.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from clickmix.mixtures.hierarchical.cells import Cells, Places
from clickmix.mixtures.hierarchical.climb import expected
from clickmix.mixtures.hierarchical.densities import BetaBinomial, Binomial, ClickDensity
from clickmix.mixtures.hierarchical.nodes import SHARES, SHARP, log_normal, on_grid, placed, seen_at, step_of
from clickmix.mixtures.hierarchical.problem import LARGEST, Expected, Model, Problem, rates
from clickmix.types import Floats, Ints

SURE = 0.95  # probability that a label's interval holds the document's grade


@dataclass(frozen=True)
class EntryLabels:
    """Per entry of the cells: mean relevance, and the interval that holds the relevance with probability 95%."""

    relevance: Floats
    low: Floats
    high: Floats


def label(model: Model, cells: Cells) -> EntryLabels:
    """The labels of every (query, pattern)."""
    return label_seen(*expected(model, cells))


def label_seen(problem: Problem, seen: Expected) -> EntryLabels:
    """The same, for cells that have been looked at."""
    return labels_of(grades_seen(problem, seen))


def grades_seen(problem: Problem, seen: Expected) -> Floats:
    """The probability of each grade, grade x entry."""
    return np.asarray(sum(weight * post for weight, post in looks(problem, seen)))


def labels_of(grades: Floats) -> EntryLabels:
    """Labels from the probability of each grade, grade x document."""
    x = np.linspace(0, 1, len(grades))
    relevance = np.clip(x @ grades, 0, 1)  # weights of many nodes can add up to a hair above 1
    below = np.cumsum(grades, axis=0)
    low, high = (x[np.minimum((below <= share).sum(axis=0), len(x) - 1)] for share in ((1 - SURE) / 2, (1 + SURE) / 2))
    return EntryLabels(relevance, np.minimum(low, relevance), np.maximum(high, relevance))


def predict(model: Model, cells: Cells, entry: Ints, place: Ints, impressions: Floats, clicks: Floats) -> Floats:
    """P(click) at the documents' next impression, by entry and place, given the cell's own impressions and clicks."""
    problem, seen = expected(model, cells)
    rates, scatter = problem.scattered_rates(model.vector)
    total = np.zeros(len(entry))
    of_query = cells.query[entry] if len(problem.nodes.at) > 1 else np.zeros(len(entry), dtype=np.int64)
    points = problem.nodes.at.shape[1]
    for i, (weight, post) in enumerate(looks(problem, seen)):
        node = problem.nodes.at[of_query, i % points]
        rate = rates[:, place, node]
        rate = problem.family.next_rate(rate, scatter, clicks, impressions)
        total += weight[entry] * (post[:, entry] * rate).sum(axis=0)
    return total


def looks(problem: Problem, seen: Expected) -> Iterator[tuple[Floats, Floats]]:
    """Per node: its weight for each entry's query, and the probability of each grade there (grade x entry)."""
    query = problem.cells.query if len(problem.nodes.at) > 1 else np.zeros(len(problem.cells.query), dtype=np.int64)
    for v in range(len(problem.nodes.v)):
        posterior = seen.posterior(v)
        for point in range(problem.nodes.at.shape[1]):
            yield seen.weight[query, point, v], np.take(posterior, problem.nodes.of_entry[:, point], axis=1)


DOCUMENTS = 16_384  # documents looked at together: their numbers fit into a fast cache
FINE_STEP = 0.01  # step of attention: about how well that of a query with thousands of clicks is known
POINTS, STRIDE = np.arange(-6, 7), 0.8  # more nodes, closer together and further out, than a fit needs
LOOKS, MOST_LOOKS = 3, 4  # looks at a query if shares differ (they are looked at last), and if they do not
EDGE = 0.05  # share of a query's weight at its first or last node; from there on, its attention may lie beyond


@dataclass(frozen=True)
class Documents:
    """The kind of every cell; cells are in order of query and document.

    `kinds` has a pattern of one cell for each kind. `first_cell` has one element per document and one for the end,
    `first_document` one per query and one for the end.
    """

    kinds: Cells
    kind: Ints
    first_cell: Ints
    first_document: Ints

    @classmethod
    def of_rows(cls, places: Places, query: Ints, document: Ints, place: Ints, n: Ints, c: Ints) -> Documents:
        """From rows (document, place, impressions, clicks) in order of document; `query` has one element for each."""
        # Number the distinct impressions and clicks: they may themselves be too large to combine.
        (shown, n), (clicked, c) = (np.unique(part, return_inverse=True) for part in (n, c))
        keys, kind = np.unique((place * len(shown) + n) * len(clicked) + c, return_inverse=True)
        every, rest = np.arange(len(keys)), keys // len(clicked)
        parts = shown[rest % len(shown)].astype(np.float64), clicked[keys % len(clicked)].astype(np.float64)
        kinds = Cells(places, every, rest // len(shown), *parts, every, every, np.ones(len(keys)), len(keys))
        return cls(kinds, kind, *(np.append(_starts(of), len(of)) for of in (document, query)))


@dataclass(frozen=True)
class _Nodes:
    """Where some queries are looked at: query x point of the grid (`at` numbers those in use), v; the table there.

    In its `last` look a query is labelled wherever its nodes lie. Only then are shares looked at.
    """

    query: Ints
    steps: Ints
    at: Ints
    stride: Ints
    v: Floats
    table: Floats  # column of the family x node x grade
    last: bool

    def part(self, some: slice) -> _Nodes:
        """The nodes of some of the queries."""
        return _Nodes(
            self.query[some], self.steps[some], self.at[some], self.stride[some], self.v, self.table, self.last
        )


def label_documents(model: Model, documents: Documents) -> EntryLabels:
    """The labels of all documents, in their order."""
    return labels_of(grades_of(model, documents))


def grades_of(model: Model, documents: Documents) -> Floats:
    """The probability of each grade, grade x document."""
    return _Labelling(model, documents).found()


class _Labelling:
    def __init__(self, model: Model, documents: Documents) -> None:
        self.model, self.documents = model, documents
        kinds, effects = documents.kinds, model.effects
        self.family: ClickDensity = BetaBinomial(kinds) if effects.appeal else Binomial(kinds)
        self.terms = list(zip(self.family.column.T, self.family.factor.T.astype(np.float64), strict=True))
        self.step = step_of(model.attention, appeal=effects.appeal, least=FINE_STEP)
        self.numbers = dict(zip(effects.numbers, model.numbers.tolist(), strict=True))
        self.scatter = np.array([self.numbers["d"], self.numbers["k"]]) if effects.appeal else np.zeros(0)
        places, (where, often) = len(model.places), model.knots
        width = len(where) + len(often) - 1
        eta = model.x[2 * places : 2 * places + (model.grades - 1) * width].reshape(-1, width)
        at = np.log(model.places.position)
        logits = np.stack([np.interp(at, where, row[: len(where)]) for row in eta])
        self.often = [(often, np.concatenate([[0.0], row[len(where) :]])) for row in eta]
        # Impressions of a kind, and impressions times the prior logits of its place, to be added up.
        self.shown = np.concatenate([np.ones((1, places)), logits])[:, kinds.place] * kinds.impressions
        self.grades = np.zeros((model.grades, int(documents.first_document[-1])))

    def found(self) -> Floats:
        """Look at all queries, and again at those whose nodes did not lie well."""
        effects, first = self.model.effects, self.documents.first_document
        query = np.arange(len(first) - 1)
        mean, deviation = np.zeros(len(query)), np.full(len(query), self.model.attention)
        looks = 1 if not effects.attention else LOOKS if effects.shares else MOST_LOOKS
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for number in range(looks):
                last = number + 1 == looks
                nodes = self._nodes(query, mean, deviation, last=last)
                parts = [nodes.part(some) for some in self._parts(nodes.query)]
                again = []
                for part, (there, known, well) in zip(parts, pool.map(self._look, parts), strict=True):
                    mean[part.query], deviation[part.query] = there, known
                    again.append(part.query[~well])
                query = np.sort(np.concatenate(again))
                if last or not len(query):
                    break
        return self.grades

    def _nodes(self, query: Ints, mean: Floats, deviation: Floats, *, last: bool) -> _Nodes:
        """Queries with the same nodes follow each other."""
        steps, stride = placed(mean[query], deviation[query], self.step, points=POINTS, stride=STRIDE)
        order = np.lexsort((steps[:, 0], stride))
        grid, at = on_grid(steps[order])
        shares = self.model.effects.shares and last
        return _Nodes(
            query[order],
            steps[order],
            at,
            stride[order],
            self.model.shares * SHARES if shares else np.zeros(1),
            self._table(grid * self.step),
            last,
        )

    def _table(self, u: Floats) -> Floats:
        x = self.model.x[: 2 * len(self.model.places)]
        link = self.model.effects.attention
        r = rates(x, self.numbers, u, grades=self.model.grades, link=link)[0]
        return self.family.table(r, self.scatter)

    def _parts(self, query: Ints) -> list[slice]:
        """Ranges of queries to look at together."""
        first = self.documents.first_document
        ends = np.cumsum(first[query + 1] - first[query])
        cuts = np.searchsorted(ends, np.arange(DOCUMENTS, ends[-1], DOCUMENTS)) + 1
        return [slice(a, b) for a, b in itertools.pairwise(np.unique([0, *cuts, len(query)]).tolist())]

    def _look(self, nodes: _Nodes) -> tuple[Floats, Floats, Ints]:
        """Where the queries' attention is seen to be, its deviation, and whether they have been labelled."""
        document, of_query = _ranges(self.documents.first_document, nodes.query)
        cell, of_document = _ranges(self.documents.first_cell, document)
        kind = self.documents.kind[cell]
        joint = self._log_prior(kind, of_document, nodes.v)[:, :, None, :]  # grade x document x point x v
        joint = joint + self._evidence(kind, of_document, of_query, nodes)[:, :, :, None]
        highest = joint.max(axis=0)
        joint -= highest
        posterior = np.exp(joint, out=joint)
        total = posterior.sum(axis=0)
        posterior /= total
        total = np.log(total, out=total) + highest
        begin = _starts(of_query)
        logs = np.add.reduceat(total, begin, axis=0)
        u = nodes.steps * self.step
        logs += log_normal(u, self.numbers.get("log s"))[:, :, None]
        logs += log_normal(nodes.v, self.numbers.get("log t") if len(nodes.v) > 1 else None)
        weight = np.exp(logs - logs.max(axis=(1, 2), keepdims=True))
        weight /= weight.sum(axis=(1, 2), keepdims=True)
        of_point = weight.sum(axis=2)
        mean, deviation = seen_at(u, nodes.stride * self.step, of_point) if u.shape[1] > 1 else (u[:, 0], u[:, 0])
        well = np.full(len(u), nodes.last) | self._well(u, nodes, of_point, mean, deviation)
        kept = well[of_query]
        weight = np.repeat(weight, np.diff(begin, append=len(document)), axis=0)
        self.grades[:, document[kept]] = np.einsum("gdpv,dpv->gd", posterior, weight)[:, kept]
        return mean, deviation, well

    def _well(self, u: Floats, nodes: _Nodes, weight: Floats, mean: Floats, deviation: Floats) -> Ints:
        """Whether nodes lie around where a query is seen to be, neither too far apart nor too close."""
        if self.model.effects.shares:
            return np.zeros(len(u), dtype=bool)
        stride = nodes.stride * self.step
        near = np.abs(mean - u[:, u.shape[1] // 2]) <= stride
        known = (deviation >= SHARP * stride) | (nodes.stride == 1)
        return np.asarray(near & known & (weight[:, [0, -1]] < EDGE).all(axis=1))

    def _log_prior(self, kind: Ints, of_document: Ints, v: Floats) -> Floats:
        """Grade x document x v."""
        begin = _starts(of_document)
        shown, *sums = (np.add.reduceat(column[kind], begin) for column in self.shown)
        logits = np.zeros((self.model.grades, len(begin), 1))
        for g, (total, (knots, added)) in enumerate(zip(sums, self.often, strict=True), start=1):
            logits[g, :, 0] = np.clip(total / shown + np.interp(np.log(shown), knots, added), -LARGEST, LARGEST)
        logits = logits + np.linspace(0, 1, len(logits))[:, None, None] * v
        highest = logits.max(axis=0)
        return np.asarray(logits - highest - np.log(np.exp(logits - highest).sum(axis=0)))

    def _evidence(self, kind: Ints, of_document: Ints, of_query: Ints, nodes: _Nodes) -> Floats:
        """Grade x document x point: log P(clicks)."""
        # Queries with the same nodes follow each other; `own` numbers distinct nodes.
        changed = np.diff(nodes.steps[:, [0, -1]], axis=0, prepend=nodes.steps[:1, [0, -1]] - 1).any(axis=1)
        own, points, documents = np.cumsum(changed) - 1, nodes.at.shape[1], len(of_query)
        table = nodes.table[:, nodes.at[changed]].reshape(self.family.columns * (own[-1] + 1), -1)
        found = np.zeros((documents, table.shape[1]))
        for column, factor in self.terms:
            weights = factor[kind]
            some = np.flatnonzero(weights)
            at = column[kind[some]] * (own[-1] + 1) + own[of_query[of_document[some]]]
            ends = np.cumsum(np.bincount(of_document[some], minlength=documents))
            ends = np.concatenate([[0], ends])
            found += csr_array((weights[some], at, ends), shape=(documents, len(table))) @ table
        return found.reshape(documents, points, -1).transpose(2, 0, 1)


def _starts(numbers: Ints) -> Ints:
    """Where each of ascending numbers first occurs."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def _ranges(first: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """The members of chosen ranges, and the range that each belongs to; range i goes from first[i] to first[i + 1]."""
    sizes = first[chosen + 1] - first[chosen]
    number = np.repeat(np.arange(len(chosen)), sizes)
    return np.arange(len(number)) + (first[chosen] - np.cumsum(sizes) + sizes)[number], number
