"""Detection of transcripts of another recording, with real word times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import read
from monitor.features.extractor import Extractor
from monitor.networks.layers import RATE
from monitor.transcripts import TimedWord, Transcript, measure_coverage
from monitor.types import Block, BoolArray, IntArray

LENGTHS = (30, 60, 180, 300, 600)


@dataclass(frozen=True)
class Told:
    """Timed words of a recording, and its speech: one value per tick."""

    said: tuple[TimedWord, ...]
    speech: BoolArray


@benchmark()
def transcripts(page: Page, speech: Path) -> None:
    """How reliably is a transcript of another recording detected?

    Each reader's first recording with a transcript beside it is tested. Word times are from
    pocketsphinx's forced alignment (extra `peers`).
    """
    readers = sorted(each for each in speech.iterdir() if each.is_dir())
    tables = [next(iter(sorted(reader.glob("*.tsv"))), None) for reader in readers]
    aligner = Aligner()
    told = [aligner.told(table) for table in tables if table is not None]
    page.table(
        "length, times of words | recordings | own words flagged | half a second late "
        "| another's words not flagged | too few pauses to tell",
        ([f"{seconds} s", *row(told, seconds)] for seconds in LENGTHS),
    )


def row(told: Sequence[Told], seconds: int) -> Iterator[str]:
    """Yield the number of recordings of this length, and fractions of verdicts on transcripts."""
    ticks = seconds * 100
    some = [each for each in told if each.speech.size >= ticks and each.said[-1].end > seconds - 30]

    def judged(words: Told, speech: Told, late: float = 0.0) -> bool | None:
        said = [word for word in words.said if word.end + late <= seconds]
        moved = [TimedWord(w.text, w.begin + late, w.end + late, w.end + late) for w in said]
        found = measure_coverage(Transcript("", tuple(moved)).words(), speech.speech[:ticks])
        return None if found.as_well is None else found.doubtful

    own = [judged(each, each) for each in some]
    late = [judged(each, each, 0.5) for each in some]
    others = [judged(a, b) for a in some for b in some if a is not b]
    unknown = sum(each is None for each in (*own, *others)) / max(len(own) + len(others), 1)
    yield str(len(some))
    for found, of in ((own, True), (late, True), (others, False)):
        known = [each is of for each in found if each is not None]
        yield "-" if not known else f"{100 * np.mean(known):.1f} %" if any(known) else "none"
    yield f"{100 * unknown:.0f} %"


class Aligner:
    """Forced aligner of the words of utterances; omits words that are not in the dictionary."""

    def __init__(self) -> None:
        from pocketsphinx import Decoder, get_model_path

        model, words = (get_model_path(f"en-us/{n}") for n in ("en-us", "cmudict-en-us.dict"))
        self._decoder = Decoder(hmm=model, dict=words, lm=None, loglevel="FATAL")

    def told(self, table: Path) -> Told:
        """Return the timed words of a recording, up to the longest of LENGTHS, and its speech."""
        audio, extractor = read(table.with_suffix(".opus")), Extractor([])
        heard = extractor.process(Block(audio, RATE)), extractor.flush()
        samples = (audio * 32767).astype(np.int16)
        said: list[TimedWord] = []
        for line in table.read_text(encoding="utf-8").splitlines()[1:]:
            begin, end, text = line.split("\t")
            if float(end) <= LENGTHS[-1]:
                said += self._said(samples, float(begin), float(end), text.lower())
        return Told(tuple(said), np.concatenate([each.speech for each in heard]))

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
