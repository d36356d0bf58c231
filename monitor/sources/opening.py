"""The right source for a name on the command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from monitor.errors import UsageError
from monitor.protocols import Source
from monitor.sources.file import File
from monitor.sources.frames import FramesFile
from monitor.sources.pipe import Pipe

__all__ = ["is_frames", "open_recording"]


def is_frames(path: str | os.PathLike[str]) -> bool:
    """Whether a file holds ready-made frames, by its name."""
    return Path(path).suffix.lower() in {".npz", ".jsonl"}


def open_recording(
    path: str | os.PathLike[str],
    *,
    raw: tuple[int, int, str] | None = None,
    start_seconds: float = 0.0,
    end_seconds: float | None = None,
) -> Source:
    """Open ready-made frames (``.npz``, ``.jsonl``), standard input (``-``) or a recording.

    Args:
        path: a file, or ``-``.
        raw: (rate, channels, encoding) of standard input without a header.
        start_seconds: where to begin; recordings only.
        end_seconds: where to stop; recordings only.

    Raises:
        SourceError: it cannot be opened.
        UsageError: the options do not fit the kind of source.
    """
    piped = os.fspath(path) == "-"
    if raw is not None and not piped:
        raise UsageError(
            f"raw is for standard input, not for {Path(path).name}; give - as the file"
        )
    frames = is_frames(path)
    if (piped or frames) and (start_seconds or end_seconds is not None):
        raise UsageError("an interval needs an audio file; leave out the start and the end")
    if piped:
        return Pipe(sys.stdin.buffer, raw)
    if frames:
        return FramesFile(path)
    return File(path, start_seconds=start_seconds, end_seconds=end_seconds)
