"""Voices made by machine: enough to see a network learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from monitor.networks.layers import RATE

SECONDS = 6
TIMES = 6  # over again


def voice(pitch: float, formant: float, seed: int) -> np.ndarray:
    """A buzz of one pitch through one resonance, trembling and breathing."""
    generator = np.random.default_rng(seed)
    time = np.arange(SECONDS * RATE) / RATE
    phase = 2 * np.pi * pitch * (time + 0.002 * np.sin(2 * np.pi * 5 * time + seed))
    sound = sum(
        np.exp(-(((pitch * k - formant) / 400) ** 2)) * np.sin(k * phase) for k in range(1, 25)
    )
    sound += 0.05 * generator.standard_normal(len(time))
    sound *= 3000 / np.abs(sound).max() * (1 + 0.3 * np.sin(9 * time))
    return np.tile(np.asarray(sound, np.int16), TIMES)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    """A cache of machine voices: twelve to train on, four in each half, four held out."""
    from recipes.phones.cache import Cache, Piece

    roles = [("train", 12), ("choose", 4), ("report", 4), ("held out", 4)]
    pieces, audio, start = [], [], 0
    for role, count in roles:
        for number in range(count):
            for session in "12":
                sound = voice(90 + 20 * number, 500 + 170 * (number % 5), 2 * number + int(session))
                piece = Piece(
                    corpus="a" if number % 2 else "b",
                    speaker=f"{role}{number}",
                    gender="FM"[number // 2 % 2],
                    session=session,
                    adult=number < 2,
                    role=role,
                    start=start,
                    samples=len(sound),
                )
                pieces.append(piece)
                audio.append(sound)
                start += len(sound)
    folder: Path = tmp_path_factory.mktemp("voices") / "cache"
    Cache.write(folder, pieces, audio)
    return folder
