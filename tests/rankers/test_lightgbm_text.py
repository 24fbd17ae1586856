"""Model files that somebody made on purpose, with a valid checksum: refused by name, and the process lives on."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import clickmix as cm
from clickmix.features import grade_examples
from clickmix.rankers import LambdaMART, load_ranker
from clickmix.rankers.folder import write_folder
from collections_rankers import split

EXAMPLES = grade_examples(split(sizes=[12] * 40, width=5), largest_grade=4)
FITTED = LambdaMART(trees=5, leaves=6).fit(EXAMPLES)
ODD = ["0", "-1", "1", "7", "-99", "99999", "2147483647", "-2147483648", "4294967296", "1e308", "nan", "", "3 4", "x"]
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")


def save(folder: Path, model: str, *, trees: int = FITTED.trees, features: int = FITTED.features) -> None:
    """A ranker's folder whose checksum fits, whatever the model is."""
    training = {"trees": trees, "ndcg": []}
    write_folder(
        folder,
        ranker="lambdamart",
        feature_names=tuple(f"feature_{i + 1}" for i in range(features)),
        missing={},
        settings=asdict(FITTED.settings),
        training=training,
        weights=model.encode(),
        weights_name="model.txt",
    )


def resized(model: str) -> str:
    """The model with the sizes of its trees as they are."""
    blocks = model[: model.index("end of trees")].split("Tree=")[1:]
    sizes = " ".join(str(len("Tree=") + len(block)) for block in blocks)
    return re.sub("tree_sizes=.*", f"tree_sizes={sizes}", model)


def changed(pattern: str, value: str) -> str:
    """The model with a line of its first tree changed."""
    return resized(re.sub(pattern, value, FITTED.model, count=1))


def mutated(rng: random.Random) -> str:
    """The model with a letter, a line or a number of it changed."""
    model = FITTED.model
    end, way = model.index("end of trees"), rng.randrange(5)
    if way == 0:
        i = rng.randrange(end)
        return model[:i] + chr(rng.randrange(1, 127)) + model[i + 1 :]
    if way == 1:
        lines = model.split("\n")
        lines[rng.randrange(60)] = lines[rng.randrange(60)]
        return "\n".join(lines)
    number = rng.choice(list(NUMBER.finditer(model, 0, end)))
    drawn = model[: number.start()] + rng.choice(ODD) + model[number.end() :]
    return resized(drawn) if way > 2 else drawn


def outcome(folder: Path, seed: int) -> str:
    """Load a mutated model, and score with it; says whether it was refused."""
    save(folder, mutated(random.Random(seed)))
    try:
        load_ranker(folder).score(EXAMPLES.features)
    except cm.FormatError:
        return "refused"
    return "scored"


def test_no_mutated_model_crashes_the_process(tmp_path: Path) -> None:
    program = (
        "import pathlib, test_lightgbm_text as t\n"
        f"folder = pathlib.Path({str(tmp_path / 'ranker')!r})\n"
        "print(*(t.outcome(folder, seed) for seed in range(400)))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 400
    assert done.stdout.count("refused") > 200  # so they were odd


def test_a_model_as_it_was_written_scores_the_same(tmp_path: Path) -> None:
    save(tmp_path / "ranker", FITTED.model)
    loaded = load_ranker(tmp_path / "ranker")
    assert loaded.score(EXAMPLES.features).tolist() == FITTED.score(EXAMPLES.features).tolist()


TREE = "{0}, tree 0: not a model that LightGBM wrote for clickmix: "
MODEL = "{0}: not a model that LightGBM wrote for clickmix: "
CRAFTED = {
    "a child that is not there": (
        changed("left_child=-?[0-9]+", "left_child=99999"),
        TREE + "node 0 has the child 99999, which is not there or has another parent",
    ),
    "a leaf that is not there": (
        changed("left_child=-?[0-9]+", "left_child=-7"),
        TREE + "node 0 has the child -7, which is not there or has another parent",
    ),
    "a circle": (
        changed("right_child=-?[0-9]+", "right_child=0"),
        TREE + "node 0 has the child 0, which is not there or has another parent",
    ),
    "a feature that is not there": (
        changed("split_feature=[0-9]+", "split_feature=5"),
        TREE + "it splits by a feature that is not among the 5",
    ),
    "more leaves than numbers": (
        changed("num_leaves=6", "num_leaves=7"),
        TREE + "'split_feature' does not hold the 6 numbers it should",
    ),
    "very many leaves": (changed("num_leaves=6", "num_leaves=2147483647"), TREE + "it has 2147483647 leaves"),
    "a category": (
        changed("decision_type=2", "decision_type=1"),
        TREE + "'decision_type' does not hold the 5 numbers it should",
    ),
    "a linear tree": (
        changed("is_linear=0", "is_linear=1"),
        TREE + "'is_linear' does not hold the 1 numbers it should",
    ),
    "a missing line": (
        changed("threshold=.*\n", ""),
        TREE + "its lines are not those of a tree",
    ),
    "sizes that lie": (
        re.sub("tree_sizes=[0-9]+", "tree_sizes=2000000000", FITTED.model),
        TREE + "its lines are not those of a tree",
    ),
    "something after the trees": (
        FITTED.model.replace("end of trees", "Tree=5\nend of trees"),
        MODEL + "something is between its trees and their end",
    ),
    "a size below 0": (
        re.sub("tree_sizes=[0-9]+", "tree_sizes=-5", FITTED.model),
        MODEL + "the header says that a tree has no text",
    ),
    "fewer trees": (
        re.sub("tree_sizes=[0-9]+ ", "tree_sizes=", FITTED.model),
        MODEL + "it does not have the 5 trees that it should have",
    ),
    "more features": (
        FITTED.model.replace("max_feature_idx=4", "max_feature_idx=400"),
        MODEL + "its header is not that of a ranker of 5 features by LightGBM's format v4",
    ),
    "no text": ("\u00e9", MODEL + "it is not ASCII text"),
    "no trees": ("tree\n", MODEL + "its header or the line 'end of trees' is missing"),
}


@pytest.mark.parametrize(("model", "message"), CRAFTED.values(), ids=CRAFTED)
def test_a_crafted_model_is_refused_by_name(tmp_path: Path, model: str, message: str) -> None:
    assert model != FITTED.model
    save(tmp_path / "ranker", model)
    with pytest.raises(cm.FormatError) as caught:
        load_ranker(tmp_path / "ranker")
    assert str(caught.value) == f"{message.format(tmp_path / 'ranker')}. Train the ranker again."


@pytest.mark.parametrize(("trees", "features"), [(10**12, 5), (5, 6), (0, 5), (-1, 5)])
def test_numbers_that_do_not_fit_the_model_are_refused(tmp_path: Path, trees: int, features: int) -> None:
    save(tmp_path / "ranker", FITTED.model, trees=trees, features=features)
    with pytest.raises(cm.FormatError, match="not a model that LightGBM wrote for clickmix"):
        load_ranker(tmp_path / "ranker")
