"""Scores against enrolled speakers, at several lengths at once."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.errors import CorpusError
from monitor.lab.scoring import EnrolledGrid, score
from monitor.training import collect
from tests.lab.test_scoring import SPEAKERS, enrolled, written

__all__ = ["enrolled"]


def made(voices, population, lengths, scorings=("average",), templates=(None,)) -> EnrolledGrid:
    names = ("codes", "embedding")
    return EnrolledGrid(
        voices, population, names, population.rank_models, lengths, templates, "cross", scorings
    )


@pytest.mark.slow
def test_they_are_those_of_score(tmp_path, enrolled):
    _, population = enrolled
    corpus = written(tmp_path, range(SPEAKERS), range(2, 3))
    grid = made(collect(corpus)[0], population, (5.0, 20.0, 41.0), ("average", "max"))
    cells = [grid.score(*cell) for cell in grid.cells()]
    assert [(c.session, c.test_seconds, c.template_seconds) for c in cells] == [
        ("cross", 5.0, 30.0), ("cross", 20.0, 30.0),
    ]  # fmt: skip
    assert grid.problems == ["nobody enrolled says as much as 41 s in one session"]
    for cell in cells:
        alone = score(corpus, population, seconds=cell.test_seconds).matrices
        for name, matrix in alone.items():
            assert np.array_equal(matrix.scores, cell.matrices[name].scores)
            assert matrix.trial_names == cell.matrices[name].trial_names
        nearest, mean = (cell.matrices[n].scores for n in ("embedding-max", "embedding"))
        assert not np.allclose(nearest, mean)
        assert cell.start_seconds[1] == cell.test_seconds
        assert set(cell.sessions) == {"2"}


def test_templates_are_cut(tmp_path, enrolled):
    _, population = enrolled
    voices = collect(written(tmp_path, range(SPEAKERS), range(2, 3)))[0]
    grid = made(voices, population, (20.0,), templates=(10.0, 30.0))
    short, long = (grid.score(*cell) for cell in grid.cells())
    assert (short.template_seconds, long.template_seconds) == (10.0, 30.0)
    assert not np.allclose(short.matrices["codes"].scores, long.matrices["codes"].scores)
    with pytest.raises(CorpusError, match="as much as 41 s"):
        made(voices, population, (41.0,)).cells()
