"""Passwords: none is printed, stored or reported, however the address was misspelled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import clickmix as cm
from clickmix.cli.terminal import print_json, say
from clickmix.errors import hide_secrets
from clickmix.report import log_page, write_page
from commands import ENVIRONMENT

SECRET = "s3cr"
# How it was given, and how it is shown.
SPELLINGS = [
    ("postgresql://ann:s3cr@host/clicks", "postgresql://ann:***@host/clicks"),
    ("POSTGRESQL://ann:s3cr@host/clicks", "POSTGRESQL://ann:***@host/clicks"),
    ("postgresql+psycopg://ann:s3cr@host/clicks", "postgresql+psycopg://ann:***@host/clicks"),
    ("jdbc:postgresql://ann:s3cr@host/clicks", "jdbc:postgresql://ann:***@host/clicks"),
    ("jdbc:postgresql:ann:s3cr@host", "jdbc:postgresql:ann:***@host"),
    ("jdbc:postgresql://host/c?user=ann&password=s3cr&ssl=on", "jdbc:postgresql://host/c?user=ann&password=***&ssl=on"),
    (" postgresql://ann:s3cr@host/clicks", " postgresql://ann:***@host/clicks"),
    ("postgresql:/ann:s3cr@host/clicks", "postgresql:/ann:***@host/clicks"),
    ("postgresql://:s3cr@host", "postgresql://:***@host"),
    ("postgresql://ann:5%s3cr@host", "postgresql://ann:***@host"),
    ("postgresql://ann:5@s3cr@host", "postgresql://ann:***@host"),
    ("postgresql://ann:5/s3cr@host", "postgresql://ann:***@host"),
    ("postgresql://ann:5 s3cr@host", "postgresql://ann:***@host"),
    ("host=host password=s3cr user=ann", "host=host password=*** user=ann"),
    ("host=host password='5 s3cr' user=ann", "host=host password=*** user=ann"),
    (r"host=host password=5\ s3cr user=ann", "host=host password=*** user=ann"),
    ("host=host password=5&s3cr user=ann", "host=host password=*** user=ann"),
    ("PASSWORD = s3cr", "PASSWORD = ***"),
    ("ann:s3cr@host:5432/clicks", "ann:***@host:5432/clicks"),
    ("postgresql/ann:s3cr@host/clicks", "postgresql/ann:***@host/clicks"),
    ("s3a://key:s3cr@bucket/log", "s3a://key:***@bucket/log"),
    ("spark://ann:s3cr@host:7077", "spark://ann:***@host:7077"),
    ("spark:/ann:s3cr@host:7077", "spark:/ann:***@host:7077"),
    ("https://host/log?X-Amz-Signature=s3cr&X-Amz-Date=3", "https://host/log?X-Amz-Signature=***&X-Amz-Date=3"),
    ("https://host/log?sv=2024&sig=s3cr&se=2027", "https://host/log?sv=2024&sig=***&se=2027"),
    ("AccountName=ann;AccountKey=s3cr", "AccountName=ann;AccountKey=***"),
]
each_spelling = pytest.mark.parametrize(("given", "shown"), SPELLINGS, ids=[given.strip() for given, _ in SPELLINGS])


@each_spelling
def test_a_secret_is_hidden_and_the_rest_is_not(given: str, shown: str) -> None:
    assert hide_secrets(f"engine {given}, found.") == f"engine {shown}, found."


@pytest.mark.parametrize(
    "text",
    [
        "a Spark master such as spark://host:7077, or an address such as postgresql://user@host/database.",
        "query 'password', document 'sku:123@store' appears 2 times.",
        "log/day=3/part.csv, row 5: 'a@b' is not a whole number.",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert hide_secrets(text) == text


@each_spelling
@pytest.mark.parametrize("where", ["log", "engine", "output"])
def test_an_error_in_python_shows_no_secret(tmp_path: Path, given: str, shown: str, where: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text("query_id,doc_id,position,clicked\nq,d,1,1\nq,e,2,0\n")
    address = given.replace("host", "127.0.0.1:1")  # where nobody answers
    read, engine = (address, None) if where == "log" else (log, address if where == "engine" else None)
    with pytest.raises(cm.ClickmixError) as caught:
        cm.count(read, engine=engine).write(f"{address}/labels")
    assert SECRET not in str(caught.value)


# Runs the command once for each argument; tabs separate its words.
PROGRAM = """
import sys
from clickmix.cli import main
for words in sys.argv[1:]:
    sys.argv = ["clickmix", *words.split("\\t")]
    try:
        main()
    except SystemExit as ended:
        print("exit", ended.code)
"""


@pytest.mark.parametrize(
    "words", [["counts", "ADDRESS", "-o", "x.csv"], ["ADDRESS"], ["counts", "--max-contexts=ADDRESS"]]
)
def test_the_command_shows_no_secret(tmp_path: Path, words: list[str]) -> None:
    each = ["\t".join(word.replace("ADDRESS", given) for word in words) for given, _ in SPELLINGS]
    command = [sys.executable, "-c", PROGRAM, *each]
    done = subprocess.run(command, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n") == ["exit 2"] * len(SPELLINGS) + [""]
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert done.stderr.count("***") >= len(SPELLINGS)  # so every message showed the address


def test_what_the_servers_library_takes_from_a_password_is_hidden() -> None:
    with pytest.raises(cm.EngineError) as caught:
        cm.count("clicks", engine="postgresql://ann:s3%zzcr@host/clicks")
    assert str(caught.value) == (
        'PostgreSQL cannot be reached: invalid percent-encoded token: "***". Check the address, '
        "postgresql://user@host/database; in a password write % as %25, @ as %40, / as %2F, : as %3A and a blank "
        "as %20."
    )


def test_a_report_shows_no_secret(tmp_path: Path) -> None:
    counts = cm.Counts.from_arrays(["q"] * 4, [1, 2, 3, 4], [1, 1, 2, 2], [90, 90, 90, 90], [60, 5, 40, 2])
    fit = cm.MixtureCorrection().fit(counts)
    page = log_page(counts, fit, sources=["s3a://key:s3cr@bucket/monday.parquet"], correction="mixture")
    write_page(page, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "monday.parquet" in text
    assert "bucket" not in text
    assert SECRET not in text


def test_what_the_command_says_shows_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    say("5 labels in s3a://key:s3cr@bucket/labels.")
    assert capsys.readouterr().out == "5 labels in s3a://key:***@bucket/labels.\n"


def test_json_shows_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"log": ["s3a://key:s3cr@bucket/log"]})
    assert json.loads(capsys.readouterr().out) == {"log": ["s3a://key:***@bucket/log"]}


@pytest.mark.parametrize("query", ["pwd = \n\\", 'token=\\&"', "password=", "secret = 'a", '"//u:" @'])
def test_json_stays_json_if_a_query_looks_like_a_secret(capsys: pytest.CaptureFixture[str], query: str) -> None:
    """A mark that belongs to the document was hidden with what looked like a password."""
    print_json({query: "abc", "queries": [query, "next"], "shown": 3})
    found = json.loads(capsys.readouterr().out)
    assert (found["queries"][1], found["shown"], len(found)) == ("next", 3, 3)
