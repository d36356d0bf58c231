"""What the records of a run say of its protected side (``--protect``)."""

from __future__ import annotations

from typing import Any

from monitor.records.keys import (
    FIGURE,
    FLAG,
    MAYBE_SECONDS,
    MAYBE_TEXT,
    NUMBER,
    SECONDS,
    TEXT,
    VALUE,
    limits,
    with_limits,
)

__all__ = ["BOUGHT", "PROTECTED_READING", "PROTECTED_START", "protected_record"]

_MAYBE_FLAG = {"type": ["boolean", "null"]}
PROTECTED_START = {
    "type": "object",
    "properties": {
        "method": TEXT,
        "latency_seconds": MAYBE_SECONDS,
        "attackers": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "support_bits": FIGURE,
                    "fingerprint": {"type": "object", "additionalProperties": TEXT},
                },
                "required": ["support_bits", "fingerprint"],
            },
        },
    },
    "required": ["method", "latency_seconds", "attackers"],
}
_ATTACKER = {
    "type": "object",
    "properties": {
        **limits("bits", "gain_bits", "evidence_bits"),
        "at_least": _MAYBE_FLAG,
        "support_bits": FIGURE,
    },
    "required": ["bits", "gain_bits", "evidence_bits"],
}
PROTECTED_READING = {
    "type": "object",
    "properties": {
        "speech": SECONDS,
        **limits("bits", "evidence_bits"),
        "bits_by": MAYBE_TEXT,
        "evidence_by": MAYBE_TEXT,
        "at_least": _MAYBE_FLAG,
        "attackers": {"type": "object", "additionalProperties": _ATTACKER},
    },
    "required": ["bits", "evidence_bits", "attackers"],
}
_CROSSED = {
    "type": "object",
    "properties": {"seconds": SECONDS, "crossed": FLAG},
    "required": ["seconds", "crossed"],
}
BOUGHT = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "field": TEXT,
            "bits": NUMBER,
            "clear": _CROSSED,
            "protected": _CROSSED,
            "bought_seconds": VALUE,
            "at_least": FLAG,
        },
        "required": ["field", "bits", "clear", "protected", "bought_seconds", "at_least"],
    },
}


def protected_record(reading: Any) -> dict[str, Any]:
    """The protected side of a `monitor.stream.reading.Reading`."""
    both = reading.protected
    return {
        "speech": both.speech,
        **with_limits("bits", both.bits),
        **with_limits("evidence_bits", both.evidence),
        "bits_by": both.bits_by,
        "evidence_by": both.evidence_by,
        "at_least": both.at_least,
        "attackers": {name: _attacker(each) for name, each in both.attackers.items()},
    }


def _attacker(reading: Any) -> dict[str, Any]:
    headline = (reading.bits, reading.bits_low, reading.bits_high)
    return {
        **with_limits("bits", headline),
        **with_limits("gain_bits", reading.confidence),
        **with_limits("evidence_bits", reading.evidence),
        "at_least": reading.at_least,
        "support_bits": reading.support_bits,
    }
