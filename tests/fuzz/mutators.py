"""Mutators: the bytes of a good file -> those of a bad one. Each takes the bytes and a source of chance.

`raw` damages any file. `lines` knows lines and fields, `json_lines` and `document` know JSON, `numbers` changes only
numbers, `parquet` knows columns and types. `packed` works on what a gzipped file holds.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from clickmix.storage.documents import checksum

Mutator = Callable[[bytes, random.Random], bytes]
ODD_BYTES = [b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b'"', b"'", b"\n", b"\r", b"\r\n", b",", b"\t", b"{", b"[",
             b"}", b"\\", b" ", b"9" * 40, b"-", b"\xc3(", b"\xed\xa0\x80", b"=1+1", b"PAR1", b"\x1b[31m"]  # fmt: skip
ODD_TEXTS = ["", " ", "0", "-1", "-0", "+7", "007", "1.0", "1.5", "1e3", "1e308", "1e-400", "nan", "NaN", "inf",
             "-Infinity", "NULL", "null", "None", "true", "FALSE", "yes", "0x10", "65536", "2147483648",
             "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1" * 60, "é", "日本", "\u202e",
             "a\u0301", "\x00", "\x1b[2J", "a'b", 'a"b', "a,b", "a;b", "a|b", "${x}", "'; DROP TABLE x; --",
             "<script>", "=1+1", "x" * 5000, "\ufeff", "\u2028", "1 qid:1 1:1", "[]", "{}", '["a"]']  # fmt: skip
ODD_VALUES: list[Any] = [None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, 5e-324, 2**31, 2**53 + 1, 2**63 - 1, 2**63,
                         10**30, "", "x", "1", [], {}, [1], [None], [[1]], {"a": 1}, "NaN", "\ud800", "\x00",
                         [0] * 300, {"": ""}]  # fmt: skip


def raw(data: bytes, rng: random.Random) -> bytes:
    """Change, remove, repeat or insert a few bytes anywhere."""
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at, length = rng.randrange(len(data) + 1), min(rng.choice([1, 1, 2, 4, 16, 100]), len(data))
        kind = rng.randrange(8)
        if kind == 0 and at < len(data):  # one bit
            data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + rng.randbytes(length) + data[at + length :]
        elif kind == 2:
            data = data[:at] + data[at + length :]
        elif kind == 3:
            data = data[:at] + data[at : at + length] * rng.choice([2, 2, 50]) + data[at + length :]
        elif kind == 4:
            data = data[:at] + rng.choice(ODD_BYTES) + data[at:]
        elif kind == 5:  # a power cut: the end is missing, or is zeros
            data = data[:at] + rng.choice([b"", bytes(len(data) - at)])
        elif kind == 6:  # two parts change places
            other = rng.randrange(len(data) + 1)
            low, high = sorted((at, other))
            data = data[high:] + data[low:high] + data[:low]
        else:
            data = data[:at] + rng.choice([b"\0", b"\xff", b" ", b"\n"]) * length + data[at + length :]
    return data


def lines(data: bytes, rng: random.Random) -> bytes:
    """Change fields, lines, delimiters or line ends of a table in text."""
    rows = data.split(b"\n")
    delimiter = max((b",", b"\t", b" "), key=rows[0].count)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(rows))
        fields = rows[at].split(delimiter)
        field = rng.randrange(len(fields))
        kind = rng.randrange(14)
        if kind <= 4:
            fields[field] = rng.choice(ODD_TEXTS).encode()
            rows[at] = delimiter.join(fields)
        elif kind == 5:  # a number that is nearly right, in a field like 5 or 3:0.25
            fields[field] = re.sub(rb"[0-9]+$", str(rng.choice([-1, 0, 2, 7, 65_536, 10**19])).encode(), fields[field])
            rows[at] = delimiter.join(fields)
        elif kind == 6:
            rows[at] = delimiter.join(fields[:field] + fields[field + 1 :])
        elif kind == 7:
            rows[at] = delimiter.join([*fields, rng.choice(fields)])
        elif kind == 8:
            rows[at] = delimiter.join(rng.sample(fields, len(fields)))
        elif kind == 9:
            rows[at:at] = [rows[at]] * rng.choice([1, 3])
        elif kind == 10:
            del rows[at]
            rows = rows or [b""]
        elif kind == 11:
            rows.insert(at, rng.choice([b"", b" ", b"#", b"\r", b'"', b"\0", *rows]))
        elif kind == 12:
            rows = [row.replace(delimiter, rng.choice([b";", b"|", b"\t", b","])) for row in rows]
        else:
            rows[at] = rng.choice(
                [rows[at] + b"\r", b'"' + rows[at] + b'"', rows[at].upper(), b"\xef\xbb\xbf" + rows[at]]
            )
    return b"\n".join(rows)


def json_lines(data: bytes, rng: random.Random) -> bytes:
    """Change a value somewhere in one of the objects, or the objects themselves."""
    rows = data.split(b"\n")
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(rows))
        kind = rng.randrange(10)
        try:
            value = json.loads(rows[at])
        except (ValueError, RecursionError):
            value = None
        if kind <= 6:
            rows[at] = _dumped(_changed(value, rng), rng)
        elif kind == 7:
            rows.insert(at, rng.choice([b"", b" ", b"null", b"[]", b"1", b"{", b"not json", b"\0", *rows]))
        elif kind == 8:  # a key comes twice
            rows[at] = re.sub(rb"^\{(\"[^\"]*\")", rb"{\1: 0, \1", rows[at])
        else:
            rows[at] = b"[" * rng.choice([1, 150, 3000]) + rows[at]
    return b"\n".join(rows)


def json_file(data: bytes, rng: random.Random) -> bytes:
    """Change values somewhere in a file that is one JSON value."""
    value = json.loads(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        value = _changed(value, rng)
    return _dumped(value, rng)


def document(data: bytes, rng: random.Random) -> bytes:
    """Change the payload of one of clickmix's documents, and make its checksum right again."""
    found = json.loads(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        found["payload"] = _changed(found["payload"], rng)
    with contextlib.suppress(ValueError):  # what nobody could write keeps a wrong checksum
        found["checksum"] = checksum(found["payload"])
    return _dumped(found, rng)


def numbers(data: bytes, rng: random.Random) -> bytes:
    """Change numbers alone in the payload of one of clickmix's documents, so that most are read and used."""
    found = json.loads(data)
    places = list(_numbers(found["payload"]))
    for _ in range(rng.choice([1, 1, 2, 4])):
        owner, key = rng.choice(places)
        old = owner[key]
        odd = [0, 1, -old, old + 1, old * 1000, 10**6] + (
            [] if isinstance(old, int) else [old / 3, 1e308, 5e-324, 59.0]
        )
        owner[key] = rng.choice(odd)
    found["checksum"] = checksum(found["payload"])
    return _dumped(found, rng)


def _numbers(value: Any) -> Iterator[tuple[Any, Any]]:
    """Where the numbers of a JSON value are: the object or list that has one, and its key there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(item, (int, float)) and not isinstance(item, bool):
            yield value, key
        yield from _numbers(item)


def packed(inner: Mutator) -> Mutator:
    """The mutator for a gzipped file: what it holds is changed, and is packed again."""
    return lambda data, rng: gzip.compress(inner(gzip.decompress(data), rng), mtime=0)


def parquet(data: bytes, rng: random.Random) -> bytes:
    """Change values, types or columns of a Parquet file, and write it as another writer might."""
    table = pq.read_table(io.BytesIO(data))
    metadata = table.schema.metadata
    columns = {name: table[name].to_pylist() for name in table.column_names}
    types = {name: table.schema.field(name).type for name in table.column_names}
    for _ in range(rng.choice([1, 1, 2, 4])):
        if not columns:
            break
        name = rng.choice(list(columns))
        kind = rng.randrange(9)
        if kind <= 3 and columns[name]:
            columns[name][rng.randrange(len(columns[name]))] = rng.choice([None, 0, -1, 2, 7, 2**31, float("nan"), 1.5,
                                                                           *ODD_TEXTS])  # fmt: skip
            types.pop(name, None)
        elif kind == 4:
            types[name] = rng.choice(
                [pa.int8(), pa.uint8(), pa.int16(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.binary(),
                 pa.decimal128(20, 0), pa.decimal128(20, 3), pa.string(), pa.large_string(), pa.date32(),
                 pa.timestamp("us"), pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.int64())]
            )  # fmt: skip
        elif kind == 5:
            del columns[name]
        elif kind == 6:
            columns[rng.choice([name.upper(), "position", "clicked", "impressions", "", "a b", "list"])] = columns[name]
        elif kind == 7:
            columns = {other: values * 2 for other, values in columns.items()}
        else:
            kept = rng.choice([0, 1])
            columns = {other: values[:kept] for other, values in columns.items()}
    arrays = {name: _array(values, types.get(name)) for name, values in columns.items()}
    made = pa.table(arrays).replace_schema_metadata(metadata if rng.random() < 0.8 else {b"clickmix": rng.randbytes(9)})
    out = io.BytesIO()
    pq.write_table(
        made,
        out,
        use_dictionary=rng.random() < 0.5,
        compression=rng.choice(["none", "snappy", "zstd", "gzip"]),
        write_statistics=rng.random() < 0.5,
        row_group_size=rng.choice([1, 7, 1000]),
        data_page_version=rng.choice(["1.0", "2.0"]),
    )
    return out.getvalue()


def plain_pages(data: bytes, rng: random.Random) -> bytes:
    """Write a Parquet file without compression, and then change bytes: most hit a value, not a checksum of zstd."""
    out = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(data)), out, use_dictionary=False, compression="none")
    return raw(out.getvalue(), rng)


def _array(values: list[Any], type: pa.DataType | None) -> pa.Array:
    """A column of this type where it can hold the values, else of the type of the first one, else text."""
    attempts: list[Callable[[], pa.Array]] = [
        lambda: pa.array(values, type),
        lambda: pa.array(values).cast(type),
        lambda: pa.array(values),
        lambda: pa.array([None if value is None else float(value) for value in values]),
        lambda: pa.array([None if value is None else Decimal(value) for value in values]),
    ]
    for attempt in attempts:
        try:
            return attempt()
        except (pa.ArrowException, TypeError, ValueError, OverflowError, ArithmeticError):
            continue
    return pa.array([None if value is None else str(value) for value in values])


def _changed(value: Any, rng: random.Random) -> Any:
    """A copy of a JSON value with something in it replaced, removed, renamed, repeated or wrapped."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(sorted(value))
        kind = rng.randrange(10)
        if kind == 0:
            return {other: item for other, item in value.items() if other != key}
        if kind == 1:
            return value | {rng.choice(["", "x", key.upper(), f"{key} "]): value[key]}
        if kind == 2:
            return value | {key: value[rng.choice(sorted(value))]}
        return value | {key: _changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        kind = rng.randrange(10)
        if kind == 0:
            return value[:at] + value[at + 1 :]
        if kind == 1:
            return value[: at + 1] + value[at:]
        if kind == 2:
            return rng.sample(value, len(value))
        return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]
    kind = rng.randrange(6)
    if kind == 0 and isinstance(value, (int, float)) and not isinstance(value, bool):
        return rng.choice([-value, value + 1, value - 1, value * 1000, value / 3])
    if kind == 1:
        return rng.choice(ODD_TEXTS)
    if kind == 2:
        return rng.choice([[value], {"a": value}])
    return rng.choice(ODD_VALUES)


def _dumped(value: Any, rng: random.Random) -> bytes:
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    return text.encode(errors="surrogatepass")
