from __future__ import annotations

import pytest

from monitor.errors import CorpusError
from monitor.lab.experiment.material import (
    LENGTHS,
    TEMPLATE_LENGTHS,
    ExperimentSettings,
    choose_panels,
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


def test_lengths_that_are_given_are_kept():
    spoken = {f"a{i}": 50 + 10 * i for i in range(20)}
    tables, sweep = choose(
        spoken, lengths=(1.0, 100.0), template_lengths=(5.0, 100.0), tables_at=(10.0, 5.0)
    )
    assert sweep.cells == [(1.0, 5.0), (1.0, 100.0), (100.0, 5.0), (100.0, 100.0)]
    assert sweep.speakers == tuple(f"a{i}" for i in range(15, 20))
    assert tables.cells == [(10.0, 5.0)]
    assert len(tables.speakers) == 20


@pytest.mark.parametrize("spoken", [{}, {"ann": 100}, {"ann": 3, "bob": 3}])
def test_too_little_speech_is_refused(spoken):
    with pytest.raises(CorpusError, match="fewer than two speakers have enough speech"):
        choose(spoken, ("same", "cross"))


def test_tables_that_nobody_can_fill_are_refused():
    spoken = {f"a{i}": 50 for i in range(20)}
    with pytest.raises(CorpusError, match="shorter --tables-at"):
        choose(spoken, tables_at=(30.0, 30.0))
