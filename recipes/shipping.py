"""What the exports have in common: the file of weights, and the card beside it."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from monitor.errors import StoreError
from monitor.files import atomic_write
from monitor.types import AnyArray

__all__ = ["NON_NATIVE", "int8", "packed", "ship"]

MOST_BYTES = 12 << 20

NON_NATIVE = {
    "speechocean762": "speechocean762, Mandarin speakers reading English, half of them children: "
    "free for commercial and non-commercial use, J. Zhang et al., Interspeech 2021",
}
"""Whose speech it is, for a card."""


def int8(weights: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Quantise matrices and kernels to int8, with a float16 scale for each output, the first axis.

    Example:
        >>> sorted(int8({"up": np.eye(2), "up.bias": np.ones(2)}))
        ['up', 'up.bias', 'up.scale']
    """
    quantised: dict[str, AnyArray] = {}
    for name, array in weights.items():
        quantised[name] = array
        if array.ndim > 1 and array.dtype.kind == "f":
            rows = array.reshape(len(array), -1).astype(np.float32)
            scale = (np.abs(rows).max(axis=1) / 127).astype(np.float16)
            steps = rows / np.where(scale > 0, scale, 1).astype(np.float32)[:, None]
            quantised[name] = (
                np.clip(np.rint(steps), -127, 127).astype(np.int8).reshape(array.shape)
            )
            quantised[name + ".scale"] = scale
    return quantised


def packed(weights: Mapping[str, AnyArray]) -> bytes:
    """The file of weights.

    Raises:
        StoreError: it is too large to ship.
    """
    made = BytesIO()
    np.savez_compressed(made, **weights)  # type: ignore[arg-type]  # its own keywords are others
    held = made.getvalue()
    if len(held) > MOST_BYTES:
        raise StoreError(f"{len(held)} bytes of weights are too many to ship")
    return held


def ship(target: Path, held: bytes, card: Mapping[str, Any]) -> None:
    """Write weights, and their card beside them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_suffix(".json")
    described = orjson.dumps(card, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    for path, content in ((target, held), (beside, described)):
        with atomic_write(path) as file:
            file.write(content)
        path.chmod(0o644)  # to be published: nothing in it is of one person
