"""What is said when a run is over, and that no figure of it reads as comforting."""

import io
import math
import re
from typing import Any

import pytest
from rich.console import Console

from monitor.anonymisers.laplace import DeclaredGuarantee
from monitor.events.declaration import to_json
from monitor.events.phrases import bits_now
from monitor.events.reading import DeclaredReading, Reading
from monitor.events.run import RunStart
from monitor.phrases import CAVEAT
from monitor.plots.columns import read_columns
from monitor.plots.wording import heading
from monitor.run import Measurement
from monitor.run.each import COLUMNS, RecordingOutcome
from monitor.serve.downloads import run_report
from monitor.sinks.live import LiveView
from monitor.sinks.summary import print_people, print_summary, summary_rows
from monitor.web.hub import words_of
from tests.records import event, events

START = {"type": "start", "watch": "4088", "speakers": 50}
LAST: dict[str, Any] = {
    "type": "reading", "seconds": 99.0, "speech": 90.0, "bits": 2.1, "peak_bits": 2.3,
    "ceiling": math.log2(50), "expected_bits": 2.0, "features": {"f0": {"usable": 9.0, "rank": 2}},
    "assumes_enrolled": False, "beyond_grid": False, "enrolled": 0.97, "top": [], "differs": [],
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
PROMISE = to_json(
    DeclaredReading.from_guarantee(DeclaredGuarantee("usc:15", 15.0, 0.04).compose(1500))
)
VOICES = {"f0": {"usable": 9.0, "rank": 2.0}, "style": {"usable": 9.0, "rank": 2.0}}


@pytest.mark.parametrize(
    ("records", "said", "unsaid"),
    [
        ([START, LAST], ["4088 disclosed"], ["promise", "not the reader"]),
        ([START, {**LAST, "features": VOICES}], ["in read text is its author"], []),
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
         ["usc:15 vacuous bound, since it allows 32,461 bits",
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
        "ann, 90 %", "too little speech", "3.0 s of overlapping speech excluded",
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


def headlines(records: list[dict[str, Any]]) -> dict[str, str]:
    """What each view shows first of a run of one voice."""
    run = events(records)
    start, last = run[0], run[-1]
    assert isinstance(start, RunStart)
    assert isinstance(last, Reading)
    out = io.StringIO()
    view = LiveView(console=Console(file=out, width=100))
    for each in run:
        view.write(each)
    return {
        "line": bits_now(last),
        "live": view._shown_first(99).plain,
        "picture": heading(read_columns(run)),
        "report": run_report(run).partition("</header>")[0].partition("</h1>")[2],
        "page": str(words_of(last, start)["verdict"]),
        "summary": summary_rows(run)[0][1],
        "python": str(Measurement.from_events(run, [])),
    }


@pytest.mark.parametrize("enrolled", [0.02, 0.5])
def test_no_headline_assumes_an_enrolled_speaker_where_probably_none_speaks(enrolled):
    start = {**START, "watch": None, "ceiling": math.log2(50), "recordings": ["talk.wav"]}
    reading = {**LAST, "bits": 5.6, "assumes_enrolled": True, "top": [["4088", 0.9]]}
    shown = headlines([start, {**reading, "enrolled": enrolled}])
    said = {name: "none of the 50" in text for name, text in shown.items()}
    assert set(said.values()) == {enrolled < 0.2}, shown
    assumed = [
        text for text in shown.values() if re.search(r"narrowed|hardly doubts|left|5\.6", text)
    ]
    assert bool(assumed) == (enrolled >= 0.2), shown


def test_evidence_for_the_watched_speaker_is_the_headline_whoever_else_is_enrolled():
    start = {**START, "headline": "evidence", "recordings": ["talk.wav"]}
    shown = headlines([start, {**LAST, **EVIDENCE, "enrolled": 0.02}])
    assert not [name for name, text in shown.items() if "none of the" in text and name != "page"]


@pytest.mark.parametrize(
    ("field", "over", "said"),
    [("bits", 40.0, "0:39"), ("bits", 1.0, "unchanged"), ("f0.rank_bits", 40.0, "unchanged")],
)
def test_the_end_of_a_run_with_an_alert_says_what_to_do(field, over, said, capsys):
    readings = [
        {**LAST, "seconds": s, "bits": 7.0 if s >= over else 1.0} for s in (1.0, 20.0, 40.0)
    ]
    alert = {"type": "alert", "seconds": 45.0, "rule": f"{field}>6", "field": field,
             "threshold": 6.0, "state": "raised", "value": 7.0}  # fmt: skip
    start = {**START, "step_seconds": 1.0}
    print_summary(events([start, *readings, alert]))
    (advice,) = (line for line in capsys.readouterr().out.splitlines() if "hare " in line)
    assert said in advice
    print_summary(events([start, *readings]))
    assert "hare " not in capsys.readouterr().out


def test_a_live_view_says_once_what_to_do_after_an_alert():
    alert = {"type": "alert", "seconds": 45.0, "rule": "bits>6", "field": "bits",
             "threshold": 6.0, "state": "raised", "value": 7.0}  # fmt: skip
    out = io.StringIO()
    view = LiveView(console=Console(file=out, width=200))
    for each in events([START, LAST, alert, {**alert, "state": "cleared"}, alert]):
        view.write(each)
    lines = out.getvalue().splitlines()
    assert [("bits>6" in line, "Stop" in line) for line in lines[:2]] == [
        (True, False),
        (False, True),
    ]
    assert sum("Stop" in line for line in lines) == 1
