"""A synthetic collection with MSLR's shape, whose features show relevance only in part.   rng -> Collection

Twelve standard normal numbers z describe a document, and two, w, describe a query. Features show ten of the z, through
noise; two stay hidden. Relevance is a nonlinear function of all of them, and the grades are its quantiles.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import SettingError
from clickmix.features.split import Collection, Split

Matrix = NDArray[np.float32]

FEATURES = 136
SMALLEST, LARGEST = 40, 120  # documents of a query
GRADE_SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)

VISIBLE = 10  # features show z[:, :10]
HIDDEN = 2
NOISE = np.array([0.3, 1.0, 2.0, 3.0, 3.5, 4.0, 5.0], np.float32)  # noise of a feature, for a signal of 1
BLOCK = 256  # queries made at once: limits the memory beyond the collection itself


def synthetic_collection(*, queries: int, rng: np.random.Generator) -> Collection:
    """`queries` training queries with 40 to 120 documents, and a third as many for vali and for test, as in MSLR.

    The same generator state gives the same bytes, with any number of threads.
    """
    if queries < 1:
        raise SettingError(f"queries={queries}: a synthetic collection has at least 1 training query.")
    third = max(1, round(queries / 3))
    everything = _split(queries + 2 * third, rng=rng)
    return Collection(
        name=f"synthetic, {queries} training queries",
        train=everything.part(0, queries),
        vali=everything.part(queries, queries + third),
        test=everything.part(queries + third, queries + 2 * third),
        largest_grade=len(GRADE_SHARES) - 1,
    )


def _split(queries: int, *, rng: np.random.Generator) -> Split:
    sizes = rng.integers(SMALLEST, LARGEST, size=queries, endpoint=True)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    features = np.empty((offsets[-1], FEATURES), np.float32)
    relevance = np.empty(offsets[-1], np.float32)
    starts = range(0, queries, BLOCK)
    for start, block_rng in zip(starts, rng.spawn(len(starts)), strict=True):
        rows = slice(offsets[start], offsets[min(start + BLOCK, queries)])
        own = sizes[start : start + BLOCK]
        w = np.repeat(block_rng.standard_normal((len(own), 2), np.float32), own, axis=0)  # one per query
        z = block_rng.standard_normal((len(w), VISIBLE + HIDDEN), np.float32)
        relevance[rows] = _relevance(z, w)
        features[rows] = _features(z, w, rng=block_rng)
    return Split(np.arange(1, queries + 1), offsets, np.arange(offsets[-1]), _grades(relevance), features)


def _relevance(z: Matrix, w: Matrix) -> Matrix:
    """How relevant each document is, on an arbitrary scale; only the order matters.

    Two signals whose sign another one turns, a pair of which the weaker counts, one that is good only together with
    another, one of two by the kind of query, hidden numbers, and how well the query is served overall. Little of it is
    a plain sum, and no part outweighs the others: twenty queries teach a ranker some of it, thousands most of the rest.
    """
    turned = 1.1 * (z[:, 0] * np.sign(z[:, 1]) + z[:, 9] * np.sign(z[:, 4]))
    weaker = 0.9 * np.minimum(z[:, 2], z[:, 3])
    in_company = z[:, 5] * np.where(z[:, 6] > 0, np.float32(1.8), np.float32(-1.0))
    by_kind = 1.4 * np.where(w[:, 0] > 0, z[:, 7], z[:, 8])
    unseen = 0.3 * z[:, 10] + 0.2 * z[:, 11]
    served = 1.5 * w[:, 1]
    relevance: Matrix = turned + weaker + in_company + by_kind + unseen + served
    return relevance


def _grades(relevance: Matrix) -> NDArray[np.int8]:
    """Grade 0 for the lowest share of relevance, 1 for the next, ..."""
    limits = np.quantile(relevance, np.cumsum(GRADE_SHARES)[:-1])
    return np.searchsorted(limits, relevance).astype(np.int8)


def _features(z: Matrix, w: Matrix, *, rng: np.random.Generator) -> Matrix:
    """136 features in nine kinds; every seed has the same latent number and the same noise level in a feature."""

    def shown(count: int, *, first: int) -> Matrix:
        """`count` noisy views of the visible numbers, one after the other, with variance 1."""
        at = first + np.arange(count)
        noise = NOISE[at % len(NOISE)]
        view: Matrix = z[:, at % VISIBLE] + noise * rng.standard_normal((len(z), count), np.float32)
        view /= np.sqrt(1 + np.square(noise))
        return view

    query_kind = w[:, :1]
    normal = shown(26, first=0)
    scaled = shown(12, first=6) * np.exp(0.5 * query_kind)  # the same document looks different under another query
    heavy = np.exp(1.5 * shown(18, first=8))
    counts = rng.poisson(np.exp(shown(16, first=6))).astype(np.float32)
    ratios = np.clip(0.5 + 0.4 * shown(12, first=2), 0, 1)
    binary = (shown(10, first=4) > 0.8).astype(np.float32)
    copies = normal[:, :10] + 0.3 * rng.standard_normal((len(z), 10), np.float32)
    of_query = np.hstack([query_kind, np.exp(query_kind), np.floor(2 * query_kind), np.abs(query_kind)])
    noise = rng.standard_gamma(0.7, (len(z), 28), np.float32)
    return np.hstack([normal, scaled, heavy, counts, ratios, binary, copies, of_query, noise])
