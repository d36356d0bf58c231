"""How late the page that listens is, in a real browser, and its picture.

    python -m benchmarks.serve SPEECH docs/serve.png > benchmarks/results/serve.md

The demo's speaker enrols by the file that is Chromium's microphone, at a population without her,
then speaks another chapter. A reading is late by the time from the last frame of its second, when
the page had it from the microphone, to the moment at which the reading was drawn. Needs the extras
web and dev, and the Debian package chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.build_reference import DEMO_CHAPTER
from monitor import Population
from monitor.population import DEMO_SPEAKER
from monitor.serve.page import ListeningPage
from monitor.serve.session import ServeSettings
from monitor.serve.templates import TemplateFolder
from tests.serve.browsing import PATIENCE, RATE, Speaker, enrols, hearing, speaks

TOKEN = "only for this picture"
SIZE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


def read(path: Path, seconds: float) -> np.ndarray:
    """The first seconds of a chapter, as 16-bit samples."""
    samples, rate = soundfile.read(path, round(seconds * RATE), dtype="int16")
    assert rate == RATE
    return np.asarray(samples)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure and picture the page that listens.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("picture", type=Path, nargs="?")
    parser.add_argument("--enrol-seconds", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the chapter")
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    chapters = sorted(given.speech.glob(f"*/{DEMO_SPEAKER}/*.opus"))
    demo = next(path for path in chapters if path.stem == DEMO_CHAPTER)
    other = next(path for path in chapters if path != demo)
    with tempfile.TemporaryDirectory() as place:
        base = Path(place) / "base.npz"
        Population.reference().without(DEMO_SPEAKER).save(base)
        settings = ServeSettings(
            TemplateFolder(Path(place) / "people", str(base)), given.enrol_seconds
        )
        speaker = Speaker(Path(place) / "microphone.wav")
        speaker.says(read(other, 4 * given.enrol_seconds))
        with ListeningPage(settings, token=TOKEN) as page, hearing(speaker) as chromium:
            tab = chromium.new_page(viewport=SIZE, color_scheme="dark" if given.dark else "light")
            tab.set_default_timeout(PATIENCE)
            tab.goto(f"{page.url}#{TOKEN.replace(' ', '%20')}", wait_until="commit")
            if given.picture:
                tab.wait_for_selector("#name")
                _picture(tab, given.picture, "-welcome")
            enrols(tab, "Ann")
            if given.picture:
                _picture(tab, given.picture, "-enrolled")
            speaker.says(read(demo, given.seconds + 30))
            speaks(tab, 6)
            load = os.getloadavg()[0]
            time.sleep(given.seconds)
            late = json.loads(tab.get_attribute("#latency", "data-seconds"))
            if given.picture:
                tab.screenshot(path=given.picture, full_page=True)
                _picture(tab, given.picture, "")
            browser = chromium.version
    low, middle, high, most = np.quantile(late, (0.1, 0.5, 0.9, 1.0))
    print("# How late the page that listens is\n")
    print("`python -m benchmarks.serve SPEECH` says, of the time from the last frame of a second")
    print("at the page and its reading drawn there:\n")
    print("| readings | a tenth within | half within | nine of ten within | all within |")
    print("| --- | --- | --- | --- | --- |")
    print(f"| {len(late)} | {low:.2f} s | {middle:.2f} s | {high:.2f} s | {most:.2f} s |\n")
    print(
        f"Features {', '.join(settings.features)}; {os.cpu_count()} cores, load {load:.1f} in the"
    )
    print(f"last minute (browser, server and others); Chromium {browser}, websockets "
          f"{version('websockets')}.")  # fmt: skip


def _picture(tab, path: Path, stage: str) -> None:  # type: ignore[no-untyped-def]
    """Also as a phone shows it, beside."""
    if stage:
        tab.screenshot(path=path.with_name(f"{path.stem}{stage}.png"))
    tab.set_viewport_size(PHONE)
    time.sleep(1)
    tab.screenshot(path=path.with_name(f"{path.stem}{stage}-phone.png"))
    tab.set_viewport_size(SIZE)


if __name__ == "__main__":
    main()
