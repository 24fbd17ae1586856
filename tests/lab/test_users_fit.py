"""Fitted users: parameters recovered within computed bounds, the likelihood at its top, and what is not known named."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, xlogy

import oracles_clicks as oracle
from clickmix.errors import InputError
from clickmix.lab.users import (
    Cascade,
    DependentClick,
    DynamicBayesian,
    PositionBased,
    Sessions,
    SimplifiedDynamicBayesian,
    Trust,
    User,
    UserBrowsing,
    UserFit,
)
from clickmix.lab.users.products import CellCounts
from clickmix.lab.users.sessions import last_click_above
from clickmix.types import Floats, Ints
from users_clicks import MODELS, user_of

CLASSES: dict[str, Any] = {
    "pbm": PositionBased,
    "dcm": DependentClick,
    "ubm": UserBrowsing,
    "cascade": Cascade,
    "sdbn": SimplifiedDynamicBayesian,
    "dbn": DynamicBayesian,
}
SATISFYING = ("sdbn", "dbn")  # models in which a document has a satisfaction, too
LISTS = np.array([[0, 1, 2, 3], [3, 0, 4, 1], [5, 4, 0, 2], [2, 5, 1, 4], [1, 3, 5, 0]])
DOCUMENTS = 6


def free_count(model: str, *, positions: int, documents: int) -> int:
    """How many parameters there are beside attraction, position 1 being examined."""
    K = positions
    triangle = K * (K + 1) // 2
    counts = {"pbm": K - 1, "dcm": K - 1, "ubm": triangle - 1, "cascade": 0, "sdbn": documents, "dbn": documents + 1}
    return counts[model]


def user_with(model: str, free: Floats, K: int = 4) -> User:
    """A user with these parameters; satisfaction is not a user's, but a document's."""
    trust = Trust.perfect(K)
    if model == "sdbn":
        return SimplifiedDynamicBayesian(trust=trust)
    if model == "dbn":
        return DynamicBayesian(continuation=float(free[-1]), trust=trust)
    return user_of(model, free if model == "dcm" else np.r_[1.0, free], trust)


def of_documents(model: str, theta: Floats, documents: int = DOCUMENTS) -> Floats:
    """Attraction by document; with satisfaction, where the model has it."""
    if model in SATISFYING:
        return np.reshape(theta[: 2 * documents], (2, documents))
    return theta[:documents]


def free_parameters(model: str, fit: UserFit) -> Floats:
    user: Any = fit.user
    if model == "pbm":
        return np.asarray(user.examination[1:])
    if model == "dcm":
        return np.asarray(user.going_on)
    if model == "ubm":
        return np.asarray(user.examination[np.tril_indices(4)][1:])
    if fit.satisfaction is None:
        return np.zeros(0)
    continuation = [user.continuation] if model == "dbn" else []
    return np.concatenate([fit.satisfaction, continuation])


def pattern_probabilities(model: str, theta: Floats, lists: Ints) -> Floats:
    """(lists, patterns) for attraction and free parameters put one after the other."""
    user, every = user_with(model, theta[DOCUMENTS:]), oracle.patterns(lists.shape[1])
    attraction, *satisfaction = np.atleast_2d(of_documents(model, theta))

    def probability(row: Ints, pattern: oracle.Pattern) -> float:
        satisfying = list(satisfaction[0][row]) if satisfaction else None
        return oracle.pattern_probability(user, list(attraction[row]), pattern, satisfying=satisfying)

    return np.array([[probability(row, pattern) for pattern in every] for row in lists])


def pattern_counts(sessions: Sessions) -> Floats:
    code = sessions.clicks @ (1 << np.arange(sessions.positions)[::-1])
    counts = np.zeros((len(sessions.lists), 1 << sessions.positions))
    np.add.at(counts, (sessions.seen, code), 1)
    return counts


def simulated(model: str, theta: Floats, *, sessions: int, seed: int, lists: Ints = LISTS) -> Sessions:
    user = user_with(model, theta[DOCUMENTS:])
    return replace(
        user.simulate(of_documents(model, theta)[..., lists], sessions=sessions, rng=np.random.default_rng(seed)),
        lists=lists,
    )


def truth(model: str, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [rng.uniform(0.1, 0.6, DOCUMENTS), rng.uniform(0.3, 0.9, free_count(model, positions=4, documents=DOCUMENTS))]
    )


def estimate(model: str, fit: UserFit) -> Floats:
    return np.concatenate([fit.attraction, free_parameters(model, fit)])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("model", MODELS)
def test_parameters_are_recovered_within_five_standard_errors(model: str, seed: int) -> None:
    theta = truth(model, seed)
    sessions = simulated(model, theta, sessions=100_000, seed=seed)
    fit = CLASSES[model].fit(sessions)
    errors = oracle.standard_errors(
        lambda t: pattern_probabilities(model, t, LISTS), theta, sessions.counts().impressions
    )
    assert fit.converged
    assert np.abs((estimate(model, fit) - theta) / errors).max() < 5
    assert errors.max() < 0.05  # a bound that says something


@pytest.mark.parametrize("model", MODELS)
def test_log_likelihood_is_that_of_the_sessions_and_flat_at_its_top(model: str) -> None:
    sessions = simulated(model, truth(model, 9), sessions=20_000, seed=9)
    fit = CLASSES[model].fit(sessions)
    counts, theta = pattern_counts(sessions), estimate(model, fit)

    def log_likelihood(t: Floats) -> float:
        return float(xlogy(counts, pattern_probabilities(model, t, LISTS)).sum())

    steps = 1e-4 * np.eye(len(theta))
    slopes = [(log_likelihood(theta + h) - log_likelihood(theta - h)) / 2e-4 / len(sessions) for h in steps]
    assert fit.log_likelihoods[-1] == pytest.approx(log_likelihood(theta), rel=1e-12)
    np.testing.assert_allclose(slopes, 0, atol=1e-5)


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_likelihood_never_falls_and_no_other_start_climbs_higher(model: str, data: st.DataObject) -> None:
    """Few sessions, so that attraction and examination of exactly 0 and 1 occur."""
    K = 3
    lists = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    seen = np.array([*data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=12)), 0, 1, 2])
    bits = data.draw(st.lists(st.booleans(), min_size=K * len(seen), max_size=K * len(seen)))
    clicks = np.array(bits).reshape(-1, K)
    clicks[-1, 0] = True
    if model == "cascade":
        clicks &= last_click_above(clicks) == 0  # more clicks are impossible to it
    sessions = Sessions(lists=lists, seen=seen, clicks=clicks)
    fit = CLASSES[model].fit(sessions)
    trace = np.array(fit.log_likelihoods)
    assert (np.diff(trace) >= -1e-12 * abs(trace[-1])).all()

    def minus_log_likelihood(x: Floats) -> float:
        p = expit(x)
        user = user_with(model, p[K:], K)
        q = user.click_probabilities(of_documents(model, p, K)[..., lists[seen]], clicks=clicks)
        q = np.clip(q, 1e-12, 1 - 1e-12)
        return -float(np.where(clicks, np.log(q), np.log1p(-q)).sum())

    rng = np.random.default_rng(0)
    size = K + free_count(model, positions=K, documents=K)
    other = minimize(minus_log_likelihood, rng.normal(size=size), method="L-BFGS-B")
    assert trace[-1] >= -other.fun - 1e-4


@pytest.mark.parametrize("model", MODELS)
def test_order_of_sessions_and_names_of_documents_do_not_matter(model: str) -> None:
    sessions = simulated(model, truth(model, 3), sessions=5_000, seed=3)
    fit = CLASSES[model].fit(sessions)
    renamed = np.array([4, 2, 5, 0, 1, 3])
    shuffled = sessions.take(np.random.default_rng(0).permutation(len(sessions)))
    other = CLASSES[model].fit(replace(shuffled, lists=renamed[sessions.lists]))
    np.testing.assert_allclose(other.attraction[renamed], fit.attraction, atol=1e-9)
    if fit.satisfaction is not None and other.satisfaction is not None:
        other = replace(other, satisfaction=other.satisfaction[renamed])
    np.testing.assert_allclose(free_parameters(model, other), free_parameters(model, fit), atol=1e-9)


def test_position_based_fit_needs_only_counts() -> None:
    sessions = simulated("pbm", truth("pbm", 3), sessions=5_000, seed=3)
    rows = sessions.documents.ravel(), np.tile(np.arange(1, 5), len(sessions)), np.ones(20_000, dtype=int)
    from_counts = PositionBased.fit_counts(*rows, sessions.clicks.ravel().astype(int))
    from_sessions = PositionBased.fit(sessions)
    np.testing.assert_allclose(from_counts.attraction, from_sessions.attraction, atol=1e-12)
    assert from_counts.log_likelihoods[-1] == pytest.approx(from_sessions.log_likelihoods[-1], rel=1e-12)


@pytest.mark.parametrize("documents", [3, 10**12])
def test_rows_of_the_same_document_and_cell_are_added_up(documents: int) -> None:
    """Few documents are counted in a table of all pairs, many by sorting the rows."""
    rows = np.array([[2, 1, 5, 2], [0, 0, 3, 3], [2, 1, 4, 1], [1, 0, 0, 0], [0, 1, 1, 0]])
    counts = CellCounts.of(*rows.T, documents=documents, cells=2)
    columns = counts.document, counts.cell, counts.impressions, counts.clicks
    assert np.transpose(columns).tolist() == [[0, 0, 3, 3], [0, 1, 1, 0], [2, 1, 9, 3]]


def test_shorter_lists_are_fitted_as_they_are() -> None:
    """Position 1 only: attraction is the click rate, in every model."""
    lists = np.array([[0, 1], [1, 0], [2, -1]])
    seen = np.repeat([0, 1, 2], 100)
    clicks = np.zeros((300, 2), dtype=bool)
    clicks[::4, 0] = clicks[1:200:4, 1] = True
    fits = [CLASSES[model].fit(Sessions(lists=lists, seen=seen, clicks=clicks)) for model in MODELS]
    np.testing.assert_allclose([fit.attraction[2] for fit in fits], 0.25, atol=1e-9)


def test_dependent_click_in_closed_form() -> None:
    """Everybody clicks at the last position or not at all below the first: examined impressions are known."""
    lists = np.array([[0, 1]])
    clicks = np.array([[1, 1]] * 30 + [[0, 1]] * 10 + [[0, 0]] * 40, dtype=bool)
    fit = DependentClick.fit(Sessions(lists=lists, seen=np.zeros(80, dtype=int), clicks=clicks))
    np.testing.assert_allclose(fit.attraction, [30 / 80, 40 / 80], atol=1e-6)
    assert isinstance(fit.user, DependentClick)
    np.testing.assert_allclose(fit.user.going_on, [1.0], atol=1e-5)


def test_cascade_is_fitted_down_to_the_first_click() -> None:
    clicks = np.array([[1, 1]] * 30 + [[0, 1]] * 10 + [[0, 0]] * 40, dtype=bool)
    fit = Cascade.fit(Sessions(lists=np.array([[0, 1]]), seen=np.zeros(80, dtype=int), clicks=clicks))
    np.testing.assert_allclose(fit.attraction, [30 / 80, 10 / 50])
    assert fit.examined.tolist() == [80, 50]


def test_a_second_click_is_impossible_to_a_cascade_user() -> None:
    sessions = Sessions(lists=np.array([[0, 1]]), seen=np.zeros(2, dtype=int), clicks=np.array([[1, 1], [0, 0]]) > 0)
    assert Cascade.fit(sessions).score(sessions).log_likelihood == -np.inf


@pytest.mark.parametrize("model", SATISFYING)
def test_satisfaction_that_no_click_tells_is_not_made_up(model: str) -> None:
    """Document 1 is clicked only where nothing follows, document 2 never."""
    lists = np.array([[0, 1], [0, 2]])
    clicks = np.array([[1, 1], [1, 0], [0, 1], [1, 0], [0, 0]], dtype=bool)
    fit = CLASSES[model].fit(Sessions(lists=lists, seen=np.array([0, 0, 0, 1, 1]), clicks=clicks))
    assert np.isnan(fit.satisfaction).tolist() == [False, True, True]


def test_continuation_that_no_session_shows_is_named() -> None:
    sessions = Sessions(lists=np.array([[0], [1]]), seen=np.array([0, 0, 1]), clicks=np.array([[1], [0], [0]]) > 0)
    assert DynamicBayesian.fit(sessions).unidentified == ("continuation",)


@pytest.mark.parametrize("seed", range(3))
def test_a_dynamic_bayesian_fit_is_at_least_as_likely_as_the_simplified_one(seed: int) -> None:
    """The simplified model is the same with continuation 1."""
    sessions = simulated("dbn", truth("dbn", seed), sessions=3_000, seed=seed)
    simple, whole = SimplifiedDynamicBayesian.fit(sessions), DynamicBayesian.fit(sessions)
    assert whole.log_likelihoods[-1] > simple.log_likelihoods[-1]


@pytest.mark.parametrize("model", [model for model in MODELS if model != "cascade"])  # which needs no steps
def test_max_steps_is_kept_and_not_having_converged_is_said(model: str) -> None:
    sessions = simulated(model, truth(model, 3), sessions=5_000, seed=3)
    fit = CLASSES[model].fit(sessions, max_steps=3)
    assert not fit.converged
    assert len(fit.log_likelihoods) <= 5


@pytest.mark.parametrize("model", MODELS)
def test_normalisation_is_named(model: str) -> None:
    fit = CLASSES[model].fit(simulated(model, truth(model, 3), sessions=500, seed=3))
    assert "position 1" in fit.normalisation
    assert "Trust cannot be separated from" in fit.normalisation
    assert fit.user.click_probabilities([[0.25]]).item() == 0.25


@pytest.mark.parametrize("model", MODELS)
def test_score_is_the_conditional_log_likelihood_by_position(model: str) -> None:
    sessions = simulated(model, truth(model, 4), sessions=2_000, seed=4)
    fit = CLASSES[model].fit(sessions.take(slice(1_000)))
    held_out = sessions.take(slice(1_000, 1_050))
    score = fit.score(held_out)
    satisfaction = fit.predicted_satisfaction
    given = [
        [
            oracle.conditional(
                fit.predictor,
                list(fit.predicted_attraction[d]),
                tuple(c),
                k,
                satisfying=None if satisfaction is None else list(satisfaction[d]),
            )
            for k in range(4)
        ]
        for d, c in zip(held_out.documents, held_out.clicks.astype(int), strict=True)
    ]
    expected = np.log(np.where(held_out.clicks, given, 1 - np.array(given))).sum(axis=0)
    np.testing.assert_allclose(score.log_likelihoods, expected, rtol=1e-9)
    assert score.log_likelihood == pytest.approx(expected.sum())
    np.testing.assert_allclose(score.perplexities, 2 ** -(expected / np.log(2) / 50))
    assert score.perplexity == pytest.approx(score.perplexities.mean())


@pytest.mark.parametrize("model", MODELS)
def test_new_documents_and_shorter_lists_are_scored(model: str) -> None:
    fit = CLASSES[model].fit(simulated(model, truth(model, 4), sessions=2_000, seed=4))
    lists = np.array([[99, -1]])
    score = fit.score(Sessions(lists=lists, seen=np.zeros(3, dtype=int), clicks=np.array([[1, 0], [0, 0], [0, 0]]) > 0))
    m = fit.mean_attraction * fit.predictor.click_probabilities([[1.0]]).item()
    assert 0 < m < 1
    np.testing.assert_allclose(score.log_likelihoods, [np.log(m) + 2 * np.log1p(-m), 0])
    assert score.impressions.tolist() == [3, 0]
    assert np.isnan(score.perplexities[1])
    assert score.perplexity == score.perplexities[0]


@pytest.mark.parametrize("model", MODELS)
def test_what_was_never_clicked_in_training_is_not_held_impossible(model: str) -> None:
    sessions = simulated(model, truth(model, 4), sessions=300, seed=4)
    unclicked = replace(sessions, clicks=sessions.clicks & (sessions.documents != 2))
    fit = CLASSES[model].fit(unclicked)
    assert fit.attraction[2] == 0
    assert np.isfinite(fit.score(sessions).log_likelihood)


def test_predictions_are_the_fit_with_one_more_observation_at_the_mean() -> None:
    fit = PositionBased.fit_counts([0, 1], [1, 1], [10, 30], [5, 3])
    np.testing.assert_allclose(fit.attraction, [0.5, 0.1])
    assert fit.mean_attraction == pytest.approx(8 / 40)
    np.testing.assert_allclose(fit.predicted_attraction, [(5 + 0.2) / 11, (3 + 0.2) / 31])


@pytest.mark.parametrize("model", ["pbm", "ubm"])
def test_positions_without_shared_clicked_documents_are_named(model: str) -> None:
    lists = np.array([[0, 1, 2, 3], [1, 0, 3, 2]])
    clicks = np.ones((2, 4), dtype=bool)
    message = (
        "Position(s) 3, 4: no clicked document links them with position 1, so how often they are examined cannot be "
        "separated from how attractive their documents are. Fit a log in which documents move, or leave "
        "these positions out."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        CLASSES[model].fit(Sessions(lists=lists, seen=np.array([0, 1]), clicks=clicks))


def test_a_document_nobody_clicks_links_nothing() -> None:
    with pytest.raises(InputError, match=r"^Position\(s\) 2: no clicked document"):
        PositionBased.fit_counts([0, 1, 1, 2], [1, 1, 2, 2], [9, 9, 9, 9], [3, 0, 0, 3])


def test_cells_that_no_session_reached_are_named() -> None:
    lists = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    clicks = np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 1]] * 3, dtype=bool)
    fit = UserBrowsing.fit(Sessions(lists=lists, seen=np.repeat([0, 1, 2], 4), clicks=clicks))
    assert fit.unidentified == ("examination at position 3 after a last click at 2",)
    assert isinstance(fit.user, UserBrowsing)
    low, high = sorted(fit.user.examination[2, :2])
    assert low <= fit.user.examination[2, 2] <= high


def test_going_on_that_no_session_shows_is_named() -> None:
    lists = np.array([[0, 1, 2]])
    clicks = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0]], dtype=bool)
    fit = DependentClick.fit(Sessions(lists=lists, seen=np.zeros(3, dtype=int), clicks=clicks))
    assert fit.unidentified == ("going on after a click at position 2",)


@pytest.mark.parametrize("model", MODELS)
def test_a_log_without_clicks_is_refused(model: str) -> None:
    sessions = Sessions(lists=LISTS, seen=np.arange(5), clicks=np.zeros((5, 4), dtype=bool))
    message = "There is no click in these sessions, so no user model can be fitted to them."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        CLASSES[model].fit(sessions)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            ([0, 1], [1, 0], [5, 5], [1, 1]),
            "Row 2: document 1, position 0, impressions 5, clicks 1. Expected document codes from 0, positions from 1 "
            "and no more clicks than impressions.",
        ),
        (
            ([0], [1], [5], [6]),
            "Row 1: document 0, position 1, impressions 5, clicks 6. Expected document codes from 0, positions from 1 "
            "and no more clicks than impressions.",
        ),
        (
            ([0], [1], [5], [1, 2]),
            "document, position, impressions and clicks must be equally long columns, found (1,), (1,), (1,), (2,).",
        ),
    ],
)
def test_counts_that_cannot_be_are_refused(columns: tuple[list[int], ...], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        PositionBased.fit_counts(*columns)
