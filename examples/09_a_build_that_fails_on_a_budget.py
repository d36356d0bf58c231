"""A build that fails when a recording discloses more of its speaker than a budget.

python examples/09_a_build_that_fails_on_a_budget.py

Plays the build of a product that ships recordings of one speaker, here a reader whom the package
knows. The budget is 12 bits of evidence, and stands in a file of the repository. A greeting of
twelve seconds keeps it: the command leaves with 0. A beep of two seconds says nothing yet: 4, and
the build fails. Ten minutes of the same voice do not keep it: 3. docs/ci.md has the same as a
GitHub workflow.
"""

import csv
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from monitor import sources
from monitor.population import DEMO_SPEAKER, demo_frames
from monitor.sources import write_frames
from monitor.types import TICKS_PER_SECOND, Track

BUDGET = f"""
[replay]
watch = "{DEMO_SPEAKER}"  # who speaks; one of yours with population = "people.npz"
alert = ["bits>12 for 0 s after 10 s"]  # the budget: at no moment more, from 10 s on
"""
COMMAND = "--config disclosure.toml replay recordings/ --each --summary disclosure.csv --replace"


def spoken(path: Path, seconds: float) -> None:
    """The first seconds of the reader; a product has audio files."""
    made = sources.FramesFile(demo_frames()).stream_info.tracks
    whole, ticks = sources.read_frames(demo_frames()), round(seconds * TICKS_PER_SECOND)
    tracks = {}
    for name, track in whole.tracks.items():
        some = slice(int(np.searchsorted(track.ticks, ticks, side="right")))
        spans = None if track.spans is None else track.spans[some]
        tracks[name] = Track(track.ticks[some], track.values[some], spans)
    write_frames(
        path,
        whole.speech[:ticks],
        tracks,
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
            if row["undecided"]:
                print(f"{row['recording']}: {row['undecided']}")
                continue
            most, at = float(row["bits"]), row["first_alert_seconds"]
            over = f", over the budget after {float(at):.0f} s" if at else ""
            print(f"{row['recording']}: {most:.1f} bits at its end{over}")
    print(f"exit status {done.returncode}\n")
    return done.returncode


with tempfile.TemporaryDirectory() as place:
    product = Path(place)
    (product / "recordings").mkdir()
    (product / "disclosure.toml").write_text(BUDGET)
    spoken(product / "recordings" / "greeting.npz", 12.0)
    kept = build(product)
    spoken(product / "recordings" / "beep.npz", 2.0)
    undecided = build(product)
    (product / "recordings" / "beep.npz").unlink()
    shutil.copy(demo_frames(), product / "recordings" / "talk.npz")
    exceeded = build(product)
    sys.exit(0 if (kept, undecided, exceeded) == (0, 4, 3) else 1)
