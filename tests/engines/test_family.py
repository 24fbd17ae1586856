"""Engines are a family: one that is registered from outside is offered by the command, and works."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clickmix as cm
from clickmix import cli
from clickmix.engines.duckdb import DuckDB
from clickmix.engines.engine import ENGINES, Engine, EngineKind, choose_engine, find_kind
from logs import small_log, write

LOG = small_log(rows=600)


def passed_on(name: str) -> Any:
    """An attribute that is the inner engine's."""
    return property(lambda toy: getattr(toy.inner, name))


class Toy:
    """An engine that passes everything on to a DuckDB."""

    def __init__(self, memory: str | None) -> None:
        self.memory = memory
        self.inner = DuckDB(memory=memory)

    embedded, tables, keep, forget, fetch, rows, take = map(
        passed_on, ("embedded", "tables", "keep", "forget", "fetch", "rows", "take")
    )
    types, frame_like, check_target, write, close, list_sql, view = map(
        passed_on, ("types", "frame_like", "check_target", "write", "close", "list_sql", "view")
    )


@pytest.fixture
def started() -> Iterator[list[Toy]]:
    """The toy engines that were started, while there is a family member `toy`."""
    found: list[Toy] = []

    def start(engine: object, memory: str | None) -> Engine:
        found.append(Toy(memory))
        return found[-1]

    @ENGINES.register("toy", help="plays.")
    def toy_kind() -> EngineKind:
        return EngineKind("Toy", "toy://BOX", lambda engine: str(engine).startswith("toy://"), start, embedded=True)

    yield found
    ENGINES.remove("toy")


def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: object) -> str:
    """What a command that ends well prints."""
    monkeypatch.setattr(sys, "argv", ["clickmix", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    output = capsys.readouterr()
    assert (caught.value.code, output.err) == (0, "")
    return " ".join(output.out.split())


@pytest.mark.parametrize("verb", ["debias", "counts", "fit", "label"])
def test_a_new_engine_is_in_the_help(
    started: list[Toy], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    engines = command(capsys, monkeypatch, verb, "--help").partition("What runs the SQL.")[2].partition("[default")[0]
    assert engines.endswith("toy://BOX: plays. ")


def test_a_new_engine_makes_the_same_labels(started: list[Toy], tmp_path: Path) -> None:
    log = write(tmp_path / "log.parquet", LOG)
    cm.debias(log).write(tmp_path / "expected.parquet")
    cm.debias(log, engine="toy://a", memory="1GB").write(tmp_path / "labels.parquet")
    assert (tmp_path / "labels.parquet").read_bytes() == (tmp_path / "expected.parquet").read_bytes()
    assert [toy.memory for toy in started] == ["1GB"]


def test_a_new_engine_runs_in_the_command(
    started: list[Toy], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, labels = write(tmp_path / "log.parquet", LOG), tmp_path / "labels.csv"
    command(capsys, monkeypatch, "debias", log, "-o", tmp_path / "expected.csv")
    command(capsys, monkeypatch, "debias", log, "-o", labels, "--engine", "toy://a")
    assert labels.read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert len(started) == 1


def test_an_engine_that_is_gone_is_not_found(started: list[Toy]) -> None:
    assert find_kind("toy://a").title == "Toy"
    ENGINES.remove("toy")
    with pytest.raises(cm.SettingError, match=r"^engine 'toy://a': expected duckdb; postgresql://"):
        find_kind("toy://a")


def test_the_family_is_listed_with_the_default_first() -> None:
    assert ENGINES.names() == ("duckdb", "postgres", "spark")


@pytest.mark.parametrize(
    ("argument", "title"),
    [
        ("duckdb", "DuckDB"),
        ("postgresql://ann@host/clicks", "PostgreSQL"),
        ("postgres://ann@host/clicks", "PostgreSQL"),
        ("spark", "Spark"),
        ("local[2]", "Spark"),
        ("yarn", "Spark"),
        ("spark://host:7077", "Spark"),
        ("k8s://host", "Spark"),
    ],
)
def test_an_engine_is_known_by_its_argument(argument: str, title: str) -> None:
    assert find_kind(argument).title == title


def test_an_engine_that_was_started_is_taken_as_it_is() -> None:
    engine = DuckDB()
    assert choose_engine(engine) is engine


def test_names_of_tables_belong_to_an_engine() -> None:
    one, other = DuckDB(), DuckDB()
    assert [one.new_name("pages"), one.new_name("walked"), other.new_name("pages")] == [
        "pages_1",
        "walked_2",
        "pages_1",
    ]
