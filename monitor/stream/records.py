"""The first and the last line of a run, and the losses between (JSON-able records)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from monitor.crowds import speaks_against
from monitor.events import declaration
from monitor.events.declaration import to_json
from monitor.events.occurrences import Alert, Change, GapEvent, NoticeEvent
from monitor.events.reading import Reading
from monitor.events.run import SCHEMA_VERSION
from monitor.events.schema import event_of
from monitor.population.rank_model import RankModel
from monitor.protocols import Source
from monitor.stream.front_end import RecordingCoverage
from monitor.stream.monitor import Event, Monitor
from monitor.stream.notices import setup_notices
from monitor.types import Notice
from monitor.version import __version__


def transcripts_record(source: Source, labels: Sequence[str]) -> dict[str, Any]:
    """Return the transcripts for the ``start`` record; nothing where no words come."""
    if not source.stream_info.words:
        return {}
    transcripts = [
        {
            "recording": _name_of(labels, place),
            "transcript": transcript.label,
            "words": transcript.words,
            "spread": transcript.spread,
            "speaker": transcript.speaker,
        }
        for place, transcript in enumerate(source.transcripts)
    ]
    return {"transcripts": transcripts}


def coverage_record(
    coverages: Sequence[RecordingCoverage], labels: Sequence[str]
) -> list[dict[str, Any]]:
    """Return how well the words of each recording fit its speech, for the ``end`` record."""
    return [
        {
            "recording": _name_of(labels, recording.recording),
            "words": recording.words,
            "words_in_speech": recording.coverage and recording.coverage.in_speech,
            "speech_with_words": recording.coverage and recording.coverage.covered,
            "as_well_elsewhere": recording.coverage and recording.coverage.as_well,
        }
        for recording in coverages
    ]


def coverage_notices(
    coverages: Sequence[RecordingCoverage],
    labels: Sequence[str],
    transcripts: Sequence[Mapping[str, Any]],
) -> Iterator[Notice]:
    """Yield how the words of each recording lie in its speech.

    Args:
        coverages: of the recordings.
        labels: names of all recordings.
        transcripts: from `transcripts_record`.
    """
    for recording in coverages:
        index = recording.recording
        name = _name_of(labels, index)
        if index < len(transcripts):
            name = transcripts[index]["transcript"]
        if recording.coverage is not None:
            sentence = recording.coverage.sentence(name)
        else:
            none = "no words came: the average and the plateau are still those of voices with words"
            reason = "nobody speaks in its recording" if recording.words else none
            sentence = f"{name}: {reason}"
        yield Notice("transcript", sentence)


def _name_of(labels: Sequence[str], place: int) -> str:
    return labels[place] if place < len(labels) else ""


_MOST_LOST = 3


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def start_record(monitor: Monitor, recordings: Sequence[str]) -> dict[str, Any]:
    """Return everything a reader of the run needs before its first reading."""
    attacker = monitor.attacker
    rank_model, templates = attacker.rank_model, monitor.conditions.templates
    return {
        "type": "start",
        "schema": SCHEMA_VERSION,
        "version": __version__,
        "time": _now(),
        "features": list(monitor.features),
        "speakers": attacker.speakers,
        "ceiling": attacker.ceiling,
        "reachable_bits": attacker.reachable_bits,
        "plateau": attacker.joint.expected.plateau_bits,
        "watch": monitor.watch,
        "headline": monitor.headline,
        "assumes_enrolled": monitor.watch is None,
        "step_seconds": monitor.step_seconds,
        "template_seconds": attacker.scoring.seconds,
        "similarity": dict(zip(rank_model.features, rank_model.similarities, strict=True)),
        "ties": "spread",
        "rank_model": "mismatched" if monitor.mismatched else "own",
        "rank_model_prior": rank_model.prior_share,
        "rank_model_session": attacker.session,
        "rank_model_speakers": rank_model.speakers,
        "rank_model_candidates": rank_model.candidates,
        "among": list(attacker.among),
        "enrolled_prior": attacker.enrolled_prior,
        "support_bits": attacker.support_bits,
        **_bystanders(monitor),
        "on_change": monitor.on_change,
        "conditions": None if templates is None else templates.record(),
        "recordings": list(recordings),
        "fingerprint": fingerprint(monitor),
        "notices": [str(notice) for notice in setup_notices(monitor)],
    }


def _bystanders(monitor: Monitor) -> dict[str, Any]:
    asked = monitor.bystanders
    return {} if asked is None else {"bystanders": {"above": asked.level, "people": asked.people}}


def fingerprint(monitor: Monitor) -> dict[str, str]:
    """Hash population and rank model: equal ones, equal figures."""
    attacker = monitor.attacker
    return {
        "population": monitor.population.fingerprint(),
        "rank_model": _fingerprint(attacker.rank_model, attacker.evidence_model),
    }


def _fingerprint(rank_model: RankModel, evidence_model: RankModel | None) -> str:
    """Hash everything that a reading depends on."""
    digest = hashlib.sha256(
        repr((rank_model.features, rank_model.session, rank_model.similarities)).encode()
    )
    for name in ("lengths", "template_lengths", "alpha", "beta", "binomial", "weights", "floor"):
        digest.update(getattr(rank_model, name).tobytes())
    others = [] if evidence_model is None or evidence_model is rank_model else [evidence_model]
    for evidence in (model.evidence for model in (rank_model, *others)):
        if evidence is not None:
            for name in ("intercept", "slopes", "support"):
                digest.update(getattr(evidence, name).tobytes())
    return digest.hexdigest()[:16]


class RunTotals:
    """Totals of a run, for the ``end`` record; they survive a checkpoint.

    Attributes:
        failures: what could not be done with the run, a line each.
        lost: why audio was lost, the first few of these lines.
        silent: names of the recordings in which nobody spoke.
        noticed, notices: what was said in the middle of the stream, and of its recordings.
        undecided: alert rules of which a stream so short says nothing, a line each.
        bystanders: the most that each of them came to, by name.
        against: the last reading's bits where they are strong evidence against the watched speaker.
    """

    def __init__(self) -> None:
        self.readings = self.gaps = self.changes = self.alerts = self.warnings = 0
        self.lost_seconds = 0.0
        self.failures: list[str] = []
        self.lost: list[str] = []
        self.silent: list[str] = []
        self.notices: list[str] = []
        self.noticed: list[str] = []
        self.undecided: list[str] = []
        self.bystanders: dict[str, dict[str, Any]] = {}
        self.last: Mapping[str, Any] = {}
        self.against: float | None = None

    def count(self, record: declaration.Event | Mapping[str, Any]) -> None:
        """Count one event of the run, or its record."""
        match event := event_of(record):
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
            if highest is None or bystander.probability > highest["probability"]:
                self.bystanders[bystander.name] = to_json(bystander)
        headline = {"bits": reading.bits, "headline": reading.headline}
        against = speaks_against(headline) and reading.change is None
        self.against = reading.bits if against else None
        self.last = {
            "seconds": reading.seconds,
            "speech": reading.speech,
            "bits": reading.bits,
            "peak_bits": reading.peak_bits,
            "top": [list(pair) for pair in reading.top],
        }

    def end_record(
        self,
        monitor: Monitor,
        recordings: Sequence[str] = (),
        *,
        complete: bool,
        stopped: str | None = None,
        notices: Sequence[Notice] = (),
    ) -> dict[str, Any]:
        """Summarise the run; ``stopped`` is the rule that ended it."""
        self.silent = [
            recordings[notice.recording] for notice in notices if notice.kind == "no speech"
        ]
        self.notices = [str(notice) for notice in notices]
        conditions = monitor.conditions.now
        empty = {"seconds": 0.0, "speech": 0.0, "bits": 0.0, "peak_bits": 0.0, "top": []}
        return {
            "type": "end",
            "time": _now(),
            **empty,
            **self.last,
            "readings": self.readings,
            "conditions": None if conditions is None else conditions.record(),
            "differs": list(monitor.conditions.differs),
            "gaps": self.gaps,
            "changes": self.changes,
            "lost_seconds": self.lost_seconds,
            "alerts": self.alerts,
            "warnings": self.warnings,
            "failures": self.failures,
            "undecided": self.undecided,
            "stopped": stopped,
            "complete": complete,
            "watch": monitor.watch,
            "recordings": list(recordings),
            "notices": [*self.noticed, *self.notices],
            **({"repeated_seconds": monitor.repeated_seconds} if monitor.repeated_seconds else {}),
            **self._bystanders(monitor),
        }

    def _bystanders(self, monitor: Monitor) -> dict[str, Any]:
        """Return each with their largest probability, the most probable first; nothing without."""
        if monitor.bystanders is None:
            return {}
        ranked = sorted(self.bystanders.values(), key=lambda bystander: -bystander["probability"])
        return {"bystanders": ranked}

    def state(self) -> str:
        """Return it as text, for a checkpoint."""
        return json.dumps(vars(self))

    def restore(self, text: str) -> None:
        """Continue from a ``state``."""
        vars(self).update(json.loads(text))


def placed(event: Event, recordings: Sequence[str], on_change: str = "note") -> Event:
    """Name the recording of an event, and what is done at a change."""
    if isinstance(event, Reading):
        return event
    if isinstance(event, Change):
        return replace(event, action=on_change)
    return replace(event, recording=_name_of(recordings, event.number))
