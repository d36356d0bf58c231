from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreCounts, ScoreMatrix
from monitor.lab.evaluation.verification import cllr, det_curve, det_points, eer, figures, min_cllr

REGIMES = ["plain", "mid", "weak", "random", "tied"]
SCORES = st.lists(st.integers(-8, 8), min_size=1, max_size=30)


def values(matrix):
    return {figure.key.partition(".")[2]: figure.value for figure in figures(matrix)}


def pools(matrix):
    return matrix.mated, np.concatenate([b.ravel() for _, b in matrix.non_mated_blocks()])


def nearest_by_hand(mated, non_mated):
    """Every threshold that the scores offer and the one above all, in whole numbers."""
    total, others = len(mated), len(non_mated)
    rates = [
        (sum(s < t for s in mated) * others, sum(s >= t for s in non_mated) * total)
        for t in [np.inf, *sorted({*mated, *non_mated}, reverse=True)]
    ]
    nearest = int(np.argmin([abs(rejects - accepts) for rejects, accepts in rates]))
    return sum(rates[nearest]) / (2 * total * others)


@pytest.mark.parametrize("regime", REGIMES)
def test_golden_peers(golden, regime):
    """VoicePAT and ZEBRA sort the mated ones of a tie last; lir, PYLLR and legal-eval pool."""
    peers = golden.json("peers")["regimes"][f"{regime}_eval"]
    found = values(golden.matrix(f"{regime}_eval"))
    assert found["eer_rocch"] == pytest.approx(peers["legal_eval"]["rocch_eer"], abs=1e-12)
    assert found["eer_rocch"] == pytest.approx(peers["pyllr"]["eer"], abs=1e-9)
    assert found["cllr_bits"] == pytest.approx(peers["pyllr"]["cllr_raw"], abs=1e-12)
    assert found["min_cllr_bits"] == pytest.approx(peers["lir"]["cllr_min"], abs=1e-12)
    assert found["min_cllr_bits"] == pytest.approx(peers["pybosaris"]["min_cllr"], abs=1e-12)
    voicepat = peers["voicepat_cllr"]
    if regime == "tied":
        assert voicepat["min_cllr"] < found["min_cllr_bits"] - 0.1
        assert voicepat["rocch_eer_optimal_llr"] < found["eer_rocch"] - 0.05
    else:
        assert found["min_cllr_bits"] == pytest.approx(voicepat["min_cllr"], abs=1e-8)
        assert found["eer_rocch"] == pytest.approx(voicepat["rocch_eer_optimal_llr"], abs=1e-12)


@pytest.mark.parametrize("regime", REGIMES)
def test_functions_agree_with_figures(golden, regime):
    matrix = golden.matrix(f"{regime}_eval")
    own, others = pools(matrix)
    found = values(matrix)
    assert eer(own, others) == pytest.approx(found["eer_rocch"], abs=1e-15)
    assert eer(own, others, "nearest") == pytest.approx(found["eer_nearest"], abs=1e-15)
    assert cllr(own, others) == pytest.approx(found["cllr_bits"], abs=1e-13)
    assert min_cllr(own, others) == pytest.approx(found["min_cllr_bits"], abs=1e-15)


@pytest.mark.parametrize("regime", REGIMES[:4])
def test_golden_nearest(golden, regime):
    """All thresholds count: roc_curve's default drops some, and reads 0.0006 on `plain`."""
    expected = golden.json("reference")[regime]["eer_nearest_avg"]
    found = values(golden.matrix(f"{regime}_eval"))["eer_nearest"]
    assert found == pytest.approx(expected, abs=1e-12)


def test_four_by_four(golden):
    example = golden.json("math")["lid_4x4"]
    matrix = ScoreMatrix(np.array(example["S"]), np.array(example["target"]))
    probe = golden.json("peers")["edge_probes"]["lid_4x4"]
    found = values(matrix)
    assert found["eer_nearest"] == pytest.approx(example["EER_threshold_sweep"], abs=1e-12)
    assert found["eer_rocch"] == pytest.approx(example["EER_ROCCH"], abs=1e-12)
    assert found["eer_rocch"] == pytest.approx(probe["pyllr_eer"], abs=1e-9)
    assert found["min_cllr_bits"] == pytest.approx(example["min_cllr"], abs=1e-12)


@pytest.mark.parametrize("rule", ["rocch", "nearest"])
def test_edges(rule):
    high, low = np.linspace(2, 3, 100), np.linspace(0, 1, 900)
    assert eer(high, low, rule) == 0.0
    assert eer(np.ones(100), np.ones(900), rule) == 0.5
    assert eer(low, high, rule) == (0.5 if rule == "rocch" else 1.0)
    assert min_cllr(high, low) == 0.0
    assert min_cllr(low, high) == pytest.approx(1.0, abs=1e-15)
    assert min_cllr(np.ones(100), np.ones(900)) == pytest.approx(1.0, abs=1e-15)


@given(SCORES, SCORES)
def test_nearest_is_the_nearest_of_all_thresholds(mated, non_mated):
    assert eer(mated, non_mated, "nearest") == pytest.approx(nearest_by_hand(mated, non_mated))


@given(SCORES, SCORES)
def test_rocch_is_where_the_hull_crosses(mated, non_mated):
    """The EER of the best mixture of two thresholds, over all pairs of them."""
    accepts, rejects = det_curve(mated, non_mated)
    best = 0.5
    for i in range(len(accepts)):
        for j in range(i, len(accepts)):
            left, right = rejects[i] - accepts[i], rejects[j] - accepts[j]
            if left <= 0 <= right:
                share = -left / (right - left) if right > left else 0.0
                best = min(best, rejects[i] + share * (rejects[j] - rejects[i]))
    assert eer(mated, non_mated) == pytest.approx(best, abs=1e-12)


@pytest.mark.slow
@given(SCORES, SCORES)
def test_only_the_order_counts(mated, non_mated):
    stretched = np.exp(np.array(mated) / 3), np.exp(np.array(non_mated) / 3)
    assert eer(*stretched) == eer(mated, non_mated)
    assert eer(*stretched, "nearest") == eer(mated, non_mated, "nearest")
    assert min_cllr(*stretched) == min_cllr(mated, non_mated)
    assert 0 <= eer(mated, non_mated) <= 0.5
    assert 0 <= min_cllr(mated, non_mated) <= 1 + 1e-12
    assert min_cllr(mated, non_mated) <= cllr(mated, non_mated) + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_permuting_trials_or_speakers_changes_nothing(golden, seed):
    matrix = golden.matrix("weak_eval")
    generator = np.random.default_rng(seed)
    rows, columns = generator.permutation(1000), generator.permutation(100)
    target = np.argsort(columns)[matrix.target[rows]]
    found = values(ScoreMatrix(matrix.scores[rows][:, columns], target))
    for key, value in values(matrix).items():
        assert found[key] == pytest.approx(value, abs=1e-13)


def test_cllr_does_not_overflow():
    assert cllr([-800.0], [0.0]) == pytest.approx((800 / np.log(2) + 1) / 2)
    assert cllr([800.0], [-800.0]) == 0.0
    assert 1e299 < cllr([0.0], [1e308, 1e308]) < np.inf


def test_det_curve_is_thinned_evenly(golden):
    counts = ScoreCounts.of(golden.matrix("mid_eval"))
    full, thin = det_points(counts.exact, 10**6), det_points(counts.exact, 50)
    assert len(thin[0]) <= 51
    for accepts, rejects in (full, thin):
        assert (np.diff(accepts) <= 0).all()
        assert (np.diff(rejects) >= 0).all()
        assert (accepts[0], rejects[0]) == (1.0, 0.0)
        assert (accepts[-1], rejects[-1]) == (0.0, 1.0)
    assert set(zip(*thin, strict=True)) <= set(zip(*full, strict=True))


def test_refusals():
    with pytest.raises(UsageError, match="no EER rule 'half'"):
        eer([1.0], [0.0], "half")
    with pytest.raises(UsageError, match="at least one"):
        cllr([], [0.0])
