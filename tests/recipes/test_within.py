"""What changes within a voice counts less; in use it is one matrix."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra recipes")

import torch

from monitor.adapting.adapted import within
from monitor.adapting.fine_tuning import Student
from monitor.networks.layers import log_mel
from monitor.networks.voice import VoiceNetwork
from recipes.voice.batches import Batches
from recipes.voice.cache import Cache
from recipes.voice.within import finished

pytestmark = pytest.mark.slow


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
    turn, centre = within(
        np.concatenate(crops), np.repeat(np.arange(len(crops)), 4), np.repeat(batches.corpora, 3)
    )
    turned = (raw - centre) @ turn
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    np.testing.assert_allclose(found, turned, atol=1e-4)
