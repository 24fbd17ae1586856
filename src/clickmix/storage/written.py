"""What was written so far: a command records it, so that after a failure it can say what is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from clickmix.errors import NOTHING_WRITTEN

MOST_NAMES = 20  # that a message lists


@dataclass(frozen=True)
class Written:
    """The files, folders and tables that were written, in order, each once."""

    targets: dict[str, None] = field(default_factory=dict)

    def __str__(self) -> str:
        last = list(self.targets)[-MOST_NAMES:]
        return f"Written before that: {', '.join(last)}." if last else NOTHING_WRITTEN


_recording: ContextVar[Written | None] = ContextVar("recording", default=None)


@contextlib.contextmanager
def recording() -> Iterator[Written]:
    """Record what this thread writes until the block ends. A block inside another one keeps its own record."""
    written = Written()
    outer = _recording.set(written)
    try:
        yield written
    finally:
        _recording.reset(outer)


def record(target: object) -> None:
    """Say that a file, folder or table is now in its place; nothing happens unless somebody records."""
    written = _recording.get()
    if written is not None:
        written.targets[str(target)] = None
