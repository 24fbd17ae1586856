"""Reading LETOR text of MSLR's size, beside scikit-learn's reader: python benchmarks/letor.py [lines]"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.datasets import load_svmlight_file

from clickmix.features.letor import read_letor
from clickmix.lab.collections.cache import read_cached
from clickmix.lab.collections.synthetic import synthetic_collection
from measuring import write_result

T = TypeVar("T")

LINES = 2_270_296  # of the training file of MSLR-WEB30K, fold 1
REPEATED = 5_000  # lines made, and then written again and again under other query ids
SLICE = 100_000  # lines for the comparison


def measure(lines: int = LINES) -> dict[str, Any]:
    """Seconds, memory, and how many times faster than scikit-learn on a slice."""
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.txt", Path(folder) / "large.txt"
        write_text(small, min(SLICE, lines))
        ours, _ = timed(lambda: read_letor(small))
        theirs, _ = timed(lambda: load_svmlight_file(str(small), query_id=True))
        write_text(large, lines)
        seconds, split = timed(lambda: read_letor(large))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        features, numbers = split.features.shape[1], split.features.nbytes / 1024**2
        del split
        timed(lambda: read_cached(large))
        return {
            "lines": lines,
            "features": features,
            "gigabytes": round(large.stat().st_size / 1e9, 2),
            "seconds": round(seconds, 1),
            "peak_megabytes": round(peak),
            "megabytes_of_features": round(numbers),
            "seconds_from_the_cache": round(timed(lambda: read_cached(large))[0], 3),
            "times_faster_than_scikit_learn": round(theirs / ours, 1),
        }


def write_text(path: Path, lines: int) -> None:
    """MSLR-like lines: most numbers are small and whole, some have six decimals."""
    features = synthetic_collection(queries=80, rng=np.random.default_rng(0)).train.features[:REPEATED]
    whole = np.arange(features.shape[1]) % 5 < 3
    shown = np.where(whole, np.round(features), np.round(features.astype(float), 6)) + 0.0
    rows = [" ".join(f"{i}:{value:g}" for i, value in enumerate(row, start=1)) for row in shown]
    block = [f"{i % 5} qid:@{i // 100:03d} {row} \r\n" for i, row in enumerate(rows)]
    with path.open("w", newline="") as file:
        for start in range(0, lines, REPEATED):
            file.write("".join(block[: lines - start]).replace("@", str(start // REPEATED + 1)))


def timed(action: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    write_result("letor", "python benchmarks/letor.py", measure(int(sys.argv[1]) if len(sys.argv) > 1 else LINES))
