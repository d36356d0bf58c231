"""The page that listens in a real Firefox, which hears real speech by a virtual sound device."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from monitor.serve.page import ListeningPage
from tests.serve.conftest import RATE, TOKEN
from tests.virtual_microphone import VirtualMicrophone, missing
from tests.waiting import until

PREFERENCES = {
    "app.update.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "media.navigator.permission.disabled": True,  # nobody is there to be asked
    "toolkit.telemetry.enabled": False,
}


class Firefox:
    """One tab, by WebDriver BiDi over a websocket, which Firefox speaks itself."""

    def __init__(self, line: ClientConnection) -> None:
        self._line, self._numbers = line, count(1)
        self._ask("session.new", capabilities={})
        self._tab = self._ask("browsingContext.getTree")["contexts"][0]["context"]

    def _ask(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        self._line.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._line.recv(timeout=120))
            if answer.get("id") == number:
                assert answer["type"] == "success", answer
                return answer["result"]

    def open(self, url: str) -> None:
        """Go there; the page may send itself on."""
        self._ask("browsingContext.navigate", context=self._tab, url=url, wait="none")

    def says(self, script: str) -> Any:
        """What a script gives, a primitive; a page that is on its way says nothing."""
        with suppress(AssertionError):
            found = self._ask(
                "script.evaluate", expression=script, target={"context": self._tab},
                awaitPromise=True, userActivation=True,
            )  # fmt: skip
            return found.get("result", {}).get("value")


@pytest.fixture
def microphone() -> Iterator[VirtualMicrophone]:
    if lacking := missing():
        pytest.skip(lacking)
    with tempfile.TemporaryDirectory(prefix="f") as folder, VirtualMicrophone(Path(folder)) as made:
        yield made


@pytest.fixture
def firefox(microphone: VirtualMicrophone) -> Iterator[Firefox]:
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        pytest.skip("needs firefox (Debian: apt-get install firefox-esr)")
    profile = microphone.folder / "profile"
    profile.mkdir()
    wanted = (f'user_pref("{key}", {json.dumps(value)});' for key, value in PREFERENCES.items())
    (profile / "user.js").write_text("\n".join(wanted))
    said = microphone.folder / "firefox"
    with said.open("wb") as log:
        process = subprocess.Popen(
            [program, "--headless", "--no-remote", "--profile", str(profile),
             "--remote-debugging-port", "0", "about:blank"],
            env=microphone.environment, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        heard = until(lambda: re.search(r"BiDi listening on (ws://\S+)", said.read_text()))
        with connect(f"{heard[1]}/session", max_size=None) as line:
            yield Firefox(line)
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.slow
def test_somebody_enrols_speaks_and_is_alerted(settings, microphone, firefox, chapters):
    def stands(script: str) -> None:
        until(lambda: firefox.says(script), 120)

    with ListeningPage(settings, token=TOKEN) as page:
        firefox.open(f"{page.url}#{TOKEN.replace(' ', '%20')}")
        stands("document.getElementById('begin')?.disabled === false")
        firefox.says("document.getElementById('name').value = 'Ann'; "
                     "document.getElementById('begin').click()")  # fmt: skip
        reader = microphone.play(chapters[0][: 30 * RATE] / 32768, RATE)
        stands("document.body.dataset.stage === 'enrolled-now'")
        assert firefox.says("document.activeElement.id") == "enrolled-now"
        reader.terminate()
        firefox.says("document.getElementById('speak').click(); "
                     "const slider = document.getElementById('bits-threshold'); "
                     "slider.value = 1; slider.dispatchEvent(new Event('input'))")  # fmt: skip
        microphone.play(chapters[1] / 32768, RATE)
        stands("document.getElementById('lamp').dataset.state === 'on'")
        stands("document.getElementById('banners').innerText.includes('bits>1')")
        assert "are off" in firefox.says("document.getElementById('raw').innerText")
    stands("document.getElementById('lamp').dataset.state !== 'on'")
