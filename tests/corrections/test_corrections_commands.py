"""`debias --correction ...` and `debias(correction=...)`: every correction by name, its options, how it fails."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from typer.testing import CliRunner, Result

import clickmix as cm
from clickmix import cli
from clickmix.corrections.correction import CORRECTIONS
from clickmix.corrections.regression_em import Stop
from clickmix.lab.regressions import choose_regression
from clickmix.lab.simulate import write_columns
from clickmix.lab.users import PositionBased
from moving_logs import moving_counts

COLUMNS = ["query_id", "doc_id", "relevance", "impressions", "clicks", "estimate"]
POSITIONS = 6


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a log of documents that move, parameters, and features of every document."""
    monkeypatch.chdir(tmp_path)
    counts = moving_counts()
    counts.write("log.parquet")
    person = PositionBased.with_eta(1, positions=POSITIONS)
    given = {"alpha": person.alpha.tolist(), "beta": person.beta.tolist(), "theta": person.examination.tolist()}
    Path("abt.json").write_text(json.dumps(given))
    labels = cm.debias(counts, correction="none")
    rng = np.random.default_rng(0)
    columns = {"query_id": labels.query_id, "doc_id": labels.doc_id}
    columns |= {f"feature_{i}": labels.relevance + rng.normal(0, 0.1, len(labels)) for i in (1, 2)}
    write_columns(columns, Path("features.parquet"))
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(
        cli.app, ["debias", "log.parquet", "-o", "labels.parquet", *words], catch_exceptions=False
    )


def failure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """The message on the error stream; the exit code must be 2, and nothing written."""
    monkeypatch.setattr(sys, "argv", ["clickmix", "debias", "log.parquet", "-o", "labels.parquet", *words])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert not Path("labels.parquet").exists()
    return capsys.readouterr().err


COMMANDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "affine": (("--parameters", "abt.json"), {"parameters": "abt.json"}),
    "ips": (("--parameters", "abt.json", "--clip", "twenty"), {"parameters": "abt.json", "clip": "twenty"}),
    "coec": ((), {}),
    "coec-best-position": ((), {}),
    "intervention": (("--pairs", "adjacent"), {"pairs": "adjacent"}),
    "plain-em": (("--no-trust",), {"trust": False}),
    "regression-em": (
        ("--features", "features.parquet", "--regression", "lambdamart-sigmoid", "--iterations", "2", "--seed", "1"),
        {"features": "features.parquet", "regression": "lambdamart-sigmoid", "iterations": 2, "seed": 1},
    ),
}


@pytest.mark.parametrize("correction", COMMANDS)
def test_the_command_writes_what_python_gives(folder: Path, correction: str) -> None:
    words, options = COMMANDS[correction]
    result = run("--correction", correction, *words)
    labels = cm.debias("log.parquet", correction=correction, **options)
    written = duckdb.read_parquet("labels.parquet")
    assert result.exit_code == 0
    assert written.columns == list(labels.columns) == COLUMNS
    assert written.fetchnumpy()["relevance"].tolist() == labels.relevance.tolist()
    assert written.fetchnumpy()["estimate"].tolist() == labels.estimate.tolist()


def test_parameters_may_be_given_as_numbers(folder: Path) -> None:
    given = json.loads(Path("abt.json").read_text())
    bias = cm.BiasParameters(given["alpha"], given["beta"])
    by_file = cm.debias("log.parquet", correction="affine", parameters="abt.json").estimate
    assert (cm.debias("log.parquet", correction="affine", parameters=bias).estimate == by_file).all()
    by_file = cm.debias("log.parquet", correction="ips", parameters="abt.json").estimate
    assert (cm.debias("log.parquet", correction="ips", parameters=given["theta"]).estimate == by_file).all()


@pytest.mark.parametrize("correction", ["plain-em", "regression-em"])
def test_what_em_found_can_be_used_the_next_day(folder: Path, correction: str) -> None:
    result = run("--correction", correction, *COMMANDS[correction][0], "--model", "ab.json")
    said = {
        "plain-em": r"Plain EM converged after \d+ steps\. Relevance is on the widest scale: ",
        "regression-em": r"Regression EM stopped after iteration 2: iterations used up\. ",
    }
    assert re.search(said[correction], result.stdout)
    labels = duckdb.read_parquet("labels.parquet").fetchnumpy()["estimate"].tolist()
    assert cm.debias("log.parquet", correction="affine", parameters="ab.json").estimate.tolist() == labels


def test_regression_em_defaults_to_the_papers_regression(folder: Path) -> None:
    fit = cm.RegressionEM(choose_regression("dnn-sigmoid", "features.parquet"), iterations=1).fit(
        cm.count("log.parquet")
    )
    assert fit.stopped == Stop.ITERATIONS
    labels = cm.debias("log.parquet", correction="regression-em", features="features.parquet", iterations=1)
    assert (labels.estimate == fit.label(cm.count("log.parquet")).estimate).all()


def test_ips_takes_parameters_without_trust() -> None:
    counts, theta = moving_counts(queries=5), 1 / np.arange(1, POSITIONS + 1)
    given = cm.BiasParameters.of_examination(theta)
    by_parameters, by_theta = (cm.debias(counts, correction="ips", parameters=p).estimate for p in (given, theta))
    assert by_parameters.tolist() == by_theta.tolist()


@pytest.mark.parametrize(
    ("correction", "parameters", "message"),
    [
        (
            "affine",
            [0.5, 0.5],
            "parameters=[0.5, 0.5]: affine needs alpha and beta of every position. Pass clickmix.BiasParameters(alpha, "
            "beta), or the path of a parameters file.",
        ),
        (
            "affine",
            {"alpha": [1], "beta": [0]},
            "parameters={'alpha': [1], 'beta': [0]}: affine needs alpha and beta of every position. Pass "
            "clickmix.BiasParameters(alpha, beta), or the path of a parameters file.",
        ),
        (
            "ips",
            cm.BiasParameters([0.5, 0.4], [0.0, 0.1]),
            "parameters: beta at position 2 is 0.1, but ips needs beta 0 (no trust bias). Pass "
            "clickmix.BiasParameters.of_examination(theta), or use affine.",
        ),
        ("ips", {"theta": [1]}, "theta must be one number per position, found {'theta': [1]}."),
    ],
)
def test_parameters_of_another_kind(correction: str, parameters: Any, message: str) -> None:
    with pytest.raises(cm.SettingError, match=f"^{re.escape(message)}$"):
        cm.debias(moving_counts(queries=5), correction=correction, parameters=parameters)


FAILURES: dict[str, tuple[tuple[str, ...], str]] = {
    "no parameters": (
        ("--correction", "affine"),
        "affine needs alpha and beta of every position. Pass --parameters FILE (in Python parameters=...).",
    ),
    "no theta": (
        ("--correction", "ips"),
        "ips needs theta of every position. Pass --parameters FILE (in Python parameters=...).",
    ),
    "no features": (
        ("--correction", "regression-em"),
        "regression-em needs the features of every document of the log: pass --features FILE (in Python features=...).",
    ),
    "parameters for nothing": (
        ("--parameters", "abt.json"),
        "the option parameters belongs to the correction affine or ips, not to mixture. Leave it out.",
    ),
    "features for nothing": (
        ("--correction", "coec", "--features", "features.parquet"),
        "the option features belongs to the correction mixture or regression-em, not to coec. Leave it out.",
    ),
    "a mixture for nothing": (
        ("--correction", "coec", "--mixture", "graded"),
        "the option mixture belongs to the correction mixture, not to coec. Leave it out.",
    ),
    "a prior for nothing": (
        ("--correction", "none", "--prior", "flat"),
        "the option prior belongs to the correction mixture, not to none. Leave it out.",
    ),
    "an examination for nothing": (
        ("--correction", "plain-em", "--examination", "dcm"),
        "the option examination belongs to the correction mixture, not to plain-em. Leave it out.",
    ),
    "a model of nothing": (
        ("--correction", "coec", "--model", "model.json"),
        "--model model.json: coec has no model to save. Leave --model out.",
    ),
    "output over parameters": (
        ("--correction", "affine", "--parameters", "abt.json", "--context", "", "-o", "abt.json"),
        "abt.json: unknown kind of file. Expected a name ending in .parquet, .csv, .csv.gz, .ndjson, .ndjson.gz.",
    ),
    "model over parameters": (
        ("--correction", "plain-em", "--model", "log.parquet"),
        "log.parquet: would replace an input. Choose another name for the output.",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failures(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    words, message = FAILURES[case]
    assert failure(capsys, monkeypatch, *words) == f"clickmix: {message}\n"


@pytest.mark.parametrize(
    "option", [{"mixture": "graded"}, {"prior": "flat"}, {"examination": "dcm"}, {"trust": False}, {"seed": 0}]
)
def test_options_of_others_are_refused_in_python(option: dict[str, Any]) -> None:
    takers = {"trust": "plain-em or regression-em", "seed": "regression-em"}
    (name,) = option
    message = f"the option {name} belongs to the correction {takers.get(name, 'mixture')}, not to coec."
    with pytest.raises(cm.SettingError, match=rf"^{message} Leave it out\.$"):
        cm.debias(moving_counts(queries=5), correction="coec", **option)


@pytest.mark.parametrize(("use", "option", "start", "more"), [
    (cm.debias, "foo", "foo: debias has no such option. Expected correction, format, context,", ""),
    (cm.debias, "previous", "previous: debias has no such option. Expected ", ""),
    (cm.debias, "contxt", "contxt: debias has no such option. Expected context, ", ", position_base, "),
    (partial(cm.explain, query=1), "mixtur", "mixtur: debias has no such option. Expected mixture, ", ", context, "),
    (cm.compare, "corrections_", "corrections_: compare has no such option. Expected corrections, ", ", judgments, "),
    (cm.count, "positions_base", "positions_base: count has no such option. Expected position_base, ", ", context, "),
])  # fmt: skip
def test_an_unknown_option_is_told_the_known_ones(use: Any, option: str, start: str, more: str) -> None:
    with pytest.raises(cm.SettingError) as caught:
        use(moving_counts(queries=5), **{option: 1})
    assert str(caught.value).startswith(start)
    assert more in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"), [("pbm", "It has none."), ("dcm", "It has none."), ("coec", "Expected clip.")]
)
def test_a_correction_is_made_with_its_own_options(name: str, expected: str) -> None:
    with pytest.raises(cm.SettingError) as caught:
        CORRECTIONS.make(name, foo=1)
    assert str(caught.value) == f"foo: the correction {name} has no such option. {expected}"


def test_a_correction_of_the_users_own_is_taken_as_it_is() -> None:
    counts = moving_counts(queries=5)
    own = cm.debias(counts, correction=cm.ClicksOverExpected())
    assert own.relevance.tolist() == cm.debias(counts, correction="coec").relevance.tolist()
    message = "clip: the correction is an object with its own settings. Leave clip out."
    with pytest.raises(cm.SettingError, match=f"^{re.escape(message)}$"):
        cm.debias(counts, correction=cm.ClicksOverExpected(), clip="one")


def test_parameters_of_too_few_positions(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("few.json").write_text('{"alpha": [0.5, 0.4], "beta": [0.1, 0.1]}')
    message = (
        "clickmix: The parameters cover 2 positions, but the log goes down to position 6. Give parameters for all "
        "positions, or remove the lower ones from the log.\n"
    )
    assert failure(capsys, monkeypatch, "--correction", "affine", "--parameters", "few.json") == message


def test_an_unknown_correction() -> None:
    message = (
        "correction 'magic': expected one of mixture, affine, coec, coec-best-position, coec-smoothed, ctr-smoothed, "
        "ctr-then-rank, dbn, dcm, intervention, ips, none, pbm, plain-em, regression-em, sdbn, ubm."
    )
    with pytest.raises(cm.SettingError, match=f"^{re.escape(message)}$"):
        cm.debias(moving_counts(queries=5), correction="magic")
