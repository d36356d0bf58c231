"""Recordings that were enrolled are known again: refused, or weighed as of the same session."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor import Monitor, Population
from monitor.errors import OverlapError, SourceError, UsageError
from monitor.population.people import SourceNote
from monitor.sources import Chain, File, SideInputSource
from monitor.sources.frames import write_frames
from monitor.sources.registry import provenance_of, recording_hashes
from monitor.stream.notices import session_of
from monitor.types import Block, Words
from tests.stream.streams import (
    RATE,
    Listed,
    reference,
    simulated,
    sounds,
    voice_file,
    with_speakers,
)


def note(path: Path, start: float, end: float) -> SourceNote:
    return SourceNote(path.name, "one", recording_hashes(path), start, end)


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    return voice_file(tmp_path / "me.flac")


@pytest.fixture
def enrolled(talk: Path) -> Population:
    """With me, from seconds 10 to 40 of the talk."""
    return with_speakers(reference(), me=(note(talk, 10.0, 40.0),))


@pytest.fixture
def begun(talk: Path) -> Population:
    """With me, from the first two seconds of the four of the talk."""
    return with_speakers(reference(), me=(note(talk, 0.0, 2.0),))


def test_what_was_not_enrolled_is_of_another_session(enrolled, talk, tmp_path):
    other = provenance_of(voice_file(tmp_path / "other.flac", 5.0))
    samples = sounds(4.0).copy()
    samples[777] += 0.1
    soundfile.write(tmp_path / "changed.flac", samples, RATE)
    changed = provenance_of(tmp_path / "changed.flac")
    for population, parts in (
        (enrolled, [other]),
        (enrolled, [changed]),
        (enrolled, []),
        (reference(), [provenance_of(talk)]),
    ):
        assert session_of(population, parts) == "cross"
    with pytest.raises(SourceError, match=r"cannot open no\.flac"):
        session_of(enrolled, [provenance_of(tmp_path / "no.flac")])


@pytest.mark.parametrize(
    ("start", "end"),
    [(0.0, None), (0.0, 10.01), (39.99, None), (20.0, 21.0), (5.0, 50.0), (10.0, 40.0)],
)
def test_the_very_audio_that_was_enrolled_is_refused(enrolled, talk, start, end):
    part = provenance_of(talk, start, end)
    with pytest.raises(OverlapError) as caught:
        session_of(enrolled, [part])
    assert str(caught.value) == (
        "me.flac: seconds 10 to 40 were enrolled as me. Start after them (start_seconds=40), or "
        "insist with allow_overlap=True"
    )
    assert session_of(enrolled, [part], allow_overlap=True) == "same"


def test_another_part_of_the_recording_is_of_the_same_session(enrolled, talk, tmp_path):
    for start, end in ((40.0, None), (41.5, 60.0), (0.0, 10.0), (3.0, 4.0)):
        assert session_of(enrolled, [provenance_of(talk, start, end)]) == "same"
    # one of several is enough
    other = provenance_of(voice_file(tmp_path / "other.flac", 5.0))
    assert session_of(enrolled, [other, provenance_of(talk, 40.0), other]) == "same"
    with pytest.raises(OverlapError, match=r"^me\.flac: "):
        session_of(enrolled, [other, provenance_of(talk)])
    # also of a population that was stored
    enrolled.save(tmp_path / "us.npz")
    loaded = Population.load(tmp_path / "us.npz")
    assert session_of(loaded, [provenance_of(talk, 40.0)]) == "same"
    with pytest.raises(OverlapError):
        session_of(loaded, [provenance_of(talk, 39.0)])


@pytest.mark.parametrize("name", ["copy.flac", "copy.wav", "copy.aiff"])
def test_the_same_samples_are_recognised_in_another_container(enrolled, talk, tmp_path, name):
    samples, rate = soundfile.read(talk, dtype="int16")
    soundfile.write(tmp_path / name, samples, rate)
    with pytest.raises(OverlapError, match=f"^{name}: "):
        session_of(enrolled, [provenance_of(tmp_path / name)])


def test_frames_are_recognised_by_their_bytes(tmp_path):
    path, made = tmp_path / "me.npz", simulated(5.0)
    write_frames(path, made.speech, made.tracks, {"f0": 104}, {"f0": 0.01})
    population = with_speakers(reference(), me=(note(path, 0.0, 5.0),))
    shutil.copy(path, tmp_path / "copy.npz")
    with pytest.raises(OverlapError):
        session_of(population, [provenance_of(tmp_path / "copy.npz")])


def test_the_advice_clears_every_interval(talk):
    notes = {"a": (note(talk, 0.0, 30.0), note(talk, 50.0, 80.5)), "b": (note(talk, 30.0, 45.0),)}
    population = with_speakers(reference(), **notes)
    with pytest.raises(OverlapError, match=r"0 to 30 were enrolled as a\. .*start_seconds=80\.5"):
        session_of(population, [provenance_of(talk)])
    with pytest.raises(OverlapError, match=r"30 to 45 were enrolled as b\. .*start_seconds=45"):
        session_of(population, [provenance_of(talk, 30.0, 50.0)])
    assert session_of(population, [provenance_of(talk, 45.0, 50.0)]) == "same"
    assert session_of(population, [provenance_of(talk, 80.5)]) == "same"


def sessions(monitor: Monitor, source: object, **options: bool) -> set[str]:
    return {reading.session for reading in monitor.stream(source, **options)}  # type: ignore[arg-type]


def with_words(path: Path) -> SideInputSource:
    words = Words(("yes",), np.array([5]), np.array([9]), np.array([15]))
    return SideInputSource(File(path), words=words)


@pytest.mark.parametrize("made", [Path, str, File, lambda path: Chain([File(path)]), with_words])
def test_a_stream_of_what_was_enrolled_is_refused(begun, talk, made: Callable[[Path], object]):
    with pytest.raises(OverlapError, match="seconds 0 to 2 were enrolled as me"):
        sessions(Monitor(begun, watch="me"), made(talk))
    asked = Monitor(begun, watch="me", session="cross")
    with pytest.raises(OverlapError, match="were enrolled as me"):
        sessions(asked, made(talk))
    assert sessions(Monitor(begun, watch="me"), made(talk), allow_overlap=True) == {"same"}


def test_another_part_of_it_is_weighed_by_the_same_session_rank_model(begun, talk, tmp_path):
    rest = File(talk, start_seconds=2.0)
    monitor = Monitor(begun, watch="me")
    assert (monitor.session, monitor.attacker.rank_model.session) == ("cross", "cross")
    asked = Monitor(begun, watch="me", session="same")
    assert [r.record() for r in monitor.stream(rest)] == [r.record() for r in asked.stream(rest)]
    assert (monitor.session, monitor.attacker.rank_model.session) == ("same", "same")
    monitor.reset()
    assert monitor.session == "cross"
    assert sessions(monitor, voice_file(tmp_path / "other.flac", 3.0)) == {"cross"}
    # unless a kind of session was asked for
    assert sessions(Monitor(begun, session="cross"), rest) == {"cross"}


def test_what_earlier_streams_brought_is_kept(begun, talk):
    before, monitor = Monitor(begun, watch="me"), Monitor(begun, watch="me")
    before.push(simulated(5.0))
    monitor.resume_from(before.totals, 0.25)
    first, *_ = monitor.stream(File(talk, start_seconds=2.0))
    assert first.session == "same"
    assert monitor.totals.speech > before.totals.speech
    assert first.peak_bits is not None
    assert first.peak_bits >= 0.25


def test_what_a_stream_cannot_be_is_one_line(begun, talk):
    monitor = Monitor(begun)
    monitor.push(simulated(2.0))
    words = r"begun under the cross-session rank model.*session=\"same\""
    with pytest.raises(UsageError, match=words):
        list(monitor.stream(File(talk, start_seconds=2.0)))
    words = "a list is not a Source: it lacks label, seconds, stream_info, "
    with pytest.raises(UsageError, match=words):
        list(Monitor(reference()).stream([simulated(1.0)]))  # type: ignore[arg-type]


def test_after_a_reset_audio_may_follow_frames(talk):
    monitor = Monitor(reference())
    assert [r.seconds for r in monitor.stream(Listed([simulated(2.0)]))] == [1.0, 2.0]
    monitor.reset()
    found = [reading.record() for reading in monitor.stream(talk)]
    assert found == [reading.record() for reading in Monitor(reference()).stream(talk)]
    monitor.reset()
    (block, *_) = [each for each in File(talk) if isinstance(each, Block)]
    list(monitor.stream(Listed([simulated(2.0)])))
    monitor.reset()
    assert monitor.push(block)  # without a source that could be asked
