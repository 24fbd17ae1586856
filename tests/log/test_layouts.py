"""Layouts are a family: a new one is one class, seen by the command, recognised and counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

import clickmix as cm
from clickmix.engines.sql import name
from clickmix.log.layout import LAYOUTS, Part, Roles
from clickmix.log.layouts.rows import RowLayout
from clickmix.log.refused import Note
from clickmix.log.source import Registered, Source
from commands import run
from logs import cells, count_slowly, counted, small_log, write

LOG = small_log()


class Toy(RowLayout):
    """What was shown and where, as one text: `document@position`; a `!` is a click."""

    def recognises(self, source: Source, roles: Roles) -> bool:
        return "shown" in source.types

    def open(self, sources: Sequence[Source], roles: Roles, engine: Any) -> tuple[tuple[Part, ...], tuple[Note, ...]]:
        parts = []
        for i, source in enumerate(sources):
            shown = name("shown")
            engine.run(
                f"CREATE TEMP VIEW toy_{i} AS SELECT query_id, split_part({shown}, '@', 1) AS doc_id, "
                f"rtrim(split_part({shown}, '@', 2), '!') AS position, ends_with({shown}, '!') AS clicked "
                f"FROM {source.table()}"
            )
            parts.append(Part(Registered(engine.types(f"toy_{i}"), registered=f"toy_{i}"), self, roles))
        return tuple(parts), (Note("log", "that came as a toy", len(sources)),)


@pytest.fixture
def toy() -> Iterator[None]:
    LAYOUTS.register("toy", help="A toy.")(Toy)
    yield
    LAYOUTS.remove("toy")


@pytest.mark.usefixtures("toy")
def test_a_layout_from_outside_is_recognised_and_counted(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", {"query_id": ["q", "q", "q"], "shown": ["a@1!", "b@2", "a@1"]})
    counts = cm.count(log)
    assert cells(counts) == [("q", "a", 1, 2, 1), ("q", "b", 2, 1, 0)]
    assert [str(note) for note in counts.notes] == ["1 log that came as a toy."]


@pytest.mark.usefixtures("toy")
def test_a_layout_from_outside_is_among_the_choices(tmp_path: Path) -> None:
    assert "toy: A toy" in " ".join(run("counts", "--help").output.split())
    log = write(tmp_path / "log.csv", {"query_id": ["q"], "shown": ["a@1!"]})
    done = run("counts", str(log), "-o", str(tmp_path / "counts.csv"), "--format", "toy")
    assert done.output.startswith("Read 1 impression and 1 click.\n1 log that came as a toy.\n")


def test_a_removed_layout_is_gone(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", {"query_id": ["q"], "shown": ["a@1!"]})
    with pytest.raises(cm.InputError, match="missing 'doc_id', 'position' and 'clicked'"):
        cm.count(log)


@pytest.mark.parametrize("format", ["auto", "rows"])
def test_rows_by_name(tmp_path: Path, format: str) -> None:
    assert cells(cm.count(write(tmp_path / "log.csv", LOG), format=format)) == count_slowly(LOG)


@pytest.mark.parametrize("format", ["auto", "counted"])
def test_counted_by_name(tmp_path: Path, format: str) -> None:
    assert cells(cm.count(write(tmp_path / "log.csv", counted(LOG)), format=format)) == count_slowly(LOG)


def test_a_format_that_the_log_is_not_in(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", LOG)
    with pytest.raises(cm.InputError) as caught:
        cm.count(log, format="counted")
    assert str(caught.value) == (
        f"{log}: missing 'impressions' and 'clicks'. Found query_id, doc_id, position, clicked, device. Say which "
        "columns you mean: --columns impressions=YOUR_COLUMN,clicks=YOUR_COLUMN (in Python columns={'impressions': "
        "'YOUR_COLUMN', 'clicks': 'YOUR_COLUMN'})."
    )


def test_a_context_may_be_given_as_text(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", LOG)
    assert cells(cm.count(log, context="device")) == count_slowly(LOG, ["device"])


def test_rows_may_carry_the_list_that_was_shown(tmp_path: Path) -> None:
    """A row per impression stays one, whatever other columns it has."""
    log = tmp_path / "log.parquet"
    rows = "(VALUES ('q', 'a', 1, 1, ['a', 'b']), ('q', 'b', 2, 0, ['a', 'b']))"
    duckdb.execute(f"COPY (SELECT * FROM {rows} AS t(query_id, doc_id, position, clicked, doc_ids)) TO '{log}'")
    assert cm.count(log).totals() == (2, 1)
