"""Reads ``.npz`` files that anybody may have made: checked before anything is inflated."""

from __future__ import annotations

import math
import os
import zipfile
from typing import BinaryIO

import numpy as np

from monitor.types import AnyArray

__all__ = ["read_arrays"]

MOST_MEMBERS = 65_536
MOST_BYTES = 4 << 30
FREE_BYTES = 128 << 20
"""So much a file may hold however small it is: a day of voice activity shrinks a thousand times."""
MOST_RATIO = 50
"""Beyond that, times the size of the file: histograms of ten thousand speakers shrink 24 times."""


def read_arrays(
    file: BinaryIO, only: str | None = None, *, without: tuple[str, ...] = ()
) -> dict[str, AnyArray]:
    """The arrays by name.

    Args:
        file: open for reading, at its beginning.
        only: the one array that is wanted, where there is just one.
        without: what the names of arrays begin with that are not wanted.

    Raises:
        ValueError: the archive promises more than its size makes believable, a member is no plain
            array, or of another length than it says; and whatever numpy and zipfile raise on a
            file that is not theirs.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> np.savez(file, a=np.arange(3))
        >>> _ = file.seek(0)
        >>> read_arrays(file)["a"].tolist()
        [0, 1, 2]
    """
    most = min(MOST_BYTES, FREE_BYTES + MOST_RATIO * file.seek(0, os.SEEK_END))
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = {member.filename for member in members}
        if len(members) > MOST_MEMBERS or len(names) < len(members):
            raise ValueError("too many members")
        if sum(member.file_size for member in members) > most:
            raise ValueError("it would take far more memory than its size makes believable")
        found = {}
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                raise ValueError("a member is no array")
            if only in (None, name) and not name.startswith(without):
                found[name] = _array(archive, member)
    return found


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> AnyArray:
    """One array, once its header is known to promise what is there."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        first = version == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        try:
            shape, _, kind = read(stream)
        except Exception as error:  # numpy reads it with Python's tokenizer, which has its own
            raise ValueError("the header of an array makes no sense") from error
        left = member.file_size - stream.tell()
    if kind.hasobject:
        raise ValueError("Object arrays cannot be loaded")
    if math.prod(shape) * kind.itemsize != left:
        raise ValueError("an array is of another length than it says")
    with archive.open(member) as stream:
        array: AnyArray = np.lib.format.read_array(stream, allow_pickle=False)
    return array
