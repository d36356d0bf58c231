"""What changes within a voice counts less."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.lab.adapting.training import fit_normalisation


def alike(embeddings: np.ndarray) -> tuple[float, float]:
    """The mean cosine of crops of one voice, and of two."""
    units = embeddings / np.linalg.norm(embeddings, axis=2, keepdims=True)
    cosines = np.einsum("vcm,wdm->vwcd", units, units)
    same = np.eye(len(units), dtype=bool)
    return float(cosines[same].mean()), float(cosines[~same].mean())


def test_what_changes_within_a_voice_counts_less():
    generator = np.random.default_rng(0)
    voices = generator.standard_normal((60, 1, 8))
    apart = generator.standard_normal((60, 20, 8)) * [4, 1, 1, 1, 1, 1, 1, 0.2]
    embeddings, corpora = voices + apart + 5, np.arange(60) % 2
    turn, centre = fit_normalisation(
        embeddings.reshape(-1, 8), np.repeat(np.arange(60), 20), corpora
    )
    (own, other), (own_turned, other_turned) = (
        alike(embeddings),
        alike((embeddings - centre) @ turn),
    )
    assert own_turned - other_turned > own - other + 0.2
    left = (apart - apart.mean(axis=1, keepdims=True)) @ turn
    spread = np.sqrt(np.mean(left**2, axis=(0, 1)))
    assert spread.max() / spread.min() < 6  # it was 20


def test_corpora_of_any_size_have_one_say():
    embeddings = np.random.default_rng(1).standard_normal((30, 4, 3))
    corpora = np.repeat([0, 1], [25, 5])
    embeddings[corpora == 1] += 10
    centre = fit_normalisation(embeddings.reshape(-1, 3), np.repeat(np.arange(30), 4), corpora)[1]
    assert centre == pytest.approx(5, abs=1)


def test_a_voice_that_was_never_heard_has_no_say():
    generator = np.random.default_rng(0)
    embeddings, voices = generator.standard_normal((40, 3)), np.arange(40) % 10
    turn, centre = fit_normalisation(embeddings, voices, np.zeros(10, int))
    more, same = fit_normalisation(embeddings, voices, np.array([0] * 10 + [1]))
    np.testing.assert_array_equal(turn, more)
    np.testing.assert_array_equal(centre, same)
