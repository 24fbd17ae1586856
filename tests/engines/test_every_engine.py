"""The same log gives the same labels on DuckDB, PostgreSQL and Spark; only small results cross."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit, logit

import clickmix as cm
from clickmix.corrections.mixture_based import whole_log
from clickmix.counts.count import spelled_alike
from clickmix.engines.engine import ENGINES, choose_engine
from clickmix.errors import InputError
from clickmix.groups import sample as groups
from clickmix.judging import checks
from clickmix.judging.held_out import held_out_evidence, held_out_sentences
from clickmix.lab.users.logfile import read_sessions
from clickmix.report import log_page, write_page
from featured_logs import world
from logs import Table, cells, counted, small_log, write
from servers import Database

pytestmark = pytest.mark.xdist_group("engines")
Load = Callable[[Table], tuple[Any, Any]]


def load_postgres(request: pytest.FixtureRequest) -> Load:
    """Makes a table of the database."""
    database: Database = request.getfixturevalue("database")
    return lambda table: (database.create("clicks", table), choose_engine(database.address))


def load_spark(request: pytest.FixtureRequest) -> Load:
    """Makes a view of the session."""
    spark = request.getfixturevalue("spark")

    def frame(table: Table) -> tuple[Any, Any]:
        from pyspark.sql.types import LongType, StringType, StructField, StructType

        kinds = [LongType() if isinstance(values[0], int) else StringType() for values in table.values()]
        schema = StructType([StructField(key, kind) for key, kind in zip(table, kinds, strict=True)])
        rows = list(zip(*table.values(), strict=True))
        spark.createDataFrame(rows, schema).createOrReplaceTempView("clicks")
        return "clicks", spark

    return frame


LOADERS = {"postgres": load_postgres, "spark": load_spark}


@pytest.fixture(params=[member.name for member in ENGINES if not member.make().embedded])
def load(request: pytest.FixtureRequest) -> Load:
    """Puts a table into each engine that is not embedded: what to pass as log, and as engine."""
    return LOADERS[request.param](request)


def moving_log(*, rows: int = 6_000, documents: int = 300, text: bool = True) -> Table:
    """Documents that move between four positions, some relevant."""
    rng = np.random.default_rng(5)
    document, position = rng.integers(documents, size=rows), rng.integers(1, 5, size=rows)
    query = document % 40
    clicked = rng.random(rows) < np.where(document % 3 == 0, 0.8, 0.1) / position
    ids: tuple[list[Any], list[Any]] = (query.tolist(), document.tolist())
    if text:
        # Letters that languages sort otherwise than bytes do.
        ids = ([f"{'aAéz-'[q % 5]}{q}" for q in query], [f"{'bB _'[d % 4]}{d}" for d in document])
    return dict(
        zip(
            ("query_id", "doc_id", "position", "clicked"),
            (*ids, position.tolist(), clicked.astype(int).tolist()),
            strict=True,
        )
    )


def staying_log(*, rows: int = 4_000, documents: int = 300) -> Table:
    """Documents that are always shown at the same position."""
    table = moving_log(rows=rows, documents=documents)
    table["position"] = [1 + int(document[1:]) % 4 for document in table["doc_id"]]
    return table


LOGS = {
    "staying": staying_log(),
    "counted": counted(small_log(rows=2_000)),
    "moving, text ids": moving_log(),
    "moving, whole ids": moving_log(text=False),
}
PARAMETERS = cm.BiasParameters(np.array([0.7, 0.35, 0.25, 0.2]), np.array([0.1, 0.05, 0.03, 0.02]))
CASES: list[tuple[str, dict[str, Any]]] = [
    *((log, {}) for log in LOGS),
    ("moving, text ids", {"prior": "flat", "mixture": "graded"}),
    ("staying", {"mixture": "gaussian"}),
    ("staying", {"mixture": "nonparametric"}),
    ("staying", {"mixture": "auto"}),
    ("moving, text ids", {"mixture": "auto"}),
    ("moving, text ids", {"correction": "none"}),
    ("moving, text ids", {"correction": "coec"}),
    ("moving, whole ids", {"correction": "coec-best-position"}),
    ("moving, text ids", {"correction": "coec-smoothed"}),
    ("moving, text ids", {"correction": "ctr-smoothed"}),
    ("moving, whole ids", {"correction": "ctr-then-rank"}),
    ("moving, text ids", {"correction": "intervention"}),
    ("moving, text ids", {"correction": "affine", "parameters": PARAMETERS, "clip": "twenty"}),
    ("moving, text ids", {"correction": "ips", "parameters": [1.0, 0.5, 0.25, 0.125]}),
]


def assert_same_labels(labels: Any, expected: Any) -> None:
    """The same rows in the same order; relevance to 1e-9."""
    for column in ("query_id", "doc_id", "impressions", "clicks"):
        assert getattr(labels, column).tolist() == getattr(expected, column).tolist()
    assert list(labels.columns) == list(expected.columns)
    for column in list(expected.columns)[2:]:
        np.testing.assert_allclose(labels.columns[column], expected.columns[column], rtol=0, atol=1e-9)


@pytest.mark.parametrize(("log", "settings"), CASES)
def test_every_engine_gives_the_same_labels(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, settings: dict[str, Any]
) -> None:
    monkeypatch.setattr(groups, "LOOK_CELLS", 300)
    monkeypatch.setattr(groups, "SAMPLE_CELLS", 600)  # of about 1,200: the sample must be the same documents
    monkeypatch.setattr(whole_log, "FEW_CELLS", 500)
    name, engine = load(LOGS[log])
    expected = cm.debias(write(tmp_path / "log.parquet", LOGS[log]), **settings)
    assert_same_labels(cm.debias(name, engine=engine, **settings), expected)


def test_every_engine_gives_the_same_labels_where_queries_differ(load: Load, tmp_path: Path) -> None:
    """These come from numpy, a few queries at a time; ids stay in the engine."""
    fitted = cm.MixtureCorrection().fit(cm.count(write(tmp_path / "log.parquet", LOGS["moving, text ids"])))
    assert fitted.model is not None
    differing = replace(
        fitted, model=replace(fitted.model, attention="odds", shares=True, appeal=False, numbers=(-0.7, -0.5))
    )
    expected = differing.label(cm.count(tmp_path / "log.parquet"))
    name, engine = load(LOGS["moving, text ids"])
    assert_same_labels(differing.label(cm.count(name, engine=engine)), expected)


def differing_log(
    *,
    moving: float,
    attention: float = 0.0,
    relevant: tuple[float, ...] = (0.3,),
    appeal: float = 0.0,
    text: bool = True,
) -> Table:
    """Counts of 40 queries with six documents each.

    `moving` is the share of documents that are at two positions, and `attention` the deviation of the queries' log
    odds of a click. The queries take turns in their share of `relevant` documents. `appeal` is the correlation of
    clicks on documents of the same grade.
    """
    rng = np.random.default_rng(0)
    query, document = np.indices((40, 6)).reshape(2, -1)
    rates = np.where(rng.random(240) < np.resize(relevant, 40)[query], 0.7, 0.15)
    cell = np.append(np.arange(240), np.flatnonzero(rng.random(240) < moving))
    query, document, again = query[cell], document[cell], np.arange(len(cell)) >= 240
    position = 1 + (document + again) % 6
    rate = expit(logit(rates[cell] / np.sqrt(position)) + attention * rng.standard_normal(40)[query])
    if appeal:
        alike = 1 / appeal - 1
        rate = rng.beta(alike * rate, alike * (1 - rate))
    impressions = rng.integers(10, 60, len(cell))
    return {
        "query_id": [f"{'aAéz-'[q % 5]}{q}" for q in query] if text else query.tolist(),
        "doc_id": document.tolist(),
        "position": position.tolist(),
        "impressions": impressions.tolist(),
        "clicks": rng.binomial(impressions, rate).tolist(),
    }


DIFFERING = {
    "attention": differing_log(moving=0.7, attention=0.8),
    "shares": differing_log(moving=0.0, relevant=(0.02, 0.9), text=False),
    "appeal": differing_log(moving=0.7, appeal=0.1),
    "appeal, staying": differing_log(moving=0.0, appeal=0.3),
}


@pytest.mark.parametrize("log", DIFFERING)
def test_every_engine_gives_the_same_fit_and_labels_where_queries_or_documents_differ(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    """A fit is the same to the last digit: it has the same cells in the same order."""
    monkeypatch.setattr(groups, "SAMPLE_CELLS", 300)  # of about 400 where documents move
    name, engine = load(DIFFERING[log])
    counts = cm.count(write(tmp_path / "log.parquet", DIFFERING[log])), cm.count(name, engine=engine)
    expected, found = (cm.MixtureCorrection().fit(each) for each in counts)
    assert getattr(expected.model, log.split(",")[0])
    assert found.to_json() == expected.to_json()
    assert_same_labels(found.label(counts[1]), expected.label(counts[0]))


def test_every_engine_gives_the_same_labels_with_judgments(load: Load, tmp_path: Path) -> None:
    """Judged documents are sent to the engine, and found there by their ids as text."""
    log = LOGS["moving, text ids"]
    documents = sorted(set(zip(log["query_id"], log["doc_id"], strict=True)))[:200]
    queries, ids = ([pair[i] for pair in documents] for i in (0, 1))
    grades = [int(document[1:]) % 3 + (document[0] == "b") for document in ids]
    judged = write(tmp_path / "judged.csv", {"query_id": queries, "doc_id": ids, "grade": grades})
    expected = cm.debias(write(tmp_path / "log.parquet", log), judgments=judged)
    name, engine = load(log)
    assert_same_labels(cm.debias(name, engine=engine, judgments=judged), expected)


def _with_text_ids(table: Table) -> Table:
    return table | {name: [f"é{each}" for each in table[name]] for name in ("query_id", "doc_id")}


@pytest.mark.parametrize("text", [True, False], ids=["text ids", "whole ids"])
def test_every_engine_gives_the_same_labels_with_features(load: Load, tmp_path: Path, text: bool) -> None:
    """And with judgments: cells come here, labels go back, also those of documents that were never shown."""
    made = world(queries=80)
    query, document = np.indices(made.relevance[:40].shape).reshape(2, -1)
    grades = pa.table({"query_id": query, "doc_id": document, "grade": made.relevance[:40].ravel()})
    tables = (made.log.drop_columns(["device"]), made.features, grades)
    log, features, judged = (_with_text_ids(table.to_pydict()) if text else table.to_pydict() for table in tables)
    given: dict[str, Any] = {
        "features": write(tmp_path / "features.parquet", features),
        "judgments": write(tmp_path / "judged.parquet", judged),
    }
    expected = cm.debias(write(tmp_path / "log.parquet", log), mixture="binomial", **given)
    assert (expected.impressions == 0).any()
    name, engine = load(log)
    assert_same_labels(cm.debias(name, engine=engine, mixture="binomial", **given), expected)


def test_every_engine_gives_the_same_report(load: Load, tmp_path: Path) -> None:
    def report(log: Any, engine: Any) -> str:
        counts = cm.count(log, engine=engine)
        fitted = cm.MixtureCorrection().fit(counts)
        page = log_page(counts, fitted, sources=["clicks"], correction="mixture", min_sessions=1)
        write_page(page, tmp_path / "report.html")
        return (tmp_path / "report.html").read_text()

    expected = report(write(tmp_path / "log.parquet", LOGS["staying"]), None)
    assert '<tr class="query">' in expected
    assert report(*load(LOGS["staying"])) == expected


def test_every_engine_gives_the_same_evidence(load: Load, tmp_path: Path) -> None:
    """A log without sessions: impressions are dealt out of the counts, in the order of ids."""
    fit = cm.MixtureCorrection().fit(counts := cm.count(write(tmp_path / "log.parquet", LOGS["moving, text ids"])))
    name, engine = load(LOGS["moving, text ids"])
    expected, found = held_out_evidence(fit, counts), held_out_evidence(fit, cm.count(name, engine=engine))
    assert expected is not None
    assert found is not None
    assert list(held_out_sentences(found)) == list(held_out_sentences(expected))


def test_every_engine_gives_the_same_explanation(load: Load, tmp_path: Path) -> None:
    def explained(log: Any, engine: Any) -> cm.Explanation:
        counts = cm.count(log, engine=engine)
        fit = cm.MixtureCorrection().fit(counts)
        with pytest.raises(InputError, match=f"not in the log. Did you mean '{query}'"):
            cm.explain(counts, f"{query}x", fit=fit)
        return cm.explain(counts, query, doc, fit=fit)

    query, doc = LOGS["staying"]["query_id"][0], LOGS["staying"]["doc_id"][0]
    expected = explained(write(tmp_path / "log.parquet", LOGS["staying"]), None)
    assert repr(explained(*load(LOGS["staying"]))) == repr(expected)  # labels agree to some ten digits


def test_too_many_contexts_are_refused_before_any_of_them_crosses(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    table = staying_log()
    name, engine = load(table | {"session_id": [f"s{i}" for i in range(len(table["query_id"]))]})
    chosen = choose_engine(engine)
    monkeypatch.setattr(chosen, "fetch", lambda query: pytest.fail(f"crosses: {query}"))
    with pytest.raises(cm.InputError) as caught:
        cm.debias(name, engine=chosen, context=["session_id"])
    assert str(caught.value).startswith("context: session_id has 4,000 values, more than 1,000. ")


NEED_ALL_COUNTS: dict[str, Any] = {
    "plain-em": cm.PlainEM(),
    "oracle": cm.Oracle(["q"], ["d"], [1.0]),
}


@pytest.mark.parametrize("correction", NEED_ALL_COUNTS)
def test_what_needs_all_counts_here_says_so(load: Load, correction: str) -> None:
    name, engine = load(LOGS["staying"])
    counts = cm.count(name, engine=engine)
    with pytest.raises(cm.SettingError) as caught:
        NEED_ALL_COUNTS[correction].fit(counts).label(counts)
    assert str(caught.value) == (
        f"{correction} needs all of the log's counts or sessions on this machine, but they are in the engine. "
        "Download the counts or the log, and run it on the files without an engine."
    )


def test_result_lists_are_kept_on_this_machine(load: Load) -> None:
    name, engine = load(LOGS["staying"])
    with pytest.raises(cm.SettingError) as caught:
        cm.debias(name, engine=engine, examination="dcm")
    assert str(caught.value) == (
        "counting result lists separately needs all of the log's counts or sessions on this machine, but they "
        "are in the engine. Download the counts or the log, and run it on the files without an engine."
    )


def test_sessions_are_read_on_this_machine(spark: Any) -> None:
    with pytest.raises(cm.SettingError, match=r"^reading sessions needs all of the log's counts or sessions on this"):
        read_sessions(spark.createDataFrame([(1,)], "a int"))


def test_context_and_other_names(load: Load, tmp_path: Path) -> None:
    table = small_log(rows=1_000)
    table = {"Search Term": table.pop("query_id"), **table, "order": table.pop("device")}
    table["order"][5] = None
    settings: dict[str, Any] = {"columns": {"query_id": "Search Term"}, "context": ["order"]}
    name, engine = load(table)
    assert_same_labels(
        cm.debias(name, engine=engine, **settings), cm.debias(write(tmp_path / "log.parquet", table), **settings)
    )


# One query in capitals of two alphabets, with blanks of three kinds, and an accent of its own.
SPELLINGS: Table = {
    "query_id": [
        "\u00c9t\u00e9 \u0414\u0410",
        "\u00e9t\u00e9\u00a0\u0434\u0430",
        " E\u0301TE\u0301\t\u3000\u0434\u0430",
        "red",
        "Red",
        "Red",
    ],
    "doc_id": ["d"] * 6,
    "position": [1] * 6,
    "clicked": [1, 0, 1, 0, 1, 0],
}


def test_spellings_are_joined_and_reported_alike(load: Load, tmp_path: Path) -> None:
    name, engine = load(SPELLINGS)
    file = write(tmp_path / "log.parquet", SPELLINGS)
    for normalise in ("case,space,unicode", "case", "space", "unicode"):
        assert cells(cm.count(name, engine=engine, normalise=normalise)) == cells(cm.count(file, normalise=normalise))
    assert len(cells(cm.count(file, normalise="case,space,unicode"))) == 2
    counts = cm.count(name, engine=engine)
    assert spelled_alike(counts.engine, counts.table).startswith("5 queries become 2 if case, blanks and Unicode")


BAD: Table = {
    "query_id": ["q", None, "q", "q", "q", "q"],
    "doc_id": ["d", "d", None, "d", "d", "d"],
    "position": [1, 1, 1, 0, 1, 1],
    "clicked": [1, 1, 1, 1, 2, 0],
}


def test_bad_rows_are_named_by_their_key(load: Load) -> None:
    name, engine = load(BAD)
    with pytest.raises(cm.InputError) as caught:
        cm.count(name, engine=engine)
    assert str(caught.value) == (
        "table clicks, query missing, document d, position 1, column 'query_id': nothing: query_id is missing. In all, "
        "4 rows are bad. Fix the log, or skip bad rows with --bad-rows skip (in Python bad_rows='skip')."
    )


def test_bad_rows_are_left_out_and_counted_by_kind(load: Load, tmp_path: Path) -> None:
    name, engine = load(BAD)
    counts = cm.count(name, engine=engine, bad_rows="skip")
    expected = cm.count(write(tmp_path / "log.parquet", BAD), bad_rows="skip")
    assert cells(counts) == cells(expected) == [("q", "d", 1, 2, 1)]
    assert [(kind.reason, kind.rows) for kind in counts.refused] == [(k.reason, k.rows) for k in expected.refused]


TEXTS: Table = {
    "query_id": ["q"] * 7,
    "doc_id": ["d"] * 7,
    "position": ["1", "2.0", "+1", "1e3", "9223372036854775808", "٣", "0"],
    "clicked": ["1", "true", "1", "1", "1", "1", "1"],
}


def test_texts_are_judged_alike(load: Load, tmp_path: Path) -> None:
    name, engine = load(TEXTS)
    counts = cm.count(name, engine=engine, bad_rows="skip")
    assert cells(counts) == [("q", "d", 1, 1, 1), ("q", "d", 2, 1, 1)]
    assert [(kind.reason, kind.rows) for kind in counts.refused] == [("position is not a positive whole number", 5)]


def test_an_empty_log(load: Load) -> None:
    name, engine = load({key: values[1:2] for key, values in BAD.items()})
    with pytest.raises(cm.InputError) as caught:
        cm.count(name, engine=engine, bad_rows="skip")
    assert str(caught.value) == (
        "table clicks: no impression is left without the bad rows: query_id is missing (1). For instance "
        "table clicks, query missing, document d, position 1, column 'query_id': nothing. Fix the log."
    )


def test_a_missing_column(load: Load) -> None:
    name, engine = load({"query": ["q"], "doc_id": ["d"], "position": [1], "clicked": [1]})
    with pytest.raises(cm.InputError) as caught:
        cm.count(name, engine=engine)
    assert str(caught.value) == (
        "table clicks: missing 'query_id'. Found query, doc_id, position, clicked. `query` looks like "
        "query_id. If so, use --columns query_id=query (in Python columns={'query_id': 'query'})."
    )


@pytest.mark.parametrize(
    "log", [staying_log(rows=12_000, documents=2_000), moving_log()], ids=["staying", "moving, text ids"]
)
def test_only_small_results_cross(load: Load, monkeypatch: pytest.MonkeyPatch, log: Table) -> None:
    """Counting, fitting and writing labels bring over the histogram and a sample of queries.

    Where queries differ all cells come over, some at a time, so here they are alike.
    """
    monkeypatch.setattr(groups, "LOOK_CELLS", 100)
    monkeypatch.setattr(groups, "SAMPLE_CELLS", 200)
    monkeypatch.setattr(whole_log, "FEW_CELLS", 200)
    monkeypatch.setattr(checks, "LOOK_CELLS", 30)
    name, given = load(log)
    engine = choose_engine(given)
    crossed: list[int] = []
    fetch, rows = engine.fetch, engine.rows

    def watched_fetch(query: str) -> Any:
        crossed.append(len(next(iter((found := fetch(query)).values()))))
        return found

    def watched_rows(query: str) -> Any:
        crossed.append(len(found := rows(query)))
        return found

    monkeypatch.setattr(engine, "fetch", watched_fetch)
    monkeypatch.setattr(engine, "rows", watched_rows)
    counts = cm.count(name, engine=engine)
    written = cm.debias(counts, mixture="binomial").write("crossed")
    histogram = engine.rows(
        f"SELECT count(*) FROM (SELECT DISTINCT position, impressions, clicks FROM {counts.table})"
    )[0][0]
    samples = 100 + 200 + 40  # to look at, to fit and to check; with a few totals
    assert written == len(set(zip(log["query_id"], log["doc_id"], strict=True)))
    assert sum(crossed) < histogram + samples < len(cells(counts))


def test_memory_is_duckdbs(spark: Any, database: Database) -> None:
    with pytest.raises(cm.SettingError) as caught:
        cm.count("clicks", engine=database.address, memory="1GB")
    assert str(caught.value) == "memory '1GB': limits only the embedded DuckDB. PostgreSQL has its own settings."
    with pytest.raises(cm.SettingError) as caught:
        cm.count("clicks", engine=spark, memory="1GB")
    assert str(caught.value) == "memory '1GB': limits only the embedded DuckDB. Spark has its own settings."


def test_an_engine_nobody_knows() -> None:
    with pytest.raises(cm.SettingError) as caught:
        cm.count("clicks", engine="mysql://host")
    assert str(caught.value) == (
        "engine 'mysql://host': expected duckdb; postgresql://user@host/database; spark, or a Spark master such as "
        "local[2] or spark://host:7077."
    )
