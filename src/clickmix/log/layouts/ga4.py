"""GA4: Google Analytics' BigQuery export, as Parquet or NDJSON.   sources -> parts

`view_item_list` shows items, `select_item` is a click. A click belongs to the last view of that item in that list and
session. The query is the event's search_term; without one, that of the session's last search on the same page, or else
the one in the page's address. `BIGQUERY` is the same for the warehouse; `clickmix sql ga4` prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmix.engines.engine import embedded
from clickmix.engines.sql import listed, literal, name
from clickmix.errors import InputError, SettingError
from clickmix.log.bad_rows import broken_lines
from clickmix.log.layout import LAYOUTS, Part, Roles
from clickmix.log.layouts.rows import RowLayout
from clickmix.log.layouts.ubi import BASES, POSITION_BASE
from clickmix.log.refused import Note
from clickmix.log.source import Registered, Source
from clickmix.registry import Option

if TYPE_CHECKING:
    from clickmix.engines.duckdb import DuckDB
    from clickmix.engines.engine import Engine

MOST_LISTS = 5  # lists named in a message
OPTIONS = (POSITION_BASE, Option("list_name", "GA4: read only item lists of this id or name."))

# What addresses call the search term: the names that Google Analytics itself looks for.
IN_ADDRESS = "[?&](?:q|s|search|query|keyword)=([^&#]*)"
# Events of a session come in batches with one time. Within a batch, a search comes first and a click last.
KINDS = ("search", "view_search_results", "view_item_list", "select_item")
BIGQUERY = """\
WITH e AS (
  SELECT event_name, event_timestamp AS ts, IFNULL(batch_event_index, 0) AS batch,
    CONCAT(user_pseudo_id, '.', (SELECT CAST(p.value.int_value AS STRING) FROM UNNEST(event_params) AS p
      WHERE p.key = 'ga_session_id')) AS session_id,
    NULLIF(NULLIF((SELECT COALESCE(p.value.string_value, CAST(p.value.int_value AS STRING),
      CAST(p.value.double_value AS STRING)) FROM UNNEST(event_params) AS p
      WHERE p.key = 'search_term'), ''), '(not set)') AS search_term,
    IFNULL((SELECT p.value.string_value FROM UNNEST(event_params) AS p
      WHERE p.key = 'page_location'), '') AS page, items
  FROM {table}
  WHERE event_name IN ('view_item_list', 'select_item', 'search', 'view_search_results')
), found AS (
  SELECT v.ts, v.session_id, v.batch, v.page, COALESCE(v.search_term, q.search_term) AS search_term
  FROM e AS v LEFT JOIN e AS q ON q.session_id = v.session_id AND q.page = v.page AND q.ts <= v.ts
    AND q.search_term IS NOT NULL
  WHERE v.event_name = 'view_item_list'
  QUALIFY ROW_NUMBER() OVER (PARTITION BY v.ts, v.session_id, v.batch ORDER BY q.ts DESC, q.search_term DESC) = 1
), s AS (
  SELECT ts, session_id, batch, COALESCE(search_term, (
    SELECT STRING_AGG(IF(STARTS_WITH(part, '%'), SAFE_CONVERT_BYTES_TO_STRING(FROM_HEX(REPLACE(part, '%', ''))),
      part), '' ORDER BY n) FROM UNNEST(REGEXP_EXTRACT_ALL(REPLACE(
        REGEXP_EXTRACT(page, r'{in_address}'), '+', ' '), r'(?:%[0-9A-Fa-f][0-9A-Fa-f])+|[^%]+|%')) AS part
      WITH OFFSET AS n)) AS search_term
  FROM found
), i AS (
  SELECT e.event_name, e.ts, e.session_id, e.batch, e.page, it.item_id,
    NULLIF(it.item_list_id, '(not set)') AS list_key, NULLIF(it.item_list_name, '(not set)') AS list_title,
    COALESCE(NULLIF(it.item_list_id, '(not set)'), NULLIF(it.item_list_name, '(not set)'), '') AS list_name,
    SAFE_CAST(it.item_list_index AS INT64) AS idx, o AS place,
    CONCAT(CAST(e.ts AS STRING), '.', e.session_id, '.', CAST(e.batch AS STRING)) AS list_id
  FROM e, UNNEST(items) AS it WITH OFFSET AS o WHERE it.item_id <> '' AND it.item_id <> '(not set)'
), c AS (
  SELECT DISTINCT list_id, item_id, list_name FROM (
    SELECT v.list_id, v.item_id, v.list_name FROM i AS k JOIN i AS v ON v.session_id = k.session_id
      AND v.item_id = k.item_id AND (v.ts < k.ts OR v.ts = k.ts AND v.batch <= k.batch)
    WHERE k.event_name = 'select_item' AND v.event_name = 'view_item_list' AND COALESCE(v.list_key = k.list_key,
      v.list_title = k.list_title, v.list_name = '' OR k.list_name = '')
    QUALIFY ROW_NUMBER() OVER (PARTITION BY k.session_id, k.item_id, k.list_name, k.ts, k.batch
      ORDER BY v.ts DESC, v.batch DESC) = 1
  )
), b AS (
  SELECT IF(MIN(SAFE_CAST(it.item_list_index AS INT64)) >= 1, 1, 0) AS base FROM e, UNNEST(items) AS it
  WHERE event_name = 'view_item_list'
)
SELECT s.search_term AS query_id, v.item_id AS doc_id, COALESCE(v.idx + 1 - b.base, v.place + 1) AS position,
  IF(c.item_id IS NOT NULL AND v.place = MIN(v.place) OVER (PARTITION BY v.list_id, v.item_id, v.list_name), 1, 0)
    AS clicked,
  CONCAT(v.list_id, '.', v.list_name) AS session_id
FROM i AS v CROSS JOIN b JOIN s ON s.ts = v.ts AND s.session_id = v.session_id AND s.batch = v.batch
LEFT JOIN c ON c.list_id = v.list_id AND c.item_id = v.item_id AND c.list_name = v.list_name
WHERE v.event_name = 'view_item_list' AND s.search_term <> ''
QUALIFY v.idx IS NOT NULL OR v.list_id = FIRST_VALUE(v.list_id) OVER (
  PARTITION BY v.session_id, v.page, v.list_name, s.search_term ORDER BY v.ts, v.batch)
"""


@LAYOUTS.register("ga4", help="Google Analytics 4: the events of its BigQuery export.", options=OPTIONS)
@dataclass(frozen=True)
class Ga4(RowLayout):
    """Events of Google Analytics 4."""

    position_base: str = "auto"
    list_name: str | None = None

    def recognises(self, source: Source, roles: Roles) -> bool:
        """Whether the source has GA4's events."""
        return {"event_name", "event_params", "items"} <= set(source.types)

    def open(
        self, sources: Sequence[Source], roles: Roles, engine: Engine
    ) -> tuple[tuple[Part, ...], tuple[Note, ...]]:
        """The impressions of all files together, and the lines that are not events."""
        database = embedded(engine, of="reading GA4")
        if self.position_base not in BASES:
            raise SettingError(f"position_base {self.position_base!r}: expected one of {', '.join(BASES)}.")
        objects = " UNION ALL ".join(f"SELECT json FROM {source.objects()}" for source in sources)
        where = ", ".join(map(str, sources))
        events = database.keep(self._events(objects, roles.context))
        items = database.keep(self._items(events, len(roles.context)))
        if not database.rows(f"SELECT 1 FROM {items} WHERE event = 'view_item_list' LIMIT 1"):
            raise InputError(f"{where}: no view_item_list event with items, so it is unknown what was shown.")
        placed = database.keep(self._placed(items))
        self._check_list_name(where, placed, database)
        contexts = [f"context_{i} AS {name(column)}" for i, column in enumerate(roles.context)]
        columns = ["term AS query_id", "item AS doc_id", "position", "clicked", "list_id AS session_id", *contexts]
        good = "wanted AND term IS NOT NULL AND position >= 1 AND NOT restarts"
        table = database.keep(f"SELECT {listed(columns)} FROM {placed} WHERE {good}")
        source = Registered(database.types(table), registered=table, shown_as=where)
        part = Part(source, self, Roles({}, roles.context, roles.lists))
        notes = self._notes(database, items, placed)
        return (part, *broken_lines(sources, self, roles, database)), tuple(note for note in notes if note.times)

    def _events(self, objects: str, context: Sequence[str]) -> str:
        """Events with their session, page and search term."""

        def param(key: str) -> str:
            found = f"list_filter(params, lambda p: p ->> '$.key' = {literal(key)})[1]"
            kinds = ("string", "int", "double", "float")  # a search for 501 is an integer
            return "coalesce(" + listed(f"{found} ->> '$.value.{kind}_value'" for kind in kinds) + ")"

        contexts = "".join(
            f", json_extract_string(j, {literal('$.' + column)}) AS context_{i}" for i, column in enumerate(context)
        )
        kept = listed(map(literal, KINDS))
        return (
            "SELECT j ->> '$.event_name' AS event, TRY_CAST(j ->> '$.event_timestamp' AS BIGINT) AS ts, "
            "row_number() OVER (ORDER BY TRY_CAST(j ->> '$.event_timestamp' AS BIGINT), j ->> '$.user_pseudo_id', "
            "TRY_CAST(j ->> '$.batch_event_index' AS BIGINT), "
            f"list_position([{kept}], j ->> '$.event_name'), CAST(j AS VARCHAR)) AS number, "
            f"(j ->> '$.user_pseudo_id') || '.' || {param('ga_session_id')} AS session, "
            f"nullif(nullif({param('search_term')}, ''), '(not set)') AS term, "
            f"coalesce({param('page_location')}, '') AS page, "
            f"coalesce(TRY_CAST(j -> '$.items' AS JSON[]), []) AS items{contexts} "
            "FROM (SELECT json AS j, coalesce(TRY_CAST(json -> '$.event_params' AS JSON[]), []) AS params "
            f"FROM ({objects})) WHERE j ->> '$.event_name' IN ({kept})"
        )

    def _items(self, events: str, contexts: int) -> str:
        """Items of views and clicks, with the search term that a view belongs to."""
        more = "".join(f", context_{i}" for i in range(contexts))
        key, title = (f"nullif(it ->> '$.item_list_{part}', '(not set)')" for part in ("id", "name"))
        address = f"regexp_extract(e.page, {literal(IN_ADDRESS)}, 1)"
        address = f"nullif(url_decode(replace({address}, '+', ' ')), '')"
        return (
            f"WITH searches AS (SELECT session, page, ts, max(term) AS term FROM {events} WHERE term IS NOT NULL "
            "GROUP BY ALL), "
            f"termed AS (SELECT e.* EXCLUDE (term), coalesce(e.term, s.term, {address}) AS term "
            f"FROM {events} AS e ASOF LEFT JOIN searches AS s ON s.session = e.session AND s.page = e.page "
            "AND s.ts <= e.ts), "
            "unfolded AS (SELECT * EXCLUDE (items), unnest(items) AS it, generate_subscripts(items, 1) AS nth "
            "FROM termed WHERE event IN ('view_item_list', 'select_item')) "
            f"SELECT event, number, ts, session, page, term, nth{more}, "
            "nullif(nullif(it ->> '$.item_id', ''), '(not set)') AS item, "
            f"{key} AS list_key, {title} AS list_title, coalesce({key}, {title}, '') AS list, "
            "TRY_CAST(it ->> '$.item_list_index' AS BIGINT) AS index FROM unfolded"
        )

    def _placed(self, items: str) -> str:
        """Views with their position and whether they were clicked."""
        base = self.position_base
        wanted = f"{literal(self.list_name)} IN (list_key, list_title)" if self.list_name else "TRUE"
        found = "CASE WHEN min(index) FILTER (event = 'view_item_list') >= 1 THEN 1 ELSE 0 END"
        return (
            f"WITH base AS (SELECT {found if base == 'auto' else base} AS base FROM {items}), "
            f"views AS (SELECT * FROM {items} WHERE event = 'view_item_list' AND item IS NOT NULL "
            "AND session IS NOT NULL), "
            "clicks AS (SELECT row_number() OVER () AS click, session, item, list_key, list_title, list, number "
            f"FROM {items} WHERE event = 'select_item'), "
            # A click that names no list, or names it differently from the view, can still belong to it.
            "hits AS (SELECT number, item, list, nth, count(*) AS times FROM (SELECT v.number, v.item, "
            "v.list, v.nth FROM clicks AS c JOIN views AS v ON v.session = c.session AND v.item = c.item AND v.number "
            "< c.number AND coalesce(v.list_key = c.list_key, v.list_title = c.list_title, v.list = '' OR c.list = '') "
            "QUALIFY row_number() OVER (PARTITION BY click ORDER BY v.number DESC, v.nth) = 1) GROUP BY ALL) "
            f"SELECT v.*, coalesce({wanted}, FALSE) AS wanted, coalesce(v.index - base + 1, v.nth) AS position, "
            "times IS NOT NULL AS clicked, "
            "coalesce(times, 0) AS times, concat(v.number, '/', v.list) AS list_id, "
            # Without an index, a second event of the same list on the same page starts at 1 again.
            "v.index IS NULL AND v.number > min(v.number) OVER (PARTITION BY session, page, list, term) AS restarts "
            "FROM views AS v CROSS JOIN base LEFT JOIN hits USING (number, item, list, nth)"
        )

    def _check_list_name(self, where: str, placed: str, engine: DuckDB) -> None:
        if self.list_name and not engine.rows(f"SELECT 1 FROM {placed} WHERE wanted LIMIT 1"):
            lists = engine.rows(
                f"SELECT list, count(*) FROM {placed} WHERE list <> '' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {MOST_LISTS}"
            )
            found = f"Found {', '.join(str(called) for called, _ in lists)}." if lists else "Its lists have no names."
            raise InputError(f"{where}: no item list has the id or name {self.list_name!r}. {found}")

    def _notes(self, engine: DuckDB, items: str, placed: str) -> list[Note]:
        ((clicks, no_session, no_item),) = engine.rows(
            "SELECT count(*) FILTER (event = 'select_item'), count(*) FILTER (session IS NULL), "
            f"count(*) FILTER (item IS NULL) FROM {items}"
        )
        ((times,),) = engine.rows(f"SELECT coalesce(sum(times), 0)::BIGINT FROM {placed}")
        ((again, no_index, restarts, no_term, placeless),) = engine.rows(
            "SELECT coalesce(sum(times - 1) FILTER (clicked), 0)::BIGINT, count(*) FILTER (index IS NULL), "
            "count(*) FILTER (restarts), count(*) FILTER (term IS NULL), "
            f"count(*) FILTER (coalesce(position, 0) < 1) FROM {placed} WHERE wanted"
        )
        return [
            Note("item", "without user_pseudo_id or ga_session_id: skipped", no_session),
            Note("item", "without item_id: skipped", no_item),
            Note("item shown", "without index: the place in the event is used", no_index - restarts, "items shown"),
            Note("item", "without index, after another event of the same list and page: skipped", restarts),
            Note("item shown", "without search term: skipped", no_term, "items shown"),
            Note("item shown", "without a valid position: skipped", placeless, "items shown"),
            Note("click", "repeating a click on the same view: counted once", again),
            Note("click", "without an earlier view of the item in that list and session: left out", clicks - times),
        ]
