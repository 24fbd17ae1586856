"""LambdaMART: levels, gains, weights, LightGBM's own trees, early stopping, and what is refused."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest

import clickmix as cm
from clickmix.evaluate import evaluate
from clickmix.features import Examples, grade_examples
from clickmix.rankers import LambdaMART, load_ranker
from clickmix.rankers.weighting import WEIGHTINGS, Weighting, ideal_dcg, query_weights
from collections_rankers import examples, split

LIGHTGBM = {
    "objective": "lambdarank",
    "num_leaves": 7,
    "learning_rate": 0.1,
    "verbosity": -1,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
}


def trees(model: str) -> str:
    """LightGBM's text of a model without its parameters, among which is `label_gain`."""
    return model[: model.index("\nparameters:")]


def graded(*, largest_grade: int) -> Examples:
    documents = split(sizes=[12] * 40, width=5)
    grade = np.minimum(documents.grade, largest_grade).astype(np.int8)
    return grade_examples(replace(documents, grade=grade), largest_grade=largest_grade)


@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("largest_grade", [1, 2, 3, 4])
def test_on_grades_the_trees_are_those_of_lightgbm(largest_grade: int, gain: Any) -> None:
    given = graded(largest_grade=largest_grade)
    grades = np.rint(given.relevance * largest_grade)
    worth = {"exponential": [0, 1, 3, 7, 15], "linear": [0, 1, 2, 3, 4]}[gain]
    data = lightgbm.Dataset(given.features, grades, group=given.sizes)
    theirs = lightgbm.train({**LIGHTGBM, "label_gain": worth}, data, num_boost_round=20)
    settings = LambdaMART(trees=20, leaves=7, rate=0.1, gain=gain, largest_grade=largest_grade, weighting="none")
    ours = settings.fit(given)
    assert trees(ours.model) == trees(theirs.model_to_string())
    assert ours.score(given.features).tolist() == theirs.predict(given.features).tolist()


def test_relevance_between_grades_is_not_lost() -> None:
    given = graded(largest_grade=1)
    finer = replace(given, relevance=given.relevance * np.linspace(0.5, 1, len(given.relevance)))
    settings = LambdaMART(trees=5, weighting="none")
    assert trees(settings.fit(given).model) != trees(settings.fit(finer).model)


@pytest.mark.parametrize(
    ("largest_grade", "relevance", "level"),
    [(4, 0.0, 0), (4, 1.0, 1000), (4, 0.25, 250), (4, 0.0004, 0), (4, 0.0006, 1), (3, 1 / 3, 333), (3, 1.0, 999)],
)
def test_relevance_is_rounded_to_a_level(largest_grade: int, relevance: float, level: int) -> None:
    assert LambdaMART(largest_grade=largest_grade).levels(np.array([relevance])).tolist() == [level]


def test_a_level_is_worth_what_its_relevance_is_worth() -> None:
    p = np.arange(1001) / 1000
    assert LambdaMART().label_gain() == pytest.approx(2 ** (4 * p) - 1, rel=1e-12)
    assert LambdaMART(gain="linear").label_gain() == pytest.approx(4 * p, rel=1e-12)
    assert LambdaMART().label_gain()[[0, 250, 500, 750, 1000]].tolist() == [0, 1, 3, 7, 15]
    assert LambdaMART(largest_grade=3).label_gain()[[0, 333, 666, 999]].tolist() == [0, 1, 3, 7]


def two_queries() -> tuple[Examples, np.ndarray[Any, np.dtype[np.float64]]]:
    """One query of which a document is worth 15, one whose documents are worth 1 and 3; and these worths."""
    worth = np.array([0.0, 15.0, 3.0, 1.0])
    return examples(split(sizes=[2, 2]), worth / 15), worth


def test_ideal_dcg_by_hand() -> None:
    assert ideal_dcg(*two_queries()).tolist() == pytest.approx([15, 3 + 1 / math.log2(3)])


def test_ideal_dcg_ends_at_position_30() -> None:
    found = ideal_dcg(examples(split(sizes=[40]), np.ones(40)), np.ones(40))
    assert found.tolist() == pytest.approx([sum(1 / math.log2(1 + k) for k in range(1, 31))])


A, B = 15.0, 3 + 1 / math.log2(3)  # the ideal DCG of the two queries
M = (3 + 1) / 15  # the sum of relevance in the second, and 1 in the first
FORMULAS: list[tuple[Weighting, float, float]] = [
    ("none", 1.0, 1.0),
    ("ideal-dcg", A, B),
    ("saturating", A**2 / (A**2 + 15**2), (B * M) ** 2 / ((B * M) ** 2 + 15**2)),
]


@pytest.mark.parametrize(("weighting", "first", "second"), FORMULAS)
def test_weights_are_what_their_formula_says(weighting: Weighting, first: float, second: float) -> None:
    mean = (first + second) / 2
    found = query_weights(*two_queries(), weighting=weighting, highest=15.0)
    assert found.tolist() == pytest.approx([first / mean, second / mean])


def test_every_weighting_has_its_formula_tested() -> None:
    assert [name for name, _, _ in FORMULAS] == list(WEIGHTINGS)


def test_several_somewhat_relevant_documents_weigh_like_a_surely_relevant_one_and_noise_does_not() -> None:
    noise, sure, between = (np.zeros(20) for _ in range(3))
    noise += 0.02 + 0.02 * (np.arange(20) < 3)
    sure[4] = 1
    between[:12] = 0.25
    relevance = np.concatenate([noise, sure, between])
    given = examples(split(sizes=[20, 20, 20]), relevance)
    nothing, one, several = query_weights(given, 16**relevance - 1, weighting="saturating", highest=15.0)
    assert nothing < one / 100
    assert one < several < 2 * one


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_lightgbm_gets_the_weights(weighting: Weighting) -> None:
    given = graded(largest_grade=4)
    settings = LambdaMART(trees=20, leaves=7, rate=0.1, weighting=weighting)
    grades = np.rint(given.relevance * 4).astype(int)
    weights = query_weights(given, 2.0**grades - 1, weighting=weighting, highest=15.0)[given.query]
    data = lightgbm.Dataset(given.features, grades, group=given.sizes, weight=weights)
    theirs = lightgbm.train(LIGHTGBM, data, num_boost_round=20)
    assert settings.fit(given).score(given.features) == pytest.approx(theirs.predict(given.features), rel=1e-9)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_number_of_threads_gives_the_same_bytes(threads: int) -> None:
    documents = split(sizes=[20] * 300, width=8)  # enough rows for every thread
    given = grade_examples(documents, largest_grade=4)
    settings = LambdaMART(trees=10, threads=threads)
    assert settings.fit(given).model == settings.fit(given).model


def test_training_stops_when_validation_labels_say_so() -> None:
    given = graded(largest_grade=4)
    shuffled = np.random.default_rng(0).permutation(given.relevance)  # nothing to learn: the first trees are the best
    fitted = LambdaMART(trees=200, patience=5).fit(given, vali=replace(given, relevance=shuffled))
    assert fitted.trees == int(np.argmax(fitted.ndcg)) + 1
    assert len(fitted.ndcg) == fitted.trees + 5 < 200
    assert fitted.model.count("\nTree=") == fitted.trees


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_stopping_goes_by_the_ndcg_of_the_labels_without_weights(weighting: Weighting) -> None:
    given, rng = graded(largest_grade=4), np.random.default_rng(3)
    held_out = split(sizes=[12] * 15, width=5, seed=5)
    relevance = np.round(rng.random(held_out.documents) * np.repeat(rng.random(15), 12), 3)
    relevance[:12] = np.arange(12) / 1e5  # taken for 0: there is no nDCG of this query
    vali = examples(held_out, relevance)
    settings = LambdaMART(trees=100, patience=100, weighting=weighting)
    scores = settings.fit(given).score(vali.features)
    assert len(np.unique(scores)) == len(scores)
    expected = evaluate(scores[12:], 4 * relevance[12:], vali.query[12:]).mean
    assert settings.fit(given, vali=vali).ndcg[-1] == pytest.approx(expected, abs=1e-9)


def test_tied_documents_are_not_taken_for_ranked_because_their_file_is() -> None:
    given, held_out = graded(largest_grade=4), split(sizes=[12] * 40, width=5)
    vali = examples(replace(held_out, features=np.zeros_like(held_out.features)), np.tile(np.linspace(1, 0, 12), 40))
    assert max(LambdaMART(trees=2).fit(given, vali=vali).ndcg) < 0.8


def test_validation_features_of_another_number_are_refused() -> None:
    given = graded(largest_grade=4)
    with pytest.raises(cm.InputError) as caught:
        LambdaMART().fit(given, vali=replace(given, features=given.features[:, :3], feature_names=()))
    assert str(caught.value) == "vali: 3 features, but the ranker was trained on 5. Use the same features."


def few() -> Examples:
    """Too few documents for two leaves."""
    return grade_examples(split(sizes=[3] * 5), largest_grade=4)


def next_to_equal() -> Examples:
    """Labels that differ by less than a level."""
    given = graded(largest_grade=4)
    return replace(given, relevance=0.5 + given.relevance / 10_000)


@pytest.mark.parametrize("given", [few(), next_to_equal()], ids=["few", "next to equal"])
@pytest.mark.parametrize("vali", [None, graded(largest_grade=4)], ids=["alone", "with validation"])
def test_a_ranker_that_learned_nothing_is_refused(given: Examples, vali: Examples | None) -> None:
    if vali is not None:
        vali = replace(vali, features=vali.features[:, : given.features.shape[1]], feature_names=())
    with pytest.raises(cm.InputError) as caught:
        LambdaMART(trees=5).fit(given, vali=vali)
    assert str(caught.value) == (
        f"Nothing was learned from {len(given.relevance)} documents of {given.queries} queries: no tree could be "
        "split, and all documents would get the same score. A leaf needs 20 documents, and features and labels must "
        "differ within queries. Use more labelled documents, or other features."
    )


def test_without_validation_all_trees_are_grown_and_reported() -> None:
    shares: list[float] = []
    fitted = LambdaMART(trees=4).fit(graded(largest_grade=4), progress=shares.append)
    assert (fitted.trees, fitted.ndcg, shares) == (4, (), [0.25, 0.5, 0.75, 1.0])


SETTINGS = [
    ({"trees": 0}, "trees=0: expected a whole number from 1."),
    ({"leaves": 1}, "leaves=1: expected a whole number from 2."),
    ({"rate": 0.0}, "rate=0.0: expected a number above 0, up to 1."),
    ({"rate": math.nan}, "rate=nan: expected a number above 0, up to 1."),
    ({"largest_grade": 2000}, "largest_grade=2000: expected at most 1000."),
    ({"gain": "square"}, "gain='square': expected one of exponential, linear."),
    ({"rate": "a"}, "rate='a': expected a number above 0, up to 1."),
    ({"leaves": 200_000}, "leaves=200000: expected at most 131072."),
    ({"threads": 1.5}, "threads=1.5: expected a whole number from 1."),
    ({"threads": 1000}, "threads=1000: expected at most 256."),
]


@pytest.mark.parametrize(("setting", "expected"), SETTINGS)
def test_settings_outside_what_they_may_be_are_refused(setting: dict[str, Any], expected: str) -> None:
    with pytest.raises(cm.SettingError) as caught:
        LambdaMART(**setting)
    assert str(caught.value) == expected


@pytest.mark.parametrize("seed", [-1, 1.5, 2**31])
def test_a_seed_that_lightgbm_does_not_take_is_refused(seed: Any) -> None:
    expected = f"seed={seed}: expected a whole number from 0 to 2147483647."
    with pytest.raises(cm.SettingError, match=f"^{re.escape(expected)}$"):
        LambdaMART().fit(graded(largest_grade=4), seed=seed)


def test_an_unknown_weighting_is_refused() -> None:
    expected = f"weighting='all': expected one of {', '.join(WEIGHTINGS)}."
    with pytest.raises(cm.SettingError, match=re.escape(expected)):
        LambdaMART(weighting="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_labels_that_are_all_next_to_nothing_are_refused(weighting: Weighting) -> None:
    given = examples(split(sizes=[2]), np.array([0.0001, 0.0002]))
    with pytest.raises(cm.InputError) as caught:
        LambdaMART(weighting=weighting).fit(given)
    assert str(caught.value) == (
        "All labels are below 1/2000 and are rounded to 0: there is nothing to rank by. "
        "Check the log: it probably has almost no clicks."
    )


def test_a_list_too_long_for_lightgbm_is_refused() -> None:
    given = examples(split(sizes=[2, 10_001]), np.linspace(0, 1, 10_003))
    with pytest.raises(cm.InputError) as caught:
        LambdaMART().fit(given)
    assert str(caught.value) == (
        "Query 2: 10,001 labelled documents, but LightGBM takes at most 10,000. Leave out those shown least."
    )


def test_without_lightgbm_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(cm.InputError) as caught:
        LambdaMART().fit(graded(largest_grade=4))
    assert str(caught.value) == (
        "LambdaMART needs LightGBM, which is not installed. Install it with: pip install 'clickmix[lightgbm]'"
    )


def with_gaps() -> Examples:
    """Examples in which a missing value says something: it means a high grade."""
    given = graded(largest_grade=4)
    features = given.features.copy()
    features[:, 1] = np.where(given.relevance > 0.6, np.nan, features[:, 1])
    return replace(given, features=features)


def test_missing_values_reach_lightgbm_as_missing() -> None:
    given = with_gaps()
    fitted = LambdaMART(trees=20, weighting="none").fit(given)
    own = lightgbm.Booster(model_str=fitted.model)
    assert fitted.missing == ("feature_2",)
    assert fitted.score(given.features).tolist() == own.predict(given.features).tolist()
    nodes = [node for tree in own.dump_model()["tree_info"] for node in splits(tree["tree_structure"])]
    assert {node["missing_type"] for node in nodes if node["split_feature"] == 1} == {"NaN"}
    assert {node["missing_type"] for node in nodes if node["split_feature"] != 1} == {"None"}
    filled = np.nan_to_num(given.features, nan=0.0)
    assert fitted.score(filled).tolist() != fitted.score(given.features).tolist()


def splits(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "split_feature" in node:
        yield node
        yield from splits(node["left_child"])
        yield from splits(node["right_child"])


def test_importance_is_the_sum_of_the_gains_of_a_features_splits() -> None:
    named = replace(graded(largest_grade=4), feature_names=("bm25", "ctr", "age", "price", "size"))
    fitted = LambdaMART(trees=5).fit(named)
    gains = dict.fromkeys(named.feature_names, 0.0)
    for tree in lightgbm.Booster(model_str=fitted.model).dump_model()["tree_info"]:
        for node in splits(tree["tree_structure"]):
            gains[named.feature_names[node["split_feature"]]] += node["split_gain"]
    found = fitted.importance()
    # LightGBM writes gains with six digits.
    assert {each.name: each.gain for each in found} == pytest.approx(gains, rel=1e-4)
    assert [each.gain for each in found] == sorted((each.gain for each in found), reverse=True)
    assert sum(each.share for each in found) == pytest.approx(1, abs=1e-12)
    assert found[0].name == "bm25"


def test_a_ranker_that_splits_by_missing_values_alone_is_read_again(tmp_path: Path) -> None:
    given = with_gaps()
    fitted = LambdaMART(trees=20, leaves=6).fit(given)
    assert "inf" in fitted.model  # LightGBM's threshold where only missing values go the other way
    fitted.save(tmp_path / "ranker")
    assert load_ranker(tmp_path / "ranker").score(given.features).tolist() == fitted.score(given.features).tolist()


def test_a_curve_ends_with_the_score_of_a_missing_value() -> None:
    given = with_gaps()
    fitted = LambdaMART(trees=20).fit(given)
    curve = fitted.partial_dependence(given.features, "feature_2")
    assert [point.missing for point in curve] == [False] * (len(curve) - 1) + [True]
    assert curve[-1].score > max(point.score for point in curve[:-1])


def test_a_curve_of_an_unknown_feature_is_refused() -> None:
    given = graded(largest_grade=4)
    expected = (
        "feature 'bm25': the ranker does not have it. Expected one of feature_1, feature_2, feature_3, feature_4,"
    )
    with pytest.raises(cm.SettingError, match=re.escape(expected)):
        LambdaMART(trees=2).fit(given).partial_dependence(given.features, "bm25")
