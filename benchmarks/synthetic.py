"""The properties of the synthetic collection, measured: python benchmarks/synthetic.py [training queries] [seed]"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the measuring belongs to the tests

from clickmix.datasets.synthetic import synthetic_collection
from oracles_datasets import Measured, measure


def main(queries: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = time.perf_counter()
    collection = synthetic_collection(queries=queries, rng=rng)
    seconds = time.perf_counter() - start
    documents = sum(split.documents for split in (collection.train, collection.vali, collection.test))
    print(f"{collection.name}, seed {seed}: {documents:,} documents made in {seconds:.1f} s")
    show(measure(collection, rng=rng))


def show(measured: Measured) -> None:
    print("grade shares               ", " ".join(f"{share:.3f}" for share in measured.grade_shares))
    print("documents per query         ", measured.smallest_query, "to", measured.largest_query)
    print(f"queries without grade 3, 4  {measured.without_grade_above_2:.3f}")
    print(f"nDCG@10  random             {measured.random:.3f}")
    print(f"         production         {measured.production:.3f}")
    print(f"         raw clicks         {measured.raw_clicks:.3f}")
    print(f"         true relevance     {measured.true_relevance:.3f}")
    print(f"production, way to the true order   {measured.way_to_true_order:.2f}")
    print(f"production, way to the true ranker  {measured.way_to_true_ranker:.2f}")
    print(f"true relevance minus raw clicks     {measured.gap:.3f}")


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    main(arguments[0] if arguments else 4000, arguments[1] if len(arguments) > 1 else 0)
