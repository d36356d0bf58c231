"""What `monitor replay` is asked to hear, checked before anything is written."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitor.errors import UsageError

if TYPE_CHECKING:
    from monitor.protocols import Source

__all__ = ["identity", "open_all", "spare"]


def open_all(
    recordings: Sequence[str],
    raw: tuple[int, int, str] | None,
    start: float,
    end: float | None,
    channel: int | None,
) -> list[Source]:
    """Open every recording, and see to it that the options go with them."""
    from monitor.sources.opening import open_recording

    if len(recordings) > 1 and (start or end is not None):
        raise UsageError("--start and --end go with one recording")
    if recordings.count("-") > 1:
        raise UsageError("standard input (-) can be heard once")
    if "-" in recordings and sys.stdin.isatty():
        raise UsageError("- is standard input: pipe a WAV into it, or name a recording")
    sources = [
        open_recording(name, raw=raw, start_seconds=start, end_seconds=end) for name in recordings
    ]
    for source in sources:
        has = getattr(source, "channels", None)
        if channel is not None and (has is None or channel > has):
            what = "frames, no audio" if has is None else f"{has} channel{'s' if has > 1 else ''}"
            raise UsageError(f"--channel {channel}: {source.label} has {what}")
    return sources


def spare(output: Path, inputs: Sequence[str | None]) -> None:
    """Refuse to write over what is about to be read."""
    for name in inputs:
        path = Path(name) if name else None
        if path is not None and path.exists() and output.exists() and output.samefile(path):
            raise UsageError(f"{output} is read by this run; write to another file")


def identity(name: str) -> list[Any]:
    """What tells one recording from another well enough to resume."""
    if name == "-":
        return ["-"]
    path = Path(name)
    return [path.name, path.stat().st_size]
