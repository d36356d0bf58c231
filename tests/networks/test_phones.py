"""The phone recogniser and the network of units as they ship: what they say is what is defined."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import monitor.networks
from monitor.errors import UsageError
from monitor.networks.layers import FLOOR, RATE, log_mel
from monitor.networks.phones import (
    PHONES,
    UNITS_BLOCK,
    UNITS_FLOOR,
    Trigram,
    likeliest,
    shipped_recogniser,
    shipped_units,
)
from tests.sounds import synthetic


def test_the_likeliest_way_is_not_the_best_path():
    """A phone that English hardly has after these two gives way to one that it has."""
    names, spoken = ["S", "T", "R"], shipped_recogniser().spoken
    posteriors = np.full((7, 40), -12.0, np.float32)
    posteriors[:, 0] = -0.1
    for frame, name in zip((1, 3, 5), names, strict=True):
        posteriors[frame] = -12
        posteriors[frame, 1 + PHONES.index(name)] = -0.8
    posteriors[3, 1 + PHONES.index("ZH")] = -0.7  # a little likelier than T
    best = posteriors[1::2].argmax(axis=1)
    assert [PHONES[place - 1] for place in best] == ["S", "ZH", "R"]
    assert [tuple(each) for each in spoken(posteriors)] == [("S", 1, 1), ("T", 3, 3), ("R", 5, 5)]
    with pytest.raises(UsageError, match=r"\(k, 40\)"):
        spoken(posteriors[:, :-1])


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


WEIGHTS = Path(monitor.networks.__file__).with_name("units.npz")
SOUND = synthetic(2)


def test_units_are_the_codes_of_the_layer():
    """Computed at once, in double precision, as the mathematics says."""
    stream = shipped_units().stream()
    whole = np.concatenate([stream.push(SOUND), stream.flush()])
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
    same = distances.argmin(axis=1)[: len(whole)] == whole
    assert np.mean(same) > 0.98  # ties may fall to either
    assert len(set(whole.tolist())) > 15
    assert shipped_units().look_ahead == pytest.approx(0.045)


def test_what_was_long_ago_changes_nothing():
    """A stream that begins later, with a block, is the same after its memory and before nothing."""
    network = shipped_units()
    ago = network.memory
    assert ago % UNITS_BLOCK == 0
    whole, late = network.stream(), network.stream()
    whole.push(SOUND[: ago + UNITS_BLOCK])
    late.push(SOUND[UNITS_BLOCK : ago + UNITS_BLOCK])
    expected, found = (stream.push(SOUND[ago + UNITS_BLOCK :]) for stream in (whole, late))
    assert len(found) > 50
    assert np.array_equal(found, expected)
