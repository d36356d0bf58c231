from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulation import SIZE, Simulation, write_corpus
from monitor.corpus import Corpus, find
from monitor.errors import UsageError
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.training.voices import SessionFrames, SpeakerSpeech, collect, join


def test_frames_lie_in_tenths_of_a_speech_second(tmp_path, frames_file):
    # ticks 1-50 speech, 51-150 silence, 151-205 speech: 105 ticks of speech, 10 whole units
    speech = np.zeros(205, bool)
    speech[:50] = speech[150:] = True
    ticks, bins = [1, 10, 11, 50, 100, 150, 151, 155, 200, 201, 205], list(range(11))
    frames_file(tmp_path / "ann/1.npz", speech, ticks, bins)
    (voice,), specs, problems = collect(find(tmp_path))
    session = voice.sessions[0]["f0"]
    assert (voice.name, voice.length(0), problems) == ("ann", 10, ())
    assert str(specs["f0"]) == f"histogram of size {SIZE}"
    # a frame in silence belongs to the unit that was heard before; the rest of half a unit is cut
    assert session.units.tolist() == [0, 0, 1, 4, 4, 4, 5, 5, 9]
    assert session.values.tolist() == list(range(9))


def test_files_of_a_session_follow_one_another(tmp_path, frames_file):
    frames_file(tmp_path / "ann/mon/1.npz", np.ones(25), [25], [1])
    frames_file(tmp_path / "ann/mon/2.npz", np.ones(25), [1, 6], [2, 3])
    frames_file(tmp_path / "ann/tue/1.npz", np.ones(10), [4], [4])
    (voice,), _, _ = collect(find(tmp_path))
    monday, tuesday = (session["f0"] for session in voice.sessions)
    assert (monday.length, tuesday.length) == (5, 1)
    assert monday.units.tolist() == [2, 2, 3]
    assert tuesday.values.tolist() == [4]


def test_nothing_is_lost_and_nothing_invented(tmp_path):
    simulation = Simulation(2)
    write_corpus(tmp_path, simulation, 2, 2, 20.0)
    voices, _, _ = collect(find(tmp_path))
    for j, voice in enumerate(voices):
        for s, session in enumerate(voice.sessions):
            frames = simulation.frames(j, s, 20.0)
            spoken = np.cumsum(frames.speech)[frames.tracks["f0"].ticks - 1]
            inside = spoken <= 10 * session["f0"].length
            expected = np.bincount(frames.tracks["f0"].values[inside], minlength=SIZE)
            np.testing.assert_array_equal(session["f0"].total(0, session["f0"].length), expected)


def test_broken_files_are_skipped_and_named(tmp_path, flac):
    flac(tmp_path / "ann/a.flac", 4.0)
    flac(tmp_path / "ann/b.flac", 4.0, keep=0.5)
    flac(tmp_path / "bob/c.flac", 4.0, keep=0.02)
    seen = []
    voices, _, problems = collect(find(tmp_path), progress=lambda r: seen.append(r.path.name))
    assert [(voice.name, len(voice.sessions)) for voice in voices] == [("ann", 1)]
    assert [problem.split(":")[0] for problem in problems] == ["ann/b.flac", "bob/c.flac"]
    assert seen == ["a.flac", "b.flac", "c.flac"]


def test_who_does_not_speak_is_no_voice(tmp_path, frames_file):
    frames_file(tmp_path / "ann/1.npz", np.zeros(500), [], [])
    frames_file(tmp_path / "bob/1.npz", np.ones(500), [], [])  # speech, but no usable frame
    voices, _, problems = collect(find(tmp_path))
    assert [voice.name for voice in voices] == ["bob"]
    assert problems == ()
    assert collect(Corpus((), ("a.wav is missing",))) == ([], {}, ("a.wav is missing",))


def test_an_unknown_feature_stops_at_once(tmp_path, flac):
    flac(tmp_path / "ann/a.flac", 1.0)
    with pytest.raises(UsageError, match="unknown feature 'pitch'"):
        collect(find(tmp_path), features=["pitch"])


FIVE = FeatureSpec("f0", HISTOGRAM, 5, 0.01)


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=4))
def test_joined_sessions_hold_the_same_frames_further_on(parts):
    sessions = [
        SessionFrames(np.arange(len(p)) % 5, np.sort(np.array(p, int)), 10, FIVE) for p in parts
    ]
    whole = join(sessions)
    assert whole.length == 10 * len(parts)
    for i, session in enumerate(sessions):
        for start in (0, 3):
            np.testing.assert_array_equal(whole.total(10 * i + start, 7), session.total(start, 7))


def test_a_voice_knows_its_lengths():
    def session(length: int) -> dict[str, SessionFrames]:
        return {"f0": SessionFrames(np.zeros(0, int), np.zeros(0, int), length, FIVE)}

    voice = SpeakerSpeech("ann", (session(4), session(9)))
    assert [voice.length(i) for i in range(2)] == [4, 9]
