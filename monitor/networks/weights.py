"""Files of weights: arrays by name, and the digest that marks what they make."""

from __future__ import annotations

import hashlib
from io import BytesIO
from pathlib import Path

from monitor.archives import read_arrays
from monitor.errors import StoreError
from monitor.types import AnyArray

__all__ = ["read_weights"]

_MOST_BYTES = 16 << 20


def read_weights(path: Path) -> tuple[dict[str, AnyArray], str]:
    """The arrays of a file, and its sha256.

    Raises:
        StoreError: it cannot be read, or is no such file.
    """
    try:
        with path.open("rb") as file:
            held = file.read(_MOST_BYTES + 1)
        if len(held) > _MOST_BYTES:
            raise ValueError("far too large for it")
        return read_arrays(BytesIO(held)), hashlib.sha256(held).hexdigest()
    except Exception as error:  # zipfile and numpy raise what they like on a broken file
        raise StoreError(f"{path.name}: no weights ({type(error).__name__}: {error})") from None
