"""LETOR text: read as the slow reader reads it, refused with the line."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clickmix.features.letor as letor
from clickmix.errors import InputError
from clickmix.features.letor import read_letor
from clickmix.features.letor_lines import LetorLines, LineError, read_lines
from clickmix.features.letor_numbers import read_numbers
from oracles_datasets import dense, letor_rows

DENSE = "2 qid:10 1:0.5 2:-3 3:1e-3\n0 qid:10 1:7 2:0.25 3:0\n1 qid:4 1:1 2:2 3:3\n"
SPARSE = "2 qid:10 2:-3\n0 qid:10 1:7 5:0.25\n\n1 qid:4\n0 qid:4 3:9 # docid = GX-1 inc = 2\n"


def written(folder: Path, text: str | bytes, name: str = "train.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("text", [DENSE, SPARSE, DENSE.replace("\n", " \r\n"), DENSE[:-1], "\ufeff" + DENSE])
def test_reads_what_the_slow_reader_reads(tmp_path: Path, text: str) -> None:
    split = read_letor(written(tmp_path, text))
    rows = letor_rows(text.removeprefix("\ufeff"))
    assert split.grade.tolist() == [grade for grade, _, _ in rows]
    assert split.query_id.tolist() == [10, 4]
    assert split.query_id[split.query].tolist() == [query for _, query, _ in rows]
    assert split.features.dtype == np.float32
    np.testing.assert_array_equal(split.features, dense(rows))


def test_gzip_is_known_by_its_bytes_not_by_its_name(tmp_path: Path) -> None:
    split = read_letor(written(tmp_path, gzip.compress(DENSE.encode())))
    np.testing.assert_array_equal(split.features, dense(letor_rows(DENSE)))


def test_documents_are_numbered_where_no_comment_names_them(tmp_path: Path) -> None:
    assert read_letor(written(tmp_path, DENSE + "1 qid:4 1:1 # good\n")).doc_id.tolist() == [0, 1, 2, 3]


def test_comments_name_documents_and_the_rest_keep_their_number(tmp_path: Path) -> None:
    text = (
        "0 qid:1 1:1 #docid = GX008-86-4444840 inc = 1 prob = 0.08\n1 qid:1 1:2\n#docid = no\n1 qid:1 1:2 # docid=é\n"
    )
    assert read_letor(written(tmp_path, text)).doc_id.tolist() == ["GX008-86-4444840", "1", "é"]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [(("sku-1", "sku-2"), ["sku-1", "sku-2"]), (("7555", "12"), [7555, 12]), (("7555", "0012"), ["7555", "0012"])],
)
def test_the_first_word_of_every_comment_names_a_document(
    tmp_path: Path, ids: tuple[str, str], expected: list[object]
) -> None:
    """As RankLib and the LTR plugins' tools write their training files."""
    text = f"# qid:1: rambo\n3\tqid:1\t1:9.8\t2:12.3 # {ids[0]} rambo\n0\tqid:1\t1:0.1 #{ids[1]}\n"
    assert read_letor(written(tmp_path, text)).doc_id.tolist() == expected
    # Not if some line has none: then comments are about something else.
    assert read_letor(written(tmp_path, text + "0 qid:1 1:3\n")).doc_id.tolist() == [0, 1, 2]


@pytest.mark.parametrize("piece", [1, 7, 64, 1000])
def test_the_size_of_the_pieces_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    text = "".join(f"{i % 5} qid:{i // 9} {i % 3 + 1}:{i / 7:.6f} {i % 4 + 5}:{i}\n" for i in range(60))
    monkeypatch.setattr(letor, "PIECE", piece)
    split = read_letor(written(tmp_path, text))
    np.testing.assert_array_equal(split.features, dense(letor_rows(text)))
    assert split.sizes.tolist() == [9, 9, 9, 9, 9, 9, 6]


def test_the_largest_query_is_read_as_it_is(tmp_path: Path) -> None:
    split = read_letor(written(tmp_path, "0 qid:9007199254740990 1:1\n0 qid:9007199254740991 1:1\n"))
    assert split.query_id.tolist() == [9007199254740990, 9007199254740991]


def test_numbers_beyond_float32_become_its_largest(tmp_path: Path) -> None:
    split = read_letor(written(tmp_path, "0 qid:1 1:1.7976931348623157E308 2:-1e39\n"))
    assert split.features.tolist() == [[float(np.finfo(np.float32).max), float(np.finfo(np.float32).min)]]


WRONG_LINES = [
    ("1 1:0.5", "expected qid:QUERY after the grade, found '1:0.5'."),
    ("1", "expected qid:QUERY after the grade, the line ends."),
    ("qid:3 1:0.5", "expected a grade (a whole number from 0 to 127), found 'qid:3'."),
    ("1.5 qid:3 1:0.5", "expected a grade (a whole number from 0 to 127), found '1.5'."),
    ("-1 qid:3 1:0.5", "expected a grade (a whole number from 0 to 127), found '-1'."),
    ("1 qid:x 1:0.5", "expected qid: with a whole number from 0 to 2^53 - 1, found 'qid:x'."),
    (
        "1 qid:9007199254740992 1:0.5",
        "expected qid: with a whole number from 0 to 2^53 - 1, found 'qid:9007199254740992'.",
    ),
    ("1 qid:3 2:0.5 1:3", "features out of order: 1 comes after 2."),
    ("1 qid:3 2:0.5 2:3", "features out of order: 2 comes after 2."),
    ("1 qid:3 1:half", "the value of feature 1 is not a finite number: '1:half'."),
    ("1 qid:3 1:1.2.3", "the value of feature 1 is not a finite number: '1:1.2.3'."),
    ("1 qid:3 1:1_000", "the value of feature 1 is not a finite number: '1:1_000'."),
    ("1 qid:3 1:-", "the value of feature 1 is not a finite number: '1:-'."),
    ("1 qid:3 1:NaN", "the value of feature 1 is not a finite number: '1:NaN'."),
    ("1 qid:3 1:inf", "the value of feature 1 is not a finite number: '1:inf'."),
    ("1 qid:3 1:1e999", "the value of feature 1 is not a finite number: '1:1e999'."),
    ("1 qid:3 1: 5", "the value of feature 1 is not a finite number: '1:'."),
    ("1 qid:3 0:5", "expected FEATURE:VALUE with a feature from 1 to 100000, found '0:5'."),
    ("1 qid:3 999999999:5", "expected FEATURE:VALUE with a feature from 1 to 100000, found '999999999:5'."),
    ("1 qid:3 1:5 7", "expected FEATURE:VALUE with a feature from 1 to 100000, found '7'."),
    ("1 qid:3 1:5\r1 qid:3 1:6", "expected FEATURE:VALUE with a feature from 1 to 100000, found '1'."),
    ("1 qid:3 1:5\x00", "a control character. Is this a text file?"),
    ("2 qid:10 1:0.5", "query 10 already ended above. Put the lines of each query together."),
]


@pytest.mark.parametrize(("line", "message"), WRONG_LINES)
@pytest.mark.parametrize("piece", [8, 1 << 20])
def test_a_wrong_line_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, line: str, message: str
) -> None:
    monkeypatch.setattr(letor, "PIECE", piece)
    path = written(tmp_path, f"{DENSE}\n{line}\n1 qid:99 1:1\nalso wrong\n"[: None if "ended" not in message else -11])
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}, line 5: {message}')}$"):
        read_letor(path)


def test_a_document_twice_in_a_query_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "0 qid:1 1:1 #docid = a\n0 qid:2 1:1 #docid = a\n1 qid:2 1:2 #docid = a\n")
    message = f"{path}, line 3: document a appears twice in query 2. Remove one."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_letor(path)


@pytest.mark.parametrize("text", ["", "\n \n# nothing\n"])
def test_a_file_without_documents_is_refused(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    message = f"{path}: no documents. Expected lines such as '2 qid:1 1:0.5 2:3'."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_letor(path)


@pytest.mark.parametrize("cut", [-1, -9, 12])
def test_a_gzipped_file_cut_short_is_refused(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path, gzip.compress(DENSE.encode())[:cut], "train.txt.gz")
    message = f"{path}: the gzipped file is cut short or damaged. Download or compress it again."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_letor(path)


@pytest.mark.parametrize(("name", "reason"), [("missing.txt", "No such file or directory"), (".", "Is a directory")])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    path = tmp_path / name
    message = f"{path}: cannot be read: {reason}. Expected a file of LETOR lines."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_letor(path)


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False).map(repr)
        | st.from_regex(r"-?[0-9]{0,9}\.?[0-9]{1,9}", fullmatch=True)
    )
)
def test_numbers_are_rounded_as_python_rounds_them(words: list[str]) -> None:
    text = np.frombuffer((" ".join(words) + " ").encode(), np.uint8)
    ends = np.flatnonzero(text == ord(" "))[: len(words)]
    starts = np.concatenate(([0], ends[:-1] + 1))[: len(words)]
    assert read_numbers(text, starts, ends).tolist() == [float(word) for word in words]


@given(st.text("0123456789.-+eE_x", min_size=1, max_size=20))
def test_what_is_no_number_is_nan(word: str) -> None:
    number = read_numbers(np.frombuffer(word.encode(), np.uint8), np.array([0]), np.array([len(word)]))[0]
    is_number = re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", word)
    assert number == float(word) if is_number else np.isnan(number)


def read_or_refusal(text: bytes) -> LetorLines | str:
    try:
        return read_lines(text)
    except LineError as error:
        return str(error)


WORDS = st.sampled_from(
    ["0", "2", "qid:1", "qid:22", "1:0.5", "2:-1.25e3", "3:7", ":", "x", "1:", "#", "\t", "\r", "\n", "\n"]
)


@given(st.lists(WORDS, max_size=30).map(" ".join) | st.text(max_size=30))
def test_any_text_is_read_as_the_slow_reader_does_or_refused_with_a_reason(text: str) -> None:
    lines = read_or_refusal(text.encode() + b"\n")
    if isinstance(lines, str):
        assert lines != "cannot be read as 'grade qid:query feature:value ...'."
        return
    rows = letor_rows(text)
    assert lines.query.tolist() == [query for _, query, _ in rows]
    assert lines.grade.tolist() == [grade for grade, _, _ in rows]
    assert lines.features.tolist() == dense(rows).tolist()
