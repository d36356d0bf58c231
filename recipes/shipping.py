"""Common parts of the exports: a file of weights and its model card."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from monitor.errors import StoreError
from monitor.files import atomic_write
from monitor.networks.layers import RATE
from monitor.types import AnyArray
from recipes.voice.corpus import Piece

MOST_BYTES = 12 << 20

_LIBRISPEECH = "LibriSpeech: CC BY 4.0, V. Panayotov, G. Chen, D. Povey, S. Khudanpur, ICASSP 2015"
SOURCES = {
    "background": f"one utterance a reader of {_LIBRISPEECH}",
    "train-clean-5": _LIBRISPEECH,
    "train-clean-100": _LIBRISPEECH,
    "speechocean762": "speechocean762, Mandarin speakers reading English, half of them children: "
    "free for commercial and non-commercial use, J. Zhang et al., Interspeech 2021",
}
"""Source and licence of each corpus, for a model card."""
ROUNDED = "matrices int8 with a float16 scale a row, the rest float16; computed in float32"


def summarise_data(train: Iterable[tuple[Piece, float]]) -> list[dict[str, Any]]:
    """Summarise the training data by corpus, for a card, from pieces and the seconds of each."""
    seconds: Counter[str] = Counter()
    people: dict[str, dict[str, str]] = {}
    for piece, length in train:
        seconds[piece.corpus] += length  # type: ignore[assignment]
        people.setdefault(piece.corpus, {})[piece.voice] = piece.gender
    return [
        {
            "corpus": corpus,
            "source": SOURCES.get(corpus, corpus),
            "speakers": dict(sorted(Counter(people[corpus].values()).items())),
            "minutes": round(seconds[corpus] / 60, 1),
        }
        for corpus in sorted(people)
    ]


def describe_weights(content: bytes, weights: Mapping[str, AnyArray]) -> dict[str, Any]:
    """Return a card's entries about its file of weights."""
    aside = ("reach", ".scale", ".use")
    return {
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "parameters": sum(each.size for name, each in weights.items() if not name.endswith(aside)),
        "rate_hz": RATE,
    }


def quantise_matrices(weights: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Quantise matrices and kernels to int8, with a float16 scale for each output, the first axis.

    Example:
        >>> sorted(quantise_matrices({"up": np.eye(2), "up.bias": np.ones(2)}))
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


def round_to_float16(weights: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Round floating-point arrays to float16."""
    return {
        name: each.astype(np.float16) if each.dtype.kind == "f" else each
        for name, each in weights.items()
    }


def round_weights(weights: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Round weights as they ship: see `ROUNDED`."""
    return round_to_float16(quantise_matrices(weights))


def pack_weights(weights: Mapping[str, AnyArray]) -> bytes:
    """Return the bytes of a compressed .npz file of weights.

    Raises:
        StoreError: more than `MOST_BYTES`.
    """
    buffer = BytesIO()
    np.savez_compressed(buffer, **weights)  # type: ignore[arg-type]  # no array has a keyword's name
    content = buffer.getvalue()
    if len(content) > MOST_BYTES:
        raise StoreError(f"{len(content)} bytes of weights are too many to ship")
    return content


def ship(target: Path, content: bytes, card: Mapping[str, Any]) -> None:
    """Write a file of weights, and its card next to it as .json."""
    target.parent.mkdir(parents=True, exist_ok=True)
    card_path = target.with_suffix(".json")
    card_content = orjson.dumps(card, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    for path, data in ((target, content), (card_path, card_content)):
        with atomic_write(path) as file:
            file.write(data)
        path.chmod(0o644)  # published: no data on individuals
