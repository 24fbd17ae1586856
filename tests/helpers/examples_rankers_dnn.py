"""Small made-up examples for the tests of the DNN ranker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Made:
    """Examples as a ranker takes them."""

    features: NDArray[Any]
    relevance: NDArray[Any]
    offsets: NDArray[np.int64]
    feature_names: tuple[str, ...] = ()

    @property
    def query(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def made(features: Any, relevance: Any, sizes: Any) -> Made:
    """Examples whose queries have so many documents."""
    return Made(np.asarray(features, np.float32), np.asarray(relevance), np.concatenate([[0], np.cumsum(sizes)]))


def nonlinear(seed: int, *, queries: int = 200) -> Made:
    """Relevance that is a product and a magnitude of features: no linear function of them ranks it."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 25, queries)
    x = rng.normal(size=(sizes.sum(), 5))
    return made(x, 1 / (1 + np.exp(-3 * (x[:, 0] * x[:, 1] + np.abs(x[:, 2]) - 1))), sizes)
