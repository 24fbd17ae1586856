"""A ranker -> a trained model of Elasticsearch itself, which compares in double precision, as LightGBM does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clickmix.export.elasticsearch_ltr import PLACEHOLDERS, SERVER
from clickmix.export.models import MODEL_OPTIONS, ModelFiles, ModelTarget, beside, json_bytes, upload
from clickmix.export.target import EXPORTS
from clickmix.export.trees import Tree, read_trees


@EXPORTS.register("elasticsearch", help="a trained model of Elasticsearch itself", options=MODEL_OPTIONS)
@dataclass(frozen=True, kw_only=True)
class Elasticsearch(ModelTarget):
    """The model's `definition`: an ensemble whose trees are lists of nodes."""

    limits = "Numeric splits only. Elasticsearch 8.15 or newer, with a licence for learning to rank."
    titles = "[a-z0-9]([a-z0-9_-]*[a-z0-9])?"
    titles_words = "small letters, digits, - and _, as in shop_ranker-1"

    def files(self, source: Path, title: str, output: Path) -> ModelFiles:
        """The definition, and beside it the whole request, with an extractor for each feature."""
        trees = read_trees(source, target="elasticsearch")
        names = list(trees.names)
        one_of = {"feature_names": names, "target_type": "regression"}
        ensemble = one_of | {
            "aggregate_output": {"weighted_sum": {}},
            "trained_models": [{"tree": one_of | {"tree_structure": _nodes(tree)}} for tree in trees.trees],
        }
        definition = {"trained_model": {"ensemble": ensemble}}
        extractors = [
            {"query_extractor": {"feature_name": name, "query": {"match": {name: "{{query}}"}}}} for name in names
        ]
        config = {"learning_to_rank": {"feature_extractors": extractors}}
        request_file = beside(output, "request.json")
        return ModelFiles(
            json_bytes(definition),
            {"request.json": json_bytes({"inference_config": config, "definition": definition})},
            (
                f"{len(trees.trees):,} trees of {len(names):,} features in {output}.",
                PLACEHOLDERS.format(request_file),
                "Missing values: every version sends them where each split says, which agrees with the ranker.",
            ),
            (upload("PUT", f"{SERVER}/_ml/trained_models/{title}", request_file),),
        )


def _nodes(tree: Tree) -> Sequence[dict[str, Any]]:
    return [
        {"node_index": number, "leaf_value": node.value}
        if node.is_leaf
        else {
            "node_index": number,
            "decision_type": "lte",
            "left_child": node.left,
            "right_child": node.right,
            "split_feature": node.feature,
            "threshold": node.threshold,
            "default_left": node.missing_left,
        }
        for number, node in enumerate(tree)
    ]
