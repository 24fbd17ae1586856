"""docs/loop.md runs as it stands, its commands and its program in the order of the page, and does what it says."""

from __future__ import annotations

import json
import re
import runpy
import shlex
from pathlib import Path

import duckdb
import numpy as np
import pytest

import engines_ltr as engines
from clickmix.features import open_features
from clickmix.rankers import load_ranker
from commands import run

pytestmark = pytest.mark.xdist_group("loop page")
PAGE = (Path(__file__).parents[2] / "docs" / "loop.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"```(sh|python)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each command of the page prints, by its words; they run in one folder, which is under `folder`."""
    folder, found = tmp_path_factory.mktemp("loop"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for kind, block in BLOCKS:
            if kind == "python":
                (folder / "page.py").write_text(block, encoding="utf-8")
                runpy.run_path("page.py")
                continue
            for line in block.splitlines():
                program, *words = shlex.split(line)
                done = run(*words)
                assert (program, done.exit_code) == ("clickmix", 0), done.output
                found[line] = done.output
    return found | {"folder": str(folder)}


def output(printed: dict[str, str], words: str) -> str:
    (line,) = [line for line in printed if words in line]
    return printed[line]


def test_the_log_is_recognised_and_all_of_it_is_used(printed: dict[str, str]) -> None:
    shop = Path(printed["folder"]) / "shop"
    log = f"SELECT count(*), sum(clicked) FROM '{shop}/log.parquet'"
    ((shown, clicks),) = duckdb.connect().execute(log).fetchall()
    text = output(printed, "clickmix inspect")
    assert f"A click log, format ubi: {shown:,} impressions and {clicks:,} clicks." in text


def test_judgments_are_opensearchs(printed: dict[str, str]) -> None:
    files = sorted((Path(printed["folder"]) / "shop" / "judgments").glob("*.json"))
    bodies = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    assert bodies
    assert {body["type"] for body in bodies} == {"IMPORT_JUDGMENT"}
    queries = [rated["query"] for body in bodies for rated in body["judgmentRatings"]]
    assert all(query.startswith("shoes ") for query in queries)
    ratings = {each["rating"] for body in bodies for rated in body["judgmentRatings"] for each in rated["ratings"]}
    assert {"0", "3"} <= ratings <= {"0", "1", "2", "3"}
    assert "Left out: " in output(printed, "--to opensearch ")


def test_both_rankers_are_compared_on_queries_that_neither_has_seen(printed: dict[str, str]) -> None:
    shop = Path(printed["folder"]) / "shop"
    learnt, other = (set(open_features(shop / f"{name}.parquet").query_id) for name in ("learn", "compare"))
    assert learnt.isdisjoint(other)
    table = output(printed, "clickmix evaluate")
    values = {name: float(value) for name, value in re.findall(r"^(shop/\w+) +([0-9.]+)", table, re.MULTILINE)}
    assert list(values) == ["shop/old", "shop/new"]
    assert all(0.4 < value <= 1 for value in values.values())
    assert (
        "different from shop/old (paired t-test)" in table or "w/t/l: wins, ties and losses against shop/old" in table
    )


def test_the_model_ranks_as_the_ranker(printed: dict[str, str]) -> None:
    shop = Path(printed["folder"]) / "shop"
    ranker = load_ranker(shop / "new")
    rows = open_features(shop / "compare.parquet", names=ranker.feature_names).features
    model = json.loads((shop / "model.json").read_text(encoding="utf-8"))
    scores = engines.summed32(engines.ltr_plugin(model, list(ranker.feature_names), rows))
    np.testing.assert_allclose(scores, ranker.score(rows), rtol=0, atol=1e-4)
    text = output(printed, "--to opensearch-ltr")
    assert "_createmodel" in text
    assert "OpenSearch 3.8" in text
