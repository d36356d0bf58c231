"""Likelihood ratios: of known truth, what they cost, what data support, what conditions do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from monitor.lab.evaluation.verification import cllr, min_cllr
from monitor.maths import likelihood_ratios as twoclass
from monitor.maths.condition import NEW, UNLIKE
from monitor.maths.evidence import ConditionEffect
from monitor.maths.likelihood_ratios import (
    PriorCoefficients,
    ScorePairs,
    TemplateComparisons,
    cross_fit,
    fit_each,
    pair_count,
)
from monitor.maths.ratio_checks import (
    cost_bits,
    effective_pairs,
    exceeding,
    least_cost_bits,
    mean_ratio,
    supported_bits,
)
from monitor.maths.statistics import speaker_weights
from recipes.effects import ConditionComparisons, fit_condition_effects


def gaussian(speakers: int, lead: float, trials: int = 4, seed: int = 0, features: int = 1):
    """Mated scores N(lead, 1), others N(0, 1): log LR = lead z - lead^2 / 2 for one feature."""
    generator = np.random.default_rng(seed)
    tester, owner = (x.ravel() for x in np.indices((speakers, speakers)))
    tester, owner = np.tile(tester, trials), np.tile(owner, trials)
    z = generator.normal(size=(tester.size, features))
    z[tester == owner] += lead / np.sqrt(features)
    return TemplateComparisons(z, ScorePairs(tester, owner))


def test_recovers_a_known_ratio():
    ((a, b),) = fit_each(gaussian(200, 2.0))
    assert (a, b) == pytest.approx((-2.0, 2.0), abs=0.12)
    ((a, b, c),) = fit_each(gaussian(200, 2.0, features=2))  # which say the same share it
    assert (a, b, c) == pytest.approx((-2.0, np.sqrt(2), np.sqrt(2)), abs=0.15)


def test_a_misleading_feature_has_no_say():
    made = gaussian(60, 2.0, features=2)
    made.z[:, 1] *= -1
    ((_, b, c),) = fit_each(made)
    assert b > 0.5
    assert c == 0.0


@pytest.mark.parametrize("worth", [0.0, 40.0])
def test_against_a_general_optimiser(worth):
    made, told = gaussian(15, 1.5, seed=3, features=2), np.array([[-1.0, 0.5, 0.1]])
    x = np.column_stack([np.ones(len(made.z)), made.z])
    weight = made.weights() * (15 + worth) * np.where(made.mated, 1, twoclass.OTHERS)
    offset = np.append(np.log(twoclass.OTHERS), [0, 0])
    own = 1 / (1 + np.exp(-(x @ (told[0] - offset))))
    goal = (15 * made.mated + worth * own) / (15 + worth)
    held = np.array([1e-3, 1, 1])
    centre = told[0] if worth else np.zeros(3)

    def loss(point):
        margin = x @ (point - offset)
        nats = weight @ (np.logaddexp(0, margin) - goal * margin)
        return nats + (held * (point - centre) ** 2).sum() / 2

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-6})
    found = fit_each(made, prior=PriorCoefficients(told, worth) if worth else None)
    assert_allclose(found[0], best.x, atol=1e-4)


def test_classes_that_separate_stay_finite_and_a_prior_rank_model_holds_them():
    made = gaussian(10, 40.0)
    alone = fit_each(made)
    assert np.isfinite(alone).all()
    assert 0 < alone[0, 1] < 5
    told = np.array([[-3.0, 0.2]])
    near = [
        abs(fit_each(made, prior=PriorCoefficients(told, m))[0, 1] - 0.2)
        for m in (1.0, 20.0, 1000.0)
    ]
    assert near == sorted(near, reverse=True)
    assert near[-1] < 0.2


def test_people_and_pairs_weigh_the_same_however_often_they_are_compared():
    made = gaussian(12, 2.0)
    theirs = np.flatnonzero((made.test_speaker == 3) | (made.template_speaker == 3))
    often = np.concatenate([np.arange(made.test_speaker.size), *[theirs] * 9])
    assert_allclose(fit_each(made.select(often)), fit_each(made), atol=1e-6)
    assert pair_count(made) == 66


def test_a_resample_is_a_fit_on_those_speakers():
    made, drawn = gaussian(8, 2.0), np.array([2.0, 1, 1, 0, 1, 1, 1, 1])
    found = fit_each(made, drawn[None])[0]
    weights = made.weights(drawn[None])[0]
    pairs = np.sort([made.test_speaker, made.template_speaker], axis=0).T
    twice, once = (weights[(pairs == pair).all(axis=1)].sum() for pair in ([0, 1], [1, 2]))
    assert twice == pytest.approx(2 * once)
    assert weights[(pairs == 3).any(axis=1)].sum() == 0
    assert weights[made.mated].sum() == pytest.approx(1)
    assert not np.allclose(found, fit_each(made)[0])


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(0, 30), st.integers(1, 3), st.integers(3, 12))
def test_always_finite_and_never_falling_in_a_score(seed, lead, features, speakers):
    made = gaussian(speakers, lead, 1, seed, features)
    made.z[:] *= np.random.default_rng(seed).choice([1e-3, 1.0, 1e3])
    found = fit_each(made, speaker_weights(speakers, 20, seed))
    assert np.isfinite(found).all()
    assert (found[:, 1:] >= 0).all()


def test_cross_fits_have_not_seen_either():
    made = gaussian(16, 2.0)
    found, fold = cross_fit(made)
    one, two = fold[0], fold[5]
    there = [
        ~np.isin(fold[each], (one, two)) for each in (made.test_speaker, made.template_speaker)
    ]
    rest = made.select(there[0] & there[1])
    expected = fit_each(TemplateComparisons(rest.z, rest.pairs))
    assert_allclose(found[one, two], expected[0], atol=1e-4)
    assert_allclose(found, found.transpose(1, 0, 2))


def test_thinning_keeps_every_pair_and_speaker():
    made = gaussian(20, 2.0, trials=40)
    few = made.subsample(1000)
    assert few.test_speaker.size < 2000
    assert pair_count(few) == pair_count(made)
    assert set(few.test_speaker[few.mated]) == set(range(20))
    assert made.subsample(10**6) is made


SOME = st.lists(st.floats(-30, 30), min_size=1, max_size=40).map(np.array)


@given(SOME, SOME)
def test_costs_are_those_of_unweighted_scores(mated, others):
    ones = np.ones(mated.size), np.ones(others.size)
    nats = np.log(2)
    assert cost_bits(mated, others, *ones) == pytest.approx(cllr(mated * nats, others * nats))
    assert least_cost_bits(mated, others, *ones) == pytest.approx(min_cllr(mated, others), abs=1e-9)


@given(SOME, SOME, st.integers(1, 5))
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


# not where the search begins: there it is a matter of which side a tie falls to
unequal = st.floats(-12, -0.05) | st.floats(0.05, 12)


@settings(max_examples=60)
@given(
    st.lists(unequal, min_size=3, max_size=60).map(np.array),
    st.lists(unequal, min_size=3, max_size=300).map(np.array),
)
def test_upper_bound_is_that_of_the_oracle(mated, others):
    bayeserror = pytest.importorskip("lir.algorithms.bayeserror", reason="needs the extra peers")
    ones = np.ones(mated.size), np.ones(others.size)
    found = supported_bits(mated, others, *ones, mated.size, others.size)[0]
    tens = np.log10(2)
    ratios = np.concatenate([mated, others]) * tens
    labels = np.repeat([1, 0], [mated.size, others.size])
    _, expected = bayeserror.elub(ratios.copy(), labels, step_size=0.001)
    # the oracle also stops at the largest ratio there is
    assert min(found, max(ratios.max() / tens, 0.0)) == pytest.approx(expected / tens, abs=0.05)


def test_no_bound_beyond_what_pairs_can_show():
    mated, others = np.full(500, 50.0), np.full(500, -50.0)
    ones = np.ones(500)
    few = supported_bits(mated, others, ones, ones, 500, 10)[0]
    assert few == pytest.approx(np.log2(11), abs=0.2)
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


PLAIN = ConditionEffect(np.zeros(UNLIKE), np.zeros((1, UNLIKE)), np.full(UNLIKE, 99.0))


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
    assert cost_bits(*told(fresh, effect)) < cost_bits(*told(fresh, PLAIN)) - 0.1
    assert cost_bits(*told(fresh, effect)) < least_cost_bits(*told(fresh, effect)) + 0.05
    clean = comparisons(np.random.default_rng(8), 0.0)
    assert cost_bits(*told(clean, effect)) == cost_bits(*told(clean, PLAIN))


def test_a_shared_condition_that_looks_like_a_shared_voice_is_taken_back():
    generator = np.random.default_rng(3)
    row = comparisons(generator, -6.0)
    row = replace(row, unlike=np.tile(np.eye(UNLIKE)[6], (row.mated.size, 1)))
    assert mean_ratio(*told(row, PLAIN)[1::2]) > 1.5
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
    assert not fewest.support[:NEW].any()


def test_new_streams_have_an_effect_of_their_own_and_change_no_other():
    rows = [comparisons(np.random.default_rng(k), lost) for k, lost in enumerate((0.0, 5.0))]
    new = [
        replace(row, unlike=np.tile(np.eye(UNLIKE)[NEW], (row.mated.size, 1)))
        for row in (comparisons(np.random.default_rng(k), lost) for k, lost in ((2, 1.0), (3, 6.0)))
    ]
    (plain,), (effect,) = (fit_condition_effects(rows, each).effects for each in ((), new))
    for name in ("shift", "slope", "support"):
        assert_array_equal(getattr(effect, name)[..., :NEW], getattr(plain, name)[..., :NEW])
    assert not plain.shift[NEW]
    costs = [sum(cost_bits(*told(row, each)) for row in new) for each in (plain, effect)]
    assert costs[1] < costs[0] - 0.1
    assert mean_ratio(*told(new[0], effect)[1::2]) < 1.2


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
    assert (effects.effects[0].support != alone.support)[:NEW].all()
    assert_array_equal(effects.effects[0].support, effects.effects[1].support)
