"""What listeners get out of an excerpt: who ECAPA-TDNN, what phones pocketsphinx, what pitch YIN.

Neither listener had a hand in the codec, which our own recogniser taught.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.anonymity.excerpts import QUERY, Excerpt
from benchmarks.anonymity.systems import change, mark_of
from monitor.files import read_arrays
from monitor.jobs import each_in_order, one_thread
from monitor.lab.result_cache import ResultCache, result_key
from monitor.lab.utility import extract_pitch
from monitor.networks.layers import RATE
from monitor.networks.phones import PHONES
from monitor.networks.voice import VoiceNetwork
from monitor.sources.base import file_hash
from monitor.types import AnyArray, FloatArray, IntArray
from recipes.phones.words import Words

if TYPE_CHECKING:
    from recipes.phones.sphinx import Search

__all__ = ["Heard", "hear", "said"]

TEACHER = "MONITOR_ECAPA"
"""The environment's variable for the folder with ECAPA-TDNN's weights."""
_VERSION = 2
_LEAST_SAMPLES = RATE


@dataclass(frozen=True, slots=True)
class Heard:
    """One excerpt under one system.

    Attributes:
        embedding: of the whole of it, shape (192,), of length 1.
        phones: what pocketsphinx heard, classes from 1; of queries alone, since it takes its time.
        pitch: shape (ticks,), hertz, 0 where it is not voiced.
        bits: that were sent, where it was coded, else NaN.
    """

    embedding: FloatArray
    phones: IntArray
    pitch: FloatArray
    bits: float


def hear(
    system: str,
    chosen: Sequence[Excerpt],
    cache: ResultCache,
    jobs: int,
    progress: Callable[[str, float], object] = lambda *_: None,
) -> dict[Excerpt, Heard]:
    """Every excerpt through a system and to the listeners; what was heard before is kept.

    Args:
        system: see `benchmarks.anonymity.systems`.
        chosen: what is heard.
        cache: of embeddings, which are biometric: private.
        jobs: processes.
        progress: called with a name and seconds of audio.
    """
    found: dict[Excerpt, Heard] = {}
    todo = []
    for each in chosen:
        kept = cache.read(_key(system, each))
        if kept is None:
            todo.append(each)
        else:
            found[each] = _unpacked(kept)
            progress(each.name, each.seconds)
    with closing(each_in_order(partial(_hear, system), todo, jobs)) as results:
        for each, made in zip(todo, results, strict=True):
            cache.write(_key(system, each), made)
            found[each] = _unpacked(made)
            progress(each.name, each.seconds)
    return {each: found[each] for each in chosen}


def said(text: str) -> tuple[str, ...] | None:
    """The phones of a transcript; None where the CMU dictionary lacks a word."""
    words = _words()
    return words.phones(text) if words.known(text) else None


def _hear(system: str, each: Excerpt) -> bytes:
    changed = change(system, each.sound(), each.name, each.speaker)
    sound = np.pad(changed.sound, (0, max(0, _LEAST_SAMPLES - changed.sound.size)))
    with one_thread():
        embedding = _teacher().embed(sound[None])[0]
        arrays: dict[str, AnyArray] = {
            "embedding": embedding / np.linalg.norm(embedding),
            "phones": _phones(sound) if each.role == QUERY else np.empty(0, np.int64),
            "pitch": extract_pitch(sound, RATE).astype(np.float32),
            "bits": np.array(np.nan if changed.bits is None else changed.bits),
        }
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _unpacked(data: bytes) -> Heard:
    arrays = read_arrays(io.BytesIO(data))
    return Heard(
        arrays["embedding"], arrays["phones"], arrays["pitch"].astype(float), float(arrays["bits"])
    )


def _phones(sound: FloatArray) -> IntArray:
    return np.array([phone for phone, _, _ in _search().tokens(sound)], np.int64)


def _key(system: str, each: Excerpt) -> str:
    return result_key(
        {
            "version": _VERSION,
            "system": [system, *mark_of(system)],
            "recording": file_hash(each.path),
            "excerpt": [each.name, each.start, each.seconds, each.role],
        }
    )


@cache
def _teacher() -> VoiceNetwork:
    from recipes.voice.teacher import read_teacher  # torch: all else here does without it

    return VoiceNetwork(read_teacher(Path(os.environ[TEACHER])))


@cache
def _search() -> Search:
    from recipes.phones.sphinx import Search  # of the extra peers: all else here does without it

    return Search()


@cache
def _words() -> Words:
    return Words.cmu()


def names_of(phones: IntArray) -> list[str]:
    """ARPAbet of classes from 1."""
    return [PHONES[each - 1] for each in phones.tolist()]
