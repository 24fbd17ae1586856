"""Users fitted to a log in the Yandex format, beside the paper's, and how well each predicts held-out sessions.

python benchmarks/yandex.py relpred.tsv.gz [seed]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import numpy as np

from clickmix.lab.users import DependentClick, PositionBased, Sessions, UserBrowsing, UserFit, preset, read_yandex
from clickmix.types import Floats

HELD_OUT = 0.25
GIVEN_RATIOS = np.array(
    [1.40, 1.22, 1.21, 1.24, 1.16]
)  # of the same document's click rates, as given with the Yandex sample


def main(path: str, seed: int = 0) -> None:
    """Print everything as Markdown tables."""
    log = read_yandex(path)
    sessions = log.sessions
    held_out = np.random.default_rng(seed).random(len(sessions)) < HELD_OUT
    train, test = sessions.take(~held_out), sessions.take(held_out)
    print(f"{len(sessions):,} pages with {sessions.clicks.sum():,} clicks, and {log.clicks_elsewhere:,} clicks on what")
    print(f"the page had not shown; fitted to {len(train):,} pages, scored on the other {len(test):,}.\n")
    pbm, dcm, ubm = PositionBased.fit(train), DependentClick.fit(train), UserBrowsing.fit(train)
    print_position_based(pbm, train)
    print_dependent_click(dcm, train)
    print_user_browsing(ubm)
    print_scores({"PBM": pbm, "DCM": dcm, "UBM": ubm}, test)


def print_position_based(fit: UserFit, sessions: Sessions) -> None:
    """Examination, and its ratio at neighbouring positions beside that of the same document's click rates."""
    eta1, eta2 = preset("pbm-eta1"), preset("pbm-eta2")
    users = [user for user in (fit.user, eta1, eta2) if isinstance(user, PositionBased)]
    K = sessions.positions
    examination = [user.examination[:K] for user in users]
    ratios = {
        "fitted, ratio to the next": examination[0][:-1] / examination[0][1:],
        "same document, ratio to the next": same_document_ratios(sessions),
        "the same, as given with the sample": GIVEN_RATIOS,
    }
    print_row("PBM, position", range(1, K + 1), first=True)
    for name, values in zip(("examination, fitted", "paper, eta=1", "paper, eta=2"), examination, strict=True):
        print_row(name, (f"{value:.3f}" for value in values))
    for name, values in ratios.items():
        print_row(name, [*(f"{value:.2f}" for value in values), *[""] * (K - len(values))])
    print()


def same_document_ratios(sessions: Sessions) -> Floats:
    """Click rate at k over that at k + 1 of the documents shown at both (Mantel and Haenszel's mean of ratios)."""
    K, D = sessions.positions, int(sessions.lists.max()) + 1
    counts, flat = sessions.counts(), sessions.lists * K + np.arange(K)
    n = np.bincount(flat.ravel(), weights=np.repeat(counts.impressions, K), minlength=D * K).reshape(D, K)
    c = np.bincount(flat.ravel(), weights=counts.clicks.ravel(), minlength=D * K).reshape(D, K)
    total = np.maximum(n[:, :-1] + n[:, 1:], 1)
    ratios: Floats = (c[:, :-1] * n[:, 1:] / total).sum(axis=0) / (c[:, 1:] * n[:, :-1] / total).sum(axis=0)
    return ratios


def print_dependent_click(fit: UserFit, sessions: Sessions) -> None:
    """Going on after a click: most likely, by the rule of thumb, and in the paper."""
    later = np.cumsum(sessions.clicks[:, ::-1], axis=1)[:, ::-1] > 1
    followed = (sessions.clicks & later).sum(axis=0) / sessions.clicks.sum(axis=0)
    clicked_only = DependentClick.fit(sessions.take(np.any(sessions.clicks, axis=1)))
    users = {
        "going on, fitted": fit.user,
        "fitted to pages with a click": clicked_only.user,
        "paper": preset("dcm"),
    }
    print_row("DCM, after a click at", range(1, sessions.positions), first=True)
    for name, user in users.items():
        if isinstance(user, DependentClick):
            print_row(name, (f"{value:.3f}" for value in user.going_on))
    print_row("clicks followed by another", (f"{value:.3f}" for value in followed[:-1]))
    print()


def print_user_browsing(fit: UserFit) -> None:
    """Examination by last click, fitted / in the paper relative to its position 1."""
    paper = preset("ubm")
    if isinstance(fit.user, UserBrowsing) and isinstance(paper, UserBrowsing):
        fitted, papers = fit.user.examination, paper.examination / paper.examination[0, 0]
        print_row("UBM, last click at", ["none", *range(1, len(fitted))], first=True)
        for k in range(len(fitted)):
            cells = [f"{fitted[k, j]:.2f} / {papers[k, j]:.2f}" for j in range(k + 1)]
            print_row(f"position {k + 1}", cells + [""] * (len(fitted) - k - 1))
    print()


def print_scores(fits: dict[str, UserFit], sessions: Sessions) -> None:
    """Perplexity of held-out clicks given the clicks above, and what the log-likelihood adds up to."""
    print_row(
        "held-out perplexity, position", [*range(1, sessions.positions + 1), "mean", "log-likelihood"], first=True
    )
    for name, fit in fits.items():
        score = fit.score(sessions)
        perplexities = [f"{value:.3f}" for value in [*score.perplexities, score.perplexity]]
        print_row(name, [*perplexities, f"{score.log_likelihood:,.0f}"])


def print_row(name: str, cells: Iterable[object], *, first: bool = False) -> None:
    """One row of a Markdown table; the first is its head."""
    texts = [name, *(str(cell) for cell in cells)]
    print("| " + " | ".join(texts) + " |")
    if first:
        print("|" + "---|" * len(texts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
