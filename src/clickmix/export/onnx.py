"""A ranker -> ONNX: a matrix of features in single precision in, a column of scores out. Trees and networks.

ONNX goes left if x <= threshold in single precision, so the threshold is the largest such number up to LightGBM's. A
network takes raw features: its normalisation is part of the graph, in double precision as in training.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clickmix.errors import InputError
from clickmix.export.models import ModelFiles, ModelTarget
from clickmix.export.target import EXPORTS
from clickmix.export.trees import Trees, floor32, read_trees
from clickmix.features.normalisation import LARGEST
from clickmix.rankers import load_ranker

OPSET, ML_OPSET, IR_VERSION = 13, 1, 8  # versions of 2020: everything that runs ONNX today reads them
INPUT, OUTPUT = "features", "score"


@EXPORTS.register("onnx", help="ONNX, for onnxruntime, Vespa and OpenSearch; also the DNN")
@dataclass(frozen=True, kw_only=True)
class ONNX(ModelTarget):
    """One graph; the names of the features are in its metadata, under `feature_names`."""

    limits = "Numeric splits only. Scores are single precision."
    titles = ".*"  # the file has no name

    def files(self, source: Path, title: str, output: Path) -> ModelFiles:
        """The graph."""
        onnx = _module()
        ranker = load_ranker(source)
        weights: Any = getattr(ranker, "weights", None)
        constants: list[Any] = []
        if weights is None:
            trees = read_trees(source, target="onnx")
            nodes, domain = [_trees_node(onnx, trees)], "ai.onnx.ml"
            missing = "Missing values (NaN) go where each split says, which agrees with the ranker."
        else:
            normalisation: Any = getattr(ranker, "normalisation", None)
            nodes, constants = _network(onnx, weights, normalisation.mean, normalisation.deviation)
            domain, missing = "", "Missing values (NaN) count as the mean of their feature."
        names = ranker.feature_names
        model = _model(onnx, nodes, constants, names, domains={"": OPSET} | ({domain: ML_OPSET} if domain else {}))
        shape = f"Input {INPUT!r}: float32, (documents, {len(names)}); output {OUTPUT!r}: float32, (documents, 1)."
        return ModelFiles(model, {}, (f"ONNX model of {len(names):,} features in {output}.", shape, missing))


def _module() -> Any:
    try:
        return importlib.import_module("onnx")
    except ImportError:
        raise InputError("ONNX files need a package that is not installed. Install it with: pip install onnx") from None


def _model(
    onnx: Any, nodes: Sequence[Any], constants: Sequence[Any], names: Sequence[str], *, domains: dict[str, int]
) -> bytes:
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        list(nodes),
        "clickmix",
        [helper.make_tensor_value_info(INPUT, kind, ["documents", len(names)])],
        [helper.make_tensor_value_info(OUTPUT, kind, ["documents", 1])],
        list(constants),
    )
    model = helper.make_model(
        graph,
        producer_name="clickmix",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in domains.items()],
    )
    helper.set_model_props(model, {"feature_names": json.dumps(list(names), ensure_ascii=False)})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def _trees_node(onnx: Any, trees: Trees) -> Any:
    """One TreeEnsembleRegressor: all nodes of all trees in parallel lists."""
    nodes = [(t, i, node) for t, tree in enumerate(trees.trees) for i, node in enumerate(tree)]
    leaves = [(t, i, node.value) for t, i, node in nodes if node.is_leaf]
    return onnx.helper.make_node(
        "TreeEnsembleRegressor",
        [INPUT],
        [OUTPUT],
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function="SUM",
        post_transform="NONE",
        nodes_treeids=[t for t, _, _ in nodes],
        nodes_nodeids=[i for _, i, _ in nodes],
        nodes_modes=["LEAF" if node.is_leaf else "BRANCH_LEQ" for _, _, node in nodes],
        nodes_featureids=[max(node.feature, 0) for _, _, node in nodes],
        nodes_values=[float(floor32(node.threshold)) for _, _, node in nodes],
        nodes_truenodeids=[node.left for _, _, node in nodes],
        nodes_falsenodeids=[node.right for _, _, node in nodes],
        nodes_missing_value_tracks_true=[int(node.missing_left) for _, _, node in nodes],
        target_treeids=[t for t, _, _ in leaves],
        target_nodeids=[i for _, i, _ in leaves],
        target_ids=[0] * len(leaves),
        target_weights=[value for _, _, value in leaves],
    )


def _network(onnx: Any, weights: Sequence[Any], mean: Any, deviation: Any) -> tuple[list[Any], list[Any]]:
    """z = sign(x) log(1+|x|), h = (z - mean) / deviation cut at ±10, 0 if missing; h = elu(h W + b); then h W + b."""
    make, constant = onnx.helper.make_node, onnx.numpy_helper.from_array
    scale = np.divide(1, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    constants = [
        constant(np.float64(0), "zero"),
        constant(np.float64(1), "one"),
        constant(np.asarray(mean, np.float64), "mean"),
        constant(scale, "scale"),
        constant(np.float64(-LARGEST), "least"),
        constant(np.float64(LARGEST), "most"),
    ]
    steps = [
        make("Cast", [INPUT], ["x"], to=onnx.TensorProto.DOUBLE),
        make("Abs", ["x"], ["size"]),
        # log(1 + a) = log(u) a / (u - 1) with u = 1 + a, or a if u is 1: also exact for small a.
        make("Add", ["one", "size"], ["u"]),
        make("Sub", ["u", "one"], ["above"]),
        make("Equal", ["u", "one"], ["tiny"]),
        make("Where", ["tiny", "one", "above"], ["divisor"]),
        make("Log", ["u"], ["log"]),
        make("Mul", ["log", "size"], ["product"]),
        make("Div", ["product", "divisor"], ["large"]),
        make("Where", ["tiny", "size", "large"], ["log1p"]),
        make("Sign", ["x"], ["sign"]),
        make("Mul", ["sign", "log1p"], ["z"]),
        make("Sub", ["z", "mean"], ["centred"]),
        make("Mul", ["centred", "scale"], ["scaled"]),
        make("Clip", ["scaled", "least", "most"], ["cut"]),
        make("IsNaN", ["cut"], ["missing"]),
        make("Where", ["missing", "zero", "cut"], ["filled"]),
        make("Cast", ["filled"], ["h0"], to=onnx.TensorProto.FLOAT),
    ]
    layers = len(weights) // 2
    for i in range(layers):
        constants += [
            constant(np.ascontiguousarray(w), f"{kind}{i}") for kind, w in zip("Wb", weights[2 * i :], strict=False)
        ]
        last = i == layers - 1
        steps.append(make("Gemm", [f"h{i}", f"W{i}", f"b{i}"], [OUTPUT if last else f"a{i}"]))
        if not last:
            steps.append(make("Elu", [f"a{i}"], [f"h{i + 1}"]))
    return steps, constants
