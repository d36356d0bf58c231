"""A whole run: what is refused, opened, written, saved, stopped and closed, in which order."""

from __future__ import annotations

import itertools
import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor, MonitorSettings, Population, Run
from monitor.alerts import Conformal, EarlyWarning, Threshold
from monitor.alerts.actions.receivers import Command
from monitor.alerts.actions.registry import BackgroundDelivery
from monitor.errors import OverlapError, SourceError, StoreError, UsageError
from monitor.events import Event
from monitor.events.reading import Reading
from monitor.events.run import Alert
from monitor.events.schema import SCHEMA
from monitor.ledger import Ledger
from monitor.population import demo_frames
from monitor.population.false_alarms import FalseAlarms
from monitor.population.people import SourceNote
from monitor.protocols import LiveSource, Provenance, Source
from monitor.run import LedgerFile, LogFile, RunSettings
from monitor.sinks.buffer import RunBuffer
from monitor.sinks.jsonl import JsonLines
from monitor.sources import AudioQueue, Chain, File, Paced, Samples
from monitor.sources.registry import recording_hashes
from monitor.stream.checkpoint import Checkpoint, state_path
from monitor.types import Frames, Gap
from tests.records import as_records, read_records
from tests.sounds import synthetic
from tests.stream.streams import (
    RATE,
    WATCHED,
    Listed,
    audio,
    frames,
    heard_by_both,
    reference,
    run_through,
    simulated,
    sounds,
    voice_file,
    with_evidence,
    with_speakers,
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
    assert [record["type"] for record in as_records(kept.events)] == kinds
    seconds = [record["seconds"] for record in records[1:]]
    assert seconds == sorted(seconds)
    for before, record in itertools.pairwise(records):
        if record["type"] == "alert":  # follows the reading that it is of
            assert before["type"] in ("reading", "alert")
            assert before["seconds"] == record["seconds"]
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
    path, saves, save = tmp_path / "run.jsonl", [], Checkpoint.save

    def saved(checkpoint: Checkpoint, *parts: Any) -> None:
        saves.append((now[0], parts[-1], path.stat().st_size))
        save(checkpoint, *parts)

    monkeypatch.setattr(Checkpoint, "save", saved)
    now = [0.0]
    made = iter(frames(simulated(10.0), range(50, 1000, 50)))

    def paced() -> Iterator[Frames]:
        for each in made:
            now[0] += 0.3
            yield each

    run_through(listed(paced()), fresh(), log=path, settings=RunSettings(clock=lambda: now[0]))
    # twenty readings at 0.3 s: the first, then every fourth
    assert [seconds for seconds, *_ in saves] == pytest.approx([0.3, 1.5, 2.7, 3.9, 5.1])
    assert all(offset == on_disk > 0 for _, offset, on_disk in saves)
    assert not state_path(path).exists()


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
    """Begin or resume a run as `monitor replay --resume` does, and perhaps die at a record."""
    run_through(
        source,
        fresh(),
        sinks=[RunBuffer()] if kill is None else [Dying(kill)],
        rules=rules(),
        log=LogFile(path, resume=True),
        settings=RunSettings(clock=ticking(seconds)),
    )


@pytest.mark.slow
@settings(max_examples=20)
@given(
    kills=st.lists(st.integers(0, 25), min_size=1, max_size=3),
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


def test_a_run_begun_anew_forgets_the_checkpoint_of_the_one_before(tmp_path):
    path = tmp_path / "run.jsonl"
    with pytest.raises(KilledError):
        go(path, listed(items()), 12, 2.0)
    assert state_path(path).exists()
    anew = LogFile(path, replace=True)
    with pytest.raises(KilledError):
        run_through(listed(items()), fresh(), sinks=[Dying(0)], log=anew)
    assert not state_path(path).exists()


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


def test_a_rule_on_figures_that_are_withheld_is_refused():
    """The template of the watched speaker is shorter than the length that was asked for."""
    whole = with_evidence()
    features = {
        name: replace(templates, slices=templates.slices[:11])
        for name, templates in whole.features.items()
    }
    offsets = np.array([0, 2, 4, 6, 8, 10, 11])
    short = Population(
        whole.speakers, offsets, features, whole.rank_models, cohort=whole.cohort
    )  # fmt: skip

    def heard(rule: str, *, allow: bool = False) -> Run:
        settings = MonitorSettings(template_seconds=10)
        return Run(
            Listed([heard_by_both()]),
            Monitor(short, watch="s5", settings=settings),
            rules=[Threshold.parse(rule)],
            settings=RunSettings(allow_idle_alerts=allow),
        )

    for field in ("bits", "closed_set_bits_low", "f0.rank_bits", "sum_bits"):
        with (
            pytest.raises(UsageError, match=r"never be raised: template_mismatch.*RunSettings\("),
            heard(f"{field}>1"),
        ):
            pass
    with heard("bits>1 for 0 s after 0 s", allow=True) as run:
        run.to_end()
    assert run.totals.undecided == ["alert bits>1: not decided, no reading has bits"]
    with heard("gain_bits>0.1 for 0 s after 0 s") as run:  # what an attacker would believe
        run.to_end()
    assert not run.totals.undecided


def demo(**options) -> Run:
    return Run(demo_frames(), Monitor(reference(), step_seconds=100), **options)


def test_its_phases():
    run = demo()
    phases = [run.phase]
    for wrong in (lambda: next(iter(run)), run.to_end, run.stop):
        with pytest.raises(UsageError, match="opened by a with statement"):
            wrong()
    with run:
        phases.append(run.phase)
        next(iter(run))
        phases.append(run.phase)
        run.to_end()
        phases.append(run.phase)
        with pytest.raises(UsageError, match="once"):
            run.__enter__()
        assert list(run) == []  # iterated again it counts nothing twice
    assert [*phases, run.phase] == ["made", "opened", "running", "ended", "closed"]
    for wrong in (lambda: next(iter(run)), run.to_end):
        with pytest.raises(UsageError, match="closed: make another"):
            wrong()
    with pytest.raises(UsageError, match="once"), run:
        pass
    assert run.totals.readings == 6
    run.stop()  # there is nothing left to stop
    run.close()
    with demo() as run:
        records = iter(run)
        next(records)
    with pytest.raises(UsageError, match="closed"):
        next(records)


def test_a_run_needs_a_monitor_that_has_heard_nothing():
    used = fresh()
    list(used.stream(demo_frames()))
    with pytest.raises(UsageError, match="already has a stream"), Run(demo_frames(), used):
        pass
    used.reset()
    with Run(demo_frames(), used) as run:
        assert run.to_end().readings == 1200


class Slow:
    """A sink that lets others go on in the middle of a record."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def write(self, _record) -> None:
        self.begun.set()
        self.go_on.wait(10)

    def close(self) -> None:
        pass


def test_two_threads_do_not_iterate_one_run():
    slow = Slow()
    with demo(sinks=[slow]) as run:
        thread = threading.Thread(target=run.to_end)
        thread.start()
        slow.begun.wait(10)
        with pytest.raises(UsageError, match="another thread"):
            next(iter(run))
        slow.go_on.set()
        thread.join()
        assert run.phase == "ended"
    assert run.totals.readings == 6


def test_runs_in_many_threads_say_what_one_says_alone():
    def heard(_: int) -> list[Any]:
        with demo() as run:
            return [event.record() for event in run if isinstance(event, Reading)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(heard, range(4))) == 4 * [heard(0)]


def test_a_run_is_stopped_by_another_thread_or_an_alert():
    with Run(Listed(frames(simulated(20.0), range(100, 2000, 100))), watching()) as run:
        for event in run:
            if isinstance(event, Reading) and event.seconds == 3.0:
                thread = threading.Thread(target=run.stop)
                thread.start()
                thread.join()
    end = event.record()
    assert (end["type"], end["seconds"], end["complete"]) == ("end", 3.0, True)
    assert "lag" not in end
    assert run.totals.readings == 3
    rules, settings = [Threshold("sum_bits", -99.0, 3.0)], RunSettings(until=lambda _: True)
    with Run(Listed([simulated(20.0)]), watching(), settings=settings, rules=rules) as run:
        records = [event.record() for event in run]
    assert [record["type"] for record in records[-3:]] == ["reading", "alert", "end"]
    assert records[-1]["stopped"] == records[-2]["rule"]


TALK = (Provenance("talk", ("a",)),)


def watching(**options: Any) -> Monitor:
    return Monitor(reference(), watch=WATCHED, **options)


class Noted(Listed):
    """A source that says when it is opened, heard and closed."""

    def __init__(self, notes: list[str], stream: list[Frames]) -> None:
        super().__init__(stream, provenance=TALK)
        self._notes = notes

    def __enter__(self) -> Noted:
        self._notes.append("source opened")
        return self

    def __iter__(self) -> Iterator[Any]:
        self._notes.append("source heard")
        return super().__iter__()

    def close(self) -> None:
        self._notes.append("source closed")


class NotedAction:
    """An action, or a sink, that says what is done with it."""

    def __init__(self, notes: list[str], name: str, fails: str = "") -> None:
        self._notes, self._name, self._fails = notes, name, fails
        notes.append(f"{name} made")

    def write(self, event: Event) -> None:
        if event.type in ("start", "end"):
            self._notes.append(f"{self._name} {event.type}")

    def drain(self) -> list[str]:
        self._notes.append(f"{self._name} settled")
        return [self._fails] if self._fails else []

    def close(self) -> None:
        self._notes.append(f"{self._name} closed")


def test_the_order_in_which_all_is_opened_and_closed(tmp_path, monkeypatch):
    notes: list[str] = []
    closed = JsonLines.close

    def close(log: JsonLines) -> None:
        notes.append("log closed")
        closed(log)

    monkeypatch.setattr(JsonLines, "close", close)

    def source() -> Source:
        notes.append("source made")
        assert (tmp_path / "run.jsonl").exists()  # locked, and empty
        return Noted(notes, frames(simulated(2.0)))

    def monitor(opened: Source) -> Monitor:
        assert isinstance(opened, Noted)
        notes.append("monitor made")
        return watching()

    def rules(_: Monitor) -> list[Threshold]:
        notes.append("rules made")
        return []

    with Run(
        source,
        monitor,
        rules=rules,
        actions=(NotedAction(notes, "action", "it rained") for _ in range(1)),
        sinks=(NotedAction(notes, "page") for _ in range(1)),
        log=tmp_path / "run.jsonl",
        ledger=tmp_path / "me.db",
    ) as run:
        run.sinks.append(NotedAction(notes, "view"))
        assert (tmp_path / "run.jsonl").stat().st_size == 0
        assert run.start.carried.sessions == 0
        run.to_end()
    assert notes == [
        *("action made", "page made", "source made", "monitor made", "source opened"),
        *("rules made", "view made", "page start", "view start", "action start", "source heard"),
        *("action settled", "page end", "view end", "action end"),
        *("view closed", "page closed", "source closed", "action closed", "log closed"),
    ]
    assert run.totals.failures == ["it rained"]
    assert read_records(tmp_path / "run.jsonl")[-1]["failures"] == ["it rained"]


def refusals(folder: Path) -> list[tuple[dict[str, Any], type[Exception], str]]:
    (folder / "diary.txt").write_text("dear diary\n")
    (folder / "foreign.db").write_bytes(b"no database at all" * 99)
    done, unfinished = folder / "done.jsonl", folder / "unfinished.jsonl"
    run_through(Noted([], [simulated(2.0)]), watching(), log=done)
    with Run(Noted([], frames(simulated(4.0), [200])), watching(), log=unfinished) as run:
        next(event for event in run if getattr(event, "seconds", 0) >= 2)  # a checkpoint is there
    over = LogFile(folder / "diary.txt", True, False, [folder / "diary.txt"])

    def resetting(_: Any) -> Monitor:
        return Monitor(reference(), watch=WATCHED, on_change="reset")

    class Bare:
        label, stream_info, seconds = "bare", None, None

        def __iter__(self):
            return iter(())

    lacks = (
        "a Bare is not a Source: it lacks labels, .*, __enter__ .*monitor.sources.BaseSource does"
    )
    return [
        ({"log": folder / "diary.txt"}, UsageError, "holds something else"),
        ({"log": folder / "no" / "run.jsonl"}, StoreError, "cannot write"),
        ({"log": done}, UsageError, r"overwrite it \(LogFile\(path, replace=True\)\)"),
        ({"log": unfinished}, UsageError, r"continue it \(LogFile\(path, resume=True\)\)"),
        ({"log": LogFile("-", resume=True)}, UsageError, "resume=True needs the file of the inter"),
        ({"log": LogFile(done, replace=True, resume=True)}, UsageError, "replace=True"),
        ({"log": over}, UsageError, "is read by this run"),
        ({"log": LogFile(done, resume=True)}, StoreError, "resume=True"),
        ({"source": folder / "no.wav"}, SourceError, "cannot open no.wav"),
        ({"source": Bare()}, UsageError, lacks),
        ({"source": Bare}, UsageError, lacks),
        ({"rules": [Threshold("gain_bits", 99)]}, UsageError, "can never be raised"),
        ({"rules": [Threshold("style.gain_bits", 3)]}, UsageError, "does not have"),
        ({"rules": [Threshold("among.1e3.bits", 1)]}, UsageError, "add among=1000"),
        ({"ledger": folder / "foreign.db"}, StoreError, "is not a ledger"),
        ({"ledger": LedgerFile(folder / "no" / "me.db")}, StoreError, "cannot be opened"),
        (
            {"monitor": lambda _: Monitor(reference()), "ledger": folder / "x"},
            UsageError,
            r"needs a watched speaker.*watch=",
        ),
        ({"monitor": resetting, "ledger": folder / "x"}, UsageError, 'on_change="note"'),
    ]


def test_nothing_is_written_before_all_of_it_fits_and_refusals_speak_python(tmp_path):
    for options, error, words in refusals(tmp_path):
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        notes: list[str] = []
        given: dict[str, Any] = {
            "source": lambda: Noted([], []),
            "monitor": lambda _: watching(),
            "log": tmp_path / "run.jsonl",
            "actions": [NotedAction(notes, "action")],
            **options,
        }
        with pytest.raises(error, match=words) as caught:
            Run(**given).__enter__()
        assert " --" not in str(caught.value)
        assert "(--" not in str(caught.value)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before, options
        assert notes[1:] in ([], ["action closed"]), "what was opened is closed, nothing was done"


def test_a_run_that_was_left_is_unfinished_and_goes_on(tmp_path):
    path = tmp_path / "run.jsonl"

    def source() -> Listed:
        return Listed([simulated(20.0)], provenance=TALK)

    with Run(source(), watching(), log=path) as run:
        for record in (event.record() for event in run):
            if record["type"] == "reading" and record["seconds"] == 5.0:
                break
        assert run.resumable
    assert read_records(path)[-1]["seconds"] == 5.0
    with pytest.raises(UsageError, match="holds an unfinished run: continue it"):
        Run(source(), watching(), log=path).__enter__()
    other = Listed([simulated(20.0)], provenance=(Provenance("talk", ("b",)),))
    with pytest.raises(StoreError, match="belongs to another run \\(different: recordings\\)"):
        Run(other, watching(), log=LogFile(path, resume=True)).__enter__()
    with pytest.raises(StoreError, match="belongs to another run \\(different: step\\)"):
        Run(source(), watching(step_seconds=2), log=LogFile(path, resume=True)).__enter__()
    totals = run_through(source(), watching(), log=LogFile(path, resume=True))
    assert totals.readings == 20
    assert [r["seconds"] for r in read_records(path) if r["type"] == "reading"] == list(
        range(1, 21)
    )
    assert not state_path(path).exists()


def test_what_nobody_can_hear_again_is_not_resumed(tmp_path):
    path = tmp_path / "run.jsonl"
    with Run(Listed([simulated(20.0)]), watching(), log=path) as run:
        for record in (event.record() for event in run):
            if record["type"] == "reading":
                break
        assert not run.resumable
    assert not state_path(path).exists()
    with pytest.raises(UsageError, match=r"listed.*resume=True"):
        Run(Listed([]), watching(), log=LogFile(path, resume=True)).__enter__()


def test_a_live_source_is_stopped_and_says_its_lag():
    queue = AudioQueue(RATE, label="call")
    sound = synthetic(4.0)
    for at in range(0, len(sound), 160):
        queue.put(sound[at : at + 160])
    assert isinstance(queue, LiveSource)
    with Run(queue, watching()) as run:
        records = []
        for record in (event.record() for event in run):
            records.append(record)
            if record["type"] == "reading":
                run.stop()  # after what was heard so far
    assert records[0]["recordings"] == ["call"]
    readings = [record for record in records if record["type"] == "reading"]
    assert len(readings) == 4
    assert all(record["lag"] >= 0 for record in readings)
    assert (records[-1]["type"], records[-1]["stopped"]) == ("end", None)


def test_a_paced_source_is_known_by_what_it_paces(tmp_path):
    soundfile.write(tmp_path / "a.wav", synthetic(3.0), RATE)
    paced = Paced(Chain([File(tmp_path / "a.wav")]), 1e6)
    run_through(paced, watching(), log=tmp_path / "run.jsonl", ledger=tmp_path / "me.db")
    assert read_records(tmp_path / "run.jsonl")[0]["recordings"] == ["a.wav"]
    with pytest.raises(UsageError, match=r"a\.wav: would count twice, since session 1"):
        run_through(File(tmp_path / "a.wav"), watching(), ledger=tmp_path / "me.db")
    with Ledger(tmp_path / "me.db") as ledger:
        assert len(ledger.sessions()) == 1


def test_what_is_worked_out_and_what_is_missing_is_in_the_start_record():
    quote = FalseAlarms("bits", 4.5, 0.05, 600.0, 22, 0, "cross", 100.0)
    with Run(Listed([simulated(2.0)]), watching(), rules=[Conformal(quote)]) as run:
        assert run.start.alarms == (run.rules[0].terms(),)
        assert any("bits > 4.50 bits" in notice for notice in run.start.notices)
    nowhere = BackgroundDelivery(Command("false"))
    with Run(Listed([simulated(2.0)]), watching(), actions=[nowhere]) as run:
        assert run.start.notices[-1].startswith("no --alert is set: nothing is sent to")
        assert run.start.alarms is None


class EveryTenth:
    """A rule with nothing but what an `AlertRule` has."""

    def __init__(self) -> None:
        self._count = 0

    def update(self, event: Event) -> list[Alert]:
        self._count += isinstance(event, Reading)
        if not isinstance(event, Reading) or self._count % 10:
            return []
        return [Alert(event.seconds, None, "tenth", "bits", 0.0, "raised", None)]

    def state(self) -> dict[str, Any]:
        return {"count": self._count}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._count = state["count"]


def test_a_rule_needs_no_more_than_the_members_of_an_alert_rule(tmp_path):
    log = tmp_path / "run.jsonl"
    with Run(Noted([], frames(simulated(20.0))), watching(), rules=[EveryTenth()], log=log) as run:
        assert run.rules[0].rule == "EveryTenth"
        totals = run.to_end()
    assert (totals.alerts, totals.undecided) == (2, [])
    assert run.start.alarms is None


def test_features_of_ones_own_are_computed_in_this_process(tmp_path):
    from monitor.features.f0 import F0

    class Counted(F0):
        heard = 0

        def process(self, samples: Any) -> Any:
            Counted.heard += len(samples)
            return super().process(samples)

    soundfile.write(tmp_path / "a.wav", synthetic(2.0), RATE)
    own = Monitor(reference(), [Counted()])
    run_through(File(tmp_path / "a.wav"), own, settings=RunSettings(jobs=2))
    assert Counted.heard > 0


def test_an_interrupt_closes_all_and_leaves_a_checkpoint(tmp_path):
    notes: list[str] = []
    path = tmp_path / "a.jsonl"

    def stream() -> Iterator[Any]:
        yield from frames(simulated(3.0))
        signal.raise_signal(signal.SIGINT)

    source = Noted(notes, stream())  # type: ignore[arg-type]
    with (
        pytest.raises(KeyboardInterrupt),
        Run(source, watching(), sinks=[NotedAction(notes, "view")], log=path) as run,
    ):
        run.to_end()
    assert notes[-2:] == ["view closed", "source closed"]
    assert run.resumable
    assert state_path(path).exists()
    assert read_records(path)[-1]["type"] != "end"
    assert np.isfinite(run.totals.last["bits"])


def test_a_run_of_what_was_enrolled_is_refused_or_of_the_same_session(tmp_path):
    path, log, whole = (tmp_path / name for name in ("me.flac", "run.jsonl", "whole.jsonl"))
    note = SourceNote(path.name, "one", recording_hashes(voice_file(path)), 0.0, 2.0)
    population = with_speakers(reference(), me=(note,))

    def fresh() -> Monitor:
        return Monitor(population, watch="me", step_seconds=0.5)

    with pytest.raises(OverlapError, match=r"allow_overlap=True$"):
        Run(path, fresh()).__enter__()
    with Run(path, fresh(), settings=RunSettings(allow_overlap=True)) as run:
        assert run.start.rank_model_session == "same"
        assert run.to_end().readings == 8
    # it is resumed under the rank model that it had
    given = File(path, start_seconds=2.0)
    with Run(given, fresh(), log=log) as run:
        assert run.start.rank_model_session == "same"
        for record in (event.record() for event in run):
            if record["type"] == "reading" and record["seconds"] == 1.0:
                break
    assert run_through(given, fresh(), log=LogFile(log, resume=True)).readings == 4
    run_through(given, fresh(), log=whole)
    assert lines(log) == lines(whole)
    assert {record["session"] for record in lines(log) if record["type"] == "reading"} == {"same"}


@pytest.mark.parametrize(
    ("features", "rule", "questioned"),
    [
        (None, "bits>3", True),
        (None, "closed_set_bits>2 for 0 s", True),
        (["f0"], "bits>4", False),
        (None, "bits>12", False),
        (None, "sum_bits>3", False),
    ],
)
def test_a_warning_that_can_hardly_come_in_time_is_questioned(features, rule, questioned):
    """An average voice is over the threshold before a forecast can be made."""
    made = Monitor(Population.reference(), features or ["f0", "phones", "voice"], watch="19")
    early = EarlyWarning(Threshold.parse(rule), 30.0)
    with Run(Samples(np.zeros(RATE), RATE), made, rules=[early]) as run:
        told = [str(each) for each in run.notices if each.kind == "late warning"]
    assert len(told) == questioned
    assert all("no warning comes in time" in line for line in told)
