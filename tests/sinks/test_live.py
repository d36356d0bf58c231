"""The views on a terminal: what they say, that they fit, and what is left of them without one."""

import io
import math
import re
from dataclasses import dataclass
from typing import Any

import pytest
from rich.console import Console

from monitor.alerts import Forecast
from monitor.anonymisers.laplace import DeclaredGuarantee
from monitor.events.declaration import to_json
from monitor.events.reading import DeclaredReading
from monitor.protocols import MUTED, Sink
from monitor.sinks.live import LiveView
from monitor.sinks.progress import MOST_SHOWN, PeopleProgress, ReplayProgress
from monitor.sinks.terminal import TerminalSink
from tests.records import event

VIEWS = pytest.mark.parametrize("view", [ReplayProgress, LiveView])
SIZES = pytest.mark.parametrize(
    ("width", "height"), [(80, 24), (200, 60), (60, 20), (60, 16), (40, 12), (30, 8)]
)
START = {"type": "start", "watch": "4088", "recordings": ["USB Microphone"]}
ALERT = {
    "type": "alert", "seconds": 20.0, "rule": "bits>3 for 5 s", "field": "bits", "threshold": 3.0,
    "state": "raised", "value": 3.4,
}  # fmt: skip
GAP = {"type": "gap", "seconds": 12.0, "reason": "not finite", "lost_seconds": None}
CHANGE = {"type": "change", "seconds": 112.0, "since_seconds": 107.0, "features": ["f0"]}
OPEN = {"since_seconds": 107.0, "features": ["f0"]}
FEATURE = {"usable": 75.0, "rank": 2, "rank_bits": 3.21, "local_bits": 2.5, "gain_bits": 1.1}
TOP = [["4088", 0.31], ["19", 0.12], ["121", 0.1], ["84", 0.05], ["1089", 0.02]]
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
CLIPPED = {**EVIDENCE, "bits": 14.2, "at_least": True, "bits_high": 14.2, "peak_bits": 14.2}
PROTECTED = {**START, "protected": {"method": "mcadams:0.8"}}


def reading(seconds: float, bits: float | None = 2.1, **changes: Any) -> dict[str, Any]:
    record = {
        "type": "reading", "seconds": seconds, "speech": 0.8 * seconds, "bits": bits,
        "bits_low": 1.8, "bits_high": 2.4, "peak_bits": 2.3, "expected_bits": 2.0, "plateau": 4.4,
        "ceiling": math.log2(50), "lag": 0.12, "top": TOP,
        "features": {"f0": FEATURE, "phones": {**FEATURE, "rank": 1}},
        "guides": {"linear": 0.1 * seconds, "sqrt": 0.2 * seconds**0.5},
    }  # fmt: skip
    return {**record, **changes}


def both(seconds: float, safe: float, by: str = "lazy-informed", **more: Any) -> dict[str, Any]:
    """Through an anonymiser as well: what the strongest attacker has."""
    tried: dict[str, Any] = {"ignorant": {}} | ({by: {}} if by != "ignorant" else {})
    side = {"bits": safe, "bits_low": safe - 0.3, "bits_high": safe + 0.3, "by": by}
    return reading(seconds, 2 * safe, protected={**side, "attackers": tried}, **more)


def promised(epsilon: float, windows: int) -> dict[str, Any]:
    return to_json(
        DeclaredReading.from_guarantee(DeclaredGuarantee("usc:1", epsilon, 0.04).compose(windows))
    )


@dataclass
class MutedRelay:
    """What a relay shows while nothing is sent."""

    muted: bool
    budget_bits: float | None
    held_bits: float
    way, left_bits, sent_bits, kept_bits = MUTED, 0.0, 5.0, 1.5


class Ahead:
    """A forecast."""

    threshold_bits, field = 3.0, "bits"

    def __init__(self, left: float | None) -> None:
        self.seconds_left = left

    def update(self, record: Any) -> None:
        pass


class Screen:
    """A console and a clock that tests turn by hand."""

    def __init__(self, terminal: bool, width: int = 80, height: int = 24, **options: Any) -> None:
        self.file = io.TextIOWrapper(io.BytesIO(), encoding=options.pop("encoding", "utf-8"))
        self.console = Console(
            file=self.file,
            force_terminal=terminal,
            width=width,
            height=height,
            legacy_windows=False,
            _environ={"TERM": "xterm-256color", **options.pop("environ", {})},
            **options,
        )
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    @property
    def text(self) -> str:
        self.file.flush()
        self.file.seek(0)
        return self.file.read()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def shown(sink: TerminalSink, **options: Any) -> list[str]:
    """The view as it stands, as lines of text on a console that no live view holds."""
    width, height = sink.console.size
    screen = Screen(True, width, height, **{"color_system": None, **options})
    screen.console.print(sink._view(), end="")
    return screen.lines


def view_of(screen: Screen, *records: dict[str, Any], **options: Any) -> LiveView:
    view = LiveView(None, screen.console, clock=screen.clock, **options)
    for record in records:
        view.write(event(record))
    return view


def seen(*records: dict[str, Any], width: int = 80, **options: Any) -> str:
    """The text of a live view after these."""
    view = view_of(Screen(True, width), *records, **options)
    lines = shown(view)
    view.close()
    assert len(lines) <= 23
    return " ".join("\n".join(lines).split())


@VIEWS
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("total", [None, 0.0, 60.0])
def test_nulls_and_odd_orders_never_crash_and_no_text_steers(view, terminal, total):
    screen = Screen(terminal)
    sink = view(total, screen.console, clock=screen.clock)
    assert isinstance(sink, Sink)
    top = [["a\x1b[31m", None], ["[bold]", 2.0], ["b", math.nan]]
    for record in (
        {"type": "end", "complete": True},
        {"type": "reading", "seconds": 1.0, "speech": None, "bits": None, "top": None},
        GAP,
        {"type": "start"},
        {"type": "reading"},
        reading(2.0, math.nan),
        reading(3.0, None, withheld="template_mismatch"),
        {"type": "alert", "state": "cleared"},
        {**ALERT, "value": None, "threshold": None, "seconds": None},
        reading(9.0, -7.0, speech=0.0, top=top),
        reading(10.0, 5.6, ceiling=0.0),
        {"type": "notice", "seconds": 9.0, "text": "[b]odd \x1b[2J\n:smile: caf\u00e9"},
    ):
        screen.now += 11
        sink.write(event(record))
    sink.close()
    sink.close()
    assert "\x1b[31m\x1b" not in screen.text
    assert "a\x1b[31m" not in screen.text
    if not terminal:
        assert "[b]odd ?[2J" in screen.text
        assert ":smile: caf\u00e9\n" in screen.text
        assert not any(ord(character) < 32 for character in screen.text.replace("\n", ""))


@VIEWS
def test_no_live_view_where_it_cannot_be_drawn_and_none_on_stdout(view, capsys):
    for options in ({"encoding": "ascii"}, {"environ": {"TERM": "dumb"}}):
        screen = Screen(True, **options)
        sink = view(10.0, screen.console, clock=screen.clock)
        for second in range(12):
            sink.write(event(reading(second)))
        sink.close()
        assert "\x1b[?25l" not in screen.text
        assert screen.text.isascii()
    sink = view(10.0)
    sink.write(event(reading(1.0)))
    sink.close()
    assert capsys.readouterr().out == ""


CLOSED = (
    "1:00", "5.0 of 5.6 bits, 64 % sure", "from USB Microphone", "lag 0.1 s", "(1.8 to 2.4)",
    "peak 2.3", "watching 4088", "3.0 bits in about 30 s", "of speech", "4088 *", " 31% ",
    "ALERT bits>3 for 5 s, since 0:20",
    "1 in 6", "⣀ bits  ━ maximum  ┄ threshold  right: the attacker's odds",
)  # fmt: skip
OPENED = (
    "11.3 bits, about 400 in a million", "about 400 people in a city of a million match",
    "(10.5 to 12.1)", "peak 11.5", "closed-set, among the 50 enrolled: 5.4 of 5.6 bits, 84 %",
    "14.2 ", "1 in 1,000", "1 in 19,000", "right: people who match", "watching 4088",
    "3.0 bits in about 30 s",
)  # fmt: skip
RISING = [reading(float(t), min(0.5 + 0.1 * t, 5.0)) for t in range(1, 61)]
GROWING = [{**reading(float(t)), **EVIDENCE, "bits": 0.2 * t} for t in range(1, 56)]


@pytest.mark.slow
@SIZES
@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([START, *RISING, ALERT, GAP], CLOSED),
        ([TOLD, *GROWING, {**reading(57.0), **EVIDENCE}], OPENED),
    ],
    ids=["closed-set", "evidence"],
)
def test_everything_is_on_the_screen(records, said, width, height):
    view = view_of(Screen(True, width, height), *records, forecasts=[Ahead(31.0)])
    lines = shown(view)
    view.close()
    assert len(lines) <= height - 1
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    if width < 80:
        return
    assert [words for words in said if words not in text] == []
    assert re.search(r"f0 +1:15 +2 +3\.2 +2\.5", text)
    assert re.search(r"phones +1:15 +1 +3\.2 +2\.5", text)
    if said is CLOSED:
        assert {"━", "┄"} <= set(text.replace(CLOSED[-1], ""))
        assert "· chance" in seen(*records, reading(61.0, -1.0))
    else:
        top = next(i for i, line in enumerate(lines) if "━━━" in line)  # what is supported
        assert lines[top].lstrip().startswith("14.2 ")
        thousand = next(i for i, line in enumerate(lines) if line.rstrip().endswith("1 in 1,000"))
        assert any(re.search("[⠁-⣿]", line) for line in lines[top:thousand])


MUTE = {"f0": {**FEATURE, "rank": None, "rank_bits": None, "local_bits": None}}
WHY = "f0 cannot tell impostors (0.52); a speaker embedding (voice) is needed"
WIDE = {"people": 10**6, "bits": 8.6, "bits_low": 7.7, "bits_high": 9.9}
BEST = [{"people": 10**6, "bits": 0.0, "favourite": ["4088", 0.0025]}]
PROMISE = promised(0.01, 500)
SIDE = "to an attacker who does not know the anonymiser: no measure of protection"
RULE = {"rule": "protected.bits>3 for 5 s", "field": "protected.bits", "threshold": 3.0}


@pytest.mark.parametrize(
    ("records", "said", "unsaid"),
    [
        ([{**START, "watch": None}], ["no figure yet", "no alert is set"], []),
        ([START, reading(1.0, None, features=MUTE, withheld="too short")],
         ["withheld: too short", "f0 1:15"], []),
        ([{**START, "alerts": [RULE]}, reading(1.0)], ["no alert (protected.bits>3 for 5 s)"], []),
        ([START, reading(9.0, enrolled=0.1, top=[["me", 0.97]])],
         ["10 % likely to be one of the", "me is most similar (97 % if it is one of them)"], []),
        ([START, reading(9.0, enrolled=None, enrolled_withheld=WHY)],
         ["enrolled at all? not known: a speaker embedding (voice) is needed"], []),
        ([START, reading(9.0, enrolled=0.97)], ["enrolled at all? 97 % likely"], []),
        ([START, ALERT, {**ALERT, "state": "cleared"}], ["no alert"], ["ALERT"]),
        ([START, reading(9.0, features={"f0": FEATURE})], [], ["identifies its author"]),
        ([START, reading(9.0, features={"f0": FEATURE, "style": FEATURE})],
         ["identifies its author, not the reader"], []),
        # what was cut at the support has no upper limit
        ([TOLD, {**reading(9.0), **CLIPPED, "bits_low": 14.2}],
         ["at least 14.2 bits, at most 400 in a million watching 4088"], ["to 14.2"]),
        ([TOLD, {**reading(9.0), **CLIPPED, "bits_low": 13.9}], ["(13.9 or more)"], ["to 14.2"]),
        ([TOLD, {**reading(9.0), **EVIDENCE, "bits": 8.6, "among": [WIDE]}],
         ["between 1,000 and 5,000 people"], []),
        ([{**TOLD, "watch": None, "headline": "closed-set"}, reading(9.0, 5.4, among=BEST)],
         ["5.4 of 5.6 bits", "in a city of a million: 1 in 400 that it is 4088, the best match"],
         []),
        # after another voice nothing is claimed of the watched speaker
        ([START, reading(111.0), {**CHANGE, "action": "note"}, reading(112.0, change=OPEN)],
         ["2.1 of 5.6 bits, another voice since 1:47 (1.8 to 2.4)",
          "these bits may not be 4088's"], ["watching 4088"]),
        ([START, {**CHANGE, "action": "note"},
          {**CHANGE, "since_seconds": 153.0, "action": "note", "back": True}, reading(170.0)],
         ["watching 4088"], ["another voice"]),
        ([START, reading(112.0), {**CHANGE, "action": "split"}, reading(113.0, speech=0.7)],
         ["voice since 1:47: 4088?"], ["watching 4088"]),
        ([TOLD, {**CHANGE, "action": "note"}, {**reading(112.0, change=OPEN), **CLIPPED}],
         ["at least 14.2 bits, another voice since 1:47"], ["match as well"]),
        # an attacker who does not know the anonymiser measures no protection
        ([PROTECTED, both(20.0, -14.7, "ignorant")], [SIDE], ["fewer"]),
        ([PROTECTED, both(20.0, 2.0, declared=PROMISE)],
         ["guaranteed: no attacker has more than 7.2 bits"], []),
        ([PROTECTED, both(21.0, 2.0, declared=promised(1.0, 525))],
         ["vacuous bound, since it allows 757 bits"], []),
    ],
)  # fmt: skip
def test_what_it_says_and_what_it_does_not(records, said, unsaid):
    text = seen(*records)
    assert [words for words in said if words not in text] == [], text
    assert [words for words in unsaid if words in text] == [], text


@pytest.mark.parametrize(("threshold", "told"), [(15.0, True), (14.0, False)])
def test_no_alert_does_not_comfort_where_none_can_come(threshold, told):
    text = seen(TOLD, {**reading(9.0), **EVIDENCE}, forecasts=[Forecast(threshold)])
    assert f"no alert (threshold {threshold} bits)" in text
    assert ("15.0 can never be reached" in text) == told


def test_an_alert_a_gap_and_lateness_are_seen_without_colour():
    screen = Screen(True, environ={"NO_COLOR": "1"})
    gap = {"type": "gap", "seconds": 2.0, "reason": "thinned", "detail": "f0 skips 4.0 s"}
    view = view_of(screen, START, reading(2.0, lag=3.4), ALERT, gap, forecasts=[Ahead(0.0)])
    text = "\n".join(shown(view, environ={"NO_COLOR": "1"}))
    view.close()
    for words in ("ALERT bits>3 for 5 s, since 0:20", "lag 3.4 s", "1 gap"):
        assert words in text
    assert "in about" not in text
    assert "at 0:02 f0 skips 4.0 s" in screen.text
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", screen.text + text)


def test_an_alert_that_another_voice_ends_says_so():
    screen = Screen(True)
    over = {**ALERT, "seconds": 112.0, "state": "cleared", "change": OPEN}
    changes = [{**CHANGE, "action": "note"}, over]
    changes.append({**CHANGE, "since_seconds": 153.0, "action": "note", "back": True})
    view_of(screen, START, reading(111.0), ALERT, *changes).close()
    for words in (
        "another voice since 1:47: alerts are paused",
        "the first voice is back since 2:33: alerts continue",
        "alert over at 1:52: bits>3 for 5 s (another voice since 1:47)",
    ):  # fmt: skip
        assert words in screen.text


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([START, reading(11.0, 1.1)],
         "0:11 audio, 0:08 speech, 1.1 of 5.6 bits, 1 in 23, peak 2.3, 3.0 bits in about 1 min, "
         "lag 0.1 s"),
        ([TOLD, {**reading(11.0), **EVIDENCE}],
         "0:11 audio, 0:08 speech, 11.3 bits, about 400 in a million, peak 11.5, closed-set, "
         "among the 50 enrolled: 5.4 of 5.6 bits, 84 % sure, 3.0 bits in about 1 min, lag 0.1 s"),
        ([START, reading(11.0, declared=PROMISE)],
         "guaranteed: no attacker has more than 7.2 bits"),
        ([PROTECTED, both(11.0, -14.7, "ignorant")], SIDE),
    ],
)  # fmt: skip
def test_a_line_without_a_terminal(records, said):
    screen = Screen(False)
    view = view_of(screen, records[0], forecasts=[Ahead(75.0)])
    for screen.now in (1.0, 11.0):
        view.write(event(records[1]))
    view.say("USB Microphone is gone;\x1b[2J waiting")
    view.close()
    assert said in screen.lines[0]
    assert "\x1b" not in screen.text


@pytest.mark.parametrize(
    ("muted", "budget", "held", "said"),
    [
        (True, 8.0, 0.0, "muted: sent 5.0 of 8 bits"),  # by a person, an alert, or without delay
        (True, 8.0, 7.2, "muted: sent 5.0 of 8 bits"),  # by a person, after a way was spent
        (False, 8.0, 7.2, "muted: the next words could exceed your 8 bits"),
        (True, None, 0.0, "muted"),
    ],
)
def test_a_muted_relay_says_so(muted, budget, held, said):
    assert said in seen(START, reading(10.0), relay=MutedRelay(muted, budget, held))


def test_those_with_most_bits_have_a_line_and_the_line_is_of_whom_says_most():
    screen = Screen(True)
    progress = PeopleProgress(60.0, screen.console, clock=screen.clock)
    for k in range(MOST_SHOWN + 2):
        progress.write(event(reading(5.0, 0.1 * k, label=f"person {k}")))
    progress.write(event({**ALERT, "seconds": 5.0, "label": "person 4"}))
    text = "\n".join(shown(progress))
    progress.close()
    assert "person 1 " not in text
    assert text.index("person 2") < text.index("person 9")
    assert "and 2 more with less" in text
    assert "10 people" in text
    assert "person 4: alert at 0:05" in screen.text
    screen = Screen(False)
    progress = PeopleProgress(None, screen.console)
    for label, bits, watch in (("S0", 1.0, "ann"), ("S0", 2.5, "bob"), ("S1", None, "ann")):
        progress.write(event(reading(5.0, bits, label=label, watch=watch)))
    progress.close()
    assert "2 people, most: S0, 2.5 of 5.6 bits" in screen.text
