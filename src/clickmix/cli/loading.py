"""Modules that the command needs next, loaded while the engine reads: half a second that nobody waits for."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def loading(*modules: str) -> Iterator[None]:
    """Import modules in another thread meanwhile; one that cannot be imported fails where it is used."""

    def load() -> None:
        with contextlib.suppress(Exception):
            for module in modules:
                importlib.import_module(module)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        yield
    finally:
        thread.join()
