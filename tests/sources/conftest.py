"""Recordings of a synthetic voice in every format."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.types import Block, Gap

RATE = 16_000
FORMATS = {
    "wav": ("WAV", "PCM_16"),
    "flac": ("FLAC", "PCM_16"),
    "ogg": ("OGG", "VORBIS"),
    "opus": ("OGG", "OPUS"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "aiff": ("AIFF", "PCM_16"),
    "au": ("AU", "PCM_16"),
    "w64": ("W64", "PCM_16"),
    "caf": ("CAF", "PCM_16"),
}


def voice(seconds: float = 8.0, seed: int = 0) -> np.ndarray:
    """A buzzing, wobbling tone in noise, 16-bit."""
    t = np.arange(round(seconds * RATE)) / RATE
    noise = np.random.default_rng(seed).standard_normal(len(t))
    tone = sum(np.sin(2 * np.pi * (130 + 8 * np.sin(3 * t)) * t * k) / k for k in range(1, 6))
    return np.round(5000 * tone + 500 * noise).astype(np.int16)


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One file of 8 s in each format, by suffix; not to be changed."""
    folder = tmp_path_factory.mktemp("recordings")
    made = {}
    for suffix, (form, subtype) in FORMATS.items():
        made[suffix] = folder / f"voice.{suffix}"
        soundfile.write(made[suffix], voice(), RATE, format=form, subtype=subtype)
    return made


@pytest.fixture
def listen() -> Callable[..., tuple[np.ndarray, list[Gap]]]:
    """All samples and all gaps of a source."""

    def listen(source) -> tuple[np.ndarray, list[Gap]]:
        with source:
            items = list(source)
        gaps = [item for item in items if isinstance(item, Gap)]
        blocks = [item.samples for item in items if isinstance(item, Block)]
        return np.concatenate(blocks) if blocks else np.zeros(0, np.float32), gaps

    return listen
