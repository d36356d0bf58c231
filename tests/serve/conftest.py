from __future__ import annotations

import struct
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
from monitor.serve.session import ServeSettings
from monitor.serve.templates import TemplateFolder
from tests.web.conftest import ARGUMENTS, browser

__all__ = ["ARGUMENTS", "browser"]

TOKEN = "correct horse battery"
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
    found = [soundfile.read(folder / f"{each}.opus", 16_000 * 40, dtype="int16")
             for each in CHAPTERS]  # fmt: skip
    assert {rate for _, rate in found} == {16_000}
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
