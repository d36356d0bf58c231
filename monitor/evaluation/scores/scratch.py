"""Arrays that may be too large for memory: in memory where small, else in a temporary file."""

from __future__ import annotations

import os
import tempfile

import numpy as np
from numpy.typing import DTypeLike

from monitor.errors import StoreError
from monitor.types import AnyArray

__all__ = ["scratch"]

_MOST = 1 << 28
"""Bytes that are simply held in memory."""


def scratch(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> AnyArray:
    """An array of zeros to fill: in memory where small, else a map of a temporary file.

    The file is private (0600) and has no name (POSIX) or goes when the program ends: nothing is
    left behind, whatever happens.

    Raises:
        StoreError: there is no room for it.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size <= _MOST:
        return np.zeros(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:
            if hasattr(os, "posix_fallocate"):  # else a full disk kills the program at some write
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype, "w+", shape=shape)  # keeps the file open
    except OSError as error:
        raise StoreError(
            f"no room for {size / 1e9:.1f} GB of scores: {error.strerror}; "
            "free some, or point TMPDIR elsewhere"
        ) from None
