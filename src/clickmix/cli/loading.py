"""Load modules that the command needs next while the engine reads. This saves half a second."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def loading(*modules: str) -> Iterator[None]:
    """Import modules in another thread; a failed import shows up again where the module is used."""

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
