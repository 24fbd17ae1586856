"""Explanations: the numbers of a query and a document, checked by hand, in words, bars, JSON and HTML."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import clickmix as cm
from cascades import cascade
from clickmix.corrections.correction import Labels
from clickmix.errors import InputError
from clickmix.groups.places import Place
from clickmix.report.rows import json_text
from commands import run
from logs import write
from simulation import simulated

# sku-1 was shown 402 times: 200 at 2, 150 at 3, 52 at 9; clicked 61 times.
SHOP: dict[str, Any] = {
    "query_id": ["red shoes"] * 6 + ["Red Hat"],
    "doc_id": ["sku-1", "sku-1", "sku-1", "sku-2", "<b>", "sku-2", "sku-1"],
    "position": [2, 3, 9, 1, 4, 2, 1],
    "impressions": [200, 150, 52, 300, 402, 102, 10],
    "clicks": [40, 20, 1, 150, 0, 9, 5],
}
RATES = {1: (0.2, 0.6), 2: (0.06, 0.3), 3: (0.04, 0.2), 4: (0.02, 0.1), 9: None}


class Given:
    """A fit with known labels and, at some places, known rates."""

    def label(self, counts: cm.Counts) -> Labels:
        label = "CASE WHEN doc_id = '<b>' THEN 0 WHEN doc_id = 'sku-1' THEN 0.93 ELSE 0.5 END"
        return Labels(
            counts,
            f"SELECT query_id, doc_id, CAST({label} AS DOUBLE) AS relevance, "
            "CAST(sum(impressions) AS BIGINT) AS impressions, CAST(sum(clicks) AS BIGINT) AS clicks, "
            f"CAST({label} / 2 AS DOUBLE) AS low, CAST(1 AS DOUBLE) AS high "
            f"FROM {counts.table} GROUP BY query_id, doc_id",
        )

    def usual_rates(self, place: Place) -> tuple[float, float] | None:
        return RATES[place.position]


@pytest.fixture
def counts() -> cm.Counts:
    return cm.Counts.from_arrays(**SHOP)


def test_a_document_in_words_and_by_place(counts: cm.Counts) -> None:
    told = cm.explain(counts, "red shoes", "sku-1", fit=Given())
    assert told.sentences == (
        "Document 'sku-1': label 0.93 (0.47 to 1.00 with 95% probability).",
        "Shown 402 times, mostly at positions 2 and 3; clicked 61 times.",
        # 200 x 0.3 + 150 x 0.2 = 90; 200 x 0.06 + 150 x 0.04 = 18
        "350 of these impressions, with 60 clicks, say more: a relevant document there would be clicked about 90 "
        "times, an irrelevant one about 18 times. At its other places clicks say nothing.",
    )
    assert told.cells is not None
    assert told.cells.rows == (
        ("position 2", 200, 40, 0.2, 0.3, 0.06),
        ("position 3", 150, 20, 20 / 150, 0.2, 0.04),
        ("position 9", 52, 1, 1 / 52, None, None),
    )


def test_a_query_lists_its_documents_as_shown(counts: cm.Counts) -> None:
    told = cm.explain(counts, "red shoes", fit=Given())
    assert (told.documents, told.impressions, told.clicks) == (3, 1206, 220)
    assert [row["doc_id"] for row in told.results.json()] == ["sku-2", "sku-1", "<b>"]
    second = told.results.json()[0]
    assert second["mean_position"] == pytest.approx((300 + 2 * 102) / 402)
    # 300 x 0.6 + 102 x 0.3 = 210.6; 300 x 0.2 + 102 x 0.06 = 66.12
    assert (second["if_relevant"], second["if_not"]) == pytest.approx((210.6, 66.12))
    assert [row["place_by_label"] for row in told.results.json()] == [2, 1, 3]
    assert told.results.json()[1]["if_relevant"] is None  # at position 9 clicks say nothing
    assert repr(told).splitlines()[0] == "Query 'red shoes': 3 documents, 1,206 impressions, 220 clicks."
    assert "     1.3  sku-2      0.50  ··━━━●━━━━━" in repr(told)
    assert all(len(line) <= 80 for line in repr(told).splitlines())


def test_json_has_the_same_rows(counts: cm.Counts) -> None:
    told = cm.explain(counts, "red shoes", "sku-1", fit=Given())
    document = json.loads(json_text(told.json()))
    assert document["results"] == told.results.json()
    assert told.cells is not None
    assert document["cells"] == told.cells.json()
    assert document["sentences"] == list(told.sentences)


def test_notebooks_show_hostile_ids_as_text(counts: cm.Counts) -> None:
    html = cm.explain(counts, "red shoes", "<b>", fit=Given())._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert 'aria-label="0.25 to 1.00"' in html


@pytest.mark.parametrize(("positions", "told"), [
    ({3: 10}, "at position 3"),
    ({2: 5, 3: 5}, "at positions 2 and 3"),
    ({2: 50, 3: 40, 7: 20}, "mostly at positions 2 and 3"),
    ({1: 90, 2: 10}, "mostly at position 1"),
    (dict.fromkeys(range(1, 11), 10), "at 10 positions from 1 to 10"),
])  # fmt: skip
def test_where_a_document_was_shown(positions: dict[int, int], told: str) -> None:
    number = len(positions)
    counts = cm.Counts.from_arrays(["q"] * number, ["d"] * number, [*positions], [*positions.values()], [1] * number)
    shown = cm.explain(counts, "q", "d", correction="none").sentences[1]
    assert shown == f"Shown {sum(positions.values())} times, {told}; clicked {number} time{'s' * (number > 1)}."


@pytest.mark.parametrize("asked", ["FU\u1e9eE", " fu\u00dfe ", "Fu\u00dfe", "fu\u00dfe"])
@pytest.mark.parametrize("kind", ["log", "counts", "labels"])
def test_a_query_is_asked_for_in_any_spelling_that_was_joined(tmp_path: Path, kind: str, asked: str) -> None:
    queries = ["fu\u00dfe", "fu\u00dfe", "FU\u1e9eE", "Fu\u00dfe"]
    table = {"query_id": queries, "doc_id": ["a"] * 4, "position": [1] * 4, "clicked": [1, 0, 1, 0]}
    log = write(tmp_path / "log.csv", table)
    labels = tmp_path / "labels.csv"
    cm.debias(log, correction="none", normalise="case,space").write(labels)
    told = {
        "log": lambda: cm.explain(log, asked, correction="none", normalise="case,space"),
        "counts": lambda: cm.explain(cm.count(log, normalise="case,space"), asked, correction="none"),
        "labels": lambda: cm.explain(labels, asked, normalise="case,space"),
    }[kind]()
    assert (told.query_id, told.impressions, told.clicks) == ("fu\u00dfe", 4, 2)


def test_the_command_asks_in_the_same_way(tmp_path: Path) -> None:
    table = {"query_id": ["Hats", "Hats"], "doc_id": ["a", "b"], "position": [1, 2], "clicked": [1, 0]}
    log = str(write(tmp_path / "log.csv", table))
    shown = run("explain", log, "--query", "HATS", "--correction", "none", "--normalise", "case").output
    assert "Query 'Hats': 2 documents, 2 impressions, 1 click." in shown
    labels = str(tmp_path / "labels.csv")
    cm.debias(log, correction="none").write(labels)
    assert "Query 'Hats': 2 documents" in run("explain", labels, "--query", "HATS", "--normalise", "case").output
    with pytest.raises(cm.InputError, match="not in the log"):
        cm.explain(log, "HATS", correction="none")


@pytest.mark.parametrize(("query", "doc", "message"), [
    ("red shoos", None, "query 'red shoos': not in the log. Did you mean 'red shoes'?"),
    ("RED HAT", None, "query 'RED HAT': not in the log. Did you mean 'Red Hat'?"),
    ("umbrella", None, "query 'umbrella': not in the log. Check the spelling."),
    ("?", None, "query '?': not in the log. Check the spelling."),
    ("red shoes", "sku1", "document 'sku1': not among the documents of this query. Did you mean 'sku-1'?"),
])  # fmt: skip
def test_near_spellings_are_suggested(counts: cm.Counts, query: str, doc: str | None, message: str) -> None:
    with pytest.raises(InputError) as error:
        cm.explain(counts, query, doc, fit=Given())
    assert str(error.value) == message


def test_a_rare_query_is_suggested_even_if_thousands_are_shown_more_often() -> None:
    names = [f"blue hat {i}" for i in range(6000)] + ["red shoes 6120"]
    impressions = [100] * 6000 + [1]
    ones = [1] * len(names)
    counts = cm.Counts.from_arrays(names, ["d"] * len(names), ones, impressions, [0] * len(names))
    with pytest.raises(InputError, match="Did you mean 'red shoes 6120'"):
        cm.explain(counts, "red shos 6120", correction="none")


def test_a_document_far_down_is_shown_if_it_is_asked_for() -> None:
    many = cm.Counts.from_arrays(["q"] * 50, [f"d{i}" for i in range(50)], [*range(1, 51)], [10] * 50, [1] * 50)
    assert len(cm.explain(many, "q", correction="none").results.rows) == 30
    told = cm.explain(many, "q", "d49", correction="none")
    assert [row["doc_id"] for row in told.results.json()][-1] == "d49"
    assert told.results.notes == ("31 of 50 documents are listed, those shown most.",)


def test_documents_shown_often_come_before_those_shown_once_at_the_top() -> None:
    documents = [*(f"often {k}" for k in range(30)), *(f"once {i}" for i in range(30))]
    position, shown = [*range(1, 31), *[1] * 30], [1000] * 30 + [1] * 30
    told = cm.explain(cm.Counts.from_arrays(["q"] * 60, documents, position, shown, [0] * 60), "q", correction="none")
    assert [row["doc_id"] for row in told.results.json()] == documents[:30]


def test_explanations_say_what_expected_clicks_leave_out() -> None:
    counts = cascade("dcm", clicks=20_000, queries=200, seed=0).counts()
    fit = cm.MixtureCorrection("binomial").fit(counts)
    assert fit.model is not None
    alike = replace(fit, model=replace(fit.model, attention=None, shares=False, appeal=False, numbers=()))
    differ = replace(fit, model=replace(fit.model, attention="odds", shares=False, appeal=False, numbers=(-1.0,)))
    told = "Expected clicks are those in a typical query. Labels also allow for how this query differs from others."
    assert [told in cm.explain(counts, 3, fit=each).notes for each in (alike, differ)] == [False, True]


@pytest.mark.parametrize("examination", ["pbm", "dcm"])
def test_expected_clicks_of_a_mixture_are_those_of_its_rates(examination: Any) -> None:
    counts = cascade("dcm", clicks=20_000, queries=200, seed=0).counts()
    fit = cm.MixtureCorrection("binomial", examination=examination).fit(counts)
    told = cm.explain(counts, 3, fit=fit)
    labels = fit.label(counts).query(3)
    found = {row["doc_id"]: row["relevance"] for row in told.results.json()}
    assert found == pytest.approx(dict(zip(map(str, labels.doc_id), labels.relevance, strict=True)))
    # A cascade's rates depend on what is above, so there is nothing to expect of a position alone.
    assert ("if_relevant" in told.results.json()[0]) == (examination == "pbm")
    if examination == "pbm":
        low, high = fit.groups[1].mixture.rates
        second = told.results.json()[1]
        assert (second["if_not"], second["if_relevant"]) == pytest.approx(
            (low * second["impressions"], high * second["impressions"])
        )


def test_explanations_take_paths_frames_and_fits_of_them(tmp_path: Path) -> None:
    log = simulated(eta=1, clicks=5_000, seed=0, queries=40, positions=5)
    counts = log.counts()
    counts.write(tmp_path / "counts.parquet")
    told: list[Any] = [cm.explain(counts, 3), cm.explain(tmp_path / "counts.parquet", "3")]
    assert told[0].results == told[1].results


@pytest.mark.parametrize("name", ["labels.parquet", "labels.csv", "labels.ndjson"])
def test_a_labels_file_gives_what_it_holds_and_names_the_command_for_more(
    counts: cm.Counts, tmp_path: Path, name: str
) -> None:
    Given().label(counts).write(tmp_path / name)
    told = cm.explain(tmp_path / name, "red shoes", "sku-1")
    assert [row["doc_id"] for row in told.results.json()] == ["sku-1", "sku-2", "<b>"]  # by label: no positions
    assert told.results.json()[0] == {
        "doc_id": "sku-1",
        "relevance": 0.93,
        "interval": {"low": 0.465, "high": 1.0},
        "place_by_label": 1,
        "impressions": 402,
        "clicks": 61,
    }
    assert told.cells is None
    assert told.notes == ("These are labels. For evidence by position: clickmix explain LOG --query 'red shoes'",)
    with pytest.raises(InputError, match=r"query 'red shoos': not in the log\. Did you mean 'red shoes'\?"):
        cm.explain(tmp_path / name, "red shoos")
    with pytest.raises(InputError, match="'position'"):
        cm.explain(tmp_path / name, "red shoes", format="rows")  # who names a format has a log


def test_labels_with_nothing_but_relevance_can_be_explained(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("query_id,doc_id,relevance\nq,d,0.5\n")
    assert repr(cm.explain(tmp_path / "labels.csv", "q", "d")).splitlines()[:3] == [
        "Query 'q': 1 document.",
        "document  label  by label",
        "d          0.50         1",
    ]
