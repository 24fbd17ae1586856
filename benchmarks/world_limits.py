"""Limits of worlds: the posterior mean relevance of somebody who knows every parameter.   Kind, Cells -> labels

What differs at random from query to query (attention, shares, who the sessions are) is integrated: exactly where it
is discrete, on a fine grid where it is not. All sums are in log space, over blocks of queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import betaln, gammaln, logsumexp, xlog1py, xlogy

from clickmix.types import Floats, Ints
from world_kinds import DCM, UBM, Kind, attraction, prior, rate, second_rate

BLOCK = 4_000_000  # numbers in an array of one block of queries
WIDTH = 6.0  # deviations of a count around its mean that are summed over


@dataclass(frozen=True)
class Cells:
    """What a limit is computed from: query, base position and tilt of the prior per document, and the cells."""

    query: Ints
    base: Ints
    tilt: Floats
    document: Ints
    position: Ints
    context: Ints
    impressions: Ints
    clicks: Ints

    def blocks(self, size: int) -> Iterator[tuple[slice, slice]]:
        """Documents and cells of whole queries, with up to `size` cells in each block, or one query."""
        first = np.append(firsts(self.query), len(self.query))  # first document of each query
        start = np.searchsorted(self.document, first)  # its first cell
        begin = 0
        while begin < len(first) - 1:
            end = max(int(np.searchsorted(start, start[begin] + size, side="right")) - 1, begin + 1)
            yield slice(first[begin], first[end]), slice(start[begin], start[end])
            begin = end


def limit(kind: Kind, cells: Cells) -> Floats:
    """Posterior mean relevance per document."""
    if kind.user == "dcm":
        return of_dcm(kind, cells)
    if kind.user == "ubm":
        return of_ubm(kind, cells)
    return of_two_sorts(kind, cells) if kind.mixes else of_effects(kind, cells)


def of_effects(kind: Kind, cells: Cells) -> Floats:
    """Where queries differ by an effect u on clicking and an effect v on the share of relevant documents, or not."""
    u, log_u = grid(kind.attention, mean=kind.effect_mean)
    v, log_v = grid(kind.shares, points=61)
    label = np.empty(len(cells.query))
    for docs, of in cells.blocks(BLOCK // max(kind.grades * len(u), len(u) * len(v))):
        evidence = np.add.reduceat(_evidence(kind, cells, of, u), firsts(cells.document[of]), axis=0)
        scale = evidence.max(axis=1)
        likelihood = np.exp(evidence - scale[:, None]).swapaxes(1, 2)  # document x u x grade
        chances = prior(kind, cells.base[docs, None], cells.tilt[docs, None] + v).swapaxes(1, 2)  # x grade x v
        joint = likelihood @ chances  # document x u x v
        mean = likelihood @ (chances * kind.relevances[:, None]) / joint
        begin = firsts(cells.query[docs])
        of_query = np.add.reduceat(np.log(joint) + scale[:, :, None], begin, axis=0) + log_u[:, None] + log_v
        weight = np.exp(of_query - logsumexp(of_query, axis=(1, 2), keepdims=True))
        number = np.repeat(np.arange(len(begin)), np.diff(begin, append=len(joint)))
        label[docs] = np.einsum("duv,duv->d", mean, weight[number])
    return label


def _evidence(kind: Kind, cells: Cells, of: slice, u: Floats) -> Floats:
    """log P(clicks | grade, u) of cells, up to what depends on neither: cell x grade x u."""
    n, c = cells.impressions[of, None, None], cells.clicks[of, None, None]
    places, place = np.unique(np.stack([cells.position[of], cells.context[of]]), axis=1, return_inverse=True)
    position, context = places[:, :, None, None]
    p = rate(kind, kind.relevances[:, None], position, context, u)  # place x grade x u
    binomial = c * np.log(p)[place] + (n - c) * np.log1p(-p)[place]
    if not kind.appeal:
        return np.asarray(binomial)
    size = 1 / kind.appeal - 1
    a, b = (p * size)[place], ((1 - p) * size)[place]
    appealing = np.isin(cells.position[of], kind.appeal_at or cells.position[of])[:, None, None]
    return np.asarray(np.where(appealing, betaln(c + a, n - c + b) - betaln(a, b), binomial))


def of_two_sorts(kind: Kind, cells: Cells) -> Floats:
    """Where m of the n sessions of a query are of a second sort, and nobody knows which: the sum over m is exact.

    P(c clicks | m) is that of the sum of two binomials. Lists are frozen: each document has one cell.
    """
    n, c = cells.impressions.reshape(-1, kind.top), cells.clicks.reshape(-1, kind.top)
    position, x = np.arange(1, kind.top + 1)[:, None], kind.relevances
    p = rate(kind, x, position, np.array(0), np.array(0.0))  # position x grade
    second = second_rate(kind, x, position)
    chances = prior(kind, position[:, 0], np.zeros(kind.top))
    label, order = np.empty(c.shape), np.argsort(n[:, 0])
    while len(order):
        # Queries of like size: the largest that are left, and as many as a block holds.
        m, _ = _second_sort(kind, n[order[-1:], 0])
        block, order = np.split(order, [-max(BLOCK // (8 * m.size * p.size), 1)])[::-1]
        m, log_m = _second_sort(kind, n[block, 0])
        evidence = _sum_of_binomials(c[block, None, :, None], m[..., None, None], second, n[block, :1, None, None], p)
        evidence = np.maximum(evidence, -1e6)  # grades an impossible m cannot tell apart
        joint = logsumexp(evidence, axis=3, b=chances)  # query x m x position
        mean = np.exp(logsumexp(evidence, axis=3, b=chances * x) - joint)
        weight = joint.sum(axis=2) + log_m
        weight = np.exp(weight - logsumexp(weight, axis=1, keepdims=True))
        label[block] = np.einsum("qmk,qm->qk", mean, weight)
    return label.ravel()


def _second_sort(kind: Kind, n: Ints) -> tuple[Ints, Floats]:
    """How many of n sessions may be of the second sort, with log-probabilities: query x possibility."""
    numbers, logs = [], []
    for share, probability in kind.mixes:
        deviation = np.sqrt(n * share * (1 - share))
        low = np.maximum(np.floor(n * share - WIDTH * deviation), 0)
        steps = np.arange(1 if share == 0 else 2 * int(WIDTH * deviation.max()) + 4)
        m = low[:, None] + steps
        possible = m <= n[:, None]
        m = np.minimum(m, n[:, None])
        numbers.append(m)
        logs.append(np.where(possible, np.log(probability) + _log_binomial(m, n[:, None], share), -np.inf))
    return np.concatenate(numbers, axis=1).astype(np.int64), np.concatenate(logs, axis=1)


def _sum_of_binomials(c: Ints, m: Ints, second: Floats, n: Ints, p: Floats) -> Floats:
    """log P(c) of Binomial(m, second) + Binomial(n - m, p): the sum over how many of the clicks are of the former."""
    deviation = np.sqrt(m * second * (1 - second))
    low = np.maximum(np.floor(m * second - WIDTH * deviation) - 4, 0).astype(np.int64)
    high = np.minimum(np.minimum(m, c), np.ceil(m * second + WIDTH * deviation) + 4).astype(np.int64)
    log_factorial = gammaln(np.arange(n.max() + 1) + 1)
    log_odds, log_second_odds = np.log(p / (1 - p)), np.log(second / (1 - second))
    total = np.full(np.broadcast_shapes(c.shape, low.shape), -np.inf)
    for step in range(int((high - low).max()) + 1):
        a = low + step  # clicks of the second sort; b of the first
        b = c - a
        possible = (a <= high) & (b <= n - m)
        a, b = np.minimum(a, m), np.clip(b, 0, n - m)
        log_ways = -log_factorial[a] - log_factorial[m - a] - log_factorial[b] - log_factorial[n - m - b]
        total = np.logaddexp(total, np.where(possible, log_ways + a * log_second_odds + b * log_odds, -np.inf))
    constant = log_factorial[m] + log_factorial[n - m] + xlog1py(m, -second) + xlog1py(n - m, -p)
    return np.asarray(total + constant)


def _log_binomial(k: Ints, n: Ints, p: Floats | float) -> Floats:
    """log P(k | n, p) = log C(n, k) + k log p + (n - k) log(1 - p)."""
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p))


def of_dcm(kind: Kind, cells: Cells) -> Floats:
    """Of users who read on until a click satisfies them: the sum over how many still read at each position is exact.

    m of the n sessions read position k; c of them click, and each of those stops with a known probability. So m walks
    down the list as in a hidden Markov model, and documents are independent given it.
    """
    n, c = cells.impressions.reshape(-1, kind.top)[:, 0], cells.clicks.reshape(-1, kind.top)
    label, order = np.empty(c.shape), np.argsort(n)
    while len(order):
        block, order = np.split(order, [-max(BLOCK // (8 * kind.top * (n[order[-1]] + 1)), 1)])[::-1]
        label[block] = _walked(kind, n[block], c[block])
    return label.ravel()


def _walked(kind: Kind, n: Ints, c: Ints) -> Floats:
    """P(relevant) of each position of each query: forward and backward over m, from 0 to the largest n."""
    position, m = np.arange(1, kind.top + 1), np.arange(n.max() + 1)
    rates = attraction(kind.relevances[:, None], position)  # grade x position
    clicks = c[:, None, :, None]
    log_click = np.where(m >= clicks, _log_binomial(clicks, np.maximum(m, clicks), rates[:, :, None]), -np.inf)
    chances = prior(kind, position, np.zeros(kind.top)).T[:, :, None]
    click = chances * np.exp(log_click - log_click.max(axis=(1, 3), keepdims=True))  # query x grade x position x m
    either = click.sum(axis=1)
    stop = [np.exp(_log_stops(c[:, k], 1 - DCM[k])) for k in range(kind.top - 1)]
    forward = [np.where(m == n[:, None], 1.0, 0.0)]
    for k in range(kind.top - 1):  # the axis of m is turned round: stops are subtracted
        forward.append(_scaled(_convolved((forward[k] * either[:, k])[:, ::-1], stop[k])[:, ::-1]))
    backward = np.ones_like(forward[0])
    label = np.empty(c.shape)
    for k in reversed(range(kind.top)):
        of_grade = np.einsum("qm,qgm,qm->qg", forward[k], click[:, :, k], backward)
        label[:, k] = of_grade @ kind.relevances / of_grade.sum(axis=1)
        if k:
            backward = _scaled(_convolved(backward * either[:, k], stop[k - 1]))
    return label


def _log_stops(c: Ints, p: float) -> Floats:
    """log P(so many of c stop), from 0 to the largest c: query x number."""
    number = np.arange(c.max() + 1)
    return np.where(number <= c[:, None], _log_binomial(np.minimum(number, c[:, None]), c[:, None], p), -np.inf)


def _convolved(values: Floats, kernel: Floats) -> Floats:
    """Row by row, as long as the values; rounding makes nothing negative."""
    return np.asarray(np.maximum(fftconvolve(values, kernel, axes=1)[:, : values.shape[1]], 0.0))


def _scaled(values: Floats) -> Floats:
    return np.asarray(values / values.max(axis=1, keepdims=True))


def of_ubm(kind: Kind, cells: Cells) -> Floats:
    """Of users whose examination depends on the last click: the sum over all 2^10 lists that grades can make.

    The rates of a list are exact; its cells are taken as independent, though clicks of one session depend on each
    other. So this is the best label from each cell's clicks with all that is known of rates, and not quite the limit.
    """
    n, c = cells.impressions.reshape(-1, kind.top), cells.clicks.reshape(-1, kind.top)
    lists = np.array(list(product((0.0, 1.0), repeat=kind.top)))
    p = ubm_rates(lists)
    relevant = prior(kind, np.arange(1, kind.top + 1), np.zeros(kind.top))[:, 1]
    log_prior = (xlogy(lists, relevant) + xlog1py(1 - lists, -relevant)).sum(axis=1)
    joint = c @ np.log(p).T + (n - c) @ np.log1p(-p).T + log_prior
    return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)) @ lists).ravel()


def ubm_rates(lists: Floats) -> Floats:
    """P(click) at each position of lists with this relevance, one list per row."""
    top = lists.shape[1]
    attracted = attraction(lists, np.arange(1, top + 1))
    rates = np.empty_like(lists)
    last = np.zeros((len(lists), top + 1))  # P(last click at position 1, 2, ...), and of none in the last column
    last[:, -1] = 1.0
    for k in range(top):
        examined = np.zeros(top + 1)
        examined[:k], examined[-1] = UBM[k][:-1], UBM[k][-1]
        click = last * examined * attracted[:, k, None]
        last = last - click
        rates[:, k] = last[:, k] = click.sum(axis=1)
    return rates


def firsts(key: Ints) -> Ints:
    """Where a sorted key changes, from 0: what reduceat wants."""
    return np.flatnonzero(np.diff(key, prepend=key[0] - 1))


def grid(deviation: float, *, mean: float = 0.0, points: int | None = None) -> tuple[Floats, Floats]:
    """Points over +-5 deviations and the log of their weights; one point where nothing varies.

    A query asked 4,000 times tells its effect to about .015, so steps are no wider than that.
    """
    if deviation == 0:
        return np.zeros(1), np.zeros(1)
    t = np.linspace(-5, 5, points or max(201, round(10 * deviation / 0.015) + 1))
    return mean + deviation * t, -(t**2) / 2 - logsumexp(-(t**2) / 2)
