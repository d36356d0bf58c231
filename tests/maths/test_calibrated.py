from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from monitor.lab.evaluation.verification import cllr, min_cllr
from monitor.maths.condition import UNLIKE
from monitor.maths.evidence import ConditionEffect
from monitor.maths.likelihood_ratios import (
    ConditionComparisons,
    ScorePairs,
    TemplateComparisons,
    cost_bits,
    effective_pairs,
    exceeding,
    fit_condition_effects,
    least_cost_bits,
    mean_ratio,
    supported_bits,
)

some = st.lists(st.floats(-30, 30), min_size=1, max_size=40).map(np.array)


@given(some, some)
def test_costs_are_those_of_unweighted_scores(mated, others):
    ones = np.ones(mated.size), np.ones(others.size)
    nats = np.log(2)
    assert cost_bits(mated, others, *ones) == pytest.approx(cllr(mated * nats, others * nats))
    assert least_cost_bits(mated, others, *ones) == pytest.approx(min_cllr(mated, others), abs=1e-9)


@given(some, some, st.integers(1, 5))
def test_a_weight_is_so_many_copies(mated, others, times):
    own, theirs = np.ones(mated.size), np.ones(others.size)
    own[0], theirs[0] = times, times
    many = np.append(mated, [mated[0]] * (times - 1)), np.append(others, [others[0]] * (times - 1))
    ones = np.ones(many[0].size), np.ones(many[1].size)
    for cost in (cost_bits, least_cost_bits):
        assert cost(mated, others, own, theirs) == pytest.approx(cost(*many, *ones), abs=1e-9)
    assert mean_ratio(others, theirs) == pytest.approx(mean_ratio(many[1], ones[1]))
    steps = np.array([-1.0, 0.0, 3.0])
    assert exceeding(others, theirs, steps) == pytest.approx(exceeding(many[1], ones[1], steps))


@given(some)
def test_a_mean_ratio_of_one_keeps_every_promise(others):
    """Markov: the share at k bits is at most the mean ratio times 2^-k."""
    ones = np.ones(others.size)
    steps = np.linspace(0, 30, 61)
    allowed = mean_ratio(others, ones) * np.exp2(-steps)
    assert (exceeding(others, ones, steps) <= allowed * (1 + 1e-9) + 1e-12).all()


# not where the search begins: there it is a matter of which side a tie falls to
unequal = st.floats(-12, -0.05) | st.floats(0.05, 12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(unequal, min_size=3, max_size=60).map(np.array),
    st.lists(unequal, min_size=3, max_size=300).map(np.array),
)
def test_upper_bound_is_that_of_the_oracle(mated, others):
    bayeserror = pytest.importorskip("lir.algorithms.bayeserror", reason="needs the extra peers")
    found = supported_bits(
        mated, others, np.ones(mated.size), np.ones(others.size), mated.size, others.size
    )[0]
    tens = np.log10(2)
    ratios = np.concatenate([mated, others]) * tens
    labels = np.repeat([1, 0], [mated.size, others.size])
    _, expected = bayeserror.elub(ratios.copy(), labels, step_size=0.001)
    # the oracle also stops at the largest ratio there is
    assert min(found, max(ratios.max() / tens, 0.0)) == pytest.approx(expected / tens, abs=0.05)


def test_no_bound_beyond_what_pairs_can_show():
    mated, others = np.full(500, 50.0), np.full(500, -50.0)
    ones = np.ones(500)
    assert supported_bits(mated, others, ones, ones, 500, 10)[0] == pytest.approx(
        np.log2(11), abs=0.2
    )
    # one other person in ten who shows 8 bits ends it
    others[:50] = 8.0
    assert supported_bits(mated, others, ones, ones, 500, 500)[0] < np.log2(10) + 0.1


@given(st.integers(4, 12), st.integers(0, 2**32 - 1))
def test_effective_pairs_are_those_of_the_sum_over_pairs_that_share_people(people, seed):
    rng = np.random.default_rng(seed)
    one, other = np.triu_indices(people, 1)
    of = TemplateComparisons(np.zeros((one.size, 1)), ScorePairs(one, other))
    bits = rng.integers(0, 4, one.size).astype(float) + rng.integers(0, 3, people)[one]
    steps = np.arange(0.0, bits.max() + 1e-9, 0.5)
    found = effective_pairs(of, bits, steps)
    for step, count in zip(steps, found, strict=True):
        share = (bits >= step).astype(float)
        p, away = share.mean(), share - share.mean()
        shared = (one[:, None] == one) | (one[:, None] == other)
        shared |= (other[:, None] == one) | (other[:, None] == other)
        variance = max(away @ shared @ away / one.size**2, p * (1 - p) / one.size)
        expected = p * (1 - p) / variance if variance > 0 else one.size
        assert count == pytest.approx(np.clip(expected, 1, one.size), rel=1e-6)


def test_pairs_that_share_people_support_less():
    rng = np.random.default_rng(2)
    one, other = np.triu_indices(60, 1)
    of = TemplateComparisons(np.zeros((one.size, 1)), ScorePairs(one, other))
    like = (one < 3) & (rng.random(one.size) < 0.2)  # three are like many
    lambs = np.where(like, 4.0, -9.0)
    mated, ones = np.full(60, 12.0), np.ones(one.size)
    apart = supported_bits(mated, lambs, ones[:60], ones, 60, one.size)[0]
    assert supported_bits(mated, lambs, ones[:60], ones, 60, one.size, of)[0] < apart


def comparisons(generator, lost, people=40, spread=2.0, template=30.0):
    """Everybody's stream with everybody's template, all of them worth so many bits less."""
    tester, owner = (each.ravel() for each in np.mgrid[:people, :people])
    mated = tester == owner
    bits = np.where(mated, 6.0, -6.0) + spread * generator.standard_normal(mated.size)
    weight = np.where(mated, 0.5 / mated.sum(), 0.5 / (~mated).sum())
    q = np.zeros((mated.size, UNLIKE))
    q[:, 0] = lost > 0
    return ConditionComparisons(
        *(bits[:, None] - lost + 12.0, -12.0, mated, weight, q),
        *(tester.astype(str), owner.astype(str), template),
    )


def told(row, effect):
    bits = row.bits(effect)
    return (bits[row.mated], bits[~row.mated], row.weight[row.mated], row.weight[~row.mated])


def test_what_a_condition_takes_is_given_back_and_others_are_spared():
    rows = [comparisons(np.random.default_rng(k), lost) for k, lost in enumerate((0.0, 5.0))]
    (effect,) = fit_condition_effects(rows).effects
    assert told(rows[1], effect)[0].mean() > told(rows[0], effect)[0].mean() - 1.0
    assert not effect.shift[1:].any()
    assert not effect.slope[:, 1:].any()
    fresh = comparisons(np.random.default_rng(9), 5.0)
    plain = ConditionEffect(np.zeros(UNLIKE), np.zeros((1, UNLIKE)), np.full(UNLIKE, 99.0))
    assert cost_bits(*told(fresh, effect)) < cost_bits(*told(fresh, plain)) - 0.1
    assert cost_bits(*told(fresh, effect)) < least_cost_bits(*told(fresh, effect)) + 0.05
    clean = comparisons(np.random.default_rng(8), 0.0)
    assert cost_bits(*told(clean, effect)) == cost_bits(*told(clean, plain))


def test_a_shared_condition_that_looks_like_a_shared_voice_is_taken_back():
    generator = np.random.default_rng(3)
    row = comparisons(generator, -6.0)
    plain = ConditionEffect(np.zeros(UNLIKE), np.zeros((1, UNLIKE)), np.full(UNLIKE, 99.0))
    row = replace(row, unlike=np.tile(np.eye(UNLIKE)[6], (row.mated.size, 1)))
    assert mean_ratio(*told(row, plain)[1::2]) > 1.5
    (effect,) = fit_condition_effects([row]).effects
    fresh = comparisons(np.random.default_rng(4), -6.0)
    fresh = replace(fresh, unlike=row.unlike)
    assert mean_ratio(*told(fresh, effect)[1::2]) < 1.2


def test_a_condition_supports_what_its_people_support():
    generator = np.random.default_rng(5)
    few, many, fewest = (
        fit_condition_effects([comparisons(generator, 4.0, n)]).effects[0] for n in (22, 60, 12)
    )
    assert 0 < few.support[0] < many.support[0] < np.log2(1 + 60 * 59 / 2)
    assert few.support[1] == few.support[0]  # of the others nothing was heard
    assert not fewest.support.any()


def test_conditions_do_to_each_template_length_what_they_did_there():
    lost = {5.0: 1.0, 30.0: 5.0}
    rows = [
        comparisons(np.random.default_rng(k), bits, template=seconds)
        for k, (seconds, bits) in enumerate(lost.items())
    ]
    effects = fit_condition_effects(rows)
    assert_array_equal(effects.template_lengths, [5.0, 30.0])
    for seconds, bits in lost.items():
        fresh = comparisons(np.random.default_rng(9), bits, template=seconds)
        own, other = (told(fresh, effects.at_template(each)) for each in (seconds, 35.0 - seconds))
        assert cost_bits(*own) < least_cost_bits(*own) + 0.05
        assert cost_bits(*own) < cost_bits(*other) - 0.05
    # what is supported rests on all of them
    alone = fit_condition_effects(rows[:1]).effects[0]
    assert (effects.effects[0].support != alone.support).all()
    assert_array_equal(effects.effects[0].support, effects.effects[1].support)
