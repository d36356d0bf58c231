"""What streams of codes tell: made voices that differ in what they say, or in nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.systems import CODEC, QUERY, REFERENCE, Excerpt, change
from benchmarks.usc_codes import Stream, counted, features, learnt, trained
from monitor.errors import UsageError
from monitor.lab.evaluation import EvaluationSettings, evaluate
from monitor.networks.layers import RATE
from tests.usc_weights import BOOKS, SIZE, usc_weights

READERS, PIECES = 24, 12


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("usc") / "usc.npz"
    np.savez(path, **usc_weights())  # type: ignore[arg-type]
    return str(path)


@pytest.fixture(scope="module")
def sound() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.1, 2 * RATE + 123).astype(np.float32)


def test_more_codebooks_take_more_bits_and_say_something_else(file, sound):
    one, all_of = (change(f"{CODEC}:{books}@{file}", sound, "a", "ann") for books in (1, BOOKS))
    assert one[0].shape == all_of[0].shape == sound.shape
    assert one[1] == pytest.approx(np.log2(SIZE) * len(sound) / 640)
    assert all_of[1] == pytest.approx(BOOKS * one[1])
    assert np.abs(one[0] - all_of[0]).max() > 0


@pytest.mark.parametrize("setting", ["x", "6:300", "", "0", f"{BOOKS + 1}"])
def test_a_setting_that_makes_no_sense_is_refused(file, sound, setting):
    with pytest.raises(UsageError):
        change(f"{CODEC}:{setting}@{file}", sound, "a", "ann")


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
            return bits(counted(chosen, codes, codes, SIZE, count))
        rows, whose = drawn(apart, 1)
        turn = learnt(np.stack([features(stream, each) for each in rows]), whose)
        return bits(trained(chosen, codes, codes, turn, stream, count))

    assert learns(0.0) < 0.3
    assert learns(0.3) > 1.0
    assert learns(0.15, 3) > learns(0.15) + 0.2
