from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix, resamples, settled_order
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.input.scores import read_scores
from monitor.lab.evaluation.report.comparing import compare
from tests.lab.evaluation.matrices import SEEDS, matrices


def _uneven(seed=0, levels=None, trial_names=False):
    generator = np.random.default_rng(seed)
    target = np.repeat(np.arange(9), [4, 9, 12, 5, 8, 8, 15, 6, 7])
    scores = generator.normal(size=(target.size, 9)) + 1.5 * (target[:, None] == np.arange(9))
    if levels:
        scores = np.round(levels * scores)
    names = ("w2", "w10", "w1", "zoe", "ann", "bob", "cid", "dee", "eve")
    trials = tuple(f"t{i}" for i in range(target.size)) if trial_names else ()
    return ScoreMatrix(scores, target, names, "mine", trials)


def _moved(matrix, rows, columns):
    """The same trials and speakers in another order."""
    return ScoreMatrix(
        matrix.scores[rows][:, columns],
        np.argsort(columns)[matrix.target[rows]],
        tuple(matrix.speakers[column] for column in columns),
        "moved",
        tuple(matrix.trial_names[row] for row in rows) if matrix.trial_names else (),
    )


@pytest.mark.parametrize("levels", [None, 1])
@pytest.mark.parametrize("trial_names", [False, True])
def test_no_figure_depends_on_the_order_of_rows_and_columns(levels, trial_names):
    matrix = _uneven(3, levels, trial_names)
    generator = np.random.default_rng(1)
    other = _moved(matrix, generator.permutation(matrix.trials), generator.permutation(9))
    one, two = (
        evaluate(each, settings=EvaluationSettings(replicates=20)) for each in (matrix, other)
    )
    assert one.figures.keys() == two.figures.keys()
    for key, figure in one.figures.items():
        same = two[key]
        assert (same.text, same.note) == (figure.text, figure.note), key
        for here, there in zip(
            (figure.value, *figure.limits), (same.value, *same.limits), strict=True
        ):
            assert there == pytest.approx(here, abs=1e-6), key


@settings(max_examples=40)
@given(matrices(), SEEDS)
def test_the_order_is_of_the_trials_and_not_of_the_rows(matrix, seed):
    generator = np.random.default_rng(seed)
    columns = generator.permutation(matrix.population)
    moved = _moved(matrix, generator.permutation(matrix.trials), columns)
    one, two = settled_order(matrix), settled_order(moved)
    assert sorted(one) == list(range(matrix.trials))
    assert np.array_equal(matrix.target[one], columns[moved.target[two]])
    assert np.array_equal(matrix.scores[one][:, columns], moved.scores[two])


def test_named_trials_are_gone_through_alike_by_every_system():
    one, two = _uneven(0, trial_names=True), _uneven(7, trial_names=True)
    assert np.array_equal(settled_order(one), settled_order(two))
    with pytest.raises(UsageError, match="one for each trial"):
        ScoreMatrix(np.eye(2), np.arange(2), trial_names=("a", "a"))


def test_trials_keep_the_names_that_their_file_gives(tmp_path):
    table = tmp_path / "scores.csv"
    table.write_text("trial,ann,bob,target\nu2,0.9,0.1,ann\nu1,0.2,0.3,bob\n")
    assert read_scores(table).matrix.trial_names == ("u2", "u1")


def test_speakers_are_drawn_by_name():
    matrix = _uneven()
    columns = np.random.default_rng(0).permutation(9)
    moved = _moved(matrix, np.arange(matrix.trials), columns)
    assert np.array_equal(resamples(moved, 5), resamples(matrix, 5)[:, columns])


def test_systems_with_other_orders_are_compared_in_pairs():
    matrix = _uneven()
    better = ScoreMatrix(matrix.scores + 0.3, matrix.target, matrix.speakers, "better")
    better.scores[np.arange(matrix.trials), matrix.target] += 0.5
    generator = np.random.default_rng(5)
    moved = _moved(better, generator.permutation(matrix.trials), generator.permutation(9))
    reports = [
        evaluate(each, settings=EvaluationSettings(replicates=50))
        for each in (matrix, better, moved)
    ]
    straight, crossed = (compare([reports[0], other]) for other in reports[1:])
    assert crossed.paired == (True, True)
    for one, two in zip(straight.rows, crossed.rows, strict=True):
        here, there = one.differences[1], two.differences[1]
        assert here is not None
        assert there is not None
        assert (there.low, there.high) == pytest.approx((here.low, here.high), abs=1e-6)
    assert not any("tested on" in note for note in crossed.notes)


def test_what_is_not_in_both_systems_is_said():
    matrix = _uneven(trial_names=True)
    fewer = matrix.target != 2
    some = ScoreMatrix(
        matrix.scores[fewer], matrix.target[fewer], matrix.speakers, "some",
        tuple(np.array(matrix.trial_names)[fewer]),
    )  # fmt: skip
    odd = np.arange(matrix.trials) % 2 == 0
    half = ScoreMatrix(
        matrix.scores[odd], matrix.target[odd], matrix.speakers, "half",
        tuple(np.array(matrix.trial_names)[odd]),
    )  # fmt: skip
    whole, *others = (
        evaluate(each, settings=EvaluationSettings(replicates=5)) for each in (matrix, some, half)
    )
    found = compare([whole, *others])
    assert found.paired == (True, False, True)
    notes = " ".join(found.notes)
    assert "some: tested on 8 of the 9 speakers of mine and on 0 others" in notes
    assert "half: 37 of its 37 trials are among the 74 of mine" in notes
    assert "no names" not in notes


def test_growth_says_who_is_in_it():
    found = evaluate(_uneven(), settings=EvaluationSettings(replicates=5))
    assert "over 5 of 9 speakers, who have 8 trials or more" in found["longitudinal.sum_bits"].note
    assert "longitudinal.effective_trials" not in found.figures
