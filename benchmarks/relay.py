"""A microphone with a budget: whether the other side stays under it, and what it costs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import soundfile
import soxr

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, read
from monitor import Monitor, enrol
from monitor.networks.layers import RATE
from monitor.population.population import Population
from monitor.relay import CLEAR, DELAY_SECONDS, Gate, RelaySettings, Way
from monitor.types import Block, FloatArray, IntArray
from tests.virtual_microphone import DEVICE, VirtualMicrophone

DEVICE_RATE = 48_000
LEADS = (0.5, 1.27, 1.62, 2.5)
"""Seconds of silence before the first word in the other side's recordings."""
ENROLLED_SECONDS = 30.0


@benchmark()
def relay(
    page: Page, nonnative: Path, *, people: int = 48, budgets: tuple[float, ...] = (3, 6, 9, 12)
) -> None:
    """Does the other side's recording, replayed, stay under the budget of a microphone?

    Each person is enrolled beside the shipped readers from the first 30 s of a recording, and
    speaks the rest until the gate closes. What went out is replayed as recordings that begin
    earlier.
    """
    paths, spent = sorted(nonnative.glob("*.opus"))[:people], list[tuple[float, float]]()
    with TemporaryDirectory() as folder:
        for path in paths:
            person = Path(folder, path.stem)
            person.mkdir()
            soundfile.write(person / "a.wav", read(path, ENROLLED_SECONDS), RATE)
        enrolled = enrol(folder, features=FEATURES).population
    population = Population.reference().joined(enrolled)
    readers = [
        (path.stem, soxr.resample(read(path, first=ENROLLED_SECONDS), RATE, DEVICE_RATE))
        for path in paths
        if path.stem in enrolled.names
    ]

    def rows() -> Iterator[list[str]]:
        for budget in budgets:
            out, most = [], []
            for name, sound in readers:
                monitor = Monitor(population, watch=name, on_change="note")
                sent = let_out(monitor, budget, sound, spent)
                out.append(sent)
                most += [peak(monitor.fresh(), replayed(sound[:sent], lead)) for lead in LEADS]
            over = np.array(most) - budget
            times = np.array(out) / DEVICE_RATE
            yield [
                f"{budget:g}",
                f"{len(readers)}",
                f"{np.median(times):.1f} s ({times.min():.1f} to {times.max():.1f})",
                f"{np.mean(most):.1f}",
                f"{np.sum(over > 0)} of {len(over)}",
                f"{max(over.max(), 0.0):.1f}",
            ]

    page.table(
        "budget, bits | readers | sound let out | most that it reads, on average "
        "| recordings over the budget | by at most, bits",
        rows(),
    )
    heard, processor = np.sum(spent, axis=0)
    page.note(f"{processor / heard:.2f} s of processor a second of sound, beside the run")


def let_out(
    monitor: Monitor, budget: float, sound: FloatArray, spent: list[tuple[float, float]]
) -> int:
    """Samples that a gate lets out; adds seconds heard and of processor."""
    step = RelaySettings(budget, delay_seconds=DELAY_SECONDS).step_seconds
    gate = Gate(budget, [Way(CLEAR, [monitor.fresh(step_seconds=step)])], step)
    began, at = time.process_time(), 0
    for at in range(0, len(sound), DEVICE_RATE // 20):
        gate.take(Block(sound[at : at + DEVICE_RATE // 20], DEVICE_RATE))
        if gate.closings:
            break
    spent.append((at / DEVICE_RATE, time.process_time() - began))
    return round(gate.closings[0][0] * DEVICE_RATE) if gate.closings else len(sound)


def replayed(sound: FloatArray, lead: float) -> FloatArray:
    """The other side's recording: 16 bits, silence before and after."""
    silence = np.zeros(round(lead * DEVICE_RATE), np.float32)
    whole = np.concatenate([silence, sound, np.zeros(3 * DEVICE_RATE, np.float32)])
    return np.asarray(np.round(whole * 32767) / 32767, np.float32)


def peak(monitor: Monitor, recording: FloatArray) -> float:
    """The most bits that any second of a recording reads."""
    readings = monitor.stream(recording, rate=DEVICE_RATE)
    return max((reading.bits or 0.0 for reading in readings), default=0.0)


# --- How late the other side hears, through two virtual devices.

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
"""One device of four channels: what goes in and what comes out are recorded on one clock."""
OPTIONS = ("", "--watch 1462 --budget 8 --delay 0", "--watch 1462 --budget 8")
EVERY_SECONDS, BURST_SECONDS = 0.5, 0.01


@benchmark("relay")
def relay_delay(page: Page, *, seconds: float = 20.0) -> None:
    """How late does the other side hear, and is anything missing? Bursts of noise, in and out."""
    rows = ((options or "none", *delays(options.split(), seconds)) for options in OPTIONS)
    page.table("options of listen --through | bursts in | bursts out | delay, ms", rows)


def delays(options: Sequence[str], seconds: float) -> tuple[int, int, str]:
    """Bursts in and out of a monitor, and the median delay, with 5th and 95th percentile."""
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
        listening = subprocess.Popen(
            [sys.executable, "-m", "monitor", "listen", "--device", DEVICE, "--through", "meeting",
             "--for", f"{seconds}", "--jsonl", f"{folder}/run.jsonl", *options],
            env=env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(seconds / 5)
        soundfile.write(f"{folder}/bursts.wav", sound, DEVICE_RATE)
        player = subprocess.Popen(["paplay", f"{folder}/bursts.wav"], env=env)
        listening.wait()
        player.kill()
        recorder.send_signal(signal.SIGINT)
        recorder.wait()
        recorded, _ = soundfile.read(f"{folder}/all.wav")
    begun, came = (begins(recorded[:, channel]) for channel in (0, 2))
    # the spacing says which burst is which: those that came are a run of those that began
    fits = [1000 * (came - begun[k : k + len(came)]) / DEVICE_RATE
            for k in range(len(begun) - len(came) + 1)]  # fmt: skip
    late = min((fit for fit in fits if fit.min() > 0), key=np.std)
    inside = begun[begun >= came[0] - round(late[0] * DEVICE_RATE / 1000)]
    low, middle, high = np.percentile(late, (5, 50, 95))
    return len(inside), len(came), f"{middle:.0f} ({low:.0f} to {high:.0f})"


def begins(sound: FloatArray) -> IntArray:
    """Where bursts begin."""
    loud = np.flatnonzero(np.abs(sound) > 0.03)
    return loud[np.diff(loud, prepend=-DEVICE_RATE) > DEVICE_RATE * EVERY_SECONDS / 5]
