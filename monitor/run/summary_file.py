"""The summary of many recordings: a CSV file, a line each, that survives being killed."""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path

from monitor.atomic import atomic_write, not_written
from monitor.corpus.gathering import natural
from monitor.errors import StoreError, UsageError
from monitor.locks import lock
from monitor.managed import Managed
from monitor.run.outcome import RecordingOutcome

__all__ = ["COLUMNS", "SummaryFile", "append", "row_of"]

COLUMNS = (
    "recording",
    *(field.name for field in fields(RecordingOutcome)),
    "fingerprint",
    "settings",
)
"""Of the file: what was heard, what came of it, and what both depend on."""


class SummaryFile(Managed):
    """The file, opened and locked; each recording is appended by whoever has heard it.

    Lines come as recordings are done, each written and flushed to the disk at once (`append`); a
    line that was cut off by a kill is dropped when the file is opened again. `finish` puts them
    into natural order. The file is private to its owner (mode 0600).

    Args:
        path: the file.
        settings: a mark of everything but the recording that a line depends on.
        resume: keep what the file holds.
        replace: overwrite what it holds.

    Attributes:
        rows: what the file held when it was opened, by name of the recording.

    Raises:
        UsageError: it holds something that is to be kept, or lines made with other settings.
        StoreError: it cannot be written, or another run writes to it.
    """

    def __init__(
        self, path: Path, settings: str, *, resume: bool = False, replace: bool = False
    ) -> None:
        self.path, self.settings = path, settings
        self.rows: dict[str, Mapping[str, str]] = {}
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._handle = os.open(path, flags, 0o600)
        except OSError as error:
            raise not_written(path, error) from None
        try:
            self._begin(resume=resume, replace=replace)
        except OSError as error:
            self.close()
            raise not_written(path, error) from None
        except BaseException:
            self.close()
            raise

    def _begin(self, *, resume: bool, replace: bool) -> None:
        if not stat.S_ISREG(os.fstat(self._handle).st_mode):
            raise UsageError(f"{self.path} is no plain file: name one ending in .csv")
        try:
            lock(self._handle)
        except BlockingIOError:
            raise StoreError(
                f"{self.path}: another run is writing to it; wait for its end, or name another file"
            ) from None
        held = b"" if replace else self.path.read_bytes()
        if held and not resume:
            raise UsageError(
                f"{self.path} holds something: if it is an unfinished summary, go on with it "
                "(--resume); else name another file, or overwrite it (--replace)"
            )
        whole = held[: held.rfind(b"\n") + 1]
        if whole:
            self._read(whole)
        elif held and not _line(COLUMNS).startswith(held):
            raise self._is_something_else()
        os.ftruncate(self._handle, len(whole))
        self.path.chmod(0o600)
        if not whole:
            append(self.path, COLUMNS)

    def _read(self, text: bytes) -> None:
        try:
            rows = list(csv.reader(io.StringIO(text.decode(), newline=""), strict=True))
        except (ValueError, csv.Error):
            raise self._is_something_else() from None
        if tuple(rows[0]) != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
            raise self._is_something_else()
        for row in rows[1:]:
            named = dict(zip(COLUMNS, row, strict=True))
            if named["settings"] != self.settings:
                raise UsageError(
                    f"{self.path} was made with other options, people or laws: give the same, name "
                    "another file, or overwrite it (--replace)"
                )
            self.rows[named["recording"]] = named

    def _is_something_else(self) -> UsageError:
        return UsageError(f"{self.path} is no summary of recordings: name another file")

    def has(self, recording: str, fingerprint: str) -> bool:
        """Whether this very recording is in it already."""
        row = self.rows.get(recording)
        return bool(fingerprint) and row is not None and row["fingerprint"] == fingerprint

    def finish(self) -> None:
        """Put the lines into natural order, one a recording: the last that was written.

        Raises:
            StoreError: it cannot be written; what was there stays.
        """
        try:
            lines = self.path.read_bytes().decode().splitlines(keepends=True)[1:]
            last = {next(csv.reader([line]))[0]: line for line in lines}
            with atomic_write(self.path) as file:
                file.write(_line(COLUMNS))
                for name in sorted(last, key=natural):
                    file.write(last[name].encode())
        except OSError as error:
            raise not_written(self.path, error) from None

    def close(self) -> None:
        """Let go of the file; may be called twice."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def append(path: Path, values: Iterable[object]) -> None:
    """Write one more line, and see to it that it is on the disk; from any process.

    Raises:
        StoreError: it cannot be written.
    """
    line = _line(values)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
        try:
            if os.write(handle, line) < len(line):
                raise StoreError(f"cannot write {path.name}: the disk is full; make room")
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise not_written(path, error) from None


def row_of(recording: str, outcome: RecordingOutcome, fingerprint: str, settings: str) -> list[str]:
    """The cells of a recording, in the order of the columns."""
    return [recording, *map(_cell, asdict(outcome).values()), fingerprint, settings]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _line(values: Iterable[object]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()
