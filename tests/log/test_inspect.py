"""`clickmix inspect` says what a file is, whatever clickmix reads or writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clickmix import BiasParameters
from clickmix.storage.documents import document_text
from commands import failure, run
from logs import Table, counted, small_log, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


LOG: Table = {
    "term": ["q", "q", "q", "r"],
    "doc_id": ["a", "b", "a", "a"],
    "position": [1, 2, 2, 1],
    "clicked": [1, 0, 1, 0],
    "session_id": [1, 1, 2, 3],
}


def test_a_log(folder: Path) -> None:
    write(folder / "log.csv", LOG)
    assert run("inspect", "log.csv", "--columns", "query_id=term").output.splitlines() == [
        "log.csv: columns term (VARCHAR), doc_id (VARCHAR), position (VARCHAR), clicked (VARCHAR), session_id "
        "(VARCHAR).",
        "A click log, format rows: 4 impressions and 2 clicks.",
        "2 queries with 3 documents, 33% of them at several places.",
        "3 sessions or lists.",
        "First impressions:",
        "query  document  position  clicked",
        "q      a                1        1",
        "q      b                2        0",
        "q      a                2        1",
        "r      a                1        0",
        "position  impressions  clicks  click rate",
        "       1            2       1         50%",
        "       2            2       1         50%",
        "Label it: clickmix debias log.csv -o labels.parquet --columns query_id=term",
    ]


def test_long_ids_fit_the_terminal_and_can_be_told_apart(folder: Path) -> None:
    shop = "https://www.example.com/a/very/long/way/to/all/the/shoes/of/the/world/"
    log = {"query_id": ["shoes " * 20] * 2, "doc_id": [f"{shop}1", f"{shop}2"], "position": [1, 2], "clicked": [1, 0]}
    write(folder / "log.csv", log)
    _, first, second = run("inspect", "log.csv").output.split("First impressions:\n")[1].splitlines()[:3]
    assert max(len(first), len(second)) <= 80
    assert first.split()[-3].endswith("/1")
    assert second.split()[-3].endswith("/2")


def test_result_lists_with_bad_rows(folder: Path) -> None:
    write(folder / "log.parquet", {"query_id": ["q", "q"], "doc_ids": [["a"], ["a"]], "clicked": [[1], [1, 0]]})
    told = run("inspect", "log.parquet").output.splitlines()
    assert told[1] == "A click log, format lists: 1 impression and 1 click."
    assert told[-2:] == [
        "Bad rows (1): clicked and doc_ids have different lengths. For instance log.parquet, row 2, column 'clicked': "
        "'[1, 0]'.",
        "Fix the bad rows first: labels without them may be wrong. Then: clickmix debias log.parquet -o labels.parquet",
    ]


def test_few_bad_rows_are_skipped(folder: Path) -> None:
    rows = {"query_id": ["q"] * 200, "doc_id": ["d"] * 200, "position": [1] * 199 + [-1], "clicked": [0, 1] * 100}
    write(folder / "log.csv", rows)
    told = run("inspect", "log.csv").output.splitlines()
    assert told[-1] == "Label it: clickmix debias log.csv -o labels.parquet --bad-rows skip"


def test_positions_from_0_are_not_skipped(folder: Path) -> None:
    """All the first results would be left out, however few they are."""
    rows = {"query_id": ["q"] * 200, "doc_id": ["d"] * 200, "position": [0] + [1] * 199, "clicked": [0, 1] * 100}
    write(folder / "log.csv", rows)
    assert run("inspect", "log.csv").output.splitlines()[-2:] == [
        "Bad rows (1): position is not a positive whole number. For instance log.csv, row 1, column 'position': '0'. "
        "If positions count from 0, add 1 to all of them.",
        "Fix the bad rows first: labels without them may be wrong. Then: clickmix debias log.csv -o labels.parquet",
    ]


def test_counts(folder: Path) -> None:
    write(folder / "counts.csv", counted(small_log()))
    assert (
        run("inspect", "counts.csv").output.splitlines()[1].startswith("A click log, format counted: 400 impressions")
    )


def test_a_very_wide_log_shows_some_of_its_columns(folder: Path) -> None:
    names, values = (",".join(f"{word}{i}" for i in range(300)) for word in ("c", ""))
    Path("wide.csv").write_text(f"query_id,doc_id,position,clicked,{names}\nq,d,1,1,{values}\n")
    first = run("inspect", "wide.csv").output.splitlines()[0]
    assert first.endswith("c94 (VARCHAR), c95 (VARCHAR), and 204 more.")


def test_a_log_whose_columns_are_missing_shows_them_and_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "log.csv", LOG)
    assert failure(capsys, monkeypatch, "inspect", "log.csv") == (
        "clickmix: log.csv: missing 'query_id'. Found term, doc_id, position, clicked, session_id. `term` looks like "
        "query_id. If so, use --columns query_id=term (in Python columns={'query_id': 'term'}).\n"
    )


def test_the_command_for_missing_columns_repeats_the_columns_given(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "log.csv").write_text("sid,qq,dd,rank,is_clicked\ns,q,d,1,1\n")
    told = failure(capsys, monkeypatch, "inspect", "log.csv", "--columns", "query_id=qq,doc_id=dd")
    columns = "query_id=qq,doc_id=dd,position=rank,clicked=is_clicked"
    assert f"If so, use --columns {columns} (in Python columns=" in told
    assert run("inspect", "log.csv", "--columns", columns).exit_code == 0


def test_labels_a_histogram_and_features(folder: Path) -> None:
    write(folder / "labels.csv", {"query_id": ["q", "r"], "doc_id": ["a", "a"], "relevance": [0.25, 0.75]})
    assert run("inspect", "labels.csv").output == "labels.csv: 2 labels of 2 queries; mean relevance 0.500.\n"
    (folder / "histogram.csv").write_text("position,impressions,clicks,documents,moving,again\n1,5,2,10,0,0\n")
    assert run("inspect", "histogram.csv").output == (
        "histogram.csv: a histogram. Fit it: clickmix fit histogram.csv -o model.json\n"
    )
    write(folder / "features.parquet", {"query_id": [1], "doc_id": [1], "feature_1": [0.5], "feature_2": [0.5]})
    assert run("inspect", "features.parquet").output == (
        "features.parquet: 2 features of documents (feature_1, feature_2), for clickmix train, score and evaluate.\n"
    )
    (folder / "own.csv").write_text(
        "query_id,doc_id,bm25_title,price,grade\nred shoes,s1,2.5,,3\nred shoes,s2,1e-3,9,0\n"
    )
    assert run("inspect", "own.csv").output == (
        "own.csv: 2 features of documents, and grades (bm25_title, price), for clickmix train, score and evaluate.\n"
    )
    write(folder / "judgments.csv", {"query_id": ["q"], "doc_id": ["d"], "grade": [2]})
    assert run("inspect", "judgments.csv").output == (
        "judgments.csv: judgments: a grade per query and document, for clickmix compare --judgments.\n"
    )
    (folder / "scores.csv").write_text("query_id,doc_id,score,rank\nq,d,0.5,1\n")
    assert run("inspect", "scores.csv").output.startswith("scores.csv: scores and ranks of documents")
    (folder / "train.txt").write_text("2 qid:1 1:0.5 2:0.1\n")
    assert run("inspect", "train.txt").output == (
        "train.txt: features and grades in LETOR's format. "
        "Train on them: clickmix train --features train.txt --labels LABELS -o ranker\n"
    )


def test_a_ranker_says_which_features_it_wants_in_which_order(folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [("red shoes", f"sku-{i}", rng.random(), "" if i % 3 else rng.random()) for i in range(60)]
    (folder / "features.csv").write_text(
        "query_id,doc_id,price in EUR,bm25_title\n" + "".join(f"{q},{d},{x},{y}\n" for q, d, x, y in rows)
    )
    labels = "".join(f"red shoes,sku-{i},{i % 2}\n" for i in range(60))
    (folder / "labels.csv").write_text(f"query_id,doc_id,relevance\n{labels}")
    assert run("train", "--features", "features.csv", "--labels", "labels.csv", "-o", "ranker").exit_code == 0
    told = run("inspect", "ranker").output.splitlines()
    assert told[:2] == [
        "ranker: a lambdamart ranker of 2 features, in this order: price in EUR, bm25_title.",
        "Trained on missing values of bm25_title.",
    ]
    assert "trees 300" in told[2]


PARAMETERS = "Label a log with them: clickmix debias LOG --correction {} --parameters {} -o labels.parquet."
NOT_LOGS = [
    (
        "labels.csv",
        "query_id,doc_id,relevance,impressions,clicks,low,high\nq,d,0.5,1,1,0,1\n",
        "missing 'position'. Found query_id, doc_id, relevance, impressions, clicks, low, high. This looks like "
        "labels, not a log. Pass the log they come from; clickmix export and clickmix train take labels.",
    ),
    (
        "hist.csv",
        "position,impressions,clicks,documents,moving,again\n1,5,2,10,0,0\n",
        "missing 'query_id' and 'doc_id'. Found position, impressions, clicks, documents, moving, again. This looks "
        "like a histogram, not a log. Fit it: clickmix fit hist.csv -o model.json.",
    ),
    (
        "model.json",
        document_text(kind="clickmix model", version=3, payload={}),
        "a clickmix model, not a log. Label a log with it: clickmix label LOG --model model.json -o labels.parquet.",
    ),
    (
        "ranker/ranker.json",
        document_text(kind="clickmix ranker", version=2, payload={}),
        "a clickmix ranker, not a log. Order documents with it: clickmix score --ranker ranker --features FEATURES.",
    ),
    (
        "pem.json",
        '{\n "alpha": [\n  0.5\n ],\n "beta": [\n  0.1\n ]\n}\n',
        f"bias parameters, not a log. {PARAMETERS.format('affine', 'pem.json')}",
    ),
    (
        "theta.json",
        '{"theta": [0.5]}',
        f"bias parameters without trust, not a log. {PARAMETERS.format('ips', 'theta.json')}",
    ),
]


@pytest.mark.parametrize(("name", "text", "said"), NOT_LOGS, ids=[case[0] for case in NOT_LOGS])
def test_debias_says_which_command_takes_a_file_that_is_no_log(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    assert failure(capsys, monkeypatch, "debias", name, "-o", "l.csv") == f"clickmix: {name}: {said}\n"


def test_a_log_with_grades_and_other_names_is_not_taken_for_labels(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "log.csv").write_text("query_id,doc_id,rank,click,relevance\nq,d,1,1,0.5\n")
    told = failure(capsys, monkeypatch, "debias", "log.csv", "-o", "l.csv")
    assert "If so, use --columns position=rank,clicked=click" in told


def test_parameters_are_no_model(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "log.csv", small_log())
    BiasParameters([0.5, 0.4], [0.2, 0.1]).write("pem.json")
    use = PARAMETERS.format("affine", "pem.json")
    assert run("inspect", "pem.json").output == f"pem.json: bias parameters. {use}\n"
    assert failure(capsys, monkeypatch, "label", "log.csv", "--model", "pem.json", "-o", "l.csv") == (
        f"clickmix: pem.json: bias parameters, not a clickmix model. {use}\n"
    )


@pytest.mark.parametrize("layout", ["rows", "lists"])
def test_documents_that_are_twice_in_a_list_are_counted(tmp_path: Path, layout: str) -> None:
    tables: dict[str, Table] = {
        "rows": {"session_id": [1, 1, 1, 2, 2], "query_id": ["q"] * 5, "doc_id": ["a", "b", "a", "a", "b"],
                 "position": [1, 2, 3, 1, 2], "clicked": [1, 0, 0, 0, 0]},
        "lists": {"query_id": ["q", "q"], "doc_ids": [["a", "b", "a"], ["a", "b"]], "clicked": [[1, 0, 0], [0, 0]]},
    }  # fmt: skip
    output = run("inspect", str(write(tmp_path / "log.parquet", tables[layout]))).output
    assert "1 time a document appears again in its list: each place counts as shown.\n" in output


def test_pairs_without_a_header_are_refused_with_the_reason(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "qrels.tsv").write_text("1185869\t0\t0\t1\n1185868\t0\t16\t1\n")
    assert failure(capsys, monkeypatch, "inspect", "qrels.tsv") == (
        "clickmix: qrels.tsv: the first line (1185869, 0, 0, 1) has no column names. Expected a header. Pairs that "
        "were clicked or judged (such as MS MARCO's) are not a log: they do not say what was shown and not clicked.\n"
    )
