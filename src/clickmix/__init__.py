"""clickmix turns a biased click log into relevance labels you can train a ranker on, and shows how sure it is.

>>> import clickmix as cm
>>> counts = cm.Counts.from_arrays(["q"] * 2, ["a", "b"], [1, 2], [100, 100], [60, 2])
>>> cm.debias(counts, correction="none").relevance.tolist()
[0.6, 0.02]
"""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from clickmix.comparing.comparison import Comparison as Comparison
    from clickmix.comparing.comparison import compare as compare
    from clickmix.corrections.affine import AffineCorrection as AffineCorrection
    from clickmix.corrections.check import Check as Check
    from clickmix.corrections.check import Judgement as Judgement
    from clickmix.corrections.check import Violation as Violation
    from clickmix.corrections.coec import ClicksOverExpected as ClicksOverExpected
    from clickmix.corrections.correction import Labels as Labels
    from clickmix.corrections.ips import InversePropensity as InversePropensity
    from clickmix.corrections.mixture import MixtureCorrection as MixtureCorrection
    from clickmix.corrections.mixture_based.fit import MixtureFit as MixtureFit
    from clickmix.corrections.none import NoCorrection as NoCorrection
    from clickmix.corrections.oracle import Oracle as Oracle
    from clickmix.corrections.parameters import BiasParameters as BiasParameters
    from clickmix.corrections.plain_em import PlainEM as PlainEM
    from clickmix.corrections.plain_em import PlainEMFit as PlainEMFit
    from clickmix.corrections.regression_em import RegressionEM as RegressionEM
    from clickmix.corrections.regression_em import RegressionEMFit as RegressionEMFit
    from clickmix.counts.count import count as count
    from clickmix.counts.counts import Counts as Counts
    from clickmix.drawn import Plot as Plot
    from clickmix.errors import ClickmixError as ClickmixError
    from clickmix.errors import EngineError as EngineError
    from clickmix.errors import FormatError as FormatError
    from clickmix.errors import InputError as InputError
    from clickmix.errors import SettingError as SettingError
    from clickmix.groups.observations import Observations as Observations
    from clickmix.judging.verdict import LogVerdict as LogVerdict
    from clickmix.judging.verdict import judge as judge
    from clickmix.lab.affine_error import affine_error as affine_error
    from clickmix.lab.affine_error import wrong_parameters as wrong_parameters
    from clickmix.mixtures.impressions_needed import expected_error as expected_error
    from clickmix.mixtures.impressions_needed import impressions_for as impressions_for
    from clickmix.mixtures.mixture import Group as Group
    from clickmix.mixtures.mixture import Mixture as Mixture
    from clickmix.mixtures.mixture import Verdict as Verdict
    from clickmix.mixtures.single import fit_group as fit_group
    from clickmix.pipeline import debias as debias
    from clickmix.pipeline import explain as explain
    from clickmix.report.explain import Explanation as Explanation

__version__ = "0.1.0"

# The public names in the order of the walk, each with its module. They are imported when first used, so that the
# command answers at once.
_MODULES = {
    "count": "clickmix.counts.count",
    "Counts": "clickmix.counts.counts",
    "Observations": "clickmix.groups.observations",
    "fit_group": "clickmix.mixtures.single",
    "Mixture": "clickmix.mixtures.mixture",
    "Verdict": "clickmix.mixtures.mixture",
    "expected_error": "clickmix.mixtures.impressions_needed",
    "impressions_for": "clickmix.mixtures.impressions_needed",
    "MixtureCorrection": "clickmix.corrections.mixture",
    "MixtureFit": "clickmix.corrections.mixture_based.fit",
    "Group": "clickmix.mixtures.mixture",
    "NoCorrection": "clickmix.corrections.none",
    "BiasParameters": "clickmix.corrections.parameters",
    "AffineCorrection": "clickmix.corrections.affine",
    "InversePropensity": "clickmix.corrections.ips",
    "ClicksOverExpected": "clickmix.corrections.coec",
    "Oracle": "clickmix.corrections.oracle",
    "PlainEM": "clickmix.corrections.plain_em",
    "PlainEMFit": "clickmix.corrections.plain_em",
    "RegressionEM": "clickmix.corrections.regression_em",
    "RegressionEMFit": "clickmix.corrections.regression_em",
    "affine_error": "clickmix.lab.affine_error",
    "wrong_parameters": "clickmix.lab.affine_error",
    "Labels": "clickmix.corrections.correction",
    "Check": "clickmix.corrections.check",
    "Violation": "clickmix.corrections.check",
    "judge": "clickmix.judging.verdict",
    "LogVerdict": "clickmix.judging.verdict",
    "Judgement": "clickmix.corrections.check",
    "debias": "clickmix.pipeline",
    "explain": "clickmix.pipeline",
    "Explanation": "clickmix.report.explain",
    "Plot": "clickmix.drawn",
    "compare": "clickmix.comparing.comparison",
    "Comparison": "clickmix.comparing.comparison",
    "ClickmixError": "clickmix.errors",
    "InputError": "clickmix.errors",
    "EngineError": "clickmix.errors",
    "FormatError": "clickmix.errors",
    "SettingError": "clickmix.errors",
}

__all__ = [*_MODULES]


def __getattr__(name: str) -> _typing.Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'clickmix' has no attribute {name!r}")
    value = getattr(_importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
