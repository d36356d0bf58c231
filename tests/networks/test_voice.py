"""The voice network as it ships: what SpeechBrain and torch say, window by window, by numpy."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.jobs import one_thread
from monitor.networks.voice import SIZE, VoiceNetwork, mel_decibels, shipped
from monitor.types import list_runs
from tests.sounds import RATE, synthetic

WINDOWS = np.random.default_rng(1).standard_normal((3, 48_000)).astype(np.float32) / 10
WINDOWS[1] = np.sin(np.cumsum(0.05 + 0.01 * np.sin(np.arange(48_000) / 3000)))
WINDOWS[2] *= 0.01


def units(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@pytest.fixture(scope="module")
def teacher(ecapa: str) -> VoiceNetwork:
    pytest.importorskip("torch", reason="reads weights that torch wrote")
    from recipes.voice.teacher import read_teacher

    return VoiceNetwork(read_teacher(Path(ecapa)))


SPEECHBRAIN = """
import sys
from pathlib import Path
import numpy as np, torch
from speechbrain.lobes.features import Fbank
from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN
folder, weights = Path(sys.argv[1]), sys.argv[2:]
with torch.inference_mode():
    bands = Fbank(n_mels=80)(torch.from_numpy(np.load(folder / "windows.npy")))
    bands -= bands.mean(dim=1, keepdim=True)
    np.save(folder / "bands.npy", bands.numpy())
    for path in weights:
        network = ECAPA_TDNN(80, channels=[1024] * 4 + [3072], lin_neurons=192).eval()
        network.load_state_dict(torch.load(path, "cpu", weights_only=True))
        np.save(folder / "embeddings.npy", network(bands)[:, 0].numpy())
"""
"""The oracle, in a process of its own: modules that it imports lazily disturb hypothesis, which
looks at all modules."""


def run_speechbrain(folder: Path, windows: np.ndarray, *weights: str) -> None:
    if any(importlib.util.find_spec(name) is None for name in ("torch", "speechbrain")):
        pytest.skip("needs the extra identity: SpeechBrain is the oracle")
    np.save(folder / "windows.npy", windows)
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SPEECHBRAIN, folder, *weights], check=True
    )


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.1, 1.73, 3.0])
def test_the_front_end_is_speechbrains(tmp_path, seconds):
    sound = WINDOWS[:, : round(16_000 * seconds)]
    run_speechbrain(tmp_path, sound)
    bands = np.stack([mel_decibels(window) for window in sound])
    np.testing.assert_allclose(bands, np.load(tmp_path / "bands.npy"), atol=1e-2)


def test_the_uncompressed_network_is_speechbrains(teacher, ecapa, tmp_path):
    run_speechbrain(tmp_path, WINDOWS, f"{ecapa}/embedding_model.ckpt")
    expected = np.load(tmp_path / "embeddings.npy")
    np.testing.assert_allclose(units(teacher.embed(WINDOWS)), units(expected), atol=1e-4)


def test_what_ships_says_nearly_what_it_was_compressed_from_says(teacher, shared):
    from monitor.lab.adapting.training import decode_mono, extract_speech

    for path in sorted((shared / "speech" / "background").glob("*/*.opus"))[:4]:
        sound = extract_speech(*decode_mono(path))
        windows = sound[: sound.size // 48_000 * 48_000].reshape(-1, 48_000)
        own, expected = (units(network.embed(windows)) for network in (shipped(), teacher))
        assert (own * expected).sum(axis=1).mean() > 0.8


def test_an_embedding_does_not_depend_on_its_batch():
    with one_thread():
        whole = shipped().embed(WINDOWS)
        alone = np.concatenate([shipped().embed(window[None]) for window in WINDOWS])
    assert np.array_equal(whole, alone)
    assert shipped().embed(WINDOWS[:0]).shape == (0, SIZE)


def test_windows_of_any_lengths_go_together():
    bands = [mel_decibels(WINDOWS[0, :length]) for length in (48_000, 8_000, 16_000, 31_999)]
    with one_thread():
        whole = shipped().embed_bands(bands)
        alone = np.concatenate([shipped().embed_bands([one]) for one in bands])
    assert np.array_equal(whole, alone)


def test_the_level_changes_nothing():
    one, other = shipped().embed(WINDOWS[1:2]), shipped().embed(WINDOWS[1:2] / 64)
    np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("shape", [(48_000,), (1, 799), (1, 1, 48_000)])
def test_what_is_no_window_is_said(shape):
    with pytest.raises(UsageError, match="800 samples"):
        shipped().embed(np.zeros(shape, np.float32))


def test_runs_of_a_window_read_like_their_sound():
    sound = np.stack([synthetic(3.0, pitch=pitch) for pitch in (120.0, 230.0)]).astype(np.float32)
    whole, runs = shipped().embed_runs(sound, 6)
    assert np.array_equal(whole, shipped().embed(sound))
    places = list_runs(6)
    assert runs.shape == (2, len(places), SIZE)
    assert runs[:, places.index((0, 6))] == pytest.approx(whole, abs=1e-4)
    for k, (begin, end) in enumerate(places):
        alone = shipped().embed(sound[:, begin * RATE // 2 : end * RATE // 2])
        likeness = np.sum(alone * runs[:, k], axis=1)
        likeness /= np.linalg.norm(alone, axis=1) * np.linalg.norm(runs[:, k], axis=1)
        assert likeness.min() > 0.5, (begin, end)
