"""The names of the regressions, for modules that must not load them yet."""

from typing import Literal

RegressionName = Literal["dnn-sigmoid", "dnn-soft-min-max", "lambdamart-sigmoid", "lambdamart-soft-min-max"]
