"""Labels of very many documents against integration over a fine grid."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.special import betaln, expit, xlog1py, xlogy

from cell_places import cell_places
from clickmix.mixtures.hierarchical import Cells, Effects
from clickmix.mixtures.hierarchical.climb import climb, first_models
from clickmix.mixtures.hierarchical.fit import with_effects, with_grades
from clickmix.mixtures.hierarchical.label import Documents, grades_of, label_documents
from clickmix.mixtures.hierarchical.problem import Model

EFFECTS = [
    Effects("examination"),
    Effects("odds"),
    Effects(shares=True),
    Effects("odds", appeal=True),
    Effects("examination", shares=True, appeal=True),
]
GRID = np.linspace(-5, 5, 401)  # in deviations
# Attention is looked at in nodes at most .8 deviations apart, shares in seven that are .9 apart: labels are this
# near to those of a fine grid, most of them much nearer.
NEAR, MOSTLY_NEAR = 0.06, 0.006


def rows_of(seed: int, *, queries: int = 30, shown: int = 40) -> dict[str, np.ndarray]:
    """Documents at one to three of four positions; queries are clicked more or less."""
    rng = np.random.default_rng(seed)
    document = np.repeat(np.arange(6 * queries), rng.integers(1, 4, 6 * queries))
    query = np.arange(6 * queries) // 6
    place = rng.integers(0, 4, len(document))
    n = rng.integers(1, shown, len(document))
    rate = np.array([0.4, 0.2, 0.1, 0.05])[place] * np.exp(0.5 * rng.normal(size=queries))[query[document]]
    relevant = rng.random(len(query)) < 0.3
    c = rng.binomial(n, np.clip(rate * np.where(relevant, 2.0, 0.5)[document], 0, 0.97))
    return {"query": query, "document": document, "place": place, "n": n, "c": c}


def model_of(rows: dict[str, np.ndarray], effects: Effects, grades: int) -> Model:
    places, place = cell_places(rows["place"] + 1, np.zeros_like(rows["place"]))
    queries = int(rows["query"].max()) + 1
    cells, _ = Cells.of_documents(places, rows["query"], rows["document"], place, rows["n"], rows["c"], queries=queries)
    return climb(cells, with_effects(with_grades(first_models(cells)[0], grades), effects))[0]


def documents_of(rows: dict[str, np.ndarray], model: Model) -> Documents:
    columns = (rows["query"], rows["document"], rows["place"], rows["n"], rows["c"])
    return Documents.of_rows(model.places, *columns)


def integrated(rows: dict[str, np.ndarray], model: Model) -> np.ndarray:
    """Document x grade, with sums over all u and v of a fine grid, query by query."""
    g, places = np.linspace(0, 1, model.grades), len(model.places)
    low, high = expit(model.x[: 2 * places]).reshape(2, -1)
    where, often = model.knots
    eta = model.x[2 * places :].reshape(model.grades - 1, -1)
    u = model.attention * GRID if model.effects.attention else np.zeros(1)
    v = model.shares * GRID[::8] if model.effects.shares else np.zeros(1)
    b = (1 - g)[:, None, None] * low[:, None] + g[:, None, None] * high[:, None]  # grade x place x u
    if model.effects.attention == "examination":
        r = b * np.minimum(np.exp(u), expit(model.number("cap")) / high[:, None])
    else:
        r = expit(np.log(b / (1 - b)) + u)
    found = np.zeros((len(rows["query"]), model.grades))
    for q in np.unique(rows["query"]):
        documents = np.flatnonzero(rows["query"] == q)
        logs = np.zeros((len(documents), model.grades, len(u), len(v)))
        for i, d in enumerate(documents):
            mine = rows["document"] == d
            n, c, k = rows["n"][mine], rows["c"][mine], rows["place"][mine]
            at, shown = np.log(model.places.position[k]) @ n / n.sum(), np.log(n.sum())
            place_hats = np.array(
                [[np.interp(p, where, e) for e in np.eye(len(where))] for p in np.log(model.places.position[k])]
            )
            often_hats = np.array([np.interp(shown, often, e) for e in np.eye(len(often))[1:]])
            assert where[0] - 1e-9 <= at <= where[-1] + 1e-9
            logits = np.concatenate([[0.0], eta @ np.concatenate([n @ place_hats / n.sum(), often_hats])])
            prior = logits[:, None, None] + g[:, None, None] * v
            logs[i] = prior - np.logaddexp.reduce(prior, axis=0)
            for cell in range(len(n)):
                logs[i] += density(c[cell], n[cell], r[:, k[cell]], model)[:, :, None]
        total = np.logaddexp.reduce(logs, axis=1)
        weight = (
            total.sum(axis=0)
            - (GRID[:, None] ** 2 / 2 if len(u) > 1 else 0)
            - (GRID[::8] ** 2 / 2 if len(v) > 1 else 0)
        )
        weight = np.exp(weight - weight.max())
        found[documents] = np.einsum("dguv,uv->dg", np.exp(logs - total[:, None]), weight / weight.sum())
    return found


def density(c: int, n: int, r: np.ndarray, model: Model) -> np.ndarray:
    if not model.effects.appeal:
        return np.asarray(xlogy(c, r) + xlog1py(n - c, -r))
    m = np.exp(model.number("d")) * r ** -model.number("k")
    return np.asarray(betaln(r * m + c, (1 - r) * m + n - c) - betaln(r * m, (1 - r) * m))


@pytest.mark.parametrize("effects", EFFECTS, ids=str)
@pytest.mark.parametrize("grades", [2, 3])
def test_grades_are_those_of_a_fine_grid(effects: Effects, grades: int) -> None:
    rows = rows_of(1)
    model = model_of(rows, effects, grades)
    found = grades_of(model, documents_of(rows, model))
    assert found.sum(axis=0) == pytest.approx(1)
    off = found.T - integrated(rows, model)
    assert np.abs(off).max() < NEAR
    assert np.sqrt(np.mean(off**2)) < MOSTLY_NEAR


def test_labels_do_not_depend_on_how_many_documents_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(2)
    model = model_of(rows, Effects("examination"), 2)
    documents = documents_of(rows, model)
    together = label_documents(model, documents)
    monkeypatch.setattr(sys.modules[Documents.__module__], "DOCUMENTS", 7)
    assert label_documents(model, documents).relevance.tolist() == together.relevance.tolist()
