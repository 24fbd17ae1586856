"""The package as others get it: sdist and wheel, installed where nothing but its declared dependencies is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import clickmix as cm
from logs import small_log, write
from pages import figures

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

pytestmark = pytest.mark.xdist_group("package")


def done(*command: str | Path, folder: Path) -> str:
    """What a program prints; it must succeed."""
    ended = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel made from it."""
    folder = tmp_path_factory.mktemp("built")
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    done(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, folder=ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    offline = ("--no-index", "--no-deps", "--no-build-isolation")
    done(sys.executable, "-m", "pip", "wheel", *offline, "-w", folder, sdist, folder=folder)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def needed(requirements: list[str], found: dict[str, Distribution]) -> dict[str, Distribution]:
    """The installed distributions that requirements ask for, and all that those ask for."""
    for text in requirements:
        asked = Requirement(text)
        if asked.name in found or not (asked.marker is None or asked.marker.evaluate({"extra": ""})):
            continue
        found[asked.name] = distribution(asked.name)
        needed(found[asked.name].requires or [], found)
    return found


@pytest.fixture(scope="module")
def clean(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment with the wheel and what it declares; links stand for downloads."""
    folder = tmp_path_factory.mktemp("clean")
    done(sys.executable, "-m", "venv", folder / "venv", folder=folder)
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    for each in needed(PROJECT["dependencies"], {}).values():
        for file in each.files or []:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                (packages / file).symlink_to(Path(str(file.locate())))
    programs = folder / "venv" / "bin"
    done(programs / "python", "-m", "pip", "install", "--no-index", built[1], folder=folder)
    return programs


def test_the_sdist_holds_what_building_and_testing_need(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"LICENSE", "README.md", "CITATION.cff", "mkdocs.yml", "tests/conftest.py", "docs/index.md"} <= names
    assert not any(name.startswith((".venv", "site/", "demo/", "bench/")) for name in names)


def test_the_wheel_holds_the_package_and_its_licence(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        names = wheel.namelist()
    inside = sorted(name for name in names if name.startswith("clickmix/"))
    source = ROOT / "src"
    files = [path for path in (source / "clickmix").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert inside == sorted(path.relative_to(source).as_posix() for path in files)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_a_report_after_a_plain_install(clean: Path, tmp_path: Path) -> None:
    write(tmp_path / "log.csv", small_log())
    done(clean / "clickmix", "debias", "log.csv", "-o", "labels.parquet", "--report", "report.html", folder=tmp_path)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "relevance" in done(clean / "clickmix", "inspect", "labels.parquet", folder=tmp_path)


def test_the_environment_is_complete_and_clean(clean: Path, tmp_path: Path) -> None:
    assert done(clean / "python", "-m", "pip", "check", folder=tmp_path).strip() == "No broken requirements found."
    program = "import importlib.util as u; print([n for n in ('pandas', 'lightgbm', 'pytest') if u.find_spec(n)])"
    assert done(clean / "python", "-c", program, folder=tmp_path).strip() == "[]"
    assert done(clean / "clickmix", "--version", folder=tmp_path).strip() == f"clickmix {cm.__version__}"


def test_a_first_use_takes_less_than_a_minute_and_the_demo_little_disk() -> None:
    first = figures("first-use")
    assert first["in all"]["seconds"] < 60
    assert first["megabytes"]["for make demo"] < 700


def messages_and_pages() -> Iterator[Path]:
    yield from (ROOT / "src").rglob("*.py")
    yield from (ROOT / "docs").glob("*.md")
    yield ROOT / "README.md"


def test_extras_that_messages_and_pages_name_exist() -> None:
    named = {
        extra
        for path in messages_and_pages()
        for found in re.findall(r"(?:clickmix|'\.)\[([\w,]+)\]", path.read_text(encoding="utf-8"))
        for extra in found.split(",")
    }
    assert named
    assert named <= set(PROJECT["optional-dependencies"])


def test_the_version_of_the_citation_is_a_release() -> None:
    (cited,) = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited == cm.__version__


@pytest.mark.parametrize("name", ["ci", "release"])
def test_workflows_do_what_a_newcomer_does_and_hold_no_secrets(name: str) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert any(step.get("run") == ".ci/run" for job in jobs.values() for step in job["steps"])
    assert "secrets." not in text
    assert "password" not in {key for job in jobs.values() for step in job["steps"] for key in step.get("with", {})}
