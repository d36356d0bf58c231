"""What came of one recording: its run in one line of figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from monitor.alerts.crossings import as_text
from monitor.errors import MonitorError
from monitor.run.files import Unfinished
from monitor.run.status import FAILED, status_of, status_of_error
from monitor.safe_text import printable

if TYPE_CHECKING:
    from monitor.run.run import Run

__all__ = ["Opened", "RecordingOutcome", "hear_one"]

Opened: TypeAlias = "Callable[[Path, Unfinished | None], Run]"
"""Gives the run of a recording, fresh, not yet entered, and able to go on from what was left."""

_FIGURES = (
    *("bits", "bits_low", "bits_high", "headline", "at_least", "peak_bits"),
    *("evidence_bits", "evidence_bits_low", "evidence_bits_high"),
    *("closed_set_bits", "closed_set_bits_low", "closed_set_bits_high"),
)
_PROTECTED = ("bits", "bits_low", "bits_high", "at_least")


@dataclass(frozen=True, slots=True)
class RecordingOutcome:
    """A recording after its run; figures are those of the last reading (docs/records.md).

    Attributes:
        seconds, speech: of audio heard, and of speech in it.
        bits, bits_low, bits_high: the headline and its limits.
        headline: what it is, ``"evidence"`` or ``"closed-set"``; else empty.
        at_least: whether the evidence was cut to what calibration can support.
        peak_bits: the largest headline.
        evidence_bits, evidence_bits_low, evidence_bits_high: the evidence and its limits.
        closed_set_bits, closed_set_bits_low, closed_set_bits_high: among the N enrolled.
        first_alert_seconds: where in the audio the first alert was raised; None without one.
        alerts, gaps, changes: how many.
        exit_status: what `monitor replay` of this recording alone leaves with.
        session: the kind of session that the law is of, ``"cross"`` or ``"same"``; else empty.
        enrolled_too: whether another part of the recording was enrolled; None where unheard.
        undecided: alerts of which so short a recording says nothing; else empty.
        error: why it could not be heard to its end; empty where it could.
        protected_bits, protected_bits_low, protected_bits_high: of the protected side, where there
            is one (``--protect``): the headline of the strongest attacker who was tried.
        protected_at_least: whether that is evidence that was cut.
        protected_by: who that attacker is; else empty.
        bandwidth_hz, snr_db, reverberation_seconds, clipping, level_db: what it sounds like.
        differs: which of these are unlike the templates', or bad in themselves, with spaces
            between them: then low bits are no safety.
        notices: what was noticed of it, and of it alone, sentences with semicolons between them.
        crossings: when either side reached which bits (`monitor.alerts.crossings.as_text`).

    Figures are None where nothing was heard, or where they are withheld.
    """

    seconds: float | None = None
    speech: float | None = None
    bits: float | None = None
    bits_low: float | None = None
    bits_high: float | None = None
    headline: str = ""
    at_least: bool | None = None
    peak_bits: float | None = None
    evidence_bits: float | None = None
    evidence_bits_low: float | None = None
    evidence_bits_high: float | None = None
    closed_set_bits: float | None = None
    closed_set_bits_low: float | None = None
    closed_set_bits_high: float | None = None
    first_alert_seconds: float | None = None
    alerts: int = 0
    gaps: int = 0
    changes: int = 0
    exit_status: int = 0
    undecided: str = ""
    error: str = ""
    session: str = ""
    enrolled_too: bool | None = None
    protected_bits: float | None = None
    protected_bits_low: float | None = None
    protected_bits_high: float | None = None
    protected_at_least: bool | None = None
    protected_by: str = ""
    crossings: str = ""
    bandwidth_hz: float | None = None
    snr_db: float | None = None
    reverberation_seconds: float | None = None
    clipping: float | None = None
    level_db: float | None = None
    differs: str = ""
    notices: str = ""


def hear_one(path: Path, opened: Opened, state: Path | None = None) -> RecordingOutcome:
    """Hear a recording to its end; what goes wrong with it is part of the outcome.

    Args:
        path: the recording.
        opened: gives its run, fresh, not yet entered.
        state: where to leave what it is gone on from, should this process be killed; one that is
            there is taken up, or removed where it is damaged.
    """
    tally = _Tally()
    taken_up = state is not None and state.exists()
    try:
        with opened(path, None if state is None else Unfinished(state, (tally,))) as run:
            for record in run:
                tally.take(record)
    except MonitorError as error:
        if state is not None and taken_up:
            state.unlink(missing_ok=True)
            return hear_one(path, opened, state)
        return RecordingOutcome(exit_status=status_of_error(error), error=_line(str(error)))
    except Exception as error:  # one recording of thousands must not end the others
        said = f"unexpected {type(error).__name__}: {error}"
        return RecordingOutcome(exit_status=FAILED, error=_line(said))
    return RecordingOutcome(
        **tally.figures,
        first_alert_seconds=tally.first_alert,
        alerts=run.totals.alerts,
        gaps=run.totals.gaps,
        changes=run.totals.changes,
        exit_status=status_of(run),
        undecided="; ".join(run.totals.undecided),
        error=_line("; ".join(run.totals.failures)),
        session=run.start["law_session"],
        enrolled_too=run.monitor.session == "same",
        crossings=as_text(tally.bought),
        notices=_line("; ".join(_of_itself(run))),
    )


def _of_itself(run: Run) -> list[str]:
    """What was noticed of the recording, without its name."""
    of_recording = ("no speech", "another person")
    noticed = [n for n in run.notices if n.seconds is not None or n.kind in of_recording]
    lost = [f"audio was lost: {why}" for why in run.totals.lost]
    name = f"{run.source.label}: "
    return [line.replace(name, "") for line in (*lost, *map(str, noticed))]


def _protected(last: Mapping[str, Any]) -> dict[str, Any]:
    """The figure of the protected side, and whose it is."""
    side = last.get("protected") or {}
    figures = {f"protected_{name}": side.get(name) for name in _PROTECTED}
    return {**figures, "protected_by": side.get("by") or ""}


class _Tally:
    """What the records of a run come to; goes on with a run that is gone on with."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {"seconds": 0.0, "speech": 0.0}
        self.first_alert: float | None = None
        self.bought: Sequence[Mapping[str, Any]] = ()

    def take(self, record: Mapping[str, Any]) -> None:
        if record["type"] == "reading":
            plain = {name: record.get(name) for name in ("seconds", "speech", *_FIGURES)}
            sound = record.get("conditions") or {}
            differs = " ".join(record.get("differs", ()))
            self.figures = {**plain, **_protected(record), **sound, "differs": differs}
        elif record["type"] == "end":
            self.bought = record.get("bought", ())
        elif self.first_alert is None and _is_raised(record):
            self.first_alert = record["seconds"]

    def state(self) -> dict[str, Any]:
        return {"figures": self.figures, "first_alert": self.first_alert}

    def restore(self, state: Mapping[str, Any]) -> None:
        figures, first = state["figures"], state["first_alert"]
        RecordingOutcome(**figures)  # refuses what is none of its figures
        if not all(
            isinstance(each, float | int | str | None) for each in (*figures.values(), first)
        ):
            raise TypeError("figures are numbers, and texts say whose they are")
        self.figures, self.first_alert = dict(figures), first


def _is_raised(record: Mapping[str, Any]) -> bool:
    """Whether this is an alert (not a warning) that begins."""
    if record["type"] != "alert" or record["state"] != "raised":
        return False
    return bool(record.get("level", "alert") == "alert")


def _line(text: str) -> str:
    return printable(re.sub(r"\s*\n\s*", " ", text.strip()))
