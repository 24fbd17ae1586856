"""Folders of several files: each appears whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from clickmix.errors import InputError, written
from clickmix.storage.files import check_writable


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
