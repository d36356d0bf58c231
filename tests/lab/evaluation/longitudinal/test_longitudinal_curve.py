from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from monitor.errors import UsageError
from monitor.lab.evaluation import longitudinal as speaker_sums
from monitor.lab.evaluation.comparisons import ScoreMatrix, resamples
from monitor.lab.evaluation.longitudinal import Tempering, longitudinal
from monitor.maths.rank_models import fit

REGIMES = ("plain", "mid", "weak", "random")


@pytest.mark.parametrize("regime", REGIMES)
def test_golden_curves(golden, regime):
    expected = golden.json("reference")[regime]["lid_longitudinal"]
    curve = longitudinal(golden.matrix(f"{regime}_eval"), golden.matrix(f"{regime}_dev"), "repo")
    assert curve.trials.tolist() == list(range(1, 11))
    assert curve.note == ""
    assert_allclose(curve.mean_bits("sum"), expected["sum_mean"], atol=1e-5)
    assert_allclose(curve.mean_bits("average"), expected["avg_mean"], atol=1e-5)
    assert_allclose(curve.bits["sum"][0], expected["sum_speaker0"], atol=1e-5)
    assert_allclose(curve.bits["sum"].max(axis=0), expected["sum_max"], atol=1e-5)
    if regime == "plain":  # its loss is zero to the last bit over a range of temperatures
        assert curve.mean_bits("temperature")[-1] == pytest.approx(expected["Tnll_mean"][-1])
        return
    assert curve.temperature == pytest.approx(expected["T_nll"], rel=1e-5)
    assert_allclose(curve.mean_bits("temperature"), expected["Tnll_mean"], atol=1e-5)


@pytest.mark.parametrize("regime", REGIMES)
def test_golden_rank_posterior(golden, regime):
    expected = golden.json("reference")[regime]["rank_posterior"]
    curve = longitudinal(golden.matrix(f"{regime}_eval"), golden.matrix(f"{regime}_dev"))
    assert_allclose(curve.mean_bits("rank"), expected["mean_bits"], atol=1e-9)
    assert_allclose(curve.bits["rank"][0], expected["speaker0_bits"], atol=1e-9)


def test_the_first_trial_is_lid_and_count_adjusted_reads_less_than_a_sum(golden):
    curve = longitudinal(golden.matrix("weak_eval"), golden.matrix("weak_dev"))
    assert_allclose(curve.bits["sum"][:, 0], curve.bits["average"][:, 0])
    assert 0 <= curve.rho <= 1
    for rule in curve.bits:
        assert (curve.bits[rule] <= np.log2(100) + 1e-9).all()
    nothing = longitudinal(golden.matrix("random_eval"), golden.matrix("random_dev"))
    assert np.abs(nothing.mean_bits("count")).max() < 0.1


def test_copies_of_one_trial_are_worth_one():
    """Ten times the same trial: the sum is overconfident, the count-adjusted curve stays flat."""
    generator = np.random.default_rng(0)
    once = generator.normal(size=(80, 80)) + 1.2 * np.eye(80)
    matrix = ScoreMatrix(np.repeat(once, 10, axis=0), np.repeat(np.arange(80), 10))
    curve = longitudinal(matrix, matrix)
    count = curve.mean_bits("count")
    assert curve.rho > 0.9
    assert count[-1] == pytest.approx(count[0], abs=0.05)
    assert curve.mean_bits("sum")[-1] < count[-1] - 1


def test_without_a_dev_matrix_other_speakers_serve(golden):
    matrix = golden.matrix("mid_eval")
    crossed = longitudinal(matrix)
    assert crossed.note == "cross-fitted over speakers, 5 folds"
    with_dev = longitudinal(matrix, golden.matrix("mid_dev"))
    for rule in crossed.bits:
        assert_allclose(crossed.mean_bits(rule), with_dev.mean_bits(rule), atol=0.35)
    one = ScoreMatrix(np.eye(4), np.zeros(4, dtype=int))
    with pytest.raises(UsageError, match="two or more"):
        longitudinal(one)


def _independent(speakers, tests=8, seed=0):
    generator = np.random.default_rng(seed)
    target = np.repeat(np.arange(speakers), tests)
    scores = generator.normal(size=(target.size, speakers))
    return ScoreMatrix(scores + 1.5 * (target[:, None] == np.arange(speakers)), target)


@pytest.mark.parametrize("speakers", [12, 25, 200])
def test_a_dev_matrix_of_another_number_of_speakers(speakers):
    matrix = _independent(50)
    alike = longitudinal(matrix, _independent(50, 16, seed=1))
    other = longitudinal(matrix, _independent(speakers, 800 // speakers, seed=2))
    assert other.bits.keys() == alike.bits.keys()
    for rule in ("sum", "count", "rank"):
        assert_allclose(other.mean_bits(rule), alike.mean_bits(rule), atol=0.2)


def test_the_rank_model_is_that_of_the_number_of_speakers():
    ranks = np.array([300.0, 100, 50, 20, 10, 8, 6, 4, 2, 0, 0, 0])
    learnt = Tempering(1.0, 1.0, 0.0, ranks)
    assert_allclose(_rank_model(learnt, 12), (ranks + 1) / 512)
    for speakers in (5, 13, 100):
        rank_model = _rank_model(learnt, speakers)
        assert rank_model.shape == (speakers,)
        assert rank_model.sum() == pytest.approx(1)
        assert_allclose(
            rank_model, (500 * np.exp(fit(ranks).log_pmf(speakers)) + 1) / (500 + speakers)
        )
    sure = _rank_model(Tempering(1.0, 1.0, 0.0, np.eye(12)[0] * 60), 30)
    assert sure[0] == pytest.approx(61 / 90)
    assert_allclose(sure[1:], 1 / 90)


def _rank_model(learnt, speakers):
    rank_model = learnt.rank_model(speakers)
    assert rank_model is not None
    return rank_model


def test_few_development_speakers_carry_no_rank_model_over():
    curve = longitudinal(_independent(20), _independent(6, seed=1))
    assert "rank" not in curve.bits
    assert curve.mean_bits("count")[-1] > 3
    assert "rank" in longitudinal(_independent(6), _independent(6, seed=1)).bits


def test_speakers_with_few_trials_are_left_out(monkeypatch):
    generator = np.random.default_rng(0)
    target = generator.permutation(np.repeat(np.arange(12), [2, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 12]))
    scores = generator.normal(size=(len(target), 12)) + (target[:, None] == np.arange(12))
    matrix = ScoreMatrix(scores, target)
    curve = longitudinal(matrix)
    assert curve.trials[-1] == 9
    assert curve.tested.tolist() == list(range(1, 12))
    assert longitudinal(matrix, longest=2).bits["sum"].shape == (12, 2)
    monkeypatch.setattr(speaker_sums, "_CHUNK", 250)
    again = longitudinal(matrix)
    for rule in curve.bits:
        assert_allclose(again.bits[rule], curve.bits[rule], atol=1e-9)
    with pytest.raises(UsageError, match="no speaker has 40"):
        longitudinal(matrix, longest=40)
    with pytest.raises(UsageError, match="only one fold"):
        longitudinal(matrix, longest=12)


def test_thinned_speakers_give_about_the_same(golden, monkeypatch):
    matrix, dev = golden.matrix("weak_eval"), golden.matrix("weak_dev")
    whole = longitudinal(matrix, dev)
    monkeypatch.setattr(speaker_sums, "_FITTED", 20_000)
    thin = longitudinal(matrix, dev)
    assert thin.temperature == whole.temperature
    assert thin.tau != whole.tau
    assert_allclose(thin.mean_bits("count"), whole.mean_bits("count"), atol=0.1)
    assert longitudinal(matrix).trials.size == 10


def test_tied_ranks_share_the_rank_model():
    matrix = ScoreMatrix(np.zeros((40, 8)), np.arange(40) % 8)
    curve = longitudinal(matrix)
    for rule in curve.bits:
        assert_allclose(curve.bits[rule], 0, atol=1e-9)


def test_replicates_weigh_speakers(golden):
    matrix = golden.matrix("mid_eval")
    curve = longitudinal(matrix, golden.matrix("mid_dev"))
    weights = resamples(matrix, replicates=4)
    replicates = curve.replicates(weights, "sum")
    assert replicates.shape == (4, 10)
    picked = np.repeat(np.arange(100), weights[1].astype(int))
    assert_allclose(replicates[1], curve.bits["sum"][picked].mean(axis=0))
    with pytest.raises(UsageError, match="no rule"):
        curve.replicates(weights, "embedding")


def test_limits_of_the_curve(golden):
    matrix, dev = golden.matrix("mid_eval"), golden.matrix("mid_dev")
    curve = longitudinal(matrix, dev)
    low, high = curve.limits(resamples(matrix, replicates=50))
    assert (low <= curve.mean_bits()).all()
    assert (curve.mean_bits() <= high).all()
