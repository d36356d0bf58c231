"""The phone network as it ships: the same however a stream is cut, and what torch says."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import monitor.networks
from monitor.errors import StoreError, UsageError
from monitor.networks import phones
from monitor.networks.layers import RATE, read_weights
from monitor.networks.phones import (
    PHONES,
    SHA256,
    PhoneNetwork,
    PhoneStream,
    shipped_recogniser,
)

WEIGHTS = Path(monitor.networks.__file__).with_name("phones.npz")
FRAME = 320
SECONDS = 2


def sound() -> np.ndarray:
    """A buzz that glides and trembles, in breath."""
    generator = np.random.default_rng(1)
    time = np.arange(SECONDS * RATE) / RATE
    phase = 2 * np.pi * 120 * (time + 0.01 * np.sin(2 * np.pi * 3 * time))
    centre = 900 + 600 * np.sin(2 * np.pi * time)
    buzz = sum(np.exp(-(((120 * k - centre) / 500) ** 2)) * np.sin(k * phase) for k in range(1, 25))
    return np.asarray(0.1 * buzz + 0.01 * generator.standard_normal(len(time)), np.float32)


SOUND = sound()


@pytest.fixture(scope="module")
def network() -> PhoneNetwork:
    return PhoneNetwork.load(WEIGHTS)


def heard(stream: PhoneStream, samples: np.ndarray, cuts: list[int]) -> np.ndarray:
    blocks = np.split(samples, sorted(cuts))
    return np.concatenate([*map(stream.push, blocks), stream.flush()])


@pytest.fixture(scope="module")
def whole(network) -> np.ndarray:
    return heard(network.stream(), SOUND, [])


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, len(SOUND)), max_size=12))
def test_how_the_stream_is_cut_changes_no_bit(network, whole, cuts):
    assert np.array_equal(heard(network.stream(), SOUND, cuts), whole)


@pytest.mark.parametrize("samples", [0, 1, 319, 320, 3199, 3200, 3201, 9999])
def test_every_whole_frame_comes_once(network, whole, samples):
    found = heard(network.stream(), SOUND[:samples], [])
    assert found.shape == (samples // FRAME, 40)
    sure = max(0, len(found) - round(network.look_ahead / network.frame_seconds) - 1)
    assert np.array_equal(found[:sure], whole[:sure])


def test_what_is_heard_is_of_the_right_kind(network, whole):
    assert whole.dtype == np.float32
    assert whole.shape == (SECONDS * 50, 40)
    np.testing.assert_allclose(np.exp(whole).sum(axis=1), 1, atol=1e-5)
    assert network.classes == PHONES
    assert len(PHONES) == 39


def test_a_stream_begins_anew_after_its_end(network, whole):
    stream = network.stream()
    stream.push(SOUND[:5000])
    stream.reset()
    assert np.array_equal(heard(stream, SOUND, []), whole)
    assert np.array_equal(heard(stream, SOUND, [700]), whole)


@pytest.mark.slow
def test_a_frame_looks_ahead_as_far_as_is_said_and_no_further(network, whole):
    changed = {}
    for frame in (40, 41):
        needed = (frame + 1) * FRAME + round(network.look_ahead * RATE)
        for samples in (needed, needed - FRAME):
            other = SOUND.copy()
            other[samples:] = 0
            posteriors = heard(network.stream(), other, [])
            same = np.array_equal(posteriors[: frame + 1], whole[: frame + 1])
            changed[frame, samples == needed] = not same
    assert not changed[40, True]
    assert not changed[41, True]
    assert changed[40, False] or changed[41, False]


def test_a_frame_comes_as_soon_as_it_can(network):
    stream, given, known = network.stream(), 0, 0
    for begin in range(0, len(SOUND), 160):
        known += len(stream.push(SOUND[begin : begin + 160]))
        given += 160
        late = given / RATE - known * network.frame_seconds
        assert late < network.look_ahead + 0.2 + 0.02


def test_the_likeliest_way_is_not_the_best_path(network):
    """A phone that English hardly has after these two gives way to one that it has."""
    names = ["S", "T", "R"]
    posteriors = np.full((7, 40), -12.0, np.float32)
    posteriors[:, 0] = -0.1
    for frame, name in zip((1, 3, 5), names, strict=True):
        posteriors[frame] = -12
        posteriors[frame, 1 + PHONES.index(name)] = -0.8
    posteriors[3, 1 + PHONES.index("ZH")] = -0.7  # a little likelier than T
    best = posteriors[1::2].argmax(axis=1)
    assert [PHONES[place - 1] for place in best] == ["S", "ZH", "R"]
    assert [each.phone for each in network.spoken(posteriors)] == names
    assert [tuple(each)[1:] for each in network.spoken(posteriors)] == [(1, 1), (3, 3), (5, 5)]
    with pytest.raises(UsageError, match=r"\(k, 40\)"):
        network.spoken(posteriors[:, :-1])


def test_samples_of_two_channels_are_said(network):
    with pytest.raises(UsageError, match="one axis"):
        network.stream().push(np.zeros((10, 2), np.float32))


@pytest.mark.slow
def test_the_card_is_that_of_the_weights(network, monkeypatch):
    card = json.loads(WEIGHTS.with_suffix(".json").read_text())
    held = WEIGHTS.read_bytes()
    assert SHA256 == network.sha256 == card["sha256"] == hashlib.sha256(held).hexdigest()
    assert card["bytes"] == len(held) < 2_100_000
    assert card["phones"] == list(PHONES)
    assert card["look_ahead_seconds"] == network.look_ahead
    assert (network.trigram.weight, network.trigram.bonus) == tuple(card["trigram"].values())
    assert shipped_recogniser().sha256 == SHA256
    monkeypatch.setattr(phones, "SHA256", "0" * 64)
    with pytest.raises(StoreError, match="install again"):
        shipped_recogniser.__wrapped__()


def test_another_file_is_said(tmp_path):
    path = tmp_path / "other.npz"
    with pytest.raises(StoreError, match=r"other\.npz: no weights"):
        PhoneNetwork.load(path)
    path.write_bytes(WEIGHTS.read_bytes()[:-100])
    with pytest.raises(StoreError, match=r"other\.npz: no weights"):
        PhoneNetwork.load(path)
    weights, _ = read_weights(WEIGHTS)
    for name, wrong in (
        ("a", np.zeros(3)),
        ("middle.1.pointwise", weights["middle.1.pointwise"][:, :-1]),
        ("early.reach", weights["early.reach"] + [[0, 1], [0, 0]]),
        ("late.0.depthwise", weights["late.0.depthwise"][:, 1:]),
        ("usual", weights["usual"][1:]),
        ("trigram", weights["trigram"][1:]),
        ("head", weights["head"][1:]),
    ):
        np.savez(path, **(weights | {name: wrong} if name != "a" else {"a": wrong}))
        with pytest.raises(StoreError, match="another network"):
            PhoneNetwork.load(path)
