"""The shape of the code: a straight walk, late imports, the habits of the house, everything documented."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import clickmix as cm
from clickmix import cli

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "clickmix"
MODULES = sorted(SOURCE.rglob("*.py"))
# The walk: a folder imports itself and the ones before it.
WALK = [
    "errors",
    "types",
    "registry",
    "storage",
    "drawn",
    "engines",
    "log",
    "counts",
    "groups",
    "mixtures",
    "corrections",
    "judging",
    "features",
    "rankers",
    "evaluate",
    "export",
    "report",
    "pipeline",
    "comparing",
    "lab",
    "cli",
    "__main__",
]
HEAVY = {"lightgbm", "torch", "matplotlib", "pandas", "sklearn", "pyarrow", "polars", "pyspark", "psycopg", "sqlglot"}


def stage(module: Path) -> str:
    """The first name below the package: `mixtures` for mixtures/em.py."""
    return module.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[str]:
    """The stages that a module imports, also late and for types only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [
                f"{node.module}.{alias.name}" if node.module == "clickmix" else str(node.module) for alias in node.names
            ]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("clickmix."))


def tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def each_module(*, but: str = "") -> list[object]:
    chosen = [module for module in MODULES if stage(module) != but]
    return [pytest.param(module, id=str(module.relative_to(SOURCE))) for module in chosen]


@pytest.mark.parametrize("module", each_module(but="__init__"))
def test_a_stage_imports_only_earlier_ones(module: Path) -> None:
    allowed = set(WALK[: WALK.index(stage(module)) + 1])
    assert set(imported(tree(module))) - allowed == set()


def test_the_walk_names_every_folder_and_no_other() -> None:
    assert set(WALK) == {stage(module) for module in MODULES} - {"__init__"}


def test_debias_loads_nothing_that_is_optional(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query_id,doc_id,position,clicked\nq,d,1,1\nq,e,2,0\n")
    program = "import sys, clickmix as cm; cm.debias('log.csv').write('labels.parquet'); print(*sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert {name.split(".")[0] for name in loaded} & HEAVY == set()
    assert "scipy.stats" not in loaded  # it takes a second to load


def calls(module: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            yield node.func.id if isinstance(node.func, ast.Name) else node.func.attr, node


def writes(name: str, call: ast.Call) -> bool:
    """Whether a call writes a file: write_text, write_bytes, or open with a mode that writes."""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    modes = [
        a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str) and len(a.value) < 4
    ]
    return name in ("write_text", "write_bytes") or (name == "open" and any(set(mode) & set("wax+") for mode in modes))


@pytest.mark.parametrize("module", each_module())
def test_habits_of_the_house(module: Path) -> None:
    names = {name for name, _ in calls(module)}
    assert "utils" not in module.stem
    assert "print" not in names - ({"print"} if module.stem == "terminal" else set())
    assert {"eval", "exec", "pickle"} & names == set()
    assert stage(module) == "storage" or not any(writes(name, call) for name, call in calls(module))
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree(module)))
    packages = {alias.name for node in ast.walk(tree(module)) if isinstance(node, ast.Import) for alias in node.names}
    assert {"pickle", "joblib", "shelve", "marshal"} & packages == set()
    assert module.read_text(encoding="utf-8").count("\n") <= 400


def test_a_name_means_one_class() -> None:
    names = Counter(
        node.name for module in MODULES for node in tree(module).body if isinstance(node, ast.ClassDef)
    )  # the same word for two things makes a reader look twice
    assert [name for name, times in names.items() if times > 1 and not name.startswith("_")] == []


def takes_counts(part: ast.stmt) -> bool:
    """Whether this is `fit` or `label` of counts."""
    if not isinstance(part, ast.FunctionDef) or part.name not in ("fit", "label"):
        return False
    return "counts" in [argument.arg for argument in part.args.args]


@pytest.mark.parametrize("module", each_module())
def test_what_fits_or_labels_counts_refuses_anything_else(module: Path) -> None:
    """By its base. `Protocol` describes what others may write."""
    made = [node for node in tree(module).body if isinstance(node, ast.ClassDef) and any(map(takes_counts, node.body))]
    bases = {node.name: {base.id for base in node.bases if isinstance(base, ast.Name)} for node in made}
    assert [name for name, named in bases.items() if not named & {"TakesCounts", "Protocol"}] == []


@pytest.mark.parametrize("module", each_module())
def test_a_module_says_what_it_is(module: Path) -> None:
    assert ast.get_docstring(tree(module))


COMMANDS = sorted(command.callback.__name__ for command in cli.app.registered_commands if command.callback)


@pytest.mark.parametrize("name", cm.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert getattr(cm, name).__doc__


# Their examples are those of the corrections that fit them.
WITHOUT_EXAMPLE = {"Group", "Mixture", "fit_group"}


@pytest.mark.parametrize("name", sorted({*cm.__all__} - WITHOUT_EXAMPLE))
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>> " in getattr(cm, name).__doc__


def test_a_shell_completes_public_names_only() -> None:
    assert sorted(dir(cm)) == sorted([*cm.__all__, "__version__"])
    namespace = {name for name in vars(cm) if not name.startswith("_")}
    assert namespace <= {*cm.__all__, *(stage(module) for module in MODULES)}  # submodules that were imported


@pytest.mark.parametrize("command", cli.app.registered_commands, ids=lambda command: command.callback.__name__)
def test_every_command_has_a_docstring(command: object) -> None:
    assert getattr(command, "callback").__doc__  # noqa: B009


@pytest.mark.parametrize("name", [*cm.__all__, *(f"clickmix {command}" for command in COMMANDS)])
def test_every_public_name_and_command_is_in_the_docs(name: str) -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    assert any(name in page.read_text(encoding="utf-8") for page in pages)


def test_public_names_are_listed_once() -> None:
    assert sorted(cm.__all__) == sorted(set(cm.__all__))


DEFINED = re.compile(r"(?:def |class |self\.|^ *)(_[a-zA-Z]\w*)", re.MULTILINE)
PRIVATE = {name for module in MODULES for name in DEFINED.findall(module.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("test", sorted((ROOT / "tests").rglob("*.py")), ids=lambda test: str(test.relative_to(ROOT)))
def test_tests_leave_private_names_alone(test: Path) -> None:
    """They ask what the code does. A name that a test needs deserves to be public."""
    text = test.read_text(encoding="utf-8")
    used = {
        *re.findall(r"\w\.(_[a-zA-Z]\w*)", re.sub(r"\b(self|cls)\._", "", text)),
        *re.findall(r"from clickmix[\w.]* import [^\n]*\b(_[a-zA-Z]\w*)", text),
        *re.findall(r"""setattr\([^\n]*["'](_[a-zA-Z]\w*)["']""", text),
    }
    assert used & PRIVATE - {"_repr_html_", *DEFINED.findall(text)} == set()  # that is how notebooks call a table


@pytest.mark.xdist_group("together")
def test_tests_of_a_group_stay_together(request: pytest.FixtureRequest) -> None:
    """pytest-xdist tells groups by the ends of ids; where it cannot write them, groups are torn apart silently."""
    if request.config.getoption("loadgroup", False):
        assert request.node.nodeid.endswith("@together"), "pytest is too new for pytest-xdist: make test installs one"
