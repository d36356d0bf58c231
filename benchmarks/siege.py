"""A run with its page under attack from this machine: who is held, what it takes, what is lost.

    python -m benchmarks.siege ../shared/speech/dev-clean/1272/141231.opus

`monitor replay --web 0` at twenty times real time with at most 1 024 descriptors, ten alerts, a
command and a webhook. Each attack lasts as long as the run; all of them are
bounded, on loopback and without a token: 1 200 silent sockets; 260 halves of a request, a byte a
second; 240 clients that ask for all readings and never read; headers of 60 kB one after the other.
The lag of a reading is how much later it came than the earliest of its run would have it.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil

from tests.alerts.receiver import receiving
from tests.web.crowd import crowd

SPEED = 20.0
DESCRIPTORS = 1024
HEAD = b"GET /readings HTTP/1.1\r\nHost: localhost\r\n"
Attack = Callable[[int, threading.Event], None]


def nobody(_: int, over: threading.Event) -> None:
    over.wait()


def silent(port: int, over: threading.Event) -> None:
    with crowd(port, 1200, b""):
        over.wait()


def halves(port: int, over: threading.Event) -> None:
    with crowd(port, 260, HEAD) as clients:
        while not over.wait(1.0):
            for one in clients:
                with contextlib.suppress(OSError):
                    one.send(b"x")


def never_read(port: int, over: threading.Event) -> None:
    while not over.is_set():
        with crowd(port, 240, HEAD + b"\r\n"):
            over.wait(5.0)


def headers(port: int, over: threading.Event) -> None:
    said = HEAD + b'Cookie: "' + b"\\" * 60_000 + b"\r\n\r\n"
    while not over.is_set():
        with crowd(port, 8, said):
            over.wait(0.05)


ATTACKS: dict[str, Attack] = {
    "none": nobody,
    "1200 silent sockets": silent,
    "260 half requests": halves,
    "240 that never read": never_read,
    "60 kB headers": headers,
}


def besieged(recording: Path, attack: Attack, folder: Path) -> dict[str, Any]:
    """One run under one attack."""
    said = folder / "said.jsonl"
    rules = [part for i in range(1, 11) for part in ("--alert", f"gain_bits>{i / 4} for 0 s")]
    with receiving() as receiver:
        process = subprocess.Popen(
            [sys.executable, "-m", "monitor", "replay", recording, "--features", "f0", "--jsonl",
             "-", "--speed", f"{SPEED:g}", "--web", "0", "--allow-overlap", *rules, "--on-alert",
             f"cat >> '{said}'", "--webhook", receiver.url],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "no_proxy": "127.0.0.1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS,) * 2),
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        line = next(line for line in process.stderr if "the page is at" in line)
        port = int(re.findall(r":(\d+)/", line)[0])
        words: list[str] = []
        reader = threading.Thread(target=lambda: words.extend(process.stderr))  # type: ignore[arg-type]
        reader.start()
        over = threading.Event()
        attacker = threading.Thread(target=attack, args=(port, over))
        attacker.start()
        came, alerts, held, asked, kept_out = [], 0, [], [], 0
        for text in process.stdout:
            record = json.loads(text)
            alerts += record["type"] == "alert"
            if record["type"] != "reading":
                continue
            came.append((time.monotonic(), record["seconds"] / SPEED))
            if record["seconds"] % 20 == 0:
                with contextlib.suppress(psutil.Error):
                    held.append(len(psutil.Process(process.pid).net_connections("tcp")))
                began = time.monotonic()
                try:
                    with urlopen(
                        f"http://127.0.0.1:{port}/readings?since=999999", timeout=5
                    ) as page:
                        page.read()
                    asked.append(time.monotonic() - began)
                except OSError:
                    kept_out += 1
        over.set()
        attacker.join()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        reader.join()
        first = min(wall - due for wall, due in came)
        lags = sorted(wall - due - first for wall, due in came)
        return {
            "exit": process.returncode,
            "readings": len(came),
            "median_lag_seconds": round(lags[len(lags) // 2], 3),
            "largest_lag_seconds": round(lags[-1], 3),
            "most_connections": max(held, default=0),
            "memory_mb": round(usage.ru_maxrss / 1024),
            "page_median_seconds": round(sorted(asked)[len(asked) // 2], 3) if asked else None,
            "page_kept_out": kept_out,
            "alerts": alerts,
            "commands": len(said.read_text().splitlines()) if said.exists() else 0,
            "webhooks": len(receiver.got),
            "stderr_bytes": sum(map(len, words)),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recording", type=Path)
    parser.add_argument("--attack", choices=ATTACKS, action="append")
    asked = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    for name in asked.attack or ATTACKS:
        with tempfile.TemporaryDirectory() as folder:
            figures = besieged(asked.recording, ATTACKS[name], Path(folder))
        print(json.dumps({"attack": name, **figures}), flush=True)


if __name__ == "__main__":
    main()
