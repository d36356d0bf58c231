"""A toy of what CONTRIBUTING.md says how to add: whole files, edits, and that it works."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["TOYS", "Toy"]


@dataclass(frozen=True)
class Toy:
    """One new part.

    Attributes:
        name: what stands for NAME in the section of CONTRIBUTING.md.
        new: whole files.
        changed: what stands in a file, and what it becomes; more of them follow.
        works: a program that shows that the part is there.
    """

    section: str
    name: str
    new: Mapping[str, str]
    changed: Mapping[str, tuple[str, ...]]
    works: str


FEATURE = Toy(
    "A feature",
    "loudness",
    {
        "monitor/features/loudness.py": '''"""How loud every 10 ms are."""

from __future__ import annotations

import numpy as np

from monitor.features.framing import Framer
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.kinds import Sensitivity
from monitor.types import FloatArray, Track

__all__ = ["Loudness"]


class Loudness:
    """Histogram feature: the level of every 10 ms, in steps of 3 dB."""

    spec = FeatureSpec("loudness", HISTOGRAM, size=20, frame_seconds=0.01, rate=8000)
    follow = Sensitivity(50, 200, 10.0, 0.01, back_units=20, held_units=4, min_units=3)

    def __init__(self) -> None:
        self.reset()

    def process(self, samples: FloatArray) -> Track:
        """The frames that these further samples, shape (n,), complete."""
        frames = self._framer.push(samples)
        ticks = self._heard + np.arange(1, len(frames) + 1)
        self._heard += len(frames)
        level = 10 * np.log10(np.mean(frames**2, axis=1) + 1e-6)
        bins = np.clip(20 + level // 3, 0, 19).astype(int)
        return Track(ticks[ticks > self._skip], bins[ticks > self._skip])

    def flush(self) -> Track:
        """Nothing: a frame that is cut short has no level."""
        return self.spec.no_frames()

    def skip_to(self, tick: int) -> None:
        """Frames up to there are not needed."""
        self._skip = tick

    def reset(self) -> None:
        """Begin a recording."""
        self._framer, self._heard, self._skip = Framer(80, 80), 0, 0
'''
    },
    {
        "monitor/features/registry.py": (
            '    "tokens": FeatureEntry(',
            """    "loudness": FeatureEntry(partial(_load_class, "loudness", "Loudness")),
    "tokens": FeatureEntry(""",
        ),
        "tests/contracts.py": (
            "from monitor.features.f0 import F0, RobustF0\n",
            "from monitor.features.f0 import F0, RobustF0\n"
            "from monitor.features.loudness import Loudness\n",
            '    "phones": FeatureCase(',
            """    "loudness": FeatureCase(Loudness, lambda: voice(3.0, 8000)),
    "phones": FeatureCase(""",
        ),
    },
    """
import subprocess, sys
from pathlib import Path
contracts = "-m pytest -q -p no:cacheprovider tests/test_contracts.py -k loudness"
subprocess.run([sys.executable, *contracts.split()], check=True)
import soundfile
from monitor import Population
from tests.sounds import RATE, synthetic
for name in ("ann", "bob"):
    Path("people", name).mkdir(parents=True)
    soundfile.write(Path("people", name, "1.wav"), synthetic(12.0), RATE)
command = "enroll people -o us.npz --features f0,loudness --seconds 5"
subprocess.run([sys.executable, "-m", "monitor", *command.split()], check=True)
templates = Population.load("us.npz").features
assert list(templates) == ["f0", "loudness"]
assert templates["loudness"].slices.sum() > 2 * 400
""",
)

TOYS = (FEATURE,)
