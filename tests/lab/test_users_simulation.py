"""Simulated clicks agree with the models' own probabilities; z-tests alarm falsely in fewer than one of 10^6 draws."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from clickmix.errors import InputError, SettingError
from clickmix.lab.users import PositionBased, Sessions, Trust, preset
from clickmix.lab.users.sessions import Booleans, last_click_above, totals
from clickmix.lab.users.simulation import BLOCK_SESSIONS, CHUNK_BLOCKS
from clickmix.types import Floats
from users_clicks import MODELS, PRESETS, lists_of, random_user

LENGTHS = (1, 3, 10)
KINDS = ("binarized", "graded")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def z_scores(happened: npt.NDArray[Any], expected: Floats, variance: Floats) -> Floats:
    """Standardised, where at least 25 events speak and the normal approximation holds."""
    enough = variance > 25
    assert enough.any()
    scores: Floats = (happened[enough] - expected[enough]) / np.sqrt(variance[enough])
    return scores


def by_last_click(sessions: Sessions, p: Floats, group: Booleans) -> Floats:
    """One z per list, position and last click above: c - p is a martingale difference with variance p (1 - p)."""
    K = sessions.positions
    cell = (sessions.seen[:, None] * K + np.arange(K)) * K + last_click_above(sessions.clicks)
    size = len(sessions.lists) * K * K
    sums = [totals(cell[group], w[group], size=size) for w in (sessions.clicks, p, p * (1 - p))]
    return z_scores(*sums)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", PRESETS)
def test_frequencies_agree_with_marginals(name: str, length: int, kind: str) -> None:
    user, relevance = preset(name), lists_of(kind, length)
    counts = user.simulate(relevance, sessions=150_000, rng=rng()).counts()
    p, n = np.nan_to_num(user.click_probabilities(relevance)), counts.impressions[:, None]
    assert np.abs(z_scores(counts.clicks, n * p, n * p * (1 - p))).max() < 5
    assert (counts.clicks[np.isnan(relevance)] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", PRESETS)
def test_frequencies_agree_with_conditionals(name: str, length: int, kind: str) -> None:
    user, relevance = preset(name), lists_of(kind, length)
    sessions = user.simulate(relevance, sessions=150_000, rng=rng(1))
    p = user.click_probabilities(relevance[sessions.seen], clicks=sessions.clicks)
    assert np.abs(by_last_click(sessions, p, ~np.isnan(p))).max() < 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", MODELS)
def test_frequencies_agree_on_long_lists_with_any_parameters(model: str, kind: str) -> None:
    user, relevance = random_user(model, 40, seed=7), lists_of(kind, 40)
    sessions = user.simulate(relevance, sessions=50_000, rng=rng(6))
    counts, n = sessions.counts(), sessions.counts().impressions[:, None]
    marginal = np.nan_to_num(user.click_probabilities(relevance))
    given = user.click_probabilities(relevance[sessions.seen], clicks=sessions.clicks)
    assert np.abs(z_scores(counts.clicks, n * marginal, n * marginal * (1 - marginal))).max() < 5
    assert np.abs(by_last_click(sessions, given, ~np.isnan(given))).max() < 5


@pytest.mark.parametrize(("name", "agrees"), [("pbm-eta1", True), ("dcm", False), ("ubm", False)])
def test_only_position_based_clicks_are_independent_of_those_above(name: str, agrees: bool) -> None:
    user, relevance = preset(name), lists_of("binarized", 5)
    sessions = user.simulate(relevance, sessions=150_000, rng=rng(2))
    p = user.click_probabilities(relevance)[sessions.seen]
    assert (np.abs(by_last_click(sessions, p, ~np.isnan(p))).max() < 5) == agrees


@pytest.mark.parametrize("model", MODELS)
def test_lists_are_drawn_uniformly_or_by_weight(model: str) -> None:
    user, relevance, n = random_user(model, 3, seed=5), lists_of("graded", 3), 100_000
    weights = np.array([5.0, 0, 1, 1, 2, 1])
    uniform = user.simulate(relevance, sessions=n, rng=rng()).counts().impressions
    weighted = user.simulate(relevance, sessions=n, weights=weights, rng=rng()).counts().impressions
    assert np.abs(z_scores(uniform, np.full(6, n / 6), np.full(6, n * 5 / 36))).max() < 5
    share = weights / 10
    assert np.abs(z_scores(weighted, n * share, n * share * (1 - share))).max() < 5
    assert weighted[1] == 0


@pytest.mark.parametrize("clicks", [1, 999, 123_456])
@pytest.mark.parametrize("model", MODELS)
def test_until_enough_clicks_and_no_session_more(model: str, clicks: int) -> None:
    sessions = random_user(model, 4, seed=3).simulate(lists_of("graded", 4), clicks=clicks, rng=rng())
    assert sessions.clicks.sum() >= clicks
    assert sessions.clicks[:-1].sum() < clicks


@pytest.mark.parametrize("sessions", [1, BLOCK_SESSIONS, BLOCK_SESSIONS + 1, CHUNK_BLOCKS * BLOCK_SESSIONS + 7])
@pytest.mark.parametrize("model", MODELS)
def test_so_many_sessions(model: str, sessions: int) -> None:
    user, relevance = random_user(model, 2, seed=3), lists_of("graded", 2)
    whole = user.simulate(relevance, sessions=sessions, rng=rng())
    chunks = list(user.simulate_chunks(relevance, sessions=sessions, rng=rng()))
    assert len(whole) == sessions
    assert max(len(chunk) for chunk in chunks) <= CHUNK_BLOCKS * BLOCK_SESSIONS
    np.testing.assert_array_equal(np.concatenate([chunk.clicks for chunk in chunks]), whole.clicks)


@pytest.mark.parametrize("model", MODELS)
def test_same_seed_same_sessions_and_a_longer_log_begins_with_the_shorter(model: str) -> None:
    user, relevance = random_user(model, 3, seed=3), lists_of("graded", 3)
    short = user.simulate(relevance, sessions=20_000, rng=rng(4))
    long = user.simulate(relevance, sessions=50_000, rng=rng(4))
    other = user.simulate(relevance, sessions=20_000, rng=rng(5))
    np.testing.assert_array_equal(short.clicks, long.clicks[:20_000])
    np.testing.assert_array_equal(short.seen, long.seen[:20_000])
    assert (short.clicks != other.clicks).any()


def test_document_codes_number_the_entries_of_relevance() -> None:
    sessions = preset("dcm").simulate([[0.5, 1.0, 0.0], [1.0, np.nan, np.nan]], sessions=5, rng=rng())
    assert sessions.lists.tolist() == [[0, 1, 2], [3, -1, -1]]


@pytest.mark.parametrize("kind", KINDS)
def test_counts_agree_with_probabilities(kind: str) -> None:
    user, relevance = preset("pbm-eta1"), lists_of(kind, 20)
    assert isinstance(user, PositionBased)
    counts = user.simulate_counts(relevance, sessions=1_000_000, weights=[1, 2, 3, 4, 5, 6], rng=rng())
    p, n = np.nan_to_num(user.click_probabilities(relevance)), counts.impressions[:, None]
    share = np.arange(1, 7) / 21
    assert counts.impressions.sum() == 1_000_000
    assert np.abs(z_scores(counts.impressions, 1e6 * share, 1e6 * share * (1 - share))).max() < 5
    assert np.abs(z_scores(counts.clicks, n * p, n * p * (1 - p))).max() < 5
    assert (counts.clicks[np.isnan(relevance)] == 0).all()


@pytest.mark.parametrize("clicks", [1, 5_000, 2_000_000])
def test_counts_until_enough_clicks(clicks: int) -> None:
    """By renewal theory the sessions needed are about normal with variance clicks * variance / mean^3."""
    user, relevance = PositionBased.with_eta(1, positions=4), lists_of("graded", 4)
    counts = user.simulate_counts(relevance, clicks=clicks, rng=rng())
    p = np.nan_to_num(user.click_probabilities(relevance))
    mean = p.sum(axis=1).mean()
    variance = (p * (1 - p)).sum(axis=1).mean() + p.sum(axis=1).var()
    assert clicks <= counts.clicks.sum() < clicks + 4
    assert user.clicks_per_session(relevance) == pytest.approx(mean)
    slack = 5 * np.sqrt(clicks * variance / mean**3) + 4 / mean
    assert abs(counts.impressions.sum() - clicks / mean) < slack


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Say how much to simulate: pass either sessions=... or clicks=..., but not both."),
        (
            {"sessions": 1, "clicks": 1},
            "Say how much to simulate: pass either sessions=... or clicks=..., but not both.",
        ),
        ({"sessions": 0}, "sessions=0: expected a whole number from 1."),
        ({"sessions": 1.5}, "sessions=1.5: expected a whole number from 1."),
        ({"clicks": -3}, "clicks=-3: expected a whole number from 1."),
    ],
)
def test_the_goal_must_be_clear(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        preset("ubm").simulate([[1.0]], **arguments, rng=rng())


@pytest.mark.parametrize("method", ["simulate", "simulate_counts"])
def test_users_who_never_click_are_refused(method: str) -> None:
    user = PositionBased.with_eta(1, positions=2, trust=Trust.perfect(2))
    message = "This user never clicks on these lists, so no number of clicks is ever reached."
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        getattr(user, method)([[0.0, 0.0]], clicks=10, rng=rng())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "weights has shape (1,), expected one weight for each of the 2 lists."),
        ([1.0, -1.0], "weights must be finite numbers from 0, and not all 0."),
        ([0.0, 0.0], "weights must be finite numbers from 0, and not all 0."),
        ([1.0, np.nan], "weights must be finite numbers from 0, and not all 0."),
    ],
)
def test_weights_that_cannot_be_are_refused(weights: list[float], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        preset("ubm").simulate([[1.0], [0.5]], sessions=3, weights=weights, rng=rng())
