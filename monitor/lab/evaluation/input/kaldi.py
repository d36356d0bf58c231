"""Reads archives of vectors that Kaldi or kaldiio wrote."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.lab.evaluation.input.files import opening, read_map, text_lines
from monitor.safe_text import printable
from monitor.tables import need
from monitor.types import FloatArray

_BROKEN = (
    *(ArithmeticError, AssertionError, EOFError, LookupError, MemoryError, OSError, RuntimeError),
    *(struct.error, TypeError, ValueError, Warning),
)
_VECTORS = (b"FV ", b"DV ", b"FM ", b"DM ", b"CM ", b"CM2", b"CM3")


def read_archive(path: Path) -> tuple[FloatArray, tuple[str, ...]]:
    """Read the vectors of an ``.ark``, or those that an ``.scp`` lists, with their speakers.

    A ``utt2spk`` beside it names the speaker of each utterance, or the keys are its speakers.
    Returns the vectors, shape (n, d), and their speakers. Raises UsageError if kaldiio is missing,
    an entry is not a vector, or a speaker is unknown; StoreError if a file is missing or damaged.
    """
    entries = _scp_entries(path) if path.suffix.lower() == ".scp" else _ark_entries(path)
    keys, vectors = dict[str, None](), []
    for key, array in entries:
        if key in keys:
            raise UsageError(f"{path.name} has {printable(key)} twice: write each key once")
        vector = array[0] if array.ndim == 2 and len(array) == 1 else array
        if vector.ndim != 1:
            raise UsageError(
                f"{path.name}: {printable(key)} has shape {array.shape}, not (d,). Write one vector"
            )
        keys[key] = None
        vectors.append(vector)
    if len(sizes := {vector.size for vector in vectors}) > 1:
        raise UsageError(
            f"{path.name}: embeddings have {min(sizes)} to {max(sizes)} dimensions. "
            "Use one network for all"
        )
    values = np.stack(vectors) if vectors else np.empty((0, 1))
    return values, _speakers(path, list(keys))


def _speakers(path: Path, keys: list[str]) -> tuple[str, ...]:
    table = path.with_name("utt2spk")
    if not table.is_file():
        raise UsageError(f"{path.name} has no speakers: add Kaldi's utt2spk to its folder")
    owners = read_map(table)
    if not set(keys) & owners.keys() and set(keys) <= set(owners.values()):
        return tuple(keys)  # one mean vector per speaker
    if unknown := next((key for key in keys if key not in owners), None):
        raise UsageError(f"{path.name}: {printable(unknown)} has no speaker in utt2spk. Add it")
    return tuple(owners[key] for key in keys)


def _ark_entries(path: Path) -> Iterator[tuple[str, FloatArray]]:
    file, matio = BytesIO(_content(path)), need("kaldiio.matio")
    while key := _read(path, matio.read_token, file):
        yield key.strip(), _entry(path, key, file)


def _scp_entries(path: Path) -> Iterator[tuple[str, FloatArray]]:
    """Yield entries. A command in the list is never run."""
    contents: dict[Path, bytes] = {}
    for number, line in text_lines(path):
        key, _, location = line.strip().partition(" ")
        name, _, offset = location.strip().rpartition(":")
        if not name or not offset.isdecimal() or "|" in location:
            raise UsageError(f"{path.name} line {number}: use KEY FILE.ark:OFFSET")
        candidates = [path.parent / name, Path(name)]  # in Kaldi, relative to the current folder
        archive = next(filter(Path.is_file, candidates), candidates[0])
        if archive not in contents:
            contents[archive] = _content(archive)
        file = BytesIO(contents[archive])
        file.seek(int(offset))
        yield key, _entry(archive, key, file)


def _content(path: Path) -> bytes:
    with opening(path):
        return path.read_bytes()


def _entry(path: Path, key: str, file: BytesIO) -> FloatArray:
    """Read one vector or matrix; a pickle or a sound is refused."""
    begin = file.tell()
    head = file.read(5)
    file.seek(begin)
    is_text = head.lstrip()[:1] == b"["
    is_valid = is_text or (head[:2] == b"\0B" and head[2:] in _VECTORS)
    if not is_valid:
        raise UsageError(f"{path.name}: {printable(key)} is not a vector of numbers")
    return np.asarray(_read(path, need("kaldiio.matio").read_kaldi, file))


def _read(path: Path, read: Any, file: BytesIO) -> Any:
    try:
        with warnings.catch_warnings(action="error"):
            return read(file)
    except _BROKEN:
        raise StoreError(f"{path.name} is damaged or cut short: write it again") from None
