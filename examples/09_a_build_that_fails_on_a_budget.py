"""A build that fails when a recording discloses more of its speaker than a budget.

python examples/09_a_build_that_fails_on_a_budget.py

Plays the build of a product that ships recordings of one speaker, here a reader whom the package
knows. The budget is 7 bits of evidence, and stands in a file of the repository. A greeting of ten
seconds keeps it: the command leaves with 0. Ten minutes of the same voice do not: 3, and the build
fails. docs/ci.md has the same as a GitHub workflow.
"""

import csv
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from monitor import sources, write_frames
from monitor.population import DEMO_SPEAKER, demo_frames

BUDGET = f"""
[replay]
watch = "{DEMO_SPEAKER}"  # who speaks; one of yours with population = "people.npz"
alert = ["evidence_bits>7 for 0 s"]  # the budget: at no moment more
"""
COMMAND = "--config disclosure.toml replay recordings/ --each --summary disclosure.csv --replace"


def greeting(path: Path) -> None:
    """The first ten seconds of the reader; a product has audio files."""
    reader = sources.FramesFile(demo_frames())
    first, made = next(iter(reader)), reader.brings.tracks
    write_frames(
        path,
        first.speech,
        first.tracks,
        {name: spec.size for name, spec in made.items()},
        {name: spec.frame_seconds for name, spec in made.items()},
        networks={name: spec.network for name, spec in made.items()},
    )


def build(folder: Path) -> int:
    """What the build runs; its exit status."""
    line = [sys.executable, "-m", "monitor", *COMMAND.split()]
    print(f"$ monitor {COMMAND}")
    done = subprocess.run(line, cwd=folder, check=False, capture_output=True, text=True)
    with (folder / "disclosure.csv").open(newline="") as table:
        for row in csv.DictReader(table):
            most, at = float(row["evidence_bits"]), row["first_alert_seconds"]
            over = f", over the budget after {float(at):.0f} s" if at else ""
            print(f"{row['recording']}: {most:.1f} bits of evidence at its end{over}")
    print(f"exit status {done.returncode}\n")
    return done.returncode


with tempfile.TemporaryDirectory() as place:
    product = Path(place)
    (product / "recordings").mkdir()
    (product / "disclosure.toml").write_text(BUDGET)
    greeting(product / "recordings" / "greeting.npz")
    kept = build(product)
    shutil.copy(demo_frames(), product / "recordings" / "talk.npz")
    exceeded = build(product)
    sys.exit(0 if (kept, exceeded) == (0, 3) else 1)
