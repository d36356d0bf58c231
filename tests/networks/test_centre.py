"""Bands less their running mean: by its definition, in any pieces, whatever the microphone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from monitor.networks.layers import Centre

BANDS = np.random.default_rng(0).normal(-8, 3, (900, 40)).astype(np.float32)
USUAL = np.full(40, -8.0)


def test_the_mean_forgets_and_begins_with_what_is_usual():
    total, weight = 50 * USUAL, 50.0
    expected = []
    for row in BANDS.astype(float):
        total, weight = total * (1 - 1 / 500) + row, weight * (1 - 1 / 500) + 1
        expected.append(row - total / weight)
    np.testing.assert_allclose(Centre(USUAL)(BANDS), expected, atol=1e-4)


@given(st.lists(st.integers(0, len(BANDS)), max_size=6))
def test_pieces_change_nothing(cuts):
    centre = Centre(USUAL)
    parts = [centre(part) for part in np.split(BANDS, sorted(cuts))]
    np.testing.assert_allclose(np.concatenate(parts), Centre(USUAL)(BANDS), atol=1e-5)
    centre.reset()
    assert np.array_equal(centre(BANDS), Centre(USUAL)(BANDS))


def test_another_microphone_is_gone_after_some_seconds():
    other = BANDS + np.linspace(-3, 3, 40, dtype=np.float32)
    differ = np.abs(Centre(USUAL)(other) - Centre(USUAL)(BANDS)).max(axis=1)
    assert differ[0] > 2.5
    assert differ[-1] < 0.2
