"""A rule that watches one figure of the readings: threshold, hold and hysteresis."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Protocol

from monitor.alerts.fields import check_field, check_stream, figures
from monitor.errors import UsageError

__all__ = ["Recordable", "Threshold", "alert_record"]

SLACK_SECONDS = 1e-6  # 0.1 + 0.2 s must hold for 0.3 s; far below one tick of 10 ms

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)"
RULE = re.compile(
    rf"\s*(?P<field>[^\s<>=]+)\s*>=?\s*(?P<bits>{NUMBER})\s*(?:bits?)?"
    rf"(?:\s*for\s*(?P<hold>{NUMBER})\s*(?:s|sec|seconds?)?)?\s*"
)


class _Rule(Protocol):
    level: str
    raised: bool

    @property
    def rule(self) -> str: ...


class Recordable(Protocol):
    """A reading as the monitor gives it."""

    def record(self) -> Mapping[str, Any]:
        """The same as a record."""


class Threshold:
    """Raises an alert once a figure has held a threshold for a while (METHOD, section 7).

    Raised at the first reading that ends ``hold_seconds`` of readings, all with v >= ``bits``,
    where v is the field's lower limit where it has one, else its value. Cleared at the first
    reading that ends ``hold_seconds`` of readings whose value is below
    ``bits - clear_margin_bits``. Gaps and withheld (null) figures restart either hold. Holds are
    measured from the first to the last reading they contain. State is three numbers, however
    long the stream.

    Attributes:
        level: ``"alert"``, which ends in exit status 3, or ``"warning"``.

    Args:
        field: a figure of a reading (``bits``, ``sum_bits``, ``gain_bits``, ``expected_bits``),
            or of one of its features (``f0.rank_bits``).
        bits: the threshold.
        hold_seconds: stream seconds; 0 raises and clears at once.
        clear_margin_bits: how far below the threshold counts as over.

    Raises:
        UsageError: an unknown field, or a number that makes no sense.

    Examples:
        >>> rule = Threshold("bits", 3.0, hold_seconds=2.0)
        >>> for t in range(4):
        ...     for alert in rule.update({"type": "reading", "seconds": t, "bits": 3.4}):
        ...         print(alert["state"], alert["seconds"], alert["rule"])
        raised 2 bits>3 for 2 s
        >>> Threshold.parse("f0.rank_bits >= 1.5 for 10s").rule
        'f0.rank_bits>1.5 for 10 s'
    """

    level = "alert"

    def __init__(
        self,
        field: str,
        bits: float,
        hold_seconds: float = 5.0,
        clear_margin_bits: float = 0.25,
    ) -> None:
        check_field(field)
        if not math.isfinite(bits):
            raise UsageError(f"bits={bits} must be a finite number of bits")
        for name, value in (
            ("hold_seconds", hold_seconds),
            ("clear_margin_bits", clear_margin_bits),
        ):
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{name}={value} must be finite and not negative")
        self.field = field
        self.bits = float(bits)
        self.hold_seconds = float(hold_seconds)
        self.clear_margin_bits = float(clear_margin_bits)
        self.raised = False
        self._since: float | None = None  # first reading of the run that would flip `raised`

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """The rule written as ``FIELD>BITS`` or ``FIELD>BITS for SECONDS s``.

        ``>`` and ``>=`` mean the same: at or above.

        Raises:
            UsageError: the text is no rule, or names an unknown field.
        """
        match = RULE.fullmatch(text)
        if match is None:
            raise UsageError(f"cannot read the alert rule {text!r}: write it as 'bits>3 for 5 s'")
        hold = {} if match["hold"] is None else {"hold_seconds": float(match["hold"])}
        return cls(match["field"], float(match["bits"]), **hold)

    @property
    def rule(self) -> str:
        """The rule as text that ``parse`` reads."""
        return f"{self.field}>{_plain(self.bits)} for {_plain(self.hold_seconds)} s"

    def update(self, record: Mapping[str, Any] | Recordable) -> list[dict[str, Any]]:
        """The alert records that this record of the run gives rise to, mostly none.

        Readings (as records, or as the monitor gives them) and gaps drive the rule; a ``start`` is
        checked against it; others are ignored.

        Raises:
            UsageError: the stream has no such feature, or watches nobody where the field needs it.
        """
        if not isinstance(record, Mapping):
            record = record.record()
        kind = record.get("type", "reading")
        if kind == "gap" or (kind == "change" and record["action"] != "note"):
            self._since = None
        elif kind == "start":
            check_stream(self.field, record)
        if kind != "reading":
            return []
        value, low = figures(self.field, record)
        if value is None:
            self._since = None
            return []
        if self.raised:
            counts = value < self.bits - self.clear_margin_bits
        else:
            counts = (value if low is None else low) >= self.bits
        seconds = record["seconds"]
        if not counts:
            self._since = None
            return []
        if self._since is None:
            self._since = seconds
        if seconds - self._since < self.hold_seconds - SLACK_SECONDS:
            return []
        self.raised = not self.raised
        self._since = None
        return [alert_record(self, self.field, self.bits, record, value)]

    def state(self) -> dict[str, Any]:
        """What a checkpoint must keep; JSON-able."""
        return {"rule": self.rule, "raised": self.raised, "since": self._since}

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
        self.raised = bool(state["raised"])
        self._since = state["since"]

    def note(self, start: Mapping[str, Any]) -> str | None:
        """What a person should know before the stream of this ``start`` begins; mostly nothing."""
        ceiling = start.get("ceiling")
        if ceiling is None or self.field == "sum_bits" or self.bits <= ceiling:
            return None
        return (
            f"{self.rule}: can never be raised, {start.get('speakers')} speakers are worth "
            f"{ceiling:.2f} bits at most"
        )


def alert_record(
    rule: _Rule, field: str, bits: float, record: Mapping[str, Any], value: float
) -> dict[str, Any]:
    """What a rule that has just been raised or cleared says.

    Args:
        rule: it.
        field: the figure that it watches.
        bits: its threshold.
        record: the reading.
        value: the figure in it.
    """
    return {
        "type": "alert",
        "seconds": record["seconds"],
        "speech": record.get("speech"),
        "rule": rule.rule,
        "field": field,
        "threshold": bits,
        "level": rule.level,
        "state": "raised" if rule.raised else "cleared",
        "value": value,
    }


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
