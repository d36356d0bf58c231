"""Lines on standard error: all as text, as JSON for a log collector, or warnings only."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from monitor.safe_text import printable

FORMS = ("text", "json", "quiet")

form = "text"
"""Form of this process; ``monitor --log`` sets it."""


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
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    message = "\n".join(lines).strip().removeprefix("monitor: ")
    record = {"time": time, "level": level, "message": message}
    return json.dumps(record, ensure_ascii=False)
