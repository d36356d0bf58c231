"""What holds for every anonymiser that ships (`monitor.protocols.Anonymiser`), and their names."""

import sys
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.anonymisers import Unchanged, Utterance, make, register
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


def test_every_anonymiser_is_under_these_contracts():
    tried = (*LIGHT, *TOKENS, *VOCODED, PASS_ON)
    assert {method.partition(":")[0] for method in tried} == set(ANONYMISERS)


@pytest.mark.parametrize("method", METHODS)
def test_it_offers_what_the_protocol_asks_and_changes_nothing_that_it_is_given(method):
    anonymiser, before = made(method), HEARD.copy()
    assert isinstance(anonymiser, Anonymiser)
    assert anonymiser.rate == RATE
    whole(anonymiser, HEARD)
    assert np.array_equal(HEARD, before)


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
    anonymiser, waiting = made(method, rate), 0
    assert anonymiser.latency_samples is not None
    # sample by sample, for as long as it takes to give some
    for heard in np.split(np.resize(HEARD, count), range(max(1, count - 1500), count)):
        piece = anonymiser.process(heard)
        waiting += heard.size - piece.size
        assert piece.dtype == np.float32
        assert 0 <= waiting <= anonymiser.latency_samples
    assert anonymiser.flush().size == waiting


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


@pytest.mark.parametrize("method", [
    "mcadams:0.6", pytest.param("voice:5,0.8", marks=WORLD), pytest.param("whisper", marks=WORLD),
])  # fmt: skip
@pytest.mark.parametrize("sound", [
    np.full(4000, 0.5), np.eye(1, 4000)[0], np.sin(np.arange(4000) * 0.3),
    np.arange(4000) % 2 - 0.5, np.full(4000, 1e-38), 1e12 * synthetic(0.3).astype(float),
])  # fmt: skip
def test_sounds_with_hardly_a_spectrum_come_out_finite(method, sound):
    found = whole(made(method), sound).astype(float)
    assert np.isfinite(found).all()
    times = 20 if method.startswith("mcadams") else 30
    assert np.abs(found).max() <= times * np.abs(sound).max()


@pytest.mark.parametrize("method", [
    "mcadams:random", "mcadams:speaker", "noise:10", "usc:2",
    pytest.param("whisper", marks=WORLD),
])  # fmt: skip
def test_what_is_drawn_is_of_the_seed_and_of_the_recording_or_the_speaker(method):
    def drawn(**more: Any) -> np.ndarray:
        return whole(made(method, **{"seed": 3, **more}), HEARD)

    first, of_speaker = drawn(), method.endswith("speaker")
    assert np.array_equal(drawn(), first)
    assert not np.array_equal(drawn(seed=4), first)
    assert np.array_equal(drawn(name="other"), first) == of_speaker
    assert np.array_equal(drawn(speaker="bob"), first) != of_speaker
    # what is drawn of all of a recording is the same for both channels, noise is not
    of_samples = method in ("noise:10", "usc:2", "whisper")
    assert np.array_equal(drawn(channel=1), first) != of_samples


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_and_two_channels_at_once_are_refused(method, bad):
    with pytest.raises(UsageError, match="NaN or infinite"):
        made(method).process(np.array([0.1, bad, 0.1], np.float32))
    with pytest.raises(UsageError, match="one channel"):
        made(method).process(np.zeros((10, 2), np.float32))


def test_one_that_is_registered_is_found_with_its_setting(monkeypatch):
    monkeypatch.setattr("monitor.anonymisers.registry.ANONYMISERS", dict(ANONYMISERS))
    asked: list[tuple[str, Utterance]] = []

    def mine(*given: Any) -> Unchanged:
        asked.append(given)
        return Unchanged(RATE)

    register("mine", mine)
    assert isinstance(make("mine:a:b", Utterance(RATE)), Unchanged)
    assert asked == [("a:b", Utterance(RATE))]


SENSELESS = {
    "identity": r"'identity'.*'none', 'mcadams', .*'noise', 'usc'.*'laplace'",
    "voice:4": "'4'.* voice:4,1.15",
    "voice:4,": "'4,'.* voice:4,1.15",
    "voice:4,1,1": "'4,1,1'.* voice:4,1.15",
    "voice:a,1.15": "'a,1.15'.* voice:4,1.15",
    "none:1": "no setting",
    "usc:": "no setting .*'usc:'",
    "none:": "no setting .*'none:'",
    **{f"usc:{value}": f"epsilon {value}: .*above 0" for value in ("0", "-3", "nan", "inf")},
    "mcadams:speaker": "--speaker NAME",
    **dict.fromkeys(("mcadams:", "mcadams:low"), "mcadams:0.8"),
    **{f"mcadams:{value}": f" {value}: .*0.1 to 2" for value in ("0", "nan", "inf", "3")},
    **dict.fromkeys(("noise:", "noise:loud"), "noise:10"),
    **{f"noise:{value}": f" {value} dB: .*-120 to 120" for value in ("nan", "inf", "1000")},
    "laplace:1": "for embeddings, not for audio",
}


@pytest.mark.parametrize("method", SENSELESS)
def test_a_setting_that_makes_no_sense_is_refused(method):
    with pytest.raises(UsageError, match=SENSELESS[method]):
        make(method, Utterance(RATE))
