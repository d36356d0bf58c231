"""`Run` opens a source, measures it, applies rules, and writes every record."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Self, TypeAlias

from monitor.alerts.budgets import Budget
from monitor.alerts.crossings import Crossings
from monitor.alerts.rules import explained
from monitor.errors import UsageError
from monitor.events.reading import Reading
from monitor.events.run import Alert, NoticeEvent, RunEnd, RunStart
from monitor.lazy import Managed
from monitor.protocols import (
    AlertAction,
    AlertRule,
    ExplainedRule,
    LiveSource,
    Provenance,
    Sink,
    Source,
)
from monitor.run.asking import AskedRules, EventOutput, RunEvent
from monitor.run.opened_source import MonitorFactory, Name, OpenedSource, open_any
from monitor.run.parts import LedgerFile, LogFile, ProtectedSide, Protection, fit_rules
from monitor.run.saving import Saves, compose_configuration
from monitor.sinks.jsonl import JsonLines
from monitor.stream.monitor import Monitor
from monitor.stream.notices import log_notices
from monitor.stream.records import RunTotals
from monitor.types import Notice

if TYPE_CHECKING:
    from monitor.ledger import LedgerSession
    from monitor.stream.people import Person
    from monitor.stream.totals import FeatureTotals


_NOT_OPENED = "a Run is opened by a with statement: with Run(...) as run"
_CLOSED = "this Run is closed: make another one. Its log, if any, has its records"
Until: TypeAlias = Callable[[Alert], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Limits, privacy and resources of a `Run`.

    Attributes:
        until: called with every alert; True ends the run there.
        allow_overlap: accept enrolled audio. Its figures are far too high.
        allow_idle_alerts: accept rules that can never be raised; a notice names each.
        protect: an anonymiser's name, or a `Protection`. The run then also measures the protected
            voice.
        alert_labels: labels that the rules apply to, if the source is split by person; empty for
            all.
        jobs: number of processes that compute features of recordings; None chooses it. Records do
            not depend on it. Live sources, anonymisers and custom features use one process. With
            more processes, a script must start under ``if __name__ == "__main__":``.
        clock: function that returns wall-clock seconds.
    """

    until: Until | None = None
    allow_overlap: bool = False
    allow_idle_alerts: bool = False
    protect: str | Protection | None = None
    alert_labels: Sequence[str] = ()
    jobs: int | None = 1
    clock: Callable[[], float] = time.monotonic

    @property
    def protection(self) -> Protection | None:
        """Anonymiser of the protected side, or None."""
        return Protection(self.protect) if isinstance(self.protect, str) else self.protect


_DEFAULTS = RunSettings()


class Run(Managed):
    """Measurement of one source, with alert rules, actions, sinks, a log and a ledger.

    Open the run with a ``with`` statement, and iterate over its events. They are the start, then
    readings, alerts, gaps, changes and notices in order, and the end. Each event has a ``type``, a
    stable ``code`` and fields. The log and all sinks receive an event before the iterator returns
    it.

    Entering opens all parts, with cheap checks first. The run writes nothing before all checks
    pass. If you leave a run before its end, its log has no ``end`` record. A run with a log can be
    resumed if its source can identify its recordings (`Source.provenance`). `stop` ends a live
    source. Readings of a live source include their delay (``lag``). If the machine cannot keep up
    with live audio, the slowest feature skips some of it.

    A source that is split by person (`monitor.sources.Diarised`, `monitor.sources.PerChannel`) has
    one monitor per person. Events then have a ``label``, rules apply to each person separately, and
    the ``end`` record has one row per person. Such a run supports no ledger and no anonymiser, and
    cannot be resumed.

    With an anonymiser, the run measures the voice twice, clear and protected, on one clock. A
    reading describes the clear voice, and its ``protected`` field the protected one.

    Args:
        source: a source, its name (`monitor.sources.open_source`), or a function that opens it. The
            run closes it.
        monitor: an unused monitor, or a function that makes a monitor for the opened source. If the
            source is split by person, pass a sequence of these to watch several people.
        rules: alert rules, or a function that makes the rules for the monitor.
        actions: actions on alerts. A failed action does not stop the run, and the ``end`` record
            reports the failure.
        sinks: receivers of every event.
        log: the file for JSON lines, or a `LogFile` with options. Only ``replace=True`` overwrites
            an existing log.
        ledger: the database that adds up the watched speaker's disclosure over sessions, or a
            `LedgerFile`.
        settings: limits, privacy and resources.

    Attributes:
        phase: ``"made"``, ``"opened"``, ``"running"``, ``"ended"``, ``"closed"``.
        start, end: the first event after entering, and the last one after the end.
        notices: notices about the figures, so far.
        totals: counts so far, with a summary at the end.
        people: at the end, all people of a source that is split by person.

    Raises:
        MonitorError: on entering, if arguments are incompatible or cannot be opened.
        OverlapError: on entering, if the source is enrolled audio.

    Example:
        >>> from monitor import Monitor, Population, alerts
        >>> from monitor.population import demo_frames
        >>> monitor = Monitor(Population.reference(), ["f0"], step_seconds=60)
        >>> with Run(demo_frames(), monitor, rules=[alerts.Threshold("bits", 1)]) as run:
        ...     for event in run:
        ...         if event.type == "alert":
        ...             print(event.state, "at", event.seconds, "s")
        raised at 120.0 s
        >>> run.totals.readings, run.totals.alerts
        (10, 1)
    """

    def __init__(
        self,
        source: Source | Name | Callable[[], Source],
        monitor: MonitorFactory | Sequence[MonitorFactory],
        *,
        rules: Iterable[AlertRule] | Callable[[Monitor], Iterable[AlertRule]] = (),
        actions: Iterable[AlertAction] = (),
        sinks: Iterable[Sink] = (),
        log: Name | LogFile | None = None,
        ledger: Name | LedgerFile | None = None,
        settings: RunSettings = _DEFAULTS,
    ) -> None:
        self._components = source, monitor, rules, actions, sinks
        self._log_file = log if log is None or isinstance(log, LogFile) else LogFile(log)
        self._ledger_file = (
            ledger if ledger is None or isinstance(ledger, LedgerFile) else LedgerFile(ledger)
        )
        self._settings, self._protect = settings, settings.protection
        self._stack = ExitStack()
        self._log: JsonLines | None = None
        self._session: LedgerSession | None = None
        self._saves: Saves | None = None
        self._side: ProtectedSide | None = None
        self._crossings: Crossings | None = None
        self.people: list[Person] = []
        self.phase = "made"
        self._stopped = self._goes_on = False
        self._events: Generator[RunEvent] | None = None
        self._in_use = Lock()
        self.actions: list[AlertAction] = []
        self.sinks: list[Sink] = []
        self.rules: list[ExplainedRule] = []
        self.start = RunStart.from_record({})
        self.end = RunEnd.from_record({})
        self.notices: list[Notice] = []
        self.totals = RunTotals()

    def __enter__(self) -> Self:
        if self.phase != "made":
            raise UsageError("a Run is entered once: make another one to process the source again")
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        self.phase = "opened"
        return self

    def _open(self) -> None:
        if self._protect is not None and self._ledger_file is not None:
            raise UsageError(
                "a ledger adds up one voice, and would begin the clear side ahead of the protected "
                "one: leave out the ledger, or the anonymiser"
            )
        source, monitor, rules, actions, sinks = self._components
        if self._log_file is not None:
            self._log = self._log_file.open()
            self._stack.callback(self._log.close)
            self._goes_on = self._log_file.can_resume
        for action in actions:
            self._stack.callback(action.close)
            self.actions.append(action)
        self.sinks.extend(sinks)
        self.source = open_any(source)
        self._opened = opened = OpenedSource.open(
            self.source,
            monitor,
            self._settings.alert_labels,
            self._protect,
            allow_overlap=self._settings.allow_overlap,
            has_ledger=self._ledger_file is not None,
            resumes=self._log_file is not None and self._log_file.resume,
        )
        self.monitor, self._split, self._side = opened.monitor, opened.split, opened.side
        self._stack.enter_context(self.source)
        self._labels: Sequence[str] = self.source.labels
        start, self.notices = opened.compose_start()
        if self._side is not None:
            self._crossings = Crossings(start)
        self.rules = [*map(explained, rules(self.monitor) if callable(rules) else rules)]
        start, notices = fit_rules(
            self.rules, self.actions, start, self.monitor,
            allow_idle=self._settings.allow_idle_alerts,
        )  # fmt: skip
        self.notices += notices
        self._asked = AskedRules(self.rules, self._split, self._settings.alert_labels)
        self._output = EventOutput(
            self._asked, self._crossings, self._labels,
            self.totals, self._log, self.sinks, self.actions,
        )  # fmt: skip
        if self._split is not None:  # after the rules, which check that a person is watched
            start = self._split.complete_start(start)
        if self._ledger_file is not None:
            self._session = self._ledger_file.session(
                self.monitor, self.source.provenance() or (), resume=self._goes_on
            )
            self._stack.callback(self._session.close)
            self.actions.append(self._session)
        if self._split is None and self._log is not None and self._log.plain:
            self._open_saves(self._log, start)  # a run of several people cannot resume
        if self._session is not None:
            start = self._session.begin(start)
            if any(isinstance(rule, Budget) for rule in self.rules):
                self._session.hold()  # two runs at once would each spend the remainder
            self.notices += self._session.notices
        self.start = replace(start, notices=tuple(str(notice) for notice in self.notices))
        self.notices += self.monitor.noticed  # noticed before the run began

    def _open_saves(self, log: JsonLines, start: RunStart) -> None:
        assert self._log_file is not None

        def configure(parts: Sequence[Provenance]) -> dict[str, object]:
            run = self.monitor, self.source, parts, start, self.rules, self._protect
            return compose_configuration(*run, has_ledger=self._session is not None)

        anonymiser = None if self._side is None else self._side.anonymiser
        others = (self._session, anonymiser, self._crossings)
        stateful = [*self.rules, *(component for component in others if component is not None)]
        state = self._opened.listener, self.totals, stateful
        clock = self._settings.clock
        self._saves = Saves(log, self._log_file, self.source, configure, clock, state)
        if self._goes_on:
            self._saves.load()

    @property
    def attackers(self) -> Mapping[str, Monitor] | None:
        """Monitors of the protected side by attacker's name; None without an anonymiser."""
        return None if self._side is None else self._side.pair.attackers

    def hold_ledger(self) -> Callable[[FeatureTotals], bool] | None:
        """Lock the ledger's account; return its charging function. UsageError if locked."""
        if self._session is None:
            return None
        self._session.hold()
        return self._session.charge

    @property
    def locked(self) -> bool:
        """True if the log is locked against other runs. Some file systems support no locks."""
        return self._log is None or self._log.locked

    @property
    def resumable(self) -> bool:
        """True if this run could be resumed after an interruption now."""
        return self._saves is not None and self._saves.can_resume

    @property
    def shortfalls(self) -> list[str]:
        """Reasons why an ended run is incomplete, one line each."""
        is_live = isinstance(self.source, LiveSource)
        lacks = self._session is not None and self._session.incomplete
        return self.totals.list_shortfalls(is_live=is_live, lacks_ledger=lacks)

    def to_end(self) -> RunTotals:
        """Process the source to its end; return the counts of the whole run."""
        for _ in self:
            pass
        return self.totals

    def stop(self) -> None:
        """End the run after the audio processed so far; callable from any thread."""
        if self.phase == "made":
            raise UsageError(_NOT_OPENED)
        if isinstance(self.source, LiveSource):
            self.source.stop()
        else:
            self._stopped = True

    def __iter__(self) -> Iterator[RunEvent]:
        """Yield the events; continue after a ``break``, and yield no more after the end."""
        while True:
            if self.phase in ("made", "closed"):
                raise UsageError(_NOT_OPENED if self.phase == "made" else _CLOSED)
            if self._events is None:
                self._events = self._process()
            if not self._in_use.acquire(blocking=False):
                raise UsageError(
                    "another thread already iterates this Run, and each event is given once"
                )
            try:
                event = next(self._events, None)
            finally:
                self._in_use.release()
            if event is None:
                return
            yield event

    def _process(self) -> Generator[RunEvent]:
        self.phase = "running"
        if self._saves is not None and not self._goes_on:
            self._saves.discard()
        log_notices(self.notices)
        ended_by: str | None = None
        if self._goes_on:
            self._output.show(self.start)  # for people only, since the log has it already
        else:
            yield from self._output.give(self.start)
            if self._session is not None and self._session.carried.totals is not None:
                alerts = self._output.give_spent_budgets(self.monitor.standing())
                ended_by = yield from self._give_until(alerts)
        if ended_by is None:
            ended_by = yield from self._process_stream()
        yield from self._end(ended_by)
        self.phase = "ended"

    def _give_until(self, events: Iterable[RunEvent]) -> Generator[RunEvent, None, str | None]:
        """Yield events; return the rule of the first alert that ends the run."""
        until, ended_by = self._settings.until, None
        for event in events:
            if until is not None and isinstance(event, Alert) and until(event):
                ended_by = ended_by or event.rule
            yield event
        return ended_by

    def _process_stream(self) -> Generator[RunEvent, None, str | None]:
        """Yield the events of the stream; return the rule of the alert that ended it."""
        ended_by: str | None = None
        for event in self._opened.listen(self._settings.jobs, self._stack):
            if isinstance(event, NoticeEvent):
                self._note(event.notice)
            events = self._output.give(event, self.monitor.recordings.number)
            ended_by = yield from self._give_until(events)
            if ended_by is not None or self._stopped:
                break
            if self._saves is not None and isinstance(event, Reading):
                self._saves.save_after_reading()
        return ended_by

    def _note(self, *notices: Notice) -> None:
        self.notices += notices
        log_notices(notices)

    def _end(self, ended_by: str | None) -> Iterator[RunEvent]:
        totals = self.totals
        totals.failures = [line for action in self.actions for line in action.drain()]
        totals.undecided = self._asked.list_undecided()
        is_heard = totals.readings > 0 or ended_by is None  # otherwise it ended at second 0
        if self._split is not None:
            self.people = self._split.list_people()
        transcripts, ended = self._opened.measure_end(totals.against, self.start, is_heard=is_heard)
        self._note(*ended)
        end = totals.end_event(
            self.monitor, self._labels, complete=totals.gaps == 0, stopped=ended_by, notices=ended
        )
        if self._split is not None:
            end = self._split.complete_end(end, self.people, self._asked.raised)
        if self._crossings is not None:
            end = replace(end, disclosure_delay=self._crossings.table)
        self.end = replace(end, transcripts=transcripts, incomplete=tuple(self.shortfalls))
        yield from self._output.give(self.end)
        if self._saves is not None:
            self._saves.finish()

    def close(self) -> None:
        """Close sinks, ledger, source, actions and log. A second call has no effect."""
        self.phase = "closed"
        if self._events is not None:
            with suppress(ValueError):  # it is running, since it was closed from within
                self._events.close()
        for sink in self.sinks:
            self._stack.callback(sink.close)
        self._stack.close()
