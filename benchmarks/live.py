"""Live runs: latency through a virtual microphone, and robustness if the page is attacked."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import psutil
import soxr

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, read
from benchmarks.timing import MONITOR, wait_for_exit
from monitor.events import Event, GapEvent, Reading
from monitor.networks import layers
from monitor.sources.base import WrappedLiveSource
from monitor.types import Block, FloatArray, Item
from tests.alerts.receiver import receiving
from tests.virtual_microphone import DEVICE, VirtualMicrophone, missing
from tests.web.crowd import crowd

RATE = 48_000
EVERY_SECONDS, MORE_SECONDS = 5.0, 0.1
BEEP_SECONDS = 0.05
BEEP_LEVEL, SPEECH_LEVEL = 0.9, 0.3
LOUD = 0.6
TOLERATED_SECONDS = 0.02
SPEED = 20.0
HEAD = b"GET /readings HTTP/1.1\r\nHost: localhost\r\n"
DESCRIPTORS = 1024


# ------------------------------------------------------------------------------------------ latency


@benchmark("speed")
def latency(
    page: Page, recording: Path,
    *, seconds: float = 60.0, features: tuple[str, ...] = FEATURES, speak: bool = False,
) -> None:  # fmt: skip
    """How long after a second is spoken does its reading arrive, through a virtual microphone?

    A separate process (--speak) plays the recording into a private PulseAudio, with beeps. The
    interval between beeps starts at five seconds and grows, so that it identifies both beeps.
    Requires the Debian packages libportaudio2 libasound2-plugins pulseaudio pulseaudio-utils.
    """
    if speak:
        play_recording(recording, seconds)
        return
    if missing_packages := missing():
        sys.exit(missing_packages)
    with tempfile.TemporaryDirectory(prefix="vm") as folder:  # a socket's path must be short
        virtual = VirtualMicrophone(Path(folder))
        os.environ.update(virtual.environment)  # before PortAudio lists devices
        with virtual:
            latencies, share, gaps = measure_latency(recording.resolve(), seconds, list(features))
    low, middle, high = np.quantile(latencies, [0.1, 0.5, 0.9])
    page.note(f"{len(latencies)} readings, {low:.3f} s to {max(latencies):.3f} s; gaps: {gaps}")
    page.figure(
        f"`monitor listen`, {', '.join(features)}: a reading after its second; share of a core",
        f"{middle:.3f} s (nine in ten within {high:.3f}); {100 * share:.0f} %",
    )


def beep_seconds(k: int) -> float:
    """Return the time of beep k, in seconds from the start of the recording."""
    return k * EVERY_SECONDS + k * (k - 1) / 2 * MORE_SECONDS


def play_recording(recording: Path, seconds: float) -> None:
    """Play a recording, and print the first sample and time of each block sent to the device."""
    import sounddevice

    speech = read(recording, seconds)
    speech *= SPEECH_LEVEL / np.abs(speech).max()
    sound = np.clip(soxr.resample(speech, layers.RATE, RATE), -SPEECH_LEVEL, SPEECH_LEVEL)
    beep = np.sin(2 * np.pi * 1000 * np.arange(round(BEEP_SECONDS * RATE)) / RATE)
    k = 0
    while (position := round(beep_seconds(k) * RATE)) < len(sound) - len(beep):
        sound[position : position + len(beep)] = BEEP_LEVEL * beep
        k += 1
    sent: list[tuple[int, float]] = []
    position = 0

    def fill_block(out: FloatArray, frames: int, _time: Any, _status: Any) -> None:
        nonlocal position
        sent.append((position, time.monotonic()))
        block = sound[position : position + frames]
        out[: len(block), 0], out[len(block) :, 0] = block, 0
        position += frames

    with sounddevice.OutputStream(
        samplerate=RATE,
        channels=1,
        device=DEVICE,
        dtype="float32",
        latency=0.1,
        callback=fill_block,
    ):
        while position < len(sound):
            time.sleep(0.1)
    print(json.dumps(sent))


class Tap(WrappedLiveSource):
    """Microphone that records the positions of beeps in its stream, in seconds."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self.beeps: list[float] = []
        self._seconds = 0.0

    def items(self) -> Iterator[Item]:
        """Yield the microphone's items."""
        for item in self.source:
            if isinstance(item, Block):
                samples = item.samples.reshape(len(item.samples), -1)[:, 0]
                for place in np.flatnonzero(np.abs(samples) > LOUD).tolist():
                    seconds = self._seconds + place / item.rate
                    if not self.beeps or seconds > self.beeps[-1] + EVERY_SECONDS / 2:
                        self.beeps.append(seconds)
                self._seconds += len(samples) / item.rate
            yield item


class Arrivals:
    """Sink that records the arrival time of each reading."""

    def __init__(self) -> None:
        self.readings: list[tuple[float, float]] = []
        self.gaps: list[str] = []

    def write(self, event: Event) -> None:
        """Record a reading or a gap."""
        if isinstance(event, Reading):
            self.readings.append((event.seconds, time.monotonic()))
        elif isinstance(event, GapEvent):
            self.gaps.append(event.detail)

    def close(self) -> None:
        """Do nothing: no resources are open."""


def measure_latency(
    recording: Path, seconds: float, features: list[str]
) -> tuple[list[float], float, list[str]]:
    """Return each reading's latency in seconds, the CPU use of the listener, and gaps."""
    from monitor import Monitor, Population, Run
    from monitor.sources import Microphone
    from monitor.sources.microphone import rescan

    rescan()  # the environment now names the virtual device
    monitor = Monitor(Population.reference(), features, watch="1272")
    arrivals, player_options = Arrivals(), ["--speak", "--seconds", str(seconds + 10)]
    player = subprocess.Popen(
        [sys.executable, "-m", "benchmarks", "latency", str(recording), *player_options],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        tap = Tap(Microphone(DEVICE, seconds=seconds + 5))
        with Run(tap, monitor, sinks=[arrivals]) as run:
            began = time.monotonic(), time.process_time()
            run.to_end()
            share = (time.process_time() - began[1]) / (time.monotonic() - began[0])
    finally:
        out, _ = player.communicate(timeout=60)
    samples, times = np.array(json.loads(out)).T
    latencies = []
    for beep, after in pairwise(tap.beeps):
        k = round((after - beep - EVERY_SECONDS) / MORE_SECONDS)
        apart = abs(after - beep - EVERY_SECONDS - k * MORE_SECONDS)
        for read_at, arrival in arrivals.readings if k >= 0 and apart <= TOLERATED_SECONDS else ():
            if beep < read_at <= after:
                sample = (beep_seconds(k) + read_at - beep) * RATE
                latencies.append(arrival - float(np.interp(sample, samples, times)))
    assert latencies, "no latencies: no beeps were recorded, or playback was interrupted"
    return latencies, share, arrivals.gaps


# -------------------------------------------------------------------------------------------- siege

Attack = Callable[[int, threading.Event], None]


def no_attack(_: int, over: threading.Event) -> None:
    over.wait()


def hold_silent_sockets(port: int, over: threading.Event) -> None:
    with crowd(port, 1200, b""):
        over.wait()


def send_half_requests(port: int, over: threading.Event) -> None:
    with crowd(port, 260, HEAD) as clients:
        while not over.wait(1.0):
            for one in clients:
                with contextlib.suppress(OSError):
                    one.send(b"x")


def never_read(port: int, over: threading.Event) -> None:
    while not over.is_set():
        with crowd(port, 240, HEAD + b"\r\n"):
            over.wait(5.0)


def send_large_headers(port: int, over: threading.Event) -> None:
    request = HEAD + b'Cookie: "' + b"\\" * 60_000 + b"\r\n\r\n"
    while not over.is_set():
        with crowd(port, 8, request):
            over.wait(0.05)


ATTACKS: dict[str, Attack] = {
    "none": no_attack,
    "1 200 silent sockets": hold_silent_sockets,
    "260 half requests, a byte a second each": send_half_requests,
    "240 clients that ask for all readings and never read": never_read,
    "requests with headers of 60 kB, without end": send_large_headers,
}


@benchmark()
def siege(page: Page, recording: Path) -> None:
    """What do attacks on the page cost a run, in connections, memory, lag and lost alerts?

    The run is `monitor replay --web 0` at twenty times real time, with at most 1 024 descriptors,
    ten alerts, a command and a webhook.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))

    def rows() -> Iterator[list[str]]:
        for name, attack in ATTACKS.items():
            with tempfile.TemporaryDirectory() as folder:
                yield [name, *run_under_attack(page, recording, attack, Path(folder))]

    page.table(
        "attack | connections held | memory, MB | lag of readings, s: median, largest "
        "| page answers after, s | alerts: raised, command, webhook",
        rows(),
    )


def run_under_attack(page: Page, recording: Path, attack: Attack, folder: Path) -> list[str]:
    """Return the figures of one run under one attack as text."""
    command_log, config = folder / "said.jsonl", folder / "config.toml"
    config.write_text("[replay]\nallow-overlap = true\n", encoding="utf-8")
    rules = [part for i in range(1, 11) for part in ("--alert", f"gain_bits>{i / 4} for 0 s")]
    with receiving() as receiver:
        process = subprocess.Popen(
            [*MONITOR, "--config", config, "replay", recording, "--features", "f0", "--jsonl", "-",
             "--speed", f"{SPEED:g}", "--web", "0", *rules, "--on-alert",
             f"cat >> '{command_log}'", "--webhook", receiver.url],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "no_proxy": "127.0.0.1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS,) * 2),
        )  # fmt: skip
        out, errors = process.stdout, process.stderr
        assert out is not None
        assert errors is not None
        line = next(line.decode() for line in errors if b"the page is at" in line)
        port = int(re.findall(r":(\d+)/", line)[0])
        reader = threading.Thread(target=errors.read)
        over = threading.Event()
        attacker = threading.Thread(target=attack, args=(port, over))
        for thread in (reader, attacker):
            thread.start()
        arrivals, connections, answer_seconds, alerts = list[float](), [0], list[float](), 0
        for text in out:
            record = json.loads(text)
            alerts += record["type"] == "alert"
            if record["type"] == "reading":
                arrivals.append(time.monotonic() - record["seconds"] / SPEED)
                if record["seconds"] % 20 == 0:
                    with contextlib.suppress(psutil.Error):
                        connections.append(len(psutil.Process(process.pid).net_connections("tcp")))
                    answer_seconds += time_answer(port)
        over.set()
        attacker.join()
        use = wait_for_exit(process)
        reader.join()
        if process.returncode not in (0, 3):  # 3: alerts were raised
            page.note(f"exit status {process.returncode}")
    lags = np.array(arrivals) - min(arrivals)
    commands = len(command_log.read_text().splitlines()) if command_log.exists() else 0
    return [
        str(max(connections)),
        f"{use.peak_mb:.0f}",
        f"{np.median(lags):.2f}, {lags.max():.2f}",
        f"{np.median(answer_seconds):.3f}" if answer_seconds else "never",
        f"{alerts}, {commands}, {len(receiver.got)}",
    ]


def time_answer(port: int) -> list[float]:
    """Return the seconds until the page answers; an empty list if it refuses or times out."""
    began = time.monotonic()
    try:
        with urlopen(f"http://127.0.0.1:{port}/readings?since=999999", timeout=5) as page:
            page.read()
    except OSError:
        return []
    return [time.monotonic() - began]
