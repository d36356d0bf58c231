"""The first and the last line of a run, and the losses between (JSON-able records)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from monitor.crowds import speaks_against
from monitor.population.rank_model import RankModel
from monitor.protocols import Source
from monitor.records.reading import SCHEMA_VERSION
from monitor.stream.front_end import RecordingCoverage
from monitor.stream.monitor import Event, Monitor
from monitor.stream.notices import NoticeEvent, setup_notices
from monitor.stream.reading import Change, Reading
from monitor.types import Notice
from monitor.version import __version__


def transcripts_record(source: Source, labels: Sequence[str]) -> dict[str, Any]:
    """For the ``start`` record: whose words are heard; nothing where no words come."""
    if not source.stream_info.words:
        return {}
    known = [
        {
            "recording": _named(labels, place),
            "transcript": each.label,
            "words": each.words,
            "spread": each.spread,
            "speaker": each.speaker,
        }
        for place, each in enumerate(source.transcripts)
    ]
    return {"transcripts": known}


def coverage_record(
    found: Sequence[RecordingCoverage], labels: Sequence[str]
) -> list[dict[str, Any]]:
    """For the ``end`` record: how well the words of each recording fit its speech."""
    return [
        {
            "recording": _named(labels, each.recording),
            "words": each.words,
            "words_in_speech": each.coverage and each.coverage.in_speech,
            "speech_with_words": each.coverage and each.coverage.covered,
            "as_well_elsewhere": each.coverage and each.coverage.as_well,
        }
        for each in found
    ]


def coverage_notices(
    found: Sequence[RecordingCoverage], labels: Sequence[str], begun: Sequence[Mapping[str, Any]]
) -> Iterator[Notice]:
    """How the words of each recording lie in its speech; ``begun`` is from `transcripts_record`."""
    for each in found:
        place = each.recording
        name = begun[place]["transcript"] if place < len(begun) else _named(labels, place)
        if each.coverage is not None:
            said = each.coverage.sentence(name)
        else:
            none = "no words came: the average and the plateau are still those of voices with words"
            why = "nobody speaks in its recording" if each.words else none
            said = f"{name}: {why}"
        yield Notice("transcript", said)


def _named(labels: Sequence[str], place: int) -> str:
    return labels[place] if place < len(labels) else ""


_MOST_LOST = 3


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def start_record(monitor: Monitor, recordings: Sequence[str]) -> dict[str, Any]:
    """Everything a reader of the run needs to know before its first reading."""
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
    """Of population and rank model: equal ones, equal figures."""
    attacker = monitor.attacker
    return {
        "population": monitor.population.fingerprint(),
        "rank_model": _fingerprint(attacker.rank_model, attacker.evidence_model),
    }


def _fingerprint(rank_model: RankModel, evidence_model: RankModel | None) -> str:
    """A hash over everything that a reading depends on."""
    digest = hashlib.sha256(
        repr((rank_model.features, rank_model.session, rank_model.similarities)).encode()
    )
    for name in ("lengths", "template_lengths", "alpha", "beta", "binomial", "weights", "floor"):
        digest.update(getattr(rank_model, name).tobytes())
    others = [] if evidence_model is None or evidence_model is rank_model else [evidence_model]
    for evidence in (each.evidence for each in (rank_model, *others)):
        if evidence is not None:
            for name in ("intercept", "slopes", "support"):
                digest.update(getattr(evidence, name).tobytes())
    return digest.hexdigest()[:16]


class RunTotals:
    """Counts what went by, for the ``end`` record; survives a checkpoint.

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

    def count(self, record: Mapping[str, Any]) -> None:
        """Take note of one record."""
        kind = record["type"]
        if kind == "reading":
            self.readings += 1
            for each in record.get("bystanders") or ():
                before = self.bystanders.get(each["name"])
                if before is None or each["probability"] > before["probability"]:
                    self.bystanders[each["name"]] = dict(each)
            against = speaks_against(record) and not record.get("change")
            self.against = record["bits"] if against else None
            self.last = {
                key: record[key] for key in ("seconds", "speech", "bits", "peak_bits", "top")
            }
        elif kind == "gap":
            self.gaps += 1
            self.lost_seconds += record["lost_seconds"] or 0.0
            why = record.get("detail") or record["reason"]
            if why not in self.lost and len(self.lost) < _MOST_LOST:
                self.lost.append(why)
        elif kind == "notice":
            line = ": ".join(filter(None, (record["recording"], record["text"])))
            if line not in self.noticed:
                self.noticed.append(line)
        elif kind == "change":
            self.changes += 1
        elif kind == "alert" and record["state"] == "raised":
            if record.get("level", "alert") == "alert":
                self.alerts += 1
            else:
                self.warnings += 1

    def end_record(
        self,
        monitor: Monitor,
        recordings: Sequence[str] = (),
        *,
        complete: bool,
        stopped: str | None = None,
        notices: Sequence[Notice] = (),
    ) -> dict[str, Any]:
        """The summary of the run; ``stopped`` is the rule that ended it."""
        self.silent = [
            recordings[notice.recording] for notice in notices if notice.kind == "no speech"
        ]
        self.notices = [str(notice) for notice in notices]
        heard = monitor.conditions.now
        nothing = {"seconds": 0.0, "speech": 0.0, "bits": 0.0, "peak_bits": 0.0, "top": []}
        return {
            "type": "end",
            "time": _now(),
            **nothing,
            **self.last,
            "readings": self.readings,
            "conditions": None if heard is None else heard.record(),
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
        """Each with the most they came to, the most probable first; nothing where nobody asked."""
        if monitor.bystanders is None:
            return {}
        ranked = sorted(self.bystanders.values(), key=lambda each: -each["probability"])
        return {"bystanders": ranked}

    def state(self) -> str:
        """As text, for a checkpoint."""
        return json.dumps(vars(self))

    def restore(self, text: str) -> None:
        """Take up a ``state``."""
        vars(self).update(json.loads(text))


def placed(event: Event, recordings: Sequence[str], on_change: str = "note") -> Event:
    """What the monitor gave, with the name of its recording, and what is done at a change."""
    if isinstance(event, Reading):
        return event
    if isinstance(event, Change):
        return replace(event, action=on_change)
    number = (event.notice if isinstance(event, NoticeEvent) else event.gap).recording
    return replace(event, recording=_named(recordings, number))
