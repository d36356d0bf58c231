"""The codec's network, its codebooks and tokens: any cutting, noise, and what that promises."""

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.networks.usc import FRAME, TokenStream, UscNetwork
from tests.sounds import synthetic
from tests.usc_weights import usc_weights

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


def drawn(count: int) -> np.ndarray:
    made = np.random.default_rng(0).standard_normal((count, NETWORK.books.channels))
    return made.astype(np.float32)


def test_each_book_codes_by_the_nearest_direction_what_those_before_it_left():
    weights, latents = usc_weights(), drawn(50)
    codes = NETWORK.books.codes(latents)
    for book in (0, 1):
        rest = latents - NETWORK.books.latents(codes[:, :book]) if book else latents
        projected = rest @ weights[f"book.{book}.in"].T + weights[f"book.{book}.in.bias"]
        rows = weights[f"book.{book}.codes"]
        cosines = projected @ rows.T / np.linalg.norm(rows, axis=1)
        assert np.array_equal(codes[:, book], cosines.argmax(axis=1))


def test_latents_are_sums_over_books():
    weights, codes = usc_weights(), NETWORK.books.codes(drawn(5))
    said = sum(
        weights[f"book.{i}.codes"][codes[:, i]] @ weights[f"book.{i}.out"].T
        + weights[f"book.{i}.out.bias"]
        for i in range(len(NETWORK.books))
    )
    np.testing.assert_allclose(NETWORK.books.latents(codes), said, rtol=1e-4, atol=1e-5)


def test_what_cannot_be_coded_is_refused():
    books = NETWORK.books
    with pytest.raises(UsageError, match="b from 1"):
        books.latents(np.zeros((2, 9), int))
    with pytest.raises(UsageError, match="from 0 to"):
        books.latents(np.full((2, 1), books.size))
    with pytest.raises(UsageError, match="latents have the shape"):
        books.codes(drawn(2)[:, 1:])
    with pytest.raises(UsageError, match="noise has the shape"):
        books.codes(drawn(2), noise=np.zeros((2, 3)))
    with pytest.raises(UsageError, match="shape"):
        NETWORK.decoder.stream().push(LATENTS[:, 1:])


def tokens(epsilon, *whose, cuts=()):
    stream = TokenStream(NETWORK, epsilon, *whose)
    found = through(stream, SOUND, list(cuts))
    assert np.array_equal(through(stream, SOUND, []), found)  # a flush begins anew
    return found


def test_without_noise_they_are_the_codes_of_the_first_book():
    assert np.array_equal(tokens(None), NETWORK.books.codes(LATENTS)[:, 0])


def test_noise_is_that_of_the_seed_and_the_recording():
    assert np.array_equal(tokens(2.0, 1, "talk"), tokens(2.0, 1, "talk"))
    for other in ((2, "talk"), (1, "other"), (1, "talk", 1)):
        assert not np.array_equal(tokens(2.0, *other), tokens(2.0, 1, "talk"))


def test_much_epsilon_changes_little_and_little_epsilon_leaves_nothing():
    plain = tokens(None)
    shares = [np.mean(tokens(epsilon, 1) == plain) for epsilon in (1e6, 30.0, 0.01)]
    assert shares[0] == 1.0
    assert shares[0] > shares[1] >= shares[2]
    assert shares[2] < 0.25  # 32 codes, by chance


def test_a_token_is_as_likely_for_one_voice_as_for_another_but_for_the_epsilon():
    """The promise, counted: of two voices and of two far latents, by many draws of the noise."""
    epsilon, draws = 1.0, 20_000
    voices = [synthetic(0.8, pitch, seed) for pitch, seed in ((90.0, 1), (250.0, 2))]
    near = [through(NETWORK.encoder.stream(), voice, [])[10] for voice in voices]
    far = [100 * drawn(1)[0], -100 * drawn(1)[0]]
    for latents in (near, far):
        often = []
        for whose, latent in enumerate(latents):
            noise = TokenStream(NETWORK, epsilon, "draws", whose)._noise(draws)
            found = NETWORK.books.codes(np.tile(latent, (draws, 1)), 1, noise=noise)[:, 0]
            often.append(np.bincount(found, minlength=NETWORK.books.size))
        for mine, theirs in (often, often[::-1]):
            most = np.exp(epsilon) * theirs
            assert np.all(mine <= most + 4 * np.sqrt(mine + np.exp(2 * epsilon) * theirs + 1))
    enough = (often[0] > 200) & (often[1] > 200)
    assert enough.sum() > NETWORK.books.size // 2
    ratios = often[0][enough] / often[1][enough]
    assert np.exp(-epsilon) / 1.2 < ratios.min()
    assert 1.1 < ratios.max() < 1.2 * np.exp(epsilon)  # noise that hides all would show nothing
