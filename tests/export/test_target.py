"""Targets are chosen by name; a new one is one file, from anywhere."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from clickmix.errors import InputError, SettingError
from clickmix.export.judgments import LABEL_OPTIONS, Judgments, JudgmentTarget
from clickmix.export.target import EXPORTS, Exported, export
from commands import run

LABELS = "query_id,doc_id,relevance\nq,d,0.9\nq,e,0.1\n"
JUDGMENTS = {"quepid", "quepid-book", "opensearch", "rank-eval", "rre", "qrels", "ltr"}
MODELS = {"elasticsearch-ltr", "opensearch-ltr", "elasticsearch", "solr", "vespa", "onnx", "lightgbm"}


@pytest.fixture
def toy() -> Iterator[None]:
    """A target that a package beside clickmix could add."""

    @EXPORTS.register("toy", help="a list for a toy", options=LABEL_OPTIONS)
    @dataclass(frozen=True, kw_only=True)
    class Toy(JudgmentTarget):
        limits = "A toy holds whole grades."

        def put(self, judgments: Judgments, output: Path, called: str) -> Exported:
            judgments.write(f"SELECT doc_id || '=' || rating AS line FROM {judgments.table} ORDER BY place", output)
            return Exported((output,), ("Have fun.",))

    yield
    EXPORTS.remove("toy")


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(LABELS)
    return path


def test_a_target_from_outside_is_in_the_help_and_in_use(toy: None, labels: Path, tmp_path: Path) -> None:
    assert "  toy                a list for a toy\n" in run("export", "--help").output
    done = run("export", str(labels), "--to", "toy", "-o", str(tmp_path / "toy.txt"), "--scale", "1")
    assert done.output == f"2 judgments of 1 query in {tmp_path / 'toy.txt'}: grades 0 to 1, cut at 0.500.\nHave fun.\n"
    assert (tmp_path / "toy.txt").read_text() == "d=1\ne=0\n"


def test_a_target_from_outside_has_limits_like_the_others(toy: None, labels: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"--as probability: A toy holds whole grades. Leave --as out\."):
        export(labels, to="toy", output=tmp_path / "toy.txt", rating="probability")


def test_a_target_that_was_removed_is_gone() -> None:
    assert set(EXPORTS.names()) == JUDGMENTS | MODELS
    assert "toy" not in run("export", "--help").output


@pytest.mark.parametrize("name", sorted(JUDGMENTS | MODELS))
def test_every_target_says_what_it_takes_and_where_its_limits_are(name: str) -> None:
    target = EXPORTS.make(name)
    assert target.takes == ("labels" if name in JUDGMENTS else "ranker")
    assert target.limits.endswith(".")


def test_help_lists_every_target_under_what_it_takes() -> None:
    shown = run("export", "--help").output
    _, labels, rankers = shown.split("\nTargets that take ")
    assert {line.split()[0] for line in labels.splitlines()[1:] if line} == JUDGMENTS
    assert {line.split()[0] for line in rankers.splitlines()[1:] if line} == MODELS


def test_an_unknown_target_is_refused(labels: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"^target 'quepidd': expected one of quepid, .*\.$"):
        export(labels, to="quepidd", output=tmp_path / "out")


def test_labels_are_refused_where_a_ranker_is_expected(labels: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"labels\.csv: this is a file, and vespa takes a ranker\. Name a folder"):
        export(labels, to="vespa", output=tmp_path / "out")


def test_a_ranker_is_refused_where_labels_are_expected(tmp_path: Path) -> None:
    (tmp_path / "ranker").mkdir()
    (tmp_path / "ranker" / "ranker.json").write_text("{}")
    with pytest.raises(InputError, match=r"ranker: this is a ranker, and quepid takes labels\. Name a labels file\."):
        export(tmp_path / "ranker", to="quepid", output=tmp_path / "out")


@pytest.mark.parametrize("target", ["opensearch", "rank-eval"])
def test_requests_are_for_a_shell_whatever_files_are_called(target: str, labels: Path, tmp_path: Path) -> None:
    options = {"index": "my shop"} if target == "rank-eval" else {}
    output = tmp_path / "it's here"
    done = export(labels, to=target, output=output, **options)
    called = "curl() { printf '%s\\n' \"$@\"; }; "
    sent = subprocess.run(["bash", "-c", called + done.requests[0]], capture_output=True, text=True, check=True).stdout
    wanted = output / "judgments-1.json" if target == "opensearch" else output
    assert f"@{wanted}" in sent.splitlines()


def test_the_output_may_not_be_the_input(labels: Path) -> None:
    with pytest.raises(InputError, match=r"would replace an input\. Choose another name for the output\."):
        export(labels, to="quepid", output=labels)
    assert labels.read_text() == LABELS
