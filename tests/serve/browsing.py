"""Somebody at the page that listens, in a real Chromium whose microphone is a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
import soundfile

from monitor.serve.page import ListeningPage
from tests.web.conftest import ARGUMENTS, SECRET

RATE = 16_000
PATIENCE = 120_000
"""Milliseconds; a busy machine is slow, and a test waits only for as long as it must."""


class Speaker:
    """A browser's microphone: what is given is heard from the next time that it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()

    def says(self, samples: np.ndarray) -> None:
        """Speak these 16-bit samples, then silence."""
        silence = np.zeros(120 * RATE, np.int16)
        soundfile.write(self.path, np.concatenate([samples, silence]), RATE, subtype="PCM_16")


@contextmanager
def hearing(speaker: Speaker, program: str | None = None) -> Iterator[Any]:
    """A Chromium that hears that speaker."""
    from playwright.sync_api import sync_playwright

    program = program or which("chromium") or which("google-chrome")
    if program is None:
        pytest.skip("needs chromium (Debian: apt-get install chromium)")
    heard = (
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-audio-capture={speaker.path}%noloop",
    )
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=[*ARGUMENTS, *heard])
        try:
            yield chromium
        finally:
            chromium.close()


def opened(page: ListeningPage, chromium: Any, script: str = "", **more: Any) -> Any:
    """A tab with the page, once the program has answered it."""
    tab = chromium.new_page(**more)
    tab.set_default_timeout(PATIENCE)
    tab.add_init_script(script)
    with tab.expect_event("websocket", lambda each: each.wait_for_event("framereceived")):
        tab.goto(f"{page.url}#{SECRET.replace(' ', '%20')}", wait_until="commit")
    return tab


def fits(tab: Any) -> bool:
    """Whether nothing stands out at the side, once the page has its style."""
    tab.wait_for_load_state("load")
    return bool(tab.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def enrols(tab: Any, name: str) -> None:
    """Read the text until the template is made."""
    tab.fill("#name", name)
    tab.click("#who button")
    tab.wait_for_selector("#enrolled-now:not([hidden])", timeout=PATIENCE)


def speaks(tab: Any, threshold: float) -> None:
    """Speak freely, to be told when more than so many bits are out."""
    tab.click("#speak")
    tab.locator("#bits-threshold").fill(f"{threshold:g}")
    tab.wait_for_selector("#lamp[data-state=on]", timeout=PATIENCE)
    tab.wait_for_selector("body[data-ready=yes]", timeout=PATIENCE)
