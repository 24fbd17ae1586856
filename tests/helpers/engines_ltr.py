"""Evaluators of exported models, written from the rules of each engine: one row of leaf values per document.

Nothing here looks at how clickmix writes a model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Matrix = Any
Node = dict[str, Any]


def walked(
    root: Node,
    rows: Matrix,
    *,
    leaf: Callable[[Node], Any | None],
    goes_left: Callable[[Node, Matrix], Any],
    children: Callable[[Node], tuple[Node, Node]],
    dtype: type,
) -> Any:
    """The leaf value that each row reaches in a tree."""
    reached: Any = np.full(len(rows), np.nan, dtype)

    def walk(node: Node, chosen: Any) -> None:
        value = leaf(node)
        if value is not None:
            reached[chosen] = value
            return
        left = goes_left(node, rows[chosen])
        for child, side in zip(children(node), (left, ~left), strict=True):
            walk(child, chosen[side])

    walk(root, np.arange(len(rows)))
    return reached


def ltr_plugin(model: list[Node], names: list[str], rows: Matrix, *, missing: str = "where each split says") -> Any:
    """The LTR plugins: single precision, yes where threshold > x.

    Versions differ on a missing value: it goes to the node `missing`, it is 0, or it goes right at every split.
    """
    if missing == "as 0":
        rows = np.nan_to_num(rows, nan=0.0)

    def goes_left(node: Node, x: Matrix) -> Any:
        assert set(node) == {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
        assert node["children"][0]["nodeid"] == node["yes"]
        assert node["children"][1]["nodeid"] == node["no"]
        values = x[:, names.index(node["split"])].astype(np.float32)
        of_missing = missing == "where each split says" and node["missing"] == node["yes"]
        return np.where(np.isnan(values), of_missing, np.float32(node["split_condition"]) > values)

    def leaf(node: Node) -> Any | None:
        if "leaf" not in node:
            return None
        assert set(node) == {"nodeid", "leaf"}
        return np.float32(node["leaf"])

    trees = [
        walked(
            root,
            rows,
            leaf=leaf,
            goes_left=goes_left,
            children=lambda node: tuple(node["children"]),
            dtype=np.float32,
        )
        for root in model
    ]
    return np.column_stack(trees)


def solr(model: Node, rows: Matrix) -> Any:
    """Solr: single precision, left where x <= threshold + 1e-6; a missing value as `missing` says, or as 0."""
    names = [feature["name"] for feature in model["features"]]
    null_is_zero = model["params"].get("isNullSameAsZero", "true") == "true"

    def goes_left(node: Node, x: Matrix) -> Any:
        assert isinstance(node["threshold"], str)
        values = x[:, names.index(node["feature"])].astype(np.float32)
        if null_is_zero:
            values = np.nan_to_num(values, nan=0.0)
        limit = np.float32(np.float32(float(node["threshold"])) + np.float32(1e-6))
        return np.where(np.isnan(values), node.get("missing") == "left", values <= limit)

    trees = []
    for tree in model["params"]["trees"]:
        assert tree["weight"] == "1"
        trees.append(
            walked(
                tree["root"],
                rows,
                leaf=lambda node: np.float32(float(node["value"])) if "value" in node else None,
                goes_left=goes_left,
                children=lambda node: (node["left"], node["right"]),
                dtype=np.float32,
            )
        )
    return np.column_stack(trees)


def vespa(model: Node, rows: Matrix) -> Any:
    """Vespa: double precision, left where x < threshold, or with default_left where not x >= threshold."""
    assert model["pandas_categorical"] is None
    assert model["objective"] == "lambdarank"

    def goes_left(node: Node, x: Matrix) -> Any:
        values = x[:, node["split_feature"]].astype(np.float64)
        assert node["decision_type"] == "<="
        return ~(values >= node["threshold"]) if node["default_left"] else values < node["threshold"]

    trees = [
        walked(
            tree["tree_structure"],
            rows,
            leaf=lambda node: node.get("leaf_value"),
            goes_left=goes_left,
            children=lambda node: (node["left_child"], node["right_child"]),
            dtype=np.float64,
        )
        for tree in model["tree_info"]
    ]
    return np.column_stack(trees)


def elasticsearch(definition: Node, rows: Matrix) -> Any:
    """Elasticsearch itself: double precision, `lte`, a missing value to the left where default_left says so."""
    ensemble = definition["trained_model"]["ensemble"]
    assert ensemble["aggregate_output"] == {"weighted_sum": {}}
    trees = []
    for member in ensemble["trained_models"]:
        nodes = member["tree"]["tree_structure"]
        assert [node["node_index"] for node in nodes] == list(range(len(nodes)))

        def goes_left(node: Node, x: Matrix) -> Any:
            assert node["decision_type"] == "lte"
            values = x[:, node["split_feature"]].astype(np.float64)
            return np.where(np.isnan(values), node["default_left"], values <= node["threshold"])

        def children(node: Node, nodes: list[Node] = nodes) -> tuple[Node, Node]:
            return nodes[node["left_child"]], nodes[node["right_child"]]

        trees.append(
            walked(
                nodes[0],
                rows,
                leaf=lambda node: node.get("leaf_value"),
                goes_left=goes_left,
                children=children,
                dtype=np.float64,
            )
        )
    return np.column_stack(trees)


def summed32(leaves: Any) -> Any:
    """Leaf values added in single precision, one tree after the other."""
    total = np.zeros(len(leaves), np.float32)
    for column in leaves.astype(np.float32).T:
        total += column
    return total
