"""Runs the command in forked processes, where a call to the system fails or kills the process; see failing_calls.c.

Everything is loaded once, so that a run takes as long as the work itself. Reads requests from standard input, one JSON
object per line, and answers each with another one.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import pkgutil
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import typer.main

import clickmix
from clickmix import cli
from clickmix.lab import demo
from clickmix.lab.collections import production
from clickmix.report import log_page

NOT_LOADED = ("spark", "postgres", "__main__")  # their packages start threads, or are not needed


def load_everything() -> None:
    """Import all modules of the package, and the packages that it imports late."""
    for module in pkgutil.walk_packages(clickmix.__path__, "clickmix."):
        if not any(word in module.name for word in NOT_LOADED):
            importlib.import_module(module.name)
    for name in ("lightgbm", "jinja2", "scipy.stats", "onnx", "sqlglot", "rich.progress"):
        importlib.import_module(name)


def load_what_a_fit_needs() -> None:
    """Import what modules import only when they work: a child works, and says what it had loaded in the end."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        counts = clickmix.Counts.from_arrays(["q"] * 4, [1, 2, 3, 4], [1, 1, 2, 2], [90, 90, 90, 90], [60, 5, 40, 2])
        fit = clickmix.MixtureCorrection().fit(counts)
        log_page(counts, fit, sources=[], correction="mixture")
        with os.fdopen(writer, "w") as pipe:
            pipe.write(" ".join(sys.modules))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        for name in pipe.read().split():
            with contextlib.suppress(Exception):  # some are parts of others, and cannot be imported alone
                importlib.import_module(name)
    os.wait()


def make_simulations_small() -> None:
    """A demo and simulations of the same steps in a tenth of a second."""
    for name, value in {"QUERIES": 60, "CLICKS": 3_000, "TREES": 2}.items():
        setattr(demo, name, value)
    production.TREES = 2


def run_forked(request: dict[str, Any], library: ctypes.CDLL) -> dict[str, Any]:
    """Run a command in a child process: its code, output and calls, peak megabytes, and seconds of CPU."""
    folder = Path(request["folder"])
    out, err = folder.parent / "out.txt", folder.parent / "err.txt"
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.environ["TMPDIR"] = request["temporary"]
        sys.argv = ["clickmix", *request["words"]]
        first, last, error = request["fail"]
        library.arm(f"{folder}/".encode(), f"{request['temporary']}/".encode(), first, last, error)
        try:
            cli.main()
        except SystemExit as ended:
            # What a process does in the end, but for taking a hundred loaded modules apart.
            gc.collect(0)
            atexit._run_exitfuncs()
            sys.stdout.flush()
            os._exit(ended.code if isinstance(ended.code, int) else 1)
        finally:
            traceback.print_exc()  # to the error stream, where the judge finds it
            os._exit(1)
    killer = None
    if request["kill_after"] is not None:
        killer = os.fork()
        if killer == 0:
            time.sleep(request["kill_after"])
            os.kill(child, signal.SIGKILL)
            os._exit(0)
    _, status, usage = os.wait4(child, 0)
    if killer is not None:
        os.kill(killer, signal.SIGKILL)
        os.waitpid(killer, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "out": out.read_text(errors="replace"),
        "err": err.read_text(errors="replace"),
        "calls": library.calls(),
        "megabytes": usage.ru_maxrss / 1024,
        "seconds": usage.ru_utime + usage.ru_stime,
    }


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    load_everything()
    load_what_a_fit_needs()
    make_simulations_small()
    typer.main.get_command = functools.cache(typer.main.get_command)
    typer.main.get_command(cli.app)
    gc.freeze()
    shared = ctypes.CDLL(os.environ["LD_PRELOAD"])
    print("{}", flush=True)  # noqa: T201
    for line in sys.stdin:
        print(json.dumps(run_forked(json.loads(line), shared)), flush=True)  # noqa: T201
    os._exit(0)  # no need to take a hundred loaded modules apart
