"""What all alert rules share: a condition that must hold for a while, and what interrupts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.alerts.fields import check_stream, figure
from monitor.errors import UsageError
from monitor.protocols import Recordable

__all__ = ["Holding"]

SLACK_SECONDS = 1e-6  # 0.1 + 0.2 s must hold for 0.3 s; far below one tick of 10 ms


class Holding:
    """A rule on one field: raised, and cleared, once its condition held long enough.

    Source: docs/method.md section 7.

    A hold is measured from the first to the last reading that it contains. Gaps, withheld (null)
    figures and changes of speaker or channel restart it. A change also clears the rule, with the
    next reading, and as long as it is open (``change`` in the readings) nothing is raised: that
    evidence may be somebody else's. State is a handful of values, however long the stream.

    Args:
        field: the figure of a reading.
        bits: the threshold, as records tell it.
        least_speech_seconds: T of the first reading that counts.

    Attributes:
        level: ``"alert"``, which ends in exit status 3, or ``"warning"``.
        raised: whether it stands.
    """

    level = "alert"

    def __init__(self, field: str, bits: float, least_speech_seconds: float = 0.0) -> None:
        self.field = field
        self.bits = float(bits)
        self.least_speech_seconds = least_speech_seconds
        self.raised = self._was_raised = False
        self._speech = self._held = 0.0  # most speech so far; how long the condition has held
        self._since: float | None = None  # first reading of the run that would flip `raised`
        self._change: dict[str, Any] | None = None  # the one since the last reading

    @property
    def rule(self) -> str:
        """What it says, as text."""
        raise NotImplementedError

    def _take(self, record: Mapping[str, Any]) -> None:
        """See every record before it is judged."""

    def _counts(self, value: float) -> bool:
        """Whether a reading with this figure would flip ``raised``."""
        raise NotImplementedError

    def _hold(self) -> float:
        """Stream seconds for which readings must count."""
        raise NotImplementedError

    def _more(self) -> dict[str, Any]:
        """What its records say besides."""
        return {}

    def update(self, record: Mapping[str, Any] | Recordable) -> list[dict[str, Any]]:
        """The alert records that this record of the run gives rise to, mostly none.

        Readings (as records, or as the monitor gives them), gaps and changes drive the rule; a
        ``start`` is checked against it; others are ignored.

        Raises:
            UsageError: the stream has no such feature, or watches nobody where the field needs it.
        """
        if not isinstance(record, Mapping):
            record = record.record()
        kind = record.get("type", "reading")
        self._take(record)
        if kind == "start":
            check_stream(self.field, record)
        elif kind in ("gap", "change"):
            self._since = None
            if kind == "change":
                self._change = {key: record.get(key) for key in ("since_seconds", "features")}
        if kind != "reading":
            return []
        value = figure(self.field, record)
        speech = record.get("speech")
        self._speech, self._held = max(self._speech, speech or 0.0), 0.0
        change, self._change = record.get("change", self._change), None
        if change is not None:
            self._since = None
            return [{**self._flip(record, value), "change": change}] if self.raised else []
        early = speech is not None and speech < self.least_speech_seconds - SLACK_SECONDS
        if value is None or early or not self._counts(value):
            self._since = None
            return []
        seconds = record["seconds"]
        self._since = seconds if self._since is None else self._since
        self._held = seconds - self._since
        if self._held < self._hold() - SLACK_SECONDS:
            return []
        return [self._flip(record, value)]

    def _flip(self, record: Mapping[str, Any], value: float | None) -> dict[str, Any]:
        """Raised is cleared, cleared is raised; the record that says so."""
        self.raised, self._since = not self.raised, None
        self._was_raised = True
        return {
            "type": "alert",
            "seconds": record["seconds"],
            "speech": record.get("speech"),
            "rule": self.rule,
            "field": self.field,
            "threshold": self.bits,
            "level": self.level,
            "state": "raised" if self.raised else "cleared",
            "value": value,
            **({"least_speech_seconds": least} if (least := self.least_speech_seconds) else {}),
            **self._more(),
        }

    def note(self, start: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """What a person should know before the stream of this ``start`` begins; mostly nothing."""
        return None

    @property
    def undecided(self) -> str:
        """Why a stream that ends here says nothing of the rule; empty where it does.

        It had less speech than the rule needs, or ended before a condition that held had held for
        long enough.
        """
        if self._was_raised or self.level != "alert":
            return ""
        told = f"alert {self.field}>{self.bits:.4g}: not decided"
        least = self.least_speech_seconds
        if self._speech < least - SLACK_SECONDS:
            return f"{told}, {self._speech:.1f} s of speech of the {least:g} s that it needs"
        if self._since is not None:
            return f"{told}, it held for {self._held:.1f} s of {self._hold():g} s when it ended"
        return ""

    def state(self) -> dict[str, Any]:
        """What a checkpoint must keep; JSON-able."""
        return {
            "rule": self.rule,
            "raised": self.raised,
            "was_raised": self._was_raised,
            "since": self._since,
            "speech": self._speech,
            "held": self._held,
            "change": self._change,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state`` was taken.

        Raises:
            UsageError: the state belongs to another rule.
        """
        if state.get("rule") != self.rule:
            raise UsageError(
                f"the checkpoint was made with the alert {state.get('rule')!r}, not {self.rule!r}: "
                "resume with the same rule"
            )
        self.raised, self._since = bool(state["raised"]), state["since"]
        self._was_raised = bool(state["was_raised"])
        self._speech, self._held = float(state["speech"]), float(state["held"])
        self._change = state["change"]
