from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor.errors import UsageError
from monitor.maths.condition import UNLIKE
from monitor.maths.evidence import (
    MISSES,
    ConditionEffect,
    bits_among,
    cap_bits,
    crowd_bits,
    enrolled_share,
    level_ratios,
    log2_ratios,
    posterior_among,
    total_bits,
    with_misses,
)
from monitor.maths.posterior import local_bits, score_posterior

ratios = st.lists(st.floats(-1000, 1000), min_size=1, max_size=30).map(np.array)
crowds = st.floats(0, 1e10)


def exactly(bits, people):
    """Probabilities and log2 of the total, in as many digits as it takes."""
    getcontext().prec = 400
    each = [Decimal(2) ** Decimal(float(b)) for b in bits]
    total = sum(each) + Decimal(people) - len(each)
    return [float(x / total) for x in each], float(total.ln() / Decimal(2).ln())


@pytest.mark.slow
@given(ratios, crowds)
def test_posterior_by_its_definition_however_large(bits, more):
    people = bits.size + more
    expected, total = exactly(bits, people)
    assert_allclose(posterior_among(bits, people), expected, rtol=1e-9, atol=1e-300)
    assert float(total_bits(bits, people - bits.size)) == pytest.approx(total, abs=1e-9)


@given(ratios, crowds)
def test_probabilities_sum_to_one_with_everybody_else(bits, more):
    people = bits.size + more
    rest = (people - bits.size) * np.exp2(-total_bits(bits, people - bits.size))
    assert posterior_among(bits, people).sum() + rest == pytest.approx(1, abs=1e-9)


@given(ratios, crowds, st.data())
def test_bits_of_the_watched(bits, more, data):
    people = bits.size + more
    watched = data.draw(st.integers(0, bits.size - 1))
    found = float(bits_among(bits, people, watched))
    assert np.isfinite(found)
    assert found <= np.log2(people) + 1e-9
    rest = total_bits(np.delete(bits, watched)) if bits.size > 1 else -np.inf
    again = crowd_bits(bits[watched], np.asarray(rest), bits.size, people)
    assert found == pytest.approx(float(again), abs=1e-9)


@given(ratios, crowds)
def test_without_a_watched_speaker_it_is_a_relative_entropy(bits, more):
    people = bits.size + more
    more = people - bits.size  # as far as floats hold it
    p = posterior_among(bits, people)
    rest = np.exp2(-total_bits(bits, people - bits.size))
    told = p > 0
    entropy = (p[told] * np.log2(people * p[told])).sum()
    entropy += more * rest * np.log2(people * rest) if rest > 0 else 0.0
    assert float(bits_among(bits, people, None)) == pytest.approx(entropy, abs=1e-6)


@given(ratios)
def test_among_the_enrolled_alone_it_is_the_closed_set(bits):
    closed = score_posterior(bits * np.log(2), 0.0)
    assert_allclose(posterior_among(bits, bits.size), closed, rtol=1e-6, atol=1e-300)
    if bits.size > 1 and closed[0] > 1e-200:
        local = local_bits(float(closed[0]), bits.size)
        assert float(bits_among(bits, bits.size, 0)) == pytest.approx(float(local), abs=1e-6)


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=30).map(np.array))
def test_in_a_large_crowd_it_is_the_evidence(bits):
    assert_allclose([bits_among(bits, 1e15, j) for j in range(bits.size)], bits, atol=1e-6)


some = st.lists(st.floats(-60, 60), min_size=2, max_size=30).map(np.array)


@given(some, st.floats(0, 40))
def test_a_crowd_makes_nobody_more_probable_and_evidence_never_counts_less(bits, more):
    near, far = bits.size * 2.0, bits.size * 2.0 ** (1 + more)
    assert (posterior_among(bits, far) <= posterior_among(bits, near) + 1e-15).all()
    raised = bits.copy()
    raised[0] += more
    assert bits_among(raised, 1e6, 0) >= bits_among(bits, 1e6, 0) - 1e-9
    assert enrolled_share(raised) >= enrolled_share(bits) - 1e-12
    assert level_ratios(raised)[0] >= level_ratios(bits)[0] - 1e-9
    held = cap_bits(bits, more)  # what data cannot support is taken off all alike
    assert held.max() <= more + 1e-9
    assert_allclose(held - held[0], bits - bits[0], atol=1e-9)
    if bits.max() <= more:
        assert (held == bits).all()


@given(ratios, st.floats(1e-6, 1 - 1e-6))
def test_enrolled_is_the_posteriors_sum(bits, prior):
    """N of M people are enrolled: a prior of N / M."""
    share = float(enrolled_share(bits, prior))
    assert 0 <= share <= 1
    people = bits.size / prior
    assert share == pytest.approx(posterior_among(bits, people).sum(), abs=1e-6)


def test_no_evidence_leaves_the_prior():
    assert enrolled_share(np.zeros((3, 50)), 0.2) == pytest.approx([0.2] * 3)
    assert bits_among(np.zeros(50), 1e6, 3) == pytest.approx(0.0, abs=1e-12)
    assert bits_among(np.zeros(50), 1e6, None) == pytest.approx(0.0, abs=1e-9)
    bits = np.full(50, -8.0)
    bits[7] = 11.0  # are one in two thousand
    assert posterior_among(bits, 1e6)[7] == pytest.approx(1 / 489, rel=0.01)
    assert bits_among(bits, 1e6, 7) == pytest.approx(11.0, abs=0.01)


@given(st.lists(st.floats(-200, 200), min_size=2, max_size=30).map(np.array))
def test_of_the_others_the_mean_ratio_is_at_most_one(bits):
    found = level_ratios(bits)
    others = np.delete(found, bits.argmax())
    assert np.exp2(np.append(others, others.max() + 1)).mean() <= 1 + 1e-9
    assert_allclose(found - found[0], bits - bits[0], atol=1e-9)
    if np.delete(bits, bits.argmax()).max() <= -1:
        assert (found == bits).all()
    # nobody beside the best lowers nothing
    for alone in (bits[:1], np.array([[bits[0], -np.inf]])):
        assert level_ratios(alone).tolist() == alone.tolist()


def test_ratios_are_linear_in_the_scores_but_for_misses():
    z = np.array([[[1.0, -2.0], [0.5, 3.0]], [[0.0, 1.0], [2.0, 2.0]]])
    slopes = np.array([[0.3, 0.7], [1.0, 0.0]])
    found = log2_ratios(z, np.array([-1.0, 0.5]), slopes)
    ratios = np.exp([[-1 + 0.3 + 0.35, -1 - 0.6 + 2.1], [0.5, 1.5]])
    assert_allclose(np.exp2(found), (1 - MISSES) * ratios + MISSES, rtol=1e-12)


@given(st.lists(st.floats(-900, 900), min_size=1))
def test_misses_bound_what_speaks_against_somebody_and_never_add(bits):
    bits = np.array(bits)
    found = with_misses(bits)
    assert (found >= np.log2(MISSES) - 1e-9).all()
    assert (found <= np.maximum(bits, 0) + 1e-9).all()
    order = np.argsort(bits)
    assert (np.diff(found[order]) >= -1e-9).all()


@given(
    st.lists(st.just(0.0) | st.floats(0.01, 1.2), min_size=UNLIKE, max_size=UNLIKE),
    st.integers(0, 99),
)
def test_conditions_keep_the_order_of_ratios(q, seed):
    generator = np.random.default_rng(seed)
    effect = ConditionEffect(
        generator.normal(0, 1, UNLIKE),
        generator.normal(0, 1, (2, UNLIKE)),
        generator.uniform(0, 12, UNLIKE),
    )
    shift, slope, support = effect.evaluate_at(np.array(q))
    assert slope.shape == (2,)
    for part in slope:  # who fits a feature better is not said to fit it worse
        assert (np.diff(np.sort(generator.normal(0, 9, 20)) * part + shift) >= 0).all()
    there = np.array(q) > 0
    least = (effect.support[there] / np.minimum(np.array(q)[there], 1)).min(initial=np.inf)
    assert support == pytest.approx(least)
    shift, slope, support = effect.evaluate_at(np.zeros(UNLIKE))
    assert_allclose([shift, *slope, support], [0.0, 1.0, 1.0, np.inf])


def test_refusals():
    for people in (1, 1.9, np.inf, np.nan):
        with pytest.raises(UsageError, match="finite number, at least the 2 enrolled"):
            posterior_among(np.zeros(2), people)
    for prior in (0.0, 1.0, -1.0, np.nan):
        with pytest.raises(UsageError, match="more than 0 and less than 1"):
            enrolled_share(np.zeros(2), prior)
