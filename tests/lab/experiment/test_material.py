"""What an experiment is made of: panels of speakers, rows of scores, speech of a corpus."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation import Simulation, write_corpus
from monitor.corpus import find
from monitor.errors import CorpusError, UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.experiment.material import (
    LENGTHS,
    TEMPLATE_LENGTHS,
    ExperimentSettings,
    Panel,
    Speech,
    choose_panels,
    exclude_speakers,
    select_rows,
    select_speakers,
)

OFFERED = LENGTHS, TEMPLATE_LENGTHS


def choose(spoken, sessions=("same",), **more):
    """Panels of people who speak so long, in one session each."""

    def fills(session, test, template):
        if session == "cross":
            return [], []
        found = [name for name, seconds in spoken.items() if seconds >= test + template]
        return found, found

    return choose_panels(fills, OFFERED, ExperimentSettings(sessions=sessions, **more))


def test_short_speech_is_not_fit_for_templates():
    spoken = {f"short{i}": 12 for i in range(200)} | {f"long{i}": 250 for i in range(50)}
    tables, sweep = choose(spoken, ("cross", "same"))
    assert {panel.session for panel in (tables, sweep)} == {"same"}
    assert (tables.lengths, tables.template_lengths) == ((30.0,), (30.0,))
    assert set(tables.speakers) == set(sweep.speakers) == {f"long{i}" for i in range(50)}
    assert sweep.lengths == (1, 2, 3, 5, 10, 20, 30, 60, 120)
    assert sweep.template_lengths[-1] == 120


def test_the_sweep_goes_as_far_as_half_of_them_and_all_cells_have_the_same():
    spoken = {f"a{i}": 50 for i in range(20)} | {f"b{i}": 700 for i in range(19)}
    tables, sweep = choose(spoken)
    assert sweep.lengths[-1] == 20
    assert len(sweep.speakers) == len(sweep.tested) == 39
    assert tables.lengths == (20.0,)
    assert len(sweep.cells) == len(set(sweep.cells)) == 6 * 3


@pytest.mark.parametrize("spoken", [{}, {"ann": 100}, {"ann": 3, "bob": 3}])
def test_too_little_speech_is_refused(spoken):
    with pytest.raises(CorpusError, match="fewer than two speakers have enough speech"):
        choose(spoken, ("same", "cross"))
    with pytest.raises(CorpusError, match="shorter tables-at"):
        choose({f"a{i}": 50 for i in range(20)}, tables_at=(30.0, 30.0))


MADE = ScoreMatrix(
    np.arange(12.0).reshape(4, 3), np.array([0, 1, 2, 1]), ("a", "b", "c"), "x",
    ("1", "2", "3", "4"),
)  # fmt: skip


def test_some_rows_some_speakers_and_those_who_did_not_train_a_network():
    some = select_rows(MADE, np.array([True, False, True, False]))
    assert some.scores.tolist() == [[0, 1, 2], [6, 7, 8]]
    assert (some.target.tolist(), some.trial_names) == ([0, 2], ("1", "3"))
    assert select_rows(MADE, np.ones(4, bool)) is MADE
    left: Any = exclude_speakers(MADE, frozenset({"b", "unheard of"}))  # they stay candidates
    assert (left.population, left.trials, left.target.tolist()) == (3, 2, [0, 2])
    assert exclude_speakers(MADE, frozenset("abc")) is None
    few = select_speakers(MADE, ("c", "b"), ("b",))  # in another order
    assert few.speakers == ("c", "b")
    assert few.scores.tolist() == [[5, 4], [11, 10]]
    assert few.target.tolist() == [1, 1]


@pytest.fixture(scope="module")
def speech(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    write_corpus(folder / "voices", Simulation(6), 6, 2, 20.0)
    return Speech(find(folder / "voices").recordings, None, 5)


def panel(speech, session="same"):
    speakers, tested = speech.fills(session, 3.0, 3.0)
    return Panel("sweep", session, tuple(speakers), tuple(tested), (3.0,), (3.0,))


def test_tests_and_templates_of_everybody_or_of_those_who_are_tested(speech):
    made = panel(speech)
    (matrix,) = speech.matrices(made, 3.0, 3.0).values()
    assert matrix.scores.shape == (30, 6)
    assert matrix.speakers == made.speakers
    assert set(matrix.target) == set(range(6))
    assert sum(speech.frame_counts(made.speakers)["f0"]) > 1000
    made = panel(speech, "cross")
    few = replace(made, tested=made.tested[:2])
    (matrix,) = speech.matrices(few, 3.0, 3.0).values()
    assert matrix.scores.shape == (10, 6)
    assert {matrix.speakers[i] for i in matrix.target} == set(made.tested[:2])
    assert speech.fills("same", 300.0, 3.0) == ([], [])
    with pytest.raises(UsageError, match="positive multiple"):
        speech.fills("same", 1.23, 3.0)


def test_what_is_kept_depends_on_what_was_said(speech, tmp_path):
    write_corpus(tmp_path / "other", Simulation(6, seed=1), 6, 2, 20.0)
    other = Speech(find(tmp_path / "other").recordings, None, 5)
    made = panel(speech)
    before = speech.content(made)
    assert other.content(made) != before
    assert speech.content(made) == before
