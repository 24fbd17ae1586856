"""The commands about rankers: what they print, what they write, how they fail."""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path
from typing import cast

import duckdb
import numpy as np
import pytest
from typer.testing import CliRunner, Result

from clickmix import cli
from clickmix.evaluate import evaluate, trec_run
from clickmix.features import make_examples, open_features, write_features
from clickmix.rankers import FittedLambdaMART, LambdaMART, load_ranker
from collections_rankers import all_labels, split
from commands import failure

TRAIN, TEST = split(sizes=[8] * 20), split(sizes=[6] * 9, seed=5)
WORDS = "train --features train.parquet --labels labels.csv"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with features, labels and a ranker."""
    folder = tmp_path_factory.mktemp("made")
    write_features(TRAIN, folder / "train.parquet")
    write_features(TEST, folder / "test.parquet")
    write_features(split(sizes=[3, 3], width=2), folder / "narrow.parquet")
    labels = np.column_stack(all_labels(TRAIN)).tolist()
    lines = "".join(f"{query:.0f},{document:.0f},{relevance!r}\n" for query, document, relevance in labels[2:])
    (folder / "labels.csv").write_text("query_id,doc_id,relevance\n" + lines)
    (folder / "words.csv").write_text("query_id,doc_id,relevance\nq1,d1,0.5\nq1,d2,1\n")
    LambdaMART(trees=5).fit(make_examples(TRAIN, folder / "labels.csv")).save(folder / "ranker")
    return folder


@pytest.fixture
def folder(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, as the working folder."""
    monkeypatch.chdir(made)
    return made


def run(words: str) -> Result:
    return CliRunner().invoke(cli.app, words.split(), catch_exceptions=False)


def test_train_says_what_it_learnt_from_and_writes_a_ranker(folder: Path) -> None:
    result = run(f"{WORDS} -o new")
    assert result.stdout == (
        "Trained on 20 queries with 158 documents. Left out: 2 documents without a label.\n"
        "Strongest features, by their share of the gain: feature_1 83%, feature_3 10%, feature_2 6.6%.\n"
        "Wrote the ranker (lambdamart) to new.\n"
    )
    expected = LambdaMART().fit(make_examples(TRAIN, folder / "labels.csv"))
    assert [f"{each.name} {each.share:.2f}" for each in expected.importance()][:2] == [
        "feature_1 0.83",
        "feature_3 0.10",
    ]
    assert load_ranker("new").score(TEST.features).tolist() == expected.score(TEST.features).tolist()


def test_train_takes_settings(folder: Path) -> None:
    run(f"{WORDS} -o set --weighting none --threads 2")
    assert getattr(load_ranker("set"), "settings") == LambdaMART(weighting="none", threads=2)  # noqa: B009


def test_train_stops_by_validation_labels(folder: Path) -> None:
    result = run(f"{WORDS} -o stopped --vali-features train.parquet --vali-labels labels.csv --seed 4")
    examples = make_examples(TRAIN, folder / "labels.csv")
    expected = LambdaMART().fit(examples, vali=examples, seed=4)
    assert result.stdout.splitlines()[1] == (
        f"{expected.trees} trees rank the validation labels best: nDCG@10 of these labels {max(expected.ndcg):.4f}."
    )
    assert load_ranker("stopped").score(TEST.features).tolist() == expected.score(TEST.features).tolist()


def test_evaluate_prints_the_table(folder: Path) -> None:
    scores, query = load_ranker("ranker").score(TEST.features), TEST.query_id[TEST.query]
    ndcg = evaluate(scores, TEST.grade, query).mean
    mrr = evaluate(scores, TEST.grade, query, measure="mrr:grade=4")
    assert run(
        "evaluate --ranker ranker --features test.parquet --metrics ndcg@10,mrr:grade=4"
    ).stdout.splitlines() == [
        "ranker  ndcg@10  mrr:grade=4",
        "----------------------------",
        f"ranker  {ndcg:.4f}       {mrr.mean:.4f}",
        "",
        "ndcg@10: 9 queries.",
        f"mrr:grade=4: 9 queries, {mrr.without_relevant} of them without relevant documents (left out).",
    ]


def test_evaluate_compares_rankers_against_labels(folder: Path) -> None:
    examples = make_examples(TRAIN, folder / "labels.csv")
    LambdaMART(trees=1).fit(examples).save(folder / "small")
    query = examples.query_id[examples.query]
    means = {
        name: evaluate(load_ranker(name).score(examples.features), examples.relevance, query, measure="ndcg@5").mean
        for name in ("small", "ranker")
    }
    words = "--features train.parquet --labels labels.csv --metrics ndcg@5"
    printed = run(f"evaluate --ranker small --ranker ranker {words}").stdout
    assert re.findall(r"^(small|ranker) +([0-9.]+)", printed, re.MULTILINE) == [
        (name, f"{mean:.4f}") for name, mean in means.items()
    ]
    assert "w/t/l: wins, ties and losses against small." in printed


def test_score_writes_a_run_also_without_grades(folder: Path) -> None:
    duckdb.sql("COPY (SELECT * EXCLUDE grade FROM 'test.parquet') TO 'ungraded.parquet' (FORMAT parquet)")
    result = run("score --ranker ranker --features ungraded.parquet -o run.txt --tag mine")
    scores = load_ranker("ranker").score(TEST.features)
    assert result.stdout == "Ranked 54 documents of 9 queries in run.txt.\n"
    assert Path("run.txt").read_text() == trec_run(TEST.query_id[TEST.query], TEST.doc_id, scores, tag="mine")


def test_letor_text_may_leave_out_the_last_features(folder: Path) -> None:
    lines = [f"{g} qid:{q} 1:{x[0]!r} 2:{x[1]!r}\n" for g, q, x in
             zip(TEST.grade.tolist(), TEST.query.tolist(), TEST.features.tolist(), strict=True)]  # fmt: skip
    Path("sparse.txt").write_text("".join(lines))
    padded = TEST.features * np.array([1, 1, 0], np.float32)
    scores = load_ranker("ranker").score(padded)
    assert run("score --ranker ranker --features sparse.txt -o sparse.run").exit_code == 0
    assert Path("sparse.run").read_text() == trec_run(TEST.query, np.arange(TEST.documents), scores)
    ndcg = evaluate(scores, TEST.grade, TEST.query).mean
    assert f"{ndcg:.4f}" in run("evaluate --ranker ranker --features sparse.txt").stdout
    labels = "".join(f"{q},{d},{g / 4}\n" for d, (q, g) in enumerate(zip(TEST.query, TEST.grade, strict=True)))
    Path("sparse.csv").write_text("query_id,doc_id,relevance\n" + labels)
    assert run(f"{WORDS} -o with-sparse --vali-features sparse.txt --vali-labels sparse.csv").exit_code == 0


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Features with names of their own and gaps, ids with blanks, labels, and a ranker trained on them."""
    folder = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(0)
    rows = []
    for query in (f"red shoes {i}" for i in range(20)):
        for document in "abcdefgh":
            bm25, ctr = rng.random(2).tolist()
            rows.append((query, document, bm25, ctr if rng.random() < 0.7 else None, bm25 * 0.8 + 0.1))
    lines = [f"{q},{d},{b!r},{'' if c is None else repr(c)}" for q, d, b, c, _ in rows]
    (folder / "features.csv").write_text("query_id,doc_id,bm25_title,ctr\n" + "\n".join(lines) + "\n")
    lines = [f"{'' if c is None else repr(c)},{d},{q},{b!r}" for q, d, b, c, _ in rows]
    (folder / "turned.csv").write_text("ctr,doc_id,query_id,bm25_title\n" + "\n".join(lines) + "\n")
    (folder / "labels.csv").write_text(
        "query_id,doc_id,relevance\n" + "".join(f"{q},{d},{r!r}\n" for q, d, _, _, r in rows)
    )
    result = CliRunner().invoke(
        cli.app,
        [*f"train --features {folder}/features.csv --labels {folder}/labels.csv -o {folder}/ranker".split()],
        catch_exceptions=False,
    )
    assert result.exit_code == 0
    return folder


@pytest.mark.parametrize("name", ["scores.parquet", "scores.csv", "scores.ndjson"])
def test_score_writes_a_table_with_any_id(shop: Path, tmp_path: Path, name: str) -> None:
    run(f"score --ranker {shop}/ranker --features {shop}/features.csv -o {tmp_path}/{name}")
    rows = duckdb.execute(f"SELECT query_id, doc_id, score, rank FROM '{tmp_path}/{name}'").fetchall()
    split = open_features(shop / "features.csv")
    expected = dict(
        zip(
            zip(split.query_id[split.query].tolist(), split.doc_id.tolist(), strict=True),
            load_ranker(shop / "ranker").score(split.features).tolist(),
            strict=True,
        )
    )
    assert {(query, document): score for query, document, score, _ in rows} == expected
    assert [row[3] for row in rows] == [*range(1, 9)] * 20
    assert all(a[0] < b[0] or a[2] >= b[2] for a, b in itertools.pairwise(rows))


def test_a_run_that_cannot_hold_the_ids_names_the_way_out(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = f"score --ranker {shop}/ranker --features {shop}/features.csv -o {tmp_path}/run.txt"
    assert failure(capsys, monkeypatch, *words.split()) == (
        "clickmix: query_ids: 'red shoes 0' does not fit into a TREC run, whose columns are separated by blanks. "
        "Write a table instead: choose a name ending in .parquet or .csv.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_columns_in_another_order_give_the_same_scores(shop: Path, tmp_path: Path) -> None:
    for name in ("features", "turned"):
        run(f"score --ranker {shop}/ranker --features {shop}/{name}.csv -o {tmp_path}/{name}.csv")
    assert (tmp_path / "turned.csv").read_bytes() == (tmp_path / "features.csv").read_bytes()


def test_a_ranker_folder_names_its_features_and_their_gaps(shop: Path) -> None:
    payload = json.loads((shop / "ranker" / "ranker.json").read_text())["payload"]
    assert (payload["features"], payload["missing"]) == (["bm25_title", "ctr"], {"ctr": "nan"})


def test_train_writes_a_report_on_the_features(shop: Path, tmp_path: Path) -> None:
    words = f"train --features {shop}/features.csv --labels {shop}/labels.csv -o {tmp_path}/ranker"
    result = run(f"{words} --report {tmp_path}/train.html")
    assert result.stdout.splitlines()[-1] == f"Report: {tmp_path}/train.html (open it in a browser)"
    html = (tmp_path / "train.html").read_text()
    strongest = cast(FittedLambdaMART, load_ranker(tmp_path / "ranker")).importance()[0]
    assert strongest.name == "bm25_title"
    assert f"{100 * strongest.share:.1f}%" in html
    assert 'aria-label="bm25_title"' in html
    assert "value is missing" in html


def test_the_report_of_a_ranker_without_gains_has_curves_only(shop: Path, tmp_path: Path) -> None:
    words = f"train --features {shop}/features.csv --labels {shop}/labels.csv -o {tmp_path}/ranker --ranker dnn"
    run(f"{words} --report {tmp_path}/train.html")
    html = (tmp_path / "train.html").read_text()
    assert 'aria-label="bm25_title"' in html
    assert "Share of the gain" not in html


FAILURES = [
    (f"{WORDS} -o x --report page.txt", "page.txt: a report is an HTML file. Expected a name ending in .html."),
    (
        f"{WORDS} -o x --report ranker/x.html --vali-labels labels.csv",
        "--vali-features and --vali-labels go together: give both or neither.",
    ),
    (
        f"{WORDS} -o x --report x/page.html",
        "x/page.html: the folder x does not exist. Create it first, or choose another path.",
    ),
    (
        f"{WORDS} -o ranker --report ranker/page.html",
        "ranker/page.html: would replace an input or be inside the ranker's folder. Choose another name.",
    ),
    (f"{WORDS} -o train.parquet", "train.parquet: this is a file. Name a folder for the ranker."),
    (f"{WORDS} -o .", ".: this folder holds something else. Choose a new folder, or a ranker's folder."),
    (f"{WORDS} -o no/ranker", "no/ranker: the folder no does not exist. Create it, or choose another path."),
    (
        f"{WORDS} -o x --vali-labels labels.csv",
        "--vali-features and --vali-labels go together: give both or neither.",
    ),
    (
        f"{WORDS} -o x --ranker dnn --weighting none",
        "the option weighting belongs to the ranker lambdamart, not to dnn. Leave it out.",
    ),
    (f"{WORDS} -o x --threads 0", "threads=0: expected a whole number from 1."),
    (f"{WORDS} -o x --threads 1000", "threads=1000: expected at most 256."),
    (
        "train --features no.parquet --labels labels.csv -o x",
        "no.parquet: no such file. Check the path; folders and globs such as 'logs/*.parquet' work too.",
    ),
    (
        "train --features train.parquet --labels words.csv -o x",
        "words.csv: no label matches a document of the features. Labels have query / document 'q1' / 'd1', 'q1' / 'd2' "
        "(text / text); features have query / document 1 / 1, 1 / 2 (whole number / whole number). Text '7' is not the "
        "whole number 7: make the ids the same type on both sides (Parquet keeps types).",
    ),
    (
        "evaluate --ranker ranker --ranker ./ranker --features test.parquet",
        "--ranker: the same ranker is given twice. Name each once.",
    ),
    (
        "evaluate --ranker no --features test.parquet",
        "no: no such folder. Expected one that `clickmix train` wrote.",
    ),
    (
        "evaluate --ranker ranker --features test.parquet --metrics ncdg@10",
        "Unknown measure 'ncdg'. Did you mean ndcg? The measures are ndcg, dcg, mrr, map, precision, recall.",
    ),
    (
        "evaluate --ranker ranker --features narrow.parquet",
        "narrow.parquet: the feature 'feature_3' is missing. Found feature_1, feature_2. "
        "Use the features the ranker was trained on.",
    ),
    (
        "score --ranker ranker --features test.parquet -o test.parquet",
        "test.parquet: would replace an input. Choose another name for the output.",
    ),
    (
        "score --ranker ranker --features test.parquet -o ranker/ranker.json",
        "ranker/ranker.json: would replace an input. Choose another name for the output.",
    ),
]


@pytest.mark.parametrize(("words", "expected"), FAILURES, ids=[case[0] for case in FAILURES])
def test_user_errors_are_reported_on_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str, expected: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["clickmix", *words.split()])
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"clickmix: {expected}\n"
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
