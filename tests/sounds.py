"""Audio that tests write themselves."""

import numpy as np

RATE = 16_000


def synthetic(seconds: float, pitch: float = 120.0, seed: int = 0) -> np.ndarray:
    """Something that a voice activity detector takes for speech, float: a buzz in syllables."""
    t = np.arange(round(seconds * RATE)) / RATE
    generator = np.random.default_rng(seed)
    bend = 1 + 0.1 * np.sin(2 * np.pi * 0.7 * t + generator.uniform(0, 6))
    phase = 2 * np.pi * np.cumsum(pitch * bend) / RATE
    tone = sum(np.sin(k * phase) / k**0.7 for k in range(1, 25))
    loudness = np.clip(np.sin(2 * np.pi * 1.3 * t) + 0.6, 0, 1)
    samples = 0.08 * tone * loudness + 1e-4 * generator.standard_normal(t.size)
    return np.asarray(samples, np.float32)
