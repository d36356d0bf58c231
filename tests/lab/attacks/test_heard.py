from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from monitor.lab.attacks.speech import ExtractedPiece, align_to_clear, pack, unpack
from monitor.training.feature_extraction import SpeechFrames, SpeechTrack
from monitor.types import Frames, Track

CLEAR = np.array([True, True, False, True])


def test_frames_are_placed_on_the_clock_of_the_clear_speech():
    track = Track(np.array([1, 3, 4]), np.array([7, 8, 9]), np.array([[0, 1], [2, 3], [2, 4]]))
    made = align_to_clear(Frames(np.zeros(4, bool), {"f0": track}), CLEAR).tracks["f0"]
    assert made.since is not None
    assert made.at.tolist() == [1, 2, 3]  # though the protected audio is no speech at all
    assert made.since.tolist() == [0, 2, 2]


def test_audio_of_another_length_is_stretched_to_fit():
    track = Track(np.array([2, 8]), np.array([7, 8]))
    made = align_to_clear(Frames(np.zeros(8, bool), {"f0": track}), CLEAR)
    assert made.tracks["f0"].at.tolist() == [1, 3]
    assert made.speech.tolist() == CLEAR.tolist()


def test_silence_has_no_frames_and_keeps_its_time():
    made = align_to_clear(
        Frames(np.zeros(0, bool), {"f0": Track(np.zeros(0, int), np.zeros(0))}), CLEAR
    )
    assert (made.speech_ticks, made.tracks["f0"].at.size) == (3, 0)


@given(st.lists(st.integers(0, 50), max_size=20), st.booleans(), st.booleans())
def test_packing_keeps_every_bit(bins, spans, vectors):
    at = np.arange(len(bins))
    values = np.random.default_rng(1).normal(size=(len(bins), 3)) if vectors else np.array(bins)
    track = SpeechTrack(values, at, at if spans else None)
    heard = ExtractedPiece(
        SpeechFrames(CLEAR, {"f0": track, "b": track}, "lost"), {"words": {"error": 0.25}}
    )
    again = unpack(pack(heard))
    assert (again.frames.lost, again.measured) == ("lost", {"words": {"error": 0.25}})
    for name in ("f0", "b"):
        made = again.frames.tracks[name]
        assert np.array_equal(made.values, values)
        assert made.values.dtype == values.dtype
        assert (made.since is None) == (not spans)
    assert np.array_equal(again.frames.speech, CLEAR)
