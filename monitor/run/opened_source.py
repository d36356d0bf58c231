"""The opened source of a run, and the monitors of the voices in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

from monitor.errors import Message, UsageError
from monitor.events.reading import Reading
from monitor.events.run import RunStart, TranscriptEnd
from monitor.population.people import nearest_spelling
from monitor.protocols import LiveSource, Source, WordFeature
from monitor.run.parts import RESUME, DeclaredEpsilon, ProtectedSide, Protection
from monitor.safe_text import find_name, printable
from monitor.sources.base import SplitSource
from monitor.sources.registry import missing_members, open_source
from monitor.stream.monitor import Monitor
from monitor.stream.notices import (
    evidence_against,
    protected_recordings,
    recording_notices,
    setup_notices,
)
from monitor.stream.records import (
    coverage_notices,
    list_coverage,
    list_transcripts,
    placed,
    start_event,
)
from monitor.stream.stream import Event, with_lag
from monitor.types import Notice

if TYPE_CHECKING:
    from monitor.stream.pair import MonitorPair
    from monitor.stream.people import MultiSpeakerMonitor

Name: TypeAlias = "str | os.PathLike[str]"
MonitorFactory: TypeAlias = "Monitor | Callable[[Source], Monitor]"


def open_any(source: Source | Name | Callable[[], Source]) -> Source:
    """Open a source by its name, or by a function; UsageError if it is not a source."""
    if isinstance(source, str | os.PathLike):
        return open_source(source)
    if callable(source) and not isinstance(source, Source):
        source = source()
    if lack := missing_members(source):
        raise UsageError(lack)
    return source


@dataclass(slots=True)
class OpenedSource:
    """Opened source with the monitors of its voices."""

    source: Source
    monitor: Monitor  # monitor of the clear voice; with several people, the first monitor
    # monitors of all people, if the source is split by person; otherwise None
    split: MultiSpeakerMonitor | None
    side: ProtectedSide | None  # monitors of the protected voice; None without an anonymiser
    # guarantee that the anonymiser declares for each reading, or None
    declared: DeclaredEpsilon | None = None

    @classmethod
    def open(
        cls,
        source: Source,
        factories: MonitorFactory | Sequence[MonitorFactory],
        labels: Sequence[str],
        protect: Protection | None,
        *,
        allow_overlap: bool,
        has_ledger: bool,
        resumes: bool,
    ) -> Self:
        """Open unused monitors, with the rank model for this source."""
        several = factories if isinstance(factories, Sequence) else [factories]
        monitors = [make(source) if callable(make) else make for make in several]
        for monitor in monitors:
            if monitor.phase != "opened":
                raise UsageError("this Monitor already has a stream: give the Run a new one")
            monitor.fit_to(source, allow_overlap=allow_overlap)
        alone = "a ledger" if has_ledger else ""
        if protect is not None:
            alone = "an anonymiser"
        split = _open_people(source, monitors, labels, alone=alone, resumes=resumes)
        monitor, side = monitors[0], None
        if protect is not None:
            side = protect.side(monitor, source, allow_overlap=allow_overlap)
        if source.stream_info.audio:  # checks that the features can be made
            monitor.front_end.make()
        if source.stream_info.words:
            monitor.front_end.word_features()
        return cls(source, monitor, split, side)

    @property
    def listener(self) -> Monitor | MonitorPair:
        """Monitor of one voice, or pair of monitors with an anonymiser."""
        return self.monitor if self.side is None else self.side.pair

    def compose_start(self) -> tuple[RunStart, list[Notice]]:
        """Compose the start event without rules and people, and list its notices."""
        source, labels = self.source, self.source.labels
        start = start_event(self.monitor, labels)
        start = replace(start, transcripts=list_transcripts(source, labels))
        notices = [*setup_notices(self.monitor), *protected_recordings(source)]
        notices += _describe_words(source, self.monitor)
        if self.split is not None:
            notices += self.split.notices()
        if self.side is not None:
            start = replace(start, protected=self.side.terms())
            notices += self.side.notices()
        self.declared = DeclaredEpsilon.of_run(self.monitor, self.side)
        if self.declared is not None:
            start = replace(start, declared=self.declared.terms)
            notices.append(self.declared.notice)
        return start, notices

    def listen(self, jobs: int | None, stack: ExitStack) -> Iterator[Event]:
        """Yield events, each with its recording, lag and declared epsilon.

        ``jobs`` processes compute features of recordings. Closing the stack ends them.
        """
        source, labels = self.source, self.source.labels
        if self.split is not None and isinstance(source, SplitSource):
            events = self.split.listen(source)
        else:
            events = self.listener.listen(self._prepare(jobs, stack))
        for event in events:
            if self.split is None:
                event = placed(event, labels, self.monitor.on_change)
            event = with_lag(event, source)
            if isinstance(event, Reading) and self.declared is not None:
                event = replace(event, declared=self.declared.declare(event))
            yield event

    def _prepare(self, jobs: int | None, stack: ExitStack) -> Source:
        """Return the source with features computed ahead, or with load shedding if it is live."""
        from monitor.run.pace import add_load_shedding, prefetch_features  # imports audio libraries

        source = self.source
        if isinstance(source, LiveSource):
            pair = None if self.side is None else self.side.pair
            return add_load_shedding(source, self.monitor, pair)
        if self.side is not None:
            return source
        ahead = prefetch_features(source, self.monitor, jobs)
        return source if ahead is None else stack.enter_context(ahead)

    def measure_end(
        self, against: float | None, start: RunStart, *, is_heard: bool
    ) -> tuple[tuple[TranscriptEnd, ...] | None, list[Notice]]:
        """Measure the coverage of transcripts (None without any), and list the final notices.

        ``against`` has the last reading's bits, if they are evidence against the watched speaker.
        """
        labels, watch, notices = self.source.labels, self.monitor.watch, list[Notice]()
        if self.split is not None:
            notices += self.split.list_end_notices()
        else:
            notices += recording_notices(self.monitor, labels) if is_heard else []
            if against is not None and watch is not None:
                notices.append(evidence_against(against, watch))
        if self.monitor.coverage is None:
            return None, notices
        coverage = self.monitor.coverage.measure()
        notices += coverage_notices(coverage, labels, start.transcripts or ())
        return list_coverage(coverage, labels), notices


def _open_people(
    source: Source, monitors: Sequence[Monitor], labels: Sequence[str], *, alone: str, resumes: bool
) -> MultiSpeakerMonitor | None:
    """Set up a monitor for each person, if the source is split.

    ``alone`` names a part of the run that supports only one voice, if any.
    """
    if not isinstance(source, SplitSource):
        if len(monitors) > 1:
            raise UsageError(
                "several speakers can be watched only in a recording split by person "
                "(sources.Diarised, sources.PerChannel); give one Monitor"
            )
        return None
    people = source.people
    unknown = [name for name in labels if not find_name(name, people)]
    if unknown and not source.stream_info.live:
        hint = nearest_spelling(unknown[0], people) or f"labels: {', '.join(people[:5])}"
        raise UsageError(f"{printable(unknown[0])} is not in the turns; {hint}")
    if alone:
        raise UsageError(f"{alone} needs a single voice, not a recording split by person")
    if resumes:
        raise UsageError(Message("a run of several people cannot be resumed: leave out ", RESUME))
    from monitor.stream.people import MultiSpeakerMonitor

    return MultiSpeakerMonitor(source, monitors)


def _describe_words(source: Source, monitor: Monitor) -> Iterator[Notice]:
    features = monitor.front_end.word_features()
    checked = [feature for feature in features if isinstance(feature, WordFeature)]
    for note in source.transcripts:
        for line in note.notices:
            yield Notice("transcript", line)
        for feature in checked:
            if doubt := feature.doubt(note.label, note.texts):
                yield Notice("other language", doubt)
