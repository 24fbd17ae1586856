"""How sure labels are: impressions needed, predicted errors, intervals, checks of the assumptions, the verdict."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clickmix as cm
from clickmix.groups.places import Place
from clickmix.judging.checks import check_rising, checked
from clickmix.lab.users import PositionBased
from clickmix.mixtures.mixture import PlaceCounts
from clickmix.report.results import fit_sentences
from oracles_sure import expected_squared_error
from remark1 import toy
from simulation import PRIORS, rmse, spread
from violations import CLEAN, Log, cascade, mixed, overdispersed, position_based, rising, robots, scattered

BOUND = 5.0


def mixture(weights: tuple[float, ...], rates: tuple[float, ...], **fields: Any) -> cm.Mixture:
    return cm.Mixture("binomial", cm.Verdict.OVERLAPPING, weights, rates, **fields)


TWO, FOUR = mixture((0.9, 0.1), (0.05, 0.3)), mixture((0.5, 0.3, 0.1, 0.1), (0.1, 0.2, 0.3, 0.4))
FAR = mixture((0.5, 0.3, 0.2), (0.1, 0.12, 0.8))


def papers_mixture(eta: float, position: int) -> cm.Mixture:
    """The paper's users at a position."""
    user, k = PositionBased.with_eta(eta, positions=20), position - 1
    share = float(PRIORS[k])
    return mixture((1 - share, share), (float(user.beta[k]), float(user.beta[k] + user.alpha[k])))


class TestImpressionsNeeded:
    @pytest.mark.parametrize("fitted", [TWO, FOUR, FAR], ids=["two grades", "four grades", "one far from the others"])
    @pytest.mark.parametrize("impressions", [0, 1, 7, 60, 500])
    def test_the_expected_error_is_the_sum_over_all_clicks(self, fitted: cm.Mixture, impressions: int) -> None:
        slow = expected_squared_error(fitted.weights, fitted.rates, impressions)
        assert cm.expected_error(fitted, impressions) ** 2 == pytest.approx(slow, rel=1e-10)

    @settings(max_examples=60, deadline=None)
    @given(
        low=st.floats(1e-5, 0.9), step=st.floats(1e-4, 1.0), weight=st.floats(0.001, 0.999), n=st.integers(0, 20_000)
    )
    def test_more_impressions_are_never_worse(self, low: float, step: float, weight: float, n: int) -> None:
        fitted = mixture((1 - weight, weight), (low, low + step * (0.999 - low)))
        assert cm.expected_error(fitted, n + 1) <= cm.expected_error(fitted, n) + 1e-7

    @pytest.mark.parametrize("fitted", [TWO, FOUR], ids=["two grades", "four grades"])
    @pytest.mark.parametrize("target", [0.25, 0.1, 0.03])
    def test_the_fewest_that_reach_the_target(self, fitted: cm.Mixture, target: float) -> None:
        needed = cm.impressions_for(fitted, target=target)
        assert needed is not None
        assert cm.expected_error(fitted, needed) <= target < cm.expected_error(fitted, needed - 1)

    def test_no_impressions_where_the_prior_is_sure_enough(self) -> None:
        assert cm.impressions_for(mixture((0.999, 0.001), (0.1, 0.5))) == 0

    @pytest.mark.parametrize(
        "fitted",
        [
            pytest.param(cm.Mixture("binomial", cm.Verdict.ONE_RATE, (1.0,), (0.2,)), id="one rate"),
            pytest.param(mixture((0.5, 0.5), (0.5, 0.5005)), id="more than a million"),
            pytest.param(
                cm.Mixture("gaussian", cm.Verdict.SEPARATED, (0.5, 0.5), (0.1, 0.5), (0.01, 0.01)), id="gaussian"
            ),
        ],
    )
    def test_none_where_no_number_can_be_given(self, fitted: cm.Mixture) -> None:
        assert cm.impressions_for(fitted) is None

    @pytest.mark.parametrize("impressions", [-1, 1.5, math.nan, "7"])
    def test_impressions_are_counted(self, impressions: Any) -> None:
        with pytest.raises(cm.SettingError, match=rf"^impressions={impressions!r}: expected a whole number from 0\.$"):
            cm.expected_error(TWO, impressions)

    @pytest.mark.parametrize("target", [0, -1, math.nan])
    def test_a_target_is_above_0(self, target: float) -> None:
        message = rf"^target={target!r}: expected the largest acceptable error of labels, a number above 0\.$"
        with pytest.raises(cm.SettingError, match=message):
            cm.impressions_for(TWO, target=target)
        with pytest.raises(cm.SettingError, match=message):
            cm.judge(fit_of(place_of(1, (0.05, 0.3), None), error=0.05), target=target)

    @pytest.mark.parametrize(
        ("eta", "position", "needed"), [(1, 1, 18), (1, 20, 92), (2, 2, 71), (2, 20, 1856)], ids=str
    )
    def test_the_papers_fifteen_is_enough_at_the_top_only(self, eta: float, position: int, needed: int) -> None:
        assert cm.impressions_for(papers_mixture(eta, position)) == needed

    @pytest.mark.parametrize("fitted", [TWO, FOUR], ids=["two grades", "four grades"])
    def test_simulated_labels_are_as_far_off_as_expected(self, fitted: cm.Mixture) -> None:
        rng, n, documents = np.random.default_rng(1), 40, 100_000
        grade = rng.choice(len(fitted.rates), p=fitted.weights, size=documents)
        clicks = rng.binomial(n, np.array(fitted.rates)[grade])
        squares = (fitted.relevance(np.full(documents, n), clicks) - grade / (len(fitted.rates) - 1)) ** 2
        z = (squares.mean() - cm.expected_error(fitted, n) ** 2) / (squares.std() / np.sqrt(documents))
        assert abs(z) < BOUND


WELL_DETERMINED = {
    "eta 1": {"seed": 3},
    "eta 2, 400 sessions": {"seed": 4, "eta": 2.0, "sessions": 400},
    "graded, 400 sessions": {"seed": 5, "graded": True, "sessions": 400},
}
FEW_CLICKS = {
    "graded, 20 sessions": {"seed": 6, "graded": True, "sessions": 20},
    "300 queries": {"seed": 7, "queries": 300},
}


def labelled(log: Log, mixture_name: str = "auto") -> tuple[cm.MixtureFit, cm.Labels]:
    fitted = checked(cm.MixtureCorrection(mixture_name).fit(log.counts), log.counts)
    return fitted, fitted.label(log.counts)


@functools.cache
def known(kind: str) -> tuple[Log, cm.MixtureFit, cm.Labels]:
    """A log of one of these kinds, its fit and its labels."""
    log = position_based(**(WELL_DETERMINED | FEW_CLICKS)[kind])  # type: ignore[arg-type]
    return log, *labelled(log)


def fitted_once(kinds: Iterable[str]) -> list[object]:
    """Tests of the same kind run in the same process, which fits its log once."""
    return [pytest.param(kind, marks=pytest.mark.xdist_group(f"sure, {kind}")) for kind in kinds]


@pytest.mark.parametrize("kind", fitted_once(WELL_DETERMINED))
def test_the_predicted_error_is_the_measured_one(kind: str) -> None:
    log, fitted, labels = known(kind)
    squares = (labels.relevance - log.truth(labels)) ** 2
    z = (squares.mean() - fitted.error**2) / (squares.std() / np.sqrt(len(squares)))
    assert abs(z) < BOUND


def test_documents_that_move_have_a_predicted_error_too_and_raise_no_alarm() -> None:
    counts, relevant, _ = spread(2, documents=8_000)
    fitted = checked(cm.MixtureCorrection().fit(counts), counts)
    labels = fitted.label(counts)
    squares = (labels.relevance - relevant[labels.doc_id]) ** 2
    assert abs((squares.mean() - fitted.error**2) / (squares.std() / np.sqrt(len(squares)))) < BOUND
    assert [check.violation for check in fitted.checks if check.found] == []


@pytest.mark.parametrize("kind", fitted_once([*WELL_DETERMINED, *FEW_CLICKS]))
def test_intervals_hold_the_true_grade_of_95_in_100_documents(kind: str) -> None:
    log, _, labels = known(kind)
    truth, documents = log.truth(labels), len(labels)
    held = (labels.columns["low"] <= truth + 1e-9) & (truth <= labels.columns["high"] + 1e-9)
    assert held.sum() >= 0.95 * documents - BOUND * np.sqrt(0.95 * 0.05 * documents)


def place_of(
    position: int, rates: tuple[float, float], errors: tuple[float, float] | None, *, share: float = 0.1
) -> cm.Group:
    fitted = mixture((1 - share, share), rates, standard_errors=errors, error=0.1)
    return cm.Group((PlaceCounts(Place(position), 1_000, 20_000, 1_000),), fitted, fitted.weights)


@functools.cache
def five_grades_read_as_two() -> tuple[Log, cm.MixtureFit, cm.Labels]:
    log = position_based(1_000, graded=True)
    return log, *labelled(log, "binomial")


@functools.cache
def appealing(positions: int) -> cm.MixtureFit:
    """The fit of a log whose documents differ in appeal at the first positions."""
    return labelled(scattered(1_000, positions=tuple(range(1, positions + 1)), correlation=0.3))[0]


# Planted, and what it is found as; where it does nothing to labels, because the model knows it, nothing is found.
PLANTED: dict[str, tuple[Callable[[], cm.MixtureFit], set[cm.Violation]]] = {
    "dcm": (lambda: labelled(cascade(1_000, "dcm"))[0], {cm.Violation.CASCADE}),
    "robots in a few queries": (lambda: labelled(robots(1_000))[0], {cm.Violation.OUTLIERS}),
    "appeal at two positions": (lambda: labelled(scattered(1_000))[0], {cm.Violation.SCATTERED}),
    "appeal at half of the positions": (lambda: appealing(5), {cm.Violation.SCATTERED}),
    "appeal at all positions": (lambda: appealing(10), set()),
    "five grades read as two": (lambda: five_grades_read_as_two()[1], {cm.Violation.GRADES}),
    "an eye-catcher": (lambda: labelled(rising(1_000))[0], set()),
    "queries that get more or less attention": (lambda: labelled(overdispersed(1_000))[0], set()),
    "half of the queries examined less": (lambda: labelled(mixed(1_000, less=2.0))[0], set()),
}


class TestChecks:
    @pytest.mark.parametrize("kind", CLEAN)
    def test_clean_logs_are_quiet(self, kind: str) -> None:
        fitted = labelled(CLEAN[kind](1_000))[0]
        assert [check for check in fitted.checks if check.found] == []
        assert {check.violation for check in fitted.checks} == {
            cm.Violation.CASCADE,
            cm.Violation.OUTLIERS,
            cm.Violation.SCATTERED,
            cm.Violation.RISING,
        }

    @pytest.mark.parametrize("kind", fitted_once(PLANTED))
    def test_planted_violations_are_found_under_their_name(self, kind: str) -> None:
        fit, expected = PLANTED[kind]
        verdict = cm.judge(fit())
        assert {check.violation for check in verdict.found} == expected
        assert all(check.moved is not None and check.moved >= 0.02 for check in verdict.found)

    def test_a_log_whose_impressions_were_all_written_three_times_is_found(self) -> None:
        cells = position_based(1_000).counts.cells()
        query, doc, position = (cells[key] for key in ("query_id", "doc_id", "position"))
        counts = cm.Counts.from_arrays(query, doc, position, 3 * cells["impressions"], 3 * cells["clicks"])
        fitted = checked(cm.MixtureCorrection("binomial").fit(counts), counts)
        (check,) = [check for check in fitted.checks if check.violation is cm.Violation.REPEATED]
        assert (check.found, check.statistic) == (True, 3.0)
        assert check.advice == "Remove the duplicates from the log"

    @pytest.mark.xdist_group("sure, five grades read as two")
    def test_the_size_of_a_violation_is_how_far_labels_move(self) -> None:
        """Labels of two grades, where there are five, differ from those of five as much as the check says."""
        log, fitted, few = five_grades_read_as_two()
        (check,) = [check for check in fitted.checks if check.violation is cm.Violation.GRADES]
        assert check.evidence == "Held-out clicks prefer 5 grades; 2 were fitted"
        moved = few.relevance - labelled(log)[1].relevance
        assert check.moved == pytest.approx(np.sqrt(np.mean(moved**2)), rel=0.15)
        assert check.far == pytest.approx(np.mean(np.abs(moved) > 0.1), abs=0.05)

    def test_both_rates_must_rise_beyond_their_errors(self) -> None:
        groups = (place_of(1, (0.10, 0.40), (0.05, 0.05)), place_of(2, (0.14, 0.50), (0.05, 0.05)))
        check = check_rising(groups, ())
        assert check is not None
        assert check.statistic == pytest.approx(min(np.log(14 / 86 * 9), np.log(1.5)) / np.hypot(0.05, 0.05))
        assert check.seen
        assert not check.found  # every place has rates of its own: labels do not change
        assert check.evidence == (
            "From position 1 to position 2, the lowest click rate goes from 10% to 14% and the highest from 40% to "
            "50%; the smaller rise is 5.4 standard errors"
        )

    @pytest.mark.parametrize(
        "below", [place_of(2, (0.14, 0.38), (0.05, 0.05)), place_of(2, (0.14, 0.50), (0.5, 0.5))], ids=["one", "unsure"]
    )
    def test_one_rate_or_an_unsure_one_is_not_enough(self, below: cm.Group) -> None:
        check = check_rising((place_of(1, (0.10, 0.40), (0.05, 0.05)), below), ())
        assert check is not None
        assert not check.seen

    def test_rates_without_standard_errors_are_not_compared(self) -> None:
        assert check_rising((place_of(1, (0.1, 0.4), None), place_of(2, (0.2, 0.5), None)), ()) is None

    @pytest.mark.parametrize("mixture_name", ["gaussian", "nonparametric"])
    def test_nothing_is_looked_for_in_other_mixtures(self, mixture_name: str) -> None:
        fitted = labelled(position_based(1, queries=200), mixture_name)[0]
        assert fitted.checks == ()
        assert cm.judge(fitted).sentences[-1] == (f"The assumptions are not checked for a {mixture_name} mixture.")

    def test_nothing_is_looked_for_if_nobody_asks(self) -> None:
        counts = position_based(1, queries=200).counts
        fitted = cm.MixtureCorrection().fit(counts)
        assert cm.judge(fitted).sentences[-1] == ("The assumptions were not checked when this model was fitted.")
        assert cm.judge(fitted, counts) == cm.judge(checked(fitted, counts)) != cm.judge(fitted)


def fit_of(group: cm.Group, *, error: float, checks: tuple[cm.Check, ...] = ()) -> cm.MixtureFit:
    return cm.MixtureFit("auto", "position", (), (group,), jointly=False, moving=0.0, joint_error=error, checks=checks)


QUIET = cm.Check(cm.Violation.RISING, 1.0, 3.0, "quiet", 0.0, 0.0)
SLIGHT = cm.Check(cm.Violation.CASCADE, 90.0, 60.0, "Seen", 0.019, 0.001)
LOUD = cm.Check(cm.Violation.GRADES, 20.0, 6.0, "Held-out clicks prefer 3 grades", 0.034, 0.12)
LOUDEST = dataclasses.replace(LOUD, moved=0.11)


class TestVerdict:
    def test_trustworthy(self) -> None:
        verdict = cm.judge(fit_of(place_of(1, (0.05, 0.3), None), error=0.05, checks=(QUIET,)))
        assert (str(verdict), verdict.times, verdict.found) == ("trustworthy", None, ())
        assert verdict.sentences == (
            "Expected label error (RMSE): 0.050, within the target of 0.1.",
            "Checks passed: rates fall down the page.",
        )

    def test_needs_more_data(self) -> None:
        group = place_of(1, (0.05, 0.3), None)
        fitted = fit_of(group, error=cm.expected_error(group.mixture, 20), checks=(QUIET,))
        needed = cm.impressions_for(group.mixture)
        times = cm.judge(fitted).times
        assert times is not None
        assert needed is not None
        assert 20 * times == pytest.approx(needed, abs=1.1)
        assert str(cm.judge(fitted)) == "needs 1.4 times more data"
        assert cm.judge(fitted).sentences[0] == (
            "Expected label error (RMSE): 0.135, above the target of 0.1. It takes 1.4 times as many impressions of "
            "each document to bring it down to 0.1."
        )

    def test_a_violation_that_moves_labels_is_a_caveat_and_says_what_to_do(self) -> None:
        verdict = cm.judge(fit_of(place_of(1, (0.05, 0.3), None), error=0.05, checks=(QUIET, LOUD)))
        assert (str(verdict), verdict.found) == ("usable", (LOUD,))
        assert verdict.sentences == (
            "Expected label error (RMSE): 0.050 if the assumptions hold, within the target of 0.1.",
            "Caveat: other grades or effects explain the clicks better. Held-out clicks prefer 3 grades. A model that "
            "allows for this would change labels by 0.034 (RMSE), 12% by more than 0.1. Fit again with --mixture auto.",
            "Checks passed: rates fall down the page.",
        )

    def test_a_violation_that_hardly_moves_labels_is_a_note(self) -> None:
        verdict = cm.judge(fit_of(place_of(1, (0.05, 0.3), None), error=0.05, checks=(SLIGHT,)))
        assert (str(verdict), verdict.found) == ("trustworthy", ())
        assert verdict.sentences[-1] == (
            "Note: clicks depend on the documents above. Seen. A model that allows for this would change labels by "
            "only 0.019 (RMSE), hardly any by more than 0.1. Fit again with --examination dcm or --examination ubm: "
            "clickmix compare shows which of the two click models predicts clicks better."
        )

    def test_a_violation_that_moves_labels_by_more_than_the_target_makes_them_useless(self) -> None:
        verdict = cm.judge(fit_of(place_of(1, (0.05, 0.3), None), error=0.05, checks=(LOUDEST,)))
        assert str(verdict) == "do not use"
        assert verdict.sentences[0].startswith(
            "Caveat: other grades or effects explain the clicks better."
        )  # what decided comes first

    def test_clicks_that_say_nothing(self) -> None:
        group = dataclasses.replace(
            place_of(1, (0.05, 0.3), None), mixture=cm.Mixture("binomial", cm.Verdict.ONE_RATE, (1.0,), (0.2,))
        )
        verdict = cm.judge(fit_of(group, error=0.3, checks=(QUIET,)))
        assert (str(verdict), verdict.times) == ("do not use", math.inf)
        assert verdict.sentences[0] == (
            "Clicks say nothing about relevance at any position, so every label is just its prior."
        )

    def test_rare_relevance_is_not_known_because_it_is_rare(self) -> None:
        group = place_of(1, (0.1, 0.3), None, share=0.005)
        error = cm.expected_error(group.mixture, 20)
        verdict = cm.judge(fit_of(group, error=error, checks=(QUIET,)))
        assert error < 0.1
        assert str(verdict) == "needs 1.8 times more data"
        assert verdict.sentences[0] == (
            "Expected label error (RMSE): 0.061, within the target of 0.1. But few documents are relevant, and "
            "clicks remove only 24% of the uncertainty; 1.8 times as many impressions would remove half."
        )

    def test_how_much_more_a_gaussian_needs_is_not_known(self) -> None:
        group = place_of(1, (0.05, 0.3), None)
        gaussian = dataclasses.replace(group.mixture, family="gaussian", variances=(0.01, 0.01))
        verdict = cm.judge(fit_of(dataclasses.replace(group, mixture=gaussian), error=0.2))
        assert (str(verdict), verdict.times) == ("needs more data", None)
        assert verdict.sentences[0] == (
            "Expected label error (RMSE): 0.200, above the target of 0.1. How much more data would help is unknown."
        )

    def test_no_number_of_impressions_tells_rates_that_are_nearly_the_same(self) -> None:
        verdict = cm.judge(fit_of(place_of(1, (0.1, 0.1001), None), error=0.29, checks=(QUIET,)))
        assert (str(verdict), verdict.times) == ("do not use", math.inf)
        assert verdict.sentences[0].endswith(
            "Clicks remove 7% of the uncertainty about relevance, and no realistic number of impressions would bring "
            "the error down to 0.1."
        )

    def test_the_error_that_more_data_would_bring_is_the_one_asked_for(self) -> None:
        """Half of the uncertainty, where that is less than the target."""
        group = place_of(1, (0.05, 0.3), None, share=0.012)
        fitted = fit_of(group, error=0.105, checks=(QUIET,))
        assert fitted.groups[0].prior_variance / 2 < 0.1**2
        assert cm.judge(fitted).sentences[0].endswith("to bring it down to 0.077.")

    @pytest.mark.parametrize("move", [False, True])
    def test_a_log_without_clicks_is_not_trustworthy(self, move: bool) -> None:
        ids = np.arange(400)
        documents = ids // 2 if move else ids
        counts = cm.Counts.from_arrays(ids // 10, documents, 1 + ids % 10, np.full(400, 50), np.zeros(400, dtype=int))
        fitted = cm.MixtureCorrection().fit(counts)
        assert str(cm.judge(fitted)) == "do not use"
        assert fitted.error < 1e-6
        assert not [line for line in fit_sentences(fitted) if "were chosen" in line]

    @pytest.mark.parametrize(
        ("queries", "judged"), [(2, "needs 15 times more data"), (29, "needs 1.1 times more data")]
    )
    def test_positions_that_were_joined_are_not_relevance(self, queries: int, judged: str) -> None:
        ids = np.arange(10 * queries)
        clicks = np.random.default_rng(0).binomial(300, 0.5 / (1 + ids % 10))
        counts = cm.Counts.from_arrays(ids // 10, ids, 1 + ids % 10, np.full(len(ids), 300), clicks)
        verdict = cm.judge(cm.MixtureCorrection().fit(counts))
        assert str(verdict) == judged
        assert verdict.sentences[0].startswith("100% of documents are at positions with fewer than 30 documents.")

    @pytest.mark.parametrize(("documents", "judged"), [(271, "trustworthy"), (260, "needs 1.1 times more data")])
    def test_a_tenth_of_documents_may_stand_at_small_places(self, documents: int, judged: str) -> None:
        group = place_of(1, (0.05, 0.3), None)
        here = dataclasses.replace(group.places[0], documents=documents)
        group = dataclasses.replace(group, places=(here, dataclasses.replace(here, place=Place(2), documents=29)))
        assert str(cm.judge(fit_of(group, error=0.05, checks=(QUIET,)))) == judged

    def test_so_many_times_more_data_is_enough(self) -> None:
        fitted = labelled(position_based(9, sessions=20))[0]
        times = cm.judge(fitted).times
        assert times is not None
        log = position_based(10, sessions=round(20 * times))
        labels = labelled(log)[1]
        squares = (labels.relevance - log.truth(labels)) ** 2
        # What is known of the rates after 20 sessions: 10 % of the error, beside the chance of which documents err.
        assert abs(np.sqrt(squares.mean()) - 0.1) < 0.1 * 0.1 + BOUND * squares.std() / np.sqrt(len(squares)) / 0.2

    def test_it_is_kept_in_the_model_file(self, tmp_path: Path) -> None:
        fitted = labelled(position_based(11, queries=300))[0]
        fitted.write(tmp_path / "model.json")
        assert cm.judge(cm.MixtureFit.read(tmp_path / "model.json")) == cm.judge(fitted)


class TestRemark1:
    """The paper's toy example: a position examined with two probabilities."""

    def test_rates_that_stay_separable_still_give_the_labels(self) -> None:
        counts, relevant, _ = toy(0.4)
        labels = cm.MixtureCorrection("binomial").fit(counts).label(counts)
        assert rmse(labels.relevance, relevant[labels.query_id]) < 0.06

    def test_rates_that_overlap_give_wrong_labels(self) -> None:
        counts, relevant, _ = toy(0.1)
        labels = cm.MixtureCorrection("binomial").fit(counts).label(counts)
        assert rmse(labels.relevance, relevant[labels.query_id]) > 0.3


FITTED = fit_of(place_of(1, (0.05, 0.3), None), error=0.05)


@pytest.mark.parametrize(("given", "message"), [
    (("model.json",), "the fit of a mixture, not 'model.json'. Use clickmix.MixtureFit.read('model.json')."),
    ((cm.NoCorrection(),), "the fit of a mixture, not a NoCorrection. Use clickmix.MixtureCorrection().fit(counts)."),
    ((FITTED, "day1.csv"), "counts, not 'day1.csv'. Use clickmix.count('day1.csv')."),
    ((FITTED, Path("day1.csv")), "counts, not 'day1.csv'. Use clickmix.count('day1.csv')."),
])  # fmt: skip
def test_what_cannot_be_judged_is_named(given: Any, message: str) -> None:
    with pytest.raises(cm.InputError) as caught:
        cm.judge(*given)
    assert str(caught.value) == f"judge takes {message}"
