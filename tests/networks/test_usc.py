"""The codec's network: the same however a stream is cut, and what ships is what its card says."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import StoreError, UsageError
from monitor.networks import usc
from monitor.networks.layers import RATE, log_mel, restored
from monitor.networks.usc import FRAME, SHA256, UscNetwork, shipped_codec
from recipes.shipping import int8
from tests.sounds import synthetic
from tests.usc_weights import usc_weights

WEIGHTS = Path(usc.__file__).with_suffix(".npz")
SOUND = synthetic(2)
NETWORK = UscNetwork(usc_weights())


def through(stream, given_rows: np.ndarray, cuts: list[int]) -> np.ndarray:
    parts = np.split(given_rows, sorted(cuts))
    return np.concatenate([*map(stream.push, parts), stream.flush()])


LATENTS = through(NETWORK.encoder.stream(), SOUND, [])
SAID = through(NETWORK.decoder.stream(), LATENTS, [])


def test_each_40_ms_has_a_latent_and_four_frames():
    assert LATENTS.shape == (len(SOUND) // FRAME, NETWORK.books.channels)
    assert SAID.shape == (4 * len(LATENTS), 80)
    assert len({row.tobytes() for row in LATENTS}) > len(LATENTS) // 2


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, len(SOUND)), max_size=12))
def test_how_samples_are_cut_changes_no_bit(cuts):
    assert np.array_equal(through(NETWORK.encoder.stream(), SOUND, cuts), LATENTS)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, len(LATENTS)), max_size=12))
def test_how_latents_are_cut_changes_no_bit(cuts):
    assert np.array_equal(through(NETWORK.decoder.stream(), LATENTS, cuts), SAID)


@given(st.integers(0, len(LATENTS)), st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_a_latent_has_its_codes_whatever_else_is_coded(cut, books):
    books_of = NETWORK.books
    whole = books_of.codes(LATENTS)
    parts = [books_of.codes(part, books) for part in np.split(LATENTS, [cut])]
    assert np.array_equal(np.concatenate(parts), whole[:, :books])


def test_latents_look_ahead_as_far_as_is_said_and_no_further():
    latent = 20
    needed = (latent + 1) * FRAME + round(NETWORK.encoder.look_ahead * RATE)
    found = []
    for samples in (len(SOUND), needed, needed - 160):
        other = SOUND.copy()
        other[samples:] = 0
        found.append(through(NETWORK.encoder.stream(), other, [])[latent])
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_a_frame_looks_ahead_as_far_as_is_said_and_no_further():
    latent = 10
    ahead = round((NETWORK.look_ahead - NETWORK.encoder.look_ahead) / 0.01)
    needed = latent + 1 + -(-ahead // 4)
    found = []
    for first in (len(LATENTS), needed, needed - 1):
        other = LATENTS.copy()
        other[first:] += 1
        found.append(through(NETWORK.decoder.stream(), other, [])[4 * latent + 3])
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_a_stream_begins_anew_after_its_end():
    hears, speaks = NETWORK.encoder.stream(), NETWORK.decoder.stream()
    for _ in range(2):
        assert np.array_equal(through(hears, SOUND, []), LATENTS)
        assert np.array_equal(through(speaks, LATENTS, []), SAID)


def test_too_little_to_hear_gives_nothing():
    assert len(through(NETWORK.encoder.stream(), SOUND[: FRAME - 1], [])) == 0
    assert len(through(NETWORK.decoder.stream(), LATENTS[:0], [])) == 0


def test_weights_in_int8_say_nearly_the_same():
    coarse = UscNetwork(restored(int8(usc_weights())))
    other = through(coarse.encoder.stream(), SOUND, [])
    assert np.corrcoef(other.ravel(), LATENTS.ravel())[0, 1] > 0.999


@pytest.mark.parametrize("without", ["stem", "deep.0.pointwise", "book.1.codes", "clip", "usual"])
def test_weights_of_another_network_are_refused(without):
    weights = usc_weights()
    del weights[without]
    with pytest.raises(StoreError, match="another network than usc's"):
        UscNetwork(weights)


def test_rows_of_another_shape_are_refused():
    with pytest.raises(UsageError, match="one axis"):
        NETWORK.encoder.stream().push(SOUND[None])
    with pytest.raises(UsageError, match="shape"):
        NETWORK.decoder.stream().push(LATENTS[:, 1:])


@pytest.mark.slow
def test_the_card_is_that_of_the_weights(monkeypatch):
    card, held, network = (
        json.loads(WEIGHTS.with_suffix(".json").read_text()),
        WEIGHTS.read_bytes(),
        shipped_codec(),
    )
    assert SHA256 == network.sha256 == card["sha256"] == hashlib.sha256(held).hexdigest()
    assert card["bytes"] == len(held) < 1_200_000
    assert (card["books"], card["codes"]) == (len(network.books), network.books.size)
    assert card["look_ahead_seconds"] == round(network.look_ahead, 4)
    assert card["clip"] == round(network.books.clip, 4)
    monkeypatch.setattr(usc, "SHA256", "0" * 64)
    with pytest.raises(StoreError, match="install again"):
        shipped_codec.__wrapped__()


def test_more_books_say_a_spectrum_better():
    network = shipped_codec()
    latents = through(network.encoder.stream(), SOUND, [])
    codes = network.books.codes(latents)
    asked = log_mel(np.pad(SOUND, (0, 240)), 80)
    apart = [
        float(
            np.abs(
                through(network.decoder.stream(), network.books.latents(codes[:, :books]), [])
                - asked[: 4 * len(codes)]
            ).mean()
        )
        for books in (1, 6)
    ]
    assert apart[1] < apart[0] < np.abs(asked - asked.mean(axis=0)).mean() + 1


def test_another_file_is_said(tmp_path):
    path = tmp_path / "other.npz"
    with pytest.raises(StoreError, match=r"other\.npz: no weights"):
        UscNetwork.load(path)
    path.write_bytes(WEIGHTS.read_bytes()[:-100])
    with pytest.raises(StoreError, match=r"other\.npz: no weights"):
        UscNetwork.load(path)
