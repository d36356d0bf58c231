"""Linking and singling out, and the ranks of anonymity sets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from monitor.errors import UsageError
from monitor.lab.evaluation import anonymity
from monitor.lab.evaluation.anonymity import (
    chance_mean_ranks,
    expected_ranks,
    rank_shares,
    speaker_mean_ranks,
)
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.linkage import CHANCE_SING, d_sys, isolated, pi_link, pi_sing
from monitor.lab.evaluation.resampling import resamples, settled_order
from tests.lab.evaluation.matrices import (
    by_key,
    chance,
    constant,
    ends,
    linkage_figures,
    pools,
    separated,
    with_limits,
)

REGIMES = ["plain", "mid", "weak", "random", "tied"]


def linked(matrix):
    return by_key(linkage_figures(matrix))


def ranked(matrix, weights=None):
    return by_key(anonymity.figures(matrix, weights))


@pytest.mark.parametrize("regime", REGIMES)
def test_golden_d_sys(golden, regime):
    expected = golden.json("peers")["regimes"][f"{regime}_eval"]["voicepat_linkability"]
    matrix = golden.matrix(f"{regime}_eval")
    own, others = pools(matrix)
    figure = linked(matrix)["linkage.d_sys"]
    assert figure.value == pytest.approx(expected["D_sys_omega1"], abs=1e-12)
    assert d_sys(own, others) == pytest.approx(expected["D_sys_omega1"], abs=1e-12)
    assert d_sys(own, others, 1 / 99) == pytest.approx(expected["D_sys_omega_1over99"], abs=1e-12)


@pytest.mark.parametrize("mated", [10, 100, 1000])
def test_d_sys_of_perfect_separation_loses_half_of_the_end_bin(golden, mated):
    """The public rules read 0.98, 0.80 and, with one bin, 0.0 of what should be 1."""
    own, others = np.linspace(2, 3, mated) ** 2, np.linspace(0, 1, 9 * mated)
    bins = mated // 10
    last = np.histogram(own, bins, (0, 9))[0][-1] / mated
    assert d_sys(own, others) == pytest.approx(1 - last / 2 if bins > 1 else 0.0, abs=1e-12)
    probes = golden.json("peers")["edge_probes"]
    assert probes["perfect_T10_N90"]["D_sys"] == 0.0
    assert probes["perfect_T100_N100"]["D_sys"] < probes["perfect_T1000_N99000"]["D_sys"] < 1


def test_d_sys_of_few_trials_is_absent_with_a_reason():
    figure = linked(separated(3, 3))["linkage.d_sys"]
    assert figure.value is None
    assert figure.note == "needs 10 mated scores for a histogram; there are 9"
    with pytest.raises(UsageError, match="needs at least 10 mated scores; there are 9"):
        d_sys(np.ones(9), np.ones(90))
    with pytest.raises(UsageError, match="above 0"):
        d_sys(np.ones(20), np.ones(90), omega=0.0)


@pytest.mark.parametrize("regime", REGIMES)
def test_golden_pi_link(golden, regime):
    matrix = golden.matrix(f"{regime}_eval")
    expected = golden.json("peers")["regimes"][f"{regime}_eval"]["legal_eval"]
    found = pi_link(matrix.better, 100, [int(n) for n in expected["linkability_exact"]])
    assert found == pytest.approx(list(expected["linkability_exact"].values()), abs=1e-12)
    assert matrix.better.sum() == expected["beaters_sum"]


@pytest.mark.parametrize("regime", REGIMES)
def test_pi_sing_agrees_with_legal_eval(golden, regime):
    """Folds by the number of the trial within its speaker: one tests, nine calibrate."""
    peer = pytest.importorskip("legal_eval.metrics.singling_out", reason="needs the extra peers")
    matrix = golden.matrix(f"{regime}_eval")
    scores = matrix.scores.astype(float)[settled_order(matrix)]
    names = [str(i) for i in range(100)]
    found = []
    for fold in range(10):
        test = np.arange(1000) % 10 == fold
        spans = [(9 * i, 9 * i + 9) for i in range(100)]
        scored = peer.ConversationScores(names, names, scores[test].T, scores[~test].T, spans)
        found += [np.mean(x) for x in peer.singling_out(scored, 100, n_runs=1).values()]
        ours = pi_sing(scores[~test], scores[test], np.full(100, 9))
        assert ours == pytest.approx(np.mean(found[-100:]), abs=1e-15)
    assert linked(matrix)["linkage.pi_sing"].value == pytest.approx(np.mean(found), abs=1e-12)


def test_the_threshold_lies_midway_and_is_strict():
    calibration = np.array([[0.0], [0.2], [0.6], [0.8]])
    assert isolated(calibration, np.array([[0.4], [0.41]]), np.array([2])).tolist() == [True]
    assert isolated(calibration, np.array([[0.4], [0.40]]), np.array([2])).tolist() == [False]
    assert isolated(calibration, np.array([[0.5], [0.41]]), np.array([2])).tolist() == [False]


def test_pi_sing_without_evidence_is_the_chance_of_exactly_one():
    found = linked(chance(200, 10))["linkage.pi_sing"]
    assert found.value == pytest.approx(CHANCE_SING, abs=0.04)
    assert linked(constant(10, 2))["linkage.pi_sing"].value == 0.0


def test_speakers_with_one_trial_are_left_out_of_pi_sing():
    figure = linked(separated(10, 1))["linkage.pi_sing"]
    assert figure.value is None
    assert figure.note.startswith("needs two speakers with two trials")
    perfect = separated(10, 3)
    uneven = ScoreMatrix(perfect.scores[2:26], perfect.target[2:26])  # 1, 3, 3 ... and 2 trials
    figure = with_limits(linkage_figures, uneven)["linkage.pi_sing"]
    assert figure.value == 1.0
    assert "among 8 speakers, 3 folds" in figure.note
    assert ends(figure) == pytest.approx((0.025 ** (1 / 9), 1.0))  # nine speakers, not 24 trials


def test_refusals():
    for better, candidates in (([3], 2), ([], 2), ([0], 4), ([0], 0)):
        with pytest.raises(UsageError, match=r"check N|1 to 3"):
            pi_link(np.array(better, dtype=int), 3, candidates)


@pytest.mark.parametrize("regime", ["plain", "mid", "weak", "random"])
def test_golden_mean_ranks(golden, regime):
    expected = golden.json("reference")[regime]["usc"]
    matrix = golden.matrix(f"{regime}_eval")
    found = ranked(matrix)
    for key in ("p50", "p1"):
        figure = found[f"anonymity.mean_rank_{key}"]
        assert figure.value == pytest.approx(expected[key], abs=1e-12)
    means = speaker_mean_ranks(expected_ranks(matrix.better, matrix.tied), matrix.target)
    assert_allclose(means[:3], expected["mean_rank_first3_speakers"], atol=1e-12)
    histogram = golden.json("reference")[regime]["srd"]["hist"]
    for k in (1, 5, 10, 50):
        figure = found[f"anonymity.share_rank_at_most_{k}"]
        assert figure.value == pytest.approx(sum(histogram[:k]) / 1000)


def test_ties_are_expected_ranks(golden):
    matrix = golden.matrix("tied_eval")
    ranks = expected_ranks(matrix.better, matrix.tied)
    golden_mean = golden.json("reference")["tied"]["mid"]["mean_rank"]
    assert ranks.mean() == pytest.approx(golden_mean, abs=1e-12)
    first, last = rank_shares(matrix.better, matrix.tied, 1), matrix.better + matrix.tied
    assert np.mean(matrix.better == 0) > first.mean() > np.mean(last == 1)


def test_the_row_of_usc_that_knows_nothing(golden):
    expected = golden.json("math")["usc_random"]
    means = chance_mean_ranks(expected["N"], np.full(expected["N"], expected["L"]), draws=10)
    low, middle = np.percentile(means, [1, 50], axis=1).mean(axis=1)
    assert low == pytest.approx(expected["paper"]["p1"], abs=10)
    assert low == pytest.approx(expected["p1_normal"], abs=10)
    assert middle == pytest.approx(expected["p50"], abs=5)
    assert means.std() == pytest.approx(expected["sd_of_speaker_mean"], rel=0.01)
    scores = np.zeros((2, expected["N"]), dtype=np.float32)
    nothing = ranked(ScoreMatrix(scores, np.array([0, 1])))["anonymity.mean_rank_p50"]
    assert nothing.floor == nothing.value == expected["p50"] == 3987.5


def test_one_first_rank_hides_in_a_mean():
    scores = np.tile(np.arange(100.0), (100, 1))
    scores[0, 0] = 200.0  # the first speaker is last but once
    found = ranked(ScoreMatrix(scores, np.zeros(100, dtype=int)))
    assert found["anonymity.mean_rank_p1"].value == pytest.approx(99.01)
    assert found["anonymity.worst_rank"].value == 1
    assert found["anonymity.share_rank_at_most_1"].value == 0.01


def test_replicates_of_mean_ranks_equal_a_loop_over_speakers(golden):
    matrix = golden.matrix("tied_eval")
    weights = resamples(matrix, replicates=7)
    found = ranked(matrix, weights)
    means = speaker_mean_ranks(expected_ranks(matrix.better, matrix.tied), matrix.target)
    for draw, row in enumerate(weights.astype(int)):
        for percent in (1, 50):
            expected = np.percentile(np.repeat(means, row), percent)
            replicates = found[f"anonymity.mean_rank_p{percent}"].replicates
            assert replicates[draw] == pytest.approx(expected)
