"""Files of weights: arrays by name, and the digest that marks what they make.

Arrays are float16, or int8 with a float16 scale a row (``NAME.scale``): half the bytes, about the
same sums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np

from monitor.archives import read_arrays
from monitor.errors import StoreError
from monitor.types import AnyArray

__all__ = ["int8", "read_weights", "restored", "shipped_weights", "weights_of"]

_MOST_BYTES = 16 << 20
_SCALE = ".scale"


def int8(weights: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Every matrix and kernel in int8, with a scale for each output, its first axis.

    Args:
        weights: by name; what has one axis, or holds no floats, stays as it is.

    Example:
        >>> sorted(int8({"up": np.eye(2), "up.bias": np.ones(2)}))
        ['up', 'up.bias', 'up.scale']
    """
    made: dict[str, AnyArray] = {}
    for name, each in weights.items():
        made[name] = each
        if each.ndim > 1 and each.dtype.kind == "f":
            rows = each.reshape(len(each), -1).astype(np.float32)
            scale = (np.abs(rows).max(axis=1) / 127).astype(np.float16)
            steps = rows / np.where(scale > 0, scale, 1).astype(np.float32)[:, None]
            made[name] = np.clip(np.rint(steps), -127, 127).astype(np.int8).reshape(each.shape)
            made[name + _SCALE] = scale
    return made


def shipped_weights(path: Path, sha256: str) -> tuple[dict[str, AnyArray], str]:
    """As ``read_weights``, of a file of the package that must have this sha256.

    Raises:
        StoreError: it is missing, damaged or another one.
    """
    weights, found = read_weights(path)
    if found != sha256:
        raise StoreError(
            f"{path.name} in the package is not the one that belongs to it: install again"
        )
    return weights, found


def read_weights(path: Path) -> tuple[dict[str, AnyArray], str]:
    """The arrays of a file, int8 brought back to float32, and its sha256.

    Raises:
        StoreError: it cannot be read, or is no such file.
    """
    try:
        with path.open("rb") as file:
            held = file.read(_MOST_BYTES + 1)
        if len(held) > _MOST_BYTES:
            raise ValueError("far too large for it")
        return weights_of(held)
    except Exception as error:  # zipfile and numpy raise what they like on a broken file
        raise StoreError(f"{path.name}: no weights ({type(error).__name__}: {error})") from None


def weights_of(held: bytes) -> tuple[dict[str, AnyArray], str]:
    """As ``read_weights``, of what a file holds; what is wrong with it is raised as it comes."""
    return restored(read_arrays(BytesIO(held))), hashlib.sha256(held).hexdigest()


def restored(weights: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """What `int8` made, brought back to float32; the rest as it is."""
    made = {name: each for name, each in weights.items() if not name.endswith(_SCALE)}
    for name, scale in weights.items():
        if name.endswith(_SCALE):
            steps = made[name.removesuffix(_SCALE)].astype(np.float32)
            rows = steps.reshape(len(scale), -1) * scale.astype(np.float32)[:, None]
            made[name.removesuffix(_SCALE)] = rows.reshape(steps.shape)
    return made
