"""Notes on enrolments that contain another voice or music, and false notes on one voice.

Thresholds were chosen on readers of train-clean-5 and train-clean-100. Test them on other readers.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.change import noisy, telephone
from benchmarks.page import Page, benchmark
from benchmarks.readers import read
from monitor.features.registry import make
from monitor.networks.layers import RATE
from monitor.training.live_enrolment import LiveEnrolment
from monitor.training.session_checks import Unity, measure_unity
from monitor.types import Block, FloatArray

LATE = 0.55  # fraction of an enrolment at which the speaker changes: 11 s of 20
TURNS = 1.5, 4.5  # seconds


@benchmark()
def one_voice(
    page: Page, manifest: Path,
    *, corpora: tuple[str, ...], seconds: float = 20.0, readers: int = 100, jobs: int = 1,
) -> None:  # fmt: skip
    """Are enrolments with another voice or music noted, without false notes on one voice?"""
    everybody = voices_of(manifest, corpora, seconds + 3)
    numbers = np.unique(np.linspace(0, len(everybody) - 1, readers).astype(int)).tolist()
    found = defaultdict[str, list[Unity | None]](list)
    with Pool(jobs) as pool:
        for judged in pool.imap(partial(judge, everybody, seconds), numbers):
            for of, unity in judged:
                found[of].append(unity)

    def rows() -> Iterator[list[str]]:
        for of, judged in found.items():
            known = [each for each in judged if each is not None]
            counts = (
                sum(each.is_turn for each in known),
                sum(each.is_mixed for each in known),
                sum(each.is_turn or each.is_mixed for each in known),
            )
            shares = (f"{100 * count / len(judged):.0f} %" for count in counts)
            yield [of, str(len(judged)), *shares]

    page.table(
        "enrolment | count | noted as two in turn | as a mixture | noted at all",
        rows(),
        under=f"{seconds:g} s, {len(numbers)} readers of {' and '.join(corpora)}",
    )


class Voice(NamedTuple):
    """A reader, and paths of chapters with their seconds."""

    name: str
    sex: str
    chapters: list[tuple[Path, float]]


class Made(NamedTuple):
    """An enrolment: its description, and its audio, shape (n,), at 16 kHz."""

    of: str
    sound: FloatArray


def voices_of(manifest: Path, corpora: Sequence[str], least: float) -> list[Voice]:
    """Return the readers with chapters of more than ``least`` seconds, and these chapters."""
    chapters = defaultdict[tuple[str, str], list[tuple[Path, float]]](list)
    for row in csv.DictReader(manifest.open(newline="")):
        if row["corpus"] in corpora and float(row["seconds"]) > least:
            path = manifest.parent / row["path"]
            chapters[row["speaker"], row["gender"]].append((path, float(row["seconds"])))
    return [Voice(*key, files) for key, files in sorted(chapters.items())]


def made(everybody: Sequence[Voice], seconds: float, number: int) -> Iterator[Made]:
    """Yield enrolments of one reader: alone, degraded, with a reader of either sex, with music."""
    rng = np.random.default_rng(number)
    reader = everybody[number]

    def part(voice: Voice, length: float, chapter: int | None = None) -> FloatArray:
        which = int(rng.integers(len(voice.chapters))) if chapter is None else chapter
        path, whole = voice.chapters[which]
        return read(path, length, float(rng.uniform(0, whole - length - 0.1)))

    own, another = part(reader, seconds), part(reader, seconds)
    half = own.size // 2
    yield Made("one voice", own)
    yield Made("one voice", another)
    yield Made("one, through a telephone's band", telephone(own, RATE))
    yield Made("one, in noise 20 dB below", noisy(own, RATE))
    yield Made("one, in noise 10 dB below", own + 10**-0.5 * level(own) * noise(own.size, rng))
    yield Made("one, quieter by 12 dB from the middle on",
               np.concatenate([own[:half], own[half:] / 4]))  # fmt: skip
    yield Made("one, by telephone from the middle on",
               np.concatenate([own[:half], telephone(own[half:], RATE)]))  # fmt: skip
    if len(reader.chapters) > 1:
        yield Made("one, two recordings joined",
                   np.concatenate([part(reader, seconds / 2, i) for i in (0, 1)]))  # fmt: skip
    for sexes in ("one sex", "two sexes"):
        pool = [
            voice
            for voice in everybody
            if voice is not reader and (voice.sex == reader.sex) == (sexes == "one sex")
        ]
        other = part(pool[rng.integers(len(pool))], seconds)
        other = other * (level(own) / level(other))
        late = round(LATE * own.size)
        yield Made(f"two in turn, {sexes}", np.concatenate([own[:late], other[late:]]))
        turns = by_turns(own, other, rng)
        yield Made(f"two by turns of {TURNS[0]:g} to {TURNS[1]:g} s, {sexes}", turns)
        yield Made(f"two at once, equally loud, {sexes}", own + other)
        yield Made(f"two at once, one 6 dB below, {sexes}", own + other / 2)
    music = play(own.size, rng)
    music = music * (level(own) / level(music))
    for decibels in (0, 6, 12):
        yield Made(f"music {decibels} dB below", own + 10 ** (-decibels / 20) * music)


def level(sound: FloatArray) -> float:
    return float(np.sqrt(np.mean(sound**2))) + 1e-9


def noise(count: int, rng: np.random.Generator) -> FloatArray:
    return rng.standard_normal(count)


def by_turns(one: FloatArray, other: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Alternate between two voices in turns of random length."""
    sound, at, second = one.copy(), 0, False
    while at < sound.size:
        end = at + round(float(rng.uniform(*TURNS)) * RATE)
        if second:
            sound[at:end] = other[at:end]
        at, second = end, not second
    return sound


def play(count: int, rng: np.random.Generator) -> FloatArray:
    """Generate music in a random key and tempo: four chords, a melody, a bass and a drum loop."""
    beat = RATE * 60 // int(rng.integers(80, 140))
    root = 110 * 2 ** (rng.integers(12) / 12)
    sound = np.zeros(count)
    chords = rng.permutation([(0, 4, 7), (9, 12, 16), (5, 9, 12), (7, 11, 14)])
    bright = rng.uniform(0.7, 1.6)
    for bar, at in enumerate(range(0, count, 4 * beat)):
        for step in chords[bar % 4]:
            add(sound, at, 4 * beat, 2 * root * 2 ** (step / 12), 0.3, 0.6, bright)
    at, scale = 0, (0, 2, 4, 5, 7, 9, 11, 12)
    while at < count:
        length = int(beat * rng.choice([0.5, 0.5, 1, 1, 2]))
        add(sound, at, length, 4 * root * 2 ** (rng.choice(scale) / 12), 0.35, 1.5, 1.2)
        at += length
    for number, at in enumerate(range(0, count, beat)):
        add(sound, at, beat, root / 2, 0.5, 3.0, 3.0)
        t = np.arange(min(beat, count - at)) / RATE
        kick = np.sin(2 * np.pi * (40 * t - 4 * np.exp(-30 * t))) * np.exp(-12 * t)
        snare = 0.5 * rng.standard_normal(t.size) * np.exp(-18 * t)
        sound[at : at + t.size] += snare if number % 2 else 0.9 * kick
    return sound


def add(
    sound: FloatArray, at: int, length: int, hertz: float, loud: float, decay: float, bright: float
) -> None:
    """Add a decaying tone with partials, in place."""
    t = np.arange(min(length, sound.size - at)) / RATE
    partials = range(1, min(12, int(7600 / hertz) + 1))
    wave = sum(np.sin(2 * np.pi * hertz * k * t) / k**bright for k in partials)
    sound[at : at + t.size] += loud * np.minimum(40 * t, 1) * np.exp(-decay * t) * wave


def judge(
    everybody: Sequence[Voice], seconds: float, number: int
) -> list[tuple[str, Unity | None]]:
    """Measure each enrolment of a reader."""
    return [
        (of, measure_unity(windows_of(sound))) for of, sound in made(everybody, seconds, number)
    ]


def windows_of(sound: FloatArray) -> FloatArray:
    """Return the window embeddings that a live enrolment keeps."""
    take = LiveEnrolment(make(["voice"]))
    take.push(Block(np.asarray(sound, np.float32)[:, None], RATE))
    return np.asarray(take.end("take").tracks["voice"].values)
