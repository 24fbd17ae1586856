"""Statements for warehouses: they parse in their dialect, and translated back they give the labels of `debias`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import clickmix as cm
from clickmix import cli
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.engines.dialects import DIALECTS
from clickmix.groups.places import Place
from clickmix.mixtures.mixture import Group, Mixture, PlaceCounts, Verdict
from commands import failure
from logs import Table, count_slowly, csv_text, small_log, write

sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed: pip install 'clickmix[sql]'")

GOLDEN = Path(__file__).parents[1] / "golden"
LOG = small_log(rows=4_000)
# Types that hold more than any of DuckDB's: BigQuery's and Redshift's widest.
WIDER = {"BIGNUMERIC": "DECIMAL(38, 12)", "VARCHAR(MAX)": "VARCHAR"}


def group(position: int, device: str, rates: tuple[float, ...], prior: tuple[float, ...]) -> Group:
    """A group of one place with numbers that anybody can check."""
    place = PlaceCounts(Place(position, (device,)), documents=100, impressions=1_000, clicks=100)
    return Group((place,), Mixture("binomial", Verdict.SEPARATED, prior, rates), prior)


FIT = MixtureFit(
    "binomial",
    "position",
    ("device",),
    (
        group(1, "mobile", (0.125, 0.25, 0.5), (0.5, 0.25, 0.25)),
        group(3, "mobile", (0.0625, 0.125, 0.25), (0.5, 0.25, 0.25)),
        group(1, "it's", (0.25, 0.25, 0.25), (0.25, 0.5, 0.25)),
    ),
    jointly=False,
    moving=0.0,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> str:
    result = CliRunner().invoke(cli.app, words, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def execute(statement: str, dialect: str, **tables: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run a statement of a dialect in DuckDB, after translation back."""
    connection = duckdb.connect()
    for name, table in tables.items():
        columns = {key: np.array(values) for key, values in table.items()}
        connection.register("given", columns)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    for wide, known in WIDER.items():
        statement = statement.replace(wide, known)
    (translated,) = sqlglot.transpile(statement, read=dialect, write="duckdb")
    return connection.execute(translated).fetchall()


def counts_table(counts: cm.Counts) -> Table:
    return {key: values.tolist() for key, values in counts.cells().items()}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statements_are_those_on_file(folder: Path, dialect: str) -> None:
    """A change of any printed statement shows here.

    `PYTHONPATH=tests/helpers python tests/export/test_sql.py` writes the files again.
    """
    FIT.write("model.json")
    assert statements(dialect) == (GOLDEN / f"{dialect}.sql").read_text(encoding="utf-8")


def statements(dialect: str) -> str:
    """All statements of a dialect, with a context and a column of another name."""
    named = ("--dialect", dialect, "--columns", "doc_id=order")
    return ";\n".join(
        [
            run("sql", "counts", *named, "--table", "shop.Clicks", "--context", "device"),
            run("sql", "refused", *named, "--table", "shop.Clicks"),
            run("sql", "histogram", "--dialect", dialect, "--context", "device"),
            run("sql", "labels", "--dialect", dialect, "--model", "model.json"),
        ]
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statements_parse_in_their_dialect(dialect: str) -> None:
    text = (GOLDEN / f"{dialect}.sql").read_text(encoding="utf-8")
    trees = sqlglot.parse(text, read=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    assert len([tree for tree in trees if tree is not None]) == 4
    # What is printed is already in the dialect's own words.
    assert not any(tree.find(sqlglot.exp.Command, sqlglot.exp.Anonymous) for tree in trees if tree is not None)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("statement", ["counts", "refused", "histogram", "labels"])
def test_statements_can_stand_in_brackets(folder: Path, statement: str, dialect: str) -> None:
    """As dbt puts them: create table ... as (...)."""
    FIT.write("model.json")
    model = ["--model", "model.json"] if statement == "labels" else []
    printed = run("sql", statement, "--dialect", dialect, *model)
    assert ";" not in printed
    (tree,) = sqlglot.parse(f"CREATE TABLE made AS (\n{printed})", read=dialect)
    assert isinstance(tree, sqlglot.exp.Create)


@pytest.fixture(scope="module", params=["auto", "gaussian"])
def fitted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Table, list[Any]]:
    """A model file, the counts it was fitted to, and the labels that debias gives."""
    made = tmp_path_factory.mktemp("fitted")
    counts = cm.count(write(made / "log.parquet", LOG), context=["device"])
    fit = cm.MixtureCorrection(request.param).fit(counts)
    fit.write(made / "model.json")
    return (
        made / "model.json",
        counts_table(counts),
        counts.engine.rows(f"{fit.label(counts).sql} ORDER BY query_id, doc_id"),
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_labels_are_those_of_debias(fitted: tuple[Path, Table, list[Any]], dialect: str) -> None:
    model, counts, expected = fitted
    found = execute(run("sql", "labels", "--dialect", dialect, "--model", str(model)), dialect, counts=counts)
    assert [row[:2] + row[3:5] for row in found] == [row[:2] + row[3:5] for row in expected]
    np.testing.assert_allclose(
        [[row[2], *row[5:]] for row in found], [[row[2], *row[5:]] for row in expected], rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("clicked", [int, bool])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_counts_are_those_of_count(folder: Path, dialect: str, clicked: type) -> None:
    table = LOG | {"clicked": [clicked(value) for value in LOG["clicked"]]}
    statement = run("sql", "counts", "--dialect", dialect, "--context", "device")
    assert sorted(execute(statement, dialect, clicks=table)) == count_slowly(LOG, ["device"])


BAD = {"query_id": ["q", "q", "q", "q"], "doc_id": ["d"] * 4, "position": [1, 0, 1, -1], "clicked": [1, 1, 2, 1]}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_refused_rows_are_left_out_and_counted(folder: Path, dialect: str) -> None:
    assert execute(run("sql", "counts", "--dialect", dialect), dialect, clicks=BAD) == [("q", "d", 1, 1, 1)]
    assert execute(run("sql", "refused", "--dialect", dialect), dialect, clicks=BAD) == [
        ("clicked is neither 0 nor 1", 1),
        ("position is not a positive whole number", 2),
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_histograms_are_those_of_the_fit(dialect: str) -> None:
    counts = cm.Counts.from_arrays(["q"] * 4, ["a", "a", "b", "c"], [1, 2, 1, 1], [5, 5, 5, 3], [2, 2, 2, 0])
    found = execute(run("sql", "histogram", "--dialect", dialect), dialect, counts=counts_table(counts))
    assert found == [(1, 3, 0, 1, 0, 0), (1, 5, 2, 2, 1, 0), (2, 5, 2, 1, 0, 1)]


def test_a_fit_to_the_histogram_is_the_fit_to_the_counts(folder: Path) -> None:
    """Where documents stay, and every place is fitted by itself or queries are alike; downloaded as CSV."""
    write(folder / "log.parquet", LOG | {"position": [1 + document % 4 for document in LOG["doc_id"]]})
    download_histogram(cm.count("log.parquet"))
    for mixture in ("gaussian", "binomial"):
        run("fit", "log.parquet", "--mixture", mixture, "-o", "counts.json")
        run("fit", "histogram.csv", "--mixture", mixture, "-o", "histogram.json")
        fits = [cm.MixtureFit.read(name) for name in ("counts.json", "histogram.json")]
        rates = [[group.mixture.rates for group in fit.groups] for fit in fits]
        assert np.array(rates[0]) == pytest.approx(np.array(rates[1]), rel=1e-3)


def download_histogram(counts: cm.Counts) -> None:
    """What a warehouse would give for the printed statement, as histogram.csv."""
    rows = execute(run("sql", "histogram", "--dialect", "duckdb"), "duckdb", counts=counts_table(counts))
    names = ("position", "impressions", "clicks", "documents", "moving", "again")
    Path("histogram.csv").write_text(csv_text(dict(zip(names, zip(*rows, strict=True), strict=True))))


def test_positions_that_the_fit_has_not_seen_take_the_nearest(folder: Path) -> None:
    FIT.write("model.json")
    table: Table = {"query_id": ["q"] * 4, "doc_id": ["a", "b", "c", "d"], "position": [1, 2, 3, 9]}
    table |= {"device": ["mobile"] * 4, "impressions": [10] * 4, "clicks": [5] * 4}
    found = execute(run("sql", "labels", "--dialect", "trino", "--model", "model.json"), "trino", counts=table)
    first, second, third, ninth = (row[2] for row in found)
    assert (first, third) == (second, ninth)
    assert first != third
    counts = cm.Counts.from_arrays(
        table["query_id"],
        table["doc_id"],
        table["position"],
        table["impressions"],
        table["clicks"],
        device=table["device"],
    )
    np.testing.assert_allclose([row[2] for row in found], FIT.label(counts).relevance, rtol=0, atol=1e-12)


def fit_of(places: list[tuple[int, str]]) -> MixtureFit:
    """A fit with a group for each place, no two alike."""
    share = 1 / (len(places) + 2)
    groups = (group(p, c, (0.1, 0.2 + i * share / 2, 0.9), (0.5, 0.25, 0.25)) for i, (p, c) in enumerate(places))
    return MixtureFit("binomial", "position", ("device",), tuple(groups), jointly=False, moving=0.0)


PLACES = st.lists(st.tuples(st.integers(1, 30), st.sampled_from(["a", "b"])), min_size=1, max_size=8, unique=True)


@settings(max_examples=40, deadline=None)
@given(PLACES)
def test_every_position_gets_the_label_of_the_fit(places: list[tuple[int, str]]) -> None:
    fit = fit_of(places)
    contexts = sorted({context for _, context in places})
    rows = [(position, context) for position in range(1, 35) for context in contexts]
    positions, devices = zip(*rows, strict=True)
    size = len(rows)
    counts = cm.Counts.from_arrays(
        ["q"] * size, list(range(size)), positions, [10] * size, [4] * size, device=list(devices)
    )
    found = counts.engine.rows(fit.statement(counts.table))
    assert found == counts.engine.rows(f"{fit.label(counts).sql} ORDER BY query_id, doc_id")


def test_a_stray_position_does_not_make_the_statement_long() -> None:
    near = fit_of([(position, "a") for position in range(1, 11)])
    far = fit_of([(position, "a") for position in (*range(1, 11), 20_000)])
    assert "least(position, 10) AS position" in near.statement("counts")
    assert (
        "CASE WHEN position < 10006 THEN least(position, 10) ELSE least(position, 10006) END AS position"
        in far.statement("counts")
    )
    assert len(far.statement("counts")) < 1.2 * len(near.statement("counts"))


def test_a_histogram_of_documents_that_move_says_so(folder: Path) -> None:
    download_histogram(cm.count(write(folder / "log.parquet", LOG)))
    assert run("fit", "histogram.csv", "-o", "model.json").startswith(
        "100% of documents are at several places; a histogram does not show which. Fit counts instead.\n"
    )


SETTINGS = [
    (
        ["sql", "labels", "--dialect", "duckdb"],
        "labels need --model, and only labels take it: clickmix sql labels --model model.json.",
    ),
    (
        ["sql", "counts", "--dialect", "cobol"],
        "dialect 'cobol': expected one of bigquery, clickhouse, databricks, duckdb, postgres, redshift, snowflake, "
        "spark, trino.",
    ),
    (
        ["sql", "counts", "--dialect", "duckdb", "--columns", "foo=bar"],
        "columns: a click log has no 'foo'. Expected query_id or doc_id or position or clicked or session_id or "
        "impressions or clicks or list or doc_ids or positions or clicked_ids or clicked_positions.",
    ),
    (
        ["sql", "refused", "--dialect", "duckdb", "--columns", "impressions=shown"],
        "columns: this statement does not read 'impressions'. It is for raw logs: query_id, doc_id, position, clicked.",
    ),
    (
        ["sql", "counts", "--dialect", "duckdb", "--context", "query_id"],
        "context 'query_id': given twice, or means something else in a log. Use another name.",
    ),
    (
        ["sql", "histogram", "--dialect", "duckdb", "--context", "device,device"],
        "context 'device': given twice, or means something else in a log. Use another name.",
    ),
    (
        ["sql", "histogram", "--dialect", "duckdb", "--columns", "doc_id=sku"],
        "--columns: a histogram is made from counts, whose columns have clickmix's own names. Leave it out.",
    ),
    (
        ["sql", "labels", "--dialect", "duckdb", "--model", "model.json", "--columns", "doc_id=sku"],
        "--columns: labels are made from counts, whose columns have clickmix's own names. Leave it out.",
    ),
    (
        ["sql", "labels", "--dialect", "duckdb", "--model", "model.json", "--context", "device"],
        "--context: labels use the context of the model. Leave it out.",
    ),
    (
        ["sql", "refused", "--dialect", "duckdb", "--context", "device"],
        "--context: no row is refused for its context. Leave it out.",
    ),
    *(
        (
            ["sql", statement, "--dialect", "duckdb", "--table", table],
            f"table {table!r}: not the name of a table. Expected something like clicks, web.clicks or "
            "'\"My DB\".clicks'.",
        )
        for statement in ("counts", "refused", "histogram")
        for table in ("a..b", ".a", "a.", '"a', 'a"b"', "``")
    ),
]


@pytest.mark.parametrize(("words", "message"), SETTINGS)
def test_sql_settings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    assert failure(capsys, monkeypatch, *words) == f"clickmix: {message}\n"


@pytest.mark.parametrize("dialect", ["duckdb", "trino"])
def test_without_sqlglot(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, dialect: str) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    assert failure(capsys, monkeypatch, "sql", "histogram", "--dialect", dialect) == (
        "clickmix: clickmix sql, Spark and PostgreSQL need sqlglot, which is not installed. Install it: pip install "
        "'clickmix[sql]'.\n"
    )


TABLES = [
    ("snowflake", '"My DB".clicks', '"My DB".clicks'),
    ("snowflake", '"clicks"', '"clicks"'),  # not CLICKS, which clicks would mean
    ("snowflake", 'web."Clicks.2026"', 'web."Clicks.2026"'),
    ("bigquery", "`my-project`.web.clicks", "`my-project`.web.clicks"),
    ("bigquery", "my-project.web.clicks", "`my-project`.web.clicks"),
    ("duckdb", '"say ""hi"""', '"say ""hi"""'),
]


@pytest.mark.parametrize("statement", ["counts", "refused", "histogram"])
@pytest.mark.parametrize(("dialect", "table", "printed"), TABLES)
def test_names_of_tables(statement: str, dialect: str, table: str, printed: str) -> None:
    assert f"\n  FROM {printed}\n" in run("sql", statement, "--dialect", dialect, "--table", table).replace(
        "    FROM", "  FROM"
    )


if __name__ == "__main__":
    FIT.write("model.json")
    for name in DIALECTS:
        (GOLDEN / f"{name}.sql").write_text(statements(name), encoding="utf-8")
    Path("model.json").unlink()
    sys.exit(0)
