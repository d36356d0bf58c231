"""`Hub` stores a bounded number of a run's records, for one writing thread and many readers."""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import orjson

from monitor import how_much
from monitor.alerts.early_warnings import Forecast
from monitor.crowds import people
from monitor.events import phrases
from monitor.events.declaration import Event, encode
from monitor.events.phrases import enrolment, uninformed
from monitor.events.reading import Reading
from monitor.events.run import Alert, Change, GapEvent, LevelReached, NoticeEvent, RunEnd, RunStart
from monitor.events.schema import event_of
from monitor.phrases import AT_ALL, FEATURE_NAMES, IMPOSTOR, clock_time, odds, usable_in_words

_Words: TypeAlias = "dict[str, object]"


def words_of(event: Event, start: RunStart | None = None) -> _Words:
    """Format an event in words; empty for an invalid one."""
    start = start or RunStart.from_record({})
    words: _Words = {}
    try:
        match event:
            case RunStart():
                words = _words_of_start(event)
            case Reading():
                words = _words_of_reading(event, start)
            case RunEnd():
                words = {
                    "delay": [phrases.delay_cells(row) for row in event.disclosure_delay or ()],
                    "overlap": phrases.overlap_in_words(event.overlap_seconds),
                }
            case GapEvent() | NoticeEvent() | Change() | LevelReached() | Alert():
                words["title"], words["words"] = phrases.describe_event(event)
                if isinstance(event, Change):
                    words["voice"] = f"voice since {clock_time(event.since_seconds)}"
                elif isinstance(event, LevelReached) and event.delay_seconds is not None:
                    words["delay"] = f"{event.delay_seconds:.3g} s"
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return {}
    return {key: value for key, value in words.items() if value}


def level_meaning(bits: float, start: RunStart | None) -> str:
    """Explain a number of bits of the headline; evidence means one in 2^bits in any crowd."""
    if start is not None and start.headline == "evidence":
        return f"one person in {people(float(f'{2.0**bits:.2g}'))}"
    if start is None or start.ceiling is None:
        return ""
    return odds(bits, start.ceiling, assumed=start.watch is None)


def _words_of_start(start: RunStart) -> _Words:
    caption = ""
    if start.people is not None:
        caption = phrases.people_in_words(start, evidence=start.headline == "evidence")
    return {
        "chance": f"by guessing it would be {odds(0.0, float(start.ceiling))}",
        "people": {str(count): people(count) for count in start.among or ()},
        "features": FEATURE_NAMES,
        "asked": AT_ALL,
        "advice": {
            "stop": phrases.STOP,
            "unchanged": phrases.UNCHANGED,
            "share_first": phrases.SHARE_FIRST,
        },
        "caption": caption,
        "how_much": {
            "title": how_much.TITLE,
            "tables": [[table.heads, *table.rows] for table in how_much.tables(options=False)],
            "advice": how_much.advice(options=False),
        },
    }


def _words_of_reading(reading: Reading, start: RunStart) -> _Words:
    watch, ceiling, closed = start.watch, reading.ceiling, reading.closed_set()
    withheld, others = reading.enrolled_withheld, reading.bystanders
    words: _Words = {
        "now": phrases.bits_now(reading),
        "left": phrases.format_matches(reading) if reading.is_evidence else "",
        "crowd": phrases.in_a_crowd(reading, watch, start.speakers or 0),
        "care": phrases.caveat_of(reading),
        "enrolled": enrolment(reading),
        "nobody": IMPOSTOR if reading.is_impostor else "",
        "unknown": withheld[0] if withheld else "",
        "attacker": phrases.attacker_of(reading),
        "fewer": phrases.fewer_in_words(reading),
        "uninformed": uninformed(reading),
        "promise": phrases.promise_now(reading),
        "composed": phrases.composed_in_words(start, reading),
        "spread": phrases.spread_in_words(reading),
        "usable": {
            name: usable_in_words(name, feature.usable)
            for name, feature in (reading.features or {}).items()
        },
    }
    if phrases.nobody_speaks(reading):
        words["left"] = IMPOSTOR
    if closed is not None and ceiling is not None:
        words["odds"] = odds(closed, ceiling, assumed=watch is None)
        words["verdict"] = phrases.verdict_now(reading, watch)
    if mixed := phrases.mixed_voices(reading, watch):
        words["mixed"] = mixed
    if reading.change is not None:
        words["voice"] = phrases.voice_since(reading.change)
        words["whose"] = phrases.format_attribution(reading, watch)
        words["doubt"] = phrases.another_voice(reading, watch)
    elif others:
        among = f" (among {people(others[0].people)} people)"
        words["others"] = [phrases.NARROWED, f"{phrases.narrowed_names(others)}{among}"]
    return words


class Wakeup:
    """A signal from any thread to all waiting coroutines of the running loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._waking = False

    def wake(self) -> None:
        """Wake all waiting coroutines; returns at once. Several calls may wake them only once."""
        if not self._waking:
            self._waking = True
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                self._loop.call_soon_threadsafe(self._wake)

    async def wait(self, seconds: float) -> None:
        """Return at the next `wake`, or after ``seconds``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # wait_for of Python 3.11 may lose a cancellation
                await self._event.wait()

    def _wake(self) -> None:
        self._waking = False
        event, self._event = self._event, asyncio.Event()
        event.set()


RECENT = 1200  # newest records that are never thinned: twenty minutes at one per second
MOST = 4000
MOST_OTHERS = 1000
MOST_READINGS = 800
MOST_BYTES = 64 * 1024 * 1024
"""Maximum bytes of all stored records, because a record among very many people is large."""
NEWEST = 8
BATCH = 64
BATCH_BYTES = 64 * 1024
"""Maximum bytes sent at once to a client (or one record, if longer), which may not read."""
FIRST_SECONDS = 300.0
SHOWN = ("bits", "evidence_bits", "closed_set_bits")  # figures that are drawn as curves
GROWTH = 1.01


def _exact(data: bytes) -> bytes:
    """Copy bytes from orjson, which occupy more memory than their length."""
    return bytes(memoryview(data))


class NumberedRecord(NamedTuple):
    """One record as JSON, with its number and the page's text."""

    id: int
    kind: str
    seconds: float
    data: bytes
    words: bytes = b"{}"
    whose: tuple[str, str] = ("", "")  # label and watched speaker, in a run of several people

    @property
    def size(self) -> int:
        """Bytes of the record and its text."""
        return len(self.data) + len(self.words)


class TimeLeft(NamedTuple):
    """Stream seconds until a threshold at this rate; None if unknown."""

    field: str
    threshold: float
    seconds_left: float | None
    meaning: str


@dataclass(slots=True)
class HubState:
    """State that is not part of any record."""

    # start, reading: the newest of each
    start: RunStart | None = None
    reading: Reading | None = None
    # the newest reading per label and watched speaker, in a run of several people
    people: dict[tuple[str, str], Reading] = field(default_factory=dict)
    # number of events by type; alerts also as ``raised`` and ``warned``
    counts: Counter[str] = field(default_factory=Counter)
    # the largest bits by stream and feature
    peaks: dict[tuple[str, str], float] = field(default_factory=dict)
    lost_seconds: float = 0.0
    raised: dict[str, bool] = field(default_factory=dict)  # whether each rule is raised now
    # rules that are warnings, or that a relay changes its way
    quiet: set[str] = field(default_factory=set)
    forecast: Sequence[TimeLeft] = ()


_COPIED = ("people", "counts", "peaks", "raised", "quiet")


class Hub:
    """A bounded store of events that one thread writes and others read, as records.

    A record's id is its number from 1. The newest `RECENT` records are complete. Older readings are
    thinned evenly on a log axis. The newest `MOST_OTHERS` other records remain.
    """

    def __init__(
        self,
        # fields and bits for which to forecast the time left; alerts on `SHOWN` add theirs
        thresholds: Sequence[tuple[str, float]] = (),
        *,
        recorded: bool = False,  # whether the run is over and was read from a file
    ) -> None:
        self.run = secrets.token_hex(4)  # name of this run; record ids are valid only within it
        self.recorded = recorded
        self._lock = threading.Lock()
        self._entries: list[NumberedRecord] = []
        self.last = self._bytes = 0  # last: the newest id
        self._bells: list[Callable[[], None]] = []
        self._forecasts = _forecasts(thresholds)
        self._now = HubState()
        self._state: HubState | None = None  # copy for readers, with the time left
        # arrival of the newest reading on the monotonic clock; None before the first
        self.read_at: float | None = None
        # relayed: whether audio is sent through a relay (`monitor.web.relay`)
        self.closed = self.relayed = False  # closed: whether the run has ended

    def write(self, event: Event) -> None:
        """Store one event and notify the readers."""
        data = _exact(orjson.dumps(encode(event), option=orjson.OPT_SERIALIZE_NUMPY))
        sentences = _exact(orjson.dumps(words_of(event, self._now.start)))
        seconds = float(getattr(event, "seconds", None) or 0.0)
        whose = str(getattr(event, "label", None) or ""), str(getattr(event, "watch", None) or "")
        with self._lock:
            self.last += 1
            entry = NumberedRecord(self.last, event.type, seconds, data, sentences, whose)
            self._entries.append(entry)
            self._bytes += entry.size
            if len(self._entries) > MOST:
                self._entries = thinned(self._entries)
                self._bytes = sum(entry.size for entry in self._entries)
            while self._bytes > MOST_BYTES and len(self._entries) > 2 * NEWEST:
                self._entries = [
                    entry
                    for i, entry in enumerate(self._entries)
                    if i % 2 or entry.kind == "start" or i >= len(self._entries) - NEWEST
                ]
                self._bytes = sum(entry.size for entry in self._entries)
            self._note(event)
        self._ring()

    def _ring(self) -> None:
        for bell in tuple(self._bells):
            bell()

    def close(self) -> None:
        """Mark the run as ended, so that readers stop once they have all records."""
        with self._lock:
            self.closed = True
        self._ring()

    def subscribe(self, bell: Callable[[], None]) -> None:
        """Call a function after each record, on the writer's thread. It must not block."""
        with self._lock:
            self._bells.append(bell)

    def stand_on(self, thresholds: Sequence[tuple[str, float]]) -> None:
        """Replace the forecast thresholds; thread-safe."""
        with self._lock:
            self._forecasts = self._afresh(thresholds)
            for entry in self._entries[-RECENT // 10 :]:  # more than a forecast looks back
                if (event := event_of(orjson.loads(entry.data))) is not None:
                    for forecast in self._forecasts.values():
                        forecast.update(event)
            self._state = None
        self._ring()

    def records_since(self, since: int, maximum: int | None = None) -> list[NumberedRecord]:
        """Return the stored records after an id, in order; ``maximum`` thins the readings."""
        with self._lock:
            newer = self._entries[bisect_right(self._entries, since, key=lambda entry: entry.id) :]
        if maximum is None or len(newer) <= maximum:
            return newer
        every = -(-len(newer) // maximum)
        return [
            entry
            for i, entry in enumerate(reversed(newer))
            if entry.kind != "reading" or i % every == 0
        ][::-1]

    def batch(self, since: int, maximum: int | None = None) -> list[NumberedRecord]:
        """Return the first of `records_since`, as many as are written to a client at once."""
        entries = self.records_since(since, maximum)[:BATCH]
        size = list(accumulate(entry.size for entry in entries))
        return entries[: max(1, bisect_right(size, BATCH_BYTES))]

    def state(self) -> HubState:
        """Return the state outside records: counts, newest events, and the time left."""
        with self._lock:
            if self._state is None:
                now, start = self._now, self._now.start
                forecast = [
                    TimeLeft(name, bits, pending.seconds_left, level_meaning(bits, start))
                    for (name, bits), pending in sorted(self._forecasts.items())
                ]
                copies = {name: getattr(now, name).copy() for name in _COPIED}
                self._state = replace(now, forecast=forecast, **copies)
            return self._state

    def _note(self, event: Event) -> None:
        self._state = None
        self._now.counts[event.type] += 1
        label = getattr(event, "label", None)
        match event:
            case RunStart():
                self._now.start = event
            case Reading():
                self.read_at, self._now.reading = time.monotonic(), event
                self._note_reading(event)
            case GapEvent():
                self._now.lost_seconds += event.lost_seconds or 0.0
            case Alert():
                self._note_alert(event)
            case Change(action="reset" | "split", label=None):
                # the evidence restarts, and the forecast with it
                self._forecasts = self._afresh(self._forecasts)
        if label is None:  # no forecast covers several people together
            for forecast in self._forecasts.values():
                forecast.update(event)

    def _note_reading(self, reading: Reading) -> None:
        if reading.label is not None:
            self._now.people[reading.label, reading.watch or ""] = reading
            return
        for name, row in (reading.features or {}).items():
            bits = row.gain_bits if row.local_bits is None else row.local_bits
            key = (str(reading.stream), name)
            if bits is not None and bits > self._now.peaks.get(key, -math.inf):
                self._now.peaks[key] = bits

    def _note_alert(self, alert: Alert) -> None:
        name = alert.rule if alert.label is None else f"{alert.label}: {alert.rule}"
        self._now.raised[name] = alert.state == "raised"
        if alert.level == "warning" or alert.way:
            self._now.quiet.add(name)
        if alert.state == "raised":
            self._now.counts["warned" if alert.level == "warning" else "raised"] += 1
        key = (alert.field, alert.threshold)
        if alert.label is None and alert.field in SHOWN and key not in self._forecasts:
            self._forecasts |= self._afresh([key])

    def _afresh(self, thresholds: Iterable[tuple[str, float]]) -> dict[tuple[str, float], Forecast]:
        """Make forecasts for this run, without its readings so far."""
        forecasts = _forecasts(thresholds)
        for forecast in forecasts.values():
            if self._now.start is not None:
                forecast.update(self._now.start)
        return forecasts


def _forecasts(thresholds: Iterable[tuple[str, float]]) -> dict[tuple[str, float], Forecast]:
    return {(field, bits): Forecast(bits, field) for field, bits in thresholds}


def thinned(entries: Sequence[NumberedRecord]) -> list[NumberedRecord]:
    """Keep the newest records, older readings evenly on a log axis, and some other records."""
    old, recent = entries[:-RECENT], entries[-RECENT:]
    others = [entry for entry in old if entry.kind not in ("reading", "start")][-MOST_OTHERS:]
    readings: list[NumberedRecord] = []
    reached: dict[tuple[str, str], float] = {}
    newest: dict[tuple[str, str], NumberedRecord] = {}  # of each voice, even if long silent
    for entry in old:
        if entry.kind != "reading":
            continue
        newest[entry.whose] = entry
        if not FIRST_SECONDS < entry.seconds < reached.get(entry.whose, 0.0) * GROWTH:
            readings.append(entry)
            reached[entry.whose] = entry.seconds
    while len(readings) > MOST_READINGS:  # closer than a second, or a stream of days
        readings = readings[::2]
    if len(newest) > 1:
        readings = sorted({*readings, *newest.values()})
    starts = [entry for entry in old if entry.kind == "start"][:1]
    return [*sorted([*starts, *others, *readings]), *recent]
