"""What CONTRIBUTING.md says a new feature touches is what it touches: a toy of one is added.

A copy of the package and its documents gets exactly the files that are listed; the toy then runs in
a process of its own, and under the contracts of every feature.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import not_skipped, pytest_collection_modifyitems

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("monitor", "docs", "tests", "benchmarks", "pyproject.toml", "conftest.py")
MODULE = """'''How loud every 10 ms are.'''

from __future__ import annotations

import numpy as np

from monitor.features.framing import Framer
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.kinds import Sensitivity
from monitor.types import FloatArray, Track

__all__ = ["Loudness"]


class Loudness:
    '''Histogram feature: the level of every 10 ms, in steps of 3 dB.'''

    spec = FeatureSpec("loudness", HISTOGRAM, size=20, frame_seconds=0.01, rate=8000)
    follow = Sensitivity(50, 200, 10.0, 0.01, back_units=20, held_units=4, min_units=3)

    def __init__(self) -> None:
        self.reset()

    def process(self, samples: FloatArray) -> Track:
        '''The frames that these further samples, shape (n,), complete.'''
        frames = self._framer.push(samples)
        ticks = self._heard + np.arange(1, len(frames) + 1)
        self._heard += len(frames)
        level = 10 * np.log10(np.mean(frames**2, axis=1) + 1e-6)
        bins = np.clip(20 + level // 3, 0, 19).astype(int)
        return Track(ticks[ticks > self._skip], bins[ticks > self._skip])

    def flush(self) -> Track:
        '''Nothing: a frame that is cut short has no level.'''
        return self.spec.no_frames()

    def skip_to(self, tick: int) -> None:
        '''Frames up to there are not needed.'''
        self._skip = tick

    def reset(self) -> None:
        '''Begin a recording.'''
        self._framer, self._heard, self._skip = Framer(80, 80), 0, 0
"""
CHANGED = {
    "monitor/features/registry.py": [
        (
            '    "tokens": FeatureEntry(',
            """    "loudness": FeatureEntry(partial(_load_class, "loudness", "Loudness")),
    "tokens": FeatureEntry(""",
        )
    ],
    "tests/contracts.py": [
        (
            "from monitor.features.f0 import F0, RobustF0\n",
            "from monitor.features.f0 import F0, RobustF0\n"
            "from monitor.features.loudness import Loudness\n",
        ),
        (
            '    "phones": FeatureCase(',
            """    "loudness": FeatureCase(Loudness, lambda: voice(3.0, 8000)),
    "phones": FeatureCase(""",
        ),
    ],
}
WORKS = """import subprocess, sys
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
"""


@pytest.mark.slow
def test_a_feature_is_added_by_the_files_that_are_listed(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", "*.png")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "monitor" / "features" / "loudness.py").write_text(MODULE, encoding="utf-8")
    for path, edits in CHANGED.items():
        text = (tmp_path / path).read_text("utf-8")
        for old, new in edits:
            assert text.count(old) == 1, path
            text = text.replace(old, new)
        (tmp_path / path).write_text(text, encoding="utf-8")
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.partition("### A feature\n")[2].partition("\n### ")[0]
    listed = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    assert {each.replace("NAME", "loudness") for each in listed} == {
        "monitor/features/loudness.py",
        *CHANGED,
    }
    there = f"import monitor\nassert {str(tmp_path)!r} in monitor.__file__\n"
    done = subprocess.run(
        [sys.executable, "-c", there + WORKS],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_test_needs_is_known_by_its_fixtures_and_ci_skips_nothing(request):
    test = pytest.Function.from_parent(request.node.parent, name="test_page", callobj=lambda: None)
    test.fixturenames.append("browser")
    pytest_collection_modifyitems(request.config, [test])
    assert {mark.name for mark in test.iter_markers()} >= {"browser", "slow"}
    skipped = ("tests/test_x.py", 7, "Skipped: needs a microphone")
    for ci, outcome in ((True, "failed"), (False, "skipped")):
        report = pytest.TestReport("test_x", ("", 0, ""), {}, "skipped", skipped, "setup")
        found = not_skipped(report, ci)
        assert found.outcome == outcome
        assert "needs a microphone" in str(found.longrepr)
    report = pytest.TestReport("test_x", ("", 0, ""), {}, "skipped", None, "call")
    report.wasxfail = "a bug"
    assert not_skipped(report, True).outcome == "skipped"
