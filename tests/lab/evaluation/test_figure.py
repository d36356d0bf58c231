from __future__ import annotations

import numpy as np

from monitor.lab.report.model import Figure


def test_limits_are_those_that_were_found():
    assert Figure("a.b", "B", 0.5, "share", low=0.1, high=0.7).limits == (0.1, 0.7)
    assert Figure("a.b", "B", 0.5, "share").limits == (None, None)


def test_replicates_alone_are_no_limits():
    assert Figure("a.b", "B", 0.5, "share", replicates=np.linspace(0.0, 1.0, 201)).limits == (
        None,
        None,
    )
