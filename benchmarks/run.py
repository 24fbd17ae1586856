"""All benchmarks, one after the other; each writes its figures to benchmarks/results/."""

from __future__ import annotations

import cascade
import clicks
import compare
import corrections
import debias
import engines
import fitting
import letor
import report
import result_lists
import simulate
import sure
import synthetic
import truth
from measuring import write_result

for module in (
    debias,
    engines,
    fitting,
    truth,
    cascade,
    clicks,
    simulate,
    letor,
    result_lists,
    synthetic,
    corrections,
    compare,
    sure,
    report,
):
    name = module.__name__
    write_result(name, f"python benchmarks/{name}.py", module.measure())
