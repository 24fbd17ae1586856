"""One epoch of the DNN ranker on a set of MSLR-WEB30K's size (18,919 queries × 120 documents × 136 features).

The features are random: what a step costs does not depend on them. Where there is no GPU only a tenth of the queries
is trained on, and the seconds of a full epoch are ten times as many: every batch costs the same. Another share of
the queries can be given: python benchmarks/dnn.py 0.02
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.rankers.dnn import DNN, Epoch
from clickmix.rankers.losses import LOSSES
from measuring import write_result

QUERIES, DOCUMENTS, FEATURES = 18_919, 120, 136


@dataclass(frozen=True)
class Random:
    """Examples with lists of equal length."""

    features: NDArray[np.float32]
    relevance: NDArray[np.float32]
    offsets: NDArray[np.int64]

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
    for loss in LOSSES:
        preparing, epoch = _seconds(DNN(loss=loss, epochs=2), examples)
        figures[f"{loss}: seconds of an epoch"] = round(epoch, 2)
        figures[f"{loss}: seconds of an epoch of all queries"] = round(epoch / share, 1)
        figures[f"{loss}: seconds of checking and normalising all queries"] = round(preparing / share, 1)
    ranker = DNN(epochs=1).fit(Random.draw(10))
    start = time.perf_counter()
    ranker.score(examples.features)
    figures["seconds of scoring all queries"] = round((time.perf_counter() - start) / share, 1)
    return figures


def _seconds(settings: DNN, examples: Random) -> tuple[float, float]:
    """What comes before the first epoch, and the second epoch, which has nothing to set up."""
    ends: list[float] = [time.perf_counter()]

    def note(epoch: Epoch) -> None:
        ends.append(time.perf_counter())

    settings.fit(examples, progress=note)
    start, first, second = ends
    epoch = second - first
    return first - start - epoch, epoch


if __name__ == "__main__":
    given = float(sys.argv[1]) if len(sys.argv) > 1 else None
    write_result("dnn", " ".join(["python benchmarks/dnn.py", *sys.argv[1:]]), measure(share=given))
