"""Queries: those that sorting by labels would help most, each with its result list and its evidence."""

from __future__ import annotations

from clickmix.errors import several
from clickmix.report.evidence import usual_rates
from clickmix.report.pages import Section
from clickmix.report.query_list import QueryList
from clickmix.report.query_numbers import DEPTH, MOST_BYTES, read_queries
from clickmix.report.section import SECTIONS, LogReport

DOUBT = "Gains come from the labels. The verdict says not to use the labels, so do not rely on the gains either."


@SECTIONS.register("queries", help="Queries that would gain most, with their result lists.")
class Queries:
    """As many queries as fit into the file, the largest gain first."""

    order = 20

    def section(self, report: LogReport) -> Section:
        """A list of queries, and how many are not in it."""
        table, usual = report.queries, usual_rates(report.fitted, report.histogram.places)
        shown = QueryList(read_queries(table), usual).within(MOST_BYTES)
        held = len(shown.queries)
        left = table.queries - table.hidden - held
        prose = [
            "The gain in DCG@10 is what sorting a query's results by label would add. The queries that would gain most "
            "come first: there, the order people saw differs most from the order of the labels. Open a query to see "
            "its results in the order shown, their labels, and where they were shown and clicked.",
            f"This file holds {held:,} of {several(table.queries, 'query', 'queries')}, and for each query the "
            f"{DEPTH} documents shown most near the top and the first {DEPTH} by label."
            + (f" {left:,} with smaller gains did not fit." if left else "")
            + (f" {_left_out(table.hidden, table.min_sessions)}" if table.hidden else ""),
            *([DOUBT] if report.results and report.results.verdict.tone == "bad" else []),
        ]
        return Section("Queries", prose, queries=shown if held else None)


def _left_out(hidden: int, min_sessions: int) -> str:
    """Say how many queries are too rare to be shown."""
    are, their = ("is", "its") if hidden == 1 else ("are", "their")
    return (
        f"{hidden:,} {are} left out because {their} documents were shown fewer than {min_sessions} times on average: "
        "rare queries can be personal (--report-min-sessions)."
    )
