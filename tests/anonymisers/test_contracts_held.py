"""What holds for every anonymiser that ships: `monitor.protocols.Anonymiser`."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.anonymisers import Utterance, make
from monitor.anonymisers.registry import ANONYMISERS
from monitor.errors import UsageError
from monitor.protocols import Anonymiser
from tests.sounds import RATE, synthetic

PASS_ON = (
    f"command:{sys.executable} -c 'import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())'"
)
LIGHT = ("none", "mcadams:0.8", "mcadams:random", "mcadams:speaker", "noise:10")
WORLD = pytest.mark.skipif(find_spec("pyworld") is None, reason="needs pyworld (extra vocoder)")
VOCODED = ("pitch:random", "formant:0.85", "voice:-3,1.1", "whisper")
TOKENS = ("usc", "usc:15")
STREAMING = (*LIGHT, *TOKENS, *(pytest.param(method, marks=WORLD) for method in VOCODED))
METHODS = (*STREAMING, PASS_ON)
HEARD = synthetic(0.7)


def made(method: str, rate: int = RATE, **more: Any) -> Anonymiser:
    return make(method, Utterance(rate, **{"name": "talk", "speaker": "ann", **more}))


def whole(anonymiser: Anonymiser, *parts: np.ndarray) -> np.ndarray:
    return np.concatenate([*map(anonymiser.process, parts), anonymiser.flush()])


@lru_cache
def at_once(method: str) -> np.ndarray:
    return whole(made(method), HEARD)


def cut(places: list[int]) -> list[np.ndarray]:
    return np.split(HEARD, sorted(places))


def test_every_anonymiser_is_under_these_rank_models():
    tried = (*LIGHT, *TOKENS, *VOCODED, PASS_ON)
    assert {method.partition(":")[0] for method in tried} == set(ANONYMISERS)


@pytest.mark.parametrize("method", METHODS)
def test_it_offers_what_the_protocol_asks(method):
    anonymiser = made(method)
    assert isinstance(anonymiser, Anonymiser)
    assert anonymiser.rate == RATE


@pytest.mark.slow
@pytest.mark.parametrize("method", STREAMING)
@settings(max_examples=8)
@given(places=st.lists(st.integers(0, HEARD.size), max_size=12))
def test_any_cutting_gives_the_same_samples(method, places):
    assert np.array_equal(whole(made(method), *cut(places)), at_once(method))


def test_a_program_is_asked_once_whatever_the_cutting():
    assert np.array_equal(whole(made(PASS_ON), *cut([3, 4000])), whole(made(PASS_ON), HEARD))


@pytest.mark.parametrize("method", STREAMING)
@pytest.mark.parametrize("rate", [8000, 16000, 44100])
@pytest.mark.parametrize("count", [0, 1, 159, 160, 161, 319, 320, 5001])
def test_length_is_kept_and_latency_is_as_stated(method, rate, count):
    anonymiser, came = made(method, rate), 0
    assert anonymiser.latency_samples is not None
    for heard in range(1, count + 1):
        piece = anonymiser.process(np.resize(HEARD, count)[heard - 1 : heard])
        came += piece.size
        assert piece.dtype == np.float32
        assert 0 <= heard - came <= anonymiser.latency_samples
    assert came + anonymiser.flush().size == count


@pytest.mark.parametrize("method", METHODS)
def test_reset_begins_the_same_recording_anew(method):
    anonymiser = made(method)
    first = whole(anonymiser, HEARD)
    anonymiser.reset()
    assert np.array_equal(whole(anonymiser, HEARD), first)
    anonymiser.reset()
    anonymiser.process(HEARD[:1234])
    anonymiser.reset()
    assert np.array_equal(whole(anonymiser, HEARD), first)


@pytest.mark.parametrize("method", [each for each in METHODS if each not in TOKENS])
def test_silence_stays_silence(method):
    assert not whole(made(method), np.zeros(3000, np.float32)).any()


@pytest.mark.parametrize("method", METHODS)
def test_what_is_given_is_not_changed(method):
    before = HEARD.copy()
    whole(made(method), HEARD)
    assert np.array_equal(HEARD, before)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(method, bad):
    with pytest.raises(UsageError, match="no number"):
        made(method).process(np.array([0.1, bad, 0.1], np.float32))


@pytest.mark.parametrize("method", METHODS)
def test_two_channels_at_once_are_refused(method):
    with pytest.raises(UsageError, match="one channel"):
        made(method).process(np.zeros((10, 2), np.float32))
