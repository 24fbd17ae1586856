"""What `clickmix inspect` says a file is: a log, counts, a histogram, a model, labels, judgments, a ranker, ..."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmix.cli.options import read_json
from clickmix.cli.terminal import print_fit, say, say_rows
from clickmix.engines.sql import name
from clickmix.errors import FormatError, several
from clickmix.storage.documents import PARAMETERS_KIND, START, THETA_KIND, document_kind

if TYPE_CHECKING:
    from clickmix.log.layout import Layout
    from clickmix.log.source import Source

MOST_POSITIONS = 20
MOST_NAMES = 5
MOST_COLUMNS = 100
FIRST_ROWS = 1000  # rows that show whether columns hold numbers
FEW = 0.01  # so many bad rows per impression can be skipped without a look at why they are bad
OF_LOGS = {"position", "clicked", "impressions", "clicks", "doc_ids", "relevance", "documents"}


def inspect_files(files: list[str], *, columns: Mapping[str, str], layout: Layout, given: list[str]) -> dict[str, Any]:
    """Say what some files are, and return it. `given` are options to repeat in the command that it suggests."""
    first = Path(files[0])
    if len(files) == 1 and (first / "ranker.json").is_file():
        return _say_ranker(first)
    if len(files) == 1 and _is_document(first):
        return _say_document(first)
    if len(files) == 1 and _is_letor(first):
        train = f"clickmix train --features {shlex.quote(files[0])} --labels LABELS -o ranker"
        say(f"{first}: features and grades in LETOR's format. Train on them: {train}")
        return {"kind": "features"}
    return _say_tables(files, columns=columns, layout=layout, given=given)


def _is_document(path: Path) -> bool:
    """Whether a file is one of clickmix's JSON documents, even a damaged one, or is missing."""
    if path.suffix != ".json" or document_kind(path) != "":
        return path.suffix == ".json"
    return not path.exists() or b'"checksum"' in path.read_bytes()[:START]


def _say_document(path: Path) -> dict[str, Any]:
    from clickmix.corrections.mixture_based.fit import MixtureFit
    from clickmix.corrections.mixture_based.model_file import MODEL_KIND
    from clickmix.log.not_logs import using_parameters

    if (kind := document_kind(path)) in (PARAMETERS_KIND, THETA_KIND):
        say(f"{path}: {kind}. {using_parameters(path, kind)}")
        return {"kind": "parameters"}
    try:
        fitted = MixtureFit.read(path)
    except FormatError:
        if kind in ("", MODEL_KIND):
            raise
        say(f"{path}: a {kind}.")
        return {"kind": kind.removeprefix("clickmix ")}
    say(f"{path}: a clickmix model.")
    say(f"Label a log with it: clickmix label LOG --model {shlex.quote(str(path))} -o labels.parquet")
    return {"kind": "model", **print_fit(fitted)}


def _is_letor(path: Path) -> bool:
    if path.suffix not in (".txt", ".gz") or not path.is_file() or path.name.endswith((".csv.gz", ".parquet.gz")):
        return False
    from clickmix.storage.packed import unpacking

    with unpacking(path) if path.suffix == ".gz" else path.open("rb") as file:
        return re.match(rb"\S+ qid:", file.read(START)) is not None


def _say_ranker(folder: Path) -> dict[str, Any]:
    from clickmix.rankers.folder import read_folder

    saved = read_folder(folder)
    names = saved.feature_names
    say(f"{folder}: a {saved.ranker} ranker of {several(len(names), 'feature')}, in this order: {', '.join(names)}.")
    if saved.missing:
        say(f"Trained on missing values of {', '.join(saved.missing)}.")
    say(f"Settings: {', '.join(f'{name} {value}' for name, value in saved.settings.items())}.")
    return {
        "kind": "ranker",
        "ranker": saved.ranker,
        "features": list(names),
        "missing": list(saved.missing),
        "settings": saved.settings,
    }


def _say_tables(files: list[str], *, columns: Mapping[str, str], layout: Layout, given: list[str]) -> dict[str, Any]:
    import duckdb

    from clickmix.engines.duckdb import DuckDB
    from clickmix.log.files import unreadable
    from clickmix.log.not_logs import table_kind

    engine = DuckDB()
    sources = layout.find(files, engine)
    kinds = {table_kind(source.types) for source in sources}
    try:
        if kinds == {"labels"} and not columns:
            return _say_labels(sources, engine)
        found = None if columns else _scores_or_features(sources, engine)
    except duckdb.Error as error:
        raise unreadable(_named(sources), error) from None
    if kinds == {"histogram"}:
        command = _command("fit", files, "-o model.json", given)
        say(f"{_named(sources)}: a histogram. Fit it: {command}")
        return {"kind": "histogram", "command": command}
    if found:
        values, text = found
        say(f"{_named(sources)}: {text}")
        return values
    for source in sources:
        columns_said = [f"{column} ({type})" for column, type in source.types.items()]
        more = f", and {len(columns_said) - MOST_COLUMNS:,} more" if len(columns_said) > MOST_COLUMNS else ""
        say(f"{source}: columns {', '.join(columns_said[:MOST_COLUMNS])}{more}.")
    return _say_log(files, columns=columns, layout=layout, given=given)


def _scores_or_features(sources: tuple[Source, ...], engine: Any) -> tuple[dict[str, Any], str] | None:
    """What a table of numbers per query and document is, for --json and in words; None if it may be a log."""
    from clickmix.log.not_logs import table_kind

    names = [set(source.types) for source in sources]
    if not all({"query_id", "doc_id"} < found and not found & OF_LOGS for found in names):
        return None
    kinds = {table_kind(source.types) for source in sources}
    if kinds == {"scores"}:
        return {"kind": "scores"}, "scores and ranks of documents, as clickmix score writes them."
    if kinds == {"judgments"}:
        return {"kind": "judgments"}, "judgments: a grade per query and document, for clickmix compare --judgments."
    features = [column for column in sources[0].types if column not in ("query_id", "doc_id", "grade")]
    # concat hides the column: the CSV reader would run a bare cast itself, and fail where TRY_CAST gives NULL.
    texts = (f"concat({name(column)}, '')" for column in features)
    wrong = " OR ".join(f"({text} <> '' AND TRY_CAST({text} AS DOUBLE) IS NULL)" for text in texts)
    rows = f"SELECT * FROM {sources[0].table()} LIMIT {FIRST_ROWS}"
    if not features or engine.rows(f"SELECT 1 FROM ({rows}) WHERE {wrong} LIMIT 1"):
        return None
    shown = ", ".join(features[:MOST_NAMES]) + (", ..." if len(features) > MOST_NAMES else "")
    graded = ", and grades" if "grade" in names[0] else ""
    sizes = f"{several(len(features), 'feature')} of documents{graded} ({shown})"
    return {"kind": "features", "features": len(features)}, f"{sizes}, for clickmix train, score and evaluate."


def _say_labels(sources: tuple[Source, ...], engine: Any) -> dict[str, Any]:
    table = " UNION ALL BY NAME ".join(f"SELECT query_id, relevance FROM {source.table()}" for source in sources)
    ((rows, queries, mean),) = engine.rows(
        f"SELECT count(*), count(DISTINCT query_id), avg(TRY_CAST(concat(relevance, '') AS DOUBLE)) FROM ({table})"
    )
    labels = f"{several(rows, 'label')} of {several(queries, 'query', 'queries')}"
    say(f"{_named(sources)}: {labels}; mean relevance {mean or 0:.3f}.")
    return {"kind": "labels", "labels": rows, "queries": queries, "mean_relevance": mean}


def _say_log(files: list[str], *, columns: Mapping[str, str], layout: Layout, given: list[str]) -> dict[str, Any]:
    from clickmix.groups.log_summary import summarise
    from clickmix.log.refused import hint
    from clickmix.report.rows import Column, Kind, Rows

    seen = summarise(files, layout=layout, columns=columns)
    impressions, clicks = seen.counts.totals()
    sums = f"{several(impressions, 'impression')} and {several(clicks, 'click')}"
    say(f"A click log, format {' and '.join(seen.formats)}: {sums}.")
    sizes = f"{several(seen.queries, 'query', 'queries')} with {several(seen.documents, 'document')}"
    say(f"{sizes}, {seen.moving:.0%} of them at several places.")
    if seen.sessions is not None:
        say(f"{several(seen.sessions, 'session or list', 'sessions or lists')}.")
    if seen.twice:
        say(f"{several(seen.twice, 'time')} a document appears again in its list: each place counts as shown.")
    if seen.first:
        say("First impressions:")
        kinds: dict[str, Kind] = {"query": "text", "document": "text", "position": "count", "clicked": "count"}
        first = tuple((str(query), str(document), *rest) for query, document, *rest in seen.first)
        say_rows(Rows(tuple(Column(name, kind) for name, kind in kinds.items()), first))
    positions = Rows(
        (
            Column("position", "count"),
            Column("impressions", "count"),
            Column("clicks", "count"),
            Column("click_rate", "rate"),
        ),
        tuple((at.position, at.impressions, at.clicks, at.rate) for at in seen.positions),
    )
    say_rows(positions.first(MOST_POSITIONS))
    if len(seen.positions) > MOST_POSITIONS:
        say(f"And {several(len(seen.positions) - MOST_POSITIONS, 'more position')}.")
    for note in seen.counts.notes:
        say(str(note))
    for refused in seen.counts.refused:
        say(f"Bad rows ({refused.rows:,}): {refused.reason}. For instance {refused.examples[0]}.{hint(refused)}")
    bad = sum(refused.rows for refused in seen.counts.refused)
    by_chance = bad <= FEW * (impressions + bad) and not any(map(hint, seen.counts.refused))
    skip = ["--bad-rows skip"] if bad and by_chance else []
    command = _command("debias", files, "-o labels.parquet", [*given, *skip])
    label = "Label it" if by_chance else "Fix the bad rows first: labels without them may be wrong. Then"
    say(f"{label}: {command}")
    return {
        "kind": "log",
        "formats": list(seen.formats),
        **read_json(seen.counts),
        "queries": seen.queries,
        "documents": seen.documents,
        "sessions": seen.sessions,
        "moving": seen.moving,
        "positions": positions.json(),
        "command": command,
    }


def _named(sources: tuple[Source, ...]) -> str:
    return ", ".join(map(str, sources))


def _command(name: str, files: list[str], output: str, given: list[str]) -> str:
    return " ".join(["clickmix", name, *map(shlex.quote, files), output, *given])
