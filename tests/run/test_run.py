"""A whole run: what is refused, opened, written, saved and closed, in which order."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor, MonitorSettings
from monitor.alerts import Threshold
from monitor.events import Event
from monitor.events.schema import SCHEMA
from monitor.protocols import Provenance, Source
from monitor.run import LogFile, Run, RunSettings
from monitor.sinks.jsonl import JsonLines, RunBuffer
from monitor.sources import Chain, File, FramesFile
from monitor.sources.frames import write_frames
from monitor.stream.checkpoint import Checkpoint, state_path
from monitor.types import Frames, Gap
from tests.records import as_records, read_records
from tests.stream.streams import (
    RATE,
    WATCHED,
    Listed,
    audio,
    frames,
    reference,
    run_through,
    simulated,
    sounds,
    voice_file,
)

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
LABELS = ("a.flac", "b.flac")
HEARD = (Provenance("a.flac", ("a",)), Provenance("b.flac", ("b",)))


def items(step: int = 4000) -> list[Any]:
    """Audio with everything that can happen to it."""
    samples = sounds(3.3).copy()
    samples[[999, 40_000]] = np.nan
    first: list[Any] = audio(samples, range(step, samples.size, step))
    second = sounds(2.0, 8000)
    first += [Gap("broken file", 0.5, 0, "a.flac: broke")]
    first += audio(second, range(step, second.size, step), rate=8000, recording=1)
    return [*first, Gap("broken file", None, 1, "b.flac: broke")]


def fresh(**options: Any) -> Monitor:
    settings = MonitorSettings(channel=options.pop("channel", None))
    options = {"step_seconds": 0.5, "settings": settings, **options}
    return Monitor(reference(), watch=WATCHED, **options)


def listed(stream: Iterable[Any]) -> Listed:
    """A source of two recordings that would be known again."""
    return Listed(stream, LABELS, HEARD)


def rules() -> list[Threshold]:
    return [Threshold("bits", -4.5, 0.5, 0.1), Threshold("f0.gain_bits", 0.5, 0.0)]


def lines(path: Path) -> list[dict[str, Any]]:
    """The records of a run, but for the times of day."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in record.items() if k != "time"} for record in found]


def test_a_run_has_a_beginning_an_end_and_valid_records(tmp_path):
    kept, path = RunBuffer(), tmp_path / "run.jsonl"
    totals = run_through(listed(items()), fresh(), sinks=[kept], rules=rules(), log=path)
    records = read_records(tmp_path / "run.jsonl")
    for record in records:
        VALIDATOR.validate(record)
    kinds = [record["type"] for record in records]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert set(kinds[1:-1]) == {"reading", "gap", "alert", "notice"}
    assert kinds.count("start") == kinds.count("end") == 1
    assert [record["type"] for record in as_records(kept.events)] == kinds
    seconds = [record["seconds"] for record in records[1:]]
    assert seconds == sorted(seconds)
    end = records[-1]
    assert end["readings"] == kinds.count("reading") == totals.readings == 11
    assert end["gaps"] == kinds.count("gap") == totals.gaps == 4
    assert end["lost_seconds"] == pytest.approx(0.5 + 2 / RATE, abs=1e-5)
    raised = [r for r in records if r["type"] == "alert" and r["state"] == "raised"]
    assert end["alerts"] == len(raised) == totals.alerts > 0
    assert end["complete"] is False
    last = next(r for r in reversed(records) if r["type"] == "reading")
    for key in ("seconds", "speech", "bits", "peak_bits", "top"):
        assert end[key] == last[key]


@pytest.mark.parametrize("watch", [None, WATCHED])
def test_records_of_files_are_valid(tmp_path, watch):
    chain = Chain([File(voice_file(tmp_path / "a.flac")), File(voice_file(tmp_path / "b.wav"))])
    kept = RunBuffer()
    totals = run_through(chain, Monitor(reference(), watch=watch), sinks=[kept])
    made = simulated(7.5)
    write_frames(tmp_path / "c.npz", made.speech, made.tracks, {"f0": 104}, {"f0": 0.01})
    source = FramesFile(tmp_path / "c.npz")
    run_through(source, Monitor(reference(), watch=watch), sinks=[kept])
    for record in as_records(kept.events):
        VALIDATOR.validate(json.loads(json.dumps(record)))
    assert as_records(kept.events)[0]["recordings"] == ["a.flac", "b.wav"]
    assert (totals.gaps, totals.readings) == (0, 8)
    assert [r["complete"] for r in as_records(kept.events) if r["type"] == "end"] == [True, True]


def test_a_broken_file_is_a_gap_and_the_run_goes_on(tmp_path):
    path = voice_file(tmp_path / "a.flac", subtype="PCM_16")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    chain = Chain([File(path), File(voice_file(tmp_path / "b.flac"))])
    kept = RunBuffer()
    totals = run_through(chain, fresh(), sinks=[kept])
    (gap,) = [record for record in as_records(kept.events) if record["type"] == "gap"]
    assert (gap["recording"], gap["reason"]) == ("a.flac", "broken file")
    assert totals.lost_seconds == gap["lost_seconds"] > 1
    assert as_records(kept.events)[-1]["complete"] is False
    assert as_records(kept.events)[-1]["seconds"] > 4


def test_alerts_follow_the_reading_they_are_of():
    kept = RunBuffer()
    run_through(listed([simulated(20.0)]), fresh(), sinks=[kept], rules=rules())
    for before, record in itertools.pairwise(as_records(kept.events)):
        if record["type"] == "alert":
            assert before["type"] in ("reading", "alert")
            assert before["seconds"] == record["seconds"]


def test_a_record_is_in_the_log_before_anybody_sees_it(tmp_path):
    path = tmp_path / "run.jsonl"

    class Seeing(RunBuffer):
        def write(self, event: Event) -> None:
            written = read_records(path)[-1]
            now = event.record()
            assert (written["type"], written.get("seconds")) == (now["type"], now.get("seconds"))
            super().write(event)

    seeing = Seeing()
    run_through(listed([simulated(2.0)]), fresh(), sinks=[seeing], log=path)
    assert len(as_records(seeing.events)) == 6


def ticking(seconds: float) -> Callable[[], float]:
    """A clock that goes on so far at every look."""
    return itertools.count(step=seconds).__next__


def test_checkpoints_come_once_a_second_and_only_of_what_is_on_disk(tmp_path, monkeypatch):
    path = tmp_path / "run.jsonl"
    notes: list[tuple[str, int]] = []
    flush, save, remove = JsonLines.flush, Checkpoint.save, Checkpoint.remove

    def flushed(log: JsonLines) -> None:
        notes.append(("flush", log.offset))
        flush(log)

    def saved(checkpoint: Checkpoint, *parts: Any) -> None:
        notes.append(("save", parts[-1]))
        save(checkpoint, *parts)

    def removed(checkpoint: Checkpoint) -> None:
        notes.append(("remove", 0))
        remove(checkpoint)

    monkeypatch.setattr(JsonLines, "flush", flushed)
    monkeypatch.setattr(Checkpoint, "save", saved)
    monkeypatch.setattr(Checkpoint, "remove", removed)
    now = [0.0]
    made = iter(frames(simulated(10.0), range(50, 1000, 50)))

    def paced() -> Iterator[Frames]:
        for each in made:
            now[0] += 0.3
            yield each

    run_through(listed(paced()), fresh(), log=path, settings=RunSettings(clock=lambda: now[0]))
    assert notes[0] == notes[-1] == ("remove", 0)  # of an earlier run, and its own
    *pairs, last = notes[1:-1]
    # twenty readings at 0.3 s: the first, then every fourth
    assert [what for what, _ in pairs] == ["flush", "save"] * 5
    assert all(a[1] == b[1] for a, b in zip(pairs[::2], pairs[1::2], strict=True))
    assert last == ("flush", path.stat().st_size)
    assert not state_path(path).exists()


def test_a_finished_run_leaves_no_checkpoint_and_a_broken_one_does(tmp_path):
    path = tmp_path / "run.jsonl"

    def broken() -> Iterator[Any]:
        yield from frames(simulated(3.0), [])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Run(listed(broken()), fresh(), log=path) as run:
        run.to_end()
    assert run.resumable
    assert state_path(path).exists()
    assert read_records(path)[-1]["type"] != "end"


class KilledError(Exception):
    """The process is gone."""


class Dying(RunBuffer):
    """A sink in which the process dies at a certain record."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._left = at

    def write(self, event: Event) -> None:  # noqa: ARG002
        self._left -= 1
        if self._left < 0:
            raise KilledError


def go(path: Path, source: Source, kill: int | None, seconds: float) -> None:
    """Start or resume a run as `monitor replay` does, and perhaps die at a record."""
    begun = state_path(path).exists()
    run_through(
        source,
        fresh(),
        sinks=[RunBuffer()] if kill is None else [Dying(kill)],
        rules=rules(),
        log=LogFile(path, replace=not begun, resume=begun),
        settings=RunSettings(clock=ticking(seconds)),
    )


@pytest.mark.slow
@settings(max_examples=20)
@given(
    kills=st.lists(st.integers(2, 25), min_size=1, max_size=3),
    seconds=st.sampled_from([0.2, 0.5, 2.0]),
    steps=st.lists(st.sampled_from([160, 4000, 100_000]), min_size=4, max_size=4),
)
def test_killed_anywhere_and_resumed_the_file_is_the_same(tmp_path_factory, kills, seconds, steps):
    folder = tmp_path_factory.mktemp("run")
    go(folder / "whole.jsonl", listed(items()), None, seconds)
    path = folder / "run.jsonl"
    for kill, step in zip(kills, steps, strict=False):
        try:
            go(path, listed(items(step)), kill, seconds)
        except KilledError:
            continue
        break
    else:
        go(path, listed(items(steps[-1])), None, seconds)
    assert lines(path) == lines(folder / "whole.jsonl")
    assert sorted(each.name for each in folder.iterdir()) == ["run.jsonl", "whole.jsonl"]


def test_a_resumed_run_shows_people_its_start_but_writes_none(tmp_path):
    path = tmp_path / "run.jsonl"
    with pytest.raises(KilledError):
        go(path, listed(items()), 12, 2.0)
    kept, log = RunBuffer(), LogFile(path, resume=True)
    with Run(listed(items()), fresh(), sinks=[kept], rules=rules(), log=log) as run:
        before = run.totals.readings
        assert before > 2
        run.to_end()
    records = read_records(path)
    assert [record["type"] for record in records].count("start") == 1
    assert as_records(kept.events)[0]["type"] == "start"
    assert len([r for r in as_records(kept.events) if r["type"] == "reading"]) == 11 - before
    assert as_records(kept.events)[-1] == {**records[-1], **as_records(kept.events)[-1]}
    assert as_records(kept.events)[-1]["readings"] == 11


def test_a_run_that_is_iterated_again_goes_on_and_counts_nothing_twice(tmp_path):
    path = tmp_path / "run.jsonl"
    with Run(listed(items()), fresh(), log=path) as run:
        first = next(iter(run))
        rest = list(run)
        assert [*run, *run] == []
        assert run.to_end().readings == len([e for e in rest if e.type == "reading"])
    assert [first.type, rest[-1].type] == ["start", "end"]
    assert len(read_records(path)) == 1 + len(rest)
