"""Tokens of the codec as a feature, by made-up weights: which of them count, and when they come."""

from __future__ import annotations

import numpy as np

from monitor.features.extractor import VoiceActivity
from monitor.features.phones import Tokens
from monitor.networks.usc import TokenStream, UscNetwork
from monitor.types import Track
from tests.contracts import babble
from tests.usc_weights import usc_weights

NETWORK = UscNetwork(usc_weights(), "a" * 64)
SOUND = babble(40, pause_seconds=0.3)


def spans(track: Track) -> np.ndarray:
    assert track.spans is not None
    return track.spans


def test_the_tokens_of_speech_are_counted_and_no_others():
    feature, stream = Tokens(NETWORK), TokenStream(NETWORK)
    track = feature.process(SOUND), feature.flush()
    said = np.concatenate([stream.push(SOUND), stream.flush()])
    speech = VoiceActivity(16_000, ticks=1).process(SOUND[: said.size * 640])
    spoken = speech.reshape(-1, 4).all(axis=1)
    assert 0 < spoken.sum() < spoken.size
    assert np.array_equal(np.concatenate([part.values for part in track]), said[spoken])
    begins = np.concatenate([spans(part)[:, 0] for part in track])
    assert np.array_equal(begins, 4 * np.flatnonzero(spoken))


def test_a_token_comes_within_a_block_of_what_it_depends_on():
    feature = Tokens(NETWORK)
    late = 4 * NETWORK.encoder.late + 20
    for begin in range(0, SOUND.size - 160, 160):
        track = feature.process(SOUND[begin : begin + 160])
        now = begin // 160 + 1
        assert np.all(track.ticks <= now)
        assert np.all(now - spans(track)[:, 1] <= late)


def test_noise_changes_tokens_and_nothing_else():
    plain, noisy, again = (
        Tokens(NETWORK, epsilon, whose).process(SOUND)
        for epsilon, whose in ((None, ()), (1.0, (7, "talk")), (1.0, (7, "talk")))
    )
    assert np.array_equal(plain.ticks, noisy.ticks)
    assert np.array_equal(spans(plain), spans(noisy))
    assert np.mean(plain.values == noisy.values) < 0.5
    assert np.array_equal(noisy.values, again.values)


def test_the_spec_says_which_network_made_them():
    spec = Tokens(NETWORK).spec
    assert (spec.name, spec.size, spec.frame_seconds) == ("tokens", NETWORK.books.size, 0.04)
    assert spec.network == "a" * 64
