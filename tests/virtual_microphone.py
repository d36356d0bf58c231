"""A microphone without a microphone: a private PulseAudio whose sink can be spoken into.

Everything is real but the air: PortAudio opens ALSA's ``pulse`` device, which hears the monitor of
a null sink, into which real speech is played. Nothing of the machine's own sound is touched.

    with VirtualMicrophone(folder) as microphone:
        player = microphone.play(samples, rate)
        subprocess.run([..., "listen", "--for", "5"], env=microphone.environment)
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pytest
import soundfile

from monitor.types import FloatArray

TOOLS = ("pulseaudio", "paplay", "pactl")
START_SECONDS = 20.0
SINK = "speech"
DEVICE = "pulse"
"""What PortAudio calls it."""


class VirtualMicrophone:
    """A private sound server; stopped, with all that plays into it, when its block ends.

    Args:
        folder: a short path (a socket lies in it) of its own.

    Attributes:
        environment: of processes that shall hear it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._socket = folder / "native"
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(folder),
            "PULSE_RUNTIME_PATH": str(folder),
            "PULSE_SERVER": f"unix:{self._socket}",
            "PULSE_SOURCE": f"{SINK}.monitor",
            "PULSE_SINK": SINK,
        }
        self._server: subprocess.Popen[bytes] | None = None
        self._players: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the sound server, again after ``stop``."""
        modules = (
            f"module-native-protocol-unix socket={self._socket} auth-anonymous=1",
            f"module-null-sink sink_name={SINK} rate=48000",
        )
        load = [word for module in modules for word in ("-L", module)]
        log = (self.folder / "log").open("ab")
        with log:
            self._server = subprocess.Popen(
                ["pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no",
                 "--disable-shm=yes", *load],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        until = time.monotonic() + START_SECONDS
        while SINK not in self.control("list", "short", "sources", check=False):
            if self._server.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.folder / "log").read_text(errors="replace")[-2000:])
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the sound server and whatever plays: the device vanishes."""
        for process in [*self._players, *([self._server] if self._server else [])]:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._players, self._server = [], None

    def control(self, *arguments: str, check: bool = True) -> str:
        """Run pactl; what it prints."""
        done = subprocess.run(
            ["pactl", *arguments],
            env=self.environment,
            check=check,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return done.stdout

    def play(self, samples: FloatArray, rate: int) -> subprocess.Popen[bytes]:
        """Speak into it: mono samples in [-1, 1], heard some 0.7 s from now on."""
        path = self.folder / f"{len(self._players)}.wav"
        soundfile.write(path, np.asarray(samples, np.float32), rate)
        player = subprocess.Popen(
            ["paplay", str(path)], env=self.environment, stderr=subprocess.DEVNULL
        )
        self._players.append(player)
        return player

    def play_file(self, recording: Path, seconds: float) -> subprocess.Popen[bytes]:
        """Speak the beginning of a recording into it."""
        rate = soundfile.info(recording).samplerate
        samples, _ = soundfile.read(recording, round(seconds * rate), dtype="float32")
        return self.play(samples, rate)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def missing() -> str:
    """Which Debian packages are not there, in words; empty where all are."""
    try:
        import sounddevice  # noqa: F401
    except OSError:
        return "needs PortAudio (Debian: libportaudio2)"
    tools = [tool for tool in TOOLS if shutil.which(tool) is None]
    if tools:
        return f"needs {', '.join(tools)} (Debian: pulseaudio pulseaudio-utils)"
    plugins = [*Path("/usr/lib").glob("*/alsa-lib/libasound_module_pcm_pulse.so")]
    return "" if plugins else "needs ALSA's pulse plug-in (Debian: libasound2-plugins)"


@pytest.fixture
def virtual_microphone(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[VirtualMicrophone]:
    """A virtual microphone, also for this very process; skips without the tools."""
    if lacking := missing():
        pytest.skip(lacking)
    from monitor.sources.microphone import rescan

    with VirtualMicrophone(tmp_path_factory.mktemp("vm")) as microphone:
        for name in ("XDG_RUNTIME_DIR", "PULSE_RUNTIME_PATH", "PULSE_SERVER", "PULSE_SOURCE"):
            monkeypatch.setenv(name, microphone.environment[name])
        rescan()  # PortAudio may have been started before
        yield microphone
