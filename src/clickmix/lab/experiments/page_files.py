"""Outputs: a page in; its tables as text, Markdown and LaTeX, its figures as SVG, and all of it as HTML out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clickmix.evaluate import Table
from clickmix.evaluate.tables import escape_markdown, folded_lines
from clickmix.report import Figure, Listing, Page, figure_svg, write_page
from clickmix.report.rows import json_text
from clickmix.storage.atomic import write_atomically


def write_outputs(page: Page, folder: Path, name: str, results: dict[str, Any]) -> list[Path]:
    """Write NAME.json, NAME.md, NAME.html, NAME.tex for tables and NAME.svg for figures, always with the same bytes."""
    figures = [figure for section in page.sections for figure in section.figures]
    pictures = {f"{name}-{i}.svg" if i > 1 else f"{name}.svg": figure for i, figure in enumerate(figures, start=1)}
    texts = {f"{name}.json": json_text(results), f"{name}.md": markdown(page, pictures)}
    if any(isinstance(table, Table) for section in page.sections for table in section.tables):
        texts[f"{name}.tex"] = latex(page)
    texts |= {file: figure_svg(figure, standalone=True) for file, figure in pictures.items()}
    for file, text in texts.items():
        write_atomically(folder / file, text.encode())
    write_page(page, folder / f"{name}.html")
    return [folder / file for file in (*texts, f"{name}.html")]


def text(page: Page, *, width: int | None = None) -> str:
    """The tables for a terminal of this width."""
    parts = []
    for section in page.sections:
        for table in section.tables:
            title = section.title + (f": {table.caption}" if isinstance(table, Listing) and table.caption else "")
            parts.append(f"{title}\n\n{_table_text(table, width)}")
    return "\n".join(parts)


def markdown(page: Page, pictures: dict[str, Figure]) -> str:
    """The page with links to its pictures."""
    files = {id(figure): file for file, figure in pictures.items()}
    lines = [f"# {page.title}", "", *_paragraphs(page.prose)]
    for section in page.sections:
        lines += [f"## {section.title}", "", *_paragraphs(section.prose)]
        lines += [*(f"- {escape_markdown(point)}" for point in section.points), *([""] if section.points else [])]
        for figure in section.figures:
            lines += [f"![{figure.title}]({files[id(figure)]})", "", *_paragraphs([figure.note])]
        for table in section.tables:
            lines += [table.markdown() if isinstance(table, Table) else _listing_markdown(table)]
    return "\n".join(lines).rstrip("\n") + "\n"


def latex(page: Page) -> str:
    """The tables with tests, each after a comment that names it; other tables are in the Markdown file."""
    return "\n".join(
        f"% {section.title}\n{table.latex()}"
        for section in page.sections
        for table in section.tables
        if isinstance(table, Table)
    )


def _paragraphs(texts: Sequence[str]) -> list[str]:
    return [line for text in texts if text for line in (escape_markdown(text), "")]


def _table_text(table: Table | Listing, width: int | None) -> str:
    if isinstance(table, Table):
        return table.text(width=width)
    texts = frozenset(range(len(table.head))) - table.numbers
    lines = folded_lines([table.head, *table.rows], width=width, left=texts)
    return "\n".join([*lines, *(["", *table.notes] if table.notes else [])]) + "\n"


def _listing_markdown(listing: Listing) -> str:
    rule = ["---:" if i in listing.numbers else "---" for i in range(len(listing.head))]
    texts = [[escape_markdown(cell) for cell in row] for row in (listing.head, *listing.rows)]
    rows = ["| " + " | ".join(row) + " |" for row in (texts[0], rule, *texts[1:])]
    caption = [f"{listing.caption}:", ""] if listing.caption else []
    return "\n".join([*caption, *rows, "", *_paragraphs(listing.notes)])
