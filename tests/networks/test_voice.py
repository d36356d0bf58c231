"""The voice network as it ships: what torch says, window by window, and nothing else is loaded."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import monitor.networks
from monitor.errors import StoreError, UsageError
from monitor.networks.layers import (
    log_mel,
    log_softmax,
    read_weights,
    sigmoid,
    softmax_over_time,
)
from monitor.networks.voice import MARK, VoiceNetwork, shipped_together

FOLDER = Path(monitor.networks.__file__).parent
WEIGHTS, SMALL, WARPED = (
    FOLDER / f"{name}.npz" for name in ("voice", "voice_small", "voice_warped")
)
WINDOWS = np.random.default_rng(1).standard_normal((3, 48_000)).astype(np.float32) / 10
WINDOWS[1] = np.sin(np.cumsum(0.05 + 0.01 * np.sin(np.arange(48_000) / 3000)))
WINDOWS[2] *= 0.01


@pytest.fixture(scope="module")
def network() -> VoiceNetwork:
    return VoiceNetwork.load(WEIGHTS)


@pytest.mark.slow
@pytest.mark.parametrize("path", [WEIGHTS, SMALL])
def test_numpy_says_what_torch_says(path):
    torch = pytest.importorskip("torch", reason="needs the extra identity")
    from monitor.adapting.fine_tuning import unfolded

    network, student = VoiceNetwork.load(path), unfolded(read_weights(path)[0])
    with torch.inference_mode():
        found = student(torch.from_numpy(log_mel(WINDOWS, network.bands)))
        found = torch.nn.functional.normalize(found).numpy()
    np.testing.assert_allclose(network.embed(WINDOWS), found, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.1, 4.0, 300.0])
def test_what_scipy_is_not_imported_for_says_what_scipy_says(scale):
    x = (scale * np.random.default_rng(0).standard_normal((149, 60))).astype(np.float32)
    for found, expected in [
        (softmax_over_time(x), scipy.special.softmax(x, axis=0)),
        (log_softmax(x), scipy.special.log_softmax(x, axis=1)),
    ]:
        assert found.dtype == np.float32
        assert np.array_equal(found, expected)
    assert sigmoid(x).dtype == np.float32
    np.testing.assert_allclose(sigmoid(x), scipy.special.expit(x), rtol=2e-7, atol=1e-37)
    assert sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist() == [0.0, 0.5, 1.0]


def test_an_embedding_does_not_depend_on_its_batch(network):
    whole = network.embed(WINDOWS)
    alone = np.concatenate([network.embed(window[None]) for window in WINDOWS])
    assert np.array_equal(whole, alone)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-6)
    assert network.embed(WINDOWS[:0]).shape == (0, network.size)


def test_the_level_changes_little(network):
    one, other = network.embed(WINDOWS[1:2]), network.embed(WINDOWS[1:2] / 4)
    assert float(one[0] @ other[0]) > 0.9


@pytest.mark.parametrize("path", [WEIGHTS, SMALL])
def test_the_card_is_that_of_the_weights(path):
    network, card = VoiceNetwork.load(path), json.loads(path.with_suffix(".json").read_text())
    held = path.read_bytes()
    assert network.sha256 == card["sha256"] == hashlib.sha256(held).hexdigest()
    assert card["bytes"] == len(held) < 4 << 20
    assert network.size == card["embedding"]
    assert sum(each.size for each in read_weights(path)[0].values()) == card["parameters"]


def test_nobody_of_the_shipped_population_trained_it():
    for path in (WEIGHTS, SMALL, WARPED):
        card = json.loads(path.with_suffix(".json").read_text())
        told = json.dumps(card["training"]).lower()
        assert "background" in told
        assert not any(corpus in told for corpus in ("train-clean", "dev-clean", "test-clean"))


def test_the_networks_that_ship_are_heard_side_by_side():
    together = shipped_together()
    each = [VoiceNetwork.load(path).embed(WINDOWS) for path in (SMALL, WEIGHTS, WARPED)]
    found = together.embed(WINDOWS)
    np.testing.assert_allclose(found @ found.T, np.mean([x @ x.T for x in each], axis=0), atol=1e-6)
    assert together.sha256 == MARK
    assert shipped_together() is together


@pytest.mark.parametrize("shape", [(48_000,), (1, 799), (1, 1, 48_000)])
def test_what_is_no_window_is_said(network, shape):
    with pytest.raises(UsageError, match="800 samples"):
        network.embed(np.zeros(shape, np.float32))


def test_another_file_is_said(tmp_path):
    path = tmp_path / "other.npz"
    with pytest.raises(StoreError, match=r"other\.npz: no weights"):
        VoiceNetwork.load(path)
    path.write_bytes(WEIGHTS.read_bytes()[:-100])
    with pytest.raises(StoreError, match=r"other\.npz: no weights"):
        VoiceNetwork.load(path)
    np.savez(path, a=np.zeros(3))
    with pytest.raises(StoreError, match="another network"):
        VoiceNetwork.load(path)
    with np.load(WEIGHTS) as held:
        weights = dict(held)
    weights["1.pointwise"] = weights["1.pointwise"][:, :-1]
    np.savez(path, **weights)
    with pytest.raises(StoreError, match="another network"):
        VoiceNetwork.load(path)
