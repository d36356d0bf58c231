from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.lab.evaluation import zebra
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.zebra import (
    CEILING_BITS,
    d_ece,
    ece_profile,
    figures,
    log10_l,
    log10_l_limits,
    tag,
)
from tests.lab.evaluation.matrices import with_limits

REGIMES = ["plain", "mid", "weak", "random", "tied"]
SCORES = st.lists(st.integers(-8, 8), min_size=1, max_size=30)
PERFECT = [(10, 90), (1000, 99000), (100, 100)]


def by_key(matrix):
    return {figure.key: figure for figure in figures(matrix)}


def pools(matrix):
    return matrix.mated, np.concatenate([b.ravel() for _, b in matrix.non_mated_blocks()])


@pytest.mark.parametrize("regime", REGIMES)
def test_golden_exact(golden, regime):
    expected = golden.json("zebra_exact")["exact"][f"{regime}_eval"]
    matrix = golden.matrix(f"{regime}_eval")
    found = by_key(matrix)
    worst = found["zebra.log10_l"]
    assert found["zebra.d_ece_bits"].value == pytest.approx(expected["D_ECE"], abs=1e-12)
    assert worst.value == pytest.approx(expected["log10_l_pooled_ties"], abs=1e-12)
    assert worst.ceiling == pytest.approx(expected["log10_l_ceiling"], abs=1e-12)
    assert worst.floor == pytest.approx(expected["log10_l_floor"], abs=1e-12)
    assert d_ece(*pools(matrix)) == found["zebra.d_ece_bits"].value
    assert log10_l(*pools(matrix)) == worst.value


@pytest.mark.parametrize("regime", REGIMES)
def test_golden_zebra_itself(golden, regime):
    """ZEBRA adds a ramp of 1e-6 nats; where scores tie it puts mated ones last, except in D_ECE."""
    printed = golden.json("peers")["regimes"][f"{regime}_eval"]["zebra"]
    found = by_key(golden.matrix(f"{regime}_eval"))
    worst = found["zebra.log10_l"].value
    assert found["zebra.d_ece_bits"].value == pytest.approx(printed["D_ECE"], abs=1e-8)
    assert found["zebra.tag"].text == printed["tag"]
    if regime == "tied":
        assert worst < printed["log10_l"] - 0.7
    else:
        assert worst == pytest.approx(printed["log10_l"], abs=4.4e-7)


@pytest.mark.parametrize(("mated", "non_mated"), PERFECT)
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


def test_reversed_scores_disclose_nothing(golden):
    probe = golden.json("peers")["edge_probes"]["reversed_T100_N900"]
    own, others = np.linspace(0, 1, 100), np.linspace(2, 3, 900)
    assert d_ece(own, others) == probe["D_ECE"] == 0.0
    assert log10_l(own, others) == pytest.approx(probe["log10_l"], abs=4.4e-7)
    assert log10_l(own, others) == pytest.approx(log10_l_limits(100, 900)[0], abs=1e-15)


def test_four_by_four(golden):
    example, probe = (
        golden.json("math")["lid_4x4"],
        golden.json("peers")["edge_probes"]["lid_4x4"]["zebra"],
    )
    found = by_key(ScoreMatrix(np.array(example["S"]), np.array(example["target"])))
    assert found["zebra.d_ece_bits"].value == pytest.approx(example["D_ECE"], abs=1e-12)
    assert found["zebra.log10_l"].value == pytest.approx(probe["log10_l"], abs=4.4e-7)
    assert found["zebra.tag"].text == probe["tag"]


def test_published_tags(golden):
    rows = golden.json("zebra_exact")["zebra_published_rows"]
    assert len(rows) == 72
    assert [tag(row["log10_l"]) for row in rows] == [row["tag"] for row in rows]


def test_tags_begin_where_the_paper_says():
    """ZEBRA's code has the intervals closed above, and stops with an error at 0."""
    assert [tag(x) for x in (0.0, 1e-9, 0.999, 1.0, 1.999, 2.0, 3.999)] == [*"0AABBCC"]
    assert [tag(x) for x in (4.0, 4.999, 5.0, 5.999, 6.0, 40.0, np.inf)] == [*"DDEEFFF"]
    for wrong in (-0.1, np.nan):
        with pytest.raises(UsageError, match="0 or more"):
            tag(wrong)


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


@given(SCORES, SCORES)
def test_only_the_order_counts_and_limits_hold(mated, non_mated):
    stretched = np.exp(np.array(mated) / 3), np.exp(np.array(non_mated) / 3)
    assert d_ece(*stretched) == d_ece(mated, non_mated)
    assert log10_l(*stretched) == log10_l(mated, non_mated)
    assert 0 <= d_ece(mated, non_mated) <= CEILING_BITS + 1e-12
    floor, ceiling = log10_l_limits(len(mated), len(non_mated))
    assert floor - 1e-12 <= log10_l(mated, non_mated) <= ceiling + 1e-12


def test_min_cllr_is_the_profile_at_even_odds(golden):
    own, others = pools(golden.matrix("weak_eval"))
    expected = golden.json("zebra_exact")["exact"]["weak_eval"]["min_cllr"]
    assert ece_profile(own, others, [0.0]).calibrated[0] == pytest.approx(expected, abs=1e-12)
    assert ece_profile(own, others).default.max() == 1.0


def test_perfect_figures_reach_their_ceilings(perfect):
    found = by_key(perfect)
    for key in ("zebra.d_ece_bits", "zebra.log10_l"):
        assert found[key].value == pytest.approx(found[key].ceiling, abs=1e-12)


def test_no_evidence_reads_zero_within_the_null_band(golden):
    """The band: the same scores with speakers permuted against columns."""
    matrix = golden.matrix("random_eval")
    generator = np.random.default_rng(0)
    null = [
        by_key(ScoreMatrix(matrix.scores, generator.permutation(100)[matrix.target]))[
            "zebra.d_ece_bits"
        ].value
        for _ in range(40)
    ]
    value = by_key(matrix)["zebra.d_ece_bits"].value
    assert value is not None
    assert value <= np.max(np.array(null, dtype=float)) < 0.005


def test_limits_hold_zero_where_there_is_no_evidence(golden):
    """Plain percentiles of D_ECE do not: each resample is fitted to its own repeated trials."""
    mean = with_limits(figures, golden.matrix("random_eval"))["zebra.d_ece_bits"]
    assert mean.value is not None
    assert mean.value > 0
    assert mean.limits[0] == pytest.approx(0.0, abs=1e-6)


def test_the_worst_case_has_no_limits_and_says_why(golden):
    worst = with_limits(figures, golden.matrix("mid_eval"))["zebra.log10_l"]
    assert worst.limits == (None, None)
    assert worst.note.endswith("no limits: one trial decides it")


def test_refusals():
    with pytest.raises(UsageError, match="at least one"):
        log10_l_limits(0, 5)
    with pytest.raises(UsageError, match="not finite"):
        d_ece([np.inf], [0.0])
