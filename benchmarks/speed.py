"""Speed of features and public peers on the same audio, in turns in one process on one thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import soxr

from benchmarks.page import Page, benchmark
from benchmarks.readers import read
from benchmarks.timing import format_number, format_speedup, time_in_turns
from monitor.features import f0 as pitch
from monitor.features.phones import Phones
from monitor.networks.layers import HOP, RATE
from monitor.networks.phones import UnitNetwork, shipped_recogniser, shipped_units
from monitor.types import FloatArray, IntArray

WINDOW_SECONDS = 3


def read_speech(speech: Path, corpus: str, minutes: float, each: float) -> FloatArray:
    """Join at most ``each`` seconds per recording to this many minutes; repeat them if too few."""
    paths = sorted(speech.glob(f"{corpus}/*/*.opus"))
    parts, seconds_left = list[FloatArray](), 60 * minutes
    while seconds_left > 0:
        parts.append(read(paths[len(parts) % len(paths)], min(each, seconds_left)))
        seconds_left -= len(parts[-1]) / RATE
    return np.concatenate(parts)


def split_audio(audio: FloatArray, seconds: float) -> list[FloatArray]:
    size = round(seconds * RATE)
    return np.split(audio, range(size, audio.size, size))


@benchmark("speed")
def f0(page: Page, speech: Path, *, minutes: float = 60.0, runs: int = 5) -> None:
    """How fast is pitch compared with torch-yin, and how many lags are equal (extra `peers`)?"""
    import torch
    import torchyin

    torch.set_num_threads(1)
    audio = soxr.resample(read_speech(speech, "train-clean-5", minutes, 60.0), RATE, pitch.RATE)

    def ours() -> IntArray:
        track = pitch.F0().process(audio)
        lags = np.zeros((audio.size - 246) // 80 + 1, np.intp)
        lags[track.ticks - 4] = track.values + pitch.LOWEST_LAG
        return lags

    def theirs() -> FloatArray:
        options = {"pitch_min": 65, "pitch_max": 450, "frame_stride": 0.01, "threshold": 0.1}
        return np.asarray(torchyin.estimate(torch.from_numpy(audio), pitch.RATE, **options).numpy())

    processor_seconds = time_in_turns(runs, {"ours": ours, "theirs": theirs})
    hertz = theirs()
    same = np.mean(ours() == np.where(hertz > 0, np.rint(pitch.RATE / np.maximum(hertz, 1)), 0))
    speeds = [
        format_number(60 * minutes / median(processor_seconds[name])) for name in ("ours", "theirs")
    ]
    equal = "every lag equal" if same == 1 else f"{100 * same:.2f} % of lags equal"
    page.figure(
        f"f0 against torch-yin, one thread, {minutes:g} min of real readers",
        f"{' against '.join(speeds)} times real time: "
        f"{format_speedup(processor_seconds['theirs'], processor_seconds['ours'])}; {equal}",
    )


@benchmark("speed")
def phones(page: Page, speech: Path, *, minutes: float = 2.0, runs: int = 3) -> None:
    """How fast are phones compared with pocketsphinx, their predecessor (extra `peers`)?"""
    from recipes.phones.sphinx import Search

    audio, search = read_speech(speech, "dev-clean", minutes, 30.0), Search()

    def ours() -> None:
        feature = Phones()
        for block in split_audio(audio, 10.0):
            feature.process(block)
        feature.flush()

    def theirs() -> None:
        for stretch in split_audio(audio, 8.0):
            search.tokens(stretch)

    processor_seconds = time_in_turns(runs, {"ours": ours, "theirs": theirs})
    speeds = [
        format_number(60 * minutes / median(processor_seconds[name])) for name in ("ours", "theirs")
    ]
    page.figure(
        "phones beside pocketsphinx, which it took the place of, one thread",
        f"{' against '.join(speeds)} times real time: "
        f"{format_speedup(processor_seconds['theirs'], processor_seconds['ours'])}",
    )


@benchmark()
def phonenet(page: Page, *, seconds: float = 10.0) -> None:
    """What is the latency of the unit network and of the phone recogniser?"""
    noise = np.random.default_rng(0).standard_normal(round(seconds) * RATE)
    sound = noise.astype(np.float32) / 10
    unit, phone = shipped_units().stream(), shipped_recogniser().stream()
    known = {"units": lambda x: len(unit.push(x)), "recogniser": lambda x: len(phone.push(x))}
    page.table(
        "what | known after its end, s: median, at most",
        ([name, measure_delay(push, sound)] for name, push in known.items()),
    )


def measure_delay(push: Callable[[FloatArray], int], sound: FloatArray) -> str:
    """Return the audio seconds from a frame's end to its output, with audio in blocks of 10 ms."""
    known, late = 0, list[float]()
    for given in range(HOP, len(sound) + 1, HOP):
        found = push(sound[given - HOP : given])
        ends = (known + 1 + np.arange(found)) * UnitNetwork.frame_seconds
        late.extend((given / RATE - ends).tolist())
        known += found
    return f"{median(late):.2f}, {max(late):.2f}"
