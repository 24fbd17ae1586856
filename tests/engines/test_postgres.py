"""What goes wrong in an engine: a clear message, the old labels still there, no stray tables."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import clickmix as cm
from clickmix import cli
from clickmix.engines.engine import choose_engine
from logs import Table, small_log
from servers import Database

pytestmark = pytest.mark.xdist_group("engines")
LOG = small_log(rows=300)
COLUMNS = ["query_id", "doc_id", "relevance", "impressions", "clicks"]


def labels(address: str) -> cm.Labels:
    """Labels whose query has not run yet."""
    found = cm.debias("clicks", engine=address, correction="none")
    assert isinstance(found, cm.Labels)
    return found


@pytest.fixture
def loaded(database: Database) -> Database:
    """A database with a log, and labels from an earlier run."""
    database.create("clicks", LOG)
    labels(database.address).write("labels")
    database.run("UPDATE labels SET relevance = 0.125")
    return database


def assert_old(database: Database) -> None:
    """The labels of the earlier run, and no other table than before."""
    assert database.run("SELECT DISTINCT relevance FROM labels") == [(0.125,)]
    assert database.tables() == ["clicks", "labels"]


def test_labels_replace_the_old_ones(loaded: Database) -> None:
    written = labels(loaded.address).write("labels")
    assert loaded.run("SELECT count(*) FROM labels WHERE relevance <> 0.125") != [(0,)]
    assert loaded.run("SELECT count(*) FROM labels") == [(written,)]
    assert loaded.tables() == ["clicks", "labels"]


def test_a_table_with_other_columns_is_not_replaced(loaded: Database) -> None:
    loaded.run("CREATE TABLE mine (a integer, b text)")
    with pytest.raises(cm.InputError) as caught:
        labels(loaded.address).write("mine")
    assert str(caught.value) == (
        "mine: this table has other columns (a, b) and would be lost. Drop it first, or choose another name. "
        "Nothing was written."
    )
    assert loaded.tables() == ["clicks", "labels", "mine"]


def test_a_table_that_a_view_reads_is_not_replaced(loaded: Database) -> None:
    loaded.run("CREATE VIEW best AS SELECT * FROM labels WHERE relevance > 0.9")
    with pytest.raises(
        cm.EngineError, match=r"^PostgreSQL: cannot drop table .*labels because other objects depend on"
    ):
        labels(loaded.address).write("labels")
    assert_old(loaded)


def test_a_connection_that_is_cut_before_writing(loaded: Database) -> None:
    made = labels(loaded.address)
    loaded.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'clickmix'")
    with pytest.raises(cm.EngineError) as caught:
        made.write("labels")
    assert str(caught.value) == (
        "PostgreSQL: the connection was lost: terminating connection due to administrator command. Run it again. "
        "Nothing was written."
    )
    assert_old(loaded)


def test_a_connection_that_is_cut_while_writing(loaded: Database) -> None:
    made = labels(loaded.address)
    # The write waits for this reader before it swaps the tables: everything is written then, nothing committed.
    loaded.run("BEGIN; LOCK TABLE labels IN ACCESS SHARE MODE")
    failures: list[BaseException] = []

    def write() -> None:
        try:
            made.write("labels")
        except cm.ClickmixError as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    waiting = "SELECT pid FROM pg_stat_activity WHERE application_name = 'clickmix' AND wait_event_type = 'Lock'"
    while not (found := loaded.run(waiting)):
        writer.join(timeout=0.05)
        assert writer.is_alive()
    loaded.run(f"SELECT pg_terminate_backend({found[0][0]})")
    writer.join()
    loaded.run("COMMIT")
    assert [str(failure) for failure in failures] == [
        "PostgreSQL: the connection was lost: terminating connection due to administrator command. Run it again. "
        "Nothing was written."
    ]
    assert_old(loaded)


def test_two_runs_at_once(loaded: Database) -> None:
    both = [labels(loaded.address) for _ in range(2)]
    expected = both[0].relevance.tolist()
    failures: list[BaseException] = []

    def write(made: cm.Labels) -> None:
        try:
            made.write("fresh")
        except cm.ClickmixError as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=[made]) for made in both]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    found = loaded.run('SELECT relevance FROM fresh ORDER BY query_id COLLATE "C", doc_id')
    assert [relevance for (relevance,) in found] == expected
    assert loaded.tables() == ["clicks", "fresh", "labels"]


def test_no_permission_to_write(loaded: Database) -> None:
    loaded.run("DROP ROLE IF EXISTS reader")
    loaded.run(f"CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA {loaded.schema} TO reader")
    loaded.run("GRANT SELECT ON clicks, labels TO reader")
    address = loaded.address.replace("tester@", "reader@")
    with pytest.raises(cm.EngineError) as caught:
        labels(address).write("labels")
    assert str(caught.value) == (
        f"labels: no permission to create tables in schema {loaded.schema}. Nothing was written."
    )
    loaded.run(f"GRANT CREATE ON SCHEMA {loaded.schema} TO reader")
    with pytest.raises(cm.EngineError) as caught:
        labels(address).write("labels")
    assert str(caught.value) == "PostgreSQL: must be owner of table labels. Nothing was written."
    assert_old(loaded)
    loaded.run("DROP OWNED BY reader; DROP ROLE reader")


def test_no_permission_to_read(loaded: Database) -> None:
    loaded.run("DROP ROLE IF EXISTS stranger")
    loaded.run(f"CREATE ROLE stranger LOGIN; GRANT USAGE ON SCHEMA {loaded.schema} TO stranger")
    with pytest.raises(cm.EngineError) as caught:
        cm.count("clicks", engine=loaded.address.replace("tester@", "stranger@"))
    assert str(caught.value) == "PostgreSQL: permission denied for table clicks. Nothing was written."
    loaded.run("DROP OWNED BY stranger; DROP ROLE stranger")


NAMES = [
    ("labels.parquet", "labels.parquet: PostgreSQL writes tables. Name a table, for instance labels."),
    ("nowhere.labels", "nowhere.labels: no such schema in the database. Create it first, or choose another name."),
    ("a b", 'PostgreSQL: string is not a valid identifier: "a b". Nothing was written.'),
]


@pytest.mark.parametrize(("target", "message"), NAMES)
def test_a_target_that_is_no_table(database: Database, target: str, message: str) -> None:
    with pytest.raises(cm.ClickmixError) as caught:
        choose_engine(database.address).check_target(target)
    assert str(caught.value) == message


def test_names_as_sql_has_them(database: Database) -> None:
    database.create('"My Clicks"', LOG)
    found = cm.debias('"My Clicks"', engine=database.address, correction="none")
    found.write(f'{database.schema}."My Labels"')
    found.write("Folded")
    assert database.tables() == ["My Clicks", "My Labels", "folded"]


LOGS: list[tuple[Any, str]] = [
    ("nothing", "nothing: no such table in the database. Write the name as in SQL: schema.table."),
    (["clicks", "clicks"], "clicks: given twice. Its clicks would be counted twice; name it once."),
    (5, "PostgreSQL cannot read a log from a int. Name a table, or a list."),
]


@pytest.mark.parametrize(("log", "message"), LOGS)
def test_a_log_that_is_no_table(loaded: Database, log: Any, message: str) -> None:
    with pytest.raises(cm.InputError) as caught:
        cm.count(log, engine=loaded.address)
    assert str(caught.value) == message


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'clickmix[postgres]'")
    with pytest.raises(cm.EngineError) as caught:
        choose_engine(f"postgresql://tester:secret@/postgres?host={tmp_path}")
    assert str(caught.value).startswith(
        "PostgreSQL cannot be reached: connection is bad: connection to server on socket"
    )
    assert str(caught.value).endswith(" Check the address, postgresql://user@host/database.")
    assert "secret" not in str(caught.value)


def test_the_command_writes_a_table(
    loaded: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["clickmix", "debias", "clicks", "-o", "labels", "--engine", loaded.address, "--since", "labels"]
    )
    with pytest.raises(SystemExit) as caught:
        cli.main()
    output = capsys.readouterr()
    assert (caught.value.code, output.err) == (0, "")
    assert (
        f"Wrote {len(loaded.run('SELECT 1 FROM labels'))} labels to labels.\nCompared with the previous labels: "
        in output.out
    )
    assert loaded.run("SELECT count(*) FROM labels WHERE relevance = 0.125") == [(0,)]


@pytest.mark.parametrize("target", ["clicks", "{schema}.clicks", '"clicks"', "CLICKS"])
@pytest.mark.parametrize("command", ["debias", "counts"])
def test_the_command_does_not_replace_the_log(
    loaded: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, target: str
) -> None:
    output = target.format(schema=loaded.schema)
    monkeypatch.setattr(sys, "argv", ["clickmix", command, "clicks", "-o", output, "--engine", loaded.address])
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().err == (
        f"clickmix: {output}: would replace a table of the log. Choose another name for the output.\n"
    )
    assert loaded.run("SELECT count(*) FROM clicks") == [(300,)]


def test_counts_do_not_replace_another_log(loaded: Database) -> None:
    loaded.create("tuesday", LOG)
    with pytest.raises(cm.InputError) as caught:
        cm.count("clicks", engine=loaded.address).write("tuesday")
    assert str(caught.value) == (
        "tuesday: this table has other columns (query_id, doc_id, position, clicked, device) and would be lost. "
        "Drop it first, or choose another name. Nothing was written."
    )
    assert loaded.run("SELECT count(clicked) FROM tuesday") == [(300,)]


def test_labels_with_columns_of_somebody_else_are_not_replaced(loaded: Database) -> None:
    loaded.run("ALTER TABLE labels ADD COLUMN checked_by text")
    with pytest.raises(cm.InputError, match=r"^labels: this table has other columns \(query_id, .*, checked_by\) and"):
        labels(loaded.address).write("labels")
    assert_old(loaded)


def test_a_table_of_another_schema_stays(loaded: Database) -> None:
    """It is found by the same name, later in the search path; the new one goes to the first schema."""
    first = f"first_{loaded.schema}"
    loaded.run(f"CREATE SCHEMA {first}")
    both = loaded.address.replace(f"%3D{loaded.schema}", f"%3D{first},{loaded.schema}")
    written = labels(both).write("labels")
    assert loaded.run(f"SELECT count(*) FROM {first}.labels") == [(written,)]
    loaded.run(f"DROP SCHEMA {first} CASCADE")
    assert_old(loaded)


KINDS: Table = {"query_id": ["q", "q"], "doc_id": ["d", "e"], "position": [1, 2], "clicked": [1, 0]}


@pytest.mark.parametrize(
    ("types", "values"),
    [
        ({"clicked": "boolean"}, {"clicked": ["t", "f"]}),
        ({"position": "numeric(20, 0)", "clicked": "smallint"}, {}),
        ({"position": "double precision"}, {}),
        ({"query_id": "varchar(5)", "doc_id": "char(1)"}, {}),
    ],
)
def test_types_of_columns(database: Database, types: dict[str, str], values: Table) -> None:
    database.create("clicks", KINDS | values, types)
    assert cm.count("clicks", engine=database.address).totals() == (2, 1)


def test_a_type_that_no_log_has(database: Database) -> None:
    database.create("clicks", KINDS | {"position": ["{1}", "{2}"]}, {"position": "integer[]"})
    with pytest.raises(cm.InputError) as caught:
        cm.count("clicks", engine=database.address)
    assert str(caught.value) == (
        "table clicks, column 'position': found INTEGER[] values, expected whole numbers for position."
    )


LONG = "a" * 63


def test_a_table_whose_name_would_be_cut_is_refused(loaded: Database) -> None:
    loaded.create(LONG, LOG)
    message = (
        f"{LONG}b: the name '{LONG}b' is too long for PostgreSQL, which would cut it. Choose one of at most 63 bytes."
    )
    with pytest.raises(cm.InputError) as written:
        labels(loaded.address).write(f"{LONG}b")
    with pytest.raises(cm.InputError) as read:
        cm.count(f"{LONG}b", engine=loaded.address)
    assert [str(written.value), str(read.value)] == [message, message]


def test_a_time_as_context_has_the_same_name_in_every_zone(database: Database) -> None:
    database.create("clicks", KINDS | {"hour": ["2026-01-02 12:00:00+00"] * 2}, {"hour": "timestamptz"})
    there = f"{database.address}%20-cTimeZone%3DAsia%2FTokyo"
    counts = cm.count("clicks", engine=there, context="hour")
    assert counts.engine.rows(f"SELECT DISTINCT CAST(hour AS VARCHAR) FROM {counts.table}") == [
        ("2026-01-02 12:00:00+00",)
    ]
