"""`debias --correction ...` with what other tools have: the columns it writes, and what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

import clickmix as cm
from clickmix import cli
from clickmix.corrections.parameters import BiasParameters
from moving_logs import moving_counts

FIRST = ["query_id", "doc_id", "relevance", "impressions", "clicks"]
COMMANDS: dict[str, tuple[tuple[str, ...], dict[str, Any], list[str], str]] = {
    "ctr-smoothed": ((), {}, ["low", "high"], r"Documents differ at every position by more than chance\."),
    "coec-smoothed": (
        ("--clip", "twenty"),
        {"clip": "twenty"},
        ["low", "high", "estimate"],
        r"Every document starts as an average one: with ([\d.]+) clicks where \1 were expected\.",
    ),
    "ctr-then-rank": ((), {}, [], ""),
    "intervention": (
        ("--pairs", "adjacent"),
        {"pairs": "adjacent"},
        ["estimate"],
        r"Theta comes from 5 pairs of positions that share documents. Positions \d+ and \d+ share the fewest: \d+",
    ),
    "pbm": ((), {}, ["low", "high"], r"The position-based model converged after \d+ steps\. Examination is 1 where it"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a log of documents that move."""
    monkeypatch.chdir(tmp_path)
    moving_counts().write("log.parquet")
    return tmp_path


def debias(*words: str) -> str:
    """What the command says, on one line."""
    words = ("debias", "log.parquet", "-o", "labels.parquet", *words)
    result = CliRunner().invoke(cli.app, list(words), catch_exceptions=False)
    assert result.exit_code == 0
    return " ".join(result.output.split())


@pytest.mark.parametrize("correction", COMMANDS)
def test_the_command_writes_what_python_gives(folder: Path, correction: str) -> None:
    words, options, more, said = COMMANDS[correction]
    output = debias("--correction", correction, *words)
    assert re.search(said, output)
    labels = cm.debias("log.parquet", correction=correction, **options)
    written = duckdb.read_parquet("labels.parquet")
    assert written.columns == list(labels.columns) == [*FIRST, *more]
    assert written.fetchnumpy()["relevance"].tolist() == labels.relevance.tolist()


@pytest.mark.parametrize("correction", ["intervention", "pbm"])
def test_theta_is_written_without_beta_and_up_to_1(folder: Path, correction: str) -> None:
    debias("--correction", correction, "--model", "theta.json")
    theta = BiasParameters.read("theta.json")
    assert not theta.beta.any()
    assert theta.alpha.max() == pytest.approx(1.0, abs=1e-12)


def test_theta_of_intervention_gives_its_labels_the_next_day(folder: Path) -> None:
    debias("--correction", "intervention", "--model", "theta.json")
    next_day = cm.debias("log.parquet", correction="affine", parameters="theta.json")
    assert next_day.estimate.tolist() == cm.debias("log.parquet", correction="intervention").estimate.tolist()
