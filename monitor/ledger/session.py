"""Writes one session into the ledger while it goes on."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime

from monitor.errors import Argument, Message, StoreError, UsageError
from monitor.events.declaration import Event, to_json
from monitor.events.reading import Reading
from monitor.events.run import Alert, CarriedEvidence, RunStart
from monitor.ledger.database import (
    KeptReading,
    SessionStart,
    reason_of,
    transaction,
    translated,
)
from monitor.ledger.ledger import Ledger
from monitor.protocols import Provenance
from monitor.sinks.jsonl import line_of
from monitor.stream.monitor import Monitor
from monitor.types import Notice, Record

READING_SECONDS = 10.0
FLUSH_SECONDS = 1.0
"""Wall seconds between writes: a crash loses about that much."""
MOST_WAITING = 10_000
WAIT_MS = 20
"""For another process, while the stream goes on; at its end there is more patience."""
LAST_WAIT_MS = 10_000
_ROWS = ("readings", "alerts")


def check(monitor: Monitor) -> str:
    """Check that a ledger can add up what a monitor watches, and return the speaker."""
    if monitor.watch is None:
        raise UsageError(
            Message("a ledger remembers one speaker: name them with ", Argument("watch"))
        )
    if monitor.on_change not in ("ignore", "note"):
        now, note = (Argument("on_change", f'"{action}"') for action in (monitor.on_change, "note"))
        raise UsageError(
            Message("a ledger adds up one voice, ", now, " would begin it afresh: use ", note)
        )
    return monitor.watch


class LedgerSession:
    """Session of a run in a ledger: writes its sketches, and some of its readings and alerts.

    Makes the monitor begin with what was heard in the earlier sessions. Its number is reserved at
    once; its row is written with the first of what it hears, so that nothing is left of a run that
    is killed before. It is an action of the run
    (what cannot be written stops nothing, is tried again, and is told at the end) and a part of
    its checkpoints.

    Args:
        ledger: closed with the session, and where there is to be none.
        monitor: fresh, watching somebody.
        reading_seconds: stream seconds from one kept reading to the next.
        recordings: those of the run, where there are any: none may have been measured before.
        clock: wall seconds.

    Attributes:
        carried: what the session goes on from.
        notices: what is to be said of that, once it has begun.
        incomplete: True where something could not be written in the end.

    Raises:
        UsageError: nobody is watched, the monitor begins afresh at a change of speaker, or a
            recording was heard in an earlier session.
        StoreError: the ledger cannot be read, or its sketches do not fit.
    """

    def __init__(
        self,
        ledger: Ledger,
        monitor: Monitor,
        *,
        reading_seconds: float = READING_SECONDS,
        recordings: Iterable[Provenance] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every = reading_seconds
        self._ledger, self._monitor, self._clock = ledger, monitor, clock
        self._heard = list(recordings)
        self._features = {name: monitor.population.specs[name] for name in monitor.features}
        self._id: int | None = None
        self._begun: tuple[str, ...] = ()  # the values of its row
        self._there = False  # whether the row has been written
        self._counts = False  # whether it has brought speech, and nobody else the same
        self._written = dict.fromkeys(_ROWS, 0)
        self._waiting: deque[tuple[str, float, str]] = deque(maxlen=MOST_WAITING)
        self._due = self._saved_to = 0.0
        self._flushed: float | None = None
        self._last: KeptReading | None = None
        self._trouble = ""
        self._settled = self._closed = False
        self.notices: list[Notice] = []
        self.incomplete = False
        try:
            self._speaker = check(monitor)
            self.carried = ledger.carried(self._speaker, self._features, headline=monitor.headline)
            if self.carried.totals is not None:
                monitor.begin_with(self.carried.totals, self.carried.peak_bits)
        except BaseException:
            ledger.close()
            raise

    def begin(self, start: RunStart) -> RunStart:
        """Begin the session, or take it up again.

        Returns:
            the start with what is carried on added to it; `notices` say it.
        """
        self._ledger.refuse_twice(self._speaker, self._heard, self._id)
        recordings = [[h.label, h.hashes, h.start_seconds, h.end_seconds] for h in self._heard]
        settings = SessionStart(
            start.version, start.features, start.speakers, start.ceiling, start.fingerprint,
            start.headline,
        )  # fmt: skip
        lists = map(json.dumps, (start.recordings, recordings, to_json(settings)))
        self._begun = (self._speaker, self._time(), *lists)
        with translated(self._ledger.path), transaction(self._ledger.connection):
            if self._id is None:
                self._id = self._reserved()
            else:
                self._take_up()
        self._patience(WAIT_MS)
        carried = self.carried
        speech = carried.totals.speech_seconds if carried.totals is not None else 0.0
        if carried.sessions:
            s = "" if carried.sessions == 1 else "s"
            self.notices.append(
                Notice(
                    "carried on",
                    f"the bits go on from {carried.sessions} earlier session{s} of "
                    f"{self._speaker}, {speech:.0f} s of speech",
                    level="info",
                    fields={"sessions": carried.sessions, "speech": speech},
                )
            )
        if carried.left_out:
            what = "session does" if carried.left_out == 1 else "sessions do"
            self.notices.append(
                Notice(
                    "carried on",
                    f"{carried.left_out} earlier {what} not count, since "
                    f"{'+'.join(self._features)} was not listened for in them",
                    fields={"sessions": carried.left_out},
                )
            )
        history = self._ledger.history(self._speaker) if carried.sessions else []
        brought = CarriedEvidence(carried.sessions, speech, tuple(history))
        return replace(start, carried=brought)

    def write(self, event: Event) -> None:
        """Take one event of the run."""
        if isinstance(event, Reading):
            self._last = KeptReading.of(event)
            if event.seconds >= self._due - 1e-6:
                self._due = event.seconds + self._every
                self._wait("readings", self._last)
            if self._flushed is None:  # not before there is a checkpoint to resume from
                self._flushed = self._clock()
            elif self._clock() - self._flushed >= FLUSH_SECONDS:
                self._flush()
        elif isinstance(event, Alert):
            self._wait("alerts", event)

    def drain(self) -> list[str]:
        """Write the rest, and that the session has ended."""
        if self._last is not None and self._last.seconds > self._due - self._every:
            self._wait("readings", self._last)
        self._patience(LAST_WAIT_MS)
        self._flush(ended=True)
        self._settled = True
        if not self._trouble:
            return []
        self.incomplete = True
        lost = (0.0 if self._last is None else self._last.seconds) - self._saved_to
        return [
            f"ledger {self._ledger.path.name}: {self._trouble}; "
            f"{max(lost, 0.0):.0f} s of this session are not in it"
        ]

    def close(self) -> None:
        """Close the ledger; a session that was cut off stays open in it, with all so far."""
        if self._closed:
            return
        self._closed = True
        if not self._settled:
            self._patience(LAST_WAIT_MS)
            self._flush()
        self._ledger.close()

    def state(self) -> Record:
        """Return what a checkpoint keeps; JSON-able."""
        return {
            "session": self._id,
            "there": self._there,
            "due": self._due,
            "last": None if self._last is None else to_json(self._last),
            "written": dict(self._written),
            "waiting": list(self._waiting),
        }

    def restore(self, state: Record) -> None:
        """Continue the session of a ``state``; the monitor's own brings its totals."""
        if state["session"] is None:
            raise self._forgotten()
        self._id, self._due, last = int(state["session"]), float(state["due"]), state["last"]
        self._last = None if last is None else KeptReading.from_record(last)
        self._there = bool(state.get("there", True))
        self._written = {table: int(state["written"][table]) for table in _ROWS}
        self._waiting.extend((table, seconds, row) for table, seconds, row in state["waiting"])
        self.carried = self._ledger.carried(
            self._speaker, self._features, self._id, headline=self._monitor.headline
        )

    def _reserved(self) -> int:
        """Reserve the number of a session that has no row yet."""
        connection, name = self._ledger.connection, "name = 'sessions'"
        connection.execute(
            "INSERT INTO sqlite_sequence (name, seq) SELECT 'sessions', 0 "
            f"WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE {name})"
        )
        connection.execute(f"UPDATE sqlite_sequence SET seq = seq + 1 WHERE {name}")
        row = connection.execute(f"SELECT seq FROM sqlite_sequence WHERE {name}").fetchone()
        return int(row[0])

    def _insert(self) -> None:
        connection = self._ledger.connection
        connection.execute("INSERT OR IGNORE INTO speakers (name) VALUES (?)", self._begun[:1])
        connection.execute(
            "INSERT INTO sessions (id, speaker, started, recordings, heard, start) "
            "VALUES (?, (SELECT id FROM speakers WHERE name = ?), ?, ?, ?, ?)",
            (self._id, *self._begun),
        )

    def _take_up(self) -> None:
        """Delete what was written after the checkpoint: it waits there, or will come again."""
        connection = self._ledger.connection
        row = connection.execute("SELECT 1 FROM sessions WHERE id = ?", (self._id,)).fetchone()
        if row is None and self._there:
            raise self._forgotten()
        self._there = row is not None
        for table, count in self._written.items():
            query = f"SELECT rowid FROM {table} WHERE session = ? ORDER BY seconds, rowid LIMIT ?"
            connection.execute(
                f"DELETE FROM {table} WHERE session = ? AND rowid NOT IN ({query})",
                (self._id, self._id, count),
            )

    def _forgotten(self) -> StoreError:
        name = self._ledger.path.name
        replace = Argument("replace", "True")
        return StoreError(
            Message(f"{name}: this run's session was forgotten; run with ", replace,
                    " to start anew")
        )  # fmt: skip

    def _wait(self, table: str, event: KeptReading | Alert) -> None:
        text = line_of(replace(event, time=self._time()).record()).decode().rstrip()
        self._waiting.append((table, event.seconds, text))

    def _flush(self, *, ended: bool = False) -> None:
        """Write what waits and the sketches, all or nothing; trouble is kept for later."""
        if self._id is None or not self._begun or (self._last is None and not ended):
            return
        self._flushed, had_row = self._clock(), self._there
        try:
            with transaction(self._ledger.connection):
                if not self._counts and self._monitor.own_totals.speech:
                    twice = self._ledger.heard_before(self._speaker, self._heard, self._id)
                    if twice is not None:  # another run was quicker
                        self._id, self._trouble = None, twice
                        self._waiting.clear()
                        return
                    self._counts = True
                if not self._there:
                    self._insert()
                    self._there = True
                self._store(ended)
        except sqlite3.IntegrityError:
            self._id = None
            self._waiting.clear()
            self._trouble = "this session was forgotten while it went on"
        except sqlite3.Error as error:
            self._there, self._trouble = had_row, reason_of(error)
        else:
            for table, *_ in self._waiting:
                self._written[table] += 1
            self._waiting.clear()
            self._trouble = ""
            self._saved_to = 0.0 if self._last is None else self._last.seconds

    def _store(self, ended: bool) -> None:
        connection, last, own = self._ledger.connection, self._last, self._monitor.own_totals
        for table, seconds, record in self._waiting:
            connection.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", (self._id, seconds, record))
        if last is not None:
            figures = last.seconds, last.bits, last.bits_low, last.bits_high, last.peak_bits
            connection.execute(
                "UPDATE sessions SET seconds = ?, bits = ?, bits_low = ?, bits_high = ?, "
                "peak_bits = ?, speech = ? WHERE id = ?",
                (*figures, own.speech, self._id),
            )
            for name, spec in self._features.items():
                connection.execute(
                    "INSERT OR REPLACE INTO sketches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        self._id,
                        name,
                        spec.kind.name,
                        spec.size,
                        spec.frame_seconds,
                        own.frames[name],
                        own.usable[name],
                        own.totals[name].astype(spec.kind.stored).tobytes(),
                        spec.network,
                    ),
                )
        if ended:
            connection.execute(
                "UPDATE sessions SET ended = ? WHERE id = ?", (self._time(), self._id)
            )

    def _patience(self, milliseconds: int) -> None:
        self._ledger.connection.execute(f"PRAGMA busy_timeout = {milliseconds}").fetchone()

    def _time(self) -> str:
        return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
