"""The lines of ranking.py in; means, the way closed, paired tests and intervals over runs out, also as Markdown."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from scipy.special import stdtrit

from clickmix.evaluate import paired_t_test
from clickmix.rankers import LambdaMART

DEFAULT = LambdaMART().weighting
EXTREMES = {"none", "ideal-dcg"}

Array = np.ndarray[Any, Any]
Runs = dict[str, dict[str, Array]]  # labels -> weighting -> nDCG@10, one number per run


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Of every kind of users, in the order in which they were first seen."""
    kinds = sorted({(line["relevance"], line["eta"]) for line in lines})
    return {"default weighting": DEFAULT, "users": [users(kind, lines) for kind in kinds]}


def users(kind: tuple[str, int], lines: list[dict[str, Any]]) -> dict[str, Any]:
    """All labels of one kind of users: the raw numbers, and what they say."""
    lines = complete([line for line in lines if (line["relevance"], line["eta"]) == kind])
    vali, test, rmse = (by_labels(lines, column) for column in ("vali", "test", "rmse"))
    better = {name: max(vali[name], key=lambda weighting: vali[name][weighting].mean()) for name in vali}
    best = {name: test[name][better[name]] for name in test}
    return {
        "relevance": kind[0],
        "eta": kind[1],
        "runs": len({line["run"] for line in lines}),
        "labels": {
            name: {
                "rmse": round(float(next(iter(rmse[name].values())).mean()), 4),
                "better weighting on vali": better[name],
                "ndcg@10 with it": interval(best[name]),
                "way closed": interval((best[name] - best["none"]) / (best["true relevance"] - best["none"])),
                "against affine": against(best[name], best["affine, true parameters"]),
                "against the better extreme": against_extreme(test[name]),
            }
            for name in test
            if ";" not in name
        },
        "what is sure weighs more": {
            name: against(test[name]["ideal-dcg"], test[name.split(";")[0]]["ideal-dcg"])
            for name in test
            if ";" in name
        },
        "vali ndcg@10": listed(vali),
        "test ndcg@10": listed(test),
    }


def complete(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the rankers that were not trained in every run, where the program was stopped; ordered by run."""
    runs = {line["run"] for line in lines}
    trained = Counter((line["labels"], line["weighting"]) for line in lines)
    kept = [line for line in lines if trained[line["labels"], line["weighting"]] == len(runs)]
    return sorted(kept, key=lambda line: int(line["run"]))


def by_labels(lines: list[dict[str, Any]], column: str) -> Runs:
    """One column of the lines, as numbers per run."""
    found: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        found.setdefault(line["labels"], {}).setdefault(line["weighting"], []).append(line[column])
    return {name: {weighting: np.array(values) for weighting, values in row.items()} for name, row in found.items()}


def interval(values: Array) -> dict[str, float]:
    """The mean over runs, and where it lies with 95 % by Student's t."""
    mean, n = float(values.mean()), len(values)
    half = float(stdtrit(n - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return {"mean": round(mean, 4), "low": round(mean - half, 4), "high": round(mean + half, 4)}


def against(first: Array, second: Array) -> dict[str, float]:
    """Mean difference over paired runs, and how probable one so large is if there were none."""
    test = paired_t_test(first, second)
    return {"difference": round(test.difference, 4), "p": float(f"{test.p:.3g}")}


def against_extreme(test: dict[str, Array]) -> dict[str, Any]:
    """Every other weighting against that of the two extremes which was better on the test queries themselves."""
    extreme = max(EXTREMES & test.keys(), key=lambda weighting: float(test[weighting].mean()))
    return {"extreme": extreme} | {name: against(test[name], test[extreme]) for name in test if name != extreme}


def listed(runs: Runs) -> dict[str, dict[str, list[float]]]:
    """As JSON has it."""
    return {name: {weighting: values.tolist() for weighting, values in row.items()} for name, row in runs.items()}


def markdown(figures: dict[str, Any]) -> str:
    """A table for each kind of users: nDCG@10 by labels and weighting, **the better on vali**, and what it says."""
    out = []
    for found in figures["users"]:
        weightings = list(dict.fromkeys(w for row in found["test ndcg@10"].values() for w in row))
        out += [f"\n{found['relevance']}, eta = {found['eta']}, {found['runs']} runs\n"]
        said = ("way closed", "against affine", f"{DEFAULT} against the better extreme")
        out += [f"| labels | RMSE | {' | '.join([*weightings, *said])} |"]
        out += ["|---" * (len(weightings) + 5) + "|"]
        out += [table_row(name, row, found["test ndcg@10"][name], weightings) for name, row in found["labels"].items()]
        out += [f"\n{name}: {difference(test)}" for name, test in found["what is sure weighs more"].items()]
    return "\n".join(out)


def table_row(name: str, row: dict[str, Any], values: dict[str, list[float]], weightings: list[str]) -> str:
    """One line of the table."""
    way, extreme = row["way closed"], row["against the better extreme"]
    means = {w: f"{np.mean(values[w]):.4f}" if w in values else "" for w in weightings}
    better = row["better weighting on vali"]
    cells = [name, f"{row['rmse']:.3f}", *(f"**{m}**" if w == better else m for w, m in means.items())]
    cells += [f"{way['mean']:.0%} ({way['low']:.0%} to {way['high']:.0%})", difference(row["against affine"])]
    cells += [difference(extreme[DEFAULT]) if DEFAULT in extreme else "is the better one"]
    return f"| {' | '.join(cells)} |"


def difference(test: dict[str, float]) -> str:
    """A mean difference and its p."""
    return f"{test['difference']:+.4f} (p = {test['p']:.2g})"
