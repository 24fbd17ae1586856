"""The click models of CLAX, and of PyClick where a checkout is named, beside ours on the same sessions: equality, time.

Both have PBM, UBM, DCM and DBN. CLAX maximises the likelihood by gradients and PyClick by a fixed number of EM steps,
but DCM by the short cut of its paper; ours by Newton's steps or EM until nothing moves. If the models are the same,
P(click | clicks above) of the sessions they learned from agrees to what the stopping rules allow, and nobody's
log-likelihood is above ours by more than rounding.

CLAX (clax-models, with jax 0.7.2) gets an environment of its own, made where --environment says if nothing is there. It
brings torch and needs some gigabytes. All run on the CPUs of this machine.

    python benchmarks/peers_clax.py --environment FOLDER [--pyclick CHECKOUT] [--sessions 100000] [--epochs 60]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import clickmix as cm
from clickmix.corrections.click_models.clicked_lists import read_clicked_lists
from clickmix.corrections.correction import CORRECTIONS
from clickmix.corrections.dbn import DynamicBayesianFit, satisfaction
from clickmix.corrections.dcm import DependentClickFit
from clickmix.corrections.pbm import PositionBasedFit
from clickmix.corrections.ubm import UserBrowsingFit
from clickmix.lab.users import DependentClick, DynamicBayesian, PositionBased, Sessions, User, UserBrowsing
from clickmix.lab.users.presets import preset
from clickmix.lab.users.trust import Trust
from measuring import SCRATCH, write_result

QUERIES, DOCUMENTS, LISTS, LENGTH = 200, 15, 8, 10
USERS = ("dbn", "ubm")
MODELS = ("pbm", "ubm", "dcm", "dbn")
HERE = Path(__file__).parent

Floats = np.ndarray[Any, Any]


def simulated(user: User, *, sessions: int) -> tuple[Sessions, Floats]:
    """Sessions on lists of ten of the 15 documents of each query, and the codes of the documents they saw."""
    rng = np.random.default_rng(0)
    lists = np.stack([rng.permuted(np.tile(np.arange(DOCUMENTS), (QUERIES, 1)), axis=1) for _ in range(LISTS)], axis=1)
    documents = (np.arange(QUERIES)[:, None, None] * DOCUMENTS + lists[:, :, :LENGTH]).reshape(-1, LENGTH)
    relevance = rng.beta(0.5, 1.5, QUERIES * DOCUMENTS)[documents]
    found = user.simulate(relevance, sessions=sessions, rng=rng)
    return found, documents[found.seen]


def log_of(documents: Floats, clicks: Floats, path: Path) -> Path:
    """The sessions as a log."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sessions = len(documents)
    columns = {
        "session_id": np.repeat(np.arange(sessions), LENGTH),
        "query_id": (documents // DOCUMENTS).ravel(),
        "doc_id": documents.ravel(),
        "position": np.tile(np.arange(1, LENGTH + 1), sessions),
        "clicked": clicks.ravel().astype(np.int8),
    }
    pq.write_table(pa.table(columns), path)
    return path


def ours(log: Path, documents: Floats, clicks: Floats) -> dict[str, dict[str, Any]]:
    """Seconds of counting and fitting, and P(click | clicks above) of every session."""
    found = {}
    started = time.perf_counter()
    counts = cm.count(str(log), lists="clicks")
    grouping = time.perf_counter() - started
    lists = read_clicked_lists(counts, correction="benchmark")
    for name in MODELS:
        started = time.perf_counter()
        fit = CORRECTIONS.make(name).fit(counts)
        labels = fit.label(counts)
        seconds = len(labels) and time.perf_counter() - started
        by_document = np.zeros((2, QUERIES * DOCUMENTS))
        by_document[0, labels.doc_id] = labels.relevance
        trust = Trust.perfect(LENGTH)
        user: User
        if isinstance(fit, PositionBasedFit):
            user = PositionBased(examination=fit.parameters.alpha, trust=trust)
        elif isinstance(fit, UserBrowsingFit):
            user = UserBrowsing(examination=fit.examination, trust=trust)
        elif isinstance(fit, DependentClickFit):
            user = DependentClick(going_on=fit.going_on[: LENGTH - 1], trust=trust)
        else:
            assert isinstance(fit, DynamicBayesianFit)
            user = DynamicBayesian(continuation=fit.continuation, trust=trust)
            by_document[0, lists.doc_id] = fit.reading.attraction
            by_document[1, lists.doc_id] = satisfaction(fit.reading)
        traits = by_document[:, documents] if name == "dbn" else by_document[0, documents]
        rates = user.click_probabilities(traits, clicks=clicks)
        found[name] = {"seconds": round(seconds, 2), "grouping": round(grouping, 2), "clicks": rates}
    return found


def compared(clicks: Floats, own: Floats, other: Floats) -> dict[str, float]:
    """Log-likelihoods per session, and how far the click probabilities are apart."""
    near = 1e-7  # 32-bit numbers of CLAX end there
    own_log, other_log = (
        float(np.where(clicks, np.log(p), np.log1p(-p)).sum(axis=1).mean())
        for p in (np.clip(rates, near, 1 - near) for rates in (own, other))
    )
    apart = np.abs(own - other)
    return {
        "log-likelihood per session, ours": round(own_log, 6),
        "log-likelihood per session, theirs": round(other_log, 6),
        "mean difference of click probabilities": round(float(apart.mean()), 6),
        "99 % of differences are below": round(float(np.quantile(apart, 0.99)), 6),
    }


def clax(python: Path, documents: Floats, clicks: Floats, epochs: int) -> Mapping[str, Any]:
    """What CLAX finds, in its own environment."""
    source, target = SCRATCH / "clax-sessions.npz", SCRATCH / "clax-found.npz"
    np.savez(source, documents=documents.astype(np.int32) + 1, clicks=clicks.astype(np.int32))
    subprocess.run([str(python), str(HERE / "clax_program.py"), str(source), str(target), str(epochs)], check=True)
    return dict(np.load(target))


def pyclick(checkout: Path, documents: Floats, clicks: Floats) -> Mapping[str, Any]:
    """What PyClick finds; its sessions are Python objects."""
    sys.path.insert(0, str(checkout))
    from importlib import import_module

    session_of = import_module("pyclick.search_session.SearchSession").SearchSession
    result_of = import_module("pyclick.search_session.SearchResult").SearchResult
    sessions = []
    for seen, clicked in zip(documents.tolist(), clicks.tolist(), strict=True):
        session = session_of.__new__(session_of)  # its versions start it with one or with two arguments
        session.query = str(seen[0] // DOCUMENTS)
        session.web_results = [result_of(str(d), int(c)) for d, c in zip(seen, clicked, strict=True)]
        sessions.append(session)
    found: dict[str, Any] = {}
    for name in MODELS:
        model = getattr(import_module(f"pyclick.click_models.{name.upper()}"), name.upper())()
        started = time.perf_counter()
        model.train(sessions)
        found[f"{name} seconds"] = time.perf_counter() - started
        happened = np.array([model.get_conditional_click_probs(session) for session in sessions])
        found[f"{name} clicks"] = np.where(clicks, happened, 1 - happened)  # it gives P(what happened)
    return found


def environment(folder: Path) -> Path:
    """The Python of CLAX's environment, which is made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "clax-models", "jax==0.7.2"], check=True)
    return python


def measure(*, folder: Path, checkout: Path | None, sessions: int, epochs: int) -> dict[str, Any]:
    """Each peer beside ours, for each kind of users."""
    SCRATCH.mkdir(exist_ok=True)
    figures: dict[str, Any] = {"sessions": sessions, "documents": QUERIES * DOCUMENTS, "epochs of CLAX": epochs}
    for name in USERS:
        some, documents = simulated(preset(name, positions=LENGTH), sessions=sessions)
        own = ours(log_of(documents, some.clicks, SCRATCH / "peers-clax.parquet"), documents, some.clicks)
        peers = {"CLAX": clax(environment(folder), documents, some.clicks, epochs)}
        if checkout is not None:
            peers["PyClick"] = pyclick(checkout, documents, some.clicks)
        figures[f"{name} users"] = {
            model: {"our seconds": own[model]["seconds"], "our seconds of grouping sessions": own[model]["grouping"]}
            | {
                peer: {"seconds": round(float(found[f"{model} seconds"]), 1)}
                | compared(some.clicks, own[model]["clicks"], found[f"{model} clicks"])
                for peer, found in peers.items()
            }
            for model in MODELS
        }
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, required=True)
    parser.add_argument("--pyclick", type=Path)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=60)
    given = parser.parse_args()
    command = f"python benchmarks/peers_clax.py --sessions {given.sessions} --epochs {given.epochs}"
    command += " --environment FOLDER" + " --pyclick CHECKOUT" * bool(given.pyclick)
    figures = measure(folder=given.environment, checkout=given.pyclick, sessions=given.sessions, epochs=given.epochs)
    write_result("peers_clax", command, figures)
