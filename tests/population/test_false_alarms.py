"""Thresholds that a share of other people's streams exceeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.population.false_alarms import conformal_threshold, false_alarms, fewest_maxima
from monitor.population.rank_model import Maxima, RankModels, round_up
from tests.population.rank_models import some_rank_model

SPEAKERS = tuple(f"s{i:02}" for i in range(25))


def maxima(scale=1.0, fields=("closed_set_bits", "gain_bits", "rank_bits")):
    """Speaker i reaches i over a minute and 10 i over ten, which only 15 of them spoke for."""
    reached = np.arange(25.0)[:, None] * np.array([1.0, 10.0])
    values = (scale * np.stack([reached + k for k in range(len(fields))])).astype(np.float16)
    seconds = np.where(np.arange(25) < 15, 700.0, 400.0)
    return Maxima(fields, np.array([60.0, 600.0]), values, seconds, SPEAKERS, 10.0)


RANK_MODELS = RankModels(
    [
        some_rank_model(("f0",), maxima=maxima()),
        some_rank_model(("phones",), "same", maxima=maxima(2.0)),
        some_rank_model(("phones",)),
        some_rank_model(("f0", "phones"), maxima=maxima(3.0, ("closed_set_bits", "gain_bits"))),
    ]
)
BOTH = ("f0", "phones")


def quote(field="bits", share=0.1, seconds=60.0, features=BOTH, session="cross", **more):
    return false_alarms(
        RANK_MODELS, features, session, field, share, seconds, **{"watch": "me", **more}
    )


def test_the_threshold_is_the_conformal_one():
    found = quote()
    assert (found.bits, found.speakers, found.repeated) == (3.0 * 23, 25, 0)
    assert quote(share=0.05).bits == 3.0 * 24
    assert quote(share=0.5).bits == 3.0 * 12
    assert (found.rate, found.horizon_seconds, found.session) == (0.1, 60.0, "cross")
    # the watched one is no other person
    found = quote(watch="s24", share=0.05)
    assert (found.bits, found.speakers) == (3.0 * 23, 24)
    # where nobody is watched the headline is the attacker's confidence
    assert quote(watch=None).bits == quote("gain_bits").bits != quote().bits


def test_a_feature_is_as_if_it_were_alone():
    fields = ("f0.local_bits", "f0.gain_bits", "f0.rank_bits")
    assert [quote(field).bits for field in fields] == [23.0, 24.0, 25.0]
    with pytest.raises(UsageError, match="monitor calibrate CORPUS"):  # there is only one of "same"
        quote("phones.local_bits")
    rank_models = RankModels([some_rank_model(("f0",), "same", maxima=maxima())])
    found = false_alarms(rank_models, ("f0",), "cross", "bits", 0.1, 60.0, watch="me")
    assert found.session == "same"  # it stands in, with its own maxima


def test_between_two_lengths_the_longer_one_counts():
    assert quote(seconds=61.0, share=0.2).bits == quote(seconds=600.0, share=0.2).bits
    assert quote(seconds=0.5).bits == quote(seconds=60.0).bits


def test_streams_heard_again_count_where_there_are_too_few_others():
    long = quote(seconds=600.0, share=0.1)  # nine are needed, fifteen spoke for so long
    assert (long.speakers, long.repeated, long.bits) == (15, 0, 30.0 * 14)
    more = quote(seconds=600.0, share=0.05)  # nineteen are needed
    assert (more.speakers, more.repeated, more.bits) == (25, 10, 30.0 * 24)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"share": 0.03}, "need the streams of 33 other speakers, but there are 25: allow 3.9 %"),
        ({"share": 0.01, "seconds": 600.0}, "streams of 10 minutes need the streams of 99 other"),
        ({"field": "sum_bits"}, "sum_bits was not.*: use one of bits, closed_set_bits, gain"),
        ({"field": "bits_low"}, "bits_low was not calibrated"),
        ({"seconds": 601.0}, "invalid horizon 601 seconds: use at most 10 minutes"),
        ({"seconds": 0.0}, "must be a positive number of seconds"),
        ({"seconds": np.nan}, "must be a positive number of seconds"),
        ({"share": 1.0}, "over 0 and under 1"),
        ({"features": ("voice",)}, "no rank model covers voice"),
        ({"field": "voice.local_bits"}, "no rank model covers voice, to which voice.local_bits"),
        ({"features": ("phones",)}, "use monitor calibrate CORPUS"),
    ],
    ids=str,
)
def test_what_is_not_known_is_refused_in_a_line(changes, words):
    with pytest.raises(UsageError, match=words) as caught:
        quote(**changes)
    assert "\n" not in str(caught.value)


SHARES = st.sampled_from([0.01, 0.05, 0.07, 0.1, 0.2, 0.29, 1 / 3, 0.5, 0.9])
VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-50, 50), st.just(-np.inf))


@given(st.lists(VALUES, min_size=2, max_size=130), SHARES)
def test_of_exchangeable_streams_at_most_a_share_crosses(values, share):
    """Each of n + 1 is as likely the last: the share who exceed what the others give, exactly."""
    if len(values) - 1 < fewest_maxima(share):
        return
    every = np.array(values)
    crossed = [
        value > conformal_threshold(np.delete(every, i), share) for i, value in enumerate(every)
    ]
    assert sum(crossed) <= share * len(values) * (1 + 1e-9)
    if len(set(values)) == len(values):  # without ties: no more cautious than it must be
        assert sum(crossed) == int(share * len(values) * (1 + 1e-9))


@given(st.lists(st.floats(-60, 60), min_size=1))
def test_half_precision_is_never_smaller(values):
    made = round_up(np.array(values))
    assert made.dtype == np.float16
    assert (made >= np.array(values)).all()
    assert (made - np.array(values) <= 2e-3 * np.abs(values) + 1e-7).all()


def test_what_is_no_share_and_no_maximum_is_refused():
    for share in (0.0, 1.0, -0.1, 1.5, np.nan):
        with pytest.raises(UsageError, match="over 0 and under 1"):
            fewest_maxima(share)
    for maxima in ([np.nan, 1.0], [[1.0], [2.0]]):
        with pytest.raises(UsageError, match="one maximum of each stream"):
            conformal_threshold(np.array(maxima), 0.5)
    clipped = np.array([8.5] * 15 + [1.0] * 4)  # maxima that stop at a bound are not crossed
    assert conformal_threshold(clipped, 0.05) == conformal_threshold(clipped, 0.2) == 8.5
