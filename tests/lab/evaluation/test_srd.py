"""Similarity rank disclosure: goldens, ties, resamples, and the band of no evidence."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.report import meaning
from monitor.lab.evaluation.srd import figures, fitted_rank_model, loss_fits, null_band
from monitor.maths.rank_models import LOSSES
from monitor.maths.ranks import null_bias_bits
from monitor.maths.statistics import limits
from tests.lab.evaluation.matrices import by_key, perfect, ranked_second, report_of


def rank_model_of(matrix, ties="spread"):
    return fitted_rank_model(matrix.better, matrix.tied, matrix.population, ties)


@pytest.mark.parametrize(
    ("regime", "ties"),
    [*((regime, "srd") for regime in ("plain", "mid", "weak", "random")),
     ("tied", "optimistic"), ("tied", "pessimistic")],
)  # fmt: skip
def test_golden_statistics(golden, regime, ties):
    expected = golden.json("reference")[regime][ties]
    rule = "spread" if ties == "srd" else ties
    matrix = golden.matrix(f"{regime}_eval")
    found = rank_model_of(matrix, rule)
    of = found.statistics
    assert_allclose(
        [of.mean_bits, of.identification_rate, of.std_bits, of.max_bits, of.spread],
        [expected[key] for key in ("MeanD", "IdR", "StDD", "MaxD", "Spread")],
        rtol=1e-12,
    )
    assert of.miller_madow_bits == pytest.approx(expected["MeanD_MillerMadow"], rel=1e-12)
    made = by_key(figures(matrix, ties=rule, permutations=0))
    assert (made["srd.mean_bits"].value, made["srd.mean_bits"].ties) == (of.mean_bits, rule)
    if rule != "spread":
        return
    assert found.histogram.tolist() == expected["hist"]
    assert found.trials == expected["n"]
    assert of.max_rank == expected["argmaxD_rank"]
    assert made["srd.maxd_rank"].value == expected["argmaxD_rank"]
    assert made["srd.spread"].value == expected["Spread"]


def test_golden_ties_spread_and_mid(golden):
    matrix = golden.matrix("tied_eval")
    assert rank_model_of(matrix).statistics.mean_bits == pytest.approx(2.1970946015, abs=1e-10)
    histogram = rank_model_of(matrix, "mid").histogram
    mean_rank = histogram @ np.arange(1, 101) / 1000
    assert mean_rank == pytest.approx(golden.json("reference")["tied"]["mid"]["mean_rank"])
    made = by_key(figures(matrix, permutations=0))
    assert made["srd.mean_bits_miller_madow"].value is None
    assert "whole counts" in made["srd.mean_bits_miller_madow"].note


@pytest.mark.parametrize("regime", ["mid", "weak", "random"])
def test_golden_losses(golden, regime):
    expected = golden.json("betabinom")["fits"][regime]
    fitted = loss_fits(rank_model_of(golden.matrix(f"{regime}_eval")).histogram)
    assert tuple(row.loss for row in fitted) == LOSSES
    for row in fitted:
        golden_row = expected[row.loss]
        assert row.value == pytest.approx(golden_row["loss"], rel=1e-6)
        assert row.kl_bits == pytest.approx(golden_row["KL_bits"], abs=1e-4)
        assert row.rank1_match_bits == pytest.approx(golden_row["rank1_match_bits"], abs=1e-4)
        assert row.mean_bits == pytest.approx(golden_row["MeanD"], abs=1e-4)


def test_few_trials_are_flagged():
    generator = np.random.default_rng(0)
    matrix = ScoreMatrix(generator.normal(size=(20, 500)), np.arange(20))
    made = by_key(figures(matrix, permutations=50))
    assert rank_model_of(matrix).sparse
    plug_in = made["srd.mean_bits"]
    assert plug_in.value > 4
    assert plug_in.value == pytest.approx(plug_in.floor, abs=0.3)
    assert made["srd.mean_bits_miller_madow"].value is None
    assert "fewer trials than speakers" in made["srd.mean_bits_miller_madow"].note
    assert "fewer trials than ranks" in made["srd.mean_bits_model"].note


def test_evidence_stands_above_the_null_band_and_none_within(golden):
    for regime in ("mid", "weak"):
        matrix = golden.matrix(f"{regime}_eval")
        band = null_band(matrix)
        assert rank_model_of(matrix).statistics.mean_bits > limits(band.mean_bits)[1]
        assert rank_model_of(matrix).mean_bits > limits(band.model_bits)[1]
    nothing = golden.matrix("random_eval")
    band = null_band(nothing)
    assert band.mean_bits.mean() == pytest.approx(null_bias_bits(100, 1000), rel=0.1)
    low, high = limits(band.mean_bits)
    assert low < rank_model_of(nothing).statistics.mean_bits < high
    assert rank_model_of(nothing).mean_bits < limits(band.model_bits)[1]
    shown = by_key(figures(nothing))["srd.null_mean_bits"]
    assert shown.limits == (low, high)
    assert "200 permutations" in shown.note


def test_trials_that_repeat_widen_the_null_band():
    """Copies of a trial add nothing: the formula for independent trials falls far short."""
    generator = np.random.default_rng(5)
    once = generator.normal(size=(50, 50))
    matrix = ScoreMatrix(np.repeat(once, 20, axis=0), np.repeat(np.arange(50), 20))
    assert null_band(matrix).mean_bits.mean() > 5 * null_bias_bits(50, 1000)


def _some(speakers, strength, alike, seed, tests=8):
    """A share `alike` of the variance of a score is common to all trials of a speaker."""
    generator = np.random.default_rng(seed)
    target = np.repeat(np.arange(speakers), tests)
    common = np.sqrt(alike) * generator.normal(size=(speakers, speakers))
    noise = np.sqrt(1 - alike) * generator.normal(size=(target.size, speakers))
    scores = common[target] + noise + 0.5 * generator.normal(size=speakers)
    return ScoreMatrix(scores + strength * (target[:, None] == np.arange(speakers)), target)


def _found(speakers, strength, alike, times):
    """Share of the studies in which the scores stand out from no evidence at 5 %."""
    studies = (_some(speakers, strength, alike, seed) for seed in range(times))
    return np.mean([null_band(each, seed=7).chance <= 0.05 for each in studies])


@pytest.mark.slow
@pytest.mark.parametrize("speakers", [2, 3, 4, 5, 6])
def test_no_evidence_stands_out_once_in_twenty_and_evidence_does(speakers):
    assert _found(speakers, 0.0, 0.0, 120) <= 0.08
    assert _found(speakers, 4.0, 0.3, 30) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("speakers", [3, 4, 5])
def test_trials_of_a_speaker_that_are_alike_are_no_evidence(speakers):
    assert _found(speakers, 0.0, 0.95, 120) <= 0.09


@pytest.mark.parametrize("speakers", [2, 3, 4, 5])
def test_perfect_scores_among_few_speakers_disclose(speakers):
    report = report_of(perfect(speakers, 6), replicates=200)
    assert report["srd.null_chance"].value <= 0.05
    assert "nothing measurable" not in meaning(report)[0]
    assert f"discloses {np.log2(speakers):.2f} bits" in meaning(report)[0]


def test_the_truth_counts_among_the_arrangements():
    chances = [null_band(perfect(speakers, 6), 20).chance for speakers in (3, 4, 5)]
    assert chances == pytest.approx([1 / 27, 1 / 24, 1 / 120])
    assert 1 / 201 <= null_band(perfect(2, 6)).chance < 0.02  # 1 of 924 ways to deal the trials
    assert null_band(perfect(2, 1)).chance > 0.3  # one of two ways
    assert null_band(perfect(8)).chance == pytest.approx(1 / 201)


def test_scores_that_run_the_other_way_are_no_evidence_of_the_speaker():
    mirrored = perfect(6, 5)
    reversed_scores = ScoreMatrix(-mirrored.scores, mirrored.target)
    assert null_band(reversed_scores).chance > 0.5


def test_a_speaker_who_is_always_second_is_disclosed():
    first = perfect(10, 3)
    second = np.roll(first.scores, 1, axis=1) + first.scores / 2
    report = report_of(ScoreMatrix(second, first.target), replicates=40)
    assert report["srd.null_chance"].value <= 0.05
    assert "a trial discloses" in meaning(report)[0]
    assert "may read too low" in report["srd.mean_bits_model"].note


def test_ranks_that_the_model_does_not_fit_are_not_understated():
    second = report_of(ranked_second(0.5), replicates=40)
    model, counted, band = (
        second[f"srd.{key}"] for key in ("mean_bits_model", "mean_bits", "null_mean_bits")
    )
    least = counted.value - band.high
    assert least > 2 * model.value
    assert f"the count shows at least {least:.2f} bits" in model.note
    assert f"a trial discloses {least:.2f} bits" in meaning(second)[0]
    for matrix in (ranked_second(0.0), perfect(10, 3)):
        assert "the count shows" not in report_of(matrix, replicates=40)[model.key].note


def test_few_tested_speakers_are_dealt_as_few_speakers_are():
    scores = np.eye(4)[np.repeat([0, 1], 8)]
    two_of_four = null_band(ScoreMatrix(scores, np.repeat([0, 1], 8)))
    assert "permutations of trials" in two_of_four.dealt
    assert two_of_four.chance <= 0.05
    many = null_band(ScoreMatrix(np.eye(30)[np.repeat([0, 1], 8)], np.repeat([0, 1], 8)))
    assert many.dealt == "200 permutations of whole speakers against the templates"
