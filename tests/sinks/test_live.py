"""The live view: what it says, that it fits, and what is left of it without colour or terminal."""

from __future__ import annotations

import re
from typing import Any

import pytest

from monitor.alerts import Forecast
from monitor.anonymisers.laplace import Declared
from monitor.events.declaration import to_json
from monitor.events.reading import DeclaredReading
from monitor.sinks.live import LiveView
from tests.records import event
from tests.sinks.test_terminal import Screen, reading

START = {"type": "start", "watch": "4088", "recordings": ["USB Microphone"]}
FEATURE = {"usable": 75.0, "rank": 2, "rank_bits": 3.21, "local_bits": 2.5, "gain_bits": 1.1}


class Ahead:
    """A forecast."""

    threshold_bits, field = 3.0, "bits"

    def __init__(self, left: float | None) -> None:
        self.seconds_left = left

    def update(self, record: Any) -> None:
        pass


def live(seconds: float, bits: float | None = 2.1, **changes: Any) -> dict[str, Any]:
    features = {"f0": FEATURE, "phones": {**FEATURE, "rank": 1}}
    guides = {"linear": 0.1 * seconds, "sqrt": 0.2 * seconds**0.5}
    more = {"bits_low": 1.8, "bits_high": 2.4, "expected_bits": 2.0, "plateau": 4.4, "lag": 0.12}
    return reading(seconds, bits, **{**more, "features": features, "guides": guides, **changes})


def shown(view: LiveView) -> list[str]:
    """The view as lines of text."""
    width, height = view.console.size
    console = Screen(True, width, height).console  # not the one that it is live on
    with console.capture() as captured:
        console.print(view._view())
    return re.sub(r"\x1b\[[0-9;]*m", "", captured.get()).rstrip("\n").split("\n")


def view_of(screen: Screen, *records: dict[str, Any], **options: Any) -> LiveView:
    view = LiveView(None, screen.console, clock=screen.clock, **options)
    for record in records:
        view.write(event(record))
    return view


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 20), (40, 12), (200, 50)])
def test_everything_is_on_the_screen(width, height):
    screen = Screen(True, width, height)
    readings = [live(float(t), min(0.5 + 0.1 * t, 5.0)) for t in range(1, 61)]
    view = view_of(screen, START, *readings, forecasts=[Ahead(31.0)])
    lines = shown(view)
    view.close()
    assert len(lines) <= height - 1
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert "1:00" in lines[0]
    assert "5.0 of 5.6 bits, 64 % sure" in text
    if width < 80:
        return
    for words in (
        "from USB Microphone", "lag 0.1 s", "(1.8 to 2.4)", "peak 2.3", "watching 4088",
        "threshold 3.0 bits", "3.0 bits in about 30 s", "of speech", "most probable", "4088 *",
        "rank alone   bits", "average voice, this length",
    ):  # fmt: skip
        assert words in text, words
    assert re.search(r"f0 +1:15 +2 +3\.2 +2\.5", text)
    assert re.search(r"phones +1:15 +1 +3\.2 +2\.5", text)
    assert {"━", "┄", "╌", "/", "\\"} <= set(text)
    (marks,) = [line for line in lines if "ceiling" in line]
    assert marks.strip() == "⣀ bits  ━ ceiling  ╌ plateau  ┄ threshold  / linear  \\ root"
    view = view_of(screen, START, *readings, live(61.0, -1.0))
    (marks,) = [line for line in shown(view) if "ceiling" in line]
    view.close()
    assert marks.strip() == "⣀ bits  ━ ceiling  ╌ plateau  / linear  \\ root  · chance"


def test_nobody_watched_and_nothing_heard_yet():
    screen = Screen(True)
    view = view_of(screen, {**START, "watch": None})
    assert "no figure yet" in "\n".join(shown(view))
    features = {"f0": {**FEATURE, "rank": None, "rank_bits": None, "local_bits": None}}
    view.write(event(live(1.0, None, features=features, withheld="too short")))
    text = "\n".join(shown(view))
    view.close()
    assert "withheld: too short" in text
    assert re.search(r"f0 +1:15 +1\.1", text)
    assert "no alert is set" in text


def test_rules_on_what_has_no_curve_are_shown_as_set():
    screen = Screen(True, 100)
    alerts = [{"rule": "protected.bits>3 for 5 s", "field": "protected.bits", "threshold": 3.0}]
    view = view_of(screen, {**START, "alerts": alerts}, live(1.0))
    text = "\n".join(shown(view))
    view.close()
    assert "no alert (protected.bits>3 for 5 s)" in text


def test_whom_it_is_most_like_beside_nobody_enrolled():
    """One sentence has both probabilities, on as many lines as it takes."""
    screen = Screen(True, 70)
    view = view_of(screen, START, live(9.0, enrolled=0.1, top=[["me", 0.97]]))
    text = " ".join(line.strip() for line in shown(view))
    view.close()
    assert "most like me (97 % if it is one of them), but it is probably nobody enrolled" in text
    assert "(10 % that it is one of them)" in text


def test_an_alert_a_gap_and_lateness_are_seen_without_colour():
    screen = Screen(True, environ={"NO_COLOR": "1"})
    alert = {"type": "alert", "seconds": 2.0, "rule": "bits>3 for 5 s", "state": "raised"}
    gap = {"type": "gap", "seconds": 2.0, "reason": "thinned", "detail": "f0 leaves out 4.0 s"}
    view = view_of(screen, START, live(2.0, lag=3.4), alert, gap, forecasts=[Ahead(0.0)])
    text = "\n".join(shown(view))
    view.close()
    for words in ("ALERT bits>3 for 5 s, since 0:02", "lag 3.4 s", "1 gap"):
        assert words in text
    assert "in about" not in text
    assert "at 0:02 f0 leaves out 4.0 s" in screen.text
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", screen.text)


def test_without_a_terminal_a_line_every_ten_seconds():
    screen = Screen(False)
    view = view_of(screen, START, forecasts=[Ahead(75.0)])
    for t in range(1, 32):
        screen.now = float(t)
        view.write(event(live(float(t), 0.1 * t)))
    view.say("USB Microphone is gone;\x1b[2J waiting")
    view.close()
    assert len(screen.lines) == 3 + 1 + 1
    assert screen.lines[0] == (
        "0:11 audio, 0:08 speech, 1.1 of 5.6 bits, 1 in 23, peak 2.3, 3.0 bits in about 1 min, "
        "lag 0.1 s"
    )
    assert "\x1b" not in screen.text


def test_evidence_that_begins_afresh_does_not_turn_the_axis_back():
    screen = Screen(True)
    view = view_of(screen, START, live(10.0), live(11.0, speech=0.5), live(12.0, speech=1.3))
    seconds = [point[0] for point in view._curve.points]
    view.close()
    assert seconds == sorted(seconds)
    assert seconds[-1] == pytest.approx(9.3)


def test_whether_anybody_enrolled_speaks_or_what_it_takes_to_know():
    screen = Screen(True)
    why = "f0 cannot tell impostors (0.52); it takes a speaker embedding (voice)"
    view = view_of(screen, START, live(9.0, enrolled=None, enrolled_withheld=why))
    lines = shown(view)
    assert " enrolled at all? not known: it takes a speaker embedding (voice)" in lines
    assert len(lines) <= 23
    view.write(event(live(10.0, enrolled=0.97)))
    assert " enrolled at all? 97 % likely" in shown(view)
    view.close()


CHANGE = {"type": "change", "seconds": 112.0, "since_seconds": 107.0, "features": ["f0"]}
OPEN = {"since_seconds": 107.0, "features": ["f0"]}


def test_after_another_voice_nothing_is_claimed_of_the_watched_speaker():
    screen = Screen(True)
    alert = {"type": "alert", "seconds": 9.0, "rule": "bits>2 for 5 s", "state": "raised"}
    view = view_of(screen, START, live(111.0), alert, forecasts=[Ahead(31.0)])
    assert "watching 4088" in shown(view)[1]
    view.write(event({**CHANGE, "action": "note"}))
    view.write(event(live(112.0, change=OPEN)))
    view.write(event({**alert, "seconds": 112.0, "state": "cleared", "change": OPEN}))
    lines = shown(view)
    assert lines[1].rstrip() == " 2.1 of 5.6 bits, another voice since 1:47  (1.8 to 2.4)  peak 2.3"
    assert "another voice since 1:47: these bits may not be 4088's" in lines[2]
    assert "alerts rest" in lines[2]
    view.write(
        event({**CHANGE, "seconds": 170.0, "since_seconds": 153.0, "action": "note", "back": True})
    )
    view.write(event(live(170.0)))
    assert "watching 4088" in shown(view)[1]
    view.close()
    assert "the first voice is back since 2:33: alerts go on" in screen.text
    assert "another voice since 1:47: alerts rest" in screen.text
    assert "alert over at 1:52: bits>2 for 5 s (another voice since 1:47)" in screen.text


def test_after_a_split_the_bits_are_of_the_newest_voice():
    screen = Screen(True)
    view = view_of(screen, START, live(112.0), {**CHANGE, "action": "split"})
    view.write(event(live(113.0, speech=0.7, stream=2)))
    view.write(event(live(114.0, speech=1.5, stream=2)))
    first = shown(view)[1]
    assert len(view._curve.breaks) == 1
    view.close()
    assert "voice since 1:47: 4088?" in first


def test_the_average_s_style_is_not_its_neighbour_s():
    screen = Screen(True)
    top = [["4088", 0.5], ["19", 0.2], ["84", 0.1], ["32", 0.05]]
    view = view_of(screen, START, live(9.0, top=top))
    with screen.console.capture() as captured:
        screen.console.print(view._view())
    view.close()
    (row,) = [line for line in captured.get().split("\n") if "average voice" in line]
    assert re.search(r"\x1b\[2m average voice[^\x1b]*\x1b\[0m +84", row), row


CROWDS = [
    {"people": 50, "bits": 5.6, "bits_low": 5.6, "bits_high": 5.6},
    {"people": 10**6, "bits": 11.3, "bits_low": 10.5, "bits_high": 12.1},
]
EVIDENCE = {
    "bits": 11.3, "bits_low": 10.5, "bits_high": 12.1, "peak_bits": 11.5, "headline": "evidence",
    "closed_set_bits": 5.4, "closed_set_bits_low": 1.0, "closed_set_bits_high": 5.5,
    "support_bits": 14.2, "at_least": False, "among": CROWDS,
}  # fmt: skip
TOLD = {**START, "headline": "evidence", "speakers": 50, "support_bits": 14.2, "among": [50, 10**6]}


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 20), (40, 12), (120, 40)])
def test_evidence_comes_first_and_the_enrolled_second(width, height):
    screen = Screen(True, width, height)
    made = [{**live(float(t)), **EVIDENCE, "bits": 0.2 * t} for t in range(1, 56)]
    view = view_of(screen, TOLD, *made, {**live(57.0), **EVIDENCE}, forecasts=[Ahead(31.0)])
    lines = shown(view)
    view.close()
    assert len(lines) <= height - 1
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert "11.3 bits, about 400 in a million" in text
    if width < 80:
        return
    for words in (
        "(10.5 to 12.1)", "about 400 people in a city of a million match",
        "peak 11.5", "closed-set, among the 50 enrolled: 5.4 of 5.6 bits, 84 % sure", "14.2 ",
        "village", "right: one match per town", "watching 4088",
    ):  # fmt: skip
        assert words in text, words
    assert "/" not in text.split("rank alone")[0].split("million")[1].replace("x/", "")  # no guides
    assert "━━━" not in text  # evidence knows no ceiling
    town = next(i for i, line in enumerate(lines) if line.rstrip().endswith("village"))
    assert any(re.search("[⠁-⣿]", line) for line in lines[:town])


@pytest.mark.parametrize("width", [80, 40])
def test_what_the_evidence_means_is_whole_where_a_line_is_too_short_for_it(width):
    screen = Screen(True, width, 30)
    crowd = {"people": 10**6, "bits": 8.6, "bits_low": 7.7, "bits_high": 9.9}
    wide = {**EVIDENCE, "bits": 8.6, "bits_low": 7.7, "bits_high": 9.9, "among": [crowd]}
    view = view_of(screen, TOLD, {**live(57.0), **wide})
    lines = shown(view)
    view.close()
    assert all(len(line) <= width for line in lines)
    text = " ".join(" ".join(lines).split())
    assert "between a thousand and 5,000 people" in text


def test_no_alert_does_not_comfort_where_none_can_come():
    view = view_of(Screen(True), TOLD, {**live(9.0), **EVIDENCE}, forecasts=[Forecast(15.0)])
    text = "\n".join(shown(view))
    view.close()
    assert "no alert (threshold 15.0 bits)   15.0 can never be reached" in text
    view = view_of(Screen(True), TOLD, {**live(9.0), **EVIDENCE}, forecasts=[Forecast(14.0)])
    text = "\n".join(shown(view))
    view.close()
    assert "never" not in text


def test_evidence_claims_nothing_after_another_voice_and_says_at_least():
    screen = Screen(True)
    limits = {"bits_low": 13.9, "bits_high": 14.2, "peak_bits": 14.2}
    clipped = {**EVIDENCE, "bits": 14.2, "at_least": True, **limits}
    view = view_of(screen, TOLD, {**live(9.0), **clipped, "bits_low": 14.2})
    assert shown(view)[1].rstrip() == (
        " at least 14.2 bits, at most 400 in a million  watching 4088"
    )
    view.write(event({**live(10.0), **clipped}))
    assert "(13.9 or more)" in shown(view)[1]  # what was cut has no upper limit
    view.write(event({**CHANGE, "action": "note"}))
    view.write(event({**live(112.0, change=OPEN), **clipped}))
    text = "\n".join(shown(view))
    view.close()
    assert "at least 14.2 bits, another voice since 1:47" in text
    assert "match as well" not in text


def test_nobody_watched_hears_of_the_best_match_in_the_crowd():
    screen = Screen(True)
    crowds = [{"people": 10**6, "bits": 0.0, "favourite": ["4088", 0.0025]}]
    start = {**TOLD, "watch": None, "headline": "closed-set"}
    view = view_of(screen, start, live(9.0, 5.4, among=crowds))
    lines = shown(view)
    view.close()
    assert lines[1].startswith(" 5.4 of 5.6 bits")
    assert lines[2].startswith(" in a city of a million: 1 in 400 that it is 4088, the best match")


def test_a_line_without_a_terminal_has_both():
    screen = Screen(False)
    view = view_of(screen, TOLD)
    for t in range(1, 13):
        screen.now = float(t)
        view.write(event({**live(float(t)), **EVIDENCE}))
    view.close()
    assert screen.lines[0] == (
        "0:11 audio, 0:08 speech, 11.3 bits, about 400 in a million, peak 11.5, closed-set, "
        "among the 50 enrolled: 5.4 of 5.6 bits, 84 % sure, lag 0.1 s"
    )


PROTECTED = {"protected": {"method": "mcadams:0.8"}}


def both(seconds: float, clear: float, safe: float) -> dict[str, Any]:
    tried: dict[str, Any] = {"ignorant": {}, "lazy-informed": {}}
    side = {"bits": safe, "bits_low": safe - 0.3, "bits_high": safe + 0.3, "by": "lazy-informed"}
    return live(seconds, clear, protected={**side, "attackers": tried})


def test_both_sides_stand_on_the_screen_with_whom_and_what_was_disclosure_delay():
    screen = Screen(True, 80, 24)
    view = view_of(screen, {**START, **PROTECTED})
    for second in range(1, 41):
        view.write(event(both(float(second), 0.1 * second, 0.05 * second)))
    crossing = {"type": "crossing", "bits": 1.0, "delay_seconds": None}
    view.write(event({**crossing, "side": "clear", "since_seconds": 10.0}))
    view.write(event({**crossing, "bits": 2.0, "side": "clear", "since_seconds": 20.0}))
    view.write(
        event({**crossing, "side": "protected", "since_seconds": 20.0, "delay_seconds": 10.0})
    )
    lines = shown(view)
    view.close()
    assert len(lines) <= 23
    text = "\n".join(lines)
    for words in (
        "protected 2.0 bits, 2.0 fewer  (1.7 to 2.3)  through mcadams:0.8",
        "to the strongest attacker tried, who has enrolled protected speech",
        "delay: 1 bit 10 s, 2 bits not yet out",
        "o protected",
    ):
        assert words in text, words
    plotted = [line for line in lines if "oo" in line]
    assert plotted
    assert "\\ root" not in text
    told = re.sub(r"\s+", " ", screen.text)
    assert "1 bit was reached through the anonymiser at 0:20: 10 s later" in told


def test_a_line_for_a_file_says_whose_protected_bits_it_tells():
    screen = Screen(False, 80, 24)
    view = view_of(screen, {**START, **PROTECTED}, both(20.0, 4.0, 2.0))
    assert "protected 2.0 bits, 2.0 fewer, to the strongest attacker tried" in view._line()
    view.close()


def test_an_attacker_who_does_not_know_the_anonymiser_measures_no_protection():
    screen = Screen(True, 80, 24)
    side = {"bits": -14.7, "bits_low": -15.0, "bits_high": -14.0, "by": "ignorant"}
    known = live(20.0, 4.0, protected={**side, "attackers": {"ignorant": {}}})
    view = view_of(screen, {**START, **PROTECTED}, known)
    text, line = "\n".join(shown(view)), view._line()
    view.close()
    for words in (text, line):
        assert "to an attacker who does not know the anonymiser: no measure of protection" in words
        assert "fewer" not in words


def test_disclosure_delay_from_an_attacker_who_does_not_know_the_anonymiser_say_so():
    screen = Screen(False, 80, 24)
    side = {"bits": 1.0, "bits_low": 0.5, "bits_high": 1.5, "by": "ignorant"}
    known = live(20.0, 4.0, protected={**side, "attackers": {"ignorant": {}}})
    view = view_of(screen, {**START, **PROTECTED}, known)
    crossing = {"type": "crossing", "bits": 1.0, "side": "protected", "since_seconds": 19.0}
    view.write(event({**crossing, "delay_seconds": 9.0}))
    view.close()
    assert any("9 s later, from an attacker who does not know" in line for line in screen.lines)


def promised(epsilon: float, windows: int) -> dict[str, Any]:
    return {
        "declared": to_json(DeclaredReading.of(Declared("usc:1", epsilon, 0.04).after(windows)))
    }


def test_what_is_promised_stands_beside_what_is_measured():
    screen = Screen(True, 80, 24)
    view = view_of(screen, {**START, **PROTECTED}, {**both(20.0, 4.0, 2.0), **promised(0.01, 500)})
    kept = "\n".join(shown(view))
    view.write(event({**both(21.0, 4.0, 2.0), **promised(1.0, 525)}))
    lines = shown(view)
    view.close()
    assert "promised: no attacker has more than 7.2 bits" in kept
    assert "vacuous bound: 757 bits allowed; 33 identify anyone alive" in "\n".join(lines)
    assert len(lines) <= 23
    screen = Screen(False, 80, 24)
    view = view_of(screen, START, {**live(20.0, 4.0), **promised(0.01, 500)})
    assert "promised: no attacker has more than 7.2 bits" in view._line()
    view.close()
