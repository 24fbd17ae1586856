"""A ranker -> the model of the LTR plugin of Elasticsearch, `model/xgboost+json`.

The plugin goes left if threshold > x, in single precision. So the exported threshold is the next number above the
largest single-precision number up to LightGBM's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from clickmix.export.models import MODEL_OPTIONS, ModelFiles, ModelTarget, beside, json_bytes, upload
from clickmix.export.target import EXPORTS
from clickmix.export.trees import Tree, Trees, above32, floor32, read_trees

SERVER = "localhost:9200"
PLACEHOLDERS = "Each feature is a match on a field of the same name: put your own queries into {}."


@dataclass(frozen=True)
class MissingValues:
    """How some versions of an engine read a missing value, and whether that agrees with LightGBM."""

    versions: str
    words: str
    agrees: bool


@EXPORTS.register("elasticsearch-ltr", help="a model of Elasticsearch's LTR plugin (o19s)", options=MODEL_OPTIONS)
@dataclass(frozen=True, kw_only=True)
class ElasticsearchLTR(ModelTarget):
    """The plain array of trees, which every version of the plugin since 2019 reads."""

    limits = (
        "Numeric splits only. Scores are single precision. Versions differ on missing values; the command says which "
        "agree."
    )
    engine: ClassVar[str] = "elasticsearch-ltr"

    def files(self, source: Path, title: str, output: Path) -> ModelFiles:
        """The array of trees, and beside it the feature set, and the request that puts the model into it."""
        trees = read_trees(source, target=self.engine)
        model = [_node(tree, 0, trees.names) for tree in trees.trees]
        features = [
            {
                "name": name,
                "params": ["query"],
                "template_language": "mustache",
                "template": {"match": {name: "{{query}}"}},
            }
            for name in trees.names
        ]
        request = {
            "model": {
                "name": title,
                "model": {"type": "model/xgboost+json", "definition": json.dumps(model, ensure_ascii=False)},
            }
        }
        features_file, request_file = beside(output, "features.json"), beside(output, "request.json")
        of_set = f"{SERVER}/_ltr/_featureset/{title}"
        return ModelFiles(
            json_bytes(model),
            {
                "features.json": json_bytes({"featureset": {"name": title, "features": features}}),
                "request.json": json_bytes(request),
            },
            (
                f"{len(trees.trees):,} trees of {len(trees.names):,} features in {output}.",
                PLACEHOLDERS.format(features_file),
                *missing_words(self.readings(trees)),
            ),
            (
                f"curl -X PUT {SERVER}/_ltr",
                upload("POST", of_set, features_file),
                upload("POST", f"{of_set}/_createmodel", request_file),
            ),
        )

    def readings(self, trees: Trees) -> Sequence[MissingValues]:
        """How versions of the plugin read missing values."""
        return (
            MissingValues("the plugin up to 2024", "as 0", trees.missing_is_zero),
            MissingValues("the plugin since October 2025", "where each split says", True),
        )


def missing_words(readings: Sequence[MissingValues]) -> list[str]:
    """Sentences about missing values."""
    both = (("agrees with the ranker", True), ("does NOT agree with the ranker: fill gaps in the engine", False))
    return [
        f"Missing values, {reading.versions}: read {reading.words}, which {words}."
        for words, agrees in both
        for reading in readings
        if reading.agrees == agrees
    ]


def _node(tree: Tree, number: int, names: Sequence[str], depth: int = 0) -> dict[str, Any]:
    """A node with exactly the keys that the plugin's parser accepts."""
    node = tree[number]
    if node.is_leaf:
        return {"nodeid": number, "leaf": node.value}
    return {
        "nodeid": number,
        "depth": depth,
        "split": names[node.feature],
        "split_condition": float(above32(floor32(node.threshold))),
        "yes": node.left,
        "no": node.right,
        "missing": node.left if node.missing_left else node.right,
        "children": [_node(tree, child, names, depth + 1) for child in (node.left, node.right)],
    }
