"""Choose: how many grades there are, and which effects, by clicks that were held out.   Cells -> Model

Two grades first, then the effects that gain clearly, one after the other, then more grades: appeal and more grades
explain the same clicks as long as there are few, and attention explains what either would.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.climb import Look, climb
from clickmix.mixtures.hierarchical.fit import fit
from clickmix.mixtures.hierarchical.held import Halved, Held
from clickmix.mixtures.hierarchical.problem import Effects, Link, Model
from clickmix.types import Ints

LINKS: tuple[Link, Link] = ("examination", "odds")
CLEAR = 6.0  # log-likelihood of both halves that an effect, or more grades, must gain
UNSETTLED = 30.0  # difference between grades and appeal that is looked at again with more documents
WORTH = 0.01  # of what two grades gain over one rate per place, that more grades must gain beyond
SLIGHT = 0.004  # correlation of clicks on a document, beyond its grade, at the highest rates; less changes no labels
COMPARED = 1.0  # log-likelihood that a round must bring, of models that are only compared
MOST_GRADES = 7
# Distinct patterns, about: to compare models with effects, models without, two finalists; and to fit the chosen one.
MOST_COMPARED, MOST_ALIKE, MOST_SETTLED, MOST_FITTED = 3_000, 6_000, 12_000, 60_000


@dataclass(frozen=True)
class Looked:
    """A model that was looked at: in words, and how well it predicts held-out clicks of so many queries."""

    name: str
    score: float
    queries: int


@dataclass(frozen=True)
class _Candidate:
    model: Model
    look: Look
    score: float


class _Search:
    """Candidates looked at so far, on a sample of queries."""

    def __init__(self, held: Held, starts: tuple[Model, ...] = (), *, grades: int = 2) -> None:
        self.held, cells = held, held.cells
        self.looked: list[Looked] = []
        found = [self._candidate(*fit(cells, grades=start.grades, start=start, gain=COMPARED)) for start in starts]
        found = found or [self._candidate(*fit(cells, grades=grades, gain=COMPARED))]
        self.plain = self.best = self.coarsest = found[0]
        self.finest = found[-1]

    def _candidate(self, model: Model, look: Look) -> _Candidate:
        found = _Candidate(model, look, self.held.score(model, look))
        self.looked.append(Looked(name_of(model), found.score, self.held.cells.queries))
        return found

    def changed(self, start: _Candidate, *, grades: int | None = None, effects: Effects | None = None) -> _Candidate:
        """A model with another number of grades, or other effects."""
        model, grades = start.model, grades or start.model.grades
        found = fit(self.held.cells, grades=grades, effects=effects, start=model, look=start.look, gain=COMPARED)
        return self._candidate(*found)

    def add_effects(self) -> None:
        """The effect that gains most, then the next; one that gained nothing once is not tried again."""
        links = [self.changed(self.best, effects=Effects(attention=link)) for link in LINKS]
        attention = max(links, key=lambda candidate: candidate.score)
        others = [self.changed(self.best, effects=effects) for effects in (Effects(shares=True), Effects(appeal=True))]
        tried = [attention, *others]
        while tried:
            hopeful = [candidate for candidate in tried if candidate.score > self.best.score + CLEAR]
            if not hopeful:
                break
            self.best = max(hopeful, key=lambda candidate: candidate.score)
            rest = [candidate for candidate in hopeful if candidate is not self.best]
            on = self.best.model.effects
            tried = [self.changed(self.best, effects=_both(on, candidate.model.effects)) for candidate in rest]
        link = self.best.model.effects.attention
        if link and self.best.model.effects.appeal:  # appeal may have been taken for attention of the other kind
            other = self.changed(self.best, effects=replace(self.best.model.effects, attention=_other(link)))
            self.best = max(self.best, other, key=lambda candidate: candidate.score)

    def add_grades(self) -> None:
        """More grades instead of appeal, if they are as good, or without it, if they gain clearly.

        Appeal explains what more grades would as long as clicks are few, so the way to more grades goes without it.
        """
        plain = replace(self.best.model.effects, appeal=False)
        finer = [self.best if self.best.model.effects == plain else self.changed(self.best, effects=plain)]
        while finer[-1].model.grades < MOST_GRADES:
            grades = finer[-1].model.grades + 1
            found = [self.changed(finer[-1], grades=grades)]
            if plain == Effects():  # a coarser scale may have taken a grade between for one of the ends
                found.append(self._candidate(*fit(self.held.cells, grades=grades, gain=COMPARED)))
            finer.append(max(found, key=lambda candidate: candidate.score))
            if finer[-1].score < finer[-2].score + CLEAR / 2:
                break
        self.coarsest, self.finest = self.best, max(finer, key=lambda candidate: candidate.score)
        if self.finest.score > self.coarsest.score + self.margin:
            self.best = self.finest

    def go_on(self) -> None:
        """The finest from a start of its own, too; one grade less, or more, as long as that gains."""
        finest = self.finest.model
        cold = fit(self.held.cells, grades=finest.grades, gain=COMPARED)[0]
        again = self._candidate(
            *fit(self.held.cells, grades=finest.grades, effects=finest.effects, start=cold, gain=COMPARED)
        )
        self.finest = max(self.finest, again, key=lambda candidate: candidate.score)
        for step in (-1, 1):
            while 3 <= self.finest.model.grades + step <= MOST_GRADES:
                other = self.changed(self.finest, grades=self.finest.model.grades + step)
                if other.score < self.finest.score + step * CLEAR / 2:
                    break
                self.finest = other

    @property
    def margin(self) -> float:
        """What more grades must gain. Where they cannot be told from appeal, labels lose less if they are taken.

        Appeal that hardly matters leaves labels as they are, and more grades would not.
        """
        model = self.coarsest.model
        if not model.effects.appeal:
            return max(CLEAR, WORTH * (self.coarsest.score - self.held.one_rate))
        slight = max(UNSETTLED, WORTH * (self.coarsest.score - self.held.one_rate))
        return -CLEAR / 2 if np.exp(-model.number("d")) > SLIGHT else slight

    @property
    def unsettled(self) -> bool:
        """Whether more documents might tell more grades from fewer, or from appeal."""
        gain = self.finest.score - self.coarsest.score
        if self.finest.model.effects.appeal == self.coarsest.model.effects.appeal:
            return CLEAR / 2 < gain < 2 * CLEAR
        return abs(gain) < UNSETTLED


def name_of(model: Model) -> str:
    """A model in words: `2 grades + examination + appeal`."""
    effects = model.effects
    on = (effects.attention, "shares" if effects.shares else None, "appeal" if effects.appeal else None)
    return " + ".join([f"{model.grades} grades", *(name for name in on if name)])


def choose(cells: Cells, *, rng: np.random.Generator, halved: Halved | None = None, grades: int | None = None) -> Model:
    """The model that predicts held-out clicks best, chosen on a sample of queries, fitted to all.

    `halved` are the rows of the same log in two halves of its sessions; without them impressions are dealt out.
    Where the number of `grades` is given, only effects are chosen.
    """
    search = _Search(_held(cells, rng, halved, MOST_COMPARED, entries=True), grades=grades or 2)
    search.add_effects()
    alike = not (search.best.model.effects.attention or search.best.model.effects.shares)
    if alike:  # more documents are looked at as fast
        before = search.looked
        search = _Search(_held(cells, rng, halved, MOST_ALIKE), (search.plain.model,))
        search.looked[:0] = before
        appeal = search.changed(search.best, effects=Effects(appeal=True))
        search.best = max(
            search.best, appeal, key=lambda candidate: candidate.score - CLEAR * candidate.model.effects.appeal
        )
    if grades is None:
        search.add_grades()
    model = search.best.model
    if grades is None and search.unsettled and not alike and len(search.held.query) < cells.documents.sum():
        settled = _Search(
            _held(cells, rng, halved, MOST_SETTLED, entries=True), (search.coarsest.model, search.finest.model)
        )
        settled.go_on()
        search.looked += settled.looked
        finer = settled.finest.score > settled.coarsest.score + search.margin
        model = (settled.finest if finer else settled.coarsest).model
    model = climb(cells.sample(_some(cells, rng, MOST_FITTED, entries=not alike)), model)[0]
    return replace(model, chosen=tuple(search.looked))


def _held(cells: Cells, rng: np.random.Generator, halved: Halved | None, most: float, *, entries: bool = False) -> Held:
    queries = _some(cells, rng, most, entries=entries)
    chosen = Halved.dealt(cells.sample(queries), rng) if halved is None else halved.sample(queries)
    return chosen.held(len(queries))


def _both(on: Effects, other: Effects) -> Effects:
    return Effects(on.attention or other.attention, on.shares or other.shares, on.appeal or other.appeal)


def _other(link: Link) -> Link:
    return "odds" if link == "examination" else "examination"


def _some(cells: Cells, rng: np.random.Generator, most: float, *, entries: bool = False) -> Ints:
    """Queries whose patterns, and entries if queries differ, take about so much work; all where there are no more."""
    work = 1 + np.bincount(cells.pattern, minlength=cells.patterns) / 4  # of each distinct pattern
    queries = np.arange(cells.queries)
    if work.sum() + entries * len(cells.entry) / 8 <= most:
        return queries
    rank = rng.permutation(queries)
    order = np.argsort(rank[cells.query], kind="stable")
    met, first = np.unique(cells.entry[order], return_index=True)  # where each pattern is met first
    added = np.bincount(rank[cells.query][order][first], work[met], cells.queries)
    shared = np.bincount(rank[cells.query], minlength=cells.queries) / 8 if entries else 0.0
    return np.sort(np.argsort(rank)[: int(np.searchsorted(np.cumsum(added + shared), most)) + 1])
