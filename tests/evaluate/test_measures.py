"""Measures: their text, their settings, and what is refused."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickmix.errors import SettingError
from clickmix.evaluate import Measure

cutoffs = st.none() | st.integers(1, 10**17)
measures = st.builds(
    Measure, st.sampled_from(["ndcg", "dcg"]), cutoffs, gain=st.sampled_from(["exponential", "linear"])
) | st.builds(
    Measure,
    st.sampled_from(["mrr", "map", "precision", "recall"]),
    cutoffs,
    grade=st.floats(min_value=0, exclude_min=True, allow_infinity=False),
)


@settings(deadline=None)
@given(measures)
def test_the_text_of_a_measure_parses_back(measure: Measure) -> None:
    assert Measure.parse(str(measure)) == measure


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("ndcg@10", Measure("ndcg", 10, gain="exponential")),
        ("ndcg@10:gain=linear", Measure("ndcg", 10, gain="linear")),
        ("dcg", Measure("dcg", None)),
        ("mrr@1", Measure("mrr", 1, grade=1)),
        ("map:grade=2", Measure("map", grade=2)),
        ("precision@5:grade=0.5", Measure("precision", 5, grade=0.5)),
        ("recall@100", Measure("recall", 100)),
    ],
)
def test_a_measure_is_written_as_it_is_read(text: str, measure: Measure) -> None:
    assert Measure.parse(text) == measure
    assert str(measure) == text


def test_settings_at_their_default_are_not_written() -> None:
    assert str(Measure.parse("ndcg@10:gain=exponential")) == "ndcg@10"
    assert str(Measure.parse("mrr@10:grade=1.0")) == "mrr@10"


ALL = "The measures are ndcg, dcg, mrr, map, precision, recall."
NOT_A_CUTOFF = "is not a whole number from 1, as in ndcg@10."
NOT_A_GRADE = "is not a number above 0, the lowest that counts as relevant."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDCG@10", f"Unknown measure 'nDCG'. Did you mean ndcg or dcg? {ALL}"),
        ("presicion@5", f"Unknown measure 'presicion'. Did you mean precision? {ALL}"),
        ("err@10", f"Unknown measure 'err'. Did you mean mrr? {ALL}"),
        ("bleu", f"Unknown measure 'bleu'. {ALL}"),
        ("", f"Unknown measure ''. {ALL}"),
        ("ndcg@", f"ndcg@: the cut-off '' {NOT_A_CUTOFF}"),
        ("ndcg@0", f"ndcg@0: the cut-off '0' {NOT_A_CUTOFF}"),
        ("ndcg@-1", f"ndcg@-1: the cut-off '-1' {NOT_A_CUTOFF}"),
        ("ndcg@1.5", f"ndcg@1.5: the cut-off '1.5' {NOT_A_CUTOFF}"),
        ("ndcg@٣", f"ndcg@٣: the cut-off '٣' {NOT_A_CUTOFF}"),
        (
            "ndcg@10:linear",
            "'ndcg@10:linear' is not a measure. Write it as in ndcg@10, ndcg@10:gain=linear or map:grade=2.",
        ),
        ("ndcg@10\n", "ndcg@10\n: the cut-off '10\\n' " + NOT_A_CUTOFF),
        ("ndcg:gain=cubic", "ndcg: unknown gain 'cubic'. The gains are exponential and linear."),
        ("map:gain=linear", "map has no gain: it asks whether a document is relevant. Set grade instead."),
        ("ndcg:grade=2", "ndcg has no grade that counts as relevant: it adds up gains. Set gain instead."),
        ("map:grade=0", f"map: the grade 0.0 {NOT_A_GRADE}"),
        ("map:grade=-1", f"map:grade=-1: the grade '-1' {NOT_A_GRADE}"),
        ("map:grade=nan", f"map:grade=nan: the grade 'nan' {NOT_A_GRADE}"),
        ("map:grade=1e999", f"map: the grade inf {NOT_A_GRADE}"),
        (
            "map:level=2",
            "map:level=2: unknown setting 'level'. The settings are gain (ndcg, dcg) and grade (the others).",
        ),
    ],
)
def test_text_that_is_no_measure_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        Measure.parse(text)


@settings(deadline=None)
@given(st.text(max_size=20) | st.from_regex(r"(ndcg|map)@[0-9a-f]{0,3}(:gra?in?d?e?=.{0,4})?", fullmatch=True))
def test_any_text_is_a_measure_or_a_setting_error(text: str) -> None:
    try:
        measure = Measure.parse(text)
    except SettingError:
        return
    assert Measure.parse(str(measure)) == measure


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cutoff": 0}, "map: the cut-off 0 is not a whole number from 1, as in ndcg@10."),
        ({"cutoff": True}, "map: the cut-off True is not a whole number from 1, as in ndcg@10."),
        ({"cutoff": 2.0}, "map: the cut-off 2.0 is not a whole number from 1, as in ndcg@10."),
        ({"grade": float("nan")}, f"map: the grade nan {NOT_A_GRADE}"),
        ({"grade": True}, f"map: the grade True {NOT_A_GRADE}"),
    ],
)
def test_settings_outside_what_they_may_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        Measure("map", **settings)
