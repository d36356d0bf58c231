"""The likeliest phones: the best of all ways there are, counted one by one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.networks.phones import Trigram, likeliest


def begun(way: Sequence[int]) -> list[tuple[int, int]]:
    """The phones of a way, and the frames they begin in."""
    return [(c, t) for t, c in enumerate(way) if c and (t == 0 or way[t - 1] != c)]


def score(way: Sequence[int], heard: np.ndarray, trigram: Trigram) -> float:
    said = [0, 0, *(phone for phone, _ in begun(way)), 0]
    follow = sum(trigram.logs[three] for three in zip(said, said[1:], said[2:], strict=False))
    frames = sum(heard[t, c] for t, c in enumerate(way))
    return float(frames + trigram.weight * follow + trigram.bonus * (len(said) - 3))


@given(
    classes=st.integers(2, 3),
    frames=st.integers(1, 6),
    weight=st.floats(0, 1.5),
    bonus=st.floats(-1, 2),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_way_is_better(classes, frames, weight, bonus, seed):
    generator = np.random.default_rng(seed)
    heard = np.log(generator.dirichlet(np.ones(classes), frames) + 1e-2)
    follow = np.log(generator.dirichlet(np.ones(classes), (classes, classes)) + 1e-4)
    trigram = Trigram(follow, weight, bonus)
    ways = list(itertools.product(range(classes), repeat=frames))
    scores = [score(way, heard, trigram) for way in ways]
    found = likeliest(heard, trigram)
    # ties of single precision may fall to either
    mine = max(s for way, s in zip(ways, scores, strict=True) if begun(way) == found)
    assert mine == pytest.approx(max(scores), abs=1e-4)


def test_what_follows_what_decides_between_two_that_sound_alike():
    heard = np.log([[0.1, 0.8, 0.1], [0.8, 0.1, 0.1], [0.1, 0.48, 0.42]])
    follow = np.log(np.full((3, 3, 3), 1 / 3))
    assert likeliest(heard, Trigram(follow, 0.0, 0.0)) == [(1, 0), (1, 2)]
    follow[0, 1] = np.log([0.1, 0.1, 0.8])
    assert likeliest(heard, Trigram(follow, 1.0, 0.0)) == [(1, 0), (2, 2)]


def test_nothing_said_and_nothing_heard():
    follow = Trigram(np.log(np.full((3, 3, 3), 1 / 3)), 0.5, 0.0)
    assert likeliest(np.log(np.tile([0.98, 0.01, 0.01], (50, 1))), follow) == []
    assert likeliest(np.empty((0, 3)), follow) == []
