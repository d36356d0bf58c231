"""Features computed ahead by other processes, and thinned where the machine cannot keep up."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from monitor import Monitor, Population
from monitor.errors import MonitorError, UsageError
from monitor.events.run import GapEvent
from monitor.features.f0 import F0
from monitor.features.phones import Phones
from monitor.protocols import StreamInfo
from monitor.run.pace import (
    LATE_SECONDS,
    LoadShedding,
    PrefetchedFrames,
    Timed,
    prefetch_features,
    timed,
)
from monitor.sources import BaseSource
from monitor.sources.base import Chain
from monitor.sources.file import File
from monitor.stream.stream import Event
from monitor.types import Block, Gap, Track
from tests.contracts import babble, heard, voice
from tests.sounds import synthetic
from tests.stream.streams import RATE, reference, told


class Slow(F0):
    """Pitch, by a clock that goes on as it computes."""

    def __init__(self, now: list[float], cost: float, name: str) -> None:
        self._now, self._cost = now, cost
        self.spec = replace(F0.spec, name=name)
        super().__init__()

    def process(self, samples) -> Track:
        if self._frames * 0.01 >= self._skip * 0.01:
            self._now[0] += self._cost * samples.size / 8000
        return super().process(samples)


class Piling(BaseSource[Block | Gap]):
    """A live source: audio gathers while the listener is busy."""

    label, stream_info = "piling", StreamInfo(live=True)
    seconds: float | None = None

    def __init__(self, now: list[float], seconds: float) -> None:
        self._now, self._began, self._seconds = now, now[0], seconds
        self.given = 0.0
        self.most = 0.0

    @property
    def waiting_seconds(self) -> float:
        return max(0.0, self._now[0] - self._began - self.given)

    def behind_seconds(self, seconds: float) -> float:
        return max(0.0, self._now[0] - self._began - seconds)

    def stop(self) -> None:
        self._seconds = self.given

    def items(self) -> Iterator[Block | Gap]:
        while self.given < self._seconds:
            if self.waiting_seconds < 0.5:
                self._now[0] += 0.5
            self.most = max(self.most, self.waiting_seconds)
            self.given += 0.5
            yield Block(voice(0.5), RATE)


def run(
    costs: dict[str, float], seconds: float = 60.0, stall: float = 0.0
) -> tuple[list[Gap], Piling, list[Timed]]:
    """Hear it; after ten seconds the machine stands still for a while."""
    now = [0.0]
    parts = [Timed(Slow(now, cost, name), lambda: now[0]) for name, cost in costs.items()]
    source = Piling(now, seconds)
    gaps = []
    for item in LoadShedding(source, [(part,) for part in parts], lambda: now[0]):
        if isinstance(item, Gap):
            gaps.append(item)
            continue
        for part in parts:
            part.process(np.zeros(8000 // 2, np.float32))
        now[0] += stall if source.given == 10.0 else 0.0
    return gaps, source, parts


def test_a_machine_that_keeps_up_or_stood_still_once_thins_nothing():
    gaps, source, parts = run({"f0": 0.1, "phones": 0.6})
    assert gaps == []
    assert source.most <= 1.0
    assert [part.cost for part in parts] == pytest.approx([0.1, 0.6])
    for costs in ({"f0": 0.01}, {"f0": 0.01, "phones": 0.06}):
        gaps, source, _ = run(costs, stall=12.0)
        assert source.most > 11.0
        assert gaps == []
        assert source.waiting_seconds < 1.0  # it has caught up


def test_the_slowest_is_thinned_long_before_audio_is_dropped_and_then_the_next():
    gaps, source, _ = run({"f0": 0.1, "phones": 1.5})
    assert {gap.reason for gap in gaps} == {"thinned"}
    assert all(gap.detail.startswith("phones skips") for gap in gaps)
    assert LATE_SECONDS < source.most < 5.0
    # some is still heard: every feature in its turn
    assert 0 < sum(gap.lost_seconds or 0.0 for gap in gaps) < 0.8 * 60
    gaps, source, _ = run({"f0": 1.2, "phones": 3.0})  # where one does not help
    assert {gap.detail.split()[0] for gap in gaps} == {"f0", "phones"}
    assert gaps[0].detail.startswith("phones")
    assert source.most < 10.0


def test_thinning_leaves_out_just_those_frames():
    sound = voice(6.0, 8000)
    feature = Timed(F0())
    ticks = list(feature.process(sound[:8000]).ticks)
    assert not feature.is_shedding
    feature.shed(2.0)
    assert feature.is_shedding
    for second in range(1, 6):
        ticks += list(feature.process(sound[second * 8000 : (second + 1) * 8000]).ticks)
    whole = heard(F0(), [sound]).ticks
    assert ticks == [tick for tick in whole if not 100 < tick <= 300]
    assert not feature.is_shedding
    feature.shed(1.0)
    feature.reset()
    assert not feature.is_shedding


def test_phones_decoded_apart_are_the_same():
    sound = babble(5, pause_seconds=0.3, repeats=2)
    (phones,) = timed(["phones"])
    found, wanted = heard(phones, [sound]), heard(Phones(), [sound])
    assert found.values.size
    assert np.array_equal(found.values, wanted.values)
    assert phones.cost > 0


def test_a_monitor_computes_with_what_it_is_given():
    plain, other = Monitor(reference()), Monitor(reference())
    feature = Timed(F0())
    other.front_end.use([feature])
    block = Block(voice(4.0), RATE)
    pair = [told([*each.push(block), *each.finish()]) for each in (plain, other)]
    assert pair[0] == pair[1]
    assert feature.cost > 0
    wide = F0()
    wide.spec = replace(F0.spec, size=F0.spec.size + 1)
    with pytest.raises(UsageError, match="this feature"):
        other.front_end.use([Timed(wide)])


def test_a_feature_of_two_sides_is_thinned_on_both():
    now = [0.0]
    sides = [Timed(Slow(now, 0.9, "f0"), lambda: now[0]) for _ in range(2)]
    for item in LoadShedding(Piling(now, 30.0), [sides], lambda: now[0]):
        if isinstance(item, Gap):
            break
        for side in sides:
            side.process(np.zeros(4000, np.float32))
    assert all(side.is_shedding for side in sides)


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


def fresh(features: Sequence[str] = FEATURES) -> Monitor:
    return Monitor(Population.reference(), features, on_change="note")


def ahead(files: Sequence[File], monitor: Monitor, jobs: int = 2) -> list[Event]:
    with PrefetchedFrames(files, FEATURES, levels=True, skip=monitor.ticks, jobs=jobs) as source:
        found = list(monitor.events(source))
    assert not any(process.is_alive() for process in source._processes._processes)
    return found


@pytest.mark.slow
def test_every_event_is_the_same(recordings):
    for paths in (recordings, recordings[1:2]):  # of one the features are dealt out
        files = [File(path) for path in paths]
        before = list(fresh().events(Chain(files)))
        assert told(ahead(files, fresh()), "abc") == told(before, "abc")
        assert sum(isinstance(event, GapEvent) for event in before) == (1 if len(files) == 1 else 4)


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_stopped(recordings):
    files = [File(path) for path in recordings]
    first, again = fresh(), fresh()
    events = first.events(Chain(files))
    seen = [next(events) for _ in range(15)]
    again.restore(*first.state())
    rest = ahead(files, again)
    assert told([*seen, *rest], "abc") == told(fresh().events(Chain(files)), "abc")


@pytest.mark.slow
def test_a_process_that_dies_is_one_line(recordings):
    with PrefetchedFrames([File(recordings[1])], FEATURES, jobs=2) as source:
        source._processes._processes[0].kill()
        with pytest.raises(MonitorError, match="one of 2 processes ended"):
            list(source)


@pytest.mark.slow
def test_a_loop_counts_the_same_where_other_processes_compute_its_voice(shared, tmp_path):
    (file,) = (shared / "speech").glob("*/2086/149220.opus")
    sound = soundfile.read(file, frames=15 * RATE, dtype="float32")[0]
    path = tmp_path / "loop.wav"
    soundfile.write(path, np.tile(sound[10 * RATE :], 4), RATE)

    def own() -> Monitor:
        return Monitor(Population.reference(), ["f0", "voice"], "2086")

    source = prefetch_features(File(path), own(), jobs=2)  # the features are dealt out
    assert source is not None
    with source:
        assert told([*own().events(source)]) == told([*own().events(File(path))])
