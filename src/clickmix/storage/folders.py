"""Folders: make them, and replace several files of one together."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from clickmix.errors import InputError
from clickmix.storage.atomic import check_writable
from clickmix.storage.written import record, recording


def make_folder(folder: Path) -> None:
    """Make a folder if it is missing, and record that it is there now."""
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if made:
        record(folder)


@contextlib.contextmanager
def replacing_together(folder: Path, *, last: str) -> Iterator[Path]:
    """Give a temporary folder inside `folder`. Its files replace those of `folder` together, or go on an error.

    The old `last` goes first and the new one comes last. A process killed in between leaves a folder without `last`,
    so old and new files are never mixed unnoticed. One killed earlier leaves the old files and the temporary folder.
    """
    temporary = folder / f".{secrets.token_hex(6)}.tmp"
    try:
        temporary.mkdir()
        with recording():  # nothing in there counts as written until it takes its place
            yield temporary
        (folder / last).unlink(missing_ok=True)
        for file in sorted(temporary.iterdir(), key=lambda file: (file.name == last, file.name)):
            os.replace(file, folder / file.name)
            record(folder / file.name)
    except OSError as error:
        if isinstance(error.filename, str):  # the user knows the folder, not the temporary one
            error.filename = error.filename.replace(str(temporary), str(folder))
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder`: fill it; on leaving, it becomes `folder`, or on an error it is gone.

    Old files must not mix with new ones, so `folder` may exist only if it is empty.
    """
    if folder.is_dir():
        if any(folder.iterdir()):
            raise InputError(f"{folder}: this folder is not empty. Give a new folder, or empty this one.")
    elif folder.exists():
        raise InputError(f"{folder}: this is a file. Give the name of a folder to write.")
    temporary = folder.parent / f".{folder.name}.{secrets.token_hex(6)}.tmp"
    check_writable(temporary)
    try:
        temporary.mkdir()
        with recording():  # nothing in there counts as written until the folder has its name
            yield temporary
        os.replace(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    record(folder)
