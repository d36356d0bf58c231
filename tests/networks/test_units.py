"""The network of units as it ships: the same however a stream is cut, and soon."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import monitor.networks
from monitor.errors import StoreError, UsageError
from monitor.networks import phones as units
from monitor.networks.layers import FLOOR, RATE, log_mel
from monitor.networks.phones import (
    UNITS_BLOCK,
    UNITS_FLOOR,
    UNITS_SHA256,
    UnitNetwork,
    UnitStream,
    shipped_units,
)
from tests.sounds import synthetic

WEIGHTS = Path(monitor.networks.__file__).with_name("units.npz")
FRAME = 320
SECONDS = 2
SOUND = synthetic(SECONDS)


@pytest.fixture(scope="module")
def network() -> UnitNetwork:
    return UnitNetwork.load(WEIGHTS)


def heard(stream: UnitStream, samples: np.ndarray, cuts: list[int]) -> np.ndarray:
    parts = np.split(samples, sorted(cuts))
    return np.concatenate([*map(stream.push, parts), stream.flush()])


@pytest.fixture(scope="module")
def whole(network) -> np.ndarray:
    return heard(network.stream(), SOUND, [])


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, len(SOUND)), max_size=12))
def test_how_the_stream_is_cut_changes_nothing(network, whole, cuts):
    assert np.array_equal(heard(network.stream(), SOUND, cuts), whole)


@pytest.fixture
def rows(network, monkeypatch) -> Callable[[np.ndarray, list[int]], np.ndarray]:
    """What the layer says, before codes are taken: those would hide a last bit nearly always."""

    def of(samples: np.ndarray, cuts: list[int]) -> np.ndarray:
        heard_rows: list[np.ndarray] = []

        def code(_: UnitNetwork, hidden: np.ndarray) -> np.ndarray:
            heard_rows.append(hidden)
            return hidden[:, 0]

        monkeypatch.setattr(UnitNetwork, "code", code)
        heard(network.stream(), samples, cuts)
        monkeypatch.undo()
        return np.concatenate(heard_rows)

    return of


def test_a_block_alone_has_the_very_bits_of_a_block_among_many(rows):
    alone = rows(SOUND, list(range(UNITS_BLOCK, len(SOUND), UNITS_BLOCK)))
    whole = rows(SOUND, [])[: SECONDS * 50]
    assert np.array_equal(alone[: len(whole)], whole)


def test_a_unit_looks_ahead_as_far_as_is_said_and_no_further(network, rows):
    frame = 40
    needed = (frame + 1) * FRAME + round(network.look_ahead * RATE)
    found = []
    for samples in (len(SOUND), needed, needed - 160):
        other = SOUND.copy()
        other[samples:] = 0
        found.append(rows(other, [])[: frame + 1 + network.late])
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("samples", [0, 1, 319, 320, 639, 640, 641, 9999])
def test_every_whole_frame_comes_once(network, whole, samples):
    found = heard(network.stream(), SOUND[:samples], [])
    assert found.dtype == np.int64
    assert len(found) == samples // FRAME
    sure = max(0, len(found) - 3)
    assert np.array_equal(found[:sure], whole[:sure])


def test_they_are_the_codes_of_the_layer(network, whole):
    """Computed at once, in double precision, as the mathematics says."""
    with np.load(WEIGHTS) as file:
        weights = {name: each.astype(float) for name, each in file.items()}
    bands = log_mel(np.pad(SOUND, (0, RATE)), floor=UNITS_FLOOR).astype(float) - np.log(FLOOR)
    padded = np.pad(bands, ((2, 2), (0, 0)))
    mels = np.stack([padded[i : i + 5].T for i in range(0, len(bands) - 1, 2)])
    x = np.maximum(np.einsum("tbk,obk->to", mels, weights["stem"]) + weights["stem.bias"], 0)
    before, after = weights["reach"].astype(int)
    padded = np.pad(x, ((before, after), (0, 0)))
    taps = weights["layer.depthwise"]
    y = sum(padded[i : i + len(x)] * taps[:, i] for i in range(taps.shape[1]))
    y = np.maximum(y + weights["layer.depthwise.bias"], 0)
    x += y @ weights["layer.pointwise"].T + weights["layer.pointwise.bias"]
    distances = np.linalg.norm(np.maximum(x, 0)[:, None] - weights["codebook"], axis=2)
    assert (
        np.mean(distances.argmin(axis=1)[: len(whole)] == whole) > 0.98
    )  # ties may fall to either
    assert len(set(whole.tolist())) > 15


def test_a_stream_begins_anew_after_its_end(network, whole):
    stream = network.stream()
    stream.push(SOUND[:5000])
    stream.reset()
    assert np.array_equal(heard(stream, SOUND, []), whole)
    assert np.array_equal(heard(stream, SOUND, [700]), whole)


def test_what_was_long_ago_changes_nothing(network):
    """A stream that begins later, with a block, is the same after its memory and before nothing."""
    ago = network.memory
    assert ago % UNITS_BLOCK == 0
    whole, late = network.stream(), network.stream()
    whole.push(SOUND[: ago + UNITS_BLOCK])
    late.push(SOUND[UNITS_BLOCK : ago + UNITS_BLOCK])
    expected, found = (stream.push(SOUND[ago + UNITS_BLOCK :]) for stream in (whole, late))
    assert len(found) > 50
    assert np.array_equal(found, expected)


def test_a_unit_is_known_within_a_tenth_of_a_second_of_its_end(network):
    stream, known, late = network.stream(), 0, []
    for end in range(160, len(SOUND) + 1, 160):
        for _ in stream.push(SOUND[end - 160 : end]):
            known += 1
            late.append(end / RATE - known * network.frame_seconds)
    assert len(late) > 90
    assert 0 < min(late) <= max(late) < 0.1
    assert network.look_ahead == pytest.approx(0.045)


def test_samples_of_two_channels_are_said(network):
    with pytest.raises(UsageError, match="one axis"):
        network.stream().push(np.zeros((10, 2), np.float32))


def test_the_card_is_that_of_the_weights(network, monkeypatch):
    card = json.loads(WEIGHTS.with_suffix(".json").read_text())
    held = WEIGHTS.read_bytes()
    assert UNITS_SHA256 == network.sha256 == card["sha256"] == hashlib.sha256(held).hexdigest()
    assert shipped_units().sha256 == UNITS_SHA256
    assert card["bytes"] == len(held) < 300_000
    assert card["units"] == network.size == 256
    assert card["look_ahead_seconds"] == network.look_ahead
    monkeypatch.setattr(units, "UNITS_SHA256", "0" * 64)
    with pytest.raises(StoreError, match="install again"):
        shipped_units.__wrapped__()


def test_another_file_is_said(tmp_path):
    path = tmp_path / "other.npz"
    with pytest.raises(StoreError, match=r"other\.npz: no weights"):
        UnitNetwork.load(path)
    with np.load(WEIGHTS) as held:
        weights = dict(held)
    for name, wrong in (
        ("stem", weights["stem"][1:]),
        ("reach", weights["reach"] + [0, 1]),
        ("layer.depthwise", weights["layer.depthwise"][:, 1:]),
        ("codebook", weights["codebook"][:, 1:]),
    ):
        np.savez(path, **(weights | {name: wrong}))
        with pytest.raises(StoreError, match="another network"):
            UnitNetwork.load(path)
