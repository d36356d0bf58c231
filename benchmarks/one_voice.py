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
    voices = load_voices(manifest, corpora, seconds + 3)
    numbers = np.unique(np.linspace(0, len(voices) - 1, readers).astype(int)).tolist()
    unities_by_kind = defaultdict[str, list[Unity | None]](list)
    with Pool(jobs) as pool:
        for unities in pool.imap(partial(measure_enrolments, voices, seconds), numbers):
            for kind, unity in unities:
                unities_by_kind[kind].append(unity)

    def rows() -> Iterator[list[str]]:
        for kind, unities in unities_by_kind.items():
            known = [each for each in unities if each is not None]
            counts = (
                sum(each.is_turn for each in known),
                sum(each.is_mixed for each in known),
                sum(each.is_turn or each.is_mixed for each in known),
            )
            percentages = (f"{100 * count / len(unities):.0f} %" for count in counts)
            yield [kind, str(len(unities)), *percentages]

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


class Enrolment(NamedTuple):
    """An enrolment: its description, and its audio, shape (n,), at 16 kHz."""

    kind: str
    sound: FloatArray


def load_voices(manifest: Path, corpora: Sequence[str], least_seconds: float) -> list[Voice]:
    """Return the readers with chapters of more than ``least`` seconds, and these chapters."""
    chapters = defaultdict[tuple[str, str], list[tuple[Path, float]]](list)
    for row in csv.DictReader(manifest.open(newline="")):
        if row["corpus"] in corpora and float(row["seconds"]) > least_seconds:
            path = manifest.parent / row["path"]
            chapters[row["speaker"], row["gender"]].append((path, float(row["seconds"])))
    return [Voice(*key, files) for key, files in sorted(chapters.items())]


def make_enrolments(voices: Sequence[Voice], seconds: float, number: int) -> Iterator[Enrolment]:
    """Yield enrolments of one reader: alone, degraded, with a reader of either sex, with music."""
    rng = np.random.default_rng(number)
    reader = voices[number]

    def load_excerpt(voice: Voice, length: float, chapter: int | None = None) -> FloatArray:
        which = int(rng.integers(len(voice.chapters))) if chapter is None else chapter
        path, whole = voice.chapters[which]
        return read(path, length, float(rng.uniform(0, whole - length - 0.1)))

    own, another = load_excerpt(reader, seconds), load_excerpt(reader, seconds)
    half = own.size // 2
    yield Enrolment("one voice", own)
    yield Enrolment("one voice", another)
    yield Enrolment("one, through a telephone's band", telephone(own, RATE))
    yield Enrolment("one, in noise 20 dB below", noisy(own, RATE))
    yield Enrolment(
        "one, in noise 10 dB below",
        own + 10**-0.5 * measure_level(own) * create_noise(own.size, rng),
    )
    yield Enrolment(
        "one, quieter by 12 dB from the middle on", np.concatenate([own[:half], own[half:] / 4])
    )
    yield Enrolment(
        "one, by telephone from the middle on",
        np.concatenate([own[:half], telephone(own[half:], RATE)]),
    )
    if len(reader.chapters) > 1:
        halves = [load_excerpt(reader, seconds / 2, chapter) for chapter in (0, 1)]
        yield Enrolment("one, two recordings joined", np.concatenate(halves))
    for sexes in ("one sex", "two sexes"):
        pool = [
            voice
            for voice in voices
            if voice is not reader and (voice.sex == reader.sex) == (sexes == "one sex")
        ]
        other = load_excerpt(pool[rng.integers(len(pool))], seconds)
        other = other * (measure_level(own) / measure_level(other))
        late = round(LATE * own.size)
        yield Enrolment(f"two in turn, {sexes}", np.concatenate([own[:late], other[late:]]))
        turns = alternate(own, other, rng)
        yield Enrolment(f"two by turns of {TURNS[0]:g} to {TURNS[1]:g} s, {sexes}", turns)
        yield Enrolment(f"two at once, equally loud, {sexes}", own + other)
        yield Enrolment(f"two at once, one 6 dB below, {sexes}", own + other / 2)
    music = make_music(own.size, rng)
    music = music * (measure_level(own) / measure_level(music))
    for decibels in (0, 6, 12):
        yield Enrolment(f"music {decibels} dB below", own + 10 ** (-decibels / 20) * music)


def measure_level(sound: FloatArray) -> float:
    return float(np.sqrt(np.mean(sound**2))) + 1e-9


def create_noise(count: int, rng: np.random.Generator) -> FloatArray:
    return rng.standard_normal(count)


def alternate(one: FloatArray, other: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Alternate between two voices in turns of random length."""
    sound, at, is_other = one.copy(), 0, False
    while at < sound.size:
        end = at + round(float(rng.uniform(*TURNS)) * RATE)
        if is_other:
            sound[at:end] = other[at:end]
        at, is_other = end, not is_other
    return sound


def make_music(count: int, rng: np.random.Generator) -> FloatArray:
    """Generate music in a random key and tempo: four chords, a melody, a bass and a drum loop."""
    beat = RATE * 60 // int(rng.integers(80, 140))
    root = 110 * 2 ** (rng.integers(12) / 12)
    sound = np.zeros(count)
    chords = rng.permutation([(0, 4, 7), (9, 12, 16), (5, 9, 12), (7, 11, 14)])
    rolloff = rng.uniform(0.7, 1.6)
    for bar, at in enumerate(range(0, count, 4 * beat)):
        for step in chords[bar % 4]:
            add_tone(sound, at, 4 * beat, 2 * root * 2 ** (step / 12), 0.3, 0.6, rolloff)
    at, scale = 0, (0, 2, 4, 5, 7, 9, 11, 12)
    while at < count:
        length = int(beat * rng.choice([0.5, 0.5, 1, 1, 2]))
        add_tone(sound, at, length, 4 * root * 2 ** (rng.choice(scale) / 12), 0.35, 1.5, 1.2)
        at += length
    for number, at in enumerate(range(0, count, beat)):
        add_tone(sound, at, beat, root / 2, 0.5, 3.0, 3.0)
        t = np.arange(min(beat, count - at)) / RATE
        kick = np.sin(2 * np.pi * (40 * t - 4 * np.exp(-30 * t))) * np.exp(-12 * t)
        snare = 0.5 * rng.standard_normal(t.size) * np.exp(-18 * t)
        sound[at : at + t.size] += snare if number % 2 else 0.9 * kick
    return sound


def add_tone(
    sound: FloatArray,
    at: int,
    length: int,
    hertz: float,
    amplitude: float,
    decay: float,
    rolloff: float,
) -> None:
    """Add a decaying tone with partials, in place."""
    t = np.arange(min(length, sound.size - at)) / RATE
    partials = range(1, min(12, int(7600 / hertz) + 1))
    wave = sum(np.sin(2 * np.pi * hertz * k * t) / k**rolloff for k in partials)
    sound[at : at + t.size] += amplitude * np.minimum(40 * t, 1) * np.exp(-decay * t) * wave


def measure_enrolments(
    voices: Sequence[Voice], seconds: float, number: int
) -> list[tuple[str, Unity | None]]:
    """Measure each enrolment of a reader."""
    return [
        (kind, measure_unity(embed_windows(sound)))
        for kind, sound in make_enrolments(voices, seconds, number)
    ]


def embed_windows(sound: FloatArray) -> FloatArray:
    """Return the window embeddings that a live enrolment keeps."""
    enrolment = LiveEnrolment(make(["voice"]))
    enrolment.push(Block(np.asarray(sound, np.float32)[:, None], RATE))
    return np.asarray(enrolment.end("take").tracks["voice"].values)
