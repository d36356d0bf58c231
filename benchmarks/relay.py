"""Virtual microphone with a budget: bits at the other side, processor time and delay."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import soundfile
import soxr

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, read
from monitor import Monitor, enrol
from monitor.anonymisers.recording import ProtectedBlocks
from monitor.features.extractor import VoiceActivity
from monitor.networks.layers import RATE
from monitor.population.population import Population
from monitor.relay import CLEAR, DELAY_SECONDS, Gate, RelayPath, RelaySettings
from monitor.relay.gate import MARGIN_BITS
from monitor.types import TICKS_PER_SECOND, Block, FloatArray, IntArray
from recipes.sounds import coded
from recipes.voice.conditions import telephone
from tests.virtual_microphone import DEVICE, VirtualMicrophone

DEVICE_RATE = 48_000
LEAD_SECONDS = 2.5
"""Maximum silence before the sound in the other side's recordings."""
LEAST_PAUSE = 10  # ticks
ENROLLED_SECONDS = 30.0


@benchmark()
def relay(
    page: Page,
    speech: Path,
    *,
    people: int = 48,
    skip: int = 0,
    budgets: tuple[float, ...] = (3, 6, 9, 12),
    starts: int = 10,
    cuts: int = 5,
    seconds: float = 8.0,
    lines: tuple[str, ...] = ("none",),
    rate: int = RATE,
) -> None:
    """Does any part of the sound that a gate lets out disclose more than the budget?

    A person is a recording, or a folder of recordings, and is enrolled beside the shipped readers
    from the first 30 s. The next --seconds are the person's speech, once alone and once in turns
    with the previous person, into a device of this rate. The sound let out is measured from its
    beginning, from random starts, from all pauses, and as random parts, after silence of random
    length. Each of these recordings passes through each line (none, opus or telephone).
    """
    talks, enrolled = read_talks(speech, people, skip, seconds)
    population = Population.reference().joined(enrolled)
    step = RelaySettings(max(budgets), delay_seconds=DELAY_SECONDS).step_seconds
    voices = ("one", "two in turns")
    sent: dict[tuple[float, str], list[float]] = {(b, v): [] for b in budgets for v in voices}
    excesses: dict[tuple[float, str, str], list[float]] = {
        (*key, line): [] for key in sent for line in lines
    }
    processor_seconds = seconds_processed = 0.0
    for index, name in enumerate(talks):
        monitor = Monitor(population, watch=name, on_change="note")
        for voice in voices:
            previous = talks[list(talks)[index - 1]]
            sound = talks[name] if voice == "one" else alternate(previous, talks[name])
            sound = np.asarray(soxr.resample(sound, RATE, rate))
            began = time.process_time()
            path = RelayPath(CLEAR, [monitor.fresh(step_seconds=step)])
            figures = measure_gate(path, sound, step, rate, limit=max(budgets))
            processor_seconds += time.process_time() - began
            seconds_processed += len(figures) * step
            for budget in budgets:
                count = sum(figure <= budget - MARGIN_BITS for figure in figures)
                sent[budget, voice].append(count * step)
                part = sound[: round(count * step * rate)]
                generator = np.random.default_rng([int(budget), skip + index])
                for recording in create_recordings(part, rate, starts, cuts, generator):
                    for line in lines:
                        peak_bits = measure_peak(monitor.fresh(), *LINES[line](recording, rate))
                        excesses[budget, voice, line].append(peak_bits - budget)
        worst_excess = max(max(each, default=0.0) for each in excesses.values())
        over_count = sum(np.sum(np.array(each) > 0) for each in excesses.values())
        page.note(
            f"{index + 1} of {len(talks)}: {over_count} over the budget, "
            f"by at most {worst_excess:.1f}"
        )
    page.table(
        "budget, bits | voices | line | people | sound let out | recordings over the budget | "
        "by at most, bits",
        (
            [
                f"{budget:g}",
                voice,
                line,
                f"{len(talks)}",
                f"{np.median(sent[budget, voice]):.1f} s ({min(sent[budget, voice]):.1f} to "
                f"{max(sent[budget, voice]):.1f})",
                f"{np.sum(np.array(excess) > 0)} of {len(excess)}",
                f"{max(0.0, *excess):.1f}",
            ]
            for (budget, voice, line), excess in excesses.items()
        ),
        keys=3,
    )
    page.note(
        f"{processor_seconds / seconds_processed:.2f} s of processor time per second of sound"
    )


def read_talks(
    speech: Path, people: int, skip: int, seconds: float
) -> tuple[dict[str, FloatArray], Population]:
    """Return each person's speech after the enrolled part, and the population of these people."""
    talks: dict[str, FloatArray] = {}
    with TemporaryDirectory() as folder:
        for path in sorted(speech.iterdir()):
            clips = sorted(path.iterdir()) if path.is_dir() else [path]
            if path.suffix not in ("", ".opus") or len(talks) == skip + people:
                continue
            sound = np.concatenate([read(clip) for clip in clips])
            first, last = (round(each * RATE) for each in (ENROLLED_SECONDS, seconds))
            if len(sound) >= first + last:
                talks[path.stem] = sound[first : first + last]
                if len(talks) > skip:
                    Path(folder, path.stem).mkdir()
                    soundfile.write(Path(folder, path.stem, "a.wav"), sound[:first], RATE)
        enrolled = enrol(folder, features=FEATURES).population
    return {name: sound for name, sound in talks.items() if name in enrolled.names}, enrolled


def alternate(first: FloatArray, second: FloatArray) -> FloatArray:
    """Alternate two voices: 3 s of the first, 1.5 s of the second, and so on."""
    long, short = round(3 * RATE), round(1.5 * RATE)
    turns = [
        turn
        for k in range(len(first) // long)
        for turn in (first[k * long : (k + 1) * long], second[k * short : (k + 1) * short])
    ]
    return np.concatenate(turns)


def measure_gate(
    path: RelayPath,
    sound: FloatArray,
    step_seconds: float,
    rate: int = RATE,
    *,
    limit: float = np.inf,
) -> list[float]:
    """Return a gate's bits after each step, until they exceed ``limit``; the gate never mutes."""
    gate = Gate(1e6, [path], step_seconds)
    size, figures = round(step_seconds * rate), []
    for start in range(0, len(sound) - size + 1, size):
        gate.take(Block(np.asarray(sound[start : start + size], np.float32), rate))
        figures.append(gate.bits)
        if gate.bits > limit:
            break
    return figures


def create_recordings(
    sound: FloatArray, rate: int, starts: int, cuts: int, generator: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield 16-bit recordings of a sound at the other side.

    They begin at its start, at random starts and in its pauses, or are random parts.
    """
    last = max(len(sound) - rate // 4, 1)
    random_starts = generator.integers(0, last, starts - 1).tolist()
    starts_of_recordings = 0, *random_starts, *find_pauses(sound, rate)
    parts = [(start, len(sound)) for start in starts_of_recordings]
    for start in generator.integers(0, last, cuts).tolist():
        parts.append((start, int(generator.integers(start, len(sound) + 1))))
    for begin, end in parts if len(sound) else ():
        silence = np.zeros(generator.integers(0, round(LEAD_SECONDS * rate)))
        whole = np.concatenate([silence, sound[begin:end], np.zeros(rate)])
        yield np.asarray(np.round(whole * 32767) / 32767, np.float32)


def find_pauses(sound: FloatArray, rate: int) -> list[int]:
    """Return the sample in the middle of each pause of at least 0.1 s between words."""
    is_speech = VoiceActivity().process(np.asarray(soxr.resample(sound, rate, RATE), np.float32))
    edges = np.flatnonzero(np.diff(is_speech.astype(int))) + 1
    pairs = [
        (b, e) for b, e in pairwise(edges.tolist()) if not is_speech[b] and e - b >= LEAST_PAUSE
    ]
    return [(begin + end) * rate // (2 * TICKS_PER_SECOND) for begin, end in pairs]


def _encode_opus(sound: FloatArray, rate: int) -> tuple[FloatArray, int]:
    """Encode and decode a sound with Opus at 24 kb/s, as in a meeting."""
    return coded(soxr.resample(sound, rate, RATE), "opus", 24).astype(np.float32), RATE


def _encode_telephone(sound: FloatArray, rate: int) -> tuple[FloatArray, int]:
    return telephone(np.asarray(soxr.resample(sound, rate, RATE), np.float32)), RATE


LINES: dict[str, Callable[[FloatArray, int], tuple[FloatArray, int]]] = {
    "none": lambda sound, rate: (sound, rate),
    "opus": _encode_opus,
    "telephone": _encode_telephone,
}
"""Transmission channels between the gate and the other side."""


def measure_peak(monitor: Monitor, recording: FloatArray, rate: int = RATE) -> float:
    """Return the maximum bits of a recording's readings."""
    readings = monitor.stream(recording, rate=rate)
    return max((reading.bits or 0.0 for reading in readings), default=0.0)


# --- Delay to the other side, through two virtual devices.

MODULES = (
    "module-null-sink sink_name=all rate=48000 channels=4 "
    "channel_map=front-left,front-right,rear-left,rear-right",
    "module-remap-sink sink_name=voice master=all channels=2 remix=no "
    "master_channel_map=front-left,front-right channel_map=front-left,front-right",
    "module-remap-sink sink_name=meeting master=all channels=2 remix=no "
    "master_channel_map=rear-left,rear-right channel_map=front-left,front-right",
    "module-remap-source source_name=ears master=all.monitor channels=2 remix=no "
    "master_channel_map=front-left,front-right channel_map=front-left,front-right",
)
"""One device of four channels, so that one clock records input and output."""
OPTIONS = ("", "--watch 1462 --budget 8 --delay 0", "--watch 1462 --budget 8")
EVERY_SECONDS, BURST_SECONDS = 0.5, 0.01


@benchmark("relay")
def relay_cost(
    page: Page, speech: Path, *, people: int = 4, skip: int = 66, then: str = "mcadams:random"
) -> None:
    """How much processor time does an open gate need, alone and with an anonymiser?"""
    talks, enrolled = read_talks(speech, people, skip, 8.0)
    population = Population.reference().joined(enrolled)
    step = RelaySettings(1, delay_seconds=DELAY_SECONDS).step_seconds
    for name, sound in talks.items():
        fresh = partial(Monitor(population, watch=name, on_change="note").fresh, step_seconds=step)
        protect = ProtectedBlocks(then, ("live",), seed=1)
        paths = RelayPath(CLEAR, [fresh()]), RelayPath(then, [fresh()], [fresh()], protect)
        costs = []
        for path in paths:
            began = time.process_time()
            measure_gate(path, sound, step)
            costs.append((time.process_time() - began) * RATE / len(sound))
        clear, protected = (f"{seconds:.2f} s" for seconds in costs)
        page.note(f"{name}: {clear} of processor time per second of sound; with {then} {protected}")


@benchmark("relay")
def relay_delay(page: Page, *, seconds: float = 20.0) -> None:
    """How late do bursts of noise reach the other side, and are any missing?"""
    rows = ((options or "none", *measure_delays(options.split(), seconds)) for options in OPTIONS)
    page.table("options of listen --through | bursts in | bursts out | delay, ms", rows)


def measure_delays(options: Sequence[str], seconds: float) -> tuple[int, int, str]:
    """Return the bursts in and out of a monitor, and the delay: median, percentiles 5 and 95."""
    sound = np.zeros(round(seconds * DEVICE_RATE), np.float32)
    every, burst = round(EVERY_SECONDS * DEVICE_RATE), round(BURST_SECONDS * DEVICE_RATE)
    for at in np.cumsum(every + np.random.default_rng(0).integers(0, every // 2, 99)).tolist():
        if at < len(sound) - burst:
            sound[at : at + burst] = 0.2 * np.random.default_rng(at).standard_normal(burst)
    with TemporaryDirectory() as folder, VirtualMicrophone(Path(folder)) as microphone:
        for module in MODULES:
            microphone.control("load-module", *module.split())
        env = {**microphone.environment, "PULSE_SINK": "voice", "PULSE_SOURCE": "ears"}
        recorder = subprocess.Popen(
            ["parec", "-d", "all.monitor", "--file-format=wav", "--channels=4", "--no-remix",
             "--rate=48000", "--channel-map=front-left,front-right,rear-left,rear-right",
             f"{folder}/all.wav"], env=env,
        )  # fmt: skip
        listener = subprocess.Popen(
            [sys.executable, "-m", "monitor", "listen", "--device", DEVICE, "--through", "meeting",
             "--for", f"{seconds}", "--jsonl", f"{folder}/run.jsonl", *options],
            env=env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(seconds / 5)
        soundfile.write(f"{folder}/bursts.wav", sound, DEVICE_RATE)
        player = subprocess.Popen(["paplay", f"{folder}/bursts.wav"], env=env)
        listener.wait()
        player.kill()
        recorder.send_signal(signal.SIGINT)
        recorder.wait()
        recorded, _ = soundfile.read(f"{folder}/all.wav")
    sent, received = (find_bursts(recorded[:, channel]) for channel in (0, 2))
    # random gaps between bursts show which run of sent bursts was received
    shifts = [
        1000 * (received - sent[k : k + len(received)]) / DEVICE_RATE
        for k in range(len(sent) - len(received) + 1)
    ]
    delay_ms = min((fit for fit in shifts if fit.min() > 0), key=np.std)
    inside = sent[sent >= received[0] - round(delay_ms[0] * DEVICE_RATE / 1000)]
    low, middle, high = np.percentile(delay_ms, (5, 50, 95))
    return len(inside), len(received), f"{middle:.0f} ({low:.0f} to {high:.0f})"


def find_bursts(sound: FloatArray) -> IntArray:
    """Return the sample at which each burst begins."""
    loud = np.flatnonzero(np.abs(sound) > 0.03)
    return loud[np.diff(loud, prepend=-DEVICE_RATE) > DEVICE_RATE * EVERY_SECONDS / 5]
