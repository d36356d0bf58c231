"""monitor serve."""

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
import soundfile
from websockets.sync.client import connect

MESSAGE_BYTES = 64_000
MESSAGES_SECOND = 190


@contextmanager
def serving(folder: Path, *more: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real server that keeps templates there; its process, and its address with the token."""
    command = [sys.executable, "-m", "monitor", "serve", "--web", "0", "--data", folder, *more]
    with subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process, process.stdout.readline().removeprefix("open ").strip()
        finally:
            process.terminate()


def test_the_folder_of_templates_is_ours_alone(tmp_path):
    data = tmp_path / "people"
    data.mkdir()
    data.chmod(0o777)
    (data / "Ann.npz").symlink_to("nowhere")  # broken
    (data / "Bob.npz").mkdir()
    left = data / ".Ann.npz.abcdefgh.unfinished"  # what a killed save leaves goes at the start
    left.write_bytes(b"a template")
    with serving(data) as (_, url):
        assert url.startswith("http://127.0.0.1:")
        assert not left.exists()
        with httpx.Client(base_url=url.partition("#")[0]) as client:
            client.post("login", data={"token": url.partition("#")[2]})
            assert client.get("people").json() == []
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to chown")
def test_a_folder_of_somebody_else_is_refused_in_a_line(run, tmp_path):
    (foreign := tmp_path / "foreign").mkdir(0o755)
    os.chown(foreign, 65534, 65534)
    result = run("serve", "--web", "0", "--data", foreign)
    assert (result.code, result.out) == (1, "")
    assert "belongs to" in result.complaint


@contextmanager
def peak_memory(process: int) -> Iterator[list[int]]:
    """The largest resident memory of a process so far, as long as it is measured."""
    measured, ended = psutil.Process(process), threading.Event()
    peak = [measured.memory_info().rss]

    def watch() -> None:
        while not ended.wait(0.005):
            peak[0] = max(peak[0], measured.memory_info().rss)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield peak
    finally:
        ended.set()
        watching.join()


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "channels"), [(768_000, 64), (48_000, 2)])
def test_a_large_recording_takes_its_size_and_85_megabytes_at_most(tmp_path, rate, channels):
    file = BytesIO()
    noise = np.random.default_rng(0).integers(-9000, 9000, (110_000_000 // 2 // channels, 1))
    soundfile.write(file, np.repeat(noise.astype(np.int16), channels, 1), rate, format="WAV")
    data = file.getbuffer()
    with serving(tmp_path) as (process, url):
        base, _, token = url.partition("#")
        with httpx.Client(base_url=base) as client:
            client.post("login", data={"token": token})
            cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        until = time.monotonic() + 60
        rest = psutil.Process(process.pid).memory_info().rss
        while time.monotonic() < until:  # the features are being made
            time.sleep(2)
            before, rest = rest, psutil.Process(process.pid).memory_info().rss
            if rest == before:
                break
        with (
            peak_memory(process.pid) as peak,
            connect(
                base.replace("http", "ws") + "microphone", origin=base.rstrip("/"),  # type: ignore
                additional_headers={"Cookie": cookie}, compression=None,
            ) as line,
        ):  # fmt: skip
            recording = {"name": "talk.wav", "size": len(data)}
            wish = {"do": "measure", "name": "", "recording": recording, "threshold": 6}
            line.send(json.dumps(wish))
            began = time.monotonic()
            for number, low in enumerate(range(0, len(data), MESSAGE_BYTES)):
                line.send(data[low : low + MESSAGE_BYTES])
                time.sleep(max(0.0, began + number / MESSAGES_SECOND - time.monotonic()))
            kinds: list[str] = []
            while "over" not in kinds:
                kinds.append(json.loads(line.recv(timeout=600))["type"])
        assert kinds == ["ready", "measuring", "over"]
        assert peak[0] - rest < len(data) + 85e6
