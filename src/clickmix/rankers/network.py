"""The network: normalised features in, one score per document out; and how it learns from a batch of queries.

torch is imported only when needed. Nothing uses torch's global random generator or changes a setting of torch. Every
operation has a deterministic form, also on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import optional_module
from clickmix.rankers.batches import Batch
from clickmix.rankers.losses import Loss

Tensor = Any
Weights = tuple[NDArray[np.float32], ...]  # matrix and bias of the first layer, of the second, ... of the last

PAIRS_AT_ONCE = 1 << 22  # pairs of documents that a loss sees at once: limits its memory


def torch_module() -> Any:
    """torch, or an error that says how to install it."""
    return optional_module("torch", use="The DNN ranker needs PyTorch", extra="dnn")


def shapes(features: int, layers: Sequence[int]) -> list[tuple[int, ...]]:
    """The shapes of the weights: matrix (in, out) and bias (out) of each layer; the last has one output, the score.

    >>> shapes(136, [512, 256])
    [(136, 512), (512,), (512, 256), (256,), (256, 1), (1,)]
    """
    ins, outs = [features, *layers], [*layers, 1]
    return [shape for i, o in zip(ins, outs, strict=True) for shape in ((i, o), (o,))]


def initial_weights(features: int, layers: Sequence[int], *, rng: np.random.Generator) -> Weights:
    """Uniform between -1/sqrt(n) and 1/sqrt(n) for a layer of n inputs, as torch starts a linear layer."""
    inputs = np.repeat([features, *layers], 2)
    return tuple(
        rng.uniform(-1 / math.sqrt(n), 1 / math.sqrt(n), shape).astype(np.float32)
        for n, shape in zip(inputs, shapes(features, layers), strict=True)
    )


@dataclass
class Network:
    """Weights on the device that trains them: a GPU if there is one."""

    weights: list[Tensor]
    squares: list[Tensor]  # of all gradients so far, as Adagrad sums them
    generator: Any  # of dropout

    @classmethod
    def build(cls, weights: Weights, *, seed: int = 0) -> Network:
        """A network that starts with these weights; `seed` decides what dropout drops."""
        torch = torch_module()
        device = "cuda" if torch.cuda.is_available() else "cpu"
        on_device = [torch.tensor(w, device=device, requires_grad=True) for w in weights]
        squares = [torch.zeros_like(w, requires_grad=False) for w in on_device]
        return cls(on_device, squares, torch.Generator(device).manual_seed(seed))

    @classmethod
    def drawn(cls, features: int, layers: Sequence[int], *, seed: int) -> tuple[Network, np.random.Generator]:
        """A network with initial weights, and a generator to shuffle queries with."""
        start, dropping, shuffling = np.random.SeedSequence(seed).spawn(3)
        weights = initial_weights(features, layers, rng=np.random.default_rng(start))
        network = cls.build(weights, seed=int(dropping.generate_state(1, np.uint32)[0]))
        return network, np.random.default_rng(shuffling)

    def numpy(self) -> Weights:
        """A copy of the weights as they are now."""
        return tuple(w.detach().cpu().numpy().copy() for w in self.weights)

    def tensor(self, array: NDArray[Any]) -> Tensor:
        """An array on the network's device."""
        return torch_module().from_numpy(np.ascontiguousarray(array)).to(self.weights[0].device)

    def forward(self, x: Tensor, *, dropout: Sequence[float] = ()) -> Tensor:
        """Scores of the documents `x`: h = elu(h W + b) per hidden layer, with dropout in training; then h W + b."""
        torch = torch_module()
        *hidden, (last, last_bias) = zip(self.weights[::2], self.weights[1::2], strict=True)
        for i, (W, b) in enumerate(hidden):
            x = torch.nn.functional.elu(torch.addmm(b, x, W), inplace=True)
            if dropout and dropout[i] > 0:
                keep = 1 - dropout[i]
                x = x * torch.empty_like(x).bernoulli_(keep, generator=self.generator).div_(keep)
        return torch.addmm(last_bias, x, last).squeeze(1)

    def scores(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Scores of documents with normalised features."""
        with torch_module().no_grad():
            scores: NDArray[np.float64] = self.forward(self.tensor(features)).cpu().numpy().astype(np.float64)
        return scores

    def learn(
        self, batch: Batch, *, loss: Loss, dropout: Sequence[float], learning_rate: float, largest_gradient: float
    ) -> tuple[Tensor, Tensor]:
        """Take one step of Adagrad; return the sums of the loss's totals and weights before it."""
        scores = self.forward(self.tensor(batch.features), dropout=dropout)
        # The loss works on a copy of the scores, some queries at a time: all pairs at once would fill the memory.
        copy = scores.detach().requires_grad_()
        total, weight = self._sums(copy, batch, loss=loss, gradient=True)
        scores.backward(copy.grad / weight.clamp(min=1))
        self.step(learning_rate=learning_rate, largest_gradient=largest_gradient)
        return total, weight

    def measure(self, batch: Batch, *, loss: Loss) -> tuple[Tensor, Tensor]:
        """Return the sums of the loss's totals and weights, without learning and without dropout."""
        with torch_module().no_grad():
            return self._sums(self.forward(self.tensor(batch.features)), batch, loss=loss, gradient=False)

    def _sums(self, scores: Tensor, batch: Batch, *, loss: Loss, gradient: bool) -> tuple[Tensor, Tensor]:
        relevance = self.tensor(batch.relevance)
        total, weight = scores.new_zeros(()), scores.new_zeros(())
        for queries in slices_of_queries(batch.sizes):
            sizes = batch.sizes[queries]
            start = int(batch.sizes[: queries.start].sum())
            rows = slice(start, start + int(sizes.sum()))
            mask = self.tensor(np.arange(sizes.max()) < sizes[:, None])
            totals, weights = loss(padded(scores[rows], mask), padded(relevance[rows], mask), mask)
            if gradient:
                totals.sum().backward()
            total, weight = total + totals.detach().sum(), weight + weights.sum()
        return total, weight

    def step(self, *, learning_rate: float, largest_gradient: float) -> None:
        """g = gradient, shortened to `largest_gradient`; squares += g²; weights -= learning rate g / sqrt(squares)."""
        torch = torch_module()
        with torch.no_grad():
            norm = torch.stack([(w.grad * w.grad).sum() for w in self.weights]).sum().sqrt()
            shortened = (largest_gradient / (norm + 1e-6)).clamp(max=1)
            for w, squares in zip(self.weights, self.squares, strict=True):
                g = w.grad * shortened
                squares.addcmul_(g, g)
                w.addcdiv_(g, squares.sqrt().add_(1e-10), value=-learning_rate)
                w.grad = None


def padded(values: Tensor, mask: Tensor) -> Tensor:
    """Values, query by query, as a matrix queries × longest list; 0 where the mask is False."""
    return values.new_zeros(mask.shape).masked_scatter(mask, values)


def slices_of_queries(sizes: NDArray[np.int64]) -> Iterator[slice]:
    """Slices of queries, sorted by size, each with at most PAIRS_AT_ONCE padded pairs, or with one query."""
    end = len(sizes)
    while end > 0:
        start = max(0, end - max(1, PAIRS_AT_ONCE // int(sizes[end - 1]) ** 2))
        yield slice(start, end)
        end = start
