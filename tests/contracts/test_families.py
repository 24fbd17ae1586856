"""A member of a family is one file: members from outside the package appear in the command, and work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

import clickmix as cm
from clickmix.corrections.correction import CORRECTIONS, Labels
from clickmix.corrections.none import NoCorrection
from clickmix.counts.counts import Counts
from clickmix.errors import SettingError
from clickmix.log.layout import LAYOUTS
from clickmix.mixtures.kinds.kind import MIXTURES, MixtureKind
from clickmix.mixtures.kinds.shapeless import nonparametric
from clickmix.registry import Family, Option
from clickmix.types import CorrectionName, LayoutName, MixtureName, Progress
from commands import failure, run
from moving_logs import moving_counts


@dataclass(frozen=True)
class AlwaysHalf:
    """A correction that believes nothing."""

    strength: float = 0.5

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> AlwaysHalf:
        """There is nothing to fit."""
        return self

    def label(self, counts: Counts) -> Labels:
        """The same for all."""
        rates = NoCorrection().label(counts).sql
        selected = f"query_id, doc_id, CAST({self.strength} AS DOUBLE) AS relevance, impressions, clicks"
        return Labels(counts, f"SELECT {selected} FROM ({rates}) AS rates")


@pytest.fixture
def half() -> Iterator[None]:
    """The family with one more member."""
    options = (Option("strength", "What every document gets.", type=float),)
    CORRECTIONS.register("always-half", help="Believes nothing.", options=options)(AlwaysHalf)
    yield
    CORRECTIONS.remove("always-half")


@pytest.fixture
def plain() -> Iterator[None]:
    """One more kind of mixture."""

    @MIXTURES.register("plain", help="Shapeless under another name.")
    def make(*, grades: int = 5, sharing: bool = True) -> MixtureKind:
        return nonparametric()

    yield
    MIXTURES.remove("plain")


@pytest.mark.parametrize(
    ("family", "names"), [(CORRECTIONS, CorrectionName), (MIXTURES, MixtureName), (LAYOUTS, LayoutName)]
)
def test_editors_complete_the_names_of_a_family(family: Family[Any], names: object) -> None:
    assert set(get_args(names)) == set(family.names())


def test_a_correction_from_outside_is_chosen_by_name(half: None) -> None:
    labels = cm.debias(moving_counts(queries=5), correction="always-half", strength=0.25)
    assert set(labels.relevance.tolist()) == {0.25}


def test_a_correction_from_outside_is_in_the_command(half: None, tmp_path: Path) -> None:
    shown = run("debias", "--help").stdout
    assert "always-half" in shown
    assert "--strength" in shown
    moving_counts(queries=5).write(f"{tmp_path}/log.parquet")
    words = ["-o", f"{tmp_path}/labels.csv", "--correction", "always-half", "--strength", "0.75"]
    assert run("debias", f"{tmp_path}/log.parquet", *words).exit_code == 0
    assert (tmp_path / "labels.csv").read_text().splitlines()[1].split(",")[2] == "0.75"


def test_a_correction_without_its_options_is_refused_by_others(half: None) -> None:
    with pytest.raises(SettingError, match=r"^the option strength belongs to the correction always-half, not to coec"):
        cm.debias(moving_counts(queries=5), correction="coec", strength=1.0)


def test_a_mixture_from_outside_is_chosen_by_name(plain: None) -> None:
    counts = moving_counts(queries=30)
    own, known = (cm.debias(counts, mixture=name).relevance for name in ("plain", "nonparametric"))
    assert own.tolist() == known.tolist()
    assert "plain" in run("fit", "--help").stdout


def test_a_mixture_from_outside_has_no_checks_of_a_whole_log(plain: None) -> None:
    counts = moving_counts(queries=30)
    verdict = cm.judge(cm.MixtureCorrection(mixture="plain").fit(counts), counts)
    assert "The assumptions are not checked for a plain mixture." in verdict.sentences


def test_an_option_outside_its_choices_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("debias", "log.csv", "-o", "labels.csv", "--mixture", "poisson")
    choices = "auto, binomial, gaussian, graded, nonparametric"
    expected = f"clickmix: --mixture 'poisson': expected one of {choices}.\n"
    assert failure(capsys, monkeypatch, *words) == expected


def test_members_come_in_one_order() -> None:
    family: Family[object] = Family("toy", first="m")
    for name in ("z", "m", "a"):
        family.register(name, help=name)(object)
    assert family.names() == ("m", "a", "z")
