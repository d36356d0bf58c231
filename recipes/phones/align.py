"""Forced alignment of the training utterances' phones by pocketsphinx.

    python -m recipes.phones.align CACHE --minutes 7

Utterances are aligned in a random order with a fixed seed, so that a part of them suffices. An
interrupted run resumes.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np
import pocketsphinx

from monitor.networks.phones import PHONES
from monitor.types import IntArray
from recipes.phones.prepare import ALIGNED, Spoken, Utterance
from recipes.stages import add_row, stage

_GROUP = 6  # phones per pseudo-word: the aligner accepts only words
_BEAMS = {"beam": 1e-80, "wbeam": 1e-60, "pbeam": 1e-80}
_FAST = {"ds": 2, "topn": 2}  # moves starts by 0 ms (median), nine of ten by at most 20 ms


def main() -> None:
    parser = stage("Align the training utterances.", "cache")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="stop after this time (default: never)"
    )
    given = parser.parse_args()
    align(Spoken(given.cache), given.minutes)


def align(spoken: Spoken, minutes: float = math.inf) -> None:
    """Align the training utterances, and append the times of their phones to the cache."""
    train = [i for i, each in enumerate(spoken.utterances) if spoken.piece(each).role == "train"]
    order = np.random.default_rng(0).permutation(train)
    known = spoken.aligned()
    began, processed, aligner = time.monotonic(), 0.0, _Aligner()
    path = spoken.cache.folder / ALIGNED.replace("*", "0")
    for index in (int(each) for each in order if int(each) not in known):
        if time.monotonic() - began > 60 * minutes:
            break
        utterance = spoken.utterances[index]
        times = aligner.align(spoken, utterance)
        processed += utterance.samples / 16_000 / 60
        if times is not None:
            add_row(path, {"utterance": index, "times": times.tolist()})
        print(f"\r{processed:.0f} min processed", end="", file=sys.stderr)
    print(file=sys.stderr)


class _Aligner:
    def __init__(self) -> None:
        self._decoder = pocketsphinx.Decoder(loglevel="FATAL", **_BEAMS, **_FAST)
        self._words: dict[tuple[int, ...], str] = {}

    def align(self, spoken: Spoken, utterance: Utterance) -> IntArray | None:
        """Return frames of 10 ms [begin, end), shape (phones, 2); None if alignment fails."""
        phones = utterance.phones
        groups = [tuple(phones[i : i + _GROUP]) for i in range(0, len(phones), _GROUP)]
        text = " ".join(map(self._word, groups))
        self._decoder.set_align_text(text)
        sound = (spoken.sound(utterance) * 32767).astype(np.int16).tobytes()
        try:
            for states in (False, True):
                if states:
                    self._decoder.set_alignment()
                self._decoder.start_utt()
                self._decoder.process_raw(sound, full_utt=True)
                self._decoder.end_utt()
        except RuntimeError:
            self._decoder = pocketsphinx.Decoder(loglevel="FATAL", **_BEAMS, **_FAST)
            self._words.clear()
            return None
        found = [
            (PHONES.index(each.name) + 1, each.start, each.start + each.duration)
            for each in self._decoder.get_alignment().phones()
            if each.name in PHONES
        ]
        if [phone for phone, _, _ in found] != phones:
            return None
        return np.array([times for _, *times in found])

    def _word(self, group: tuple[int, ...]) -> str:
        if group not in self._words:
            name = self._words[group] = f"group{len(self._words)}"
            self._decoder.add_word(name, " ".join(PHONES[phone - 1] for phone in group), False)
        return self._words[group]


if __name__ == "__main__":
    main()
