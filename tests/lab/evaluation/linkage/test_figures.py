from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix, resamples, settled_order
from monitor.lab.evaluation.linkage import (
    CHANCE_SING,
    d_sys,
    figures,
    isolated,
    pi_link,
    pi_link_curve,
    pi_sing,
)
from tests.lab.evaluation.matrices import ends, with_limits

REGIMES = ["plain", "mid", "weak", "random", "tied"]


def values(matrix):
    return {figure.key: figure.value for figure in figures(matrix)}


def pools(matrix):
    return matrix.mated, np.concatenate([b.ravel() for _, b in matrix.non_mated_blocks()])


@pytest.mark.parametrize("regime", REGIMES)
def test_golden_d_sys(golden, regime):
    expected = golden.json("peers")["regimes"][f"{regime}_eval"]["voicepat_linkability"]
    matrix = golden.matrix(f"{regime}_eval")
    own, others = pools(matrix)
    assert values(matrix)["linkage.d_sys"] == pytest.approx(expected["D_sys_omega1"], abs=1e-12)
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


@given(st.integers(0, 1000), st.integers(10, 80), st.integers(1, 80), st.floats(-2, 4))
def test_d_sys_lies_between_none_and_all_and_ignores_scale(seed, mated, non_mated, lift):
    generator = np.random.default_rng(seed)
    own, others = generator.normal(size=mated) + lift, generator.normal(size=non_mated)
    found = d_sys(own, others)
    assert 0 <= found <= 1
    assert d_sys(4 * own[::-1], 4 * others) == pytest.approx(found, abs=1e-12)


def test_d_sys_of_equal_scores_is_zero():
    assert d_sys(np.ones(50), np.ones(500)) == 0.0


def test_d_sys_of_few_trials_is_absent_with_a_reason(perfect):
    few = ScoreMatrix(perfect.scores[:9], perfect.target[:9])
    figure = figures(few)[0]
    assert (figure.key, figure.value) == ("linkage.d_sys", None)
    assert figure.note == "needs 10 mated scores for a histogram; there are 9"
    with pytest.raises(UsageError, match="needs 10 mated scores or more; there are 9"):
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


@given(st.integers(2, 60), st.data())
def test_pi_link_is_the_hypergeometric_share(population, data):
    better = data.draw(st.lists(st.integers(0, population - 1), min_size=1, max_size=10))
    wanted = data.draw(st.integers(1, population))
    ways = [comb(population - 1 - m, wanted - 1) for m in better]
    expected = np.mean(ways) / comb(population - 1, wanted - 1)
    assert float(pi_link(np.array(better), population, wanted)) == pytest.approx(expected)


def test_pi_link_falls_with_the_candidates_and_keeps_their_shape(golden):
    matrix = golden.matrix("mid_eval")
    candidates, found = pi_link_curve(matrix)
    assert (candidates[0], candidates[-1]) == (2, 100)
    assert (np.diff(found) < 0).all()
    assert pi_link(matrix.better, 100, np.array([[1, 2], [3, 4]])).shape == (2, 2)
    assert found[-1] == pytest.approx(np.mean(matrix.better == 0))


def test_pi_link_of_a_large_population():
    found = pi_link(np.array([0, 1, 11695]), 11696, [2, 6000, 11696])
    assert found == pytest.approx([(2 - 1 / 11695) / 3, (2 - 5999 / 11695) / 3, 1 / 3], abs=1e-12)


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
    assert values(matrix)["linkage.pi_sing"] == pytest.approx(np.mean(found), abs=1e-12)


def test_the_threshold_lies_midway_and_is_strict():
    calibration = np.array([[0.0], [0.2], [0.6], [0.8]])
    assert isolated(calibration, np.array([[0.4], [0.41]]), np.array([2])).tolist() == [True]
    assert isolated(calibration, np.array([[0.4], [0.40]]), np.array([2])).tolist() == [False]
    assert isolated(calibration, np.array([[0.5], [0.41]]), np.array([2])).tolist() == [False]


def test_pi_sing_without_evidence_is_the_chance_of_exactly_one():
    generator = np.random.default_rng(0)
    matrix = ScoreMatrix(generator.normal(size=(2000, 200)), np.repeat(np.arange(200), 10))
    assert values(matrix)["linkage.pi_sing"] == pytest.approx(CHANCE_SING, abs=0.04)
    flat = ScoreMatrix(np.zeros((20, 10)), np.repeat(np.arange(10), 2))
    assert values(flat)["linkage.pi_sing"] == 0.0


def test_pi_sing_takes_ten_trials_of_a_speaker_and_says_so(golden):
    matrix = golden.matrix("mid_eval")
    more = np.repeat(np.arange(1000), np.where(np.arange(1000) % 10 == 9, 2, 1))
    figure = figures(ScoreMatrix(matrix.scores[more], matrix.target[more]))[-1]
    assert figure.value == pytest.approx(values(matrix)["linkage.pi_sing"], abs=0.05)
    assert "10 folds of 10 trials of each, drawn" in figure.note
    assert "drawn" not in figures(matrix)[-1].note


def test_speakers_with_one_trial_are_left_out_of_pi_sing(perfect):
    one = ScoreMatrix(perfect.scores[::3], perfect.target[::3])
    figure = figures(one)[-1]
    assert figure.value is None
    assert figure.note.startswith("needs two speakers with two trials")
    uneven = ScoreMatrix(perfect.scores[2:26], perfect.target[2:26])  # 1, 3, 3 ... and 2 trials
    figure = with_limits(figures, uneven)["linkage.pi_sing"]
    assert figure.value == 1.0
    assert "among 8 speakers, 3 folds" in figure.note
    assert ends(figure) == pytest.approx((0.025 ** (1 / 9), 1.0))  # nine speakers, not 24 trials


def test_replicates_of_equal_weights_are_the_figure(golden):
    matrix = golden.matrix("mid_eval")
    for figure in figures(matrix, np.ones((2, 100))):
        assert figure.replicates == pytest.approx([figure.value] * 2, abs=1e-14)


def test_a_resample_counts_the_drawn_trials_as_often(golden):
    matrix = golden.matrix("weak_eval")
    weights = resamples(matrix, replicates=2)
    ours = figures(matrix, weights)[1:4]
    rows = np.repeat(np.arange(1000), weights[1, matrix.owner].astype(int))
    drawn = values(ScoreMatrix(matrix.scores[rows], matrix.target[rows]))
    for figure in ours:
        assert figure.replicates is not None
        assert figure.replicates[1] == pytest.approx(drawn[figure.key], abs=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_permuting_speakers_or_stretching_scores_changes_no_rank_metric(golden, seed):
    matrix = golden.matrix("weak_eval")
    generator = np.random.default_rng(seed)
    columns = generator.permutation(100)
    scores = np.exp(matrix.scores.astype(float))[:, columns]
    found = values(ScoreMatrix(scores, np.argsort(columns)[matrix.target]))
    expected = values(matrix)
    for key in ("linkage.pi_link_2", "linkage.pi_link_10", "linkage.pi_link_all"):
        assert found[key] == pytest.approx(expected[key], abs=1e-15)


def test_perfect_scores_are_linked_and_singled_out(perfect):
    found = values(perfect)
    assert found["linkage.pi_link_2"] == found["linkage.pi_link_all"] == 1.0
    assert found["linkage.pi_sing"] == 1.0
    assert not {"linkage", "linkability", "linkage.linkability"} & found.keys()


@pytest.mark.parametrize(
    ("better", "candidates", "words"),
    [([3], 2, "check N"), ([], 2, "check N"), ([0], 4, "1 to 3"), ([0], 0, "1 to 3")],
)
def test_pi_link_refusals(better, candidates, words):
    with pytest.raises(UsageError, match=words):
        pi_link(np.array(better, dtype=int), 3, candidates)


def test_isolated_refusals():
    with pytest.raises(UsageError, match="same enrolled speakers"):
        isolated(np.ones((3, 2)), np.ones((3, 3)), np.ones(3, int))
    with pytest.raises(UsageError, match="1 to 2 calibration"):
        isolated(np.ones((3, 2)), np.ones((3, 2)), np.array([1, 3]))
