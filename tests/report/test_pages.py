"""Pages: every text is shown as text, nothing is loaded, only its own script runs; a missing extra is reported."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clickmix.errors import printable
from clickmix.evaluate import tabulate
from clickmix.report import (
    Axis,
    Banner,
    Column,
    Figure,
    Line,
    Listing,
    Page,
    Panel,
    Rows,
    Section,
    page_html,
    write_page,
)
from clickmix.report.query_list import QueryList
from clickmix.report.query_numbers import ShownDocument, ShownQuery
from clickmix.report.rows import cut
from oracles_report import Tags, tags, text

ATTACKS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><script>alert(1)</script>",
    "</title><svg onload=alert(1)>",
    "'); alert(1); ('",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;",
    "\x00\x1b[31m\u202e\ud800",
]


def page_with(word: str) -> Page:
    """A page that shows a text wherever a text can stand."""
    document = ShownDocument(word, 0.5, 0.25, 0.75, 10, 5, 1.0, 1, ((1, 10, 5),))
    queries = QueryList([ShownQuery(word, 10, 5, 1, 0.5, 0.1, (document,))], {1: (0.1, 0.9)})
    rows = Rows((Column("name", "text", word, word), Column("outcome", "outcome")), ((word, "pass"),), word, [word])
    figure = Figure(word, Axis(word), [Panel(Axis(word), [Line(word, [1, 2], [1, 2])])], note=word)
    listing = Listing([word, word], [[word, word]], word, [word], frozenset({1}), cards=True)
    section = Section(
        word, [word], [(word, word)], [word], [figure], [listing], [rows], queries, [(word, word)], folded=True
    )
    banner = Banner(word, "note", [(word, word)], word, [word])
    return Page(word, [word], [section] * 3, banner, [(word, word)])


HARMLESS = tags(page_html(page_with("x")))


@given(st.text(min_size=1, max_size=40))
@settings(max_examples=50, deadline=None)
@example(ATTACKS[0])
@example(ATTACKS[1])
@example(ATTACKS[2])
@example(ATTACKS[3])
@example(ATTACKS[4])
@example(ATTACKS[5])
@example(ATTACKS[6])
@example(ATTACKS[7])
def test_any_text_gives_the_tags_of_a_harmless_one(word: str) -> None:
    assert tags(page_html(page_with(word))) == HARMLESS


def test_a_text_is_shown_as_it_is_but_for_control_characters() -> None:
    shown = text(page_html(Page("<b>&amp;\x1b[31m\u202eabc")))
    assert shown.startswith(r"Skip to the content <b>&amp;\x1b[31m\u202eabc")


def test_a_page_loads_nothing() -> None:
    html = page_html(page_with("x"))
    assert set(re.findall(r"https?://[^\"'\s<]+", html)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(
        r"<script [^t]|\son\w+=|@import|url\(|<iframe|<object|<link(?! rel=\"icon\" href=\"data:,\")", html
    )


def test_the_policy_lets_only_the_pages_own_script_run() -> None:
    html = page_html(page_with("x"))
    (script,) = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert (
        f"content=\"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'\""
    ) in html
    assert not re.search(r"\beval\b|innerHTML|Function\(|document\.write|fetch\(|XMLHttpRequest", script)


@given(st.text(max_size=40))
@settings(max_examples=50, deadline=None)
@example("</script><script>alert(1)</script>")
@example("<!--<script>")
def test_embedded_data_comes_back_as_it_was_and_cannot_end_its_element(word: str) -> None:
    html = page_html(page_with(word))
    data = re.findall(r'<script type="application/json">(.*?)</script>', html, flags=re.DOTALL)[0]
    assert not set("<>&") & set(data)
    (query,) = json.loads(data)["queries"]
    shown = printable(cut(word))
    assert query == [shown, 10, 5, 1, 0.5, 0.1, [[shown, 0.5, 0.25, 0.75, 10, 5, 1.0, 1, [[1, 10, 5]]]]]


def test_terms_are_explained_once_a_section_and_options_are_code() -> None:
    section = Section("s", ["A gain in DCG@10 beats another gain in DCG@10; use --mixture or --gain."])
    page = Page("t", sections=[section, section], glossary={"gain in DCG@10": 'More "relevance" <b>', "mixture": "m"})
    html = page_html(page)
    link = '<a class="term" href="#term-gain-in-dcg-10" title="More &quot;relevance&quot; &lt;b&gt;">gain in DCG@10</a>'
    once = f"<p>A {link} beats another gain in DCG@10; use <code>--mixture</code> or <code>--gain</code>.</p>"
    assert html.count(once) == 2


def test_commands_are_code_that_breaks_between_words_only() -> None:
    prose = ["clickmix estimates it. Run clickmix compare LOG --judgments FILE to see."]
    html = page_html(Page("t", [], [Section("s", prose)], glossary={"gain": "How much."}))
    words = " ".join(f"<code>{word}</code>" for word in ("clickmix", "compare", "LOG", "--judgments", "FILE"))
    assert f"<p>clickmix estimates it. Run {words} to see.</p>" in html


def test_the_same_page_is_the_same_text() -> None:
    assert page_html(page_with("x")) == page_html(page_with("x"))


def test_a_table_of_an_evaluation_is_shown_with_its_marks_and_notes() -> None:
    runs = np.array([0.5, 0.6, 0.55])
    table = tabulate(
        {"none": {"ndcg@10": runs}, "clickmix": {"ndcg@10": runs + np.array([0.2, 0.21, 0.2])}}, baseline="none"
    )
    shown = text(page_html(Page("t", sections=[Section("s", tables=[table])])))
    assert "ranker ndcg@10 w/t/l none 0.5500 clickmix 0.7533* 3/0/0" in shown
    assert "* p < .01, † p < .1: different from none (paired t-test)." in shown


def test_numbers_stand_right() -> None:
    html = page_html(
        Page("t", sections=[Section("s", tables=[Listing(["a", "b"], [["x", "1"]], numbers=frozenset({1}))])])
    )
    assert '<td data-name="a">x</td><td data-name="b" class="number">1</td>' in html


def test_every_figure_has_its_caption() -> None:
    parser = Tags()
    parser.feed(page_html(page_with("x")))
    names = [tag for tag, _ in parser.found]
    assert names[names.index("figure") :][:2] == ["figure", "figcaption"]


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    write_page(Page("héllo"), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == page_html(Page("héllo")).encode()
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]
