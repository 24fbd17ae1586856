"""A trained LambdaMART -> its trees as plain data, with the rule for missing values written out.   ranker -> trees

LightGBM goes left if x <= threshold. How it treats a missing value depends on its training: it reads it as 0, or sends
it where the split says. Engines know only the latter, so here each split says where missing values go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clickmix.errors import InputError
from clickmix.rankers import load_ranker
from clickmix.rankers.lambdamart import lightgbm_module

LARGEST_FLOAT = np.finfo(np.float32).max
# LightGBM and readers of JSON follow a branch by calling themselves, so a long one crashes the process, or the engine.
MOST_SPLITS = 400


@dataclass(frozen=True)
class Node:
    """A split: x <= threshold goes to the node `left`, everything else to `right`. Or a leaf, without a feature."""

    feature: int = -1
    threshold: float = 0.0
    missing_left: bool = False
    left: int = 0
    right: int = 0
    value: float = 0.0

    @property
    def is_leaf(self) -> bool:
        """Whether it is a leaf."""
        return self.feature < 0


Tree = Sequence[Node]  # the root comes first, and a node before its children


@dataclass(frozen=True)
class Trees:
    """The trees of a ranker, whose score is the sum of their leaves; `names` are its features, in order."""

    names: tuple[str, ...]
    trees: tuple[Tree, ...]

    @property
    def splits(self) -> list[Node]:
        """All splits."""
        return [node for tree in self.trees for node in tree if not node.is_leaf]

    @property
    def missing_is_zero(self) -> bool:
        """Whether a missing value goes where 0 goes, at every split."""
        return all(split.missing_left == (split.threshold >= 0) for split in self.splits)

    @property
    def missing_is_right(self) -> bool:
        """Whether a missing value goes right at every split."""
        return not any(split.missing_left for split in self.splits)


def read_trees(folder: Path, *, target: str) -> Trees:
    """The trees of the ranker in a folder; refuses splits that the target cannot reproduce exactly."""
    ranker = load_ranker(folder)
    text = getattr(ranker, "trees_text", None)
    if text is None:
        raise InputError(f"{folder}: this ranker has no trees, and {target} takes nothing else. Export it --to onnx.")
    return trees_of(text, ranker.feature_names, target=target)


def trees_of(text: str, names: tuple[str, ...], *, target: str) -> Trees:
    """The trees in LightGBM's text of a ranker."""
    if (longest := _longest_branch(text)) > MOST_SPLITS:
        raise InputError(
            f"a tree has a branch of {longest:,} splits, more than the {MOST_SPLITS} that {target} can hold. Train "
            "with fewer leaves."
        )
    dump = lightgbm_module().Booster(model_str=text).dump_model()
    return Trees(names, tuple(_flat(info["tree_structure"], names, target) for info in dump["tree_info"]))


def _longest_branch(text: str) -> int:
    """The most splits from the root of a tree to a leaf; nodes come before their children."""
    longest = 0
    for left, right in re.findall("^left_child=(.*)\nright_child=(.*)", text, re.MULTILINE):
        splits = [1]
        for node, both in enumerate(zip(left.split(), right.split(), strict=True)):
            for child in map(int, both):
                if child > 0:
                    splits += [0] * (child + 1 - len(splits))
                    splits[child] = splits[node] + 1
        longest = max(longest, *splits)
    return longest


def _flat(root: dict[str, Any], names: Sequence[str], target: str) -> Tree:
    """The nodes of a tree, numbered from left to right, each before its children."""
    nodes: list[Node] = []
    waiting: list[tuple[dict[str, Any], int, str]] = [(root, -1, "")]
    while waiting:
        found, parent, side = waiting.pop()
        number = len(nodes)
        if parent >= 0:
            nodes[parent] = Node(**{**vars(nodes[parent]), side: number})
        if "split_feature" not in found:
            nodes.append(Node(value=float(found["leaf_value"])))
            continue
        feature = int(found["split_feature"])
        if found["decision_type"] != "<=":
            raise InputError(f"{names[feature]}: splits by category cannot be exported to {target}. Train on numbers.")
        if found["missing_type"] == "Zero":
            raise InputError(
                f"{names[feature]}: 0 means missing, which {target} cannot follow. Train without zero_as_missing."
            )
        threshold = float(found["threshold"])
        missing_left = bool(found["default_left"]) if found["missing_type"] == "NaN" else threshold >= 0
        nodes.append(Node(feature, threshold, missing_left))
        waiting += [(found["right_child"], number, "right"), (found["left_child"], number, "left")]
    return tuple(nodes)


def above32(number: np.float32) -> np.float32:
    """The next number above in single precision, or the largest itself, because JSON has no infinity.

    LightGBM separates missing values from all others by a threshold above all numbers.
    """
    return number if number == LARGEST_FLOAT else np.nextafter(number, np.float32(np.inf))


def floor32(threshold: float) -> np.float32:
    """The largest single-precision number up to a threshold: for single-precision x, x <= either is the same.

    >>> float(floor32(0.1)) <= 0.1 < float(np.nextafter(floor32(0.1), np.float32(1)))
    True
    """
    with np.errstate(over="ignore"):
        nearest = np.float32(threshold)
    # Compare Python numbers, because numpy would round the threshold first.
    return nearest if float(nearest) <= threshold else np.float32(np.nextafter(nearest, np.float32(-np.inf)))
