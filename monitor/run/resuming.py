"""What must be the same for a run to be resumed: the recordings, the settings, the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from monitor.protocols import AlertRule
from monitor.sources.provenance import Provenance
from monitor.stream.monitor import Monitor

__all__ = ["configuration_of"]


def configuration_of(
    monitor: Monitor,
    parts: Sequence[Provenance],
    start: Mapping[str, Any],
    rules: Iterable[AlertRule],
    *,
    ledger: bool,
    words: Sequence[str] = (),
) -> dict[str, Any]:
    """As JSON-able values, for a `Checkpoint`.

    Args:
        monitor: with its settings.
        parts: what is heard.
        start: the ``start`` record, with the fingerprints of population and law.
        rules: the alert rules.
        ledger: whether the run adds to a ledger.
        words: marks of the transcripts that lie beside what is heard.
    """
    intervals = [[part.start_seconds, part.end_seconds] for part in parts]
    alike = all(interval == intervals[0] for interval in intervals)
    raw = next((list(part.raw) for part in parts if part.raw is not None), None)
    return {
        "recordings": [[part.label, *part.hashes] for part in parts],
        "interval": intervals[0] if alike else intervals,
        "raw": raw,
        "session": monitor.attacker.session,
        "features": list(monitor.features),
        "watch": monitor.watch,
        "template_seconds": monitor.attacker.scoring.seconds,
        **monitor.settings.record(),
        **start["fingerprint"],
        "alerts": [getattr(rule, "rule", type(rule).__name__) for rule in rules],
        "ledger": ledger,
        "words": list(words),
    }
