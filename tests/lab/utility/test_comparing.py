"""Utility of voices whose truth is known: unchanged, later, higher, louder, longer, noisy, flat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from monitor.anonymisers import Noise, Utterance
from monitor.errors import UsageError
from monitor.lab.utility import RecordingContent, compare, extract_content
from tests.sounds import RATE, synthetic

SECONDS = 4.0


@pytest.fixture(scope="module")
def voice():
    return synthetic(SECONDS, 150.0)


@pytest.fixture(scope="module")
def clear(voice):
    return extract_content(voice, RATE)


@pytest.mark.slow
def test_what_is_not_changed_keeps_all(voice, clear):
    found = compare(clear, extract_content(voice, RATE))
    assert (found.phone_edits, found.why) == (0, "")
    assert found.pitch_correlation == pytest.approx(1.0)
    assert found.voiced == found.voiced_in_both > 100
    assert (found.lag_seconds, found.louder_db, found.longer) == (0.0, 0.0, 1.0)


@pytest.mark.slow
def test_what_comes_later_is_set_beside_what_it_is_of(voice, clear):
    for seconds in (0.1, 0.37):
        pause = np.zeros(round(seconds * RATE), np.float32)
        found = compare(clear, extract_content(np.append(pause, voice), RATE))
        assert found.lag_seconds == pytest.approx(seconds, abs=0.011)
        assert found.pitch_correlation == pytest.approx(1.0, abs=0.01)
        back = compare(extract_content(np.append(pause, voice), RATE), clear)
        assert back.lag_seconds == pytest.approx(-seconds, abs=0.011)


@pytest.mark.slow
def test_a_pitch_moved_by_a_factor_moves_as_before(clear):
    higher = extract_content(synthetic(SECONDS, 1.3 * 150.0), RATE)
    found = compare(clear, higher)
    assert higher.pitch_hertz.max() > 1.2 * clear.pitch_hertz.max()
    assert found.pitch_correlation == pytest.approx(1, abs=0.02)


def test_a_pitch_of_another_course_does_not(clear):
    found = compare(clear, extract_content(synthetic(SECONDS, 150.0, seed=5), RATE))
    assert abs(found.pitch_correlation or 0) < 0.5


@pytest.mark.slow
def test_loudness_and_length(voice, clear):
    found = compare(clear, extract_content(np.tile(voice, 2) / 2, RATE))
    assert found.louder_db == pytest.approx(20 * np.log10(0.5), abs=1e-3)
    assert found.longer == 2.0
    assert compare(clear, extract_content(0 * voice, RATE)).louder_db is None


def test_a_voice_on_one_pitch_has_no_correlation():
    time = np.arange(2 * RATE) / RATE
    order = np.arange(1, 9)[:, None]
    flat = extract_content((np.sin(2 * np.pi * 125 * order * time) / order).sum(axis=0) / 9, RATE)
    found = compare(flat, flat)
    assert found.voiced_in_both == found.voiced > 100
    assert (found.pitch_correlation, found.why) == (
        None,
        "the pitch of the clear recording does not move",
    )


def test_a_whisper_has_none_either(voice, clear):
    hiss = 0.1 * np.random.default_rng(0).standard_normal(voice.size)
    found = compare(clear, extract_content(hiss, RATE))
    assert found.pitch_correlation is None
    assert found.why == "0 frames are voiced in both recordings, fewer than 30"
    assert found.voiced_in_both == 0


def test_without_phones_there_is_no_phone_error():
    nothing = RecordingContent(1.0, 0.1, (), np.zeros(100))
    assert compare(nothing, replace(nothing, phones=("S",))).phone_error is None


def test_a_recording_without_samples_is_refused():
    with pytest.raises(UsageError, match="without samples"):
        extract_content(np.empty(0), RATE)
    with pytest.raises(UsageError, match="one channel"):
        extract_content(np.zeros((5, 2)), RATE)


@pytest.mark.parametrize("rate", [8000, 22050, 48000])
def test_any_rate(rate):
    time = np.arange(rate) / rate
    heard = extract_content(np.sin(2 * np.pi * 200 * time), rate)
    assert heard.seconds == 1.0
    assert heard.pitch_hertz[50] == 200.0


@pytest.mark.slow
def test_the_noisier_the_less_is_understood(shared):
    import soundfile

    path = shared / "speech" / "dev-clean" / "1272" / "128104.opus"
    samples = soundfile.read(path, frames=15 * RATE, dtype="float32")[0]
    clear = extract_content(samples, RATE)
    found = [
        compare(clear, extract_content(Noise(snr, Utterance(RATE)).process(samples), RATE))
        for snr in (60.0, 30.0, 20.0, 10.0, 0.0)
    ]
    errors = [each.phone_error or 0.0 for each in found]
    assert errors == sorted(errors)
    assert errors[0] < 0.05
    assert errors[-1] > 0.6
    shares = [each.voiced_in_both / each.voiced for each in found]
    assert shares == sorted(shares, reverse=True)
    assert found[1].pitch_correlation == pytest.approx(1, abs=0.05)
