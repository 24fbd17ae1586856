"""A ranker -> the model of OpenSearch's LTR plugin: the same as Elasticsearch's, but for other versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clickmix.export.elasticsearch_ltr import ElasticsearchLTR, MissingValues
from clickmix.export.models import MODEL_OPTIONS
from clickmix.export.target import EXPORTS
from clickmix.export.trees import Trees


@EXPORTS.register("opensearch-ltr", help="a model of OpenSearch's LTR plugin", options=MODEL_OPTIONS)
@dataclass(frozen=True, kw_only=True)
class OpenSearchLTR(ElasticsearchLTR):
    """The plain array of trees."""

    engine = "opensearch-ltr"

    def readings(self, trees: Trees) -> Sequence[MissingValues]:
        """How versions of OpenSearch read missing values."""
        return (
            MissingValues("OpenSearch before 3.2", "as 0", trees.missing_is_zero),
            MissingValues("OpenSearch 3.2 to 3.7", "as going right at every split", trees.missing_is_right),
            MissingValues("OpenSearch 3.8 and newer", "where each split says", True),
        )
