"""A cohort of voices: all that each said, small."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from monitor.maths.windows import Session
from monitor.training.cohort import cohort_of
from monitor.training.listening import Shape
from monitor.training.voices import Voice

SHAPES = {"f0": Shape("histogram", 9, 0.01), "voice": Shape("embedding", 4, 3.0, "ab" * 32)}


def session(bins, embeddings, length):
    return {
        "f0": Session(np.array(bins), np.arange(len(bins)), length, 9),
        "voice": Session(np.array(embeddings).reshape(-1, 4), np.arange(len(embeddings)), length, 4,
                         None, 30),
    }  # fmt: skip


def test_one_sketch_of_all_that_each_said():
    ones = np.eye(4)
    voices = [
        Voice("ann", (session([1, 1, 2], [ones[0], ones[1]], 40), session([300 % 9], [], 25))),
        Voice("bob", (session([0] * 300, [], 20),)),  # shorter than any embedding
    ]
    made = cohort_of(voices, SHAPES, "Readers.")
    assert_allclose(made.seconds, [6.5, 2.0])
    assert_array_equal(made.features["f0"].slices, [[0, 2, 1, 1] + [0] * 5, [300] + [0] * 8])
    assert made.features["f0"].slices.dtype == np.uint16
    assert_array_equal(made.features["voice"].slices, [[0.5, 0.5, 0, 0], [0, 0, 0, 0]])
    assert made.features["voice"].slices.dtype == np.float16
    assert made.features["voice"].network == "ab" * 32
    assert made.about == "Readers."
