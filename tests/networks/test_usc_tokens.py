"""Tokens of the codec's private codebook: any cutting, noise, and what that promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.networks.usc import FRAME, TokenStream, UscNetwork
from tests.sounds import synthetic
from tests.usc_weights import usc_weights

NETWORK = UscNetwork(usc_weights())
SOUND = synthetic(1.2)
SOME = (None, 2.0)


def tokens(epsilon, *whose, sound=SOUND, cuts=()):
    stream = TokenStream(NETWORK, epsilon, *whose)
    return np.concatenate([*map(stream.push, np.split(sound, sorted(cuts))), stream.flush()])


@pytest.mark.parametrize("epsilon", SOME)
@settings(max_examples=10)
@given(cuts=st.lists(st.integers(0, len(SOUND)), max_size=12))
def test_how_samples_are_cut_changes_nothing(epsilon, cuts):
    assert np.array_equal(tokens(epsilon, 1, cuts=cuts), tokens(epsilon, 1))


@pytest.mark.parametrize("epsilon", SOME)
def test_each_40_ms_has_a_token_of_the_first_codebook(epsilon):
    found = tokens(epsilon)
    assert found.shape == (len(SOUND) // FRAME,)
    assert 0 <= found.min() <= found.max() < NETWORK.books.size


def test_without_noise_they_are_the_codes_of_the_first_book():
    stream = NETWORK.encoder.stream()
    latents = np.concatenate([stream.push(SOUND), stream.flush()])
    assert np.array_equal(tokens(None), NETWORK.books.codes(latents)[:, 0])


def test_noise_is_that_of_the_seed_and_the_recording():
    assert np.array_equal(tokens(2.0, 1, "talk"), tokens(2.0, 1, "talk"))
    for other in ((2, "talk"), (1, "other"), (1, "talk", 1)):
        assert not np.array_equal(tokens(2.0, *other), tokens(2.0, 1, "talk"))


def test_a_flush_begins_anew_with_the_same_noise():
    stream = TokenStream(NETWORK, 2.0, 1)
    first = np.concatenate([stream.push(SOUND), stream.flush()])
    assert np.array_equal(np.concatenate([stream.push(SOUND), stream.flush()]), first)


def test_much_epsilon_changes_little_and_little_epsilon_leaves_nothing():
    plain = tokens(None)
    shares = [np.mean(tokens(epsilon, 1) == plain) for epsilon in (1e6, 30.0, 0.01)]
    assert shares[0] == 1.0
    assert shares[0] > shares[1] >= shares[2]
    assert shares[2] < 0.25  # 32 codes, by chance


def test_a_token_is_as_likely_for_one_voice_as_for_another_but_for_the_epsilon():
    """The promise, counted: the same 40 ms of two voices, 4,000 draws of the noise for each."""
    epsilon, draws = 1.0, 4000
    voices = [synthetic(0.8, pitch, seed) for pitch, seed in ((90.0, 1), (250.0, 2))]
    streams = [NETWORK.encoder.stream() for _ in voices]
    latents = [
        np.concatenate([s.push(v), s.flush()])[10] for s, v in zip(streams, voices, strict=True)
    ]
    counts = []
    for voice, latent in enumerate(latents):
        noise = TokenStream(NETWORK, epsilon, "draws", voice)._noise(draws)
        found = NETWORK.books.codes(np.tile(latent, (draws, 1)), 1, noise=noise)[:, 0]
        counts.append(np.bincount(found, minlength=NETWORK.books.size))
    for mine, theirs in (counts, counts[::-1]):
        most = np.exp(epsilon) * theirs
        assert np.all(mine <= most + 4 * np.sqrt(mine + np.exp(2 * epsilon) * theirs + 1))
