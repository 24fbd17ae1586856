"""One query in several spellings: told, and joined on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import clickmix as cm
from commands import run
from logs import Table, cells, write

# Five spellings of one query; "Red shoes" is the most frequent. The last has an e and an accent of its own.
LOG: Table = {
    "query_id": ["red shoes", "Red shoes", "Red shoes", " red  shoes", "RED SHOES", "caf\u00e9", "cafe\u0301"],
    "doc_id": ["a"] * 7,
    "position": [1] * 7,
    "clicked": [1, 0, 1, 0, 1, 0, 1],
}
ALL = [("Red shoes", "a", 1, 5, 3), ("cafe\u0301", "a", 1, 2, 1)]


@pytest.mark.parametrize("normalise", ["case,space,unicode", ["unicode", "space", "case"], "space, case ,unicode"])
@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "log.ndjson"])
def test_spellings_are_joined_under_the_most_frequent_one(tmp_path: Path, name: str, normalise: Any) -> None:
    assert cells(cm.count(write(tmp_path / name, LOG), normalise=normalise)) == ALL


def test_only_what_is_named_is_ignored(tmp_path: Path) -> None:
    counts = cm.count(write(tmp_path / "log.csv", LOG), normalise="space")
    assert [cell[0] for cell in cells(counts)] == [" red  shoes", "RED SHOES", "Red shoes", "cafe\u0301", "caf\u00e9"]


def test_nothing_is_ignored_unless_asked(tmp_path: Path) -> None:
    assert len(cells(cm.count(write(tmp_path / "log.csv", LOG)))) == 6


def test_labels_have_the_most_frequent_spelling(tmp_path: Path) -> None:
    labels = cm.debias(write(tmp_path / "log.csv", LOG), normalise="case,space,unicode")
    assert labels.query_id.tolist() == ["Red shoes", "cafe\u0301"]


def test_lists_of_joined_queries_add_up(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", LOG | {"session_id": list(range(7))})
    counts = cm.count(log, lists=True, normalise="case,space,unicode")
    assert [row[0] for row in counts.engine.rows(counts.list_query())] == ["Red shoes", "cafe\u0301"]


SENTENCE = "6 queries become 2 if case, blanks and Unicode forms are ignored (--normalise case,space,unicode)."


def test_the_command_says_what_would_be_joined(tmp_path: Path) -> None:
    log, output = str(write(tmp_path / "log.csv", LOG)), str(tmp_path / "counts.csv")
    assert run("counts", log, "-o", output).output.splitlines()[1] == SENTENCE
    assert "become" not in run("counts", log, "-o", output, "--normalise", "case,space,unicode").output
    assert "become" not in run("counts", output, "-o", str(tmp_path / "x.csv"), "--normalise", "case").output


def test_a_word_that_cannot_be_ignored(tmp_path: Path) -> None:
    with pytest.raises(cm.SettingError) as caught:
        cm.count(tmp_path, normalise="spelling")
    assert str(caught.value) == "normalise 'spelling': expected case, space, unicode, or several of them."
