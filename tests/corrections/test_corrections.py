"""Corrections: the contract they share, labels against a slow version, explanations, groups, model files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from clickmix.corrections.affine import AffineCorrection
from clickmix.corrections.coec import ClicksOverExpected
from clickmix.corrections.coec_smoothed import SmoothedClicksOverExpected
from clickmix.corrections.correction import Correction
from clickmix.corrections.ctr_smoothed import SmoothedRate
from clickmix.corrections.ctr_then_rank import RateThenRank
from clickmix.corrections.intervention import Intervention
from clickmix.corrections.ips import InversePropensity
from clickmix.corrections.mixture import MixtureCorrection
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.corrections.none import NoCorrection
from clickmix.corrections.pbm import PositionBasedModel
from clickmix.corrections.plain_em import PlainEM
from clickmix.counts.counts import Counts
from clickmix.errors import InputError, SettingError
from clickmix.groups.places import Place
from clickmix.mixtures.mixture import Verdict
from moving_logs import BIAS, moving_counts
from oracles_labels import slow_labels
from simulation import simulated, spread

FAMILY: dict[str, Correction] = {
    "none": NoCorrection(),
    "binomial": MixtureCorrection("binomial"),
    "binomial, flat": MixtureCorrection("binomial", prior="flat"),
    "gaussian": MixtureCorrection("gaussian"),
    "auto": MixtureCorrection(),
    "graded": MixtureCorrection("graded", grades=4),
    "nonparametric": MixtureCorrection("nonparametric"),
    "affine": AffineCorrection(BIAS),
    "affine, to 20": AffineCorrection(BIAS, clip="twenty"),
    "ips": InversePropensity(1 / np.arange(1, 7)),
    "coec": ClicksOverExpected(),
    "coec, best position": ClicksOverExpected("best-position"),
    "coec, smoothed": SmoothedClicksOverExpected(),
    "coec, smoothed, to 20": SmoothedClicksOverExpected("twenty"),
    "rate, smoothed": SmoothedRate(),
    "rate, then rank": RateThenRank(),
    "plain EM": PlainEM(max_steps=20),
    "plain EM without trust": PlainEM(trust=False, max_steps=20),
    "position-based model": PositionBasedModel(),
    "intervention": Intervention(),
    "intervention, adjacent": Intervention("adjacent", clip="twenty"),
}
EFFECTS: list[dict[str, Any]] = [
    {"numbers": ()},
    {"attention": "odds", "numbers": (np.log(0.5),)},
    {"attention": "examination", "numbers": (np.log(0.4), 3.0)},
    {"shares": True, "numbers": (np.log(0.8),)},
    {"appeal": True, "numbers": (3.0, 0.4)},
    {"attention": "odds", "shares": True, "appeal": True, "numbers": (np.log(0.3), np.log(0.7), 3.0, 0.4)},
]
# A click more on one document may say that its query gets more attention, and lower the labels of the others.
NEVER_LOWER = sorted(FAMILY)
ESTIMATING = [name for name in FAMILY if name.startswith(("affine", "ips", "coec", "plain", "intervention"))]
MIXTURES = [name for name, correction in FAMILY.items() if isinstance(correction, MixtureCorrection)]
SURE = [*MIXTURES, *(name for name in FAMILY if "smoothed" in name), "position-based model"]  # they give intervals


class TestContract:
    @pytest.mark.parametrize("name", FAMILY)
    def test_one_row_per_document_in_order_between_0_and_1(self, name: str) -> None:
        counts = moving_counts()
        labels = FAMILY[name].fit(counts).label(counts)
        pairs = list(zip(labels.query_id.tolist(), labels.doc_id.tolist(), strict=True))
        cells = counts.cells()
        assert pairs == sorted(set(zip(cells["query_id"].tolist(), cells["doc_id"].tolist(), strict=True)))
        assert ((labels.relevance >= 0) & (labels.relevance <= 1)).all()
        assert labels.impressions.sum() == cells["impressions"].sum()
        assert labels.clicks.sum() == cells["clicks"].sum()
        assert list(labels.columns)[:5] == ["query_id", "doc_id", "relevance", "impressions", "clicks"]
        more = [*(["low", "high"] if name in SURE else []), *(["estimate"] if name in ESTIMATING else [])]
        assert list(labels.columns)[5:] == more
        if "low" in labels.columns:
            assert (labels.columns["low"] <= labels.relevance).all()
            assert (labels.relevance <= labels.columns["high"]).all()

    @pytest.mark.parametrize("name", FAMILY)
    def test_a_log_that_is_not_counted_is_refused(self, name: str) -> None:
        fit = FAMILY[name].fit(moving_counts(queries=20))
        for made, method in ((FAMILY[name], "fit"), (fit, "label")):
            with pytest.raises(InputError, match=rf"^{type(made).__name__}\.{method} takes counts, not 'day1\.csv'\. "):
                getattr(made, method)("day1.csv")

    @pytest.mark.parametrize(("given", "message"), [
        (Path("day1.csv"), "not 'day1.csv'. Use clickmix.count('day1.csv')."),
        (pd.DataFrame(), "not a DataFrame. Use clickmix.count(log)."),
        (["day1.csv"], "not a list. Use clickmix.count(log)."),
    ])  # fmt: skip
    def test_what_is_not_counted_is_named(self, given: Any, message: str) -> None:
        with pytest.raises(InputError) as error:
            MixtureCorrection().fit(given)
        assert str(error.value) == f"MixtureCorrection.fit takes counts, {message}"

    @pytest.mark.parametrize("name", FAMILY)
    def test_row_order_changes_no_byte(self, name: str, tmp_path: Path) -> None:
        cells = moving_counts().cells()
        shuffled = np.random.default_rng(1).permutation(len(cells["clicks"]))
        for file, order in (("a.parquet", slice(None)), ("b.parquet", shuffled)):
            counts = Counts.from_arrays(*(column[order] for column in cells.values()))
            FAMILY[name].fit(counts).label(counts).write(tmp_path / file)
        assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()

    @pytest.mark.parametrize("name", FAMILY)
    def test_names_of_queries_and_documents_do_not_matter(self, name: str) -> None:
        cells = moving_counts().cells()
        plain = Counts.from_arrays(*cells.values())
        renamed = Counts.from_arrays(
            np.array([f"q{q:05}" for q in cells["query_id"]], object),
            np.array([f"<d>{d:05}" for d in cells["doc_id"]], object),
            *list(cells.values())[2:],
        )
        one, other = (FAMILY[name].fit(c).label(c).relevance for c in (plain, renamed))
        assert one == pytest.approx(other, abs=1e-9)

    @settings(max_examples=25, deadline=None)
    @given(st.sampled_from(NEVER_LOWER), st.integers(0, 500), st.integers(0, 1000))
    def test_turning_a_skip_into_a_click_never_lowers_a_label(self, name: str, seed: int, pick: int) -> None:
        counts = moving_counts(seed % 5, queries=25)
        fit = FAMILY[name].fit(counts)
        cells = {key: values.copy() for key, values in counts.cells().items()}
        row = pick % len(cells["clicks"])
        before = fit.label(counts).relevance
        cells["clicks"][row] = min(cells["clicks"][row] + 1, cells["impressions"][row])
        after = fit.label(Counts.from_arrays(*cells.values())).relevance
        assert (after >= before - 1e-12).all()  # but for rounding


class TestMixture:
    @pytest.mark.parametrize("name", MIXTURES)
    @pytest.mark.parametrize("device", [False, True])
    def test_sql_labels_equal_a_slow_version(self, name: str, device: bool) -> None:
        counts = moving_counts(device=device)
        fit = FAMILY[name].fit(counts)
        assert isinstance(fit, MixtureFit)
        assert fit.label(counts).relevance == pytest.approx(slow_labels(fit, counts), abs=1e-8)

    @pytest.mark.parametrize("effects", EFFECTS, ids=lambda effects: ", ".join(effects))
    def test_labels_where_queries_differ_equal_a_slow_version(self, effects: dict[str, Any]) -> None:
        """The slow version integrates on a fine grid, clickmix in a few points around each query."""
        counts = moving_counts(queries=12)
        fit = MixtureCorrection("binomial").fit(counts)
        assert fit.model is not None
        plain = replace(fit.model, attention=None, shares=False, appeal=False, numbers=())
        differing = replace(fit, model=replace(plain, **effects))
        slow = slow_labels(differing, counts, queries=6)
        assert differing.label(counts).relevance[: len(slow)] == pytest.approx(slow, abs=0.01)

    @pytest.mark.parametrize("mixture", ["binomial", "graded", "gaussian"])
    def test_labels_of_documents_that_stay_are_those_of_the_sum_over_their_one_cell(
        self, tmp_path: Path, mixture: str
    ) -> None:
        counts = simulated(eta=1, clicks=50_000, seed=0, queries=500).counts()
        fit = MixtureCorrection(mixture).fit(counts)
        plain = fit.label(counts)
        added_up = replace(plain, one_cell=None)
        assert "GROUP BY" in added_up.sql
        assert "GROUP BY" not in plain.sql
        assert (plain.relevance == added_up.relevance).all()
        written = [labels.write(tmp_path / f"{i}.parquet") for i, labels in enumerate((plain, added_up))]
        assert written == [len(plain)] * 2
        one, other = (duckdb.execute(f"FROM '{tmp_path}/{i}.parquet'").fetchall() for i in (0, 1))
        assert one == other
        slow = slow_labels(fit, counts, queries=10)
        assert plain.relevance[: len(slow)].tolist() == pytest.approx(slow, abs=1e-8)

    @pytest.mark.parametrize("name", ["labels.parquet", "labels.csv"])
    def test_a_model_of_documents_that_stay_labels_documents_that_move(self, tmp_path: Path, name: str) -> None:
        fit = MixtureCorrection().fit(simulated(eta=1, clicks=50_000, seed=0, queries=500).counts())
        assert fit.moving == 0
        counts = moving_counts(queries=20)
        labels = fit.label(counts)
        assert labels.relevance == pytest.approx(slow_labels(fit, counts), abs=1e-8)
        assert labels.write(tmp_path / name) == len(labels)
        written = duckdb.execute(f"SELECT relevance FROM '{tmp_path / name}'").fetchnumpy()["relevance"]
        assert written.tolist() == labels.relevance.tolist()

    def test_groups_are_positions_crossed_with_context(self) -> None:
        fit = MixtureCorrection().fit(moving_counts(device=True))
        places = [seen.place for group in fit.groups for seen in group.places]
        assert sorted(places) == sorted(Place(k, (d,)) for k in range(1, 7) for d in ("desk", "phone"))

    def test_a_context_that_means_nothing_moves_few_labels(self) -> None:
        plain, crossed = moving_counts(queries=200), moving_counts(queries=200, device=True)
        one, other = (MixtureCorrection().fit(c).label(c).relevance for c in (plain, crossed))
        assert np.mean(np.abs(one - other) > 0.3) < 0.01

    def test_documents_that_are_as_good_everywhere_get_a_prior_that_is_nearly_the_same_everywhere(self) -> None:
        fit = MixtureCorrection().fit(moving_counts(queries=400))
        assert fit.jointly
        assert [group.prior_relevance for group in fit.groups] == pytest.approx([0.3] * 6, abs=0.08)

    @pytest.mark.parametrize("query", range(6))
    def test_whether_documents_move_does_not_depend_on_the_name_of_a_single_query(self, query: int) -> None:
        documents = np.repeat(np.arange(30_000), 2)
        clicks = np.random.default_rng(0).binomial(20, np.where(documents % 3 == 0, 0.5, 0.1))
        counts = Counts.from_arrays(np.full(60_000, query), documents, np.tile([1, 2], 30_000), [20] * 60_000, clicks)
        assert MixtureCorrection("binomial").fit(counts).moving == 1.0

    def test_labels_of_another_context_are_refused(self) -> None:
        fit = MixtureCorrection().fit(moving_counts(device=True))
        with pytest.raises(
            SettingError,
            match=r"the model's context is device, the counts have no context columns\. Count the log with the model's",
        ):
            fit.label(moving_counts())

    def test_explanation_adds_up_to_the_label(self) -> None:
        counts = moving_counts()
        fit = MixtureCorrection("graded").fit(counts)
        labels = fit.label(counts)
        for row in (0, 7, 100):
            told = fit.evidence(counts, labels.query_id[row], labels.doc_id[row])
            assert told.relevance == pytest.approx(labels.relevance[row], abs=1e-9)
            assert sum(cell.impressions for cell in told.cells) == labels.impressions[row]
            assert sum(cell.clicks for cell in told.cells) == labels.clicks[row]
            odds = np.sum([told.prior_logits, *(cell.log_ratios for cell in told.cells)], axis=0)
            assert told.log_odds == pytest.approx(odds)
            assert told.relevance == pytest.approx(np.linspace(0, 1, fit.grades) @ softmax([0, *odds]), abs=1e-8)

    def test_explanation_of_an_unknown_document_is_refused(self) -> None:
        counts = moving_counts()
        with pytest.raises(InputError, match=r"query 'x', document 1: not in the log\. Check the ids\."):
            MixtureCorrection().fit(counts).evidence(counts, "x", 1)

    @pytest.mark.parametrize(("settings_", "message"), [
        (
            {"mixture": "poisson"},
            "mixture 'poisson': expected one of auto, binomial, gaussian, graded, nonparametric.",
        ),
        ({"grades": 9}, "grades 9: expected a whole number from 2 to 7."),
        ({"grades": 2.5}, "grades 2.5: expected a whole number from 2 to 7."),
        ({"grades": "3"}, "grades '3': expected a whole number from 2 to 7."),
        ({"prior": "steep"}, "prior 'steep': expected one of position, flat."),
        ({"sharing": "foo"}, "sharing 'foo': expected True or False."),
    ])  # fmt: skip
    def test_unknown_settings_are_refused(self, settings_: dict[str, Any], message: str) -> None:
        with pytest.raises(SettingError) as error:
            MixtureCorrection(**settings_)
        assert str(error.value) == message

    def test_a_position_is_not_a_place(self) -> None:
        fit = MixtureCorrection("binomial").fit(moving_counts(queries=20))
        with pytest.raises(SettingError) as error:
            fit.usual_rates(1)  # type: ignore[arg-type]
        assert str(error.value) == ("place 1: expected a Place, such as those of a fit: fit.groups[0].places[0].place.")

    def test_places_not_seen_in_the_fit_take_the_nearest_group(self) -> None:
        counts = simulated(eta=1, clicks=100_000, seed=0, queries=1000, positions=5).counts()
        fit = MixtureCorrection().fit(counts)
        far = Counts.from_arrays([1], [1], [9], [50], [20])
        near = Counts.from_arrays([1], [1], [5], [50], [20])
        assert fit.label(far).relevance == fit.label(near).relevance


class TestGroupsWithoutAFit:
    def test_a_position_without_clicks_is_named(self) -> None:
        cells = simulated(eta=1, clicks=100_000, seed=0, queries=1000, positions=4).counts().cells()
        counts = Counts.from_arrays(
            cells["query_id"], cells["doc_id"], cells["position"], cells["impressions"],
            np.where(cells["position"] == 4, 0, cells["clicks"]),
        )  # fmt: skip
        fit = MixtureCorrection().fit(counts)
        assert [group.mixture.verdict for group in fit.groups][3] is Verdict.NO_CLICKS
        labels = fit.label(counts)
        assert labels.relevance[labels.doc_id % 100 == 4] == pytest.approx(fit.groups[3].prior_relevance, abs=0.1)

    @pytest.mark.parametrize(("clicks", "label"), [([0] * 40, 0.0), ([5] * 40, 1.0), ([2] * 40, 0.4)])
    def test_a_log_that_says_nothing_gives_every_document_its_click_rate(self, clicks: list[int], label: float) -> None:
        counts = Counts.from_arrays(np.arange(40), np.arange(40), [1] * 40, [5] * 40, clicks)
        assert MixtureCorrection().fit(counts).label(counts).relevance == pytest.approx(label, abs=1e-12)

    def test_documents_that_move_but_do_not_differ_all_get_the_click_rate(self) -> None:
        cells = moving_counts().cells()
        rng = np.random.default_rng(0)
        clicks = rng.binomial(cells["impressions"], 0.3 / cells["position"])
        counts = Counts.from_arrays(*({**cells, "clicks": clicks}).values())
        fit = MixtureCorrection().fit(counts)
        assert not fit.jointly
        assert fit.label(counts).relevance == pytest.approx(clicks.sum() / cells["impressions"].sum())

    def test_a_flat_prior_weighs_documents(self) -> None:
        sizes, shares = (400, 100), (0.1, 0.5)
        position = np.repeat([1, 2], sizes)
        relevant = np.concatenate([np.arange(n) < share * n for n, share in zip(sizes, shares, strict=True)])
        ids = np.arange(500)
        counts = Counts.from_arrays(ids, ids, position, np.full(500, 1000), np.where(relevant, 800, 100))
        for group in MixtureCorrection("binomial", "flat").fit(counts).groups:
            assert group.prior == pytest.approx((0.82, 0.18), abs=1e-4)

    def test_a_rare_context_does_not_come_between_neighbours(self) -> None:
        """It is read as the one with the most documents, wherever its name stands in the alphabet."""
        ids, rng = np.arange(2000), np.random.default_rng(5)
        position = 1 + ids % 4
        clicks = rng.binomial(50, np.where(rng.random(2000) < 0.3, 0.8, 0.2) / position)
        device = np.where((ids % 500 == 0) & (position == 1), "", "mobile").astype(object)
        fits = [
            MixtureCorrection().fit(Counts.from_arrays(ids // 4, ids, position, np.full(2000, 50), clicks, device=d))
            for d in (device, np.full(2000, "mobile", dtype=object))
        ]
        assert all(fit.shared for fit in fits)
        rates = [np.array([group.mixture.rates for group in fit.groups]) for fit in fits]
        assert rates[0] == pytest.approx(rates[1])
        firsts = [group.places[0].place for group in fits[0].groups]
        assert firsts == [Place(k, ("mobile",)) for k in range(1, 5)]
        assert [check.violation for check in fits[0].checks] == [check.violation for check in fits[1].checks]

    @pytest.mark.parametrize(
        ("contexts", "scale"), [(("a", "a\0", "b"), 1), (("", "\0"), 1), (tuple("abcdefgh"), 2**61)]
    )
    def test_every_document_has_a_label_whatever_its_place(self, contexts: tuple[str, ...], scale: int) -> None:
        ids = np.arange(3000)
        position = np.where(ids % 10 > 2, 1 + ids % 10, (1 + ids % 10) * scale)
        context = np.array([contexts[i // 10 % len(contexts)] for i in ids], dtype=object)
        clicks = np.random.default_rng(0).binomial(20, 0.3, 3000)
        counts = Counts.from_arrays(ids // 10, ids, position, np.full(3000, 20), clicks, layout=context)
        fit = MixtureCorrection().fit(counts)
        assert sum(len(group.places) for group in fit.groups) == 10 * len(contexts)
        assert fit.label(counts).doc_id.tolist() == ids.tolist()

    def test_small_positions_are_joined_to_the_one_above(self) -> None:
        log = simulated(eta=1, clicks=100_000, seed=0, queries=1000, positions=4).counts().cells()
        keep = (log["position"] < 4) | (log["query_id"] < 5)
        counts = Counts.from_arrays(*(column[keep] for column in log.values()))
        last = MixtureCorrection().fit(counts).groups[2]
        assert [seen.place.position for seen in last.places] == [3, 4]
        assert last.verdict(last.places[1]) is Verdict.TOO_FEW_DOCUMENTS
        assert last.verdict(last.places[0]) is last.mixture.verdict


class TestModelFiles:
    @pytest.mark.parametrize("mixture", ["auto", "binomial", "graded", "gaussian", "nonparametric"])
    @pytest.mark.parametrize("device", [False, True])
    def test_a_saved_model_is_the_same_model_and_gives_the_same_labels(
        self, mixture: str, device: bool, tmp_path: Path
    ) -> None:
        counts = moving_counts(device=device)
        fit = MixtureCorrection(mixture).fit(counts)
        fit.write(tmp_path / "model.json")
        read = MixtureFit.read(tmp_path / "model.json")
        assert read == fit
        assert (tmp_path / "model.json").read_text() == fit.to_json()
        assert (read.label(counts).relevance == fit.label(counts).relevance).all()


class TestDocumentsThatMove:
    def test_the_prior_goes_with_the_position_or_is_flat(self) -> None:
        counts, _, _ = spread(1, documents=4_000)
        by_position, flat = (MixtureCorrection("binomial", prior).fit(counts) for prior in ("position", "flat"))
        assert by_position.jointly
        assert by_position.groups[0].prior_relevance > 1.5 * by_position.groups[-1].prior_relevance
        assert np.ptp([group.prior for group in flat.groups], axis=0) == pytest.approx([0, 0], abs=1e-12)

    def test_as_many_grades_as_there_are(self) -> None:
        rng, documents = np.random.default_rng(0), 2_000
        grade = rng.choice(3, documents, p=[0.5, 0.3, 0.2])
        position = np.stack([1 + np.arange(documents) % 4, 2 + np.arange(documents) % 4], axis=1)
        clicks = rng.binomial(60, np.array([0.1, 0.4, 0.7])[grade][:, None] / position**0.5)
        ids = np.repeat(np.arange(documents), 2)
        counts = Counts.from_arrays(ids // 10, ids, position.ravel(), np.full(2 * documents, 60), clicks.ravel())
        fit = MixtureCorrection().fit(counts)
        assert (fit.jointly, fit.grades) == (True, 3)


def test_intervals_leave_out_a_fortieth_on_either_side() -> None:
    log = simulated(eta=1, clicks=20_000, seed=3, queries=300, relevance="graded")
    counts = log.counts()
    fit = MixtureCorrection("graded").fit(counts)
    labels = fit.label(counts)
    for i in range(0, len(labels), len(labels) // 60):
        made = fit.evidence(counts, labels.query_id[i], labels.doc_id[i])
        upto = np.cumsum(softmax([0.0, *made.log_odds]))
        ends = [float(np.argmax(upto > share)) / 4 for share in (0.025, 0.975)]
        low, high = min(ends[0], made.relevance), max(ends[1], made.relevance)
        assert (labels.columns["low"][i], labels.columns["high"][i]) == pytest.approx((low, high))
