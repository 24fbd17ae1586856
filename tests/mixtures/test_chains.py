"""Chains of groups against the same matrices written out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from clickmix.mixtures.chains import solve_chains
from clickmix.mixtures.curvature import rising

Array = np.ndarray[Any, Any]


def some_chains(lengths: list[int], kinds: int) -> tuple[Array, Array, Array, Array, Array]:
    """Chains of these lengths, their groups numbered in any order; what each knows, pulls, springs, scales."""
    rng, groups = np.random.default_rng(len(lengths)), sum(lengths)
    chains, numbers = np.full((len(lengths), max(lengths)), -1), iter(rng.permutation(groups).tolist())
    for chain, length in zip(chains, lengths, strict=True):
        chain[:length] = list(itertools.islice(numbers, length))
    half = rng.normal(size=(groups, kinds, kinds))
    springs = 10 ** rng.uniform(-1, 3, size=(groups - len(lengths), kinds))
    scale = 10 ** rng.uniform(-3, 0, size=(groups, kinds))
    return chains, half @ half.swapaxes(1, 2), rng.normal(size=(groups, kinds)), springs, scale


def written_out(chains: Array, known: Array, springs: Array, scale: Array) -> tuple[Array, list[tuple[int, int]]]:
    """Group x kind x group x kind, and which groups each spring holds together."""
    groups, kinds = known.shape[:2]
    matrix, every = np.zeros((groups, kinds, groups, kinds)), np.arange(kinds)
    matrix[range(groups), :, range(groups), :] = known
    pairs = [(int(a), int(b)) for chain in chains for a, b in itertools.pairwise(chain) if b >= 0]
    for pair, firm in zip(pairs, springs, strict=True):
        for a, b in itertools.permutations(pair):
            matrix[a, every, a, every] += firm * scale[a] ** 2
            matrix[a, every, b, every] -= firm * scale[a] * scale[b]
    return matrix, pairs


@pytest.mark.parametrize("kinds", [1, 3])
@pytest.mark.parametrize("lengths", [[1], [7], [4, 4], [5, 1, 9, 2]])
def test_are_solved_as_the_whole_matrix_would_be(lengths: list[int], kinds: int) -> None:
    chains, known, pull, springs, scale = some_chains(lengths, kinds)
    matrix, pairs = written_out(chains, known, springs, scale)
    size, groups = pull.size, len(pull)
    inverse = np.linalg.inv(matrix.reshape(size, size)).reshape(matrix.shape)
    found = solve_chains(chains, known, pull, springs, scale)
    assert found.solution == pytest.approx((inverse.reshape(size, size) @ pull.ravel()).reshape(pull.shape))
    assert found.inverse == pytest.approx(np.stack([inverse[g, :, g] for g in range(groups)]))
    assert found.log_determinant == pytest.approx(np.linalg.slogdet(matrix.reshape(size, size))[1])
    assert len(found.step_variance) == len(pairs)
    for variance, (a, b) in zip(found.step_variance, pairs, strict=True):
        for j in range(kinds):
            ends = inverse[a, j, a, j], inverse[b, j, b, j], inverse[a, j, b, j]
            expected = scale[a, j] ** 2 * ends[0] + scale[b, j] ** 2 * ends[1] - 2 * scale[a, j] * scale[b, j] * ends[2]
            assert variance[j] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("much", [1e3, 1e12])
def test_what_no_group_knows_leaves_the_springs_as_they_are(much: float) -> None:
    """Two kinds of which the clicks know the sum well and the difference not at all: rounding alone speaks of it."""
    groups, firm = 50, 1e4
    known = np.tile(rising(much * np.ones((2, 2))) + 1e-9 * np.eye(2), (groups, 1, 1))
    chain, spring, one = np.arange(groups)[None], np.full((groups - 1, 2), firm), np.ones((groups, 2))
    found = solve_chains(chain, known, 0 * one, spring, one)
    of_sum = solve_chains(chain, np.full((groups, 1, 1), 2 * much), 0 * one[:, :1], spring[:, :1], one[:, :1])
    assert found.step_variance == pytest.approx((np.tile(of_sum.step_variance, 2) + 1 / firm) / 2, rel=1e-3)
    assert (found.step_variance >= 0).all()
    assert (found.step_variance <= 1 / firm).all()
