"""Rankers to export, and rows that meet their thresholds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

from clickmix.rankers.lambdamart import FittedLambdaMART, LambdaMART

WIDTH = 6


def documents(rows: int, *, seed: int, gaps: bool) -> Any:
    """Features of all kinds: counts with zeros, shares, signed numbers, large and small ones; some missing."""
    rng = np.random.default_rng(seed)
    columns = [
        rng.poisson(1.0, rows),
        rng.random(rows),
        rng.normal(size=rows),
        rng.lognormal(8, 2, rows),
        -rng.lognormal(0, 1, rows),
        rng.normal(0, 0.05, rows) * (rng.random(rows) < 0.5),
    ]
    matrix = np.column_stack(columns).astype(np.float32)
    if gaps:
        matrix[rng.random(matrix.shape) < 0.2] = np.nan
    return matrix


def train_ranker(
    folder: Path, *, gaps: bool, trees: int = 25, categories: tuple[int, ...] = (), **parameters: Any
) -> Any:
    """Train on 1,500 documents, save the ranker in `folder`, and give its booster."""
    features = documents(1500, seed=1, gaps=gaps)
    rng = np.random.default_rng(2)
    filled = np.nan_to_num(features)
    worth = filled[:, 0] + 2 * filled[:, 1] - filled[:, 4] * filled[:, 2] + np.isnan(features[:, 5])
    grade = np.clip(np.rint(worth + rng.normal(size=len(worth))), 0, 4).astype(int)
    settings = {"objective": "lambdarank", "num_leaves": 15, "min_data_in_leaf": 5, "verbosity": -1, "num_threads": 1}
    data = lightgbm.Dataset(
        features, grade, group=[15] * 100, categorical_feature=list(categories), params={"verbosity": -1}
    )
    booster = lightgbm.train(settings | parameters, data, num_boost_round=trees)
    text = save_ranker(booster, folder)
    return lightgbm.Booster(model_str=text)


def save_ranker(booster: Any, folder: Path) -> str:
    """Save a booster as a ranker; gives the text that was saved."""
    text, trees = _finite(booster.model_to_string()), booster.num_trees()
    FittedLambdaMART(settings=LambdaMART(), features=WIDTH, trees=trees, ndcg=(), model=text).save(folder)
    return text


def _finite(text: str) -> str:
    """LightGBM's text with 1e300 for infinite thresholds, as LightGBM itself writes them in JSON."""
    head, _, rest = text.partition("\n\n")
    body, end, tail = rest.partition("end of trees\n")
    trees = [
        re.sub("(?<=[= ])inf(?=[ \n])", "1e300", tree) for tree in re.split("(?=^Tree=)", body, flags=re.M) if tree
    ]
    sizes = " ".join(str(len(tree)) for tree in trees)
    return re.sub("tree_sizes=.*", f"tree_sizes={sizes}", head) + "\n\n" + "".join(trees) + end + tail


def thresholds(booster: Any) -> list[tuple[int, float]]:
    """The feature and threshold of every split."""
    frame = booster.trees_to_dataframe()
    splits = frame[frame["split_feature"].notna()]
    return [(int(name.split("_")[1]), t) for name, t in zip(splits["split_feature"], splits["threshold"], strict=True)]


def edge_rows(booster: Any, *, gaps: bool) -> Any:
    """For each split a row at the single-precision number nearest to its threshold, and the ones above and below."""
    splits = thresholds(booster)
    rows = np.repeat(documents(len(splits), seed=3, gaps=gaps), 3, axis=0)
    for i, (feature, threshold) in enumerate(splits):
        # A threshold above all numbers tells the missing ones from them.
        nearest = np.float32(threshold) if threshold < 1e38 else np.float32(1e38)
        rows[3 * i : 3 * i + 3, feature] = [
            np.nextafter(nearest, np.float32(-np.inf)),
            nearest,
            np.nextafter(nearest, np.float32(np.inf)),
        ]
    return rows


def leaf_values(booster: Any, rows: Any) -> Any:
    """The value of the leaf that LightGBM itself reaches, for each row and tree."""
    leaves = booster.predict(rows, pred_leaf=True).astype(int)
    values = [
        np.array([booster.get_leaf_output(tree, leaf) for leaf in range(leaves[:, tree].max() + 1)])[leaves[:, tree]]
        for tree in range(leaves.shape[1])
    ]
    return np.column_stack(values)
