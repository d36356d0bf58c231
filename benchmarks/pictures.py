"""Pictures of a live run: ``docs/page.png`` and ``docs/terminal.png``.

    python -m benchmarks.pictures SPEECH docs

The demo's chapter, which is not the enrolled one, is played into a virtual microphone; ``monitor
listen`` hears it in a terminal of tmux and shows its page to a real Chromium. After ``--seconds``
of it both are pictured at the same second. Needs the extras web and dev, and the Debian packages
chromium fonts-dejavu libasound2-plugins libportaudio2 pulseaudio pulseaudio-utils tmux.
"""

from __future__ import annotations

import argparse
import io
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, sync_playwright
from rich.console import Console
from rich.text import Text

from benchmarks.build_reference import DEMO_CHAPTER, FEATURES
from monitor.population import DEMO_SPEAKER
from tests.virtual_microphone import DEVICE, VirtualMicrophone, missing
from tests.web.conftest import ARGUMENTS

RULE = ["--alert", "bits>6", "--warn", "30"]
SHOWN = ["--watch", DEMO_SPEAKER, "--web", "0", *RULE]
COLUMNS, ROWS = 80, 24
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
TERMINAL_WIDTH = 1000
START_SECONDS = 120.0
SAME_SECONDS = 20.0


class Terminal:
    """A tmux of its own, in which one command runs."""

    def __init__(self, folder: Path, command: list[str], environment: Mapping[str, str]) -> None:
        self._tmux = ["tmux", "-f", "/dev/null", "-S", str(folder / "tmux")]
        self._environment = {**environment, "COLORTERM": "truecolor"}
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        self._run("new-session", "-d", *size, shlex.join(command))

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words],
            check=True,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout

    def text(self, *how: str) -> str:
        """What stands on it; ``-e`` with its colours, ``-S -`` with what scrolled away."""
        return self._run("capture-pane", "-p", *how)

    def wait_for(self, pattern: str) -> str:
        """The first match of what is said in it."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if found := re.search(pattern, self.text("-J", "-S", "-")):
                return found[0]
            time.sleep(0.2)
        raise SystemExit(self.text("-S", "-"))

    def stop(self) -> None:
        """Ends the command too."""
        self._run("kill-server")


def drawn(captured: str, title: str) -> str:
    """A terminal's text with its colours, as an SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor")
    for line in captured.splitlines():
        console.print(Text.from_ansi(line), no_wrap=True, crop=True)
    return console.export_svg(title=title)


def at_one_second(page: Page, terminal: Terminal, path: Path) -> str:
    """Picture the page while it and the terminal show the same reading; what the terminal shows."""
    until = time.monotonic() + SAME_SECONDS
    while time.monotonic() < until:
        before, captured = page.inner_text("#clock"), terminal.text("-e")
        page.screenshot(path=path, full_page=True)
        shown = re.sub(r"\x1b\[[0-9;]*m", "", captured)
        if page.inner_text("#clock") == before and f" {before} " in shown:
            return captured
    raise SystemExit("page and terminal never showed the same second")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the README's pictures of a live run.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=85.0, help="of the chapter")
    given = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if lacking := missing() or ("" if program else "needs chromium (Debian: chromium)"):
        raise SystemExit(lacking)
    (recording,) = given.speech.glob(f"*/{DEMO_SPEAKER}/{DEMO_CHAPTER}.opus")
    own = ["--features", ",".join(FEATURES)]  # as every install, whatever this one has
    listen = [sys.executable, "-m", "monitor", "listen", "--device", DEVICE, *SHOWN, *own]
    with (
        tempfile.TemporaryDirectory(prefix="p") as place,
        VirtualMicrophone(Path(place)) as microphone,
        sync_playwright() as driver,
    ):
        chromium = driver.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        terminal = Terminal(Path(place), listen, microphone.environment)
        try:
            address = terminal.wait_for(r"http://127\.0\.0\.1:\d+/")
            terminal.wait_for("of it speech|nothing heard")
            page = chromium.new_page(viewport=DESKTOP)
            page.goto(address)
            microphone.play_file(recording, given.seconds + 30)
            time.sleep(given.seconds)
            captured = at_one_second(page, terminal, given.folder / "page.png")
        finally:
            terminal.stop()
        window = chromium.new_page(viewport={"width": TERMINAL_WIDTH, "height": 100})
        window.context.set_offline(True)  # the SVG would ask for a web font
        title = f"monitor listen --watch {DEMO_SPEAKER}"
        window.set_content(f"<body style='margin: 0'>{drawn(captured, title)}")
        window.locator("svg").first.screenshot(path=given.folder / "terminal.png")
        chromium.close()


if __name__ == "__main__":
    main()
