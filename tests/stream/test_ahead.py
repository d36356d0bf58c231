"""Recordings heard by other processes give the very events that hearing them here gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from monitor.errors import MonitorError
from monitor.events.run import GapEvent
from monitor.population.population import Population
from monitor.run.pace import PrefetchedFrames
from monitor.sources.base import Chain
from monitor.sources.file import File
from monitor.stream.monitor import Event, Monitor
from monitor.stream.records import placed
from tests.sounds import synthetic

pytestmark = pytest.mark.slow

FEATURES = ("f0", "phones")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory) -> list[Path]:
    """Lengths off every grid, rates, channels, no numbers, one cut off."""
    folder = tmp_path_factory.mktemp("heard")
    broken = soxr.resample(synthetic(7.013), 16_000, 44_100)
    broken[60_000:60_005] = np.nan
    broken[-20:] = np.inf
    soundfile.write(folder / "a.wav", broken, 44_100, "FLOAT")
    soundfile.write(folder / "b.flac", np.stack([synthetic(20.0)] * 2, axis=1), 16_000)
    whole = (folder / "b.flac").read_bytes()
    (folder / "b.flac").write_bytes(whole[: len(whole) * 3 // 4])
    last = soxr.resample(synthetic(2.5), 16_000, 8000)
    last[[9_000, 11_000]] = np.nan
    soundfile.write(folder / "c.wav", last, 8000, "FLOAT")
    return [folder / name for name in ("a.wav", "b.flac", "c.wav")]


def monitor(features: Sequence[str] = FEATURES) -> Monitor:
    return Monitor(Population.reference(), features, on_change="note")


def told(events: Sequence[Event]) -> list[object]:
    return [placed(event, ["a", "b", "c"]).record() for event in events]


def here(files: Sequence[File]) -> list[Event]:
    return list(monitor().events(Chain(files)))


def ahead(files: Sequence[File], jobs: int) -> list[Event]:
    mine = monitor()
    with PrefetchedFrames(files, FEATURES, levels=True, jobs=jobs) as source:
        return list(mine.events(source))


def test_every_event_is_the_same(recordings):
    files = [File(path) for path in recordings]
    before, after = here(files), ahead(files, 2)
    assert told(after) == told(before)
    assert sum(isinstance(event, GapEvent) for event in before) == 4


def test_the_features_of_one_recording_are_dealt_out(recordings):
    files = [File(recordings[1])]
    assert told(ahead(files, 2)) == told(here(files))


def test_a_run_goes_on_where_it_was_stopped(recordings):
    files = [File(path) for path in recordings]
    first = monitor()
    events = first.events(Chain(files))
    seen = [next(events) for _ in range(15)]
    again = monitor()
    again.restore(*first.state())
    with PrefetchedFrames(files, FEATURES, levels=True, skip=again.ticks, jobs=2) as source:
        rest = list(again.events(source))
    assert told([*seen, *rest]) == told(here(files))


def test_a_process_that_dies_is_one_line(recordings):
    with PrefetchedFrames([File(recordings[1])], FEATURES, jobs=2) as source:
        source._processes._processes[0].kill()
        with pytest.raises(MonitorError, match="one of 2 processes has ended"):
            list(source)


def test_no_process_is_left(recordings):
    with PrefetchedFrames([File(path) for path in recordings], FEATURES, jobs=2) as source:
        next(iter(source))
    assert not any(process.is_alive() for process in source._processes._processes)
