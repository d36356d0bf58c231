from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix, resamples
from monitor.lab.evaluation.srd import (
    figures,
    fitted_rank_model,
    loss_fits,
    mean_bits_by_speaker,
    resampled_histograms,
)
from monitor.maths.rank_models import LOSSES, fit, fit_many, mean_bits_of
from monitor.maths.ranks import TIE_RULES, placed, rank_histogram
from tests.lab.evaluation.matrices import with_limits

REGIMES = ("plain", "mid", "weak", "random")


def rank_model_of(matrix, ties="spread"):
    return fitted_rank_model(matrix.better, matrix.tied, matrix.population, ties)


def by_key(made):
    return {figure.key: figure for figure in made}


@pytest.mark.parametrize("regime", REGIMES)
def test_golden_statistics(golden, regime):
    expected = golden.json("reference")[regime]["srd"]
    found = rank_model_of(golden.matrix(f"{regime}_eval"))
    assert found.histogram.tolist() == expected["hist"]
    of = found.statistics
    assert found.trials == expected["n"]
    assert_allclose(
        [of.mean_bits, of.identification_rate, of.std_bits, of.max_bits, of.spread],
        [expected[key] for key in ("MeanD", "IdR", "StDD", "MaxD", "Spread")],
        rtol=1e-12,
    )
    assert of.max_rank == expected["argmaxD_rank"]
    assert of.miller_madow_bits == pytest.approx(expected["MeanD_MillerMadow"], rel=1e-12)
    made = by_key(figures(golden.matrix(f"{regime}_eval"), permutations=0))
    assert made["srd.mean_bits"].value == of.mean_bits
    assert made["srd.maxd_rank"].value == expected["argmaxD_rank"]
    assert made["srd.spread"].value == expected["Spread"]


@pytest.mark.parametrize("rule", ["optimistic", "pessimistic"])
def test_golden_ties(golden, rule):
    expected = golden.json("reference")["tied"][rule]
    of = rank_model_of(golden.matrix("tied_eval"), rule).statistics
    assert_allclose(
        [of.mean_bits, of.identification_rate, of.std_bits, of.max_bits, of.spread],
        [expected[key] for key in ("MeanD", "IdR", "StDD", "MaxD", "Spread")],
        rtol=1e-12,
    )
    assert of.miller_madow_bits == pytest.approx(expected["MeanD_MillerMadow"], rel=1e-12)


def test_golden_ties_spread_and_mid(golden):
    matrix = golden.matrix("tied_eval")
    assert rank_model_of(matrix).statistics.mean_bits == pytest.approx(2.1970946015, abs=1e-10)
    histogram = rank_model_of(matrix, "mid").histogram
    mean_rank = histogram @ np.arange(1, 101) / 1000
    assert mean_rank == pytest.approx(golden.json("reference")["tied"]["mid"]["mean_rank"])
    made = by_key(figures(matrix, permutations=0))
    assert made["srd.mean_bits_miller_madow"].value is None
    assert "whole counts" in made["srd.mean_bits_miller_madow"].note
    assert made["srd.mean_bits"].ties == "spread"


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


@pytest.mark.parametrize("ties", TIE_RULES)
def test_a_placed_trial_is_counted_as_its_rule_says(ties):
    generator = np.random.default_rng(0)
    better = generator.integers(0, 5, 200)
    tied = generator.integers(1, 6, 200)
    expected = rank_histogram(better, tied, 10, ties)
    assert_allclose(rank_histogram(*placed(better, tied, ties), 10), expected, atol=1e-12)
    with pytest.raises(UsageError, match="tie rule"):
        placed(better, tied, "lucky")


@pytest.mark.parametrize("name", ["mid_eval", "tied_eval"])
def test_a_resample_weighs_speakers(golden, name, monkeypatch):
    matrix = golden.matrix(name)
    weights = resamples(matrix, replicates=6, seed=3)
    histograms = resampled_histograms(matrix, weights)
    rows = np.repeat(np.arange(1000), weights[2].astype(int)[matrix.owner])
    expected = rank_histogram(matrix.better[rows], matrix.tied[rows], 100)
    assert_allclose(histograms[2], expected, atol=1e-9)
    monkeypatch.setattr("monitor.lab.evaluation.srd._CHUNK", 2000)
    assert np.array_equal(resampled_histograms(matrix, weights), histograms)
    made = by_key(figures(matrix, weights, permutations=0))
    one = fitted_rank_model(matrix.better[rows], matrix.tied[rows], 100)
    expected_replicates = {
        "srd.mean_bits_model": one.mean_bits,
        "srd.idr": one.statistics.identification_rate,
        "srd.maxd_bits": one.statistics.max_bits,
        "srd.rank1_bits": one.statistics.rank1_bits,
        "srd.spread": one.statistics.spread,
        "srd.alpha": one.rank_model.alpha,
    }
    for key, value in expected_replicates.items():
        replicates = made[key].replicates
        assert replicates is not None
        assert replicates.shape == (6,)
        assert replicates[2] == pytest.approx(value, rel=1e-6)
    assert made["srd.mean_bits"].replicates is None


def test_limits_stand_around_the_model(golden):
    matrix = golden.matrix("mid_eval")
    figure = with_limits(figures, matrix)["srd.mean_bits_model"]
    low, high = figure.limits
    assert low is not None
    assert high is not None
    assert figure.value is not None
    assert low < figure.value < high
    assert figure.value == pytest.approx(2.24356, abs=1e-4)


def test_each_speaker_is_fitted_alone(golden, monkeypatch):
    monkeypatch.setattr("monitor.lab.evaluation.srd._SPEAKERS", 7)
    matrix = golden.matrix("mid_eval")
    bits = mean_bits_by_speaker(matrix)
    assert bits.shape == (100,)
    for speaker in (0, 7, 99):
        rows = matrix.target == speaker
        alone = fit(rank_histogram(matrix.better[rows], matrix.tied[rows], 100))
        assert bits[speaker] == pytest.approx(alone.mean_disclosure_bits(100), abs=1e-6)


def test_perfect_scores_reach_every_ceiling(perfect):
    made = with_limits(figures, perfect)
    ceiling = np.log2(10)
    for key in ("mean_bits", "mean_bits_model", "maxd_bits", "rank1_bits", "speaker_bits_median"):
        assert made[f"srd.{key}"].value == pytest.approx(ceiling)
        assert made[f"srd.{key}"].ceiling == ceiling
    # ten speakers were told, who could be the lucky ones
    lowest = 0.025 ** (1 / 10)
    assert made["srd.mean_bits_model"].limits == pytest.approx((lowest * ceiling, ceiling))
    assert made["srd.idr"].limits == pytest.approx((lowest, 1.0))
    assert made["srd.idr"].value == 1
    assert made["srd.alpha"].value is None
    assert made["srd.stdd_bits"].value == 0


def test_constant_scores_disclose_nothing():
    matrix = ScoreMatrix(np.ones((40, 8)), np.arange(40) % 8)
    made = by_key(figures(matrix, resamples(matrix, replicates=10)))
    for key in ("mean_bits", "mean_bits_model", "null_mean_bits", "maxd_bits", "spread"):
        assert made[f"srd.{key}"].value == pytest.approx(0, abs=1e-6)
    optimistic = by_key(figures(matrix, ties="optimistic", permutations=0))
    assert optimistic["srd.mean_bits"].value == 3
    assert optimistic["srd.mean_bits"].ties == "optimistic"


def test_few_trials_are_flagged():
    generator = np.random.default_rng(0)
    matrix = ScoreMatrix(generator.normal(size=(20, 500)), np.arange(20))
    made = by_key(figures(matrix, permutations=50))
    assert rank_model_of(matrix).sparse
    plug_in = made["srd.mean_bits"]
    assert plug_in.value is not None
    assert plug_in.floor is not None
    assert plug_in.value > 4
    assert plug_in.value == pytest.approx(plug_in.floor, abs=0.3)
    assert made["srd.mean_bits_miller_madow"].value is None
    assert "fewer trials than speakers" in made["srd.mean_bits_miller_madow"].note
    assert "fewer trials than ranks" in made["srd.mean_bits_model"].note


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(TIE_RULES))
def test_order_and_monotone_transforms_change_nothing(seed, ties):
    generator = np.random.default_rng(seed)
    count, trials = int(generator.integers(2, 12)), int(generator.integers(1, 40))
    scores = generator.integers(-4, 5, (trials, count)).astype(float)
    target = generator.integers(0, count, trials)
    made = by_key(figures(ScoreMatrix(scores, target), ties=ties, permutations=0))
    moved, shuffled = generator.permutation(count), generator.permutation(trials)
    inverse = np.argsort(moved)
    other = ScoreMatrix(np.exp(scores[:, moved][shuffled] / 3), inverse[target][shuffled])
    for figure in figures(other, ties=ties, permutations=0):
        assert figure.value == pytest.approx(made[figure.key].value, abs=1e-9), figure.key
        if figure.unit == "bits" and figure.value is not None:
            assert figure.value <= np.log2(count) + 1e-9
    assert made["srd.mean_bits"].value is not None
    assert made["srd.mean_bits"].value >= 0


def test_many_rank_models_are_those_of_one():
    histograms = np.array([[30.0, 0, 0, 0], [10, 8, 7, 5], [0, 9, 9, 0]])
    alpha, beta, binomial = fit_many(histograms)
    bits = mean_bits_of(alpha, beta, binomial, 4)
    for k, histogram in enumerate(histograms):
        rank_model = fit(histogram)
        assert bits[k] == pytest.approx(rank_model.mean_disclosure_bits(4), abs=1e-9)
        assert binomial[k] == rank_model.binomial
