"""Hearing a corpus: what is decoded is what was said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.errors import CorpusError
from monitor.networks.layers import RATE
from recipes.phones.cache import hear
from recipes.voice.corpus import Recording

SOUND = (8000 * np.sin(np.arange(2 * RATE) / 20)).astype(np.int16)


def recording(path: Path, rate: int = RATE) -> Recording:
    soundfile.write(path, SOUND, rate, subtype="PCM_16")
    return Recording(path, "corpus", path.stem, "F", "1", True, "train", 2.0)


def test_every_recording_is_found_again(tmp_path):
    listed = [recording(tmp_path / f"{name}.flac") for name in "ab"]
    cache = hear(listed, tmp_path / "cache")
    assert [piece.voice for piece in cache.of("train")] == ["corpus a", "corpus b"]
    second = cache.sound(cache.pieces[1], 0.5, 1.0)
    np.testing.assert_array_equal(second, SOUND[RATE // 2 : 3 * RATE // 2] / np.float32(32768))
    assert len(cache.sound(cache.pieces[1], 1.5, 1.0)) == RATE // 2


def test_another_rate_is_said(tmp_path):
    with pytest.raises(CorpusError, match=r"a\.flac: not mono at 16000 Hz"):
        hear([recording(tmp_path / "a.flac", 8000)], tmp_path / "cache")
