"""UBI: OpenSearch's User Behavior Insights, events and queries in any number of files.   sources -> parts

A list is a UBI query_id; the query is the text that the user typed. Impression events say what was shown. Without any,
the result lists of the query rows (query_response_hit_ids) count as shown, down to `page_size`. A document's position
is its place in the result list or, if it is not there, its ordinal. This layout reads schemas 1.0 to 1.3, as plain
NDJSON, as bulk NDJSON with action lines, wrapped in `_source`, or as Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmix.engines.engine import embedded
from clickmix.engines.sql import listed, literal, name
from clickmix.errors import InputError, SettingError, several
from clickmix.log.bad_rows import broken_lines
from clickmix.log.layout import LAYOUTS, Part, Roles
from clickmix.log.layouts.rows import RowLayout
from clickmix.log.refused import Note
from clickmix.log.source import Registered, Source
from clickmix.log.times import utc
from clickmix.registry import Option

if TYPE_CHECKING:
    from clickmix.engines.duckdb import DuckDB
    from clickmix.engines.engine import Engine

BASES = ("auto", "0", "1")
MOST_ACTIONS = 20
HITS = ("query_response_hit_ids", "query_response_objects_ids")  # a result list, and as OpenSearch's docs call it
BOTH = "impressions and clicks"
# What query rows have besides the text.
OF_QUERIES = {"timestamp", "client_id", "query_attributes", "query_response_id", "query_response_hit_ids"}
POSITION_BASE = Option("position_base", "UBI, GA4: whether positions start at 0 or 1; auto finds out.", choices=BASES)
OPTIONS = (
    POSITION_BASE,
    Option("click_actions", "UBI: actions that are clicks, for instance click,item_click."),
    Option("page_size", "UBI without impression events: how many results people were shown.", type=int),
    Option("application", "UBI: read the events of one application only."),
    Option("start", "UBI: leave out lists that began before this time (UTC), for instance 2026-11-01."),
    Option("end", "UBI: leave out lists that began at this time or later."),
)
FILTERS = ("application", "start", "end")


@LAYOUTS.register("ubi", help="OpenSearch User Behavior Insights: ubi_events and ubi_queries.", options=OPTIONS)
@dataclass(frozen=True)
class Ubi(RowLayout):
    """Events and queries of User Behavior Insights."""

    position_base: str = "auto"
    click_actions: str = "click"
    page_size: int | None = None
    application: str | None = None
    start: str | None = None
    end: str | None = None

    def recognises(self, source: Source, roles: Roles) -> bool:
        """Whether the source has events, or queries without documents."""
        columns = set(source.types)
        others = {*map(roles.column, ("doc_id", "doc_ids", "position", "clicked")), "click", "rank"}
        queries = {"query_id", "user_query"} <= columns and bool(OF_QUERIES & columns) and not others & columns
        return {"action_name", "timestamp"} <= columns or queries

    def open(
        self, sources: Sequence[Source], roles: Roles, engine: Engine
    ) -> tuple[tuple[Part, ...], tuple[Note, ...]]:
        """The impressions of all files together, and the lines that are not events."""
        database = embedded(engine, of="reading UBI")
        if self.position_base not in BASES:
            raise SettingError(f"position_base {self.position_base!r}: expected one of {', '.join(BASES)}.")
        objects = " UNION ALL ".join(f"SELECT json FROM {source.objects()}" for source in sources)
        where = ", ".join(map(str, sources))
        tables = _Tables(self, database, f"({objects})", roles.context, where)
        table, notes = tables.impressions()
        source = Registered(database.types(table), registered=table, shown_as=where)
        part = Part(source, self, Roles({}, roles.context, roles.lists))
        return (part, *broken_lines(sources, self, roles, database)), tuple(note for note in notes if note.times)


class _Tables:
    """The tables on the way from events and queries to impressions, one statement after the other."""

    def __init__(self, settings: Ubi, engine: DuckDB, objects: str, context: Sequence[str], where: str) -> None:
        self.settings, self.engine, self.context, self.where = settings, engine, context, where
        # elasticdump and others wrap a document in `_source`.
        unwrapped = f"(SELECT coalesce(json -> '$._source', json) AS j FROM {objects} WHERE json IS NOT NULL)"
        self.events = engine.keep(self._events(unwrapped))
        self.queries = engine.keep(self._queries(unwrapped))
        if not engine.rows(f"SELECT 1 FROM {self.events} LIMIT 1"):
            self._check_found(unwrapped)
        self.timeless = self._keep_span() if settings.start or settings.end else 0

    def _check_found(self, objects: str) -> None:
        """Raise if no row is UBI's, or none is of the application: query rows of old schemas count for any."""
        any_field = listed(f"j ->> '$.{field}'" for field in ("action_name", "user_query", *HITS))
        found = self.engine.rows(
            f"SELECT j ->> '$.application', count(*) FROM {objects} WHERE coalesce({any_field}) IS NOT NULL "
            "GROUP BY 1 ORDER BY 2 DESC, 1"
        )
        if not found:
            only = self._given(("page_size", *FILTERS)) or "--format ubi"
            raise InputError(
                f"{self.where}: not a UBI log: no row has action_name or user_query. Leave out what is for UBI only "
                f"({only}), or pass the files of ubi_events and ubi_queries."
            )
        wanted, names = self.settings.application, [f"{name} ({rows:,})" for name, rows in found if name]
        if wanted and wanted not in [name for name, _ in found]:
            named = f"Found {', '.join(names[:MOST_ACTIONS])}" if names else "No row names one; leave --application out"
            raise InputError(f"{self.where}: nothing is of the application {wanted!r} (--application). {named}.")

    def _given(self, names: Sequence[str]) -> str:
        values = ((name.replace("_", "-"), getattr(self.settings, name)) for name in names)
        return " ".join(f"--{name} {value}" for name, value in values if value is not None)

    def _events(self, objects: str) -> str:
        """Events with their fields; some tools write event_attributes as JSON text."""
        attributes = "j -> '$.event_attributes'"
        ordinal = "e ->> '$.position.ordinal'"
        clicks = listed(literal(word.strip().lower()) for word in self.settings.click_actions.split(","))
        fields = {
            "action": "lower(j ->> '$.action_name')",
            "kind": f"CASE WHEN lower(j ->> '$.action_name') IN ({clicks}) THEN 'click' "
            "WHEN lower(j ->> '$.action_name') = 'impression' THEN 'impression' END",
            "id": "nullif(j ->> '$.query_id', '')",
            "doc": "nullif(e ->> '$.object.object_id', '')",
            "ordinal": f"coalesce(TRY_CAST({ordinal} AS BIGINT), TRY_CAST(e ->> '$.position.ordinal.index' AS BIGINT))",
            "nested": "json_type(e, '$.position.ordinal') = 'OBJECT'",
            "text": "nullif(j ->> '$.user_query', '')",
            "number_time": "json_type(j, '$.timestamp') NOT IN ('VARCHAR', 'NULL')",
            "time": utc("(j ->> '$.timestamp')"),
            **self._context_fields(),
        }
        as_text = "TRY_CAST(j ->> '$.event_attributes' AS JSON)"
        parsed = f"CASE WHEN json_type({attributes}) = 'VARCHAR' THEN {as_text} ELSE {attributes} END"
        selected = listed(f"{sql} AS {alias}" for alias, sql in fields.items())
        return (
            f"SELECT {selected} FROM (SELECT j, {parsed} AS e FROM {objects}) "
            f"WHERE j ->> '$.action_name' IS NOT NULL{self._of_application('FALSE')}"
        )

    def _queries(self, objects: str) -> str:
        """Query rows with their text and result list."""
        hits = "coalesce(" + listed(f"j -> '$.{field}'" for field in HITS) + ")"
        fields = {
            "id": "nullif(j ->> '$.query_id', '')",
            "text": "nullif(j ->> '$.user_query', '')",
            "hits": f"coalesce(TRY_CAST({hits} AS VARCHAR[]), [])",
            "time": utc("(j ->> '$.timestamp')"),
            **self._context_fields(),
        }
        selected = listed(f"{sql} AS {alias}" for alias, sql in fields.items())
        is_query = "j ->> '$.action_name' IS NULL AND j ->> '$.query_id' IS NOT NULL"
        return f"SELECT {selected} FROM {objects} WHERE {is_query}{self._of_application('TRUE')}"

    def _context_fields(self) -> dict[str, str]:
        return {
            f"context_{i}": f"json_extract_string(j, {literal('$.' + column)})" for i, column in enumerate(self.context)
        }

    def _of_application(self, unnamed: str) -> str:
        """SQL that keeps one application; old schemas do not name it in query rows."""
        wanted = self.settings.application
        return f" AND coalesce(j ->> '$.application' = {literal(wanted)}, {unnamed})" if wanted else ""

    def _keep_span(self) -> int:
        """Keep whole lists that began in a span of time; return how many have no readable time."""
        kept = []
        for sign, bound in ((">=", self.settings.start), ("<", self.settings.end)):
            if bound:
                time = utc(literal(bound))
                if self.engine.rows(f"SELECT ({time}) IS NULL")[0][0]:
                    raise SettingError(f"{bound!r} is not a time. Write it as 2026-11-01 or 2026-11-01T12:00:00.")
                kept.append(f"began {sign} {time}")
        both = f"SELECT id, time FROM {self.events} UNION ALL SELECT id, time FROM {self.queries}"
        began = self.engine.keep(f"SELECT id, min(time) AS began FROM ({both}) GROUP BY id")
        for table in ("events", "queries"):
            within = f"SELECT t.* FROM {getattr(self, table)} AS t JOIN {began} USING (id) WHERE {' AND '.join(kept)}"
            setattr(self, table, self.engine.keep(within))
        ((timeless, kept_lists, first, last),) = self.engine.rows(
            f"SELECT count(*) FILTER (began IS NULL), count(*) FILTER ({' AND '.join(kept)}), "
            f"CAST(date_trunc('second', min(began)) AS VARCHAR), CAST(date_trunc('second', max(began)) AS VARCHAR) "
            f"FROM {began} WHERE id IS NOT NULL"
        )
        if not kept_lists:
            told = f"Lists began from {first} to {last} (UTC)" if first else "No list has a readable time"
            raise InputError(f"{self.where}: no list began in the time of {self._given(FILTERS)}. {told}.")
        return int(timeless)

    def impressions(self) -> tuple[str, list[Note]]:
        """The table of impressions, and what was odd."""
        engine = self.engine
        ((shown,),) = engine.rows(f"SELECT count(*) FROM {self.events} WHERE kind = 'impression'")
        numbers = self._lucene_numbers()
        chosen = engine.keep(self._chosen(ignore=bool(shown and numbers)))
        if not shown and numbers:
            raise InputError(
                f"{self.where}: query_response_hit_ids are Lucene's document numbers ({numbers}), which no click "
                "names. Set ext.ubi.object_id_field in the search request, and log again; or log impression events."
            )
        if not shown and not engine.rows(f"SELECT 1 FROM {chosen} WHERE len(hits) > 0 LIMIT 1"):
            filters = self._given(FILTERS)
            raise InputError(
                f"{self.where}: neither impression events nor query_response_hit_ids"
                f"{f' are left by {filters}' if filters else ''}, so it is unknown what was shown. Pass the files of "
                "ubi_events and ubi_queries together."
            )
        pairs = engine.keep(self._pairs(chosen, with_events=bool(shown)))
        placed = engine.keep(self._placed(pairs, chosen))
        names = ["query_id", "doc_id", "position", "clicked", "session_id", *map(name, self.context)]
        good = "text IS NOT NULL AND position >= 1"
        contexts = [f"context_{i}" for i in range(len(self.context))]
        selected = zip(["text", "doc", "position", "clicked", "id", *contexts], names, strict=True)
        table = engine.keep(f"SELECT {listed(f'{a} AS {b}' for a, b in selected)} FROM {placed} WHERE {good}")
        return table, [*self._event_notes(bool(shown)), *self._query_notes(chosen, numbers), *self._place_notes(placed)]

    def _lucene_numbers(self) -> str:
        """Examples of result ids that look like Lucene's document numbers: small integers that no event names."""
        ((hits, odd, known, examples),) = self.engine.rows(
            f"WITH h AS (SELECT DISTINCT unnest(hits) AS hit FROM {self.queries}) SELECT count(*), "
            "count(*) FILTER (regexp_full_match(hit, '-1|[0-9]{1,9}')), "
            f"count(*) FILTER (hit IN (SELECT doc FROM {self.events} WHERE kind IS NOT NULL AND doc IS NOT NULL)), "
            "array_to_string(list_slice(list(hit ORDER BY hit), 1, 3), ', ') FROM h"
        )
        return str(examples) if hits and odd == hits and not known else ""

    def _chosen(self, *, ignore: bool) -> str:
        """One row per query id: the text and result list that best fit what was shown and clicked.

        Several rows per id are common: searches for facets have an empty list. The result list with more of the clicked
        documents fits better; of equals, the one with more of those shown. If an id has two texts and neither fits
        better, it gets no text.
        """
        seen = (
            f"SELECT id, doc, bool_or(kind = 'click') AS clicked FROM {self.events} WHERE kind IS NOT NULL GROUP BY ALL"
        )
        hits = "CAST([] AS VARCHAR[])" if ignore else "hits"
        contexts = "".join(f", min(context_{i}) AS context_{i}" for i in range(len(self.context)))
        return (
            "WITH seen AS (SELECT id, list(doc) AS docs, list(doc) FILTER (clicked) AS clicked_docs "
            f"FROM ({seen}) GROUP BY id), "
            "fitting AS (SELECT q.*, [len(list_intersect(hits, coalesce(clicked_docs, []))), "
            f"len(list_intersect(hits, coalesce(docs, [])))] AS fit FROM {self.queries} AS q "
            "LEFT JOIN seen USING (id)), "
            "ranked AS (SELECT *, fit > [0, 0] AND fit = max(fit) OVER (PARTITION BY id) AS fits, row_number() OVER "
            "(PARTITION BY id ORDER BY fit DESC, len(hits) DESC, text NULLS LAST, hits) AS nth FROM fitting), "
            "told AS (SELECT id, count(*) AS rows, count(DISTINCT text) AS texts, "
            "count(DISTINCT hits) FILTER (len(hits) > 0) AS lists, any_value(hits) FILTER (nth = 1) AS hits, "
            "CASE WHEN count(DISTINCT text) = 1 THEN min(text) "
            "WHEN count(DISTINCT text) FILTER (fits) = 1 THEN min(text) FILTER (fits) END AS text"
            f"{contexts} FROM ranked GROUP BY id) "
            f"SELECT * REPLACE ({hits} AS hits) FROM told"
        )

    def _pairs(self, chosen: str, *, with_events: bool) -> str:
        """What was shown and what was clicked, each document once per list; a click alone counts as shown."""
        contexts = "".join(f", min(context_{i}) AS context_{i}" for i in range(len(self.context)))
        of_event = (
            f"SELECT id, doc, min(ordinal) AS ordinal, min(text) AS event_text, count(*) AS times{contexts} "
            f"FROM {self.events} WHERE kind = '{{}}' AND id IS NOT NULL AND doc IS NOT NULL GROUP BY id, doc"
        )
        page = f"list_slice(hits, 1, {int(self.settings.page_size)})" if self.settings.page_size else "hits"
        no_contexts = "".join(f", context_{i}" for i in range(len(self.context)))
        of_hits = (
            f"SELECT DISTINCT id, unnest({page}) AS doc, CAST(NULL AS BIGINT) AS ordinal, CAST(NULL AS VARCHAR) "
            f"AS event_text, 1 AS times{no_contexts} FROM {chosen}"
        )
        shown = of_event.format("impression") if with_events else of_hits
        both = "".join(f", coalesce(s.context_{i}, k.context_{i}) AS context_{i}" for i in range(len(self.context)))
        return (
            f"SELECT id, doc, coalesce(s.ordinal, k.ordinal) AS ordinal, coalesce(s.event_text, k.event_text) AS "
            f"event_text, k.id IS NOT NULL AS clicked, s.id IS NULL AS unshown{both} FROM ({shown}) AS s "
            f"FULL JOIN ({of_event.format('click')}) AS k USING (id, doc)"
        )

    def _placed(self, pairs: str, chosen: str) -> str:
        """Impressions with their text and position."""
        base = self.settings.position_base
        found = "CASE WHEN first_ordinal > 1 THEN usual ELSE least(first_ordinal, 1) END" if base == "auto" else base
        contexts = "".join(f", coalesce(p.context_{i}, q.context_{i}) AS context_{i}" for i in range(len(self.context)))
        return (
            f"WITH firsts AS (SELECT id, min(ordinal) AS first_ordinal FROM {pairs} GROUP BY id), "
            "usual AS (SELECT CASE WHEN 2 * count(*) FILTER (first_ordinal <= 0) >= greatest(count(*), 1) THEN 0 "
            "ELSE 1 END AS usual FROM firsts WHERE first_ordinal <= 1), "
            "known AS (SELECT p.id, doc, clicked, unshown, ordinal, first_ordinal, event_text, q.id IS NULL AS no_row, "
            f"coalesce(texts, 0) AS texts, q.text AS row_text, {found} AS base, "
            f"nullif(list_position(hits, doc), 0) AS place{contexts} "
            f"FROM {pairs} AS p JOIN firsts USING (id) CROSS JOIN usual LEFT JOIN {chosen} AS q ON q.id = p.id) "
            "SELECT *, coalesce(place, ordinal - base + 1) AS position, "
            "CASE WHEN texts > 1 THEN row_text ELSE coalesce(row_text, list_text) END AS text FROM (SELECT *, "
            "min(event_text) OVER (PARTITION BY id) AS list_text FROM known)"
        )

    def _event_notes(self, with_events: bool) -> list[Note]:
        unused = self.engine.rows(
            f"SELECT action, count(*) FROM {self.events} WHERE kind IS NULL GROUP BY action ORDER BY 2 DESC, 1"
        )
        named = ", ".join(f"{action} ({times:,})" for action, times in unused[:MOST_ACTIONS])
        more = f" and {len(unused) - MOST_ACTIONS} more" if len(unused) > MOST_ACTIONS else ""
        ((no_id, nested, number_time),) = self.engine.rows(
            "SELECT count(*) FILTER (kind IS NOT NULL AND (id IS NULL OR doc IS NULL)), "
            f"count(*) FILTER (kind IS NOT NULL AND nested), count(*) FILTER (number_time) FROM {self.events}"
        )
        per = (
            f"SELECT kind, max(n) AS again, sum(n) AS times, count(*) AS ordinals FROM (SELECT kind, id, doc, ordinal, "
            f"count(*) AS n FROM {self.events} WHERE kind IS NOT NULL GROUP BY ALL) GROUP BY kind, id, doc"
        )
        ((again, moving, clicked_again, clicks_again),) = self.engine.rows(
            "SELECT count(*) FILTER (kind = 'impression' AND again > 1), "
            "count(*) FILTER (kind = 'impression' AND ordinals > 1), count(*) FILTER (kind = 'click' AND times > 1), "
            f"coalesce(sum(times - 1) FILTER (kind = 'click'), 0)::BIGINT FROM ({per})"
        )
        lists = 0 if with_events else self.engine.rows(f"SELECT count(*) FROM {self.queries} WHERE len(hits) > 0")[0][0]
        unused_times = sum(times for _, times in unused)
        return [
            Note("event", f"with an action that is not used: {named}{more}", unused_times),
            Note("list", "without a readable time: left out", self.timeless),
            Note("impression or click", "without query_id or object_id: skipped", no_id, BOTH),
            Note("impression", "sent again: counted once", again),
            Note("impression", "sent again with another ordinal: the smallest counts", moving),
            Note("document", f"clicked again in a list ({several(clicks_again, 'time')}): counted once", clicked_again),
            Note("ordinal", "written as ordinal.index", nested),
            Note("event", "with the time in milliseconds", number_time),
            Note("result list", "and no impression events: whole result lists count as shown", lists),
        ]

    def _query_notes(self, chosen: str, ignored: str) -> list[Note]:
        ((again, rows, ambiguous, lists, unclear),) = self.engine.rows(
            "SELECT count(*) FILTER (rows > 1), coalesce(sum(rows - 1), 0)::BIGINT, "
            "count(*) FILTER (texts > 1 AND text IS NOT NULL), "
            "count(*) FILTER (texts > 1 AND text IS NOT NULL AND lists > 1), "
            f"count(*) FILTER (texts > 1 AND text IS NULL) FROM {chosen}"
        )
        ((other, shown, clicked),) = self.engine.rows(
            "SELECT count(*) FILTER (e.text <> q.text), count(*) FILTER (q.id IS NULL AND kind = 'impression'), "
            f"count(*) FILTER (q.id IS NULL AND kind = 'click') FROM {self.events} AS e LEFT JOIN {chosen} AS q "
            "USING (id) WHERE kind IS NOT NULL AND e.id IS NOT NULL"
        )
        of_lists = f" ({lists:,} with several result lists)" if lists else ""
        of_clicks = f"and {several(clicked, 'click')} " if clicked else ""
        numbers = self.engine.rows(f"SELECT count(*) FROM {self.queries} WHERE len(hits) > 0")[0][0] if ignored else 0
        return [
            Note(
                "query id",
                f"with several query rows ({rows:,} more): the result list that fits the events best is used",
                again,
            ),
            Note(
                "query id", f"with several user queries{of_lists}: the one whose results were shown is used", ambiguous
            ),
            Note("query id", "with several user queries, and no result list shows which is right: skipped", unclear),
            Note(
                "impression or click",
                "with another user_query than the query row: the query row's is used",
                other,
                BOTH,
            ),
            Note(
                "impression",
                f"{of_clicks}with a query_id without a query row: the event's user_query is used, if any",
                shown,
            ),
            Note(
                "result list",
                f"of Lucene's document numbers ({ignored}), which no event names: ignored. Set "
                "ext.ubi.object_id_field in the search request",
                numbers,
            ),
        ]

    def _place_notes(self, placed: str) -> list[Note]:
        ((pairs, clicks, unshown, moved, textless, placeless),) = self.engine.rows(
            "SELECT count(*), count(*) FILTER (clicked), count(*) FILTER (unshown), "
            "count(*) FILTER (place <> ordinal - base + 1), count(*) FILTER (text IS NULL), "
            f"count(*) FILTER (text IS NOT NULL AND coalesce(position, 0) < 1) FROM {placed}"
        )
        per_list = (
            "SELECT min(ordinal) FILTER (NOT unshown) AS first, "
            "bool_or(ordinal = place) AND bool_or(ordinal = place - 1) AS two_bases, "
            f"count(position) - count(DISTINCT position) AS shared FROM {placed} GROUP BY id"
        )
        ((lists, zero, one, both, shared),) = self.engine.rows(
            "SELECT count(*), count(*) FILTER (first = 0), count(*) FILTER (first = 1), "
            f"count(*) FILTER (two_bases), coalesce(sum(shared), 0)::BIGINT FROM ({per_list})"
        )
        mixed = zero and one and self.settings.position_base == "auto"
        return [
            Note("impression", f"with {several(clicks, 'click')} in {several(lists, 'list')} found", pairs),
            Note("click", "without an impression: counted as shown", unshown),
            Note("list", f"beginning at ordinal 0 and {one:,} at 1: each counts from there", zero if mixed else 0),
            Note("list", "with some ordinals from 0 and others from 1, by the result list", both),
            Note("ordinal", "other than the place in the result list: the place is used", moved),
            Note("document", "sharing a position with another document of the list: kept", shared),
            Note("impression", "without query text: skipped", textless),
            Note("impression", "without a valid position: skipped", placeless),
        ]
