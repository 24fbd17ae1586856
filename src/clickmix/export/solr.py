"""A ranker -> Solr's MultipleAdditiveTreesModel, every number as text.

Solr goes left if x <= threshold + 1e-6, in single precision. So the exported threshold is one whose sum with 1e-6 is
LightGBM's, in single precision. If there is none, as for many thresholds below 1e-3, the ranker is refused. Close to 0
that sum is coarse: values between -1e-13 and 1e-35 count as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clickmix.errors import InputError
from clickmix.export.elasticsearch_ltr import MissingValues, missing_words
from clickmix.export.models import MODEL_OPTIONS, ModelFiles, ModelTarget, beside, json_bytes, upload
from clickmix.export.target import EXPORTS
from clickmix.export.trees import Tree, Trees, floor32, read_trees

SERVER = "localhost:8983/solr/COLLECTION/schema"
SLACK = np.float32(1e-6)
ZERO = np.float32(1e-35)  # LightGBM's thresholds below and above 0


@EXPORTS.register("solr", help="a MultipleAdditiveTreesModel of Solr", options=MODEL_OPTIONS)
@dataclass(frozen=True, kw_only=True)
class Solr(ModelTarget):
    """The model, in a store of the same name."""

    limits = (
        "Numeric splits only, at thresholds Solr can hit: it adds 1e-6 to each, so small features must be scaled up. "
        "Values between -1e-13 and 1e-35 count as 0."
    )

    def files(self, source: Path, title: str, output: Path) -> ModelFiles:
        """The model, and beside it the feature store."""
        trees = read_trees(source, target="solr")
        # Solr before 9.2 reads missing values as 0 and refuses a model that mentions them.
        zero = trees.missing_is_zero
        roots = [{"weight": "1", "root": _node(tree, 0, trees.names, directions=not zero)} for tree in trees.trees]
        model = {
            "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
            "name": title,
            "store": title,
            "features": [{"name": name} for name in trees.names],
            "params": {"trees": roots} if zero else {"isNullSameAsZero": "false", "trees": roots},
        }
        default = {} if zero else {"defaultValue": "NaN"}
        features = [
            {
                "store": title,
                "name": name,
                "class": "org.apache.solr.ltr.feature.FieldValueFeature",
                "params": {"field": name} | default,
            }
            for name in trees.names
        ]
        store = beside(output, "features.json")
        return ModelFiles(
            json_bytes(model),
            {"features.json": json_bytes(features)},
            (
                f"{len(trees.trees):,} trees of {len(trees.names):,} features in {output}.",
                f"Each feature is the value of a field of the same name: put your own features into {store}.",
                *missing_words(_readings(trees)),
            ),
            (upload("PUT", f"{SERVER}/feature-store", store), upload("PUT", f"{SERVER}/model-store", output)),
        )


def _readings(trees: Trees) -> Sequence[MissingValues]:
    if trees.missing_is_zero:
        return (MissingValues("every version of Solr", "as 0", True),)
    return (
        MissingValues("Solr 9.2 and newer", "where each split says", True),
        MissingValues("Solr before 9.2", "as 0 (it refuses this model)", False),
    )


def slack_threshold(threshold: float) -> np.float32 | None:
    """The threshold for which Solr goes left for the same single-precision numbers; None if there is none.

    >>> slack_threshold(0.5)
    np.float32(0.499999)
    >>> slack_threshold(3e-8) is None
    True
    """
    most = floor32(threshold)
    written = np.float32(most - SLACK)
    while np.float32(written + SLACK) > most:
        written = np.nextafter(written, np.float32(-np.inf))
    met = np.float32(written + SLACK)
    return written if met == most or abs(most) <= ZERO else None


def _node(tree: Tree, number: int, names: Sequence[str], *, directions: bool) -> dict[str, Any]:
    node = tree[number]
    if node.is_leaf:
        return {"value": repr(node.value)}
    name, threshold = names[node.feature], slack_threshold(node.threshold)
    if threshold is None:
        raise InputError(
            f"{name}: Solr adds 1e-6 to every threshold, and cannot hit {node.threshold:.6g}. Multiply the feature, "
            "for instance by 1,000, and train again."
        )
    missing = {"missing": "left" if node.missing_left else "right"} if directions else {}
    return {
        "feature": name,
        "threshold": repr(float(threshold)),
        **missing,
        "left": _node(tree, node.left, names, directions=directions),
        "right": _node(tree, node.right, names, directions=directions),
    }
