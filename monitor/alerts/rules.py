"""A rule that watches one figure of the readings: threshold, hold and hysteresis."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from monitor.alerts.fields import check_field, most_bits
from monitor.alerts.holding import Holding
from monitor.errors import UsageError

__all__ = ["Threshold"]

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)"
_SECONDS = rf"{NUMBER})\s*(?:s|sec|seconds?)?"
HOLD = rf"(?:\s*for\s*(?P<hold>{_SECONDS})?(?:\s*after\s*(?P<least>{_SECONDS})?"
RULE = re.compile(rf"\s*(?P<field>[^\s<>=]+)\s*>=?\s*(?P<bits>{NUMBER})\s*(?:bits?)?{HOLD}\s*")


class Threshold(Holding):
    """Raises an alert once a figure has held a threshold for a while (docs/method.md section 7).

    The field is taken at its word: ``bits`` is the value shown, ``bits_low`` its lower limit.
    Raised at the first reading that ends ``hold_seconds`` of readings that are all at or above
    ``bits`` and of ``least_speech_seconds`` of speech or more: an early figure rests on little of a
    voice, and may well be somebody else's. Cleared at the first reading that ends
    ``hold_seconds`` of readings below ``bits - clear_margin_bits``, or with a change of speaker or
    channel.

    Args:
        field: a figure of a reading (``bits``, the headline; ``evidence_bits``,
            ``closed_set_bits``, ``sum_bits``, ``gain_bits``, ``expected_bits``), of a crowd
            (``among.1e6.bits``) or of one of its features (``f0.rank_bits``), or a limit of it
            (``bits_low``, ``f0.rank_bits_low``).
        bits: the threshold.
        hold_seconds: stream seconds; 0 raises and clears at once.
        clear_margin_bits: how far below the threshold counts as over.
        least_speech_seconds: T of the first reading that counts, speech seconds. A stream that ends
            with less is `undecided`.

    Raises:
        UsageError: an unknown field, or a number that makes no sense.

    Examples:
        >>> rule = Threshold("bits", 3.0, hold_seconds=2.0)
        >>> for t in range(4):
        ...     for alert in rule.update({"type": "reading", "seconds": t, "bits": 3.4}):
        ...         print(alert["state"], alert["seconds"], alert["rule"])
        raised 2 bits>3 for 2 s
        >>> Threshold.parse("f0.rank_bits_low >= 1.5 for 10s").rule
        'f0.rank_bits_low>1.5 for 10 s'
        >>> Threshold.parse("bits>3 for 5 s after 10 s").least_speech_seconds
        10.0
    """

    def __init__(
        self,
        field: str,
        bits: float,
        hold_seconds: float = 5.0,
        clear_margin_bits: float = 0.25,
        least_speech_seconds: float = 0.0,
    ) -> None:
        check_field(field)
        if not math.isfinite(bits):
            raise UsageError(f"bits={bits} must be a finite number of bits")
        for name, value in (
            ("hold_seconds", hold_seconds),
            ("clear_margin_bits", clear_margin_bits),
            ("least_speech_seconds", least_speech_seconds),
        ):
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{name}={value} must be finite and not negative")
        super().__init__(field, bits, float(least_speech_seconds))
        self.hold_seconds = float(hold_seconds)
        self.clear_margin_bits = float(clear_margin_bits)

    @classmethod
    def parse(cls, text: str, least_speech_seconds: float = 0.0) -> Threshold:
        """The rule written as ``FIELD>BITS``, ``for SECONDS s`` and ``after SECONDS s`` optional.

        ``>`` and ``>=`` mean the same: at or above.

        Args:
            text: the rule.
            least_speech_seconds: of a rule that does not say after how much speech.

        Raises:
            UsageError: the text is no rule, or names an unknown field.
        """
        match = RULE.fullmatch(text)
        if match is None:
            raise UsageError(
                f"cannot read the alert rule {text!r}: write it as 'bits>3 for 5 s', or as a field "
                "alone and leave the threshold to --false-alarms"
            )
        told = {"least_speech_seconds": least_speech_seconds}
        if match["hold"] is not None:
            told["hold_seconds"] = float(match["hold"])
        if match["least"] is not None:
            told["least_speech_seconds"] = float(match["least"])
        return cls(match["field"], float(match["bits"]), **told)

    @property
    def rule(self) -> str:
        """The rule as text that ``parse`` reads."""
        least = self.least_speech_seconds
        after = f" after {_plain(least)} s" if least else ""
        return f"{self.field}>{_plain(self.bits)} for {_plain(self.hold_seconds)} s{after}"

    def terms(self) -> dict[str, Any]:
        """What the ``start`` record says of it."""
        return {
            "rule": self.rule,
            "field": self.field,
            "threshold": self.bits,
            "level": self.level,
            "hold_seconds": self.hold_seconds,
            "least_speech_seconds": self.least_speech_seconds,
        }

    def _counts(self, value: float) -> bool:
        return self.is_over(value) if self.raised else value >= self.bits

    def _hold(self) -> float:
        return self.hold_seconds

    def is_over(self, value: float) -> bool:
        """Whether a figure is low enough to clear an alert."""
        return value < self.bits - self.clear_margin_bits

    def note(self, start: Mapping[str, Any]) -> str | None:
        """What a person should know before the stream of this ``start`` begins; mostly nothing."""
        most, why = most_bits(self.field, start)
        if most is None or self.bits <= most:
            return None
        return f"{self.rule}: can never be raised: {why} {most:.2f} bits at most"


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
