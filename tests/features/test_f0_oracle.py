"""Side by side with torch-yin, the implementation that SRD used."""

from __future__ import annotations

import numpy as np
import pytest

from tests.features.lags import yin_lags


@pytest.fixture(scope="module")
def oracle():
    """Lags of torch-yin, 0 where it calls a frame unvoiced."""
    torch = pytest.importorskip("torch", reason="needs the extra peers")
    torchyin = pytest.importorskip("torchyin", reason="needs the extra peers")

    def lags(samples):
        hertz = torchyin.estimate(
            torch.from_numpy(np.asarray(samples, np.float32)),
            sample_rate=8000,
            pitch_min=65,
            pitch_max=450,
            frame_stride=0.01,
            threshold=0.1,
        ).numpy()
        return np.where(hertz > 0, np.rint(8000 / np.maximum(hertz, 1)), 0).astype(int)

    return lags


@pytest.mark.parametrize("level", [1.0, 0.03, 0.001, 30.0])
def test_the_same_lags_on_real_readers(oracle, voices, level):
    heard = [np.clip(voice * level, -1, 1) for voice in voices]
    ours = np.concatenate([yin_lags(voice) for voice in heard])
    theirs = np.concatenate([oracle(voice) for voice in heard])
    assert ours.shape == theirs.shape
    # All but the odd frame where the two roundings fall on either side of an equality.
    assert np.mean(ours == theirs) >= 0.9995


@pytest.mark.parametrize("hertz", [66.0, 97.3, 100.0, 151.7, 233.1, 317.9, 419.0, 430.0])
def test_the_same_lags_on_tones(oracle, hertz):
    generator = np.random.default_rng(3)
    tone = np.sin(2 * np.pi * hertz * np.arange(16_000) / 8000)
    for noise in (0.003, 0.1, 0.3):
        noisy = 0.3 * tone + noise * generator.normal(size=tone.size)
        assert np.mean(yin_lags(noisy) == oracle(noisy)) >= 0.99
