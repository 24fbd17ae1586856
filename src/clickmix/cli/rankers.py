"""The commands for rankers: train, evaluate, score."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickmix.cli.options import check_report, given, member_option
from clickmix.cli.terminal import progress_bar, say, say_table, stages
from clickmix.errors import InputError, SettingError, several
from clickmix.storage.atomic import check_writable, real_path

if TYPE_CHECKING:
    from clickmix.registry import Option

Features = Annotated[
    Path,
    typer.Option(
        help="Features: Parquet, CSV or NDJSON with query_id, doc_id and one column per feature; or LETOR text."
    ),
]
STRONGEST = 3  # features that training names; its report shows more
Folder = Annotated[Path, typer.Option("--ranker", help="A folder that `clickmix train` wrote.")]


def ranker_options() -> list[Option]:
    """The options of `train`: the name of a ranker, and the options of all rankers."""
    from clickmix.rankers import RANKERS

    return [member_option(RANKERS, "ranker", default="lambdamart"), *RANKERS.options()]


def train(
    given_options: typer.Context,
    features: Features,
    labels: Annotated[
        Path, typer.Option(help="Labels (query_id, doc_id, relevance), as `clickmix debias` writes them.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write the ranker to.")],
    vali_features: Annotated[
        Path | None, typer.Option(help="Features of other queries, to decide when to stop; needs --vali-labels.")
    ] = None,
    vali_labels: Annotated[Path | None, typer.Option(help="Labels of those queries; grades are not needed.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write an HTML page on the features.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
) -> dict[str, Any]:
    """Train a ranker on features and labels. They are joined by query and document."""
    from clickmix.features import make_examples
    from clickmix.rankers import RANKERS, check_folder

    options = given(given_options)
    name = options.pop("ranker", "lambdamart")
    settings = RANKERS.make(name, **options)
    if (vali_features is None) != (vali_labels is None):
        raise SettingError("--vali-features and --vali-labels go together: give both or neither.")
    check_folder(output)
    if report is not None:
        _check_page(report, features, labels, output)
    with stages() as stage:
        stage("reading")
        examples = make_examples(features, labels)
        vali = make_examples(vali_features, vali_labels, names=examples.feature_names) if vali_features else None
    with progress_bar("training") as progress:
        fitted = settings.fit(examples, vali=vali, seed=seed, progress=progress)
    fitted.save(output)
    sizes = f"{several(examples.queries, 'query', 'queries')} with {several(len(examples.relevance), 'document')}"
    say(f"Trained on {sizes}. {examples.left_out}")
    for remark in fitted.remarks():
        say(remark)
    importances = [each for each in fitted.importance() if each.gain > 0]
    if importances:
        from clickmix.report.rows import percent

        shares = ", ".join(f"{each.name} {percent(each.share)}" for each in importances[:STRONGEST])
        say(f"Strongest features, by their share of the gain: {shares}.")
    say(f"Wrote the ranker ({name}) to {output}.")
    if report is not None:
        from clickmix.report.pages import write_page
        from clickmix.report.ranker_page import ranker_page

        write_page(ranker_page(fitted, examples), report)
        say(f"Report: {report} (open it in a browser)")
    return {
        "output": str(output),
        "ranker": name,
        "queries": examples.queries,
        "documents": len(examples.relevance),
        "left_out": asdict(examples.left_out),
        "importance": {each.name: each.share for each in importances},
        "remarks": list(fitted.remarks()),
    }


def evaluate(
    ranker: Annotated[
        list[Path], typer.Option(help="A folder that `clickmix train` wrote; give several to compare them.")
    ],
    features: Annotated[Path, typer.Option(help="Features with a column `grade`, in any format that train reads.")],
    labels: Annotated[Path | None, typer.Option(help="Measure against these labels instead of grades.")] = None,
    metrics: Annotated[str, typer.Option(help="For instance ndcg@10,mrr,map:grade=2.")] = "ndcg@10",
) -> dict[str, Any]:
    """Measure rankers on judged documents. With several, says whether they differ from the first."""
    from clickmix.evaluate import Measure, rank, score, tabulate
    from clickmix.features import make_examples, open_features
    from clickmix.rankers import load_ranker

    measures = [Measure.parse(word.strip()) for word in metrics.split(",")]
    if len({real_path(folder) for folder in ranker}) < len(ranker):
        raise SettingError("--ranker: the same ranker is given twice. Name each once.")
    results = {}
    with stages() as stage:
        stage("scoring")
        for folder in ranker:
            fitted = load_ranker(folder)
            if labels is None:
                split = open_features(features, graded=True, names=fitted.feature_names)
                ranking = rank(fitted.score(split.features), split.grade, split.query_id[split.query])
            else:
                judged = make_examples(features, labels, names=fitted.feature_names)
                ranking = rank(fitted.score(judged.features), judged.relevance, judged.query_id[judged.query])
            named = str(folder) if len(ranker) > 1 else real_path(folder).name
            results[named] = [score(ranking, measure=measure) for measure in measures]
    table = tabulate(results, baseline=str(ranker[0]) if len(ranker) > 1 else None)
    say_table(table)
    found: dict[str, Any] = json.loads(table.json())
    return found


def score(
    ranker: Folder,
    features: Features,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", help="The file to write: .parquet, .csv or .ndjson; any other name gives a TREC run."
        ),
    ],
    tag: Annotated[str, typer.Option(help="The name of a TREC run, its last column.")] = "clickmix",
) -> dict[str, Any]:
    """Rank the documents of a features file. Writes scores and ranks, or a TREC run."""
    from clickmix.evaluate import write_scores
    from clickmix.features import open_features
    from clickmix.rankers import load_ranker

    check_writable(output)
    if real_path(output) == real_path(features) or real_path(ranker) in real_path(output).parents:
        raise InputError(f"{output}: would replace an input. Choose another name for the output.")
    with stages() as stage:
        stage("scoring")
        fitted = load_ranker(ranker)
        split = open_features(features, names=fitted.feature_names)
        scores = fitted.score(split.features)
        stage("writing")
        write_scores(split.query_id[split.query], split.doc_id, scores, output, tag=tag)
    say(f"Ranked {several(split.documents, 'document')} of {several(split.queries, 'query', 'queries')} in {output}.")
    return {"output": str(output), "documents": split.documents, "queries": split.queries}


def _check_page(report: Path, *read: Path) -> None:
    """Refuse a report that cannot be made, or that would replace an input or the ranker."""
    check_report(report)
    check_writable(report)
    page = real_path(report)
    if any(page == path or path in page.parents for path in map(real_path, read)):
        raise InputError(f"{report}: would replace an input or be inside the ranker's folder. Choose another name.")
