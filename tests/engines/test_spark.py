"""Spark: files, tables and frames as logs; labels as frames, folders and tables; what goes wrong."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickmix as cm
from clickmix.engines.engine import Engine, choose_engine
from logs import cells, counted, csv_text, small_log, write
from servers import SPARK_SETTINGS

pytestmark = pytest.mark.xdist_group("engines")
LOG = small_log(rows=600)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> cm.Labels:
    """Labels by DuckDB."""
    found = cm.debias(write(tmp_path_factory.mktemp("log") / "log.parquet", LOG), correction="none")
    assert isinstance(found, cm.Labels)
    return found


def labels(spark: Any, log: Any) -> Any:
    return cm.debias(log, engine=spark, correction="none")


@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.tsv.gz", "log.ndjson"])
def test_files(spark: Any, tmp_path: Path, expected: cm.Labels, name: str) -> None:
    found = labels(spark, str(write(tmp_path / name, LOG)))
    assert found.relevance.tolist() == expected.relevance.tolist()
    assert found.doc_id.tolist() == expected.doc_id.tolist()


def test_tables_and_files_of_several_formats_together(spark: Any, tmp_path: Path) -> None:
    spark.createDataFrame([("q", "d", 1, 1)], "query_id string, doc_id string, position int, clicked int").write.mode(
        "overwrite"
    ).saveAsTable("monday")
    (tmp_path / "tuesday.csv").write_text("query_id,doc_id,position,clicked\nq,d,1,0\nq,e,2,1\n")
    log = ["monday", str(tmp_path / "tuesday.csv")]
    assert cells(cm.count(log, engine=spark)) == [("q", "d", 1, 2, 1), ("q", "e", 2, 1, 1)]


def test_a_frame_gives_a_frame(spark: Any, tmp_path: Path, expected: cm.Labels) -> None:
    frame = spark.read.parquet(str(write(tmp_path / "log.parquet", LOG)))
    found = cm.debias(frame, correction="none")
    assert type(found) is type(frame)
    assert [row.relevance for row in found.collect()] == expected.relevance.tolist()


def test_lines_that_cannot_be_cut_are_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query_id,doc_id,position,clicked\nq,d,1,1\nq,d,1\nq,d,1,0,9\nq,d,1,0\n")
    counts = cm.count(str(tmp_path / "log.csv"), engine=spark, bad_rows="skip")
    assert cells(counts) == [("q", "d", 1, 2, 1)]
    assert [(kind.reason, kind.rows) for kind in counts.refused] == [("the line cannot be split into columns", 2)]
    (tmp_path / "log.ndjson").write_text('{"query_id": "q", "doc_id": "d", "position": 1, "clicked": 1}\n{"query_id"\n')
    with pytest.raises(cm.InputError) as caught:
        cm.count(str(tmp_path / "log.ndjson"), engine=spark)
    assert str(caught.value) == (
        f"{tmp_path}/log.ndjson, query missing, document missing, position missing, column '_clickmix_broken': "
        "'{\"query_id\"': the line cannot be split into columns. Fix the log, or skip bad rows with --bad-rows "
        "skip (in Python bad_rows='skip')."
    )


def test_folders_replace_the_old_ones(spark: Any, tmp_path: Path, expected: cm.Labels) -> None:
    found = labels(spark, str(write(tmp_path / "log.parquet", LOG)))
    for name in ("labels.parquet", "labels.csv", "labels.parquet"):
        assert found.write(tmp_path / name) == len(expected)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["labels.csv", "labels.parquet", "log.parquet"]
    assert spark.read.csv(str(tmp_path / "labels.csv"), header=True).columns == list(expected.columns)
    again = spark.read.parquet(str(tmp_path / "labels.parquet")).orderBy("query_id", "doc_id").collect()
    np.testing.assert_array_equal([row.relevance for row in again], expected.relevance)


def test_tables_replace_the_old_ones(spark: Any, tmp_path: Path, expected: cm.Labels) -> None:
    found = labels(spark, str(write(tmp_path / "log.parquet", LOG)))
    assert [found.write("labels"), found.write("labels")] == [len(expected)] * 2
    assert spark.table("labels").count() == len(expected)
    assert kept_tables(spark) == ["labels"]
    spark.sql("DROP TABLE labels")


def kept_tables(spark: Any) -> list[str]:
    """The tables of the catalog that labels could have been left in."""
    known = (row.tableName for row in spark.sql("SHOW TABLES").collect() if not row.isTemporary)
    return sorted(name for name in known if name not in ("monday", "crossed"))


def test_a_table_with_other_columns_is_not_replaced(spark: Any, tmp_path: Path) -> None:
    spark.sql("CREATE OR REPLACE TEMP VIEW one AS SELECT 1 AS a")
    spark.table("one").write.mode("overwrite").saveAsTable("mine")
    with pytest.raises(cm.InputError) as caught:
        labels(spark, str(write(tmp_path / "log.parquet", LOG))).write("mine")
    assert str(caught.value) == (
        "mine: this table has other columns (a) and would be lost. Drop it first, or choose another name. "
        "Nothing was written."
    )
    assert kept_tables(spark) == ["mine"]
    spark.sql("DROP TABLE mine")


def test_counts_do_not_replace_another_log(spark: Any, tmp_path: Path) -> None:
    log = str(write(tmp_path / "log.parquet", LOG))
    spark.read.parquet(log).write.saveAsTable("tuesday")
    with pytest.raises(cm.InputError) as caught:
        cm.count(log, engine=spark).write("tuesday")
    assert str(caught.value) == (
        "tuesday: this table has other columns (query_id, doc_id, position, clicked, device) and would be lost. "
        "Drop it first, or choose another name. Nothing was written."
    )
    assert spark.table("tuesday").count() == 600
    spark.sql("DROP TABLE tuesday")


@pytest.mark.parametrize("target", ["tuesday", "default.tuesday", "spark_catalog.default.TUESDAY"])
def test_a_table_of_the_log_is_no_target(spark: Any, target: str) -> None:
    spark.sql("CREATE TABLE tuesday USING parquet AS SELECT 1 AS a")
    try:
        with pytest.raises(cm.InputError) as caught:
            choose_engine(spark).check_target(target, log=["none.parquet", "tuesday"])
    finally:
        spark.sql("DROP TABLE tuesday")
    assert str(caught.value) == f"{target}: would replace a table of the log. Choose another name for the output."


IN_LOG = [
    ("{0}/log/part-0.parquet", "file:{0}/log/part-0.parquet"),
    ("{0}/log/part-*.parquet", "{0}/log/part-0.parquet"),
    ("{0}/log", "{0}/log/part-0.parquet"),
    ("{0}/log/part-0.parquet", "{0}/log/"),
]


@pytest.mark.parametrize(("log", "target"), IN_LOG)
def test_a_path_of_the_log_is_no_target(spark: Any, tmp_path: Path, log: str, target: str) -> None:
    write(tmp_path / "log" / "part-0.parquet", LOG)
    with pytest.raises(cm.InputError) as caught:
        choose_engine(spark).check_target(target.format(tmp_path), log=[log.format(tmp_path)])
    assert str(caught.value) == (
        f"{target.format(tmp_path)}: would replace part of the log. Choose another path for the output."
    )
    choose_engine(spark).check_target(f"{tmp_path}/log-labels", log=[log.format(tmp_path)])


@pytest.mark.parametrize("found", ["notes.txt", "2026/part-0.parquet"])
def test_a_folder_that_spark_did_not_write_is_not_replaced(spark: Any, tmp_path: Path, found: str) -> None:
    write(tmp_path / "results" / "part-0.parquet", LOG)
    file = tmp_path / "results" / found
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    target = f"{tmp_path}/results/"
    with pytest.raises(cm.InputError) as caught:
        choose_engine(spark).write("SELECT 1 AS a", target)
    assert str(caught.value) == (
        f"{target}: Spark did not write this folder, which holds {found.split('/')[0]!r} and would be lost. Choose a "
        "new path, for instance one ending in labels.parquet."
    )
    assert file.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_an_empty_folder_is_replaced(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    assert choose_engine(spark).write("SELECT 1 AS a", f"{tmp_path}/results/") == 1
    assert spark.read.parquet(f"{tmp_path}/results").count() == 1


def test_an_old_table_that_cannot_be_put_back_stays_under_another_name(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new table cannot take the name, nor the old one get it back: it is not dropped, and we say where it is."""
    engine = choose_engine(spark)
    engine.write("SELECT 1 AS a", "labels")
    ask = type(spark).sql

    def refusing(session: Any, statement: str, *words: Any, **settings: Any) -> Any:
        if statement.endswith("RENAME TO labels"):
            statement = "SELECT nothing"
        return ask(session, statement, *words, **settings)

    monkeypatch.setattr(type(spark), "sql", refusing)
    with pytest.raises(cm.EngineError) as caught:
        engine.write("SELECT 2 AS a", "labels")
    monkeypatch.undo()
    (kept,) = kept_tables(spark)
    assert str(caught.value) == (
        f"labels: could not be replaced, and the old table is now called {kept}. Nothing is lost; put it back with "
        f"ALTER TABLE {kept} RENAME TO labels, and run this again."
    )
    assert [row.a for row in spark.table(kept).collect()] == [1]
    spark.sql(f"DROP TABLE {kept}")


@pytest.mark.parametrize("target", ["labels.parquet", "labels"])
def test_a_job_that_fails_leaves_the_old_labels(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.chdir(tmp_path)
    engine = choose_engine(spark)
    name = str(tmp_path / target) if "." in target else target
    engine.write("SELECT 1 AS a", name)
    with pytest.raises(cm.EngineError, match=r"^Spark: \[DIVIDE_BY_ZERO\].*Nothing was written\.$"):
        engine.write("SELECT CAST(1 AS BIGINT) // a AS a FROM (VALUES (1), (0)) AS t(a)", name)
    assert engine.rows(f"SELECT a FROM {read_back(engine, name)}") == [(1,)]
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
    assert kept_tables(spark) == [name] * ("." not in target)
    spark.sql("DROP TABLE IF EXISTS labels")


@pytest.mark.parametrize("target", ["labels.parquet", "labels"])
def test_several_runs_at_once(spark: Any, tmp_path: Path, target: str) -> None:
    """Somebody's labels are there in the end, whole; who was in somebody's way is told so; nothing else is left."""
    name = str(tmp_path / target) if "." in target else target
    choose_engine(spark).write("SELECT 0 AS a, 0 AS b", name)
    told: list[str] = []

    def write(number: int) -> None:
        engine = choose_engine(spark)
        for _ in range(3):
            try:
                assert engine.write(f"SELECT {number} AS a, {number} AS b FROM range(3)", name) == 3
            except cm.EngineError as error:
                told.append(str(error))

    writers = [threading.Thread(target=write, args=[number]) for number in (1, 2, 3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    engine = choose_engine(spark)
    found = engine.rows(f"SELECT DISTINCT a, b FROM {read_back(engine, name)}")
    assert found in ([(1, 1)], [(2, 2)], [(3, 3)])
    assert len(told) < 9
    assert all(message.endswith(("Nothing was written.", "What was there stays.")) for message in told)
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
    assert kept_tables(spark) == [name] * ("." not in target)
    spark.sql("DROP TABLE IF EXISTS labels")


def read_back(engine: Any, name: str) -> str:
    return str(engine.tables(name)[0].name)


def test_what_was_kept_goes_with_the_engine(spark: Any, tmp_path: Path) -> None:
    gc.collect()
    before = spark.sql("SHOW TABLES").collect()
    found = labels(spark, str(write(tmp_path / "log.parquet", LOG)))
    assert len(spark.sql("SHOW TABLES").collect()) > len(before)
    del found
    gc.collect()
    assert spark.sql("SHOW TABLES").collect() == before
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


def test_an_engine_may_go_while_spark_is_asked(spark: Any) -> None:
    """Garbage is collected at any moment: here by a signal, in the middle of a query."""
    gone = [choose_engine(spark)]
    table = gone[0].keep("SELECT 1 AS a")
    before = signal.signal(signal.SIGALRM, lambda *_: gone.clear())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.03)  # no query is faster
        found = spark.sql("SELECT count(DISTINCT sqrt(id)) FROM range(300000)").collect()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (found, gone) == ([(300_000,)], [])
    assert not spark.catalog.tableExists(table)


def test_a_log_that_is_not_there(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(
        cm.EngineError, match=r"^Spark: \[PATH_NOT_FOUND\] Path does not exist: .*/none.parquet\. Nothing"
    ):
        cm.count(str(tmp_path / "none.parquet"), engine=spark)
    with pytest.raises(cm.InputError) as caught:
        cm.count(["a.parquet", "a.parquet"], engine=spark)
    assert str(caught.value) == "a.parquet: given twice. Its clicks would be counted twice; name it once."


def test_a_counted_log_with_columns_of_other_names(spark: Any, tmp_path: Path) -> None:
    table = counted(LOG)
    table["shown"] = table.pop("impressions")
    (tmp_path / "log.csv").write_text(csv_text(table))
    counts = cm.count(str(tmp_path / "log.csv"), engine=spark, columns={"impressions": "shown"})
    assert counts.totals() == (600, sum(LOG["clicked"]))


PROGRAM = """
    import os, signal, sys, warnings
    warnings.simplefilter("ignore")
    sys.path[:0] = {path!r}
    from clickmix.cli import main
    from clickmix.engines import spark
    keep = spark.Spark.keep
    def dying(engine, query, **settings):
        table = keep(engine, query, **settings)
        os.kill(engine.session.sparkContext._gateway.proc.pid, signal.SIGKILL)
        return table
    spark.Spark.keep = dying
    sys.argv = ["clickmix", "debias", "log.parquet", "-o", "labels.parquet", "--engine", "local[1]"]
    main()
"""


def test_spark_dies_in_the_middle(spark: Any, tmp_path: Path) -> None:
    """In a process of its own: the command ends with a clear message and the old labels are there."""
    write(tmp_path / "log.parquet", LOG)
    (tmp_path / "labels.parquet").write_bytes(b"old")
    (tmp_path / "conf").mkdir()
    settings = "".join(f"{key} {value}\n" for key, value in SPARK_SETTINGS.items())
    (tmp_path / "conf" / "spark-defaults.conf").write_text(settings)
    program = textwrap.dedent(PROGRAM).format(path=sys.path)
    environment = os.environ | {"SPARK_CONF_DIR": str(tmp_path / "conf")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if line.startswith("clickmix: ")]  # among Spark's own lines
    assert [line.startswith("clickmix: Spark: ") and line.endswith(". Nothing was written.") for line in told] == [True]
    assert (tmp_path / "labels.parquet").read_bytes() == b"old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["conf", "labels.parquet", "log.parquet"]


STARTED = """
from clickmix.engines.engine import choose_engine
session = choose_engine("local[2]").session
names = ("spark.sql.shuffle.partitions", "spark.ui.showConsoleProgress")
print(*(session.conf.get(name) for name in names))
"""


def test_a_session_of_ours_suits_the_machine_unless_the_user_chose(spark: Any) -> None:
    """Two processes at once: each starts a Spark."""
    given = ("", "--conf spark.sql.shuffle.partitions=7 ")
    java = f"--driver-memory 512m --driver-java-options '{SPARK_SETTINGS['spark.driver.extraJavaOptions']}'"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", STARTED],
            env=os.environ
            | {"PYSPARK_SUBMIT_ARGS": f"{settings}{java} --conf spark.ui.enabled=false pyspark-shell"}
            | {"PYTHONPATH": os.pathsep.join(sys.path), "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for settings in given
    ]
    assert [process.communicate(timeout=120)[0] for process in started] == ["16 false\n", "7 false\n"]


def test_an_engine_has_what_the_log_stage_asks_for(spark: Any) -> None:
    engine: Engine = choose_engine(spark)
    with pytest.raises(cm.SettingError) as caught:
        engine.check_target("`x`")
    assert str(caught.value) == "'`x`': not the name of a table or a folder. Choose another one."
