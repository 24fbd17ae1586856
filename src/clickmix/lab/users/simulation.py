"""Simulation: draw lists and clicks on them, block by block until there are enough.   traits -> sessions"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import numpy.typing as npt

from clickmix.errors import InputError, SettingError
from clickmix.lab.users.sessions import PAST_THE_END, Booleans, Sessions, concatenate
from clickmix.types import Floats, Ints

BLOCK_SESSIONS = 1 << 14  # drawn together: the data of one position fits into the processor's cache
CHUNK_BLOCKS = 16  # yielded together: 262,144 sessions, a few megabytes

Draw = Callable[[Floats, Ints, np.random.Generator], Booleans]


@dataclass(frozen=True)
class Goal:
    """How many sessions or clicks remain to be simulated."""

    unit: str
    remaining: int

    @classmethod
    def of(cls, *, sessions: int | None, clicks: int | None) -> Goal:
        """The caller's goal: exactly one of the two numbers, at least 1."""
        given = [(unit, n) for unit, n in (("sessions", sessions), ("clicks", clicks)) if n is not None]
        if len(given) != 1:
            raise SettingError("Say how much to simulate: pass either sessions=... or clicks=..., but not both.")
        unit, n = given[0]
        if not (isinstance(n, Integral) and n >= 1):
            raise SettingError(f"{unit}={n}: expected a whole number from 1.")
        return cls(unit=unit, remaining=n)

    def towards(self, block: Sessions) -> tuple[Sessions, Goal]:
        """The block's sessions up to the one that reaches the goal, and what remains after them."""
        gains = np.ones(len(block), dtype=np.int64) if self.unit == "sessions" else block.clicks.sum(axis=1)
        so_far = np.cumsum(gains)
        last = min(int(np.searchsorted(so_far, self.remaining)), len(block) - 1)
        return block.take(slice(last + 1)), Goal(unit=self.unit, remaining=max(0, self.remaining - int(so_far[last])))


def list_chances(weights: npt.ArrayLike | None, *, lists: int) -> Floats:
    """The probability that a session sees each list: uniform, or in proportion to `weights`."""
    w = np.ones(lists) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (lists,):
        raise InputError(f"weights has shape {w.shape}, expected one weight for each of the {lists} lists.")
    if not (np.isfinite(w) & (w >= 0)).all() or w.sum() == 0:
        raise InputError("weights must be finite numbers from 0, and not all 0.")
    chances: Floats = w / w.sum()
    return chances


def simulate_chunks(
    draw: Draw, traits: Floats, *, goal: Goal, chances: Floats, rng: np.random.Generator
) -> Iterator[Sessions]:
    """Sessions in chunks; `draw` gives the clicks (positions, sessions) of one block.

    Blocks are always drawn completely, so a longer log begins with the shorter one of the same seed.
    """
    padded = np.isnan(traits[0])
    lists = np.where(padded, PAST_THE_END, np.arange(padded.size).reshape(padded.shape))
    # One row per position, so that a position's attractions are contiguous; 0 past the end is never clicked.
    by_position = np.ascontiguousarray(np.where(padded, 0.0, traits).swapaxes(1, 2))
    blocks: list[Sessions] = []
    while goal.remaining:
        seen = _draw_lists(chances, rng)
        block, goal = goal.towards(Sessions(lists=lists, seen=seen, clicks=draw(by_position, seen, rng).T))
        blocks.append(block)
        if len(blocks) == CHUNK_BLOCKS or not goal.remaining:
            yield concatenate(blocks)
            blocks = []


def _draw_lists(chances: Floats, rng: np.random.Generator) -> Ints:
    if (chances == chances[0]).all():
        return rng.integers(len(chances), size=BLOCK_SESSIONS)
    return rng.choice(len(chances), size=BLOCK_SESSIONS, p=chances)
