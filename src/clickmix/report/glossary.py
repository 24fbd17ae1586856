"""Glossary: the words of a report and their meanings. The page links a word's first mention to its meaning."""

from __future__ import annotations

from collections.abc import Mapping

GLOSSARY: Mapping[str, str] = {
    "click-through rate": "Clicks divided by impressions.",
    "context": "Columns of the log that change what people look at, such as the device.",
    "expected label error": "How far labels are likely to be from true relevance, as a root mean square (RMSE). 0 is "
    "perfect.",
    "gain in DCG@10": "How much better the first ten results would be if they were sorted by label: expected DCG@10 of "
    "that order, less the mean DCG@10 of the lists as people saw them. A relevant document that moves from far below "
    "to the first place gains 1.",
    "DCG@10": "Discounted cumulative gain of the first ten results: the sum of label / log2(position + 1).",
    "grade": "A level of relevance. With two grades a document is relevant or not.",
    "impression": "One document shown once.",
    "interval": "Where the true relevance lies with 95% probability, if the model holds.",
    "label": "How relevant a document is for a query, from 0 to 1, as far as clicks can tell.",
    "place": "A position, in its context where there is one.",
    "position bias": "People look at the top of a list more than further down, so what is there gets more clicks.",
    "prior": "The mean relevance of the documents at a place, before looking at clicks.",
    "separation": "The share of the uncertainty about relevance that clicks remove: 0% none, 100% all.",
    "sure label": "A label below 0.1, or of 0.9 or more.",
    "trust bias": "People click what is at the top even if it is not relevant, because they trust the engine.",
    "unsure": "Of a label: between 0.1 and 0.9. Of a query: the mean width of its labels' intervals, from 0% to 100%.",
    "verdict": "How far to trust the labels of this log, or of one place.",
}
