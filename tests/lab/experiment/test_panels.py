from __future__ import annotations

import pytest

from monitor.errors import CorpusError
from monitor.lab.experiment.settings import LENGTHS, TEMPLATE_LENGTHS, choose_panels

OFFERED = LENGTHS, TEMPLATE_LENGTHS


def fills_of(spoken):
    def fills(session, test, template):
        if session == "cross":
            return [], []
        found = [name for name, seconds in spoken.items() if seconds >= test + template]
        return found, found

    return fills


def test_short_speech_is_not_fit_for_templates():
    spoken = {f"short{i}": 12 for i in range(200)} | {f"long{i}": 250 for i in range(50)}
    tables, sweep = choose_panels(fills_of(spoken), OFFERED, ("cross", "same"))
    assert {panel.session for panel in (tables, sweep)} == {"same"}
    assert (tables.lengths, tables.template_lengths) == ((30.0,), (30.0,))
    assert set(tables.speakers) == set(sweep.speakers) == {f"long{i}" for i in range(50)}
    assert sweep.lengths == (1, 2, 3, 5, 10, 20, 30, 60, 120)
    assert sweep.template_lengths[-1] == 120


def test_the_sweep_goes_as_far_as_half_of_them_and_all_cells_have_the_same():
    spoken = {f"a{i}": 50 for i in range(20)} | {f"b{i}": 700 for i in range(19)}
    tables, sweep = choose_panels(fills_of(spoken), OFFERED, ("same",))
    assert sweep.lengths[-1] == 20
    assert len(sweep.speakers) == len(sweep.tested) == 39
    assert tables.lengths == (20.0,)
    assert len(sweep.cells) == len(set(sweep.cells)) == 6 * 3


def test_lengths_that_are_given_are_kept():
    spoken = {f"a{i}": 50 + 10 * i for i in range(20)}
    tables, sweep = choose_panels(
        fills_of(spoken), OFFERED, ("same",), (1.0, 100.0), (5.0, 100.0), (10.0, 5.0)
    )
    assert sweep.cells == [(1.0, 5.0), (1.0, 100.0), (100.0, 5.0), (100.0, 100.0)]
    assert sweep.speakers == tuple(f"a{i}" for i in range(15, 20))
    assert tables.cells == [(10.0, 5.0)]
    assert len(tables.speakers) == 20


@pytest.mark.parametrize("spoken", [{}, {"ann": 100}, {"ann": 3, "bob": 3}])
def test_too_little_speech_is_refused(spoken):
    with pytest.raises(CorpusError, match="fewer than two speakers have enough speech"):
        choose_panels(fills_of(spoken), OFFERED, ("same", "cross"))


def test_tables_that_nobody_can_fill_are_refused():
    spoken = {f"a{i}": 50 for i in range(20)}
    with pytest.raises(CorpusError, match="shorter --tables-at"):
        choose_panels(fills_of(spoken), OFFERED, ("same",), tables_at=(30.0, 30.0))
