"""Cascades: groups by the pattern of relevant documents above, found while walking down.   Counts -> MixtureFit

In the dependent click model people go on or stop after a click; in the user browsing model it matters where they last
clicked. Clicks follow relevance, so in both models all documents at one position with the same pattern of relevant
documents above them have the same chance of being examined. Clicks decide how that chance depends on the pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from clickmix.corrections.mixture import Examination
from clickmix.corrections.mixture_based.cascade_walk import check_lists, rule_from, walk, walked_positions
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.counts import Counts
from clickmix.groups.places import read_histogram
from clickmix.groups.sample import MOVING_FROM, read_moving

MOST_TOGETHER = 400  # with at most this many groups, fit all of them together again


class FitGroups(Protocol):
    """Fits groups, with a number of grades once it is known."""

    def __call__(self, counts: Counts, grades: int | None) -> MixtureFit: ...


def fit_cascade(counts: Counts, fit: FitGroups, *, examination: Examination) -> tuple[MixtureFit, Counts]:
    """Walk down and fit each position, given the fits above it; then fit all positions together again.

    The first position decides the number of grades: nothing is above it, so people examine all its documents alike.
    Also returns the counts in the groups that were found.
    """
    check_lists(counts, examination)
    found: list[MixtureFit] = []

    def relevance(recent: Counts, position: int) -> str:
        here = replace(recent, table=f"(SELECT * FROM {recent.table} WHERE position = {position})")
        fitted = fit(here, found[0].grades if found else None)
        known = fitted.model is not None or any(group.mixture.informative for group in fitted.groups)
        found.append(fitted if known or not found else _with_prior_of(found[-1], fitted))
        return _together(found).label(recent).sql

    grouped, steps = walk(counts, walked_positions(counts), rule=rule_from, relevance=relevance)
    moving = read_moving(grouped, read_histogram(grouped))
    fitted = replace(_together(found), moving=moving)
    if fitted.prior == "flat":
        fitted = _with_mean_prior(fitted)
    if moving >= MOVING_FROM and len(fitted.groups) <= MOST_TOGETHER:
        fitted = fit(grouped, found[0].grades)
    return replace(fitted, examination=examination, steps=tuple(steps)), grouped


def _together(found: Sequence[MixtureFit]) -> MixtureFit:
    """The groups of all positions so far, to label documents that were seen at several."""
    groups = tuple(group for part in found for group in part.groups)
    return replace(found[0], groups=groups, moving=1.0, model=None, joint_error=None, jointly=False)


def _with_mean_prior(fitted: MixtureFit) -> MixtureFit:
    """One prior for all: the groups' mean, weighted by their documents."""
    documents = sum(group.documents for group in fitted.groups)
    columns = zip(*([p * group.documents / documents for p in group.prior] for group in fitted.groups), strict=True)
    mean = tuple(sum(column) for column in columns)
    return replace(fitted, groups=tuple(replace(group, prior=mean) for group in fitted.groups))


def _with_prior_of(above: MixtureFit, fitted: MixtureFit) -> MixtureFit:
    """A fit of a position whose clicks say nothing, with the prior of the position above: it has no grades itself."""
    return replace(fitted, groups=tuple(replace(group, prior=above.groups[0].prior) for group in fitted.groups))
