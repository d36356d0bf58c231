"""One run from its first refusal to its last record: `Run`."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self, TypeAlias

from monitor.alerts.budgets import Budget
from monitor.alerts.crossings import Crossings
from monitor.alerts.rules import explained
from monitor.errors import Message, UsageError
from monitor.events.declaration import to_json
from monitor.events.reading import Reading
from monitor.events.run import Alert, LevelReached, NoticeEvent, RunEnd, RunStart
from monitor.lazy import Managed
from monitor.phrases import plural
from monitor.population.people import nearest_spelling
from monitor.protocols import (
    AlertAction,
    AlertRule,
    ExplainedRule,
    LiveSource,
    Provenance,
    Sink,
    Source,
    Stateful,
    WordFeature,
)
from monitor.run.parts import (
    RESUME,
    DeclaredEpsilon,
    LedgerFile,
    LogFile,
    ProtectedSide,
    Protection,
    fit_rules,
)
from monitor.safe_text import find_name, printable
from monitor.sinks.jsonl import JsonLines
from monitor.sources.base import SplitSource
from monitor.sources.registry import missing_members, open_source
from monitor.stream.checkpoint import Checkpoint, state_path
from monitor.stream.monitor import Monitor
from monitor.stream.notices import (
    evidence_against,
    log_notices,
    protected_recordings,
    recording_notices,
    setup_notices,
)
from monitor.stream.records import (
    RunTotals,
    coverage_notices,
    list_coverage,
    list_transcripts,
    placed,
    start_event,
)
from monitor.stream.stream import Event
from monitor.types import Notice

if TYPE_CHECKING:
    from monitor.ledger import LedgerSession
    from monitor.stream.pair import MonitorPair
    from monitor.stream.people import Person, SideBySide
    from monitor.stream.totals import FeatureTotals


CHECKPOINT_SECONDS = 1.0
"""Wall seconds between checkpoints: a killed run repeats about that much work."""

_NOT_OPENED = "a Run is opened by a with statement: with Run(...) as run"
_CLOSED = "this Run is closed: make another one; its log, if it has one, holds its records"
Name: TypeAlias = "str | os.PathLike[str]"
MonitorFactory: TypeAlias = "Monitor | Callable[[Source], Monitor]"
RunEvent: TypeAlias = "RunStart | Event | Alert | LevelReached | RunEnd"
Until: TypeAlias = Callable[[Alert], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Limits, privacy and resources of a `Run`.

    Attributes:
        until: asked about every alert; True ends the run there.
        allow_overlap: hear audio that was enrolled, too; its figures are far too high.
        allow_idle_alerts: run with rules that can never be raised; a notice names each.
        protect: an anonymiser to hear the voice through as well, by name; a `Protection` says more.
        alert_labels: where the source is split by person, the labels that the rules are asked
            about; none for everybody.
        jobs: processes that compute features of recordings; the records do not depend on it. None
            for as many as are worth it. With more than one a script must begin under
            ``if __name__ == "__main__":``. With an anonymiser it is one.
        clock: wall seconds.
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
        """Anonymiser to hear the voice through as well; None without one."""
        return Protection(self.protect) if isinstance(self.protect, str) else self.protect


_DEFAULTS = RunSettings()


class Run(Managed):
    """A source through a monitor into rules, actions, sinks, a log and a ledger.

    A context manager that gives what happens, in order: the start, readings, alerts, gaps, changes
    and notices, and the end. Each is a value with a ``type``, a stable ``code`` and fields, whose
    ``record()`` is what the log and all sinks were given before it.

    Entering opens everything, what is cheap to refuse first; nothing is written before all of it
    fits. A run that is left before its ``end`` has none in its log, and can be resumed where its
    source says what it is made of (`Source.provenance`). A live source is stopped by `stop`, its
    readings say how late they came (``lag``), and its slowest feature hears less where the machine
    cannot keep up.

    A source that is split by person (`monitor.sources.Diarised`, `monitor.sources.PerChannel`) is
    heard by a monitor a person; every event then has a ``label``, rules are asked about each person
    by themselves, and the ``end`` record has a row for each. Such a run goes with no ledger and no
    anonymiser, and is not resumed.

    With an anonymiser the voice is heard twice, as it is and protected, on one clock. Everything in
    a reading is of the clear voice but for what stands under ``protected``.

    Args:
        source: what to hear: a source, the name of one (`monitor.sources.open_source`), or a
            function that opens one. The run closes it.
        monitor: fresh; or a function that makes one for the opened source. Where the source is
            split by person, several that differ in whom they watch are heard side by side.
        rules: alert rules; or a function that makes them for the monitor.
        actions: what alerts do. What they fail at is told in the ``end`` record, and stops nothing.
        sinks: get every record. An iterator of actions or sinks is asked for them on entering.
        log: the file of JSON lines; a `LogFile` says more. It is not overwritten unless told to.
        ledger: the database that adds up what the watched speaker disclosed, or a `LedgerFile`.
        settings: limits, privacy and resources.

    Attributes:
        phase: ``"made"``, ``"opened"``, ``"running"``, ``"ended"``, ``"closed"``.
        start, end: the first event, once it is entered, and the last one, once there is one.
        notices: what a person should know beside the figures, so far.
        totals: counts so far, and in the end what a person should know.
        people: where the source is split by person, everybody in it, at the end.

    Raises:
        MonitorError: on entering: something does not fit, or cannot be opened.
        OverlapError: on entering: the source is audio that was enrolled.

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
        self._checkpoint: Checkpoint | None = None
        self._side: ProtectedSide | None = None
        self._crossings: Crossings | None = None
        self._declared_epsilon: DeclaredEpsilon | None = None
        self._split: SideBySide | None = None
        self._rules_of: dict[tuple[str, str | None], list[ExplainedRule]] = {}
        self._raised: dict[str, list[float]] = {}  # by label, seconds of alerts
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
            raise UsageError("a Run is entered once: make another one to hear the source again")
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
        for sink in sinks:
            self.sinks.append(sink)
        self.source = _open_source(source)
        self._open_monitors(monitor if isinstance(monitor, Sequence) else [monitor])
        self._stack.enter_context(self.source)
        self._labels: Sequence[str] = self.source.labels
        self._parts: tuple[Provenance, ...] | None = None
        start = self._compose_start()
        self.rules = [*map(explained, rules(self.monitor) if callable(rules) else rules)]
        start, notices = fit_rules(
            self.rules, self.actions, start, self.monitor,
            allow_idle=self._settings.allow_idle_alerts,
        )  # fmt: skip
        self.notices += notices
        if self._split is not None:  # when the rules have seen that somebody is watched
            start = self._split.complete_start(start)
        if self._ledger_file is not None:
            parts = dict.fromkeys(self.source.provenance() or ())
            recordings = [part for part in parts if part.hashes]
            self._session = self._ledger_file.session(
                self.monitor, recordings, resume=self._goes_on
            )
            self._stack.callback(self._session.close)
            self.actions.append(self._session)
        if self._split is None and self._log is not None and self._log.plain:
            self._open_checkpoint(start)  # people are heard in one go
        if self._session is not None:
            start = self._session.begin(start)
            self.notices += self._session.notices
        self.start = replace(start, notices=tuple(str(notice) for notice in self.notices))
        self.notices += self.monitor.noticed  # before it was stopped

    def _open_monitors(self, factories: Sequence[MonitorFactory]) -> None:
        overlap = self._settings.allow_overlap
        monitors = [f(self.source) if callable(f) else f for f in factories]
        self.monitor = monitors[0]
        for monitor in monitors:
            if monitor.phase != "opened":
                raise UsageError("this Monitor has heard another stream: give the Run a fresh one")
            monitor.fit_to(self.source, allow_overlap=overlap)
        self._open_people(monitors)
        if self._protect is not None:
            self._side = self._protect.side(self.monitor, self.source, allow_overlap=overlap)
        if self.source.stream_info.audio:  # what computes it fits as well
            self.monitor.front_end.make()
        if self.source.stream_info.words:
            self.monitor.front_end.word_features()

    def _compose_start(self) -> RunStart:
        """Compose the start, but for rules and people, with its notices."""
        start = start_event(self.monitor, self._labels)
        start = replace(start, transcripts=list_transcripts(self.source, self._labels))
        self.notices = [*setup_notices(self.monitor), *protected_recordings(self.source)]
        self.notices += self._describe_words()
        if self._split is not None:
            self.notices += self._split.notices()
        if self._side is not None:
            start = replace(start, protected=self._side.terms())
            self.notices += self._side.notices()
            self._crossings = Crossings(start)
        self._declared_epsilon = DeclaredEpsilon.of_run(self.monitor, self._side)
        if self._declared_epsilon is not None:
            start = replace(start, declared=self._declared_epsilon.terms)
            self.notices.append(self._declared_epsilon.notice)
        return start

    def _open_people(self, monitors: Sequence[Monitor]) -> None:
        """Set up a monitor a person, where the source is split."""
        if not isinstance(self.source, SplitSource):
            if len(monitors) > 1:
                raise UsageError(
                    "several are watched where a recording is split by person (sources.Diarised, "
                    "sources.PerChannel); give one Monitor"
                )
            return
        people = self.source.people
        unknown = [name for name in self._settings.alert_labels if not find_name(name, people)]
        if unknown and not self.source.stream_info.live:
            hint = nearest_spelling(unknown[0], people) or f"labels: {', '.join(people[:5])}"
            raise UsageError(f"nobody is called {printable(unknown[0])} by the turns; {hint}")
        if self._ledger_file is not None or self._protect is not None:
            what = "a ledger" if self._protect is None else "an anonymiser"
            raise UsageError(f"{what} goes with one voice, not with a recording split by person")
        if self._resumed:
            raise UsageError(
                Message("a run of several people is heard in one go: leave out ", RESUME)
            )
        from monitor.stream.people import SideBySide

        self._split = SideBySide(self.source, monitors)

    def _open_checkpoint(self, start: RunStart) -> None:
        assert self._log is not None
        assert self._log_file is not None
        parts = None
        if not isinstance(self.source, LiveSource):
            parts = self._parts = self.source.provenance()
        if self._resumed and parts is None:
            raise UsageError(
                Message(f"{self.source.label} cannot be heard again: leave out ", RESUME)
            )
        configuration = {} if parts is None else self._configuration(parts, start)
        self._checkpoint = Checkpoint(state_path(Path(self._log_file.path)), configuration)
        self._checkpoint.check()
        if self._goes_on:
            self._log.go_on_at(self._checkpoint.load(self._hearing, self.totals, self._stateful))

    def _configuration(self, parts: Sequence[Provenance], start: RunStart) -> dict[str, object]:
        """Return the settings that must be the same for the run to be resumed."""
        attacker = self.monitor.attacker
        configuration: dict[str, object] = {
            "recordings": [[part.label, *part.hashes] for part in parts],
            "interval": [[part.start_seconds, part.end_seconds] for part in parts],
            "raw": next((list(part.raw) for part in parts if part.raw is not None), None),
            "session": attacker.session,
            "features": list(self.monitor.features),
            "watch": self.monitor.watch,
            "template_seconds": attacker.scoring.seconds,
            **self.monitor.configuration(),
            **start.fingerprint,
            "alerts": [rule.rule for rule in self.rules],
            "ledger": self._session is not None,
            "words": [note.mark for note in self.source.transcripts],
        }
        if self._protect is not None and start.protected is not None:
            attackers = to_json(start.protected)["attackers"]  # records do not tell a command
            configuration["protect"] = [self._protect.method, self._protect.speaker, attackers]
        return configuration

    def _describe_words(self) -> Iterator[Notice]:
        features = self.monitor.front_end.word_features()
        checked = [f for f in features if isinstance(f, WordFeature)]
        for note in self.source.transcripts:
            for line in note.notices:
                yield Notice("transcript", line)
            for feature in checked:
                if doubt := feature.doubt(note.label, note.texts):
                    yield Notice("other language", doubt)

    @property
    def _resumed(self) -> bool:
        return self._log_file is not None and self._log_file.resume

    @property
    def _hearing(self) -> Monitor | MonitorPair:
        return self.monitor if self._side is None else self._side.pair

    @property
    def _stateful(self) -> list[Stateful]:
        anonymiser = None if self._side is None else self._side.anonymiser
        own = (self._session, anonymiser, self._crossings)
        return [*self.rules, *(component for component in own if component is not None)]

    @property
    def attackers(self) -> Mapping[str, Monitor] | None:
        """Monitors of the protected side, by what they know; None without an anonymiser."""
        return None if self._side is None else self._side.pair.attackers

    def hold_ledger(self) -> Callable[[FeatureTotals], bool] | None:
        """Hold the speaker's account in the ledger; return what charges it, or None without one.

        UsageError where another process holds it.
        """
        if self._session is None:
            return None
        self._session.hold()
        return self._session.charge

    @property
    def locked(self) -> bool:
        """True where the log is safe from other runs; the file system may know no locks."""
        return self._log is None or self._log.locked

    @property
    def resumable(self) -> bool:
        """True where an interrupted run could be resumed now."""
        return self._saves is not None and self._saves.path.exists()

    @property
    def incomplete(self) -> bool:
        """True where audio was lost, or something is missing from the ledger."""
        return self.totals.gaps > 0 or (self._session is not None and self._session.incomplete)

    @property
    def shortfalls(self) -> list[str]:
        """Reasons why an ended run is not complete, a line each."""
        totals = self.totals
        lines = []
        if totals.gaps:
            lines.append(f"audio was lost ({plural(totals.gaps, 'gap')})")
        lines += [f"no speech in {name}" for name in totals.silent]
        if self._session is not None and self._session.incomplete:
            lines.append("the ledger lacks part of it")
        if not isinstance(self.source, LiveSource):  # who listens ends it as they like
            lines += totals.undecided
        return lines

    def to_end(self) -> RunTotals:
        """Process the source to its end; return the counts of the whole run."""
        for _ in self:
            pass
        return self.totals

    def stop(self) -> None:
        """End the run after what was heard so far; may be called from anywhere."""
        if self.phase == "made":
            raise UsageError(_NOT_OPENED)
        if isinstance(self.source, LiveSource):
            self.source.stop()
        else:
            self._stopped = True

    def __iter__(self) -> Iterator[RunEvent]:
        """Give the events; after a ``break`` it goes on, and after its end there are none."""
        while True:
            if self.phase in ("made", "closed"):
                raise UsageError(_NOT_OPENED if self.phase == "made" else _CLOSED)
            if self._events is None:
                self._events = self._process()
            if not self._in_use.acquire(blocking=False):
                raise UsageError("another thread iterates this Run: what happens is given once")
            try:
                event = next(self._events, None)
            finally:
                self._in_use.release()
            if event is None:
                return
            yield event

    def _process(self) -> Generator[RunEvent]:
        self.phase = "running"
        if self._checkpoint is not None and not self._goes_on:
            self._checkpoint.remove()  # of the run that is overwritten now
        log_notices(self.notices)
        ended_by: str | None = None
        if self._goes_on:
            # people see where they are; the log has it already
            for sink in (*self.sinks, *self.actions):
                sink.write(self.start)
        else:
            yield from self._give(self.start)
            for alert in self._alert_spent_budgets():
                rule = self._ending_rule(alert)  # every alert is asked about
                ended_by = ended_by or rule
                yield alert
        if ended_by is None:
            ended_by = yield from self._process_stream()
        yield from self._end(ended_by)
        self.phase = "ended"

    def _ending_rule(self, event: RunEvent) -> str | None:
        until = self._settings.until
        if until is None or not isinstance(event, Alert):
            return None
        return event.rule if until(event) else None

    def _process_stream(self) -> Generator[RunEvent, None, str | None]:
        """Give what happens; return the rule of the alert that ended it."""
        clock, saved = self._settings.clock, -math.inf  # the first reading can be resumed from
        ended_by: str | None = None
        if self._split is not None and isinstance(self.source, SplitSource):
            events = self._split.listen(self.source)
        else:
            events = self._hearing.listen(self._prepare())
        for event in events:
            if isinstance(event, NoticeEvent):
                self._note(event.notice)
            for written in self._give(self._complete(event), self.monitor.recordings.number):
                rule = self._ending_rule(written)
                ended_by = ended_by or rule
                yield written
            if ended_by is not None or self._stopped:
                break
            if isinstance(event, Reading) and clock() - saved >= CHECKPOINT_SECONDS:
                if self._saves is not None and self._log is not None:
                    self._log.flush()
                    state = self._hearing, self.totals, self._stateful
                    self._saves.save(*state, self._log.offset)
                saved = clock()
        return ended_by

    def _complete(self, event: Event) -> Event:
        """Add to an event what the run alone knows: its recording, lag and declared epsilon."""
        if self._split is None:
            event = placed(event, self._labels, self.monitor.on_change)
        if isinstance(event, Reading):
            if isinstance(self.source, LiveSource):
                event = replace(event, lag=self.source.behind_seconds(event.seconds))
            if self._declared_epsilon is not None:
                event = replace(event, declared=self._declared_epsilon.of(event))
        return event

    def _prepare(self) -> Source:
        from monitor.run.pace import add_load_shedding, prefetch_features  # libraries of audio

        if isinstance(self.source, LiveSource):
            pair = None if self._side is None else self._side.pair
            return add_load_shedding(self.source, self.monitor, pair)
        if self._side is not None:
            return self.source
        ahead = prefetch_features(self.source, self.monitor, self._settings.jobs)
        return self.source if ahead is None else self._stack.enter_context(ahead)

    def _alert_spent_budgets(self) -> Iterator[Alert]:
        if self._session is None or self._session.carried.totals is None:
            return
        reading = self.monitor.standing()
        for rule in self.rules:
            for alert in rule.begin(reading) if isinstance(rule, Budget) else ():
                placed_there = replace(alert, recording=self._labels[0])
                self._write(placed_there)
                yield placed_there

    def _give(self, event: RunEvent, recording: int = 0) -> Iterator[RunEvent]:
        """Give an event, and the alerts that it gives rise to, each written to all."""
        label_of_recording = self._labels[recording] if recording < len(self._labels) else ""
        happened: list[RunEvent] = [event]
        label, watched = getattr(event, "label", None), getattr(event, "watch", None)
        for watch, rule in self._select_rules(label, watched):
            alerts = [
                replace(alert, recording=label_of_recording, label=label, watch=watch)
                for alert in rule.update(event)
            ]
            happened += alerts
            if label is not None:
                raised = [alert.seconds for alert in alerts if alert.code == "alert.raised"]
                self._raised.setdefault(label, []).extend(raised)
        if self._crossings is not None:
            happened += self._crossings.update(event)
        for written in happened:
            self._write(written)
            yield written

    def _select_rules(
        self, label: str | None, watch: str | None
    ) -> list[tuple[str | None, ExplainedRule]]:
        """Return the rules of one stream; each person has their own, which begin alike."""
        if self._split is None:
            return [(None, rule) for rule in self.rules]
        labels = self._settings.alert_labels
        if label is None or (labels and not find_name(label, labels)):
            return []  # start and end are nobody's
        several = self._split.watched
        rules = []
        for name in several if several and watch is None else (watch,):
            if (label, name) not in self._rules_of:
                self._rules_of[label, name] = deepcopy(self.rules)
            rules += [(name, rule) for rule in self._rules_of[label, name]]
        return rules

    def _write(self, event: RunEvent) -> None:
        self.totals.count(event)
        if self._log is not None:
            self._log.write(event)
        for sink in (*self.sinks, *self.actions):
            sink.write(event)

    def _note(self, *notices: Notice) -> None:
        self.notices += notices
        log_notices(notices)

    @property
    def _saves(self) -> Checkpoint | None:
        """Checkpoint, of a source that can be heard again."""
        return None if self._parts is None else self._checkpoint

    def _end(self, ended_by: str | None) -> Iterator[RunEvent]:
        totals = self.totals
        totals.failures = [line for action in self.actions for line in action.drain()]
        totals.undecided = self._undecided()
        is_processed = self.totals.readings or ended_by is None  # else it was over at second 0
        if self._split is not None:
            self.people = self._split.list_people()
            ended = self._split.list_end_notices()
        else:
            ended = recording_notices(self.monitor, self._labels) if is_processed else []
            if totals.against is not None and self.monitor.watch is not None:
                ended.append(evidence_against(totals.against, self.monitor.watch))
        transcripts = None
        if self.monitor.coverage is not None:
            coverage = self.monitor.coverage.measure()
            transcripts = list_coverage(coverage, self._labels)
            ended += coverage_notices(coverage, self._labels, self.start.transcripts or ())
        self._note(*ended)
        end = totals.end_event(
            self.monitor, self._labels, complete=totals.gaps == 0, stopped=ended_by, notices=ended
        )
        if self._split is not None:
            end = self._split.complete_end(end, self.people, self._raised)
        if self._crossings is not None:
            end = replace(end, disclosure_delay=self._crossings.table)
        self.end = replace(end, transcripts=transcripts, incomplete=tuple(self.shortfalls))
        yield from self._give(self.end)
        if self._saves is not None:
            if self._log is not None:
                self._log.flush()
            self._saves.remove()

    def _undecided(self) -> list[str]:
        if self._split is None:
            return [line for rule in self.rules if (line := rule.inconclusive_reason)]
        return [
            f"{printable(label)}: {line}"
            for (label, _), rules in self._rules_of.items()
            for rule in rules
            if (line := rule.inconclusive_reason)
        ]

    def close(self) -> None:
        """Close everything: sinks, ledger, source, actions, log; may be called twice."""
        self.phase = "closed"
        if self._events is not None:
            with suppress(ValueError):  # it is running: closed from within
                self._events.close()
        for sink in self.sinks:
            self._stack.callback(sink.close)
        self._stack.close()


def _open_source(source: Source | Name | Callable[[], Source]) -> Source:
    if isinstance(source, str | os.PathLike):
        return open_source(source)
    if callable(source) and not isinstance(source, Source):
        source = source()
    if lack := missing_members(source):
        raise UsageError(lack)
    return source
