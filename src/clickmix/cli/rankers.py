"""The commands about rankers: train, evaluate, score. Parse, call, print; `cli` takes them in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clickmix.cli.terminal import progress_bar, say, stages
from clickmix.errors import InputError, SettingError

if TYPE_CHECKING:
    from clickmix.features import Examples

Features = Annotated[Path, typer.Option(help="Features: Parquet with query_id, doc_id, feature_1, ..., or LETOR text.")]
Folder = Annotated[Path, typer.Option("--ranker", help="A folder that `clickmix train` wrote.")]


def train(
    features: Features,
    labels: Annotated[Path, typer.Option(help="Labels: query_id, doc_id, relevance, as `clickmix debias` writes.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write the ranker to.")],
    ranker: Annotated[Literal["lambdamart", "dnn"], typer.Option(help="What to train.")] = "lambdamart",
    weighting: Annotated[
        Literal["none", "ideal-dcg", "saturating"] | None,
        typer.Option(help="How much a query weighs (lambdamart)."),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Of lambdamart; another number may give other trees.")] = None,
    vali_features: Annotated[Path | None, typer.Option(help="Features to stop by, with --vali-labels.")] = None,
    vali_labels: Annotated[Path | None, typer.Option(help="Labels to stop by: no grades are needed.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
) -> None:
    """Train a ranker on features and labels, joined by query and document."""
    from clickmix.rankers import check_folder

    settings = _settings(ranker, weighting=weighting, threads=threads)
    if (vali_features is None) != (vali_labels is None):
        raise SettingError("--vali-features and --vali-labels belong together: give both or neither.")
    check_folder(output)
    with stages() as stage:
        stage("reading")
        examples = _examples(features, labels)
        vali = None
        if vali_features:
            vali = _examples(vali_features, vali_labels, width=examples.features.shape[1])
    with _telling(ranker, settings) as progress:
        fitted = settings.fit(examples, vali=vali, seed=seed, progress=progress)
    fitted.save(output)
    say(f"Trained on {examples.queries:,} queries with {len(examples.relevance):,} documents. {examples.left_out}")
    if ranker == "lambdamart" and vali is not None:
        best = max(fitted.ndcg)
        say(f"By the validation labels {fitted.trees} trees are best: nDCG@10 of these labels {best:.4f}.")
    say(f"Ranker ({ranker}) in {output}.")


def evaluate(
    ranker: Folder,
    features: Annotated[Path, typer.Option(help="Features with grades: Parquet or LETOR text.")],
    metrics: Annotated[str, typer.Option(help="For instance ndcg@10,mrr,map:grade=2.")] = "ndcg@10",
) -> None:
    """Measure a ranker on judged documents, query by query."""
    from clickmix.evaluate import Measure, rank, score, tabulate
    from clickmix.features import open_features
    from clickmix.rankers import load_ranker

    measures = [Measure.parse(word.strip()) for word in metrics.split(",")]
    with stages() as stage:
        stage("scoring")
        fitted = load_ranker(ranker)
        split = open_features(features, graded=True, width=fitted.features)
        ranking = rank(fitted.score(split.features), split.grade, split.query_id[split.query])
        scores = [score(ranking, measure=measure) for measure in measures]
    for line in str(tabulate({ranker.resolve().name: scores})).splitlines():
        say(line)


def score(
    ranker: Folder,
    features: Features,
    output: Annotated[Path, typer.Option("-o", "--output", help="The run file to write.")],
    tag: Annotated[str, typer.Option(help="The name of the run, its last column.")] = "clickmix",
) -> None:
    """Rank the documents of a features file: a run in TREC format."""
    from clickmix.evaluate import trec_run
    from clickmix.features import open_features
    from clickmix.rankers import load_ranker
    from clickmix.storage.atomic import check_writable, write_atomically

    check_writable(output)
    if output.resolve() == features.resolve() or ranker.resolve() in output.resolve().parents:
        raise InputError(f"{output}: would replace an input. Choose another name for the output.")
    with stages() as stage:
        stage("scoring")
        fitted = load_ranker(ranker)
        split = open_features(features, width=fitted.features)
        scores = fitted.score(split.features)
        stage("writing")
        run = trec_run(split.query_id[split.query], split.doc_id, scores, tag=tag)
        write_atomically(output, run.encode())
    say(f"{split.documents:,} documents of {split.queries:,} queries ranked in {output}.")


def _settings(ranker: str, **given: Any) -> Any:
    """The settings of a ranker: its defaults, but for those that are given."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if ranker == "lambdamart":
        from clickmix.rankers import LambdaMART

        return LambdaMART(**chosen)
    if chosen:
        raise SettingError(f"--{next(iter(chosen))} is for --ranker lambdamart.")
    import importlib

    return importlib.import_module("clickmix.rankers.dnn").DNN()


def _examples(features: Path, labels: Path | None, *, width: int = 0) -> Examples:
    from clickmix.features import make_examples

    return make_examples(features, labels, width=width)


@contextmanager
def _telling(ranker: str, settings: Any) -> Iterator[Any]:
    """What to call while training: LambdaMART says the share of its trees, a DNN every epoch."""
    with progress_bar("training") as bar:
        if bar is None or ranker == "lambdamart":
            yield bar
        else:
            yield lambda epoch: bar(epoch.number / settings.epochs)
