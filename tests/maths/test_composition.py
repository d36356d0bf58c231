import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from monitor.errors import UsageError
from monitor.maths.composition import (
    advanced,
    basic,
    clipped,
    epsilon_lower_nats,
    epsilon_nats,
    guides,
    laplace,
    noise_scale,
    optimal,
)
from monitor.maths.statistics import clopper_pearson


def test_golden_rows(golden):
    rows = golden.json("composition")["rows"]
    assert len(rows) == 48
    for row in rows:
        eps, k, delta = row["eps0"], row["k"], row["delta"]
        assert basic(eps, k) == pytest.approx(row["basic"], rel=1e-12)
        assert advanced(eps, k, delta) == pytest.approx(row["advanced_DRV"], rel=1e-12)
        best = optimal(eps, k, delta)
        assert best == pytest.approx(row["dp_accounting_PLD"], rel=1e-6)
        assert best <= row["KOV_thm34"] + eps  # the grid steps by 2 epsilon below their formula
        grid = eps * np.arange(k % 2, k + 1, 2)  # of theorem 3.3
        assert grid[grid >= best - 1e-12][0] == pytest.approx(row["KOV_thm33_optimal_grid"])


def test_golden_crossover(golden):
    for eps, first in golden.json("composition")["delta_advanced_crossover"].items():
        wins = [k for k in range(1, 3000) if advanced(float(eps), k, 1e-4) < basic(float(eps), k)]
        assert (wins[0] if wins else None) == first


@given(st.floats(0, 5), st.integers(0, 400), st.floats(1e-9, 0.5))
def test_order_of_the_bounds(eps, k, delta):
    best = optimal(eps, k, delta)
    assert 0 <= best <= basic(eps, k) + 1e-12
    assert optimal(eps, k, delta / 2) >= best - 1e-12
    assert optimal(eps, k + 1, delta) >= best * (1 - 1e-9)


def _delta(bound, eps, k):
    """Of k randomised responses, summed over every sequence of outcomes."""
    truth = 1 / (1 + math.exp(-eps))
    outcomes = np.array(list(itertools.product((truth, 1 - truth), repeat=k)))
    given, other = outcomes.prod(axis=1), (1 - outcomes).prod(axis=1)
    return np.maximum(given - math.exp(bound) * other, 0.0).sum()


@given(st.floats(0.01, 3), st.integers(1, 9), st.floats(1e-6, 0.5))
def test_optimal_is_where_k_randomised_responses_reach_delta(eps, k, delta):
    best = optimal(eps, k, delta)
    if best == 0:
        assert _delta(0.0, eps, k) <= delta * (1 + 1e-9)
    else:
        assert _delta(best, eps, k) == pytest.approx(delta, rel=1e-6, abs=1e-12)


def test_many_windows_stay_finite():
    k = 100_000
    assert 0 < optimal(0.01, k, 1e-6) < advanced(0.01, k, 1e-6) < basic(0.01, k)
    assert optimal(0.0, 10, 1e-6) == 0
    assert optimal(0.05, 10, 1e-4) == pytest.approx(0.4166197, abs=1e-7)  # between grid points
    assert advanced(1000.0, 2, 1e-6) == math.inf


def test_guides():
    length = np.array([0.0, 0.3, 1.2, 30.0, 1e9])
    linear, root = guides(length, 0.3, 0.4, 5.0)
    assert_allclose(linear, [0, 0.4, 1.6, 5, 5])
    assert_allclose(root, [0, 0.4, 0.8, 4, 5])
    flat, _ = guides(10.0, 1.0, 0.0, 5.0)
    assert flat == 0
    assert guides(0.3, 0.3, 7.0, 5.0)[0] == 5


@given(st.floats(0, 1e6), st.floats(1e-3, 1e3), st.floats(0, 20), st.floats(0, 20))
def test_guides_stay_between_nothing_and_the_ceiling(length, first, bits, ceiling):
    linear, root = guides(length, first, bits, ceiling)
    for guide in (linear, root):
        assert 0 <= guide <= ceiling
    assert (linear >= root) if length >= first else (linear <= root)


SIZE = 5
vectors = arrays(np.float64, SIZE, elements=st.floats(-1e3, 1e3))
positive = st.floats(0.01, 100.0)


def log_density(out: np.ndarray, voice: np.ndarray, epsilon: float, bound: float) -> float:
    """Of what comes out for a voice, from the definition of the mechanism."""
    b = noise_scale(epsilon, bound)
    return -float(np.abs(out - clipped(voice, bound)).sum()) / b - SIZE * math.log(2 * b)


@given(vectors, vectors, vectors, positive, positive)
def test_no_output_is_over_e_to_the_epsilon_as_likely_for_another_voice(
    out, one, other, epsilon, bound
):
    ratio = log_density(out, one, epsilon, bound) - log_density(out, other, epsilon, bound)
    assert abs(ratio) <= epsilon + 1e-9 * (1 + abs(out).max() * epsilon / bound)


@given(vectors, positive)
def test_clipping_shortens_to_the_bound_and_turns_nothing(voice, bound):
    made = clipped(voice, bound)
    assert np.abs(made).sum() <= bound * (1 + 1e-12)
    if np.abs(voice).sum() <= bound:
        assert np.array_equal(made, voice)
    else:
        assert made / bound == pytest.approx(voice / np.abs(voice).sum(), abs=1e-12)


def test_quantiles_are_those_of_scipy():
    uniform = np.array([1e-15, 1e-6, 0.1, 0.5, 0.7, 1 - 1e-6])
    assert laplace(uniform, 2.0) == pytest.approx(stats.laplace.ppf(uniform, scale=2.0), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_counts_of_outputs_keep_the_promise(epsilon):
    """What an attacker can count: the same event for two voices, as far apart as can be."""
    generator = np.random.default_rng(2)
    ends = np.linspace(-3, 3, 13)
    one, other = (
        np.histogram(clipped(np.array([sign * 9.0]), 1.0) + laplace(
            generator.uniform(size=200_000), noise_scale(epsilon, 1.0)), ends)[0]
        for sign in (1, -1)
    )  # fmt: skip
    ratio = np.log(one / other)
    error = 4 * np.sqrt(1 / one + 1 / other)
    assert (np.abs(ratio) <= epsilon + error).all()
    assert np.abs(ratio).max() > 0.9 * epsilon
    voice = np.array([7.0, 0, 0, 0, 0])
    far = log_density(3 * voice, voice, epsilon, 1.0) - log_density(3 * voice, -voice, epsilon, 1.0)
    assert far == pytest.approx(epsilon)  # the bound is met


def test_golden_points_and_bounds(golden):
    rows = golden.json("math")["voxguard_eps_hat"]
    assert len(rows) == 7
    for row in rows:
        point = float(epsilon_nats(row["tp"] / row["n_tar"], row["fp"] / row["n_non"]))
        assert point == pytest.approx(float(row["eps_point"]), abs=1e-12)
        counts = row["tp"], row["n_tar"], row["fp"], row["n_non"]
        lower = epsilon_lower_nats(*counts, delta=row["delta"])
        assert lower == pytest.approx(row["eps_CP_lower"], abs=1e-10)
        low, high = (clopper_pearson(*each) for each in (counts[:2], counts[2:]))
        assert low[0] == pytest.approx(row["cp"]["tpr_lo"], rel=1e-12)
        assert high[1] == pytest.approx(row["cp"]["fpr_hi"], rel=1e-12)
    assert clopper_pearson(5, 5)[1] == 1


def test_edges_of_the_point():
    expected = [math.inf, math.inf, 0.0, 0.0, -math.inf, math.log(0.9 / 0.5)]
    found = epsilon_nats([0.5, 1.0, 0.0, 1.0, 0.0, 0.5], [0.0, 0.5, 0.0, 1.0, 1.0, 0.1])
    assert_array_equal(found[:5], expected[:5])
    assert found[5] == pytest.approx(math.log(5))
    assert epsilon_nats(0.01, 0.2) == pytest.approx(math.log(0.8 / 0.99))


@given(st.integers(1, 500), st.integers(1, 500), st.data())
def test_the_bound_never_exceeds_the_point(mated, non_mated, data):
    hits, alarms = data.draw(st.integers(0, mated)), data.draw(st.integers(0, non_mated))
    point = float(epsilon_nats(hits / mated, alarms / non_mated))
    lower = epsilon_lower_nats(hits, mated, alarms, non_mated)
    assert 0 <= lower <= max(point, 0.0) + 1e-12
    assert epsilon_lower_nats(hits, mated, alarms, non_mated, delta=0.0) >= lower


def test_the_bound_covers():
    """A mechanism with epsilon ln 5 at this threshold is accused of more in under 5 %."""
    generator = np.random.default_rng(5)
    hits, alarms = generator.binomial(200, 0.5, 400), generator.binomial(2000, 0.1, 400)
    lower = [
        epsilon_lower_nats(int(hit), 200, int(alarm), 2000, delta=0.0)
        for hit, alarm in zip(hits, alarms, strict=True)
    ]
    assert np.mean(np.array(lower) > math.log(5)) < 0.05
    assert np.mean(lower) > math.log(5) / 2


@pytest.mark.parametrize(
    ("call", "arguments", "words"),
    [
        *((guides, each, "invalid guides")
          for each in [(-1.0, 1.0, 1.0, 1.0), (1.0, 1.0, -1.0, 1.0), (1.0, 1.0, 1.0, math.nan)]),
        *((guides, (1.0, first, 1.0, 1.0), "above 0") for first in (0.0, -1.0, math.inf)),
        *((basic, (epsilon, 1), "epsilon") for epsilon in (-1.0, math.nan, math.inf)),
        (basic, (1.0, -1), "windows"),
        *((optimal, (1.0, 2, delta), "delta") for delta in (0.0, 1.0, math.nan)),
        *((epsilon_nats, rates, "invalid rate") for rates in [(1.5, 0.1), (0.5, math.nan)]),
        (partial(epsilon_lower_nats, delta=1.0), (1, 2, 1, 2), "delta"),
        (epsilon_lower_nats, (3, 2, 1, 2), "3 hits in 2 trials"),
        *((clopper_pearson, wrong, None) for wrong in
          [(6, 5, 0.025), (-1, 5, 0.025), (0, 0, 0.025), (1, 2, 0.5)]),
    ],
)  # fmt: skip
def test_refusals(call, arguments, words):
    with pytest.raises(UsageError, match=words):
        call(*arguments)
