"""A monitor knows enrolled recordings again, and chooses the model by what a source is made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from monitor import Monitor, Population
from monitor.errors import OverlapError, UsageError
from monitor.population.people import SourceNote
from monitor.sources import Chain, File, SideInputSource
from monitor.sources.registry import recording_hashes
from monitor.types import Block, Words
from tests.stream.streams import Listed, reference, simulated, voice_file, with_speakers


@pytest.fixture
def enrolled(tmp_path: Path) -> tuple[Path, Population]:
    """A recording of 4 s, and a population that was enrolled from its first two."""
    path = voice_file(tmp_path / "me.flac")
    note = SourceNote(path.name, "one", recording_hashes(path), 0.0, 2.0)
    return path, with_speakers(reference(), me=(note,))


def sessions(monitor: Monitor, source: object, **options: bool) -> set[str]:
    return {reading.session for reading in monitor.stream(source, **options)}  # type: ignore[arg-type]


def test_a_stream_of_what_was_enrolled_is_refused(enrolled):
    path, population = enrolled
    monitor = Monitor(population, watch="me")
    for source in (path, str(path), File(path), Chain([File(path)])):
        with pytest.raises(OverlapError, match="seconds 0 to 2 were enrolled as me"):
            list(monitor.stream(source))
    with pytest.raises(OverlapError, match="were enrolled as me"):
        list(Monitor(population, watch="me", session="cross").events(File(path)))
    assert sessions(monitor, path, allow_overlap=True) == {"same"}


def test_what_lies_beside_a_recording_hides_nothing(enrolled):
    path, population = enrolled
    words = Words(("yes",), np.array([5]), np.array([9]), np.array([15]))
    with pytest.raises(OverlapError):
        list(Monitor(population).stream(SideInputSource(File(path), words=words)))


def test_another_part_of_it_is_weighed_by_the_same_session_rank_model(enrolled, tmp_path):
    path, population = enrolled
    monitor = Monitor(population, watch="me")
    assert (monitor.session, monitor.attacker.rank_model.session) == ("cross", "cross")
    asked = Monitor(population, watch="me", session="same")
    expected = [r.record() for r in asked.stream(File(path, start_seconds=2.0))]
    found = [r.record() for r in monitor.stream(File(path, start_seconds=2.0))]
    assert found == expected
    assert (monitor.session, monitor.attacker.rank_model.session) == ("same", "same")
    monitor.reset()
    assert monitor.session == "cross"
    assert sessions(monitor, voice_file(tmp_path / "other.flac", 3.0)) == {"cross"}


def test_a_kind_of_session_that_was_asked_for_is_kept(enrolled):
    path, population = enrolled
    monitor = Monitor(population, session="cross")
    assert sessions(monitor, File(path, start_seconds=2.0)) == {"cross"}


def test_what_earlier_streams_brought_is_kept(enrolled):
    path, population = enrolled
    before = Monitor(population, watch="me")
    before.push(simulated(5.0))
    monitor = Monitor(population, watch="me")
    monitor.begin_with(before.totals, 0.25)
    first, *_ = monitor.stream(File(path, start_seconds=2.0))
    assert first.session == "same"
    assert monitor.totals.speech > before.totals.speech
    assert first.peak_bits is not None
    assert first.peak_bits >= 0.25


def test_a_stream_does_not_change_its_rank_model_on_the_way(enrolled):
    path, population = enrolled
    monitor = Monitor(population)
    monitor.push(simulated(2.0))
    with pytest.raises(
        UsageError, match=r"begun under the cross-session rank model.*session=\"same\""
    ):
        list(monitor.stream(File(path, start_seconds=2.0)))


def test_what_is_no_source_is_one_line():
    with pytest.raises(
        UsageError, match="a list is no Source: it lacks label, seconds, stream_info, "
    ):
        list(Monitor(reference()).stream([simulated(1.0)]))  # type: ignore[arg-type]


def test_after_a_reset_audio_may_follow_frames(tmp_path):
    monitor = Monitor(reference())
    frames = Listed([simulated(2.0)])
    assert [reading.seconds for reading in monitor.stream(frames)] == [1.0, 2.0]
    monitor.reset()
    path = voice_file(tmp_path / "talk.flac", 3.0)
    found = [reading.record() for reading in monitor.stream(path)]
    assert found == [reading.record() for reading in Monitor(reference()).stream(path)]
    monitor.reset()
    (block, *_) = [each for each in File(path) if isinstance(each, Block)]
    list(monitor.stream(Listed([simulated(2.0)])))
    monitor.reset()
    assert monitor.push(block)  # without a source that could be asked
