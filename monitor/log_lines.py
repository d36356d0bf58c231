"""Lines on standard error: all as text, as JSON for a log collector, or warnings only."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from monitor.safe_text import printable

FORMS = ("text", "json", "quiet")

form = "text"
"""Form of this process; ``monitor --log`` sets it."""


def utc_time(precision: str = "seconds") -> str:
    """Return the time of day as text such as 2026-05-04T12:00:00Z."""
    return datetime.now(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def format_line(text: str, level: str = "info") -> str | None:
    """Format a message, in which no name can steer the terminal; None where it is not wanted.

    ``level`` is ``"info"``, ``"warning"``, ``"alert"`` or ``"error"``. The form ``"quiet"`` has
    only the last three.
    """
    if form == "quiet" and level == "info":
        return None
    lines = [printable(line) for line in text.split("\n")]
    if form != "json":
        return "\n".join(lines)
    message = "\n".join(lines).strip().removeprefix("monitor: ")
    record = {"time": utc_time("milliseconds"), "level": level, "message": message}
    return json.dumps(record, ensure_ascii=False)
