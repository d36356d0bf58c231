"""A run in the wrong state says so, and leaves what was heard as it was."""

from __future__ import annotations

import pytest

from monitor import Monitor, Population, Run
from monitor.errors import UsageError
from monitor.population import demo_frames


def test_it_is_entered_once():
    run = Run(demo_frames(), Monitor(Population.reference(), ["f0"], step_seconds=100))
    with run:
        run.to_end()
        with pytest.raises(UsageError, match="once"):
            run.__enter__()
        assert list(run) == []  # iterated again it counts nothing twice
    with pytest.raises(UsageError, match="once"), run:
        pass
    assert run.totals.readings == 6
