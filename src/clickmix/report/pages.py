"""Pages: titled sections of prose, figures and tables in, one HTML file that needs neither network nor script out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import clickmix
from clickmix.errors import InputError, printable
from clickmix.evaluate import Table
from clickmix.report.figures import Figure
from clickmix.report.svg import figure_svg, style_sheet
from clickmix.storage.atomic import write_atomically


@dataclass(frozen=True)
class Listing:
    """Rows of texts under a head; columns of numbers, given by their index, stand right; notes stand below.

    On a narrow screen a table is moved sideways; with `cards` each row becomes a card of its own instead.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    notes: Sequence[str] = ()
    numbers: frozenset[int] = frozenset()
    cards: bool = False


@dataclass(frozen=True)
class Section:
    """A part of a page, shown in this order: title, paragraphs, facts (name, value), points, figures, tables."""

    title: str
    prose: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    points: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Listing | Table] = ()


@dataclass(frozen=True)
class Page:
    """A whole report: a title, what it is about, and its sections."""

    title: str
    prose: Sequence[str] = ()
    sections: Sequence[Section] = ()


def check_report_extra() -> None:
    """Complain now, not after the work, when what pages are made with is not installed."""
    _jinja()


def page_html(page: Page) -> str:
    """The page as HTML: every text escaped and without control characters, the same page always the same text."""
    jinja = _jinja()
    environment = jinja.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja.StrictUndefined,
    )
    safe = environment.filters["safe"]
    environment.filters |= {
        "shown": printable,
        "svg": lambda figure: safe(figure_svg(figure)),
        "listing": lambda table: _listing(table) if isinstance(table, Table) else table,
    }
    template = environment.from_string((files("clickmix.report") / "page.html").read_text(encoding="utf-8"))
    style = safe(style_sheet("figure.css") + style_sheet("page.css"))
    html: str = template.render(page=page, style=style, version=clickmix.__version__)
    return html


def write_page(page: Page, path: str | Path) -> None:
    """Write a page as one file, whole or not at all."""
    write_atomically(path, page_html(page).encode())


def _listing(table: Table) -> Listing:
    """A table of an evaluation: all but its first column are numbers."""
    head, *rows = table.strings()
    return Listing(head, rows, notes=table.notes, numbers=frozenset(range(1, len(head))))


def _jinja() -> Any:
    try:
        import jinja2
    except ImportError:
        raise InputError(
            "A report is made with jinja2, which is not installed. Install it with: pip install 'clickmix[report]'"
        ) from None
    return jinja2
