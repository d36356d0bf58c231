from __future__ import annotations

import io
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from monitor.alerts.rules import Forecast
from monitor.anonymisers.laplace import Declared
from monitor.events.declaration import to_json
from monitor.events.reading import DeclaredReading
from monitor.protocols import Sink
from monitor.sinks.live import LiveView, ReplayProgress
from monitor.sinks.summary import print_summary
from monitor.sinks.terminal import (
    CEILING,
    THRESHOLD,
    TerminalSink,
    TextCurve,
    draw_curve,
    row_of,
)
from tests.records import event, events

CLEAR = "\x1b[2K"  # rich erases each line of the old view before it draws the next


class Screen:
    """A console of 80 x 24 and a clock that tests turn by hand."""

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


def reading(seconds: float, bits: float | None = 2.1, **changes: Any) -> dict[str, Any]:
    record = {
        "type": "reading",
        "seconds": seconds,
        "speech": 0.8 * seconds,
        "bits": bits,
        "peak_bits": 2.3,
        "ceiling": math.log2(50),
        "top": [["4088", 0.31], ["19", 0.12], ["121", 0.1], ["84", 0.05], ["1089", 0.02]],
    }
    return {**record, **changes}


START = {"type": "start", "watch": "4088"}
ALERT = {
    "type": "alert",
    "seconds": 20.0,
    "rule": "bits>3 for 5 s",
    "field": "bits",
    "threshold": 3.0,
    "state": "raised",
    "value": 3.4,
}
GAP = {"type": "gap", "seconds": 12.0, "reason": "not finite", "lost_seconds": None}
END = {"type": "end", "complete": True}


def rendered(sink: TerminalSink, **options: Any) -> list[str]:
    """The view as it stands, on a console that no live view holds."""
    width, height = sink.console.size
    fresh = Screen(True, width, height, **options)
    fresh.console.print(sink._view(), end="")
    return fresh.lines


@pytest.mark.parametrize("view", [ReplayProgress, LiveView])
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("total", [None, 0.0, 60.0])
def test_nulls_and_odd_orders_never_crash(
    view: type[ReplayProgress | LiveView], terminal: bool, total: float | None
) -> None:
    screen = Screen(terminal)
    sink = view(total, screen.console, clock=screen.clock)
    assert isinstance(sink, Sink)
    nothing = {"type": "reading", "seconds": 1.0, "speech": None, "bits": None, "top": None}
    odd = reading(
        9.0, -7.0, speech=0.0, top=[["a\x1b[31m", None], ["[bold]", 2.0], ["b", math.nan]]
    )
    for record in (
        END,
        nothing,
        GAP,
        {"type": "start"},
        {"type": "reading"},
        reading(2.0, math.nan),
        reading(3.0, None, withheld="template_mismatch"),
        {"type": "alert", "state": "cleared"},
        {**ALERT, "value": None, "threshold": None, "seconds": None},
        odd,
        reading(10.0, 5.6, ceiling=0.0),
    ):
        screen.now += 11
        sink.write(event(record))
    sink.close()
    sink.close()
    assert "\x1b[31m\x1b" not in screen.text
    assert "a\x1b[31m" not in screen.text


@pytest.mark.parametrize("view", [ReplayProgress, LiveView])
def test_without_a_terminal_a_line_every_ten_wall_seconds_that_says_something_new(
    view: type[ReplayProgress | LiveView],
) -> None:
    screen = Screen(False)
    sink = view(6000.0, screen.console, clock=screen.clock)
    sink.write(event(START))
    for second in range(130):
        screen.now = float(second)
        sink.write(event(reading(100.0 * second, min(0.1 * second, 2.0))))
    sink.close()
    assert [line.split()[0] for line in screen.lines] == [
        "16:40", "33:20",  # the bits stay as they are from here on
        "2:13:20", "3:35:00",
    ]  # fmt: skip
    assert "1.0 of 5.6 bits, 1 in 25" in screen.lines[0]
    assert "2.0 of 5.6 bits, 1 in 12" in screen.lines[1]


def test_a_replay_without_a_terminal_says_how_fast_and_how_long() -> None:
    screen = Screen(False)
    progress = ReplayProgress(3600.0, screen.console, clock=screen.clock)
    progress.write(event(START))
    for second in range(12):
        screen.now = float(second)
        progress.write(event(reading(100.0 * second)))
    progress.close()
    assert screen.lines == [
        "16:40 of 1:00:00 audio, 100 x real time, 0:26 left, 2.1 of 5.6 bits, 1 in 12",
        "18:20 of 1:00:00 audio, 100 x real time, 2.1 of 5.6 bits, 1 in 12",
    ]


def test_without_a_terminal_a_text_cannot_steer_one_later(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = ReplayProgress(60.0)
    progress.write(
        event({"type": "notice", "seconds": 9.0, "text": "[b]odd \x1b[2J\n:smile: caf\u00e9"})
    )
    progress.close()
    out, err = capsys.readouterr()
    assert out == ""
    assert "[b]odd ?[2J" in err
    assert ":smile: caf\u00e9\n" in err
    assert not any(ord(character) < 32 for character in err.replace("\n", ""))


def test_speed_leaves_out_what_a_resumed_run_skipped() -> None:
    screen = Screen(False)
    progress = ReplayProgress(2000.0, screen.console, clock=screen.clock)
    screen.now = 5.0
    progress.write(event(reading(1000.0)))
    assert progress.times_real_time is None
    assert progress.seconds_left is None
    screen.now = 7.0
    progress.write(event(reading(1100.0)))
    assert progress.times_real_time == 50.0
    assert progress.seconds_left == 18.0


@pytest.mark.parametrize("view", [ReplayProgress, LiveView])
def test_draws_at_most_ten_times_a_second(view: type[ReplayProgress | LiveView]) -> None:
    screen = Screen(True)
    sink = view(100.0, screen.console, clock=screen.clock)
    drawn = []
    sink._draw = lambda live, draw=sink._draw: (drawn.append(screen.now), draw(live))  # type: ignore
    for i in range(1000):
        screen.now = i / 500  # two seconds
        sink.write(event(reading(i / 10)))
    assert 15 <= len(drawn) <= 20
    sink.close()
    assert len(drawn) <= 21


def test_progress_bar_fits_a_line() -> None:
    screen = Screen(True)
    progress = ReplayProgress(3600.0, screen.console, clock=screen.clock)
    progress.write(event(reading(0.0)))
    screen.now = 10.0
    progress.write(event(reading(1800.0)))
    (line,) = rendered(progress)
    progress.close()
    plain = line.replace("\x1b", "")
    for words in ("30:00 of 1:00:00", "180x", "0:10 left", "2.1 of 5.6 bits, 1 in 12", "━"):
        assert words in plain
    assert screen.lines[-1].endswith("180 x real time, 2.1 of 5.6 bits, 1 in 12")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60), (60, 16), (30, 8)])
def test_live_view_fits_the_screen(width: int, height: int) -> None:
    screen = Screen(True, width, height, color_system=None)
    live = LiveView(600.0, screen.console, clock=screen.clock)
    live.write(event(START))
    for second in range(1, 300):
        live.write(event(reading(second, 4 * math.sin(second / 50))))
    live.write(event(ALERT))
    live.write(event(GAP))
    lines = rendered(live, color_system=None)
    live.close()
    assert len(lines) < height
    assert max(len(line) for line in lines) <= width


def test_live_view_shows_every_part_without_colour() -> None:
    screen = Screen(True, environ={"NO_COLOR": "1"})
    live = LiveView(100.0, screen.console, forecasts=[Forecast(3.0)], clock=screen.clock)
    live.write(event(START))
    for second in range(1, 51):
        live.write(event(reading(second, 4 * (1 - math.exp(-second / 10)))))
    before = "\n".join(rendered(live, environ={"NO_COLOR": "1"}))
    assert "no alert (threshold 3.0 bits)" in before
    live.write(event(ALERT))
    text = "\n".join(rendered(live, environ={"NO_COLOR": "1"}))
    for words in (
        "0:50 of 1:40",
        "ALERT bits>3 for 5 s, since 0:20",
        "4.0 of 5.6 bits, 1 in 3.2",
        "peak 2.3",
        "watching 4088",
        "4088 *",
        " 31% ",
        "30 s",
        "of speech",
        CEILING * 5,
        THRESHOLD * 5,
        "⣀ bits  ━ ceiling  ┄ threshold",
    ):
        assert words in text, words
    assert "\x1b[3" not in text  # no colour
    live.write(event({**ALERT, "state": "cleared", "seconds": 50.0}))
    assert "no alert" in "\n".join(rendered(live, environ={"NO_COLOR": "1"}))
    live.close()


@pytest.mark.parametrize("view", [ReplayProgress, LiveView])
def test_no_live_view_where_it_cannot_be_drawn(view: type[ReplayProgress | LiveView]) -> None:
    for options in ({"encoding": "ascii"}, {"environ": {"TERM": "dumb"}}):
        screen = Screen(True, **options)
        sink = view(10.0, screen.console, clock=screen.clock)
        for second in range(12):
            sink.write(event(reading(second)))
        sink.close()
        assert "\x1b[?25l" not in screen.text
        assert screen.text.isascii()


def test_stdout_stays_free(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(True)
    live = LiveView(10.0, screen.console, clock=screen.clock)
    live.write(event(reading(1.0)))
    print('{"type":"reading"}')  # noqa: T201
    live.close()
    assert capsys.readouterr().out == '{"type":"reading"}\n'


def test_gaps_are_told_five_times_then_counted() -> None:
    screen = Screen(False)
    progress = ReplayProgress(None, screen.console, clock=screen.clock)
    for _ in range(50):
        progress.write(event(GAP))
    progress.close()
    assert sum("audio lost" in line for line in screen.lines) == 5
    assert "50 gaps" in screen.lines[-1]


@given(
    st.lists(st.tuples(st.floats(0.01, 1e5), st.floats(-9, 9)), max_size=30),
    st.integers(1, 30),
    st.integers(1, 12),
)
def test_the_text_curve_always_fills_its_box(
    points: list[tuple[float, float]], width: int, height: int
) -> None:
    lines = draw_curve(
        sorted(points),
        width=width,
        height=height,
        x_range=(0.1, 100.0),
        y_range=(-1.0, 5.0),
        levels=[(3.0, THRESHOLD)],
    )
    assert [len(line) for line in lines] == [width] * height
    if not points:
        assert lines[row_of(3.0, height, (-1.0, 5.0))] == THRESHOLD * width


def test_memory_of_the_curve_does_not_grow() -> None:
    curve = TextCurve()
    for tick in range(1, 360_000):
        curve.add(tick / 10, 1.0)
    assert len(curve.points) < 64 * 6
    curve.add(0.0, 1.0)
    curve.add(1.0, math.nan)
    assert all(math.isfinite(bits) for _, bits in curve.points)


OPEN = {"since_seconds": 7.0, "features": ["channel"]}


def test_a_bar_that_may_be_of_another_voice_claims_nothing() -> None:
    screen = Screen(False)
    progress = ReplayProgress(None, screen.console, clock=screen.clock)
    progress.write(event(START))
    progress.write(event({"type": "change", "seconds": 9.0, "action": "note", **OPEN}))
    progress.write(event(reading(9.0, change=OPEN)))
    progress.close()
    assert screen.lines == [
        "another channel or voice since 0:07: alerts rest until the first is back",
        "0:09 audio, 2.1 of 5.6 bits, another channel or voice since 0:07",
    ]


def test_the_curve_of_the_demo_says_so_too() -> None:
    screen = Screen(True)
    live = LiveView(None, screen.console, forecasts=[Forecast(3.0)], clock=screen.clock)
    for record in (START, reading(9.0, change=OPEN)):
        live.write(event(record))
    text = "\n".join(rendered(live, color_system=None))
    live.close()
    assert "another channel or voice since 0:07: these bits may not be 4088's" in text
    assert "watching 4088" not in text


def test_the_line_breaks_where_the_evidence_begins_afresh() -> None:
    points = [(1.0, 2.0), (2.0, 2.0), (9.0, 0.0), (10.0, 0.0)]
    shape: dict[str, Any] = {"width": 20, "height": 4, "x_range": (1, 10), "y_range": (0, 2)}
    whole, broken = draw_curve(points, **shape), draw_curve(points, **shape, breaks={9.0})
    assert not {" "}.issuperset(whole[1])
    assert set(broken[1]) == set(broken[2]) == {" "}
    assert broken[0].strip()
    assert broken[3].strip()


@pytest.mark.parametrize("names", [("f0",), ("f0", "style")])
def test_whose_style_is_heard_is_said_in_the_view_and_after_it(
    names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {f"{of}_{end}": 2.0 for of in ("bits", "expected_bits") for end in ("low", "high")}
    rest = {"expected_bits": 2.0, "assumes_enrolled": False, "beyond_grid": False}
    features = {name: {"usable": 9.0, "rank": 2.0} for name in names}
    last = reading(99.0, **limits, **rest, features=features)
    print_summary(events([START, last]))
    said = " ".join(capsys.readouterr().out.split())
    assert ("that is its author, not the reader." in said) == ("style" in names)
    screen = Screen(True)
    for sink in (LiveView(None, screen.console), LiveView(None, screen.console)):
        sink.write(event(last))
        seen = "\n".join(rendered(sink))
        sink.close()
        assert ("tells the author, not the reader" in seen) == ("style" in names)


def test_the_summary_names_nobody_after_another_voice(capsys: pytest.CaptureFixture[str]) -> None:
    whole: dict[str, Any] = {
        "speech": 90.0, "features": {}, "assumes_enrolled": False, "beyond_grid": False,
        "expected_bits": 1.5, "enrolled": None,
        **{f"{name}_{end}": 1.0 for name in ("bits", "expected_bits") for end in ("low", "high")},
    }  # fmt: skip
    change = {"type": "change", "seconds": 112.0, "since_seconds": 107.0, "features": ["f0"]}
    last = reading(200.0, **whole)
    print_summary(events([START, reading(99.0, **whole)]))
    assert "4088 disclosed" in capsys.readouterr().out
    opened = {"since_seconds": 107.0, "features": ["f0"]}
    print_summary(events([START, {**change, "action": "note"}, {**last, "change": opened}]))
    noted = capsys.readouterr().out
    print_summary(events([START, {**change, "action": "split"}, last]))
    split = capsys.readouterr().out
    assert "another voice since 1:47: these bits may not be 4088's" in noted
    assert "another voice since 1:47, noticed at 1:52" in noted
    assert "of the last voice" in split
    assert "4088 disclosed" not in noted + split


CROWDS = [{"people": 50, "bits": 5.6}, {"people": 10**6, "bits": 11.3}]
EVIDENCE = {
    "bits": 11.3, "bits_low": 10.5, "bits_high": 12.1, "peak_bits": 11.5, "headline": "evidence",
    "closed_set_bits": 5.4, "closed_set_bits_low": 1.0, "closed_set_bits_high": 5.5,
    "support_bits": 14.2, "at_least": False, "among": CROWDS,
}  # fmt: skip


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60), (60, 16), (30, 8)])
def test_the_curve_of_evidence_goes_on_above_the_ceiling(width: int, height: int) -> None:
    screen = Screen(True, width, height)
    live = LiveView(600.0, screen.console, forecasts=[Forecast(10.0)], clock=screen.clock)
    live.write(event({**START, "headline": "evidence", "speakers": 50, "support_bits": 14.2}))
    for second in range(1, 58):
        live.write(event({**reading(second), **EVIDENCE, "bits": 0.2 * second}))
    live.write(event({**reading(58), **EVIDENCE}))
    lines = rendered(live, color_system=None)
    live.close()
    assert len(lines) < height
    assert max(len(line) for line in lines) <= width
    if width < 80:
        return
    text = "\n".join(lines)
    for words in (
        "11.3 bits, about 400 in a million", "about 400 people in a city of a million match",
        "peak 11.5", "closed-set, among the 50 enrolled: 5.4 of 5.6 bits, 84 % sure", "town",
        "office",
        "one match per town", "threshold 10.0 bits",
    ):  # fmt: skip
        assert words in text, words


def test_the_summary_begins_with_the_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    whole: dict[str, Any] = {
        "speech": 90.0, "features": {}, "assumes_enrolled": False, "beyond_grid": False,
        "expected_bits": 1.5, "enrolled": 0.97,
        **{f"{name}_{end}": 1.0 for name in ("bits", "expected_bits") for end in ("low", "high")},
    }  # fmt: skip
    start = {**START, "headline": "evidence", "speakers": 50, "support_bits": 14.2}
    print_summary(events([start, {**reading(200.0), **whole, **EVIDENCE}]))
    told = " ".join(capsys.readouterr().out.split())
    for words in (
        "evidence for 4088 11.3 bits, about 400 in a million (10.5 to 12.1)",
        "in other words about 400 people in a city of a million match as well as 4088",
        "closed-set, of 50 5.4 of 5.6 bits, 84 % sure (1.0 to 5.5)",
        "Evidence is not proof", "recordings like the calibration's",
    ):  # fmt: skip
        assert words in told, words
    crowds = [{"people": 10**6, "bits": 0.0, "favourite": ["4088", 0.0025]}]
    print_summary(events([{**start, "watch": None}, reading(200.0, 5.4, **whole, among=crowds)]))
    told = " ".join(capsys.readouterr().out.split())
    assert "in a crowd in a city of a million: 1 in 400 that it is 4088, the best match" in told


def test_the_summary_puts_both_sides_beside_one_another(capsys: pytest.CaptureFixture[str]) -> None:
    start = {"type": "start", "watch": "ann", "speakers": 50, "support_bits": None,
             "protected": {"method": "noise:10"}}  # fmt: skip
    whole = {"bits_low": 3.0, "bits_high": 4.0, "expected_bits": 2.0, "expected_bits_low": 1.0,
             "expected_bits_high": 3.0, "features": {}, "top": [], "assumes_enrolled": False,
             "beyond_grid": False}  # fmt: skip
    side = {"bits": 1.2, "bits_low": 0.9, "bits_high": 1.4, "by": "lazy-informed",
            "attackers": {"ignorant": {}, "lazy-informed": {}}}  # fmt: skip
    row = {"bits": 2.0, "clear": {"seconds": 4.0, "crossed": True},
           "protected": {"seconds": 99.0, "crossed": False}, "delay_seconds": 95.0,
           "at_least": True}  # fmt: skip
    last = reading(99.0, 3.5, **whole, protected=side)
    print_summary(events([start, last, {"type": "end", "disclosure_delay": [row]}]))
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        "through noise:10 1.2 bits (0.9 to 1.4), 2.3 fewer",
        "that is to the strongest attacker tried, who has enrolled protected speech",
        "2 bits 0:04 not by 1:39 at least 95 s",
    ):
        assert words in text, words


def test_the_summary_says_what_was_promised_beside_what_was_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    declared = {"mechanism": "usc:15", "epsilon_nats": 15.0, "window_seconds": 0.04, "delta": 1e-4}
    start = {"type": "start", "watch": "ann", "speakers": 50, "declared": declared}
    whole = {"bits_low": 3.0, "bits_high": 4.0, "expected_bits": 2.0, "expected_bits_low": 1.0,
             "expected_bits_high": 3.0, "features": {}, "top": [], "assumes_enrolled": False,
             "beyond_grid": False}  # fmt: skip
    promise = to_json(DeclaredReading.of(Declared("usc:15", 15.0, 0.04).after(1500)))
    print_summary(events([start, reading(60.0, 3.5, **whole, declared=promise)]))
    text = " ".join(capsys.readouterr().out.split())
    assert "usc:15 vacuous bound: 32,461 bits allowed" in text
    assert "that is 1,500 times epsilon 15 are 22,500 together, 22,500 by optimal" in text
    print_summary(events([{**start, "declared": None}, reading(60.0, 3.5, **whole)]))
    assert "promise" not in capsys.readouterr().out
