"""Drawn: results that show themselves in notebooks, and as plots. The report, a later stage, draws them.

class Labels(Drawn): ...      labels._repr_html_() calls clickmix.report.notebook
"""

from __future__ import annotations

import base64
import importlib
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from clickmix.errors import SettingError
from clickmix.storage.atomic import write_atomically


@dataclass(frozen=True)
class Plot:
    """Figures of the report, as SVG: drawn by notebooks, saved with `save`.

    >>> Plot(("Click rates",), ("<svg/>",))
    Plot('Click rates'; save(path) writes .svg or .html)
    """

    titles: tuple[str, ...]
    svgs: tuple[str, ...] = field(repr=False)

    def __repr__(self) -> str:
        return f"Plot({', '.join(map(repr, self.titles))}; save(path) writes .svg or .html)"

    def _repr_html_(self) -> str:
        """Each figure as a separate image, so that styles of the notebook and of the figure do not mix."""
        images = []
        for title, svg in zip(self.titles, self.svgs, strict=True):
            data = base64.b64encode(svg.encode()).decode()
            source = f"data:image/svg+xml;base64,{data}"
            images.append(f'<img src="{source}" alt="{escape(title)}" title="{escape(title)}" width="480">')
        return "\n".join(images)

    def save(self, path: str | Path) -> None:
        """Write one figure as .svg, or all of them as .html."""
        suffix = Path(path).suffix.lower()
        if suffix not in (".svg", ".html"):
            raise SettingError(f"{path}: expected a name ending in .svg or .html.")
        if suffix == ".svg" and len(self.svgs) > 1:
            raise SettingError(f"{path}: these are {len(self.svgs)} figures. Save them as .html.")
        head = '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>clickmix</title>\n'
        text = self.svgs[0] if suffix == ".svg" else f"{head}{self._repr_html_()}\n</html>\n"
        write_atomically(path, text.encode())


class Drawn:
    """A result that notebooks show as HTML."""

    def _repr_html_(self) -> str:
        html: str = report().html(self)
        return html


def report() -> Any:
    """The module that draws results, imported by name, because it belongs to a later stage."""
    return importlib.import_module("clickmix.report.notebook")
