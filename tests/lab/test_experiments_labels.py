"""The inputs of experiments: users, lists and labels with known truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from clickmix.errors import SettingError
from clickmix.features import Split
from clickmix.lab.collections import synthetic_collection
from clickmix.lab.experiments.labels import TITLES, bayes_labels, label, label_error
from clickmix.lab.experiments.request import Request, describe
from clickmix.lab.experiments.simulator import Log, Shown, Simulator
from clickmix.lab.experiments.task import Scenario
from clickmix.lab.users import ListCounts, PositionBased, preset

QUERIES, POSITIONS = 400, 6


def log_of(relevance: str, *, seed: int = 3, clicks: int = 60_000) -> Log:
    """People on lists whose relevance is drawn; the split has one row per place, and some lists are shorter."""
    rng = np.random.default_rng(seed)
    levels = [0.0, 1.0] if relevance == "binarized" else [0.0, 0.25, 0.5, 0.75, 1.0]
    scenario = Scenario(relevance="graded" if relevance == "graded" else "binarized")
    user = PositionBased.with_eta(1.0, positions=POSITIONS)
    parts = []
    for _ in range(2):
        truth = rng.choice(levels, (QUERIES, POSITIONS))
        truth[: QUERIES // 10, POSITIONS - 2 :] = np.nan
        rows = np.where(np.isnan(truth), -1, np.arange(QUERIES * POSITIONS).reshape(QUERIES, POSITIONS)[:, ::-1])
        documents = QUERIES * POSITIONS
        split = Split(
            np.arange(QUERIES),
            np.arange(0, documents + 1, POSITIONS),
            np.arange(documents),
            np.zeros(documents, np.int8),
            np.zeros((documents, 1), np.float32),
        )
        parts.append(Shown(split, rows, truth, user.simulate_counts(truth, clicks=clicks, rng=rng)))
    return Log(scenario, user, *parts)


def posterior_mean(log: Log, shown: Shown, q: int, k: int) -> float:
    """Bayes' rule for one document."""
    assert isinstance(log.user, PositionBased)
    truth = log.train.relevance
    levels = np.unique(truth[~np.isnan(truth)])
    prior = np.array([(truth[:, k] == level).sum() + 0.5 for level in levels])
    rates = log.user.alpha[k] * levels + log.user.beta[k]
    posterior = prior * binom.pmf(shown.seen.clicks[q, k], shown.seen.impressions[q], rates)
    return float(posterior @ levels / posterior.sum())


@pytest.mark.parametrize("relevance", ["binarized", "graded"])
def test_the_bayes_posterior_is_bayes_rule_document_by_document(relevance: str) -> None:
    log = log_of(relevance)
    found = label("limit", log).vali[::37, : POSITIONS - 2]
    expected = [[posterior_mean(log, log.vali, q, k) for k in range(POSITIONS - 2)] for q in range(0, QUERIES, 37)]
    assert found == pytest.approx(np.array(expected), abs=1e-10)


def test_the_bayes_posterior_is_never_above_1() -> None:
    """Where clicks leave no doubt its sum may round to a hair above 1, which no ranker takes."""
    user, rng = PositionBased.with_eta(2, positions=20), np.random.default_rng(0)
    truth = rng.integers(0, 5, (4000, 20)) / 4
    n = rng.integers(200, 2000, (4000, 1))
    labels = bayes_labels(user, truth, rng.binomial(n, user.alpha * truth + user.beta), n)
    assert labels.max() == 1.0
    assert labels.min() >= 0.0


def test_ideal_ac_is_unbiased_before_clipping() -> None:
    log = log_of("graded")
    assert isinstance(log.user, PositionBased)
    found = label("ideal-ac", log, clipped=False).train
    truth, n = log.train.relevance, log.train.seen.impressions[:, None]
    known = ~np.isnan(found)
    p = log.user.click_probabilities(truth)
    variance = p * (1 - p) / n / log.user.alpha**2
    z = (found - truth)[known].sum() / np.sqrt(variance[known].sum())
    assert abs(z) < 5


@pytest.mark.parametrize("name", [name for name in TITLES if name != "ac"])
def test_labels_are_where_something_was_shown_and_nowhere_else(name: str) -> None:
    log = log_of("binarized")
    labelled = label(name, log)
    for found, shown in ((labelled.train, log.train), (labelled.vali, log.vali)):
        assert (np.isnan(found) == (shown.rows < 0)).all()
        assert ((found >= 0) & (found <= 1))[shown.rows >= 0].all()


def test_labels_stand_beside_their_documents() -> None:
    log = log_of("binarized")
    assert label_error(label("limit", log), log) < 0.05
    assert label_error(label("mbc", log), log) < 0.05
    assert label("none", log).train[5, 2] == log.train.seen.clicks[5, 2] / log.train.seen.impressions[5]


def test_validation_lists_are_labelled_by_the_fit_to_training_lists() -> None:
    log = log_of("binarized")
    few = Shown(log.vali.split, log.vali.rows, log.vali.relevance, first_lists(log.vali.seen, 3))
    assert label("mbc", Log(log.scenario, log.user, log.train, few)).vali[:3] == pytest.approx(
        label("mbc", log).vali[:3], nan_ok=True
    )


def first_lists(seen: ListCounts, lists: int) -> ListCounts:
    """Only so many lists were seen."""
    impressions, clicks = seen.impressions.copy(), seen.clicks.copy()
    impressions[lists:], clicks[lists:] = 0, 0
    return ListCounts(impressions=impressions, clicks=clicks)


def test_ac_is_affine_correction_with_the_estimate() -> None:
    log = log_of("binarized")
    assert isinstance(log.user, PositionBased)
    estimate = {"alpha": log.user.alpha.tolist(), "beta": log.user.beta.tolist()}
    assert np.array_equal(label("ac", log, estimate=estimate).train, label("ideal-ac", log).train, equal_nan=True)


def test_ac_without_an_estimate_is_refused() -> None:
    with pytest.raises(SettingError, match="labels 'ac': expected one of none, ac, "):
        label("ac", log_of("binarized"))


class TestStudy:
    def test_clicks_are_in_the_papers_proportion(self) -> None:
        collection = synthetic_collection(queries=60, rng=np.random.default_rng(0))
        assert Scenario().clicks_on(collection.train) == round(8_000_000 * 60 / 18_919) == 25_371

    def test_the_settings_tell_collections_apart(self) -> None:
        request = Request("table1", scale=0.01)
        first = synthetic_collection(queries=40, rng=np.random.default_rng(0))
        second = synthetic_collection(queries=40, rng=np.random.default_rng(1))
        assert describe(request, first) == describe(request, first)
        assert describe(request, first)["grades"] != describe(request, second)["grades"]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"runs": 0}, "runs=0: expected at least 1."),
            ({"scale": 0.0}, "scale=0: expected a number above 0, up to 100."),
            ({"scale": 2.0, "data": "x"}, "scale=2: expected a number above 0, up to 1, the whole collection."),
            ({"rankers": ("svm",)}, "rankers=('svm',): expected some of lambdamart, dnn."),
        ],
    )
    def test_settings_that_cannot_be(self, given: dict[str, object], message: str) -> None:
        with pytest.raises(SettingError) as raised:
            Request("table1", **given)  # type: ignore[arg-type]
        assert str(raised.value) == message


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Simulator:
    made = Simulator(Request("table1", scale=0.01), str(tmp_path_factory.mktemp("scratch")))
    made.make_lists(Scenario(), 0)
    return made


@pytest.mark.xdist_group("larger simulator")  # which is made once
class TestWorld:
    def test_a_run_is_the_same_again(self, simulator: Simulator) -> None:
        again = Simulator(Request("table1", scale=0.01), simulator.scratch)
        first, second = simulator.log(Scenario(), 0), again.log(Scenario(user="pbm-eta2"), 0)
        assert (first.train.rows == second.train.rows).all()
        assert first.train.seen.impressions.sum() != second.train.seen.impressions.sum()
        fresh = Simulator(Request("table1", scale=0.01, runs=3), simulator.scratch).log(Scenario(), 0)
        assert (fresh.train.seen.clicks == first.train.seen.clicks).all()

    @pytest.mark.parametrize(("user", "positions"), [("pbm-eta1", 20), ("dcm", 10), ("ubm", 10)])
    def test_people_click_as_often_as_the_setting_says(
        self, simulator: Simulator, user: str, positions: int, tmp_path: Path
    ) -> None:
        simulator = shorter(simulator, positions, tmp_path)
        scenario = Scenario(user=user)
        shown = simulator.log(scenario, 0).train
        goal = scenario.clicks_on(simulator.collection.train)
        assert goal <= shown.seen.clicks.sum() < goal + positions
        assert (shown.seen.clicks <= shown.seen.impressions[:, None]).all()


def shorter(simulator: Simulator, positions: int, folder: Path) -> Simulator:
    """The same lists, down to a position."""
    lists = simulator.lists(0)
    np.savez(folder / "lists-0.npz", train=lists["train"][:, :positions], vali=lists["vali"][:, :positions])
    return Simulator(simulator.request, str(folder))


@pytest.mark.parametrize("user", ["dcm", "ubm"])
def test_matching_groups_label_a_cascade_better(user: str) -> None:
    rng = np.random.default_rng(5)
    lists, positions = 1_500, 10
    scenario, person = Scenario(user=user), preset(user)
    truth = (rng.random((lists, positions)) < 0.2).astype(np.float64)
    documents = lists * positions
    split = Split(
        np.arange(lists),
        np.arange(0, documents + 1, positions),
        np.arange(documents),
        np.zeros(documents, np.int8),
        np.zeros((documents, 1), np.float32),
    )
    seen = person.simulate(truth, clicks=300_000, rng=rng).counts()
    shown = Shown(split, np.arange(documents).reshape(lists, positions), truth, seen)
    log = Log(scenario, person, shown, shown)
    assert label_error(label("matching", log), log) < 0.9 * label_error(label("auto", log), log)
