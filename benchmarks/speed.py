"""Speed of parts beside public peers: the same audio, one thread, taking turns in one process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import soxr

from benchmarks.page import Page, benchmark
from benchmarks.readers import read
from benchmarks.timing import in_turns, ratio, told
from monitor.features import f0 as pitch
from monitor.features.phones import Phones
from monitor.networks.layers import HOP, RATE, log_mel
from monitor.networks.phones import (
    PhoneStream,
    UnitNetwork,
    UnitStream,
    shipped_recogniser,
    shipped_units,
)
from monitor.networks.voice import VoiceNetwork, mel_decibels, shipped
from monitor.types import FloatArray, IntArray

WINDOW_SECONDS = 3


def readers(speech: Path, corpus: str, minutes: float, each: float) -> FloatArray:
    """So much of one reader after the other, at 16 kHz; in a circle where they are too few."""
    paths, parts, left = sorted(speech.glob(f"{corpus}/*/*.opus")), list[FloatArray](), 60 * minutes
    while left > 0:
        parts.append(read(paths[len(parts) % len(paths)], min(each, left)))
        left -= len(parts[-1]) / RATE
    return np.concatenate(parts)


def pieces(audio: FloatArray, seconds: float) -> list[FloatArray]:
    size = round(seconds * RATE)
    return np.split(audio, range(size, audio.size, size))


@benchmark("speed")
def f0(page: Page, speech: Path, *, minutes: float = 60.0, runs: int = 5) -> None:
    """Pitch beside torch-yin, and the share of frames with the same lag (extra `peers`)."""
    import torch
    import torchyin

    torch.set_num_threads(1)
    audio = soxr.resample(readers(speech, "train-clean-5", minutes, 60.0), RATE, pitch.RATE)

    def ours() -> IntArray:
        track = pitch.F0().process(audio)
        lags = np.zeros((audio.size - 246) // 80 + 1, np.intp)
        lags[track.ticks - 4] = track.values + pitch.LOWEST_LAG
        return lags

    def theirs() -> FloatArray:
        how = {"pitch_min": 65, "pitch_max": 450, "frame_stride": 0.01, "threshold": 0.1}
        return np.asarray(torchyin.estimate(torch.from_numpy(audio), pitch.RATE, **how).numpy())

    took = in_turns(runs, {"ours": ours, "theirs": theirs})
    hertz = theirs()
    same = np.mean(ours() == np.where(hertz > 0, np.rint(pitch.RATE / np.maximum(hertz, 1)), 0))
    speeds = [told(60 * minutes / median(took[name])) for name in ("ours", "theirs")]
    equal = "every lag equal" if same == 1 else f"{100 * same:.2f} % of lags equal"
    page.figure(
        f"f0 against torch-yin, one thread, {minutes:g} min of real readers",
        f"{' against '.join(speeds)} times real time: "
        f"{ratio(took['theirs'], took['ours'])}; {equal}",
    )


@benchmark("speed")
def phones(page: Page, speech: Path, *, minutes: float = 2.0, runs: int = 3) -> None:
    """Phones beside pocketsphinx, which they took the place of (extra `peers`)."""
    from recipes.phones.sphinx import Search

    audio, search = readers(speech, "dev-clean", minutes, 30.0), Search()

    def ours() -> None:
        feature = Phones()
        for block in pieces(audio, 10.0):
            feature.process(block)
        feature.flush()

    def theirs() -> None:
        for stretch in pieces(audio, 8.0):
            search.tokens(stretch)

    took = in_turns(runs, {"ours": ours, "theirs": theirs})
    speeds = [told(60 * minutes / median(took[name])) for name in ("ours", "theirs")]
    page.figure(
        "phones beside pocketsphinx, which it took the place of, one thread",
        f"{' against '.join(speeds)} times real time: {ratio(took['theirs'], took['ours'])}",
    )


@benchmark()
def phonenet(page: Page, *, minutes: float = 2.0, runs: int = 5) -> None:
    """How fast are the phone networks on one thread, and when are units and phones known?"""
    count = max(1, round(minutes * 60))
    sound = np.random.default_rng(0).standard_normal(count * RATE).astype(np.float32) / 10

    def through(stream: PhoneStream | UnitStream, samples: int = RATE) -> None:
        for part in sound.reshape(-1, samples):
            stream.push(part)
        stream.flush()

    works: dict[str, Callable[[], object]] = {
        "units": lambda: through(shipped_units().stream()),
        "units, 0.1 s at a time": lambda: through(shipped_units().stream(), RATE // 10),
        "recogniser": lambda: through(shipped_recogniser().stream()),
        "log mel bands alone": lambda: [log_mel(part) for part in sound.reshape(-1, RATE)],
    }
    unit, phone = shipped_units().stream(), shipped_recogniser().stream()
    late = {
        "units": lateness(lambda x: len(unit.push(x)), sound[: 10 * RATE]),
        "recogniser": lateness(lambda x: len(phone.push(x)), sound[: 10 * RATE]),
    }
    page.table(
        "what | times real time | known after its end, s: median, at most",
        (
            [name, f"{count / median(took):.0f}", late.get(name, "")]
            for name, took in in_turns(runs, works).items()
        ),
    )


def lateness(push: Callable[[FloatArray], int], sound: FloatArray) -> str:
    """Audio seconds from a frame's end until it is known, pushed 10 ms at a time."""
    known, late = 0, list[float]()
    for given in range(HOP, len(sound) + 1, HOP):
        found = push(sound[given - HOP : given])
        ends = (known + 1 + np.arange(found)) * UnitNetwork.frame_seconds
        late.extend((given / RATE - ends).tolist())
        known += found
    return f"{median(late):.2f}, {max(late):.2f}"


@benchmark()
def voice(page: Page, *, minutes: float = 2.0, runs: int = 5) -> None:
    """How fast is the voice network on one thread, beside what it was compressed from?

    Windows of 3 s of noise, one at a time; ECAPA-TDNN by the same code on a few of the same
    windows where MONITOR_ECAPA says where it is.
    """
    count = max(1, round(minutes * 60 / WINDOW_SECONDS))
    noise = np.random.default_rng(0).standard_normal((count, WINDOW_SECONDS * RATE))
    windows, network = noise.astype(np.float32) / 10, shipped()
    heard = {"the network": count, "its mel bands alone": count}
    works: dict[str, Callable[[], object]] = {
        "the network": lambda: network.embed(windows),
        "its mel bands alone": lambda: [mel_decibels(window) for window in windows],
    }
    if folder := os.environ.get("MONITOR_ECAPA"):
        from recipes.voice.teacher import read_teacher

        teacher, few = VoiceNetwork(read_teacher(Path(folder))), windows[:4]
        works["its teacher"], heard["its teacher"] = lambda: teacher.embed(few), len(few)
    page.table(
        "what | times real time",
        (
            [name, f"{heard[name] * WINDOW_SECONDS / median(took):.0f}"]
            for name, took in in_turns(runs, works).items()
        ),
        under="Speed",
    )
