"""Where results go, checked before any work: names that can be written, and nothing that is read.   cli_labels"""

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
    """Outputs have names that can be written, and none of them is an input or the other output."""
    from clickmix.log.paths import find_files
    from clickmix.storage.atomic import check_writable

    if table is not None:
        engine.check_target(table, log=log)
    files = find_files([*(log if engine.embedded else []), *map(str, read)])
    taken = {file.resolve(): "a file that is read" for file in files}
    written = [Path(table)] if table is not None and engine.embedded else []
    for output in (*written, *others):
        check_writable(output)
        if output.resolve() in taken:
            raise InputError(f"{output}: would replace {taken[output.resolve()]}. Choose another name for the output.")
        taken[output.resolve()] = "the other output"


def check_report(path: Path) -> None:
    """What reports are made with is there, and the name is one that browsers open."""
    from clickmix.report import check_report_extra

    check_report_extra()
    if path.suffix.lower() not in (".html", ".htm"):
        raise SettingError(f"{path}: a report is an HTML file. Expected a name ending in .html.")


def counts_target(output: str | None, merge: Path | None, engine: str | None) -> str:
    """Where counts go: to a new file or table, or to the counts file that the log is added to."""
    if (output is None) == (merge is None):
        raise SettingError("counts: say where they go, either -o counts.parquet or --merge counts.parquet.")
    if merge is None:
        return str(output)
    from clickmix.engines.choose import DEFAULT, find_kind

    if not find_kind(engine or DEFAULT).embedded:
        raise SettingError("--merge: adds to a counts file, which is DuckDB's. In an engine, count to a table a day.")
    return str(merge)
