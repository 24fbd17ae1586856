"""A ranker -> LightGBM's JSON for Vespa's `lightgbm("model.json")`.

Vespa goes left if x < threshold, in double precision. So the exported threshold is the next number above LightGBM's.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clickmix.errors import InputError
from clickmix.export.models import MODEL_OPTIONS, ModelFiles, ModelTarget, beside, json_bytes
from clickmix.export.target import EXPORTS
from clickmix.export.trees import Tree, read_trees

FUNCTION = "[A-Za-z_][A-Za-z0-9_]*"  # a function without arguments, which a rank profile can define
RANK_FEATURE = rf"{FUNCTION}(\(.*\))?(\.[A-Za-z0-9_.]+)?"  # such as bm25(title) or fieldMatch(title).proximity


@EXPORTS.register("vespa", help="a model for Vespa's lightgbm(...) rank feature", options=MODEL_OPTIONS)
@dataclass(frozen=True, kw_only=True)
class Vespa(ModelTarget):
    """The part of LightGBM's dump that Vespa reads: objective, feature_names, tree_info, pandas_categorical."""

    limits = "Numeric splits only. Features are Vespa's rank features, or functions of a rank profile."
    titles = "[A-Za-z][A-Za-z0-9_]*"
    titles_words = "letters, digits and _, as in shop_ranker_1"

    def files(self, source: Path, title: str, output: Path) -> ModelFiles:
        """The dump, and beside it a rank profile that uses it."""
        trees = read_trees(source, target="vespa")
        for name in trees.names:
            if not re.fullmatch(RANK_FEATURE, name):
                raise InputError(
                    f"{name!r}: Vespa cannot name a feature like this. Expected letters, digits and _, or a rank "
                    "feature such as bm25(title). Rename it and train again."
                )
        model = {
            "objective": "lambdarank",
            "feature_names": list(trees.names),
            "tree_info": [{"tree_index": i, "tree_structure": _node(tree, 0)} for i, tree in enumerate(trees.trees)],
            "pandas_categorical": None,  # Vespa fails without this key
        }
        profile_file = beside(output, "profile")
        functions = [name for name in trees.names if re.fullmatch(FUNCTION, name)]
        notes = [
            f"{len(trees.trees):,} trees of {len(trees.names):,} features in {output}.",
            "Missing values (NaN): every version sends them where each split says, which agrees with the ranker.",
        ]
        if functions:
            notes.insert(
                1, f"Each feature is an attribute of the same name: put your own functions into {profile_file}."
            )
        return ModelFiles(
            json_bytes(model),
            {"profile": _profile(title, functions, output.name).encode()},
            tuple(notes),
            (
                f"cp {shlex.quote(str(output))} APPLICATION/models/",
                f"cp {shlex.quote(str(profile_file))} APPLICATION/schemas/SCHEMA/{title}.profile",
                "vespa deploy APPLICATION",
            ),
        )


def _node(tree: Tree, number: int) -> dict[str, Any]:
    node = tree[number]
    if node.is_leaf:
        return {"leaf_index": number, "leaf_value": node.value}
    return {
        "split_index": number,
        "split_feature": node.feature,
        "threshold": math.nextafter(node.threshold, math.inf),
        "decision_type": "<=",
        "default_left": node.missing_left,
        "missing_type": "NaN",
        "left_child": _node(tree, node.left),
        "right_child": _node(tree, node.right),
    }


def _profile(title: str, functions: Sequence[str], model: str) -> str:
    lines = [f"rank-profile {title} inherits default {{"]
    for name in functions:
        lines += [f"    function {name}() {{", f"        expression: attribute({name})", "    }"]
    lines += ["    second-phase {", f'        expression: lightgbm("{model}")', "    }", "}", ""]
    return "\n".join(lines)
