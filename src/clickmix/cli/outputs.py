"""Check outputs before any work: they can be written, and none is an input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clickmix.errors import InputError, SettingError

if TYPE_CHECKING:
    from clickmix.engines.engine import Engine


def check_outputs(
    log: list[str],
    engine: Engine,
    *,
    table: str | None = None,
    others: Sequence[Path] = (),
    read: Sequence[Path] = (),
) -> None:
    """Refuse an output that cannot be written, or that is an input or another output."""
    from clickmix.log.paths import find_files
    from clickmix.storage.atomic import check_writable

    if table is not None:
        engine.check_target(table, log=log)
    files = find_files([*(log if engine.embedded else []), *map(str, read)])
    taken = {file.resolve(): "an input" for file in files}
    written = [Path(table)] if table is not None and engine.embedded else []
    for output in (*written, *others):
        check_writable(output)
        if output.resolve() in taken:
            raise InputError(f"{output}: would replace {taken[output.resolve()]}. Choose another name for the output.")
        taken[output.resolve()] = "another output"


def check_report(path: Path) -> None:
    """Refuse a report if browsers would not open its name."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise SettingError(f"{path}: a report is an HTML file. Expected a name ending in .html.")


def counts_target(output: str | None, merge: Path | None, engine: str | None) -> str:
    """Where counts go: a new file or table, or the counts file to add to."""
    if (output is None) == (merge is None):
        raise SettingError("counts: give an output, either -o counts.parquet or --merge counts.parquet.")
    if merge is None:
        return str(output)
    from clickmix.engines.choose import DEFAULT, find_kind

    if not find_kind(engine or DEFAULT).embedded:
        raise SettingError(
            "--merge: works on counts files, with DuckDB only. In another engine, write one table per day."
        )
    return str(merge)
