"""What a stream was made of: which recordings, which part of each, and how to know them again."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import numpy as np

from monitor.errors import SourceError
from monitor.files import MemoryFile, Readable, readable
from monitor.protocols import Provenance
from monitor.safe_text import file_name
from monitor.sources.frames import header_of
from monitor.sources.registry import is_frames

HASHED_SECONDS = 30
HASHED_AT_ONCE = 1 << 18
"""Samples of all channels."""
_DONE_BY = re.compile(r"Voice (anonymised|scrubbed) by speaker-disclosure-monitor: ([ -~]{1,80})")


def protection_tag(done: str, method: str) -> str:
    """The comment of a sound file whose voice this program changed; it names no seed, no program.

    Example:
        >>> protection_tag("anonymised", "mcadams:0.8")
        'Voice anonymised by speaker-disclosure-monitor: mcadams:0.8'
        >>> protection_tag("anonymised", "command:/opt/mine --key 1")
        'Voice anonymised by speaker-disclosure-monitor: a program'
    """
    shown = "a program" if method.startswith("command:") else method
    return f"Voice {done} by speaker-disclosure-monitor: {shown}"


def protection_of(comment: str) -> str:
    """How such a comment says that a voice was changed; empty of any other.

    Example:
        >>> protection_of(protection_tag("scrubbed", "6 bits, cut")), protection_of("Mono, 1998")
        ('scrubbed (6 bits, cut)', '')
    """
    found = _DONE_BY.fullmatch(comment)
    return f"{found[1]} ({found[2]})" if found else ""


def recording_hashes(path: str | os.PathLike[str] | MemoryFile) -> tuple[str, ...]:
    """What a recording is recognised by: two recordings that share a hash are the same.

    The first is of the bytes. Audio has a second one, of rate, channels, frame count and the
    first 30 s of samples at 16 bits, so that a WAV copy of a FLAC is known again. Frames have those
    of the recording they were made from too, where their header says so.

    Raises:
        SourceError: the file cannot be read.

    Example:
        >>> import tempfile, numpy, soundfile
        >>> tone = (9000 * numpy.sin(numpy.arange(8000) / 10)).astype(numpy.int16)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("a.wav", "a.flac"):
        ...         soundfile.write(f"{folder}/{name}", tone, 16000)
        ...     one, two = (recording_hashes(f"{folder}/{name}") for name in ("a.wav", "a.flac"))
        >>> one[0] == two[0], one[1] == two[1]
        (False, True)
    """
    path = readable(path)
    of_bytes = file_hash(path)
    if isinstance(path, Path) and is_frames(path):
        return (of_bytes, *header_of(path).hashes)
    of_audio = _audio_hash(path)
    return (of_bytes,) if of_audio is None else (of_bytes, f"audio:{of_audio}")


def file_hash(path: str | os.PathLike[str] | MemoryFile) -> str:
    """The first of them: that of the bytes; SourceError where they cannot be read."""
    path = readable(path)
    try:
        with path.open("rb") as file:
            return f"file:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"cannot open {path.name}: {reason}; check the name") from None


def _audio_hash(path: Readable) -> str | None:
    """Hash of the decoded beginning; None where there is no audio."""
    from monitor.sources.file import Decoder

    digest = hashlib.sha256()
    try:
        decoder = Decoder(path)
    except SourceError:
        return None
    with decoder:
        frames = 0
        while frames < HASHED_SECONDS * decoder.rate:
            left = HASHED_SECONDS * decoder.rate - frames
            samples = decoder.read(min(HASHED_AT_ONCE // decoder.channels, left))
            if not len(samples):
                break
            frames += len(samples)
            finite = np.nan_to_num(samples.astype(np.float64), posinf=1.0, neginf=-1.0)
            digest.update(np.clip(np.rint(finite * 32768), -32768, 32767).astype("<i2").tobytes())
        if not frames:
            return None
        count = decoder.promised
        while count is None:  # the header is silent: count
            got = len(decoder.read(10 * decoder.rate))
            frames += got
            if not got:
                count = frames
        digest.update(f"{decoder.rate} {decoder.channels} {count}".encode())
    return digest.hexdigest()


def provenance_of(
    path: str | os.PathLike[str] | MemoryFile,
    start_seconds: float = 0.0,
    end_seconds: float | None = None,
) -> Provenance:
    """That of a file, which is read for its fingerprints."""
    return Provenance(
        file_name(readable(path).name), recording_hashes(path), start_seconds, end_seconds
    )
