"""UBM, DCM, DBN and SDBN as corrections: against slow versions, files and days, bytes, click rates, refusals."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import clickmix as cm
from clickmix.corrections.click_models.clicked_lists import read_clicked_lists
from clickmix.corrections.click_rates import PlacedCells
from clickmix.corrections.correction import CORRECTIONS, Correction, Labels, needs_lists
from clickmix.corrections.dbn import DynamicBayesianFit, DynamicBayesianNetwork
from clickmix.corrections.dcm import DependentClickFit, DependentClickModel
from clickmix.corrections.empirical_bayes import fit_beta
from clickmix.corrections.sdbn import SimplifiedDynamicBayesianNetwork
from clickmix.corrections.ubm import UserBrowsingFit, UserBrowsingModel
from clickmix.counts.counts import Counts
from clickmix.errors import InputError, SettingError
from clickmix.groups.places import Place
from clickmix.lab.users import DependentClick, DynamicBayesian, UserBrowsing
from clickmix.lab.users.trust import Trust
from commands import failure, run
from logs import Table, part, write
from oracles_click_models import Session, browsing_em, last_click_shares, reading_em

MODELS: dict[str, Correction] = {
    "ubm": UserBrowsingModel(),
    "dcm": DependentClickModel(),
    "dbn": DynamicBayesianNetwork(tolerance=1e-12),
    "sdbn": SimplifiedDynamicBayesianNetwork(),
    "sdbn, examined": SimplifiedDynamicBayesianNetwork("examined"),
}
EXACT = 1e-15  # tolerance of EM, far below what the tests compare


def readers(*, sessions: int = 150, seed: int = 0, queries: int = 2, documents: int = 6) -> Table:
    """People who read lists of three or four documents, shuffled, from the top; half their clicks satisfy them."""
    rng = np.random.default_rng(seed)
    attraction = rng.uniform(0.2, 0.7, (queries, documents))
    rows = []
    for session in range(sessions):
        query, goes_on = int(rng.integers(queries)), True
        for k, d in enumerate(rng.permutation(documents)[: 3 + session % 2], 1):
            clicked = goes_on and rng.random() < attraction[query, d]
            goes_on = goes_on and rng.random() < (0.5 if clicked else 0.9)
            rows.append((f"query {query}", int(d), k, int(clicked), session))
    names = ("query_id", "doc_id", "position", "clicked", "session_id")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def sessions_of(log: Table) -> list[Session]:
    """The sessions of a log whose rows are in order, documents named with their query."""
    found: dict[Any, list[tuple[Any, bool]]] = {}
    for query, doc, clicked, session in zip(
        *(log[c] for c in ("query_id", "doc_id", "clicked", "session_id")), strict=True
    ):
        found.setdefault(session, []).append(((query, doc), bool(clicked)))
    return [tuple(session) for session in found.values()]


def counted(log: Table, folder: Path) -> Counts:
    return cm.count(write(folder / "log.parquet", log), lists="clicks")


def by_document(labels: Labels) -> dict[Any, float]:
    return dict(zip(zip(labels.query_id.tolist(), labels.doc_id.tolist(), strict=True), labels.relevance, strict=True))


class TestAgainstSlowVersions:
    def test_ubm_equals_the_published_em(self, tmp_path: Path) -> None:
        """EM creeps: after 2,000 steps it is within 1e-5 of the top, where nothing moves by more than 1e-8 a step."""
        log = readers(sessions=200, queries=1, documents=4)
        counts = counted(log, tmp_path)
        fit = UserBrowsingModel().fit(counts)
        attraction, examination = browsing_em(sessions_of(log), steps=2_000)
        top = max(examination.values())
        assert by_document(fit.label(counts)) == pytest.approx({d: a * top for d, a in attraction.items()}, abs=2e-4)
        for (k, j), g in examination.items():
            assert fit.examination[k - 1, j] == pytest.approx(g / top, abs=2e-4)

    def test_dcm_equals_em_over_all_that_may_have_been_examined(self, tmp_path: Path) -> None:
        log = readers(sessions=200, queries=1, documents=4)
        counts = counted(log, tmp_path)
        fit = DependentClickModel(tolerance=EXACT).fit(counts)
        attraction, going_on, _ = reading_em(sessions_of(log), lambda k, _: k, continuation=1.0, steps=500)
        assert fit.converged
        assert fit.going_on[:3] == pytest.approx([going_on[k] for k in (1, 2, 3)], abs=1e-6)
        assert by_document(fit.label(counts)) == pytest.approx(attraction, abs=1e-6)

    def test_dbn_equals_em_over_all_that_may_have_been_examined(self, tmp_path: Path) -> None:
        log = readers(sessions=300, seed=1, queries=1, documents=4)
        counts = counted(log, tmp_path)
        fit = DynamicBayesianNetwork(tolerance=EXACT, max_steps=20_000).fit(counts)
        attraction, wanting_more, continuation = reading_em(
            sessions_of(log), lambda _, d: d, continuation=None, steps=1_000
        )
        assert fit.converged
        assert fit.continuation == pytest.approx(continuation, abs=1e-4)
        expected = {d: a * (1 - wanting_more[d]) for d, a in attraction.items()}
        assert by_document(fit.label(counts)) == pytest.approx(expected, abs=1e-3)

    @pytest.mark.parametrize("abandoned", ["ignored", "examined"])
    def test_sdbn_equals_shares_counted_by_hand(self, abandoned: Any, tmp_path: Path) -> None:
        log = readers()
        counts = counted(log, tmp_path)
        shares = last_click_shares(sessions_of(log), abandoned=abandoned == "examined")
        n, c, last = (np.array(column) for column in zip(*shares.values(), strict=True))
        one = np.ones(len(n))
        a, s = fit_beta(n, c, one), fit_beta(c, last, one)
        expected = (c + a.mean * a.strength) / (n + a.strength) * (last + s.mean * s.strength) / (c + s.strength)
        labels = SimplifiedDynamicBayesianNetwork(abandoned).fit(counts).label(counts)
        assert by_document(labels) == pytest.approx(dict(zip(shares, expected, strict=True)), abs=1e-9)

    def test_a_hand_checked_log(self) -> None:
        """Two sessions saw a, b, c: one clicked a and b, the other nothing. A third saw b, a and clicked a."""
        log: Table = {
            "query_id": ["q"] * 8,
            "doc_id": ["a", "b", "c", "a", "b", "c", "b", "a"],
            "position": [1, 2, 3, 1, 2, 3, 1, 2],
            "clicked": [1, 1, 0, 0, 0, 0, 0, 1],
            "session_id": [1, 1, 1, 2, 2, 2, 3, 3],
        }
        assert last_click_shares(sessions_of(log), abandoned=False) == {
            ("q", "a"): (2, 2, 1), ("q", "b"): (2, 1, 1), ("q", "c"): (0, 0, 0),
        }  # fmt: skip
        counts = cm.count(_frame(log), lists="clicks")
        examined, clicks, last = SimplifiedDynamicBayesianNetwork().shares(
            read_clicked_lists(counts, correction="sdbn")
        )
        assert [examined.tolist(), clicks.tolist(), last.tolist()] == [[2, 2, 0], [2, 1, 0], [1, 1, 0]]
        cells, pairs = read_clicked_lists(counts, correction="ubm").browsing_cells()
        rows = zip(
            cells.doc_id[cells.document], pairs[cells.position].tolist(), cells.impressions, cells.clicks, strict=True
        )
        assert sorted((d, *pair, n, c) for d, pair, n, c in rows) == [
            ("a", 1, 0, 2, 1), ("a", 2, 0, 1, 1), ("b", 1, 0, 1, 0), ("b", 2, 0, 1, 0), ("b", 2, 1, 1, 1),
            ("c", 3, 0, 1, 0), ("c", 3, 2, 1, 0),
        ]  # fmt: skip


def _frame(log: Table) -> Any:
    import pyarrow as pa

    return pa.table(log)


@pytest.mark.parametrize("name", MODELS)
class TestContract:
    def test_one_row_per_document_in_order_between_0_and_1(self, name: str, tmp_path: Path) -> None:
        counts = counted(readers(), tmp_path)
        labels = MODELS[name].fit(counts).label(counts)
        cells = counts.cells()
        pairs = list(zip(labels.query_id.tolist(), labels.doc_id.tolist(), strict=True))
        assert pairs == sorted(set(zip(cells["query_id"].tolist(), cells["doc_id"].tolist(), strict=True)))
        assert ((labels.relevance >= 0) & (labels.relevance <= 1)).all()
        assert labels.impressions.sum() == cells["impressions"].sum()
        assert labels.clicks.sum() == cells["clicks"].sum()
        assert list(labels.columns)[5:] == ([] if name in ("dcm", "dbn") else ["low", "high"])

    def test_row_order_and_files_and_days_change_no_byte(self, name: str, tmp_path: Path) -> None:
        log = readers()
        rows = len(log["clicked"])
        half = next(i for i in range(rows // 2, rows) if log["session_id"][i] != log["session_id"][i - 1])
        for folder in "ab":
            (tmp_path / folder).mkdir()
        MODELS[name].fit(whole := counted(log, tmp_path)).label(whole).write(tmp_path / "expected.parquet")
        order = np.random.default_rng(1).permutation(rows)
        shuffled = {key: [values[i] for i in order] for key, values in log.items()}
        days = []
        for folder, day in (("a", part(log, 0, half)), ("b", part(log, half, rows))):
            counted(day, tmp_path / folder).write(tmp_path / folder / "lists.parquet")
            days.append(tmp_path / folder / "lists.parquet")
        for counts in (counted(shuffled, tmp_path / "a"), cm.count(days, lists="clicks")):
            MODELS[name].fit(counts).label(counts).write(tmp_path / "found.parquet")
            assert (tmp_path / "found.parquet").read_bytes() == (tmp_path / "expected.parquet").read_bytes()

    def test_names_do_not_matter(self, name: str, tmp_path: Path) -> None:
        log = readers()
        renamed = log | {"doc_id": [f"<d>{5 - d}" for d in log["doc_id"]]}
        one, other = (
            by_document(MODELS[name].fit(c).label(c))
            for c in (cm.count(_frame(t), lists="clicks") for t in (log, renamed))
        )
        assert {(q, f"<d>{5 - d}"): r for (q, d), r in one.items()} == pytest.approx(other, abs=1e-6)

    def test_another_log_is_labelled_with_what_was_learned(self, name: str, tmp_path: Path) -> None:
        """Its own counts, read again, give the labels of the fit."""
        log = readers()
        counts, again = counted(log, tmp_path), cm.count(_frame(log), lists="clicks")
        fit = MODELS[name].fit(counts)
        assert fit.label(again).relevance == pytest.approx(fit.label(counts).relevance, abs=1e-4)

    def test_a_log_without_clicks_has_labels(self, name: str) -> None:
        log = readers(sessions=20)
        counts = cm.count(_frame(log | {"clicked": [0] * len(log["clicked"])}), lists="clicks")
        if name == "ubm":  # nothing links its positions
            with pytest.raises(InputError, match=r"^Position\(s\) 2, 3, 4: fewer than 1 clicked documents link them"):
                MODELS[name].fit(counts)
        else:
            assert (MODELS[name].fit(counts).label(counts).relevance <= 0.5).all()

    def test_counts_without_lists_are_refused(self, name: str) -> None:
        counts = Counts.from_arrays([0, 0], [0, 1], [1, 2], [10, 10], [5, 1])
        short = name.split(",")[0]
        message = (
            f"{short} must know which clicks belong to one session, and these counts have no result lists. Count the "
            "raw log with clickmix counts --lists-by-clicks (in Python count(log, lists='clicks')); that needs its "
            "session_id."
        )
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            MODELS[name].fit(counts)

    def test_counts_that_mix_what_sessions_clicked_are_refused(self, name: str) -> None:
        log = {
            "query_id": [0] * 4, "doc_id": [0, 1, 0, 1], "position": [1, 2, 1, 2], "clicked": [1, 0, 0, 0],
            "session_id": [1, 1, 2, 2],
        }  # fmt: skip
        expected = "some sessions with the same list clicked position 1 of query 0 and others did not"
        with pytest.raises(InputError, match=expected):
            MODELS[name].fit(cm.count(_frame(log), lists=True))


def test_ubm_knows_nothing_of_pairs_that_showed_only_what_nobody_clicked() -> None:
    """c is always third and never clicked, so pair (3, 2) takes the mean of its position: (3, 0) and (3, 1)."""
    sessions = [("abc", "a"), ("bac", "b"), ("abc", "b"), ("bac", "a"), ("cab", "b"), ("bca", "ba"), ("abc", "")]
    rows = [
        ("q", doc, k, int(doc in clicked), session)
        for session, (page, clicked) in enumerate(sessions)
        for k, doc in enumerate(page, 1)
    ]
    names = ("query_id", "doc_id", "position", "clicked", "session_id")
    log: Table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    counts = cm.count(_frame(log), lists="clicks")
    fit = UserBrowsingModel().fit(counts)
    assert fit.examination[2, 2] == pytest.approx(fit.examination[2, :2].mean())
    assert by_document(fit.label(counts))["q", "c"] == 0


def test_the_family_says_what_it_needs() -> None:
    needed = {member.name: needs_lists(member.make()) for member in CORRECTIONS if not member.options}
    assert {name for name, lists in needed.items() if lists == "clicks"} == {"ubm", "dcm", "dbn"}
    assert needs_lists(CORRECTIONS.make("sdbn")) == "clicks"
    assert needs_lists(CORRECTIONS.make("pbm")) is False


def test_lists_by_clicks_are_lists_for_every_other_purpose(tmp_path: Path) -> None:
    log = readers()
    file = write(tmp_path / "log.parquet", log)
    plain, clicked = cm.count(file), cm.count(file, lists="clicks")
    assert {k: v.tolist() for k, v in plain.cells().items()} == {k: v.tolist() for k, v in clicked.cells().items()}
    settings = cm.MixtureCorrection("binomial", examination="dcm")
    one, other = (settings.fit(c).label(c).relevance for c in (cm.count(file, lists=True), clicked))
    assert one == pytest.approx(other, abs=1e-9)


def test_sdbn_intervals_hold_what_they_say(tmp_path: Path) -> None:
    """The interval is of one Beta with the product's mean and variance; the product itself is drawn here."""
    counts = counted(readers(sessions=400), tmp_path)
    fit = SimplifiedDynamicBayesianNetwork().fit(counts)
    labels = fit.label(counts)
    rng = np.random.default_rng(0)
    attraction, satisfaction = fit.posteriors(read_clicked_lists(counts, correction="sdbn"))
    draws = rng.beta(attraction.a, attraction.b, (4000, len(labels))) * rng.beta(
        satisfaction.a, satisfaction.b, (4000, len(labels))
    )
    inside = ((labels.columns["low"] <= draws) & (draws <= labels.columns["high"])).mean(axis=0)
    error = stats.norm.isf(1e-4) * (0.95 * 0.05 / 4000) ** 0.5
    assert (np.abs(inside - 0.95) < error + 0.01).all()  # 0.01: a product of Betas is nearly one


def test_an_unknown_way_to_take_abandoned_sessions_is_refused() -> None:
    with pytest.raises(SettingError, match=r"^abandoned 'left': expected one of ignored, examined\.$"):
        SimplifiedDynamicBayesianNetwork("left")  # type: ignore[arg-type]


class TestClickRates:
    """Of lists of three documents 0 to 5, whose shares are known well enough that spreads do not matter."""

    PLACES = tuple(Place(k) for k in (1, 2, 3))

    def cells(self, log: Table) -> tuple[PlacedCells, PlacedCells]:
        """All cells of a log, list by list, and the first session asked for again."""
        counts = cm.count(_frame(log), lists="clicks")
        found = counts.engine.fetch(counts.list_query())
        _, code = np.unique(found["list"].astype(str), return_inverse=True)
        order = np.lexsort((found["position"], code))
        columns = [found[c][order] for c in ("doc_id", "position", "impressions", "clicks")]
        document, place, n, c = (column.astype(np.int64) for column in columns)
        seen = PlacedCells(self.PLACES, np.zeros(6, int), document, place - 1, n * 1.0, c * 1.0, code[order])
        documents, places, lists = np.array([0, 1, 2, 5, 4]), np.array([0, 1, 2, 0, 1]), np.array([0, 0, 0, 7, 7])
        asked = PlacedCells(self.PLACES, np.zeros(6, int), documents, places, np.ones(5), np.zeros(5), lists)
        return seen, asked

    @pytest.fixture
    def log(self) -> Table:
        """Many sessions of one query: shares are precise."""
        rng = np.random.default_rng(5)
        rows = []
        attraction, satisfies = np.linspace(0.2, 0.7, 6), np.linspace(0.8, 0.3, 6)
        for session in range(6_000):
            goes_on = True
            for k, d in enumerate(rng.permutation(6)[:3], 1):
                clicked = goes_on and rng.random() < attraction[d]
                goes_on = goes_on and not (clicked and rng.random() < satisfies[d]) and rng.random() < 0.9
                rows.append((0, int(d), k, int(clicked), session))
        names = ("query_id", "doc_id", "position", "clicked", "session_id")
        return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))

    def asked_of_user(self, p: Any) -> list[float]:
        return [*p[0], *p[1][:2]]

    LISTS = np.array([[0, 1, 2], [5, 4, 0]])

    def test_dcm_predicts_as_its_users_click(self, log: Table) -> None:
        counts = cm.count(_frame(log), lists="clicks")
        fit = DependentClickModel().fit(counts)
        assert isinstance(fit, DependentClickFit)
        user = DependentClick(going_on=fit.going_on[:2], trust=Trust.perfect(3))
        expected = user.click_probabilities(fit.label(counts).relevance[self.LISTS])
        assert fit.click_rates(*self.cells(log)) == pytest.approx(self.asked_of_user(expected), rel=0.06)

    def test_ubm_predicts_as_its_users_click(self, log: Table) -> None:
        counts = cm.count(_frame(log), lists="clicks")
        fit = UserBrowsingModel().fit(counts)
        assert isinstance(fit, UserBrowsingFit)
        user = UserBrowsing(examination=fit.examination, trust=Trust.perfect(3))
        expected = user.click_probabilities(fit.label(counts).relevance[self.LISTS])
        assert fit.click_rates(*self.cells(log)) == pytest.approx(self.asked_of_user(expected), rel=0.06)

    def test_dbn_predicts_as_its_users_click(self, log: Table) -> None:
        counts = cm.count(_frame(log), lists="clicks")
        fit = DynamicBayesianNetwork().fit(counts)
        assert isinstance(fit, DynamicBayesianFit)
        user = DynamicBayesian(continuation=fit.continuation, trust=Trust.perfect(3))
        a = fit.reading.attraction
        s = fit.label(counts).relevance / a
        expected = user.click_probabilities(np.stack([a[self.LISTS], s[self.LISTS]]))
        assert fit.click_rates(*self.cells(log)) == pytest.approx(self.asked_of_user(expected), rel=0.06)

    def test_sdbn_predicts_as_its_users_click(self, log: Table) -> None:
        counts = cm.count(_frame(log), lists="clicks")
        fit = SimplifiedDynamicBayesianNetwork("examined").fit(counts)
        a, s = (posterior.mean for posterior in fit.posteriors(read_clicked_lists(counts, correction="sdbn")))
        user = DynamicBayesian(continuation=1.0, trust=Trust.perfect(3))
        expected = user.click_probabilities(np.stack([a[self.LISTS], s[self.LISTS]]))
        assert fit.click_rates(*self.cells(log)) == pytest.approx(self.asked_of_user(expected), abs=1e-12)


class TestCommands:
    def test_debias_reads_sessions_by_itself(self, tmp_path: Path) -> None:
        file = write(tmp_path / "log.csv", readers())
        done = run(
            "debias", str(file), "-o", f"{tmp_path}/labels.csv", "--correction", "sdbn", "--abandoned", "examined"
        )
        assert done.exit_code == 0, done.output
        assert (tmp_path / "labels.csv").read_text().startswith("query_id,doc_id,relevance,impressions,clicks,low,high")

    def test_counts_by_clicks_are_a_log(self, tmp_path: Path) -> None:
        file = write(tmp_path / "log.csv", readers())
        assert run("counts", str(file), "-o", f"{tmp_path}/lists.parquet", "--lists-by-clicks").exit_code == 0
        for log, labels in ((file, "a.csv"), (tmp_path / "lists.parquet", "b.csv")):
            assert run("debias", str(log), "-o", f"{tmp_path}/{labels}", "--correction", "dcm").exit_code == 0
        assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()

    def test_days_by_clicks_are_not_merged_with_days_by_list(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one = {"query_id": [0] * 2, "doc_id": [0] * 2, "position": [1] * 2, "clicked": [1, 0], "session_id": [1, 2]}
        file, counts = write(tmp_path / "log.csv", one), tmp_path / "counts.parquet"
        assert run("counts", str(file), "-o", str(counts), "--lists").exit_code == 0
        other = write(tmp_path / "other.csv", readers())
        assert failure(capsys, monkeypatch, "counts", str(other), "--merge", str(counts), "--lists-by-clicks") == (
            f"clickmix: --merge {counts}: was counted with --lists, but would now be merged with --lists-by-clicks. "
            "Run it with --lists, or write the counts to a new file with -o.\n"
        )

    def test_a_log_without_sessions_is_refused(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = readers(sessions=5)
        file = write(tmp_path / "log.csv", {key: values for key, values in log.items() if key != "session_id"})
        said = failure(capsys, monkeypatch, "debias", str(file), "-o", f"{tmp_path}/labels.csv", "--correction", "ubm")
        assert said.startswith(f"clickmix: {file}: missing 'session_id'.")
