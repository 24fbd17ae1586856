"""The synthetic collection: the same bytes for the same seed, and the properties fixed before it is used."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from clickmix.errors import SettingError
from clickmix.features.split import Collection
from clickmix.lab.collections.synthetic import GRADE_SHARES, synthetic_collection
from oracles_datasets import Measured, measure

PRINT_DIGEST = """
import hashlib
import numpy as np
from clickmix.lab.collections.synthetic import synthetic_collection
train = synthetic_collection(queries=300, rng=np.random.default_rng(5)).train
print(hashlib.sha256(train.offsets.tobytes() + train.grade.tobytes() + train.features.tobytes()).hexdigest())
"""


def digest_in_a_process(*, threads: str) -> bytes:
    environment = os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "PYTHONHASHSEED": threads}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", PRINT_DIGEST]
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


# The collection is made once, so its tests stay together.
pytestmark = pytest.mark.xdist_group("synthetic")


@pytest.fixture(scope="module")
def collection() -> Collection:
    return synthetic_collection(queries=1000, rng=np.random.default_rng(7))


@pytest.fixture(scope="module")
def measured(collection: Collection) -> Measured:
    return measure(collection, rng=np.random.default_rng(8))


def test_the_splits_have_the_proportions_of_mslr(collection: Collection) -> None:
    splits = (collection.train, collection.vali, collection.test)
    assert [split.queries for split in splits] == [1000, 333, 333]
    assert {split.features.shape[1] for split in splits} == {136}
    assert len(set(np.concatenate([split.query_id for split in splits]).tolist())) == 1666
    assert collection.largest_grade == 4


def test_the_same_seed_gives_the_same_bytes_in_any_process() -> None:
    one, other = digest_in_a_process(threads="1"), digest_in_a_process(threads="4")
    assert len(one) == 65
    assert one == other


def test_another_seed_gives_other_documents() -> None:
    one, other = (synthetic_collection(queries=3, rng=np.random.default_rng(seed)) for seed in (1, 2))
    assert one.train.features[:9].tolist() != other.train.features[:9].tolist()


def test_the_smallest_collection_has_one_query_in_each_split() -> None:
    tiny = synthetic_collection(queries=1, rng=np.random.default_rng(0))
    assert (tiny.train.queries, tiny.vali.queries, tiny.test.queries) == (1, 1, 1)
    with pytest.raises(SettingError, match=r"^queries=0: a synthetic collection has at least 1 training query\.$"):
        synthetic_collection(queries=0, rng=np.random.default_rng(0))


def test_features_are_finite_and_of_mixed_kinds(collection: Collection) -> None:
    train = collection.train
    features = train.features
    assert np.isfinite(features).all()
    distinct = np.array([len(np.unique(column)) for column in features.T])
    assert (distinct > 1).all()
    assert (distinct == 2).sum() == 10  # binary
    assert ((distinct > 2) & (distinct < 1000)).sum() >= 16  # counts
    heavy = np.max(features, axis=0) > 20 * features.std(axis=0)
    assert heavy.sum() >= 5
    constant = (features == features[train.offsets[:-1]][train.query]).all(axis=0)
    assert constant.sum() == 4  # of the query
    correlations = np.corrcoef(features, rowvar=False) - np.eye(136)
    assert (correlations.max(axis=0) > 0.9).sum() >= 20  # copies


def test_the_grades_have_the_shares_of_mslr(measured: Measured) -> None:
    assert np.abs(np.subtract(measured.grade_shares, GRADE_SHARES)).max() < 0.01


def test_queries_have_40_to_120_documents(measured: Measured) -> None:
    assert (measured.smallest_query, measured.largest_query) == (40, 120)


def test_a_quarter_of_the_queries_have_no_grade_above_2(measured: Measured) -> None:
    assert measured.without_grade_above_2 > 0.25


def test_production_is_between_random_and_true_relevance(measured: Measured) -> None:
    assert 0.3 < measured.way_to_true_order < 0.7


def test_raw_clicks_teach_less_than_true_relevance(measured: Measured) -> None:
    assert measured.gap > 0.08
