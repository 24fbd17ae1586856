"""The cache: opens what was read, and is never trusted half-written."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

import clickmix.lab.collections.cache as cache_module
from clickmix.errors import InputError
from clickmix.features.letor import read_letor
from clickmix.features.split import Split
from clickmix.lab.collections.cache import ARRAYS, read_cached

TEXT = "2 qid:10 1:0.5 2:-3 #docid = a\n0 qid:10 1:7 2:0.25 #docid = b\n1 qid:4 1:1 2:2\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "train.txt"
    path.parent.mkdir()
    path.write_text(TEXT)
    return path


@pytest.fixture
def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> Split:
        raise RuntimeError(f"{path} was read again")

    monkeypatch.setattr(cache_module, "read_letor", refuse)


def assert_same(one: Split, other: Split) -> None:
    assert [getattr(one, name).tolist() for name in ARRAYS] == [getattr(other, name).tolist() for name in ARRAYS]
    assert [getattr(one, name).dtype for name in ARRAYS] == [getattr(other, name).dtype for name in ARRAYS]


def the_folder(cache: Path) -> Path:
    (folder,) = cache.iterdir()
    return folder


def test_gives_what_the_reader_gives_memory_mapped(source: Path) -> None:
    split = read_cached(source)
    assert_same(split, read_letor(source))
    assert isinstance(split.features, np.memmap)
    assert the_folder(source.parent / ".clickmix").name.startswith("train.txt.")


def test_the_second_time_the_text_is_not_read(source: Path, request: pytest.FixtureRequest) -> None:
    first = read_cached(source)
    request.getfixturevalue("no_reading")
    assert_same(read_cached(source), first)


def test_a_changed_source_is_read_again_and_the_former_state_removed(source: Path) -> None:
    read_cached(source)
    former = the_folder(source.parent / ".clickmix")
    source.write_text(TEXT + "1 qid:5 1:1 2:2\n")
    assert read_cached(source).documents == 4
    assert the_folder(source.parent / ".clickmix") != former


@pytest.mark.parametrize("name", ["manifest.json", *(f"{name}.npy" for name in ARRAYS)])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "longer"])
def test_a_half_written_cache_is_made_again(source: Path, tmp_path: Path, name: str, damage: str) -> None:
    whole = read_letor(source)
    read_cached(source, cache=tmp_path / "cache")
    file = the_folder(tmp_path / "cache") / name
    content = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes({"empty": b"", "cut": content[:-2], "longer": content + b"\0"}[damage])
    assert_same(read_cached(source, cache=tmp_path / "cache"), whole)
    assert file.read_bytes() == content


def test_an_array_of_objects_is_not_unpickled(source: Path, tmp_path: Path) -> None:
    read_cached(source, cache=tmp_path / "cache")
    file = the_folder(tmp_path / "cache") / "grade.npy"
    size = file.stat().st_size
    np.save(file, np.array([None, None, None]), allow_pickle=True)
    os.truncate(file, size)
    assert read_cached(source, cache=tmp_path / "cache").grade.tolist() == [2, 0, 1]


@pytest.mark.parametrize("failing", range(1, 7))
def test_an_error_while_writing_leaves_nothing_behind(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    calls = 0

    def failing_replace(old: Path, new: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(28, "No space left on device")
        os.rename(old, new)

    monkeypatch.setattr("clickmix.storage.atomic.os.replace", failing_replace)
    assert_same(read_cached(source, cache=tmp_path / "cache"), read_letor(source))
    assert calls == failing
    assert list((tmp_path / "cache").iterdir()) == []


def test_an_interrupt_while_writing_leaves_nothing_behind(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(old: Path, new: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("clickmix.storage.atomic.os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        read_cached(source, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_text_that_cannot_be_read_leaves_nothing_behind(source: Path, tmp_path: Path) -> None:
    source.write_text("1 1:0.5\n")
    with pytest.raises(InputError, match=r"line 1: expected qid:QUERY after the grade, found '1:0\.5'\.$"):
        read_cached(source, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_where_nothing_can_be_written_the_text_is_read_without(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source.parent / ".clickmix").write_text("a file, not a folder")
    (tmp_path / "home").write_text("a file, not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert_same(read_cached(source), read_letor(source))


def test_where_the_folder_cannot_be_written_the_users_cache_is_used(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source.parent / ".clickmix").write_text("a file, not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    read_cached(source)
    assert the_folder(tmp_path / "home" / "clickmix").name.startswith("train.txt.")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}: no such file. Expected a file of LETOR lines.')}$"):
        read_cached(path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder_of_the_cache(source: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    message = f"{tmp_path / 'taken'}: cannot be the cache folder: File exists. Name a folder."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_cached(source, cache=tmp_path / "taken")
