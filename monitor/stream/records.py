"""Start and end of a run, and its counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from monitor.events import declaration
from monitor.events.declaration import from_json, to_json
from monitor.events.phrases import speaks_against
from monitor.events.reading import Bystander, Reading
from monitor.events.run import (
    SCHEMA_VERSION,
    Alert,
    BystanderTerms,
    Change,
    GapEvent,
    NoticeEvent,
    RunEnd,
    RunStart,
    TranscriptEnd,
    TranscriptStart,
)
from monitor.log_lines import utc_time
from monitor.phrases import plural
from monitor.protocols import Source
from monitor.stream.intake import RecordingCoverage
from monitor.stream.monitor import Monitor
from monitor.stream.notices import setup_notices
from monitor.stream.stream import Event
from monitor.types import Notice, Record
from monitor.version import __version__


def list_transcripts(source: Source, labels: Sequence[str]) -> tuple[TranscriptStart, ...] | None:
    """Return the transcripts for the start of a run; None without words."""
    if not source.stream_info.words:
        return None
    return tuple(
        TranscriptStart(_name_of(labels, index), t.label, t.words, t.spread, t.speaker)
        for index, t in enumerate(source.transcripts)
    )


def list_coverage(
    coverages: Sequence[RecordingCoverage], labels: Sequence[str]
) -> tuple[TranscriptEnd, ...]:
    """Return how well the words of each recording fit its speech, for the end of a run."""
    rows = []
    for recording in coverages:
        coverage = recording.coverage
        shares: tuple[float | None, float | None, float | None] = (None, None, None)
        if coverage is not None:
            shares = coverage.in_speech, coverage.covered, coverage.as_well
        name = _name_of(labels, recording.recording)
        rows.append(TranscriptEnd(name, recording.words, *shares))
    return tuple(rows)


def coverage_notices(
    coverages: Sequence[RecordingCoverage],
    labels: Sequence[str],
    transcripts: Sequence[TranscriptStart],
) -> Iterator[Notice]:
    """Yield a notice per recording on the fit of its words to its speech."""
    for recording in coverages:
        index = recording.recording
        name = _name_of(labels, index)
        if index < len(transcripts):
            name = transcripts[index].transcript
        if recording.coverage is not None:
            sentence = recording.coverage.sentence(name)
        else:
            none = "no words arrived, but the average and the plateau still assume words"
            reason = "its recording has no speech" if recording.words else none
            sentence = f"{name}: {reason}"
        yield Notice("transcript", sentence)


def _name_of(labels: Sequence[str], index: int) -> str:
    return labels[index] if index < len(labels) else ""


_MOST_LOST = 3


def start_event(monitor: Monitor, recordings: Sequence[str]) -> RunStart:
    """Return everything a reader of the run needs before its first reading."""
    attacker, bystanders = monitor.attacker, monitor.bystanders
    rank_model, templates = attacker.rank_model, monitor.conditions.templates
    return RunStart(
        schema=SCHEMA_VERSION,
        version=__version__,
        time=utc_time(),
        features=tuple(monitor.features),
        speakers=attacker.speakers,
        ceiling=attacker.ceiling,
        reachable_bits=attacker.most_bits("closed_set_bits"),
        plateau=attacker.joint.expected.plateau_bits,
        watch=monitor.watch,
        headline=monitor.headline,
        assumes_enrolled=monitor.watch is None,
        step_seconds=monitor.step_seconds,
        template_seconds=attacker.scoring.seconds,
        similarity=dict(zip(rank_model.features, rank_model.similarities, strict=True)),
        ties="spread",
        rank_model="mismatched" if monitor.mismatched else "own",
        rank_model_prior=rank_model.prior_share,
        rank_model_session=attacker.session,
        rank_model_speakers=rank_model.speakers,
        rank_model_candidates=rank_model.candidates,
        among=tuple(attacker.among),
        enrolled_prior=attacker.enrolled_prior,
        support_bits=attacker.support_bits,
        bystanders=None
        if bystanders is None
        else BystanderTerms(bystanders.level, bystanders.people),
        on_change=monitor.on_change,
        conditions=templates,
        recordings=tuple(recordings),
        fingerprint=monitor.plan.fingerprint,
        notices=tuple(str(notice) for notice in setup_notices(monitor)),
    )


class RunTotals:
    """Totals of a run, for its end; they survive a checkpoint."""

    def __init__(self) -> None:
        self.readings = self.gaps = self.changes = self.alerts = self.warnings = 0
        self.lost_seconds = 0.0
        self.failures: list[str] = []  # actions that failed, one line each
        self.lost: list[str] = []  # why audio was lost, the first few of these lines
        self.silent: list[str] = []  # names of the recordings without speech
        self.notices: list[str] = []
        # noticed, notices: notices in the middle of the stream, and about its recordings
        self.noticed: list[str] = []
        self.undecided: list[str] = []  # alert rules that need a longer stream, one line each
        self.bystanders: dict[str, Bystander] = {}  # by name, with the highest probability so far
        self.last: Record = {}  # figures of the last reading
        # the last reading's bits if they are strong evidence against the watched speaker
        self.against: float | None = None

    def count(self, event: declaration.Event) -> None:
        """Count one event of the run."""
        match event:
            case Reading():
                self._count_reading(event)
            case GapEvent():
                self.gaps += 1
                self.lost_seconds += event.lost_seconds or 0.0
                reason = event.detail or event.reason
                if reason not in self.lost and len(self.lost) < _MOST_LOST:
                    self.lost.append(reason)
            case NoticeEvent():
                line = ": ".join(filter(None, (event.recording, event.text)))
                if line not in self.noticed:
                    self.noticed.append(line)
            case Change():
                self.changes += 1
            case Alert(state="raised", level="alert"):
                self.alerts += 1
            case Alert(state="raised"):
                self.warnings += 1

    def _count_reading(self, reading: Reading) -> None:
        self.readings += 1
        for bystander in reading.bystanders or ():
            highest = self.bystanders.get(bystander.name)
            if highest is None or bystander.probability > highest.probability:
                self.bystanders[bystander.name] = bystander
        against = speaks_against(reading) and reading.change is None
        self.against = reading.bits if against else None
        self.last = {
            "seconds": reading.seconds,
            "speech": reading.speech,
            "bits": reading.bits,
            "peak_bits": reading.peak_bits,
            "top": [list(pair) for pair in reading.top],
        }

    def list_shortfalls(self, *, is_live: bool, lacks_ledger: bool) -> list[str]:
        """List the reasons why an ended run is incomplete, one line each."""
        lines = []
        if self.gaps:
            lines.append(f"audio was lost ({plural(self.gaps, 'gap')})")
        lines += [f"no speech in {name}" for name in self.silent]
        if lacks_ledger:
            lines.append("the ledger lacks part of it")
        return lines if is_live else lines + self.undecided  # a live run may end at any time

    def end_event(
        self,
        monitor: Monitor,
        recordings: Sequence[str] = (),
        *,
        complete: bool,
        stopped: str | None = None,
        notices: Sequence[Notice] = (),
    ) -> RunEnd:
        """Summarise the run; ``stopped`` is the rule that ended it."""
        self.silent = [
            recordings[notice.recording] for notice in notices if notice.kind == "no speech"
        ]
        self.notices = [str(notice) for notice in notices]
        ranked = sorted(self.bystanders.values(), key=lambda bystander: -bystander.probability)
        empty = {"seconds": 0.0, "speech": 0.0, "bits": 0.0, "peak_bits": 0.0, "top": ()}
        last = {**empty, **self.last}
        revealing_bits, revealing_seconds = monitor.core.most_revealing or (None, None)
        return RunEnd(
            time=utc_time(),
            **{**last, "top": tuple((name, probability) for name, probability in last["top"])},
            revealing_bits=revealing_bits,
            revealing_seconds=revealing_seconds,
            readings=self.readings,
            conditions=monitor.conditions.now,
            differs=tuple(monitor.conditions.differs),
            gaps=self.gaps,
            changes=self.changes,
            lost_seconds=self.lost_seconds,
            alerts=self.alerts,
            warnings=self.warnings,
            failures=tuple(self.failures),
            undecided=tuple(self.undecided),
            stopped=stopped,
            complete=complete,
            watch=monitor.watch,
            recordings=tuple(recordings),
            notices=(*self.noticed, *self.notices),
            repeated_seconds=monitor.core.observers.gate.seconds or None,
            bystanders=None if monitor.bystanders is None else tuple(ranked),
        )

    def state(self) -> str:
        """Return the totals as text for a checkpoint."""
        bystanders = {name: to_json(person) for name, person in self.bystanders.items()}
        return json.dumps({**vars(self), "bystanders": bystanders})

    def restore(self, text: str) -> None:
        """Continue from a ``state``."""
        vars(self).update(json.loads(text))
        records: Record = vars(self)["bystanders"]
        self.bystanders = {name: from_json(Bystander, person) for name, person in records.items()}


def placed(event: Event, recordings: Sequence[str], on_change: str = "note") -> Event:
    """Add the recording's name to an event, or the action to a change."""
    if isinstance(event, Reading):
        return event
    if isinstance(event, Change):
        return replace(event, action=on_change)
    return replace(event, recording=_name_of(recordings, event.number))
