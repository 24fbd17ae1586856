"""The report on a log: a banner, then every registered section.   counts, fitted correction -> Page"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clickmix.counts.counts import Counts
from clickmix.errors import check_whole
from clickmix.groups.places import read_histogram
from clickmix.judging.changes import Moved
from clickmix.judging.held_out import HeldOutEvidence
from clickmix.report.glossary import GLOSSARY
from clickmix.report.log_numbers import labels_at_hand, read_label_bins
from clickmix.report.pages import Banner, Page
from clickmix.report.query_numbers import queries_at_hand
from clickmix.report.results import change_results, fit_results, mixture_of
from clickmix.report.rows import command_text, cut, file_name, label_text, number_text, percent
from clickmix.report.section import LogReport, log_sections

PROBLEM = (
    "People click what is at the top: they look there, and they trust the engine. So a click-through rate says as "
    "much about the position as about the document."
)
REMEDY = (
    "clickmix estimates, for every position, how often people click relevant documents there and how often they click "
    "others. From that it computes a label for each document: how relevant it is, from 0 to 1, as far as its clicks "
    "show. A ranker trained on these labels does not learn to repeat the old order."
)
MIN_SESSIONS = 10
MOST_FILES = 5  # named


def log_page(
    counts: Counts,
    fitted: Any,
    *,
    sources: Sequence[str],
    correction: str,
    changes: Moved | None = None,
    held_out: HeldOutEvidence | None = None,
    command: Sequence[str] = (),
    date: str = "",
    min_sessions: int = MIN_SESSIONS,
) -> Page:
    """Make the report on a log and its correction; write it with `write_page`.

    `sources`: the log as the user named it. `correction`: its name, shown if there is no verdict.
    `changes`: how labels moved since the previous ones (`judging.changes.labels_moved`); compare before replacing them.
    `held_out`: evidence from parts of the log, which gets its own section.
    `command`: the words of the command (`sys.argv`). The page shows file names of sources and command, not folders.
    `date`: shown as given. Without it the same input gives the same bytes.
    `min_sessions`: leaves out queries whose documents were shown fewer times on average, because rare queries can be
    personal. The page says how many.

    The page has fewer sections if the correction fits no mixture.

    >>> import clickmix as cm
    >>> counts = cm.Counts.from_arrays(range(80), [0] * 80, [1] * 80, [50] * 80, [25] * 20 + [3] * 60)
    >>> page = log_page(counts, cm.NoCorrection(), sources=["clicks.csv"], correction="none")
    >>> page.sections[0].title
    'Queries'
    """
    check_whole("report_min_sessions", min_sessions, least=1)
    mixture, histogram = mixture_of(fitted), read_histogram(counts)
    with (
        labels_at_hand(fitted.label(counts)) as labels,
        queries_at_hand(counts, labels, min_sessions=min_sessions) as queries,
    ):
        report = LogReport(
            counts=counts,
            fitted=fitted,
            mixture=mixture,
            results=fit_results(mixture, held_out) if mixture else None,
            changes=change_results(changes) if changes else None,
            histogram=histogram,
            labels=labels,
            bins=read_label_bins(labels),
            queries=queries,
            correction=correction,
            sources=tuple(map(file_name, sources)),
            command=command_text(command),
            date=date,
        )
        sections = log_sections(report)
    more = len(report.sources) - MOST_FILES
    log = ", ".join(map(cut, report.sources[:MOST_FILES])) + (f" and {more:,} more" if more > 0 else "")
    made = [(name, text) for name, text in (("Date", date), ("Log", log), ("Command", report.command)) if text]
    prose = [f"{PROBLEM} {REMEDY}" if mixture else PROBLEM]
    return Page("Clicks and relevance", prose, sections, _banner(report), made, GLOSSARY)


def _banner(report: LogReport) -> Banner:
    """The verdict, three numbers and what to do next; without a mixture there is no verdict."""
    bins, results = report.bins, report.results
    gain = ("mean gain in DCG@10", label_text(report.queries.mean_gain))
    if results is None:
        text = f"The correction {report.correction} fits no mixture, so there is no verdict on the log."
        impressions, clicks = report.counts.totals()
        facts = [("labels", f"{bins.documents:,}"), ("click-through rate", percent(clicks / impressions)), gain]
        return Banner(text, "note", facts, "Compare with --correction mixture, which says how far to trust its labels.")
    facts = [("expected label error", number_text(results.error)), ("sure labels", percent(bins.sure)), gain]
    verdict = results.verdict
    elsewhere = results.held_out.sentences if results.held_out else ()  # they have their own section
    evidence = [sentence for sentence in verdict.evidence if sentence not in elsewhere]
    return Banner(verdict.sentence, verdict.tone, facts, verdict.next, evidence)
