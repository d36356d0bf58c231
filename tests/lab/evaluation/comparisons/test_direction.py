from __future__ import annotations

import numpy as np
import pytest

from monitor.lab.evaluation.comparisons import ScoreMatrix, warning
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.report.document import Evaluation
from monitor.lab.evaluation.report.report import meaning
from monitor.lab.report.html import render_html
from tests.lab.evaluation.matrices import chance, constant, perfect, rescored

pytestmark = pytest.mark.slow


def _weak(seed, strength):
    matrix = chance(30, 8, seed)
    own = matrix.target[:, None] == np.arange(30)
    return ScoreMatrix(matrix.scores + strength * own, matrix.target, name="weak")


def test_distances_are_found_out_and_scores_are_not():
    for seed in range(20):
        assert warning(_weak(seed, -1.0))
        assert not warning(_weak(seed, 0.5))
        assert not warning(chance(2, 4, seed))
    assert sum(bool(warning(chance(20, 10, seed))) for seed in range(100)) <= 2
    assert not warning(constant())
    assert warning(rescored(perfect(2, 8), lambda scores: 1 - scores))
    assert not warning(rescored(perfect(2, 1), lambda scores: 1 - scores))


def test_trials_of_a_speaker_that_are_alike_are_not_taken_for_distances():
    repeated = chance(8, 1, seed=3)
    copies = ScoreMatrix(np.repeat(repeated.scores, 30, axis=0), np.repeat(repeated.target, 30))
    assert not warning(copies)


def test_the_warning_says_what_was_seen_and_what_to_do():
    said = warning(rescored(perfect(10, 5), lambda scores: 1 - scores))
    assert "in 0 % of the trials the right person came first" in said
    assert "guessing does that in 10 %" in said
    assert "give the negatives" in said
    assert warning(perfect(10, 5)) == ""


@pytest.fixture(scope="module")
def report():
    return evaluate(_weak(0, -4.0), settings=EvaluationSettings(replicates=40))


def test_it_stands_on_top_of_every_report(report):
    assert len(report.warnings) == 1
    assert report.to_json()["warnings"] == list(report.warnings)
    html = render_html(Evaluation([report]).page())
    assert html.index("looks like distances") < html.index("What it means")
    right = evaluate(_weak(1, 4.0), settings=EvaluationSettings(replicates=40))
    assert right.to_json()["warnings"] == []
    assert 'role="alert"' not in render_html(Evaluation([right]).page())
    other = evaluate(ScoreMatrix(-_weak(0, -4.0).scores, _weak(0, 0).target))
    assert "looks like distances" in render_html(Evaluation([report, other]).page())


def test_what_it_means_is_not_turned_round(report):
    first = meaning(report)[0]
    assert "who takes low scores for alike learns" in first
    assert "nothing that can be measured" not in first


def test_a_dev_matrix_of_distances():
    scores = evaluate(_weak(0, 4.0), _weak(1, -4.0), settings=EvaluationSettings(replicates=0))
    assert [text.startswith("the dev matrix looks like distances") for text in scores.warnings]
