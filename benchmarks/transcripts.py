"""How surely a transcript of another recording is told: real word times, own and of others.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.transcripts ../shared/speech/train-clean-5

Of each reader the first recording that has a transcript beside it (start, end and text of each
utterance, CHAPTER.tsv). Words get their times from pocketsphinx's forced alignment (extra `peers`);
captions are made of six of them each. Each recording is judged by
`monitor.transcripts.measure_coverage` with its own words, with those half a second late, and with
those of all other recordings: what is doubted of its own is a false alarm, what is not doubted of
others a miss. The settings of
`measure_coverage` were chosen on dev-clean.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pocketsphinx import Decoder, get_model_path

from monitor.features.extractor import Extractor
from monitor.sources import File
from monitor.transcripts import TimedWord, Transcript, measure_coverage
from monitor.transcripts.transcript import Cue, spread_words
from monitor.types import Block, BoolArray, FloatArray, IntArray

RATE, LENGTHS, CAPTION_WORDS = 16_000, (30, 60, 180, 300, 600), 6


@dataclass(frozen=True)
class Told:
    """A recording: what was said in it, with the times of words, and where there is speech."""

    said: tuple[TimedWord, ...]
    speech: BoolArray


def main() -> None:
    words = argparse.ArgumentParser(description="Whether a transcript is of the recording.")
    words.add_argument("speech", type=Path)
    asked = words.parse_args()
    readers = sorted(each for each in asked.speech.iterdir() if each.is_dir())
    tables = [next(iter(sorted(reader.glob("*.tsv"))), None) for reader in readers]
    aligner, told = _Aligner(), list[Told]()
    for table in tables:
        if table is not None:
            told.append(aligner.told(table))
            print(f"\r{len(told)} recordings", end="", file=sys.stderr)
    print(f"\n{len(told)} recordings; not doubted: misses; of its own doubted: false alarms")
    print(
        "| times | length | N | own doubted | 0.5 s late | others not doubted | nobody can tell |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, captions in (("of words", False), ("of captions", True)):
        for seconds in LENGTHS:
            print(f"| {name} | {seconds} s | {row(told, seconds, captions)} |")


def row(told: Sequence[Told], seconds: int, captions: bool) -> str:
    """One line: recordings of that length, and what is said of them."""
    ticks = seconds * 100
    some = [each for each in told if each.speech.size >= ticks and each.said[-1].end > seconds - 30]

    def judged(words: Told, speech: Told, late: float = 0.0) -> bool | None:
        said = [word for word in words.said if word.end + late <= seconds]
        made = Transcript("", tuple(_captions(said, late) if captions else _moved(said, late)))
        found = measure_coverage(made.words(), speech.speech[:ticks])
        return None if found.as_well is None else found.doubtful

    own = [judged(each, each) for each in some]
    late = [judged(each, each, 0.5) for each in some]
    others = [judged(a, b) for a in some for b in some if a is not b]
    unknown = sum(each is None for each in (*own, *others)) / max(len(own) + len(others), 1)
    return (
        f"{len(some)} | {_share(own)} | {_share(late)} | {_share(others, of=False)} | {unknown:.0%}"
    )


def _share(found: Iterable[bool | None], of: bool = True) -> str:
    known = [each for each in found if each is not None]
    return f"{np.mean([each is of for each in known]):.1%}" if known else "-"


def _moved(said: Iterable[TimedWord], late: float) -> list[TimedWord]:
    return [TimedWord(w.text, w.begin + late, w.end + late, w.end + late) for w in said]


def _captions(said: Sequence[TimedWord], late: float) -> list[TimedWord]:
    parts = [said[i : i + CAPTION_WORDS] for i in range(0, len(said), CAPTION_WORDS)]
    return [
        word
        for part in parts
        for word in spread_words(
            Cue(" ".join(w.text for w in part), part[0].begin + late, part[-1].end + late)
        )
    ]


class _Aligner:
    """Forced alignment of the words of utterances; what no dictionary has is left out."""

    def __init__(self) -> None:
        model = get_model_path("en-us/en-us")
        words = get_model_path("en-us/cmudict-en-us.dict")
        self._decoder = Decoder(hmm=model, dict=words, lm=None, loglevel="FATAL")

    def told(self, table: Path) -> Told:
        audio, extractor, speech = list[FloatArray](), Extractor([]), list[BoolArray]()
        with File(table.with_suffix(".opus")) as source:
            for block in source:
                if isinstance(block, Block):
                    audio.append(block.samples)
                    speech.append(extractor.process(block).speech)
        speech.append(extractor.flush().speech)
        samples = (np.concatenate(audio) * 32767).astype(np.int16)
        said: list[TimedWord] = []
        for line in table.read_text(encoding="utf-8").splitlines()[1:]:
            begin, end, text = line.split("\t")
            if float(end) <= LENGTHS[-1]:
                said += self._said(samples, float(begin), float(end), text.lower())
        return Told(tuple(said), np.concatenate(speech))

    def _said(self, samples: IntArray, begin: float, end: float, text: str) -> list[TimedWord]:
        decoder = self._decoder
        decoder.set_align_text(" ".join(w for w in text.split() if decoder.lookup_word(w)))
        decoder.start_utt()
        piece = samples[round(begin * RATE) : round(end * RATE)]
        decoder.process_raw(piece.tobytes(), full_utt=True)
        decoder.end_utt()
        found = [each for each in decoder.seg() or () if each.word[0] not in "<["]
        times = [(begin + e.start_frame / 100, begin + (e.end_frame + 1) / 100) for e in found]
        return [TimedWord(e.word, *t, t[1]) for e, t in zip(found, times, strict=True)]


if __name__ == "__main__":
    main()
