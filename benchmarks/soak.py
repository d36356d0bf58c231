"""Hours of real audio through every feature: speed by feature, and memory that does not grow.

    python -m benchmarks.soak ../shared/speech --minutes 60 --features f0,phones,voice
    python -m benchmarks.soak ../shared/speech --minutes 105 --live

Runs `monitor replay` on real readers, one after the other, as one FLAC, on one core (``--cores 0``)
or more (``--cores 0,1``), and samples its resident memory. Prints JSON.

With ``--live`` it is `monitor listen`, with evidence and a ledger, at a private PulseAudio into
which the same readers are spoken, in the time that they take. Printed by part of the run:

- ``clock_apart_seconds``: the least, over the part, of the wall clock when a reading came minus the
  reading's place in the audio, from the first part's. Audio that was lost and not told shows here,
  as does a clock that drifts (the null sink's is the machine's).
- ``lost_seconds`` and ``gaps``: what the records tell.
- ``lag``: from when a second was heard to its reading, by the records; ``late``: by which readings
  came later than the soonest of the part, by the wall clock of this program.

It needs the Debian packages that `benchmarks.latency` names.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import psutil
import soundfile

from benchmarks.replay import ten_hours, timed
from monitor.population.population import Population
from tests.virtual_microphone import DEVICE, VirtualMicrophone, missing

PARTS = 10


def readers(speech: Path) -> Iterator[np.ndarray[Any, np.dtype[np.int16]]]:
    """The same readers for ever, mono at 16 kHz, a second at a time."""
    while True:
        for path in sorted(speech.glob("[dtl]*/*/*.opus")):
            assert soundfile.info(path).samplerate == 16000, path
            yield from soundfile.blocks(path, 16000, dtype="int16")


def speak(speech: Path, into: IO[bytes]) -> None:
    """Hand the readers over until nobody takes them; the sound server takes as it plays."""
    try:
        for block in readers(speech):
            into.write(block.tobytes())
            into.flush()
    except (BrokenPipeError, ValueError):  # the player was stopped
        return


class Arrived(NamedTuple):
    """A reading: its place in the audio, when it came, its lag, the speech so far; seconds."""

    seconds: float
    came: float
    lag: float
    speech: float


def part_of(
    readings: list[Arrived], gaps: list[dict[str, Any]], listener: psutil.Process, first: float
) -> dict[str, Any]:
    """What one part of a live run shows."""
    offsets = np.array([each.came - each.seconds for each in readings])
    lags = np.array([each.lag for each in readings])
    used = listener.cpu_times()
    return {
        "to_minutes": round(readings[-1].seconds / 60, 1),
        "readings": len(readings),
        "speech_minutes_so_far": round(readings[-1].speech / 60, 1),
        "clock_apart_seconds": round(float(offsets.min()) - first, 4),
        "late_seconds_p50_p90_most": np.round(
            np.quantile(offsets - offsets.min(), [0.5, 0.9, 1]), 3
        ).tolist(),
        "lag_seconds_p50_p90_most": np.round(np.quantile(lags, [0.5, 0.9, 1]), 3).tolist(),
        "gaps": Counter(gap["reason"] for gap in gaps),
        "lost_seconds": round(
            sum(gap["lost_seconds"] or 0 for gap in gaps if gap["reason"] != "thinned"), 3
        ),
        "memory_mb": round(listener.memory_info().rss / 1e6, 1),
        "processor_seconds": round(used.user + used.system, 1),
        "load": round(os.getloadavg()[0], 1),
    }


def live(speech: Path, minutes: float, features: str, cores: str) -> None:
    """Listen for so long; a line of JSON for each part, then one of the whole."""
    with tempfile.TemporaryDirectory(prefix="vm") as folder, VirtualMicrophone(Path(folder)) as mic:
        player = subprocess.Popen(
            ["pacat", "--playback", "--raw", "--format=s16le", "--rate=16000", "--channels=1"],
            env=mic.environment, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert player.stdin is not None
        threading.Thread(target=speak, args=(speech, player.stdin), daemon=True).start()
        watched = Population.reference().names[0]
        command = [
            "taskset", "-c", cores, sys.executable, "-m", "monitor", "listen",
            "--device", DEVICE, "--for", f"{minutes}m", "--features", features,
            "--watch", watched, "--ledger", str(Path(folder) / "l.db"), "--jsonl", "-",
        ]  # fmt: skip
        try:
            with subprocess.Popen(
                command, env=mic.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            ) as process:
                heard(process, minutes * 60)
        finally:
            player.terminate()
            player.wait()


def heard(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Follow a listener's records to their end, and print."""
    listener = psutil.Process(process.pid)
    readings: list[Arrived] = []
    gaps: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    first: float | None = None
    began = time.monotonic()
    assert process.stdout is not None
    for line in process.stdout:
        now, record = time.monotonic(), json.loads(line)
        if record["type"] == "gap":
            gaps.append(record)
        if record["type"] == "reading":
            readings.append(Arrived(record["seconds"], now, record["lag"], record["speech"]))
            if record["seconds"] >= (len(parts) + 1) * seconds / PARTS - 1:
                if first is None:
                    first = min(each.came - each.seconds for each in readings)
                parts.append(part_of(readings, gaps, listener, first))
                print(json.dumps(parts[-1]), flush=True)
                readings, gaps = [], []
    print(
        json.dumps(
            {
                "status": process.wait(),
                "readings": sum(part["readings"] for part in parts),
                "lost_seconds": round(sum(part["lost_seconds"] for part in parts), 3),
                "clock_apart_seconds_most": max(abs(part["clock_apart_seconds"]) for part in parts),
                "memory_mb_by_part": [part["memory_mb"] for part in parts],
                "share_of_a_core": round(
                    parts[-1]["processor_seconds"] / (time.monotonic() - began), 3
                ),
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("speech", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--features", default="f0,phones,voice")
    parser.add_argument("--cores", default="0")
    parser.add_argument("--live", action="store_true", help="listen, in the time that it takes")
    given = parser.parse_args()
    if given.live:
        if lacking := missing():
            sys.exit(lacking)
        live(given.speech.resolve(), given.minutes, given.features, given.cores)
        return
    with tempfile.TemporaryDirectory() as folder:
        flac, run = Path(folder) / "long.flac", Path(folder) / "run.jsonl"
        seconds = ten_hours(given.speech, flac, given.minutes / 60)
        command = [sys.executable, "-m", "monitor", "replay", str(flac), "--jsonl", str(run)]
        took = timed([*command, "--features", given.features], given.cores)
        records = [json.loads(line) for line in run.read_text(encoding="utf-8").splitlines()]
    memory = took.memory
    tenth = max(len(memory) // 10, 1)
    print(
        json.dumps(
            {
                "features": given.features,
                "cores": given.cores,
                "minutes": given.minutes,
                "times_real_time": round(seconds / took.wall, 1),
                "times_real_time_a_core": round(seconds / took.processor, 1),
                "readings": sum(record["type"] == "reading" for record in records),
                "changes": sum(record["type"] == "change" for record in records),
                "memory_mb_by_tenth": [
                    round(max(memory[at : at + tenth])) for at in range(0, len(memory), tenth)
                ],
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
