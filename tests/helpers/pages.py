"""README and docs as data: their blocks, the commands in them, the tables that show figures on file, the notebook."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """A command line of a page, and what the page shows below it; nothing, where it shows no output."""

    line: str
    shown: str = ""

    @property
    def words(self) -> list[str]:
        """Its words, without a comment at the end."""
        return shlex.split(self.line, comments=True)


def blocks(text: str, *languages: str) -> list[str]:
    """What stands in the fenced blocks of these languages; all but Python's where none is named."""
    found = BLOCK.findall(text)
    return [body for language, body in found if (language in languages if languages else language != "python")]


def commands(text: str) -> Iterator[Command]:
    """The commands of a page's blocks, from top to bottom."""
    for body in blocks(text):
        if body.startswith("$ "):
            for part in body.removeprefix("$ ").split("\n$ "):
                line, _, shown = part.partition("\n")
                yield Command(line, shown)
        else:
            yield from (
                Command(line) for line in body.splitlines() if re.match(r"([A-Z_]+=.* )?(clickmix|make) ", line)
            )


def figures(name: str) -> Any:
    """The figures of a file in benchmarks/results."""
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))["figures"]


TRUTH_HEAD = "| clicks | bias | relevance | click-through rate | affine correction, true bias | **clickmix** | limit |"
REAL_WAYS = "engine's order | click-through rate | rate, ties in the engine's order | smoothed COEC | clickmix"
REAL_HEAD = f"| log | clicks | {REAL_WAYS} |"


def error_text(value: float) -> str:
    """.177, as people write a number below 1."""
    return f"{value:.3f}".lstrip("0")


def truth_rows(*, only: tuple[tuple[int, str], ...] = ()) -> list[str]:
    """The errors of labels where the truth is known, for all settings or for some (eta, relevance)."""
    rows = []
    for row in figures("truth")["rmse"]:
        if only and (row["eta"], row["relevance"]) not in only:
            continue
        bias = {1: "normal (η=1)", 2: "severe (η=2)"}[row["eta"]]
        relevance = {"binarized": "two grades", "graded": "five grades"}[row["relevance"]]
        names = ("click-through rate", "affine, true parameters", "auto", "limit")
        rate, affine, label, limit = (error_text(row[name]) for name in names)
        rows.append(f"| {row['clicks']:,} | {bias} | {relevance} | {rate} | {affine} | **{label}** | {limit} |")
    return rows


UNSEEN = "agreement of queries not looked at"  # while the model was made


def real_rows() -> list[str]:
    """How labels of real logs agree with human grades; the best of a log in bold."""
    rows = []
    for name, log in figures("real-logs").items():
        if UNSEEN not in log:
            continue
        ways = ("production order", "none", "ctr-then-rank", "coec-smoothed", "mixture")
        values = [log[UNSEEN][way]["ndcg@10"] for way in ways]
        texts = [error_text(value) for value in values]
        shown = [f"**{text}**" if text == error_text(max(values)) else text for text in texts]
        rows.append(f"| {name} | {log['clicks']:,} | {' | '.join(shown)} |")
    return rows


HELD_WAYS = ("mixture", "pbm", "ubm", "coec-smoothed", "gamma PBM + query factor", "ctr-smoothed")
HELD_HEAD = "| log | clickmix | PBM | marginal UBM | smoothed COEC | gamma PBM | smoothed rate | bits saved |"


def held_out_rows() -> list[str]:
    """Perplexity of held-out clicks, the mean of five splits; and what clickmix saves over the best click model."""
    rows = []
    for name, log in figures("real-logs").items():
        found = log["held-out clicks"]
        values = [found["rows"][way]["perplexity"] for way in HELD_WAYS]
        shown = [f"**{value:.4f}**" if value == min(values) else f"{value:.4f}" for value in values]
        saved = found["rows"][found["best rival"]]["bits saved by mixture"]
        rows.append(
            f"| {name} | {' | '.join(shown)} | {saved['value']:.2f} ({saved['low']:.2f} to {saved['high']:.2f}) |"
        )
    return rows


BEFORE_HEAD = "| log | measure | 0.1 | now | change |"


def before_rows() -> list[str]:
    """Agreement with human grades of the first release and of this one."""
    rows = []
    for name, log in figures("real-logs").items():
        for measure in ("ndcg@10", "same position AUC") if UNSEEN in log else ():
            before, now = (log[UNSEEN][release] for release in ("before", "mixture"))
            change, low, high = before[f"{measure}, mixture less before"]
            texts = (error_text(before[measure]), error_text(now[measure]))
            title = {"ndcg@10": "nDCG@10"}.get(measure, measure)
            rows.append(f"| {name} | {title} | {' | '.join(texts)} | {change:+.3f} ({low:+.3f} to {high:+.3f}) |")
    return rows


FIRST_HEAD = "| first use | seconds | processor seconds |"


def first_rows() -> list[str]:
    """What a first use takes, step by step; seconds on the clock depend on what else the machine does."""
    first = figures("first-use")
    steps = {f"`{name}`": step for name, step in first["steps"].items()} | {"in all": first["in all"]}
    return [f"| {name} | {step['seconds']} | {step['processor seconds']} |" for name, step in steps.items()]


GRADES_HEAD = "| log | measured against | LambdaMART | click-through rate | best feature | chance | correlation |"
RANKINGS = ("LambdaMART", "click-through rate", "best feature", "chance")


def grades_rows() -> list[str]:
    """What rounding to grades costs: for each log the labels first, then each way to write ratings."""
    rows: list[str] = []
    for row in figures("export")["rows"]:
        grades = {"binarized": "two grades", "graded": "five grades"}[row["relevance"]]
        log, ndcg = f"{grades}, {row['clicks']:,} clicks", [row["ndcg"][name] for name in RANKINGS]
        labels = f"| {log} | labels | {' | '.join(error_text(each['labels']) for each in ndcg)} | |"
        way = f"`{row['ratings']}`" if row["ratings"].startswith("--") else row["ratings"]
        correlation = f"{row['correlation over queries and rankings']:.3f}".removeprefix("0")
        shown = " | ".join(error_text(each["export"]) for each in ndcg)
        rows += [*([] if labels in rows else [labels]), f"| {log} | {way} | {shown} | {correlation} |"]
    return rows


PEER_LOGS = {"clara-half": "CLARA2", "trec-session": "TREC 2014", "yandex-sample": "Yandex"}
PEER_WORLDS = {"pbm-eta1 users": "PBM", "dcm users": "DCM", "dbn users": "DBN"}
PEER_MEASURES = {"perplexity": "perplexity", "ndcg": "nDCG@10", "same_place": "AUC"}


def peer_columns(worlds: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """The log, the measure and the title of every column that has numbers."""
    found = figures("peers")
    return [
        (log, measure, f"{title}: {words}")
        for log, title in worlds.items()
        for measure, words in PEER_MEASURES.items()
        if any(measure in row for row in found[log]["rows"].values())
    ]


def peer_head(worlds: Mapping[str, str]) -> str:
    """The head of a table of all corrections."""
    return f"| labels by | {' | '.join(title for *_, title in peer_columns(worlds))} |"


def peer_rows(worlds: Mapping[str, str]) -> list[str]:
    """All corrections side by side, the best of a column in bold; `-` where a correction says nothing."""
    found = {log: figures("peers")[log]["rows"] for log in worlds}
    names = sorted({name for rows in found.values() for name in rows} - {"production order", "mixture"})
    table = []
    for log, measure, _ in peer_columns(worlds):
        places = 4 if measure == "perplexity" else 3
        values = {name: round(row[measure], places) for name, row in found[log].items() if measure in row}
        best = (min if measure == "perplexity" else max)(values.values())
        texts = {name: f"{value:.{places}f}".lstrip("0") for name, value in values.items()}
        table.append({name: f"**{text}**" if values[name] == best else text for name, text in texts.items()})
    return [
        f"| {'**clickmix** (`mixture`)' if name == 'mixture' else name} | "
        f"{' | '.join(column.get(name, '-') for column in table)} |"
        for name in ("production order", "mixture", *names)
    ]


CLAX_HEAD = "| users | model | seconds, ours | seconds, CLAX | log-likelihood, ours | CLAX | mean difference |"


def clax_rows() -> list[str]:
    """Our fits of the models that CLAX has, beside its own, on the same sessions."""
    rows = []
    for users in ("dbn", "ubm"):
        for model, found in figures("peers_clax")[f"{users} users"].items():
            clax = found["CLAX"]
            ours, theirs = (clax[f"log-likelihood per session, {whose}"] for whose in ("ours", "theirs"))
            apart = error_text(clax["mean difference of click probabilities"])
            seconds = f"{found['our seconds']:.2f} | {clax['seconds']:.1f}"
            rows.append(f"| {users.upper()} | {model.upper()} | {seconds} | {ours:.4f} | {theirs:.4f} | {apart} |")
    return rows


PEER_TIME_HEAD = "| labels by | seconds | of the processor | times the GROUP BY | of the processor |"
LIST_TIME_HEAD = "| from counts by list | seconds | of the processor |"


def peer_time_rows() -> list[str]:
    """How long corrections on counts take, from the file to written labels, beside a bare GROUP BY."""
    found = figures("peers_time")
    bare = found["bare GROUP BY"]
    rows = [f"| DuckDB's GROUP BY | {bare['seconds']:.2f} | {bare['cpu']:.2f} | | |"]
    for name, took in found["corrections on counts, from the file"].items():
        ratios = f"{took['seconds'] / bare['seconds']:.2f} | {took['cpu'] / bare['cpu']:.2f}"
        rows.append(f"| `{name}` | {took['seconds']:.2f} | {took['cpu']:.2f} | {ratios} |")
    return rows


def list_time_rows() -> list[str]:
    """How long corrections on result lists take, from counts by list to written labels; grouping comes first."""
    found = figures("peers_time")
    grouped = found["grouping of sessions"]
    rows = [f"| grouping the sessions, once for all | {grouped['seconds']:.2f} | {grouped['cpu']:.2f} |"]
    timed = found["corrections on lists, from counts by list"]
    return rows + [f"| `{name}` | {took['seconds']:.2f} | {took['cpu']:.2f} |" for name, took in timed.items()]


RANKER_SCENARIOS = ("pbm-eta1-binarized", "pbm-eta1-graded", "pbm-eta2-binarized", "pbm-eta2-graded")
RANKER_RUNS = 8
RANKER_HEAD = "| | η=1, binarized | η=1, graded | η=2, binarized | η=2, graded |"
RANKER_ROWS = {
    "no correction, LambdaMART": ("peers", "none", "lambdamart"),
    "`ctr-then-rank`, LambdaMART": ("peers", "ctr-then-rank", "lambdamart"),
    "LightGBM, `position`": ("peers", "lightgbm-position", "lambdamart"),
    "XGBoost, `lambdarank_unbiased`": ("peers", "xgboost-unbiased", "lambdamart"),
    "clickmix, LambdaMART": ("peers", "auto", "lambdamart"),
    "no correction, DNN": ("table1", "none", "dnn"),
    "DLA": ("peers", "dla", "lambdamart"),
    "clickmix, DNN": ("table1", "auto", "dnn"),
}


def ranker_rows() -> list[str]:
    """Mean nDCG@10 of rankers over all runs."""
    rows = []
    for title, (journal, labels, ranker) in RANKER_ROWS.items():
        lines = (ROOT / "benchmarks" / "results" / "reproduce" / f"{journal}.jsonl").read_text().splitlines()
        found = {line["task"]: line["result"] for line in map(json.loads, lines) if "task" in line}
        means = []
        for name in RANKER_SCENARIOS:
            keys = [f"ranking, run {run}, {name}-8000000, {labels}, {ranker}" for run in range(RANKER_RUNS)]
            means.append(error_text(sum(found[key]["ndcg@10"] for key in keys) / RANKER_RUNS))
        rows.append(f"| {title} | {' | '.join(means)} |")
    return rows


MOVING_HEAD = "| log | `debias` | GROUP BY | ratio | command | script | ratio |"
MOVING_LOGS = {
    "a few positions": "20M rows, 3M documents at a few positions each",
    "seven positions": "20M rows, 1M documents at seven positions each",
    "a few positions, attention": "the first, queries differ in attention",
    "seven positions, attention": "the second, queries differ in attention",
}


def moving_rows() -> list[str]:
    """Seconds of labels where documents move, beside a bare GROUP BY."""
    rows = []
    for name, title in MOVING_LOGS.items():
        found = figures("moving")[name]
        called = f"{found['debias_seconds']:.1f} | {found['bare_seconds']:.1f} | {found['ratio']:.2f}"
        whole = f"{found['command_seconds']:.1f} | {found['bare_script_seconds']:.1f} | {found['command_ratio']:.2f}"
        rows.append(f"| {title} | {called} | {whole} |")
    return rows


TIME_HEAD = "| log | `debias` | `--examination dcm` | `--examination ubm` | GROUP BY |"


def time_rows() -> list[str]:
    """Seconds of the command on real logs, and of a script with a bare GROUP BY."""
    ways = ("debias", "debias --examination dcm", "debias --examination ubm", "GROUP BY")
    found = figures("real_logs_time")
    return [f"| {name} | {' | '.join(f'{took[way]:.1f}' for way in ways)} |" for name, took in found.items()]


GROWTH_HEAD = "| rows | contexts | positions | seconds | peak memory |"
GROWN = {
    "rows": {
        "1000000": "1M",
        "10000000": "10M",
        "100000000": "100M, 15M documents",
        "1000000000": "1,000M, 435M cells",
    },
    "contexts": {"1": "1", "5": "5", "20": "20", "50": "50", "200": "200"},
    "positions": {"10": "10", "100": "100", "1000": "1,000"},
}


def growth_rows() -> list[str]:
    """Seconds and memory of the command as rows, contexts and positions grow."""
    rows = []
    for what, sizes in GROWN.items():
        for size, title in sizes.items():
            found = figures("growth")[what][size]
            shape = {"rows": "4M", "contexts": "", "positions": ""} | {what: title}
            cells = *shape.values(), f"{found['seconds']:.1f}", f"{found['peak_megabytes'] / 1000:.2f} GB"
            rows.append(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|")
    return rows


CASCADE_HEAD = (
    "| user | relevance | AC under PBM, true parameters | mixture, by position | the same, number of grades given | "
    "**mixture, by what is above** | limit |"
)
CASCADE_WAYS = (
    "AC under PBM, told",
    "mixture, by position",
    "mixture told how many grades, by position",
    "mixture, by what stands above",
    "limit, all above known",
)
BETTER_HEAD = "| user | relevance | than by position | than by position, number of grades given | than AC |"
BETTER_WAYS = ("better than by position", "better than by position, told", "better than AC")


def cascade_rows(ways: tuple[str, ...], *, bold: str = "") -> list[str]:
    """Errors of labels of users who go down a list, mean and half a 95% interval."""
    rows = []
    for row in figures("cascade")["rmse"]:
        texts = {way: " ± ".join(f"{value:.4f}".lstrip("0") for value in row[way]) for way in ways}
        shown = " | ".join(f"**{text}**" if way == bold else text for way, text in texts.items())
        rows.append(f"| {row['user'].upper()} | {row['relevance']} | {shown} |")
    return rows


# The tables that show figures on file: the page, the head of the table, its rows.
TABLES = [
    ("README.md", TRUTH_HEAD, truth_rows(only=((1, "binarized"), (2, "graded")))),
    ("docs/evidence.md", TRUTH_HEAD, truth_rows()),
    ("README.md", REAL_HEAD, real_rows()),
    ("docs/evidence.md", REAL_HEAD, real_rows()),
    ("docs/evidence.md", HELD_HEAD, held_out_rows()),
    ("docs/evidence.md", BEFORE_HEAD, before_rows()),
    ("docs/evidence.md", FIRST_HEAD, first_rows()),
    ("docs/evidence.md", GRADES_HEAD, grades_rows()),
    ("docs/cascades.md", CASCADE_HEAD, cascade_rows(CASCADE_WAYS, bold="mixture, by what stands above")),
    ("docs/cascades.md", BETTER_HEAD, cascade_rows(BETTER_WAYS)),
    ("docs/large-logs.md", MOVING_HEAD, moving_rows()),
    ("docs/large-logs.md", GROWTH_HEAD, growth_rows()),
    ("docs/evidence.md", TIME_HEAD, time_rows()),
    ("docs/peers.md", peer_head(PEER_LOGS), peer_rows(PEER_LOGS)),
    ("docs/peers.md", peer_head(PEER_WORLDS), peer_rows(PEER_WORLDS)),
    ("docs/peers.md", CLAX_HEAD, clax_rows()),
    ("docs/peers.md", PEER_TIME_HEAD, peer_time_rows()),
    ("docs/peers.md", LIST_TIME_HEAD, list_time_rows()),
    ("docs/peers.md", RANKER_HEAD, ranker_rows()),
]


def table_below(text: str, head: str) -> str:
    """The rows of the table with this head, as they stand in a page."""
    found = re.search(rf"^{re.escape(head)}\n\|[-|]+\|\n((?:\|.*\n)*)", text, re.MULTILINE)
    assert found, f"no table {head}"
    return found[1]


def example(text: str) -> tuple[str, str]:
    """A page's first Python example that is followed by what it prints, and that."""
    found = re.search(r"```python\n((?:(?!```).)*?)```\n+```\n(.*?)```", text, re.DOTALL)
    assert found
    return found[1], found[2]


def lines_of(printed: str, *, like: str) -> str:
    """Of a printed text the lines that begin like these (two words each); `...` stands for those left out."""
    begins = {tuple(line.split()[:2]): line for line in printed.splitlines()}
    return "".join(f"{line if line == '...' else begins[tuple(line.split()[:2])]}\n" for line in like.splitlines())


def executed(notebook: Path, folder: Path) -> dict[str, Any]:
    """A notebook with the outputs of running it in a folder, without what differs from run to run."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(notebook, as_version=4)
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(folder)}}, record_timing=False).execute()
    book.metadata.language_info = {"name": "python"}
    made: dict[str, Any] = json.loads(nbformat.writes(book))
    return made


def output_texts(notebook: dict[str, Any]) -> list[str]:
    """What the cells of a notebook gave, as text."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    return ["".join(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in outputs]


def numbers_aside(text: str) -> tuple[str, list[float]]:
    """A text with every number taken out, and the numbers."""
    pattern = r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?"
    taken = [float(number.replace(",", "")) for number in re.findall(pattern, text)]
    return re.sub(r"[ -]+", " ", re.sub(pattern, "#", text)), taken
