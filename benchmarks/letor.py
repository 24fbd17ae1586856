"""Reading LETOR text of MSLR's size, beside scikit-learn's reader: python benchmarks/letor.py [lines]"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from sklearn.datasets import load_svmlight_file

from clickmix.datasets.cache import read_cached
from clickmix.datasets.letor import read_letor
from clickmix.datasets.synthetic import synthetic_collection

T = TypeVar("T")

LINES = 2_270_296  # of the training file of MSLR-WEB30K, fold 1
REPEATED = 5_000  # lines made, and then written again and again under other query ids
SLICE = 100_000  # lines for the comparison


def main(lines: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.txt", Path(folder) / "large.txt"
        write_text(small, min(SLICE, lines))
        ours, _ = timed(lambda: read_letor(small))
        theirs, _ = timed(lambda: load_svmlight_file(str(small), query_id=True))
        print(
            f"{min(SLICE, lines):,} lines: {ours:.1f} s, scikit-learn {theirs:.1f} s, {theirs / ours:.1f} times as long"
        )
        write_text(large, lines)
        seconds, split = timed(lambda: read_letor(large))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size, numbers = large.stat().st_size / 1e9, split.features.nbytes / 1024**2
        print(f"{lines:,} lines of {split.features.shape[1]} features, {size:.2f} GB: {seconds:.1f} s")
        print(f"peak memory {peak:,.0f} MiB, of which the features {numbers:,.0f} MiB")
        del split
        timed(lambda: read_cached(large))
        print(f"opened from the cache: {timed(lambda: read_cached(large))[0]:.3f} s")


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
    main(int(sys.argv[1]) if len(sys.argv) > 1 else LINES)
