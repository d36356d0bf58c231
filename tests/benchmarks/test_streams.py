"""What streams of codes tell: made voices that differ in what they say, or in nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.systems import CODEC, QUERY, REFERENCE, Excerpt, apply_system
from benchmarks.usc_codes import (
    Stream,
    compute_features,
    fit_projection,
    score_counts,
    score_trained,
)
from monitor.lab.evaluation import EvaluationSettings, evaluate
from monitor.networks.layers import RATE
from monitor.networks.usc import shipped_codec
from tests.usc_weights import SIZE, usc_weights

READERS, PIECES = 24, 12


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("usc") / "usc.npz"
    np.savez(path, **usc_weights())  # type: ignore[arg-type]
    return str(path)


@pytest.fixture(scope="module")
def sound() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.1, 2 * RATE + 123).astype(np.float32)


def test_more_codebooks_take_more_bits_and_say_something_else(sound):
    one, two = (apply_system(f"{CODEC}:{books}", sound, "a", "ann") for books in (1, 2))
    assert one[0].shape == two[0].shape == sound.shape
    assert one[1] == pytest.approx(np.log2(shipped_codec().books.size) * len(sound) / 640)
    assert two[1] == pytest.approx(2 * one[1])
    assert np.abs(one[0] - two[0]).max() > 0


def drawn(apart: float, seed: int) -> tuple[list[np.ndarray], list[str]]:
    """Codes of made readers, who prefer codes of their own the more they are apart."""
    generator = np.random.default_rng(seed)
    made, whose = [], []
    for reader in range(READERS):
        liked = np.exp(apart * generator.normal(size=SIZE))
        for _ in range(PIECES):
            made.append(generator.choice(SIZE, 150, p=liked / liked.sum())[:, None])
            whose.append(f"{seed} {reader}")
    return made, whose


def tried(seed: int, apart: float) -> tuple[list[Excerpt], list[np.ndarray]]:
    """The same as excerpts, half of them queries."""
    codes, whose = drawn(apart, seed)
    chosen = [
        Excerpt(name, (REFERENCE, QUERY)[i % 2], Path("a.flac"), float(i), 6.0, "", True)
        for i, name in enumerate(whose)
    ]
    return chosen, codes


def bits(matrix):
    found = evaluate(matrix, settings=EvaluationSettings(only=("srd",), replicates=0))
    return found.figures["srd.mean_bits_model"].value


@pytest.mark.parametrize("attacker", ["trained", "counts"])
def test_readers_with_codes_of_their_own_are_told_and_others_are_not(file, attacker):
    stream = Stream(1, None, file)

    def learns(apart, count=1):
        chosen, codes = tried(2, apart)
        if attacker == "counts":
            return bits(score_counts(chosen, codes, codes, SIZE, count))
        rows, whose = drawn(apart, 1)
        normalisation = fit_projection(
            np.stack([compute_features(stream, each) for each in rows]), whose
        )
        return bits(score_trained(chosen, codes, codes, normalisation, stream, count))

    assert learns(0.0) < 0.3
    assert learns(0.3) > 1.0
    assert learns(0.15, 3) > learns(0.15) + 0.2
