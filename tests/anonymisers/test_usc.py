"""A voice made anew from tokens, by a codec with made-up weights: nothing else passes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.usc import Usc
from monitor.errors import UsageError
from monitor.networks.usc import TokenStream, UscNetwork
from tests.sounds import RATE, synthetic
from tests.usc_weights import usc_weights

NETWORK = UscNetwork(usc_weights())
VOICE = synthetic(1.6)


def usc(epsilon=None, rate=RATE, **more):
    return Usc(epsilon, Utterance(rate, **{"name": "talk", **more}), NETWORK)


def made(anonymiser, *parts):
    return np.concatenate([*map(anonymiser.process, parts), anonymiser.flush()])


@pytest.mark.parametrize("epsilon", [None, 3.0])
@pytest.mark.parametrize("rate", [RATE, 44_100])
@settings(max_examples=4)
@given(cuts=st.lists(st.integers(0, VOICE.size), max_size=6))
def test_any_cutting_gives_the_same_samples(epsilon, rate, cuts):
    parts = np.split(VOICE, sorted(cuts))
    assert np.array_equal(made(usc(epsilon, rate), *parts), made(usc(epsilon, rate), VOICE))


@pytest.mark.parametrize("rate", [8000, 11_025, RATE, 22_050, 44_100, 48_000, 96_000])
@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.0375, 0.04, 1.3333])
def test_as_much_comes_out_as_went_in(rate, seconds):
    samples = np.resize(VOICE, round(seconds * rate))
    assert made(usc(rate=rate), samples).size == samples.size


@pytest.mark.parametrize("rate", [8000, RATE, 44_100, 48_000])
def test_it_lags_no_more_than_is_said(rate):
    anonymiser, came, lags = usc(rate=rate), 0, []
    for heard in range(100, 3 * rate, 100):
        came += anonymiser.process(np.resize(VOICE, 100)).size
        lags.append(heard - came)
    assert 0 <= min(lags) <= max(lags) <= anonymiser.latency_samples
    assert rate != RATE or max(lags) > 0.98 * anonymiser.latency_samples


def test_nothing_passes_but_tokens():
    """Two sounds with the same tokens are the same sound afterwards, to the last bit."""
    other = VOICE * np.float32(1 + 1e-6)
    said = [TokenStream(NETWORK) for _ in range(2)]
    tokens = [
        np.concatenate([s.push(v), s.flush()]) for s, v in zip(said, (VOICE, other), strict=True)
    ]
    assert np.array_equal(tokens[0], tokens[1])
    assert not np.array_equal(VOICE, other)
    assert np.array_equal(made(usc(), VOICE), made(usc(), other))


def test_what_comes_later_is_not_heard_before():
    other = VOICE.copy()
    other[16_000:] = 0
    ahead = round((NETWORK.look_ahead + 0.15) * RATE)
    apart = np.flatnonzero(made(usc(), other) != made(usc(), VOICE))
    assert 16_000 - ahead <= apart[0] < 20_000


def test_noise_has_an_epsilon_and_no_noise_has_none():
    assert usc().declares is None
    declared = usc(3.0).declares
    assert (declared.mechanism, declared.epsilon, declared.window_seconds) == ("usc:3", 3.0, 0.04)
    assert declared.ahead_seconds * 100 == pytest.approx(NETWORK.decoder.late + 12)


def test_as_many_tokens_are_declared_as_sound_depends_on():
    """Change a token beyond those that are counted: what came out by then stays."""
    declared, books = usc(3.0).declares, NETWORK.books
    stream = TokenStream(NETWORK)
    tokens = np.concatenate([stream.push(VOICE), stream.flush()])

    def sound(tokens):
        anonymiser = usc()
        said = anonymiser._latents.push(books.latents(tokens[:, None]))
        rest = anonymiser._latents.flush()
        return np.concatenate(
            [*map(anonymiser._sound.push, (said, rest)), anonymiser._sound.flush()]
        )

    whole = sound(tokens)
    for seconds in (0.3, 0.5, 0.77):
        counted = declared.windows(seconds)
        other = tokens.copy()
        other[counted:] = (other[counted:] + 7) % books.size
        assert np.array_equal(*(each[: round(seconds * RATE)] for each in (whole, sound(other))))
        assert not np.array_equal(whole, sound(other))


@pytest.mark.parametrize("epsilon", [0.0, -3.0, np.nan, np.inf])
def test_what_is_no_epsilon_is_refused(epsilon):
    with pytest.raises(UsageError, match="give a number above 0"):
        usc(epsilon)
