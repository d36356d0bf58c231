from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.features.pauses import LONGEST, RATE, Pauses
from tests.contracts import KILOBYTE, babble, growth

TICK = RATE // 100


class Loud:
    """Takes for speech what is not silent."""

    def is_speech(self, samples: bytes, rate: int) -> bool:
        assert (len(samples), rate) == (2 * TICK, RATE)
        return any(samples)


def scripted(*runs: tuple[int, float]) -> tuple[Pauses, np.ndarray]:
    """A detector that takes runs of (ticks, level) for what they are, and their sound."""
    pauses = Pauses()
    pauses._detector = Loud()
    levels = np.concatenate([np.full(ticks, level) for ticks, level in runs])
    return pauses, np.repeat(levels, TICK).astype(np.float32)


def cut(pauses: Pauses, sound: np.ndarray) -> list[tuple[int, int, int]]:
    """Begin, end and when it was known, of each utterance."""
    found = pauses.push(sound) + pauses.flush()
    return [(u.begin, u.begin + u.samples.size // TICK, u.complete) for u in found]


def test_an_utterance_ends_with_a_pause_and_keeps_a_margin():
    assert cut(*scripted((50, 0), (30, 0.5), (60, 0))) == [(40, 90, 100)]
    # no silence before, and none after
    assert cut(*scripted((30, 0.5), (60, 0), (30, 0.5))) == [(0, 40, 50), (80, 120, 120)]


def test_a_short_silence_is_no_pause():
    assert cut(*scripted((20, 0), (30, 0.5), (19, 0), (30, 0.5), (40, 0))) == [(10, 109, 119)]
    assert len(cut(*scripted((20, 0), (30, 0.5), (20, 0), (30, 0.5), (40, 0)))) == 2


def test_utterances_do_not_overlap():
    (_, first, _), (second, _, _) = cut(*scripted((30, 0.5), (20, 0), (30, 0.5)))
    assert first == second == 40


def test_less_than_a_tenth_of_a_second_of_speech_is_skipped():
    assert cut(*scripted((30, 0), (9, 0.5), (40, 0))) == []
    assert cut(*scripted((30, 0), (10, 0.5), (40, 0))) == [(20, 50, 60)]


def test_without_a_pause_the_quietest_place_is_cut():
    pauses, sound = scripted((20, 0), (100, 0.5), (10, 0.01), (500, 0.5), (10, 0.1), (400, 0.5))
    found = cut(pauses, sound)
    (begin, middle, known), (again, end, _) = found
    assert (begin, known, end) == (10, 10 + LONGEST, 1040)  # 0.01 came before the fourth second
    assert 630 < middle < 640
    assert again == middle


def test_what_has_no_quiet_place_either_is_covered_without_a_hole():
    pauses, sound = scripted((3000, 0.5))
    found = cut(pauses, sound)
    assert [begin for begin, _, _ in found] == [0, *(end for _, end, _ in found[:-1])]
    assert found[-1][1] == 3000
    assert all(end - begin <= LONGEST for begin, end, _ in found)


def test_a_recording_that_ends_within_a_tick():
    pauses, sound = scripted((30, 0.5))
    assert cut(pauses, sound[:-1]) == [(0, 29, 30)]
    assert pauses.heard == 30


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, 12 * RATE), max_size=8).map(sorted))
def test_any_cutting_gives_the_same_utterances(cuts):
    sound = np.concatenate([babble(20, 0.3), babble(85, 0.7), babble(1)])
    whole, parts = Pauses(), Pauses()
    expected = whole.push(sound) + whole.flush()
    found = [u for part in np.split(sound, cuts) for u in parts.push(part)] + parts.flush()
    assert len(expected) >= 3
    assert [(u.begin, u.complete) for u in found] == [(u.begin, u.complete) for u in expected]
    assert all(np.array_equal(a.samples, b.samples) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("level", [0.0, 1e-3, 0.5])
def test_memory_does_not_grow(level):
    noise = np.random.default_rng(0).standard_normal(RATE).astype(np.float32) * np.float32(level)
    pauses = Pauses()
    assert growth(20, lambda _: pauses.push(noise)) < 8 * KILOBYTE


def test_a_reset_forgets():
    pauses, sound = Pauses(), babble(20, 0.4)
    fresh = [u.begin for u in pauses.push(sound)]
    pauses.push(sound[: RATE // 2])
    pauses.reset()
    assert [u.begin for u in pauses.push(sound)] == fresh


def test_digital_silence_gets_a_faint_noise():
    (utterance,) = (pauses := Pauses()).push(np.append(babble(10), np.zeros(RATE, np.float32)))
    ticks = utterance.samples.reshape(-1, TICK)
    assert ticks.any(axis=1).all()
    assert np.abs(ticks[-5:]).max() == 1
    spoken = np.rint(babble(10) * 32768)[: 80 * TICK]
    assert np.array_equal(utterance.samples[: spoken.size], spoken)
    assert pauses.flush() == []
