"""LightGBM's text of a model -> the part of it that LightGBM may read.   folder -> lightgbm_text -> lambdamart

LightGBM trusts what it reads: a missing child, or a list that is too short, crashes the process. A checksum does not
help against a file made on purpose. So this module checks every line against what LightGBM writes for
clickmix's rankers, and passes on nothing else.
"""

from __future__ import annotations

import re

from clickmix.errors import FormatError

END = "end of trees\n"
MOST_TREES = 1_000_000
MOST_LEAVES = 131_072  # LightGBM's limit
_WHOLE = r"-?[0-9]{1,10}"
_REAL = r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,3})?"
# LightGBM's notes on how it grew a tree can overflow; scoring does not read them.
_NOTE = rf"(?:{_REAL}|-?inf|-?nan)"
# The lines of a tree with n leaves, in order: what a line holds, and how many more or fewer than n.
_TREE = {
    "num_leaves": (_WHOLE, None),
    "num_cat": ("0", None),
    "split_feature": (_WHOLE, -1),
    "split_gain": (_NOTE, -1),
    "threshold": (rf"(?:{_REAL}|-?inf)", -1),  # infinite if a split only asks whether a value is missing
    "decision_type": (r"(?:0|2|4|6|8|10)", -1),  # numbers, not categories
    "left_child": (_WHOLE, -1),
    "right_child": (_WHOLE, -1),
    "leaf_value": (_REAL, 0),
    "leaf_weight": (_NOTE, 0),
    "leaf_count": (_WHOLE, 0),
    "internal_value": (_NOTE, -1),
    "internal_weight": (_NOTE, -1),
    "internal_count": (_WHOLE, -1),
    "is_linear": ("0", None),
    "shrinkage": (_REAL, None),
}
_HEADER = (
    "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx={last}\n"
    "{objective}feature_names={names}\nfeature_infos="
)
RANKS = "objective=lambdarank\n"
OWN_OBJECTIVE = ""  # LightGBM does not name an objective that the caller defined
_INFO = rf"(?:none|\[{_REAL}:{_REAL}\])"


def checked_trees(model: bytes, *, features: int, trees: int, where: str, objective: str = RANKS) -> str:
    """The header and the trees of a model with that many features and trees; refuses anything else."""
    try:
        text = model.decode("ascii")
    except UnicodeDecodeError:
        raise _damaged(where, "it is not ASCII text") from None
    head, blank, rest = text.partition("\n\n")
    body, end, _ = rest.partition(END)
    if not blank or not end:
        raise _damaged(where, f"its header or the line {END.strip()!r} is missing")
    sizes = _tree_sizes(head, objective, features=features, trees=trees, where=where)
    start = 0
    for number, size in enumerate(sizes):
        # LightGBM jumps from tree to tree by these sizes.
        _check_tree(body[start : start + size], number, features=features, where=f"{where}, tree {number}")
        start += size
    if start != len(body):
        raise _damaged(where, "something is between its trees and their end")
    return head + blank + body + end


def _tree_sizes(head: str, objective: str, *, features: int, trees: int, where: str) -> list[int]:
    """The lengths of the trees' texts, from a header that is checked."""
    infos, found, sizes = head.partition("\ntree_sizes=")
    # A header with that many names is at least this long, so a made-up number of features costs nothing.
    names = " ".join(f"Column_{i}" for i in range(features)) if features <= len(head) else ""
    start = _HEADER.format(last=features - 1, names=names, objective=objective)
    if not found or not infos.startswith(start) or not _are(_INFO, infos[len(start) :], features):
        raise _damaged(where, f"its header is not that of a ranker of {features} features by LightGBM's format v4")
    if not 1 <= trees <= MOST_TREES or not _are(_WHOLE, sizes, trees):
        raise _damaged(where, f"it does not have the {trees} trees that it should have")
    lengths = [int(size) for size in sizes.split(" ")]
    if min(lengths) < 1:
        raise _damaged(where, "the header says that a tree has no text")
    return lengths


def _check_tree(text: str, number: int, *, features: int, where: str) -> None:
    """Raise unless the text is one tree whose lists have the right lengths, and which has every child once."""
    lines = text.split("\n")
    if lines[0] != f"Tree={number}" or lines[len(_TREE) + 1 :] != ["", "", ""]:
        raise _damaged(where, "its lines are not those of a tree")
    values: dict[str, str] = {}
    for line, name in zip(lines[1:], _TREE, strict=False):
        found, _, values[name] = line.partition("=")
        if found != name:
            raise _damaged(where, f"found {found[:40]!r} instead of {name!r}")
    if not re.fullmatch(_WHOLE, values["num_leaves"]):
        raise _damaged(where, "'num_leaves' is not a whole number")
    leaves = int(values["num_leaves"])
    if not 1 <= leaves <= MOST_LEAVES:
        raise _damaged(where, f"it has {leaves} leaves")
    for name, (kind, more) in _TREE.items():
        count = 1 if more is None else leaves + more
        if not _are(kind, values[name], count):
            raise _damaged(where, f"{name!r} does not hold the {count} numbers it should")
    if any(not 0 <= int(feature) < features for feature in values["split_feature"].split()):
        raise _damaged(where, f"it splits by a feature that is not among the {features}")
    _check_children(values["left_child"].split(), values["right_child"].split(), leaves, where)


def _check_children(left: list[str], right: list[str], leaves: int, where: str) -> None:
    """Raise unless every leaf (below 0) and every node but the root has one parent, which comes before it."""
    seen = set()
    for node, both in enumerate(zip(left, right, strict=True)):
        for child in map(int, both):
            if child in seen or not (-leaves <= child < 0 or node < child < leaves - 1):
                raise _damaged(where, f"node {node} has the child {child}, which is not there or has another parent")
            seen.add(child)


def _are(kind: str, text: str, count: int) -> bool:
    """Whether a text is `count` values of a kind, separated by single blanks."""
    parts = text.split(" ") if text else []
    matches = re.compile(kind).fullmatch
    return len(parts) == count and all(map(matches, parts))


def _damaged(where: str, what: str) -> FormatError:
    return FormatError(f"{where}: not a model that LightGBM wrote for clickmix: {what}. Train the ranker again.")
