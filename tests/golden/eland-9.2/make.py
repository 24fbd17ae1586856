# mypy: ignore-errors
"""Made `definition.json` of the ranker beside it, in an environment with eland 9.2.0, which needs pandas before 3.

pip install eland lightgbm && python make.py
"""

import json
from pathlib import Path

import lightgbm
from eland.ml.transformers.lightgbm import LGBMForestTransformer

HERE = Path(__file__).parent


class LambdaRankTransformer(LGBMForestTransformer):
    """eland serializes a booster of LGBMRegressor; a ranker's trees are added in the same way."""

    def check_model_booster(self) -> None:
        """Any booster of trees."""

    def is_objective_supported(self) -> bool:
        """Whether trees are just added: lambdarank's are."""
        return True

    def determine_target_type(self) -> str:
        """A number."""
        return "regression"

    def build_aggregator_output(self) -> dict[str, object]:
        """The sum of the trees."""
        return {"weighted_sum": {}}


if __name__ == "__main__":
    (text,) = (HERE / "ranker").glob("model.*.txt")
    booster = lightgbm.Booster(model_file=str(text))
    names = json.loads((HERE / "ranker" / "ranker.json").read_text())["payload"]["features"]
    definition = LambdaRankTransformer(booster, names).transform().serialize_model()
    (HERE / "definition.json").write_text(json.dumps(definition, indent=1, sort_keys=True) + "\n")
