"""Many lines of CSV that cannot be split into columns: none is lost, no good row with them, and memory is bounded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import clickmix as cm

HEADER, GOOD = b"query_id,doc_id,position,clicked\n", b"q1,d1,1,0\n"
SHORT, LONG, QUOTED = b"q1,d1,1\n", b"q1,d1,1,0,7\n", b'q1,"d1"x,1,0\n'
# The reader cuts a file every 8,000,000 bytes; threads begin at the cuts.
CUT = 8_000_000
MEASURED = r"""
import re, sys
import clickmix as cm
try:
    {}
except cm.InputError as error:
    print(error, file=sys.stderr)
print(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1], file=sys.stderr)
"""


@pytest.mark.parametrize(("broken", "lines"), [(SHORT, 3_000), (LONG, 1), (QUOTED, 3_000)])
def test_broken_lines_where_the_reader_cuts_a_file(tmp_path: Path, broken: bytes, lines: int) -> None:
    before, after = (CUT - len(broken) * lines // 2) // len(GOOD), 10_000
    log = tmp_path / "log.csv"
    log.write_bytes(HEADER + GOOD * before + broken * lines + GOOD * after)
    counts = cm.count(log, bad_rows="skip")
    assert counts.totals() == (before + after, 0)
    assert sum(kind.rows for kind in counts.refused) == lines
    with pytest.raises(cm.InputError, match=r"columns|quotation mark"):
        cm.count(log)


def test_every_other_line_is_broken(tmp_path: Path) -> None:
    """Two threads lost the last part of such a file, good rows included."""
    log, pairs = tmp_path / "log.csv", 195_000
    padding = b"x" * 40  # so that the file is longer than a thread's part
    good, broken = GOOD.replace(b"d1", b"d1" + padding), SHORT.replace(b"d1", b"d1" + padding)
    log.write_bytes(HEADER + (broken + good) * pairs)
    assert log.stat().st_size > 2 * CUT
    counts = cm.count(log, bad_rows="skip")
    assert counts.totals() == (pairs, 0)
    assert sum(kind.rows for kind in counts.refused) == pairs


@pytest.mark.parametrize("mode", ["fail", "skip"])
def test_more_broken_lines_than_can_be_noted(tmp_path: Path, mode: str) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(HEADER + GOOD + SHORT * 300_000)
    script = f"cm.count({str(log)!r}, bad_rows={mode!r}, memory='500MB')"
    words = [sys.executable, "-c", MEASURED.format(script)]
    ended = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=True)
    assert "log.csv: about 300,000 lines cannot be split into the 4 columns of the header" in ended.stderr
    assert int(ended.stderr.split()[-1]) / 1024 < 300


def test_line_ends_in_quotation_marks_are_no_broken_lines(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(HEADER + b'q1,"d' + b"\n" * 300_000 + b'",1,0\n' + SHORT + b'"q\n\n1",d,1,0\n\n')
    counts = cm.count(log, bad_rows="skip")
    assert counts.totals() == (2, 0)
    assert [kind.rows for kind in counts.refused] == [1]
