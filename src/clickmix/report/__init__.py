"""Reports: counts, fits, tables and figures in; one HTML file that needs neither network nor script out.

A `Page` has sections; a `Section` has prose, facts, points, figures and tables; a `Figure` has axes labelled in words.
`write_page(page, path)` writes it, `figure_svg(figure, standalone=True)` gives a single figure as an SVG file.
"""

from clickmix.report.figures import Axis, Bars, Figure, Line, Panel
from clickmix.report.log_page import log_page
from clickmix.report.pages import Listing, Page, Section, check_report_extra, page_html, write_page
from clickmix.report.svg import figure_svg

__all__ = [
    "Axis",
    "Bars",
    "Figure",
    "Line",
    "Listing",
    "Page",
    "Panel",
    "Section",
    "check_report_extra",
    "figure_svg",
    "log_page",
    "page_html",
    "write_page",
]
