"""Result lists in PostgreSQL and Spark: counts, labels, bad rows and notes are those of the same lists in a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickmix as cm
from clickmix.engines.engine import choose_engine
from logs import Table, cells, write
from servers import Database

pytestmark = pytest.mark.xdist_group("engines")
Load = Callable[[Table], tuple[Any, Any]]
FORMS = ("clicked", "clicked_ids", "clicked_positions")


def element(values: list[Any]) -> type:
    """The type of the first element of lists."""
    return next((type(value) for row in values for value in row or () if value is not None), str)


def load_postgres(request: pytest.FixtureRequest) -> Load:
    database: Database = request.getfixturevalue("database")
    names = {bool: "boolean", int: "bigint", float: "double precision", str: "text", dict: "jsonb"}

    def load(table: Table) -> tuple[Any, Any]:
        is_list = {key: any(isinstance(value, list) for value in values) for key, values in table.items()}
        types = {key: f"{names[element(table[key])]}[]" for key, found in is_list.items() if found}
        types = {key: "jsonb" if type == "jsonb[]" else type for key, type in types.items()}
        packed = {
            key: list(map(json.dumps, values)) if types.get(key) == "jsonb" else values for key, values in table.items()
        }
        return database.create("searches", packed, types), choose_engine(database.address)

    return load


def load_spark(request: pytest.FixtureRequest) -> Load:
    spark = request.getfixturevalue("spark")
    names = {bool: "boolean", int: "bigint", float: "double", str: "string"}

    def load(table: Table) -> tuple[Any, Any]:
        def type_of(values: list[Any]) -> str:
            if not any(isinstance(value, list) for value in values):
                return names[type(next(value for value in values if value is not None))]
            if element(values) is dict:
                fields = next(value for row in values for value in row or ())
                return f"array<struct<{','.join(f'{key}:{names[type(value)]}' for key, value in fields.items())}>>"
            return f"array<{names[element(values)]}>"

        schema = ", ".join(f"`{key}` {type_of(values)}" for key, values in table.items())
        rows = list(zip(*table.values(), strict=True))
        spark.createDataFrame(rows, schema).createOrReplaceTempView("searches")
        return "searches", spark

    return load


@pytest.fixture(params=[load_postgres, load_spark], ids=["postgres", "spark"])
def load(request: pytest.FixtureRequest) -> Load:
    """Puts a table with list columns into an engine: what to pass as log, and as engine."""
    return request.param(request)  # type: ignore[no-any-return]


# By hand: q1 in two orders, a hole at 2 in q2, an empty list, a list of one.
LISTS: Table = {
    "query_id": ["q1", "q1", "q2", "q2", "q3"],
    "doc_ids": [["a", "b", "c"], ["b", "a", "c"], ["d", None, "e"], [], ["f"]],
    "clicked": [[1, 0, 1], [0, 0, 0], [0, 0, 1], [], [1]],
    "clicked_ids": [["a", "c"], None, ["e"], [], ["f"]],
    "clicked_positions": [[1, 3], None, [3], [], [1]],
    "device": ["m", None, "m", "m", "d"],
}
CELLS = [
    ("q1", "a", 1, 1, 1),
    ("q1", "a", 2, 1, 0),
    ("q1", "b", 1, 1, 0),
    ("q1", "b", 2, 1, 0),
    ("q1", "c", 3, 2, 1),
    ("q2", "d", 1, 1, 0),
    ("q2", "e", 3, 1, 1),
    ("q3", "f", 1, 1, 1),
]


@pytest.mark.parametrize("form", FORMS)
def test_lists_are_recognised_and_counted(load: Load, form: str) -> None:
    name, engine = load({key: values for key, values in LISTS.items() if key not in FORMS or key == form})
    counts = cm.count(name, engine=engine)
    assert (cells(counts), counts.refused, counts.notes) == (CELLS, (), ())


def random_lists(*, lists: int = 400) -> Table:
    """Lists of four of ten documents in any order; every third document is relevant."""
    rng = np.random.default_rng(8)
    table: Table = {"query_id": [], "doc_ids": [], "clicked": []}
    for number in range(lists):
        shown = rng.permutation(10)[:4]
        rate = np.where(shown % 3 == 0, 0.8, 0.1) / np.arange(1, 5)
        table["query_id"].append(f"q{number % 20}")
        table["doc_ids"].append([f"{number % 20}/{document}" for document in shown])
        table["clicked"].append((rng.random(4) < rate).astype(int).tolist())
    return table


def as_rows(table: Table) -> Table:
    """The same log with a row per impression."""
    lists = zip(table["query_id"], table["doc_ids"], table["clicked"], strict=True)
    rows = [
        (query, document, place, click)
        for query, documents, clicked in lists
        for place, (document, click) in enumerate(zip(documents, clicked, strict=True), start=1)
    ]
    names = ("query_id", "doc_id", "position", "clicked")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def test_labels_are_those_of_the_same_log_in_rows(load: Load, tmp_path: Path) -> None:
    table = random_lists()
    name, engine = load(table)
    labels = cm.debias(name, engine=engine)
    expected = cm.debias(write(tmp_path / "rows.parquet", as_rows(table)))
    for column in ("query_id", "doc_id", "impressions", "clicks"):
        assert getattr(labels, column).tolist() == getattr(expected, column).tolist()
    np.testing.assert_allclose(labels.relevance, expected.relevance, rtol=0, atol=1e-9)


def test_integers_truths_positions_and_a_context(load: Load, tmp_path: Path) -> None:
    table: Table = {
        "query_id": [7, 7, 8],
        "doc_ids": [[30, 4], [4], [5, 6]],
        "positions": [[1, 3], [2], [2, 11]],
        "clicked": [[True, False], [True], [False, False]],
        "device": ["m", "d", "m"],
    }
    name, engine = load(table)
    found = cells(cm.count(name, engine=engine, context="device"))
    assert found == cells(cm.count(write(tmp_path / "log.parquet", table), context="device"))
    assert found[0] == (7, 4, 2, "d", 1, 1)


def test_nested_objects_by_path(load: Load, tmp_path: Path) -> None:
    table: Table = {
        "term": ["q", "r"],
        "results": [[{"sku": "a", "hit": 0}, {"sku": "b", "hit": 1}], [{"sku": "c", "hit": 0}]],
    }
    columns = {"query_id": "term", "doc_ids": "results[].sku", "clicked": "results[].hit"}
    name, engine = load(table)
    assert cells(cm.count(name, engine=engine, columns=columns)) == [
        ("q", "a", 1, 1, 0),
        ("q", "b", 2, 1, 1),
        ("r", "c", 1, 1, 0),
    ]


ROW: dict[str, Any] = {
    "query_id": "q",
    "doc_ids": ["a", "b"],
    "clicked": [1, 0],
    "clicked_ids": ["a"],
    "clicked_positions": [1],
}
BAD: dict[str, list[dict[str, Any]]] = {
    "clicked": [{"clicked": [1]}, {"clicked": [1, 2]}, {"clicked": None}, {"doc_ids": None}, {"clicked": [1, None]},
                {"doc_ids": [None, "b"]}, {"query_id": None}],
    "clicked_ids": [{"clicked_ids": ["z"]}, {"doc_ids": ["a", "b", "a"]}, {"doc_ids": None},
                    {"clicked_ids": ["z", "b"]}],
    "clicked_positions": [{"clicked_positions": [0]}, {"clicked_positions": [3]}, {"doc_ids": [None, "b"]}],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_bad_and_odd_lists_are_those_of_a_file(load: Load, tmp_path: Path, form: str) -> None:
    kept = {key: ROW[key] for key in ("query_id", "doc_ids", form)}
    rows = [kept, *(kept | change for change in BAD[form])]
    table = {key: [row[key] for row in rows] for key in kept}
    name, engine = load(table)
    counts = cm.count(name, engine=engine, bad_rows="skip")
    expected = cm.count(write(tmp_path / "log.parquet", table), bad_rows="skip")
    assert cells(counts) == cells(expected)
    assert [(kind.reason, kind.rows) for kind in counts.refused] == [(k.reason, k.rows) for k in expected.refused]
    assert counts.notes == expected.notes
    assert len(counts.refused) + len(counts.notes) > 1


def test_a_bad_list_is_named_by_its_query(load: Load) -> None:
    name, engine = load({"query_id": ["q"], "doc_ids": [["a", "b"]], "clicked": [[1]]})
    with pytest.raises(cm.InputError) as caught:
        cm.count(name, engine=engine)
    message = str(caught.value)
    assert message.startswith("table searches, query q, column 'clicked': ")
    assert ": clicked and doc_ids have different lengths. Fix the log, or skip" in message


def test_lists_in_json_text(database: Database, spark: Any) -> None:
    table: Table = {"query_id": ["q", "q"], "doc_ids": ['["a", "b"]', "a|b"], "clicked": ["[0, 1]", "[0, 1]"]}
    rows = list(zip(*table.values(), strict=True))
    spark.createDataFrame(rows, ", ".join(f"{key} string" for key in table)).createOrReplaceTempView("texts")
    counts = cm.count("texts", engine=spark, bad_rows="skip")
    assert cells(counts) == [("q", "a", 1, 1, 0), ("q", "b", 2, 1, 1)]
    assert [kind.reason for kind in counts.refused] == ["doc_ids is not a list; in CSV it is a list in JSON"]
    with pytest.raises(cm.InputError) as caught:
        cm.count(database.create("texts", table), engine=database.address)
    assert str(caught.value) == (
        "table texts, column 'doc_ids': found VARCHAR values, which this engine cannot read as lists for doc_ids. "
        "Create a view with a column of arrays, and use that."
    )
