"""Simulated readers: pitch frames of any number of speakers with known parameters, without audio.

A speaker has a mean pitch and a spread. Each session shifts the mean slightly. There are 100 ticks
per second. About 80 % of them are speech, and half of the speech is voiced.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from monitor.sources.frames import write_frames
from monitor.types import Frames, Track

__all__ = ["Simulation", "write_corpus"]
SIZE = 104
TICKS = 100


class Simulation:
    """A population of simulated voices.

    Args:
        speakers: N.
        seed: random seed of the speakers and their frames.
        session_bins: standard deviation of a session's shift of the mean pitch, in bins.
    """

    def __init__(self, speakers: int, seed: int = 0, session_bins: float = 1.5) -> None:
        self._seed, self._session = seed, session_bins
        generator = np.random.default_rng(seed)
        # two broad groups, as women and men are
        low = generator.random(speakers) < 0.5
        self.mean = np.where(low, 55.0, 25.0) + generator.normal(0, 7.0, speakers)
        self.spread = np.exp(generator.normal(np.log(6.0), 0.25, speakers))

    def frames(self, speaker: int, session: int, seconds: float) -> Frames:
        """Simulate a session of a speaker."""
        generator = np.random.default_rng([self._seed, speaker, session])
        n = round(seconds * TICKS)
        speech = _runs(generator, n, on=2.0, off=0.5)
        voiced = speech & _runs(generator, n, on=0.3, off=0.3)
        centre = self.mean[speaker] + generator.normal(0, self._session)
        # pitch changes slowly within a phrase, so neighbouring frames are similar
        slow = np.repeat(generator.normal(0, 1, n // 40 + 1), 40)[:n]
        fast = generator.normal(0, 1, n)
        pitch = centre + self.spread[speaker] * (0.85 * slow + 0.53 * fast)
        bins = np.clip(np.rint(pitch), 0, SIZE - 1).astype(np.int64)
        ticks = np.flatnonzero(voiced)
        return Frames(speech, {"f0": Track(ticks + 1, bins[ticks])})


def _runs(
    generator: np.random.Generator, ticks: int, *, on: float, off: float
) -> NDArray[np.bool_]:
    """Draw runs of true and false ticks, with exponential lengths of mean ``on`` and ``off`` s."""
    count = int(ticks / TICKS / (on + off) * 2) + 20
    lengths = generator.exponential(1.0, (count, 2)) * np.array([on, off]) * TICKS
    edges = np.cumsum(np.maximum(lengths.ravel(), 1).astype(np.int64))
    return np.asarray(np.searchsorted(edges, np.arange(ticks), side="right") % 2 == 0)


def write_corpus(
    folder: Path, simulation: Simulation, speakers: int, sessions: int, seconds: float
) -> None:
    """Write ``folder/SPEAKER/SESSION.npz`` for the first ``speakers``."""
    for speaker in range(speakers):
        home = folder / f"{speaker:06d}"
        home.mkdir(parents=True)
        for session in range(sessions):
            frames = simulation.frames(speaker, session, seconds)
            path = home / f"s{session}.npz"
            write_frames(path, frames.speech, frames.tracks, {"f0": SIZE}, {"f0": 0.01})
