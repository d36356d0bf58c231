"""A bounded store of a run's records, numbered: one thread writes, any number of readers follow."""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from numbers import Real
from typing import Any, NamedTuple

import orjson

from monitor import phrases
from monitor.alerts.rules import Forecast
from monitor.crowds import SCALE, format_matches, people
from monitor.sinks.summary import NARROWED, bits_now, describe_event, in_a_crowd, narrowed_names

# --- What the page says of a record, in the words of all views.

_MOST_TICKS = 64
_EVENTS = ("alert", "gap", "notice", "change", "crossing")


def words_of(record: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
    """Format a record in words; nothing of one that makes no sense.

    Examples:
        >>> start = {"type": "start", "watch": "ann", "ceiling": 5.64}
        >>> reading = {"type": "reading", "bits": 2.06, "ceiling": 5.64}
        >>> said = words_of(reading, start)
        >>> said["odds"], said["verdict"]
        ('1 in 12', 'the attacker gives ann a chance of 1 in 12')
        >>> words_of({"type": "change", "since_seconds": 9.0, "action": "reset"}, start)["words"]
        'the evidence begins afresh'
    """
    kind = record["type"]
    try:
        if kind == "start":
            sentences = _words_of_start(record)
        elif kind == "reading":
            sentences = _words_of_reading(record, start)
        elif kind == "end":
            overlap = record.get("overlap_seconds")
            sentences = {
                "delay": [phrases.delay_cells(row) for row in record.get("disclosure_delay") or ()],
                "overlap": phrases.overlap_in_words(overlap) if overlap else "",
            }
        elif kind in _EVENTS:
            title, words = describe_event(record)
            sentences = {"title": title, "words": words}
            if kind == "change":
                sentences["voice"] = f"voice since {phrases.clock_time(record['since_seconds'])}"
            elif kind == "crossing":
                delay = record.get("delay_seconds")
                sentences["delay"] = None if delay is None else f"{delay:.3g} s"
        else:
            sentences = {}
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return {}
    return {key: value for key, value in sentences.items() if value}


def level_meaning(bits: float, start: Mapping[str, Any]) -> str:
    """Explain so many bits of the headline: of evidence one in 2^bits, whatever the crowd."""
    if phrases.is_evidence(start):
        return f"one person in {people(float(f'{2.0**bits:.2g}'))}"
    ceiling = start.get("ceiling")
    return (
        "" if ceiling is None else phrases.odds(bits, ceiling, assumed=start.get("watch") is None)
    )


def _words_of_start(start: Mapping[str, Any]) -> dict[str, Any]:
    ceiling, assumed = min(float(start["ceiling"]), _MOST_TICKS), start.get("watch") is None
    ticks = range(-_MOST_TICKS, int(ceiling + 0.05) + 1)
    return {
        "ticks": {str(b): phrases.odds(b, ceiling, assumed=assumed, short=True) for b in ticks},
        "chance": f"by guessing it would be {phrases.odds(0.0, ceiling)}",
        "scale": [(crowd.bits, crowd.name) for crowd in SCALE],
        "people": {str(count): people(count) for count in start.get("among") or ()},
        "features": phrases.FEATURE_NAMES,
        "asked": phrases.AT_ALL,
        **_words_of_people(start),
    }


def _words_of_people(start: Mapping[str, Any]) -> dict[str, str]:
    """Explain the bits of a run of several people."""
    if "people" not in start:
        return {}
    return {"caption": phrases.people_in_words(start, evidence=phrases.is_evidence(start))}


def _words_of_reading(reading: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
    watch, ceiling, closed = start.get("watch"), reading.get("ceiling"), phrases.closed_set(reading)
    change, others = reading.get("change"), reading.get("bystanders")
    withheld = phrases.reasons(reading)
    sentences = {
        "now": bits_now(reading),
        "left": format_matches(reading) if phrases.is_evidence(reading) else "",
        "crowd": in_a_crowd(reading, watch, start.get("speakers") or 0),
        "care": phrases.caveat_of(reading),
        "enrolled": phrases.enrolment(reading),
        "nobody": phrases.IMPOSTOR if phrases.is_impostor(reading) else "",
        "unknown": withheld[0] if withheld else "",
        "attacker": phrases.attacker_of(reading),
        "fewer": phrases.fewer_in_words(reading),
        "uninformed": phrases.uninformed(reading),
        "promise": phrases.promise_now(reading),
        "composed": phrases.composed_in_words(start, reading),
        "usable": {
            name: phrases.usable_in_words(name, feature["usable"])
            for name, feature in (reading.get("features") or {}).items()
        },
    }
    if closed is not None and ceiling is not None:
        sentences["odds"] = phrases.odds(closed, ceiling, assumed=watch is None)
        sentences["verdict"] = phrases.verdict(closed, ceiling, watch)
    if change is not None:
        sentences["voice"], sentences["whose"] = (
            phrases.voice_since(change),
            phrases.format_attribution(reading, watch),
        )
        sentences["doubt"] = phrases.another_voice(reading, watch)
    elif others:
        among = f" (among {people(others[0]['people'])} people)"
        sentences["others"] = [NARROWED, f"{narrowed_names(others)}{among}"]
    if reading.get("spread_low") is not None:
        sentences["spread"] = phrases.spread_in_words(reading)
    return sentences


# --- An event that another thread sets and coroutines of the server's loop wait for.


class Wakeup:
    """Set by any thread, seen by every coroutine that waits; belongs to the running loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._waking = False

    def wake(self) -> None:
        """Wake all that wait. Never waits itself; several calls may wake them once."""
        if not self._waking:
            self._waking = True
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                self._loop.call_soon_threadsafe(self._wake)

    async def wait(self, seconds: float) -> None:
        """Return at the next `wake`, or after so many seconds."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)

    def _wake(self) -> None:
        self._waking = False
        event, self._event = self._event, asyncio.Event()
        event.set()


RECENT = 1200
"""So many of the newest records are kept as they came: twenty minutes at one a second."""
MOST = 4000
MOST_OTHERS = 1000
MOST_READINGS = 800
MOST_BYTES = 64 * 1024 * 1024
"""Of all records that are kept: one among very many people is large."""
NEWEST = 8
BATCH = 64
BATCH_BYTES = 64 * 1024
"""No more than that is under way to a client that does not read (or one record, if longer)."""
FIRST_SECONDS = 300.0
SHOWN = ("bits", "evidence_bits", "closed_set_bits")
"""Figures whose curve is drawn."""
GROWTH = 1.01


def _exact(data: bytes) -> bytes:
    """A copy: what orjson has written keeps the memory that it was given for more."""
    return bytes(memoryview(data))


class NumberedRecord(NamedTuple):
    """One record with its number, already written as JSON, and what the page says of it."""

    id: int
    kind: str
    seconds: float
    data: bytes
    words: bytes = b"{}"
    whose: tuple[str, str] = ("", "")  # label, and who is watched, of several people


class Hub:
    """A bounded store of records that one thread writes and others read.

    A record's id is its number from 1. The newest `RECENT` records are all there; of older readings
    an ever coarser choice, evenly spaced on a log axis, and of other records the newest
    `MOST_OTHERS`.

    Args:
        thresholds: field and bits to say the time left for; alerts on `SHOWN` fields bring theirs.
        recorded: the run is over: it was read from a file.

    Attributes:
        run: a name for this run; an id means nothing in another.
        recorded: as given.
        heard: when the newest reading came, on the monotonic clock; None before the first.
        closed: nothing more will come.

    Example:
        >>> hub = Hub()
        >>> for second in range(1, 4):
        ...     hub.write({"type": "reading", "seconds": second, "speech": second, "bits": 1.0})
        >>> [entry.id for entry in hub.after(1)]
        [2, 3]
    """

    def __init__(
        self, thresholds: Sequence[tuple[str, float]] = (), *, recorded: bool = False
    ) -> None:
        self.run = secrets.token_hex(4)
        self.recorded = recorded
        self._lock = threading.Lock()
        self._entries: list[NumberedRecord] = []
        self._last = self._bytes = 0
        self._bells: list[Callable[[], None]] = []
        self._forecasts = _forecasts(thresholds)
        self._latest: dict[str, Mapping[str, Any]] = {}
        self._people: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._counts: Counter[str] = Counter()
        self._peaks: dict[tuple[str, str], float] = {}
        self._lost_seconds = 0.0
        self._raised: dict[str, bool] = {}
        self._state: dict[str, Any] | None = None
        self.heard: float | None = None
        self.closed = False

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record: kept, and the readers told that there is one."""
        data = _exact(orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY))
        kind = str(record["type"])
        sentences = _exact(orjson.dumps(words_of(record, self._latest.get("start", {}))))
        with self._lock:
            self._last += 1
            at = record.get("seconds")  # of a type of a later version anything
            seconds = float(at) if isinstance(at, Real) else 0.0
            whose = str(record.get("label") or ""), str(record.get("watch") or "")
            self._entries.append(NumberedRecord(self._last, kind, seconds, data, sentences, whose))
            self._bytes += len(data) + len(sentences)
            if len(self._entries) > MOST:
                self._entries = thinned(self._entries)
                self._bytes = sum(len(entry.data) + len(entry.words) for entry in self._entries)
            while self._bytes > MOST_BYTES and len(self._entries) > 2 * NEWEST:
                self._entries = [
                    entry
                    for i, entry in enumerate(self._entries)
                    if i % 2 or entry.kind == "start" or i >= len(self._entries) - NEWEST
                ]
                self._bytes = sum(len(entry.data) + len(entry.words) for entry in self._entries)
            self._note(kind, record)
            bells = tuple(self._bells)
        for bell in bells:
            bell()

    def close(self) -> None:
        """End it: readers that have seen everything may go."""
        with self._lock:
            self.closed = True
            bells = tuple(self._bells)
        for bell in bells:
            bell()

    def listen(self, bell: Callable[[], None]) -> None:
        """Have a function called, on the writer's thread, after each record. It must not wait."""
        with self._lock:
            self._bells.append(bell)

    def stand_on(self, thresholds: Sequence[tuple[str, float]]) -> None:
        """Forecast these thresholds alone from now on; may be called from anywhere."""
        with self._lock:
            self._forecasts = self._afresh(thresholds)
            for entry in self._entries[-RECENT // 10 :]:  # more than a forecast looks back
                record = orjson.loads(entry.data)
                for forecast in self._forecasts.values():
                    forecast.update(record)
            self._state = None
            bells = tuple(self._bells)
        for bell in bells:
            bell()

    @property
    def last(self) -> int:
        """Newest id; 0 where there is none."""
        return self._last

    def after(self, since: int, maximum: int | None = None) -> list[NumberedRecord]:
        """Return the records kept that are newer than an id, in order."""
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
        """Return the first of what `after` gives, as much as is written to a client at one go."""
        entries = self.after(since, maximum)[:BATCH]
        size = list(accumulate(len(entry.data) + len(entry.words) for entry in entries))
        return entries[: max(1, bisect_right(size, BATCH_BYTES))]

    def state(self) -> dict[str, Any]:
        """Return what no record holds: counts, the newest of each kind, the time left."""
        with self._lock:
            if self._state is None:
                self._state = {
                    "latest": dict(self._latest),
                    "people": dict(self._people),
                    "counts": dict(self._counts),
                    "peaks": dict(self._peaks),
                    "lost_seconds": self._lost_seconds,
                    "raised": dict(self._raised),
                    "forecast": [
                        {
                            "field": field,
                            "threshold": bits,
                            "seconds_left": forecast.seconds_left,
                            "meaning": level_meaning(bits, self._latest.get("start", {})),
                        }
                        for (field, bits), forecast in sorted(self._forecasts.items())
                    ],
                }
            return self._state

    def _note(self, kind: str, record: Mapping[str, Any]) -> None:
        """Count, and keep what a glance needs."""
        self._state = None
        self._latest[kind] = record
        self._counts[kind] += 1
        if "label" in record:
            self._note_of_person(kind, record)
            return
        for name, row in (record.get("features") or {}).items() if kind == "reading" else ():
            bits = row.get("local_bits")
            bits = row.get("gain_bits") if bits is None else bits
            place = (str(record.get("stream", 1)), name)
            if bits is not None and bits > self._peaks.get(place, -math.inf):
                self._peaks[place] = bits
        if kind == "reading":
            self.heard = time.monotonic()
        elif kind == "gap":
            self._lost_seconds += record.get("lost_seconds") or 0.0
        elif kind == "alert":
            self._raised[str(record["rule"])] = record["state"] == "raised"
            if record["state"] == "raised":
                self._counts["warned" if record.get("level") == "warning" else "raised"] += 1
            place = (record["field"], record["threshold"])
            if record["field"] in SHOWN and place not in self._forecasts:
                self._forecasts |= self._afresh([place])
        elif kind == "change" and record.get("action") in ("reset", "split"):
            # the evidence begins afresh, and so does the line through it
            self._forecasts = self._afresh(self._forecasts)
        for forecast in self._forecasts.values():
            forecast.update(record)

    def _note_of_person(self, kind: str, record: Mapping[str, Any]) -> None:
        """Note one of several people, as `_note`: nothing is forecast of them together."""
        label = str(record["label"])
        if kind == "reading":
            self.heard = time.monotonic()
            self._people[label, str(record.get("watch") or "")] = record
        elif kind == "gap":
            self._lost_seconds += record.get("lost_seconds") or 0.0
        elif kind == "alert":
            self._raised[f"{label}: {record['rule']}"] = record["state"] == "raised"
            if record["state"] == "raised":
                self._counts["warned" if record.get("level") == "warning" else "raised"] += 1

    def _afresh(self, thresholds: Iterable[tuple[str, float]]) -> dict[tuple[str, float], Forecast]:
        """Make forecasts of this run without a reading yet."""
        forecasts = _forecasts(thresholds)
        for forecast in forecasts.values():
            forecast.update(self._latest.get("start", {"type": "start"}))
        return forecasts


def _forecasts(thresholds: Iterable[tuple[str, float]]) -> dict[tuple[str, float], Forecast]:
    return {(field, bits): Forecast(bits, field) for field, bits in thresholds}


def thinned(entries: Sequence[NumberedRecord]) -> list[NumberedRecord]:
    """Keep the newest as they are, older readings evenly on a log axis, some of the others.

    Example:
        >>> made = [NumberedRecord(i, "reading", i, b"") for i in range(1, 10_001)]
        >>> kept = thinned(made)
        >>> len(kept) < 2200, kept[0].id, kept[-RECENT:] == made[-RECENT:]
        (True, 1, True)
    """
    old, recent = entries[:-RECENT], entries[-RECENT:]
    others = [entry for entry in old if entry.kind not in ("reading", "start")][-MOST_OTHERS:]
    readings: list[NumberedRecord] = []
    reached: dict[tuple[str, str], float] = {}
    newest: dict[tuple[str, str], NumberedRecord] = {}  # whoever has long been silent
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
