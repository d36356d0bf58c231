"""What anonymisers do to real voices, as the monitor hears it, and what they cost.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.vocoder ../shared/speech/dev-clean
        [--methods pitch:4 whisper ...] [--command CMD] [--seconds 10]

Of every reader the first seconds of one recording. Prints for each method: by how many semitones
the pitch moved (the feature f0, where both are voiced), by which factor the long-term envelope is
stretched (400 Hz to 6.2 kHz), how many voiced frames there are to one before, by how many dB the
whole is louder, each as the median over readers with the least and the most; and how many times
real time it runs on one core, by CPU time, at 16 kHz and resampled to 48 kHz.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import numpy as np
import soxr

from monitor.anonymisers import Utterance, make
from monitor.corpus import find
from monitor.sources import File
from monitor.types import Block, FloatArray
from tests.anonymisers.vowels import formant_ratio, level, pitches, semitones_moved

METHODS = (
    "none mcadams:0.8 pitch:4 pitch:-4 formant:1.15 formant:0.85 voice:4,1.15 whisper noise:10"
)


def main() -> None:
    words = argparse.ArgumentParser(description="What anonymisers do to real voices.")
    words.add_argument("speech", type=Path)
    words.add_argument("--methods", nargs="*", default=METHODS.split())
    words.add_argument("--command")
    words.add_argument("--seconds", type=float, default=10.0)
    asked = words.parse_args()
    voices = readers(asked.speech, asked.seconds)
    print(f"{len(voices)} readers, {asked.seconds:g} s each")
    for method in (*asked.methods, *([f"command:{asked.command}"] if asked.command else [])):
        rows, took = [], 0.0
        for name, (sound, rate) in voices.items():
            began = spent()
            made = protected(method, sound, rate, name)
            took += spent() - began
            rows.append(moves(sound, made, rate))
        sound, rate = next(iter(voices.values()))
        finer, began = soxr.resample(sound, rate, 48_000), spent()
        protected(method, finer, 48_000, "")
        fine = asked.seconds / (spent() - began)
        told = [
            f"{what} {np.nanmedian(column):.2f} [{np.nanmin(column):.2f}, {np.nanmax(column):.2f}]"
            for what, column in zip(
                ("semitones", "formants x", "voiced x", "dB"), np.transpose(rows), strict=True
            )
            if np.isfinite(column).any()
        ]
        speed = f"{asked.seconds * len(voices) / took:.0f} and {fine:.0f} times real time"
        print(f"{method}: {'; '.join(told)}; {speed}", flush=True)


def readers(speech: Path, seconds: float) -> dict[str, tuple[FloatArray, int]]:
    """The beginning of the first recording of each."""
    corpus, found = find(speech), {}
    for name in corpus.speakers:
        (path, *_) = next(iter(corpus.sessions(name).values()))
        with File(path, end_seconds=seconds) as file:
            blocks = [each.samples for each in file if isinstance(each, Block)]
            found[name] = (np.concatenate(blocks), file.rate)
    return found


def protected(method: str, sound: FloatArray, rate: int, name: str) -> FloatArray:
    anonymiser = make(method, Utterance(rate, name, name))
    return np.concatenate((anonymiser.process(sound), anonymiser.flush()))


def moves(before: FloatArray, after: FloatArray, rate: int) -> list[float]:
    """Semitones, ratio of formants, of voiced frames, and dB."""
    pitch, moved = pitches(before, rate), pitches(after, rate)
    few = moved.size < 0.05 * pitch.size
    semitones = np.nan if few else semitones_moved(before, after, rate)
    louder = level(after) - level(before)
    return [semitones, formant_ratio(before, after), moved.size / pitch.size, louder]


def spent() -> float:
    """CPU seconds of this process and of programs that have ended."""
    children = getrusage(RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main()
