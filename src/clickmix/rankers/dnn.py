"""The DNN ranker: examples (features, relevance, queries) in, a FittedDNN that scores documents out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import SettingError
from clickmix.features.matrix import check_features
from clickmix.features.normalisation import Normalisation, chunks
from clickmix.rankers.batches import Examples, Prepared, check_examples, prepare
from clickmix.rankers.dnn_files import Contents, damaged, read_contents, write_contents
from clickmix.rankers.losses import LOSSES
from clickmix.rankers.network import Network, Weights, initial_weights

Progress = Callable[["Epoch"], None]


@dataclass(frozen=True)
class Epoch:
    """One pass over the training queries: its number (from 1), its mean loss, and that on the validation labels."""

    number: int
    loss: float
    vali_loss: float | None


@dataclass(frozen=True)
class DNN:
    """Settings of a network that scores one document at a time; network and optimiser are the paper's authors'.

    `layers` are the sizes of the hidden layers, each followed by ELU and by `dropout` of that share in training. The
    loss is "sigmoid" or "softmax" (cross entropies) or "lambda" (LambdaLoss), see `clickmix.rankers.losses`. Adagrad
    takes one step per `batch` queries, with gradients no longer than `largest_gradient`. With validation examples,
    training ends after `patience` epochs that did not lower their loss, and the best epoch's weights are kept.
    """

    loss: str = "sigmoid"
    layers: tuple[int, ...] = (512, 256, 128)
    dropout: tuple[float, ...] = (0.0, 0.1, 0.1)
    learning_rate: float = 4e-3
    largest_gradient: float = 10.0
    batch: int = 64
    epochs: int = 30
    patience: int = 5

    def __post_init__(self) -> None:
        _check_one_of("loss", self.loss, tuple(LOSSES))
        object.__setattr__(self, "layers", tuple(self.layers))
        object.__setattr__(self, "dropout", tuple(self.dropout))
        for name, least in {"batch": 1, "epochs": 1, "patience": 1}.items():
            _check_whole(name, getattr(self, name), least=least)
        for size in self.layers:
            _check_whole("layers", size, least=1)
        for share in self.dropout:
            _check_number("dropout", share, lambda value: 0 <= value < 1, "at least 0 and below 1")
        if len(self.dropout) != len(self.layers):
            raise SettingError(
                f"dropout={self.dropout!r}: expected one share for each of the {len(self.layers)} layers."
            )
        for name in ("learning_rate", "largest_gradient"):
            _check_number(name, getattr(self, name), lambda value: 0 < value < math.inf, "above 0")

    def fit(
        self, examples: Examples, *, vali: Examples | None = None, seed: int = 0, progress: Progress | None = None
    ) -> FittedDNN:
        """Train on `examples`; `progress` is told of every epoch. The same seed gives the same weights."""
        _check_whole("seed", seed, least=0)
        check_examples(examples, name="examples")
        width = np.shape(examples.features)[1]
        if vali is not None:
            check_examples(vali, name="vali")
            check_features(vali.features, name="vali", width=width)
        normalisation = Normalisation.fit(np.asarray(examples.features))
        start, dropping, shuffling = np.random.SeedSequence(seed).spawn(3)
        network = Network.build(
            initial_weights(width, self.layers, rng=np.random.default_rng(start)),
            seed=int(dropping.generate_state(1, np.uint32)[0]),
        )
        train = prepare(examples, normalisation=normalisation)
        held_out = None if vali is None else prepare(vali, normalisation=normalisation)
        weights, epochs = self._epochs(network, train, held_out, np.random.default_rng(shuffling), progress)
        return FittedDNN(self, normalisation, weights, epochs)

    def _epochs(
        self,
        network: Network,
        train: Prepared,
        vali: Prepared | None,
        rng: np.random.Generator,
        progress: Progress | None,
    ) -> tuple[Weights, tuple[Epoch, ...]]:
        """The weights that are kept, and what happened on the way."""
        epochs: list[Epoch] = []
        best = network.numpy()
        for number in range(1, self.epochs + 1):
            loss = self._learn(network, train, rng)
            vali_loss = None if vali is None else self._measure(network, vali)
            if not math.isfinite(loss) or (vali_loss is not None and not math.isfinite(vali_loss)):
                raise SettingError(
                    f"learning_rate={self.learning_rate!r}: the loss is no number any more in epoch {number}. "
                    "Choose a smaller one."
                )
            epochs.append(Epoch(number, loss, vali_loss))
            if progress is not None:
                progress(epochs[-1])
            if best_epoch(epochs) == number:
                best = network.numpy()
            elif number - best_epoch(epochs) >= self.patience:
                break
        return best, tuple(epochs)

    def _learn(self, network: Network, train: Prepared, rng: np.random.Generator) -> float:
        """One epoch; its mean loss."""
        sums = [
            network.learn(
                batch,
                loss=LOSSES[self.loss],
                dropout=self.dropout,
                learning_rate=self.learning_rate,
                largest_gradient=self.largest_gradient,
            )
            for batch in train.batches(queries=self.batch, rng=rng)
        ]
        return _mean(sums)

    def _measure(self, network: Network, vali: Prepared) -> float:
        return _mean([network.measure(batch, loss=LOSSES[self.loss]) for batch in vali.batches(queries=self.batch)])


@dataclass(frozen=True)
class FittedDNN:
    """A trained network. `epochs` tell how it came about; `best_epoch(epochs)` is the one whose weights these are."""

    settings: DNN
    normalisation: Normalisation
    weights: Weights
    epochs: tuple[Epoch, ...]

    @property
    def features(self) -> int:
        """How many features a document has."""
        return len(self.normalisation.mean)

    def score(self, features: NDArray[np.floating]) -> NDArray[np.float64]:
        """One score per document, higher is better; with the sigmoid loss 1 / (1 + e^-score) estimates relevance."""
        documents, _ = check_features(features, name="features", width=self.features)
        network = Network.build(self.weights)
        scores = np.empty(documents)
        for rows in chunks(documents):
            scores[rows] = network.scores(self.normalisation.apply(np.asarray(features[rows])))
        return scores

    def save(self, folder: str | Path) -> None:
        """Write the ranker to a folder, which is made where it is missing; a ranker in it is replaced."""
        settings = dataclasses.asdict(self.settings)
        epochs = [dataclasses.asdict(epoch) for epoch in self.epochs]
        write_contents(folder, Contents(settings, self.normalisation, self.weights, epochs))

    @classmethod
    def load(cls, folder: str | Path) -> FittedDNN:
        """The ranker in a folder; one that is damaged, half-written or of another kind is refused."""
        contents = read_contents(folder)
        try:
            epochs = tuple(Epoch(**epoch) for epoch in contents.epochs)
            return cls(DNN(**contents.settings), contents.normalisation, contents.weights, epochs)
        except (TypeError, SettingError):
            raise damaged(Path(folder) / "ranker.json") from None


def best_epoch(epochs: list[Epoch] | tuple[Epoch, ...]) -> int:
    """The number of the first epoch with the lowest loss on the validation labels, or without these the last."""
    if epochs[-1].vali_loss is None:
        return epochs[-1].number
    return min(epochs, key=lambda epoch: epoch.vali_loss or 0.0).number


def _mean(sums: list[tuple[Any, Any]]) -> float:
    """Sum of totals / max(sum of weights, 1), over batches."""
    # Read from the device only now: a GPU that is asked after every batch stands still in between.
    total = sum(float(total) for total, _ in sums)
    return total / max(sum(float(weight) for _, weight in sums), 1.0)


def _check_one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise SettingError(f"{name}={value!r}: expected one of {', '.join(allowed)}.")


def _check_whole(name: str, value: object, *, least: int) -> None:
    if type(value) is not int or value < least:
        raise SettingError(f"{name}={value!r}: expected a whole number from {least}.")


def _check_number(name: str, value: object, right: Callable[[float], bool], expected: str) -> None:
    if not (isinstance(value, (int, float)) and not isinstance(value, bool) and right(value)):
        raise SettingError(f"{name}={value!r}: expected a number {expected}.")
