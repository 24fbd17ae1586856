"""Judgments hold the right ratings, in the format of each tool; what a tool cannot hold is refused or reported."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from clickmix.errors import InputError, SettingError
from clickmix.export.grades import cuts, worths
from clickmix.export.target import Exported, export
from clickmix.storage.atomic import recording
from commands import failure

Rows = list[tuple[Any, ...]]
COLUMNS = ("query_id", "doc_id", "relevance", "impressions", "clicks", "low", "high")
ROWS: Rows = [
    ("blue hat", "d2", 0.2, 10, 1, 0.1, 0.9),
    ("red shoes", "d1", 0.93, 402, 31, 0.61, 1.0),
    ("red shoes", "d2", 0.3, 100, 3, 0.0, 1.0),
    ("red shoes", "d3", 0.05, 50, 0, 0.0, 0.3),
]


def labels(folder: Path, rows: Rows = ROWS, columns: tuple[str, ...] = COLUMNS, name: str = "labels.csv") -> Path:
    """A labels file, in the format its name says."""
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    if name != "labels.csv":
        format = "parquet" if name.endswith("parquet") else "json"
        duckdb.sql(f"COPY (FROM read_csv('{folder / 'labels.csv'}')) TO '{folder / name}' (FORMAT {format})")
    return folder / name


def exported(folder: Path, target: str, rows: Rows = ROWS, **options: Any) -> tuple[Exported, str]:
    """What was said, and the text of the file."""
    done = export(labels(folder, rows), to=target, output=folder / "out", **options)
    return done, done.files[0].read_bytes().decode()


# Grades


@pytest.mark.parametrize(
    ("scale", "gain", "expected"),
    [
        (1, "exponential", [0.5]),
        (3, "exponential", [1 / 14, 4 / 14, 10 / 14]),
        (4, "exponential", [1 / 30, 4 / 30, 10 / 30, 22 / 30]),
        (3, "linear", [1 / 6, 3 / 6, 5 / 6]),
    ],
)
def test_grades_are_cut_half_way_between_gains(scale: int, gain: Any, expected: list[float]) -> None:
    assert cuts(scale, gain) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("scale", [1, 2, 3, 4, 9])
def test_a_grade_is_the_one_whose_gain_is_nearest(scale: int, tmp_path: Path) -> None:
    relevance = np.random.default_rng(0).random(500)
    rows = [("q", f"d{i:03}", repr(float(p))) for i, p in enumerate(relevance)]
    path = labels(tmp_path, rows, ("query_id", "doc_id", "relevance"))
    export(path, to="quepid", output=tmp_path / "out", scale=scale)
    found = [int(row["rating"]) for row in csv.DictReader((tmp_path / "out").read_text().splitlines())]
    nearest = np.abs(relevance[:, None] - np.array(worths(scale, "exponential"))).argmin(axis=1)
    assert found == nearest.tolist()


# Formats, each read by the rules of its tool


def test_quepid_lines_are_as_quepid_splits_them(tmp_path: Path) -> None:
    _, text = exported(tmp_path, "quepid", [*ROWS, ("shoes, red", "d1", 0.5, 1, 0, 0, 1)])
    header, *lines = text.removesuffix("\n").split("\n")
    assert header == "query,docid,rating"
    assert lines == ["blue hat,d2,1", "red shoes,d1,3", "red shoes,d2,2", "red shoes,d3,0", '"shoes, red",d1,2']
    assert "\r" not in text
    assert not text.startswith("\ufeff")


def test_quepid_csv_is_read_by_a_csv_reader_whatever_is_in_the_query(tmp_path: Path) -> None:
    queries = ['"red shoes"', 'a "b" c', 'x, "y"', "größe", "it's", "<b>", "a\tb"]
    _, text = exported(tmp_path, "quepid", [(query, "d", 0.9, 1, 0, 0, 1) for query in queries])
    assert sorted(row["query"] for row in csv.DictReader(text.splitlines())) == sorted(queries)


def test_a_book_carries_the_evidence_and_the_interval(tmp_path: Path) -> None:
    _, text = exported(tmp_path, "quepid-book")
    book = json.loads(text)
    assert book["name"] == "labels"
    assert book["support_implicit_judgements"] is True
    assert book["scale"] == [0, 1, 2, 3]
    assert book["scale_with_labels"] == {"0": "not relevant", "1": "grade 1", "2": "grade 2", "3": "relevant"}
    assert book["query_doc_pairs"][1] == {
        "query_text": "red shoes",
        "doc_id": "d1",
        "position": None,
        "document_fields": {},
        "judgements": [
            {"rating": 3, "explanation": "31 clicks of 402 impressions; relevance 0.93; 95% interval 0.61 to 1.00"}
        ],
    }


def test_a_book_of_labels_without_interval_says_what_there_is(tmp_path: Path) -> None:
    path = labels(tmp_path, [("q", "d", 0.5)], ("query_id", "doc_id", "relevance"))
    export(path, to="quepid-book", output=tmp_path / "out", title="Shop")
    book = json.loads((tmp_path / "out").read_text())
    assert book["name"] == "Shop"
    assert book["query_doc_pairs"][0]["judgements"] == [{"rating": 2, "explanation": "relevance 0.50"}]


def test_opensearch_lists_hold_ratings_as_text(tmp_path: Path) -> None:
    done, text = exported(tmp_path, "opensearch")
    assert done.files == (tmp_path / "out" / "judgments-1.json",)
    assert json.loads(text) == {
        "name": "labels",
        "type": "IMPORT_JUDGMENT",
        "judgmentRatings": [
            {"query": "blue hat", "ratings": [{"docId": "d2", "rating": "1"}]},
            {
                "query": "red shoes",
                "ratings": [
                    {"docId": "d1", "rating": "3"},
                    {"docId": "d2", "rating": "2"},
                    {"docId": "d3", "rating": "0"},
                ],
            },
        ],
    }


def test_opensearch_lists_stay_below_10000_nested_objects(tmp_path: Path) -> None:
    rows = [(f"q{q:03}", f"d{d:03}", 0.5, 1, 0, 0, 1) for q in range(250) for d in range(99)]
    done = export(labels(tmp_path, rows), to="opensearch", output=tmp_path / "out")
    lists = [json.loads(path.read_text()) for path in done.files]
    sizes = [sum(1 + len(query["ratings"]) for query in each["judgmentRatings"]) for each in lists]
    assert sizes == [9900, 9900, 5200]  # 99, 99 and 52 queries with 99 documents each
    assert [each["name"] for each in lists] == ["labels 1 of 3", "labels 2 of 3", "labels 3 of 3"]
    pairs = [
        (query["query"], r["docId"]) for each in lists for query in each["judgmentRatings"] for r in query["ratings"]
    ]
    assert pairs == [(row[0], row[1]) for row in rows]
    assert "3 lists, because one holds up to 9,999 queries and ratings; experiments take several." in done.notes


def test_a_query_that_fills_more_than_a_list_is_refused(tmp_path: Path) -> None:
    path = labels(tmp_path, [("q", f"d{d:05}", 0.5, 1, 0, 0, 1) for d in range(9999)])
    message = (
        "Query 'q' has 9,999 judgments, but a list in OpenSearch holds 9,998. Keep the best with --top 9998. "
        "Nothing was written."
    )
    with pytest.raises(InputError, match=re.escape(message)):
        export(path, to="opensearch", output=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]
    assert len(export(path, to="opensearch", output=tmp_path / "out", top=9998).files) == 1


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    exported(tmp_path, "opensearch")
    with pytest.raises(InputError, match=r"out: this folder is not empty\. Choose a new folder, or empty this one\."):
        exported(tmp_path, "opensearch")


def test_a_folder_that_could_not_be_finished_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("clickmix.storage.atomic.os.replace", fail)
    with recording() as written, pytest.raises(OSError, match="No space left"):
        exported(tmp_path, "opensearch")
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]
    assert str(written) == "Nothing was written."


def test_rank_eval_has_whole_ratings_and_a_template(tmp_path: Path) -> None:
    done, text = exported(tmp_path, "rank-eval", index="shop")
    body = json.loads(text)
    assert body["metric"] == {"dcg": {"k": 10, "normalize": True}}
    assert [template["id"] for template in body["templates"]] == ["clickmix"]
    assert body["requests"][1] == {
        "id": "red shoes",
        "template_id": "clickmix",
        "params": {"query": "red shoes"},
        "ratings": [
            {"_index": "shop", "_id": "d1", "rating": 3},
            {"_index": "shop", "_id": "d2", "rating": 2},
            {"_index": "shop", "_id": "d3", "rating": 0},
        ],
    }
    assert all(type(r["rating"]) is int for request in body["requests"] for r in request["ratings"])
    assert done.requests == (
        "curl -X POST localhost:9200/shop/_rank_eval -H 'Content-Type: application/json' "
        f"--data-binary @{tmp_path / 'out'}",
    )


def test_rre_lists_documents_by_whole_grade(tmp_path: Path) -> None:
    _, text = exported(tmp_path, "rre", index="shop")
    ratings = json.loads(text)
    (topic,) = ratings["topics"]
    assert (ratings["index"], ratings["id_field"]) == ("shop", "_id")
    assert topic["query_groups"][1] == {
        "name": "red shoes",
        "queries": [{"template": "query.json", "placeholders": {"$query": "red shoes"}}],
        "relevant_documents": {"3": ["d1"], "2": ["d2"], "0": ["d3"]},
    }


@pytest.mark.parametrize("target", ["rank-eval", "rre"])
def test_a_target_that_names_the_index_needs_it(target: str, tmp_path: Path) -> None:
    message = f"{target} names the index of every document. Set it with --index, for instance --index products."
    with pytest.raises(SettingError, match=re.escape(message)):
        exported(tmp_path, target)
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


def test_hello_ltr_reads_ltr_text(tmp_path: Path) -> None:
    """With its own expressions; its reader of headers takes the first line that is no header away."""
    _, text = exported(tmp_path, "ltr")
    lines = iter(text.splitlines())
    queries = {}
    for line in lines:
        found = re.match(r"#\sqid:(\d+?):\s+?(.*)", line)
        if not found:
            break
        queries[int(found[1])] = found[2]
    judged = [re.match(r"^(\d)\s+qid:(\d+)\s+#\s+(\w+).*", line) for line in lines]
    assert queries == {1: "blue hat", 2: "red shoes"}
    assert [(each[1], each[2], each[3]) for each in judged if each] == [
        ("1", "1", "d2"),
        ("3", "2", "d1"),
        ("2", "2", "d2"),
        ("0", "2", "d3"),
    ]
    assert len(judged) == 4


def test_qrels_number_queries_with_blanks_and_say_which(tmp_path: Path) -> None:
    done, text = exported(tmp_path, "qrels")
    assert text == "1 0 d2 1\n2 0 d1 3\n2 0 d2 1\n2 0 d3 0\n"
    beside = tmp_path / "out.query_id.csv"
    assert done.files == (tmp_path / "out", beside)
    assert list(csv.reader(beside.read_text().splitlines())) == [
        ["number", "query_id"],
        ["1", "blue hat"],
        ["2", "red shoes"],
    ]


@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0", "\u3000", "\x1f", "\x85"])
def test_qrels_number_documents_with_any_blank(blank: str, tmp_path: Path) -> None:
    _, text = exported(tmp_path, "qrels", [("q", f"d{blank}1", 0.9, 1, 0, 0, 1), ("q", "d", 0.9, 1, 0, 0, 1)])
    assert [line.split() for line in text.splitlines()] == [["q", "0", "1", "3"], ["q", "0", "2", "3"]]


def test_pytrec_eval_reads_qrels(tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    _, text = exported(tmp_path, "qrels", [("q1", *row[1:]) for row in ROWS if row[0] == "red shoes"])
    qrels = pytrec_eval.parse_qrel(text.splitlines())
    assert qrels == {"q1": {"d1": 3, "d2": 1, "d3": 0}}
    measured = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg"}).evaluate({"q1": {"d2": 2.0, "d1": 1.0}})
    assert measured["q1"]["ndcg"] == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)), rel=1e-12)


def test_ranx_reads_qrels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # compiling what reads four lines takes seconds
    ranx = pytest.importorskip("ranx", reason="ranx is not installed")
    exported(tmp_path, "qrels")
    read = ranx.Qrels.from_file(str(tmp_path / "out"), kind="trec").to_dict()
    assert read == {"1": {"d2": 1}, "2": {"d1": 3, "d2": 1, "d3": 0}}


# Other ratings


@pytest.mark.parametrize("target", ["quepid", "quepid-book", "opensearch"])
def test_expected_gain_makes_the_gain_of_a_tool_the_relevance(target: str, tmp_path: Path) -> None:
    _, text = exported(tmp_path, target, rating="expected-gain")
    found = sorted(float(each) for each in re.findall(r'(?:d\d,|"rating":"?)([0-9.]+)', text))
    assert [2**r - 1 for r in found] == pytest.approx([0.05, 0.2, 0.3, 0.93], abs=2e-6)


@pytest.mark.parametrize("target", ["quepid", "quepid-book", "opensearch"])
def test_probabilities_are_written_as_they_are(target: str, tmp_path: Path) -> None:
    _, text = exported(tmp_path, target, rating="probability")
    found = sorted(float(each) for each in re.findall(r'(?:d\d,|"rating":"?)([0-9.]+)', text))
    assert found == [0.05, 0.2, 0.3, 0.93]


@pytest.mark.parametrize("rating", ["probability", "expected-gain"])
@pytest.mark.parametrize(
    ("target", "limit"),
    [
        ("rank-eval", "_rank_eval takes whole ratings only: it reads 0.731 as 0, without an error."),
        ("rre", "RRE takes whole grades only, and 3 is the largest unless you set another in RRE."),
        (
            "qrels",
            "Qrels take whole grades only, and ids without blanks; those with blanks become numbers, listed beside "
            "FILE.",
        ),
        ("ltr", "A line holds a grade of one digit, and ids without blanks or line ends."),
    ],
)
def test_targets_of_whole_ratings_refuse_others(target: str, limit: str, rating: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=re.escape(f"--as {rating}: {limit} Leave --as out.")):
        exported(tmp_path, target, rating=rating)


# What is left out


def test_unsure_labels_are_left_out_and_counted(tmp_path: Path) -> None:
    done, text = exported(tmp_path, "quepid", min_impressions=50, max_width=0.5, top=1)
    assert text == "query,docid,rating\nred shoes,d1,3\n"
    assert done.notes == (
        f"1 judgment of 1 query in {tmp_path / 'out'}: grades 0 to 3, cut at 0.071, 0.286, 0.714.",
        "Left out: 1 shown fewer than 50 times; 1 with an interval wider than 0.5; 1 below the top 1 of their query.",
    )


def test_labels_whose_interval_is_unknown_are_unsure(tmp_path: Path) -> None:
    done, text = exported(tmp_path, "quepid", [*ROWS, ("red shoes", "d4", 0.9, 10, 5, "", "")], max_width=1.0)
    assert "d4" not in text
    assert "Left out: 1 with an interval wider than 1.0." in done.notes


def test_the_top_of_a_query_is_its_highest_relevance(tmp_path: Path) -> None:
    rows = [("q", f"d{i}", p, 1, 0, 0, 1) for i, p in enumerate([0.2, 0.9, 0.2, 0.5])]
    _, text = exported(tmp_path, "quepid", rows, top=3)
    assert text == "query,docid,rating\nq,d0,1\nq,d1,3\nq,d3,2\n"


# Any labels file


@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet", "labels.ndjson"])
def test_labels_of_every_format_give_the_same_judgments(name: str, tmp_path: Path) -> None:
    export(labels(tmp_path, name=name), to="opensearch", output=tmp_path / "out", title="x")
    found = (tmp_path / "out" / "judgments-1.json").read_text()
    assert json.loads(found)["judgmentRatings"][1]["ratings"][0] == {"docId": "d1", "rating": "3"}


def test_whole_numbers_as_ids_keep_their_order(tmp_path: Path) -> None:
    duckdb.sql(
        "COPY (SELECT * FROM (VALUES (10, 2, 0.9), (9, 100, 0.9), (9, 20, 0.9)) t(query_id, doc_id, relevance)) "
        f"TO '{tmp_path / 'labels.parquet'}'"
    )
    export(tmp_path / "labels.parquet", to="qrels", output=tmp_path / "out")
    assert (tmp_path / "out").read_text() == "9 0 20 3\n9 0 100 3\n10 0 2 3\n"


def test_a_column_query_is_the_text_of_the_query(tmp_path: Path) -> None:
    path = labels(tmp_path, [("7", "d", 0.9, "red shoes")], ("query_id", "doc_id", "relevance", "query"))
    export(path, to="rank-eval", output=tmp_path / "out", index="shop")
    (request,) = json.loads((tmp_path / "out").read_text())["requests"]
    assert (request["id"], request["params"]) == ("7", {"query": "red shoes"})


def test_the_same_labels_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    _, first = exported(tmp_path, "quepid-book")
    _, second = exported(tmp_path, "quepid-book", ROWS[::-1])
    assert first == second


# Bad input: one line, nothing written


BAD: list[tuple[str, str, list[tuple[Any, ...]], str]] = [
    (
        "quepid",
        "a line end",
        [("a\nb", "d", 0.5, 1, 0, 0, 1)],
        "1 judgment has a line end in an id, and Quepid reads a line at a time. For instance query 'a\\nb', "
        "document 'd'. Leave them out of the labels. Nothing was written.",
    ),
    (
        "quepid",
        "a comma",
        [("q", "d,1", 0.5, 1, 0, 0, 1)],
        "1 judgment has a comma or a quote in the document id, which Quepid misreads. For instance query 'q', "
        "document 'd,1'. Leave them out of the labels. Nothing was written.",
    ),
    (
        "quepid",
        "a long id",
        [("q", "d" * 501, 0.5, 1, 0, 0, 1)],
        "1 judgment has a document id of more than 500 letters, which Quepid cuts. For instance query 'q', "
        f"document '{'d' * 501}'. Leave them out of the labels. Nothing was written.",
    ),
    (
        "ltr",
        "a blank",
        [("q", "d 1", 0.5, 1, 0, 0, 1), ("q", "d 2", 0.5, 1, 0, 0, 1)],
        "2 judgments have a blank in the document id, which ends at a blank here. For instance query 'q', "
        "document 'd 1'. Leave them out of the labels. Nothing was written.",
    ),
    (
        "ltr",
        "a line end",
        [("a\nb", "d", 0.5, 1, 0, 0, 1)],
        "1 judgment has a line end in the query, and LTR text has a line per judgment. For instance query 'a\\nb', "
        "document 'd'. Leave them out of the labels. Nothing was written.",
    ),
]


@pytest.mark.parametrize(("target", "kind", "rows", "message"), BAD, ids=[f"{case[0]}, {case[1]}" for case in BAD])
def test_ids_a_target_cannot_hold_are_refused(target: str, kind: str, rows: Rows, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        exported(tmp_path, target, rows)
    assert str(caught.value) == message
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


@pytest.mark.parametrize(
    ("target", "row", "note"),
    [
        (
            "quepid",
            ('x, "y"', "d", 0.5, 1, 0, 0, 1),
            "1 judgment has a query with a comma and a quote, or a quote first: Quepid refuses the file, OpenSearch "
            "accepts it. For instance query 'x, \"y\"', document 'd'.",
        ),
        (
            "quepid",
            ("寿司", "d", 0.5, 1, 0, 0, 1),
            "1 judgment has letters beyond Latin-1, which Quepid may lose. For instance query '寿司', document 'd'.",
        ),
        (
            "ltr",
            ("q", "d-1", 0.5, 1, 0, 0, 1),
            "1 judgment has a document id that hello-ltr cuts: it reads letters, digits and _. For instance query 'q', "
            "document 'd-1'.",
        ),
        (
            "ltr",
            ("a*", "d", 0.5, 1, 0, 0, 1),
            "1 judgment has a * in the query, which hello-ltr reads as the beginning of a weight. For instance query "
            "'a*', document 'd'.",
        ),
    ],
)
def test_what_a_tool_may_misread_is_reported(target: str, row: tuple[Any, ...], note: str, tmp_path: Path) -> None:
    done, _ = exported(tmp_path, target, [row])
    assert note in done.notes


def test_max_width_needs_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = labels(tmp_path, [("q", "d", 0.5)], ("query_id", "doc_id", "relevance"))
    words = ["export", str(path), "--to", "quepid", "-o", str(tmp_path / "out"), "--max-width", "0.5"]
    assert failure(capsys, monkeypatch, *words) == (
        f"clickmix: {path}: no column 'low', which --max-width needs. Leave the option out, or use labels of a "
        "correction with intervals, such as mixture.\n"
    )
    assert list(tmp_path.iterdir()) == [path]


def test_min_impressions_needs_impressions(tmp_path: Path) -> None:
    path = labels(tmp_path, [("q", "d", 0.5)], ("query_id", "doc_id", "relevance"))
    message = "labels.csv: no column 'impressions', which --min-impressions needs. Leave the option out."
    with pytest.raises(InputError, match=re.escape(message)):
        export(path, to="quepid", output=tmp_path / "out", min_impressions=5)


def test_an_empty_selection_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = labels(tmp_path)
    words = ["export", str(path), "--to", "quepid", "-o", str(tmp_path / "out"), "--min-impressions", "9999"]
    assert failure(capsys, monkeypatch, *words) == (
        f"clickmix: {path}: nothing to export: 4 shown fewer than 9,999 times. Nothing was written.\n"
    )
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        (
            ("query_id", "doc_id"),
            [("q", "d")],
            "no column 'relevance'. Found query_id, doc_id. Expected labels as `clickmix debias` writes them.",
        ),
        (("query_id", "doc_id", "relevance"), [], "nothing to export. Nothing was written."),
        (
            ("query_id", "doc_id", "relevance"),
            [("q", "d", 1.5)],
            "the label of query q, document d has no relevance from 0 to 1. "
            "Expected labels as `clickmix debias` writes them.",
        ),
        (
            ("query_id", "doc_id", "relevance"),
            [("q", "d", "much")],
            "the label of query q, document d has no relevance from 0 to 1. "
            "Expected labels as `clickmix debias` writes them.",
        ),
        (
            ("query_id", "doc_id", "relevance"),
            [("", "d", 0.5)],
            "the label of query None, document d has no query_id, doc_id or query. "
            "Expected labels as `clickmix debias` writes them.",
        ),
        (
            ("query_id", "doc_id", "relevance"),
            [("q", "d", 0.5), ("q", "d", 0.6)],
            "two labels of query q, document d. Keep one of them.",
        ),
        (
            ("query_id", "doc_id", "relevance", "query"),
            [(1, "d", 0.5, "hat"), (2, "d", 0.6, "hat")],
            "query text 'hat' and its query_id do not match one to one. Give each query_id its own text, "
            "or leave the column query out.",
        ),
        (
            ("query_id", "doc_id", "relevance", "query"),
            [(1, "d", 0.5, "hat"), (1, "e", 0.6, "hats")],
            "query text 'hat' and its query_id do not match one to one. Give each query_id its own text, "
            "or leave the column query out.",
        ),
    ],
)
def test_what_are_no_labels_is_refused(columns: tuple[str, ...], rows: Rows, message: str, tmp_path: Path) -> None:
    path = labels(tmp_path, rows, columns)
    with pytest.raises(InputError) as caught:
        export(path, to="quepid", output=tmp_path / "out")
    assert str(caught.value) == f"{path}: {message}"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0}, "scale 0: expected the largest grade, a whole number from 1 to 30."),
        ({"top": 0}, "top 0: expected a whole number from 1."),
        ({"min_impressions": -1}, "min_impressions -1: expected a whole number from 1."),
        ({"max_width": 1.5}, "max_width 1.5: expected a number from 0 to 1."),
        ({"rating": "stars"}, "--as stars: expected one of grade, probability, expected-gain."),
        ({"index": "shop"}, "the option index belongs to the target rank-eval or rre, not to quepid. Leave it out."),
    ],
)
def test_settings_outside_what_they_may_be_are_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=re.escape(message)):
        exported(tmp_path, "quepid", **options)


def test_ltr_grades_have_one_digit(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"scale 10: expected at most 9\. A line holds a grade of one digit"):
        exported(tmp_path, "ltr", scale=10)


@pytest.mark.parametrize("title", ['a "b"', "a<b", "", "x" * 2001])
def test_a_title_that_opensearch_refuses_is_refused(title: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="OpenSearch takes up to 2,000 letters"):
        exported(tmp_path, "opensearch", title=title or '"')


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"labels\.parquet: no such file"):
        export(tmp_path / "labels.parquet", to="quepid", output=tmp_path / "out")
