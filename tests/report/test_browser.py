"""The report in a real browser: nothing is loaded, nothing complains, all can be seen on a phone, a desk and paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import clickmix as cm
from browser import AXE, PROGRAM, Browser, started
from clickmix.errors import printable
from clickmix.judging.changes import Moved
from clickmix.lab.collections import synthetic_collection
from clickmix.lab.experiments import Request
from clickmix.lab.experiments.paper import FIGURE2
from clickmix.report import log_page, write_page
from clickmix.report.rows import cut

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: the report is not tried in a browser")

HARM = "window.harmed=1;document.title='harmed'"
HOSTILE = [
    f"<script>{HARM}</script>",
    f'"><img src="https://example.com/x.png" onerror="{HARM}">',
    f"</td></table></style></title><svg onload={HARM}>",
    f"<a href='javascript:{HARM}'>x</a><style>*{{display:none}}</style>",
    "\x00\x07\x1b[2J\u202egnp.exe\u200f\r\n",
    "שלום עולם 123 مرحبا",
    "w" * 5000,
    "https://example.com/" + "a/b-" * 40,
    "👩‍👩‍👧 e\u0301",
]
WIDTHS = {"phone": 390, "tablet": 768, "desktop": 1400}
# Of every figure: left, right, width and height of its box; and whether each text in it lies within it.
UNFOLD = "document.querySelector('.query button').click(); document.querySelector('#unfold').click()"
# Elements that reach beyond the page, but for what lies in a box that scrolls by itself.
TOO_WIDE = """[...document.querySelectorAll('body *')].filter(element => !element.closest('.scroll *, .skip') &&
  element.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(element => element.outerHTML)"""
BOXES = """[...document.querySelectorAll('svg.figure')].map(figure => {
  const box = figure.getBoundingClientRect();
  const out = [...figure.querySelectorAll('text')].filter(text => {
    const t = text.getBoundingClientRect();
    return t.left < box.left - 1 || t.right > box.right + 1 || t.bottom > box.bottom + 1;
  }).map(text => text.textContent);
  return {left: box.left, right: box.right, width: box.width, height: box.height, out,
          drawn: figure.querySelectorAll('.line, .bar').length};
})"""


def hostile_report(path: Path) -> Path:
    """The report on a log in which hostile documents are those that the correction moves most."""
    rng = np.random.default_rng(0)
    position, documents = np.repeat([1, 2, 9], 200), 600
    relevant = rng.random(documents) < 0.3
    rates = np.where(relevant, np.repeat([0.95, 0.5, 0.2], 200), np.repeat([0.6, 0.2, 0.02], 200))
    clicks = rng.binomial(200, rates)
    names = np.array([f"document {i}" for i in range(documents)], dtype=object)
    much = np.flatnonzero(~relevant & (position == 1))[: len(HOSTILE)]
    little = np.flatnonzero(relevant & (position == 9))[: len(HOSTILE)]
    names[much], names[little], clicks[much], clicks[little] = HOSTILE, HOSTILE, 145, 22
    device = np.where(np.arange(documents) % 2, HOSTILE[1], HOSTILE[6])
    columns = (names, names[::-1], position, np.full(documents, 200), clicks)
    counts = cm.Counts.from_arrays(*(column.tolist() for column in columns), device=device.tolist())
    fitted = cm.MixtureCorrection("binomial", sharing=False).fit(counts)
    page = log_page(counts, fitted, sources=HOSTILE, correction="mixture", command=HOSTILE, date="2026-11-16")
    write_page(page, path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Browser]:
    with started(folder / "profile") as running:
        yield running


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    return hostile_report(folder / "report.html")


def test_the_browser_notices_what_a_page_does(browser: Browser, folder: Path) -> None:
    """Else the tests below could not fail."""
    bad = folder / "bad.html"
    bad.write_text(
        "<meta charset=utf-8><script>console.error('oh')</script><img src='missing.png'><svg class=figure width=2000>"
        "<text x=2100 y=5>far</text></svg>"
    )
    browser.open(bad, width=360)
    assert [Path(address).name for address in browser.requests()] == ["bad.html", "missing.png"]
    assert browser.complaints()
    assert browser.evaluate("document.documentElement.scrollWidth") > 360
    assert browser.evaluate(BOXES)[0]["out"] == ["far"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
class TestOnScreen:
    """Each width and colour scheme."""

    def test_only_the_file_itself_is_loaded_and_nothing_complains(
        self, browser: Browser, page: Path, width: int, dark: bool
    ) -> None:
        browser.open(page, width=width, dark=dark)
        assert browser.requests() == [page.resolve().as_uri()]
        assert browser.complaints() == []

    def test_every_figure_can_be_seen_whole(self, browser: Browser, page: Path, width: int, dark: bool) -> None:
        browser.open(page, width=width, dark=dark)
        browser.evaluate(UNFOLD)
        figures = browser.evaluate(BOXES)
        assert len(figures) >= 8
        assert [f for f in figures if f["left"] < 0 or f["right"] > width] == []
        assert min(f["width"] for f in figures) >= 300
        assert min(f["height"] for f in figures) >= 150
        assert min(f["drawn"] for f in figures) >= 1
        assert [f["out"] for f in figures if f["out"]] == []

    def test_nothing_has_to_be_moved_sideways(self, browser: Browser, page: Path, width: int, dark: bool) -> None:
        browser.open(page, width=width, dark=dark)
        browser.evaluate(UNFOLD)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert browser.evaluate(TOO_WIDE) == []
        if width >= 1400:  # on a desk no table either
            hidden = "[...document.querySelectorAll('.scroll')].map(t => t.scrollWidth - t.clientWidth)"
            assert set(browser.evaluate(hidden)) == {0}

    def test_text_stands_out_from_the_paper(self, browser: Browser, page: Path, width: int, dark: bool) -> None:
        browser.open(page, width=width, dark=dark)
        paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(21, 23, 26)" if dark else "rgb(255, 255, 255)")
        assert browser.evaluate("getComputedStyle(document.querySelector('svg text')).fill") != paper


def graded_report(path: Path) -> None:
    """The report on a log of five grades at six positions."""
    rng = np.random.default_rng(0)
    position = np.repeat(np.arange(1, 7), 300)
    clicks = rng.binomial(400, (0.1 + 0.2 * rng.integers(0, 5, 1800)) / position)
    counts = cm.Counts.from_arrays(np.arange(1800), np.arange(1800), position, np.full(1800, 400), clicks)
    write_page(log_page(counts, cm.MixtureCorrection().fit(counts), sources=["log"], correction="mixture"), path)


def experiment_report(path: Path) -> None:
    """The page of an experiment, with curves and tables."""
    study, collection = Request("figure2", runs=2), synthetic_collection(queries=40, rng=np.random.default_rng(0))
    tasks = FIGURE2.tasks(study)
    results = {task.key: {"ndcg@10": 0.5 + 0.01 * task.run, "label error": 0.1} for task in tasks}
    write_page(FIGURE2.page(study, collection, results), path)


def large_report(path: Path) -> None:
    """The report on half a million documents, some of which have moved: numbers that need room."""
    documents = 500_000
    rng = np.random.default_rng(0)
    position = np.tile(np.arange(1, 6), documents // 5)
    relevant = rng.random(documents) < 0.3
    clicks = rng.binomial(20, np.where(relevant, 0.8, 0.1) / position)
    impressions = np.full(documents, 20)
    counts = cm.Counts.from_arrays(np.arange(documents) // 5, np.arange(documents), position, impressions, clicks)
    fitted = cm.MixtureCorrection("binomial", sharing=False).fit(counts)
    changes = Moved(412_345, 87_655, 3, 0.0123, 42_000, tuple((str(q), "sku", 0.1, 0.9) for q in range(10)))
    write_page(log_page(counts, fitted, sources=["log"], correction="mixture", changes=changes), path)


def ranker_report(path: Path) -> None:
    """The page on a ranker, with features of any name and missing values."""
    from clickmix.features import make_examples
    from clickmix.rankers import LambdaMART
    from clickmix.report.ranker_page import ranker_page

    rng = np.random.default_rng(0)
    features = rng.lognormal(8, 4, (300, 8))
    features[rng.random((300, 8)) < 0.2] = np.nan
    query, document = np.repeat(np.arange(30), 10), np.arange(300)
    names = ("bm25(title)", *HOSTILE[:2], "w" * 60, "price in EUR", "a", "b", "c")
    relevance = (np.nan_to_num(features).argmax(axis=1) % 4) / 3
    examples = replace(make_examples((query, document, features), (query, document, relevance)), feature_names=names)
    write_page(ranker_page(LambdaMART(trees=20).fit(examples), examples), path)


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("made", [graded_report, experiment_report, large_report, ranker_report])
def test_other_pages_load_nothing_and_have_nothing_cut_off(
    browser: Browser, folder: Path, made: Callable[[Path], None], width: int
) -> None:
    page = folder / f"{made.__name__}.html"
    if not page.exists():
        made(page)
    browser.open(page, width=width)
    assert browser.requests() == [page.resolve().as_uri()]
    assert browser.complaints() == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    figures = browser.evaluate(BOXES)
    assert figures
    assert AXE is None or accessibility_faults(browser) == []
    assert [f for f in figures if f["left"] < 0 or f["right"] > width or f["out"] or not f["drawn"]] == []


def test_hostile_texts_are_shown_and_do_no_harm(browser: Browser, page: Path) -> None:
    browser.open(page, width=1400)
    browser.evaluate("document.querySelectorAll('.query button').forEach(button => button.click())")
    browser.evaluate("document.querySelector('#unfold').click()")
    assert browser.complaints() == []
    assert browser.requests() == [page.resolve().as_uri()]
    assert browser.evaluate("window.harmed") is None
    assert browser.evaluate("document.title") == "Clicks and relevance"
    assert browser.evaluate("document.querySelectorAll('img, iframe, a:not(nav a, .term, .skip)').length") == 0
    assert browser.evaluate("document.querySelectorAll('script').length") == 2  # the data, and the page's own
    shown = browser.evaluate("[...document.querySelectorAll('.fold .cards td:first-child')].map(td => td.textContent)")
    assert set(shown) <= {printable(cut(text)) for text in HOSTILE}
    assert {f"<script>{HARM}</script>", r"\x00\x07\x1b[2J\u202egnp.exe\u200f\r\n"} <= set(shown)


QUERIES = "[...document.querySelectorAll('.query button')].map(button => button.textContent)"
NUMBERS = "[...document.querySelectorAll('.query')].map(row => Number(row.cells[{}].textContent.replace(/[,%]/g, '')))"
TOLD = "document.querySelector('.tools output').textContent"


def typed(browser: Browser, name: str, value: str) -> None:
    """Fill a field of the tools as a person does."""
    browser.evaluate(
        f"(field => {{ field.value = {value!r}; field.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
        f"(document.querySelector('.tools [name={name}]'))"
    )


def clicked(browser: Browser, selector: str) -> None:
    browser.evaluate(f"document.querySelector({selector!r}).click()")


@pytest.fixture
def list_page(browser: Browser, folder: Path) -> Path:
    """A report on 60 queries, opened on a desk."""
    path = folder / "list.html"
    if not path.exists():
        rng = np.random.default_rng(0)
        position, query = np.tile(np.arange(1, 7), 60), np.repeat(np.arange(60), 6)
        impressions = np.repeat(8 * rng.integers(3, 110, 60), 6)  # eighths: halves that can be rounded either way
        clicks = rng.binomial(impressions, np.where(rng.random(360) < 0.4, 0.9, 0.15) / position)
        names = np.array([f"{('red', 'Blue')[q % 2]} shoes {q}" for q in query])
        counts = cm.Counts.from_arrays(names, np.arange(360), position, impressions, clicks)
        fitted = cm.MixtureCorrection().fit(counts)
        write_page(log_page(counts, fitted, sources=["log.csv"], correction="mixture"), path)
    browser.open(path, width=1400)
    return path


@pytest.mark.usefixtures("list_page")
class TestQueries:
    """The list of queries, with script."""

    def test_the_largest_gain_comes_first_and_more_can_be_shown(self, browser: Browser) -> None:
        gains = browser.evaluate(NUMBERS.format(1))
        assert len(gains) == 20
        assert gains == sorted(gains, reverse=True)
        assert browser.evaluate(TOLD) == "60 of 60 queries"
        clicked(browser, ".more button")
        clicked(browser, ".more button")
        assert len(browser.evaluate(QUERIES)) == 60
        assert browser.evaluate("document.querySelector('.more button').hidden")

    def test_search_finds_a_part_of_a_query_in_any_case(self, browser: Browser) -> None:
        typed(browser, "search", "BLUE shoes 3")
        assert sorted(browser.evaluate(QUERIES)) == [f"Blue shoes {q}" for q in ("3", "31", "33", "35", "37", "39")]
        assert browser.evaluate(TOLD) == "6 of 60 queries"
        typed(browser, "search", "nothing")
        assert browser.evaluate(QUERIES) == []
        typed(browser, "search", "")
        assert browser.evaluate(TOLD) == "60 of 60 queries"

    def test_filters_keep_what_they_say(self, browser: Browser) -> None:
        typed(browser, "least", "3000")
        shown = browser.evaluate(NUMBERS.format(2))
        assert 0 < len(shown) <= 20
        assert min(shown) >= 3000
        typed(browser, "least", "")
        typed(browser, "filter", "gain")
        assert min(browser.evaluate(NUMBERS.format(1))) >= 0.1
        typed(browser, "filter", "sure")
        assert max(browser.evaluate(NUMBERS.format(5))) <= 10

    @pytest.mark.parametrize("column", [2, 3])
    def test_a_head_sorts_and_sorts_the_other_way(self, browser: Browser, column: int) -> None:
        head = f".list thead th:nth-child({column + 1})"
        clicked(browser, f"{head} button")
        down = browser.evaluate(NUMBERS.format(column))
        assert down == sorted(down, reverse=True)
        assert browser.evaluate(f"document.querySelector('{head}').ariaSort") == "descending"
        clicked(browser, f"{head} button")
        up = browser.evaluate(NUMBERS.format(column))
        assert up == sorted(up)
        assert up[0] < down[0]
        assert browser.evaluate("document.querySelectorAll('[aria-sort]').length") == 1

    def test_a_query_opens_its_results_and_folds_them(self, browser: Browser) -> None:
        clicked(browser, ".query button")
        rows = browser.evaluate("[...document.querySelectorAll('.opened .results tbody tr')].map(r => r.textContent)")
        assert len(rows) == 6
        assert "; usual: " in rows[0]
        assert browser.evaluate("document.querySelectorAll('.opened .range .at').length") == 6
        assert browser.evaluate("document.querySelector('.query button').ariaExpanded") == "true"
        clicked(browser, ".query button")
        assert browser.evaluate("document.querySelectorAll('.opened').length") == 0
        assert browser.evaluate("document.querySelector('.query button').ariaExpanded") == "false"

    def test_script_and_page_write_the_same_texts(self, browser: Browser, list_page: Path) -> None:
        browser.evaluate("document.querySelectorAll('.query button').forEach(button => button.click())")
        texts = "[...document.querySelectorAll('.results tbody td')].map(td => td.textContent)"
        with_script = browser.evaluate(texts)
        browser.open(list_page, width=1400, script=False)
        assert browser.evaluate(texts) == with_script
        assert len(with_script) == 20 * 6 * 6

    def test_sections_fold_and_unfold(self, browser: Browser) -> None:
        opened = "[...document.querySelectorAll('.fold')].filter(fold => fold.open).length"
        assert browser.evaluate(opened) == 0
        clicked(browser, "#unfold")
        assert browser.evaluate(opened) == 4
        clicked(browser, "#unfold")
        assert browser.evaluate(opened) == 0
        clicked(browser, ".fold summary")
        assert browser.evaluate(opened) == 1

    def test_a_link_in_the_contents_opens_a_folded_section(self, browser: Browser) -> None:
        clicked(browser, "nav li:last-child a")
        section = "[...document.querySelectorAll('section')].find(s => s.textContent.includes('All places'))"
        browser.evaluate(f"document.querySelector(`nav a[href='#${{{section}.id}}']`).click()")
        browser.evaluate("new Promise(done => setTimeout(done, 100))")
        assert browser.evaluate(f"{section}.querySelector('.fold').open")

    def test_everything_can_be_reached_with_the_keyboard(self, browser: Browser) -> None:
        reached = set()
        for _ in range(60):
            browser.ask("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
            reached.add(browser.evaluate("document.activeElement.name || document.activeElement.className || ''"))
        assert {"skip", "search", "filter", "least"} <= reached
        browser.evaluate("document.querySelector('.query button').focus()")
        browser.ask("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", text="\r")
        browser.ask("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter")
        assert browser.evaluate("document.querySelectorAll('.opened').length") == 1


def test_without_script_the_first_queries_can_be_read(browser: Browser, list_page: Path) -> None:
    browser.open(list_page, width=1400, script=False)
    assert browser.evaluate("document.querySelectorAll('.query').length") == 20
    assert browser.evaluate("document.querySelectorAll('.opened details').length") == 20
    assert browser.evaluate("getComputedStyle(document.querySelector('.tools')).display") == "none"
    assert "you see only the first 20 of 60 queries in this file" in browser.evaluate(
        "document.querySelector('.queries').innerText"
    )


needs_axe = pytest.mark.skipif(AXE is None, reason="no axe-core here: accessibility is not checked (CLICKMIX_AXE)")


def accessibility_faults(browser: Browser) -> list[list[str]]:
    """What axe-core finds in the page: the rule, the first element, and why."""
    assert AXE is not None
    browser.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[list[str]] = browser.evaluate(
        "axe.run().then(done => done.violations.map(v => [v.id, v.nodes[0].html, v.nodes[0].failureSummary]))"
    )
    return found


@needs_axe
def test_the_accessibility_engine_notices_faults(browser: Browser, folder: Path) -> None:
    bad = folder / "inaccessible.html"
    bad.write_text('<html lang="en"><title>t</title><main><h1 style="color: #ccc">pale</h1><input></main>')
    browser.open(bad, width=1400)
    assert [rule for rule, _, _ in accessibility_faults(browser)] == ["color-contrast", "label"]


@needs_axe
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_an_accessibility_engine_finds_nothing(browser: Browser, list_page: Path, width: int, dark: bool) -> None:
    browser.open(list_page, width=width, dark=dark)
    browser.evaluate(UNFOLD)
    assert accessibility_faults(browser) == []


def test_text_on_a_phone_is_large_enough_to_read(browser: Browser, page: Path) -> None:
    browser.open(page, width=360)
    heights = browser.evaluate(
        "[...document.querySelectorAll('svg.figure text')].map(text => text.getBoundingClientRect().height)"
    )
    assert min(heights) >= 11


def test_tables_wider_than_a_phone_scroll_by_themselves_and_say_so(browser: Browser, page: Path) -> None:
    browser.open(page, width=360)
    browser.evaluate(UNFOLD)
    boxes = browser.evaluate(
        "[...document.querySelectorAll('.scroll')].map(t => [t.scrollWidth > t.clientWidth + 1, t.tabIndex, "
        "getComputedStyle(t, '::before').content])"
    )
    wide = [box for box in boxes if box[0]]
    assert wide
    assert [box for box in wide if box[1:] != [0, '"Scroll sideways to see all columns →"']] == []
    assert {box[2] for box in boxes if not box[0]} == {"none"}


def test_on_paper_nothing_is_cut_off(browser: Browser, page: Path, folder: Path) -> None:
    browser.open(page, width=720, dark=True)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 720
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    numbers = "[...document.querySelectorAll('td.number')].map(td => getComputedStyle(td).whiteSpace)"
    assert set(browser.evaluate(numbers)) == {"nowrap"}
    assert browser.evaluate("getComputedStyle(document.querySelector('h2')).breakAfter") == "avoid"
    # What is folded on the screen is open on paper.
    folded = "[...document.querySelectorAll('.fold, .why')].map(fold => fold.getBoundingClientRect().height)"
    assert min(browser.evaluate(folded)) > 60
    browser.paper(folder / "report.pdf")
    assert (folder / "report.pdf").read_bytes().startswith(b"%PDF")


def test_on_paper_heads_repeat_rows_stay_whole_and_the_list_says_how_much_is_printed(
    browser: Browser, list_page: Path
) -> None:
    """Chromium leaves buttons out where it repeats the head of a table on the next page."""
    assert browser.evaluate("getComputedStyle(document.querySelector('.printed')).display") == "none"
    browser.ask("Emulation.setEmulatedMedia", media="print")
    shown = (
        "[...document.querySelectorAll('.list thead th > *')].filter(e => e.checkVisibility()).map(e => e.outerHTML)"
    )
    heads = browser.evaluate(shown)
    assert len(heads) == 6
    assert all(head.startswith("<span") for head in heads)
    assert browser.evaluate("getComputedStyle(document.querySelector('.list thead')).display") == "table-header-group"
    assert browser.evaluate("getComputedStyle(document.querySelector('.query')).breakInside") == "avoid"
    assert browser.evaluate("document.querySelector('p.printed').innerText") == (
        "Printed: 20 of the 60 queries in this file."
    )


def test_on_paper_without_script_closed_results_take_no_room(browser: Browser, list_page: Path) -> None:
    browser.open(list_page, width=1400, script=False)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    heights = browser.evaluate(
        "[...document.querySelectorAll('.opened')].map(row => row.getBoundingClientRect().height)"
    )
    assert set(heights) == {0}
