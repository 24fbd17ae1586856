"""ONNX files give the scores of their ranker in onnxruntime."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickmix.errors import InputError
from clickmix.export.target import export
from rankers_export import documents, edge_rows, leaf_values, train_ranker

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
SINGLE = 2.0**-24


def scores(model: Any, rows: Any) -> Any:
    """What onnxruntime gives, and that input and output are as documented."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (given,), (made,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.type, given.shape) == ("features", "tensor(float)", ["documents", rows.shape[1]])
    assert (made.name, made.type, made.shape) == ("score", "tensor(float)", ["documents", 1])
    return session.run(["score"], {"features": rows.astype(np.float32)})[0][:, 0]


def one_tree(model: Any, tree: int) -> Any:
    """The same model with one of its trees."""
    alone = onnx.ModelProto()
    alone.CopyFrom(model)
    node = alone.graph.node[0]
    parts = {attribute.name: attribute for attribute in node.attribute}
    for prefix in ("nodes_", "target_"):
        chosen = [i for i, t in enumerate(parts[f"{prefix}treeids"].ints) if t == tree]
        for name, attribute in parts.items():
            if name.startswith(prefix):
                values = onnx.helper.get_attribute_value(attribute)
                kept = onnx.helper.make_attribute(name, [values[i] for i in chosen])
                attribute.CopyFrom(kept)
    return alone


@pytest.mark.parametrize("gaps", [False, True], ids=["no gaps", "gaps"])
def test_every_row_reaches_the_same_leaf_of_every_tree(gaps: bool, tmp_path: Path) -> None:
    booster = train_ranker(tmp_path / "ranker", gaps=gaps)
    export(tmp_path / "ranker", to="onnx", output=tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    rows = np.concatenate([documents(10_000, seed=7, gaps=True), edge_rows(booster, gaps=gaps)])
    expected = leaf_values(booster, rows).astype(np.float32)
    found = np.column_stack([scores(one_tree(model, tree), rows) for tree in range(booster.num_trees())])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("gaps", [False, True], ids=["no gaps", "gaps"])
def test_scores_of_trees_agree_within_rounding(gaps: bool, tmp_path: Path) -> None:
    booster = train_ranker(tmp_path / "ranker", gaps=gaps)
    export(tmp_path / "ranker", to="onnx", output=tmp_path / "model.onnx")
    rows = np.concatenate([documents(10_000, seed=7, gaps=True), edge_rows(booster, gaps=gaps)])
    found = scores(onnx.load(tmp_path / "model.onnx"), rows)
    bound = 1.01 * SINGLE * (booster.num_trees() + 1) * np.abs(leaf_values(booster, rows)).sum(axis=1)
    assert (np.abs(found - booster.predict(rows)) <= bound).all()


def test_the_usual_converter_differs_at_thresholds(tmp_path: Path) -> None:
    """Why the thresholds are written by ourselves: rounded to the nearest they send rows elsewhere."""
    onnxmltools = pytest.importorskip("onnxmltools", reason="onnxmltools is not installed")
    types = pytest.importorskip("onnxmltools.convert.common.data_types")
    booster = train_ranker(tmp_path / "ranker", gaps=False)
    rows = edge_rows(booster, gaps=False)
    inputs = [("features", types.FloatTensorType([None, rows.shape[1]]))]
    converted = onnxmltools.convert_lightgbm(booster, initial_types=inputs, zipmap=False)
    session = onnxruntime.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    theirs = session.run(None, {"features": rows})[0].ravel()
    export(tmp_path / "ranker", to="onnx", output=tmp_path / "model.onnx")
    ours = scores(onnx.load(tmp_path / "model.onnx"), rows)
    true = booster.predict(rows)
    assert np.abs(ours - true).max() < 1e-5 < 1e-3 < np.abs(theirs - true).max()


@pytest.fixture
def network(tmp_path: Path) -> Any:
    """A small DNN, saved."""
    pytest.importorskip("torch", reason="torch is not installed")
    from clickmix.features import make_examples
    from clickmix.rankers.dnn import DNN

    features = documents(400, seed=1, gaps=False)
    features[:, 1] *= 1e-9  # small numbers keep their digits through the logarithm
    relevance = np.random.default_rng(0).random(400)
    query, document = np.repeat(np.arange(40), 10), np.arange(400)
    examples = make_examples((query, document, features), (query, document, relevance))
    ranker = DNN(layers=(16, 8), dropout=(0.0, 0.0), epochs=3).fit(examples)
    ranker.save(tmp_path / "ranker")
    return ranker


def test_a_network_gives_the_scores_of_its_ranker(network: Any, tmp_path: Path) -> None:
    done = export(tmp_path / "ranker", to="onnx", output=tmp_path / "model.onnx")
    rows = documents(10_000, seed=2, gaps=False)
    rows[:, 1] *= 1e-9
    rows[:100] = 0
    found = scores(onnx.load(tmp_path / "model.onnx"), rows)
    true = network.score(rows)
    # Three layers of sums of up to 16 products of numbers up to about 10, in single precision.
    np.testing.assert_allclose(found, true, rtol=0, atol=3 * 16 * 10 * SINGLE * max(1.0, np.abs(true).max()))
    assert "Missing values (NaN) count as the mean of their feature." in done.notes


def test_a_missing_value_counts_as_the_mean_in_a_network(network: Any, tmp_path: Path) -> None:
    export(tmp_path / "ranker", to="onnx", output=tmp_path / "model.onnx")
    mean = network.normalisation.mean  # of sign(x) log(1 + |x|)
    rows = documents(50, seed=3, gaps=False)
    filled = rows.copy()
    filled[:, 2] = np.copysign(np.expm1(np.abs(mean[2])), mean[2])
    rows[:, 2] = np.nan
    found = scores(onnx.load(tmp_path / "model.onnx"), rows)
    np.testing.assert_allclose(found, network.score(filled), rtol=0, atol=1e-5)


def test_the_names_of_the_features_are_in_the_metadata(tmp_path: Path) -> None:
    train_ranker(tmp_path / "ranker", gaps=False)
    export(tmp_path / "ranker", to="onnx", output=tmp_path / "model.onnx")
    (names,) = [p.value for p in onnx.load(tmp_path / "model.onnx").metadata_props if p.key == "feature_names"]
    assert json.loads(names) == [f"feature_{i}" for i in range(1, 7)]


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_ranker(tmp_path / "ranker", gaps=False)
    monkeypatch.setitem(sys.modules, "onnx", None)
    message = "ONNX files need a package that is not installed. Install it with: pip install onnx"
    with pytest.raises(InputError, match=message):
        export(tmp_path / "ranker", to="onnx", output=tmp_path / "model.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["ranker"]
