"""Data sets as Hugging Face's `datasets` has them: folders of audio with metadata, and Parquet.

A folder of audio has ``metadata.csv`` or ``metadata.jsonl``, in it or in its sub-folders, with the
column ``file_name``: a path relative to that table. Parquet holds the bytes of whole sound files in
a column of structs, ``{bytes, path}``; they are read into memory, a row at a time.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any, NamedTuple

import orjson

from monitor.datasets.opening import byte_lines, check_regular, open_bytes, text_lines, walk
from monitor.datasets.parquet_pages import declared_bytes
from monitor.datasets.rows import (
    MOST_ROWS,
    Columns,
    Listing,
    Problems,
    Row,
    cells_of,
    read_json_rows,
    refuse_column,
    text_of,
)
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.npz import MOST_RATIO
from monitor.safe_text import file_name, is_name, is_printable, printable
from monitor.virtual_files import VirtualFile

METADATA = ("metadata.csv", "metadata.jsonl")
FILE_NAME = "file_name"
_HEAD_BYTES = 1 << 16
_MOST_COLUMNS = 10_000
_FREE_BYTES = 32 << 20  # unpacked size that even the smallest file may have
_LEAST_BYTES = 16  # size of the smallest row with a sound file
_MOST_WHOLE = 1 << 53  # beyond that a float is not exact
_DEEPEST = 8  # structs within structs
_LABEL_ROWS = 4096
_DAMAGES = (OSError, ValueError, LookupError, TypeError, MemoryError, NotImplementedError)
"""pyarrow's errors are of these kinds."""
_SAVED = ("dataset_dict.json", "state.json")


def is_metadata(path: Path) -> bool:
    """Return whether a file is the metadata of a folder of audio, by its columns."""
    try:
        with open_bytes(path) as file:
            head = file.read(_HEAD_BYTES).decode("utf-8-sig", errors="replace")
    except CorpusError:
        return False
    first = re.split(r"[\r\n]", head, maxsplit=1)[0]
    if path.suffix.lower() == ".jsonl":
        try:
            value = orjson.loads(first)
        except ValueError:
            return False
        return isinstance(value, dict) and bool(_file_columns(value))
    columns = next(csv.reader([first]), [])
    is_manifest = "path" in columns and path.name not in METADATA
    return path.suffix.lower() == ".csv" and not is_manifest and bool(_file_columns(columns))


def find_tables(root: Path) -> list[Path]:
    """Find the metadata files below a folder, otherwise the Parquet files."""
    metadata: list[Path] = []
    parquet: list[Path] = []
    for folder, names in walk(root):
        tables = [folder / name for name in METADATA if name in names]
        tables = [table for table in tables if is_metadata(table)]
        if len(tables) > 1:
            raise CorpusError(f"{file_name(folder)} has {' and '.join(METADATA)}: remove one")
        metadata += tables
        parquet += [folder / name for name in names if name.lower().endswith(".parquet")]
    return metadata or parquet


def is_saved_to_disk(root: Path) -> bool:
    """Return whether a folder was written by ``save_to_disk``."""
    return any((root / name).is_file() for name in _SAVED) and any(root.rglob("*.arrow"))


def read_metadata(tables: Sequence[Path], columns: Columns) -> Listing:
    """Read the metadata of folders of audio.

    Raises CorpusError if a table cannot be read, or lacks a column.
    """
    listing = Listing(identified_by=_describe(columns))
    listing.rows = _metadata_of(tables, columns, listing)
    return listing


def _metadata_of(tables: Sequence[Path], columns: Columns, listing: Listing) -> Iterator[Row]:
    root = Path(os.path.commonpath([table.parent for table in tables]))
    for table in tables:
        name = table.relative_to(root).as_posix()
        rows = _metadata_rows(table, name, listing.problems)
        file_column, column_names = "", dict[str, None]()
        for where, values in rows:
            if not column_names:
                file_column = _file_column(name, list(values), columns.audio)
                if columns.speaker is None:
                    _check_labels(name, [n for n in values if n != file_column], columns)
            column_names.update(dict.fromkeys(values))  # rows of JSON may have other columns
            if len(column_names) > _MOST_COLUMNS:
                raise CorpusError(f"{name} has more than {_MOST_COLUMNS} columns: write it again")
            file = values.get(file_column)
            if (problem := _path_problem(file)) is not None:
                listing.problems.append(f"{where}{problem}")
                continue
            path = PurePosixPath(str(file))
            cells = {column: value for column, value in values.items() if column != file_column}
            session = path.with_suffix("").as_posix()
            yield from _rows(listing, where, cells, columns, session, table.parent / path)
        if column_names:
            _check_labels(name, [n for n in column_names if n != file_column], columns)


def _metadata_rows(
    table: Path, name: str, problems: Problems
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if table.suffix.lower() == ".jsonl":
        yield from read_json_rows(byte_lines(table), name, problems)
        return
    rows = csv.DictReader(text_lines(table), strict=True)
    try:
        _check_unique(name, rows.fieldnames or ())
        for values in rows:
            where = f"{name} line {rows.line_num}: "
            if None in values or None in values.values():
                problems.append(f"{where}does not have one cell per column")
            else:
                yield where, values
    except csv.Error as error:
        raise CorpusError(f"{name} is not a table ({error}): save it as UTF-8 CSV") from None


def _file_columns(columns: Sequence[str] | Mapping[str, object]) -> list[str]:
    exact = [name for name in columns if name == FILE_NAME]
    return exact or [name for name in columns if name.endswith(f"_{FILE_NAME}")]


def _file_column(table: str, column_names: Sequence[str], audio: str | None) -> str:
    """Choose the column of paths: ``audio`` if given, or ``file_name`` or ``NAME_file_name``."""
    candidates = _file_columns(column_names)
    if audio is not None:
        chosen = next((n for n in (audio, f"{audio}_{FILE_NAME}") if n in column_names), None)
        return chosen or refuse_column(table, candidates, audio, "audio")
    if len(candidates) != 1:
        refuse_column(table, candidates, None, "audio")
    return candidates[0]


def _path_problem(file: object) -> str | None:
    if not isinstance(file, str) or not file.strip() or not is_printable(file):
        return "names no file"
    if "://" in file:
        return f"{file} is a URL and is not fetched: use a file in the folder"
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts:
        return f"{file} leaves the folder: give a path within it"
    return None


def _check_labels(table: str, column_names: Sequence[str], columns: Columns) -> None:
    """Refuse a table if the user named no column of speakers, or a column that it lacks."""
    if columns.speaker not in column_names:
        refuse_column(table, column_names, columns.speaker, "speaker")
    if columns.session is not None and columns.session not in column_names:
        refuse_column(table, column_names, columns.session, "session")


def _check_unique(table: str, names: Sequence[str]) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise CorpusError(f"{table} has two columns {printable(twice[0])!r}: rename one")


def _describe(columns: Columns) -> str:
    by = f"session by {columns.session}" if columns.session else "each file a session"
    return f"by {columns.speaker}, {by}"


def _rows(
    listing: Listing,
    where: str,
    cells: Mapping[str, Any],
    columns: Columns,
    session: str,
    path: Path | VirtualFile,
) -> Iterator[Row]:
    """Yield a row, unless a label is empty; ``session`` is used without a session column."""
    labels = {name: text_of(cells.get(name)) for name in (columns.speaker, columns.session) if name}
    if unnamed := [name for name, text in labels.items() if text is None or not text.strip()]:
        value = cells.get(unnamed[0])
        kind = (
            "empty" if value in (None, "") else (f"{str(value)[:20]!a}, not text or a whole number")
        )
        listing.problems.append(f"{where}{unnamed[0]} is {kind}")
        return
    speaker = labels[columns.speaker or ""] or ""
    if columns.session is not None:
        session = labels[columns.session] or ""
    elif not is_name(session):
        session = Path(session).name[-100:]
    listing.attributes.add(speaker.strip(), cells_of(cells, labels.keys()))
    yield Row(speaker, session, path, where)


@dataclass(frozen=True, slots=True)
class ParquetAudio(VirtualFile):
    """One row's sound file in a Parquet file, read when it is opened."""

    path: Path  # the Parquet file
    leaf: str  # the column of bytes, with its struct: ``audio.bytes``
    group: int  # row group
    row: int  # index in the row group
    number: int  # index in the file

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the Parquet file, and the row in it."""
        return f"{self.path.stem}-row{self.number}"

    def content(self) -> bytes | memoryview:
        """Return the bytes of the sound file."""
        data = _CELLS.read(self)
        if not data:
            raise SourceError(
                f"{self.name} has no audio, perhaps only a path: write the data set with its "
                "audio in it (embed_external_files=True)"
            )
        return data

    def files(self) -> tuple[Path, ...]:
        """Return the Parquet file."""
        return (self.path,)

    def absolute(self) -> ParquetAudio:
        """Return this audio with an absolute path."""
        return replace(self, path=self.path.absolute())


class _Cells:
    """Reader of cells of bytes that keeps its position, for reading rows in order."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._key: tuple[Path, str, int] | None = None
        self._batches: Iterator[Any] = iter(())
        self._next, self._cell = 0, None

    def read(self, audio: ParquetAudio) -> bytes | memoryview | None:
        """Return the bytes of a cell; None if it is empty."""
        key = (audio.path, audio.leaf, audio.group)
        try:
            with self._lock:
                if key != self._key or audio.row < self._next - 1:
                    self._key = None
                    # a row at a time: many rows may share one sound file of any length
                    self._batches = _open(audio.path).iter_batches(
                        1, row_groups=[audio.group], columns=[audio.leaf]
                    )
                    self._next, self._key = 0, key
                while audio.row >= self._next:
                    self._cell = None
                    self._cell = _bytes_in(next(self._batches))
                    self._next += 1
                return None if self._cell is None else memoryview(self._cell).cast("B")
        except (CorpusError, StopIteration, *_DAMAGES) as error:
            self._key = None
            reason = _reason(error) or "it ends early"
            raise SourceError(f"{file_name(audio.path)} cannot be read: {reason}") from None


_CELLS = _Cells()


def _reason(error: BaseException) -> str:
    return printable(str(error).split("\n")[0])[:200].rstrip(".")


def _bytes_in(batch: Any) -> Any:
    """Return the bytes in a batch of one row and one column; None if it has none."""
    column = batch.column(0)
    if hasattr(column, "field"):
        import pyarrow.compute

        column = pyarrow.compute.struct_field(column, [0])  # its nulls include the struct's
    cell = column[0]
    cell = getattr(cell, "value", cell) if hasattr(column, "dictionary") else cell
    return None if cell is None else cell.as_buffer()


def _parquet() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise UsageError(
            "a data set in Parquet needs pyarrow: pip install 'speaker-disclosure-monitor[tables]'"
        ) from None


def _open(path: Path, dictionaries: Sequence[str] = ()) -> Any:
    """Open a Parquet file, unmapped, because a truncated mapped file ends the process."""
    parquet = _parquet()
    check_regular(path)
    try:
        return parquet.ParquetFile(
            path, read_dictionary=list(dictionaries), memory_map=False, pre_buffer=False,
            buffer_size=1 << 20,
        )  # fmt: skip
    except _DAMAGES as error:
        raise CorpusError(
            f"{file_name(path)} is not a readable Parquet file ({_reason(error)}); write it again"
        ) from None


def column_names(path: Path) -> list[str]:
    """Return the names of a Parquet file's columns; CorpusError or UsageError as `read_parquet`."""
    with _open(path) as file:
        return list(file.schema_arrow.names)


def read_parquet(files: Sequence[Path], columns: Columns) -> Listing:
    """Read the speakers of the rows of Parquet files; audio is read when a recording is opened.

    Raises CorpusError if a file cannot be read, or lacks a column, and UsageError if pyarrow is not
    installed.
    """
    listing = Listing(identified_by=_describe(columns))
    listing.rows = _parquet_rows(files, columns, listing)
    return listing


def _parquet_rows(files: Sequence[Path], columns: Columns, listing: Listing) -> Iterator[Row]:
    count = 0
    for path in files:
        name = file_name(path)
        with _open(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
        count += metadata.num_rows
        if count > MOST_ROWS:
            raise CorpusError(f"{name} has more than {MOST_ROWS} rows: use a part of the data set")
        _check_unique(name, schema.names)
        leaf = _find_audio(name, schema, columns.audio)
        labels = _labels(schema, leaf)
        for column, option in ((columns.speaker, "speaker"), (columns.session, "session")):
            if column in schema.names and column not in labels:
                stated = (
                    f"{name}: column {column} has the type {str(schema.field(column).type)[:80]}"
                )
                raise CorpusError(
                    f"{stated}: use one of {', '.join(labels)}"
                    if labels
                    else f"{stated}, and no column has text or whole numbers: add one that "
                    f"names the {option}"
                )
        _check_labels(name, list(labels), columns)
        _check_size(path, metadata, [leaf, *labels])
        try:
            for audio, cells in _label_rows(path, leaf, labels, _class_names(schema)):
                for column in filter(None, (columns.speaker, columns.session)):
                    if isinstance(value := cells[column], float):
                        raise CorpusError(
                            f"{name}: column {column} has {labels[column].type}, such as "
                            f"{value:g}. Use text or whole numbers"
                        )
                where = f"{name} row {audio.number}: "
                yield from _rows(listing, where, cells, columns, audio.name, audio)
        except _DAMAGES as error:
            reason = _reason(error)
            raise CorpusError(f"{name} is damaged ({reason}); write it again") from None


def _check_size(path: Path, metadata: Any, leaves: Collection[str]) -> None:
    """Refuse a file that claims implausibly much memory for its size."""
    size, rows = path.stat().st_size, metadata.num_rows
    try:
        unpacked = declared_bytes(path, metadata, leaves)
    except _DAMAGES as error:
        raise CorpusError(f"{file_name(path)} is damaged ({error}); write it again") from None
    if rows * _LEAST_BYTES > size or unpacked > _FREE_BYTES + MOST_RATIO * size:
        raise CorpusError(
            f"{file_name(path)} claims {rows} rows and {unpacked >> 20} MB in {size} bytes: write "
            "it again, with its audio in it"
        )


class _Label(NamedTuple):
    """A column of texts or numbers; ``names`` are those of the structs around it and its own."""

    names: tuple[str, ...]
    type: Any
    is_text: bool

    def cells(self, batch: Any) -> list[Any]:
        """Return the cells of a batch; rows with the same text share one object.

        Whole floats become integers, because pandas writes integers with nulls as floats.
        """
        first, *inner = self.names
        column = batch.column(first)
        if inner:
            import pyarrow.compute

            column = pyarrow.compute.struct_field(column, inner)
        if hasattr(column, "dictionary"):
            texts, indices = column.dictionary.to_pylist(), column.indices.to_pylist()
            return [None if index is None else texts[index] for index in indices]
        return [_whole(cell) for cell in column.to_pylist()]


def _whole(value: Any) -> Any:
    """Return a whole number as an integer, NaN as None, and anything else as it is."""
    if isinstance(value, float) and math.isnan(value):
        return None
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _MOST_WHOLE
    return int(value) if is_whole else value


def _label_rows(
    path: Path, leaf: str, labels: Mapping[str, _Label], classes: Mapping[str, Sequence[str]]
) -> Iterator[tuple[ParquetAudio, dict[str, Any]]]:
    number = 0
    with _open(path, [name for name, label in labels.items() if label.is_text]) as file:
        for group in range(file.metadata.num_row_groups):
            row = 0
            for batch in file.iter_batches(_LABEL_ROWS, row_groups=[group], columns=list(labels)):
                columns = {name: label.cells(batch) for name, label in labels.items()}
                for column in classes.keys() & columns.keys():
                    names = classes[column]
                    columns[column] = [
                        names[cell] if type(cell) is int and 0 <= cell < len(names) else cell
                        for cell in columns[column]
                    ]
                for index in range(batch.num_rows):
                    cells = {name: column[index] for name, column in columns.items()}
                    yield ParquetAudio(path, leaf, group, row, number), cells
                    row, number = row + 1, number + 1


def _find_audio(table: str, schema: Any, audio: str | None) -> str:
    """Find the column of sound files: structs with bytes, or the column ``audio``."""
    types = import_module("pyarrow").types

    def is_bytes(kind: Any) -> bool:
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return bool(
            types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
        )

    leaves = {}
    for field in schema:
        if types.is_struct(field.type) and any(
            child.name == "bytes" and is_bytes(child.type) for child in field.type
        ):
            leaves[field.name] = f"{field.name}.bytes"
        elif is_bytes(field.type) and field.name == audio:
            leaves[field.name] = field.name
    if audio is not None:
        return leaves.get(audio) or refuse_column(table, leaves, audio, "audio")
    if not leaves:
        raise CorpusError(
            f"{table} has no audio, since no column is a struct of bytes and path (its columns are "
            f"{', '.join(schema.names[:20]) or 'none'})"
        )
    if len(leaves) > 1:
        refuse_column(table, leaves, None, "audio")
    return next(iter(leaves.values()))


def _labels(schema: Any, audio: str) -> dict[str, _Label]:
    """Return the columns that can name a speaker, except the audio's, by name.

    Fields of structs have dotted names, such as ``speaker.id``.
    """
    types = import_module("pyarrow").types
    labels: dict[str, _Label] = {}
    fields: list[tuple[tuple[str, ...], Any]] = [((field.name,), field.type) for field in schema]
    while fields:
        names, kind = fields.pop(0)
        if names[0] == audio.partition(".")[0]:
            continue
        if types.is_struct(kind):
            fields += [((*names, f.name), f.type) for f in kind if len(names) < _DEEPEST]
            continue
        plain = kind.value_type if types.is_dictionary(kind) else kind
        is_text = any(
            test(plain) for test in (types.is_string, types.is_large_string, types.is_string_view)
        )
        if is_text or types.is_integer(plain) or types.is_floating(plain):
            labels[".".join(names)] = _Label(names, plain, bool(is_text))
    return labels


def _class_names(schema: Any) -> dict[str, list[str]]:
    try:
        stated = orjson.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = stated["info"]["features"]
        return {
            column: names
            for column, feature in features.items()
            if isinstance(feature, dict)
            and feature.get("_type") == "ClassLabel"
            and isinstance(names := feature.get("names"), list)
            and all(isinstance(name, str) for name in names)
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
