"""The pictures of README and docs, from the log that `clickmix demo` makes: docs/pictures/*.svg, report.png."""

from __future__ import annotations

import tempfile
from pathlib import Path

import measuring  # noqa: F401  lets `browser` be found
from browser import started
from clickmix.counts.count import count
from clickmix.groups.places import read_histogram
from clickmix.lab.demo import Demo, run_demo
from clickmix.lab.demo_page import calibration_figure
from clickmix.report import Figure, figure_svg
from clickmix.report.mixture_figures import group_figures, rates_figures
from clickmix.storage.atomic import write_atomically

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


def figures(demo: Demo, log: Path) -> dict[str, Figure]:
    """The figures by the name of their file."""
    third = group_figures(demo.fit, read_histogram(count(log)))[2]
    return {"rates": rates_figures(demo.fit)[0], "position-3": third, "known-truth": calibration_figure(demo)}


def draw_report(report: Path, picture: Path) -> None:
    """What a browser shows first of a report."""
    with tempfile.TemporaryDirectory() as profile, started(Path(profile)) as browser:
        browser.open(report, width=1280)
        browser.picture(picture, height=1085)


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        demo = run_demo(Path(folder), say=print)
        for name, figure in figures(demo, Path(folder) / "clicks.parquet").items():
            write_atomically(PICTURES / f"{name}.svg", figure_svg(figure, standalone=True).encode())
        draw_report(Path(folder) / "report.html", PICTURES / "report.png")
