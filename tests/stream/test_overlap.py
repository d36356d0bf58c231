from __future__ import annotations

import shutil

import numpy as np
import pytest
import soundfile

from monitor import Population
from monitor.errors import OverlapError, SourceError
from monitor.population.people import SourceNote
from monitor.sources.frames import write_frames
from monitor.sources.registry import provenance_of, recording_hashes
from monitor.stream.notices import session_of
from tests.stream.streams import RATE, reference, simulated, sounds, voice_file, with_speakers


def note(path, start=10.0, end=40.0) -> SourceNote:
    return SourceNote(path.name, "one", recording_hashes(path), start, end)


@pytest.fixture
def enrolled(tmp_path):
    """A recording, and a population that was enrolled from its seconds 10 to 40."""
    path = voice_file(tmp_path / "me.flac")
    return path, with_speakers(reference(), me=(note(path),))


def test_a_impostor_needs_the_cross_session_rank_model(enrolled, tmp_path):
    _, population = enrolled
    other = voice_file(tmp_path / "other.flac", 5.0)
    assert session_of(population, [provenance_of(other)]) == "cross"
    assert session_of(population, []) == "cross"
    assert session_of(reference(), [provenance_of(other)]) == "cross"


@pytest.mark.parametrize(
    ("start", "end"),
    [(0.0, None), (0.0, 10.01), (39.99, None), (20.0, 21.0), (5.0, 50.0), (10.0, 40.0)],
)
def test_the_very_audio_that_was_enrolled_is_refused(enrolled, start, end):
    path, population = enrolled
    with pytest.raises(OverlapError) as caught:
        session_of(population, [provenance_of(path, start, end)])
    message = str(caught.value)
    assert message == (
        "me.flac: seconds 10 to 40 were enrolled as me; start after them (start_seconds=40), or "
        "insist with allow_overlap=True"
    )
    part = provenance_of(path, start, end)
    assert session_of(population, [part], allow_overlap=True) == "same"


@pytest.mark.parametrize(("start", "end"), [(40.0, None), (41.5, 60.0), (0.0, 10.0), (3.0, 4.0)])
def test_another_part_of_the_recording_needs_the_same_session_rank_model(enrolled, start, end):
    path, population = enrolled
    assert session_of(population, [provenance_of(path, start, end)]) == "same"


@pytest.mark.parametrize("name", ["copy.flac", "copy.wav", "copy.aiff"])
def test_the_same_samples_are_recognised_in_another_container(enrolled, tmp_path, name):
    path, population = enrolled
    samples, rate = soundfile.read(path, dtype="int16")
    soundfile.write(tmp_path / name, samples, rate)
    with pytest.raises(OverlapError, match=f"^{name}: "):
        session_of(population, [provenance_of(tmp_path / name)])


def test_a_changed_recording_is_another(enrolled, tmp_path):
    _, population = enrolled
    samples = sounds(4.0).copy()
    samples[777] += 0.1
    soundfile.write(tmp_path / "changed.flac", samples, RATE)
    assert session_of(population, [provenance_of(tmp_path / "changed.flac")]) == "cross"


def test_one_of_several_recordings_is_enough(enrolled, tmp_path):
    path, population = enrolled
    other = voice_file(tmp_path / "other.flac", 5.0)
    parts = [provenance_of(other), provenance_of(path, 40.0), provenance_of(other)]
    assert session_of(population, parts) == "same"
    with pytest.raises(OverlapError, match=r"^me\.flac: "):
        session_of(population, [provenance_of(other), provenance_of(path)])


def test_the_advice_clears_every_interval(tmp_path):
    path = voice_file(tmp_path / "us.flac")
    notes = {"a": (note(path, 0.0, 30.0), note(path, 50.0, 80.5)), "b": (note(path, 30.0, 45.0),)}
    population = with_speakers(reference(), **notes)
    with pytest.raises(OverlapError, match=r"0 to 30 were enrolled as a; .*start_seconds=80\.5"):
        session_of(population, [provenance_of(path)])
    with pytest.raises(OverlapError, match=r"30 to 45 were enrolled as b; .*start_seconds=45"):
        session_of(population, [provenance_of(path, 30.0, 50.0)])
    assert session_of(population, [provenance_of(path, 45.0, 50.0)]) == "same"
    assert session_of(population, [provenance_of(path, 80.5)]) == "same"


def test_frames_are_recognised_by_their_bytes(tmp_path):
    path, made = tmp_path / "me.npz", simulated(5.0)
    write_frames(path, made.speech, made.tracks, {"f0": 104}, {"f0": 0.01})
    population = with_speakers(reference(), me=(note(path, 0.0, 5.0),))
    shutil.copy(path, tmp_path / "copy.npz")
    with pytest.raises(OverlapError):
        session_of(population, [provenance_of(tmp_path / "copy.npz")])


def test_the_session_survives_a_store(enrolled, tmp_path):
    path, population = enrolled
    population.save(tmp_path / "us.npz")
    loaded = Population.load(tmp_path / "us.npz")
    assert session_of(loaded, [provenance_of(path, 40.0)]) == "same"
    with pytest.raises(OverlapError):
        session_of(loaded, [provenance_of(path, 39.0)])
    assert np.array_equal(loaded.offsets, population.offsets)


def test_a_missing_recording_says_so(enrolled, tmp_path):
    with pytest.raises(SourceError, match=r"cannot open no\.flac"):
        session_of(enrolled[1], [provenance_of(tmp_path / "no.flac")])
