"""Residual quantisation: each book says more, and noise in C0 is as private as is said."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.maths.composition import laplace, noise_scale
from monitor.networks.usc import Codebooks
from tests.usc_weights import SIZE, usc_weights

BOOKS = Codebooks(usc_weights())


def drawn(count: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((count, BOOKS.channels)).astype(np.float32)


def test_the_first_code_is_the_nearest_direction():
    weights, latents = usc_weights(), drawn(50)
    projected = latents @ weights["book.0.in"].T + weights["book.0.in.bias"]
    codes = weights["book.0.codes"]
    cosines = (projected @ codes.T) / np.linalg.norm(codes, axis=1)
    assert np.array_equal(BOOKS.codes(latents)[:, 0], cosines.argmax(axis=1))


def test_each_book_codes_what_those_before_it_left():
    latents = drawn(50)
    codes = BOOKS.codes(latents)
    rest = latents - BOOKS.latents(codes[:, :1])
    weights = usc_weights()
    projected = rest @ weights["book.1.in"].T + weights["book.1.in.bias"]
    directions = weights["book.1.codes"] / np.linalg.norm(
        weights["book.1.codes"], axis=1, keepdims=True
    )
    assert np.array_equal(codes[:, 1], (projected @ directions.T).argmax(axis=1))


def test_latents_are_sums_over_books():
    weights, codes = usc_weights(), BOOKS.codes(drawn(5))
    said = sum(
        weights[f"book.{i}.codes"][codes[:, i]] @ weights[f"book.{i}.out"].T
        + weights[f"book.{i}.out.bias"]
        for i in range(len(BOOKS))
    )
    np.testing.assert_allclose(BOOKS.latents(codes), said, rtol=1e-4, atol=1e-5)


def test_no_noise_is_clipped_alone_and_clipping_turns_nothing():
    latents = drawn(50)
    nothing = np.zeros((50, BOOKS.dimensions))
    assert np.array_equal(BOOKS.codes(latents, noise=nothing), BOOKS.codes(latents))


def test_with_noise_no_latent_makes_a_code_much_likelier_than_another_does():
    """The promise of epsilon, seen: ratios of how often a code comes of two far latents."""
    epsilon, count = 1.0, 20_000
    generator = np.random.default_rng(1)
    often = []
    for sign in (1, -1):
        latents = np.tile(100 * sign * drawn(1), (count, 1))
        uniform = generator.random((count, BOOKS.dimensions))
        noise = laplace(uniform, noise_scale(epsilon, BOOKS.clip))
        codes = BOOKS.codes(latents, 1, noise=noise)[:, 0]
        often.append(np.bincount(codes, minlength=SIZE))
    enough = (often[0] > 200) & (often[1] > 200)
    assert enough.sum() > SIZE // 2
    ratios = often[0][enough] / often[1][enough]
    assert np.exp(-epsilon) / 1.2 < ratios.min()
    assert ratios.max() < 1.2 * np.exp(epsilon)
    assert ratios.max() > 1.1, "noise that hides everything shows nothing"


@pytest.mark.parametrize(
    ("codes", "says"),
    [(np.zeros((2, 9), int), "b from 1"), (np.full((2, 1), SIZE), "from 0 to"), (np.zeros(3), "b")],
)
def test_codes_that_there_are_none_of_are_refused(codes, says):
    with pytest.raises(UsageError, match=says):
        BOOKS.latents(codes)


def test_what_cannot_be_coded_is_refused():
    with pytest.raises(UsageError, match="latents have the shape"):
        BOOKS.codes(drawn(2)[:, 1:])
    with pytest.raises(UsageError, match="3 codebooks"):
        BOOKS.codes(drawn(2), books=4)
    with pytest.raises(UsageError, match="noise has the shape"):
        BOOKS.codes(drawn(2), noise=np.zeros((2, 3)))
