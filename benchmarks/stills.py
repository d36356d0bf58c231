"""Pictures of measured numbers: demo, crowds, reliability and evaluate.png of docs.

    python -m benchmarks.scores FRAMES SCORES
    python -m benchmarks.stills SCORES docs

`monitor demo` leaves the first, and what the second is drawn from (``monitor show --among``); the
third is of the shipped rank models of what every install hears; the fourth is the page of ``monitor
evaluate SCORES/f0.npy SCORES/phones.npy SCORES/voice.npy --html``, seen by Chromium (extra dev,
Debian: chromium fonts-dejavu).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import ViewportSize, sync_playwright

from benchmarks.build_reference import FEATURES
from monitor.plots.calibration import plot_reliability
from monitor.population.population import Population
from tests.web.conftest import ARGUMENTS

CROWDS = "50,1e4,1e6"
SEEN: ViewportSize = {"width": 1200, "height": 1260}


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the README's pictures of numbers.")
    parser.add_argument("scores", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    rank_models = Population.reference().rank_models
    rows = [
        row
        for rank_model in rank_models
        if set(rank_model.features) == set(FEATURES)
        for row in rank_model.rows
    ]
    plot_reliability(rows, given.folder / "reliability.png")
    monitor = [sys.executable, "-m", "monitor"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        subprocess.run([*monitor, "demo", "--speed", "6000", "-o", folder], check=True)
        shutil.copyfile(Path(folder) / "demo.png", given.folder / "demo.png")
        run, crowds = Path(folder) / "demo.jsonl", given.folder / "crowds.png"
        subprocess.run([*monitor, "show", run, "-o", crowds, "--among", CROWDS], check=True)
        page = Path(folder) / "report.html"
        files = [given.scores / f"{name}.npy" for name in FEATURES]
        labels = given.scores / "labels.npy"
        subprocess.run(
            [*monitor, "evaluate", *files, "--labels", labels, "--html", page], check=True
        )
        program = shutil.which("chromium") or shutil.which("google-chrome")
        chromium = driver.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        window = chromium.new_page(viewport=SEEN)
        window.goto(page.as_uri())
        window.screenshot(path=given.folder / "evaluate.png")
        chromium.close()


if __name__ == "__main__":
    main()
