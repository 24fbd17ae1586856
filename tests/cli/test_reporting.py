"""What commands report: JSON with the terminal's rows, exit codes for verdicts, explanations, tables of 80 columns."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from clickmix import cli
from clickmix.cli.command import app
from clickmix.corrections.check import Judgement
from clickmix.evaluate.tables import folded_lines
from commands import failure, run
from simulation import simulated


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with few clicks, its labels and its model."""
    folder = tmp_path_factory.mktemp("made")
    simulated(eta=1, clicks=4_000, seed=0, queries=200, positions=4).counts().write(folder / "log.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "debias.json").write_text(run(*DEBIAS, "--json").stdout)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with these files."""
    for file in made.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


DEBIAS = ("debias", "log.parquet", "-o", "labels.csv", "--model", "model.json")


def test_json_is_all_of_standard_output_and_messages_go_to_standard_error(folder: Path) -> None:
    result = run(*DEBIAS, "--json")
    found = json.loads(result.stdout)
    assert (found["clicks"], found["labels"], found["output"], found["model"]) == (
        4000,
        800,
        "labels.csv",
        "model.json",
    )
    assert found["verdict"] in [judgement.machine_name for judgement in Judgement]
    assert [place["place"] for place in found["places"]] == [f"position {k}" for k in range(1, 5)]
    assert result.stderr.startswith("Read ")
    assert "Wrote 800 labels to labels.csv." in result.stderr


def test_json_of_a_model_is_that_of_its_fit(folder: Path) -> None:
    shown = json.loads(run("inspect", "model.json", "--json").stdout)
    assert shown.pop("kind") == "model"
    debiased = json.loads(Path("debias.json").read_text())
    assert set(debiased["evidence"]) > set(shown.pop("evidence"))  # the model's file has no held-out clicks
    assert shown.items() <= debiased.items()


@pytest.mark.parametrize(("words", "told"), [
    (("counts", "log.parquet", "-o", "c.parquet"), {"clicks": 4000, "output": "c.parquet", "cells": 800}),
    (("fit", "log.parquet", "-o", "fit.json"), {"output": "fit.json", "grades": 2}),
    (("label", "log.parquet", "--model", "model.json", "-o", "l.csv"), {"labels": 800, "places_not_in_the_model": []}),
    (("inspect", "log.parquet"), {"kind": "log", "formats": ["counted"], "queries": 200, "documents": 800}),
    (("inspect", "labels.csv"), {"kind": "labels", "labels": 800, "queries": 200}),
    (("explain", "log.parquet", "--query", "3"), {"query_id": "3", "doc_id": None, "sentences": []}),
    (("debias", "log.parquet", "-o", "l.csv", "--correction", "none"), {"labels": 800, "notes": [], "refused": []}),
    (("export", "labels.csv", "--to", "qrels", "-o", "qrels.txt"), {"output": "qrels.txt"}),
])  # fmt: skip
def test_every_command_reports_as_json(folder: Path, words: tuple[str, ...], told: dict[str, object]) -> None:
    found = json.loads(run(*words, "--json").stdout)
    assert {key: found[key] for key in told} == told


def test_changes_are_in_the_json(folder: Path) -> None:
    words = ("label", "log.parquet", "--model", "model.json", "-o", "l.csv", "--previous", "labels.csv", "--json")
    changes = json.loads(run(*words).stdout)["changes"]
    assert (changes["both"], changes["new"], changes["gone"], changes["furthest"]) == (800, 0, 0, [])


def test_all_commands_but_sql_take_json() -> None:
    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    assert [name for name in names if "--json" not in run(name, "--help").stdout] == ["sql"]


def exit_code(monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    monkeypatch.setattr(sys, "argv", ["clickmix", *words])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code


@pytest.mark.parametrize("command", [DEBIAS, ("fit", "log.parquet", "-o", "m.json"), ("inspect", "model.json")])
def test_a_verdict_as_bad_as_asked_ends_with_code_3(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    verdict = json.loads(Path("debias.json").read_text())["verdict"]
    names = [judgement.machine_name for judgement in Judgement]
    assert verdict in names[1:]  # few clicks
    assert exit_code(monkeypatch, *command) == 0
    for asked in names[1:]:
        capsys.readouterr()
        bad = names.index(verdict) >= names.index(asked)
        assert exit_code(monkeypatch, *command, "--json", "--fail-on", asked) == (3 if bad else 0)
        shown = capsys.readouterr()
        assert json.loads(shown.out)["verdict"] == verdict
        message = f"clickmix: the verdict is {verdict} (--fail-on {asked}).\n"
        assert shown.err.endswith(message) == bad


def test_a_correction_without_a_verdict_is_refused_before_any_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("debias", "log.parquet", "-o", "new.csv", "--correction", "none", "--fail-on", "needs-more-data")
    message = "clickmix: --fail-on: none gives no verdict on the log. Leave --fail-on out.\n"
    assert failure(capsys, monkeypatch, *words) == message
    assert not Path("new.csv").exists()


def test_an_unknown_verdict_is_refused_with_the_list(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ", ".join(judgement.machine_name for judgement in Judgement if judgement is not Judgement.TRUSTWORTHY)
    message = f"clickmix: --fail-on 'bad': expected one of {names}.\n"
    assert failure(capsys, monkeypatch, *DEBIAS, "--fail-on", "bad") == message


def test_exit_codes_are_in_the_help() -> None:
    shown = " ".join(run("--help").stdout.split())
    for code in ("0 done", "2 an error you can fix", "3 the verdict", "130, 143, 129 stopped", "1 a bug"):
        assert code in shown


def test_explain_fits_the_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("explain", "log.parquet", "--query", "3", "--doc", "302").stdout.splitlines()
    assert shown[1].startswith("Query '3': 4 documents, ")
    assert any(line.startswith("Document '302': label ") for line in shown)
    assert any(line.startswith("A relevant document there would be clicked about ") for line in shown)
    assert [line for line in shown if len(line) > 80 and "  " in line] == []
    assert (
        run("explain", "log.parquet", "--query", "3", "--doc", "302", "--model", "model.json").stdout.splitlines()
        == shown
    )


def test_explain_says_what_is_wrong(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("explain", "log.parquet", "--model", "model.json", "--query")
    assert failure(capsys, monkeypatch, *words, "1 99").startswith(
        "clickmix: query '1 99': not in the log. Did you mean '199'"
    )
    assert failure(capsys, monkeypatch, *words, "3", "--context", "device") == (
        "clickmix: --model: the model has its own correction and context. Leave those options out.\n"
    )


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_table_with_many_columns_is_folded(width: int) -> None:
    rows = [["ranker", *(f"ndcg@{k}" for k in range(10))], ["a long name", *(f"{k / 10:.4f}" for k in range(10))]]
    lines = folded_lines(rows, width=width)
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    assert [word for word in words if word.startswith("ndcg")] == rows[0][1:]
    assert [word for word in words if word.startswith("0.")] == rows[1][1:]


def test_an_interval_stays_beside_its_number() -> None:
    rows = [["x", "ndcg@10", "95 % interval", "mrr", "95 % interval"], ["a", "0.5", "0.4 to 0.6", "0.7", "0.6 to 0.8"]]
    lines = folded_lines(rows, width=30)
    assert [line.split() for line in lines if line[:1] == "a"] == [
        ["a", "0.5", "0.4", "to", "0.6"],
        ["a", "0.7", "0.6", "to", "0.8"],
    ]
