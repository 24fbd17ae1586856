"""To add a member of a family takes one file: each is written into a copy of the package, and nothing else changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "clickmix"
# By family: the file that adds a member, and the command whose help then offers it.
ADDED = {
    "clickmix.corrections.correction:CORRECTIONS": (
        "corrections/toy.py",
        "from clickmix.corrections.correction import CORRECTIONS\n"
        "from clickmix.corrections.none import NoCorrection\n"
        "CORRECTIONS.register('toycorrections', help='plays')(NoCorrection)\n",
        "debias",
    ),
    "clickmix.mixtures.kinds.kind:MIXTURES": (
        "mixtures/kinds/toy.py",
        "from clickmix.mixtures.kinds.kind import MIXTURES\n"
        "from clickmix.mixtures.kinds.shapeless import nonparametric\n"
        "MIXTURES.register('toymixtures', help='plays')(lambda *, grades=5, sharing=True: nonparametric())\n",
        "fit",
    ),
    "clickmix.lab.families:USERS": (
        "lab/users/toy.py",
        "from clickmix.lab.families import USERS\n"
        "from clickmix.lab.users.presets import preset\n"
        "USERS.register('toyusers', help='plays', options=())(lambda: preset('pbm'))\n",
        "simulate",
    ),
    "clickmix.rankers.ranker:RANKERS": (
        "rankers/toy.py",
        "from clickmix.rankers.ranker import RANKERS\nRANKERS.register('toyrankers', help='plays')(object)\n",
        "train",
    ),
    "clickmix.engines.engine:ENGINES": (
        "engines/toy.py",
        "from functools import partial\n"
        "from clickmix.engines.duckdb import DuckDB\n"
        "from clickmix.engines.engine import ENGINES, EngineKind\n"
        "ENGINES.register('toyengines', help='plays.')(\n"
        "    partial(EngineKind, 'Toy', 'toyengines', lambda engine: engine == 'toyengines',\n"
        "            lambda engine, memory: DuckDB(memory=memory)))\n",
        "debias",
    ),
    "clickmix.log.layout:LAYOUTS": (
        "log/layouts/toy.py",
        "from clickmix.log.layout import LAYOUTS\n"
        "from clickmix.log.layouts.rows import RowLayout\n"
        "@LAYOUTS.register('toylayouts', help='plays')\n"
        "class Toy(RowLayout):\n"
        "    def recognises(self, source, roles):\n"
        "        return False\n",
        "counts",
    ),
    "clickmix.export.target:EXPORTS": (
        "export/toy.py",
        "from clickmix.export.qrels import Qrels\n"
        "from clickmix.export.target import EXPORTS\n"
        "EXPORTS.register('toyexports', help='plays')(Qrels)\n",
        "export",
    ),
    "clickmix.report.section:SECTIONS": (
        "report/sections/toy.py",
        "from clickmix.report.section import SECTIONS\nSECTIONS.register('toysections', help='plays')(object)\n",
        None,
    ),
}
PROGRAM = """
import importlib, json, sys
for family in sys.argv[1:]:
    module, name = family.split(":")
    print(json.dumps([family, getattr(importlib.import_module(module), name).names()]))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a package with one more file per family."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(SOURCE, folder / "clickmix", ignore=shutil.ignore_patterns("__pycache__"))
    for path, text, _ in ADDED.values():
        (folder / "clickmix" / path).write_text(f'"""A toy."""\n\n{text}')
    return folder


def python(package: Path, *words: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(package), "COLUMNS": "300", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def name_of(family: str) -> str:
    """What the new member of a family is called."""
    return f"toy{family.split(':')[1].lower()}"


def test_a_file_adds_a_member_to_every_family(package: Path) -> None:
    lines = python(package, "-c", PROGRAM, *ADDED).splitlines()
    assert {family for family, names in map(json.loads, lines) if name_of(family) in names} == set(ADDED)


@pytest.mark.parametrize("family", [family for family, (*_, command) in ADDED.items() if command])
def test_the_command_offers_the_member(package: Path, family: str) -> None:
    assert name_of(family) in python(package, "-m", "clickmix", str(ADDED[family][2]), "--help")


def test_every_family_is_here() -> None:
    """A family is what `Family(...)` makes in a module of the package."""
    made = [line for file in SOURCE.rglob("*.py") for line in file.read_text(encoding="utf-8").splitlines()]
    assert len([line for line in made if ": Family[" in line and " = Family(" in line]) == len(ADDED)
