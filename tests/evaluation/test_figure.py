from __future__ import annotations

import numpy as np

from monitor.evaluation.figure import Figure


def test_limits_leave_out_resamples_where_the_figure_does_not_exist():
    draws = np.concatenate([np.linspace(0.0, 1.0, 201), np.full(20, np.nan)])
    assert Figure("a.b", "B", 0.5, "share", draws=draws).limits == (0.025, 0.975)
    assert Figure("a.b", "B", None, "share", draws=np.full(3, np.nan)).limits == (None, None)


def test_limits_that_are_given_stand():
    assert Figure("a.b", "B", 0.5, "share", low=0.1, high=0.7).limits == (0.1, 0.7)
    assert Figure("a.b", "B", 0.5, "share").limits == (None, None)
