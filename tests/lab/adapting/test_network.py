"""The voice network in torch says what the one in numpy says, and comes back as it went."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra training")

import torch

import monitor.networks
from monitor.errors import StoreError
from monitor.lab.adapting.fine_tuning import TrainableVoice
from monitor.networks.layers import read_weights
from monitor.networks.voice import VoiceNetwork, mel_decibels, shipped

WEIGHTS = Path(monitor.networks.__file__).with_name("voice.npz")


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    return read_weights(WEIGHTS)[0]


def said(student, windows: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        made = student(torch.from_numpy(np.stack([mel_decibels(each) for each in windows])))
    return np.asarray(torch.nn.functional.normalize(made).numpy())


def units(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1.0, 1.73, 3.0])
def test_torch_says_what_numpy_says(weights, seconds):
    windows = np.random.default_rng(5).standard_normal((4, round(16_000 * seconds))) / 10
    windows = (windows * [[1], [0.01], [1], [0]]).astype(np.float32)
    made, expected = said(TrainableVoice(weights), windows), units(shipped().embed(windows))
    np.testing.assert_allclose(made[:3], expected[:3], atol=1e-4)
    # in silence deviations are the rounding of what they are taken of
    np.testing.assert_allclose(made[3], expected[3], atol=2e-3)


def test_torch_says_what_numpy_says_of_readers(weights, shared):
    from monitor.lab.adapting.training import decode_mono, extract_speech

    for path in sorted((shared / "speech" / "background").glob("*/*.opus"))[:3]:
        sound = extract_speech(*decode_mono(path))
        windows = sound[: sound.size // 48_000 * 48_000].reshape(-1, 48_000)
        found = said(TrainableVoice(weights), windows)
        np.testing.assert_allclose(found, units(shipped().embed(windows)), atol=1e-4)


def test_the_weights_come_back_as_they_went(weights):
    again = TrainableVoice(weights).plain()
    assert again.keys() == weights.keys()
    assert all(np.array_equal(each, weights[name]) for name, each in again.items())


@pytest.mark.slow
def test_what_was_trained_runs_in_numpy(weights):
    student = TrainableVoice(weights)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for each in student.parameters():
            each.mul_(1 + 0.05 * torch.randn(each.shape, generator=generator))
    windows = np.random.default_rng(5).standard_normal((2, 48_000)).astype(np.float32) / 10
    moved = units(VoiceNetwork(student.plain()).embed(windows))
    np.testing.assert_allclose(moved, said(student, windows), atol=1e-4)
    assert np.abs(moved - units(shipped().embed(windows))).max() > 1e-2


def test_weights_of_another_network_are_refused(weights):
    lacking = {name: each for name, each in weights.items() if name != "embed.bias"}
    wider = {**weights, "embed.mean": np.ones((2, 2), np.float32)}
    for wrong in (lacking, wider, {}):
        with pytest.raises(StoreError, match="another network"):
            TrainableVoice(wrong)
