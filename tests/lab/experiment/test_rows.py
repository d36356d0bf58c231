from __future__ import annotations

import numpy as np

from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.experiment.material import exclude_speakers, select_rows, select_speakers

MADE = ScoreMatrix(
    np.arange(12.0).reshape(4, 3), np.array([0, 1, 2, 1]), ("a", "b", "c"), "x",
    ("1", "2", "3", "4"),
)  # fmt: skip


def test_some_rows():
    some = select_rows(MADE, np.array([True, False, True, False]))
    assert some.scores.tolist() == [[0, 1, 2], [6, 7, 8]]
    assert (some.target.tolist(), some.trial_names) == ([0, 2], ("1", "3"))
    assert select_rows(MADE, np.ones(4, bool)) is MADE


def test_those_who_trained_a_network_stay_candidates():
    left = exclude_speakers(MADE, frozenset({"b", "unheard of"}))
    assert left is not None
    assert (left.population, left.trials, left.target.tolist()) == (3, 2, [0, 2])
    assert exclude_speakers(MADE, frozenset("abc")) is None


def test_among_fewer_people_in_another_order():
    few = select_speakers(MADE, ("c", "b"), ("b",))
    assert few.speakers == ("c", "b")
    assert few.scores.tolist() == [[5, 4], [11, 10]]
    assert few.target.tolist() == [1, 1]
