"""Results in shells and notebooks: texts that say something, HTML that is safe anywhere, the report's own figures."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import clickmix as cm
from clickmix.errors import InputError, SettingError
from clickmix.evaluate import tabulate
from clickmix.judging.changes import labels_moved, open_labels
from clickmix.report import figure_svg
from clickmix.report.mixture_figures import rates_figures
from simulation import simulated


@pytest.fixture(scope="module")
def counts() -> cm.Counts:
    return simulated(eta=1, clicks=5_000, seed=0, queries=60, positions=4).counts()


@pytest.fixture(scope="module")
def fit(counts: cm.Counts) -> cm.MixtureFit:
    return cm.MixtureCorrection().fit(counts)


def well_formed(html: str) -> ET.Element:
    """HTML of notebooks as XML: every element is closed but images."""
    closed = re.sub("(<img [^>]*)>", r"\1/>", html)
    return ET.fromstring(f"<div>{closed}</div>")


def test_labels_show_the_first_ones_once_they_are_known(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    labels = fit.label(counts)
    assert repr(labels).startswith("Labels(not computed yet; head(), query(text), ")
    assert len(labels) == 240
    shown = repr(labels).splitlines()
    assert shown[0].split() == ["query", "document", "label", "0", "to", "1", "impressions", "clicks"]
    assert shown[1].split()[:2] == ["0", "1"]
    assert shown[-1] == "10 of 240 labels."
    assert len(shown) == 12


@pytest.mark.parametrize("most", [-1, "x", 2.5, None])
def test_a_number_of_labels_that_cannot_be(counts: cm.Counts, fit: cm.MixtureFit, most: Any) -> None:
    with pytest.raises(cm.SettingError) as caught:
        fit.label(counts).head(most)
    assert str(caught.value) == f"head({most!r}): expected a whole number of labels, from 0."


def test_parts_of_labels_are_labels(counts: cm.Counts, fit: cm.MixtureFit) -> None:
    labels = fit.label(counts)
    assert labels.head(3).doc_id.tolist() == labels.doc_id[:3].tolist()
    assert labels.head().relevance.tolist() == labels.relevance[:5].tolist()
    assert [len(repr(labels.head(most)).splitlines()) for most in (3, 20, 21)] == [4, 21, 12]
    assert len(repr(labels.query(3)).splitlines()) == 1 + (labels.query_id == 3).sum()
    third = labels.query_id == 3
    for asked in (3, "3"):
        assert labels.query(asked).doc_id.tolist() == labels.doc_id[third].tolist()
    assert len(labels.query("nobody asked")) == 0
    assert repr(labels.query("nobody asked")).endswith("No labels.")
    assert (labels.low <= labels.relevance).all()
    assert (labels.high >= labels.relevance).all()


def test_labels_without_intervals_say_so(counts: cm.Counts) -> None:
    labels = cm.debias(counts, correction="none")
    with pytest.raises(InputError, match="low: this correction gives labels without intervals"):
        _ = labels.low
    assert "0 to 1" not in labels._repr_html_()


def test_notebooks_show_every_result_as_html(counts: cm.Counts, fit: cm.MixtureFit, tmp_path: Path) -> None:
    labels, verdict = fit.label(counts), cm.judge(fit, counts)
    labels.write(tmp_path / "labels.csv")
    moved = labels_moved(labels, open_labels(tmp_path / "labels.csv", counts.engine))
    table = tabulate({"<b>a</b>": {"ndcg@10": [0.5, 0.7]}})
    for result in (labels, fit, verdict, moved, table, cm.explain(counts, 3, fit=fit)):
        page = well_formed(result._repr_html_())
        assert "".join(page.itertext()).strip()
        assert [element.tag for element in page.iter() if element.tag in ("script", "style", "link", "img")] == []
    assert "<b>a" not in table._repr_html_()
    assert repr(table) == str(table)
    assert repr(verdict).startswith(f"LogVerdict: {verdict}\n")


def test_plots_are_the_figures_of_the_report(counts: cm.Counts, fit: cm.MixtureFit, tmp_path: Path) -> None:
    plot = fit.plot()
    assert plot.svgs[0] == figure_svg(rates_figures(fit)[0], standalone=True)
    assert plot.titles[0] == "Click rate of relevant and other documents"
    page = well_formed(plot._repr_html_())
    assert [image.get("alt") for image in page.iter("img")] == list(plot.titles)
    plot.save(tmp_path / "fit.html")
    assert (tmp_path / "fit.html").read_text().count("<img ") == len(plot.svgs) == 2
    distribution = fit.label(counts).plot()
    distribution.save(tmp_path / "labels.svg")
    ET.parse(tmp_path / "labels.svg")
    with pytest.raises(SettingError, match=r"these are 2 figures\. Save them as \.html\."):
        plot.save(tmp_path / "fit.svg")
    with pytest.raises(SettingError, match=r"expected a name ending in \.svg or \.html"):
        plot.save(tmp_path / "fit.png")
    assert (
        repr(distribution)
        == "Plot('Labels, and the click-through rates they replace'; save(path) writes .svg or .html)"
    )
