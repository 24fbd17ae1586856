"""What the site adds to the pages: files they link to outside docs/, the notebook as a page, the Python reference.

mkdocs runs the functions, and mkdocstrings the class.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "CITATION.cff", "benchmarks/results")


class Examples(griffe.Extension):
    """Examples in docstrings are code: Markdown would take `>>>` for a quotation in a quotation in a quotation."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the examples of an object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring with its examples in fences, up to the next empty line each, without notes to doctest."""
    paragraphs = re.split(r"\n[ \t]*\n", re.sub(r" +# doctest: .*", "", text))
    return "\n\n".join(f"```pycon\n{each}\n```" if each.lstrip().startswith(">>> ") else each for each in paragraphs)


def on_files(files: Files, config: Any) -> Files:
    """Add what lies outside docs/; a folder becomes a page that lists its files."""
    notebook = files.get_file_from_path("tutorial.ipynb")
    if notebook is not None:
        files.append(File.generated(config, "tutorial.md", content=notebook_page(notebook.content_string)))
    for name in OUTSIDE:
        for path in [ROOT / name, *sorted((ROOT / name).rglob("*"))]:
            address = path.relative_to(ROOT).as_posix()
            if path.is_dir():
                names = sorted(f"{each.name}/index.md" if each.is_dir() else each.name for each in path.iterdir())
                listed = "".join(f"- [{each.removesuffix('/index.md')}]({each})\n" for each in names)
                files.append(File.generated(config, f"{address}/index.md", content=f"# {path.name}\n\n{listed}"))
            else:
                files.append(File.generated(config, address, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links of the repository become links of the site, and `<!-- names of X -->` the reference of X.

    GitHub wants a bar in the code of a table escaped; the site would show the backslash. Links that are called after
    their file are called after their page.
    """
    rows = (re.sub(r"`[^`]+`", lambda code: code[0].replace(r"\|", "|"), row) for row in markdown.split("\n"))
    markdown = "\n".join(rows)
    markdown = re.sub(r"""(\]\(|src=")(?:\.\./|docs/)""", r"\1", markdown)
    markdown = re.sub(r"\]\((benchmarks/results[\w/]*)\)", r"](\1/index.md)", markdown)
    markdown = re.sub(r"\[(?:docs/)?([a-z-]+\.md)\](?=\(\1)", lambda found: f"[{title(found[1])}]", markdown)
    markdown = markdown.replace("](tutorial.ipynb)", "](tutorial.md)")
    return re.sub(r"<!-- names of ([\w.]+) -->", lambda found: reference(found[1]), markdown)


def title(name: str) -> str:
    """The heading of a page; the name of a file that is no page."""
    page = ROOT / "docs" / name
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") if page.is_file() else name


def reference(package: str) -> str:
    """An entry for each public name of a package, in the order of its sources where it has one."""
    module = importlib.import_module(package)
    names = getattr(module, "_MODULES", None) or module.__all__
    return "\n\n".join(f"::: {package}.{name}" for name in names)


def notebook_page(text: str) -> str:
    """A notebook as Markdown: its texts, its code, and what the code gave."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            parts.append(output_text(output))
    return "\n\n".join(parts) + "\n"


def output_text(output: dict[str, Any]) -> str:
    """What a cell gave: a page or a drawing as it is, otherwise text."""
    data = output.get("data", {})
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            plain = "".join(data[kind]).replace('border="1" class="dataframe"', "")  # the site has its own style
            return f'<div class="output">\n{plain}\n</div>'
    return f"```text\n{''.join(output.get('text', data.get('text/plain', ''))).rstrip()}\n```"
