from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor.errors import UsageError
from monitor.lab.evaluation import EvaluationSettings, lid
from monitor.lab.evaluation import lid as lid_calibration
from monitor.lab.evaluation.comparisons import ScoreMatrix, resamples
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.lid import (
    STYLES,
    LidCalibration,
    LidStyle,
    calibrate,
    cross_calibrate,
    figures,
    information_bits,
    statistics,
)
from tests.lab.evaluation.matrices import with_limits

REGIMES = ("plain", "mid", "weak", "random")
GOLDEN_STYLES = {
    "repo_ddof1_balanced_C1": STYLES["repo"],
    "paper_ddof0_balanced_C1": LidStyle("balanced", 0, True, 1.0),
    "ddof0_unweighted_C1": LidStyle("ridge", 0, False, 1.0),
    "ddof0_unweighted_Cinf": STYLES["paper"],
}


def by_key(made):
    return {figure.key: figure for figure in made}


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("name", GOLDEN_STYLES)
def test_golden(golden, regime, name):
    expected = golden.json("reference")[regime]["lid"][name]
    found = calibrate(golden.matrix(f"{regime}_dev"), GOLDEN_STYLES[name])
    assert found.weight == pytest.approx(expected["w"], rel=1e-6, abs=1e-6)
    assert found.bias == pytest.approx(expected["b"], rel=1e-6, abs=1e-6)
    assert not found.bounded
    assert found.ceiling_bits(100) == pytest.approx(expected["ceiling"], abs=1e-5)
    bits = information_bits(golden.matrix(f"{regime}_eval"), found)
    assert_allclose(bits[:5], expected["LID_first5"], atol=1e-5)
    assert bits.min() == pytest.approx(expected["LIDmin"], abs=1e-5)
    of = statistics(bits)
    assert of.alid == pytest.approx(expected["ALID"], abs=1e-5)
    assert (of.pdr, of.ndr) == (expected["PDR"], expected["NDR"])
    assert of.positive == pytest.approx(expected["LIDpos"], abs=1e-5)
    if expected["LIDneg"] is None:
        assert of.negative is None
    else:
        assert of.negative == pytest.approx(expected["LIDneg"], abs=1e-5)
    assert of.largest == pytest.approx(expected["LIDmax"], abs=1e-5)


def test_golden_worked_example(golden):
    example = golden.json("math")["lid_worked_example"]
    matrix = ScoreMatrix(np.array([example["scores"]]), np.array([example["target"]]))
    for ddof in (0, 1):
        calibration = LidCalibration(example["w"], example["b"], example["prior_odds"], ddof, "x")
        expected = example[f"ddof{ddof}"]["LID_bits"]
        assert information_bits(matrix, calibration)[0] == pytest.approx(expected, abs=1e-12)


def test_published_rows_add_up(golden):
    """ALID = PDR LID+ + NDR LID-, to the two or three digits that Table 4 prints."""
    rows = golden.json("math")["lid_table4_identity"]
    assert len(rows) == 8
    for row in rows.values():
        again = row["PDR"] * row["LIDpos"] + (1 - row["PDR"]) * row["LIDneg"]
        assert again == pytest.approx(row["recon"], abs=1e-12)
        assert again == pytest.approx(row["ALID"], abs=0.006)


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=50))
def test_the_mean_is_made_of_its_two_sides(values):
    of = statistics(np.array(values))
    positive, negative = of.positive or 0.0, of.negative or 0.0
    assert of.alid == pytest.approx(of.pdr * positive + of.ndr * negative, abs=1e-9)
    assert of.pdr + of.ndr == 1
    assert (of.positive is None) == (of.pdr == 0)
    assert (of.negative is None) == (of.ndr == 0)


def test_zero_counts_as_negative():
    of = statistics(np.zeros(4))
    assert (of.pdr, of.ndr, of.positive, of.negative) == (0.0, 1.0, None, 0.0)
    with pytest.raises(UsageError, match="no trial"):
        statistics(np.array([]))


def test_figures_of_both_styles(golden):
    matrix, dev = golden.matrix("mid_eval"), golden.matrix("mid_dev")
    made = by_key(figures(matrix, dev=dev))
    expected = golden.json("reference")["mid"]["lid"]
    for stem, name in (("lid", "ddof0_unweighted_Cinf"), ("lid.repo", "repo_ddof1_balanced_C1")):
        figure = made[f"{stem}.alid_bits"]
        assert figure.value == pytest.approx(expected[name]["ALID"], abs=1e-5)
        assert figure.ceiling == pytest.approx(expected[name]["ceiling"], abs=1e-5)
        assert "penalty" not in figure.note
    assert "lid.paper.alid_bits" not in made
    assert (
        by_key(figures(golden.matrix("plain_eval"), dev=golden.matrix("plain_dev")))[
            "lid.repo.negative_bits"
        ].value
        is None
    )


def test_a_resample_weighs_the_bits(golden, monkeypatch):
    monkeypatch.setattr(lid, "weight_shifts", lambda *_: np.zeros(5))  # the calibration stays
    matrix, dev = golden.matrix("mid_eval"), golden.matrix("mid_dev")
    weights = resamples(matrix, replicates=5, seed=2)
    made = by_key(figures(matrix, weights, dev))
    bits = information_bits(matrix, calibrate(dev))
    for draw in range(5):
        of = statistics(np.repeat(bits, weights[draw].astype(int)[matrix.owner]))
        for key, value in (
            ("alid_bits", of.alid),
            ("pdr", of.pdr),
            ("ndr", of.ndr),
            ("positive_bits", of.positive),
            ("negative_bits", of.negative),
        ):
            replicates = made[f"lid.{key}"].replicates
            assert replicates is not None
            assert replicates[draw] == pytest.approx(value)


def test_a_side_that_is_empty_has_no_replicates_there(perfect):
    made = by_key(figures(perfect, resamples(perfect, replicates=7)))
    assert made["lid.negative_bits"].value is None
    assert made["lid.negative_bits"].limits == (None, None)


def test_cross_fitting_never_looks_at_the_speaker(golden):
    matrix = golden.matrix("mid_eval")
    found = cross_calibrate(matrix, "repo", folds=4)
    bits = information_bits(matrix, found)
    for fold, one in enumerate(found.calibrations):
        rows = found.fold == fold
        assert np.isin(matrix.target[~rows], matrix.target[rows]).sum() == 0
        others = ScoreMatrix(matrix.scores[~rows], matrix.target[~rows])
        alone = calibrate(others, "repo")
        assert one.weight == pytest.approx(alone.weight, rel=1e-9)
        judged = ScoreMatrix(matrix.scores[rows], matrix.target[rows])
        assert_allclose(bits[rows], information_bits(judged, alone), atol=1e-8)
    made = by_key(figures(matrix, folds=4))
    assert "cross-fitted over speakers, 4 folds" in made["lid.alid_bits"].note
    assert made["lid.repo.alid_bits"].value == pytest.approx(bits.mean())


def test_cross_fitting_is_close_to_a_dev_matrix(golden):
    for regime in REGIMES:
        matrix = golden.matrix(f"{regime}_eval")
        there = information_bits(matrix, calibrate(golden.matrix(f"{regime}_dev"), "repo")).mean()
        assert information_bits(matrix, cross_calibrate(matrix, "repo")).mean() == pytest.approx(
            there, abs=0.02
        )


def test_no_evidence_gives_none(golden):
    made = with_limits(figures, golden.matrix("random_eval"))
    low, high = made["lid.alid_bits"].limits
    assert low is not None
    assert high is not None
    assert low < 0.01
    assert high > -0.02
    flat = ScoreMatrix(np.full((12, 4), 0.3), np.arange(12) % 4)
    for figure in figures(flat):
        if figure.unit == "bits" and figure.value is not None:
            assert figure.value == 0


def test_perfect_scores_are_bounded_and_said(perfect):
    found = calibrate(perfect)
    assert found.bounded
    made = by_key(figures(perfect))
    figure = made["lid.alid_bits"]
    assert "separate" in figure.note
    assert figure.value is not None
    assert figure.ceiling is not None
    assert 2.5 < figure.value <= figure.ceiling <= np.log2(10)
    assert made["lid.pdr"].value == 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["paper", "repo"]))
def test_order_and_linear_maps_change_nothing(seed, style):
    generator = np.random.default_rng(seed)
    count = int(generator.integers(3, 10))
    target = np.arange(4 * count) % count
    scores = generator.normal(size=(target.size, count))
    scores[np.arange(target.size), target] += 1.0
    matrix = ScoreMatrix(scores, target)
    bits = information_bits(matrix, calibrate(matrix, style))
    moved, shuffled = generator.permutation(count), generator.permutation(target.size)
    other = ScoreMatrix(3 * scores[:, moved][shuffled] - 7, np.argsort(moved)[target][shuffled])
    again = information_bits(other, calibrate(other, style))
    assert_allclose(again, bits[shuffled], atol=1e-6)
    assert bits.max() <= np.log2(count)


def test_many_scores_are_binned(golden, monkeypatch):
    matrix = golden.matrix("mid_dev")
    exact = {name: calibrate(matrix, name) for name in STYLES}
    crossed = cross_calibrate(matrix, "paper", 3)
    monkeypatch.setattr(lid_calibration, "_EXACT", 0)
    for name, one in exact.items():
        assert calibrate(matrix, name).weight == pytest.approx(one.weight, rel=1e-6)
    again = cross_calibrate(matrix, "paper", 3)
    for one, other in zip(crossed.calibrations, again.calibrations, strict=True):
        assert other.weight == pytest.approx(one.weight, rel=1e-6)


def test_refusals(perfect):
    with pytest.raises(UsageError, match="no LID style"):
        calibrate(perfect, "thesis")
    one = ScoreMatrix(np.eye(3), np.zeros(3, dtype=int))
    with pytest.raises(UsageError, match="two or more"):
        cross_calibrate(one)
    with pytest.raises(UsageError, match="two or more"):
        cross_calibrate(perfect, folds=1)
    with pytest.raises(UsageError, match="made on"):
        information_bits(one, cross_calibrate(perfect))


def lid_notes(matrix: ScoreMatrix, dev: ScoreMatrix | None) -> list[str]:
    report = evaluate(
        matrix, settings=EvaluationSettings(replicates=0, only=["lid", "srd"]), dev=dev
    )
    return [note for note in report.notes if "contradicts the ranks" in note]


@pytest.mark.parametrize("regime", REGIMES)
def test_a_calibration_that_fits_is_not_questioned(golden, regime):
    assert lid_notes(golden.matrix(f"{regime}_eval"), golden.matrix(f"{regime}_dev")) == []


def test_a_calibration_that_contradicts_the_ranks_is_said_to():
    """ALID below 0 beside 70 % right at the first rank: why that may be, and what to do."""
    generator = np.random.default_rng(3)

    def scores(speakers: int, trials: int, strength: float, wrong: float) -> ScoreMatrix:
        target = np.repeat(np.arange(speakers), trials)
        made = generator.normal(size=(target.size, speakers))
        lost = generator.random(target.size) < wrong
        made[np.arange(target.size), target] = np.where(lost, -strength, strength)
        return ScoreMatrix(made, target)

    matrix, dev = scores(20, 20, 4.0, 0.25), scores(20, 2, 9.0, 0.0)
    made = by_key(figures(matrix, dev=dev))
    assert made["lid.alid_bits"].value < 0
    assert (matrix.better == 0).mean() > 0.65
    (note,) = lid_notes(matrix, dev)
    assert "it was learnt from 20 speakers and 40 trials" in note
    assert "the worst 20 of 400 trials take" in note
    assert "Go by SRD" in note
