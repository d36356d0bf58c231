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
from monitor.networks.mel import RATE
from monitor.networks.phones import (
    BLOCK,
    PHONES,
    HeardPhones,
    PhoneNetwork,
    PhoneStream,
    tokens,
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


def joined(parts: list[HeardPhones]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.concatenate([part.units for part in parts]),
        np.concatenate([part.log_posteriors for part in parts]),
    )


def heard(stream: PhoneStream, samples: np.ndarray, cuts: list[int]) -> tuple[np.ndarray, ...]:
    blocks = np.split(samples, sorted(cuts))
    return joined([*map(stream.push, blocks), stream.flush()])


@pytest.fixture(scope="module")
def whole(network) -> tuple[np.ndarray, ...]:
    return heard(network.stream(), SOUND, [])


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, len(SOUND)), max_size=12))
def test_how_the_stream_is_cut_changes_no_bit(network, whole, cuts):
    units, posteriors = heard(network.stream(), SOUND, cuts)
    assert np.array_equal(units, whole[0])
    assert np.array_equal(posteriors, whole[1])


@pytest.mark.parametrize("samples", [0, 1, 319, 320, 3199, 3200, 3201, 9999])
def test_every_whole_frame_comes_once(network, whole, samples):
    units, posteriors = heard(network.stream(), SOUND[:samples], [])
    assert len(units) == len(posteriors) == samples // FRAME
    sure = max(0, len(units) - round(network.look_ahead / network.frame_seconds) - 1)
    assert np.array_equal(units[:sure], whole[0][:sure])


def test_what_is_heard_is_of_the_right_kind(network, whole):
    units, posteriors = whole
    assert units.dtype == np.int64
    assert posteriors.dtype == np.float32
    assert posteriors.shape == (SECONDS * 50, 40)
    assert units.min() >= 0
    assert units.max() < network.units == 256
    assert len(set(units.tolist())) > 5
    np.testing.assert_allclose(np.exp(posteriors).sum(axis=1), 1, atol=1e-5)
    assert network.classes == PHONES
    assert len(PHONES) == 39


def test_a_stream_begins_anew_after_its_end(network, whole):
    stream = network.stream()
    stream.push(SOUND[:5000])
    stream.reset()
    first = heard(stream, SOUND, [])
    again = heard(stream, SOUND, [700])
    for found in (first, again):
        assert np.array_equal(found[0], whole[0])
        assert np.array_equal(found[1], whole[1])


def test_units_are_the_same_without_phones(network, whole):
    units, posteriors = heard(network.stream(phones=False), SOUND, [700, 9000])
    assert np.array_equal(units, whole[0])
    assert posteriors.shape == (0, 40)
    both, alone = network.stream(), network.stream(phones=False)
    for block in np.split(SOUND, range(1000, len(SOUND), 1000)):
        assert len(both.push(block).units) == len(alone.push(block).units)


def test_phones_are_not_computed_where_they_are_not_wanted(network, monkeypatch):
    monkeypatch.setattr(network, "head", None)
    stream = network.stream(phones=False)
    assert len(stream.push(SOUND).units) > 50


def test_a_frame_looks_ahead_as_far_as_is_said_and_no_further(network, whole):
    changed = {}
    for frame in (40, 41):
        needed = (frame + 1) * FRAME + round(network.look_ahead * RATE)
        for samples in (needed, needed - FRAME):
            other = SOUND.copy()
            other[samples:] = 0
            units, posteriors = heard(network.stream(), other, [])
            same = np.array_equal(posteriors[: frame + 1], whole[1][: frame + 1])
            changed[frame, samples == needed] = not same
            if same:
                assert np.array_equal(units[: frame + 1], whole[0][: frame + 1])
    assert not changed[40, True]
    assert not changed[41, True]
    assert changed[40, False] or changed[41, False]


def test_what_was_long_ago_changes_no_bit(network):
    """A stream that begins later, with a block, is the same after its memory and before nothing."""
    sound, ago = np.tile(SOUND, 3), network.memory
    assert ago % BLOCK == 0
    whole = network.stream()
    whole.push(sound[: ago + BLOCK])
    late = network.stream()
    late.push(sound[BLOCK : ago + BLOCK])
    expected, found = (stream.push(sound[ago + BLOCK :]) for stream in (whole, late))
    assert len(found.units) > 100
    assert np.array_equal(found.units, expected.units)
    assert np.array_equal(found.log_posteriors, expected.log_posteriors)


def test_a_frame_comes_as_soon_as_it_can(network):
    stream, given, known = network.stream(), 0, 0
    for begin in range(0, len(SOUND), 160):
        known += len(stream.push(SOUND[begin : begin + 160]).units)
        given += 160
        late = given / RATE - known * network.frame_seconds
        assert late < network.look_ahead + 0.2 + 0.02


def test_numpy_says_what_torch_says(network, whole):
    torch = pytest.importorskip("torch", reason="needs the extra recipes")
    from monitor.networks.mel import log_mel
    from recipes.phones.network import Recogniser

    with np.load(WEIGHTS) as held:
        recogniser = unfolded(Recogniser(), dict(held), torch)
    with torch.inference_mode():
        bands = torch.from_numpy(log_mel(np.pad(SOUND, (0, RATE))))
        layers = recogniser.layers(bands[None])
    logits = torch.log_softmax(layers["logits"][0], dim=1).numpy()[: len(whole[1])]
    np.testing.assert_allclose(whole[1], logits, atol=1e-3)
    units = network.code(layers[network.layer][0].numpy()[: len(whole[0])])
    assert np.mean(units == whole[0]) > 0.98  # one between two codes may fall to either


def unfolded(recogniser, weights, torch):
    """A recogniser with these weights, whose norms only add what they had put into biases."""
    state = recogniser.state_dict()
    for name, each in state.items():
        if name.endswith("running_var"):
            each.fill_(1 - 1e-5)
        elif name.endswith(("running_mean", "num_batches_tracked")):
            each.fill_(0)
        elif "norm" in name or ".first." in name or ".second." in name:
            each.fill_(1 if name.endswith("weight") else 0)
    norms = {"stem": "stem_norm", "down": "down_norm", "up": "up_norm", "head": "head"}
    for name, each in weights.items():
        values = torch.from_numpy(each.astype(np.float32))
        whose, bias = name.removesuffix(".bias"), name.endswith(".bias")
        if name.endswith("reach") or name.startswith("codebook"):
            continue
        if bias:
            target = norms.get(whose) or whose.replace("depthwise", "first").replace(
                "pointwise", "second"
            )
            state[f"{target}.bias"].copy_(values[: len(state[f"{target}.bias"])])
        else:
            target = f"{name}.weight"
            state[target].copy_(values.reshape(state[target].shape))
    recogniser.load_state_dict(state)
    return recogniser.eval()


def test_tokens_are_runs_without_blanks():
    best = [0, 3, 3, 0, 3, 5, 5, 0]
    posteriors = np.full((len(best), 40), -20.0)
    posteriors[range(len(best)), best] = 0
    found = [tuple(token) for token in tokens(posteriors)]
    assert found == [("AH", 1, 2), ("AH", 4, 4), ("AW", 5, 6)]
    assert tokens(posteriors[:0]) == []
    with pytest.raises(UsageError, match=r"\(k, 40\)"):
        tokens(posteriors[:, :-1])


def test_samples_of_two_channels_are_said(network):
    with pytest.raises(UsageError, match="one axis"):
        network.stream().push(np.zeros((10, 2), np.float32))


def test_the_card_is_that_of_the_weights(network):
    card = json.loads(WEIGHTS.with_suffix(".json").read_text())
    held = WEIGHTS.read_bytes()
    assert network.sha256 == card["sha256"] == hashlib.sha256(held).hexdigest()
    assert card["bytes"] == len(held) < 4 << 20
    assert card["units"] == network.units
    assert card["layer"] == network.layer
    assert card["look_ahead_seconds"] == network.look_ahead


def test_another_file_is_said(tmp_path):
    path = tmp_path / "other.npz"
    with pytest.raises(StoreError, match=r"other\.npz: no weights"):
        PhoneNetwork.load(path)
    path.write_bytes(WEIGHTS.read_bytes()[:-100])
    with pytest.raises(StoreError, match=r"other\.npz: no weights"):
        PhoneNetwork.load(path)
    with np.load(WEIGHTS) as held:
        weights = dict(held)
    layer = next(name for name in weights if name.startswith("codebook"))
    for name, wrong in (
        ("a", np.zeros(3)),
        ("middle.1.pointwise", weights["middle.1.pointwise"][:, :-1]),
        ("early.reach", weights["early.reach"] + [[0, 1], [0, 0], [0, 0]]),
        ("late.0.depthwise", weights["late.0.depthwise"][:, 1:]),
        (layer, weights[layer][:, 1:]),
        ("head", weights["head"][1:]),
    ):
        np.savez(path, **(weights | {name: wrong} if name != "a" else {"a": wrong}))
        with pytest.raises(StoreError, match="another network"):
            PhoneNetwork.load(path)
