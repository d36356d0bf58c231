"""`RunBuffer` keeps enough of a run to draw it, however long it is."""

from __future__ import annotations

import itertools

from monitor.sinks.console import RunBuffer


def test_kept_keeps_the_shape_of_a_long_run():
    kept = RunBuffer()
    kept.write({"type": "start"})
    for second in range(1, 36_001):
        kept.write({"type": "reading", "seconds": float(second)})
        kept.write({"type": "gap", "seconds": float(second)})
    kept.write({"type": "end"})
    kinds = [record["type"] for record in kept.records]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert kinds.count("gap") == kept.MOST_OTHERS
    seconds = [r["seconds"] for r in kept.records if r["type"] == "reading"]
    assert seconds[:600] == [float(second) for second in range(1, 601)]
    assert seconds[-1] == 36_000
    # beside the gaps that are kept stands the reading before them
    assert len(seconds) < 2500
    assert max(b / a for a, b in itertools.pairwise(seconds[600:])) < 1.006


def test_the_last_reading_is_kept_at_any_moment():
    kept = RunBuffer()
    for second in range(1, 3000):
        kept.write({"type": "reading", "seconds": float(second)})
        assert kept.records[-1]["seconds"] == second
