"""Several people on a terminal, and in memory: everybody's readings are kept by themselves."""

from __future__ import annotations

import io

from rich.console import Console

from monitor.sinks.jsonl import RunBuffer
from monitor.sinks.live import MOST_SHOWN, PeopleProgress
from monitor.sinks.summary import print_people
from tests.records import as_records, event, events


def reading(label, second, bits, **more):
    return {"type": "reading", "seconds": second, "speech": second, "bits": bits,
            "ceiling": 5.64, "label": label, **more}  # fmt: skip


def test_a_view_has_a_line_for_those_with_most_bits():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, legacy_windows=False)
    progress = PeopleProgress(60.0, console, clock=lambda: 0.0)
    for k in range(MOST_SHOWN + 2):
        progress.write(event(reading(f"person {k}", 5.0, 0.1 * k)))
    alert = {"type": "alert", "seconds": 5.0, "rule": "bits>3", "state": "raised", "value": 3.0}
    progress.write(event({**alert, "label": "person 4"}))
    shown = io.StringIO()
    Console(file=shown, width=80).print(progress._view())
    text = shown.getvalue()
    assert "person 1 " not in text
    assert text.index("person 2") < text.index("person 9")
    assert "and 2 more with less" in text
    assert "10 people" in text
    progress.close()
    assert "person 4: alert at 0:05" in out.getvalue()


def test_the_line_is_of_whom_says_most_of_several_watched():
    out = io.StringIO()
    progress = PeopleProgress(None, Console(file=out, force_terminal=False))
    progress.write(event(reading("S0", 5.0, 1.0, watch="ann")))
    progress.write(event(reading("S0", 5.0, 2.5, watch="bob")))
    progress.write(event(reading("S1", 6.0, None, watch="ann")))
    progress.close()
    assert "2 people, most: S0, 2.5 of 5.6 bits" in out.getvalue()


def test_a_table_has_a_row_for_everybody_and_for_nobody():
    out = io.StringIO()
    console = Console(file=out, width=100)
    row = {"person": "ann", "probability": 0.9, "purity": 1.0, "watch": None, "speech": 61.0,
           "first_alert_seconds": 12.0, "bits": 2.1, "bits_low": 1.9, "bits_high": 2.2,
           "headline": "closed-set", "at_least": False}  # fmt: skip
    silent = dict.fromkeys(row) | {"label": "\x1b[2Jeve", "speech": 0.0}
    end = {"type": "end", "people": [{**row, "label": "S0"}, silent], "overlap_seconds": 3.0}
    last = {**reading("S0", 61.0, 2.1), "assumes_enrolled": True}
    print_people(events([last, end]), console)
    text = out.getvalue()
    assert "\x1b" not in text
    assert "ann, 90 %" in text
    assert "too little to say" in text
    assert "3.0 s of overlapping speech excluded" in text
    assert "assumes that each speaker is enrolled" in text


def test_everybodys_readings_are_thinned_by_themselves():
    kept = RunBuffer()
    for second in range(1, 4001):
        kept.write(event(reading("S0" if second % 4 else "S1", float(second), 1.0)))
    for label, last in (("S0", 3999.0), ("S1", 4000.0)):
        own = [r["seconds"] for r in as_records(kept.events) if r["label"] == label]
        assert own[:600] == sorted(own)[:600]
        assert max(own) == last
        assert len(own) >= 600
