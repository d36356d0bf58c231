from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
from websockets.sync.client import ClientConnection, connect

from monitor import Population
from monitor.serve.page import ListeningPage
from monitor.serve.session import ServeSettings, Session
from monitor.serve.templates import TemplateFolder
from tests.serve.browsing import RATE, Speaker, hearing
from tests.waiting import until
from tests.web.conftest import SECRET as TOKEN
from tests.web.conftest import browser

__all__ = ["RATE", "TOKEN", "browser"]

READER = "1272"
CHAPTERS = "128104", "141231"
ENROL_SECONDS = 10.0


@pytest.fixture
def settings(tmp_path: Path) -> ServeSettings:
    return ServeSettings(TemplateFolder(tmp_path / "people"), ENROL_SECONDS, 60.0)


@pytest.fixture
def served(settings: ServeSettings) -> Iterator[ListeningPage]:
    with ListeningPage(settings, token=TOKEN) as page:
        yield page


@pytest.fixture
def client(served: ListeningPage) -> Iterator[httpx.Client]:
    """A browser that has logged in."""
    with httpx.Client(base_url=served.url, timeout=30.0) as client:
        assert client.post("/login", data={"token": TOKEN}).status_code == 303
        yield client


def cookie_of(client: httpx.Client) -> dict[str, str]:
    """The header by which a client that has logged in is known."""
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in client.cookies.items())}


@pytest.fixture
def line(served: ListeningPage, client: httpx.Client) -> Iterator[Callable[..., ClientConnection]]:
    """Opens websockets as the page does; keywords change what is said."""
    stack = ExitStack()

    def line(session: str = "", **headers: Any) -> ClientConnection:
        told = {**cookie_of(client), **headers.pop("headers", {})}
        origin = headers.pop("origin", served.url.rstrip("/"))
        address = f"{served.url.replace('http', 'ws', 1)}microphone?session={session}"
        made = connect(address, origin=origin, additional_headers=told, compression=None, **headers)
        opened: ClientConnection = stack.enter_context(made)
        return opened

    with stack:
        yield line


@pytest.fixture(scope="session")
def chapters(shared: Path) -> list[np.ndarray]:
    """16 kHz, 16-bit samples of two chapters by one reader."""
    folder = shared / "speech/dev-clean" / READER
    found = [soundfile.read(folder / f"{each}.opus", RATE * 40, dtype="int16")
             for each in CHAPTERS]  # fmt: skip
    assert {rate for _, rate in found} == {RATE}
    return [samples for samples, _ in found]


@pytest.fixture(scope="session")
def others(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The shipped readers without that one, in a file."""
    path = tmp_path_factory.mktemp("base") / "base.npz"
    Population.reference().without(READER).save(path)
    return str(path)


def frames(samples: np.ndarray, start: int = 0, length: int = 320) -> Iterator[bytes]:
    """Messages as the page sends them."""
    for low in range(0, len(samples), length):
        yield struct.pack("<Q", start + low) + samples[low : low + length].astype("<i2").tobytes()


@pytest.fixture(scope="session")
def enrolled(
    others: str, chapters: list[np.ndarray], tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """Settings beside whose readers a session has enrolled Ann, and what her browser was told."""
    folder = tmp_path_factory.mktemp("data") / "people"
    settings = ServeSettings(TemplateFolder(folder, others), ENROL_SECONDS, 60.0)
    said: list[dict[str, Any]] = []
    session = Session(settings, lambda message: said.append(dict(message)))
    session.enrol("Ann", RATE)
    for frame in frames(chapters[0][: 25 * RATE]):
        session.receive_audio(frame)
    until(lambda: not session.busy)
    return settings, said


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Speaker:
    return Speaker(tmp_path_factory.mktemp("microphone") / "microphone.wav")


@pytest.fixture(scope="module")
def chromium(speaker: Speaker, chapters: Any) -> Iterator[Any]:
    """A Chromium that hears a reader."""
    speaker.says(chapters[0][: 25 * RATE])
    with hearing(speaker) as found:
        yield found


@pytest.fixture
def written() -> Iterator[list[str]]:
    """What is opened to be written to from now on."""
    paths: list[str] = []
    watching = True

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "open":
            path, mode, flags = arguments
            if (isinstance(mode, str) and set(mode) & set("wax+")) or (flags or 0) & 3:
                paths.append(str(path))

    sys.addaudithook(watch)
    yield paths
    watching = False


def wav(path: Path, samples: np.ndarray, **how: Any) -> Path:
    """Those samples in a file."""
    soundfile.write(path, samples, RATE, **how)
    return path


def told(line: Any, kind: str) -> dict[str, Any]:
    """The next message of a kind; an error that comes before it fails."""
    while True:
        message: dict[str, Any] = json.loads(line.recv(timeout=60))
        if message["type"] == kind:
            return message
        assert message["type"] != "error", message


def of_kind(records: list[dict[str, Any]], kind: str = "reading") -> list[dict[str, Any]]:
    return [each for each in records if each["type"] == kind]
