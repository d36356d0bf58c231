"""Sizes of the pages of a Parquet file, read from their headers without unpacking them.

The sizes in the footer may be forged. Those in the headers are what pyarrow allocates.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO

_BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = 3, 7, 8, 9, 10, 11, 12, 13
_INTEGERS = (4, 5, 6)
_FIXED = {1: 0, 2: 0, _BYTE: 1, _DOUBLE: 8, _UUID: 16}
_UNPACKED, _PACKED = 2, 3  # fields of a page header
_DEEPEST = 16


def declared_bytes(path: Path, metadata: Any, leaves: Collection[str] | None = None) -> int:
    """Return the bytes that a file unpacks to, by its footer or its page headers if these are more.

    `metadata` is its footer. `leaves` are paths of the columns that are read; None for all. Raises
    OSError if the file cannot be read, and ValueError if a page header is damaged.
    """
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    with path.open("rb") as file:
        pages = sum(
            unpacked_bytes(file, chunk)
            for group in groups
            for chunk in map(group.column, range(group.num_columns))
            if leaves is None or chunk.path_in_schema in leaves
        )
    stated: int = sum(group.total_byte_size for group in groups)
    return max(pages, stated)


def unpacked_bytes(file: BinaryIO, chunk: Any) -> int:
    """Return the bytes that all pages of a column chunk unpack to.

    Raises ValueError if a page header is damaged.
    """
    position: int = chunk.data_page_offset
    if chunk.dictionary_page_offset:
        position = min(position, chunk.dictionary_page_offset)
    end, total = position + chunk.total_compressed_size, 0
    while position < end:
        file.seek(position)
        sizes = {_UNPACKED: 0, _PACKED: 0}
        _read_struct(file, sizes, 0)
        if min(sizes.values()) < 0:
            raise ValueError("a page has a negative size")
        total += sizes[_UNPACKED]
        position = file.tell() + sizes[_PACKED]
    return total


def _read_struct(file: BinaryIO, wanted: dict[int, int], depth: int) -> None:
    """Read a struct of Thrift's compact protocol, and store the integers of ``wanted`` fields."""
    if depth > _DEEPEST:
        raise ValueError("a page header is nested too deeply")
    field = 0
    while head := _bytes(file, 1)[0]:
        kind, step = head & 15, head >> 4
        field = field + step if step else _integer(file)
        if kind in _INTEGERS:
            value = _integer(file)
            if field in wanted:
                wanted[field] = value
        else:
            _skip(file, kind, depth)


def _skip(file: BinaryIO, kind: int, depth: int) -> None:
    if kind in _FIXED:
        _bytes(file, _FIXED[kind])
    elif kind in _INTEGERS:
        _varint(file)
    elif kind == _BINARY:
        file.seek(_varint(file), 1)
    elif kind == _STRUCT:
        _read_struct(file, {}, depth + 1)
    elif kind in (_LIST, _SET):
        head = _bytes(file, 1)[0]
        count = head >> 4
        for _ in range(_varint(file) if count == 15 else count):
            _skip_element(file, head & 15, depth + 1)
    elif kind == _MAP:
        count = _varint(file)
        kinds = _bytes(file, 1)[0] if count else 0
        for _ in range(count):
            _skip_element(file, kinds >> 4, depth + 1)
            _skip_element(file, kinds & 15, depth + 1)
    else:
        raise ValueError("a page header is damaged")


def _skip_element(file: BinaryIO, kind: int, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError("a page header is nested too deeply")
    _skip(file, _BYTE if kind in (1, 2) else kind, depth)  # a Boolean in a list takes a byte


def _bytes(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise ValueError("a page header is cut off")
    return data


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = _bytes(file, 1)[0]
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise ValueError("a page header is damaged")


def _integer(file: BinaryIO) -> int:
    value = _varint(file)
    return (value >> 1) ^ -(value & 1)
