"""A neural network as a regression.   targets, features -> predicted relevance

Warm-started: each iteration continues with the weights of the last one, and with Adagrad's sums, so that steps become
smaller as the targets settle. A network forgets what it learned from older targets, so this is sound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.features.normalisation import Normalisation, chunks
from clickmix.lab.regressions.documents import Probability, check_probability, find_features
from clickmix.lab.regressions.soft_min_max import LEAST_SPREAD, MARGIN, soft_min_max
from clickmix.rankers.batches import Prepared
from clickmix.rankers.dnn import DNN
from clickmix.rankers.network import Network, Tensor, padded, torch_module
from clickmix.types import Floats, Ints


@dataclass(frozen=True)
class NetworkRegression:
    """The DNN ranker's network, fitted to relevance by cross entropy; `epochs` of `settings` are per iteration.

    A pass or two per iteration is enough, because the next one continues from there. The settings' loss is not used:
    the loss is cross entropy, with every document weighted by its impressions.
    """

    features: Any = field(repr=False)
    probability: Probability = "sigmoid"
    settings: DNN = field(default_factory=lambda: DNN(epochs=2))
    seed: int = 0

    def __post_init__(self) -> None:
        check_probability(self.probability)

    def start(self, query_id: NDArray[Any], doc_id: NDArray[Any]) -> _Learning:
        """Find and normalise the features of these documents, and draw the first weights."""
        documents = find_features(self.features, query_id, doc_id)
        normalisation = Normalisation.fit(documents.features)
        network, rng = Network.drawn(documents.features.shape[1], self.settings.layers, seed=self.seed)
        return _Learning(self, network, normalisation.apply(documents.features), documents.offsets, rng)


@dataclass(frozen=True)
class _Learning:
    regression: NetworkRegression
    network: Network
    features: NDArray[np.float32]
    offsets: Ints
    rng: np.random.Generator

    def fit(self, target: Floats, weight: Floats) -> Floats:
        """Train for some more epochs; return the relevance that the network predicts."""
        # Two numbers per document instead of a ranker's one; batches handle both.
        taught = np.stack([target, weight / weight.mean()], axis=1).astype(np.float32)
        prepared = Prepared(self.features, taught, self.offsets)
        settings = self.regression.settings
        for _ in range(settings.epochs):
            for batch in prepared.batches(queries=settings.batch, rng=self.rng):
                self._learn(batch.features, batch.relevance, batch.sizes)
        return self._predicted()

    def _learn(self, features: NDArray[np.float32], taught: NDArray[np.float32], sizes: Ints) -> None:
        """One step of Adagrad on sum of weight (-t log p - (1 - t) log(1 - p)) / sum of weight."""
        settings, network = self.regression.settings, self.network
        scores = network.forward(network.tensor(features), dropout=settings.dropout)
        t, w = network.tensor(taught).T
        if self.regression.probability == "sigmoid":
            each = torch_module().nn.functional.softplus(scores, threshold=50) - t * scores
        else:
            q = soft_min_max_of_tensors(scores, network.tensor(np.arange(sizes.max()) < sizes[:, None]))
            each = -t * q.log() - (1 - t) * (1 - q).log()
        ((w * each).sum() / w.sum()).backward()
        network.step(learning_rate=settings.learning_rate, largest_gradient=settings.largest_gradient)

    def _predicted(self) -> Floats:
        scores = np.concatenate([self.network.scores(self.features[rows]) for rows in chunks(len(self.features))])
        if self.regression.probability == "sigmoid":
            relevance: Floats = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
            return relevance
        return soft_min_max(scores, self.offsets)


def soft_min_max_of_tensors(scores: Tensor, mask: Tensor) -> Tensor:
    """q of every document, as in `soft_min_max`; the mask, queries × longest list, is False at the padding."""
    s = padded(scores, mask)
    largest = s.masked_fill(~mask, -np.inf).amax(1, keepdim=True)
    e = (s - largest.detach()).exp()
    M = (largest - largest.detach()).exp()
    m = e.masked_fill(~mask, np.inf).amin(1, keepdim=True)
    spread = M - m
    p = ((e - m) / spread.clamp(min=LEAST_SPREAD)).where(spread > LEAST_SPREAD, 0.5)
    return MARGIN + (1 - 2 * MARGIN) * p[mask]
