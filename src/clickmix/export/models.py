"""What targets of rankers share: a model in a file, and beside it the files that the engine needs to load it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from clickmix.errors import SettingError
from clickmix.export.target import TITLE, Exported, Takes
from clickmix.storage.atomic import check_writable, real_path, write_atomically

MODEL_OPTIONS = (TITLE,)


@dataclass(frozen=True)
class ModelFiles:
    """The model, the files beside it by the ends of their names, sentences about them, and requests to upload them."""

    model: bytes
    beside: Mapping[str, bytes]
    notes: tuple[str, ...]
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModelTarget:
    """An engine that takes a trained ranker; subclasses write the model in the engine's format."""

    title: str | None = None

    takes: ClassVar[Takes] = "ranker"
    limits: ClassVar[str] = ""
    titles: ClassVar[str] = "[A-Za-z0-9][A-Za-z0-9_.-]*"  # what the engine accepts as the name of a model
    titles_words: ClassVar[str] = "letters, digits, - and _, as in shop_ranker-1"

    def files(self, source: Path, title: str, output: Path) -> ModelFiles:
        """What to write to `output` and beside it."""
        raise NotImplementedError

    def write(self, source: Path, output: Path) -> Exported:
        """Write the ranker in `source` to `output`, and first the files beside it; or raise and write nothing."""
        title = self.title or real_path(source).name
        if not re.fullmatch(self.titles, title):
            raise SettingError(f"title {title!r}: expected {self.titles_words}. Pass --title.")
        files = self.files(source, title, output)
        others = {beside(output, end): data for end, data in files.beside.items()}
        for path in (output, *others):
            check_writable(path)
        for path, data in others.items():
            write_atomically(path, data)
        write_atomically(output, files.model)
        return Exported((output, *others), files.notes, files.requests)


def beside(output: Path, end: str) -> Path:
    """The path of a file that goes with another.

    >>> beside(Path("out/model.json"), "features.json").as_posix()
    'out/model.features.json'
    """
    return output.with_name(f"{output.stem}.{end}")


def upload(method: str, path: str, file: Path) -> str:
    """The request that sends a file to an engine on this machine."""
    address, body = shlex.quote(path), shlex.quote(f"@{file}")
    return f"curl -X {method} {address} -H 'Content-Type: application/json' --data-binary {body}"


def json_bytes(value: Any) -> bytes:
    """A value as JSON; numbers keep all their digits."""
    return (json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n").encode()
