"""What is said of the recordings of a stream: whose alert, who is silent, who does not fit."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor import Monitor
from monitor.alerts import Threshold
from monitor.events.reading import Reading
from monitor.kinds import HISTOGRAM
from monitor.protocols import Provenance
from monitor.run import LogFile, Run, RunSettings
from monitor.sinks.jsonl import RunBuffer
from monitor.sources import Chain, File
from monitor.sources.frames import write_frames
from monitor.stream.accumulator import FeatureTotals
from monitor.stream.speaker_changes import (
    are_different_people,
    describe_criterion,
    score_likeness,
    select_cohort,
)
from monitor.types import Block, Frames, Track
from tests.records import as_records
from tests.stream.streams import (
    RATE,
    Listed,
    audio,
    readings,
    reference,
    run_through,
    sounds,
    two_features,
    voice_file,
)


def voice(seconds: float, lag: int, recording: int = 0, start: float = 0.0) -> Frames:
    """All speech, at a pitch around one lag."""
    size = round(100 * seconds)
    bins = np.random.default_rng(recording).normal(lag, 4, size).round().clip(0, 103)
    ticks = np.arange(1, size + 1) + round(100 * start)
    track = Track(ticks, bins.astype(np.intp))
    return Frames(np.ones(size, bool), {"f0": track}, recording=recording)


def silence(seconds: float, recording: int) -> Frames:
    nothing = Track(np.empty(0, np.intp), np.empty(0, np.intp))
    return Frames(np.zeros(round(100 * seconds), bool), {"f0": nothing}, recording=recording)


def end_of(items: list[Any], names: list[str], **options: Any) -> dict[str, Any]:
    kept = RunBuffer()
    run_through(Listed(items, names), Monitor(reference(), **options), sinks=[kept])
    return as_records(kept.events)[-1]


def test_recordings_without_speech_are_named():
    items = [silence(3, 0), voice(4, 40, 1, 3.0), silence(5, 2)]
    end = end_of(items, ["a", "b", "c"])
    assert end["recordings"] == ["a", "b", "c"]
    assert end["notices"] == ["a: no speech in it", "c: no speech in it"]
    assert end_of([voice(3, 40)], ["a"])["notices"] == []


def test_so_are_those_of_audio(tmp_path):
    import soundfile

    soundfile.write(tmp_path / "b.wav", np.zeros(2 * RATE), RATE)
    paths = [voice_file(tmp_path / "a.wav"), tmp_path / "b.wav", voice_file(tmp_path / "c.wav")]
    chain, kept = Chain([File(path) for path in paths]), RunBuffer()
    tally = run_through(chain, Monitor(reference()), sinks=[kept])
    assert tally.silent == ["b.wav"]
    assert "b.wav: no speech in it" in as_records(kept.events)[-1]["notices"]


def test_an_alert_says_in_which_recording_it_was_raised():
    """The first reading that ends in a recording is of it, the one at its end still is."""
    items = [voice(4, 40), voice(6, 40, 1, 4.0)]
    rules = [Threshold("sum_bits", -99.0, hold, 0.0) for hold in (0.0, 3.0, 4.0, 8.0)]
    kept = RunBuffer()
    run_through(Listed(items, ["a", "b"]), Monitor(reference()), sinks=[kept], rules=rules)
    alerts = [record for record in as_records(kept.events) if record["type"] == "alert"]
    assert [(alert["seconds"], alert["recording"]) for alert in alerts] == [
        (1.0, "a"), (4.0, "a"), (5.0, "b"), (9.0, "b")
    ]  # fmt: skip


@pytest.mark.slow
def test_two_people_are_told_and_one_is_not():
    one = [voice(60, 40), voice(60, 40, 1, 60.0), voice(60, 40, 2, 120.0)]
    assert end_of(one, ["a", "b", "c"])["notices"] == []
    two = [voice(60, 40), voice(60, 75, 1, 60.0), voice(60, 40, 2, 120.0)]
    (notice,) = end_of(two, ["a", "b", "c"])["notices"]
    assert notice == (
        "b: sounds like another person than what was heard before it, judged by f0, which misses "
        "most of the same sex"
    )
    for action in ("note", "ignore"):
        assert len(end_of(two, ["a", "b", "c"], on_change=action)["notices"]) == 1
    for action in ("reset", "split"):  # nothing adds up there
        assert end_of(two, ["a", "b", "c"], on_change=action)["notices"] == []


def test_a_few_seconds_are_not_judged():
    assert end_of([voice(60, 40), voice(15, 75, 1, 60.0)], ["a", "b"])["notices"] == []


def test_features_that_the_shipped_readers_do_not_have_judge_nobody():
    assert describe_criterion(["timbre", "phones", "f0"]).endswith(
        "which misses many of the same sex"
    )
    assert describe_criterion(["f0", "phones", "voice"]).startswith("voice, which misses many")
    ones = FeatureTotals(100, {"f0": np.ones(10, int)}, {"f0": 10}, {"f0": 10})
    for name in ("f0", "timbre"):
        assert not are_different_people({name: two_features().specs["f0"]}, ones, ones)


@pytest.mark.slow
@pytest.mark.parametrize("step", [1000, 4000, 50_000])
def test_any_cutting_says_the_same(step):
    samples = sounds(30.0)
    items: list[Block] = []
    for recording in range(2):
        items += audio(samples, range(step, samples.size, step), recording=recording)
    monitor = Monitor(reference(), on_change="note")
    found = [event for event in monitor.events(Listed(items)) if isinstance(event, Reading)]
    assert [reading.recording for reading in found] == [0] * 30 + [1] * 30
    assert monitor.recordings.silent == []


@pytest.mark.slow
def test_resumed_the_same_is_said(tmp_path):
    """Stopped in each of the recordings, by turns."""
    items = [voice(30, 40), silence(5, 1), voice(30, 75, 2, 35.0), voice(30, 40, 3, 65.0)]
    names = ["a", "b", "c", "d"]
    whole = end_of(items, names, on_change="note")
    assert len(whole["notices"]) == 2
    for stop in (10, 33, 36, 50, 70, 94):
        path, clock, kept = tmp_path / f"{stop}.jsonl", count().__next__, RunBuffer()

        def source() -> Listed:
            return Listed(items, names, (Provenance("calls"),))

        with Run(
            source(),
            Monitor(reference(), on_change="note"),
            settings=RunSettings(clock=clock),
            log=path,
        ) as run:
            for record in (event.record() for event in run):
                if record["type"] == "reading" and record["seconds"] > stop:
                    break  # the checkpoint is of the reading before
        again, log = Monitor(reference(), on_change="note"), LogFile(path, resume=True)
        run_through(source(), again, sinks=[kept], log=log)
        assert as_records(kept.events)[-1]["notices"] == whole["notices"], stop
        assert readings(as_records(kept.events))[0]["seconds"] == stop + 1


def test_alike_is_symmetric_and_knows_the_same_voice():
    like = [select_cohort(reference(), "f0", 60.0)] * 2
    one, same, other = (
        np.bincount(voice(60, lag, seed).tracks["f0"].values, minlength=104)
        for lag, seed in ((40, 0), (40, 1), (75, 2))
    )
    likeness = score_likeness(HISTOGRAM, one, same, *like)
    assert likeness == score_likeness(HISTOGRAM, same, one, *like)
    assert likeness > 1.2 > score_likeness(HISTOGRAM, one, other, *like)


def test_frames_on_disk_are_told_apart_too(tmp_path):
    from monitor.sources import FramesFile

    sources = []
    for name, lag in (("a", 40), ("b", 75)):
        made = voice(40, lag)
        path: Path = tmp_path / f"{name}.npz"
        write_frames(path, made.speech, made.tracks, {"f0": 104}, {"f0": 0.01})
        sources.append(FramesFile(path))
    chain, kept = Chain(sources), RunBuffer()
    run_through(chain, Monitor(reference()), sinks=[kept])
    assert [notice.split(":")[0] for notice in as_records(kept.events)[-1]["notices"]] == ["b.npz"]
