"""Nodes: the attention u and share v at which each query is looked at, and the (pattern, u) that this takes.

u lies on a common grid. A query is looked at in a few points around its own mean, with a stride close to its deviation
(there, the trapezoidal rule is exact to many digits, even with the kink of a cap). Queries with little evidence share
the same points, so the same (pattern, u) serves many queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.types import Floats, Ints

STEP = 0.00625  # step of the grid: about how well the attention of a query with ten thousand clicks is known
COARSE_STEP = 0.15  # the same if documents differ in appeal: attention is then known less well, and tables take longer
POINTS = np.arange(-3, 4)  # nodes of a query, in strides
# Queries with the same stride, in steps, share nodes.
STRIDES = np.array([1, *(2**i * j for i in range(9) for j in (2, 3))])
FEW_MARKS = 4  # times as many possible keys as keys: with more, sorting keys is faster than marking them
STRIDE = 1.35  # upper bound of a stride, in deviations of the query
MOST_STRIDE = 3.2
SHARP = 0.7  # strides: a query with a smaller deviation is known better than its nodes show
BEST_KNOWN, UNKNOWN = 0.125, 1.5  # strides: deviation of such a query, between its nodes at least, and beyond them
SHARES = np.linspace(-2.7, 2.7, 7)  # nodes of v, in deviations


@dataclass(frozen=True)
class Nodes:
    """Values of u in use, on the grid, and of v; keys (pattern, number of u); queries x points as sums of keys.

    `sums` is sparse, (query, point) x key: how many documents of the query have the key's pattern. `at` (query x point)
    has numbers of u, `of_entry` (entry x point) keys, `log_width` (query x point) the log of each node's width.
    """

    u: Floats
    v: Floats
    pattern: Ints
    node: Ints
    at: Ints
    of_entry: Ints
    sums: csr_array
    log_width: Floats
    log_width_v: float

    @classmethod
    def one(cls, cells: Cells) -> Nodes:
        """All queries alike: one node, and one sum over the whole log."""
        zero, m = np.zeros(1), cells.multiplicity
        every = np.arange(cells.patterns)
        sums = csr_array((m, every, np.array([0, cells.patterns])), shape=(1, cells.patterns))
        return cls(
            zero,
            zero,
            every,
            np.zeros_like(every),
            np.zeros((1, 1), dtype=np.int64),
            cells.entry[:, None],
            sums,
            np.zeros((1, 1)),
            0.0,
        )

    @classmethod
    def around(cls, cells: Cells, mean: Floats, deviation: Floats, *, shares: float, step: float = STEP) -> Nodes:
        """For queries whose u has this mean and deviation; `shares` is the deviation of v, or 0."""
        steps, strides = placed(mean, deviation, step)
        grid, at = on_grid(steps)
        points = steps.shape[1]
        keys = cells.entry[:, None] * len(grid) + at[cells.query]
        used, column = _numbered(keys, cells.patterns * len(grid))
        # Entries come in order of query; transposed, those of one point of a query follow each other.
        order, documents, ends = cells.keep(("turned", points), lambda: _turned(cells, points))
        shape = cells.queries * points, len(used)
        sums = csr_array((documents, column.ravel()[order], ends), shape=shape)
        width = (
            np.broadcast_to(np.log(strides * step)[:, None], steps.shape) if deviation.any() else np.zeros(steps.shape)
        )
        v = shares * SHARES if shares else np.zeros(1)
        log_width_v = float(np.log(v[1] - v[0])) if shares else 0.0
        return cls(grid * step, v, used // len(grid), used % len(grid), at, column, sums, width, log_width_v)


def on_grid(steps: Ints) -> tuple[Ints, Ints]:
    """The steps of the grid that are in use, and the number of each of these."""
    lowest = int(steps.min())
    used, number = _numbered(steps - lowest, int(steps.max()) - lowest + 1)
    return used + lowest, number


def _numbered(keys: Ints, most: int) -> tuple[Ints, Ints]:
    """The distinct keys below `most`, and the number of each."""
    if most > FEW_MARKS * keys.size:
        used, number = np.unique(keys, return_inverse=True)
        return used, number.reshape(keys.shape)
    number = np.zeros(most, dtype=np.int32)
    number[keys.ravel()] = 1
    used = np.flatnonzero(number)
    number[used] = np.arange(len(used))
    return used, number[keys]


def _turned(cells: Cells, points: int) -> tuple[Ints, Floats, Ints]:
    """Entries x points in the order of (query, point, entry): where each is, its documents, ends of (query, point)."""
    sizes = np.bincount(cells.query, minlength=cells.queries)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    row = points * first[:, None] + np.arange(points) * sizes[cells.query][:, None]
    row += (np.arange(len(first)) - first)[:, None]
    order = np.empty(row.size, dtype=np.int64)
    order[row.ravel()] = np.arange(row.size)
    ends = np.concatenate([[0], np.cumsum(np.repeat(sizes, points))])
    return order, np.repeat(cells.documents, points)[order], ends


def step_of(attention: float, *, appeal: bool, least: float = STEP) -> float:
    """The step of the grid if queries' attention has this deviation."""
    return float(np.clip(attention / 2, COARSE_STEP / 3, COARSE_STEP)) if appeal else least


def placed(
    mean: Floats, deviation: Floats, step: float, *, points: Ints = POINTS, stride: float = STRIDE
) -> tuple[Ints, Ints]:
    """Nodes of queries whose u has this mean and deviation, in steps: query x point; and their strides."""
    if not deviation.any():
        return np.zeros((len(mean), 1), dtype=np.int64), np.full(len(mean), 1 / step)
    wide = np.minimum(stride * deviation, MOST_STRIDE)
    strides = STRIDES[np.maximum(np.searchsorted(STRIDES, wide / step, side="right") - 1, 0)]
    middle = np.rint(mean / step / strides) * strides
    return (middle[:, None] + points * strides[:, None]).astype(np.int64), strides


def seen_at(u: Floats, stride: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation of queries with these weights (query x point) at nodes u, which are a stride apart."""
    mean = (weight * u).sum(axis=1)
    spread = np.sqrt(np.maximum((weight * u * u).sum(axis=1) - mean**2, 0))
    # A query known better than a stride lies at the top of the parabola through the log weights of its three highest
    # nodes. If the highest is the last node, look for it further out, in strides twice as long.
    highest = weight.argmax(axis=1)
    query, top = np.arange(len(u)), np.clip(highest, 1, weight.shape[1] - 2)
    before, at, after = (np.log(np.maximum(weight[query, top + i], 1e-300)) for i in (-1, 0, 1))
    bend = np.maximum(2 * at - before - after, 1e-3)
    middle = u[query, top] + stride * np.clip((after - before) / (2 * bend), -1, 1)
    known = stride * np.where(top == highest, np.maximum(1 / np.sqrt(bend), BEST_KNOWN), UNKNOWN)
    sharp = spread < SHARP * stride
    return np.where(sharp, middle, mean), np.where(sharp, known, spread)


def key_cells(cells: Cells, pattern: Ints) -> tuple[Ints, Ints]:
    """The cells of each key's pattern: number of the key, number of the cell."""
    sizes = np.bincount(cells.pattern, minlength=cells.patterns)
    starts = np.cumsum(sizes) - sizes
    lengths = sizes[pattern]
    key = np.repeat(np.arange(len(pattern)), lengths)
    within = np.arange(len(key)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return key, starts[pattern][key] + within


def log_normal(at: Floats, log_deviation: float | None) -> Floats:
    """log N(at; 0, deviation^2); 0 if nothing varies."""
    if log_deviation is None:
        return np.zeros_like(at)
    return np.asarray(-(at**2) * np.exp(-2 * log_deviation) / 2 - log_deviation - np.log(2 * np.pi) / 2)
