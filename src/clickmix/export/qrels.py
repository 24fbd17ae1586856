"""Judgments -> TREC qrels. If ids have blanks, they become numbers, and a file beside it lists them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clickmix.export.judgments import LABEL_OPTIONS, NO_BLANK, Judgments, JudgmentTarget
from clickmix.export.target import EXPORTS, Exported
from clickmix.storage.atomic import check_writable


@EXPORTS.register("qrels", help="TREC qrels, as trec_eval, pytrec_eval and ranx read them", options=LABEL_OPTIONS)
@dataclass(frozen=True, kw_only=True)
class Qrels(JudgmentTarget):
    """Lines `query 0 document grade`. trec_eval's gain is linear, so grades are cut at (g - 1/2) / G."""

    limits = (
        "Qrels take whole grades only, and ids without blanks; those with blanks become numbers, listed beside FILE."
    )
    gain = "linear"

    def put(self, judgments: Judgments, output: Path, called: str) -> Exported:
        """Write the file; if ids have blanks, first write a list of them."""
        check_writable(output)
        written, files, notes = {}, [], []
        for column, number in (("query_id", "number"), ("doc_id", "dense_rank() OVER (ORDER BY doc_id)")):
            blank = f"SELECT 1 FROM {judgments.table} WHERE NOT regexp_full_match({column}, '{NO_BLANK}') LIMIT 1"
            if not judgments.engine.rows(blank):
                written[column] = column
                continue
            written[column] = f"CAST({number} AS VARCHAR)"
            beside = output.with_name(f"{output.name}.{column}.csv")
            ids = f"SELECT DISTINCT {number} AS number, {column} FROM {judgments.table}"
            quoted = f"""'"' || replace({column}, '"', '""') || '"'"""
            judgments.write(
                f"SELECT 'number,{column}' AS line UNION ALL "
                f"(SELECT number || ',' || {quoted} FROM ({ids}) ORDER BY number)",
                beside,
            )
            files.append(beside)
            notes.append(f"A {column} has a blank, so all are numbers here; {beside} lists them.")
        line = f"{written['query_id']} || ' 0 ' || {written['doc_id']} || ' ' || rating"
        judgments.write(f"SELECT {line} AS line FROM {judgments.table} ORDER BY place", output)
        return Exported((output, *files), tuple(notes))
