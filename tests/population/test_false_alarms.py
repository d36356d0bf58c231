"""Thresholds that a share of other people's streams exceeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.population.false_alarms import false_alarms
from monitor.population.rank_model import Maxima, RankModels
from tests.population.rank_models import some_rank_model

SPEAKERS = tuple(f"s{i:02}" for i in range(25))


def maxima(scale=1.0, fields=("closed_set_bits", "gain_bits", "rank_bits")):
    """Speaker i reaches i over a minute and 10 i over ten, which only 15 of them spoke for."""
    reached = np.arange(25.0)[:, None] * np.array([1.0, 10.0])
    values = scale * np.stack([reached, reached + 1, reached + 2])[: len(fields)]
    seconds = np.where(np.arange(25) < 15, 700.0, 400.0)
    return Maxima(
        fields, np.array([60.0, 600.0]), values.astype(np.float16), seconds, SPEAKERS, 10.0
    )


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
    assert (found.share, found.horizon_seconds, found.session) == (0.1, 60.0, "cross")


def test_the_watched_one_is_no_other_person():
    found = quote(watch="s24", share=0.05)
    assert (found.bits, found.speakers) == (3.0 * 23, 24)


def test_a_feature_is_as_if_it_were_alone():
    assert quote("f0.local_bits").bits == 23.0
    assert quote("f0.gain_bits").bits == 24.0
    assert quote("f0.rank_bits").bits == 25.0
    with pytest.raises(
        UsageError, match="monitor calibrate CORPUS"
    ):  # the cross rank model has none
        quote("phones.local_bits")


def test_where_nobody_is_watched_the_headline_is_the_attackers_confidence():
    assert quote(watch=None).bits == quote("gain_bits").bits != quote().bits


def test_between_two_lengths_the_longer_one_counts():
    assert quote(seconds=61.0, share=0.2).bits == quote(seconds=600.0, share=0.2).bits
    assert quote(seconds=0.5).bits == quote(seconds=60.0).bits


def test_streams_heard_again_count_where_there_are_too_few_others():
    long = quote(seconds=600.0, share=0.1)  # nine are needed, fifteen spoke for so long
    assert (long.speakers, long.repeated, long.bits) == (15, 0, 30.0 * 14)
    more = quote(seconds=600.0, share=0.05)  # nineteen are needed
    assert (more.speakers, more.repeated, more.bits) == (25, 10, 30.0 * 24)


def test_a_rank_model_of_the_other_kind_of_session_stands_in_with_its_own_maxima():
    rank_models = RankModels([some_rank_model(("f0",), "same", maxima=maxima())])
    found = false_alarms(rank_models, ("f0",), "cross", "bits", 0.1, 60.0, watch="me")
    assert found.session == "same"


@given(
    st.sampled_from([0.05, 0.1, 0.2, 0.5]),
    st.lists(st.floats(-5, 20), min_size=20, max_size=60),
    st.integers(0, 59),
)
@pytest.mark.slow
def test_at_most_the_share_of_exchangeable_speakers_exceeds_it(share, reached, place):
    """As the maxima of every speaker but one would quote it, each being that one in turn."""
    values = np.array(reached)
    crossed = []
    for i in range(values.size):
        rest = np.delete(values, i)
        made = Maxima(
            ("closed_set_bits",),
            np.array([60.0]),
            rest.astype(np.float16)[None, :, None],
            np.full(rest.size, 99.0),
            tuple(f"s{j}" for j in range(rest.size)),
            10.0,
        )
        rank_models = RankModels([some_rank_model(("f0",), maxima=made)])
        found = false_alarms(rank_models, ("f0",), "cross", "bits", share, 60.0, watch="me")
        crossed.append(np.float16(values[i]) > found.bits)
    assert sum(crossed) <= share * values.size + 1e-9


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"share": 0.03}, "need the streams of 33 other speakers, there are 25: allow 3.9 %"),
        ({"share": 0.01, "seconds": 600.0}, "streams of 10 minutes need the streams of 99 other"),
        (
            {"field": "sum_bits"},
            "how high sum_bits gets.*: use one of bits, closed_set_bits, gain_bits, f0.gain_bits",
        ),
        ({"field": "bits_low"}, "how high bits_low gets"),
        ({"seconds": 601.0}, "heard for 10 minutes at most, not 601 seconds"),
        ({"seconds": 0.0}, "must be a positive number of seconds"),
        ({"seconds": np.nan}, "must be a positive number of seconds"),
        ({"share": 1.0}, "over 0 and under 1"),
        ({"features": ("voice",)}, "no rank model is about voice"),
        ({"field": "voice.local_bits"}, "no rank model is about voice, which voice.local_bits"),
        ({"features": ("phones",)}, "learn it with monitor calibrate CORPUS"),
    ],
    ids=str,
)
def test_what_is_not_known_is_refused_in_a_line(changes, words):
    with pytest.raises(UsageError, match=words) as caught:
        quote(**changes)
    assert "\n" not in str(caught.value)


def test_a_shorter_stream_is_named_where_there_are_enough_of_it():
    few = maxima()
    few.values[:, 10:, 1] = np.nan
    rank_models = RankModels([some_rank_model(("f0",), maxima=few)])
    with pytest.raises(UsageError, match=r"there are 10: ask for 1 minute, or allow 9\.1 %, or"):
        false_alarms(rank_models, ("f0",), "cross", "bits", 0.05, 600.0, watch="me")
