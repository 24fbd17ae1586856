"""Choose the number of grades and the effects by held-out clicks.   Cells -> Model

Two grades come first, then the effects that gain clearly, one after the other, then more grades: while clicks are few,
appeal and more grades explain the same clicks, and attention explains what either would. What a sample of queries
does not settle is compared again on a larger one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.climb import Look, climb_on, expected
from clickmix.mixtures.hierarchical.fit import first, fit, with_effects, with_places
from clickmix.mixtures.hierarchical.problem import Effects, Link, Model, State
from clickmix.mixtures.hierarchical.queries import Halved, Held, Whole, known_queries, one_rate_value, without_outliers
from clickmix.mixtures.log_model import Looked
from clickmix.types import Floats

LINKS: tuple[Link, Link] = ("examination", "odds")
CLEAR = 6.0  # log-likelihood of both halves that an effect, or more grades, must gain
# More grades or appeal must gain this share of what two grades gain over one rate per place: of held-out clicks, and
# if queries are alike, when all clicks judge.
WORTH, WORTH_ALIKE = 0.01, 0.003
SLIGHT = 0.004  # correlation of clicks on a document, beyond its grade, at the highest rates; less changes no labels
LEAST_LOG = np.log(0.06)  # log deviation of attention or shares; a fit has at least 0.05
LEAST_GAIN = 2.0  # log-likelihood over one rate per place, in logs of the number of documents: BIC, two parameters
LARGE = 1.0  # a difference in log-likelihood per query that can be extreme
LITTLE = {"log s": float(np.log(0.1)), "log t": float(np.log(0.2))}  # if queries differ a little
EXTREME = 0.08  # share of queries at either end of a difference between two models; they count for half of it at most
SURE = 2.0  # standard errors; a larger difference between two models settles the choice
# Appeal must gain this much more than grades. Where clicks hardly tell them apart, choosing appeal by mistake costs 40
# to 80% of error, and choosing grades by mistake 10 to 30%.
APPEAL_MORE = 12.0
COMPARED = 1.0  # log-likelihood that a round must gain, for models that are only compared
# Numbers of grades to compare, from the scales on which people judge. Clicks cannot tell four from five, and labels on
# the wrong scale are off by more than clicks show; more than five stand for documents that differ in appeal.
SCALES = 2, 3, 5
# About how many distinct patterns: to compare models; to compare again what that did not settle, if queries differ and
# if they are alike; and to fit the chosen model.
MOST_COMPARED, MOST_SETTLED, MOST_ALIKE, MOST_FITTED = 3_000, 8_000, 16_000, 60_000
FEWEST_COMPARED = 300  # queries, if there are that many; fewer would not show differences between queries
MOST_PLACES = 120  # places to compare models on, in the largest contexts


@dataclass(frozen=True, eq=False)
class _Candidate:
    model: Model
    look: Look  # where its queries are
    scores: Floats  # per query

    @property
    def score(self) -> float:
        return float(self.scores.sum())

    @property
    def kind(self) -> tuple[bool, bool]:
        """Models of different kinds explain the same clicks with labels that are far apart."""
        return self.model.grades > 2, self.model.effects.appeal


class _Search:
    """Candidates compared on a sample of queries; `best` is the one whose score exceeds its price by most.

    `before` is the search on a smaller sample: the models that it found are starts of the same models here.
    """

    def __init__(self, held: Held | Whole, plain: Model, *, alike: bool, before: _Search | None = None) -> None:
        self.held, self.alike, self.before = held, alike, before
        self.found: dict[tuple[int, Effects], _Candidate] = {}
        cells = held.cells
        shown = cells.per_pattern(cells.impressions)[cells.entry] * cells.documents
        self.shown = np.maximum(np.bincount(cells.query, shown, cells.queries), 1)
        self.plain = self.best = self._add(*fit(held.cells, start=plain, gain=COMPARED))
        gained = self.plain.score - one_rate_value(held.cells)
        self.worth = max(CLEAR, WORTH_ALIKE * gained) if alike else max(2 * CLEAR, WORTH * gained)

    def _add(self, model: Model, look: Look) -> _Candidate:
        found = _Candidate(model, look, self.held.score(model, look))
        self.found[model.grades, model.effects] = found
        return found

    def price(self, model: Model) -> float:
        """What a model must gain over one rate per place, beyond what two grades do.

        If grades and appeal cannot be told apart, grades are preferred, and few of them: labels lose less that way.
        Appeal that hardly matters does not change labels. Queries that hardly differ count as alike: such a fit gains
        only because it moves rates that clicks leave open.
        """
        effects = model.effects
        if _without_vanished(model) != effects:
            return math.inf
        price = CLEAR * ((effects.attention is not None) + effects.shares) + self.worth * (model.grades > 2)
        price += CLEAR / 2 * (model.grades > SCALES[1])  # five can be three with empty ones between
        if effects.appeal:
            price += self.worth + CLEAR / 2 + APPEAL_MORE if np.exp(-model.number("d")) > SLIGHT else CLEAR
        return price

    def most(self, one: _Candidate, other: _Candidate) -> Floats:
        """Differences of scores per query, without large ones that are extreme per impression."""
        differences = one.scores - other.scores
        order = np.argsort(differences / self.shown, kind="stable")
        extreme = np.zeros(len(order), dtype=bool)
        off = int(EXTREME * len(order))
        extreme[order[:off]] = extreme[order[len(order) - off :]] = True
        return np.asarray(differences[~extreme | (np.abs(differences) < LARGE)])

    def gain(self, one: _Candidate, other: _Candidate) -> float:
        """By how much one model predicts held-out clicks better than another; most queries must bring half of it.

        If queries or documents differ as the effects say, the most extreme queries bring about half of the gain.
        Robots in some queries have all of it, and choose no model for the others.
        """
        total = float((one.scores - other.scores).sum())
        same = one.kind == other.kind and one.model.effects == other.model.effects  # a grade more or less
        return total if same or self.alike else min(total, 2 * float(self.most(one, other).sum()))

    def error(self, one: _Candidate, other: _Candidate) -> float:
        """The approximate standard error of a gain."""
        return float(self.most(one, other).std() * np.sqrt(len(self.shown)))

    def lead(self, one: _Candidate, other: _Candidate) -> float:
        """What one model gains over another, minus the difference of their prices."""
        return self.gain(one, other) - self.price(one.model) + self.price(other.model)

    def top(self, candidates: Iterable[_Candidate]) -> _Candidate:
        """The candidate that leads the others; each is compared with the best of those before it."""
        return reduce(lambda best, each: each if self.lead(each, best) > 0 else best, candidates)

    def compare(self, effects: Effects, grades: int = 2) -> _Candidate:
        """A model with these effects and grades; it becomes `best` if it leads.

        Effects that vanish in its fit are left out.
        """
        found = self.found.get((grades, effects)) or self._fit(effects, grades)
        left = _without_vanished(found.model)
        if left != effects:
            return self.compare(left, grades)
        self.best = self.top([self.best, found])
        return found

    def _fit(self, effects: Effects, grades: int) -> _Candidate:
        """Start from what a smaller sample found, or from a model with as many grades, fewer, or two.

        A fit whose grades explain what attention or shares would does not recover from that.
        """
        look = None
        if self.before and (grades, effects) in self.before.found:
            start = self.before.found[grades, effects].model
        else:
            every = [each for each in self.found.values() if each.model.grades == grades]
            near = [each for each in every if grades == 2 or _explains(each.model.effects, effects)]
            best = max(near, key=lambda each: (_alike(each.model.effects, effects), each.score), default=None)
            best = best or self.found.get((_step(grades, -1), effects)) or self.compare(effects)
            start, look = best.model, best.look if best.model.effects.attention else None
        return self._add(*fit(self.held.cells, grades=grades, effects=effects, start=start, look=look, gain=COMPARED))

    @property
    def looked(self) -> list[Looked]:
        """All models that were compared."""
        queries = self.held.cells.queries
        return [Looked(name_of(each.model), each.score, queries) for each in self.found.values()]

    def add_effects(self) -> None:
        """Add the effect that gains most, then the next; one that once gained nothing is not tried again."""
        of_queries = () if self.alike else (*map(Effects, LINKS), Effects(shares=True))
        before, hopeful = self.plain, [*of_queries, Effects(appeal=True)]
        while hopeful := [more for more in hopeful if self._may_gain(before, more)]:
            on = before.model.effects
            found = {more: self.compare(_both(on, more)) for more in hopeful}
            self._examination_again(on)
            hopeful = [more for more in hopeful if self.lead(found[more], before) > 0]
            before, on = self.best, self.best.model.effects
            hopeful = [more for more in hopeful if _both(on, more) != on and not (on.attention and more.attention)]
        on = self.best.model.effects
        if on.appeal and on.attention:  # attention of the other kind may have looked like appeal
            self.compare(_other(on))

    def _examination_again(self, on: Effects) -> None:
        """If odds clearly win, fit examination again from there: its own climb may have stopped too low."""
        examination, odds = (self.found.get((2, replace(on, attention=link))) for link in LINKS)
        if examination and odds and odds.score > examination.score + 2 * CLEAR:
            effects = examination.model.effects
            again = self._add(*fit(self.held.cells, effects=effects, start=odds.model, look=odds.look, gain=COMPARED))
            self.found[2, effects] = max(again, examination, key=lambda each: each.score)
            self.best = self.top([self.best, self.found[2, effects]])

    def _may_gain(self, before: _Candidate, more: Effects) -> bool:
        """Whether clicks are likelier if queries differ a little in this way and nothing else changes.

        This needs one evaluation instead of a fit. If the answer is no, a fit would find that queries do not differ.
        """
        effects, cells = _both(before.model.effects, more), self.held.cells
        if not set(LITTLE) & set(effects.numbers) - set(before.model.effects.numbers):
            return True
        little = with_effects(before.model, effects, first=LITTLE)
        look = before.look if before.model.effects.attention else None
        return expected(little, cells, look)[1].value > expected(before.model, cells, before.look)[1].value

    def add_grades(self) -> None:
        """Add grades without appeal, which explains what they would while clicks are few."""
        effects = replace(self.best.model.effects, appeal=False)
        last = self.compare(effects)
        for grades in SCALES[1:]:
            finer = self.compare(effects, grades)
            if self.gain(finer, last) < CLEAR / 2:
                break
            last = finer
        if last.model.grades > 2 and effects.attention:  # with these grades, another kind of attention may win
            for other in (_other(effects), replace(effects, attention=None)):
                self.compare(other, last.model.grades)
            best = self.best.model
            if best.effects != effects and best.grades > SCALES[1]:  # then fewer grades may be enough
                self.best = self.step_grades(self.best)

    def rivals(self) -> list[_Candidate]:
        """The best one, then the best of every other kind that might win with more queries."""
        others = {each.kind for each in self.found.values()} - {self.best.kind}
        tops = [self.top(each for each in self.found.values() if each.kind == kind) for kind in sorted(others)]
        return [self.best, *(top for top in tops if self._near(top, self.best))]

    def links(self, top: _Candidate) -> list[Effects]:
        """Other kinds of attention that might win with more queries.

        While clicks are few, appeal and grades explain what attention would.
        """
        effects, grades = top.model.effects, top.model.grades
        others = [replace(effects, attention=link) for link in (None, *LINKS) if link != effects.attention]
        found = [self.found[grades, other] for other in others if (grades, other) in self.found]
        near = [other.model.effects for other in found if self._near(other, top, CLEAR * effects.appeal)]
        tried = [self.found[2, Effects(link)] for link in LINKS if (2, Effects(link)) in self.found]
        if grades > 2 and not effects.attention and tried:
            near.append(replace(effects, attention=self.top(tried).model.effects.attention))
        return near

    def _near(self, other: _Candidate, best: _Candidate, slack: float = 0.0) -> bool:
        return self.lead(best, other) <= SURE * self.error(best, other) + slack

    def settle(self, before: _Search) -> None:
        """Compare the rivals of the smaller sample again: the link first, then kinds, then more or fewer grades.

        Without attention, grades explain what it would, so they are settled before it and again after it.
        """
        first, *rivals = before.rivals()
        top = self.compare(first.model.effects, first.model.grades)
        if not top.model.effects.attention:
            top = self.step_grades(top)
        for effects in before.links(first):
            self.compare(effects, top.model.grades)
        link = self.best.model.effects.attention
        for rival in rivals:
            self.compare(rival.model.effects, rival.model.grades)
            self.compare(replace(rival.model.effects, attention=link), rival.model.grades)
        finer = [each for each in self.found.values() if each.model.grades > 2]
        # Few grades may lose to appeal when more would win.
        if finer and (self.best.model.effects.appeal or self._near(self.top(finer), self.best)):
            self.step_grades(self.top(finer))

    def step_grades(self, top: _Candidate) -> _Candidate:
        """Fewer grades if that loses nothing, then more if that gains."""
        for step in (-1, 1):
            grades = _step(top.model.grades, step)
            if top.model.grades > 2 and grades > 2 and grades != top.model.grades:
                fewer, more = sorted((top, self.compare(top.model.effects, grades)), key=lambda each: each.model.grades)
                top = more if self.gain(more, fewer) >= CLEAR / 2 else fewer
        return top


def name_of(model: Model) -> str:
    """A model in words: `2 grades + examination + appeal`."""
    effects = model.effects
    on = (effects.attention, "shares" if effects.shares else None, "appeal" if effects.appeal else None)
    return " + ".join([f"{model.grades} grades", *(name for name in on if name)])


def choose(cells: Cells, *, rng: np.random.Generator, grades: int | None = None, alike: bool = False) -> Model:
    """The model that predicts held-out clicks best, chosen on a sample of queries and fitted to a larger one, or all.

    Queries that are clicked far more than the others are left out. If clicks say nothing about grades, the model's
    `state` says why. If the number of `grades` is given, only effects are chosen. If queries are `alike`, they are
    rows of a histogram and do not differ.
    """
    clicks, shown = (cells.per_place(part).sum() for part in (cells.clicks, cells.impressions))
    if clicks in (0, shown):
        return replace(first(cells), state="every impression clicked" if clicks else "no clicks")
    fitted = cells if alike else cells.sample(cells.some_queries(rng, MOST_FITTED))
    plain = fit(fitted)[0]
    if one_rate_suffices(plain, fitted):
        return replace(plain, state="one rate explains the clicks")
    everyone, before = plain, fitted.queries
    if not alike:
        fitted, plain = without_outliers(fitted, plain)
    known = fitted if alike else fitted.sample(known_queries(fitted))
    seen, begin = _at_fewer_places(known, plain)
    search = _Search(_held(seen, rng, MOST_ALIKE if alike else MOST_COMPARED, alike=alike), begin, alike=alike)
    search.add_effects()
    if grades is None:
        search.add_grades()
    looked = search.looked
    model = search.best.model
    sampled = not alike and search.held.cells.queries < seen.queries
    if grades is None and sampled and (model.grades > 2 or len(search.rivals()) > 1 or search.links(search.best)):
        fast = not (model.effects.attention or model.effects.shares)  # then more queries cost nothing extra
        most = MOST_ALIKE if fast else MOST_SETTLED
        larger = _Search(_held(seen, rng, most, alike=alike), begin, alike=alike, before=search)
        larger.settle(search)
        search, looked = larger, looked + larger.looked
    best = search.best
    if grades is not None and grades > 2:
        effects = best.model.effects
        given = [search.compare(replace(effects, appeal=on), grades) for on in {False, effects.appeal}]
        best, looked = search.top(given), search.looked
    as_plain = (best.model.grades, best.model.effects) == (2, plain.effects)
    # If all but a few queries are alike, the clicks of these few count, too.
    model = everyone if as_plain else _fitted(fitted, plain, best.model)
    state: State = "fitted" if model.converged else "still climbing"
    share = before / cells.queries
    return replace(model, chosen=tuple(looked), outliers=before - fitted.queries, share=share, state=state)


def one_rate_suffices(model: Model, cells: Cells) -> bool:
    """Whether clicks are about as likely if all documents of a place are clicked at one rate."""
    gain = expected(model, cells)[1].value - one_rate_value(cells)
    return bool(2 * gain < LEAST_GAIN * np.log(cells.documents.sum()))


def _at_fewer_places(cells: Cells, plain: Model) -> tuple[Cells, Model]:
    """If there are very many places, what was seen in the largest contexts, to compare models on."""
    places = cells.places
    if len(places) <= MOST_PLACES or not places.context.any():
        return cells, plain
    shown = np.bincount(places.context, cells.per_place(cells.impressions))
    sizes = np.bincount(places.context)
    largest = np.argsort(-shown, kind="stable")
    few = largest[: max(1, int(np.searchsorted(np.cumsum(sizes[largest]), MOST_PLACES, side="right")))]
    chosen = np.flatnonzero(np.isin(places.context, few))
    seen = cells.at_places(chosen)
    return seen, with_places(plain, seen.places, chosen)


def _fitted(cells: Cells, plain: Model, chosen: Model) -> Model:
    """The chosen model fitted to all cells; if they have more places than it was compared on, from two grades there."""
    if len(chosen.places) == len(cells.places):
        return climb_on(cells, chosen)
    start = replace(with_effects(plain, chosen.effects), numbers=chosen.numbers)
    return fit(cells, grades=chosen.grades, start=start)[0]


def _held(cells: Cells, rng: np.random.Generator, most: float, *, alike: bool) -> Held | Whole:
    if alike:
        share = most / len(cells.entry)
        return Whole(cells.thinned(rng, share) if share < 1 else cells)
    queries = cells.some_queries(rng, most, fewest=FEWEST_COMPARED, at_most=MOST_SETTLED)
    return Halved.dealt(cells.sample(queries), rng).held(len(queries))


def _step(grades: int, step: int) -> int:
    """The next number of grades, or the one before; the same at either end."""
    return min((other for other in SCALES if (other - grades) * step > 0), key=lambda n: n * step, default=grades)


def _both(on: Effects, other: Effects) -> Effects:
    return Effects(on.attention or other.attention, on.shares or other.shares, on.appeal or other.appeal)


def _explains(effects: Effects, other: Effects) -> bool:
    """Whether queries differ in this model in every way in which they differ in the other."""
    return bool(effects.attention or not other.attention) and (effects.shares or not other.shares)


def _alike(effects: Effects, other: Effects) -> int:
    """How many effects both have or both lack."""
    pairs = ((effects.attention, other.attention), (effects.shares, other.shares), (effects.appeal, other.appeal))
    return sum(bool(one) == bool(two) for one, two in pairs)


def _without_vanished(model: Model) -> Effects:
    """A model's effects, without attention or shares if queries hardly differ in them."""
    tiny = [name for name in ("log s", "log t") if name in model.effects.numbers and model.number(name) < LEAST_LOG]
    attention = None if "log s" in tiny else model.effects.attention
    return replace(model.effects, attention=attention, shares=model.effects.shares and "log t" not in tiny)


def _other(effects: Effects) -> Effects:
    """The same effects with the other link; if there is no attention, with the link that is chosen more often."""
    link: Link = "odds" if effects.attention == "examination" else "examination"
    return replace(effects, attention=link)


def fills_a_fit(cells: Cells) -> bool:
    """Whether a fit takes only some of these cells, so that it would learn nothing from more."""
    return cells.work > MOST_FITTED
