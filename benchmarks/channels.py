"""Detection of stereo channels that should not be mixed, on stereo made from readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.signal import fftconvolve

from benchmarks.page import Page, benchmark
from benchmarks.readers import chapters, last_chapters, read
from monitor.features.extractor import Mixer
from monitor.types import FloatArray

RATE = 16_000


@dataclass(frozen=True)
class ReaderPair:
    """Two readers, and a random generator."""

    a: FloatArray
    b: FloatArray
    g: np.random.Generator


StereoMaker = Callable[[ReaderPair], FloatArray]


def to_stereo(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.stack([left, right], axis=1)


def pan(sound: FloatArray, left: float, right: float) -> FloatArray:
    return to_stereo(sound * left, sound * right)


def alternate(pair: ReaderPair) -> FloatArray:
    """Return stereo of two people who take turns of 2 to 8 s, each on their own channel."""
    stereo = np.zeros((pair.a.size, 2))
    at, who = 0, 0
    while at < pair.a.size:
        length = int(RATE * pair.g.uniform(2.0, 8.0))
        stereo[at : at + length, who] = (pair.a, pair.b)[who][at : at + length]
        at, who = at + length, 1 - who
    return stereo


def delay(sound: FloatArray, seconds: float) -> FloatArray:
    """Delay a signal without any change of its length."""
    return np.concatenate((np.zeros(round(seconds * RATE)), sound))[: sound.size]


def add_reverberation(
    pair: ReaderPair, sound: FloatArray, seconds: float, near: float = 1.0
) -> FloatArray:
    """Add reverberation: convolve with a direct path and decaying noise."""
    size = round(seconds * RATE)
    response = pair.g.standard_normal(size) * 10 ** (-3 * np.arange(size) / size)
    response *= 0.7 / np.sqrt(np.sum(response**2))
    response[0] += near
    return np.asarray(fftconvolve(sound, response))[: sound.size]


def create_noise(pair: ReaderPair, decibels: float) -> FloatArray:
    """Return noise this many decibels below the first reader."""
    return np.asarray(pair.g.standard_normal(pair.a.size) * pair.a.std() * 10 ** (-decibels / 20))


def panning_angles(sound: FloatArray) -> FloatArray:
    """Return panning angles that oscillate with a period of 8 s."""
    return np.pi / 4 + 0.5 * np.sin(2 * np.pi * np.arange(sound.size) / (8 * RATE))


ORDINARY: dict[str, StereoMaker] = {
    "the same on both": lambda t: pan(t.a, 1, 1),
    "panned by 12 dB": lambda t: pan(t.a, 1, 0.25),
    "one channel silent": lambda t: pan(t.a, 1, 0),
    "noise alone on the other": lambda t: to_stereo(t.a, create_noise(t, 20)),
    "unlike noise 10 dB below": lambda t: to_stereo(
        t.a + create_noise(t, 10), t.a + create_noise(t, 10)
    ),
    "one clean, one in noise (5 dB)": lambda t: to_stereo(t.a, t.a + create_noise(t, 5)),
    "one 20 ms later": lambda t: to_stereo(t.a, delay(t.a, 0.02)),
    "one 250 ms later": lambda t: to_stereo(t.a, delay(t.a, 0.25)),
    "two microphones in a room": lambda t: to_stereo(
        add_reverberation(t, t.a, 0.5), add_reverberation(t, t.a, 0.5)
    ),
    "near and far microphone": lambda t: to_stereo(
        t.a, add_reverberation(t, delay(t.a, 0.01), 0.8, 0.1)
    ),
    "two people, two room microphones": lambda t: alternate(t) @ np.array([[1.0, 0.5], [0.5, 1.0]]),
    "slow autopan": lambda t: to_stereo(
        t.a * np.cos(panning_angles(t.a)), t.a * np.sin(panning_angles(t.a))
    ),
    "different equalisers": lambda t: to_stereo(
        np.diff(t.a, prepend=0), np.convolve(t.a, np.ones(8) / 8)[: t.a.size]
    ),
}
CALL, CANCEL = "channels differ", "channels cancel"
NOT_TO_BE_MIXED: dict[str, tuple[str, StereoMaker]] = {
    "call of two, turns of 2 to 8 s": (CALL, lambda t: alternate(t)),
    "the same, line noise": (
        CALL,
        lambda t: alternate(t) + 1e-3 * t.g.standard_normal((t.a.size, 2)),
    ),
    "the same, echo 20 dB below": (
        CALL,
        lambda t: alternate(t) @ np.array([[1.0, 0.1], [0.1, 1.0]]),
    ),
    "the same, echo 12 dB below": (
        CALL,
        lambda t: alternate(t) @ np.array([[1.0, 0.25], [0.25, 1.0]]),
    ),
    "two at the same time": (CALL, lambda t: to_stereo(t.a, t.b)),
    "one 12 dB fainter": (CALL, lambda t: alternate(t) * (1.0, 0.25)),
    "opposite phase": (CANCEL, lambda t: pan(t.a, 1, -1)),
    "opposite phase, 2 dB apart": (CANCEL, lambda t: pan(t.a, 1, -0.8)),
}


@benchmark()
def channels(page: Page, speech: Path, *, readers: int = 60, seconds: float = 60.0) -> None:
    """Are channels that should not be mixed detected, without false notices on ordinary stereo?"""
    rows = [row for row in chapters(speech) if float(row["seconds"]) > seconds + 15]
    paths = [speech / row["path"] for row in last_chapters(rows)[: readers + 1]]
    found: dict[str, list[dict[str, float]]] = {n: [] for n in (*ORDINARY, *NOT_TO_BE_MIXED)}
    for number, (first, second) in enumerate(pairwise(paths)):
        a, b = (read(path, seconds).astype(float) for path in (first, second))
        for name in found:
            mix = ORDINARY[name] if name in ORDINARY else NOT_TO_BE_MIXED[name][1]
            mixer = Mixer(RATE, 0, 0)
            mixer.mix(mix(ReaderPair(a, b, np.random.default_rng(number))).astype(np.float32))
            notices = {notice.kind: tick / 100 for tick, notice in mixer.pop_notices()}
            found[name].append(notices)

    def create_notice_rows() -> Iterator[list[str]]:
        for name, (kind, _) in NOT_TO_BE_MIXED.items():
            when = [each[kind] for each in found[name] if kind in each]
            after = f"{np.median(when):.0f} s ({max(when):.0f} s)" if when else ""
            yield [name, f"{len(when)} of {len(found[name])}", after]

    false_notice_rows = ([n, f"{sum(map(bool, found[n]))} of {len(found[n])}"] for n in ORDINARY)
    page.table("stereo that may be mixed | noticed, falsely", false_notice_rows)
    page.table("stereo that may not | noticed | after, median (worst)", create_notice_rows())
