"""What changes within a voice counts less; in use it is one matrix."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra recipes")

import torch

from monitor.adapting.network import Student
from monitor.adapting.within import within
from monitor.networks.mel import log_mel
from monitor.networks.voice import VoiceNetwork
from recipes.voice.batches import Batches
from recipes.voice.cache import Cache
from recipes.voice.within import finished

pytestmark = pytest.mark.slow


def alike(embeddings: np.ndarray) -> tuple[float, float]:
    """The mean cosine of crops of one voice, and of two."""
    units = embeddings / np.linalg.norm(embeddings, axis=2, keepdims=True)
    cosines = np.einsum("vcm,wdm->vwcd", units, units)
    same = np.eye(len(units), dtype=bool)
    return float(cosines[same].mean()), float(cosines[~same].mean())


def test_what_changes_within_a_voice_counts_less():
    generator = np.random.default_rng(0)
    voices = generator.standard_normal((60, 1, 8))
    apart = generator.standard_normal((60, 20, 8)) * [4, 1, 1, 1, 1, 1, 1, 0.2]
    embeddings, corpora = voices + apart + 5, np.arange(60) % 2
    turn, centre = within(embeddings, corpora)
    (own, other), (own_turned, other_turned) = (
        alike(embeddings),
        alike((embeddings - centre) @ turn),
    )
    assert own_turned - other_turned > own - other + 0.2
    left = (apart - apart.mean(axis=1, keepdims=True)) @ turn
    spread = np.sqrt(np.mean(left**2, axis=(0, 1)))
    assert spread.max() / spread.min() < 6  # it was 20


def test_corpora_of_any_size_have_one_say():
    embeddings = np.random.default_rng(1).standard_normal((30, 4, 3))
    corpora = np.repeat([0, 1], [25, 5])
    embeddings[corpora == 1] += 10
    assert within(embeddings, corpora)[1] == pytest.approx(5, abs=1)


def test_it_is_one_matrix_in_use(prepared):
    torch.manual_seed(0)
    cache, student = Cache(prepared), Student().eval()
    windows = np.random.default_rng(2).standard_normal((2, 32_000)).astype(np.float32) / 10
    network = VoiceNetwork(finished(cache, student))
    found = network.embed(windows)
    with torch.inference_mode():
        raw = student(torch.from_numpy(log_mel(windows))).double().numpy()
    batches, generator = Batches(cache, 0), np.random.default_rng(0)
    with torch.inference_mode():
        crops = [
            student(torch.from_numpy(batches.of_one(speaker, speed, 4, generator))).double().numpy()
            for speaker in range(batches.speakers)
            for speed in (1.0, 0.9, 1.1)
        ]
    turn, centre = within(np.stack(crops), np.repeat(batches.corpora, 3))
    turned = (raw - centre) @ turn
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    np.testing.assert_allclose(found, turned, atol=1e-4)
