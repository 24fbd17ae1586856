"""Reports: counts, fits, tables and figures in; one HTML file that needs no network out.

A `Page` has sections; a `Section` has prose, facts, points, figures and tables; a `Figure` has axes labelled in words.
`write_page(page, path)` writes it, `figure_svg(figure, standalone=True)` gives a single figure as an SVG file.
`fit_results(fit)` turns a fit into `Rows` of raw values, which the terminal, the page and JSON draw.
"""

from clickmix.report.figures import Axis, Bars, Figure, Line, Panel
from clickmix.report.log_page import log_page
from clickmix.report.pages import Banner, Listing, Page, Section, page_html, write_page
from clickmix.report.results import fit_results
from clickmix.report.rows import Column, Rows
from clickmix.report.section import SECTIONS, LogReport
from clickmix.report.svg import figure_svg

__all__ = [
    "SECTIONS",
    "Axis",
    "Banner",
    "Bars",
    "Column",
    "Figure",
    "Line",
    "Listing",
    "LogReport",
    "Page",
    "Panel",
    "Rows",
    "Section",
    "figure_svg",
    "fit_results",
    "log_page",
    "page_html",
    "write_page",
]
