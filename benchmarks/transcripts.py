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
class TimedRecording:
    """Timed words of a recording, and its speech: one value per tick."""

    words: tuple[TimedWord, ...]
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
    timed = [aligner.align(table) for table in tables if table is not None]
    page.table(
        "length, times of words | recordings | own words flagged | half a second late "
        "| another's words not flagged | too few pauses to tell",
        ([f"{seconds} s", *create_cells(timed, seconds)] for seconds in LENGTHS),
    )


def create_cells(recordings: Sequence[TimedRecording], seconds: int) -> Iterator[str]:
    """Yield the number of recordings of this length, and fractions of verdicts on transcripts."""
    ticks = seconds * 100
    long_enough = [
        each
        for each in recordings
        if each.speech.size >= ticks and each.words[-1].end > seconds - 30
    ]

    def is_doubtful(
        transcript: TimedRecording, recording: TimedRecording, late_seconds: float = 0.0
    ) -> bool | None:
        kept = [word for word in transcript.words if word.end + late_seconds <= seconds]
        shifted = [
            TimedWord(w.text, w.begin + late_seconds, w.end + late_seconds, w.end + late_seconds)
            for w in kept
        ]
        found = measure_coverage(Transcript("", tuple(shifted)).words(), recording.speech[:ticks])
        return None if found.as_well is None else found.doubtful

    own = [is_doubtful(each, each) for each in long_enough]
    late = [is_doubtful(each, each, 0.5) for each in long_enough]
    others = [is_doubtful(a, b) for a in long_enough for b in long_enough if a is not b]
    unknown = sum(each is None for each in (*own, *others)) / max(len(own) + len(others), 1)
    yield str(len(long_enough))
    for found, expected in ((own, True), (late, True), (others, False)):
        known = [each is expected for each in found if each is not None]
        yield "-" if not known else f"{100 * np.mean(known):.1f} %" if any(known) else "none"
    yield f"{100 * unknown:.0f} %"


class Aligner:
    """Forced aligner of the words of utterances; omits words that are not in the dictionary."""

    def __init__(self) -> None:
        from pocketsphinx import Decoder, get_model_path

        model, words = (get_model_path(f"en-us/{n}") for n in ("en-us", "cmudict-en-us.dict"))
        self._decoder = Decoder(hmm=model, dict=words, lm=None, loglevel="FATAL")

    def align(self, table: Path) -> TimedRecording:
        """Return the timed words of a recording, up to the longest of LENGTHS, and its speech."""
        audio, extractor = read(table.with_suffix(".opus")), Extractor([])
        frames = extractor.process(Block(audio, RATE)), extractor.flush()
        samples = (audio * 32767).astype(np.int16)
        words: list[TimedWord] = []
        for line in table.read_text(encoding="utf-8").splitlines()[1:]:
            begin, end, text = line.split("\t")
            if float(end) <= LENGTHS[-1]:
                words += self._align_utterance(samples, float(begin), float(end), text.lower())
        return TimedRecording(tuple(words), np.concatenate([each.speech for each in frames]))

    def _align_utterance(
        self, samples: IntArray, begin: float, end: float, text: str
    ) -> list[TimedWord]:
        decoder = self._decoder
        decoder.set_align_text(" ".join(w for w in text.split() if decoder.lookup_word(w)))
        decoder.start_utt()
        piece = samples[round(begin * RATE) : round(end * RATE)]
        decoder.process_raw(piece.tobytes(), full_utt=True)
        decoder.end_utt()
        found = [each for each in decoder.seg() or () if each.word[0] not in "<["]
        times = [(begin + e.start_frame / 100, begin + (e.end_frame + 1) / 100) for e in found]
        return [TimedWord(e.word, *t, t[1]) for e, t in zip(found, times, strict=True)]
