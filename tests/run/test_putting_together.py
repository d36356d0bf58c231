"""How `Run` puts a run together: what is opened when, what is refused, what is closed."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from monitor import Monitor, Population, Run
from monitor.alerts import Conformal, EarlyWarning, Threshold
from monitor.alerts.actions.registry import BackgroundDelivery
from monitor.errors import SourceError, StoreError, UsageError
from monitor.events.declaration import Event
from monitor.events.reading import Reading
from monitor.events.run import Alert
from monitor.ledger import Ledger
from monitor.population.false_alarms import FalseAlarms
from monitor.protocols import LiveSource, Provenance, Source
from monitor.run import LedgerFile, LogFile, RunSettings
from monitor.sinks.jsonl import JsonLines
from monitor.sources import AudioQueue, Chain, File, Paced, Samples
from monitor.stream.checkpoint import state_path
from monitor.types import Frames
from tests.records import read_records
from tests.sounds import RATE, synthetic
from tests.stream.streams import WATCHED, Listed, frames, reference, run_through, simulated

HEARD = (Provenance("talk", ("a",)),)


def fresh(**options: Any) -> Monitor:
    return Monitor(reference(), watch=WATCHED, **options)


class Noted(Listed):
    """A source that says when it is opened, heard and closed."""

    def __init__(self, notes: list[str], stream: list[Frames]) -> None:
        super().__init__(stream, provenance=HEARD)
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
        return fresh()

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
        assert run.start.carried is not None
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
    return [
        ({"log": folder / "diary.txt"}, UsageError, "holds something else"),
        ({"log": folder / "no" / "run.jsonl"}, StoreError, "cannot write"),
        ({"log": LogFile("-", resume=True)}, UsageError, "needs the file of the interrupted"),
        ({"log": LogFile(folder / "a", replace=True, resume=True)}, UsageError, "give one"),
        (
            {"log": LogFile(folder / "diary.txt", True, False, [folder / "diary.txt"])},
            UsageError,
            "is read by this run",
        ),
        ({"source": folder / "no.wav"}, SourceError, "cannot open no.wav"),
        ({"rules": [Threshold("style.gain_bits", 3)]}, UsageError, "does not have"),
        ({"ledger": folder / "foreign.db"}, StoreError, "is no ledger"),
        ({"ledger": LedgerFile(folder / "no" / "me.db")}, StoreError, "cannot be opened"),
        (
            {"monitor": lambda _: Monitor(reference()), "ledger": folder / "x"},
            UsageError,
            "remembers one",
        ),
        ({"log": LogFile(folder / "new", resume=True)}, StoreError, "nothing to resume"),
    ]


def test_nothing_is_written_before_all_of_it_fits(tmp_path):
    for options, error, words in refusals(tmp_path):
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        notes: list[str] = []
        given: dict[str, Any] = {
            "source": lambda: Noted([], []),
            "monitor": lambda _: fresh(),
            "log": tmp_path / "run.jsonl",
            "actions": [NotedAction(notes, "action")],
            **options,
        }
        with pytest.raises(error, match=words):
            Run(**given).__enter__()
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before, options
        assert notes[1:] in ([], ["action closed"]), "what was opened is closed, nothing was done"


def test_a_run_that_was_left_is_unfinished_and_goes_on(tmp_path):
    path = tmp_path / "run.jsonl"

    def source() -> Listed:
        return Listed([simulated(20.0)], provenance=HEARD)

    with Run(source(), fresh(), log=path) as run:
        for record in (event.record() for event in run):
            if record["type"] == "reading" and record["seconds"] == 5.0:
                break
        assert run.resumable
    assert read_records(path)[-1]["seconds"] == 5.0
    with pytest.raises(UsageError, match="holds an unfinished run: go on with it"):
        Run(source(), fresh(), log=path).__enter__()
    other = Listed([simulated(20.0)], provenance=(Provenance("talk", ("b",)),))
    with pytest.raises(StoreError, match="is of another run \\(not the same: recordings\\)"):
        Run(other, fresh(), log=LogFile(path, resume=True)).__enter__()
    with pytest.raises(StoreError, match="is of another run \\(not the same: step\\)"):
        Run(source(), fresh(step_seconds=2), log=LogFile(path, resume=True)).__enter__()
    totals = run_through(source(), fresh(), log=LogFile(path, resume=True))
    assert totals.readings == 20
    assert [r["seconds"] for r in read_records(path) if r["type"] == "reading"] == list(
        range(1, 21)
    )
    assert not state_path(path).exists()


def test_what_nobody_can_hear_again_is_not_resumed(tmp_path):
    path = tmp_path / "run.jsonl"
    with Run(Listed([simulated(20.0)]), fresh(), log=path) as run:
        for record in (event.record() for event in run):
            if record["type"] == "reading":
                break
        assert not run.resumable
    assert not state_path(path).exists()
    with pytest.raises(UsageError, match="listed cannot be heard again: leave out resume=True"):
        Run(Listed([]), fresh(), log=LogFile(path, resume=True)).__enter__()


def test_a_live_source_is_stopped_and_says_its_lag():
    queue = AudioQueue(RATE, label="call")
    sound = synthetic(4.0)
    for at in range(0, len(sound), 160):
        queue.put(sound[at : at + 160])
    assert isinstance(queue, LiveSource)
    with Run(queue, fresh()) as run:
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


def test_a_recording_is_stopped_with_an_end():
    with Run(Listed(frames(simulated(20.0), range(100, 2000, 100))), fresh()) as run:
        for record in (event.record() for event in run):
            if record["type"] == "reading" and record["seconds"] == 3.0:
                run.stop()
    assert (record["type"], record["seconds"], record["complete"]) == ("end", 3.0, True)
    assert "lag" not in record


def test_until_ends_it_at_an_alert():
    rules = [Threshold("sum_bits", -99.0, 3.0)]
    with Run(
        Listed([simulated(20.0)]), fresh(), settings=RunSettings(until=lambda _: True), rules=rules
    ) as run:
        records = [event.record() for event in run]
    assert [record["type"] for record in records[-3:]] == ["reading", "alert", "end"]
    assert records[-1]["stopped"] == records[-2]["rule"]


@pytest.mark.slow
def test_a_file_by_its_name_is_the_same_with_more_processes(tmp_path):
    for name in ("a.wav", "b.wav"):
        soundfile.write(tmp_path / name, synthetic(3.0), RATE)
    with Run(tmp_path / "a.wav", fresh()) as run:
        one = [event.record() for event in run]
    assert one[0]["recordings"] == ["a.wav"]
    runs = []
    for jobs in (1, 2):
        chain = Chain([File(tmp_path / "a.wav"), File(tmp_path / "b.wav", start_seconds=1.0)])
        with Run(chain, fresh(), settings=RunSettings(jobs=jobs)) as run:
            runs.append([{**record, "time": None} for record in (event.record() for event in run)])
    assert runs[0] == runs[1]
    assert runs[0][-1]["seconds"] == 5.0


def test_a_paced_source_is_known_by_what_it_paces(tmp_path):
    soundfile.write(tmp_path / "a.wav", synthetic(3.0), RATE)
    paced = Paced(Chain([File(tmp_path / "a.wav")]), 1e6)
    run_through(paced, fresh(), log=tmp_path / "run.jsonl", ledger=tmp_path / "me.db")
    assert read_records(tmp_path / "run.jsonl")[0]["recordings"] == ["a.wav"]
    with pytest.raises(UsageError, match=r"a\.wav: was heard as a\.wav in session 1"):
        run_through(File(tmp_path / "a.wav"), fresh(), ledger=tmp_path / "me.db")
    with Ledger(tmp_path / "me.db") as ledger:
        assert len(ledger.sessions()) == 1


class Nowhere:
    label = "nowhere"

    def deliver(self, alert: Alert, cancel: Any) -> None:  # noqa: ARG002
        raise AssertionError("there was no alert")


def test_what_is_worked_out_and_what_is_missing_is_in_the_start_record():
    quote = FalseAlarms("bits", 4.5, 0.05, 600.0, 22, 0, "cross", 100.0)
    with Run(Listed([simulated(2.0)]), fresh(), rules=[Conformal(quote)]) as run:
        assert run.start.alarms == (run.rules[0].terms(),)
        assert any("bits > 4.50 bits" in notice for notice in run.start.notices)
    with Run(Listed([simulated(2.0)]), fresh(), actions=[BackgroundDelivery(Nowhere())]) as run:
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
    with Run(Noted([], frames(simulated(20.0))), fresh(), rules=[EveryTenth()], log=log) as run:
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


def test_it_is_opened_by_a_with_statement():
    run = Run(Listed([]), fresh())
    with pytest.raises(UsageError, match="opened by a with statement"):
        run.to_end()


def test_an_interrupt_closes_all(tmp_path):
    notes: list[str] = []

    def stream() -> Iterator[Any]:
        yield from frames(simulated(3.0))
        signal.raise_signal(signal.SIGINT)

    source = Noted(notes, stream())  # type: ignore[arg-type]
    with (
        pytest.raises(KeyboardInterrupt),
        Run(source, fresh(), sinks=[NotedAction(notes, "view")], log=tmp_path / "a.jsonl") as run,
    ):
        run.to_end()
    assert notes[-2:] == ["view closed", "source closed"]
    assert run.resumable
    assert np.isfinite(run.totals.last["bits"])


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
