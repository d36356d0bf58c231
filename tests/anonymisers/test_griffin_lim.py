"""Sound from mel energies: it has those energies, whatever the cutting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.anonymisers.usc import AHEAD, SOUND_BLOCK, GriffinLim, magnitudes
from monitor.errors import UsageError
from monitor.networks.layers import FFT, FLOOR, HOP, RATE, WIDTH, filters, log_mel
from tests.sounds import synthetic

BANDS = 80
VOICE = synthetic(1.0)
SAID = log_mel(VOICE, BANDS)


def made(*parts: np.ndarray) -> np.ndarray:
    stream = GriffinLim(BANDS)
    return np.concatenate([*map(stream.push, parts), stream.flush()])


WHOLE = made(SAID)


@settings(max_examples=10)
@given(st.lists(st.integers(0, len(SAID)), max_size=8))
def test_any_cutting_gives_the_same_samples(places):
    assert np.array_equal(made(*np.split(SAID, sorted(places))), WHOLE)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 12, 13])
def test_frames_become_as_much_sound_as_they_cover(count):
    assert made(SAID[:count]).size == (count and (count - 1) * HOP + WIDTH)


def test_sound_is_as_late_as_stated_at_most():
    stream, came, latest = GriffinLim(BANDS), 0, 0
    for i, frame in enumerate(SAID):
        came += stream.push(frame[None]).size
        latest = max(latest, (i + 1) * HOP - came)
    assert latest == (AHEAD + SOUND_BLOCK - 1) * HOP


def error(sound: np.ndarray, said: np.ndarray) -> float:
    """Nepers of energy, where there is some."""
    return float(np.abs(log_mel(sound, BANDS) - said)[said > np.log(1e3 * FLOOR)].mean())


def test_a_voice_has_the_energies_that_were_asked_for():
    assert error(WHOLE, SAID) < 0.25
    assert error(0.5 * WHOLE, SAID) > 1.2  # such an error is heard


def test_no_frame_is_heard_before_it_and_all_after_it_are_their_own():
    other = SAID.copy()
    other[60:] = SAID[:38][::-1]
    same = (60 - 12) // 4 * 4 * HOP
    assert np.array_equal(made(other)[:same], WHOLE[:same])
    assert not np.array_equal(made(other), WHOLE)


@pytest.mark.parametrize("hertz", [110, 440, 1000, 3300])
def test_a_tone_keeps_its_pitch_and_loudness(hertz):
    tone = np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE) / 4
    sound = made(log_mel(tone, BANDS))[2000:14000]
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(sound.size), 4 * RATE))
    assert abs(spectrum.argmax() / 4 - hertz) < 0.5 * RATE / FFT
    assert 0.8 < np.sqrt(np.mean(sound**2) * 32) < 1.25


def test_silence_stays_silence():
    assert not made(log_mel(np.zeros(RATE), BANDS)).any()


def test_magnitudes_have_the_energies_that_were_asked_for():
    again = magnitudes(SAID) ** 2 @ filters(BANDS)
    loud = np.log(1e3 * FLOOR) < SAID
    assert np.abs(np.log(again + FLOOR) - SAID)[loud].mean() < 0.05


def test_a_flush_forgets_all():
    stream = GriffinLim(BANDS)
    stream.push(SAID[::-1])
    stream.flush()
    assert np.array_equal(np.concatenate([stream.push(SAID), stream.flush()]), WHOLE)


def test_frames_of_other_bands_are_refused():
    with pytest.raises(UsageError, match=r"\(t, 80\)"):
        GriffinLim(BANDS).push(np.zeros((3, 40)))
