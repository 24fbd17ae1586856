"""The dual learning algorithm on the DNN's network: relevance and examination learn from each other.   clicks -> scores

Ai, Bi, Luo, Guo, Croft: Unbiased Learning to Rank with Unbiased Propensity Estimation, SIGIR 2018. Two softmaxes over
the results of a list: r of the network's scores, and e of one number per position.

    loss of the network    = - sum of clicks_k (e_1 / e_k) log r_k,  divided by the sum of the weights
    loss of the positions  = - sum of clicks_k (r_1 / r_k) log e_k,  divided by the sum of the weights
Both are sums over clicks, so all clicks of a list count together, whatever their sessions. The network, its steps and
its batches are those of `clickmix.rankers.dnn`, which learns from labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from clickmix.features.normalisation import Normalisation
from clickmix.lab.self_debiasing.clicked import FeatureLists
from clickmix.rankers.batches import Batch, Prepared
from clickmix.rankers.dnn import DNN
from clickmix.rankers.network import Network, Tensor, Weights, padded, torch_module
from clickmix.types import Floats

POSITION_RATE = 0.05  # learning rate, as in the authors' library; the network has its own


@dataclass(frozen=True, eq=False)
class DualLearner:
    """A trained network, and the examination of each position relative to the first."""

    normalisation: Normalisation
    weights: Weights
    examination: Floats

    def score(self, features: Floats) -> Floats:
        """One score per document."""
        return Network.build(self.weights).scores(self.normalisation.apply(np.asarray(features, np.float32)))


@dataclass
class Positions:
    """One number per position, which learns by Adagrad like the network."""

    numbers: Tensor
    squares: Tensor

    def step(self, *, learning_rate: float) -> None:
        """Take a step downhill, and clear the gradient."""
        with torch_module().no_grad():
            g = self.numbers.grad
            self.squares.addcmul_(g, g)
            self.numbers.addcdiv_(g, self.squares.sqrt().add_(1e-10), value=-learning_rate)
            self.numbers.grad = None

    def examination(self) -> Floats:
        """The examination of each position, relative to the first."""
        shares = self.numbers.detach().softmax(0).cpu().numpy().astype(np.float64)
        return np.asarray(shares / shares[0])


def dual_learning(train: FeatureLists, *, seed: int) -> DualLearner:
    """Train both for a fixed number of epochs."""
    torch, settings = torch_module(), DNN()
    normalisation = Normalisation.fit(train.features)
    network, rng = Network.drawn(train.features.shape[1], settings.layers, seed=seed)
    numbers = torch.zeros(train.rows.shape[1], device=network.weights[0].device, requires_grad=True)
    positions = Positions(numbers, torch.zeros_like(numbers, requires_grad=False))
    learned = _prepared(train, normalisation)
    for _ in range(settings.epochs):  # held-out clicks cannot say when to stop, because their weights keep changing
        for batch in learned.batches(queries=settings.batch, rng=rng):
            for loss in _losses(network, positions, batch, dropout=settings.dropout):
                loss.backward()
            network.step(learning_rate=settings.learning_rate, largest_gradient=settings.largest_gradient)
            positions.step(learning_rate=POSITION_RATE)
    return DualLearner(normalisation, network.numpy(), positions.examination())


def _losses(network: Network, positions: Positions, batch: Batch, *, dropout: Any = ()) -> tuple[Tensor, Tensor]:
    """The loss of the network and that of the positions; neither moves the other's weights."""
    mask = network.tensor(np.arange(batch.sizes.max()) < batch.sizes[:, None])
    scores = padded(network.forward(network.tensor(batch.features), dropout=dropout), mask)
    clicks = padded(network.tensor(batch.relevance), mask)
    numbers = positions.numbers[: mask.shape[1]].expand(mask.shape)
    log_r, log_e = (x.masked_fill(~mask, -math.inf).log_softmax(1).masked_fill(~mask, 0.0) for x in (scores, numbers))
    found = []
    for own, other in ((log_r, log_e), (log_e, log_r)):
        weights = clicks * (other[:, :1] - other).detach().exp()
        found.append(-(weights * own).sum() / weights.sum().clamp(min=1e-9))
    return found[0], found[1]


def _prepared(lists: FeatureLists, normalisation: Normalisation) -> Prepared:
    """The clicked lists, sorted by position, with clicks instead of labels."""
    clicked = lists.clicks.sum(axis=1) > 0
    rows, shown = lists.rows[clicked], lists.rows[clicked] >= 0
    clicks = np.where(shown, lists.clicks[clicked], 0)[shown].astype(np.float32)
    offsets = np.concatenate(([0], np.cumsum(shown.sum(axis=1))))
    return Prepared(normalisation.apply(lists.features[rows[shown]]), clicks, offsets)
