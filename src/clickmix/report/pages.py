"""Pages: titled sections of prose, figures and tables in, one HTML file that needs no network out.

The page can be read without JavaScript. Its script adds search, sorting and folding; its policy allows no other script.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import clickmix
from clickmix.errors import printable
from clickmix.evaluate import Table
from clickmix.report.figures import Figure
from clickmix.report.query_list import QueryList, json_line
from clickmix.report.results import Tone
from clickmix.report.rows import Column, Rows
from clickmix.report.svg import escaped, figure_svg, package_file
from clickmix.storage.atomic import write_atomically

PRINTED_RANK = 6  # columns of a higher rank are left out on paper
CODE = r"clickmix (?:compare|counts|debias|explain)\b(?-i: (?:--[a-z-]+|[A-Z]+\b))*|--[a-z][a-z-]+"


@dataclass(frozen=True)
class Listing:
    """A table of texts: a head, rows, and notes below. `numbers` are the indices of columns to align right.

    For results use `Rows`, which keep raw values. With `cards`, each row is a card on a phone.

    >>> Listing(["query", "clicks"], [["red shoes", "12"]], numbers=frozenset({1})).rows
    [['red shoes', '12']]
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    notes: Sequence[str] = ()
    numbers: frozenset[int] = frozenset()
    cards: bool = False


@dataclass(frozen=True)
class Section:
    """A part of a page, in this order: title, paragraphs, facts (name, value), points, queries, figures, tables, terms.

    `rows` are tables of results, `tables` are tables of texts. `folded` shows only the title until the reader opens it.
    `terms` are (word, meaning).

    >>> Section("Clicks", ["People clicked 12 of 100 results."]).title
    'Clicks'
    """

    title: str
    prose: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    points: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Listing | Table] = ()
    rows: Sequence[Rows] = ()
    queries: QueryList | None = None
    terms: Sequence[tuple[str, str]] = ()
    folded: bool = False


@dataclass(frozen=True)
class Banner:
    """The top of a page: a verdict with its colour, a few numbers, what to do next.

    >>> Banner("These labels are trustworthy.", "good", [("sure labels", "98%")]).tone
    'good'
    """

    verdict: str
    tone: Tone
    facts: Sequence[tuple[str, str]] = ()
    next: str = ""
    points: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """A whole report: a title, what it is about, sections; a banner, how it was made, and a glossary.

    >>> page = Page("Results", ["What this is."], [Section("Clicks", ["12 of 100."])])
    >>> [section.title for section in page.sections]
    ['Clicks']
    """

    title: str
    prose: Sequence[str] = ()
    sections: Sequence[Section] = ()
    banner: Banner | None = None
    made: Sequence[tuple[str, str]] = ()
    glossary: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Drawn:
    """A table as the template draws it: columns with the text, help and class of each head; rows of texts."""

    columns: Sequence[tuple[str, str, str]]
    rows: Sequence[Sequence[str]]
    caption: str
    notes: Sequence[str]
    cards: bool


def page_html(page: Page) -> str:
    """The page as HTML, with every text escaped and without control characters. The same page gives the same text.

    >>> "<h1>Results</h1>" in page_html(Page("Results"))
    True
    """
    import jinja2  # here, because it takes a tenth of a second to load

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    safe = environment.filters["safe"]
    environment.filters |= {
        "shown": printable,
        "explained": lambda text, terms: safe(_explained(text, terms)),
        "svg": lambda figure: safe(figure_svg(figure)),
        "drawn": _drawn,
        "embedded": lambda queries: safe(json_line(queries.json())),
        "anchor": _anchor,
    }
    template = environment.from_string(package_file("page.html"))
    script = package_file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    html: str = template.render(
        page=page,
        unseen=lambda: {word.lower(): meaning for word, meaning in page.glossary.items()},
        style=safe(package_file("figure.css") + package_file("page.css")),
        script=safe(script),
        digest=digest,
        version=clickmix.__version__,
    )
    return html


def write_page(page: Page, path: str | Path) -> None:
    """Write a page as one HTML file, whole or not at all.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> write_page(Page("Results"), f"{folder.name}/results.html")
    >>> Path(f"{folder.name}/results.html").read_text()[:15]
    '<!doctype html>'
    >>> folder.cleanup()
    """
    write_atomically(path, page_html(page).encode())


def _drawn(table: Listing | Rows | Table) -> _Drawn:
    if isinstance(table, Rows):
        return _Drawn(list(map(_head, table.columns)), table.texts(), table.caption, table.notes, table.cards)
    if isinstance(table, Table):  # of an evaluation: all but its first column are numbers
        head, *rows = table.strings()
        table = Listing(head, rows, notes=table.notes, numbers=frozenset(range(1, len(head))))
    columns = [(text, "", "number" if i in table.numbers else "") for i, text in enumerate(table.head)]
    return _Drawn(columns, table.rows, table.caption, table.notes, table.cards)


def _head(column: Column) -> tuple[str, str, str]:
    classes = [
        *(["number"] if column.numeric else []),
        *(["outcome"] if column.kind == "outcome" else []),
        *(["spare"] if column.rank > PRINTED_RANK else []),
    ]
    return column.heading, column.help, " ".join(classes)


def _explained(text: str, terms: dict[str, str]) -> str:
    """A text as HTML. Links the first mention of each term and takes it out of `terms`; marks commands as code."""
    html = escaped(text)
    if not terms:
        return html

    def mark(found: re.Match[str]) -> str:
        if found[0].startswith(("--", "clickmix ")):
            return " ".join(f"<code>{word}</code>" for word in found[0].split())  # lines break between them only
        word = found[0].lower()
        word = word if word in terms else word.removesuffix("s")
        if word not in terms:
            return found[0]
        return f'<a class="term" href="#{_anchor(word)}" title="{escape(terms.pop(word))}">{found[0]}</a>'

    words = "|".join(re.escape(word) for word in sorted(terms, key=lambda word: (-len(word), word)))
    return re.sub(rf"{CODE}|(?<![-\w])(?:{words})s?(?!\w)", mark, html, flags=re.IGNORECASE)


def _anchor(word: str) -> str:
    return "term-" + re.sub(r"\W+", "-", word.lower())
