"""Simulated logs on disk: same seed, same bytes; rows are the sessions; clicks have their probabilities."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy.stats import binom, norm

from clickmix import cli
from clickmix.errors import ClickmixError
from clickmix.features import Collection, write_features
from clickmix.lab.collections import synthetic_collection
from clickmix.lab.simulate import Simulation, write_simulation
from clickmix.lab.users import USERS, PositionBased, preset, read_sessions, write_sessions


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who ranked what people see does not matter here: 10 trees take a tenth of a second, 300 two."""
    monkeypatch.setattr("clickmix.lab.collections.production.TREES", 10)


@pytest.fixture(scope="module")
def collection() -> Collection:
    return synthetic_collection(queries=60, rng=np.random.default_rng(0))


def columns(path: Path, query: str) -> dict[str, np.ndarray[Any, Any]]:
    """A query over a file, as numpy."""
    with duckdb.connect() as connection:
        return dict(connection.execute(query.format(path=path)).fetchnumpy())


@pytest.mark.parametrize("positions", [1, 5, 62, 63, 130])
def test_rows_are_the_sessions(positions: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    relevance = (rng.random((7, positions)) < 0.5).astype(float)
    relevance[3, positions // 2 + 1 :] = np.nan  # a shorter list
    user = PositionBased.with_eta(0.1, positions=positions)
    sessions = user.simulate(relevance, sessions=500, rng=np.random.default_rng(1))
    ids: dict[str, Any] = {
        "query_id": np.array([f"q{i}" for i in range(7)], object),
        "doc_id": np.arange(7 * positions).reshape(7, -1),
    }
    rows = write_sessions([sessions], tmp_path / "log.parquet", **ids)
    log = columns(tmp_path / "log.parquet", "SELECT * FROM '{path}'")
    session, place = np.nonzero(sessions.documents >= 0)
    assert rows == len(session)
    assert (log["session_id"] == session).all()
    assert (log["position"] == place + 1).all()
    assert (log["query_id"] == ids["query_id"][sessions.seen[session]]).all()
    assert (log["doc_id"] == ids["doc_id"][sessions.seen[session], place]).all()
    assert (log["clicked"] == sessions.clicks[session, place]).all()


def test_chunks_are_one_log(tmp_path: Path) -> None:
    user = preset("dcm", positions=4)
    sessions = user.simulate(np.full((3, 4), 0.5), sessions=300, rng=np.random.default_rng(0))
    ids: dict[str, Any] = {"query_id": np.arange(3), "doc_id": np.arange(12).reshape(3, 4)}
    write_sessions([sessions], tmp_path / "whole.parquet", **ids)
    parts = [sessions.take(slice(0, 7)), sessions.take(slice(7, 200)), sessions.take(slice(200, 300))]
    write_sessions(parts, tmp_path / "parts.parquet", **ids)
    whole, in_parts = (columns(tmp_path / f"{n}.parquet", "SELECT * FROM '{path}'") for n in ("whole", "parts"))
    assert all((whole[key] == in_parts[key]).all() for key in whole)


def test_a_log_gives_its_sessions_back(tmp_path: Path) -> None:
    sessions = preset("ubm", positions=4).simulate(np.full((3, 4), 0.5), sessions=300, rng=np.random.default_rng(0))
    write_sessions([sessions], tmp_path / "log.csv", query_id=np.arange(3), doc_id=np.arange(12).reshape(3, 4))
    read = read_sessions(tmp_path / "log.csv")
    order = read.session_id.astype(int)  # sessions come in the order of their ids as text
    assert sorted(order) == list(range(300))
    assert (read.sessions.clicks == sessions.clicks[order]).all()
    documents = read.doc_id[read.sessions.documents].astype(int)
    assert (documents == sessions.documents[order]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "query_id,doc_id,position,clicked\nq,d,1,0\n",
            "{path}: no column 'session_id'. Found query_id, doc_id, position, clicked. Sessions need it; name it with "
            "columns={{'session_id': ...}}.",
        ),
        (
            "query_id,doc_id,position,impressions,clicks\nq,d,1,5,1\n",
            "{path}: contains counts, and counts do not show what was clicked together. Use the raw log.",
        ),
    ],
)
def test_logs_without_sessions_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(ClickmixError) as error:
        read_sessions(path)
    assert str(error.value) == message.format(path=path)


@pytest.mark.parametrize("user", USERS.names())
@pytest.mark.parametrize("relevance", ["binarized", "graded"])
def test_clicks_have_the_probabilities_of_the_truth(
    user: str, relevance: Any, collection: Collection, tmp_path: Path
) -> None:
    settings = Simulation(clicks=20_000, user=USERS.make(user, top=5), relevance=relevance)
    rows = write_simulation(collection, tmp_path, settings)
    seen = columns(
        tmp_path,
        "SELECT query_id, position, count(*) AS n, sum(clicked) AS c, any_value(relevance) AS relevance "
        "FROM '{path}/log.parquet' JOIN '{path}/truth.parquet' USING (query_id, doc_id) "
        "GROUP BY query_id, position ORDER BY query_id, position",
    )
    assert seen["n"].sum() == rows
    assert seen["c"].sum() >= 20_000
    expected = settings.user.click_probabilities(seen["relevance"].reshape(-1, 5)).ravel()
    tails = binom.cdf(seen["c"], seen["n"], expected), binom.sf(seen["c"] - 1, seen["n"], expected)
    assert np.minimum(*tails).min() > norm.sf(5)


def test_truth_covers_every_training_document(collection: Collection, tmp_path: Path) -> None:
    write_simulation(collection, tmp_path, Simulation(clicks=100))
    truth = columns(tmp_path / "truth.parquet", "SELECT * FROM '{path}'")
    assert list(truth) == ["query_id", "doc_id", "relevance", "grade"]
    assert len(truth["grade"]) == collection.train.documents
    assert (truth["relevance"] == (truth["grade"] > 2)).all()


def test_same_seed_same_bytes(collection: Collection, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        write_simulation(collection, tmp_path / name, Simulation(clicks=2_000, seed=seed))
    files = ["log.parquet", "truth.parquet", "train.parquet", "vali.parquet", "test.parquet"]
    a, b, c = ([(tmp_path / name / file).read_bytes() for file in files] for name in "abc")
    assert a == b
    assert a[0] != c[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"relevance": "odd"}, "relevance 'odd': expected 'binarized' or 'graded'."),
        ({"clicks": 0}, "clicks=0: expected at least 1."),
        ({"seed": -1}, "seed=-1: expected a whole number from 0."),
    ],
)
def test_wrong_settings_leave_nothing_behind(
    settings: dict[str, Any], message: str, collection: Collection, tmp_path: Path
) -> None:
    with pytest.raises(ClickmixError) as error:
        write_simulation(collection, tmp_path / "out", Simulation(**settings))
    assert str(error.value) == message
    assert not (tmp_path / "out").exists()


def failure(words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command that fails says."""
    monkeypatch.setattr(sys, "argv", ["clickmix", *words.split()])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    return capsys.readouterr().err


MISTAKES = [
    ("-o out --seed -1", "seed=-1: expected a whole number from 0."),
    ("-o out --queries 5", "queries=5: expected at least 20, to train the production ranker."),
    ("-o out --data few --queries 50", "queries=50: few has its own queries. Leave one of the two out."),
    ("-o out --user ubm --eta 1", "the option eta belongs to the user pbm, not to ubm. Leave it out."),
    ("-o out --continuation 0.5", "the option continuation belongs to the user dbn, not to pbm. Leave it out."),
    ("-o out --user dbn --continuation 2", "continuation=2: expected a probability from 0 to 1."),
    ("-o out --eta -1", "eta is -1, expected a number from 0: examination is k^-eta, at most 1."),
    ("-o out --user dcm --top 20", "The user dcm is known down to position 10, found lists of 20. Cut the lists to 10 "
     "results, or fit a user to longer ones."),
    (
        "-o out --data few",
        "few: 3 training queries. Expected at least 20, to train the production ranker. Use a larger collection.",
    ),
    ("-o few --data few", "few/train.parquet: would replace an input. Choose another folder for the output."),
    ("-o link --data few", "link/train.parquet: would replace an input. Choose another folder for the output."),
    ("-o folds/Fold1 --data folds", "folds/Fold1/train.parquet: would replace an input. Choose another folder for the "
     "output."),
]  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), MISTAKES, ids=[case[0] for case in MISTAKES])
def test_mistakes_are_told_before_anything_is_written(
    words: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small = synthetic_collection(queries=3, rng=np.random.default_rng(0))
    for folder in (tmp_path / "few", tmp_path / "folds" / "Fold1"):
        folder.mkdir(parents=True)
        for name in ("train", "vali", "test"):
            write_features(getattr(small, name), folder / f"{name}.parquet")
    (tmp_path / "link").symlink_to("few")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert failure(f"simulate {words}", capsys, monkeypatch) == f"clickmix: {expected}\n"
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_a_full_disk_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("secrets.token_hex", lambda size: "full")
    (tmp_path / "out").mkdir()
    usual = Path.mkdir

    def mkdir(folder: Path, *arguments: Any, **named: Any) -> None:
        usual(folder, *arguments, **named)
        if folder.name == ".full.tmp":  # where the files are before they take their places
            (folder / ".train.parquet.full.tmp").symlink_to("/dev/full")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    text = failure("simulate -o out --queries 20", capsys, monkeypatch)
    assert text == "clickmix: out/train.parquet: No space left on device. Nothing was written.\n"
    assert list((tmp_path / "out").iterdir()) == []
