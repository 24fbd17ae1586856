"""What every user model promises, whoever wrote it; and that one file is enough to add another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import oracles_clicks as oracle
from clickmix.lab.families import USERS
from clickmix.lab.users import PositionBased, Trust, User, preset, read_sessions
from commands import failure, run

POSITIONS = 4
LISTS = np.array([[0, 1, 2, 3], [3, 0, 4, 1], [5, 4, 0, 2], [2, 5, 1, 4], [1, 3, 5, 0]])  # documents change places
RELEVANCE = np.array([0.1, 0.25, 0.5, 0.75, 0.9, 0.3])


def check_probabilities_agree(user: User) -> None:
    """The product of conditional probabilities over a list, summed over patterns of clicks, gives the marginal ones."""
    every = np.array(oracle.patterns(POSITIONS))
    p = user.click_probabilities(np.tile(RELEVANCE[LISTS[0]], (len(every), 1)), clicks=every)
    chance = np.where(every, p, 1 - p).prod(axis=1)
    assert chance.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(chance @ every, user.click_probabilities(RELEVANCE[LISTS[:1]])[0], atol=1e-12)


def check_simulation_agrees(user: User) -> None:
    """Clicks by list and position are within five standard deviations of what the probabilities say."""
    counts = user.simulate_counts(RELEVANCE[LISTS], sessions=50_000, rng=np.random.default_rng(0))
    p, n = user.click_probabilities(RELEVANCE[LISTS]), counts.impressions[:, None]
    assert (np.abs(counts.clicks - n * p) / np.sqrt(n * p * (1 - p))).max() < 5


def check_fit_beats_the_truth(user: User) -> None:
    """The likelihood never falls, and ends no lower than that of the user who clicked, trust being perfect."""
    user = replace(user, trust=Trust.perfect(POSITIONS))
    sessions = user.simulate(RELEVANCE[LISTS], sessions=20_000, rng=np.random.default_rng(1))
    p = user.click_probabilities(RELEVANCE[LISTS][sessions.seen], clicks=sessions.clicks)
    truth = float(np.log(np.where(sessions.clicks, p, 1 - p)).sum())
    fit = type(user).fit(replace(sessions, lists=LISTS))
    trace = np.array(fit.log_likelihoods)
    assert (np.diff(trace) >= -1e-12 * abs(trace[-1])).all()
    assert np.isfinite(fit.score(replace(sessions, lists=LISTS)).log_likelihood)
    assert trace[-1] >= truth


@pytest.mark.parametrize("name", USERS.names())
def test_click_probabilities_are_those_of_one_distribution(name: str) -> None:
    check_probabilities_agree(USERS.make(name, top=POSITIONS))


@pytest.mark.parametrize("name", USERS.names())
def test_simulated_clicks_have_the_probabilities(name: str) -> None:
    check_simulation_agrees(USERS.make(name, top=POSITIONS))


@pytest.mark.parametrize("name", USERS.names())
def test_a_fit_explains_the_clicks_as_well_as_the_truth(name: str) -> None:
    check_fit_beats_the_truth(USERS.make(name, top=POSITIONS))


@pytest.mark.parametrize("name", USERS.names())
def test_a_user_is_on_the_docs_page(name: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "users.md"
    assert f"| `{name}`" in page.read_text(encoding="utf-8")


@pytest.fixture
def toy() -> Iterator[str]:
    """A user model from outside the package: somebody who looks at everything."""

    @USERS.register("toy", help="looks at everything", options=USERS["dcm"].options)
    def toy(*, top: int = 5) -> User:
        return PositionBased.with_eta(0, positions=top)

    yield "toy"
    USERS.remove("toy")


def test_one_file_adds_a_user_everywhere(toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickmix.lab.collections.production.TREES", 10)  # who ranks does not matter here
    assert toy in USERS.names()
    assert "|toy|" in run("simulate", "--help").output
    check_probabilities_agree(USERS.make(toy, top=POSITIONS))
    assert preset("toy").positions == 5
    words = ("simulate", "-o", str(tmp_path), "--user", toy, "--clicks", "200", "--queries", "20")
    assert run(*words).exit_code == 0
    assert read_sessions(tmp_path / "log.parquet").sessions.positions == 5


def test_a_user_that_was_removed_cannot_be_chosen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "clickmix: --user 'toy': expected one of pbm, cascade, dbn, dcm, sdbn, ubm.\n"
    assert failure(capsys, monkeypatch, "simulate", "-o", "out", "--user", "toy") == message
