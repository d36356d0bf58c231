"""Corpora with known truth: simulated voices, and synthetic ones as audio."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulation import SIZE, Simulation
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.sources.frames import write_frames
from monitor.training import fitted
from monitor.training.voices import SessionFrames, SpeakerSpeech
from monitor.types import Frames, Track
from tests.sounds import RATE, synthetic


@pytest.fixture
def quick(monkeypatch):
    """Only the live loss: the others are for information and take most of the time."""
    monkeypatch.setattr(fitted, "LOSSES", ("LL",))


def _session(frames: Frames, size: int) -> dict[str, SessionFrames]:
    """One session on the speech clock, worked out tick by tick."""
    units, values, spoken = [], [], np.cumsum(frames.speech)
    for tick, value in zip(frames.tracks["f0"].ticks, frames.tracks["f0"].values, strict=True):
        units.append(max(int(spoken[tick - 1]) - 1, 0) // 10)
        values.append(value)
    length = int(spoken[-1]) // 10
    inside = np.array(units) < length
    spec = FeatureSpec("f0", HISTOGRAM, size, 0.01)
    return {"f0": SessionFrames(np.array(values)[inside], np.array(units)[inside], length, spec)}


@pytest.fixture(scope="session")
def simulated() -> Callable[..., list[SpeakerSpeech]]:
    """Voices of a simulation: ``simulated(speakers, sessions, seconds, seed=0)``."""

    def make(speakers: int, sessions: int, seconds: float, seed: int = 0) -> list[SpeakerSpeech]:
        simulation = Simulation(speakers, seed)
        return [
            SpeakerSpeech(
                f"{speaker:03d}",
                tuple(
                    _session(simulation.frames(speaker, session, seconds), SIZE)
                    for session in range(sessions)
                ),
            )
            for speaker in range(speakers)
        ]

    return make


@pytest.fixture
def frames_file() -> Callable[..., Path]:
    """Writes frames of f0 by hand: ``frames_file(path, speech, ticks, bins, size=104)``."""

    def write(path: Path, speech, ticks, bins, size: int = SIZE) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        track = Track(np.asarray(ticks, np.int64), np.asarray(bins, np.int64))
        write_frames(path, np.asarray(speech, bool), {"f0": track}, {"f0": size}, {"f0": 0.01})
        return path

    return write


@pytest.fixture
def flac() -> Callable[..., Path]:
    """A FLAC of a voice; ``keep`` is the share of its bytes that is left of it."""
    import soundfile

    def write(path: Path, seconds: float, pitch: float = 120.0, keep: float = 1.0) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, synthetic(seconds, pitch), RATE)
        content = path.read_bytes()
        path.write_bytes(content[: round(keep * len(content))])
        return path

    return write
