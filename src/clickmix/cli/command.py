"""The command: parse, call, print. Commands import heavy modules themselves, so that --help answers at once."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Annotated, NoReturn

try:
    import typer

    import clickmix
    from clickmix.cli import comparing as cli_comparing
    from clickmix.cli import explain as cli_explain
    from clickmix.cli import export as cli_export
    from clickmix.cli import lab as cli_lab
    from clickmix.cli import labels as cli_labels
    from clickmix.cli import rankers as cli_rankers
    from clickmix.cli import sql as cli_sql
    from clickmix.cli.options import command_with, engine_options, label_options, layout_options, log_options
    from clickmix.cli.terminal import say_error, steady_streams
    from clickmix.errors import ClickmixError
    from clickmix.storage.atomic import Written, recording
except KeyboardInterrupt:  # `main` is not running yet, and there is nothing to clean up
    os._exit(128 + signal.SIGINT)

# Ctrl-C, `kill`, and a closed terminal, which Windows does not signal.
STOPPING = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]

M_TOP_PAD, KEPT = -2, 64 << 20  # of malloc.h; bytes of freed memory to keep
SELDOM = 50_000  # new objects before garbage is looked for
ADDRESSES, ADDRESSES_PER_CORE = 1 << 30, 100 << 20  # bytes that libraries and threads map before any work
# What Python and the system's loader say if there is no memory for a thread or a library.
NO_MEMORY = ("can't start new thread", "failed to map segment", "annot allocate memory")

EXIT_CODES = (
    "Exit codes: 0 done; 2 an error you can fix, in one line; 3 the verdict is as bad as --fail-on says; 130, 143, 129 "
    "stopped; 1 a bug. Every command but sql takes --json."
)
app = typer.Typer(
    name="clickmix",
    help="Turn a biased click log into relevance labels you can train a ranker on.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EXIT_CODES,
)


# Every command that reports results, its options, and whether it judges a log, so takes --fail-on.
for _command, _options, _judges in (
    (cli_labels.debias, cli_labels.correction_options, True),
    (cli_labels.counts, engine_options, False),
    (cli_labels.fit, cli_labels.mixture_options, True),
    (cli_labels.label, label_options, False),
    (cli_explain.explain, cli_labels.correction_options, False),
    (cli_labels.inspect, layout_options, True),
    (cli_comparing.compare, log_options, False),
    (cli_lab.simulate, cli_lab.user_options, False),
    (cli_lab.demo, tuple, False),
    (cli_rankers.train, cli_rankers.ranker_options, False),
    (cli_rankers.evaluate, tuple, False),
    (cli_rankers.score, tuple, False),
    (cli_export.export, cli_export.export_options, False),
    (cli_lab.reproduce, tuple, False),
):
    app.command(cls=command_with(_options, judges=_judges))(_command)
app.command()(cli_sql.sql)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"clickmix {clickmix.__version__}")
        raise typer.Exit


@app.callback()
def _before_any_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run the command; report user errors on one line, without a stack trace."""
    # The matrices are small: threads for them would only slow the engine down.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _keep_freed_memory()
    gc.set_threshold(SELDOM)  # libraries make many objects that stay, and looking through them takes time
    steady_streams()
    _check_address_space()
    with recording() as written, _stoppable(written):
        try:
            app(standalone_mode=True)
        except ClickmixError as error:
            _fail(f"{error.message} {written}" if error.nothing_written or written.targets else error.message)
        except OSError as error:
            _fail(f"{error.filename or 'file'}: {error.strerror or error}. {written}")
        except MemoryError as error:
            _fail(f"out of memory: {error}. Allow more with --memory, or free some.")
        except (RuntimeError, ImportError) as error:
            if not any(sign in str(error) for sign in NO_MEMORY):
                raise
            _fail(f"out of memory: the system allows this process no more (see ulimit -v). {written}")
    sys.exit(0)


def _keep_freed_memory() -> None:
    """Tell malloc to keep some memory: fits make and free many arrays, and the system would clear each again."""
    with contextlib.suppress(OSError, AttributeError):  # only Linux has this
        ctypes.CDLL(None).mallopt(M_TOP_PAD, KEPT)


def _check_address_space() -> None:
    """Refuse to work with so few addresses (`ulimit -v`) that libraries would crash the process."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    allowed, needed = resource.getrlimit(resource.RLIMIT_AS)[0], ADDRESSES + ADDRESSES_PER_CORE * (os.cpu_count() or 1)
    if allowed != resource.RLIM_INFINITY and allowed < needed:
        _fail(
            f"out of memory: the system allows this process {allowed >> 20:,} MB (see ulimit -v), and libraries alone "
            f"need {needed >> 20:,} MB of addresses. Allow more."
        )


def _fail(message: str) -> NoReturn:
    say_error(message)
    sys.exit(2)


class _Stopped(KeyboardInterrupt):
    """A signal arrived. Code that handles Ctrl-C handles every signal."""


@contextlib.contextmanager
def _stoppable(written: Written) -> Iterator[None]:
    """Let signals unwind the command, so that it removes partial files, and end the process quietly."""
    came: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise _Stopped

    # Ignored signals stay ignored: nohup, and background commands of a script.
    before = {number: signal.getsignal(number) for number in STOPPING}
    heard = [number for number in STOPPING if before[number] in (signal.SIG_DFL, signal.default_int_handler)]
    for number in heard:
        signal.signal(number, stop)
    try:
        yield
    except BaseException as error:
        # Spark handles Ctrl-C itself, and typer turns it into 130.
        if came or isinstance(error, KeyboardInterrupt) or (isinstance(error, SystemExit) and error.code == 130):
            _leave(came[0] if came else signal.SIGINT, written)
        raise
    finally:
        for number in heard:
            signal.signal(number, before[number])


def _leave(number: int, written: Written) -> NoReturn:
    """End the process now, whatever its other threads are doing: loading modules, or running C++ destructors."""
    for ignored in STOPPING:  # a second Ctrl-C must not interrupt the cleanup
        signal.signal(ignored, signal.SIG_IGN)
    if "clickmix.engines.duckdb" in sys.modules:
        from clickmix.engines.duckdb import remove_folders

        remove_folders()
    with contextlib.suppress(OSError):  # the terminal may be closed
        typer.echo(f"clickmix: stopped. {written}", err=True)
        sys.stdout.flush()
    os._exit(128 + number)
