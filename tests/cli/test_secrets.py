"""Passwords: none is printed, stored or reported, however the address was misspelled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import clickmix as cm
from clickmix.cli.terminal import say
from clickmix.errors import hide_secrets
from clickmix.report import log_page, write_page

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


@each_spelling
@pytest.mark.parametrize("words", [["counts", "ADDRESS", "-o", "x.csv"], ["ADDRESS"], ["counts", "--memry=ADDRESS"]])
def test_the_command_shows_no_secret(tmp_path: Path, given: str, shown: str, words: list[str]) -> None:
    command = [sys.executable, "-c", "import clickmix.cli; clickmix.cli.main()"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    told = [word.replace("ADDRESS", given) for word in words]
    done = subprocess.run([*command, *told], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stdout + done.stderr


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
