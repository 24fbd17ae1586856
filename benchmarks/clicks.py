"""How fast users are simulated: sessions of ten results per second on one core, and against a loop over sessions."""

from __future__ import annotations

import time

import numpy as np

from clickmix.lab.users import DependentClick, PositionBased, User, UserBrowsing, preset
from clickmix.lab.users.sessions import Booleans
from clickmix.types import Floats

LISTS, POSITIONS = 2000, 10
SESSIONS, LOOP_SESSIONS = 2_000_000, 10_000


def measure() -> dict[str, float]:
    """Sessions per second of each model, and how many times as many as the loop's."""
    relevance = np.random.default_rng(0).choice([0.0, 1.0], p=[0.9, 0.1], size=(LISTS, POSITIONS))
    measured: dict[str, float] = {}
    for name in ("pbm-eta1", "dcm", "ubm"):
        user = preset(name, positions=POSITIONS)
        fast = _sessions_per_second(user, relevance)
        slow = _loop_sessions_per_second(user, relevance)
        measured[f"{name}: sessions per second"] = fast
        measured[f"{name}: times a loop over sessions"] = fast / slow
    return measured


def _sessions_per_second(user: User, relevance: Floats) -> float:
    started = time.perf_counter()
    for _ in user.simulate_chunks(relevance, sessions=SESSIONS, rng=np.random.default_rng(1)):
        pass
    return SESSIONS / (time.perf_counter() - started)


def _loop_sessions_per_second(user: User, relevance: Floats) -> float:
    attraction, rng = user.attraction(relevance), np.random.default_rng(1)
    started = time.perf_counter()
    for _ in range(LOOP_SESSIONS):
        _draw_session(user, attraction[rng.integers(len(attraction))], rng)
    return LOOP_SESSIONS / (time.perf_counter() - started)


def _draw_session(user: User, attraction: Floats, rng: np.random.Generator) -> Booleans:
    """What a reader of the model's definition would write: one position after the other."""
    clicks = np.zeros(len(attraction), dtype=np.bool_)
    last = 0
    for k in range(len(attraction)):
        match user:
            case PositionBased():
                clicks[k] = rng.random() < user.examination[k] * attraction[k]
            case UserBrowsing():
                clicks[k] = rng.random() < user.examination[k, last] * attraction[k]
                last = k + 1 if clicks[k] else last
            case DependentClick():
                clicks[k] = rng.random() < attraction[k]
                if clicks[k] and k + 1 < len(attraction) and rng.random() >= user.going_on[k]:
                    break
    return clicks


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:40s} {value:14,.0f}")
