"""The settings of the mixture-based correction.   Counts -> MixtureFit -> Labels"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from clickmix.corrections.correction import CORRECTIONS
from clickmix.counts.counts import Counts
from clickmix.errors import SettingError
from clickmix.mixtures.kinds.kind import GRADES, MIXTURES, MixtureKind, WholeLogKind
from clickmix.registry import Option
from clickmix.types import Progress

if TYPE_CHECKING:
    from clickmix.corrections.mixture_based.fit import MixtureFit
    from clickmix.groups.places import Histogram

Prior = Literal["position", "flat"]
Examination = Literal["pbm", "dcm", "ubm"]
OPTIONS = (
    Option("mixture", "What to fit to click rates; auto chooses the number of grades.", choices=MIXTURES),
    Option(
        "prior",
        "Whether better positions hold more relevant documents (position) or not (flat).",
        choices=get_args(Prior),
    ),
    Option(
        "examination",
        "What decides whether people look at a document: its position (pbm), or also what is above it (dcm, ubm).",
        choices=get_args(Examination),
    ),
    Option(
        "judgments", "Judged documents (query_id, doc_id, grade on any scale), to learn what clicks mean.", type=Path
    ),
)


@CORRECTIONS.register(
    "mixture", help="The posterior of a mixture of click rates: the paper's correction.", options=OPTIONS
)
@dataclass(frozen=True)
class MixtureCorrection:
    """Settings of the mixture-based correction.

    mixture       what to fit to click rates. auto: one model of the whole log; held-out clicks choose the number of
                  grades, and what differs between queries and documents. binomial: the same with two grades and
                  queries that are alike, the paper's first. graded: the same with `grades` evenly spaced rates.
                  gaussian: the paper's second, place by place. nonparametric: any distribution, place by place
    prior         position: better positions hold more relevant documents. flat: the same prior everywhere
    sharing       whether neighbouring positions inform each other (auto, binomial, graded)
    examination   what decides whether people look at a document: its position (pbm), or also what is above it
    judgments     a file or frame of judged documents, query_id, doc_id and grade: they decide what clicks, skips,
                  exposure and the prior weigh, if that helps on held-out judged queries (auto, binomial, graded)

    >>> from clickmix import Counts
    >>> counts = Counts.from_arrays(range(80), [0] * 80, [1] * 80, [50] * 80, [25] * 20 + [3] * 60)
    >>> MixtureCorrection(mixture="binomial").fit(counts).label(counts).relevance.round(2)[[0, 79]].tolist()
    [1.0, 0.0]
    """

    saves_model: ClassVar[bool] = True
    gives_verdict: ClassVar[bool] = True

    mixture: str = "auto"
    prior: Prior = "position"
    grades: int = 5
    sharing: bool = True
    examination: Examination = "pbm"
    judgments: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        MIXTURES[self.mixture]
        for name, value, among in (("prior", self.prior, Prior), ("examination", self.examination, Examination)):
            if value not in get_args(among):
                raise SettingError(f"{name} {value!r}: expected one of {', '.join(get_args(among))}.")
        if not (isinstance(self.grades, Integral) and 2 <= self.grades <= GRADES[-1]):
            raise SettingError(f"grades {self.grades!r}: expected a whole number from 2 to {GRADES[-1]}.")
        if self.judgments is not None and (self.needs_lists or not isinstance(self.kind, WholeLogKind)):
            raise SettingError(
                "judgments: only one model of the whole log can be weighed by them. Use the mixture auto, binomial or "
                "graded with sharing and the examination pbm, or leave the judgments out."
            )

    @property
    def kind(self) -> MixtureKind:
        """The kind of mixture, which fits the groups."""
        return MIXTURES[self.mixture].make(grades=self.grades, sharing=self.sharing)

    @property
    def needs_lists(self) -> bool:
        """Whether the correction must know what was above a document."""
        return self.examination != "pbm"

    def fit(self, counts: Counts, *, progress: Progress | None = None) -> MixtureFit:
        """Fit one model to the whole log, or every group by itself."""
        from clickmix.corrections.mixture_based.groups import fit_counts
        from clickmix.counts.judgments import read_grades

        grades = None if self.judgments is None else read_grades(self.judgments)  # complain before the fit
        fitted = fit_counts(self, counts, progress=progress)
        return fitted if grades is None else fitted.with_judgments(counts, grades)

    def fit_histogram(self, histogram: Histogram, *, moving: float) -> MixtureFit:
        """Fit a histogram from elsewhere, where queries are alike; the fit records the share of `moving` documents."""
        from clickmix.corrections.mixture_based.groups import fit_histogram

        if self.judgments is not None:
            raise SettingError("judgments: a histogram does not show which documents were judged. Fit a log.")
        return fit_histogram(self, histogram, moving=moving)
