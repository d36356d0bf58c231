"""What the records of a run say of a declared epsilon (``--protect usc:15``, frames with noise)."""

from __future__ import annotations

from typing import Any

from monitor.records.keys import COUNT, FLAG, NUMBER, PROBABILITY, SECONDS, TEXT, VALUE

__all__ = ["DECLARED_READING", "DECLARED_START", "declared_record"]

DECLARED_START = {
    "type": "object",
    "properties": {
        "mechanism": TEXT,
        "epsilon_nats": NUMBER,
        "window_seconds": SECONDS,
        "delta": PROBABILITY,
        "empty_after": COUNT,
    },
    "required": ["mechanism", "epsilon_nats", "window_seconds", "delta", "empty_after"],
}
DECLARED_READING = {
    "type": "object",
    "properties": {
        "windows": COUNT,
        "basic_nats": NUMBER,
        "advanced_nats": VALUE,
        "optimal_nats": NUMBER,
        "most_bits": NUMBER,
        "empty": FLAG,
    },
    "required": ["windows", "basic_nats", "optimal_nats", "most_bits", "empty"],
}


def declared_record(promise: Any) -> dict[str, Any]:
    """A `monitor.protectors.promise.Promise` of all that was heard so far."""
    spent = promise.spent
    better = spent.advanced_nats < spent.basic_nats
    return {
        "windows": spent.trials,
        "basic_nats": spent.basic_nats,
        "advanced_nats": spent.advanced_nats if better else None,
        "optimal_nats": spent.optimal_nats,
        "most_bits": promise.most_bits,
        "empty": promise.empty,
    }
