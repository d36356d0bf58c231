"""What is said when a run is over, and that no figure of it reads as comforting."""

from __future__ import annotations

import io
import math
from typing import Any

import pytest
from rich.console import Console

from monitor.anonymisers.laplace import Declared
from monitor.events.declaration import to_json
from monitor.events.phrases import bits_now
from monitor.events.reading import DeclaredReading
from monitor.phrases import CAVEAT
from monitor.plots.curve import heading, read_columns
from monitor.run.each import COLUMNS, RecordingOutcome
from monitor.sinks.summary import print_people, print_summary
from tests.records import event, events

START = {"type": "start", "watch": "4088", "speakers": 50}
LAST: dict[str, Any] = {
    "type": "reading", "seconds": 99.0, "speech": 90.0, "bits": 2.1, "peak_bits": 2.3,
    "ceiling": math.log2(50), "expected_bits": 2.0, "features": {"f0": {"usable": 9.0, "rank": 2}},
    "assumes_enrolled": False, "beyond_grid": False, "enrolled": 0.97, "top": [],
    **{f"{name}_{end}": 1.0 for name in ("bits", "expected_bits") for end in ("low", "high")},
}  # fmt: skip
EVIDENCE = {
    "bits": 11.3, "bits_low": 10.5, "bits_high": 12.1, "peak_bits": 11.5, "headline": "evidence",
    "closed_set_bits": 5.4, "closed_set_bits_low": 1.0, "closed_set_bits_high": 5.5,
    "support_bits": 14.2, "at_least": False,
    "among": [{"people": 50, "bits": 5.6}, {"people": 10**6, "bits": 11.3}],
}  # fmt: skip
CHANGE = {"type": "change", "seconds": 112.0, "since_seconds": 107.0, "features": ["f0"]}
BEST = [{"people": 10**6, "bits": 0.0, "favourite": ["4088", 0.0025]}]
SIDE = {"bits": 0.9, "bits_low": 0.7, "bits_high": 1.1, "by": "lazy-informed",
        "attackers": {"ignorant": {}, "lazy-informed": {}}}  # fmt: skip
DELAY = {"bits": 2.0, "clear": {"seconds": 4.0, "crossed": True},
         "protected": {"seconds": 99.0, "crossed": False}, "delay_seconds": 95.0,
         "at_least": True}  # fmt: skip
DECLARED = {"mechanism": "usc:15", "epsilon_nats": 15.0, "window_seconds": 0.04, "delta": 1e-4}
PROMISE = to_json(DeclaredReading.of(Declared("usc:15", 15.0, 0.04).after(1500)))
VOICES = {"f0": {"usable": 9.0, "rank": 2.0}, "style": {"usable": 9.0, "rank": 2.0}}


@pytest.mark.parametrize(
    ("records", "said", "unsaid"),
    [
        ([START, LAST], ["4088 disclosed"], ["promise", "not the reader"]),
        ([START, {**LAST, "features": VOICES}], ["that is its author, not the reader."], []),
        # after another voice nobody is named
        ([START, {**CHANGE, "action": "note"},
          {**LAST, "change": {"since_seconds": 107.0, "features": ["f0"]}}],
         ["another voice since 1:47: these bits may not be 4088's",
          "another voice since 1:47, noticed at 1:52"], ["4088 disclosed"]),
        ([START, {**CHANGE, "action": "split"}, LAST], ["of the last voice"], ["4088 disclosed"]),
        ([{**START, "headline": "evidence", "support_bits": 14.2}, {**LAST, **EVIDENCE}],
         ["evidence for 4088 11.3 bits, about 400 in a million (10.5 to 12.1)",
          "in other words about 400 people in a city of a million match as well as 4088",
          "closed-set, of 50 5.4 of 5.6 bits, 84 % sure (1.0 to 5.5)",
          "Evidence is not proof", "recordings like the calibration's"], []),
        ([{**START, "watch": None, "headline": "evidence"}, {**LAST, "bits": 5.4, "among": BEST}],
         ["in a crowd in a city of a million: 1 in 400 that it is 4088, the best match"], []),
        ([{**START, "protected": {"method": "noise:10"}}, {**LAST, "protected": SIDE},
          {"type": "end", "disclosure_delay": [DELAY]}],
         ["through noise:10 0.9 bits (0.7 to 1.1), 1.2 fewer",
          "that is to the strongest attacker tried, who has enrolled protected speech",
          "2 bits 0:04 not by 1:39 at least 95 s"], []),
        ([{**START, "declared": DECLARED}, {**LAST, "declared": PROMISE}],
         ["usc:15 vacuous bound: 32,461 bits allowed",
          "that is 1,500 times epsilon 15 are 22,500 together, 22,500 by optimal"], []),
    ],
)  # fmt: skip
def test_what_a_run_is_summed_up_as(records, said, unsaid, capsys):
    print_summary(events(records))
    text = " ".join(capsys.readouterr().out.split())
    assert [words for words in said if words not in text] == [], text
    assert [words for words in unsaid if words in text] == [], text


def test_a_table_has_a_row_for_everybody_and_for_nobody():
    out = io.StringIO()
    row = {"person": "ann", "probability": 0.9, "purity": 1.0, "watch": None, "speech": 61.0,
           "first_alert_seconds": 12.0, "bits": 2.1, "bits_low": 1.9, "bits_high": 2.2,
           "headline": "closed-set", "at_least": False}  # fmt: skip
    silent = dict.fromkeys(row) | {"label": "\x1b[2Jeve", "speech": 0.0}
    end = {"type": "end", "people": [{**row, "label": "S0"}, silent], "overlap_seconds": 3.0}
    last = {**LAST, "label": "S0", "assumes_enrolled": True}
    print_people(events([last, end]), Console(file=out, width=100))
    text = out.getvalue()
    assert "\x1b" not in text
    for words in (
        "ann, 90 %", "too little to say", "3.0 s of overlapping speech excluded",
        "assumes that each speaker is enrolled",
    ):  # fmt: skip
        assert words in text


TELEPHONE = {
    "bandwidth_hz": 3600.0,
    "snr_db": 40.0,
    "reverberation_seconds": 0.15,
    "clipping": 0.0,
    "level_db": -25.0,
}


@pytest.mark.parametrize(
    "more", [{}, {"headline": "evidence", "among": [{"people": 1e6, "bits": -1.0}]}]
)
@pytest.mark.parametrize("bits", [-1.0, 2.0])
def test_sound_that_is_not_that_of_the_templates_is_said_beside_the_headline(more, bits):
    reading = {"type": "reading", "seconds": 20.0, "speech": 15.0, "bits": bits, "ceiling": 5.64}
    reading |= {"closed_set_bits": bits, **more}
    apart = {**reading, "conditions": TELEPHONE, "differs": ["bandwidth_hz"]}
    start = {**START, "ceiling": 5.64}
    assert CAVEAT in bits_now(event(apart))
    assert CAVEAT not in bits_now(event(reading))
    assert CAVEAT in heading(read_columns(events([start, apart])))
    assert CAVEAT not in heading(read_columns(events([start, reading])))
    assert {"differs", *TELEPHONE} <= set(COLUMNS)
    outcome = RecordingOutcome(**TELEPHONE, differs="bandwidth_hz")  # type: ignore[arg-type]
    assert outcome.bandwidth_hz == 3600
