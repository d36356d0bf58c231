"""The summary of many recordings: CSV or Parquet, a line each, that survives being killed."""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path

from monitor.atomic import not_written
from monitor.corpus.gathering import natural
from monitor.errors import StoreError, UsageError
from monitor.locks import lock
from monitor.managed import Managed
from monitor.private_files import is_ours, open_private
from monitor.run.outcome import RecordingOutcome
from monitor.tables.columns import Column, Kind
from monitor.tables.files import need, read_parquet, write

__all__ = ["COLUMNS", "SummaryFile", "row_of"]

_KINDS: Mapping[object, Kind] = {
    "float | None": "number",
    "bool | None": "boolean",
    "int": "integer",
    "str": "text",
}
_TYPED = (
    Column("recording", "text"),
    *(Column(field.name, _KINDS[field.type]) for field in fields(RecordingOutcome)),
    Column("fingerprint", "text"),
    Column("settings", "text"),
)
COLUMNS = tuple(column.name for column in _TYPED)
"""Of the file: what was heard, what came of it, and what both depend on."""


class SummaryFile(Managed):
    """The file, opened and locked.

    Lines come as recordings are done, each written and flushed to the disk at once (`append`); a
    line that was cut off by a kill is dropped when the file is opened again. `finish` puts them
    into natural order. The file is private to its owner (mode 0600).

    A Parquet file cannot grow by a line: until `finish` makes it at once, lines go to a CSV file
    beside it, ``NAME.parquet.unfinished.csv``, which is then removed.

    Beside it lies a folder ``NAME.unfinished`` (mode 0700) as well, for what recordings that take
    long are gone on from; it goes when the summary is finished, and what is in it when one is begun
    anew. Nothing else may be kept there.

    Args:
        path: the file, ``.parquet`` or CSV.
        settings: a mark of everything but the recording that a line depends on.
        resume: keep what the file holds.
        replace: overwrite what it holds.

    Attributes:
        rows: what the file held when it was opened, by name of the recording.
        unfinished: the folder.

    Raises:
        UsageError: it holds something that is to be kept, or lines made with other settings; or
            pyarrow is not installed.
        StoreError: it cannot be written, is another user's, or another run writes to it.
    """

    def __init__(
        self, path: Path, settings: str, *, resume: bool = False, replace: bool = False
    ) -> None:
        self.path, self.settings = path, settings
        self.rows: dict[str, Mapping[str, str]] = {}
        self._ours = False  # alone at it
        self._parquet = path.suffix.lower() == ".parquet"
        self._lines = path
        if self._parquet:
            need("pyarrow.parquet")
            self._lines = path.with_name(f"{path.name}.unfinished.csv")
        self.unfinished = path.with_name(f"{path.name}.unfinished")
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._handle = open_private(self._lines, flags)
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
            raise UsageError(f"{self.path} is no plain file: name one ending in .csv or .parquet")
        try:
            lock(self._handle)
        except BlockingIOError:
            raise StoreError(
                f"{self.path}: another run is writing to it; wait for its end, or name another file"
            ) from None
        self._ours = True
        held = b"" if replace else self._lines.read_bytes()
        made = not held and not replace and self._parquet and self.path.exists()
        if (held or made) and not resume:
            raise UsageError(
                f"{self.path} holds something: if it is an unfinished summary, go on with it "
                "(--resume); else name another file, or overwrite it (--replace)"
            )
        whole = held[: held.rfind(b"\n") + 1]
        if whole:
            self._read(whole)
        elif held and not _line(COLUMNS).startswith(held):
            raise self._is_something_else()
        elif made:
            self._read_parquet()
        os.ftruncate(self._handle, len(whole))
        self._make_folder(empty=not resume)
        if not whole:
            self._write([COLUMNS, *(row.values() for row in self.rows.values())])

    def _make_folder(self, *, empty: bool) -> None:
        with suppress(FileExistsError):
            self.unfinished.mkdir(0o700)
        found = self.unfinished.lstat()
        if not stat.S_ISDIR(found.st_mode) or not is_ours(found):
            raise StoreError(
                f"{self.unfinished} lies where unfinished recordings are kept; move it away"
            )
        if stat.S_IMODE(found.st_mode) & 0o077:
            self.unfinished.chmod(0o700)
        if empty:
            self._empty_folder()

    def _empty_folder(self) -> None:
        for state in (*self.unfinished.glob("*.state"), *self.unfinished.glob(".*.unfinished")):
            state.unlink(missing_ok=True)

    def _read(self, text: bytes) -> None:
        try:
            rows = list(csv.reader(io.StringIO(text.decode(), newline=""), strict=True))
        except (ValueError, csv.Error):
            raise self._is_something_else() from None
        if tuple(rows[0]) != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
            raise self._is_something_else()
        for row in rows[1:]:
            self._take(dict(zip(COLUMNS, row, strict=True)))

    def _read_parquet(self) -> None:
        try:
            rows = read_parquet(self.path, _TYPED)
        except ValueError:
            raise self._is_something_else() from None
        for row in rows:
            self._take({name: _cell(value) for name, value in row.items()})

    def _take(self, row: Mapping[str, str]) -> None:
        try:
            values = {column.name: _value(column, row[column.name]) for column in _TYPED}
        except ValueError:
            raise self._is_something_else() from None
        if values["exit_status"] is None:
            raise self._is_something_else()
        if row["settings"] != self.settings:
            raise UsageError(
                f"{self.path} was made with other options, people or laws: give the same, name "
                "another file, or overwrite it (--replace)"
            )
        self.rows[row["recording"]] = row

    def _is_something_else(self) -> UsageError:
        return UsageError(f"{self.path} is no summary of recordings: name another file")

    def has(self, recording: str, fingerprint: str) -> bool:
        """Whether this very recording is in it already."""
        row = self.rows.get(recording)
        return bool(fingerprint) and row is not None and row["fingerprint"] == fingerprint

    def append(self, row: Mapping[str, str]) -> None:
        """Write the line of one more recording, and see to it that it is on the disk.

        Args:
            row: from `row_of`.

        Raises:
            StoreError: it cannot be written.
        """
        try:
            self._write([row.values()])
        except OSError as error:
            raise not_written(self.path, error) from None
        self.rows[row["recording"]] = row

    def _write(self, rows: Iterable[Iterable[object]]) -> None:
        lines = b"".join(map(_line, rows))
        if os.write(self._handle, lines) < len(lines):
            raise StoreError(f"cannot write {self.path.name}: the disk is full; make room")
        os.fsync(self._handle)

    def finish(self) -> None:
        """Put the lines into natural order, one a recording: the last that was written.

        Raises:
            StoreError: it cannot be written; what was there stays.
        """
        self._empty_folder()
        rows = [self.rows[name] for name in sorted(self.rows, key=natural)]
        if not self._parquet:
            write(self.path, _TYPED, rows)
            return
        write(self.path, _TYPED, [{c.name: _value(c, row[c.name]) for c in _TYPED} for row in rows])
        self._lines.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file; may be called twice."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            if self._ours and self._parquet and not os.fstat(handle).st_size:  # made for nothing
                self._lines.unlink(missing_ok=True)
            if self._ours:
                with suppress(OSError):  # something is in it to go on from, or there is none
                    self.unfinished.rmdir()
            os.close(handle)


def row_of(
    recording: str, outcome: RecordingOutcome, fingerprint: str, settings: str
) -> dict[str, str]:
    """The cells of a recording by column, as text."""
    cells = [recording, *map(_cell, asdict(outcome).values()), fingerprint, settings]
    return dict(zip(COLUMNS, cells, strict=True))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _value(column: Column, cell: str) -> object:
    """What a cell says."""
    if cell == "":
        return None
    if column.kind == "boolean":
        return cell == "true"
    if column.kind == "text":
        return cell
    return float(cell) if column.kind == "number" else int(cell)


def _line(values: Iterable[object]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()
