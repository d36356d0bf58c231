"""Reads files of speaker embeddings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.input.files import (
    Progress,
    arrays_at,
    fields,
    kind_of,
    separator_of,
    text_chunks,
    to_number,
)
from monitor.evaluation.input.layout import SPEAKER, role_of
from monitor.phrases import plural
from monitor.types import FloatArray

__all__ = ["Vectors", "read_vectors"]

_SESSION = frozenset({"session", "session_id", "chapter"})


@dataclass(frozen=True)
class Vectors:
    """Embeddings and whose they are.

    Attributes:
        label: how messages call the file.
        values: shape (n, d).
        speakers: n names.
        sessions: n names, or none.
    """

    label: str
    values: FloatArray
    speakers: tuple[str, ...]
    sessions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        values, count = self.values, len(self.speakers)
        if values.ndim != 2 or values.dtype.kind not in "fiu" or not values.shape[-1]:
            raise UsageError(
                f"{self.label}: embeddings are numbers of shape (n, d), not {values.dtype} of "
                f"shape {values.shape}"
            )
        if not len(values):
            raise UsageError(f"{self.label} has no embedding in it")
        if count != len(values) or len(self.sessions) not in (0, count):
            raise UsageError(
                f"{self.label}: {plural(len(values), 'embedding')}, {plural(count, 'speaker')} and "
                f"{plural(len(self.sessions), 'session')}; give one of each for each embedding"
            )
        finite = np.logical_and.reduce(np.isfinite(values), axis=1)
        if not finite.all():
            i = int(np.argmin(finite))
            raise UsageError(
                f"{self.label}: embedding {i + 1} (speaker {self.speakers[i]}) is not finite: "
                "drop it"
            )
        if "" in self.speakers:
            nobody = self.speakers.index("") + 1
            raise UsageError(f"{self.label}: embedding {nobody} has no speaker")


def read_vectors(path: Path, progress: Progress | None = None) -> Vectors:
    """Read embeddings.

    An ``.npz`` with ``embeddings`` (n, d), ``speakers`` (n,) and perhaps ``sessions`` (n,); JSON
    lines ``{"speaker": "ann", "session": "1", "embedding": [0.1, ...]}``; or a table with the
    columns ``speaker``, perhaps ``session``, and d numbers.

    Raises:
        UsageError: its content makes no sense.
        StoreError: it cannot be read.
    """
    kind = kind_of(path)
    if kind == "npy":
        raise UsageError(f"{path.name} does not say whose embeddings they are; save them as .npz")
    if kind == "npz":
        arrays = arrays_at(path)
        if not {"embeddings", "speakers"} <= arrays.keys():
            raise UsageError(
                f"{path.name} needs embeddings (n, d) and speakers (n,), not "
                f"{', '.join(sorted(arrays)) or 'nothing'}"
            )
        names = [arrays.get(key, np.array([], "U1")) for key in ("speakers", "sessions")]
        if any(each.ndim != 1 or each.dtype.kind not in "iuU" for each in names):
            raise UsageError(f"{path.name}: speakers and sessions are names, one an embedding")
        speakers, sessions = (tuple(map(str, each.tolist())) for each in names)
        return Vectors(path.name, arrays["embeddings"], speakers, sessions)
    reader: _Table | _Json | None = None
    number = 0
    for lines in text_chunks(path, progress):
        for line in lines:
            number += 1
            if not line.strip():
                continue
            where = f"{path.name} line {number}"
            if reader is None:
                reader = _Json() if line.lstrip().startswith("{") else _Table(where, line)
                if isinstance(reader, _Table):
                    continue
            reader.add(where, line)
    if reader is None or not reader.values:
        raise UsageError(f"{path.name} is empty")
    sizes = {len(value) for value in reader.values}
    if len(sizes) > 1:
        raise UsageError(f"{path.name}: embeddings of {min(sizes)} to {max(sizes)} dimensions")
    sessions = tuple(reader.sessions) if any(reader.sessions) else ()
    return Vectors(path.name, np.stack(reader.values), tuple(reader.speakers), sessions)


class _Lines:
    """Collects embeddings line by line."""

    def __init__(self) -> None:
        self.speakers: list[str] = []
        self.sessions: list[str] = []
        self.values: list[FloatArray] = []

    def keep(self, speaker: str, session: str, values: FloatArray) -> None:
        self.speakers.append(speaker)
        self.sessions.append(session)
        self.values.append(values)


class _Json(_Lines):
    def add(self, where: str, line: str) -> None:
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise UsageError(f"{where}: is no JSON object; correct it")
        speaker, session = value.get("speaker"), value.get("session", "")
        values = value.get("embedding")
        if type(speaker) not in (str, int) or type(session) not in (str, int):
            raise UsageError(f'{where}: needs "speaker", a name (and perhaps "session")')
        if not isinstance(values, list) or any(type(x) not in (int, float) for x in values):
            raise UsageError(f'{where}: needs "embedding", a list of numbers')
        self.keep(str(speaker), str(session), np.array(values, np.float64))


class _Table(_Lines):
    def __init__(self, where: str, header: str) -> None:
        super().__init__()
        self._separator = separator_of(header)
        names = fields(header, self._separator)
        speaker = role_of(names, SPEAKER)
        if speaker is None:
            others = ", ".join(sorted(SPEAKER - {"speaker"}))
            raise UsageError(
                f"{where}: name the columns: speaker (or {others}), perhaps session, and numbers"
            )
        self._speaker, self._session = speaker, role_of(names, _SESSION)
        self._width = len(names)

    def add(self, where: str, line: str) -> None:
        row = fields(line, self._separator)
        if len(row) != self._width:
            raise UsageError(f"{where}: has {plural(len(row), 'column')} and not {self._width}")
        session = "" if self._session is None else row[self._session]
        numbers = [x for i, x in enumerate(row) if i not in (self._speaker, self._session)]
        try:
            values = np.fromiter(map(to_number, numbers), np.float64, len(numbers))
        except ValueError as error:
            raise UsageError(f"{where}: {error}; all other columns are numbers") from None
        self.keep(row[self._speaker], session, values)
