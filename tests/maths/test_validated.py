"""Bounds and deviation of likelihood ratios: against the oracle, and what must hold whatever."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.lab.evaluation.verification import cllr, min_cllr
from monitor.maths.ratio_checks import (
    bounds_bits,
    calibrated_by_pav,
    deviation_from_pav,
    invariance_bounds_bits,
)

TENS = np.log10(2.0)
some = st.lists(st.floats(-30, 30), min_size=1, max_size=40).map(np.array)


def ratios(seed, people=60, others=900, spread=1.0, shift=0.0):
    """Normal ratios, calibrated but for a spread and a shift: bits."""
    rng = np.random.default_rng(seed)
    lead = 4.0  # nats between the means, whose half is the variance of calibrated ones
    own = lead + np.sqrt(2 * lead) * rng.standard_normal(people)
    theirs = -lead + np.sqrt(2 * lead) * rng.standard_normal(others)
    return tuple((spread * each + shift) / np.log(2.0) for each in (own, theirs))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("spread", "shift"), [(1.0, 0.0), (1.7, 0.0), (0.6, 1.0), (1.0, -2.0)])
def test_every_measure_is_that_of_the_oracle(seed, spread, shift):
    """Public peer: lir. Costs and devPAV to 1e-9, bounds to two of its steps: 0.002 decades."""
    lir = pytest.importorskip("lir", reason="needs the extra peers")
    from lir import metrics
    from lir.algorithms.bayeserror import elub
    from lir.algorithms.invariance_bounds import calculate_invariance_bounds
    from lir.data.models import LLRData
    from lir.metrics.devpav import devpav

    assert lir
    mated, others = ratios(seed, 40 + 7 * seed, 600 + 100 * seed, spread, shift)
    tens = np.concatenate([mated, others]) * TENS
    labels = np.repeat([1, 0], [mated.size, others.size])
    data = LLRData(features=tens, labels=labels)
    nats = mated * np.log(2.0), others * np.log(2.0)
    assert cllr(*nats) == pytest.approx(metrics.cllr(data), abs=1e-9)
    assert min_cllr(*nats) == pytest.approx(metrics.cllr_min(data), abs=1e-9)
    assert cllr(*nats) - min_cllr(*nats) == pytest.approx(metrics.cllr_cal(data), abs=1e-9)
    found = deviation_from_pav(*calibrated_by_pav(mated, others)) * TENS
    assert found == pytest.approx(devpav(tens, labels), abs=1e-9)
    oracle = elub(tens.copy(), labels, step_size=0.001)
    assert np.array(bounds_bits(mated, others)) * TENS == pytest.approx(oracle, abs=0.0021)
    low, high = calculate_invariance_bounds(10.0**tens, labels)[:2]
    expected = np.log10([low, high])
    assert np.array(invariance_bounds_bits(mated, others)) * TENS == pytest.approx(
        expected, abs=0.0021
    )


@pytest.mark.parametrize("regime", ["plain", "mid", "weak", "random", "tied"])
def test_golden_of_the_oracle(golden, regime):
    expected = golden.json("lir_validation")["regimes"][regime]
    scores = golden.scores(f"{regime}_eval").astype(np.float64) * 6 - 1.5
    own = np.zeros(scores.shape, bool)
    own[np.arange(len(scores)), golden.target] = True
    tens = scores[own], scores[::25][~own[::25]]
    nats, bits = ([each * unit for each in tens] for unit in (np.log(10.0), np.log2(10.0)))
    assert cllr(*nats) == pytest.approx(expected["cllr"], abs=1e-9)
    assert min_cllr(*nats) == pytest.approx(expected["cllr_min"], abs=1e-9)
    found = deviation_from_pav(*calibrated_by_pav(*bits)) * TENS
    assert found == pytest.approx(expected["devpav"], abs=1e-9)
    for bounds, name in ((bounds_bits, "elub"), (invariance_bounds_bits, "invariance")):
        assert np.array(bounds(*bits)) * TENS == pytest.approx(expected[name], abs=0.0021), name


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=2, max_size=12))
def test_calibrated_ratios_deviate_by_nothing(counts):
    """Of each level as many mated and others as its ratio says."""
    counts = sorted(set(counts), key=lambda pair: pair[0] / pair[1])
    own, theirs = np.array(counts).T
    bits = np.log2((own / own.sum()) / (theirs / theirs.sum()))
    levels, calibrated = calibrated_by_pav(np.repeat(bits, own), np.repeat(bits, theirs))
    assert calibrated == pytest.approx(levels, abs=1e-9)
    assert deviation_from_pav(levels, calibrated) == pytest.approx(0.0, abs=1e-9)


@given(st.lists(st.floats(-30, 30), min_size=2, max_size=40, unique=True), st.floats(-5, 5))
def test_a_shift_of_calibrated_ratios_is_their_deviation(levels, shift):
    levels = np.sort(levels)
    assert deviation_from_pav(levels, levels + shift) == pytest.approx(abs(shift), abs=1e-9)


@given(
    st.lists(st.floats(-30, 30), min_size=2, max_size=20, unique=True).map(sorted),
    st.lists(st.floats(-30, 30), min_size=20, max_size=20).map(sorted),
)
def test_deviation_is_the_area_between_the_curve_and_the_diagonal(levels, calibrated):
    x, y = np.array(levels), np.array(calibrated)[: len(levels)]
    grid = np.linspace(x[0], x[-1], 20_001)
    area = np.abs(np.interp(grid, x, y) - grid).mean()
    steep = np.ptp(y) + np.ptp(x)
    assert deviation_from_pav(x, y) == pytest.approx(area, abs=1e-3 * steep + 1e-9)


@given(some, some)
def test_what_pav_gives_is_calibrated_and_rises(mated, others):
    levels, calibrated = calibrated_by_pav(mated, others)
    assert (np.diff(levels) > 0).all()
    assert (calibrated[1:] >= calibrated[:-1]).all()
    made = [calibrated[np.searchsorted(levels, each)] for each in (mated, others)]
    held = [np.clip(each, -500, 500) * np.log(2.0) for each in made]
    assert cllr(*held) == pytest.approx(min_cllr(mated, others), abs=1e-9)
    again = calibrated_by_pav(*(np.clip(each, -500, 500) for each in made))
    finite = np.isfinite(again[1])
    assert again[1][finite] == pytest.approx(again[0][finite], abs=1e-9)


@given(
    st.lists(st.integers(-300, 300), min_size=1, max_size=40).map(np.array),
    st.lists(st.integers(-300, 300), min_size=1, max_size=40).map(np.array),
)
def test_a_rising_function_of_ratios_changes_neither_pav_nor_min_cllr(mated, others):
    bent = [each.astype(float) ** 3 / 1e4 + each for each in (mated, others)]
    assert calibrated_by_pav(*bent)[1].tolist() == calibrated_by_pav(mated, others)[1].tolist()
    assert min_cllr(*bent) == min_cllr(mated, others)


def test_perfect_separation_has_no_deviation_and_one_point_its_distance():
    assert np.isnan(deviation_from_pav(*calibrated_by_pav(np.ones(5), np.zeros(7))))
    assert deviation_from_pav(*calibrated_by_pav(np.full(5, 3.0), np.full(7, 3.0))) == 3.0


@settings(max_examples=60, deadline=None)
@given(some, some)
def test_bounds_lie_on_either_side_of_no_evidence_and_within_what_there_is(mated, others):
    least, most = (f([*mated, *others, 0.0]) for f in (min, max))
    for bounds in (bounds_bits, invariance_bounds_bits):
        low, high = bounds(mated, others)
        assert least - 1e-9 <= low <= 0.0 <= high <= most + 1e-9
        # exchanged propositions exchange the bounds
        assert bounds(-others, -mated) == (0.0 - high, 0.0 - low)


def test_no_ratio_however_large_is_supported_beyond_the_data():
    huge = np.full(40, 1e300), np.full(400, -1e300)
    assert bounds_bits(*huge)[1] < np.log2(401)
    assert invariance_bounds_bits(*huge)[1] < np.log2(802)
