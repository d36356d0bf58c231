"""Arrays in an npz: small ones are read at once, large ones mapped. Nothing is unpickled."""

from __future__ import annotations

import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from functools import lru_cache
from io import BytesIO
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np

from monitor.types import AnyArray

MOST_MEMBERS = 65_536
MOST_BYTES = 4 << 30
FREE_BYTES = 128 << 20  # allowed for every file: a day of voice activity shrinks a thousand times
MOST_RATIO = 50  # further limit per byte: histograms of ten thousand speakers shrink 24 times
_PIECE = 1 << 20
_LOCAL_HEADER, _LOCAL_MAGIC = 30, b"PK\x03\x04"
MAPPED = "mapped/"  # prefix of the names of arrays that are mapped from the file


def read_arrays(
    file: BinaryIO,  # an npz
    only: str | None = None,  # name of the wanted array; None for all
    *,
    without: tuple[str, ...] = (),  # Prefixes of unwanted names.
    # Prefixes of small arrays that stay compressed until they are used. Damage is noticed then, as
    # a ValueError or zlib.error.
    later: tuple[str, ...] = (),
) -> Arrays:
    """Read arrays of an npz by name."""
    max_bytes = min(MOST_BYTES, FREE_BYTES + MOST_RATIO * file.seek(0, os.SEEK_END))
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = {member.filename for member in members}
        if len(members) > MOST_MEMBERS or len(names) < len(members):
            raise ValueError("too many members")
        if sum(member.file_size for member in members if not _is_mapped(member)) > max_bytes:
            raise ValueError("it would take implausibly much memory for its size")
        arrays = Arrays()
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                raise ValueError("a member is not an array")
            if only in (None, name) and not (name.startswith(without) or _is_mapped(member)):
                small = _Deflated.from_member(archive, member)
                if small is None:
                    arrays[name] = _array(archive, member)
                elif name.startswith(later):
                    arrays.put_off(name, small)
                else:
                    arrays[name] = small.array()
    return arrays


class Arrays(MutableMapping[str, AnyArray]):
    """Arrays by name; some stay compressed in memory, and are decompressed at each access."""

    def __init__(self, arrays: Mapping[str, AnyArray] | None = None) -> None:
        self._arrays: dict[str, AnyArray | _Deflated] = dict(arrays or {})

    def with_prefix(self, start: str) -> Arrays:
        """Return the arrays with a prefix, by the remainder of their names."""
        below = Arrays()
        below._arrays = {
            name.removeprefix(start): array
            for name, array in self._arrays.items()
            if name.startswith(start)
        }
        return below

    def put_off(self, name: str, compressed: _Deflated) -> None:
        """Add an array that stays compressed until it is asked for."""
        self._arrays[name] = compressed

    def __getitem__(self, name: str) -> AnyArray:
        array = self._arrays[name]
        return array.array() if isinstance(array, _Deflated) else array

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __setitem__(self, name: str, array: AnyArray) -> None:
        self._arrays[name] = array

    def __delitem__(self, name: str) -> None:
        del self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


class _Deflated(NamedTuple):
    """A small compressed array in an npz. zipfile would take three times as long."""

    content: bytes
    size: int
    checksum: int

    @classmethod
    def from_member(cls, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Deflated | None:
        """Read a small deflated member of an open archive; None if it is not one."""
        file, small = archive.fp, max(member.file_size, member.compress_size) <= _PIECE
        plain = member.compress_type == zipfile.ZIP_DEFLATED and not member.flag_bits & 1
        if file is None or not (small and plain):
            return None
        file.seek(_begin(file, member))
        return cls(file.read(member.compress_size), member.file_size, member.CRC)

    def array(self) -> AnyArray:
        """Decompress; ValueError or zlib.error if damaged."""
        plain = zlib.decompressobj(-zlib.MAX_WBITS).decompress(self.content, self.size + 1)
        if len(plain) != self.size or zlib.crc32(plain) != self.checksum:
            raise ValueError("an array is damaged")
        length = plain[8 : 10 if plain[6:7] == b"\x01" else 12]  # stored in two bytes or four
        begin = 8 + len(length) + int.from_bytes(length, "little")
        array, content = _empty(*_described(plain[:begin], self.size))
        content[:] = np.frombuffer(plain[begin:], np.uint8)
        return array


def _is_mapped(member: zipfile.ZipInfo) -> bool:
    return member.filename.startswith(MAPPED)


def _begin(file: IO[bytes], member: zipfile.ZipInfo) -> int:
    """Find where the content of a member begins in the file of its archive."""
    file.seek(member.header_offset)
    local = file.read(_LOCAL_HEADER)
    if len(local) < _LOCAL_HEADER or not local.startswith(_LOCAL_MAGIC):
        raise ValueError("a member is misplaced")
    name, extra = struct.unpack("<HH", local[26:30])
    return member.header_offset + _LOCAL_HEADER + int(name) + int(extra)


def _empty(shape: tuple[int, ...], fortran: bool, kind: np.dtype[Any]) -> tuple[AnyArray, AnyArray]:
    """Allocate an array, and return it with its bytes."""
    array: AnyArray = np.empty(shape, kind, order="F" if fortran else "C")
    return array, array.ravel("K").view(np.uint8) if array.nbytes else np.empty(0, np.uint8)


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> AnyArray:
    """Read an array if its header matches the member's length."""
    with archive.open(member) as stream:
        array, content = _empty(*_header(stream, member.file_size))
        for first in range(0, len(content), _PIECE):
            piece = content[first : first + _PIECE]
            piece[:] = np.frombuffer(stream.read(len(piece)), np.uint8)  # ValueError: ends early
        stream.read(1)  # makes zipfile compare the checksum
    return array


@lru_cache(maxsize=1 << 10)
def _described(header: bytes, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read a header as `_header` does, once for all small arrays of a shape."""
    return _header(BytesIO(header), size)


def _header(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read shape, Fortran order and type of an array with ``size`` bytes, including the header."""
    before = stream.tell()
    version = np.lib.format.read_magic(stream)
    read_short, read_long = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
    read = read_short if version == (1, 0) else read_long
    try:
        shape, fortran, kind = read(stream)
    except Exception as error:  # numpy uses Python's tokenizer, which raises its own errors
        raise ValueError("the header of an array is invalid") from error
    if kind.hasobject:
        raise ValueError("Object arrays cannot be loaded")
    if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != size - (
        stream.tell() - before
    ):
        raise ValueError("an array has another length than its header states")
    return shape, fortran, kind


_ALIGNED = 64
_PAD = 0xD935  # zipalign's
_ZIP64_BYTES = 20


class Rows(NamedTuple):
    """An array to write block by block: its shape, its type, and blocks of rows."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Iterable[AnyArray]


def write_arrays(
    file: IO[bytes], arrays: Mapping[str, AnyArray], mapped: Mapping[str, Rows]
) -> None:
    """Write an npz: ``arrays`` compressed, and ``mapped`` uncompressed for `mapped_arrays`."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        for name, rows in mapped.items():
            info = zipfile.ZipInfo(f"{MAPPED}{name}.npy", (1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o600 << 16
            begins = file.tell() + _LOCAL_HEADER + len(info.filename.encode()) + _ZIP64_BYTES
            pad = -(begins + 4) % _ALIGNED  # numpy's own header is a multiple of 64 bytes
            info.extra = struct.pack("<HH", _PAD, pad) + bytes(pad)
            with archive.open(info, "w", force_zip64=True) as member:
                described = np.lib.format.dtype_to_descr(rows.dtype)
                header = {"descr": described, "fortran_order": False, "shape": rows.shape}
                np.lib.format.write_array_header_1_0(member, header)
                for block in rows.blocks:
                    member.write(np.ascontiguousarray(block, rows.dtype).data.cast("B"))


def mapped_arrays(file: BinaryIO) -> dict[str, AnyArray]:
    """Map the uncompressed arrays of an npz, which need no memory.

    Raises ValueError if one is compressed, extends beyond the file, or contradicts its header's
    length.
    """
    length = file.seek(0, os.SEEK_END)
    arrays: dict[str, AnyArray] = {}
    with zipfile.ZipFile(file) as archive:
        for member in filter(_is_mapped, archive.infolist()):
            size = member.file_size
            first = _begin(file, member)
            plain = member.compress_type == zipfile.ZIP_STORED and size == member.compress_size
            if not plain or member.flag_bits & 1 or first + size > length:
                raise ValueError("an array cannot be mapped")
            file.seek(first)
            shape, fortran, kind = _header(file, size)
            if fortran or not math.prod(shape):
                raise ValueError("an array cannot be mapped")
            array = np.memmap(file, kind, "r", file.tell(), shape)
            arrays[member.filename.removeprefix(MAPPED).removesuffix(".npy")] = np.asarray(array)
    return arrays
