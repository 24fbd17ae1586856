"""Corrections in closed form: affine, IPS, COEC, the oracle; against slow versions, against the truth, bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from clickmix.corrections.affine import AffineCorrection
from clickmix.corrections.coec import ClicksOverExpected
from clickmix.corrections.ips import InversePropensity
from clickmix.corrections.none import NoCorrection
from clickmix.corrections.oracle import Oracle
from clickmix.corrections.parameters import BiasParameters
from clickmix.counts.counts import Counts
from clickmix.errors import ClickmixError, InputError, SettingError
from clickmix.lab.users import PositionBased, Trust
from moving_logs import BIAS, moving_counts
from oracles_corrections import affine_estimate, documents, expected_clicks, position_rates

Floats = NDArray[np.float64]
POSITIONS = 20
TRUSTS = {"trust bias": Trust.paper(POSITIONS), "no trust bias": Trust.perfect(POSITIONS)}


def user(trust: str, eta: float = 1) -> PositionBased:
    return PositionBased.with_eta(eta, positions=POSITIONS, trust=TRUSTS[trust])


def parameters(person: PositionBased) -> BiasParameters:
    return BiasParameters(person.alpha, person.beta)


class TestSlowVersions:
    def test_affine(self) -> None:
        counts = moving_counts(queries=20)
        slow = [affine_estimate(cells, BIAS) for cells in documents(counts).values()]
        labels = AffineCorrection(BIAS).label(counts)
        assert labels.estimate == pytest.approx(slow, abs=1e-9)
        assert labels.relevance == pytest.approx(np.clip(slow, 0, 1), abs=1e-9)
        assert AffineCorrection(BIAS, clip="twenty").label(counts).relevance == pytest.approx(
            np.clip(slow, 0, 20) / 20, abs=1e-9
        )

    def test_ips_is_affine_without_beta(self) -> None:
        counts, theta = moving_counts(queries=20), 1 / np.arange(1, 7)
        given = BiasParameters(theta, np.zeros(6))
        slow = [affine_estimate(cells, given) for cells in documents(counts).values()]
        assert InversePropensity(theta).label(counts).estimate == pytest.approx(slow, abs=1e-9)

    @pytest.mark.parametrize("charge", ["positions", "best-position"])
    def test_coec(self, charge: Any) -> None:
        counts = moving_counts(queries=20)
        found = list(documents(counts).values())
        rates = position_rates([cell for cells in found for cell in cells])
        slow = [
            sum(c for _, _, c in cells) / expected_clicks(cells, rates, best=charge == "best-position")
            for cells in found
        ]
        labels = ClicksOverExpected(charge).fit(counts).label(counts)
        assert labels.estimate == pytest.approx(slow, abs=1e-9)
        assert labels.relevance == pytest.approx(np.minimum(slow, 1), abs=1e-9)

    def test_where_no_click_is_expected_coec_is_0(self) -> None:
        counts = Counts.from_arrays(["q"] * 2, ["a", "b"], [1, 2], [10, 10], [5, 0])
        assert ClicksOverExpected().fit(counts).label(counts).estimate.tolist() == [1.0, 0.0]

    def test_charged_to_the_best_position_a_document_that_sank_loses(self) -> None:
        """Its clicks are those of the average document at its positions, 1 and 2; OpenSearch expects more of it."""
        counts = Counts.from_arrays(
            ["q"] * 4, ["sank", "sank", "top", "low"], [1, 2, 1, 2], [100] * 4, [40, 10, 40, 10]
        )
        both = [ClicksOverExpected(charge).fit(counts).label(counts) for charge in ("positions", "best-position")]
        assert [labels.estimate[labels.doc_id == "sank"].tolist() for labels in both] == [[1.0], [0.625]]

    def test_without_bias_all_are_the_click_through_rate(self) -> None:
        counts = moving_counts(queries=20)
        rate = NoCorrection().label(counts).relevance
        assert AffineCorrection(BiasParameters([1] * 6, [0] * 6)).label(counts).estimate == pytest.approx(rate)
        assert InversePropensity([1] * 6).label(counts).estimate == pytest.approx(rate)

    def test_labels_without_clipping_have_their_relevance_as_estimate(self) -> None:
        labels = NoCorrection().label(moving_counts(queries=5))
        assert (labels.estimate == labels.relevance).all()

    def test_titles_say_how_labels_are_clipped(self) -> None:
        corrections = (
            AffineCorrection(BIAS),
            AffineCorrection(BIAS, clip="twenty"),
            InversePropensity([1.0]),
            ClicksOverExpected(),
            ClicksOverExpected("best-position", clip="twenty"),
            Oracle(["q"], ["d"], [1]),
        )
        assert [correction.title for correction in corrections] == [
            "affine, clipped to 1",
            "affine, clipped to 20",
            "ips, clipped to 1",
            "coec, clipped to 1",
            "coec by best position, clipped to 20",
            "true relevance",
        ]


class Replicates:
    """Many logs at once, each a query: document k stands at position k in all of them, `impressions` times."""

    def __init__(self, person: PositionBased, *, logs: int = 4000, impressions: int = 30, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.relevance = np.linspace(0, 1, POSITIONS)[rng.permutation(POSITIONS)]
        self.p = person.alpha * self.relevance + person.beta
        self.impressions, self.logs = impressions, logs
        clicks = rng.binomial(impressions, self.p, (logs, POSITIONS))
        log, k = (index.ravel() for index in np.meshgrid(np.arange(logs), np.arange(POSITIONS), indexing="ij"))
        self.counts = Counts.from_arrays(log, k, k + 1, np.full(len(k), impressions), clicks.ravel())

    def z(self, estimate: Floats, expected: Floats, slope: Floats) -> Floats:
        """Of the mean over logs at each position; the estimate's variance is p (1 - p) / n / slope^2."""
        mean = estimate.reshape(self.logs, POSITIONS).mean(axis=0)
        error = np.sqrt(self.p * (1 - self.p) / self.impressions / self.logs) / slope
        difference = mean - expected
        certain = error < 1e-12  # relevance 0 without trust bias: never clicked
        assert np.abs(difference[certain]).max(initial=0) < 1e-9
        z: Floats = np.where(certain, 0, difference / np.where(certain, 1, error))
        return z


class TestUnbiased:
    @pytest.mark.parametrize("eta", [1, 2])
    @pytest.mark.parametrize("trust", TRUSTS)
    def test_affine_with_true_parameters_at_every_position(self, trust: str, eta: float) -> None:
        person = user(trust, eta)
        logs = Replicates(person)
        labels = AffineCorrection(parameters(person)).label(logs.counts)
        assert np.abs(logs.z(labels.estimate, logs.relevance, person.alpha)).max() < 5

    @pytest.mark.parametrize("trust", TRUSTS)
    def test_affine_of_documents_that_move(self, trust: str) -> None:
        """One document, 50 impressions at position 1, 20 at 4 and 5 at 9, in 20,000 logs."""
        person, k, n, relevance, logs = user(trust), np.array([1, 4, 9]), np.array([50, 20, 5]), 0.3, 20_000
        p = person.alpha[k - 1] * relevance + person.beta[k - 1]
        clicks = np.random.default_rng(1).binomial(n, p, (logs, 3))
        counts = Counts.from_arrays(
            np.repeat(np.arange(logs), 3), np.zeros(3 * logs, int), np.tile(k, logs), np.tile(n, logs), clicks.ravel()
        )
        estimate = AffineCorrection(parameters(person)).label(counts).estimate
        variance = (n * p * (1 - p) / person.alpha[k - 1] ** 2).sum() / n.sum() ** 2
        assert abs(estimate.mean() - relevance) / np.sqrt(variance / logs) < 5

    def test_clipped_labels_are_biased(self) -> None:
        person = user("trust bias")
        logs = Replicates(person)
        relevance = AffineCorrection(parameters(person)).label(logs.counts).relevance
        assert np.abs(logs.z(relevance, logs.relevance, person.alpha)).max() > 20

    def test_ips_without_trust_bias(self) -> None:
        person = user("no trust bias")
        logs = Replicates(person)
        labels = InversePropensity(person.examination).label(logs.counts)
        assert np.abs(logs.z(labels.estimate, logs.relevance, person.examination)).max() < 5

    def test_ips_with_trust_bias_estimates_the_chance_to_be_clicked_when_examined(self) -> None:
        person = user("trust bias")
        logs = Replicates(person)
        estimate = InversePropensity(person.examination).label(logs.counts).estimate
        attraction = person.trust.attraction(logs.relevance[None])[0]
        assert np.abs(logs.z(estimate, attraction, person.examination)).max() < 5
        assert logs.z(estimate, logs.relevance, person.examination)[0] > 20  # at the top it is far too high


class TestOracle:
    @staticmethod
    def truth(counts: Counts) -> dict[str, Any]:
        pairs = list(documents(counts))
        relevance = np.random.default_rng(0).random(len(pairs))
        return {"query_id": [q for q, _ in pairs], "doc_id": [d for _, d in pairs], "relevance": relevance}

    @pytest.mark.parametrize("ids", ["numbers", "texts"])
    def test_labels_are_the_truth_in_any_order_with_the_logs_counts(self, ids: str) -> None:
        cells = moving_counts(queries=20).cells()
        if ids == "texts":
            for key in ("query_id", "doc_id"):
                cells[key] = np.array([f"{value:03}" for value in cells[key]])
        counts = Counts.from_arrays(*cells.values())
        truth = self.truth(counts)
        order = np.random.default_rng(1).permutation(len(truth["relevance"]))
        labels = Oracle(*(np.asarray(column)[order] for column in truth.values())).fit(counts).label(counts)
        assert labels.relevance.tolist() == truth["relevance"].tolist()
        assert (labels.query_id.tolist(), labels.doc_id.tolist()) == (truth["query_id"], truth["doc_id"])
        assert (labels.clicks == NoCorrection().label(counts).clicks).all()

    def test_bad_truth(self) -> None:
        counts = Counts.from_arrays([1, 1], [1, 2], [1, 2], [5, 5], [1, 0])
        with pytest.raises(
            InputError, match=r"^The truth, row 2: found relevance 1\.5, expected a number from 0 to 1\.$"
        ):
            Oracle([1, 1], [1, 2], [0, 1.5])
        with pytest.raises(
            InputError,
            match=r"^The truth: no relevance for query 1, document 2\. Add one for every document of the log\.$",
        ):
            Oracle([1], [1], [0.5]).label(counts)
        with pytest.raises(InputError, match=r"^The truth: query 1, document 2 appears twice\. List it once\.$"):
            Oracle([1, 1, 1], [1, 2, 2], [0.5, 0.1, 0.1]).label(counts)
        with pytest.raises(
            InputError, match=r"^The truth: query_id is text, but integer in the log\. Use the same type\.$"
        ):
            Oracle(["1", "1"], [1, 2], [0.5, 0.1]).label(counts)


WRONG: dict[str, tuple[Any, list[float], str]] = {
    "sum above 1": (
        [0.5, 0.5, 0.9],
        [0.1, 0.1, 0.3],
        "alpha + beta at position 3 is 1.2, expected at most 1: it is the click rate of a relevant document there. "
        "Check the numbers.",
    ),
    "alpha 0": ([0.5, 0.0], [0.1, 0.1], "alpha at position 2 is 0, expected a number from 1e-06 to 1."),
    "alpha below 0": ([-0.5, 0.1], [0.1, 0.1], "alpha at position 1 is -0.5, expected a number from 1e-06 to 1."),
    "beta below 0": ([0.5, 0.1], [0.1, -0.1], "beta at position 2 is -0.1, expected a probability, from 0 to 1."),
    "lengths": (
        [0.5, 0.1],
        [0.1],
        "alpha has 2 positions, beta has 1. Give both for the same positions.",
    ),
    "nothing": ([], [], "alpha must be one number per position, found an array of shape (0,)."),
    "texts": (["a"], [0], "alpha must be one number per position, found ['a']."),
    "a dict": ({"1": 0.5}, [0], "alpha must be one number per position, found {'1': 0.5}."),
}
FILES: dict[str, tuple[str, str]] = {
    "no JSON": ("{", ': not JSON. Expected {"alpha": [...], "beta": [...]} or {"theta": [...]}.'),
    "NaN": (
        '{"alpha": [NaN], "beta": [0]}',
        ': not JSON. Expected {"alpha": [...], "beta": [...]} or {"theta": [...]}.',
    ),
    "a list": ("[1]", ": found a list. Expected an object with alpha and beta, or theta, and nothing else."),
    "another field": (
        '{"alpha": [1], "beta": [0], "gamma": [1]}',
        ": found alpha, beta, gamma. Expected an object with alpha and beta, or theta, and nothing else.",
    ),
    "theta only": ('{"theta": [1]}', ": no alpha. Found theta; expected a list alpha, one number per position."),
    "texts": ('{"alpha": ["1"], "beta": [0]}', ": alpha is not a list of numbers. Give one number per position."),
    "true": ('{"alpha": [true], "beta": [0]}', ": alpha is not a list of numbers. Give one number per position."),
    "alpha 0": ('{"alpha": [0], "beta": [0]}', ": alpha at position 1 is 0, expected a number from 1e-06 to 1."),
}


class TestParameters:
    @pytest.mark.parametrize("case", WRONG)
    def test_what_cannot_be_is_refused(self, case: str) -> None:
        alpha, beta, message = WRONG[case]
        with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
            BiasParameters(alpha, beta)

    @pytest.mark.parametrize("case", FILES)
    def test_files_that_cannot_be_read_are_named(self, case: str, tmp_path: Path) -> None:
        text, message = FILES[case]
        path = tmp_path / "ab.json"
        path.write_text(text)
        with pytest.raises(InputError, match=f"^{re.escape(str(path) + message)}$"):
            BiasParameters.read(path)

    def test_a_missing_file(self) -> None:
        message = 'none.json: no such file. Expected parameters, for instance {"alpha": [...], "beta": [...]}.'
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            BiasParameters.read("none.json")

    def test_what_is_written_is_read(self, tmp_path: Path) -> None:
        BIAS.write(tmp_path / "ab.json")
        again = BiasParameters.read(tmp_path / "ab.json")
        assert again.alpha.tolist() == BIAS.alpha.tolist()
        assert again.beta.tolist() == BIAS.beta.tolist()

    def test_one_file_may_hold_all_three(self, tmp_path: Path) -> None:
        (tmp_path / "abt.json").write_text(json.dumps({"alpha": [0.5], "beta": [0.2], "theta": [0.9]}))
        assert BiasParameters.read(tmp_path / "abt.json").beta.tolist() == [0.2]
        assert BiasParameters.read_examination(tmp_path / "abt.json").alpha.tolist() == [0.9]

    @pytest.mark.parametrize(
        "correction", [AffineCorrection(BiasParameters([1, 1], [0, 0])), InversePropensity([1, 1])]
    )
    def test_too_few_positions_for_the_log(self, correction: Any) -> None:
        message = (
            "The parameters cover 2 positions, but the log goes down to position 6. Give parameters for all "
            "positions, or remove the lower ones from the log."
        )
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            correction.fit(moving_counts(queries=20)).label(moving_counts(queries=20))

    @pytest.mark.parametrize("correction", [AffineCorrection(BIAS), ClicksOverExpected()])
    def test_contexts_are_refused(self, correction: Any) -> None:
        name = "affine" if isinstance(correction, AffineCorrection) else "coec"
        counts = moving_counts(queries=20, device=True)
        message = (
            f"{name} knows only positions, but the counts have context columns: device. Count the log without context "
            "columns, or one context at a time."
        )
        with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
            correction.fit(counts).label(counts)

    def test_coec_of_a_position_that_was_not_in_the_log(self) -> None:
        fitted = ClicksOverExpected().fit(Counts.from_arrays([1], [1], [1], [5], [1]))
        message = (
            "Position 2 is not in the log that coec was fitted on. Fit coec on a log with every position that you want "
            "to label."
        )
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            fitted.label(Counts.from_arrays([1, 1], [1, 2], [1, 2], [5, 5], [1, 0]))

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: AffineCorrection(BIAS, clip=cast(Any, "ten")), "clip 'ten': expected one of one, twenty."),
            (lambda: InversePropensity([1], clip=cast(Any, "ten")), "clip 'ten': expected one of one, twenty."),
            (
                lambda: ClicksOverExpected(cast(Any, "worst")),
                "charge 'worst': expected one of positions, best-position.",
            ),
        ],
    )
    def test_settings(self, make: Any, message: str) -> None:
        with pytest.raises(ClickmixError, match=f"^{re.escape(message)}$"):
            make()
