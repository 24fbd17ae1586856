"""Folders that are made, and files in them that belong together.   files -> export, simulate, demo, experiments"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from clickmix.errors import InputError, written
from clickmix.storage.files import check_writable


def make_folder(folder: Path) -> None:
    """Make a folder where there is none; after a failure the command says that it is there."""
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if made:
        written.append(str(folder))


@contextlib.contextmanager
def replacing_together(folder: Path, *, last: str) -> Iterator[Path]:
    """A temporary folder inside `folder`: its files take their places together on leaving, or on an error are gone.

    The old `last` goes first and the new one comes last: a process killed in between leaves a folder without it, never
    old files beside new ones with nothing to tell. One killed before leaves the old files, and the temporary folder.
    """
    temporary = folder / f".{secrets.token_hex(6)}.tmp"
    before = list(written)
    try:
        temporary.mkdir()
        yield temporary
        (folder / last).unlink(missing_ok=True)
        for file in sorted(temporary.iterdir(), key=lambda file: (file.name == last, file.name)):
            os.replace(file, folder / file.name)
            before.append(str(folder / file.name))
    except OSError as error:
        if isinstance(error.filename, str):  # the user knows the folder, not the temporary one
            error.filename = error.filename.replace(str(temporary), str(folder))
        raise
    finally:
        written.clear()
        written.extend(before)
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
        yield temporary
        os.replace(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:  # the files are gone, or have another name
        for path in [path for path in written if Path(path).parent == temporary]:
            written.remove(path)
    written.append(str(folder))
