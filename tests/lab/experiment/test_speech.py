"""Frames of a corpus as the material of an experiment."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.simulation import Simulation, write_corpus
from monitor.corpus import find
from monitor.errors import UsageError
from monitor.lab.experiment import material as room
from monitor.lab.experiment.material import Panel, Speech


@pytest.fixture(scope="module")
def speech(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    write_corpus(folder / "voices", Simulation(6), 6, 2, 20.0)
    return Speech(find(folder / "voices").recordings, None, 5)


def panel(speech, session="same"):
    speakers, tested = speech.fills(session, 3.0, 3.0)
    return Panel("sweep", session, tuple(speakers), tuple(tested), (3.0,), (3.0,))


def test_tests_and_templates_of_everybody(speech):
    made = panel(speech)
    (matrix,) = speech.matrices(made, 3.0, 3.0).values()
    assert matrix.scores.shape == (30, 6)
    assert matrix.speakers == made.speakers
    assert set(matrix.target) == set(range(6))
    assert speech.fills("same", 300.0, 3.0) == ([], [])
    assert sum(speech.frame_counts(made.speakers)["f0"]) > 1000


def test_only_those_who_are_tested_have_rows(speech):
    made = panel(speech, "cross")
    few = Panel("sweep", "cross", made.speakers, made.tested[:2], (3.0,), (3.0,))
    (matrix,) = speech.matrices(few, 3.0, 3.0).values()
    assert matrix.scores.shape == (10, 6)
    assert {matrix.speakers[i] for i in matrix.target} == set(made.tested[:2])


def test_what_is_kept_depends_on_what_was_said(speech, tmp_path):
    write_corpus(tmp_path / "other", Simulation(6, seed=1), 6, 2, 20.0)
    other = Speech(find(tmp_path / "other").recordings, None, 5)
    made = panel(speech)
    before = speech.content(made)
    assert other.content(made) != before
    assert speech.content(made) == before
    fewer = Speech(speech.recordings, None, 4)
    assert fewer.content(made) != before


def test_many_speakers_have_fewer_trials_and_too_many_are_refused(speech, monkeypatch):
    made = panel(speech)
    assert speech.count_trials(made) == 5
    monkeypatch.setattr(room, "ENOUGH_BYTES", 8 * 36 * 2)
    assert speech.count_trials(made) == 2
    monkeypatch.setattr(room, "ENOUGH_BYTES", 8)
    assert speech.count_trials(made) == 1
    monkeypatch.setattr(room, "MOST_BYTES", 8)
    with pytest.raises(UsageError, match="fewer speakers"):
        speech.count_trials(made)


def test_a_length_between_tenths_is_refused(speech):
    with pytest.raises(UsageError, match="positive multiple"):
        speech.fills("same", 1.23, 3.0)
    assert np.isfinite(speech.offered[0]).all()
