"""Protects one recording: from a file to a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from monitor.atomic import atomic_write, not_written, sweep
from monitor.errors import SourceError, UsageError
from monitor.protectors.registry import make
from monitor.protectors.utterance import Utterance
from monitor.protocols import Protector
from monitor.safe_text import file_name
from monitor.sources.file import File
from monitor.types import Block, FloatArray

__all__ = ["FORMATS", "Protected", "protect"]

FORMATS = {".wav": "WAV", ".flac": "FLAC"}
"""What can be written, by the suffix."""
_KEPT = ("PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE")


@dataclass(frozen=True, slots=True)
class Protected:
    """What was written.

    Attributes:
        seconds: of audio.
        clipped: samples that were louder than the file can hold.
    """

    seconds: float
    clipped: int


def protect(
    source: Path,
    target: Path,
    method: str,
    *,
    name: str = "",
    speaker: str | None = None,
    seed: int = 0,
    timeout_seconds: float | None = None,
) -> Protected:
    """Protect each channel of a recording by itself, and write it as WAV or FLAC.

    The rate stays, and so do bits a sample where both formats have them; else they are 16. The
    file is private to the user (mode 0600) and appears whole or not at all; folders to it are made.

    Args:
        source: the recording.
        target: ends in ``.wav`` or ``.flac``.
        method: of `monitor.protectors.registry`.
        name: of the recording, for what is drawn by recording.
        speaker: who speaks, for what is drawn by speaker.
        seed: of what is drawn at random.
        timeout_seconds: that a program may take for a channel; None for what `Program` gives.

    Raises:
        SourceError: the recording is damaged or holds no audio, or a program failed.
        UsageError: the method or the suffix makes no sense.
        StoreError: the file cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     soundfile.write(f"{folder}/a.wav", np.zeros(8000), 16000)
        ...     protect(Path(folder, "a.wav"), Path(folder, "b.flac"), "mcadams:0.8")
        Protected(seconds=0.5, clipped=0)
    """
    form = FORMATS.get(target.suffix.lower())
    if form is None:
        raise UsageError(f"{file_name(target)} must end in .wav or .flac")
    heard = File(source)
    channels = [
        make(method, Utterance(heard.rate, name, speaker, channel, seed, timeout_seconds))
        for channel in range(heard.channels)
    ]
    subtype = _subtype(source, form)
    frames = clipped = 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target)
        with (
            atomic_write(target) as raw,
            soundfile.SoundFile(
                raw, "w", heard.rate, heard.channels, subtype=subtype, format=form
            ) as file,
        ):
            for made in _pieces(heard, channels):
                file.write(made)
                frames += len(made)
                clipped += int(np.count_nonzero(np.abs(made) > 1))
    except OSError as error:
        raise not_written(target, error) from None
    except soundfile.LibsndfileError as error:  # such as a FLAC of more than eight channels
        raise SourceError(f"{file_name(target)} cannot be written: {error.error_string}") from None
    return Protected(frames / heard.rate, 0 if subtype in ("FLOAT", "DOUBLE") else clipped)


def _pieces(heard: File, channels: list[Protector]) -> Iterator[FloatArray]:
    """The protected recording, shape (n, channels)."""
    for each in heard:
        if not isinstance(each, Block):
            raise SourceError(each.detail or f"{heard.label} is broken")
        samples = np.asarray(each.samples).reshape(-1, len(channels))
        try:
            made = [p.process(s) for p, s in zip(channels, samples.T, strict=True)]
        except UsageError as error:
            raise SourceError(f"{heard.label}: {error}") from None
        yield _joined(heard, made)
    yield _joined(heard, [protector.flush() for protector in channels])


def _joined(heard: File, columns: list[FloatArray]) -> FloatArray:
    if len({column.size for column in columns}) > 1:
        raise SourceError(f"{heard.label}: its channels come out of the protector unequally long")
    return np.stack(columns, axis=1)


def _subtype(source: Path, form: str) -> str:
    """Bits a sample, as in the source where that can be."""
    kept: str = soundfile.info(os.fsencode(source)).subtype  # a name need not be UTF-8
    return kept if kept in _KEPT and soundfile.check_format(form, kept) else "PCM_16"
