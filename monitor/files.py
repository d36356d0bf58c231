"""Private files: written atomically, locked, checked when they come from others."""

from __future__ import annotations

import csv
import errno
import glob
import math
import os
import re
import stat
import struct
import time
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from io import BufferedReader, BytesIO, RawIOBase, StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, BinaryIO, NamedTuple, TextIO, TypeAlias

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.safe_text import file_name, printable
from monitor.types import AnyArray

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]


class VirtualFile:
    """A file that is opened and looked at as a `pathlib.Path` is, though no path leads to it."""

    __slots__ = ()
    name: str

    @property
    def suffix(self) -> str:
        """Suffix of its name."""
        return Path(self.name).suffix

    @property
    def span(self) -> tuple[float, float] | None:
        """Seconds of the recording that it is a part of; None if it is whole."""
        return None

    @property
    def seconds(self) -> float | None:
        """Seconds of audio, where that is known without reading it."""
        return None

    def content(self) -> bytes | memoryview:
        """Return its bytes; SourceError if they cannot be read."""
        raise NotImplementedError

    def open(self, mode: str = "rb") -> BufferedReader:
        """Open its bytes at the beginning, for reading alone and without a copy."""
        if mode != "rb":
            raise ValueError("a file in memory is only read, as bytes")
        return BufferedReader(_MemoryReader(memoryview(self.content())))

    def is_dir(self) -> bool:
        """Return False."""
        return False

    def files(self) -> tuple[Path, ...]:
        """Return the files on disk that it is taken from."""
        return ()

    def origin(self) -> Path | None:
        """Return the recording that it is a part of; None if it is whole."""
        return None

    def absolute(self) -> VirtualFile:
        """Return the same, found from any working folder."""
        return self


@dataclass(frozen=True, slots=True)
class MemoryFile(VirtualFile):
    """A whole file that is on no disk."""

    name: str
    data: bytes | memoryview = field(repr=False)

    def content(self) -> bytes | memoryview:
        """Return its bytes."""
        return self.data


class _MemoryReader(RawIOBase):
    """Reads memory; a `BytesIO` of what is not bytes, or that is asked for a buffer, copies it."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._data[self._at : self._at + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + (0, self._at, len(self._data))[whence])
        return self._at


Readable: TypeAlias = "Path | VirtualFile"


def readable(path: str | os.PathLike[str] | VirtualFile) -> Readable:
    """Return a path, or a virtual file as it is."""
    return path if isinstance(path, VirtualFile) else Path(path)


def make_absolute(path: Readable) -> Readable:
    """Return a file that means the same in another working folder; links stay as they are."""
    return path.absolute() if isinstance(path, VirtualFile) else Path(os.path.abspath(path))  # noqa: PTH100


def files_of(*paths: Readable) -> list[Path]:
    """Return the files on disk that are read for files."""
    return [
        file
        for path in paths
        for file in (path.files() if isinstance(path, VirtualFile) else (path,))
    ]


def spelled_path(path: Path) -> Path:
    """Return a path as the disk spells it: accents may be composed (NFC) in one and not the other.

    A path that leads nowhere in any spelling is returned as it is.
    """
    if os.fspath(path).isascii():
        return path
    with suppress(OSError, ValueError):
        if not path.exists() and path != path.parent:
            folder = spelled_path(path.parent)
            names = _names_in(folder, folder.stat().st_mtime_ns)
            return folder / names.get(_composed(path.name), path.name)
    return path


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


@lru_cache(maxsize=64)
def _names_in(folder: Path, _changed: int) -> Mapping[str, str]:
    """Return the names in a folder by their NFC; a change of the folder reads it again."""
    return {_composed(name): name for name in os.listdir(folder)}  # noqa: PTH208


# EBADF: of a folder over NFS, where a lock needs a file that is open for writing
_UNKNOWN = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


def lock(handle: int) -> bool:
    """Take the lock of an open file; closing the file, or the end of the process, gives it back.

    False if the system or the file system knows no locks; BlockingIOError if another process
    holds it.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _UNKNOWN:
            raise
        return False
    return True


def is_still_at(handle: int, path: str | os.PathLike[str]) -> bool:
    """Return whether an open file still has that name: it may have been removed or replaced."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))  # noqa: PTH116
    except FileNotFoundError:
        return False


# A file that grows (a run, a ledger, a journal) cannot be written under another name and renamed.
# If another user had created it first, its readers would see everything written to it.

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
PRIVATE = stat.S_IRUSR | stat.S_IWUSR
"""Mode 0600 of every file with data about people: its one place."""


def is_ours(status: os.stat_result) -> bool:
    """Return whether a file belongs to this process's user; True if files have no owner."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def open_private(path: Path, flags: int) -> int:
    """Open or create a plain file that is private to the user (mode 0600).

    Links are not followed. ``flags`` are those of `os.open`, including O_CREAT. Raises StoreError
    for another user's file, or one with a second hard link.
    """
    handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), PRIVATE)
    try:
        keep_private(handle, path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def keep_private(handle: int, name: str | os.PathLike[str]) -> None:
    """Make an open plain file ours alone (0600); StoreError for another's or a second name's."""
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        return
    _refuse(status, name)
    if status.st_mode & _OTHERS and hasattr(os, "fchmod"):
        with suppress(OSError):  # a file system without modes
            os.fchmod(handle, PRIVATE)


def check_private(path: Path) -> bool:
    """Make a file ours alone, as `keep_private` does, without opening it; False without one.

    SQLite's locks are POSIX's: to open and close its file anywhere in the process gives them back.
    """
    try:
        link, status = path.lstat(), path.stat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{printable(path)} is not a plain file: use another")
    _refuse(status, path)
    _close_to_others(path, link, status, PRIVATE)
    return True


def _close_to_others(
    path: Path, link: os.stat_result, status: os.stat_result, mode: int, *advice: str
) -> None:
    """Refuse another user's file or link to it; otherwise set its mode."""
    if not is_ours(status):
        raise _of_another(status, path, *advice)
    if stat.S_ISLNK(link.st_mode) and not (is_ours(link) or link.st_uid == 0):
        raise _of_another(link, path, *advice)
    if status.st_mode & _OTHERS:
        with suppress(OSError):  # a file system without modes
            path.chmod(mode)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, all 0700."""
    try:
        folder.mkdir(stat.S_IRWXU)
    except FileNotFoundError:
        make_folder(folder.parent)
        make_folder(folder)
    except OSError:
        if not folder.is_dir():
            raise


def check_private_folder(folder: Path) -> None:
    """Make a folder, if it is there, private (0700); StoreError for another user's."""
    try:
        link, status = folder.lstat(), folder.stat()
    except FileNotFoundError:
        if folder.is_symlink():
            raise StoreError(
                f"{printable(folder)} is a link to a folder that is not there: make that, or "
                "remove the link"
            ) from None
        return
    if not stat.S_ISDIR(status.st_mode):
        raise StoreError(f"{printable(folder)} is not a folder: use another")
    _close_to_others(folder, link, status, stat.S_IRWXU, "name")


def _refuse(status: os.stat_result, name: str | os.PathLike[str]) -> None:
    if not is_ours(status):
        raise _of_another(status, name)
    if status.st_nlink > 1:
        raise StoreError(
            f"{printable(os.fspath(name))} is a hard link, so the file would also change under its "
            "other name: copy it, or use another file"
        )


def _of_another(
    status: os.stat_result, name: str | os.PathLike[str], cure: str = "name another file, in"
) -> StoreError:
    return StoreError(
        f"{printable(os.fspath(name))} belongs to {_user(status.st_uid)} and not to you "
        f"({_user(os.geteuid())}), so that it would not be private: {cure} a folder of yours on "
        "this machine"
    )


def _user(number: int) -> str:
    """Format a user as name and number."""
    with suppress(ImportError, KeyError):
        import pwd

        return f"{printable(pwd.getpwuid(number).pw_name)}, {number}"
    return f"user {number}"


MOST_MEMBERS = 65_536
MOST_BYTES = 4 << 30
FREE_BYTES = 128 << 20  # however small a file is: a day of voice activity shrinks a thousand times
MOST_RATIO = 50  # beyond that, of its size: histograms of ten thousand speakers shrink 24 times
_PIECE = 1 << 20
_LOCAL_HEADER, _LOCAL_MAGIC = 30, b"PK\x03\x04"
MAPPED = "mapped/"
"""Prefix of the names of arrays that are mapped from the file."""


def read_arrays(
    file: BinaryIO,
    only: str | None = None,
    *,
    without: tuple[str, ...] = (),
    later: tuple[str, ...] = (),
) -> Arrays:
    """Read arrays of an npz by name.

    Args:
        file: an npz.
        only: the name of the one that is wanted.
        without: how the names begin of those that are not.
        later: how the names begin of those that stay compressed, if they are small, until they are
            used. Damage is noticed then, as a ValueError or zlib.error.
    """
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
                small = _Deflated.of(archive, member)
                if small is None:
                    arrays[name] = _array(archive, member)
                elif name.startswith(later):
                    arrays.put_off(name, small)
                else:
                    arrays[name] = small.array()
    return arrays


class Arrays(MutableMapping[str, AnyArray]):
    """Arrays by name; some are kept compressed, and decompressed each time they are asked for."""

    def __init__(self, arrays: Mapping[str, AnyArray] | None = None) -> None:
        self._arrays: dict[str, AnyArray | _Deflated] = dict(arrays or {})

    def below(self, start: str) -> Arrays:
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
    def of(cls, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Deflated | None:
        """Read a member of an open archive; None leaves it to zipfile."""
        file, small = archive.fp, max(member.file_size, member.compress_size) <= _PIECE
        plain = member.compress_type == zipfile.ZIP_DEFLATED and not member.flag_bits & 1
        if file is None or not (small and plain):
            return None
        file.seek(_begin(file, member))
        return cls(file.read(member.compress_size), member.file_size, member.CRC)

    def array(self) -> AnyArray:
        """Decompress; a ValueError or zlib.error where it is damaged."""
        plain = zlib.decompressobj(-zlib.MAX_WBITS).decompress(self.content, self.size + 1)
        if len(plain) != self.size or zlib.crc32(plain) != self.checksum:
            raise ValueError("an array is damaged")
        length = plain[8 : 10 if plain[6:7] == b"\x01" else 12]  # of two bytes, or of four
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
    """Read an array once its header is known to promise what is there."""
    with archive.open(member) as stream:
        array, content = _empty(*_header(stream, member.file_size))
        for first in range(0, len(content), _PIECE):
            piece = content[first : first + _PIECE]
            piece[:] = np.frombuffer(stream.read(len(piece)), np.uint8)  # ValueError: ends early
        stream.read(1)  # looks whether the checksum is right
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
    except Exception as error:  # numpy reads it with Python's tokenizer, which has its own
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
    """An array that is written block after block: its shape, its type, and the rows."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Iterable[AnyArray]


def write_arrays(
    file: IO[bytes], arrays: Mapping[str, AnyArray], mapped: Mapping[str, Rows]
) -> None:
    """Write an npz: compressed arrays, and those that `mapped_arrays` finds, as they are."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        for name, rows in mapped.items():
            info = zipfile.ZipInfo(f"{MAPPED}{name}.npy", (1980, 1, 1, 0, 0, 0))
            info.external_attr = PRIVATE << 16
            begins = file.tell() + _LOCAL_HEADER + len(info.filename.encode()) + _ZIP64_BYTES
            pad = -(begins + 4) % _ALIGNED  # numpy's own header takes whole lines of a cache
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


# Written data may be biometric. On Linux a file has no name until it is complete, so that a killed
# writer leaves nothing. Elsewhere, and on file systems without unnamed files, a killed writer
# leaves a partial file. A live writer holds a lock on it. The next user of the target, or of its
# folder an hour later, can therefore detect abandoned files.

_SUFFIX = ".unfinished"
PATIENCE_SECONDS = 60.0
OLD_SECONDS = 3600.0  # a writer of one file for longer than that is considered dead
_LOOK_SECONDS = 0.02
_PART = re.compile(rf"\..+\.[a-z0-9_]{{8}}{re.escape(_SUFFIX)}", re.DOTALL)
_WIPED_BYTES = 1 << 20


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Write a file, mode 0600, that takes the place of ``path`` when the block ends well."""
    if path.exists() and not path.is_file():  # a device is not replaced by a file
        raise OSError(errno.EINVAL, "it is not a plain file")
    _sweep_old(path.parent)
    handle, temporary = _part(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary = temporary or _named(handle, path)
            temporary.replace(path)
    except BaseException:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise


def not_written(path: Path, error: OSError) -> StoreError:
    """Describe a file that could not be written."""
    reason = error.strerror or error
    return StoreError(f"cannot write {file_name(path)} ({reason}): choose another place")


def unwritable(folder: Path) -> str:
    """Return why a folder, existing or not, cannot be written to; empty if it can."""
    existing = next(parent for parent in (folder, *folder.resolve().parents) if parent.exists())
    if not existing.is_dir():
        return f"{file_name(existing)} is not a folder"
    if os.access(existing, os.W_OK | os.X_OK):
        return ""
    fixed = hasattr(os, "statvfs") and os.statvfs(existing).f_flag & os.ST_RDONLY
    return os.strerror(errno.EROFS if fixed else errno.EACCES)


def held_by(folder: Path) -> list[str]:
    """List the visible files of a folder that is to be written; it need not exist.

    UsageError if it is a file, StoreError if nothing can be written there.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"-o {file_name(folder)} is a file; name a folder")
    if reason := unwritable(folder):
        raise StoreError(f"cannot write {file_name(folder)} ({reason}): choose another place")
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    return [name for name in names if not name.startswith(".")]


def write_text(text: str, path: Path) -> None:
    """Write a text to a file atomically (mode 0600), or raise StoreError.

    A half of a surrogate pair, which JSON can hold and UTF-8 cannot, becomes a question mark.
    """
    try:
        with atomic_write(path) as file:
            file.write(text.encode(errors="replace"))
    except OSError as error:
        raise not_written(path, error) from error


# A spreadsheet treats such a text as a formula, which can run programs and send data. A person
# named =HYPERLINK(...) is written '=HYPERLINK(...) (OWASP, CSV injection).
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|nan)")


def csv_cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula; numbers stay as they are.

    Example:
        >>> [csv_cell(cell) for cell in ("=1+1", "-1.5", -1.5, "'-x", None)]
        ["'=1+1", '-1.5', -1.5, "''-x", None]
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def plain_cell(cell: str) -> str:
    """Return the text of a cell that `csv_cell` made."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def write_csv_rows(file: TextIO, rows: Iterable[Iterable[object]]) -> None:
    """Write rows of a table as CSV; None is an empty cell."""
    # a cell with one of the characters that end lines is quoted: that takes both of them
    lines = SimpleNamespace(write=lambda line: file.write(f"{line[:-2]}\n"))
    csv.writer(lines, lineterminator="\r\n").writerows(map(csv_cell, row) for row in rows)


def csv_text(head: Sequence[object], rows: Iterable[Iterable[object]]) -> str:
    """Format a table as CSV."""
    text = StringIO(newline="")
    write_csv_rows(text, [head, *rows])
    return text.getvalue()


def csv_number(value: float | None) -> str:
    """Format a number with all its digits; empty for None."""
    return "" if value is None or math.isnan(value) else repr(float(value))


def finite(value: float | None) -> float | None:
    """Return a number for JSON, None if it is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def sweep(path: Path) -> None:
    """Remove remains of killed writers of this file, if they are plain, ours and unlocked."""
    _remove(path.parent.glob(f".{glob.escape(path.name)}.????????{_SUFFIX}"))


def sweep_folder(folder: Path, older: float = math.inf) -> None:
    """Sweep all files in a folder that were written before that time."""
    with suppress(OSError):  # the following write reports the reason
        parts = [Path(entry.path) for entry in os.scandir(folder) if _PART.fullmatch(entry.name)]
        _remove(parts, older)


@cache
def _sweep_old(folder: Path) -> None:
    """Sweep a folder, once in a process, of old parts: another machine's lock may be unknown."""
    sweep_folder(folder, time.time() - OLD_SECONDS)


def _remove(parts: Iterable[Path], older: float = math.inf) -> None:
    """Remove partial files that are certainly abandoned."""
    me = os.geteuid() if hasattr(os, "geteuid") else None
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    for temporary in parts:
        # a file that cannot be opened or locked is in use
        with suppress(OSError):
            handle = os.open(temporary, flags)
            try:
                status = os.fstat(handle)
                ours = stat.S_ISREG(status.st_mode) and status.st_uid == me and status.st_nlink == 1
                if (
                    ours
                    and status.st_mtime < older
                    and lock(handle)
                    and is_still_at(handle, temporary)
                ):
                    temporary.unlink()
            finally:
                os.close(handle)


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Lock out other processes between reading and writing a store.

    The lock is that of the folder: a store is replaced when it is written, and nothing is left
    behind. Yields False if the system or the file system knows no locks.
    """
    try:
        handle = os.open(path.parent, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        yield False
        return
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                locked = lock(handle)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise StoreError(
                        f"{path} was not changed, because another process is writing in its "
                        "folder: try again later"
                    ) from None
                time.sleep(_LOOK_SECONDS)
        yield locked
    finally:
        os.close(handle)


@contextmanager
def wiped(path: Path) -> Iterator[None]:
    """Overwrite a file's old bytes in place after the block has replaced it.

    This is limited. A file with another hard link is left unchanged, and older versions kept by the
    disk or file system are not reached.
    """
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    try:
        old = os.open(path, flags)
    except OSError:  # it is not there, or not ours to write: it is replaced all the same
        yield
        return
    try:
        yield
        with suppress(OSError):
            status = os.fstat(old)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                for start in range(0, status.st_size, _WIPED_BYTES):
                    os.pwrite(old, bytes(min(_WIPED_BYTES, status.st_size - start)), start)
                os.fsync(old)
    finally:
        os.close(old)


def _part(path: Path) -> tuple[int, Path | None]:
    """Make a new locked file in the folder of ``path``; its name, or None if it has none."""
    with suppress(AttributeError, OSError):  # otherwise use the other way, or report its error
        handle = os.open(path.parent, os.O_TMPFILE | os.O_RDWR, PRIVATE)
        if Path(f"/proc/self/fd/{handle}").exists():  # by which it is named
            lock(handle)
            return handle, None
        os.close(handle)
    import tempfile  # slow to import

    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_SUFFIX, dir=path.parent)
        # one that was swept away before it was locked is left to its fate
        with suppress(BlockingIOError):
            lock(handle)
            if is_still_at(handle, name):
                return handle, Path(name)
        os.close(handle)


def _named(handle: int, path: Path) -> Path:
    """Give an open file without a name one beside ``path``, never that of another file."""
    while True:
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}{_SUFFIX}")
        with suppress(FileExistsError):
            # src_dir_fd, which an absolute path does not need: else Python does not follow the link
            os.link(f"/proc/self/fd/{handle}", temporary, src_dir_fd=handle, follow_symlinks=True)
            return temporary
