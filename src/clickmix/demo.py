"""The main job, end to end, on a log it makes: simulated users, labels, and how near they come to the truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from clickmix.clicks import preset, write_sessions
from clickmix.corrections import Labels, MixtureCorrection, MixtureFit, NoCorrection
from clickmix.counts import count
from clickmix.simulate import write_columns

QUERIES, POSITIONS, CLICKS = 3_000, 20, 300_000

Floats = npt.NDArray[np.float64]


def run_demo(folder: Path, *, say: Callable[[str], None]) -> MixtureFit:
    """Write clicks.parquet, truth.parquet, labels.parquet and model.json to a folder; compare labels with truth."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    # The engine is better than chance: more of the documents at the top are relevant.
    relevance = (rng.random((QUERIES, POSITIONS)) < 0.25 * np.arange(1, POSITIONS + 1) ** -0.6).astype(np.float64)
    query_id, doc_id = np.arange(QUERIES), np.arange(QUERIES * POSITIONS).reshape(QUERIES, POSITIONS)
    truth = relevance.ravel()
    ids = {"query_id": np.repeat(query_id, POSITIONS), "doc_id": doc_id.ravel()}
    write_columns({**ids, "relevance": truth}, folder / "truth.parquet")
    user = preset("pbm-eta1", positions=POSITIONS)
    chunks = user.simulate_chunks(relevance, clicks=CLICKS, rng=rng)
    rows = write_sessions(chunks, folder / "clicks.parquet", query_id=query_id, doc_id=doc_id)
    say(f"{folder / 'clicks.parquet'}: {rows:,} impressions, {CLICKS:,} clicks; people look at the top and trust it.")

    counts = count(folder / "clicks.parquet")
    fit = MixtureCorrection().fit(counts)
    fit.write(folder / "model.json")
    labels = fit.label(counts)
    labels.write(folder / "labels.parquet")
    say(f"{folder / 'labels.parquet'}: {len(labels):,} labels, from the clicks alone.")
    say("")

    for name, made in (("click-through rate", NoCorrection().label(counts)), ("clickmix", labels)):
        say(f"{name:>20}: {_comparison(made, truth)}")
    return fit


def _comparison(labels: Labels, truth: Floats) -> str:
    """How good labels are, in words."""
    relevant = truth[labels.doc_id]
    error = float(np.sqrt(np.mean((labels.relevance - relevant) ** 2)))
    best = np.argsort(-labels.relevance, kind="stable")[: int(relevant.sum())]
    return f"error {error:.3f}; {relevant[best].mean():.0%} of the top {len(best):,} documents are relevant"
