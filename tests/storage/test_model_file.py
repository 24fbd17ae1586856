"""A model file comes back as it was; a damaged one, and one that lies, is refused with the place of the lie."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clickmix as cm
from clickmix.storage.documents import document_text, read_document

COUNTS = cm.Counts.from_arrays(["q"] * 4, [1, 2, 3, 4], [1, 1, 2, 2], [90, 90, 90, 90], [60, 5, 40, 2])
FIT = cm.MixtureCorrection(sharing=False).fit(COUNTS)
LOG_FIT = cm.MixtureCorrection().fit(COUNTS)


RELEASED = (Path(__file__).parent / "model-0.1.json").read_text(encoding="utf-8")


def refused(tmp_path: Path, data: bytes) -> str:
    file = tmp_path / "model.json"
    file.write_bytes(data)
    with pytest.raises((cm.FormatError, cm.InputError)) as caught:
        cm.MixtureFit.read(file)
    return str(caught.value).removeprefix(f"{file}: ")


def accepted(file: Path, data: bytes) -> bool:
    file.unlink(missing_ok=True)  # a file that is emptied and filled again waits for the disk on ext4, 2 ms each time
    file.write_bytes(data)
    try:
        cm.MixtureFit.read(file)
    except (cm.FormatError, cm.InputError):
        return False
    return True


MODEL = FIT.to_json().encode()


def test_a_model_of_release_0_1_is_read(tmp_path: Path) -> None:
    """The file is fixed text: the names and numbers of version 2 must not change."""
    (tmp_path / "model.json").write_text(RELEASED, encoding="utf-8")
    fitted = cm.MixtureFit.read(tmp_path / "model.json")
    assert fitted.to_json() == RELEASED
    assert [group.mixture.rates for group in fitted.groups] == [(0.25, 0.5)]


def test_a_model_comes_back_as_it_was(tmp_path: Path) -> None:
    FIT.write(tmp_path / "model.json")
    assert cm.MixtureFit.read(tmp_path / "model.json") == FIT


def test_a_model_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    # The last byte is a newline after the document.
    assert [n for n in range(len(MODEL) - 1) if accepted(tmp_path / "model.json", MODEL[:n])] == []


def test_a_model_with_any_bit_flipped_is_refused_or_means_the_same(tmp_path: Path) -> None:
    meant = json.loads(MODEL)
    wrong = []
    for i in range(8 * len(MODEL)):
        flipped = bytearray(MODEL)
        flipped[i // 8] ^= 1 << i % 8
        if accepted(tmp_path / "model.json", bytes(flipped)) and json.loads(flipped) != meant:
            wrong.append(i)
    assert wrong == []


def changed(change: Callable[[dict[str, Any]], object], *, version: int = 2, kind: str = "clickmix model") -> bytes:
    """The model with a changed payload and a checksum that fits it."""
    payload = json.loads(MODEL)["payload"]
    change(payload)
    return document_text(kind=kind, version=version, payload=payload).encode()


def group(payload: dict[str, Any]) -> Any:
    return payload["groups"][0]


STEP = {"position": 1, "frequent": [""], "score": [10_000], "bounds": [1, 2]}


def walked(*steps: dict[str, Any]) -> bytes:
    """The model as one of dcm, with these steps."""

    def change(payload: dict[str, Any]) -> None:
        payload.update(examination="dcm", context=["above"], steps=list(steps))
        for each in payload["groups"]:
            for place in each["places"]:
                place["context"] = [""]

    return changed(change)


AGAIN = ". Make the model again."
CANNOT = "not a model this clickmix can use: "
# ruff: noqa: E501
LIES: list[tuple[str, bytes, str]] = [
    ("empty", b"", "damaged, or not a clickmix model: not a JSON document."),
    ("binary", b"\xff\x00", "damaged, or not a clickmix model: not UTF-8 text."),
    ("nested", b"[" * 1_000_000, "damaged, or not a clickmix model: not a JSON document."),
    ("list", b"[]", "damaged, or not a clickmix model: expected kind, version, payload and checksum."),
    ("NaN", MODEL.replace(b'"moving": 0.0', b'"moving": NaN'), "damaged, or not a clickmix model: not a JSON document."),
    ("key twice", b'{"kind": 1, "kind": 1}', "damaged, or not a clickmix model: not a JSON document."),
    ("a long number", b'{"kind": ' + b"9" * 5000 + b"}", "damaged, or not a clickmix model: not a JSON document."),
    ("other kind", changed(lambda p: None, kind="ranker"), "found a 'ranker', expected a 'clickmix model'."),
    (
        "other version",
        changed(lambda p: None, version=1),
        "format version 1; this clickmix reads 2, 3, 4, 5, 6. Make the file again with this clickmix, or use the one that wrote it.",
    ),
    ("version true", changed(lambda p: None, version=True), "format version True; this clickmix reads 2, 3, 4, 5, 6. Make the file again with this clickmix, or use the one that wrote it."),
    ("other checksum", MODEL.replace(b'"moving": 0.0', b'"moving": 1.0'), "damaged: the checksum does not match the contents. Make the file again."),
    ("infinite", MODEL.replace(b'"moving": 0.0', b'"moving": 1e999'), "damaged, or not a clickmix model: not a JSON document."),
    ("payload a list", document_text(kind="clickmix model", version=2, payload=[]).encode(), "damaged: the checksum does not match the contents. Make the file again."),  # type: ignore[arg-type]
    ("missing field", changed(lambda p: p.pop("moving")), CANNOT + "missing field 'moving', expected bics, checks, context, examination, fitted, groups, joint_error, log_likelihoods, mixture, moving, prior, shared, steps" + AGAIN),
    ("extra field", changed(lambda p: p.update(more=1)), CANNOT + "unknown field 'more', expected bics, checks, context, examination, fitted, groups, joint_error, log_likelihoods, mixture, moving, prior, shared, steps" + AGAIN),
    ("extra field in a group", changed(lambda p: group(p).update(more=1)), CANNOT + "groups[0]: unknown field 'more', expected mixture, places, prior" + AGAIN),
    ("no groups", changed(lambda p: p["groups"].clear()), CANNOT + "groups: expected at least one group" + AGAIN),
    ("groups a text", changed(lambda p: p.update(groups="x")), CANNOT + "groups: found 'x', expected a list" + AGAIN),
    ("group a number", changed(lambda p: p.update(groups=[1])), CANNOT + "groups[0]: found 1, expected an object" + AGAIN),
    ("mixture unknown", changed(lambda p: p.update(mixture="magic")), CANNOT + "mixture: found 'magic', expected one of auto, binomial, gaussian, graded, nonparametric" + AGAIN),
    ("mixture a list", changed(lambda p: group(p).update(mixture=[])), CANNOT + "groups[0].mixture: found [], expected an object" + AGAIN),
    ("prior text", changed(lambda p: group(p).update(prior="x")), CANNOT + "groups[0].prior: found 'x', expected a list" + AGAIN),
    ("prior true", changed(lambda p: group(p).update(prior=[True, 0.5])), CANNOT + "groups[0].prior[0]: found True, expected a number from 0 to 1" + AGAIN),
    ("prior huge", changed(lambda p: group(p).update(prior=[10**400, 0.5])), CANNOT + "groups[0].prior[0]: found 100000000000000000...0000000000000000000, expected a number from 0 to 1" + AGAIN),
    ("prior one", changed(lambda p: group(p).update(prior=[0.0, 1.0])), CANNOT + "groups[0].prior: expected shares of two or more grades, above 0, adding up to 1" + AGAIN),
    ("prior short", changed(lambda p: group(p).update(prior=[0.2, 0.2, 0.6])), CANNOT + "groups[0]: expected the same number of grades in every group, and a rate for each" + AGAIN),
    ("bics", changed(lambda p: p.update(bics={"two": 1})), CANNOT + "bics: found the key 'two', expected whole numbers" + AGAIN),
    ("check unknown", changed(lambda p: p.update(checks=[{"violation": "x", "statistic": 1, "limit": 1, "evidence": ""}])), CANNOT + "checks[0].violation: found 'x', expected one of clicks depend on the documents above, a few queries are clicked far more than others, every impression was written several times, at some places, documents of the same grade differ in appeal, more grades than were fitted, rates rise down the page, documents clicked more, or less, than any grade, documents clicked at rates between the grades'" + AGAIN),
    ("check half", changed(lambda p: p.update(checks=[{"violation": "x"}])), CANNOT + "checks[0]: missing field 'evidence', expected evidence, limit, statistic, violation" + AGAIN),
    ("evidence a number", changed(lambda p: p.update(checks=[{"violation": "more grades than were fitted", "statistic": 1, "limit": 1, "evidence": 1}])), CANNOT + "checks[0].evidence: found 1, expected text" + AGAIN),
    ("joint error", changed(lambda p: p.update(joint_error=2)), CANNOT + "joint_error: found 2, expected a number from 0 to 1" + AGAIN),
    ("shared", changed(lambda p: p.update(shared="yes")), CANNOT + "shared: found 'yes', expected true or false" + AGAIN),
    ("position 0", changed(lambda p: group(p)["places"][0].update(position=0)), CANNOT + "groups[0].places[0].position: found 0, expected a whole number from 1" + AGAIN),
    ("position real", changed(lambda p: group(p)["places"][0].update(position=1.0)), CANNOT + "groups[0].places[0].position: found 1.0, expected a whole number from 1" + AGAIN),
    ("context too long", changed(lambda p: group(p)["places"][0].update(context=["x"])), CANNOT + "groups[0].places[0].context: expected 0 values, as in the model's context" + AGAIN),
    ("context a number", changed(lambda p: p.update(context=[1])), CANNOT + "context[0]: found 1, expected text" + AGAIN),
    ("no places", changed(lambda p: group(p)["places"].clear()), CANNOT + "groups[0].places: expected at least one place" + AGAIN),
    ("no documents", changed(lambda p: group(p)["places"][0].update(documents=0)), CANNOT + "groups[0].places[0].documents: found 0, expected a whole number from 1" + AGAIN),
    ("a place twice", changed(lambda p: p["groups"].append(p["groups"][0])), CANNOT + "groups[1].places[0]: this place is already in another group" + AGAIN),
    ("rates beyond", changed(lambda p: group(p)["mixture"].update(rates=[5, 6], weights=[0.5, 0.5])), CANNOT + "groups[0].mixture.rates[0]: found 5, expected a number from -1 to 2" + AGAIN),
    ("weights", changed(lambda p: group(p)["mixture"].update(rates=[0.1, 0.2], weights=[0.5, 0.6])), CANNOT + "groups[0].mixture.weights: expected a weight for each rate, adding up to 1" + AGAIN),
    ("verdict", changed(lambda p: group(p)["mixture"].update(verdict="fine")), CANNOT + "groups[0].mixture.verdict: found 'fine', expected one of separated, overlapping, one rate, no clicks, all clicked, too few documents, not converged" + AGAIN),
    ("rates falling", changed(lambda p: group(p)["mixture"].update(rates=[0.2, 0.1], weights=[0.5, 0.5])), CANNOT + "groups[0].mixture.rates: expected rates in ascending order, between 0 and 1" + AGAIN),
    ("variances", changed(lambda p: group(p)["mixture"].update(variances=[0.1, 0.1])), CANNOT + "groups[0].mixture.variances: these do not fit the model's mixture" + AGAIN),
    ("variances short", changed(lambda p: group(p)["mixture"].update(variances=[0.1, 0.1, 0.1])), CANNOT + "groups[0].mixture.variances: expected one for each rate" + AGAIN),
    ("standard errors", changed(lambda p: group(p)["mixture"].update(standard_errors=[0.1, 0.1, 0.1])), CANNOT + "groups[0].mixture.standard_errors: expected one for the lowest and one for the highest rate" + AGAIN),
    ("steps of pbm", changed(lambda p: p.update(steps=[STEP])), CANNOT + "steps: these do not fit the examination" + AGAIN),
    ("no steps of dcm", changed(lambda p: p.update(examination="dcm")), CANNOT + "steps: these do not fit the examination" + AGAIN),
    ("step at 0", walked(STEP | {"position": 0}), CANNOT + "steps: expected ascending positions from 1" + AGAIN),
    ("step twice", walked(STEP, STEP | {"frequent": ["0"], "score": [1, 1]}), CANNOT + "steps: expected ascending positions from 1" + AGAIN),
    ("step pattern", walked(STEP | {"frequent": ["0"]}), CANNOT + "steps[0].frequent: expected 0 digits from 0 to 4 each" + AGAIN),
    ("step score", walked(STEP | {"score": []}), CANNOT + "steps[0].score: expected 1 numbers" + AGAIN),
    ("step bounds", walked(STEP | {"bounds": [2, 1]}), CANNOT + "steps[0].bounds: expected ascending numbers" + AGAIN),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), [lie[1:] for lie in LIES], ids=[lie[0] for lie in LIES])
def test_models_that_lie(tmp_path: Path, data: bytes, expected: str) -> None:
    assert refused(tmp_path, data) == expected


def of_log(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The model of a whole log with changed numbers, and a checksum that fits them."""
    payload = json.loads(LOG_FIT.to_json())["payload"]
    change(payload)
    return document_text(kind="clickmix model", version=3, payload=payload).encode()


LOG_LIES: list[tuple[str, bytes, str]] = [
    ("a place more", of_log(lambda p: p["model"]["positions"].append(9.0)), "model.contexts: expected a number for each place"),
    ("position 0", of_log(lambda p: p["model"]["positions"].__setitem__(0, 0)), "model.positions[0]: found 0, expected a number from 1"),
    ("knots", of_log(lambda p: p["model"].update(where=[1.0, 0.0])), "model.where: expected ascending numbers"),
    ("a knot more", of_log(lambda p: p["model"].update(often=[0.0, 9.0])), "model.prior: expected a number for each knot"),
    ("an effect more", of_log(lambda p: p["model"].update(appeal=True)), "model.numbers: these do not fit the effects"),
    ("another link", of_log(lambda p: p["model"].update(attention="all")), "model.attention: found 'all', expected one of examination, odds"),
    ("a group more", of_log(lambda p: p["model"]["positions"].clear() or [p["model"][k].clear() for k in ("contexts", "low", "high", "low_errors", "high_errors")]), "model: expected a group for each place, and as many grades"),
    ("no model", of_log(lambda p: p.pop("model")), "missing field 'model', expected bics, checks, context, examination, fitted, groups, joint_error, log_likelihoods, mixture, model, moving, prior, shared, steps"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), [lie[1:] for lie in LOG_LIES], ids=[lie[0] for lie in LOG_LIES])
def test_models_of_a_whole_log_that_lie(tmp_path: Path, data: bytes, expected: str) -> None:
    assert refused(tmp_path, data) == CANNOT + expected + AGAIN


def test_a_model_of_a_whole_log_comes_back_as_it_was(tmp_path: Path) -> None:
    LOG_FIT.write(tmp_path / "model.json")
    assert cm.MixtureFit.read(tmp_path / "model.json") == LOG_FIT
    assert cm.MixtureFit.read(tmp_path / "model.json").to_json() == LOG_FIT.to_json()


def test_what_is_no_model_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(cm.InputError, match=re.escape("missing.json: no such file. Expected a clickmix model.")):
        cm.MixtureFit.read(tmp_path / "missing.json")
    with pytest.raises(cm.InputError, match=re.escape("not a file. Expected a clickmix model.")):
        cm.MixtureFit.read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(cm.InputError, match=re.escape("not a file. Expected a clickmix model.")):
        cm.MixtureFit.read(tmp_path / "pipe")
    monkeypatch.setattr("clickmix.storage.documents.LARGEST_DOCUMENT", 100)
    FIT.write(tmp_path / "model.json")
    with pytest.raises(cm.FormatError, match=re.escape("larger than 0 MiB, so not a clickmix model.")):
        read_document(tmp_path / "model.json", kind="clickmix model", version=2)
