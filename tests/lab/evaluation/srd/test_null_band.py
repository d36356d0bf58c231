from __future__ import annotations

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.report.report import meaning
from monitor.lab.evaluation.srd import figures, fitted_rank_model, null_band
from monitor.maths.ranks import null_bias_bits
from monitor.maths.statistics import limits
from tests.lab.evaluation.matrices import perfect


def rank_model_of(matrix):
    return fitted_rank_model(matrix.better, matrix.tied, matrix.population)


def by_key(made):
    return {figure.key: figure for figure in made}


def test_evidence_stands_above_the_null_band_and_none_within(golden):
    for regime in ("mid", "weak"):
        matrix = golden.matrix(f"{regime}_eval")
        band = null_band(matrix)
        assert rank_model_of(matrix).statistics.mean_bits > limits(band.mean_bits)[1]
        assert rank_model_of(matrix).mean_bits > limits(band.model_bits)[1]
    nothing = golden.matrix("random_eval")
    band = null_band(nothing)
    assert band.mean_bits.mean() == pytest.approx(null_bias_bits(100, 1000), rel=0.1)
    assert (
        limits(band.mean_bits)[0]
        < rank_model_of(nothing).statistics.mean_bits
        < limits(band.mean_bits)[1]
    )
    assert rank_model_of(nothing).mean_bits < limits(band.model_bits)[1]
    made = by_key(figures(nothing))
    assert (made["srd.null_mean_bits"].low, made["srd.null_mean_bits"].high) == limits(
        band.mean_bits
    )
    assert "200 permutations" in made["srd.null_mean_bits"].note


@pytest.mark.slow
def test_random_scores_fall_within_their_null_band():
    inside = 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        matrix = ScoreMatrix(generator.normal(size=(300, 20)), np.arange(300) % 20)
        band = null_band(matrix, 100, seed)
        inside += (
            limits(band.mean_bits)[0]
            <= rank_model_of(matrix).statistics.mean_bits
            <= limits(band.mean_bits)[1]
        )
    assert inside >= 52


def test_trials_that_repeat_widen_the_null_band():
    """Copies of a trial add nothing: the formula for independent trials falls far short."""
    generator = np.random.default_rng(5)
    once = generator.normal(size=(50, 50))
    matrix = ScoreMatrix(np.repeat(once, 20, axis=0), np.repeat(np.arange(50), 20))
    assert null_band(matrix).mean_bits.mean() > 5 * null_bias_bits(50, 1000)


def test_a_permutation_asks_about_another_template(golden):
    matrix = golden.matrix("tied_eval")
    band = null_band(matrix, 3, seed=9)
    places = np.random.default_rng(9).permuted(np.tile(np.arange(100), (3, 1)), axis=1)
    for place, mean, model in zip(places, band.mean_bits, band.model_bits, strict=True):
        other = ScoreMatrix(matrix.scores, place[matrix.target])
        assert mean == pytest.approx(rank_model_of(other).statistics.mean_bits, abs=1e-9)
        assert model == pytest.approx(rank_model_of(other).mean_bits, abs=1e-9)
    with pytest.raises(UsageError, match="at least one"):
        null_band(matrix, 0)


def test_many_trials_take_fewer_permutations(golden, monkeypatch):
    monkeypatch.setattr("monitor.lab.evaluation.srd._RANKS", 25_000)
    assert null_band(golden.matrix("mid_eval")).mean_bits.shape == (25,)
    assert (
        "25 permutations" in by_key(figures(golden.matrix("mid_eval")))["srd.null_mean_bits"].note
    )


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
    report = evaluate(perfect(speakers, 6), settings=EvaluationSettings(replicates=200))
    chance = report["srd.null_chance"].value
    assert chance is not None
    assert chance <= 0.05
    assert "nothing that can be measured" not in meaning(report)[0]
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
    report = evaluate(ScoreMatrix(second, first.target), settings=EvaluationSettings(replicates=40))
    chance = report["srd.null_chance"].value
    assert chance is not None
    assert chance <= 0.05
    assert "a trial discloses" in meaning(report)[0]
    assert "may read too low" in report["srd.mean_bits_model"].note


def test_few_tested_speakers_are_dealt_as_few_speakers_are():
    scores = np.eye(4)[np.repeat([0, 1], 8)]
    two_of_four = null_band(ScoreMatrix(scores, np.repeat([0, 1], 8)))
    assert "permutations of trials" in two_of_four.dealt
    assert two_of_four.chance <= 0.05
    many = null_band(ScoreMatrix(np.eye(30)[np.repeat([0, 1], 8)], np.repeat([0, 1], 8)))
    assert many.dealt == "200 permutations of whole speakers against the templates"
