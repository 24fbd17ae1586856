"""The reader of the Yandex relevance prediction format."""

import gzip
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from clickmix.errors import InputError
from clickmix.lab.users import SessionLog, read_yandex

LINES = """
10 0 Q 8 2 501 502 503
10 3 C 502
10 5 Q 8 2 502 504 505
10 6 C 502
10 7 C 501
10 8 C 502
10 9 C 777
11 0 Q 9 1 600 601
10 12 C 505
11 4 C 505
12 0 Q 8 2 501 502 503
"""


def text(lines: str) -> str:
    return "".join("\t".join(line.split()) + "\n" for line in lines.strip().splitlines())


def written(folder: Path, content: str) -> Path:
    path = folder / "log.tsv"
    path.write_bytes(content.encode())
    return path


def slow_read(path: Path) -> list[tuple[int, str, list[int], list[int]]]:
    """(session, query, urls, clicks) of each page, line by line."""
    pages: list[tuple[int, str, list[int], list[int]]] = []
    of_session = defaultdict(list)
    for line in path.read_text().splitlines():
        session, _, kind, *rest = line.split("\t")
        if kind == "Q":
            urls = [int(url) for url in rest[2:]]
            pages.append((int(session), f"{rest[0]}_{rest[1]}", urls, [0] * len(urls)))
            of_session[session].append(pages[-1])
        else:
            showing = [page for page in of_session[session] if int(rest[0]) in page[2]]
            if showing:
                showing[-1][3][showing[-1][2].index(int(rest[0]))] = 1
    return pages


def as_pages(log: SessionLog) -> list[tuple[int, str, list[int], list[int]]]:
    pages = []
    rows = zip(log.session_id, log.sessions.documents, log.sessions.clicks, strict=True)
    for session, documents, clicks in rows:
        codes = documents[documents >= 0]
        urls, query = log.doc_id[codes].tolist(), log.query_id[codes[0]].item()
        pages.append((int(session), query, urls, clicks[documents >= 0].astype(int).tolist()))
    return pages


def test_a_click_belongs_to_the_last_page_that_showed_it(tmp_path: Path) -> None:
    log = read_yandex(written(tmp_path, text(LINES)))
    assert as_pages(log) == [
        (10, "8_2", [501, 502, 503], [1, 1, 0]),
        (10, "8_2", [502, 504, 505], [1, 0, 1]),
        (11, "9_1", [600, 601], [0, 0]),
        (12, "8_2", [501, 502, 503], [0, 0, 0]),
    ]
    assert log.clicks_elsewhere == 2


def test_a_url_shown_twice_is_clicked_at_its_first_position(tmp_path: Path) -> None:
    log = read_yandex(written(tmp_path, text("1 0 Q 5 1 70 71 70\n1 1 C 70")))
    assert as_pages(log) == [(1, "5_1", [70, 71, 70], [1, 0, 0])]


def test_codes_are_per_query_and_document(tmp_path: Path) -> None:
    log = read_yandex(written(tmp_path, text("1 0 Q 5 1 70 71\n2 0 Q 5 2 70\n3 0 Q 5 1 70 71")))
    assert list(zip(log.query_id.tolist(), log.doc_id.tolist(), strict=True)) == [("5_1", 70), ("5_1", 71), ("5_2", 70)]
    assert len(log.sessions.lists) == 2


@pytest.mark.parametrize("seed", range(3))
def test_any_log_reads_as_line_by_line(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lines = ["0 0 Q 1 1 1"]
    for time in range(400):
        session, url = rng.integers(12), rng.integers(1, 15)
        page = f"Q {rng.integers(4)} {rng.integers(2)} " + " ".join(
            map(str, rng.permutation(14)[: rng.integers(1, 11)] + 1)
        )
        lines.append(f"{session} {time} " + (page if rng.random() < 0.3 else f"C {url}"))
    path = written(tmp_path, text("\n".join(lines)))
    assert as_pages(read_yandex(path)) == slow_read(path)


@pytest.mark.parametrize("change", ["gzip", "crlf", "no final newline", "blank lines"])
def test_the_same_however_it_is_packed(tmp_path: Path, change: str) -> None:
    content = text(LINES)
    path = written(tmp_path, content)
    expected = as_pages(read_yandex(path))
    path = tmp_path / "other.tsv.gz" if change == "gzip" else tmp_path / "other.tsv"
    changed = {
        "crlf": content.replace("\n", "\r\n"),
        "no final newline": content[:-1],
        "blank lines": "\n" + content + "\n",
    }
    path.write_bytes(gzip.compress(content.encode()) if change == "gzip" else changed[change].encode())
    assert as_pages(read_yandex(path)) == expected


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("10\t3\tC", r"'10\t3\tC'"),
        ("10\t3\tC\t5\t6", r"'10\t3\tC\t5\t6'"),
        ("10\t3\tQ\t5\t6", r"'10\t3\tQ\t5\t6'"),
        ("10\t3\tX\t5", r"'10\t3\tX\t5'"),
        ("10\t3\tC\tabc", r"'10\t3\tC\tabc'"),
        ("10\t3\tC\t-5", r"'10\t3\tC\t-5'"),
        ("10\t3\tC\t" + "1" * 19, r"'10\t3\tC\t" + "1" * 19 + "'"),
        ("10 3 C 5", "'10 3 C 5'"),
        ("\x00" * 300, repr("\x00" * 200)),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_bad_line_is_named(tmp_path: Path, line: str, found: str, newline: str) -> None:
    path = written(tmp_path, (text("1 0 Q 5 1 70 71\n\n1 1 C 70") + line + "\n" + text("x")).replace("\n", newline))
    message = (
        f"{path}, line 4: found {found}. Expected whole numbers separated by tabs: session, time, Q, query, region, "
        "urls; or session, time, C, url."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_yandex(path)


@pytest.mark.parametrize("content", ["", "\n", "1\t0\tC\t5\n"])
def test_a_log_without_queries_is_refused(tmp_path: Path, content: str) -> None:
    path = written(tmp_path, content)
    message = f"{path}: no queries in it. Expected lines with session, time, Q, query, region and urls."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_yandex(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    message = f"{tmp_path / 'none.tsv'}: no such file. Expected a log in the Yandex relevance prediction format."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_yandex(tmp_path / "none.tsv")


@pytest.mark.parametrize(
    "content", [gzip.compress(text(LINES).encode() * 50)[:-30], b"no gzip at all"], ids=["cut off", "not gzip"]
)
def test_a_truncated_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.tsv.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: cannot be unpacked"):
        read_yandex(path)


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.tsv"
    path.write_bytes(text(LINES).encode() + b"\xff\xfe\n")
    with pytest.raises(
        InputError, match=f"^{re.escape(str(path))}: cannot be read as text, whole and in UTF-8, gzipped"
    ):
        read_yandex(path)


def test_a_line_longer_than_the_readers_buffer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.tsv"
    path.write_bytes(b"1\t0\tQ\t5\t1\t11\t12\n" + bytes(40 << 20))
    with pytest.raises(InputError, match="line 2: found"):
        read_yandex(path)
