"""Tables written as CSV and Parquet, and made into data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from monitor.atomic import atomic_write, not_written
from monitor.errors import UsageError
from monitor.tables.columns import Column

if TYPE_CHECKING:
    import pandas

__all__ = ["SUFFIXES", "data_frame", "need", "read_parquet", "write", "write_csv", "write_parquet"]

SUFFIXES = (".csv", ".parquet")

Row = Mapping[str, Any]


def need(package: str) -> Any:
    """An optional package of the extra 'tables'.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError:
        name = package.partition(".")[0]
        raise UsageError(
            f"this table needs {name}: pip install 'speaker-disclosure-monitor[tables]'"
        ) from None


def write(path: Path, columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """Write a table by the suffix of its name: whole or not at all, mode 0600.

    Raises:
        UsageError: the suffix is no table's, or pyarrow is not installed.
        StoreError: it cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: a table is called {' or '.join(SUFFIXES)}")
    to_file = write_csv if suffix == ".csv" else write_parquet
    if to_file is write_parquet:
        need("pyarrow.parquet")
    try:
        with atomic_write(path) as file:
            to_file(file, columns, rows)
    except OSError as error:
        raise not_written(path, error) from None


def write_csv(file: IO[bytes], columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """UTF-8 with a header line; empty where there is no figure, ``true`` and ``false``."""
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([column.name for column in columns])
    for row in rows:
        lines.writerow([_cell(row.get(column.name)) for column in columns])
    text.detach()


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def write_parquet(file: IO[bytes], columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """Typed columns; the metadata of each field has its ``unit`` and its ``meaning``.

    Raises:
        UsageError: pyarrow is not installed.
    """
    arrow = need("pyarrow")
    fields = [
        arrow.field(each.name, _type(each), metadata={"unit": each.unit, "meaning": each.meaning})
        for each in columns
    ]
    rows = list(rows)
    cells = [arrow.array(_cells(each, rows), _type(each)) for each in columns]
    need("pyarrow.parquet").write_table(
        arrow.Table.from_arrays(cells, schema=arrow.schema(fields)), file
    )


def read_parquet(path: Path, columns: Sequence[Column]) -> list[dict[str, Any]]:
    """The rows of a Parquet file that has these columns.

    Raises:
        UsageError: pyarrow is not installed.
        ValueError: it is none, or has others.
        OSError: it cannot be read.
    """
    content = io.BytesIO(path.read_bytes())
    try:
        table = need("pyarrow.parquet").ParquetFile(content).read()
    except (OSError, need("pyarrow").ArrowException) as error:
        raise ValueError(f"no Parquet: {error}") from None
    kinds = [(field.name, field.type) for field in table.schema]
    if kinds != [(each.name, _type(each)) for each in columns]:
        raise ValueError("other columns")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _type(column: Column) -> Any:
    """Of Arrow."""
    arrow = need("pyarrow")
    return {
        "number": arrow.float64(),
        "integer": arrow.int64(),
        "boolean": arrow.bool_(),
        "text": arrow.string(),
    }[column.kind]


def data_frame(columns: Sequence[Column], rows: Iterable[Row]) -> pandas.DataFrame:
    """A data frame; missing numbers are NaN, what else is missing is NA.

    Raises:
        UsageError: pandas is not installed.
    """
    frames = need("pandas")
    types = {"number": "float64", "integer": "Int64", "boolean": "boolean", "text": "string"}
    rows = list(rows)
    made = frames.DataFrame(
        {each.name: frames.Series(_cells(each, rows), dtype=types[each.kind]) for each in columns}
    )
    made.attrs["units"] = {each.name: each.unit for each in columns if each.unit}
    return made


def _cells(column: Column, rows: Sequence[Row]) -> list[Any]:
    found = (row.get(column.name) for row in rows)
    if column.kind == "number":
        return [None if value is None else float(value) for value in found]
    return list(found)
