"""Phones: which sounds of the language a voice was heard to make, one token after the other."""

from __future__ import annotations

import atexit
import signal
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context

import numpy as np

from monitor.errors import UsageError
from monitor.features.decoding import PHONES, Token, phone_tokens
from monitor.features.pauses import RATE, Pauses, Utterance
from monitor.types import FloatArray, IntArray, Track

__all__ = ["Phones"]


class Phones:
    """Histogram feature: phone tokens of pocketsphinx's all-phone decoding.

    A token counts once, however long it lasts: its span says which audio it was. Audio is decoded
    an utterance at a time, so that a token comes out when its utterance is over: 0.2 s after the
    voice falls silent, and at most 8 s after the utterance began (see `Pauses`).

    Other units (another recogniser's, a codec's) are counted as ready-made frames of this name,
    with their own size: see `monitor.sources.FramesFile`.

    Args:
        workers: processes that decode the utterances of one block side by side. It pays where
            blocks are long (a minute), not live. Python starts them afresh: a script must then
            begin its work under ``if __name__ == "__main__":``.
        apart: decode in another process even one utterance at a time. For live use: pocketsphinx
            keeps Python's lock while it decodes, some 0.3 s for an utterance of 8 s, and nothing
            else in this process could take in sound meanwhile. The process is started now.

    Raises:
        UsageError: if ``workers`` is less than 1.

    Example:
        >>> import numpy as np
        >>> phones = Phones()
        >>> phones.process(np.zeros(32000)).values
        array([], dtype=int64)
    """

    name = "phones"
    rate = RATE
    size = len(PHONES)
    kind = "histogram"
    frame_seconds = 0.1
    """About the mean length of a token: 0.094 s over 81 chapters of 50 readers."""

    def __init__(self, workers: int = 1, *, apart: bool = False) -> None:
        if workers < 1:
            raise UsageError(f"workers={workers} must be 1 or more")
        self._workers = workers
        self._fewest = 1 if apart else 2
        if apart:  # its model takes a moment to load
            _pool(workers).submit(phone_tokens, np.zeros(RATE // 5, np.int16))
        self._pauses = Pauses()
        self.reset()

    def process(self, samples: FloatArray) -> Track:
        """The tokens of the utterances that these further samples, shape (n,), complete."""
        return self._track(self._pauses.push(samples))

    def flush(self) -> Track:
        """The tokens of the utterance that the end of the recording cuts."""
        return self._track(self._pauses.flush())

    def skip_to(self, tick: int) -> None:
        """Utterances complete by ``tick`` (counted from the last reset) are not decoded."""
        self._skip = tick

    def reset(self) -> None:
        """Forget everything heard: the next sample is the first of a recording."""
        self._pauses.reset()
        self._skip = 0

    def _track(self, utterances: list[Utterance]) -> Track:
        due = [utterance for utterance in utterances if utterance.complete > self._skip]
        ticks: list[int] = []
        values: list[int] = []
        spans: list[tuple[int, int]] = []
        for utterance, tokens in zip(due, self._decoded(due), strict=True):
            for unit, begin, end in tokens:
                ticks.append(utterance.complete)
                values.append(unit)
                spans.append((utterance.begin + begin, utterance.begin + end))
        return Track(_integers(ticks), _integers(values), _integers(spans).reshape(-1, 2))

    def _decoded(self, utterances: list[Utterance]) -> Iterable[list[Token]]:
        """The tokens of each utterance, in order."""
        sounds = [utterance.samples for utterance in utterances]
        if len(sounds) < self._fewest or self._fewest > self._workers:
            return map(phone_tokens, sounds)
        try:
            return list(_pool(self._workers).map(phone_tokens, sounds))
        except BrokenProcessPool:
            _pool.cache_clear()
            raise UsageError(
                "the processes that decode phones have ended: begin the script's work under "
                'if __name__ == "__main__", or use workers=1'
            ) from None


def _integers(values: list[int] | list[tuple[int, int]]) -> IntArray:
    return np.array(values, dtype=np.int64)


@cache
def _pool(workers: int) -> ProcessPoolExecutor:
    """Fresh processes: a fork could inherit a lock that nobody will release."""
    pool = ProcessPoolExecutor(
        workers,
        mp_context=get_context("spawn"),
        initializer=signal.signal,  # Ctrl-C is for the process that asked
        initargs=(signal.SIGINT, signal.SIG_IGN),
    )
    atexit.register(pool.shutdown)
    return pool
