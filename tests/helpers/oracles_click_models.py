"""Slow and obvious versions of the click models: session by session, over everything that people may have examined."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

Document = Hashable
Session = tuple[tuple[Document, bool], ...]  # from the top: what was shown, and whether it was clicked


@dataclass
class Shares:
    """Sums of what happened and what was possible, by whatever a probability belongs to."""

    happened: dict[Any, float] = field(default_factory=lambda: defaultdict(float))
    possible: dict[Any, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, key: Hashable, *, happened: float, weight: float) -> None:
        self.possible[key] += weight
        self.happened[key] += weight * happened

    def ratios(self) -> dict[Any, float]:
        return {key: self.happened[key] / possible for key, possible in self.possible.items() if possible > 0}


def reading_em(
    sessions: Sequence[Session], cell: Callable[[int, Document], Hashable], *, continuation: float | None, steps: int
) -> tuple[dict[Any, float], dict[Any, float], float]:
    """Attraction by document, wanting more by cell, and continuation, of people who read from the top.

    `cell` is what wanting more after a click depends on, from the position (from 1) and the document. In every step,
    each session is explained in every way it can be: satisfied by its last click, or reading on down to some result.
    """
    a: dict[Any, float] = defaultdict(lambda: 0.5)
    g: dict[Any, float] = defaultdict(lambda: 0.5)
    c = 0.5 if continuation is None else continuation
    for _ in range(steps):
        attracted, wanted, continued = Shares(), Shares(), Shares()
        for session, times in Counter(sessions).items():
            size = len(session)
            last = max((k for k, (_, clicked) in enumerate(session, 1) if clicked), default=0)
            ways = [(end, False) for end in range(max(last, 1), size + 1)]
            ways += [(last, True)] if last and last < size else []
            weights = [_chance(session, end, satisfied, last, a, g, c, cell) for end, satisfied in ways]
            total = sum(weights)
            for (end, satisfied), weight in zip(ways, weights, strict=True):
                share = times * weight / total
                for k, (document, clicked) in enumerate(session[:end], 1):
                    attracted.add(document, happened=clicked, weight=share)
                    if clicked and k < size:
                        wanted.add(cell(k, document), happened=not (satisfied and k == last), weight=share)
                    if k < size and not (satisfied and k == last):
                        continued.add("all", happened=k < end, weight=share)
        a.update(attracted.ratios())
        g.update(wanted.ratios())
        c = continued.ratios().get("all", c) if continuation is None else c
    return a, g, c


def _chance(
    session: Session,
    end: int,
    satisfied: bool,
    last: int,
    a: dict[Any, float],
    g: dict[Any, float],
    c: float,
    cell: Callable[[int, Document], Hashable],
) -> float:
    """P(these clicks, examined down to `end`, and satisfied there or not)."""
    p = 1.0
    for k, (document, clicked) in enumerate(session[:end], 1):
        p *= a[document] if clicked else 1 - a[document]
        if k == len(session):
            return p
        if clicked:
            p *= 1 - g[cell(k, document)] if satisfied and k == last else g[cell(k, document)]
        if not (satisfied and k == last):
            p *= c if k < end else 1 - c
    return p


def browsing_em(sessions: Sequence[Session], *, steps: int) -> tuple[dict[Any, float], dict[Any, float]]:
    """Attraction by document, and examination by position and nearest click above, after so many steps of EM."""
    a: dict[Any, float] = defaultdict(lambda: 0.5)
    g: dict[Any, float] = defaultdict(lambda: 0.5)
    for _ in range(steps):
        attracted, examined = Shares(), Shares()
        for session, times in Counter(sessions).items():
            above = 0
            for k, (document, clicked) in enumerate(session, 1):
                p, q = a[document], g[k, above]
                attracted.add(document, happened=1.0 if clicked else p * (1 - q) / (1 - p * q), weight=times)
                examined.add((k, above), happened=1.0 if clicked else q * (1 - p) / (1 - p * q), weight=times)
                above = k if clicked else above
        a, g = attracted.ratios(), examined.ratios()
    return a, g


def last_click_shares(sessions: Sequence[Session], *, abandoned: bool) -> dict[Any, tuple[int, int, int]]:
    """By document: impressions down to the last click, clicks and last clicks.

    `abandoned`: sessions without a click count, as examined from the top to the end.
    """
    found: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    for session in sessions:
        clicks = [k for k, (_, clicked) in enumerate(session, 1) if clicked]
        down_to = max(clicks) if clicks else len(session) if abandoned else 0
        for k, (document, clicked) in enumerate(session, 1):
            found[document][0] += k <= down_to
            found[document][1] += clicked
            found[document][2] += clicked and k == max(clicks)
    return {document: (n, c, last) for document, (n, c, last) in found.items()}
