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

    Attributes:
        level: ``"alert"``, which ends in exit status 3, or ``"warning"``.
        raised: whether it stands.
    """

    level = "alert"

    def __init__(self, field: str, bits: float) -> None:
        self.field = field
        self.bits = float(bits)
        self.raised = False
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
        change, self._change = record.get("change", self._change), None
        if change is not None:
            self._since = None
            return [{**self._flip(record, value), "change": change}] if self.raised else []
        if value is None or not self._counts(value):
            self._since = None
            return []
        seconds = record["seconds"]
        self._since = seconds if self._since is None else self._since
        if seconds - self._since < self._hold() - SLACK_SECONDS:
            return []
        return [self._flip(record, value)]

    def _flip(self, record: Mapping[str, Any], value: float | None) -> dict[str, Any]:
        """Raised is cleared, cleared is raised; the record that says so."""
        self.raised, self._since = not self.raised, None
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
            **self._more(),
        }

    def note(self, start: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """What a person should know before the stream of this ``start`` begins; mostly nothing."""
        return None

    def state(self) -> dict[str, Any]:
        """What a checkpoint must keep; JSON-able."""
        return {
            "rule": self.rule,
            "raised": self.raised,
            "since": self._since,
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
        self._change = state["change"]
