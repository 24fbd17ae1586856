"""The likelihood of a log under the model, its slope and its information.   Cells, Nodes -> Problem

Document d of query q has grade g (relevance x = g / (G-1)) with probability
    P(g | d, v) = softmax_g(eta_g(d) + v x),   eta_g(d) = hat functions of its mean log position and log impressions
and its cells at places k are clicked at the rate r_gk(u), with b = (1-x) p_0k + x p_1k:
    examination   b min(e^u, a / p_1k)         odds   expit(logit b + u)
u ~ N(0, s^2) and v ~ N(0, t^2) belong to the query; nodes integrate over them.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.sparse import block_array, csr_array, diags_array, vstack
from scipy.special import expit

from clickmix.mixtures.hierarchical.cells import Cells, Places
from clickmix.mixtures.hierarchical.densities import BetaBinomial, Binomial, ClickDensity
from clickmix.mixtures.hierarchical.nodes import Nodes, key_cells, log_normal
from clickmix.mixtures.hierarchical.sharing import Walk, prior_columns
from clickmix.types import Floats, Ints

Link = Literal["examination", "odds"]
State = Literal["fitted", "still climbing", "one rate explains the clicks", "no clicks", "every impression clicked"]

LOWEST_RATE = 1e-12
LARGEST = 30.0  # logit
FEW_COLUMNS = 160  # columns of scores; up to this many, dense products are faster
INFORMATION_WORK = 3e5  # products of scores summed for the information; of more, a sample


@dataclass(frozen=True)
class Effects:
    """What differs: queries in attention (by a link) and in their share of relevant documents, documents in appeal."""

    attention: Link | None = None
    shares: bool = False
    appeal: bool = False

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the parameters beyond places and prior, in the order of their vector."""
        attention = ("log s", "cap") if self.attention == "examination" else ("log s",) if self.attention else ()
        return (*attention, *(("log t",) if self.shares else ()), *(("d", "k") if self.appeal else ()))


@dataclass(frozen=True)
class Model:
    """A fitted model: `x` has the places' logits, prior logits and the contexts' curves; `numbers` are the effects'.

    Its `vector` has the logits of only those places that have their own rates.
    """

    places: Places
    knots: tuple[Floats, Floats]
    grades: int
    effects: Effects
    x: Floats
    numbers: Floats
    walk: Walk
    errors: Floats  # standard errors of x, those of rates' logits first
    trace: tuple[float, ...] = ()
    converged: bool = False
    chosen: tuple[Any, ...] = ()
    outliers: int = 0  # queries that were left out
    share: float = 1.0  # of the queries, that were fitted
    state: State = "fitted"  # any other: labels say little or nothing

    def number(self, name: str) -> float:
        """A parameter of the effects."""
        return float(self.numbers[self.effects.numbers.index(name)])

    @property
    def vector(self) -> Floats:
        """All parameters."""
        return np.concatenate([self.places.spread.free(self.x), self.numbers])

    @property
    def attention(self) -> float:
        """Standard deviation of the queries' attention."""
        return float(np.exp(self.number("log s"))) if self.effects.attention else 0.0

    @property
    def shares(self) -> float:
        """Standard deviation of the queries' share of relevant documents, in logits."""
        return float(np.exp(self.number("log t"))) if self.effects.shares else 0.0

    @property
    def appeal(self) -> float:
        """Correlation of clicks on a document beyond its grade, at a rate of 1: 1 / (1 + m), where m = e^d."""
        return float(expit(-self.number("d"))) if self.effects.appeal else 0.0

    @property
    def rates(self) -> Floats:
        """Lowest and highest rate of each place."""
        return np.asarray(expit(self.x[: 2 * len(self.places)]).reshape(2, -1))


def rates(
    x: Floats, numbers: dict[str, float], u: Floats, *, grades: int, link: Link | None
) -> tuple[Floats, tuple[Floats, Floats], Floats]:
    """Rates (grade x place x node) at logits x of the lowest and highest; their slopes in these and in the cap."""
    low, high = expit(np.clip(x, -LARGEST, LARGEST)).reshape(2, -1)
    g = np.linspace(0, 1, grades)[:, None]
    b, by_low, by_high = (1 - g) * low + g * high, (1 - g) * low * (1 - low), g * high * (1 - high)
    b, by_low, by_high = b[:, :, None], by_low[:, :, None], by_high[:, :, None]
    if link is None:
        r = np.clip(b, LOWEST_RATE, 1 - LOWEST_RATE)
        return r, (by_low, by_high), np.zeros_like(r)
    if link == "odds":
        r = b * np.exp(u) / (1 + b * np.expm1(u))
        r = np.clip(r, LOWEST_RATE, 1 - LOWEST_RATE)
        fast = r * (1 - r) / np.maximum(b * (1 - b), LOWEST_RATE)
        return r, (by_low * fast, by_high * fast), np.zeros_like(r)
    cap, top = expit(numbers["cap"]), np.maximum(low, high)[:, None]
    capped = np.exp(u) * top > cap
    factor = np.where(capped, cap / top, np.exp(u))
    r = np.clip(b * factor, LOWEST_RATE, 1 - LOWEST_RATE)
    fall = np.where(capped, r * (1 - top), 0)  # a capped rate falls with the top rate it is capped by
    of_high = (high >= low)[:, None]
    return (
        r,
        (by_low * factor - np.where(of_high, 0, fall), by_high * factor - np.where(of_high, fall, 0)),
        np.where(capped, r * (1 - cap), 0),
    )


@dataclass(frozen=True)
class Expected:
    """The log-likelihood, its slope, and what the information needs."""

    value: float
    slope: Floats
    graded: Floats  # grade x key, documents
    prior: Floats  # grade x pattern, at v = 0
    weight: Floats  # query x point x v
    chances: Floats  # grade x key: prior at v = 0 times likelihood, on each key's own scale
    tilt: Floats  # v x grade: by how much v changes the odds of a grade
    total: Floats  # key x v, log-likelihood
    of_query: Floats  # log-likelihood of each; of all together if they are alike

    def posterior(self, v: int = 0) -> Floats:
        """Grade x key at a node of v."""
        graded = self.chances * self.tilt[v][:, None]
        return np.asarray(graded / graded.sum(axis=0))


class Problem:
    """Cells looked at in nodes: a function of the vector (x, numbers)."""

    def __init__(
        self, cells: Cells, knots: tuple[Floats, Floats], nodes: Nodes, *, grades: int, effects: Effects
    ) -> None:
        self.cells, self.grades, self.effects = cells, grades, effects
        named = tuple(knot.tobytes() for knot in knots)
        self.hats = cells.keep(named, lambda: prior_columns(cells, knots))
        self._of_hats = cells.keep((*named, "turned"), lambda: self.hats.T.tocsr())
        kind = BetaBinomial if effects.appeal else Binomial
        self.family: ClickDensity = cells.keep(kind, lambda: kind(cells))
        self.places, self.spread = len(cells.places), cells.places.spread
        self.first_prior = 2 * len(self.spread.knots)
        self.priors = self.hats.shape[1] * (grades - 1)
        self.g = np.linspace(0, 1, grades)
        self._evidence_of_patterns = cells.keep((kind, "patterns"), self._of_patterns)
        self._look_at(nodes)

    def at(self, nodes: Nodes) -> Problem:
        """The same cells looked at in other nodes."""
        other = copy(self)
        other._look_at(nodes)
        return other

    def _look_at(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.evidence = self._of_keys(self._evidence_of_patterns)
        self._to_columns, self._to_keys = self.evidence.T, nodes.sums.T  # made once, as making them takes time
        self._one_node = len(nodes.u) == 1
        self._keys_of_patterns = np.bincount(nodes.pattern, minlength=self.cells.patterns)
        self._first_keys = np.cumsum(self._keys_of_patterns) - self._keys_of_patterns
        self.__dict__.pop("_key_cells", None)

    def _of_patterns(self) -> csr_array:
        """Pattern x column of the family: what each column is multiplied by."""
        cells, factor = self.cells, self.family.factor
        cell, term = np.nonzero(factor)
        sizes = np.bincount(cells.pattern[cell], minlength=cells.patterns)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        weights = factor[cell, term].astype(np.float64)
        return csr_array((weights, self.family.column[cell, term], ends), shape=(cells.patterns, self.family.columns))

    def _of_keys(self, of_patterns: csr_array) -> csr_array:
        """Key x (column, node)."""
        nodes = self.nodes
        if len(nodes.u) == 1:  # keys are patterns
            return of_patterns
        rows = of_patterns[nodes.pattern]
        column = rows.indices * len(nodes.u) + np.repeat(nodes.node, np.diff(rows.indptr))
        return csr_array(
            (rows.data, column, rows.indptr), shape=(len(nodes.pattern), self.family.columns * len(nodes.u))
        )

    @cached_property
    def _key_cells(self) -> tuple[Ints, Ints]:
        return key_cells(self.cells, self.nodes.pattern)

    def split(self, vector: Floats) -> tuple[Floats, Floats, dict[str, float]]:
        """Parameters of places, prior logits (knot x grade above 0), and the effects' numbers by name."""
        first, names = self.first_prior, self.effects.numbers
        eta = vector[first : first + self.priors].reshape(self.grades - 1, -1).T
        free, numbers = np.split(vector, [len(vector) - len(names)])
        return free, eta, dict(zip(names, numbers.tolist(), strict=True))

    def prior(self, eta: Floats) -> Floats:
        """Grade x pattern, at v = 0."""
        logits = np.zeros((self.grades, self.hats.shape[0]))
        logits[1:] = np.clip(self.hats @ eta, -LARGEST, LARGEST).T
        if self.cells.score is not None:
            logits += self.g[:, None] * self.cells.score
        logits -= logits.max(axis=0)
        prior = np.exp(logits, out=logits)
        prior /= prior.sum(axis=0)
        return prior

    def _rates(self, vector: Floats) -> tuple[Floats, tuple[Floats, Floats], Floats, Floats]:
        free, _, numbers = self.split(vector)
        x = self.spread.logits(free)
        scatter = np.array([numbers["d"], numbers["k"]]) if self.effects.appeal else np.zeros(0)
        return *rates(x, numbers, self.nodes.u, grades=self.grades, link=self.effects.attention), scatter

    def scattered_rates(self, vector: Floats) -> tuple[Floats, Floats]:
        """Rates (grade x place x node), and the parameters of how clicks scatter around them."""
        r, _, _, scatter = self._rates(vector)
        return r, scatter

    def expect(self, vector: Floats, *, slope: bool = True) -> Expected:
        """The log-likelihood (without terms that no parameter changes) and its slope, by Fisher's identity.

        With the share v, the odds of grade g are e^(v x_g) times those at v = 0. So sums over grades at all v are
        products of small matrices, and only those at v = 0 take exponentials.
        """
        _, eta, numbers = self.split(vector)
        rated = self._rates(vector)
        r, _, _, scatter = rated
        prior, tilt = self.prior(eta), np.exp(self.nodes.v[:, None] * self.g)
        chances = np.ascontiguousarray((self.evidence @ self.family.table(r, scatter).reshape(-1, self.grades)).T)
        highest = chances.max(axis=0)
        chances -= highest
        np.exp(chances, out=chances)
        chances *= prior if self._one_node else np.repeat(prior, self._keys_of_patterns, axis=1)
        same = len(tilt) == 1  # share v in all queries: sums over v are those at v = 0
        sums = chances.sum(axis=0)[:, None] if same else np.einsum("gk,vg->kv", chances, tilt)
        total = np.log(sums)
        total += highest[:, None]
        usual = np.ones((1, 1)) if same else np.einsum("gp,vg->pv", prior, tilt)
        if self.effects.shares:
            total -= np.log(usual)[self.nodes.pattern]
        weight, of_query = self._integrated(total, numbers)
        value, nothing = float(of_query.sum()), np.zeros(0)
        if not slope:
            return Expected(value, nothing, nothing, prior, weight, chances, tilt, total, of_query)
        if same:
            graded = chances * (self._to_keys @ weight.ravel() / sums[:, 0])
            expected = prior * self.cells.multiplicity
        else:
            documents = self._to_keys @ weight.reshape(-1, len(tilt))  # key x v
            graded = chances * np.einsum("kv,vg->gk", documents / sums, tilt)
            expected = prior * np.einsum("pv,vg->gp", self._by_pattern(documents.T).T / usual, tilt)
        slopes = self._slope(vector, rated, graded, self._by_pattern(graded[1:]) - expected[1:], weight)
        return Expected(value, slopes, graded, prior, weight, chances, tilt, total, of_query)

    def _integrated(self, total: Floats, numbers: dict[str, float]) -> tuple[Floats, Floats]:
        """Weights of the nodes of each query, and its log-likelihood."""
        nodes, shape = self.nodes, (*self.nodes.at.shape, len(self.nodes.v))
        sums = (nodes.sums @ total).reshape(shape)
        if sums.size == 1:
            return np.ones(shape), sums.ravel()
        logs = sums + (nodes.log_width + log_normal(nodes.u[nodes.at], numbers.get("log s")))[:, :, None]
        logs += nodes.log_width_v + log_normal(nodes.v, numbers.get("log t"))
        highest = logs.max(axis=(1, 2), keepdims=True)
        weight = np.exp(logs - highest)
        of_query = weight.sum(axis=(1, 2), keepdims=True)
        return weight / of_query, (highest + np.log(of_query)).ravel()

    def by_query(self, seen: Expected) -> Floats:
        """The log-likelihood of each query, even if all are alike."""
        cells = self.cells
        if len(self.nodes.at) > 1:
            return seen.of_query
        return np.bincount(cells.query, cells.documents * seen.total[cells.entry, 0], cells.queries)

    def _slope(self, vector: Floats, rated: Any, graded: Floats, off_prior: Floats, weight: Floats) -> Floats:
        """From documents by grade and key, and how many more of each pattern have a grade than expected."""
        free, _, numbers = self.split(vector)
        r, (by_low, by_high), by_cap, scatter = rated
        weights = (self._to_columns @ np.ascontiguousarray(graded.T)).reshape(-1, len(self.nodes.u), self.grades)
        of_rate, of_scatter = self.family.slope(weights, r, scatter)
        found: dict[str, float] = {"cap": float((of_rate * by_cap).sum())}
        for name, at in (("log s", self.nodes.u[self.nodes.at][:, :, None]), ("log t", self.nodes.v)):
            if name in numbers:
                found[name] = float((weight * (at**2 / np.exp(2 * numbers[name]) - 1)).sum())
        if self.effects.appeal:
            found["d"], found["k"] = of_scatter.tolist()
        ends = [(of_rate * by).sum(axis=(0, 2)) for by in (by_low, by_high)]
        slope = np.zeros(len(vector))
        slope[: len(free)] = self.spread.pulled(free, self.spread.logits(free), np.concatenate(ends))
        slope[self.first_prior : self.first_prior + self.priors] = (self._of_hats @ off_prior.T).T.ravel()
        slope[len(vector) - len(self.effects.numbers) :] = [found[name] for name in self.effects.numbers]
        return slope

    def _by_pattern(self, keys: Floats) -> Floats:
        """Sums over the keys of each pattern; keys are the last dimension, in order of pattern."""
        return keys if self._one_node else np.asarray(np.add.reduceat(keys, self._first_keys, axis=1))

    def information(self, vector: Floats, expected: Expected) -> tuple[Floats, Floats]:
        """Information on rates and prior if grades were known, and how much is missing as they are not (Louis 1982)."""
        size = len(self.split(vector)[0])
        return self._complete(vector, expected, size), self._missing(vector, expected, size)

    def _complete(self, vector: Floats, expected: Expected, size: int) -> Floats:
        r, ends, _, scatter = self._rates(vector)
        key, cell = self._key_cells
        n, place, node = self.cells.impressions[cell], self.cells.place[cell], self.nodes.node[key]
        u = len(self.nodes.u)
        both = np.zeros((2, 2, self.places))
        for g in range(self.grades):
            at = r[g, place, node] if self.effects.appeal else np.ones(1)
            spread = n / (1 + (n - 1) / (1 + np.exp(scatter[0]) * at ** -scatter[1])) if self.effects.appeal else n
            shown = np.bincount(place * u + node, expected.graded[g][key] * spread, self.places * u).reshape(-1, u)
            shown = shown / (r[g] * (1 - r[g]))
            both += [[(shown * a[g] * b[g]).sum(axis=1) for a in ends] for b in ends]
        if self.spread.all_knots:
            known, every = np.zeros((size, size)), np.arange(self.places)
            for i, row in enumerate(both):
                for j, part in enumerate(row):
                    known[every + i * self.places, every + j * self.places] = part
        else:
            here = self.spread.change(vector[:size])
            parts = block_array([[diags_array(part) for part in row] for row in both])
            known = np.asarray((here.T @ parts @ here).toarray())
        pi, m, h, hats = expected.prior, self.cells.multiplicity, self.hats.shape[1], self.hats.toarray()
        at = [slice(self.first_prior + i * h, self.first_prior + (i + 1) * h) for i in range(self.grades - 1)]
        for i, one in enumerate(at):
            for j, other in enumerate(at[: i + 1]):
                bend = m * pi[i + 1] * ((i == j) - pi[j + 1])
                known[one, other] = known[other, one] = self._of_hats @ (bend[:, None] * hats)
        return known

    def _missing(self, vector: Floats, expected: Expected, size: int) -> Floats:
        r, (by_low, by_high), _, scatter = self._rates(vector)
        slopes = self.family.slopes(r, scatter).reshape(-1, self.grades)
        keys = len(self.nodes.pattern)
        lengths = np.bincount(self._key_cells[0], minlength=keys)
        # If there are many keys, a systematic sample of those with few documents stands for all of these.
        work = float(((2 * lengths + 2 * self.grades) ** 2).sum())
        every = max(1, int(work / INFORMATION_WORK))
        many = expected.graded.sum(axis=0) > every
        chosen = np.flatnonzero(many | (np.cumsum(~many) % every == 0))
        row, cell = key_cells(self.cells, self.nodes.pattern[chosen])
        place, node = self.cells.place[cell], self.nodes.node[chosen][row]
        column = self.family.column[cell] * len(self.nodes.u) + node[:, None]
        pulls = np.einsum("ctg,ct->cg", slopes[column], self.family.factor[cell])
        share = expected.graded.T[chosen] * np.where(many[chosen], 1, every)[:, None]
        total = share.sum(axis=1)
        posterior = np.divide(share, total[:, None], out=np.zeros_like(share), where=total[:, None] > 0)
        hats, is_grade, h = self.hats[self.nodes.pattern[chosen]], np.eye(self.grades), self.hats.shape[1]
        pattern_row, knot = hats.nonzero()
        ends = np.stack([pulls * by[:, place, node if by.shape[2] > 1 else 0].T for by in (by_low, by_high)])
        off_ends = ends - (ends * posterior[row]).sum(axis=2, keepdims=True)
        # Scores: key x (lowest rate of each place, highest, prior of each grade above 0); one matrix per grade.
        above = range(1, self.grades)
        at = np.concatenate([row, row, *(pattern_row for _ in above)])
        column = np.concatenate([place, place + self.places, *(2 * self.places + (i - 1) * h + knot for i in above)])
        order = np.argsort(at, kind="stable")
        rows = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=len(chosen)))])
        at, column, width = at[order], column[order], 2 * self.places + self.priors
        change = None if self.spread.all_knots else self._change(vector[:size])
        missing = np.zeros((size, size))
        for g in range(self.grades):
            of_prior = (hats.data * (is_grade[g, i] - posterior[:, i])[pattern_row] for i in above)
            data = np.concatenate([*off_ends[:, :, g], *of_prior])[order] * np.sqrt(share[:, g])[at]
            scores = csr_array((data, column, rows), shape=(len(chosen), width))
            if change is not None:
                scores = scores @ change
            wide = scores.shape[1]
            few = wide <= FEW_COLUMNS
            missing[:wide, :wide] += scores.T @ scores.toarray() if few else (scores.T @ scores).toarray()
        return missing

    def _change(self, free: Floats) -> Any:
        """How the logits of all places, and those of the prior, change with the parameters."""
        after = np.arange(self.first_prior, self.first_prior + self.priors)
        prior = csr_array((np.ones(self.priors), (np.arange(self.priors), after)), shape=(self.priors, len(free)))
        return csr_array(vstack([self.spread.change(free), prior]))
