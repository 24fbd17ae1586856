"""A ranker -> LightGBM's text model, with the names of the features."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from clickmix.errors import InputError
from clickmix.export.models import ModelFiles, ModelTarget
from clickmix.export.target import EXPORTS
from clickmix.rankers import load_ranker

NOT_IN_NAMES = re.compile(r'[\s",:\[\]{}]')  # LightGBM separates names by blanks, and refuses JSON's characters


@EXPORTS.register("lightgbm", help="LightGBM's text model, for anything that reads it")
@dataclass(frozen=True, kw_only=True)
class LightGBM(ModelTarget):
    """The trees as they were trained; only the line with the features' names is new."""

    limits = 'Feature names without blanks and " , : [ ] { }.'
    titles = ".*"  # the text has no name

    def files(self, source: Path, title: str, output: Path) -> ModelFiles:
        """The text."""
        ranker = load_ranker(source)
        text = getattr(ranker, "trees_text", None)
        if text is None:
            raise InputError(
                f"{source}: this ranker has no trees, and lightgbm takes nothing else. Export it --to onnx."
            )
        names = ranker.feature_names
        for name in names:
            if NOT_IN_NAMES.search(name):
                raise InputError(f"{name!r}: LightGBM accepts no blanks and no \" , : [ ] {{ }} in a feature's name.")
        renamed = re.sub(r"^feature_names=.*$", lambda _: "feature_names=" + " ".join(names), text, count=1, flags=re.M)
        return ModelFiles(renamed.encode(), {}, (f"LightGBM's text model of {len(names):,} features in {output}.",))
