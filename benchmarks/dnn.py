"""One epoch of the DNN ranker on a set of MSLR-WEB30K's size (18,919 queries × 120 documents × 136 features).

The features are random: what a step costs does not depend on them. Where there is no GPU only a tenth of the queries
is trained on, and the seconds of a full epoch are ten times as many: every batch costs the same. Another share of
the queries can be given: python benchmarks/dnn.py 0.02. Each loss is also trained twice on 100 queries with the same
seed, and the scores must be the same bits; scores of these weights by numpy, on the processor, say how far the device
rounds otherwise. Results are in dnn.json, those of a GPU in dnn-gpu.json.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.features.normalisation import Normalisation
from clickmix.rankers.batches import check_examples, prepare
from clickmix.rankers.dnn import DNN, FittedDNN
from clickmix.rankers.losses import LOSSES
from measuring import write_result

QUERIES, DOCUMENTS, FEATURES = 18_919, 120, 136


@dataclass(frozen=True)
class Random:
    """Examples with lists of equal length."""

    features: NDArray[np.float32]
    relevance: NDArray[np.float32]
    offsets: NDArray[np.int64]
    feature_names: tuple[str, ...] = ()

    @classmethod
    def draw(cls, queries: int) -> Random:
        """Features and labels without meaning."""
        rng = np.random.default_rng(0)
        documents = queries * DOCUMENTS
        features = rng.standard_normal((documents, FEATURES), np.float32)
        return cls(features, rng.random(documents, np.float32), np.arange(0, documents + 1, DOCUMENTS))


def measure(*, share: float | None = None) -> dict[str, Any]:
    """Seconds of an epoch per loss, and of scoring; on `share` of the queries (None: all on a GPU, else a tenth)."""
    import torch

    gpu = torch.cuda.is_available()
    share = share or (1.0 if gpu else 0.1)
    queries = round(QUERIES * share)
    examples = Random.draw(queries)
    figures: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "queries": queries,
        "documents_per_query": DOCUMENTS,
        "features": FEATURES,
        "share_of_mslr": share,
    }
    start = time.perf_counter()
    check_examples(examples, name="examples")
    prepare(examples, normalisation=Normalisation.fit(examples.features))
    figures["seconds of checking and normalising all queries"] = round((time.perf_counter() - start) / share, 1)
    for loss in LOSSES:
        seconds = _epoch_seconds(DNN(loss=loss, epochs=2), examples)
        figures[f"{loss}: seconds of an epoch"] = round(seconds, 2)
        figures[f"{loss}: seconds of an epoch of all queries"] = round(seconds / share, 1)
        figures[f"{loss}: the same seed gives the same scores"], figures[f"{loss}: largest difference from numpy"] = (
            _repeated(DNN(loss=loss, epochs=2))
        )
    ranker = DNN(epochs=1).fit(Random.draw(10))
    start = time.perf_counter()
    ranker.score(examples.features)
    figures["seconds of scoring all queries"] = round((time.perf_counter() - start) / share, 1)
    return figures


def _epoch_seconds(settings: DNN, examples: Random) -> float:
    """Of the second epoch, which has nothing to set up."""
    ends: list[float] = []

    def note(share: float) -> None:
        ends.append(time.perf_counter())

    settings.fit(examples, progress=note)
    return ends[1] - ends[0]


def _repeated(settings: DNN) -> tuple[bool, float]:
    """Whether the same seed gives the same scores; and by how much they differ from those that numpy computes."""
    examples, others = Random.draw(100), Random.draw(20).features
    first, second = (settings.fit(examples, seed=1) for _ in range(2))
    scores = first.score(others)
    same = scores.tolist() == second.score(others).tolist()
    return same, float(f"{np.abs(scores - _numpy_scores(first, others)).max():.1e}")


def _numpy_scores(ranker: FittedDNN, features: NDArray[np.float32]) -> NDArray[np.float64]:
    """h = elu(h W + b) layer by layer, and h W + b, in double precision."""
    h = ranker.normalisation.apply(features).astype(np.float64)
    *hidden, (W, b) = zip(ranker.weights[::2], ranker.weights[1::2], strict=True)
    for matrix, bias in hidden:
        h = h @ matrix + bias
        h = np.where(h > 0, h, np.expm1(np.minimum(h, 0)))
    return np.asarray((h @ W + b)[:, 0])


if __name__ == "__main__":
    given = float(sys.argv[1]) if len(sys.argv) > 1 else None
    found = measure(share=given)
    name = "dnn" if found["device"] == "cpu" else "dnn-gpu"
    write_result(name, " ".join(["python benchmarks/dnn.py", *sys.argv[1:]]), found)
