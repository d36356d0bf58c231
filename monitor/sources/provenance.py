"""Marks by which a recording is recognised: the hash of its bytes, and how it was protected."""

from __future__ import annotations

import hashlib
import os
import re

from monitor.errors import SourceError
from monitor.files import MemoryFile, readable

_DONE_BY = re.compile(r"Voice (anonymised|scrubbed) by speaker-disclosure-monitor: ([ -~]{1,80})")


def protection_tag(done: str, method: str) -> str:
    """Format the comment of a sound file with a changed voice; it names no seed, no program.

    Example:
        >>> protection_tag("anonymised", "mcadams:0.8")
        'Voice anonymised by speaker-disclosure-monitor: mcadams:0.8'
        >>> protection_tag("anonymised", "command:/opt/mine --key 1")
        'Voice anonymised by speaker-disclosure-monitor: a program'
    """
    shown = "a program" if method.startswith("command:") else method
    return f"Voice {done} by speaker-disclosure-monitor: {shown}"


def protection_of(comment: str) -> str:
    """Return how a comment of `protection_tag` says the voice was changed; else empty.

    Example:
        >>> protection_of(protection_tag("scrubbed", "6 bits, cut")), protection_of("Mono, 1998")
        ('scrubbed (6 bits, cut)', '')
    """
    match = _DONE_BY.fullmatch(comment)
    return f"{match[1]} ({match[2]})" if match else ""


def file_hash(path: str | os.PathLike[str] | MemoryFile) -> str:
    """Return the hash of a file's bytes; SourceError where they cannot be read."""
    path = readable(path)
    try:
        with path.open("rb") as file:
            return f"file:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"cannot open {path.name}: {reason}; check the name") from None
