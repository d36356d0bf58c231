"""What a command has not imported by a moment: that is what it starts fast by, on any machine."""

from __future__ import annotations

import subprocess
import sys

import pytest
import soundfile

from tests.sounds import RATE, synthetic

pytestmark = pytest.mark.slow

SLOW = (
    *("scipy.stats", "scipy.optimize", "river", "sklearn", "sqlalchemy", "pandas"),
    *("matplotlib", "torch", "speechbrain", "sqlite3", "http.client", "ssl"),
)
"""None of them is needed for pitch, however much is installed; river is once there is a change to
look for."""

LOADED = f"""
import sys
def loaded(): return sorted(set({SLOW!r}) & set(sys.modules))
"""


def ran(program: str) -> str:
    """What a fresh interpreter printed."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED + program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("on_change", ["ignore", "note", "reset", "split"])
def test_a_population_and_its_monitor_load_nothing_slow(on_change):
    program = f"""
from monitor import Monitor, Population
Monitor(Population.reference(), ["f0"], on_change={on_change!r})
print(loaded())
"""
    assert ran(program) == "[]\n"


UNUSED = (
    *("scipy.signal", "scipy.special", "scipy.optimize", "scipy.fft", "rich", "email", "socket"),
    *("importlib.metadata", "difflib", "multiprocessing", "numpy.ma.core", "numpy.random"),
    *("monitor.sources.people", "monitor.transcripts.turns"),
)
"""Of a recording of one person, without a terminal."""


@pytest.mark.parametrize("features", ["f0", "f0,phones,voice"])
def test_the_first_reading_comes_before_anything_slow(tmp_path, features):
    soundfile.write(tmp_path / "short.wav", synthetic(5.0), RATE)
    program = f"""
from monitor.cli import main
try:
    main(["replay", {str(tmp_path / "short.wav")!r}, "--features", {features!r}, "--jsonl", "-"])
except SystemExit as left:
    assert left.code == 0, left.code
print(loaded(), sorted(set({UNUSED!r}) & set(sys.modules)))
"""
    *lines, last = ran(program).splitlines()
    assert last == "[] []"
    assert sum('"type":"reading"' in line for line in lines) == 5
    assert '"usable":0.0' not in lines[-2]  # pitch was heard


VOICE = """
import numpy as np
from monitor import Monitor, Population
from monitor.types import Frames, Track
monitor = Monitor(Population.reference(), ["f0"], on_change="note")
def hear(seconds):
    bins = np.random.default_rng(0).integers(38, 44, 100 * seconds)
    voice = Track(np.arange(1, 100 * seconds + 1), bins)
    monitor.push(Frames(np.ones(100 * seconds, bool), {"f0": voice}))
"""


def test_river_comes_alone_and_when_a_change_can_first_be_seen():
    # 4 units of 0.5 s to be warm, 3 held back, the 9 margins that ADWIN waits for
    program = VOICE + "hear(7); print(loaded()); hear(60); print(loaded())"
    assert ran(program) == "[]\n['river']\n"


def test_importing_the_package_leaves_numpy_as_it_is():
    """A program that uses it finds ``numpy.testing`` as numpy made it."""
    program = """
from monitor import Monitor, Population, sources
import numpy as np
queue = sources.AudioQueue(16000)
queue.put(np.zeros(16000)); queue.stop()
list(Monitor(Population.reference(), ["f0"]).stream(queue))
parts = [sys.modules.get(f"numpy.{name}") for name in ("testing", "f2py")]
print([type(part).__name__ for part in parts if part is not None and type(part) is not type(sys)])
"""
    assert ran(program) == "[]\n"
