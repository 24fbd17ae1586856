"""Corrections: Counts -> Labels. Each has `fit(counts)`, and what that returns has `label(counts)`."""

from clickmix.corrections.affine import AffineCorrection
from clickmix.corrections.clipping import Clip
from clickmix.corrections.coec import ClicksOverExpected
from clickmix.corrections.correction import Correction, Fitted
from clickmix.corrections.fitted import Explanation, MixtureFit
from clickmix.corrections.ips import InversePropensity
from clickmix.corrections.labels import Labels
from clickmix.corrections.mixture import MixtureCorrection
from clickmix.corrections.none import NoCorrection
from clickmix.corrections.oracle import Oracle
from clickmix.corrections.parameters import BiasParameters
from clickmix.corrections.plain_em import PlainEM, PlainEMFit
from clickmix.corrections.regression_em import Iteration, Regression, RegressionEM, RegressionEMFit, Stop

__all__ = [
    "AffineCorrection",
    "BiasParameters",
    "ClicksOverExpected",
    "Clip",
    "Correction",
    "Explanation",
    "Fitted",
    "InversePropensity",
    "Iteration",
    "Labels",
    "MixtureCorrection",
    "MixtureFit",
    "NoCorrection",
    "Oracle",
    "PlainEM",
    "PlainEMFit",
    "Regression",
    "RegressionEM",
    "RegressionEMFit",
    "Stop",
]
