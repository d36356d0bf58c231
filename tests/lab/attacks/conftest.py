"""Readers of buzzes, each with a pitch of its own, as audio: what tells them apart is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.lab.attacks.readers import Amounts
from tests.sounds import RATE, synthetic

AMOUNTS = Amounts(seconds=2.0, trials=3, least_segments=1, most_segments=2)


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Folders of so many readers with so many sessions of 16 s, each made once."""
    made: dict[tuple[int, int, int], Path] = {}

    def of(readers: int = 6, sessions: int = 2, first: int = 0) -> Path:
        key = readers, sessions, first
        if key not in made:
            made[key] = tmp_path_factory.mktemp("readers")
            for i in range(first, first + readers):
                for session in range(sessions):
                    path = made[key] / f"r{i}" / f"day{session}.wav"
                    path.parent.mkdir(exist_ok=True)
                    pitch = 90 * 1.12 ** (i % 12)
                    sound = synthetic(20.0, pitch, seed=10 * i + session)
                    soundfile.write(path, np.round(sound * 2**15).astype(np.int16), RATE)
        return made[key]

    return of
