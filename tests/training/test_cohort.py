"""A cohort of people: all that each said, small."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from monitor.corpus import find
from monitor.sources.frames import write_frames
from monitor.training.voices import cohort_of
from monitor.types import Track

MARK = "ab" * 32


def write(path, bins, embeddings, ticks):
    path.parent.mkdir(parents=True, exist_ok=True)
    ends = np.full(len(embeddings), ticks)  # complete with the last sound
    tracks = {
        "f0": Track(np.minimum(np.arange(len(bins)) + 1, ticks), np.array(bins)),
        "voice": Track(ends, np.array(embeddings, np.float32).reshape(-1, 4)),
    }
    write_frames(
        path, np.ones(ticks, bool), tracks, {"f0": 300, "voice": 4}, {"f0": 0.01, "voice": 3.0},
        networks={"voice": MARK},
    )  # fmt: skip


def test_one_sketch_of_all_that_each_said(tmp_path):
    ones = np.eye(4)
    write(tmp_path / "c" / "ann" / "1.npz", [1, 1, 2], [ones[0], ones[1]], 405)
    write(tmp_path / "c" / "ann" / "2.npz", [3], [ones[1], ones[2]], 250)
    write(tmp_path / "c" / "bob" / "1.npz", [0] * 300, [], 201)  # shorter than any embedding
    (tmp_path / "c" / "zoe").mkdir()
    (tmp_path / "c" / "zoe" / "1.npz").write_text("no frames")
    made, problems = cohort_of(find(tmp_path / "c"), about="Readers.")
    assert_allclose(made.seconds, [6.55, 2.01])
    counts = made.features["f0"].slices
    assert_array_equal(counts[:, :4], [[0, 2, 1, 1], [300, 0, 0, 0]])
    assert counts.dtype == np.uint16
    assert not counts[:, 4:].any()
    directions = made.features["voice"].slices
    assert_allclose(directions, np.array([[1, 2, 1, 0], [0, 0, 0, 0]]) / np.sqrt(6), atol=1e-3)
    assert directions.dtype == np.float16
    assert made.specs["voice"].network == MARK
    assert made.about == "Readers."
    assert problems[0].startswith("zoe/1.npz is no file of frames")
