"""The report on a log: its numbers are those of the log and the fit, whatever the log and the correction."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import clickmix as cm
from cascades import cascade
from clickmix import cli
from clickmix.engines.engine import embedded
from clickmix.groups.places import read_histogram
from clickmix.judging.changes import Moved
from clickmix.report import SECTIONS, Figure, Line, LogReport, Section, log_page, page_html
from clickmix.report.log_numbers import DOUBT, LEAST_MOVE, labels_at_hand, read_far_labels, read_label_bins, thinned
from clickmix.report.mixture_figures import chosen_groups, expected_documents, group_figures, label_curve
from clickmix.report.rows import percent
from commands import failure
from logs import small_log, write
from oracles_report import bin_of, expected_slowly, text
from simulation import simulated


@pytest.fixture(scope="module")
def counts() -> cm.Counts:
    return simulated(eta=1, clicks=30_000, seed=0, queries=400, positions=12).counts()


@pytest.fixture(scope="module")
def fit(counts: cm.Counts) -> cm.MixtureFit:
    return cm.MixtureCorrection().fit(counts)


def report(counts: cm.Counts, fitted: Any, *, correction: str = "mixture") -> str:
    return page_html(log_page(counts, fitted, sources=["log.csv"], correction=correction))


def numbers(components: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.floats(0.001, 0.999), min_size=components, max_size=components)


@given(numbers(3), numbers(3), st.lists(st.integers(1, 20), min_size=1, max_size=4), st.integers(1, 8))
@settings(deadline=None, max_examples=40)
def test_the_line_over_a_histogram_is_what_the_mixture_expects(
    shares: list[float], rates: list[float], impressions: list[int], bins: int
) -> None:
    weights = (np.array(shares) / sum(shares)).tolist()
    mixture = cm.Mixture("binomial", cm.Verdict.SEPARATED, tuple(weights), tuple(rates))
    edges = np.linspace(0, 0.8, bins + 1)
    found = expected_documents(mixture, np.array(impressions), np.ones(len(impressions)), edges)
    assert found == pytest.approx(np.array(expected_slowly(weights, rates, impressions, edges.tolist())), abs=1e-9)


def test_a_gaussian_mixture_expects_all_documents(counts: cm.Counts) -> None:
    mixture = cm.MixtureCorrection("gaussian").fit(counts).groups[3].mixture
    found = expected_documents(mixture, np.array([10, 20]), np.array([3.0, 4.0]), np.linspace(0, 0.5, 9))
    assert found.sum(axis=1) == pytest.approx(np.array(mixture.weights) * 7)


def test_the_bars_are_the_documents_of_the_log(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    cells = counts.cells()
    second = cells["position"] == 2
    rates = cells["clicks"][second] / cells["impressions"][second]
    bars = group_figures(fit, read_histogram(counts))[1].panels[0].marks[0]
    found = np.zeros(len(bars.heights))  # type: ignore[union-attr]
    for rate in rates:
        found[bin_of(rate, bars.edges)] += 1  # type: ignore[arg-type, union-attr]
    assert list(bars.heights) == found.tolist()  # type: ignore[union-attr]


def test_the_fit_is_drawn_over_the_whole_range(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    panels = [figure.panels[0] for figure in group_figures(fit, read_histogram(counts))]
    lines = [mark for panel in panels for mark in panel.marks if isinstance(mark, Line)]
    assert len(lines) == 2 * len(panels)
    assert np.isfinite([y for line in lines for y in line.y]).all()
    assert min(y for line in lines for y in line.y) == panels[0].y.low


@pytest.mark.parametrize("prior", ["position", "flat"])
@pytest.mark.parametrize("mixture", ["auto", "binomial", "gaussian", "nonparametric"])
def test_the_label_curve_gives_the_labels(counts: cm.Counts, mixture: str, prior: Any) -> None:
    fitted = cm.MixtureCorrection(mixture, prior).fit(counts)
    labels, at = fitted.label(counts), 5
    mine = labels.doc_id % 100 == at
    shown = int(np.median(labels.impressions[mine]))
    mine &= labels.impressions == shown
    rates, curve = label_curve(fitted, at - 1, shown, 1.0)
    found = dict(zip(np.round(rates * shown).astype(int).tolist(), curve.tolist(), strict=True))
    expected = dict(zip(labels.clicks[mine].tolist(), labels.relevance[mine].tolist(), strict=True))
    assert {clicks: found[clicks] for clicks in expected} == pytest.approx(expected, abs=1e-9)


def test_label_bins_are_those_of_the_labels(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    labels = fit.label(counts)
    with labels_at_hand(labels) as table:
        bins = read_label_bins(table)
    assert bins.labels.tolist() == np.histogram(labels.relevance, np.linspace(0, 1, 21))[0].tolist()
    rates = labels.clicks / labels.impressions
    assert bins.rates.tolist() == [int((np.minimum(np.floor(rates * 20), 19) == i).sum()) for i in range(20)]
    assert bins.mean == pytest.approx(labels.relevance.mean(), abs=1e-9)
    assert bins.interval == pytest.approx((labels.columns["high"] - labels.columns["low"]).mean())
    with labels_at_hand(cm.NoCorrection().label(counts)) as table:
        assert read_label_bins(table).interval is None


def test_far_labels_are_those_furthest_from_click_through_rates(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    labels = fit.label(counts)
    with labels_at_hand(labels) as table:
        down, up = read_far_labels(table)
    lowered = labels.clicks / (labels.impressions + DOUBT) - labels.relevance
    raised = labels.relevance - labels.clicks / labels.impressions
    assert [far.doc_id for far in down] == labels.doc_id[np.argsort(-lowered.round(6), kind="stable")[:5]].tolist()
    assert [far.doc_id for far in up] == labels.doc_id[np.argsort(-raised.round(6), kind="stable")[:5]].tolist()
    assert lowered.max() > LEAST_MOVE


@dataclass(frozen=True)
class WithIntervals:
    """A correction of another kind, whose labels have intervals."""

    def label(self, counts: cm.Counts) -> cm.Labels:
        rates = cm.NoCorrection().label(counts).sql
        return cm.Labels(
            counts, f"SELECT * REPLACE (1 - relevance AS relevance), 0.25 AS low, 0.5 AS high FROM ({rates})"
        )


def test_intervals_are_shown_where_a_correction_gives_them(counts: cm.Counts) -> None:
    shown = text(report(counts, WithIntervals(), correction="other"))
    assert "The interval of a label is 0.25 wide on average." in shown
    assert "1.00 (0.25 to 0.50)" in shown


def test_the_evidence_of_a_far_label_is_that_of_its_place(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    with labels_at_hand(fit.label(counts)) as table:
        down, _ = read_far_labels(table)
    position = down[0].doc_id % 100
    low, high = fit.groups[position - 1].mixture.rates
    shown = text(report(counts, fit))
    rate = down[0].clicks / down[0].impressions
    seen = f"Position {position}: {down[0].clicks} of {down[0].impressions}, {rate:.0%}."
    assert f"{seen} Usual there: {high:.0%} if relevant, {low:.0%} if not." in shown


def test_a_report_has_all_its_parts(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    page = log_page(counts, fit, sources=["log.csv"], correction="mixture")
    assert [(section.title, section.folded) for section in page.sections] == [
        ("Queries", False),
        ("Positions and rates", False),
        ("Checks", False),
        ("The labels", False),
        ("What was read", True),
        ("Position by position", True),
        ("Labels furthest from click-through rates", True),
        ("All places", True),
        ("What the words mean", False),
    ]
    impressions, clicks = counts.totals()
    assert dict(page.sections[4].facts) == {
        "impressions": f"{impressions:,}",
        "clicks": f"{clicks:,}",
        "click-through rate": percent(clicks / impressions),
        "queries": "400",
        "labels": "4,800",
        "positions": "12",
        "rows refused": "0",
    }
    assert all(figure.note for section in page.sections for figure in section.figures)


def test_the_banner_has_the_verdict_three_numbers_and_what_to_do_next(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    banner = log_page(counts, fit, sources=["log.csv"], correction="mixture").banner
    assert banner is not None
    labels = fit.label(counts).relevance
    assert banner.verdict == "These labels are trustworthy if the log meets the assumptions."
    assert banner.tone == "good"
    assert banner.next == "Train a ranker on these labels. Start with the queries that would gain most."
    assert [name for name, _ in banner.facts] == ["expected label error", "sure labels", "mean gain in DCG@10"]
    assert banner.facts[0][1] == f"{fit.error:.3f}"
    assert banner.facts[1][1] == percent(float(((labels < 0.1) | (labels >= 0.9)).mean()))


def test_date_command_and_version_are_shown_and_folders_are_not(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    command = ["clickmix", "debias", "/srv/secret/log.csv", "--engine=postgresql://me:pass@host/shop"]
    page = log_page(
        counts, fit, sources=["/srv/secret/log.csv"], correction="mixture", command=command, date="2026-11-16"
    )
    shown = text(page_html(page))
    assert "Date 2026-11-16 Log log.csv Command clickmix debias log.csv --engine=shop" in shown
    assert f"Made by clickmix {cm.__version__}." in shown
    assert not {"secret", "pass@", "host"} & set(re.split(r"[/:\s]", shown))


@pytest.fixture(scope="module")
def moved() -> Moved:
    return Moved(4790, 10, 7, 0.0123, 42, (("1", "101", 0.1, 0.9), ("rare", "x", 0.2, 0.7)))


def test_changes_since_the_previous_labels_come_first(counts: cm.Counts, fit: cm.MixtureFit, moved: Moved) -> None:
    page = log_page(counts, fit, sources=["log.csv"], correction="mixture", changes=moved, min_sessions=1)
    shown = text(page_html(page))
    assert page.sections[0].title == "What changed since the previous labels"
    assert (
        "4,790 documents had a label before and have one now. On average these labels changed by 0.012, 0.88% of"
        in shown
    )
    assert "moved by more than 0.1 42 new documents 10 documents gone 7" in shown
    hint = "To see what changed since the last labels, name their file with --previous."
    assert hint not in shown
    assert hint in text(page_html(log_page(counts, fit, sources=["log.csv"], correction="mixture")))
    assert "query document before now 1 101 0.10 0.90" in shown


def test_queries_that_may_not_be_shown_are_nowhere_in_the_page(moved: Moved) -> None:
    position = np.tile(np.arange(1, 5), 40)
    query = np.repeat([*(f"common {i}" for i in range(20)), *(f"private {i}" for i in range(20))], 4)
    shown = np.where(np.char.startswith(query, "private"), 9, 90)
    clicks = np.random.default_rng(0).binomial(shown, np.where(np.arange(160) % 3 == 0, 0.9, 0.2) / position)
    counts = cm.Counts.from_arrays(query, np.arange(160), position, shown, clicks)
    changes = replace(moved, furthest=(("private 3", "1", 0.1, 0.9), ("common 3", "1", 0.1, 0.8)))
    fitted = cm.MixtureCorrection().fit(counts)
    html = page_html(log_page(counts, fitted, sources=[], correction="mixture", changes=changes))
    assert "common 3" in html
    assert "private" not in html
    assert (
        "This file holds 20 of 40 queries, and for each query the 10 documents shown most near the top and the first "
        "10 by label. 20 are left out because their documents were shown fewer than 10 times on average: rare queries "
        "can be personal (--report-min-sessions)."
    ) in text(html)
    everything = log_page(counts, fitted, sources=[], correction="mixture", changes=changes, min_sessions=9)
    assert "private 3" in page_html(everything)


def test_moves_that_may_not_be_shown_are_said_to_be_hidden(counts: cm.Counts, fit: cm.MixtureFit, moved: Moved) -> None:
    told = "The labels that moved furthest are not shown: their queries are rare (--report-min-sessions)."
    pages = [
        text(page_html(log_page(counts, fit, sources=[], correction="mixture", changes=moved, min_sessions=least)))
        for least in (1, 1_000_000)
    ]
    assert [told in page for page in pages] == [False, True]


def test_gains_are_doubted_where_labels_are_not_to_be_used(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    far = cm.Check(cm.Violation.CASCADE, 31.0, 3.0, "Clicks fall", moved=0.3, far=0.5)
    doubted = text(report(counts, replace(fit, checks=(far,))))
    assert "Do not use these labels." in doubted
    told = "The verdict says not to use the labels, so do not rely on the gains either."
    assert told in doubted
    assert told not in text(report(counts, fit))
    assert '<details class="why" open>' in report(counts, replace(fit, checks=(far,)))


def test_checks_say_when_they_fail_and_what_was_not_checked(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    quiet = cm.Check(cm.Violation.RISING, 1.0, 3.0, "quiet", 0.0, 0.0)
    shown = text(report(counts, replace(fit, checks=(quiet,))))
    assert "a check fails if labels would change by 0.02 or more (root mean square)" in shown
    assert (
        "Not checked, because there are too few queries or positions: whether clicks depend on the documents above; "
        "whether a few queries are clicked far more than others."
    ) in shown


def test_click_through_rates_are_drawn_once_on_an_axis_that_shows_them(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    def figures(fitted: Any) -> list[Figure]:
        page = log_page(counts, fitted, sources=[], correction="mixture")
        (section,) = (section for section in page.sections if section.title == "Positions and rates")
        return list(section.figures)

    assert [figure.title for figure in figures(fit)] == [
        "Click rate of relevant and other documents",
        "How much clicks say about relevance",
    ]
    (alone,) = figures(cm.NoCorrection())
    assert alone.title == "Click-through rate by position"
    (panel,) = alone.panels
    assert panel.y.log
    lowest = min(rate for line in panel.marks if isinstance(line, Line) for rate in line.y)
    assert panel.y.low == pytest.approx(lowest / 1.5)


def test_a_minimum_of_no_sessions_is_refused(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    with pytest.raises(cm.SettingError, match=r"^report_min_sessions=0: expected a whole number from 1\.$"):
        log_page(counts, fit, sources=[], correction="mixture", min_sessions=0)


def test_the_command_refuses_it_before_it_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clickmix.cli.labels.count_log", lambda *_, **__: pytest.fail("counted first"))
    log = tmp_path / "log.csv"
    log.write_text("query_id,doc_id,position,clicked\nq,d,1,1\n")
    words = ["debias", str(log), "-o", str(tmp_path / "labels.csv"), "--report", str(tmp_path / "report.html")]
    found = failure(capsys, monkeypatch, *words, "--report-min-sessions", "0")
    assert found == "clickmix: report_min_sessions=0: expected a whole number from 1.\n"
    assert list(tmp_path.iterdir()) == [log]


class Toy:
    """A section between two of the package."""

    order = 35

    def section(self, report: LogReport) -> Section | None:
        """Nothing for logs of another name."""
        return Section("A toy", [f"Read from {report.sources[0]}."]) if report.sources == ("toy.csv",) else None


def test_a_section_from_outside_the_package_is_in_the_page_until_it_is_removed(
    counts: cm.Counts, fit: cm.MixtureFit
) -> None:
    SECTIONS.register("toy", help="A section of a test.")(Toy)
    try:
        page = log_page(counts, fit, sources=["toy.csv"], correction="mixture")
        without = log_page(counts, fit, sources=["log.csv"], correction="mixture")
        assert "toy" in SECTIONS.names()
    finally:
        SECTIONS.remove("toy")
    titles = [section.title for section in page.sections]
    assert titles[titles.index("A toy") - 1 :][:3] == ["Positions and rates", "A toy", "Checks"]
    assert "Read from toy.csv." in text(page_html(page))
    assert "A toy" not in [section.title for section in without.sections]
    assert "toy" not in SECTIONS.names()


@pytest.mark.parametrize("member", list(SECTIONS), ids=lambda member: member.name)
def test_every_section_has_a_help_and_a_place_of_its_own(member: Any) -> None:
    assert member.help.endswith(".")
    assert [other.name for other in SECTIONS if other.make().order == member.make().order] == [member.name]


@pytest.mark.parametrize(("mixture", "grades"), [("graded", 3), ("graded", 5), ("nonparametric", 21)])
def test_several_grades_are_described_as_grades(counts: cm.Counts, mixture: str, grades: int) -> None:
    fitted = cm.MixtureCorrection(mixture, grades=min(grades, 5)).fit(counts)
    shown = text(report(counts, fitted))
    assert f"how often documents of each of {grades} grades of relevance are clicked there" in shown
    assert ("fit: grade 2" in shown) == (grades == 3)
    assert (f"fit: {grades} grades together" in shown) == (grades > 4)
    assert "most relevant documents" in shown


def test_without_a_correction_there_are_no_mixtures_and_no_moves(counts: cm.Counts) -> None:
    shown = text(report(counts, cm.NoCorrection(), correction="none"))
    assert "The correction none fits no mixture, so there is no verdict on the log." in shown
    assert "No label is far from its document's click-through rate." in shown
    assert "Position by position" not in shown
    assert "Checks" not in shown


# positions, impressions and clicks
ODD_LOGS: dict[str, Any] = {
    "one impression": ([1], [1], [0]),
    "one click": ([1], [1], [1]),
    "no clicks": ([1, 2] * 40, [9] * 80, [0] * 80),
    "all clicked": ([1, 2] * 40, [9] * 80, [9] * 80),
    "one rate": ([1] * 60, [100] * 60, [10] * 60),
    "huge counts": ([1] * 60, [10**12] * 60, [10**11, 9 * 10**11] * 30),
    "far positions": (np.repeat([1, 10**9], 40), [50] * 80, [1, 30] * 40),
}


@pytest.mark.parametrize("name", ODD_LOGS)
@pytest.mark.parametrize("mixture", ["auto", "gaussian", "graded"])
def test_odd_logs_have_a_report_too(name: str, mixture: str) -> None:
    documents = np.arange(len(ODD_LOGS[name][0]))
    counts = cm.Counts.from_arrays(documents // 10, documents, *ODD_LOGS[name])
    html = report(counts, cm.MixtureCorrection(mixture).fit(counts))
    assert len(re.findall("<svg", html)) >= 4
    assert "nan" not in html.split("</style>")[1].lower()


def test_many_places_do_not_make_a_long_report_and_it_says_so() -> None:
    positions, devices = 40, [f"device {i}" for i in range(9)]
    position, device = np.tile(np.arange(1, positions + 1), 9 * 30), np.repeat(devices, positions * 30)
    clicks = np.random.default_rng(0).binomial(40, 0.5 / position)
    documents = np.arange(len(position))
    counts = cm.Counts.from_arrays(documents // 20, documents, position, [40] * len(position), clicks, device=device)
    fitted = cm.MixtureCorrection("binomial", sharing=False).fit(counts)
    html = report(counts, fitted)
    assert len(chosen_groups(fitted)) == 8
    assert len(re.findall("<svg", html)) == 8 + 1 + 4 + 2
    shown = text(html)
    assert "The figures show 8 of 360; for more, see all places." in shown
    assert "The figure shows the 6 contexts with the most impressions and leaves out 3." in shown
    assert "160 more places are in the model file." in shown
    assert len(html) < 5_000_000


def test_refused_rows_are_in_the_report(tmp_path: Path) -> None:
    table = small_log()
    table["position"][3] = 0
    log = write(tmp_path / "log.csv", table)
    counts = cm.count(log, bad_rows="skip")
    shown = text(report(counts, cm.MixtureCorrection().fit(counts)))
    assert "rows refused 1" in shown
    assert "position is not a positive whole number 1 log.csv, row 4, column 'position': '0'" in shown


@pytest.mark.parametrize("threads", [1, 3])
def test_the_same_log_gives_the_same_bytes(tmp_path: Path, threads: int) -> None:
    table = small_log(rows=3000)
    order = np.random.default_rng(threads).permutation(3000)
    shuffled = {key: [values[i] for i in order] for key, values in table.items()}
    counts = cm.count(write(tmp_path / "log.csv", shuffled), context=["device"])
    embedded(counts.engine, of="this test").run(f"SET threads = {threads}")
    first = cm.count(write(tmp_path / "first.csv", table), context=["device"])
    fits = [cm.MixtureCorrection().fit(each) for each in (first, counts)]
    assert report(first, fits[0]) == report(counts, fits[1])


@given(st.integers(1, 500), st.integers(2, 60))
def test_thinning_keeps_the_ends_and_the_order(count: int, most: int) -> None:
    chosen = list(thinned(count, most))
    assert (chosen[0], chosen[-1]) == (0, count - 1)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(count, most)


def run(*words: str) -> Any:
    return CliRunner().invoke(cli.app, words)


@pytest.mark.parametrize("correction", ["mixture", "none"])
def test_debias_writes_a_report_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, correction: str) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "log.csv", small_log())
    done = run("debias", "log.csv", "-o", "labels.csv", "--report", "report.html", "--correction", correction)
    assert done.stdout.endswith("Report: report.html (open it in a browser)\n")
    assert " Log log.csv Command " in text(Path("report.html").read_text(encoding="utf-8"))


FAILURES = [
    ("report.pdf", "report.pdf: a report is an HTML file. Expected a name ending in .html."),
    ("log.html", "log.html: would replace an input. Choose another name for the output."),
    ("no/report.html", "no/report.html: the folder no does not exist. Create it first, or choose another path."),
]


@pytest.mark.parametrize(("report_name", "message"), FAILURES)
def test_a_report_that_cannot_be_written_is_reported_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report_name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    log = write(tmp_path / "log.csv", small_log())
    (tmp_path / "log.html").symlink_to(log)
    done = run("debias", "log.csv", "-o", "labels.csv", "--report", report_name)
    assert str(done.exception) == message
    assert not Path("labels.csv").exists()


@pytest.mark.parametrize("examination", ["dcm", "ubm"])
def test_a_cascade_has_a_report_with_its_own_groups(examination: Any) -> None:
    """Its groups are patterns of what is above, not places of the log; labels that change at the end empty some."""
    counts = cascade(examination, queries=200, clicks=20_000, seed=5).counts()
    fitted = cm.MixtureCorrection(examination=examination).fit(counts)
    page = log_page(counts, fitted, sources=["log.csv"], correction="mixture")
    (groups,) = (section for section in page.sections if section.title == "Position by position")
    positions = [figure.title.split(", above ")[0] for figure in groups.figures]
    assert positions == [f"position {k}" for k in range(1, 11)]
    last = chosen_groups(fitted)[-1]
    seen = fitted.groups[last].places[0]
    gone = replace(fitted.groups[last], places=(replace(seen, place=seen.place._replace(context=("gone",))),))
    emptied = replace(fitted, groups=(*fitted.groups[:last], gone, *fitted.groups[last + 1 :]))
    assert len(group_figures(emptied, read_histogram(fitted.in_groups(counts)))) == 9
