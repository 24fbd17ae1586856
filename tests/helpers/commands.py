"""The command, run in this process or in one of its own."""

from __future__ import annotations

import os
import sys

import pytest
from typer.testing import CliRunner, Result

from clickmix import cli

COMMAND = [sys.executable, "-c", "import clickmix.cli; clickmix.cli.main()"]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def run(*words: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(cli.app, words, catch_exceptions=False)


def failure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """The message on the error stream; the exit code must be 2."""
    monkeypatch.setattr(sys, "argv", ["clickmix", *words])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    return capsys.readouterr().err
