"""Open a log: choose its layout, say which column means what, and what is missing.   sources -> the parts to count

Messages about missing columns name likely candidates. A path finds a list inside a column: `doc_ids`, `results[].sku`
or `search.items[].document.id`. It is a list of the source (Parquet, frames, tables) or JSON text (CSV, NDJSON). Its
elements are values, or objects in which the path names a field.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from clickmix.engines.engine import Engine
from clickmix.errors import InputError, MissingColumnError, SettingError
from clickmix.log.files import are_paths, passed_over, unreadable
from clickmix.log.layout import COUNTED, LAYOUTS, Layout, Lists, Part, Roles
from clickmix.log.not_logs import advice_on_table
from clickmix.log.refused import Note
from clickmix.log.source import Source, kind_of

KEYS = ("query_id", "doc_id", "position")
RESERVED = ("query_id", "doc_id", "position", "list", "impressions", "clicks", "relevance")
MOST_NAMES = 12
# What other tools and shops call these columns: letters and digits only, in lower case.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query", "q", "term", "searchterm", "searchquery", "userquery", "querytext", "keyword", "keywords",
                 "qid", "search", "searchphrase", "phrase", "querymd5", "suchbegriff", "srchid", "queryno"),
    "doc_id": ("docid", "doc", "document", "documentid", "sku", "product", "productid", "item", "itemid", "asin", "url",
               "objectid", "article", "articleid", "urlmd5", "propid", "did", "id", "resultid"),
    "position": ("rank", "pos", "index", "slot", "ordinal", "place", "itemlistindex", "resultrank", "ranking"),
    "clicked": ("click", "isclick", "isclicked", "clickbool", "wasclicked", "clickedflag", "hasclick"),
    "impressions": ("impression", "views", "shown", "shows", "impr", "displays", "seen"),
    "clicks": ("clickcount", "nclicks", "numclicks", "clicktotal"),
    "session_id": ("session", "sessionid", "sid", "visit", "visitid", "searchid", "serpid", "requestid",
                   "sessionidhash"),
    "doc_ids": ("docids", "results", "items", "documents", "productids", "hits", "skus", "querydocids",
                "productskushash", "hitids", "resultids", "urls", "itemids"),
    "clicked_ids": ("clicks", "clickedids", "clickedskushash", "clickedskus", "clickeditems", "clickeddocs",
                    "clickeddocids", "clickedproducts"),
    "clicked_positions": ("clickpositions", "clickedranks", "clickranks"),
}  # fmt: skip
MOST_NAMED = 5  # unread files of a folder named in a message


@dataclass(frozen=True)
class OpenedLog:
    """A log that can be counted: its sources, its parts, and notes on what was odd when it was opened."""

    sources: tuple[Source, ...]
    parts: tuple[Part, ...]
    roles: Roles
    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.sources))


def choose_layout(format: str | Layout = "auto", **options: Any) -> Layout:
    """The layout of that name with its options, or the given layout. Options that only one layout has choose it."""
    if not isinstance(format, Layout):
        given = {key for key, value in options.items() if value is not None}
        takers = [member.name for member in LAYOUTS if given <= {option.name for option in member.options}]
        if format == "auto" and given and len(takers) > 1:
            raise SettingError(
                f"{min(given)} is for {', '.join(takers)}, and the format is auto. Say which with --format "
                f"{' or '.join(takers)}."
            )
        return LAYOUTS.make(takers[0] if format == "auto" and given and takers else format, **options)
    if options:
        raise SettingError(f"{next(iter(options))}: the format is an object that has its settings. Leave it out.")
    return format


def split_options(format: str | Layout, options: Mapping[str, Any]) -> tuple[Layout, dict[str, Any]]:
    """The layout with the options that belong to layouts, and the other options."""
    names = {option.name for option in LAYOUTS.options()}
    layout = choose_layout(format, **{name: value for name, value in options.items() if name in names})
    return layout, {name: value for name, value in options.items() if name not in names}


def open_log(
    log: object,
    *,
    engine: Engine,
    layout: Layout | None = None,
    columns: Mapping[str, str] | None = None,
    context: str | Sequence[str] = (),
    lists: Lists = False,
) -> OpenedLog:
    """Find the files, tables or the frame of a log, look at their columns, and say what is missing."""
    columns, context = checked_columns(columns or {}), checked_context(context)
    if lists and context:
        raise SettingError(f"context {context[0]!r}: result lists cannot have context columns. Leave one of them out.")
    layout = layout or choose_layout()
    sources = tuple(_named_alike(source, columns, engine) for source in layout.find(log, engine))
    roles = Roles(columns | _in_capitals(sources, columns), context, lists)
    try:
        parts, notes = layout.open(sources, roles, engine)
    except duckdb.Error as error:
        raise unreadable(", ".join(map(str, sources)), error) from None
    others = passed_over(log) if engine.embedded is not None and are_paths(log) else []
    if others:
        named = ", ".join(map(str, others[:MOST_NAMED])) + (", and others" if len(others) > MOST_NAMED else "")
        notes = (Note("file or folder", f"skipped: {named}", len(others), "files or folders"), *notes)
    return OpenedLog(sources, parts, roles, notes)


def _named_alike(source: Source, columns: Mapping[str, str], engine: Engine) -> Source:
    """Rename the columns of a counts file, which has the standard names, to those of the raw log."""
    duck = engine.embedded
    if not (columns and duck is not None and len(source.notes(duck)) == len(source.files) > 0):
        return source
    renamed = {role: column for role, column in columns.items() if role in source.types and role != column}
    types = {renamed.get(column, column): type for column, type in source.types.items()}
    twice = [role for role, column in renamed.items() if column in source.types and column not in renamed]
    if twice:
        raise InputError(
            f"{source}: the columns {twice[0]} and {columns[twice[0]]!r} would both be called {columns[twice[0]]!r}. "
            "Count the raw log again, or leave one of the two out."
        )
    return source.rename(renamed, types)


def _in_capitals(sources: Sequence[Source], columns: Mapping[str, str]) -> dict[str, str]:
    """Columns that all sources write in another case, as Snowflake does: QUERY_ID."""
    counted = any(columns.get(role, role) in source.types for role in COUNTED for source in sources)
    found = {}
    for role in all_roles():
        wanted = columns.get(role, role)
        names = {same_but_case(wanted, source.types) for source in sources}
        if len(names) == 1 and names not in ({None}, {wanted}) and not (counted and role == "clicked"):
            found[role] = str(names.pop())
    return found


def all_roles() -> tuple[str, ...]:
    """Every column that means something in some layout."""
    return tuple(dict.fromkeys(role for member in LAYOUTS for role in member.make().roles))


def checked_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """Which column means what, as given; raises on an unknown meaning."""
    for role in columns:
        if role not in all_roles():
            expected = " or ".join(nearest_names(role, all_roles()) or all_roles())
            raise SettingError(f"columns: a click log has no {role!r}. Expected {expected}.")
    return dict(columns)


def checked_context(context: str | Sequence[str]) -> tuple[str, ...]:
    """The context columns (one can be given as text); raises on names that mean something else."""
    names = (context,) if isinstance(context, str) and context else tuple(context)
    lower = [column.lower() for column in names]
    for column in names:
        if column.lower() in RESERVED or lower.count(column.lower()) > 1:
            raise SettingError(f"context {column!r}: given twice, or means something else in a log. Use another name.")
    return names


def check_columns(part: Part, measures: Sequence[str]) -> None:
    """Raise unless a part has its keys, `measures`, lists and contexts, each of a type that can be right."""
    wanted = [*KEYS, *measures]
    if part.roles.lists and part.layout.row_is_impression:
        wanted.append(part.layout.list_role)
    check_present(part, wanted)
    source = part.source
    for role in (*KEYS, *measures):
        column = part.column(role)
        is_id = role in KEYS[:2]
        # The first rows of NDJSON say nothing about the others: each row is checked separately.
        kind = "text" if source.lenient and is_id else kind_of(source.types[column])
        allowed = ("text", "integer") if is_id else ("text", "integer", "real")
        if kind not in allowed and not (role == "clicked" and kind == "boolean"):
            raise InputError(
                f"{source}, column {column!r}: found {source.types[column]} values, expected "
                f"{'text or whole numbers' if is_id else 'whole numbers'} for {role}."
            )
    if part.roles.lists and not part.has(part.layout.list_role):
        raise InputError(
            f"{source}: these counts have no result lists, so it is unknown what was above a document. Count the raw "
            f"log with clickmix counts {counting_lists(part.roles.lists)}; that needs its session_id."
        )
    check_context(part)


def counting_lists(lists: Lists) -> str:
    """How to count result lists separately, on the command line and in Python."""
    by_clicks = lists == "clicks"
    return f"--lists{'-by-clicks' * by_clicks} (in Python count(log, lists={lists!r}))"


def check_context(part: Part) -> None:
    """Raise unless a part has its context columns."""
    types = part.source.types
    for column in part.roles.context:
        if column not in types:
            near = nearest_names(column, types)
            advice = f"Did you mean {' or '.join(near)}?" if near else "Name one of those."
            problem = f"{part.source}: no context column {column!r}. Found {_some(types)}."
            raise MissingColumnError(problem, advice, role="context", column=column)


def check_present(part: Part, wanted: Sequence[str]) -> None:
    """Raise if columns are missing: all of them at once, with the columns that look like them."""
    missing = [role for role in wanted if not part.has(role)]
    if not missing:
        return
    source = part.source
    taken = {part.column(role) for role in wanted if part.has(role)}
    likely = {role: found for role in missing if (found := candidate(role, part, taken))}
    named = [repr(part.column(role)) for role in missing]
    also = part.layout.instead if "clicked" in missing else ""
    other = advice_on_table(str(source), source.types) if len(likely) < len(missing) else ""
    raise MissingColumnError(
        f"{source}: missing {_enumerated(named)}{also}. Found {_some(source.types)}.",
        other or _advice(part, missing, likely),
        role=missing[0],
        column=part.column(missing[0]),
    )


def _advice(part: Part, missing: Sequence[str], likely: Mapping[str, str]) -> str:
    source = part.source
    if {"position", "clicked"} <= set(missing) and not {"position", "clicked"} & set(likely) and _pairs(source):
        return (
            "If these are clicked pairs (as in ORCAS or MS MARCO), clickmix cannot use them: they do not say what was "
            "shown and not clicked. Use a log of impressions."
        )
    # What is pasted replaces the --columns of this time, so it repeats them.
    given = {role: column for role, column in part.roles.columns.items() if column.lower() != role}
    pairs = given | {role: likely.get(role, "YOUR_COLUMN") for role in missing}
    looks = [f"`{column}` looks like {role}" for role, column in likely.items()]
    start = f"{', '.join(looks)}. If so, use " if looks else "Say which columns you mean: "
    option = shlex.quote(",".join(f"{role}={column}" for role, column in pairs.items()))
    objects = any(type.startswith(("JSON", "STRUCT")) for type in source.types.values())
    paths = " Fields inside objects have paths: doc_ids=results[].id, doc_ids=search.results[].id." if objects else ""
    return f"{start}--columns {option} (in Python columns={pairs!r}).{paths}"


def _pairs(source: Source) -> bool:
    """Whether a source may hold pairs of queries and documents: it has little else, or no header."""
    known = {role: {plain_name(role), *SYNONYMS[role]} for role in KEYS[:2]}
    plain = {plain_name(column) for column in source.types}
    others = plain - set().union(*known.values())
    return any(map(str.isdigit, plain)) or (all(plain & names for names in known.values()) and len(others) < 2)


def looks_like_lists(source: Source, roles: Roles) -> bool:
    """Whether there is a column of several documents, and none of single ones."""
    plain = {plain_name(column) for column in source.types}
    one = {plain_name(roles.column("doc_id")), *SYNONYMS["doc_id"]}
    return bool(plain & {"docids", *SYNONYMS["doc_ids"]}) and not plain & one


def candidate(role: str, part: Part, taken: set[str]) -> str | None:
    """The column that most likely has a role: one with a name that others use for it, or a very similar one."""
    known = part.layout.roles
    free = [column for column in part.source.types if column not in taken and column not in known]
    plain = {plain_name(column): column for column in reversed(free)}
    for synonym in (plain_name(role), *SYNONYMS.get(role, ())):
        if synonym in plain:
            return plain[synonym]
    return next(iter(nearest_names(role, free, alike=0.8)), None)


def plain_name(column: str) -> str:
    """A column's name as in `SYNONYMS`: letters and digits only, in lower case."""
    return re.sub("[^a-z0-9]", "", column.lower())


def nearest_names(word: str, among: Iterable[str], *, alike: float = 0.6) -> list[str]:
    """Only very similar names: users would paste a bad guess, and it would do harm."""
    lower = {option.lower(): option for option in among}
    return [lower[found] for found in difflib.get_close_matches(word.lower(), list(lower), n=2, cutoff=alike)]


def same_but_case(wanted: str, among: Iterable[str]) -> str | None:
    """The name itself if it is there; otherwise the only one that differs in case.

    >>> same_but_case("clicks", ["CLICKS", "position"])
    'CLICKS'
    """
    names = list(among)
    same = [column for column in names if column.lower() == wanted.lower()]
    return wanted if wanted in names else same[0] if len(same) == 1 else None


def _enumerated(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MOST_NAMES} more" if len(listed) > MOST_NAMES else ""
    return ", ".join(listed[:MOST_NAMES]) + more


PATH = re.compile(r"(?P<before>[^\[\]]+)(?P<each>\[\](?:\.(?P<after>[^\[\]]+))?)?")


@dataclass(frozen=True)
class ListPath:
    """Where a list is: its column, the fields in it that lead to the list, and the fields in each element."""

    column: str
    inside: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def list_path(source: Source, path: str) -> ListPath | None:
    """The list that a path names in a source, or None if the source has no such column."""
    if path in source.types:
        return ListPath(path)
    match = PATH.fullmatch(path)
    before = match["before"].split(".") if match else [path]
    starts = (".".join(before[:n]) for n in range(len(before), 0, -1))
    column = next((start for start in starts if start in source.types), None)
    if column is None:
        return None
    after = match["after"].split(".") if match and match["after"] else []
    return ListPath(column, tuple(before[column.count(".") + 1 :]), tuple(after))


def list_kind(source: Source, column: str) -> str:
    """How a column holds a list: as text (JSON), as a list, or another way (inside an object)."""
    kind = "text" if source.is_text else kind_of(source.types[column])
    return kind if kind in ("text", "list") else "other"
