"""Is a copy of enrolled audio known, whatever was done to it, and nothing else taken for one?

    python -m benchmarks.copies ../shared/speech [--enrolled 60] [--nonnative ../shared/nonnative]

The first two minutes of readers are enrolled (their landmarks). Copies of seconds 30 to 60 of each
are heard: at another gain, cut elsewhere, in noise, compressed by MP3 and Opus (ffmpeg), faster,
backwards, two seconds of it in a loop. What must not be noticed: the rest of the same recordings,
other chapters of the same readers, other readers, and the same sentences by many speakers
(--nonnative). And how much of the forty seconds of new speech that follow a loop is left out with
it, where the loop ends anywhere. Prints tables, with how many landmarks and how much CPU that
takes: of the processor, each part alone over a reader's recordings, in blocks of 30 s as of a file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import soundfile
import soxr

from benchmarks.hear import chapters
from monitor import Monitor
from monitor.features.channel import Landmarks
from monitor.maths.landmarks import (
    FRAME_TICKS,
    NAME,
    LandmarkIndex,
    StreamLandmarks,
    frames_of,
    pack,
)
from monitor.population.population import Population
from monitor.stream.copies import (
    SLOW_OR_FAST,
    WINDOW_TICKS,
    CopyFinder,
    RepeatFinder,
    is_repetition,
    is_same_audio,
)
from monitor.types import TICKS_PER_SECOND, Block, BoolArray, FloatArray, Frames, IntArray, Track

RATE = 16_000
ENROLLED_SECONDS = 120.0
FROM, TO = 30, 60
SPEEDS = (1.0, -1.0, *SLOW_OR_FAST)
FEATURES = ["f0", "phones", "voice"]
PEAKS = tuple[IntArray, IntArray]


def landmarks(sound: FloatArray) -> PEAKS:
    """Those of a whole recording."""
    made = Landmarks()
    tracks = [made.process(soxr.resample(sound, RATE, Landmarks.spec.rate)), made.flush()]
    found = [peaks for track in tracks if (peaks := frames_of(track)) is not None]
    times, pitches = zip(*found, strict=True)
    return np.concatenate(times), np.concatenate(pitches)


def compressed(sound: FloatArray, suffix: str, *options: str) -> FloatArray:
    """Through ffmpeg and back."""
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


def noticed(index: LandmarkIndex, peaks: PEAKS) -> tuple[list[int], int]:
    """Recordings that were found, and how many windows were looked up."""
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


def repeats(peaks: PEAKS) -> tuple[int, int]:
    """Windows of a stream that were taken for a repetition of what came before, of how many."""
    times, pitches = peaks
    own, size = StreamLandmarks(), WINDOW_TICKS // 4
    count = int(times[-1]) // size + 1 if times.size else 0
    found = 0
    for window in range(count):
        inside = (times >= window * size) & (times < (window + 1) * size)
        before = own.find_repeats(times[inside], pitches[inside])
        found += is_repetition(times[inside], before)
    return found, count


def left_out(peaks: PEAKS, seconds: float) -> BoolArray:
    """Which ticks of a stream that is nothing but speech are left out, as it repeats itself."""
    times, pitches = peaks
    begins = times * FRAME_TICKS
    track = Track(begins, pitches, np.stack([begins, begins + FRAME_TICKS], axis=1))
    frames = Frames(np.ones(round(seconds * TICKS_PER_SECOND), np.bool_), {NAME: track})
    finder = RepeatFinder()
    for _ in finder.update(frames, len(frames.speech), 0):
        pass
    return np.asarray(~finder.drop_repeats(frames, 0).speech)


def after_loops(sounds: Sequence[FloatArray], seconds: int) -> str:
    """A row: of loops that were noticed, what counts of the rest, and what not of what follows."""
    rng, counted, lost = np.random.default_rng(seconds), [], []
    for sound in sounds:
        clip = sound[FROM * RATE : (FROM + seconds) * RATE]
        loop = np.tile(clip, max(3, 60 // seconds))
        loop = loop[: loop.size - rng.integers(RATE)]
        new = sound[(FROM + seconds) * RATE :][: 40 * RATE]
        whole = np.concatenate((loop, new))
        out = left_out(landmarks(whole), whole.size / RATE)
        end = round(loop.size / RATE * TICKS_PER_SECOND)
        if out[:end].any():
            counted.append(1 - out[np.argmax(out) : end].mean())
            lost.append(out[end:].sum() / TICKS_PER_SECOND)
    return (
        f"| {seconds} s | {len(lost)} of {len(sounds)} | {np.mean(counted):.0%} "
        f"| {np.median(lost):.1f} | {np.quantile(lost, 0.9):.1f} | {np.max(lost):.1f} |"
    )


def costs(sounds: Sequence[FloatArray]) -> str:
    """Milliseconds of processor a second: to take landmarks, to look them up, and of a replay."""
    rate = 8000  # of landmarks
    heard = np.concatenate(sounds)
    seconds = len(heard) / RATE
    population = Population.reference().only(FEATURES)

    def parts(sound: FloatArray, rate: int) -> list[FloatArray]:
        return np.split(sound, range(30 * rate, sound.size, 30 * rate))

    def take(blocks: Sequence[FloatArray]) -> list[Track]:
        made = Landmarks()
        return [made.process(block) for block in blocks]

    def look(finder: CopyFinder | RepeatFinder, tracks: Sequence[Track]) -> None:
        for number, track in enumerate(tracks, 1):
            run = Frames(np.ones(30 * TICKS_PER_SECOND, np.bool_), {NAME: track})
            arrived = number * len(run.speech)
            if isinstance(finder, CopyFinder):
                list(finder.update(run, arrived))
            else:
                list(finder.update(run, arrived, 0))

    def best(what: Callable[[], object]) -> str:
        spent: list[float] = []
        for _ in range(3):
            began = time.process_time()
            what()
            spent.append(time.process_time() - began)
        return f"{1e3 * min(spent) / seconds:.3f}"

    blocks = parts(soxr.resample(heard, RATE, rate), rate)
    read = take(blocks)
    clip = heard[FROM * RATE : (FROM + 2) * RATE]
    loop = soxr.resample(np.tile(clip, int(seconds) // 2), RATE, rate)
    looped = take(parts(loop, rate))
    whole = [Block(part, RATE) for part in parts(heard, RATE)]
    return (
        f"ms a second: {best(lambda: take(blocks))} to take landmarks, "
        f"{best(lambda: look(CopyFinder(population), read))} to look for copies of the shipped "
        f"readers', {best(lambda: look(RepeatFinder(), read))} for repetitions, "
        f"{best(lambda: look(RepeatFinder(), looped))} of a loop of two seconds; all of a replay "
        f"of {', '.join(FEATURES)}: "
        f"{best(lambda: list(Monitor(population, FEATURES).listen(whole)))}"
    )


def sound_of(path: Path, first: float, seconds: float | None) -> FloatArray:
    frames = -1 if seconds is None else round(seconds * RATE)
    samples, rate = soundfile.read(path, start=round(first * RATE), frames=frames, dtype="float32")
    assert rate == RATE
    return np.asarray(samples)


def others(
    speech: Path, rows: list[dict[str, str]], enrolled: list[dict[str, str]]
) -> Iterator[tuple[str, PEAKS]]:
    """What is no copy, by kind."""
    own = {row["path"] for row in enrolled}
    known = {row["speaker"] for row in enrolled}
    for row in rows:
        there = row["path"] in own
        first = ENROLLED_SECONDS + 1 if there else 0.0
        if float(row["seconds"]) < first + 20:
            continue
        same = "another chapter" if row["speaker"] in known else "another reader"
        kind = "the rest of the same recording" if there else same
        yield kind, landmarks(sound_of(speech / row["path"], first, 240.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("speech", type=Path)
    parser.add_argument("--enrolled", type=int, default=60)
    parser.add_argument("--nonnative", type=Path)
    given = parser.parse_args()
    rows = [row for row in chapters(given.speech) if float(row["seconds"]) > TO]
    enrolled = list({row["speaker"]: row for row in rows}.values())[: given.enrolled]
    sounds = [sound_of(given.speech / row["path"], 0.0, ENROLLED_SECONDS) for row in enrolled]
    began = time.process_time()
    peaks = [landmarks(sound) for sound in sounds]
    minutes = sum(sound.size for sound in sounds) / RATE / 60
    took = (time.process_time() - began) / minutes / 60
    size = sum(pack(*each).nbytes for each in peaks)
    print(f"{len(enrolled)} readers, {minutes:.0f} min: {size / minutes:.0f} bytes a minute, "
          f"{1e3 * took:.2f} ms a second", file=sys.stderr)  # fmt: skip
    index = LandmarkIndex(peaks)
    print("| a copy of half a minute | known |\n| --- | --- |")
    for name, how in COPIES.items():
        hits = 0
        for number, sound in enumerate(sounds):
            copy = np.ascontiguousarray(how(sound[FROM * RATE : TO * RATE]), np.float32)
            hits += number in noticed(index, landmarks(copy))[0]
        print(f"| {name} | {hits} of {len(sounds)} |", flush=True)
    print("\n| what is no copy | taken for one | stretches of 10 s |\n| --- | --- | --- |")
    counts: dict[str, list[int]] = {}
    took, looked = 0.0, 0
    for kind, each in others(given.speech, rows, enrolled):
        began = time.process_time()
        found, windows = noticed(index, each)
        took, looked = took + time.process_time() - began, looked + windows
        row = counts.setdefault(kind, [0, 0])
        row[0] += len(found)
        row[1] += windows
    for kind, (false, windows) in counts.items():
        print(f"| {kind} | {false} | {windows} |")
    print(
        f"{1e3 * took / looked:.1f} ms a stretch of 10 s at {len(SPEEDS)} speeds", file=sys.stderr
    )
    print("\n| a stream | taken for a repetition | stretches of 10 s |\n| --- | --- | --- |")
    began, read = time.process_time(), [0, 0]
    for chapter in rows:
        again, windows = repeats(landmarks(sound_of(given.speech / chapter["path"], 0.0, None)))
        read[0] += again
        read[1] += windows
    spent = time.process_time() - began
    for seconds in (1, 2, 5, 30):
        loops = [0, 0]
        for sound in sounds:
            clip = sound[FROM * RATE : (FROM + seconds) * RATE]
            again, windows = repeats(landmarks(np.tile(clip, max(3, 60 // seconds))))
            loops[0] += again
            loops[1] += windows
        print(f"| {seconds} s of a reader in a loop | {loops[0]} | {loops[1]} |")
    print(f"| {len(rows)} chapters, read once | {read[0]} | {read[1]} |")
    print(f"{1e3 * spent / read[1]:.1f} ms a stretch of 10 s, landmarks and all", file=sys.stderr)
    print("\n| after a loop of | noticed | of its rest counts | new speech left out, s: median "
          "| 9 of 10 | largest |\n| --- | --- | --- | ---: | ---: | ---: |")  # fmt: skip
    for seconds in (1, 2, 5, 30):
        print(after_loops(sounds, seconds), flush=True)
    print(costs(sounds[:15]), file=sys.stderr)
    if given.nonnative is not None:
        print("\n| what is no copy | taken for one | stretches of 10 s |\n| --- | --- | --- |")
        paths = sorted(given.nonnative.glob("*.opus"))
        same = [landmarks(sound_of(path, 0.0, None)) for path in paths]
        half = len(same) // 2
        alike = LandmarkIndex(same[:half])
        results = [noticed(alike, each) for each in same[half:]]
        false, windows = (sum(n) for n in zip(*((len(f), w) for f, w in results), strict=True))
        print(f"| sentences that others read too | {false} | {windows} |")


if __name__ == "__main__":
    main()
