from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from monitor.maths.composition import clipped, laplace, noise_scale

SIZE = 5
numbers = st.floats(-1e3, 1e3)
vectors = arrays(np.float64, SIZE, elements=numbers)
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


@given(positive, positive)
def test_the_bound_is_met_by_voices_as_far_apart_as_can_be(epsilon, bound):
    voice = np.array([7.0, 0, 0, 0, 0]) * bound
    far = 3 * np.sign(voice) * bound
    ratio = log_density(far, voice, epsilon, bound) - log_density(far, -voice, epsilon, bound)
    assert ratio == pytest.approx(epsilon)


@given(vectors, positive)
def test_clipping_shortens_to_the_bound_and_turns_nothing(voice, bound):
    made = clipped(voice, bound)
    assert np.abs(made).sum() <= bound * (1 + 1e-12)
    if np.abs(voice).sum() <= bound:
        assert np.array_equal(made, voice)
    else:
        assert made / bound == pytest.approx(voice / np.abs(voice).sum(), abs=1e-12)


@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_noise_has_the_distribution_it_should(scale):
    uniform = np.random.default_rng(1).uniform(size=20_000)
    noise = laplace(uniform, scale)
    assert stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > 0.01
    assert noise.std() == pytest.approx(math.sqrt(2) * scale, rel=0.03)


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
