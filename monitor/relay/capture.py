"""The input that a sound server records for this program, and its changes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from threading import Lock, Thread

from monitor.relay.outlet import ask_sound_server

_OUTPUT = re.compile(r"^\tSource: (\d+)$", re.MULTILINE)


class CaptureWatch:
    """Watch the source that PulseAudio or PipeWire records for this process.

    If a source vanishes, the server moves its recordings to another source, possibly the sound of
    the meeting itself. Without ``pactl``, nothing is watched.

    ``moved`` is called once, in another thread, with the name of the source that took over.
    """

    def __init__(self, moved: Callable[[str], object]) -> None:
        self._moved = moved
        self._first: str | None = None  # kept if the device is opened again
        self._subscription: subprocess.Popen[str] | None = None
        self._lock = Lock()

    def start(self) -> None:
        """Start watching, once the device records."""
        if (tool := shutil.which("pactl")) is None:
            return
        self._subscription = subprocess.Popen(
            [tool, "subscribe"],
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        Thread(target=self._follow, args=[self._subscription], daemon=True).start()
        self._look()

    def close(self) -> None:
        """Stop watching."""
        if self._subscription is not None:
            self._subscription.kill()
            self._subscription = None

    def _follow(self, subscription: subprocess.Popen[str]) -> None:
        assert subscription.stdout is not None
        with subscription:  # waits for its end
            for line in subscription.stdout:
                if "source-output" in line and "'remove'" not in line:
                    self._look()

    def _look(self) -> None:
        with self._lock:
            source = find_captured_source()
            if source is None or source == self._first:
                return
            first, self._first = self._first, source
        if first is not None:
            self._moved(source)


def find_captured_source() -> str | None:
    """Find the name of the source that this process records; None without one."""
    own = f'application.process.id = "{os.getpid()}"'
    for output in ask_sound_server("list", "source-outputs").split("Source Output #"):
        if own in output and (index := _OUTPUT.search(output)):
            for line in ask_sound_server("list", "short", "sources").splitlines():
                number, name, *_ = line.split("\t")
                if number == index[1]:
                    return name
    return None
