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
from benchmarks.readers import chapters, one_each, read
from monitor.features.extractor import Extractor
from monitor.features.landmarks import Landmarks
from monitor.features.waveform import Waveform
from monitor.maths.landmarks import LandmarkIndex, frames_of, pack
from monitor.networks.layers import RATE
from monitor.stream.copies import SLOW_OR_FAST, WINDOW_TICKS, is_same_audio
from monitor.stream.repeat_gate import RepeatFinder
from monitor.types import Block, FloatArray, IntArray

ENROLLED_SECONDS = 120.0
FROM, TO = 30, 60
SPEEDS = (1.0, -1.0, *SLOW_OR_FAST)
PEAKS = tuple[IntArray, IntArray]
COPIES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "gain of -20 dB": lambda x: x * np.float32(0.1),
    "cut by 777 samples": lambda x: x[777:],
    "padded by 1.234 s": lambda x: np.concatenate((np.zeros(19_744, np.float32), x)),
    "8 bits with dither": lambda x: np.rint(in_noise(x, 30) * 127) / np.float32(127),
    "noise 20 dB below": lambda x: in_noise(x, 20),
    "noise 10 dB below": lambda x: in_noise(x, 10),
    "a telephone's 8 kHz": lambda x: soxr.resample(soxr.resample(x, RATE, 8000), 8000, RATE),
    "MP3, 32 kb/s": lambda x: compressed(x, "mp3", "-b:a", "32k"),
    "Opus, 12 kb/s": lambda x: compressed(x, "ogg", "-c:a", "libopus", "-b:a", "12k"),
    "1 % faster": lambda x: faster(x, 1.01),
    "3.5 % slower": lambda x: faster(x, 0.965),
    "1 % faster, MP3": lambda x: compressed(faster(x, 1.01), "mp3", "-b:a", "32k"),
    "backwards": lambda x: x[::-1],
    "two seconds in a loop": lambda x: np.tile(x[: 2 * RATE], 10),
    "8 % faster": lambda x: faster(x, 1.08),
}


@benchmark()
def copies(page: Page, speech: Path, *, enrolled: int = 60, nonnative: Path | None = None) -> None:
    """Are altered copies of enrolled audio recognised, without false reports on other audio?

    Other audio is the rest of the same recordings, other chapters, other readers, and the same
    sentences by many speakers (--nonnative).
    """
    rows = [row for row in chapters(speech) if float(row["seconds"]) > TO]
    own = one_each(rows)[:enrolled]
    sounds = [read(speech / row["path"], ENROLLED_SECONDS) for row in own]
    peaks = [landmarks(sound) for sound in sounds]
    size, minutes = sum(pack(*each).nbytes for each in peaks), sum(map(len, sounds)) / RATE / 60
    page.note(f"{len(own)} readers, {minutes:.0f} min: {size / minutes:.0f} bytes a minute")
    index = LandmarkIndex(peaks)

    def known() -> Iterator[list[str]]:
        for name, how in COPIES.items():
            parts = (
                np.ascontiguousarray(how(x[FROM * RATE : TO * RATE]), np.float32) for x in sounds
            )
            found = [i in noticed(index, landmarks(part))[0] for i, part in enumerate(parts)]
            yield [name, f"{sum(found)} of {len(sounds)}"]

    page.table("a copy of half a minute | known", known())
    page.table(
        "what is no copy | taken for one | stretches of 10 s",
        no_copies(speech, rows, own, index, nonnative),
    )

    def repeated() -> Iterator[list[object]]:
        whole = [repeats(read(speech / row["path"])) for row in rows]
        yield [f"{len(rows)} chapters, read once", *map(sum, zip(*whole, strict=True))]
        for seconds in (1, 2, 5, 30):
            clips = (sound[FROM * RATE : (FROM + seconds) * RATE] for sound in sounds)
            loops = [repeats(np.tile(c, max(3, 60 // seconds))) for c in clips]
            yield [f"{seconds} s of a reader in a loop", *map(sum, zip(*loops, strict=True))]

    page.table("a stream | looks that find repeated audio | looks", repeated())


def no_copies(
    speech: Path, rows: list[dict[str, str]], own: list[dict[str, str]], index: LandmarkIndex,
    nonnative: Path | None,
) -> Iterator[list[object]]:  # fmt: skip
    """Yield rows for audio that is not a copy: kind, false matches, and windows."""
    counts: dict[str, list[tuple[int, int]]] = {}
    paths, known = {row["path"] for row in own}, {row["speaker"] for row in own}
    for row in rows:
        there = row["path"] in paths
        first = ENROLLED_SECONDS + 1 if there else 0.0
        if float(row["seconds"]) >= first + 20:
            same = "another chapter" if row["speaker"] in known else "another reader"
            kind = "the rest of the same recording" if there else same
            found, many = noticed(index, landmarks(read(speech / row["path"], 240.0, first)))
            counts.setdefault(kind, []).append((len(found), many))
    if nonnative is not None:
        heard = [landmarks(read(path)) for path in sorted(nonnative.glob("*.opus"))]
        alike = LandmarkIndex(heard[: len(heard) // 2])
        results = [noticed(alike, each) for each in heard[len(heard) // 2 :]]
        counts["sentences that others read too"] = [(len(f), many) for f, many in results]
    for kind, each in counts.items():
        yield [kind, *map(sum, zip(*each, strict=True))]


def landmarks(sound: FloatArray) -> PEAKS:
    """Return the landmarks of a whole recording: times and pitches."""
    made = Landmarks()
    tracks = [made.process(soxr.resample(sound, RATE, Landmarks.spec.rate)), made.flush()]
    found = [peaks for track in tracks if (peaks := frames_of(track)) is not None]
    times, pitches = zip(*found, strict=True)
    return np.concatenate(times), np.concatenate(pitches)


def compressed(sound: FloatArray, suffix: str, *options: str) -> FloatArray:
    """Encode and decode audio with ffmpeg."""
    with tempfile.TemporaryDirectory() as folder:
        there, made, back = (f"{folder}/{name}" for name in ("a.wav", f"b.{suffix}", "c.wav"))
        soundfile.write(there, sound, RATE)
        ffmpeg = ("ffmpeg", "-v", "error", "-i")
        subprocess.run([*ffmpeg, there, *options, made], check=True)
        subprocess.run([*ffmpeg, made, "-ac", "1", "-ar", str(RATE), back], check=True)
        return np.asarray(soundfile.read(back, dtype="float32")[0])


def in_noise(sound: FloatArray, decibels: float) -> FloatArray:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(sound.size).astype(np.float32)
    return sound + noise * np.float32(sound.std() * 10 ** (-decibels / 20))


def faster(sound: FloatArray, times: float) -> FloatArray:
    return np.asarray(soxr.resample(sound, RATE * times, RATE))


def noticed(index: LandmarkIndex, peaks: PEAKS) -> tuple[list[int], int]:
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


def repeats(sound: FloatArray) -> tuple[int, int]:
    """Return the number of searches that find earlier audio of the stream, and of all searches."""
    extractor, finder = Extractor([Landmarks(), Waveform()]), RepeatFinder()
    decisions, arrived = [], 0
    for frames in (extractor.process(Block(sound, RATE)), extractor.flush()):
        arrived += frames.speech.size
        decisions += finder.update(frames, arrived)
    return sum(bool(each.intervals) for each in decisions), len(decisions)
