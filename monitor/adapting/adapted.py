"""A network adapted to a protector, made once: kept by a hash of everything that it depends on.

It is no template, but has learnt from people's voices: what is kept is private (mode 0600).
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

import numpy as np

from monitor.adapting.protected_speech import Protect, SpeechDraws, draw_speech
from monitor.adapting.schedule import KeptTraining, Length
from monitor.corpus.recordings import Recording
from monitor.errors import CorpusError, UsageError
from monitor.networks.voice import VoiceNetwork, shipped
from monitor.networks.weights import weights_of
from monitor.result_cache import ResultCache, code_mark, result_key
from monitor.sources.fingerprints import file_hash
from monitor.workers import Jobs

__all__ = ["Progress", "adapted", "check_torch"]

_CODE = ("monitor.adapting", "monitor.features", "monitor.networks", "monitor.protectors")
_FEWEST_VOICES = 2
_PROBLEMS = "problems"
_INSTALL = "pip install 'speaker-disclosure-monitor[identity]'"

Progress = Callable[[str, float], None]
"""Called with what is being done and which share of it is, 0 to 1."""


def check_torch() -> None:
    """See to it that a network can be trained here.

    Raises:
        UsageError: torch is not installed.
    """
    if find_spec("torch") is None:
        raise UsageError(f"the semi-informed attacker trains a network with torch: {_INSTALL}")


def adapted(
    corpora: Sequence[Sequence[Recording]],
    protect: Protect,
    method: Any,
    cache: ResultCache,
    length: Length,
    *,
    draws: SpeechDraws | None = None,
    seed: int = 1,
    progress: Progress = lambda _what, _done: None,
    jobs: Jobs = 1,
) -> tuple[VoiceNetwork, tuple[str, ...]]:
    """The shipped voice network, fine-tuned on protected speech of some speakers.

    Interrupted, it goes on from its last state; asked for again it is read.

    Args:
        corpora: recordings of the speakers.
        protect: the protector; one that can be pickled.
        method: what the protector is, and with which draws, as JSON.
        cache: where it is kept.
        length: of the training.
        draws: how much speech; None as much as `SpeechDraws` says.
        seed: of the training.
        progress: how far it is.
        jobs: processes that protect, or workers elsewhere.

    Returns:
        the network, marked by its own sha256, and one line for each file that could not be used.

    Raises:
        UsageError: torch is not installed.
        CorpusError: fewer than two speakers can be used.
        SourceError: a recording cannot be read.
        StoreError: what is kept cannot be written.
    """
    draws = SpeechDraws() if draws is None else draws
    what = {
        "files": [[[each.speaker, file_hash(each.path)] for each in corpus] for corpus in corpora],
        "method": method,
        "draws": asdict(draws),
        "length": asdict(length),
        "seed": seed,
        "begins": shipped().sha256,
        "code": code_mark(*_CODE),
    }
    key = result_key(what)
    kept = cache.read(key)
    if kept is None:
        check_torch()
        kept = _made(corpora, protect, length, draws, seed, progress, jobs, _Unfinished(cache, key))
        cache.write(key, kept)
        _Unfinished(cache, key).forget()
    weights, mark = weights_of(kept)
    problems = json.loads(weights.pop(_PROBLEMS).item())
    return VoiceNetwork(weights, mark), tuple(problems)


def _made(
    corpora: Sequence[Sequence[Recording]],
    protect: Protect,
    length: Length,
    draws: SpeechDraws,
    seed: int,
    progress: Progress,
    jobs: Jobs,
    unfinished: _Unfinished,
) -> bytes:
    """A file of weights, with what could not be used."""
    from monitor.adapting.fine_tuning import FineTuning, fine_tune

    speakers = sum(len({each.speaker for each in corpus}) for corpus in corpora)
    heard = 0

    def step(_: str) -> None:
        nonlocal heard
        heard += 1
        progress("protecting", heard / speakers)

    speech = draw_speech(corpora, protect, draws, progress=step, jobs=jobs)
    if len(speech.names) < _FEWEST_VOICES:
        raise CorpusError("fewer than two readers apart say enough to train a network on")
    weights = fine_tune(
        speech,
        shipped().weights,
        length,
        FineTuning(seed=seed),
        checkpoint=unfinished,
        progress=lambda done, _: progress("training", done),
    )
    made = io.BytesIO()
    problems = np.array(json.dumps(speech.problems))
    np.savez(made, **weights, **{_PROBLEMS: problems})  # type: ignore[arg-type]
    return made.getvalue()


class _Unfinished(KeptTraining):
    """The state of a training, beside what it will make."""

    def __init__(self, cache: ResultCache, key: str) -> None:
        self._cache, self._key = cache, result_key({"unfinished": key})

    def read(self) -> bytes | None:
        return self._cache.read(self._key)

    def write(self, state: bytes) -> None:
        self._cache.write(self._key, state)

    def forget(self) -> None:
        self._cache.forget(self._key)
