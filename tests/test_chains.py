"""Chains of groups against the same matrices written out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from clickmix.mixtures.chains import solve_chains

Array = np.ndarray[Any, Any]


def some_chains(lengths: list[int], kinds: int) -> tuple[Array, Array, Array, Array]:
    """Chains of these lengths, their groups numbered in any order; what each knows, springs, pulls."""
    rng, groups = np.random.default_rng(len(lengths)), sum(lengths)
    chains, numbers = np.full((len(lengths), max(lengths)), -1), iter(rng.permutation(groups).tolist())
    for chain, length in zip(chains, lengths, strict=True):
        chain[:length] = list(itertools.islice(numbers, length))
    half = rng.normal(size=(groups, kinds, kinds))
    springs = rng.uniform(0.1, 100, size=(groups - len(lengths), kinds))
    return chains, half @ half.swapaxes(1, 2), springs, rng.normal(size=(groups, kinds))


def written_out(chains: Array, known: Array, springs: Array) -> tuple[Array, list[tuple[int, int]]]:
    """Group x kind x group x kind, and which groups each spring holds together."""
    groups, kinds = known.shape[:2]
    matrix, every = np.zeros((groups, kinds, groups, kinds)), np.arange(kinds)
    matrix[range(groups), :, range(groups), :] = known
    pairs = [(int(a), int(b)) for chain in chains for a, b in itertools.pairwise(chain) if b >= 0]
    for pair, firm in zip(pairs, springs, strict=True):
        for a, b in itertools.permutations(pair):
            matrix[a, every, a, every] += firm
            matrix[a, every, b, every] -= firm
    return matrix, pairs


@pytest.mark.parametrize("kinds", [1, 3])
@pytest.mark.parametrize("lengths", [[1], [7], [4, 4], [5, 1, 9, 2]])
def test_are_solved_as_the_whole_matrix_would_be(lengths: list[int], kinds: int) -> None:
    chains, known, springs, pull = some_chains(lengths, kinds)
    matrix, pairs = written_out(chains, known, springs)
    size, groups = pull.size, len(pull)
    inverse = np.linalg.inv(matrix.reshape(size, size)).reshape(matrix.shape)
    found = solve_chains(chains, known, springs, pull)
    assert found.solution == pytest.approx((inverse.reshape(size, size) @ pull.ravel()).reshape(pull.shape))
    assert found.inverse == pytest.approx(np.stack([inverse[g, :, g] for g in range(groups)]))
    assert found.log_determinant == pytest.approx(np.linalg.slogdet(matrix.reshape(size, size))[1])
    assert len(found.step_variance) == len(pairs)
    for variance, (a, b) in zip(found.step_variance, pairs, strict=True):
        assert variance == pytest.approx(inverse[a, :, a] + inverse[b, :, b] - inverse[a, :, b] - inverse[b, :, a])


def test_what_no_group_knows_leaves_the_springs_as_they_are() -> None:
    """One kind of which the clicks say next to nothing, beside one that they say much of."""
    groups, firm = 50, 1e6
    known = np.tile(np.diag([1e-9, 1e3]), (groups, 1, 1))
    found = solve_chains(np.arange(groups)[None], known, np.full((groups - 1, 2), firm), np.zeros((groups, 2)))
    assert found.step_variance[:, 0, 0] == pytest.approx(np.full(groups - 1, 1 / firm), rel=1e-9)
    assert found.inverse[:, 0, 0] == pytest.approx(np.full(groups, 1e9 / groups), rel=1e-6)
