"""Judgments weigh the evidence of clicks: recovery, fallback, judged documents, model files, commands, bad input."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import clickmix as cm
from clickmix.corrections.mixture_based.calibration import Calibration, DocumentEvidence, Scale, Weights, calibrate
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.corrections.mixture_based.judged import read_documents
from clickmix.counts.judgments import read_grades
from clickmix.errors import ClickmixError, FormatError
from clickmix.report.judgments import judgment_sentences
from clickmix.report.results import fit_sentences, verdict_result
from clickmix.storage.documents import read_versions
from commands import failure, run
from judged_logs import first_queries, judged_log, shuffled
from logs import write

TOP = 6


def simulated(
    *, queries: int = 400, seed: int = 0, answers: float = 0.0, looking: tuple[float, float] = (1.0, 1.0)
) -> tuple[cm.Counts, np.ndarray]:
    """Counts of users that the model describes, and what is relevant; a share of that answers on the page: no click.

    In each query a share of the sessions, drawn between two numbers, is `looking`; the others see nothing.
    """
    rng = np.random.default_rng(seed)
    position = np.arange(1, TOP + 1)
    relevant = rng.random((queries, TOP)) < 0.4
    clicked = relevant & (rng.random(relevant.shape) >= answers)
    shown = rng.poisson(30, relevant.shape) + 1
    rates = np.where(clicked, 0.6, 0.1) / np.sqrt(position)
    rates *= 1.0 if looking[0] == looking[1] else rng.uniform(*looking, (queries, 1))
    clicks = rng.binomial(shown, rates)
    query, document = np.indices(relevant.shape).reshape(2, -1)
    counts = cm.Counts.from_arrays(query, document, document + 1, shown.ravel(), clicks.ravel())
    return counts, relevant.astype(float)


def judged(grades: np.ndarray, queries: int) -> pa.Table:
    """The grades of the first queries."""
    query, document = np.indices(grades[:queries].shape).reshape(2, -1)
    return pa.table({"query_id": query, "doc_id": document, "grade": grades[:queries].ravel()})


def calibration_of(fit: MixtureFit) -> Calibration:
    assert fit.judged is not None
    return fit.judged.calibration


@pytest.fixture(scope="module")
def plain() -> tuple[cm.Counts, np.ndarray, MixtureFit]:
    counts, relevant = simulated()
    return counts, relevant, cm.MixtureCorrection(mixture="binomial").fit(counts)


def drawn(weights: tuple[float, ...], *, queries: int = 300, seed: int = 0) -> tuple[Any, ...]:
    """Documents whose three grades follow these weights of the evidence."""
    rng = np.random.default_rng(seed)
    prior, clicks, skips, exposure, position = rng.normal(0, 1.5, (5, queries * 10))
    attention = rng.gamma(4.0, 0.25, queries).repeat(10)
    columns = np.stack([prior, clicks, skips, exposure, position, skips * (attention - 1)], axis=1)
    odds = columns @ np.array(weights)
    step = (odds[:, None] + [1.0, -1.0] > rng.logistic(size=(len(odds), 1))).sum(axis=1)
    label = 1 / (1 + np.exp(-columns[:, :3].sum(axis=1)))
    grades = np.stack([1 - label, label], axis=1)
    low, high = np.zeros(len(label)), np.ones(len(label))
    documents = DocumentEvidence(prior, clicks, skips, exposure, position, attention, label, low, high, grades)
    return documents, step, np.repeat(np.arange(queries), 10), Scale.of(step.astype(float))


def in_order(weights: Weights) -> np.ndarray:
    return np.array([weights.prior, weights.click, weights.skip, weights.exposure, weights.position, weights.attention])


class TestCalibration:
    @pytest.mark.parametrize(
        "true",
        [
            (1.0, 1.0, 0.0, 0.0, 0.0, 0.0),
            (1.0, 0.3, -0.5, 0.8, 0.0, 0.0),
            (0.0, 1.0, 0.2, 0.0, -0.6, 0.0),
            (1.0, 1.0, 1.0, 0.0, 0.0, 1.0),
        ],
    )
    def test_weights_are_recovered(self, true: tuple[float, ...]) -> None:
        """Within 5 standard errors of a logistic model of one cut, which knows less than one of both."""
        documents, step, query, scale = drawn(true)
        found = calibrate(documents, step, query, scale)
        x = np.hstack([documents.columns, np.ones((len(step), 1))])
        p = 1 / (1 + np.exp(-(x @ [*true, 1.0])))
        errors = np.sqrt(np.diag(np.linalg.inv((x * (p * (1 - p))[:, None]).T @ x)))[:6]
        assert found.used == "weights"
        assert np.all(np.abs(in_order(found.weights) - true) < 5 * errors)

    def test_a_model_that_is_right_keeps_its_weights(self) -> None:
        """Its labels are probabilities of two grades, so the weights are 1, 1, 1, 0, 0, 0 and gain nothing."""
        documents, _, query, _ = drawn((1, 1, 1, 0, 0, 0))
        step = (np.random.default_rng(1).random(len(query)) < documents.relevance).astype(int)
        found = calibrate(documents, step, query, Scale(0.0, 1.0, (0.0, 1.0)))
        assert found.used == "nothing"
        assert found.related is not None
        assert found.related.clear

    @pytest.mark.parametrize("seed", range(5))
    def test_random_judgments_are_not_used(self, seed: int) -> None:
        documents, step, query, scale = drawn((1, 1, 1, 0, 0, 0), seed=seed)
        found = calibrate(documents, np.random.default_rng(seed).permutation(step), query, scale)
        assert found.used == "nothing"

    def test_few_queries_are_not_used(self) -> None:
        documents, step, query, scale = drawn((1, 0, 0, 0, 0, 0), queries=4)
        assert calibrate(documents, step, query, scale).used == "nothing"

    def test_of_very_many_documents_whole_queries_are_drawn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("clickmix.corrections.mixture_based.calibration.MOST_DOCUMENTS", 500)
        found = calibrate(*drawn((1, 0.3, -0.5, 0.8, -0.6, 0.4)))
        assert (found.used, found.queries, found.documents) == ("weights", 300, 3000)

    def test_the_best_weights_have_no_slope(self) -> None:
        """Of the penalised likelihood, tried by small steps: the climb ended at its top."""
        documents, step, query, scale = drawn((1, 0.3, -0.5, 0.8, -0.6, 0.4))
        by = calibrate(documents, step, query, scale).weights
        odds = documents.columns @ in_order(by)
        p = 1 / (1 + np.exp(-(odds[:, None] + np.array(by.cuts))))
        off = p - (step[:, None] >= [1, 2])
        assert np.abs(off.sum(axis=0)).max() < 0.01
        ridge = documents.columns.var(axis=0) * (in_order(by) - [1, 1, 1, 0, 0, 0])
        slopes = documents.columns.T @ off.sum(axis=1)
        ratios = -slopes / ridge  # the strength of the pull, the same for all
        assert ratios == pytest.approx(np.full(6, ratios[0]), rel=1e-2)


class TestScale:
    @pytest.mark.parametrize(
        ("grades", "lowest", "highest", "steps"),
        [
            ([0, 1, 1, 0], 0, 1, (0, 1)),
            ([-2] + [0] * 20 + [1] * 10 + [4], 0, 4, (0, 0.25, 1)),
            ([2.0] * 5 + [2.5] * 5, 2, 2.5, (0, 1)),
        ],
    )
    def test_grades_become_steps(
        self, grades: list[float], lowest: float, highest: float, steps: tuple[float, ...]
    ) -> None:
        """What is rarer than a tenth, and below, counts as the lowest common grade."""
        scale = Scale.of(np.array(grades, dtype=float))
        assert scale == Scale(lowest, highest, steps)
        assert scale.step(np.array([lowest - 5, lowest, highest])).tolist() == [0, 0, len(steps) - 1]

    def test_many_grades_become_eight_steps(self) -> None:
        scale = Scale.of(np.linspace(0, 100, 101))
        assert scale is not None
        assert scale.steps == tuple(np.linspace(0, 1, 8).tolist())
        assert scale.step(np.array([0, 7, 8, 100])).tolist() == [0, 0, 1, 7]


class TestLabels:
    def test_parts_add_up_to_the_label(self, plain: tuple[cm.Counts, np.ndarray, MixtureFit]) -> None:
        counts, _, fit = plain
        assert fit.model is not None
        for model in (fit.model, dataclasses.replace(fit.model, appeal=True, numbers=(2.0, 0.3))):
            *_, known = read_documents(model, counts, fit.number_of)
            odds = known.prior + known.clicks + known.skips
            assert 1 / (1 + np.exp(-odds)) == pytest.approx(known.relevance, abs=1e-9)
            assert (known.skips <= 0).all()

    def test_a_model_that_is_right_hardly_moves(self, plain: tuple[cm.Counts, np.ndarray, MixtureFit]) -> None:
        counts, relevant, fit = plain
        after = fit.with_judgments(counts, read_grades(judged(relevant, 60)))
        moved = (after.label(counts).relevance - fit.label(counts).relevance).reshape(relevant.shape)
        assert np.sqrt((moved[60:] ** 2).mean()) < 0.02

    def test_relevant_documents_that_answer_on_the_page(self) -> None:
        """Skips mean less than clicks alone suggest; judged queries show it, and labels are nearer to the truth."""
        counts, relevant = simulated(answers=0.5)
        before, after = (
            cm.debias(counts, mixture="binomial", judgments=given).relevance.reshape(relevant.shape)[60:]
            for given in (None, judged(relevant, 60))
        )
        errors = [np.sqrt(((labels - relevant[60:]) ** 2).mean()) for labels in (before, after)]
        assert errors[1] < 0.9 * errors[0]

    def test_the_verdict_says_that_it_is_about_clicks_if_judgments_change_labels(self) -> None:
        counts, relevant = simulated(answers=0.5)
        fit = cm.MixtureCorrection("binomial").fit(counts)
        used, unused = (
            fit.with_judgments(counts, read_grades(given))
            for given in (judged(relevant, 60), pa.table(first_queries(shuffled(judged_log(queries=150)[1]), 60)))
        )
        assert (calibration_of(used).used, calibration_of(unused).used) == ("meaning", "nothing")
        told = verdict_result(cm.judge(used))
        assert told.sentence.startswith("From clicks alone: ")
        assert "clickmix compare LOG --judgments FILE" in told.next
        assert "Judgments changed these labels, too." in told.evidence[0]
        assert verdict_result(cm.judge(unused)) == verdict_result(cm.judge(fit))

    def test_one_judged_query_is_said_in_the_singular(self) -> None:
        counts, grades = judged_log(queries=150)
        one = pa.table(first_queries(grades, 1))
        after = cm.MixtureCorrection("binomial").fit(counts).with_judgments(counts, read_grades(one))
        assert after.judged is not None
        assert " documents of 1 query: too few to weigh evidence" in judgment_sentences(after.judged)[0]

    def test_random_judgments_leave_other_labels_alone(self) -> None:
        counts, grades = judged_log(queries=150)
        given = first_queries(shuffled(grades), 60)
        fit = cm.MixtureCorrection().fit(counts)
        after = fit.with_judgments(counts, read_grades(pa.table(given)))
        assert calibration_of(after).used == "nothing"
        others = after.label(counts).query_id >= 60
        expected = fit.label(counts)
        for column in ("relevance", "low", "high"):
            assert after.label(counts).columns[column][others] == pytest.approx(
                expected.columns[column][others], abs=1e-9
            )
        assert any(sentence.startswith("Clicks say nothing clear") for sentence in fit_sentences(after))

    def test_what_is_not_used_changes_no_label_where_queries_differ(self) -> None:
        counts, relevant = simulated(queries=150)
        fit = cm.MixtureCorrection().fit(counts)
        assert fit.model is not None
        wide = dataclasses.replace(
            fit.model, attention="examination", shares=True, appeal=False, numbers=(-0.5, 1.0, -0.5)
        )
        differ = dataclasses.replace(fit, model=wide)
        random = np.random.default_rng(2).permutation(relevant.ravel()).reshape(relevant.shape)
        after = differ.with_judgments(counts, read_grades(judged(random, 60)))
        assert calibration_of(after).used == "nothing"
        assert after.label(counts).relevance[60 * TOP :] == pytest.approx(
            differ.label(counts).relevance[60 * TOP :], abs=1e-9
        )

    @pytest.mark.parametrize("seed", range(3))
    def test_skips_say_less_in_queries_whose_sessions_look_less(self, seed: int) -> None:
        """The binomial mixture takes queries to be alike; 100 judged ones show that they are not."""
        counts, relevant = simulated(queries=600, seed=seed, looking=(0.05, 0.95))
        fit = cm.MixtureCorrection(mixture="binomial").fit(counts)
        after = fit.with_judgments(counts, read_grades(judged(relevant, 100)))
        assert calibration_of(after).used == "weights"
        assert calibration_of(after).weights.attention > 0.2
        errors = [
            np.sqrt(((labels.relevance.reshape(relevant.shape) - relevant)[100:] ** 2).mean())
            for labels in (fit.label(counts), after.label(counts))
        ]
        assert errors[1] < 0.95 * errors[0]

    def test_moving_documents_with_grades_use_the_judges_scale(self) -> None:
        counts, grades = judged_log(queries=150)
        after = cm.MixtureCorrection(judgments=pa.table(first_queries(grades, 60))).fit(counts)
        labels = after.label(counts)
        assert calibration_of(after).scale == Scale(0.0, 4.0, (0.0, 0.5, 1.0))
        truth = grades["grade"][np.lexsort((grades["doc_id"], grades["query_id"]))] / 4
        others = labels.query_id >= 60
        plain = cm.debias(counts)
        error, without = (float(((each.relevance - truth)[others] ** 2).mean()) for each in (labels, plain))
        assert error < without
        inside = (labels.low <= truth) & (truth <= labels.high)
        assert inside[others].mean() > 0.93

    def test_a_judgment_is_strong_evidence_and_no_law(self, plain: tuple[cm.Counts, np.ndarray, MixtureFit]) -> None:
        counts, relevant, fit = plain
        before = fit.label(counts)
        wrong = relevant.copy()
        sure = np.flatnonzero(before.relevance[: 60 * TOP] > 0.9999)[0]
        wrong[:60].ravel()[sure] = 0.0  # against all clicks
        after = fit.with_judgments(counts, read_grades(judged(wrong, 60))).label(counts)
        assert after.relevance[sure] > 0.5
        assert (after.low[sure], after.high[sure]) == (0, 1) or after.relevance[sure] > 0.975
        unsure = np.flatnonzero(np.abs(before.relevance[: 60 * TOP] - 0.5) < 0.2)
        grades = wrong[:60].ravel()[unsure]
        assert np.abs(after.relevance[unsure] - grades).max() < 0.25
        assert (after.high - after.low)[unsure].mean() < (before.high - before.low)[unsure].mean()

    @pytest.mark.parametrize(
        "effects",
        [
            {"attention": "odds", "shares": True, "appeal": False, "numbers": (-0.7, -0.5)},
            {"attention": "examination", "shares": False, "appeal": True, "numbers": (-0.7, 1.0, 2.0, 0.3)},
        ],
    )
    def test_where_queries_differ(
        self, plain: tuple[cm.Counts, np.ndarray, MixtureFit], effects: dict[str, Any]
    ) -> None:
        counts, relevant, fit = plain
        assert fit.model is not None
        differ = dataclasses.replace(fit, model=dataclasses.replace(fit.model, **effects))
        after = differ.with_judgments(counts, read_grades(judged(relevant, 60)))
        labels = after.label(counts)
        assert np.isfinite(labels.relevance).all()
        assert ((labels.low <= labels.relevance) & (labels.relevance <= labels.high)).all()

    def test_contexts(self) -> None:
        rng = np.random.default_rng(3)
        rows = 20_000
        document = rng.integers(600, size=rows)
        position, phone = document % 4 + 1, rng.random(rows) < 0.5
        clicked = rng.random(rows) < np.where(document % 3 == 0, 0.6, 0.1) / np.where(phone, position, 1)
        log = pa.table(
            {
                "query_id": document // 10,
                "doc_id": document,
                "position": position,
                "clicked": clicked.astype(int),
                "device": np.where(phone, "phone", "desk"),
            }
        )
        ids = np.arange(300)
        given = pa.table({"query_id": ids // 10, "doc_id": ids, "grade": (ids % 3 == 0).astype(int)})
        labels = cm.debias(cm.count(log, context="device"), judgments=given)
        relevant = labels.doc_id % 3 == 0
        assert labels.relevance[relevant].mean() > 0.8 > 0.2 > labels.relevance[~relevant].mean()


@pytest.fixture(scope="module")
def fit(plain: tuple[cm.Counts, np.ndarray, MixtureFit]) -> MixtureFit:
    counts, relevant, fit = plain
    return fit.with_judgments(counts, read_grades(judged(relevant, 60)))


class TestModelFile:
    def test_round_trip(self, fit: MixtureFit, tmp_path: Path, plain: tuple[cm.Counts, np.ndarray, MixtureFit]) -> None:
        fit.write(tmp_path / "model.json")
        again = MixtureFit.read(tmp_path / "model.json")
        assert again == fit
        assert again.label(plain[0]).relevance.tolist() == fit.label(plain[0]).relevance.tolist()

    def test_older_readers_refuse_it(self, fit: MixtureFit, tmp_path: Path) -> None:
        fit.write(tmp_path / "model.json")
        with pytest.raises(FormatError, match="format version 4; this clickmix reads 2, 3"):
            read_versions(tmp_path / "model.json", kind="clickmix model", versions=(2, 3))

    @pytest.mark.parametrize(
        ("path", "value", "problem"),
        [
            (("steps",), [0], "judged.steps: expected a query, a document and a step for each judgment"),
            (("calibration", "weights", "cuts"), [], "judged.calibration.weights.cuts: expected a descending number"),
            (
                ("calibration", "meaning", "shares"),
                [[0.5, 0.6], [0.5, 0.5]],
                "judged.calibration.meaning.shares[0]: expected a share for each step, adding up to 1",
            ),
            (("calibration", "scale", "steps"), [0.0, 0.0], "judged.calibration.scale.steps: expected ascending"),
            (("calibration", "used"), "all", "judged.calibration.used: found 'all', expected one of nothing, meaning"),
        ],
    )
    def test_a_damaged_one_is_refused(
        self, fit: MixtureFit, tmp_path: Path, path: tuple[str, ...], value: Any, problem: str
    ) -> None:
        from clickmix.storage.documents import write_document

        payload = json.loads(fit.to_json())["payload"]
        inside = payload["judged"]
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = value
        write_document(tmp_path / "model.json", kind="clickmix model", version=4, payload=payload)
        with pytest.raises(FormatError, match=re.escape(problem)):
            MixtureFit.read(tmp_path / "model.json")

    def test_another_log_gets_the_calibration_and_no_judgment_but_by_id(self, fit: MixtureFit) -> None:
        """Clicks of other queries: judged ids are not there. The same query and document: there they are."""
        assert fit.judged is not None
        counts = cm.Counts.from_arrays(["0", "new"], ["0", "0"], [1, 1], [30, 30], [9, 9])
        labels = fit.label(counts)
        step = fit.judged.steps[fit.judged.queries.index("0")]
        seen, new = labels.relevance
        assert seen > new if step else seen <= new

    def test_no_sql_statement(self, fit: MixtureFit) -> None:
        with pytest.raises(cm.SettingError, match=r"^a model with judgments cannot be written as one SQL statement"):
            fit.statement("counts")


WHOLE = "judgments: only one model of the whole log can be weighed by them."
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"correction": "coec"}, "the option judgments belongs to the correction mixture, not to coec. Leave it out."),
    ({"mixture": "gaussian"}, f"{WHOLE} Use the mixture auto, binomial or graded instead of gaussian, or leave"),
    ({"examination": "dcm"}, f"{WHOLE} Use the examination pbm instead of dcm, or leave the judgments out."),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_what_judgments_do_not_go_with(settings: dict[str, Any], message: str) -> None:
    counts, relevant = simulated(queries=20)
    with pytest.raises(cm.SettingError, match=f"^{re.escape(message)}"):
        cm.debias(counts, judgments=judged(relevant, 5), **settings)


def test_judgments_of_positions_that_share_nothing() -> None:
    with pytest.raises(cm.SettingError) as caught:
        cm.MixtureCorrection(sharing=False, judgments="judged.csv")
    assert str(caught.value) == f"{WHOLE} Use sharing=True, or leave the judgments out."


def test_clicks_that_say_nothing_cannot_be_weighed() -> None:
    counts = cm.Counts.from_arrays(np.arange(40), np.arange(40), [1] * 40, [5] * 40, [0] * 40)
    given = pa.table({"query_id": [1, 2], "doc_id": [1, 2], "grade": [0, 1]})
    with pytest.raises(ClickmixError, match="clicks of this log say nothing about relevance"):
        cm.debias(counts, judgments=given)


BAD: list[tuple[dict[str, list[Any]], str]] = [
    (
        {"query_id": ["x", "y"], "doc_id": ["a", "b"], "grade": [0, 1]},
        "judged.csv: none of the 2 judged documents is in the log. For instance, query 'x', document 'a' is judged; "
        "the log has query '0', document '0'. Check that both use the same ids.",
    ),
    (
        {"query_id": [0, 0], "doc_id": [0, 0], "grade": [0, 1]},
        "judged.csv: query '0', document '0' has two grades, 0 and 1.",
    ),
    (
        {"query_id": [0, 1], "doc_id": [0, 0], "grade": [2, 2]},
        "judged.csv: all 2 judged documents have the grade 2. Judgments say something only if grades differ",
    ),
    ({"query_id": [0], "doc_id": [0], "grade": ["nan"]}, "judged.csv: query '0', document '0', grade 'nan' is not"),
    ({"query_id": [0], "doc_id": [0]}, "judged.csv: no column 'grade'. Found query_id, doc_id."),
]


class TestCommands:
    @pytest.fixture
    def log(self, plain: tuple[cm.Counts, np.ndarray, MixtureFit], tmp_path: Path) -> Path:
        plain[0].write(tmp_path / "counts.parquet")
        return tmp_path / "counts.parquet"

    def test_debias_fit_and_label(
        self, plain: tuple[cm.Counts, np.ndarray, MixtureFit], log: Path, tmp_path: Path
    ) -> None:
        given = write(tmp_path / "judged.csv", judged(plain[1], 60).to_pydict())
        both = ["--mixture", "binomial", "--judgments", str(given)]
        labels, labelled = tmp_path / "labels.csv", tmp_path / "labelled.csv"
        done = run("debias", str(log), "-o", str(labels), *both, "--json")
        assert done.exit_code == 0
        assert json.loads(done.stdout)["judgments"]["queries"] == 60
        fitted = run("fit", str(log), "-o", str(tmp_path / "model.json"), *both)
        assert "Judgments: 360 documents of 60 queries" in fitted.stdout
        again = run("label", str(log), "--model", str(tmp_path / "model.json"), "-o", str(labelled))
        assert again.exit_code == 0
        assert labelled.read_bytes() == labels.read_bytes()
        expected = cm.debias(log, mixture="binomial", judgments=given)
        assert len(labels.read_text().splitlines()) == len(expected.relevance) + 1

    def test_explain_inspect_and_report(
        self, plain: tuple[cm.Counts, np.ndarray, MixtureFit], fit: MixtureFit, log: Path, tmp_path: Path
    ) -> None:
        given = write(tmp_path / "judged.csv", judged(plain[1], 60).to_pydict())
        report, model = tmp_path / "report.html", tmp_path / "model.json"
        both = ["--mixture", "binomial", "--judgments", str(given)]
        done = run("debias", str(log), "-o", str(tmp_path / "labels.csv"), *both, "--report", str(report))
        assert done.exit_code == 0
        assert "Judgments: 360 documents of 60 queries" in report.read_text()
        fit.write(model)
        assert "Judgments: 360 documents of 60 queries" in run("inspect", str(model)).stdout
        explained = run("explain", str(log), "--query", "3", "--doc", "2", "--model", str(model))
        assert (
            f"Judged: {plain[1][3, 2]:.2f} on the judges' scale. The label mainly follows this judgment."
            in explained.stdout
        )
        assert "Judged:" not in run("explain", str(log), "--query", "99", "--doc", "2", "--model", str(model)).stdout

    @pytest.mark.parametrize(("table", "message"), BAD)
    def test_bad_judgments_are_one_line(
        self,
        log: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        table: dict[str, list[Any]],
        message: str,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        write(tmp_path / "judged.csv", table)
        said = failure(capsys, monkeypatch, "debias", str(log), "-o", "labels.csv", "--judgments", "judged.csv")
        assert said.startswith(f"clickmix: {message}")
        assert said.count("\n") == 1
        assert not (tmp_path / "labels.csv").exists()

    def test_labels_never_replace_the_judgments(
        self, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given = write(tmp_path / "judged.csv", {"query_id": [0, 1], "doc_id": [0, 0], "grade": [0, 1]})
        said = failure(capsys, monkeypatch, "debias", str(log), "-o", str(given), "--judgments", str(given))
        assert "judged.csv" in said
        assert given.read_text().startswith("query_id,doc_id,grade")
