"""What the records of a run say of its protected side (``--protect``)."""

from __future__ import annotations

from typing import Any

from monitor.records.keys import (
    FIGURE,
    FLAG,
    HEADLINES,
    MAYBE_SECONDS,
    MAYBE_TEXT,
    NUMBER,
    SECONDS,
    TEXT,
    VALUE,
    limits,
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
_HEADLINE = limits("bits")
_OF_ATTACKER = limits("evidence_bits", "closed_set_bits", "gain_bits")
_ATTACKER = {
    "type": "object",
    "properties": {
        **_HEADLINE,
        **_OF_ATTACKER,
        "at_least": _MAYBE_FLAG,
        "support_bits": FIGURE,
    },
    "required": ["bits", "evidence_bits", "closed_set_bits", "gain_bits"],
}
PROTECTED_READING = {
    "type": "object",
    "properties": {
        "speech": SECONDS,
        **_HEADLINE,
        "by": MAYBE_TEXT,
        "at_least": FLAG,
        "attackers": {"type": "object", "additionalProperties": _ATTACKER},
    },
    "required": ["bits", "by", "attackers"],
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
            "bits": NUMBER,
            "clear": _CROSSED,
            "protected": _CROSSED,
            "bought_seconds": VALUE,
            "at_least": FLAG,
        },
        "required": ["bits", "clear", "protected", "bought_seconds", "at_least"],
    },
}


def protected_record(reading: Any) -> dict[str, Any]:
    """The protected side of a `monitor.stream.reading.Reading`."""
    both = reading.protected
    return {
        "speech": both.speech,
        **{name: getattr(both, name) for name in _HEADLINE},
        "by": both.by,
        "at_least": both.at_least,
        "attackers": {
            name: _attacker(each, HEADLINES[both.headline]) for name, each in both.attackers.items()
        },
    }


def _attacker(reading: Any, headline: str) -> dict[str, Any]:
    return {
        **{name: getattr(reading, name.replace("bits", headline)) for name in _HEADLINE},
        **{name: getattr(reading, name) for name in _OF_ATTACKER},
        "at_least": reading.at_least,
        "support_bits": reading.support_bits,
    }
