"""Pictures for the documentation: a live run, the listening page, and plots of measured numbers.

These need the extras web and dev, and the Debian packages chromium fonts-dejavu libasound2-plugins
libportaudio2 pulseaudio pulseaudio-utils tmux.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np
from matplotlib.image import imread, imsave
from playwright.sync_api import Browser, ViewportSize, sync_playwright
from playwright.sync_api import Page as Tab
from rich.console import Console
from rich.text import Text

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, read
from benchmarks.timing import MONITOR
from monitor import Population
from monitor.events.schema import read_run
from monitor.plots.calibration import plot_reliability
from monitor.plots.curve import plot_run
from monitor.population import DEMO_SPEAKER
from monitor.serve.page import ListeningPage
from monitor.serve.session import ServeSettings
from monitor.serve.templates import TemplateFolder
from recipes.reference import DEMO_CHAPTER
from tests.serve.browsing import PATIENCE, Speaker, enrols, hearing, speaks
from tests.virtual_microphone import DEVICE, VirtualMicrophone, missing
from tests.web.conftest import ARGUMENTS

SHOWN = ["--watch", DEMO_SPEAKER, "--web", "0", "--alert", "bits>6", "--warn", "30"]
COLUMNS, ROWS = 80, 24
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
REPORT: ViewportSize = {"width": 1200, "height": 1260}
TERMINAL_WIDTH = 1000
START_SECONDS, SAME_SECONDS = 120.0, 20.0
TOKEN = "only for this picture"


def find_folder(page: Page) -> Path:
    if page.pictures is None:
        raise SystemExit("name the output folder of the pictures, such as -o docs")
    return page.pictures


@contextmanager
def start_browser() -> Iterator[Browser]:
    """Start Chromium and yield it."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("needs chromium (Debian: chromium)")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


# --------------------------------------------------------------------------------------- a live run


class Terminal:
    """A separate tmux server that runs one command."""

    def __init__(self, folder: Path, command: list[str], environment: Mapping[str, str]) -> None:
        self._tmux = ["tmux", "-f", "/dev/null", "-S", str(folder / "tmux")]
        self._environment = {**environment, "COLORTERM": "truecolor"}
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        self._run("new-session", "-d", *size, shlex.join(command))

    def _run(self, *words: str) -> str:
        result = subprocess.run(
            [*self._tmux, *words],
            check=True,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        return result.stdout

    def text(self, *options: str) -> str:
        """Return the text on screen; ``-e`` adds colours, ``-S -`` the scrollback."""
        return self._run("capture-pane", "-p", *options)

    def wait_for(self, pattern: str) -> str:
        """Return the first match of a pattern in the output; exit after START_SECONDS."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if found := re.search(pattern, self.text("-J", "-S", "-")):
                return found[0]
            time.sleep(0.2)
        raise SystemExit(self.text("-S", "-"))

    def stop(self) -> None:
        """Stop tmux and the command."""
        self._run("kill-server")


@benchmark()
def pictures(page: Page, speech: Path, *, seconds: float = 85.0) -> None:
    """Make page.png and terminal.png of a live run, at the same second of the demo's chapter."""
    folder = find_folder(page)
    if lacking := missing():
        raise SystemExit(lacking)
    (recording,) = speech.glob(f"*/{DEMO_SPEAKER}/{DEMO_CHAPTER}.opus")
    own = ["--features", ",".join(FEATURES)]  # those of every installation
    listen = [*MONITOR, "listen", "--device", DEVICE, *SHOWN, *own]
    with (
        tempfile.TemporaryDirectory(prefix="p") as temporary,
        VirtualMicrophone(Path(temporary)) as microphone,
        start_browser() as chromium,
    ):
        terminal = Terminal(Path(temporary), listen, microphone.environment)
        try:
            address = terminal.wait_for(r"http://127\.0\.0\.1:\d+/")
            terminal.wait_for("of it speech|nothing heard")
            tab = chromium.new_page(viewport=DESKTOP)
            tab.goto(address)
            microphone.play_file(recording, seconds + 30)
            time.sleep(seconds)
            captured = save_at_one_second(tab, terminal, folder / "page.png")
        finally:
            terminal.stop()
        window = chromium.new_page(viewport={"width": TERMINAL_WIDTH, "height": 100})
        window.context.set_offline(True)  # the SVG would ask for a web font
        title = f"monitor listen --watch {DEMO_SPEAKER}"
        window.set_content(f"<body style='margin: 0'>{draw_terminal(captured, title)}")
        window.locator("svg").first.screenshot(path=folder / "terminal.png")


def draw_terminal(captured: str, title: str) -> str:
    """Convert a terminal's text with colours to SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor")
    for line in captured.splitlines():
        console.print(Text.from_ansi(line), no_wrap=True, crop=True)
    return console.export_svg(title=title)


def save_at_one_second(tab: Tab, terminal: Terminal, path: Path) -> str:
    """Save the page while it and the terminal show the same reading; return the terminal's text."""
    until = time.monotonic() + SAME_SECONDS
    while time.monotonic() < until:
        before, captured = tab.inner_text("#clock"), terminal.text("-e")
        tab.screenshot(path=path, full_page=True)
        shown = re.sub(r"\x1b\[[0-9;]*m", "", captured)
        if tab.inner_text("#clock") == before and f" {before} " in shown:
            return captured
    raise SystemExit("page and terminal did not show the same second")


# ---------------------------------------------------------------------------- the listening page


@benchmark()
def serve(page: Page, speech: Path, *, enrol_seconds: float = 30.0, seconds: float = 60.0) -> None:
    """What is the latency of the listening page in a real browser? With -o, save pictures too."""
    chapters = {path.stem: path for path in sorted(speech.glob(f"*/{DEMO_SPEAKER}/*.opus"))}
    demo = chapters.pop(DEMO_CHAPTER)
    other = next(iter(chapters.values()))
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary) / "base.npz"
        Population.reference().without(DEMO_SPEAKER).save(base)
        people = TemplateFolder(Path(temporary) / "people", str(base))
        settings, speaker = ServeSettings(people, enrol_seconds), Speaker(Path(temporary) / "m.wav")
        speaker.says(read_samples(other, 4 * enrol_seconds))
        with ListeningPage(settings, token=TOKEN) as served, hearing(speaker) as chromium:
            tab = chromium.new_page(viewport=DESKTOP)
            tab.set_default_timeout(PATIENCE)
            tab.goto(f"{served.url}#{TOKEN.replace(' ', '%20')}", wait_until="commit")
            tab.wait_for_selector("#name")
            save_screenshots(page, tab, "-welcome")
            enrols(tab, "Ann")
            save_screenshots(page, tab, "-enrolled")
            speaker.says(read_samples(demo, seconds + 30))
            speaks(tab, 6)
            load = os.getloadavg()[0]
            time.sleep(seconds)
            late = json.loads(tab.get_attribute("#latency", "data-seconds"))
            save_screenshots(page, tab, "")
            name = chromium.version
    heads = "a tenth within | half within | nine of ten within | all within"
    cells = [f"{each:.2f} s" for each in np.quantile(late, (0.1, 0.5, 0.9, 1.0))]
    page.table(f"readings | {heads}", [[len(late), *cells]])
    page.note(f"{os.cpu_count()} cores, load {load:.1f}; Chromium {name}, "
              f"websockets {version('websockets')}")  # fmt: skip


def read_samples(path: Path, seconds: float) -> np.ndarray:
    """Read the first seconds of a chapter as 16-bit samples."""
    return np.asarray(np.round(read(path, seconds) * 32768).clip(-32768, 32767), np.int16)


def save_screenshots(page: Page, tab: Tab, stage: str) -> None:
    """Save the page at desktop size and at phone size, if pictures are requested."""
    if page.pictures is not None:
        path = page.pictures / f"serve{stage}.png"
        tab.screenshot(path=path, full_page=not stage)
        tab.set_viewport_size(PHONE)
        time.sleep(1)
        tab.screenshot(path=path.with_name(f"{path.stem}-phone.png"))
        tab.set_viewport_size(DESKTOP)


# -------------------------------------------------------------------------------- measured numbers


@benchmark()
def stills(page: Page, scores: Path) -> None:
    """Make demo.png, crowds.png, reliability.png and evaluate.png from measured numbers.

    demo.png also has a version of a phone's width, and both have a dark version.

    SCORES is the folder written by `scores`.
    """
    folder = find_folder(page)
    models = Population.reference().rank_models
    rows = [row for each in models if set(each.features) == set(FEATURES) for row in each.rows]
    plot_reliability(rows, folder / "reliability.png")
    with tempfile.TemporaryDirectory() as temporary, start_browser() as chromium:
        subprocess.run([*MONITOR, "demo", "--speed", "6000", "-o", temporary], check=True)
        shutil.copyfile(Path(temporary) / "demo.png", folder / "demo.png")
        plot_run(read_run(Path(temporary) / "demo.jsonl"), folder / "demo-390.png", width=390)
        for name in ("demo", "demo-390"):
            darken(folder / f"{name}.png", folder / f"{name}-dark.png")
        run, crowds = Path(temporary) / "demo.jsonl", folder / "crowds.png"
        subprocess.run([*MONITOR, "show", run, "-o", crowds, "--among", "50,1e4,1e6"], check=True)
        report, labels = Path(temporary) / "report.html", scores / "labels.npy"
        files = [scores / f"{name}.npy" for name in FEATURES]
        asked = ["--labels", str(labels), "--html", str(report)]
        subprocess.run([*MONITOR, "evaluate", *map(str, files), *asked], check=True)
        window = chromium.new_page(viewport=REPORT)
        window.goto(report.as_uri())
        window.screenshot(path=folder / "evaluate.png")


def darken(light: Path, dark: Path) -> None:
    """Invert a picture and restore its hues, as a browser with a dark theme does with an SVG."""
    inverted = 0.93 - 0.86 * imread(light)[..., :3]
    turned = np.array([(-0.574, 1.43, 0.144), (0.426, 0.43, 0.144), (0.426, 1.43, -0.856)])
    imsave(dark, np.clip(inverted @ turned.T, 0, 1))
