"""`RunBuffer` keeps enough of a run to draw it, however long it is."""

from __future__ import annotations

import itertools

from monitor.events.reading import Reading
from monitor.sinks.jsonl import RunBuffer
from tests.records import as_records, event


def test_kept_keeps_the_shape_of_a_long_run():
    kept = RunBuffer()
    kept.write(event({"type": "start"}))
    for second in range(1, 36_001):
        kept.write(event({"type": "reading", "seconds": float(second)}))
        kept.write(event({"type": "gap", "seconds": float(second)}))
    kept.write(event({"type": "end"}))
    kinds = [each.type for each in kept.events]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert kinds.count("gap") == kept.MOST_OTHERS
    seconds = [r.seconds for r in kept.events if isinstance(r, Reading)]
    assert seconds[:600] == [float(second) for second in range(1, 601)]
    assert seconds[-1] == 36_000
    # beside the gaps that are kept stands the reading before them
    assert len(seconds) < 2500
    assert max(b / a for a, b in itertools.pairwise(seconds[600:])) < 1.006


def test_the_last_reading_is_kept_at_any_moment():
    kept = RunBuffer()
    for second in range(1, 3000):
        kept.write(event({"type": "reading", "seconds": float(second)}))
        assert as_records(kept.events)[-1]["seconds"] == second
