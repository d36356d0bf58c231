from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from monitor.alerts import Threshold
from monitor.errors import UsageError
from monitor.maths.rank_models import fit_many, mean_bits_of, mean_disclosure_bits
from monitor.maths.statistics import (
    REPLICATES,
    Crossing,
    Estimate,
    FirstCrossing,
    clopper_pearson,
    difference_reach,
    disclosure_delay,
    freedom,
    interpolated_quantile,
    limits,
    limits_of_each,
    median_seconds,
    quantile_limits,
    share_crossed,
    share_limits,
    speaker_weights,
    t_limits,
    weighted_quantile,
)
from tests.records import event


def test_limits_are_the_order_statistics_nearest_to_the_percentiles():
    generator = np.random.default_rng(0)
    assert limits(generator.permutation(200).astype(float)) == (5.0, 194.0)
    assert REPLICATES == 200
    values = generator.normal(size=(3, 4, 77))
    found = limits_of_each(values)
    assert found.shape == (3, 4, 2)
    for count in range(1, 78):
        few = values[1, 2, :count].copy()
        low, high = limits(few)
        ordered, place = sorted(few), round(0.025 * (count - 1))
        assert (low, high) == (ordered[place], ordered[count - 1 - place])
        assert limits(-few) == (-high, -low)
        assert_array_equal(few, values[1, 2, :count])
    assert tuple(found[1, 2]) == (low, high)


def test_every_replicate_holds_as_many_speakers():
    weights = speaker_weights(17, 60, seed=3)
    assert weights.shape == (60, 17)
    assert (weights.sum(axis=1) == 17).all()
    assert (weights == np.round(weights)).all()
    assert weights.min() == 0
    assert_array_equal(weights, speaker_weights(17, 60, seed=3))
    assert (weights != speaker_weights(17, 60, seed=4)).any()
    # multinomial: mean 1, variance 1 - 1/S
    weights = speaker_weights(30, 4000)
    assert np.abs(weights.mean(axis=0) - 1).max() < 0.08
    assert weights.var() == pytest.approx(1 - 1 / 30, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("own_chance", [False, True], ids=["trials", "speakers"])
@pytest.mark.parametrize(("alpha", "beta"), [(0.7, 4.0), (0.6, 2.0)])
def test_limits_cover_the_true_mean_disclosure(alpha, beta, own_chance):
    """Of 40 speakers, 20 trials each; also where one is easy or hard to tell in all of them."""
    n, speakers, trials, held = 40, 40, 20, 0
    true = float(mean_disclosure_bits(alpha, beta, n))
    for seed in range(300):
        generator = np.random.default_rng(seed)
        chance = generator.beta(alpha, beta, (speakers, 1 if own_chance else trials))
        better = generator.binomial(n - 1, np.broadcast_to(chance, (speakers, trials)))
        ranks = np.stack([np.bincount(row, minlength=n) for row in better])
        fitted = fit_many(speaker_weights(speakers, seed=seed) @ ranks)
        low, high = limits(mean_bits_of(*fitted, n))
        held += low <= true <= high
    assert 0.90 <= held / 300 <= 0.99


SHARES = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)


@pytest.mark.parametrize(("hits", "trials"), [(0, 30), (30, 30), (3, 40), (17, 29)])
def test_independent_trials_have_clopper_and_pearsons(hits, trials):
    """One trial a speaker: the variance is that of a binomial, and as well known."""
    share = hits / trials
    found = share_limits(share, share * (1 - share) / trials, trials, trials, trials - 1.0)
    assert found == pytest.approx(clopper_pearson(hits, trials))
    if hits in (0, trials):  # at the edges a speaker is a trial, however many each has
        found = share_limits(share, 0.0, trials, 8 * trials, trials - 1.0)
        assert found == pytest.approx(clopper_pearson(hits, trials))


def test_trials_that_are_alike_count_for_less():
    apart = share_limits(0.3, 0.21 / 240, 30, 240, 29.0)
    alike = share_limits(0.3, 0.21 / 60, 30, 240, 29.0)
    one = share_limits(0.3, 0.21 / 30, 30, 240, 29.0)
    assert one[0] < alike[0] < apart[0] < 0.3 < apart[1] < alike[1] < one[1]
    # a wilder variance reaches further
    steady, wild = (share_limits(0.9, 0.0005, 30, 240, degrees) for degrees in (29.0, 3.0))
    assert wild[0] < steady[0] < steady[1] < wild[1]


@given(SHARES, st.floats(1e-9, 0.3), st.integers(2, 60), st.integers(1, 30), st.floats(1.0, 59.0))
def test_limits_of_a_share_hold_it_within_its_range(share, variance, units, each, degrees):
    low, high = share_limits(share, variance, units, units * each, min(degrees, units - 1.0))
    assert 0.0 <= low <= share <= high <= 1.0
    narrowest = clopper_pearson(units, units)[0]
    assert low <= max(share, narrowest)
    mirrored = share_limits(1 - share, variance, units, units * each, min(degrees, units - 1.0))
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-6)


def test_freedom_is_that_of_a_variance():
    """Satterthwaite: a variance of d degrees varies by 2 / d of its square."""
    generator = np.random.default_rng(0)
    assert freedom(generator.normal(size=100_000)) == pytest.approx(99_999, rel=0.05)
    skewed = generator.exponential(size=(20_000, 400))
    spread = np.var(skewed.var(axis=1, ddof=1)) / np.mean(skewed.var(axis=1, ddof=1)) ** 2
    assert freedom(skewed[:50].ravel()) / 50 == pytest.approx(2 / spread, rel=0.1)
    # where one speaker decides
    assert freedom(np.eye(30)[4]) == pytest.approx(2.2, abs=0.1)
    assert freedom(np.full(30, 0.7)) == 29.0
    assert freedom(np.append(np.eye(30)[4], np.nan)) == freedom(np.eye(30)[4])
    assert freedom(np.array([0.1, 0.2])) == 1.0


def test_students_limits_of_a_mean():
    """The spread of resampled means, short by (S - 1) / S, makes the textbook's limits."""
    values = np.random.default_rng(1).normal(3.0, 2.0, 20)
    picks = np.random.default_rng(2).integers(0, 20, (40_000, 20))
    found = t_limits(values.mean(), values[picks].mean(axis=1), 20, 19.0)
    expected = stats.t.interval(0.95, 19, values.mean(), values.std(ddof=1) / np.sqrt(20))
    assert found == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5, 0.95])
@pytest.mark.parametrize("count", [5, 30, 100, 400])
def test_limits_of_a_quantile_cover_exactly(share, count):
    """Of uniform values the quantile is the share: an order statistic is a beta variable."""
    values = np.arange(1.0, count + 1)
    low, high = quantile_limits(values, share, 0.0, count + 1.0)
    missed_below = stats.beta.sf(share, low, count + 1 - low) if low > 0 else 0.0
    missed_above = stats.beta.cdf(share, high, count + 1 - high) if high <= count else 0.0
    assert missed_below <= 0.025
    assert missed_above <= 0.025
    if low < count:
        assert stats.beta.sf(share, low + 1, count - low) > 0.025
    if high > 1:
        assert stats.beta.cdf(share, high - 1, count + 2 - high) > 0.025


SAMPLES = st.lists(st.integers(-9, 9), min_size=1, max_size=20).map(lambda each: np.array(each) / 7)


@pytest.mark.slow
@given(
    SAMPLES, st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.5, 0.95, 1.0]), st.integers(0, 2**32 - 1)
)
def test_weighted_quantiles_are_those_of_the_repeated_sample(sample, any_share, share, seed):
    weights = np.random.default_rng(seed).integers(0, 4, (6, sample.size)).astype(float)
    weights[:, 0] += 1
    repeated = [np.repeat(sample, row.astype(int)) for row in weights]
    expected = [np.quantile(each, any_share) for each in repeated]
    assert_allclose(interpolated_quantile(sample, weights, any_share), expected, atol=1e-12)
    found = weighted_quantile(sample, weights, share)
    expected = [
        np.sort(each)[max(int(np.ceil(share * each.size - 1e-9)) - 1, 0)] for each in repeated
    ]
    # nothing weighs nothing: a share of 0 is reached by the lowest value, heard or not
    assert_array_equal(found, expected if share else np.full(len(weights), sample.min()))
    assert_array_equal(weighted_quantile(sample, weights / 8, share), found)


def mean_of(speakers, trials_each=8, replicates=4000):
    """The mean over speakers, with its resamples."""
    speakers = np.asarray(speakers, dtype=float)
    count = speakers.size
    picks = np.random.default_rng(0).integers(0, count, (replicates, count))
    left_out = (speakers.sum() - speakers) / (count - 1)
    return Estimate(
        speakers.mean(), speakers[picks].mean(axis=1), left_out, count, count * trials_each
    )


def test_a_share_over_speakers():
    speakers = np.random.default_rng(3).uniform(0.2, 0.8, 30)
    low, high = mean_of(speakers).share_limits(0.0, 1.0)
    student = stats.t.interval(0.95, 29, speakers.mean(), stats.sem(speakers))
    assert (low, high) == pytest.approx(student, abs=0.015)
    scaled = mean_of(4 * speakers - 2).share_limits(-2.0, 2.0)
    assert scaled == pytest.approx((4 * low - 2, 4 * high - 2))
    # everybody found says no more than thirty speakers can; one who is missed opens the limits
    found = mean_of(np.ones(30)).share_limits(0.0, 1.0)
    assert found == pytest.approx(clopper_pearson(30, 30))
    replicates = np.r_[np.full(150, np.nan), np.ones(50)]  # too few are not enough
    assert not Estimate(0.5, replicates, np.ones(30), 30, 240).exists
    assert not Estimate(0.5, np.ones(200), np.ones(1), 1, 8).exists
    assert mean_of([0.0, 1.0]).exists
    low, _ = mean_of([*np.ones(29), 0.0]).share_limits(0.0, 1.0)
    assert low == pytest.approx(clopper_pearson(29, 30)[0], abs=0.02)


def test_signed_limits_reach_below_zero_and_not_beyond_the_ceiling():
    speakers = np.random.default_rng(0).normal(0.02, 0.3, 30)
    low, high = mean_of(speakers).signed_limits(5.0)
    assert low < 0 < high
    assert mean_of(speakers - 9).signed_limits(5.0)[1] < -8
    low, high = mean_of(np.full(30, 5.0)).signed_limits(5.0)
    assert low == pytest.approx(5 * clopper_pearson(30, 30)[0])
    assert high == 5.0


def test_what_is_fitted_loses_its_bias():
    """Resamples that read more than the value tell that the value reads more than the truth."""
    found = mean_of(np.random.default_rng(0).uniform(0.2, 0.6, 30))
    shifted = Estimate(found.value, found.replicates + 0.05, found.left_out, 30, 240)
    low, high = found.share_limits(0.0, 1.0)
    assert shifted.share_limits(0.0, 1.0) == pytest.approx((low, high))
    corrected = shifted.share_limits(0.0, 1.0, fitted=True)
    assert corrected == pytest.approx((low - 0.05, high - 0.05), abs=0.005)
    error = Estimate(0.0, np.zeros(200), np.zeros(30), 30, 240)
    assert error.share_limits(0.0, 1.0, fitted=True) == pytest.approx(clopper_pearson(0, 30))


def test_two_systems_with_other_speakers():
    """Welch's limits of a difference of two means."""
    generator = np.random.default_rng(5)
    one, other = generator.normal(0, 1, 25), generator.normal(0, 3, 40)
    reach = difference_reach(mean_of(one), mean_of(other), 0.025)
    expected = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    assert reach == pytest.approx((expected.high - expected.low) / 2, rel=0.06)
    assert difference_reach(mean_of(np.ones(9)), mean_of(np.ones(9)), 0.025) == 0.0


TIMES = st.lists(st.integers(1, 40).map(float), min_size=1, max_size=25)


def crossing(values, level=2.0, hold_seconds=3.0, **cut):
    found = FirstCrossing(level, hold_seconds)
    for second, value in enumerate(values, 1):
        found.update(float(second), value, cut=second in cut.get("cut", ()))
    return found.so_far()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 1, 2, 2, 2, 2], (3, True)),
        ([0, 5, 1, 2, 3, 2, 2.5, 2], (4, True)),  # one noisy reading is none
        ([0, 2, None, 2, 2, 2], (4, False)),  # a withheld figure interrupts
        ([0, 1, 1], (3, False)),
        ([0, 1, 2, 2], (3, False)),  # it may have been reached at 3 s: nobody knows
        ([None, None], (2, False)),
        ([], (0, False)),
    ],
)
def test_a_level_is_reached_where_the_figure_stays(values, expected):
    assert crossing(values) == Crossing(*expected)


def test_a_gap_begins_the_stretch_anew_and_a_cut_figure_says_nothing_below_the_level():
    assert crossing([1, 1.5, 1.5, 3, 3, 3, 3], cut=(3,)) == Crossing(3.0, False)
    assert crossing([1, 2, 2, 2, 2], cut=(2, 3, 4, 5)) == Crossing(2.0, True)  # at least the level
    found = FirstCrossing(2.0, 2.0)
    for second in (1.0, 2.0, 3.0, 4.0, 5.0):
        if second == 3.0:
            found.broken()
        found.update(second, 2.5)
    assert found.known == Crossing(3.0, True)


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 4)), max_size=40),
    st.sampled_from([0.0, 1.0, 2.5, 5.0]),
)
def test_it_is_found_where_an_alert_is_raised(values, hold):
    rule = Threshold("bits", 2.0, hold)
    raised = [
        alert.seconds
        for second, bits in enumerate(values, 1)
        for alert in rule.update(event({"seconds": float(second), "bits": bits}))
        if alert.state == "raised"
    ]
    found = crossing(values, hold_seconds=hold)
    assert found.crossed == bool(raised)
    if raised:
        assert found.seconds == raised[0] - np.ceil(hold)


@given(TIMES, st.integers(1, 60).map(float))
def test_without_censoring_it_is_the_plain_mean_and_share(times, horizon):
    heard = [Crossing(t, True) for t in times]
    assert disclosure_delay(heard, heard, horizon).clear_seconds == pytest.approx(
        np.mean(np.minimum(times, horizon))
    )
    assert share_crossed(heard, horizon) == pytest.approx(np.mean(np.array(times) <= horizon))
    middle = sorted(times)[(len(times) - 1) // 2]
    assert median_seconds(heard) == middle
    nothing = disclosure_delay(heard, heard, 30.0)  # an anonymiser that does nothing buys nothing
    assert nothing.seconds == 0
    assert nothing.low in (None, 0.0)


def test_kaplan_and_meier_by_hand():
    """Six times, two of them censored: the product of what stays at each crossing."""
    heard = [Crossing(*each) for each in
             [(1, True), (2, False), (3, True), (3, True), (5, False), (6, True)]]  # fmt: skip
    steps = {0.5: 0.0, 1: 1 / 6, 2.9: 1 / 6, 3: 1 - 5 / 6 * 2 / 4, 5.5: 1 - 5 / 12, 6: 1.0}
    for seconds, share in steps.items():
        assert share_crossed(heard, seconds) == pytest.approx(share)
    assert disclosure_delay(heard, heard, 6.0).clear_seconds == pytest.approx(
        1 + 2 * 5 / 6 + 3 * 5 / 12
    )
    assert median_seconds(heard) == 3


def test_censored_streams_give_the_truth_back():
    """Exponential times of 10 and 25 s, streams of 15 to 40 s: means of the first 15 s known."""
    generator = np.random.default_rng(3)
    ends = generator.uniform(15, 40, 1000)
    sides = []
    for mean in (10.0, 25.0):
        times = generator.exponential(mean, ends.size)
        sides.append([Crossing(min(t, e), bool(t <= e)) for t, e in zip(times, ends, strict=True)])
    delay = disclosure_delay(sides[0], sides[1], 30.0)

    def truth(mean):
        return mean * (1 - np.exp(-30.0 / mean))

    assert delay.clear_seconds == pytest.approx(truth(10.0), abs=0.6)
    assert delay.protected_seconds == pytest.approx(truth(25.0), abs=0.8)
    assert delay.low < truth(25.0) - truth(10.0) < delay.high
    assert median_seconds(sides[0]) == pytest.approx(10 * np.log(2), abs=0.6)
    # the plain mean of what was seen would say less
    assert np.mean([c.seconds for c in sides[1]]) < delay.protected_seconds - 1


@pytest.mark.slow
def test_limits_hold_the_truth_as_often_as_they_say():
    held = 0
    for seed in range(100):
        generator = np.random.default_rng(seed)
        ends = generator.uniform(10, 30, 24)
        sides = [
            [Crossing(min(t, e), bool(t <= e)) for t, e in zip(times, ends, strict=True)]
            for times in (generator.exponential(6.0, 24), generator.exponential(12.0, 24))
        ]
        delay = disclosure_delay(sides[0], sides[1], 10.0)
        truth = 12 * (1 - np.exp(-10 / 12)) - 6 * (1 - np.exp(-10 / 6))
        held += delay.low <= truth <= delay.high
    assert 0.89 <= held / 100 <= 0.99


def test_streams_of_one_speaker_count_as_one():
    clear = [Crossing(float(t), True) for t in (2, 3, 4, 5)]
    safe = [Crossing(float(t), True) for t in (5, 9, 6, 12)]
    alone = disclosure_delay(clear, safe, 20.0)
    assert alone.low is not None
    repeated = disclosure_delay(clear * 9, safe * 9, 20.0, groups=["a", "b", "c", "d"] * 9)
    assert (repeated.low, repeated.high) == pytest.approx((alone.low, alone.high))
    assert disclosure_delay(clear[:2], safe[:2], 20.0).low is None


HEARD = [Crossing(3.0, False)]


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("a fraction from 0 to 1", lambda: share_limits(1.2, 0.0, 3, 9, 2.0)),
        ("one trial per unit", lambda: share_limits(0.5, 0.0, 9, 3, 2.0)),
        ("need values", lambda: quantile_limits(np.empty(0), 0.5, 0.0, 1.0)),
        ("between 0 and 1", lambda: quantile_limits(np.ones(3), 1.0, 0.0, 1.0)),
        (None, lambda: disclosure_delay([], [], 1.0)),
        (None, lambda: disclosure_delay(HEARD, HEARD, 0.0)),
        (None, lambda: disclosure_delay(HEARD, HEARD, float("nan"))),
        (None, lambda: disclosure_delay(HEARD, HEARD, 4.0)),  # nobody was followed for so long
        (None, lambda: disclosure_delay(HEARD, [], 1.0)),
        (None, lambda: share_crossed([], 1.0)),
        *(
            (words, partial(quantile, np.ones(2), np.array(weights), share))
            for quantile in (interpolated_quantile, weighted_quantile)
            for words, weights, share in (
                ("invalid quantile 1.01", [[1.0, 1.0]], 1.01),
                ("takes values", [[1.0, 1.0, 1.0]], 0.5),
                ("empty sample", [[1.0, 1.0], [0.0, 0.0]], 0.5),
            )
        ),
    ],
)
def test_refusals(words, call):
    with pytest.raises(UsageError, match=words):
        call()
