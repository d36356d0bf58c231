"""Data sets as Hugging Face's `datasets` has them: folders of audio with metadata, and Parquet.

A folder of audio has ``metadata.csv`` or ``metadata.jsonl``, in it or in its sub-folders, with the
column ``file_name``: a path relative to that table. Parquet holds the bytes of whole sound files in
a column of structs, ``{bytes, path}``; they are read into memory, a few rows at a time.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any

import orjson

from monitor.datasets.rows import (
    MOST_ROWS,
    Columns,
    Listing,
    Row,
    cells_of,
    read_json_rows,
    refuse_column,
    text_of,
)
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.files import FREE_BYTES, MOST_RATIO, VirtualFile
from monitor.safe_text import file_name, is_name, printable

METADATA = ("metadata.csv", "metadata.jsonl")
FILE_NAME = "file_name"
_HEAD_BYTES = 1 << 16
_BATCH_ROWS, _BATCH_BYTES = 8, 64 << 20  # of sound files in memory at once
_LEAST_BYTES = 16  # of a row with a sound file
_LABEL_ROWS = 4096
_DAMAGES = (OSError, ValueError, LookupError, TypeError, MemoryError, NotImplementedError)
"""pyarrow's errors are of these kinds."""
_SAVED = ("dataset_dict.json", "state.json")


# --- Folders.


def is_metadata(path: Path) -> bool:
    """Return whether a file is the metadata of a folder of audio, by its columns."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES).decode("utf-8-sig", errors="replace")
    except OSError:
        return False
    first = head.split("\n", 1)[0]
    if path.suffix.lower() == ".jsonl":
        try:
            value = orjson.loads(first)
        except ValueError:
            return False
        return isinstance(value, dict) and bool(_file_columns(value))
    columns = next(csv.reader([first]), [])
    return path.suffix.lower() == ".csv" and "path" not in columns and bool(_file_columns(columns))


def find_tables(root: Path) -> list[Path]:
    """Find the metadata, else the Parquet files, in a folder and those below it, in order."""
    metadata: list[Path] = []
    parquet: list[Path] = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        tables = [Path(folder, name) for name in METADATA if name in names]
        tables = [table for table in tables if is_metadata(table)]
        if len(tables) > 1:
            raise CorpusError(f"{file_name(folder)} has {' and '.join(METADATA)}: remove one")
        metadata += tables
        parquet += [
            Path(folder, name)
            for name in sorted(names)
            if name.lower().endswith(".parquet") and not name.startswith(".")
        ]
    return metadata or parquet


def is_saved_to_disk(root: Path) -> bool:
    """Return whether a folder was written by ``save_to_disk``."""
    return any((root / name).is_file() for name in _SAVED) and any(root.rglob("*.arrow"))


def read_metadata(tables: Sequence[Path], columns: Columns) -> Listing:
    """Read the metadata of folders of audio.

    Raises:
        CorpusError: a table cannot be read, or lacks a column.
    """
    listing = Listing(identified_by=_describe(columns))
    root = Path(os.path.commonpath([table.parent for table in tables]))
    for table in tables:
        name = table.relative_to(root).as_posix()
        rows = list(_metadata_rows(table, name, listing.problems))
        column_names = list(dict.fromkeys(column for _, values in rows for column in values))
        if not column_names:
            continue
        file_column = _file_column(name, column_names, columns.audio)
        speaker_column, session_column = _label_columns(
            name, [column for column in column_names if column != file_column], columns
        )
        for where, values in rows:
            file = values.get(file_column)
            if (problem := _path_problem(file)) is not None:
                listing.problems.append(f"{where}{problem}")
                continue
            path = PurePosixPath(str(file))
            session = path.with_suffix("").as_posix() if session_column is None else None
            _add(
                listing, where, values, speaker_column, session_column, session,
                table.parent / path, (file_column,),
            )  # fmt: skip
    return listing


def _metadata_rows(
    table: Path, name: str, problems: list[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        if table.suffix.lower() == ".jsonl":
            with table.open("rb") as file:
                yield from read_json_rows(file, name, problems)
            return
        text = io.StringIO(table.read_text(encoding="utf-8-sig"), newline="")
        rows = csv.DictReader(text, strict=True)
        _check_unique(name, rows.fieldnames or ())
        for values in rows:
            where = f"{name} line {rows.line_num}: "
            if None in values or None in values.values():
                problems.append(f"{where}has not as many cells as there are columns")
            else:
                yield where, values
    except OSError as error:
        raise CorpusError(f"cannot open {name}: {error.strerror}; check the name") from None
    except UnicodeDecodeError:
        raise CorpusError(f"{name} is not UTF-8 text; save it as UTF-8") from None
    except csv.Error as error:
        raise CorpusError(f"{name} is no table ({error}); save it as UTF-8 CSV") from None


def _file_columns(columns: Sequence[str] | Mapping[str, object]) -> list[str]:
    exact = [name for name in columns if name == FILE_NAME]
    return exact or [name for name in columns if name.endswith(f"_{FILE_NAME}")]


def _file_column(table: str, column_names: Sequence[str], audio: str | None) -> str:
    """Choose the column of paths: ``file_name``, ``NAME_file_name``, or the one that is named."""
    candidates = _file_columns(column_names)
    if audio is not None:
        chosen = next((n for n in (audio, f"{audio}_{FILE_NAME}") if n in column_names), None)
        return chosen or refuse_column(table, candidates, audio, "audio")
    if len(candidates) != 1:
        refuse_column(table, candidates, None, "audio")
    return candidates[0]


def _path_problem(file: object) -> str | None:
    """Explain why a path of a table is not read; None if it is."""
    if not isinstance(file, str) or not file.strip() or not file.isprintable():
        return "names no file"
    if "://" in file:
        return f"{file} is an address: nothing is fetched; give a file in the folder"
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts:
        return f"{file} leaves the folder: give a path within it"
    return None


# --- Labels.


def _label_columns(
    table: str, column_names: Sequence[str], columns: Columns
) -> tuple[str, str | None]:  # fmt: skip
    """Check the columns of speakers and sessions, which nothing but their user can say."""
    if columns.speaker not in column_names:
        refuse_column(table, column_names, columns.speaker, "speaker")
    if columns.session is not None and columns.session not in column_names:
        refuse_column(table, column_names, columns.session, "session")
    return columns.speaker or "", columns.session


def _check_unique(table: str, names: Sequence[str]) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise CorpusError(f"{table} has two columns {printable(twice[0])!r}: rename one")


def _describe(columns: Columns) -> str:
    by = f"session by {columns.session}" if columns.session else "each file a session"
    return f"by {columns.speaker}, {by}"


def _add(
    listing: Listing,
    where: str,
    values: Mapping[str, Any],
    speaker_column: str,
    session_column: str | None,
    session: str | None,
    path: Path | VirtualFile,
    without: tuple[str, ...] = (),
) -> None:
    """Add a row, unless its labels are of a type that names nobody."""
    labels = {speaker_column: text_of(values.get(speaker_column))}
    if session_column is not None:
        labels[session_column] = session = text_of(values.get(session_column))
    if unnamed := [name for name, text in labels.items() if text is None or not text.strip()]:
        value = values.get(unnamed[0])
        kind = "empty" if value in (None, "") else f"{str(value)[:20]!a}, no text or whole number"
        listing.problems.append(f"{where}{unnamed[0]} is {kind}")
        return
    speaker, session = labels[speaker_column] or "", session or ""
    if session_column is None and not is_name(session):
        session = Path(session).name[-100:]
    listing.rows.append(Row(speaker, session, path, where))
    listing.attributes.add(
        speaker.strip(), cells_of(values, {speaker_column, session_column, *without})
    )


# --- Parquet.


@dataclass(frozen=True, slots=True)
class ParquetAudio(VirtualFile):
    """One row's sound file in a Parquet file, read when it is opened.

    Attributes:
        path: the Parquet file.
        leaf: the column of bytes, with its struct: ``audio.bytes``.
        group: row group.
        row: place in the row group.
        number: place in the file, from 0.
    """

    path: Path
    leaf: str
    group: int
    row: int
    number: int

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the Parquet file, and the row in it."""
        return f"{self.path.stem}-row{self.number}"

    def content(self) -> bytes | memoryview:
        """Return the bytes of the sound file."""
        data = _CELLS.read(self)
        if not data:
            raise SourceError(
                f"{self.name} holds no audio, only a path perhaps; write the data set with its "
                "audio in it (embed_external_files=True)"
            )
        return data

    def files(self) -> tuple[Path, ...]:
        """Return the Parquet file."""
        return (self.path,)

    def absolute(self) -> ParquetAudio:
        """Return the same, found from any working folder."""
        return replace(self, path=self.path.absolute())


class _Cells:
    """Reader of cells of bytes that keeps its place: rows that follow are not read again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._key: tuple[Path, str, int] | None = None
        self._batches: Iterator[Any] = iter(())
        self._begin, self._cells = 0, list[Any]()

    def read(self, audio: ParquetAudio) -> bytes | memoryview | None:
        """Return the bytes of a cell; None where it holds none."""
        key = (audio.path, audio.leaf, audio.group)
        try:
            with self._lock:
                if key != self._key or audio.row < self._begin:
                    self._key = None
                    file = _open(audio.path)
                    group = file.metadata.row_group(audio.group)
                    usual = group.total_byte_size // max(group.num_rows, 1)
                    self._batches = file.iter_batches(
                        min(_BATCH_ROWS, max(1, _BATCH_BYTES // max(usual, 1))),
                        row_groups=[audio.group],
                        columns=[audio.leaf],
                    )
                    self._begin, self._cells, self._key = 0, [], key
                while audio.row >= self._begin + len(self._cells):
                    self._begin += len(self._cells)
                    self._cells = []
                    self._cells = _bytes_in(next(self._batches))
                cell = self._cells[audio.row - self._begin]
                return None if cell is None else memoryview(cell).cast("B")
        except (CorpusError, StopIteration, *_DAMAGES) as error:
            self._key = None
            reason = _reason(error) or "it ends early"
            raise SourceError(f"{file_name(audio.path)} cannot be read: {reason}") from None


_CELLS = _Cells()


def _reason(error: BaseException) -> str:
    return printable(str(error).split("\n")[0])[:200].rstrip(".")


def _bytes_in(batch: Any) -> list[Any]:
    """Return the cells of a batch of one column, of bytes or of structs of them."""
    column = batch.column(0)
    if hasattr(column, "field"):
        import pyarrow.compute

        column = pyarrow.compute.struct_field(column, [0])  # whose nulls are the struct's too
    return [cell.as_buffer() for cell in column]


def _parquet() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise UsageError(
            "a data set in Parquet needs pyarrow: pip install 'speaker-disclosure-monitor[tables]'"
        ) from None


def _open(path: Path, dictionaries: Sequence[str] = ()) -> Any:
    """Open a Parquet file; not mapped, since one that is cut off would end the process."""
    parquet = _parquet()
    try:
        return parquet.ParquetFile(
            path, read_dictionary=list(dictionaries), memory_map=False, pre_buffer=False,
            buffer_size=1 << 20,
        )  # fmt: skip
    except _DAMAGES as error:
        raise CorpusError(
            f"{file_name(path)} is no Parquet file that can be read ({_reason(error)}); write it "
            "again"
        ) from None


def read_parquet(files: Sequence[Path], columns: Columns) -> Listing:
    """Read who speaks in the rows of Parquet files; audio is read when it is heard.

    Raises:
        CorpusError: a file cannot be read, or lacks a column.
        UsageError: pyarrow is not installed.
    """
    listing = Listing(identified_by=_describe(columns))
    count = 0
    for path in files:
        name = file_name(path)
        with _open(path) as file:
            schema = file.schema_arrow
            count += file.metadata.num_rows
            _check_size(name, file.metadata, path.stat().st_size)
        if count > MOST_ROWS:
            raise CorpusError(f"{name}: more than {MOST_ROWS} rows; take a part of the data set")
        _check_unique(name, schema.names)
        leaf = _find_audio(name, schema, columns.audio)
        column_names = [n for n in schema.names if n != leaf.partition(".")[0]]
        speaker_column, session_column = _label_columns(name, column_names, columns)
        kinds = _kinds(schema)
        for label in filter(None, (speaker_column, session_column)):
            if label not in kinds:
                raise CorpusError(
                    f"{name}: column {label} holds {schema.field(label).type}: name one of "
                    f"{', '.join(kinds) or 'text'}"
                )
        classes = _class_names(schema)
        labels = [n for n in kinds if n != leaf]
        try:
            for audio, values in _label_rows(path, leaf, labels, kinds):
                for column, names in classes.items():
                    if isinstance(index := values.get(column), int) and 0 <= index < len(names):
                        values[column] = names[index]
                where = f"{name} row {audio.number}: "
                session = None if session_column else audio.name
                _add(listing, where, values, speaker_column, session_column, session, audio)
        except _DAMAGES as error:
            reason = _reason(error)
            raise CorpusError(f"{name} is damaged ({reason}); write it again") from None
    return listing


def _check_size(name: str, metadata: Any, size: int) -> None:
    """Refuse a file that would take far more memory than its size makes believable."""
    groups = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
    if metadata.num_rows * _LEAST_BYTES > size or sum(groups) > FREE_BYTES + MOST_RATIO * size:
        raise CorpusError(
            f"{name} says that it holds {metadata.num_rows} rows and {sum(groups) >> 20} MB, in "
            f"{size} bytes: write it again, with its audio in it"
        )


def _label_rows(
    path: Path, leaf: str, labels: Sequence[str], kinds: Mapping[str, bool]
) -> Iterator[tuple[ParquetAudio, dict[str, Any]]]:
    number = 0
    with _open(path, [name for name in labels if kinds[name]]) as file:
        for group in range(file.metadata.num_row_groups):
            row = 0
            for batch in file.iter_batches(_LABEL_ROWS, row_groups=[group], columns=labels):
                cells = dict(zip(labels, map(_values, batch.columns), strict=True))
                for place in range(batch.num_rows):
                    values = {name: column[place] for name, column in cells.items()}
                    yield ParquetAudio(path, leaf, group, row, number), values
                    row, number = row + 1, number + 1


def _values(column: Any) -> list[Any]:
    """Return the cells of a column; a text that many rows share is made once."""
    if not hasattr(column, "dictionary"):
        return list(column.to_pylist())
    texts = column.dictionary.to_pylist()
    return [None if index is None else texts[index] for index in column.indices.to_pylist()]


def _find_audio(table: str, schema: Any, audio: str | None) -> str:
    """Find the column of sound files: structs with bytes, or the column that is named."""
    types = import_module("pyarrow").types

    def is_bytes(kind: Any) -> bool:
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

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
            f"{table} holds no audio: no column is a struct of bytes and path (its columns are "
            f"{', '.join(schema.names[:20]) or 'none'})"
        )
    if len(leaves) > 1:
        refuse_column(table, leaves, None, "audio")
    return next(iter(leaves.values()))


def _kinds(schema: Any) -> dict[str, bool]:
    """Return the columns of texts (True) and of whole numbers (False)."""
    types = import_module("pyarrow").types
    kinds: dict[str, bool] = {}
    for field in schema:
        kind = field.type
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_string(kind) or types.is_large_string(kind):
            kinds[field.name] = True
        elif types.is_integer(kind):
            kinds[field.name] = False
    return kinds


def _class_names(schema: Any) -> dict[str, list[str]]:
    """Return the names of classes by column, as `datasets` states them in the file."""
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
