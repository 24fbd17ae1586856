"""Every kind of bad input: a message that says what, where, found and what to do, and nothing written."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clickmix as cm
from logs import cells, small_log, write

RAW = "query_id,doc_id,position,clicked\n"
COUNTED = "query_id,doc_id,position,impressions,clicks\n"
HINT = " Fix the log, or skip bad rows with --bad-rows skip (in Python bad_rows='skip')."
READS = [
    ("byte order mark", b"\xef\xbb\xbf" + RAW.encode() + b"q,d,1,1\n"),
    ("CRLF", RAW.replace("\n", "\r\n").encode() + b"q,d,1,1\r\n"),
    ("CR only", RAW.replace("\n", "\r").encode() + b"q,d,1,1\r"),
    ("no final newline", RAW.encode() + b"q,d,1,1"),
    ("blank lines", RAW.encode() + b"\n\nq,d,1,1\n\n"),
    ("quoted header", b'"query_id","doc_id","position","clicked"\nq,d,1,1\n'),
    ("quoted values", RAW.encode() + b'"q","d","1","1"\n'),
    ("extra columns", b'x,query_id,"y\nz",doc_id,position,clicked\n,q,,d,1,1\n'),
    ("blanks in the header", b"query_id, doc_id,\tposition ,clicked\nq,d,1,1\n"),
    ("session", b"session_id,query_id,doc_id,position,clicked\ns,q,d,1,1\n"),
]
KEPT_IDS = [
    ("newline in quotes", b'"a\nb"', "a\nb"),
    ("CRLF in quotes", b'"a\r\nb"', "a\r\nb"),
    ("comma in quotes", b'"a,b"', "a,b"),
    ("quote in quotes", b'"a""b"', 'a"b'),
    ("quote inside", b'a"b', 'a"b'),
    ("NUL", b"a\x00b", "a\x00b"),
    ("a megabyte", b"a" * 1_000_000, "a" * 1_000_000),
    ("spaces", b" a ", " a "),
    ("formula", b"=1+1", "=1+1"),
    ("escape sequence", b"\x1b[31m", "\x1b[31m"),
    ("emoji", "🦆".encode(), "🦆"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, so that messages name files shortly."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def message(log: Any, **settings: Any) -> str:
    with pytest.raises(cm.ClickmixError) as caught:
        cm.debias(log, **settings)
    return str(caught.value)


@pytest.mark.parametrize("data", [case[1] for case in READS], ids=[case[0] for case in READS])
def test_csv_that_reads(folder: Path, data: bytes) -> None:
    (folder / "log.csv").write_bytes(data)
    assert cells(cm.count("log.csv")) == [("q", "d", 1, 1, 1)]


@pytest.mark.parametrize(("written", "id"), [case[1:] for case in KEPT_IDS], ids=[case[0] for case in KEPT_IDS])
def test_ids_that_are_kept(folder: Path, written: bytes, id: str) -> None:
    (folder / "log.csv").write_bytes(RAW.encode() + written + b",d,1,1\n")
    assert cells(cm.count("log.csv")) == [(id, "d", 1, 1, 1)]


LINES = [
    ("too few", b"q,d,1", "'q,d,1': the line has fewer columns than the header."),
    ("too many", b"q,d,1,1,9", "'q,d,1,1,9': the line has more columns than the header."),
    (
        "text after quote",
        b'"q"x,d,1,1',
        "'\"q\"x,d,1,1': a quotation mark is not closed, or text follows the closing one.",
    ),
    ("not UTF-8", b"q\xff,d,1,1", "'q?,d,1,1': the line is not UTF-8 text."),
    ("3 MB", b"q" * 3_000_000 + b",d,1,1", f"'{'q' * 200}': the line is longer than 2,000,000 bytes."),
]


@pytest.mark.parametrize(("line", "found"), [case[1:] for case in LINES], ids=[case[0] for case in LINES])
def test_a_line_that_cannot_be_cut(folder: Path, line: bytes, found: str) -> None:
    (folder / "log.csv").write_bytes(RAW.encode() + b"q,d,1,1\n" + line + b"\nq,d,1,0\n")
    assert message("log.csv") == f"log.csv, row 2: {found}{HINT}"
    assert cells(cm.count("log.csv", bad_rows="skip")) == [("q", "d", 1, 2, 1)]


def test_a_header_longer_than_any_line(folder: Path) -> None:
    """It was cut, and half a name can be another column's."""
    (folder / "log.csv").write_text(f"{RAW[:-1]},{','.join(f'column{i}' for i in range(200_000))}\nq,d,1,1\n")
    assert message("log.csv") == (
        "log.csv: the first line is longer than 2,000,000 bytes. Expected a header with column names."
    )


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz"])
@pytest.mark.parametrize(
    ("line", "after"),
    [
        (b"\x00" * 40_000_000, b""),
        (b"q" * 40_000_000 + b",d,1,1\n", b""),
        (b"q" * 40_000_000 + b",d,1,1\n", b"q,d,1,0\nq,d,1,1\n"),
        (b"q" * 40_000_000 + b",d,1,1\r", b"q,d,1,0\rq,d,1,1\r"),
        (b'q,"' + b"d" * 40_000_000 + b'",1,1\n', b"q,d,1,0\nq,d,1,1\n"),
    ],
    ids=["zeros at the end", "at the end", "in the middle", "CR only", "quoted"],
)
def test_a_line_longer_than_the_reader_can_hold(folder: Path, name: str, line: bytes, after: bytes) -> None:
    end = b"\r" if line.endswith(b"\r") else b"\n"
    data = RAW.encode().replace(b"\n", end) + b"q,d,1,1" + end + line + after
    (folder / name).write_bytes(gzip.compress(data, 1) if name.endswith("gz") else data)
    text = line[:200].decode()
    assert message(name) == f"{name}, row 2: {text!r}: the line is longer than 2,000,000 bytes.{HINT}"
    counts = cm.count(name, bad_rows="skip")
    assert cells(counts) == [("q", "d", 1, 3, 2) if after else ("q", "d", 1, 1, 1)]
    assert [(r.reason, r.rows) for r in counts.refused] == [("the line is longer than 2,000,000 bytes", 1)]


@pytest.mark.parametrize("mode", ["fail", "skip"])
@pytest.mark.parametrize("after", [3, 200_000, 1_500_000], ids=["short", "long", "read by several threads"])
@pytest.mark.parametrize("end", ["", '"q",d,1,0\n'], ids=["never closed", "closed far below"])
@pytest.mark.parametrize("line", ['"q,d,1,1', 'q,"""d"",,1,1'])
def test_a_quotation_mark_that_swallows_rows(folder: Path, line: str, end: str, after: int, mode: Any) -> None:
    (folder / "log.csv").write_text(RAW + f"q,d,1,1\n{line}\n" + "query,document,1,0\n" * after + end)
    # Where several threads read, the reader may not know the line's text.
    assert message("log.csv", bad_rows=mode).replace(f"row 2: {line!r}: a", "row 2: a") == (
        "log.csv, row 2: a quotation mark opens here and is not closed on the line, so it is unknown how many of the "
        "rows below are lost. Close it, or double quotation marks inside a value; such a row cannot be skipped."
    )


def test_a_value_of_more_than_two_million_bytes_in_quotation_marks(folder: Path) -> None:
    (folder / "log.csv").write_text(RAW + 'q,d,1,1\nq,"' + "query,document,1,0\n" * 200_000 + '",1,0\nq,d,1,0\n')
    assert "a quotation mark opens here and is not closed on the line" in message("log.csv", bad_rows="skip")
    (folder / "log.csv").write_text(RAW + 'q,d,1,1\nq,"' + "query,document,1,0" * 200_000 + '",1,0\nq,d,1,0\n')
    assert cells(cm.count("log.csv", bad_rows="skip")) == [("q", "d", 1, 2, 1)]


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_a_quotation_mark_within_a_value_costs_its_own_row_only(folder: Path, delimiter: str) -> None:
    text = RAW + 'q,d,1,1\nq,"5" tv",1,1\n"q","5"" tv"x,1,1\nq,d,1,0\n'
    (folder / "log.csv").write_text(text.replace(",", delimiter))
    counts = cm.count("log.csv", bad_rows="skip")
    assert (cells(counts), [r.rows for r in counts.refused]) == ([("q", "d", 1, 2, 1)], [2])


HEADERS = [
    (
        "missing",
        b"query,doc_id,position,clicked\nq,d,1,1\n",
        "log.csv: missing 'query_id'. Found query, doc_id, position, clicked. `query` looks like "
        "query_id. If so, use --columns query_id=query (in Python columns={'query_id': 'query'}).",
    ),
    (
        "no clicks",
        b"query_id,doc_id,position\nq,d,1\n",
        "log.csv: missing 'clicked' (or 'impressions' and 'clicks', if it is counted already). Found query_id, doc_id, "
        "position. Say which columns you mean: --columns clicked=YOUR_COLUMN (in Python columns={'clicked': "
        "'YOUR_COLUMN'}).",
    ),
    (
        "clicks alone",
        b"query_id,doc_id,position,clicks\nq,d,1,1\n",
        "log.csv: missing 'impressions'. Found query_id, doc_id, position, clicks. Say which columns you mean: "
        "--columns impressions=YOUR_COLUMN (in Python columns={'impressions': 'YOUR_COLUMN'}).",
    ),
    (
        "a shop's export",
        b"term,sku,rank,is_clicked\nq,d,1,1\n",
        "log.csv: missing 'query_id', 'doc_id', 'position' and 'clicked' (or 'impressions' and 'clicks', if it is "
        "counted already). Found term, sku, rank, is_clicked. `term` looks like query_id, `sku` looks like doc_id, "
        "`rank` looks like position, `is_clicked` looks like clicked. If so, use --columns "
        "query_id=term,doc_id=sku,position=rank,clicked=is_clicked (in Python columns={'query_id': 'term', 'doc_id': "
        "'sku', 'position': 'rank', 'clicked': 'is_clicked'}).",
    ),
    (
        "clicked pairs",
        b"qid,query,did,url\n1,q,D1,https://example.org\n",
        "log.csv: missing 'query_id', 'doc_id', 'position' and 'clicked' (or 'impressions' and 'clicks', if it is "
        "counted already). Found qid, query, did, url. If these are clicked pairs (as in ORCAS or MS "
        "MARCO), clickmix cannot use them: they do not say what was shown and not clicked. Use a log of impressions.",
    ),
    (
        "judgments",
        b"query_id,doc_id,grade\nq,d,1\n",
        "log.csv: missing 'position' and 'clicked' (or 'impressions' and 'clicks', if it is counted already). Found "
        "query_id, doc_id, grade. This looks like judgments, not a log. Pass them beside one: clickmix compare LOG "
        "--judgments log.csv.",
    ),
    (
        "pairs without a header",
        b"10103699,red shoes,D1265,http://a\n10103699,red shoes,D1266,http://b\n",
        "log.csv: missing 'query_id', 'doc_id', 'position' and 'clicked' (or 'impressions' and 'clicks', if it is "
        "counted already). Found 10103699, red shoes, D1265, http://a. If these are clicked pairs (as in "
        "ORCAS or MS MARCO), clickmix cannot use them: they do not say what was shown and not clicked. Use a log of "
        "impressions.",
    ),
    (
        "names that nobody knows",
        b"Suchbegriff;Artikel-Nr;Platz;Geklickt\nrote Schuhe;s1;1;ja\n",
        "log.csv: missing 'query_id', 'doc_id', 'position' and 'clicked' (or 'impressions' and 'clicks', if it is "
        "counted already). Found Suchbegriff, Artikel-Nr, Platz, Geklickt. `Suchbegriff` looks like query_id. If so, "
        "use --columns query_id=Suchbegriff,doc_id=YOUR_COLUMN,position=YOUR_COLUMN,clicked=YOUR_COLUMN (in Python "
        "columns={'query_id': 'Suchbegriff', 'doc_id': 'YOUR_COLUMN', 'position': 'YOUR_COLUMN', 'clicked': "
        "'YOUR_COLUMN'}).",
    ),
    (
        "twice",
        b"query_id,doc_id,position,clicked,clicked\nq,d,1,1,1\n",
        "log.csv: the header has the column 'clicked' twice. Rename one of them.",
    ),
    (
        "twice but for case",
        b"query_id,doc_id,position,clicked,Clicked\nq,d,1,1,1\n",
        "log.csv: the header has the column 'Clicked' twice. Rename one of them.",
    ),
    ("header only", RAW.encode(), "log.csv: the log is empty. Expected one row per impression."),
    ("empty", b"", "log.csv: the file is empty. Expected a click log with a header."),
    ("blank", b"\nq,d,1,1\n", "log.csv: the first line is blank. Expected a header with column names."),
    ("UTF-16", RAW.encode("utf-16"), "log.csv: the header is not UTF-8 text. Save the file as UTF-8."),
    (
        "mixed line ends",
        RAW.encode() + b"q,d,1,1\r\nq,d,1,0\n",
        "log.csv: cannot be read: some lines end differently from the first one, or a quotation mark is "
        "in the wrong place. The file may be damaged or cut off; write it again.",
    ),
]


@pytest.mark.parametrize("mode", ["fail", "skip"])
@pytest.mark.parametrize(("data", "expected"), [case[1:] for case in HEADERS], ids=[case[0] for case in HEADERS])
def test_a_csv_file_that_is_no_log(folder: Path, data: bytes, expected: str, mode: Any) -> None:
    (folder / "log.csv").write_bytes(data)
    assert message("log.csv", bad_rows=mode) == expected


CLICKED = ["2", "-1", "maybe", "", "NaN", "inf", "1e0", " 1", "٣", "+1", "01", "1_0", "0.5"]
POSITIONS = [
    "0",
    "-1",
    "1.5",
    "1e3",
    " 7",
    "٣",
    "+5",
    "-0",
    "1_000",
    "NaN",
    "inf",
    "9223372036854775808",
    "",
    "first",
    "0x1",
]
COUNTS = ["-1", "1.5", "1e3", " 7", "٣", "+5", "-0", "1_000", "NaN", "inf", "9223372036854775808", "", "many"]


def shown(text: str) -> str:
    return repr(text) if text else "nothing"


def hint(column: str, text: str) -> str:
    """What to do: positions from 0 have advice of their own, since leaving them out would shift all others."""
    from_zero = column == "position" and text.strip("'") == "0"
    return " If positions count from 0, add 1 to all of them. Fix the log." if from_zero else HINT


@pytest.mark.parametrize("text", CLICKED)
def test_clicked_that_is_neither_0_nor_1(folder: Path, text: str) -> None:
    (folder / "log.csv").write_text(RAW + f"q,d,1,1\nq,d,1,{text}\n")
    assert message("log.csv") == (f"log.csv, row 2, column 'clicked': {shown(text)}: clicked is neither 0 nor 1.{HINT}")


@pytest.mark.parametrize("text", ["yes", "WAHR", "oui", "нет", "x", "tak", "PRAWDA", "waar", "はい", "ИСТИНА", '"1,0"'])
def test_clicked_as_spreadsheets_write_it_gets_a_hint(folder: Path, text: str) -> None:
    (folder / "log.csv").write_text(RAW + f"q,d,1,1\nq,d,1,{text}\n")
    text = text.strip('"')
    assert message("log.csv") == (
        f"log.csv, row 2, column 'clicked': {text!r}: clicked is neither 0 nor 1. {text!r} may mean yes or no: write 1 "
        "for a click and 0 for none, or true and false. Fix the log."
    )


@pytest.mark.parametrize("text", POSITIONS)
def test_a_position_that_is_none(folder: Path, text: str) -> None:
    (folder / "log.csv").write_text(RAW + f"q,d,1,1\nq,d,{text},1\n")
    assert message("log.csv") == (
        f"log.csv, row 2, column 'position': {shown(text)}: position is not a positive whole number."
        f"{hint('position', text)}"
    )


@pytest.mark.parametrize("text", COUNTS)
@pytest.mark.parametrize("column", ["impressions", "clicks"])
def test_counts_that_are_none(folder: Path, text: str, column: str) -> None:
    row = f"q,d,1,{text},0" if column == "impressions" else f"q,d,1,5,{text}"
    (folder / "log.csv").write_text(COUNTED + f"q,d,1,5,5\n{row}\n")
    assert message("log.csv") == (
        f"log.csv, row 2, column {column!r}: {shown(text)}: {column} is not a whole number of 0 or more.{HINT}"
    )


@pytest.mark.parametrize(
    "name", ["log.parquet", "log.csv", "log.ndjson", "log.parquet.gz", "log.csv.gz", "log.ndjson.gz"]
)
@pytest.mark.parametrize(
    ("column", "value", "text", "reason"),
    [
        ("query_id", None, "nothing", "query_id is missing"),
        ("doc_id", None, "nothing", "doc_id is missing"),
        ("position", 0, "'0'", "position is not a positive whole number"),
        ("position", -3, "'-3'", "position is not a positive whole number"),
        ("position", None, "nothing", "position is not a positive whole number"),
        ("impressions", -1, "'-1'", "impressions is not a whole number of 0 or more"),
        ("clicks", None, "nothing", "clicks is not a whole number of 0 or more"),
        ("clicks", 6, "'6'", "clicks are more than impressions"),
    ],
)
def test_a_bad_value_in_every_format(
    folder: Path, name: str, column: str, value: int | None, text: str, reason: str
) -> None:
    table: dict[str, list[Any]] = {"query_id": ["q"] * 5, "doc_id": ["d"] * 5, "position": [1] * 5}
    table |= {"impressions": [5] * 5, "clicks": [2] * 5}
    table[column] = [*table[column][:3], value, table[column][4]]
    write(folder / name, table)
    assert message(name) == f"{name}, row 4, column {column!r}: {text}: {reason}.{hint(column, text)}"


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (
            "query_id",
            pa.array([1.5]),
            "log.parquet, column 'query_id': found DOUBLE values, expected text or whole numbers for query_id.",
        ),
        (
            "doc_id",
            pa.array([[1]]),
            "log.parquet, column 'clicked': found BIGINT values, expected a list for clicked, because doc_ids is one.",
        ),
        (
            "position",
            pa.array([True]),
            "log.parquet, column 'position': found BOOLEAN values, expected whole numbers for position.",
        ),
        (
            "position",
            pa.array([2**63], pa.uint64()),
            "log.parquet, row 1, column 'position': '9223372036854775808': position is not a positive whole number."
            + HINT,
        ),
        (
            "position",
            pa.array([float("nan")]),
            "log.parquet, row 1, column 'position': 'nan': position is not a positive whole number." + HINT,
        ),
        (
            "position",
            pa.array([float("inf")]),
            "log.parquet, row 1, column 'position': 'inf': position is not a positive whole number." + HINT,
        ),
        (
            "clicked",
            pa.array([float("nan")]),
            "log.parquet, row 1, column 'clicked': 'nan': clicked is neither 0 nor 1." + HINT,
        ),
        (
            "clicked",
            pa.array([{"a": 1}]),
            "log.parquet, column 'clicked': found STRUCT(a BIGINT) values, expected whole numbers for clicked.",
        ),
    ],
)
def test_types_that_cannot_be(folder: Path, column: str, values: Any, expected: str) -> None:
    table = {"query_id": ["q"], "doc_id": ["d"], "position": [1], "clicked": [1]}
    write(folder / "log.parquet", table | {column: values})
    assert message("log.parquet") == expected


@pytest.mark.parametrize("other", [1.0, 2.0])
@pytest.mark.parametrize("column", ["position", "impressions", "clicks"])
def test_a_number_of_parquet_that_is_not_a_number(folder: Path, column: str, other: float) -> None:
    table = {"query_id": ["q"] * 3, "doc_id": ["d"] * 3, "position": [1.0] * 3, "impressions": [2.0] * 3}
    table |= {"clicks": [1.0] * 3}
    table[column] = [other, float("nan"), other]
    write(folder / "log.parquet", table)
    reason = "is not a positive whole number" if column == "position" else "is not a whole number of 0 or more"
    assert message("log.parquet") == f"log.parquet, row 2, column {column!r}: 'nan': {column} {reason}.{HINT}"
    counts = cm.count("log.parquet", bad_rows="skip")
    assert [(r.rows, r.examples[0].row) for r in counts.refused] == [(1, 2)]
    assert [cell[:2] for cell in cells(counts)] == [("q", "d")]


JSON_ROW = '{"query_id":"q","doc_id":"d","position":1,"clicked":1}\n'


@pytest.mark.parametrize(
    "line",
    ["hello", "[1,2]", "5", '{"query_id":', "\ufeff" + JSON_ROW.strip(), '{"query_id":"\\ud800"}', "{} {}"],
)
def test_a_line_that_is_no_json_object(folder: Path, line: str) -> None:
    (folder / "log.ndjson").write_text(JSON_ROW + line + "\n" + JSON_ROW)
    assert message("log.ndjson") == f"log.ndjson, row 2: the line is not a JSON object.{HINT}"
    assert cells(cm.count("log.ndjson", bad_rows="skip")) == [("q", "d", 1, 2, 2)]


@pytest.mark.parametrize("rows", [1, 25_000], ids=["among the first", "late"])
@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("query_id", '{"a": 1}', '{"a":1}'),
        ("doc_id", '["d", 1]', '["d",1]'),
        ("doc_id", "true", "true"),
        ("query_id", "1.5", "1.5"),
        ("doc_id", "1e3", "1000.0"),
    ],
)
def test_an_id_of_ndjson_that_is_none(folder: Path, key: str, value: str, text: str, rows: int) -> None:
    row = '{"query_id": 5, "doc_id": 7, "position": 1, "clicked": 1}\n'
    bad = re.sub(f'"{key}": [0-9]', f'"{key}": {value}', row)
    (folder / "log.ndjson").write_text(row * rows + bad + row)
    assert message("log.ndjson") == (
        f"log.ndjson, row {rows + 1}, column {key!r}: {text!r}: {key} is neither text nor a whole number.{HINT}"
    )
    counts = cm.count("log.ndjson", bad_rows="skip")
    # A bad row among the first can make ids text.
    assert [tuple(map(int, cell)) for cell in cells(counts)] == [(5, 7, 1, rows + 1, rows + 1)]
    assert [r.rows for r in counts.refused] == [1]


def test_texts_of_ndjson_may_look_like_anything(folder: Path) -> None:
    ids = ["true", "{}", "[1]", "1.5", "1e3", "\n", str(10**30)]
    write(folder / "log.ndjson", {"query_id": ids, "doc_id": ids, "position": [1] * 7, "clicked": [1] * 7})
    assert cells(cm.count("log.ndjson")) == [(id, id, 1, 1, 1) for id in sorted(ids)]
    (folder / "log.ndjson").write_text(JSON_ROW.replace('"q"', str(10**30)) + JSON_ROW.replace('"q"', "5"))
    assert [row[0] for row in cells(cm.count("log.ndjson"))] == [str(10**30), "5"]


def test_a_key_of_ndjson_that_stands_twice(folder: Path) -> None:
    twice = '{"query_id": "q", "query_id": "r", "doc_id": "d", "position": 1, "clicked": 1}\n'
    (folder / "log.ndjson").write_text(JSON_ROW + twice + "no object\n" + JSON_ROW)
    assert message("log.ndjson") == (f"log.ndjson, row 3: the line is not a JSON object. In all, 2 rows are bad.{HINT}")
    counts = cm.count("log.ndjson", bad_rows="skip")
    assert cells(counts) == [("q", "d", 1, 2, 2)]
    assert [(r.reason, r.rows, r.examples[0].row) for r in counts.refused] == [
        ("the line is not a JSON object", 1, 3),
        ("the line has a key twice", 1, 2),
    ]


def test_bad_rows_of_ndjson_beside_columns_of_any_name(folder: Path) -> None:
    names = ["json", "key", "keys", "texts", "kinds"]
    table = {"query_id": ["q", None], "doc_id": ["d", "d"], "position": [1, 1], "clicked": [1, 1]}
    write(folder / "kinds=x" / "log.ndjson", table | {name: ["a", "b"] for name in names[:-1]})
    with (folder / "kinds=x" / "log.ndjson").open("a") as file:
        file.write("no object\n")
    counts = cm.count(folder, context=names, bad_rows="skip")
    assert cells(counts) == [("q", "d", 1, "a", "a", "a", "a", "x", 1, 1)]
    assert [r.rows for r in counts.refused] == [1, 1]


def test_ndjson_without_any_object(folder: Path) -> None:
    (folder / "log.ndjson").write_text("\n\n")
    expected = "log.ndjson: no line is a JSON object. Expected one object per line, one line per impression."
    assert message("log.ndjson") == expected


FILES = [
    (
        "missing.csv",
        None,
        "missing.csv: no such file. Check the path; folders and globs such as 'logs/*.parquet' work too.",
    ),
    (
        "*.parquet",
        None,
        "*.parquet: no file matches. Check the path; folders and globs such as 'logs/*.parquet' work too.",
    ),
    (
        "log.xlsx",
        b"x",
        "log.xlsx: unknown kind of file. Expected a name ending in .parquet, .pq, .csv, .tsv, .ndjson, "
        ".jsonl, .json, or those with .gz.",
    ),
    (
        "log",
        b"x",
        "log: unknown kind of file. Expected a name ending in .parquet, .pq, .csv, .tsv, .ndjson, .jsonl, "
        ".json, or those with .gz.",
    ),
    ("log.parquet", b"", "log.parquet: the file is empty. Expected a click log with a header."),
    (
        "log.csv.gz",
        b"not gzip",
        "log.csv.gz: by its first bytes, this file is not gzipped. Rename it to log.csv, or write it again.",
    ),
    (
        "log.parquet.gz",
        b"not gzip",
        "log.parquet.gz: by its first bytes, this file is not gzipped. Rename it to log.parquet, or write it again.",
    ),
    (
        "log.parquet",
        RAW.encode() + b"q,d,1,1\n",
        "log.parquet: by its first bytes, this file is text, not Parquet. Rename it to log.csv, or write it again.",
    ),
    (
        "log.PQ",
        b'{"query_id": "q"}\n',
        "log.PQ: by its first bytes, this file is text, not Parquet. Rename it to log.ndjson, or write it again.",
    ),
    (
        "log.csv",
        gzip.compress(RAW.encode()),
        "log.csv: by its first bytes, this file is gzipped. Rename it to log.csv.gz, or write it again.",
    ),
    (
        "log.csv",
        b"PAR1\x15\x04",
        "log.csv: by its first bytes, this file is Parquet. Rename it to log.parquet, or write it again.",
    ),
    (
        "log.csv.gz",
        b"PAR1\x15\x04",
        "log.csv.gz: by its first bytes, this file is Parquet. Rename it to log.parquet, or write it again.",
    ),
]


@pytest.mark.parametrize(("name", "data", "expected"), FILES, ids=[f"{case[0]}-{i}" for i, case in enumerate(FILES)])
def test_files_that_are_no_log(folder: Path, name: str, data: bytes | None, expected: str) -> None:
    if data is not None:
        (folder / name).write_bytes(data)
    assert message(name) == expected


@pytest.mark.parametrize("log", ["", ["log.csv", ""], ("",)])
def test_an_empty_path_is_not_the_current_folder(folder: Path, log: Any) -> None:
    (folder / "log.csv").write_text(RAW + "q,d,1,1\n")
    assert message(log) == "'': no such file. The path is empty; check the variable it came from."


def test_a_column_with_blanks_is_named_so_that_a_shell_takes_it(folder: Path) -> None:
    write(folder / "log.parquet", {"query id": ["q"], "doc_id": ["d"], "position": [1], "clicked": [1]})
    assert message("log.parquet") == (
        "log.parquet: missing 'query_id'. Found query id, doc_id, position, clicked. `query id` looks like "
        "query_id. If so, use --columns 'query_id=query id' (in Python columns={'query_id': 'query id'})."
    )


def test_a_folder_without_a_log(folder: Path) -> None:
    (folder / "logs").mkdir()
    expected = "logs: a folder without Parquet, CSV or NDJSON files. Name the folder of the click log."
    assert message("logs") == expected


def test_a_file_given_twice(folder: Path) -> None:
    write(folder / "log.csv", small_log())
    assert message(["log.csv", "."]) == "log.csv: given twice. Its clicks would be counted twice; name it once."


@pytest.mark.parametrize("mode", ["fail", "skip"])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("name", ["log.parquet", "log.parquet.gz", "log.csv.gz", "log.ndjson.gz"])
def test_a_file_cut_off(folder: Path, name: str, share: float, mode: Any) -> None:
    data = write(folder / name, small_log(rows=5000)).read_bytes()
    (folder / name).write_bytes(data[: int(len(data) * share)])
    assert message(name, bad_rows=mode).startswith(
        f"{name}: cannot be {'unpacked: Compressed' if name.endswith('gz') else 'read: '}"
    )


@pytest.mark.parametrize("mode", ["fail", "skip"])
@pytest.mark.parametrize("rows", [400, 100_000], ids=["short", "longer than a header"])
@pytest.mark.parametrize("name", ["log.parquet.gz", "log.csv.gz", "log.ndjson.gz"])
def test_an_archive_whose_checksum_does_not_fit(folder: Path, name: str, rows: int, mode: Any) -> None:
    data = bytearray(write(folder / name, small_log(rows=rows)).read_bytes())
    data[-6] ^= 255
    (folder / name).write_bytes(data)
    write(folder / "good.csv.gz", small_log(seed=1))
    assert re.fullmatch(
        f"{name}: cannot be unpacked: CRC check failed 0x[0-9a-f]+ != 0x[0-9a-f]+[.] The file may be damaged or cut "
        "off; copy it again[.]",
        message(["good.csv.gz", name], bad_rows=mode),
    )


def test_archives_one_after_the_other_in_a_file_are_one(folder: Path) -> None:
    parts = (gzip.compress(text.encode()) for text in (RAW, "q,d,1,1\n", "q,d,1,0\n"))
    (folder / "log.csv.gz").write_bytes(b"".join(parts))
    assert cells(cm.count("log.csv.gz")) == [("q", "d", 1, 2, 1)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"context": ["device"]},
            "log.csv: no context column 'device'. Found query_id, doc_id, position, clicked. Name one of those.",
        ),
        (
            {"context": ["clicks"]},
            "context 'clicks': given twice, or means something else in a log. Use another name.",
        ),
        ({"context": ["a", "a"]}, "context 'a': given twice, or means something else in a log. Use another name."),
        ({"columns": {"query": "q"}}, "columns: a click log has no 'query'. Expected query_id."),
        ({"bad_rows": "drop"}, "bad_rows 'drop': expected 'fail' or 'skip'."),
        ({"memory": "lots"}, "memory 'lots' is not an amount of memory. Write for instance 4GB or 800MB."),
    ],
)
def test_settings_that_cannot_be(folder: Path, settings: dict[str, Any], expected: str) -> None:
    (folder / "log.csv").write_text(RAW + "q,d,1,1\n")
    assert message("log.csv", **settings) == expected


BAD = (
    "query_id,doc_id,position,clicked\n"
    "q,d,1,1\n"  # 1
    "q,d,0,1\n"  # 2: position
    "q,d\n"  # 3: too few columns
    ",d,1,1\n"  # 4: query_id
    '"q\nr",d,1,0\n'  # 5
    "q,d,1,1,1\n"  # 6: too many columns
    "q,d\n"  # 7: too few columns
    "q,d,1,7\n"  # 8: clicked
    "q,d,x,7\n"  # 9: position
    "q,d,1,0\n"  # 10
    "q,,1,0\n"  # 11: doc_id
)


def test_skipped_rows_are_counted_and_named(folder: Path) -> None:
    (folder / "log.csv").write_text(BAD)
    counts = cm.count("log.csv", bad_rows="skip")
    assert cells(counts) == [("q", "d", 1, 2, 1), ("q\nr", "d", 1, 1, 0)]
    assert [(r.reason, r.rows, [(e.where, e.row, e.column, e.text) for e in r.examples]) for r in counts.refused] == [
        ("the line has fewer columns than the header", 2, [("log.csv", 3, "", "q,d"), ("log.csv", 7, "", "q,d")]),
        ("the line has more columns than the header", 1, [("log.csv", 6, "", "q,d,1,1,1")]),
        ("query_id is missing", 1, [("log.csv", 4, "query_id", None)]),
        ("doc_id is missing", 1, [("log.csv", 11, "doc_id", None)]),
        (
            "position is not a positive whole number",
            2,
            [("log.csv", 2, "position", "0"), ("log.csv", 9, "position", "x")],
        ),
        ("clicked is neither 0 nor 1", 1, [("log.csv", 8, "clicked", "7")]),
    ]
    assert counts.totals()[0] + sum(refused.rows for refused in counts.refused) == 11


def test_a_bad_log_says_how_much_is_bad(folder: Path) -> None:
    (folder / "log.csv").write_text(BAD)
    expected = "log.csv, row 3: 'q,d': the line has fewer columns than the header. In all, 8 rows are bad." + HINT
    assert message("log.csv") == expected


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.ndjson", "log.parquet"])
def test_row_numbers_of_a_long_file(folder: Path, name: str) -> None:
    """Long enough to be read by several threads."""
    rows = 200_000
    position = [1] * rows
    position[123_455] = 0
    write(
        folder / name,
        {"query_id": ["query"] * rows, "doc_id": ["d"] * rows, "position": position, "clicked": [0] * rows},
    )
    assert message(name).startswith(f"{name}, row 123456, column 'position': '0'")


def test_bad_rows_of_several_files(folder: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text(RAW + "q,d,1,1\nq,d,0,0\nx\nq,d,0,0\n")
    write(folder / "c.parquet", {"query_id": ["q"], "doc_id": ["d"], "position": [0], "clicked": [1]})
    counts = cm.count(["a.csv", "b.csv", "c.parquet"], bad_rows="skip")
    assert [(r.rows, [(e.where, e.row) for e in r.examples]) for r in counts.refused] == [
        (2, [("a.csv", 3), ("b.csv", 3)]),
        (5, [("a.csv", 2), ("a.csv", 4), ("b.csv", 2)]),
    ]


def test_a_log_of_bad_rows_only(folder: Path) -> None:
    (folder / "log.csv").write_text(RAW + "q,d,0,1\nq,d,0,1\n")
    assert message("log.csv", bad_rows="skip") == (
        "log.csv: no impression is left without the bad rows: position is not a positive whole number (2). For "
        "instance log.csv, row 1, column 'position': '0'. If positions count from 0, add 1 to all of them. Fix the log."
    )


@pytest.mark.parametrize(
    ("name", "text", "reasons"),
    [
        (
            "log.csv",
            RAW + "q,d,1,2\nq,d,-1,1\nq,d,x,1\n",
            "position is not a positive whole number (2), clicked is neither 0 nor 1 (1). For instance log.csv, row 2, "
            "column 'position': '-1'. Fix the log.",
        ),
        (
            "log.ndjson",
            '{"query_id": "q", "doc_ids": ["a"], "clicked_positions": [7]}\n' * 2 + "no object\n",
            "clicked_positions has a value that is not in the list's positions (2), the line is not a JSON object (1). "
            "For instance log.ndjson, row 1, column 'clicked_positions': '[7]'. Fix the log.",
        ),
    ],
)
def test_a_log_of_rows_that_are_bad_for_several_reasons(folder: Path, name: str, text: str, reasons: str) -> None:
    (folder / name).write_text(text)
    assert message(name, bad_rows="skip") == f"{name}: no impression is left without the bad rows: {reasons}"


any_csv = st.lists(
    st.sampled_from(
        [RAW, COUNTED, "q", "d", "1", "0", ",", "\n", "\r\n", "\r", '"', "q,d,1,1\n", "\x00", "é", "\ufeff", "\t", ";"]
    )
    | st.text(max_size=3),
    max_size=30,
).map("".join)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=any_csv, header=st.booleans(), mode=st.sampled_from(["fail", "skip"]))
def test_any_csv_reads_or_is_refused(folder: Path, text: str, header: bool, mode: Any) -> None:
    data = ((RAW if header else "") + text).encode(errors="surrogatepass")
    (folder / "log.csv").write_bytes(data)
    try:
        counts = cm.count("log.csv", bad_rows=mode)
    except cm.InputError as error:
        outcome = str(error).startswith("log.csv")
    else:
        outcome = counts.totals()[0] >= 1
    assert outcome


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ids=st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), min_size=1, max_size=5, unique=True),
    name=st.sampled_from(["counts.parquet", "counts.csv", "counts.ndjson", "counts.csv.gz"]),
)
def test_any_text_in_ids_survives(folder: Path, ids: list[tuple[str, str]], name: str) -> None:
    queries, documents = zip(*ids, strict=True)
    table = {"query_id": pa.array(queries, pa.string()), "doc_id": pa.array(documents, pa.string())}
    write(folder / "log.parquet", table | {"position": [1] * len(ids), "clicked": [1] * len(ids)})
    cm.count("log.parquet").write(name)
    labels = cm.debias(name, correction="none")
    assert {tuple(map(str, row)) for row in zip(labels.query_id, labels.doc_id, strict=True)} == set(ids)
