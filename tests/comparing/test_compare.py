"""The comparison of corrections on one log: its answer where truth is known, its rows, its command and its page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import clickmix as cm
from clickmix.comparing.comparison import PRODUCTION, Comparison
from clickmix.comparing.contenders import ALWAYS
from clickmix.comparing.crossed import CROSSED
from clickmix.corrections.correction import CORRECTIONS
from clickmix.corrections.none import NoCorrection
from clickmix.counts.counts import Counts
from clickmix.errors import InputError, SettingError
from clickmix.registry import Option
from commands import failure, run
from judged_logs import exposed_log, first_queries, judged_log, shuffled
from logs import write

SIMPLE = ("ctr-smoothed",)  # beside those that always take part: all are quick


@pytest.fixture(scope="module")
def log() -> tuple[Counts, dict[str, Any]]:
    return judged_log(queries=1200)


@pytest.fixture(scope="module")
def small() -> tuple[Counts, dict[str, Any]]:
    return judged_log(queries=120)


@pytest.fixture(scope="module")
def meant(log: tuple[Counts, dict[str, Any]]) -> Comparison:
    """Clicks mean relevance, and the judgments say so."""
    counts, judgments = log
    found: Comparison = cm.compare(counts, judgments=pa.table(judgments), corrections=SIMPLE)
    return found


def test_clicks_that_mean_relevance(meant: Comparison) -> None:
    answer = meant.results.answer
    assert (answer.name, answer.more_queries) == ("yes", 0)
    assert answer.sentence.startswith(
        "Yes, clicks mean relevance here: labels order documents better than production ("
    )
    assert answer.best in ("coec", "coec-smoothed")  # position bias is undone, and production knows nothing
    assert meant.interval("coec-smoothed", "same_place").low > 0.7


def test_a_comparison_shows_itself_in_shells_and_notebooks(meant: Comparison) -> None:
    shown = repr(meant)
    assert shown.splitlines()[0].split()[:2] == ["labels", "by"]
    assert max(map(len, shown.split("\n\n")[0].splitlines()[:5])) <= 80
    html = meant._repr_html_()
    assert html.startswith("<table>")
    assert all(row.name in html for row in meant.rows)
    assert meant.results.sentences[0] in html


def test_judgments_that_have_nothing_to_do_with_clicks(log: tuple[Counts, dict[str, Any]]) -> None:
    counts, judgments = log
    answer = cm.compare(counts, judgments=pa.table(shuffled(judgments)), corrections=SIMPLE).results.answer
    assert answer.name == "unrelated"
    assert answer.sentence.startswith("These judgments have nothing to do with the clicks: at the same position labels")
    assert answer.more_queries == 0


def test_too_few_judgments_decide_nothing(log: tuple[Counts, dict[str, Any]]) -> None:
    counts, judgments = log
    few = cm.compare(counts, judgments=pa.table(first_queries(shuffled(judgments), 30)), corrections=SIMPLE)
    answer = few.results.answer
    assert answer.name == "undecided"
    assert answer.more_queries is None or answer.more_queries > 0
    assert any("more judged queries" in sentence for sentence in few.results.sentences)


def test_judged_queries_of_one_grade_decide_nothing(small: tuple[Counts, dict[str, Any]]) -> None:
    counts, judgments = small
    same = judgments | {"grade": np.ones(len(judgments["grade"]))}
    answer = cm.compare(counts, judgments=pa.table(same), corrections=SIMPLE).results.answer
    assert answer.name == "undecided"
    assert "0 judged queries with documents of different grades, and at least 20 are needed" in answer.sentence
    assert answer.more_queries == 50


def test_two_judged_queries_make_nothing_significant(small: tuple[Counts, dict[str, Any]]) -> None:
    counts, judgments = small
    found = cm.compare(counts, judgments=pa.table(first_queries(judgments, 2)), corrections=SIMPLE)
    assert found.results.answer.name == "undecided"
    assert {row["better"] for row in found.results.differences.json()} == {None}
    assert len(found.results.answer.as_good) == 5
    assert found.results.answer.use is None
    assert found.results.answer.advice.startswith("Too few queries to recommend one; ")


def gamma_log(shape: float, scale: float, *, seed: int) -> Counts:
    """Documents whose appeal has a gamma distribution, as smoothed COEC assumes."""
    rng, ids = np.random.default_rng(seed), np.arange(2_000)
    position = 1 + ids % 5
    clicks = rng.binomial(30, np.minimum(rng.gamma(shape, scale, len(ids)) / position**0.7, 1))
    return Counts.from_arrays(ids // 5, ids, position, np.full(len(ids), 30), clicks)


def test_it_may_say_to_use_smoothed_coec() -> None:
    answer = cm.compare(gamma_log(1.0, 0.05, seed=0), corrections=["mixture", *SIMPLE]).results.answer
    assert answer.use == "coec-smoothed"
    assert answer.advice.startswith("Use coec-smoothed: best at held-out clicks (perplexity 1.1236). Not significantly")


def test_a_simple_one_is_used_if_it_loses_less_than_a_standard_error() -> None:
    found = cm.compare(gamma_log(2.0, 0.02, seed=1), corrections=SIMPLE)
    answer, lost = found.results.answer, found.difference("coec-smoothed", "ctr-smoothed", "bits")
    assert 0 < lost.value < lost.spread
    assert (answer.best, answer.use) == ("ctr-smoothed", "coec-smoothed")
    assert answer.advice.startswith(
        "Use coec-smoothed (perplexity 1.1158): ctr-smoothed is best at held-out clicks (perplexity 1.1157), but "
        "coec-smoothed is simpler and loses less than one standard error."
    )
    assert "coec-smoothed" in answer.as_good
    assert answer.advice.endswith(" All others are significantly worse.")  # apart from the one to use


def test_production_order_is_kept_where_clicks_mean_nothing(log: tuple[Counts, dict[str, Any]]) -> None:
    counts, judgments = log
    found = cm.compare(counts, judgments=pa.table(shuffled(judgments)), corrections=SIMPLE)
    assert found.results.answer.use == PRODUCTION
    advice = found.results.answer.advice
    assert re.match(r"Keep production order: .* is best by judgments .*, but not significantly better\. ", advice)
    assert PRODUCTION not in advice.partition(" Not significantly worse")[2]


def test_the_queries_still_needed_are_about_right(log: tuple[Counts, dict[str, Any]]) -> None:
    """Grades that follow clicks a little: after so many more judged queries, the answer is given."""
    counts, judgments = log
    rng = np.random.default_rng(3)
    noisy = judgments | {
        "grade": np.where(rng.random(12_000) < 0.15, judgments["grade"], rng.permutation(judgments["grade"]))
    }
    few = cm.compare(counts, judgments=pa.table(first_queries(noisy, 60)), corrections=SIMPLE).results.answer
    assert few.name in ("undecided", "partly")
    assert few.more_queries is not None
    assert few.more_queries < 1140
    all_of_them = cm.compare(counts, judgments=pa.table(noisy), corrections=SIMPLE).results.answer
    assert all_of_them.name == "yes"


def test_simple_corrections_always_take_part(meant: Comparison) -> None:
    assert {row.name for row in meant.rows} == {PRODUCTION, *SIMPLE, *ALWAYS}


def test_every_correction_takes_part_or_says_why_not() -> None:
    counts, judgments = judged_log(queries=12)
    found = cm.compare(counts, judgments=pa.table(judgments))
    assert {*(row.name for row in found.rows), *(each.name for each in found.left_out)} == {
        PRODUCTION,
        CROSSED,
        *CORRECTIONS.names(),
    }
    reasons = {each.name: each.reason for each in found.left_out}
    assert reasons["ips"].startswith("ips needs theta of every position.")
    assert "mixture" not in reasons
    assert found.row("mixture").prediction is not None


@pytest.fixture(scope="module")
def exposed() -> tuple[Counts, dict[str, Any]]:
    return exposed_log()


def test_judgments_that_help_are_reported(exposed: tuple[Counts, dict[str, Any]]) -> None:
    """Documents that are shown more often are better, which clicks do not say."""
    counts, judgments = exposed
    found = cm.compare(counts, judgments=pa.table(judgments), corrections=("mixture",))
    assert found.results.answer.best == CROSSED
    assert found.difference(CROSSED, "mixture", "ndcg").low > 0
    (said,) = [each for each in found.results.sentences if each.startswith("Judgments ")]
    assert re.fullmatch(
        r"Judgments help: those of other queries make the mixture's labels better \(nDCG@10 \+0\.\d{3}, 95% interval "
        r"\+0\.\d{3} to \+0\.\d{3}\)\. Pass them to debias\.",
        said,
    )


def test_a_query_is_labelled_without_its_judgments(exposed: tuple[Counts, dict[str, Any]]) -> None:
    """Grades of one query that are turned round change labels of others, and not its own."""
    counts, judgments = exposed
    mine = judgments["query_id"] == 7
    turned = judgments | {"grade": np.where(mine, 1 - judgments["grade"], judgments["grade"])}
    one, other = (
        cm.compare(counts, judgments=pa.table(given), corrections=("mixture",)).row(CROSSED).relevance
        for given in (judgments, turned)
    )
    own = mine[np.lexsort((judgments["doc_id"].astype(str), judgments["query_id"].astype(str)))]
    assert one[own].tolist() == other[own].tolist()
    assert np.abs(one - other).max() > 1e-6


def test_random_judgments_do_not_help(small: tuple[Counts, dict[str, Any]]) -> None:
    counts, judgments = small
    found = cm.compare(counts, judgments=pa.table(shuffled(judgments)), corrections=("mixture",))
    assert found.row(CROSSED).relevance.tolist() == pytest.approx(found.row("mixture").relevance.tolist(), abs=1e-9)
    assert any(said.startswith("Judgments of other queries do not clearly") for said in found.results.sentences)


def test_few_judged_queries_leave_labels_with_judgments_out() -> None:
    counts, judgments = judged_log(queries=12)
    few = cm.compare(counts, judgments=pa.table(first_queries(judgments, 6)), corrections=("mixture",))
    assert [(each.name, each.reason) for each in few.left_out] == [
        (CROSSED, "at least 7 judged queries are needed, to learn from some and label the others.")
    ]


def test_held_out_clicks_alone(small: tuple[Counts, dict[str, Any]]) -> None:
    found = cm.compare(small[0], corrections=SIMPLE)
    assert found.results.answer.name == "clicks-only"
    assert found.results.answer.best == "coec-smoothed"
    assert "Only judgments can say" in str(found)
    assert found.measured("bits")[0] == "coec-smoothed"
    difference = found.difference("coec-smoothed", PRODUCTION, "bits")
    assert difference.high < 0


def test_the_truth_gives_the_error_of_labels(small: tuple[Counts, dict[str, Any]]) -> None:
    counts, judgments = small
    relevance = np.choose(judgments["grade"].astype(int), [0.1, 0.1, 0.4, 0.4, 0.9])
    truth = {"query_id": judgments["query_id"], "doc_id": judgments["doc_id"], "relevance": relevance}
    found = cm.compare(counts, truth=pa.table(truth), corrections=SIMPLE)
    labels = cm.debias(counts, correction="coec-smoothed")
    order = np.lexsort((labels.doc_id, labels.query_id))
    expected = np.sqrt(np.mean((labels.relevance[order] - relevance) ** 2))
    assert found.interval("coec-smoothed", "error").value == pytest.approx(expected)
    best = found.measured("error")[0]
    assert found.results.answer.sentence.startswith(f"Use {best}: closest to the truth (error 0.")


def test_labels_of_any_origin_are_one_more_row(small: tuple[Counts, dict[str, Any]], tmp_path: Path) -> None:
    """Labels of smoothed COEC, given as a file, are as good as in their own row; half of them are worse."""
    counts, judgments = small
    labels = cm.debias(counts, correction="coec-smoothed", clip="twenty")
    file = tmp_path / "mine.parquet"
    labels.write(file)
    half = pa.table({key: values[::2] for key, values in labels.columns.items()})
    found = cm.compare(counts, judgments=pa.table(judgments), labels=[str(file), half], corrections=SIMPLE)
    assert found.interval("labels: mine.parquet", "ndcg").value == pytest.approx(
        found.interval("coec-smoothed", "ndcg").value,
        abs=1e-3,  # clipped at 20, where the estimate is not
    )
    assert found.interval("labels", "ndcg").value < found.interval("coec-smoothed", "ndcg").value
    assert "labels: no label for 600 of the judged documents. They are put last." in found.notes


@dataclass(frozen=True)
class Featured(NoCorrection):
    """A correction that needs features."""

    features: Any = None

    def __post_init__(self) -> None:
        if self.features is None:
            raise SettingError("featured needs features.")


@pytest.fixture
def featured() -> Iterator[None]:
    CORRECTIONS.register("featured", help="Needs features.", options=(Option("features", "", type=Path),))(Featured)
    yield
    CORRECTIONS.remove("featured")


@pytest.mark.usefixtures("featured")
def test_features_add_corrections_that_need_them(small: tuple[Counts, dict[str, Any]]) -> None:
    without = cm.compare(small[0], corrections=("featured",))
    assert [each.name for each in without.left_out] == ["featured"]
    assert "featured" in {row.name for row in cm.compare(small[0], corrections=("featured",), features="f.csv").rows}


def test_a_log_with_contexts_is_compared_without_them_where_need_be() -> None:
    from moving_logs import moving_counts

    found = cm.compare(moving_counts(device=True), corrections=("ctr-smoothed", "mixture"))
    assert {row.name for row in found.rows} == {PRODUCTION, "mixture", *SIMPLE, *ALWAYS}


def test_the_same_seed_gives_the_same_figures(small: tuple[Counts, dict[str, Any]]) -> None:
    counts, judgments = small
    one, other = (
        _timeless(cm.compare(counts, judgments=pa.table(judgments), corrections=SIMPLE).results.json())
        for _ in range(2)
    )
    assert one == other


def _timeless(document: dict[str, Any]) -> dict[str, Any]:
    for row in document["corrections"]:
        row.pop("seconds")
    return document


def test_which_is_better_than_which(meant: Comparison) -> None:
    rows = {(row["first"], row["second"]): row for row in meant.results.differences.json()}
    assert len(rows) == 15  # pairs of six
    first = next(row for pair, row in rows.items() if set(pair) == {"coec-smoothed", PRODUCTION})
    assert first["better"] == "coec-smoothed"
    assert first["p"] <= 0.001
    beaten = {row["name"]: row["better_than"] for row in meant.results.side_by_side.json()}
    assert beaten[PRODUCTION] == 0
    assert beaten["coec-smoothed"] >= 3


def test_judgments_and_truth_together_are_refused(small: tuple[Counts, dict[str, Any]]) -> None:
    with pytest.raises(SettingError, match=r"compare: pass judgments or the truth, not both\."):
        cm.compare(small[0], judgments="a.csv", truth="b.csv")


def test_an_unknown_correction_is_refused(small: tuple[Counts, dict[str, Any]]) -> None:
    with pytest.raises(SettingError, match="correction 'magic': expected one of "):
        cm.compare(small[0], corrections=("magic",))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    counts, judgments = judged_log(queries=80)
    counts.write(tmp_path / "log.parquet")
    return tmp_path / "log.parquet", write(tmp_path / "judged.csv", {k: v.tolist() for k, v in judgments.items()})


def test_the_command(files: tuple[Path, Path], tmp_path: Path) -> None:
    log, judged = files
    words = ["compare", str(log), "--judgments", str(judged), "--corrections", "ctr-smoothed"]
    shown = run(*words, "-o", str(tmp_path / "compare.html"))
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("Yes, clicks mean relevance here")
    table = lines[lines.index("") + 1 :]
    assert table[0].split() == ["labels", "by", "nDCG@10", "AUC", "at", "position", "perplexity", "seconds"]
    assert max(map(len, table[:7])) <= 80
    assert "800 of 800 judged documents are in the log." in lines
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert "Do clicks mean relevance?" in page
    assert page.count("<svg") == 3
    assert str(tmp_path) not in page
    printed = json.loads(run(*words, "--json").stdout)
    run(*words, "-o", str(tmp_path / "compare.json"))
    assert _timeless(printed) == _timeless(json.loads((tmp_path / "compare.json").read_text()))
    assert printed["answer"] == "yes"
    assert printed["judged_documents"] == 800
    assert set(printed["corrections"][0]["ndcg"]) == {"value", "margin"}


@pytest.mark.parametrize(("output", "told"), [
    ([], "a report (-o compare.html) says why."),
    (["-o", "trec.html"], "trec.html says why."),
    (["-o", "trec.json"], "trec.json says why."),
])  # fmt: skip
def test_what_is_left_out(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: list[str], told: str
) -> None:
    """The command says why a correction that was named is left out; a report says it for the others."""
    monkeypatch.chdir(tmp_path)
    few = tmp_path / "few.csv"
    few.write_text("\n".join(files[1].read_text().splitlines()[:41]) + "\n")  # four queries
    words = ["compare", str(files[0]), "--judgments", str(few), "--corrections", "mixture,ips", *output]
    lines = run(*words).stdout.splitlines()
    assert (
        "ips is left out: ips needs theta of every position. Pass --parameters FILE (in Python parameters=...). "
        "compare passes no such options: make the labels with debias, and compare them with --labels."
    ) in lines
    assert f"Left out: {CROSSED}; {told}" in lines


def test_outputs_are_checked_before_any_work(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, judged = files
    words = ("compare", str(log), "--judgments", str(judged), "-o")
    assert "expected a name ending in .html, for a report, or .json." in failure(capsys, monkeypatch, *words, "x.pdf")
    html = judged.with_suffix(".html")
    html.write_text("query_id,doc_id,grade\n")
    replaced = failure(capsys, monkeypatch, "compare", str(log), "--judgments", str(html), "-o", str(html))
    assert re.search("would replace an input", replaced)


def test_a_failed_join_is_one_line(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, judged = files
    judged.write_text("query_id,doc_id,grade\nq1,d1,1\n")
    shown = failure(capsys, monkeypatch, "compare", str(log), "--judgments", str(judged))
    assert "none of the 1 judged documents is in the log" in shown
    assert len(shown.splitlines()) == 1


def test_counts_without_lists_leave_list_models_out(small: tuple[Counts, dict[str, Any]]) -> None:
    @dataclass(frozen=True)
    class NeedsLists(NoCorrection):
        needs_lists: bool = True

    CORRECTIONS.register("listed", help="Needs lists.")(NeedsLists)
    try:
        found = cm.compare(small[0], corrections=("listed",))
    finally:
        CORRECTIONS.remove("listed")
    assert [(each.name, each.reason) for each in found.left_out] == [
        ("listed", "these counts have no result lists, which this correction needs.")
    ]


def test_a_log_with_sessions_is_compared_by_session(tmp_path: Path) -> None:
    from session_logs import session_log

    found = cm.compare(str(write(tmp_path / "log.csv", session_log(sessions=400))), corrections=SIMPLE)
    assert (found.dealt, found.share) == ("sessions", 1.0)


@pytest.mark.parametrize("given", ["sessions", "lists", "contexts", "contexts, dealt by chance"])
def test_all_predict_the_same_clicks(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Result lists have more cells than counts without them, so a smaller sample is dealt; then one for all."""
    rng = np.random.default_rng(0)
    sessions, length = 3_000, 3
    order = np.argsort(rng.random((sessions, length)), axis=1)
    path = write(
        tmp_path / "log.parquet",
        {
            "session_id": np.repeat(np.arange(sessions), length).tolist(),
            "query_id": np.repeat(rng.integers(300, size=sessions), length).tolist(),
            "doc_id": order.ravel().tolist(),
            "position": np.tile(np.arange(1, length + 1), sessions).tolist(),
            "clicked": (rng.random(sessions * length) < 0.2 + 0.1 * order.ravel()).astype(int).tolist(),
            "device": np.repeat(np.where(rng.random(sessions) < 0.5, "tv", "web"), length).tolist(),
        },
    )
    if given == "lists":
        cm.count(path, lists="clicks").write(path := tmp_path / "lists.parquet")
    if given == "contexts, dealt by chance":
        monkeypatch.setattr("clickmix.groups.sample.names_sessions", lambda part: False)
    monkeypatch.setattr("clickmix.comparing.contenders.MOST_LIST_CELLS", 2_000)
    context = "device" if given.startswith("contexts") else ()
    found = cm.compare(path, context=context, corrections=["sdbn", "dcm", "ctr-smoothed"])
    assert found.share < 1
    predictions = [row.prediction for row in found.rows if row.prediction]
    assert len({tuple(prediction.impressions) for prediction in predictions}) == 1
    listed = {"sdbn", "dcm"} & {prediction.name for prediction in predictions}
    assert len(listed) == (0 if given == "contexts, dealt by chance" else 2)
    assert len(found.left_out) == 2 - len(listed)
    str(found)


def test_labels_that_are_none_are_refused_first(small: tuple[Counts, dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="these are not labels"):
        cm.compare(small[0], labels=[pa.table({"query_id": [1], "doc_id": [2]})])
