"""The phones feature and pocketsphinx, which it took the place of: speed, phones, bits.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.phones ../shared/speech [--minutes 3] [--runs 3]
    python -m benchmarks.phones ../shared/speech --tokens TOKENS

The first takes turns on the same audio, on one thread: the feature, its network alone, its log mel
bands alone, and pocketsphinx's all-phone search with the beams that it needs (1e-20), an utterance
of the transcripts at a time. Then both are held against the transcripts, of readers who never
trained the network: errors (insertions, deletions, substitutions) by phones of the text. Prints one
JSON object. The second writes pocketsphinx's tokens as frames, for `benchmarks.features TOKENS`.
Needs the extra ``peers``.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pocketsphinx
import soundfile
from threadpoolctl import threadpool_limits

from benchmarks.hear import MOST_SECONDS, chapters
from monitor.features.phones import Phones
from monitor.features.tokens import said_phones
from monitor.features.vad import VoiceActivity
from monitor.networks.mel import RATE, log_mel
from monitor.networks.phones import PHONES, shipped
from monitor.sources.frames import write_frames
from monitor.types import FloatArray, Track
from recipes.phones.words import Words

APART = ("dev-clean", "train-clean-100")
BLOCK_SECONDS = 10
LONGEST_SECONDS = 8
"""Of audio decoded at once where nobody knows the utterances: memory grows with it."""
TICK = RATE // 100

Token = tuple[str, int, int]
"""A phone, and the frames of 10 ms [begin, end) it was found in."""


class Sphinx:
    """Its all-phone search, with the model that its wheel carries."""

    def __init__(self) -> None:
        model = Path(pocketsphinx.get_model_path()) / "en-us"
        self._decoder = pocketsphinx.Decoder(
            pocketsphinx.Config(
                hmm=str(model / "en-us"),
                allphone=str(model / "en-us-phone.lm.bin"),
                lw=2.0,
                beam=1e-20,
                pbeam=1e-20,
                loglevel="FATAL",
            )
        )

    def tokens(self, sound: FloatArray) -> list[Token]:
        """The phones of one utterance."""
        self._decoder.reinit_feat()
        self._decoder.start_utt()
        scaled = np.clip(np.rint(sound * 32768), -32768, 32767).astype(np.int16)
        self._decoder.process_raw(scaled.tobytes(), full_utt=True)
        self._decoder.end_utt()
        return [
            (each.word, each.start_frame, each.end_frame + 1)
            for each in self._decoder.seg() or ()
            if each.word in PHONES
        ]


def utterances(speech: Path, minutes: float) -> list[tuple[FloatArray, str]]:
    """Sound and text, about as much of every reader."""
    rows = chapters(speech, APART)
    first = {row["speaker"]: row for row in reversed(rows)}
    found = []
    for row in first.values():
        path = speech / row["path"]
        sound, _ = soundfile.read(path, dtype="float32")
        left = 60 * minutes / len(first)
        for line in csv.DictReader(path.with_suffix(".tsv").open(encoding="utf-8"), delimiter="\t"):
            begin, end = (round(float(line[key]) * RATE) for key in ("start", "end"))
            if left > 0:
                found.append((sound[begin:end], line["text"]))
            left -= (end - begin) / RATE
    return found


def ours(sounds: Iterable[FloatArray]) -> None:
    """The feature, fed as a file feeds it."""
    audio, step = np.concatenate(list(sounds)), BLOCK_SECONDS * RATE
    feature = Phones()
    for block in np.split(audio, range(step, audio.size, step)):
        feature.process(block)
    feature.flush()


def network(sounds: Iterable[FloatArray]) -> None:
    """What it counts, without voice activity."""
    stream = shipped().stream()
    stream.push(np.concatenate(list(sounds)))


def bands(sounds: Iterable[FloatArray]) -> None:
    for sound in sounds:
        log_mel(sound)


def errors(said: Sequence[str], found: Sequence[str]) -> int:
    """Insertions, deletions and substitutions from the one to the other (Levenshtein)."""
    row = np.arange(len(found) + 1)
    names = np.array(found)
    for i, phone in enumerate(said, 1):
        best = np.concatenate(([i], np.minimum(row[1:] + 1, row[:-1] + (names != phone))))
        places = np.arange(len(best))
        row = np.minimum.accumulate(best - places) + places  # insertions
    return int(row[-1])


def compared(speech: Path, minutes: float, runs: int) -> dict[str, object]:
    spoken = utterances(speech, minutes)
    sounds = [sound for sound, _ in spoken]
    sphinx = Sphinx()
    work: dict[str, Callable[[], object]] = {
        "feature": lambda: ours(sounds),
        "network": lambda: network(sounds),
        "bands": lambda: bands(sounds),
        "pocketsphinx": lambda: [sphinx.tokens(sound) for sound in sounds],
    }
    with threadpool_limits(1):
        ours(sounds[:2])  # warms up
        rounds = [
            {name: seconds(each, time.process_time) for name, each in work.items()}
            for _ in range(runs)
        ]
    audio = sum(sound.size for sound in sounds) / RATE
    words = Words.cmu()
    known = [(sound, words.phones(text)) for sound, text in spoken if words.known(text)]
    wrong = {
        "ours": sum(errors(said, [p.phone for p in said_phones(sound)]) for sound, said in known),
        "pocketsphinx": sum(
            errors(said, [phone for phone, *_ in sphinx.tokens(sound)]) for sound, said in known
        ),
    }
    phones = sum(len(said) for _, said in known)
    return {
        "benchmark": "phones",
        "network": shipped().sha256[:12],
        "audio_seconds": round(audio, 1),
        "runs": runs,
        "times_real_time": {
            name: round(audio / median(each[name] for each in rounds), 1) for name in work
        },
        "ratio": spread([each["pocketsphinx"] / each["feature"] for each in rounds]),
        "phones_of_the_text": phones,
        "phone_error_rate": {name: round(count / phones, 4) for name, count in wrong.items()},
    }


def seconds(work: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return clock() - start


def spread(ratios: list[float]) -> dict[str, float]:
    return {
        "min": round(min(ratios), 2),
        "median": round(median(ratios), 2),
        "max": round(max(ratios), 2),
    }


def write_tokens(speech: Path, folder: Path) -> None:
    """Frames of pocketsphinx's tokens, as `benchmarks.hear` writes those of features."""
    sphinx = Sphinx()
    for row in chapters(speech, APART):
        target = folder / Path(row["path"]).with_suffix(".npz")
        if target.exists():
            continue
        sound, _ = soundfile.read(speech / row["path"], round(MOST_SECONDS * RATE), dtype="float32")
        step = LONGEST_SECONDS * RATE
        found = [
            (PHONES.index(phone), at // TICK + begin, at // TICK + end, at // TICK + step // TICK)
            for at in range(0, sound.size, step)
            for phone, begin, end in sphinx.tokens(sound[at : at + step])
        ]
        speech_ticks = VoiceActivity(RATE).process(sound)
        units, begins, ends, ticks = np.array(found).T
        last = speech_ticks.size
        kept = ends <= last
        spans = np.column_stack((begins, ends))[kept]
        track = Track(np.minimum(ticks, last)[kept], units[kept], spans)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_frames(
            target, speech_ticks, {"phones": track}, {"phones": len(PHONES)}, {"phones": 0.1}
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="phones beside pocketsphinx, on one thread")
    parser.add_argument("speech", type=Path)
    parser.add_argument("--minutes", type=float, default=3, help="audio minutes (default 3)")
    parser.add_argument("--runs", type=int, default=3, help="timed rounds (default 3)")
    parser.add_argument("--tokens", type=Path, help="write pocketsphinx's tokens to this folder")
    given = parser.parse_args()
    if given.tokens is not None:
        write_tokens(given.speech, given.tokens)
        return
    print(json.dumps(compared(given.speech, given.minutes, given.runs), indent=2))


if __name__ == "__main__":
    main()
