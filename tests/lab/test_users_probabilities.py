"""Click probabilities of the user models, against enumeration of everything a person can do."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles_clicks as oracle
from clickmix.errors import InputError, SettingError
from clickmix.lab.users import DependentClick, DynamicBayesian, PositionBased, Trust, User, UserBrowsing, preset
from users_clicks import MODELS, random_user, user_of

NAN = float("nan")


@st.composite
def users_and_lists(draw: st.DrawFn) -> tuple[User, list[float]]:
    K = draw(st.integers(1, 5))
    user = random_user(draw(st.sampled_from(MODELS)), K, draw(st.integers(0, 10**6)))
    return user, draw(st.lists(st.sampled_from([0.0, 0.25, 0.7, 1.0]), min_size=1, max_size=K))


@given(users_and_lists())
def test_patterns_of_the_oracle_sum_to_one(case: tuple[User, list[float]]) -> None:
    user, relevance = case
    total = sum(oracle.pattern_probability(user, relevance, pattern) for pattern in oracle.patterns(len(relevance)))
    assert total == pytest.approx(1, abs=1e-12)


@given(users_and_lists())
def test_marginal_is_the_sum_over_all_click_patterns(case: tuple[User, list[float]]) -> None:
    user, relevance = case
    expected = [oracle.marginal(user, relevance, k) for k in range(len(relevance))]
    np.testing.assert_allclose(user.click_probabilities([relevance])[0], expected, atol=1e-12)


@given(users_and_lists())
def test_conditional_is_the_ratio_of_sums_over_click_patterns(case: tuple[User, list[float]]) -> None:
    user, relevance = case
    possible = [p for p in oracle.patterns(len(relevance)) if oracle.pattern_probability(user, relevance, p) > 1e-9]
    expected = [[oracle.conditional(user, relevance, p, k) for k in range(len(relevance))] for p in possible]
    found = user.click_probabilities([relevance] * len(possible), clicks=possible)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(st.integers(0, 10**6))
def test_how_relevant_results_look_and_are_may_differ(seed: int) -> None:
    rng = np.random.default_rng(seed)
    user, (looks, actual) = random_user("dbn", 4, seed), rng.random((2, 4)).tolist()
    every = oracle.patterns(4)
    expected = [[oracle.conditional(user, looks, p, k, satisfying=actual) for k in range(4)] for p in every]
    found = user.click_probabilities(np.repeat([[looks], [actual]], len(every), axis=1), clicks=every)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_relevance_is_given_once_or_twice() -> None:
    message = (
        "relevance has shape (3, 1, 2), expected (lists, positions), or (2, lists, positions): how relevant results "
        "look, and how relevant they are."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        preset("sdbn").click_probabilities(np.zeros((3, 1, 2)))


@pytest.mark.parametrize("name", ["dcm", "ubm", "cascade", "sdbn", "dbn"])
def test_only_position_based_users_have_alpha_and_beta(name: str) -> None:
    with pytest.raises(SettingError, match="has no alpha and beta: its click rate at a position depends on the"):
        _ = preset(name).beta


@pytest.mark.parametrize("model", MODELS)
def test_a_shorter_list_has_the_probabilities_of_its_own_and_nan_past_its_end(model: str) -> None:
    user = random_user(model, 4, seed=1)
    found = user.click_probabilities([[0.2, 0.9, NAN, NAN], [0.2, 0.9, 0.4, 1.0]])
    np.testing.assert_array_equal(found[0, :2], user.click_probabilities([[0.2, 0.9]])[0])
    np.testing.assert_array_equal(found[0, :2], found[1, :2])
    assert np.isnan(found[0, 2:]).all()


def test_position_based_rate_is_alpha_times_relevance_plus_beta() -> None:
    user = preset("pbm-eta2")
    assert isinstance(user, PositionBased)
    relevance = np.random.default_rng(0).random((3, 20))
    np.testing.assert_allclose(user.click_probabilities(relevance), user.alpha * relevance + user.beta, atol=1e-15)


def test_papers_position_based_user_at_the_positions_where_its_formulas_bend() -> None:
    user = preset("pbm-eta2", positions=50)
    assert isinstance(user, PositionBased)
    at = np.array([1, 2, 10, 11, 20, 21, 50]) - 1
    np.testing.assert_allclose(user.trust.relevant[at], [0.98, 0.97, 0.89, 0.88, 0.79, 0.79, 0.79])
    np.testing.assert_allclose(user.trust.irrelevant[at], [0.65, 0.325, 0.065, 0.065, 0.065, 0.065, 0.065])
    np.testing.assert_allclose(user.examination[at], [1, 1 / 4, 1 / 100, 1 / 121, 1 / 400, 1 / 441, 1 / 2500])


def test_papers_dependent_click_user() -> None:
    user = preset("dcm")
    first = [0.65, 0.98]  # e0, e1 at position 1
    second = [0.325 * (1 - e * (1 - 0.2978)) for e in first]
    np.testing.assert_allclose(user.click_probabilities([[0, 0], [1, 0]]), np.c_[first, second])


def test_papers_user_browsing_user() -> None:
    user = preset("ubm")
    first, second = 0.9680 * 0.65, 0.325 * (0.9680 * 0.65 * 0.5321 + (1 - 0.9680 * 0.65) * 0.3495)
    np.testing.assert_allclose(user.click_probabilities([[0, 0]]), [[first, second]])
    after_third = user.click_probabilities([[0] * 10], clicks=[[1, 0, 1] + [0] * 7])
    assert after_third[0, 9] == pytest.approx(0.0352 * 0.065)


@pytest.mark.parametrize(
    ("name", "positions"), [("pbm-eta1", 20), ("pbm-eta2", 20), ("dcm", 10), ("ubm", 10), ("sdbn", 10)]
)
def test_presets_have_the_papers_list_length_and_can_be_shorter(name: str, positions: int) -> None:
    assert preset(name).positions == positions
    shorter = preset(name, positions=3).click_probabilities([[0.5, 0.5, 0.5]])
    np.testing.assert_allclose(shorter, preset(name).click_probabilities([[0.5, 0.5, 0.5]]))


@pytest.mark.parametrize("name", ["dcm", "ubm"])
def test_a_preset_does_not_go_past_its_list_length(name: str) -> None:
    message = (
        f"The user {name} is known down to position 10, found lists of 11. Cut the lists to 10 results, or fit a user "
        "to longer ones."
    )
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        preset(name, positions=11)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: preset("cm"), "user 'cm': expected one of pbm, cascade, dbn, dcm, sdbn, ubm."),
        (
            lambda: preset("dcm-eta1"),
            "user 'dcm-eta1', 'eta1': expected an option of dcm with a number, such as eta1.",
        ),
        (lambda: preset("dbn-continuation1.5"), "continuation=1.5: expected a probability from 0 to 1."),
        (
            lambda: DynamicBayesian(continuation=1.0, satisfied_relevant=-0.1, trust=Trust.perfect(2)),
            "satisfied_relevant=-0.1: expected a probability from 0 to 1.",
        ),
        (lambda: preset("dcm", positions=0), "Lists of 0 positions: expected a whole number from 1."),
        (
            lambda: PositionBased.with_eta(1, positions=2.5),  # type: ignore[arg-type]
            "Lists of 2.5 positions: expected a whole number from 1.",
        ),
        (
            lambda: PositionBased.with_eta(-0.5, positions=3),
            "eta is -0.5, expected a number from 0: examination is k^-eta, at most 1.",
        ),
        (
            lambda: PositionBased.with_eta(NAN, positions=3),
            "eta is nan, expected a number from 0: examination is k^-eta, at most 1.",
        ),
        (
            lambda: PositionBased(examination=np.array([1, 1.5]), trust=Trust.perfect(2)),
            "The examination at position 2 is 1.5, expected a probability from 0 to 1.",
        ),
        (
            lambda: PositionBased(examination=np.ones(3), trust=Trust.perfect(2)),
            "Examination is given for 3 positions, trust for 2. Give both for the same positions.",
        ),
        (
            lambda: Trust([0.9, -0.1], [0, 0]),
            "The trust in relevant results at position 2 is -0.1, expected a probability from 0 to 1.",
        ),
        (
            lambda: Trust([0.9, 0.8], [0, NAN]),
            "The trust in irrelevant results at position 2 is nan, expected a probability from 0 to 1.",
        ),
        (
            lambda: Trust([0.9, 0.8], [0]),
            "Trust is given for 2 positions when relevant, but for 1 when not. Give both for the same positions.",
        ),
        (
            lambda: Trust([[0.9]], [0]),
            "The trust in relevant results must be one number per position, found an array of shape (1, 1).",
        ),
        (
            lambda: DependentClick(going_on=np.array([2.0]), trust=Trust.perfect(2)),
            "The probability to go on after a click at position 1 is 2, expected a probability from 0 to 1.",
        ),
        (
            lambda: DependentClick(going_on=np.array([0.5, 0.5]), trust=Trust.perfect(2)),
            "Going on after a click is given for 2 positions, trust for 2. Expected one entry for each position but "
            "the last.",
        ),
        (
            lambda: user_of("ubm", np.array([1, 0.5, -1]), Trust.perfect(2)),
            "The examination at position 2 after a last click at 1 is -1, expected a probability from 0 to 1.",
        ),
        (
            lambda: user_of("ubm", np.array([1.25, 0.5, 1]), Trust.perfect(2)),
            "The examination at position 1 after no click is 1.25, expected a probability from 0 to 1.",
        ),
        (
            lambda: UserBrowsing(examination=np.ones((2, 3)), trust=Trust.perfect(2)),
            "Examination has shape (2, 3), trust is given for 2 positions. Expected a row for each position and a "
            "column for each last click above it, 0 for none.",
        ),
    ],
)
def test_a_user_that_cannot_be_is_refused(make: object, message: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("relevance", "message"),
    [
        ([0.5], "relevance has shape (1,), expected (lists, positions), at least one of each."),
        ([[]], "relevance has shape (1, 0), expected (lists, positions), at least one of each."),
        ([[0.5, 0.5], [0.5, 3]], "Row 1 of relevance, position 2, is 3, expected a number from 0 to 1."),
        (
            [[0.5, NAN, 1.0]],
            "Row 0 of relevance, position 2, is NaN. NaN is allowed only past the end of a list, and a list has at "
            "least one result.",
        ),
        (
            [[1.0, 1.0], [NAN, NAN]],
            "Row 1 of relevance, position 1, is NaN. NaN is allowed only past the end of a list, and a list has at "
            "least one result.",
        ),
        (
            [[0.5] * 11],
            "The lists go down to position 11, but this user is described for 10 positions. Cut the lists, or "
            "describe a user for more positions.",
        ),
    ],
)
def test_relevance_that_cannot_be_is_refused(relevance: list[list[float]], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        preset("dcm").click_probabilities(relevance)


def test_clicks_must_have_the_shape_of_relevance() -> None:
    message = "clicks has shape (1, 2), relevance (1, 3): expected one session for each list."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        preset("ubm").click_probabilities([[0, 0, 1]], clicks=[[0, 1]])


@pytest.mark.parametrize("click", [2, -1, NAN])
def test_a_click_is_there_or_not(click: Any) -> None:
    with pytest.raises(InputError, match=rf"^Row 1 of clicks, position 1, is {click}, expected 0 or 1\.$"):
        preset("ubm").click_probabilities([[0, 0], [0, 0]], clicks=[[0, 1], [click, 0]])
