"""Verification, and ZEBRA's cross-entropies, beside public peers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.lab.evaluation import verification, zebra
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.verification import cllr, det_curve, eer, min_cllr
from monitor.lab.evaluation.zebra import (
    CEILING_BITS,
    d_ece,
    ece_profile,
    log10_l,
    log10_l_limits,
    tag,
)
from tests.lab.evaluation.matrices import by_key, pools, with_limits


def verified(matrix):
    return {figure.key.partition(".")[2]: figure.value for figure in verification.figures(matrix)}


def disclosed(matrix):
    return by_key(zebra.figures(matrix))


REGIMES = ["plain", "mid", "weak", "random", "tied"]
SCORES = st.lists(st.integers(-8, 8), min_size=1, max_size=30)


def nearest_by_hand(mated, non_mated):
    """Every threshold that the scores offer, and the one above all, in whole numbers.

    The lowest comes first, so of two as near it is the lower, as SpeechBrain's EER has it.
    """
    total, others = len(mated), len(non_mated)
    rates = [
        (sum(s < t for s in mated) * others, sum(s >= t for s in non_mated) * total)
        for t in [*sorted({*mated, *non_mated}), np.inf]
    ]
    nearest = int(np.argmin([abs(rejects - accepts) for rejects, accepts in rates]))
    return sum(rates[nearest]) / (2 * total * others)


@pytest.mark.parametrize("regime", REGIMES)
def test_golden_peers_of_verification(golden, regime):
    """VoicePAT and ZEBRA sort the mated ones of a tie last; lir, PYLLR and legal-eval pool.

    Of the nearest EER all thresholds count: roc_curve's default drops some, and reads 0.0006 on
    `plain`.
    """
    peers = golden.json("peers")["regimes"][f"{regime}_eval"]
    matrix = golden.matrix(f"{regime}_eval")
    found = verified(matrix)
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
        nearest = golden.json("reference")[regime]["eer_nearest_avg"]
        assert found["eer_nearest"] == pytest.approx(nearest, abs=1e-12)
    own, others = pools(matrix)
    assert eer(own, others, "rocch") == pytest.approx(found["eer_rocch"], abs=1e-15)
    assert eer(own, others) == pytest.approx(found["eer_nearest"], abs=1e-15)
    assert cllr(own, others) == pytest.approx(found["cllr_bits"], abs=1e-13)
    assert min_cllr(own, others) == pytest.approx(found["min_cllr_bits"], abs=1e-15)


def test_four_by_four(golden):
    example = golden.json("math")["lid_4x4"]
    matrix = ScoreMatrix(np.array(example["S"]), np.array(example["target"]))
    probe = golden.json("peers")["edge_probes"]["lid_4x4"]
    found = verified(matrix)
    assert found["eer_nearest"] == pytest.approx(example["EER_threshold_sweep"], abs=1e-12)
    assert found["eer_rocch"] == pytest.approx(example["EER_ROCCH"], abs=1e-12)
    assert found["eer_rocch"] == pytest.approx(probe["pyllr_eer"], abs=1e-9)
    assert found["min_cllr_bits"] == pytest.approx(example["min_cllr"], abs=1e-12)
    told = disclosed(matrix)
    assert told["zebra.d_ece_bits"].value == pytest.approx(example["D_ECE"], abs=1e-12)
    assert told["zebra.log10_l"].value == pytest.approx(probe["zebra"]["log10_l"], abs=4.4e-7)
    assert told["zebra.tag"].text == probe["zebra"]["tag"]


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
    assert eer(mated, non_mated, "rocch") == pytest.approx(best, abs=1e-12)


def test_cllr_does_not_overflow():
    assert cllr([-800.0], [0.0]) == pytest.approx((800 / np.log(2) + 1) / 2)
    assert cllr([800.0], [-800.0]) == 0.0
    assert 1e299 < cllr([0.0], [1e308, 1e308]) < np.inf


def test_refusals():
    with pytest.raises(UsageError, match="unknown EER rule 'half'"):
        eer([1.0], [0.0], "half")
    with pytest.raises(UsageError, match="at least one"):
        cllr([], [0.0])
    with pytest.raises(UsageError, match="not finite"):
        d_ece([np.inf], [0.0])
    for wrong in (-0.1, np.nan):
        with pytest.raises(UsageError, match="0 or more"):
            tag(wrong)


@pytest.mark.parametrize("regime", REGIMES)
def test_golden_zebra(golden, regime):
    """ZEBRA adds a ramp of 1e-6 nats; where scores tie it puts mated ones last, except in D_ECE."""
    expected = golden.json("zebra_exact")["exact"][f"{regime}_eval"]
    matrix = golden.matrix(f"{regime}_eval")
    found = disclosed(matrix)
    worst = found["zebra.log10_l"]
    assert found["zebra.d_ece_bits"].value == pytest.approx(expected["D_ECE"], abs=1e-12)
    assert worst.value == pytest.approx(expected["log10_l_pooled_ties"], abs=1e-12)
    assert worst.ceiling == pytest.approx(expected["log10_l_ceiling"], abs=1e-12)
    assert worst.floor == pytest.approx(expected["log10_l_floor"], abs=1e-12)
    assert d_ece(*pools(matrix)) == found["zebra.d_ece_bits"].value
    assert log10_l(*pools(matrix)) == worst.value
    printed = golden.json("peers")["regimes"][f"{regime}_eval"]["zebra"]
    assert found["zebra.d_ece_bits"].value == pytest.approx(printed["D_ECE"], abs=1e-8)
    assert found["zebra.tag"].text == printed["tag"]
    if regime == "tied":
        assert worst.value < printed["log10_l"] - 0.7
    else:
        assert worst.value == pytest.approx(printed["log10_l"], abs=4.4e-7)


@pytest.mark.parametrize(("mated", "non_mated"), [(10, 90), (1000, 99000), (100, 100)])
def test_perfect_separation(golden, mated, non_mated):
    probe = golden.json("peers")["edge_probes"][f"perfect_T{mated}_N{non_mated}"]
    own, others = np.linspace(2, 3, mated), np.linspace(0, 1, non_mated)
    assert d_ece(own, others) == pytest.approx(probe["D_ECE"], abs=1e-12) == CEILING_BITS
    assert log10_l(own, others) == pytest.approx(probe["predict_log10_l"], abs=1e-12)
    assert log10_l(own, others) == pytest.approx(log10_l_limits(mated, non_mated)[1], abs=1e-12)
    assert tag(log10_l(own, others)) == probe["tag"]


def test_scores_that_are_all_equal_disclose_nothing(golden):
    """ZEBRA and VoicePAT sort mated ones last and give tag C here; pooled, nothing is left."""
    probes = golden.json("peers")["edge_probes"]
    assert probes["const_T100_N900"]["tag"] == probes["const_T500_N500"]["tag"] == "C"
    assert d_ece(np.ones(100), np.ones(900)) == probes["const_T100_N900"]["D_ECE"]
    floor = log10_l_limits(100, 900)[0]
    assert log10_l(np.ones(100), np.ones(900)) == pytest.approx(floor, abs=1e-15)
    assert tag(log10_l(np.ones(100), np.ones(900))) == "A"  # the dummies, not the scores
    assert tag(log10_l(np.ones(500), np.ones(500))) == "0"
    own, others = np.linspace(0, 1, 100), np.linspace(2, 3, 900)  # nor do scores that are reversed
    probe = probes["reversed_T100_N900"]
    assert d_ece(own, others) == probe["D_ECE"] == 0.0
    assert log10_l(own, others) == pytest.approx(probe["log10_l"], abs=4.4e-7)
    assert log10_l(own, others) == pytest.approx(floor, abs=1e-15)


def test_tags_are_those_of_the_paper(golden):
    """ZEBRA's code has the intervals closed above, and stops with an error at 0."""
    rows = golden.json("zebra_exact")["zebra_published_rows"]
    assert len(rows) == 72
    assert [tag(row["log10_l"]) for row in rows] == [row["tag"] for row in rows]
    assert [tag(x) for x in (0.0, 1e-9, 0.999, 1.0, 1.999, 2.0, 3.999)] == [*"0AABBCC"]
    assert [tag(x) for x in (4.0, 4.999, 5.0, 5.999, 6.0, 40.0, np.inf)] == [*"DDEEFFF"]


def test_z_meets_its_series_and_its_limits():
    a = np.array([0.009999999, 0.010000001])
    assert np.diff(zebra._z(a)) == pytest.approx(2e-9 / 6, rel=0.01)
    assert np.diff(zebra._z(-a)) == pytest.approx(-2e-9 / 6, rel=0.01)
    small = zebra._z(np.array([1.1e-6, -1.1e-6]))
    assert small == pytest.approx([1.1e-6 / 6, -1.1e-6 / 6], rel=1e-6)
    assert zebra._z(np.array([1e4, np.inf])) == pytest.approx([0.25, 0.25], abs=1e-12)
    assert zebra._z(np.array([-800.0]))[0] == pytest.approx(0.25 - 799 / 2)


@pytest.mark.slow
@settings(max_examples=20)
@given(SCORES, SCORES)
def test_d_ece_is_the_mean_gap_of_the_profile(mated, non_mated):
    """Equation 5: the integral over the prior of default less calibrated cross-entropy."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    prior = (nodes + 1) / 2
    profile = ece_profile(mated, non_mated, np.log(prior / (1 - prior)))
    area = weights @ (profile.default - profile.calibrated) / 2
    assert d_ece(mated, non_mated) == pytest.approx(area, abs=2e-5)


def test_limits_hold_zero_where_there_is_no_evidence(golden):
    """Plain percentiles of D_ECE do not: each resample is fitted to its own repeated trials."""
    mean = with_limits(zebra.figures, golden.matrix("random_eval"))["zebra.d_ece_bits"]
    assert mean.value > 0
    assert mean.limits[0] == pytest.approx(0.0, abs=1e-6)
