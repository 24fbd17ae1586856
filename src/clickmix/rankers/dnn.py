"""The DNN ranker: examples (features, relevance, queries) in, a FittedDNN that scores documents out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import SettingError, check_whole
from clickmix.features.matrix import check_features, columns_with_gaps
from clickmix.features.normalisation import Normalisation, chunks
from clickmix.features.split import checked_names
from clickmix.rankers.batches import LabelledDocuments, Prepared, check_examples, check_same_features, prepare
from clickmix.rankers.folder import SavedRanker, read_folder, write_folder
from clickmix.rankers.insight import DependencePoint, Importance, partial_dependence
from clickmix.rankers.losses import LOSSES
from clickmix.rankers.network import Network, Weights, shapes
from clickmix.rankers.ranker import RANKERS
from clickmix.rankers.weights_file import read_weights, weights_bytes
from clickmix.types import Progress

NAME = "dnn"
NORMALISATION = "log1p of the magnitude, standardised, cut at 10 deviations"
MISSING_AS = "mean"  # a missing value becomes the mean of those present in training


@dataclass(frozen=True)
class Epoch:
    """One pass over the training queries: its number (from 1), its mean loss, and its loss on validation labels."""

    number: int
    loss: float
    vali_loss: float | None


@RANKERS.register(NAME, help="a neural network (PyTorch)")
@dataclass(frozen=True)
class DNN:
    """Settings of a network that scores one document at a time; network and optimiser are those of the paper's authors.

    `layers` are the sizes of the hidden layers, each followed by ELU and, in training, by its share of `dropout`. The
    loss is "sigmoid" or "softmax" (cross entropies) or "lambda" (LambdaLoss), see `clickmix.rankers.losses`. Adagrad
    takes one step per `batch` queries, with gradients no longer than `largest_gradient`. With validation examples,
    training ends after `patience` epochs that did not lower their loss, and keeps the best epoch's weights.
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
        if self.loss not in LOSSES:
            raise SettingError(f"loss={self.loss!r}: expected one of {', '.join(LOSSES)}.")
        object.__setattr__(self, "layers", tuple(self.layers))
        object.__setattr__(self, "dropout", tuple(self.dropout))
        for name, least in {"batch": 1, "epochs": 1, "patience": 1}.items():
            check_whole(name, getattr(self, name), least=least)
        for size in self.layers:
            check_whole("layers", size, least=1)
        for share in self.dropout:
            _check_number("dropout", share, lambda value: 0 <= value < 1, "at least 0 and below 1")
        if len(self.dropout) != len(self.layers):
            raise SettingError(
                f"dropout={self.dropout!r}: expected one share for each of the {len(self.layers)} layers."
            )
        for name in ("learning_rate", "largest_gradient"):
            _check_number(name, getattr(self, name), lambda value: 0 < value < math.inf, "above 0")

    def fit(
        self,
        examples: LabelledDocuments,
        *,
        vali: LabelledDocuments | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> FittedDNN:
        """Train on `examples`; `progress` gets the share of epochs done. The same seed gives the same weights."""
        check_whole("seed", seed, least=0)
        check_examples(examples, name="examples")
        width = np.shape(examples.features)[1]
        names = checked_names(examples.feature_names, width)
        gaps = columns_with_gaps(np.asarray(examples.features))
        if vali is not None:
            check_examples(vali, name="vali")
            check_same_features(names, vali, gaps=gaps)
        normalisation = Normalisation.fit(np.asarray(examples.features))
        network, rng = Network.drawn(width, self.layers, seed=seed)
        train = prepare(examples, normalisation=normalisation)
        held_out = None if vali is None else prepare(vali, normalisation=normalisation)
        weights, epochs = self._epochs(network, train, held_out, rng, progress)
        missing = tuple(name for name, gap in zip(names, gaps, strict=True) if gap)
        return FittedDNN(self, normalisation, weights, epochs, names, missing)

    def restore(self, saved: SavedRanker) -> FittedDNN:
        """The trained network of a folder."""
        try:
            settings = DNN(**saved.settings)
            normalisation = _normalisation(saved.training["normalisation"], features=len(saved.feature_names))
            epochs = tuple(Epoch(**epoch) for epoch in saved.training["epochs"])
        except (KeyError, TypeError, ValueError):
            raise saved.damaged() from None
        missing = saved.missing_as(MISSING_AS)
        weights = read_weights(saved, shapes(len(saved.feature_names), settings.layers))
        return FittedDNN(settings, normalisation, weights, epochs, saved.feature_names, missing)

    def _epochs(
        self,
        network: Network,
        train: Prepared,
        vali: Prepared | None,
        rng: np.random.Generator,
        progress: Progress | None,
    ) -> tuple[Weights, tuple[Epoch, ...]]:
        """The weights to keep, and the loss of every epoch."""
        epochs: list[Epoch] = []
        best = network.numpy()
        for number in range(1, self.epochs + 1):
            loss = self._learn(network, train, rng)
            vali_loss = None
            if vali is not None:
                batches = vali.batches(queries=self.batch)
                vali_loss = _mean([network.measure(batch, loss=LOSSES[self.loss]) for batch in batches])
            if not math.isfinite(loss) or (vali_loss is not None and not math.isfinite(vali_loss)):
                raise SettingError(
                    f"learning_rate={self.learning_rate!r}: the loss stopped being a number in epoch {number}. "
                    "Choose a smaller rate."
                )
            epochs.append(Epoch(number, loss, vali_loss))
            if progress is not None:
                progress(number / self.epochs)
            if best_epoch(epochs) == number:
                best = network.numpy()
            elif number - best_epoch(epochs) >= self.patience:
                break
        return best, tuple(epochs)

    def _learn(self, network: Network, train: Prepared, rng: np.random.Generator) -> float:
        """Train for one epoch; return its mean loss."""
        learn = partial(
            network.learn,
            loss=LOSSES[self.loss],
            dropout=self.dropout,
            learning_rate=self.learning_rate,
            largest_gradient=self.largest_gradient,
        )
        return _mean([learn(batch) for batch in train.batches(queries=self.batch, rng=rng)])


@dataclass(frozen=True)
class FittedDNN:
    """A trained network with the weights of `best_epoch(epochs)`; `epochs` has the losses.

    `missing` are the features with missing values in training: such a value counts as the feature's mean.
    """

    settings: DNN
    normalisation: Normalisation
    weights: Weights
    epochs: tuple[Epoch, ...]
    feature_names: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature_names", checked_names(self.feature_names, self.features))

    @property
    def features(self) -> int:
        """How many features a document has."""
        return len(self.normalisation.mean)

    def score(self, features: NDArray[np.floating]) -> NDArray[np.float64]:
        """One score per document, higher is better; with the sigmoid loss 1 / (1 + e^-score) estimates relevance."""
        gaps = np.isin(self.feature_names, self.missing)
        documents = check_features(features, name="features", width=self.features, gaps=gaps)
        network = Network.build(self.weights)
        scores = np.empty(documents)
        for rows in chunks(documents):
            scores[rows] = network.scores(self.normalisation.apply(np.asarray(features[rows])))
        return scores

    def remarks(self) -> tuple[str, ...]:
        """Which epoch was best, if there were validation labels."""
        if self.epochs[-1].vali_loss is None:
            return ()
        return (f"Epoch {best_epoch(self.epochs)} of {len(self.epochs)} fits the validation labels best.",)

    def importance(self) -> tuple[Importance, ...]:
        """Empty: a network does not say how much it uses a feature."""
        return ()

    def partial_dependence(self, features: NDArray[np.float32], name: str) -> tuple[DependencePoint, ...]:
        """How the mean score of these documents changes with one feature."""
        return partial_dependence(self.score, features, names=self.feature_names, name=name)

    def save(self, folder: str | Path) -> None:
        """Write the ranker to a folder, which is created if it is missing; replaces a ranker in it."""
        normalisation = {
            "kind": NORMALISATION,
            "mean": self.normalisation.mean.tolist(),
            "deviation": self.normalisation.deviation.tolist(),
        }
        epochs = [dataclasses.asdict(epoch) for epoch in self.epochs]
        write_folder(
            folder,
            ranker=NAME,
            feature_names=self.feature_names,
            missing=dict.fromkeys(self.missing, MISSING_AS),
            settings=dataclasses.asdict(self.settings),
            training={"normalisation": normalisation, "epochs": epochs},
            weights=weights_bytes(self.weights),
            weights_name="weights.npy",
        )

    @classmethod
    def load(cls, folder: str | Path) -> FittedDNN:
        """The ranker in a folder; refuses one that is damaged, half-written or of another kind."""
        return DNN().restore(read_folder(folder, expected=NAME))


def best_epoch(epochs: list[Epoch] | tuple[Epoch, ...]) -> int:
    """The number of the first epoch with the lowest loss on the validation labels; without these, the last."""
    if epochs[-1].vali_loss is None:
        return epochs[-1].number
    return min(epochs, key=lambda epoch: epoch.vali_loss or 0.0).number


def _mean(sums: list[tuple[Any, Any]]) -> float:
    """Sum of totals / max(sum of weights, 1), over batches."""
    # Read from the device only now: reading after every batch would make a GPU wait.
    total = sum(float(total) for total, _ in sums)
    return total / max(sum(float(weight) for _, weight in sums), 1.0)


def _normalisation(fields: dict[str, Any], *, features: int) -> Normalisation:
    """The normalisation in a folder; raises TypeError or ValueError if it is wrong."""
    columns = [fields["mean"], fields["deviation"]]
    if not all(type(x) in (int, float) for column in columns for x in column):
        raise TypeError
    mean, deviation = (np.array(column, np.float64) for column in columns)
    if fields["kind"] != NORMALISATION or not len(mean) == len(deviation) == features or (deviation < 0).any():
        raise ValueError
    return Normalisation(mean, deviation)


def _check_number(name: str, value: object, right: Callable[[float], bool], expected: str) -> None:
    if not (isinstance(value, (int, float)) and not isinstance(value, bool) and right(value)):
        raise SettingError(f"{name}={value!r}: expected a number {expected}.")
