"""Detection of copies of enrolled audio, and of streams that repeat audio."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import soundfile
import soxr

from benchmarks.page import Page, benchmark
from benchmarks.readers import chapters, last_chapters, read
from monitor.features.extractor import Extractor
from monitor.features.landmarks import Landmarks
from monitor.features.waveform import Waveform
from monitor.maths.landmarks import LandmarkIndex, frames_of, pack
from monitor.networks.layers import RATE
from monitor.stream.copies import SLOW_OR_FAST, WINDOW_TICKS, is_same_audio
from monitor.stream.repeat_gate import RepeatFinder
from monitor.types import Block, FloatArray, IntArray

ENROLLED_SECONDS = 120.0
START_SECONDS, END_SECONDS = 30, 60
SPEEDS = (1.0, -1.0, *SLOW_OR_FAST)
PEAKS = tuple[IntArray, IntArray]
COPIES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "gain of -20 dB": lambda x: x * np.float32(0.1),
    "cut by 777 samples": lambda x: x[777:],
    "padded by 1.234 s": lambda x: np.concatenate((np.zeros(19_744, np.float32), x)),
    "8 bits with dither": lambda x: np.rint(add_noise(x, 30) * 127) / np.float32(127),
    "noise 20 dB below": lambda x: add_noise(x, 20),
    "noise 10 dB below": lambda x: add_noise(x, 10),
    "a telephone's 8 kHz": lambda x: soxr.resample(soxr.resample(x, RATE, 8000), 8000, RATE),
    "MP3, 32 kb/s": lambda x: compress(x, "mp3", "-b:a", "32k"),
    "Opus, 12 kb/s": lambda x: compress(x, "ogg", "-c:a", "libopus", "-b:a", "12k"),
    "1 % faster": lambda x: change_speed(x, 1.01),
    "3.5 % slower": lambda x: change_speed(x, 0.965),
    "1 % faster, MP3": lambda x: compress(change_speed(x, 1.01), "mp3", "-b:a", "32k"),
    "backwards": lambda x: x[::-1],
    "two seconds in a loop": lambda x: np.tile(x[: 2 * RATE], 10),
    "8 % faster": lambda x: change_speed(x, 1.08),
}


@benchmark()
def copies(page: Page, speech: Path, *, enrolled: int = 60, nonnative: Path | None = None) -> None:
    """Are altered copies of enrolled audio recognised, without false reports on other audio?

    Other audio is the rest of the same recordings, other chapters, other readers, and the same
    sentences by many speakers (--nonnative).
    """
    rows = [row for row in chapters(speech) if float(row["seconds"]) > END_SECONDS]
    own = last_chapters(rows)[:enrolled]
    sounds = [read(speech / row["path"], ENROLLED_SECONDS) for row in own]
    peaks = [extract_landmarks(sound) for sound in sounds]
    size, minutes = sum(pack(*each).nbytes for each in peaks), sum(map(len, sounds)) / RATE / 60
    page.note(f"{len(own)} readers, {minutes:.0f} min: {size / minutes:.0f} bytes a minute")
    index = LandmarkIndex(peaks)

    def create_copy_rows() -> Iterator[list[str]]:
        for name, alter in COPIES.items():
            parts = (
                np.ascontiguousarray(
                    alter(x[START_SECONDS * RATE : END_SECONDS * RATE]), np.float32
                )
                for x in sounds
            )
            found = [
                i in match_windows(index, extract_landmarks(part))[0]
                for i, part in enumerate(parts)
            ]
            yield [name, f"{sum(found)} of {len(sounds)}"]

    page.table("a copy of half a minute | known", create_copy_rows())
    page.table(
        "what is no copy | taken for one | stretches of 10 s",
        measure_other_audio(speech, rows, own, index, nonnative),
    )

    def create_repeat_rows() -> Iterator[list[object]]:
        whole = [count_repeats(read(speech / row["path"])) for row in rows]
        yield [f"{len(rows)} chapters, read once", *map(sum, zip(*whole, strict=True))]
        for seconds in (1, 2, 5, 30):
            clips = (
                sound[START_SECONDS * RATE : (START_SECONDS + seconds) * RATE] for sound in sounds
            )
            loops = [count_repeats(np.tile(c, max(3, 60 // seconds))) for c in clips]
            yield [f"{seconds} s of a reader in a loop", *map(sum, zip(*loops, strict=True))]

    page.table("a stream | looks that find repeated audio | looks", create_repeat_rows())


def measure_other_audio(
    speech: Path, rows: list[dict[str, str]], own: list[dict[str, str]], index: LandmarkIndex,
    nonnative: Path | None,
) -> Iterator[list[object]]:  # fmt: skip
    """Yield rows for audio that is not a copy: kind, false matches, and windows."""
    counts: dict[str, list[tuple[int, int]]] = {}
    paths, known = {row["path"] for row in own}, {row["speaker"] for row in own}
    for row in rows:
        is_enrolled = row["path"] in paths
        first = ENROLLED_SECONDS + 1 if is_enrolled else 0.0
        if float(row["seconds"]) >= first + 20:
            same = "another chapter" if row["speaker"] in known else "another reader"
            kind = "the rest of the same recording" if is_enrolled else same
            found, count = match_windows(
                index, extract_landmarks(read(speech / row["path"], 240.0, first))
            )
            counts.setdefault(kind, []).append((len(found), count))
    if nonnative is not None:
        peaks = [extract_landmarks(read(path)) for path in sorted(nonnative.glob("*.opus"))]
        sentences = LandmarkIndex(peaks[: len(peaks) // 2])
        results = [match_windows(sentences, each) for each in peaks[len(peaks) // 2 :]]
        counts["sentences that others read too"] = [(len(f), count) for f, count in results]
    for kind, each in counts.items():
        yield [kind, *map(sum, zip(*each, strict=True))]


def extract_landmarks(sound: FloatArray) -> PEAKS:
    """Return the landmarks of a whole recording: times and pitches."""
    extractor = Landmarks()
    tracks = [extractor.process(soxr.resample(sound, RATE, Landmarks.spec.rate)), extractor.flush()]
    found = [peaks for track in tracks if (peaks := frames_of(track)) is not None]
    times, pitches = zip(*found, strict=True)
    return np.concatenate(times), np.concatenate(pitches)


def compress(sound: FloatArray, suffix: str, *options: str) -> FloatArray:
    """Encode and decode audio with ffmpeg."""
    with tempfile.TemporaryDirectory() as folder:
        source, encoded, decoded = (
            f"{folder}/{name}" for name in ("a.wav", f"b.{suffix}", "c.wav")
        )
        soundfile.write(source, sound, RATE)
        ffmpeg = ("ffmpeg", "-v", "error", "-i")
        subprocess.run([*ffmpeg, source, *options, encoded], check=True)
        subprocess.run([*ffmpeg, encoded, "-ac", "1", "-ar", str(RATE), decoded], check=True)
        return np.asarray(soundfile.read(decoded, dtype="float32")[0])


def add_noise(sound: FloatArray, decibels: float) -> FloatArray:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(sound.size).astype(np.float32)
    return sound + noise * np.float32(sound.std() * 10 ** (-decibels / 20))


def change_speed(sound: FloatArray, factor: float) -> FloatArray:
    return np.asarray(soxr.resample(sound, RATE * factor, RATE))


def match_windows(index: LandmarkIndex, peaks: PEAKS) -> tuple[list[int], int]:
    """Return the recording matched by each window with a match, and the number of windows."""
    times, pitches = peaks
    size = WINDOW_TICKS // 4
    count = int(times[-1]) // size + 1 if times.size else 0
    found = []
    for window in range(count):
        inside = (times >= window * size) & (times < (window + 1) * size)
        match = index.best(times[inside], pitches[inside], SPEEDS)
        if match is not None and is_same_audio(match):
            found.append(match.source)
    return found, count


def count_repeats(sound: FloatArray) -> tuple[int, int]:
    """Return the number of searches that find earlier audio of the stream, and of all searches."""
    extractor, finder = Extractor([Landmarks(), Waveform()]), RepeatFinder()
    decisions, arrived = [], 0
    for frames in (extractor.process(Block(sound, RATE)), extractor.flush()):
        arrived += frames.speech.size
        decisions += finder.update(frames, arrived)
    return sum(bool(each.intervals) for each in decisions), len(decisions)
