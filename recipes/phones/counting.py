"""What may be counted of a sound: units of a layer, phones, and what pocketsphinx hears."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.training.voices import UNITS_PER_SECOND, SessionFrames
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray
from recipes.phones.codebook import coded, hidden
from recipes.phones.network import Recogniser

__all__ = ["Books", "counted"]

TOKENS, POSTERIORS, PEER = "tokens", "posteriors summed", "pocketsphinx tokens"
_TICKS = 100 // UNITS_PER_SECOND

Books = Mapping[str, FloatArray]
"""Codebooks by name: the layer, a space, and the number of codes."""


def counted(
    network: Recogniser,
    sound: FloatArray,
    speech: BoolArray,
    books: Books,
    peer: IntArray | None = None,
) -> dict[str, SessionFrames]:
    """What is counted of a sound, on its clock of speech.

    Args:
        network: that hears.
        sound: shape (n,) at 16 kHz.
        speech: shape (ticks,), voice activity.
        books: codebooks.
        peer: tokens of pocketsphinx, shape (k, 3): class from 1, begin and end in ticks.
    """
    layers = hidden(network, sound)
    logits = torch.log_softmax(torch.from_numpy(layers["logits"]), dim=1).numpy()
    speech = speech[: 2 * len(logits)]
    clock: IntArray = np.cumsum(speech)
    made: dict[str, SessionFrames] = {}
    for name, codes in books.items():
        values = coded(layers[name.split()[0]], codes)
        made[f"units, {name}"] = _placed(values, 2, speech, clock, len(codes))
        if len(codes) == 256:
            made[f"units, {name}, every second"] = _placed(
                values[::2], 4, speech, clock, len(codes)
            )
            made[f"units, {name}, in pauses alone"] = _placed(values, 2, ~speech, clock, len(codes))
    made[POSTERIORS] = _placed(np.exp(logits[:, 1:]), 2, speech, clock, 39)
    best = logits.argmax(axis=1)
    best[1:][best[1:] == best[:-1]] = 0
    at = np.flatnonzero(best)
    at = at[2 * at + 1 < len(speech)]
    made[TOKENS] = _located(best[at] - 1, 2 * at + 1, speech, clock, 39)
    if peer is not None:
        peer = peer[peer[:, 2] <= len(speech)]
        made[PEER] = _located(peer[:, 0] - 1, peer[:, 2] - 1, speech, clock, 39)
    return made


def _placed(
    values: AnyArray, ticks: int, speech: BoolArray, clock: IntArray, size: int
) -> SessionFrames:
    """Frames that follow each other, so many ticks each."""
    ends = np.arange(1, len(values) + 1) * ticks - 1
    inside = ends < len(speech)
    return _located(values[inside], ends[inside], speech, clock, size)


def _located(
    values: AnyArray, ends: IntArray, speech: BoolArray, clock: IntArray, size: int
) -> SessionFrames:
    """Those that end in speech, by the speech until then."""
    inside = speech[ends]
    units = np.maximum(clock[ends[inside]] - 1, 0) // _TICKS
    length = int(clock[-1]) // _TICKS
    held = units < length
    spec = FeatureSpec("units", HISTOGRAM, size, 0.02)
    return SessionFrames(values[inside][held], units[held], length, spec)
