"""One session of a ledger, written while it runs."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from monitor.errors import Argument, Message, StoreError, UsageError
from monitor.events.declaration import Event, to_json
from monitor.events.reading import Reading
from monitor.events.run import Alert, CarriedEvidence, RunStart
from monitor.files import lock, open_private
from monitor.ledger.database import reason_of, transaction, translated
from monitor.ledger.ledger import ALL_SESSIONS, Account, Ledger
from monitor.ledger.rows import KeptReading, SessionStart
from monitor.log_lines import utc_time
from monitor.phrases import plural
from monitor.protocols import Provenance
from monitor.sinks.jsonl import line_of
from monitor.stream.monitor import Monitor
from monitor.stream.totals import FeatureTotals
from monitor.types import TICKS_PER_SECOND, Notice, Record

READING_SECONDS = 10.0
FLUSH_SECONDS = 1.0
"""Wall seconds between writes. A crash loses about this much."""
MOST_WAITING = 10_000
WAIT_MS = 20
"""Maximum wait for another process during the stream; longer at its end."""
LAST_WAIT_MS = 10_000
_ROWS = ("readings", "alerts")


def check(monitor: Monitor) -> str:
    """Check that a ledger supports this monitor; return the watched speaker's name."""
    if monitor.watch is None:
        raise UsageError(Message("a ledger needs a watched speaker: use ", Argument("watch")))
    if monitor.on_change not in ("ignore", "note"):
        now, note = (Argument("on_change", f'"{action}"') for action in (monitor.on_change, "note"))
        raise UsageError(
            Message("a ledger adds up one voice, ", now, " would restart it: use ", note)
        )
    return monitor.watch


class LedgerSession:
    """Session of a run in a ledger, which stores sketches, alerts and some readings.

    The monitor starts with the evidence of the earlier sessions. The session's number is reserved
    at once. Its row is written with the first speech, so a run that is killed earlier leaves
    nothing. Failed writes do not stop the run. They are retried, and reported at the end. The
    session is part of the run's checkpoints.

    Args:
        ledger: the ledger. It is closed with the session, and if the session is refused.
        monitor: an unused monitor with a watched speaker.
        reading_seconds: stream seconds between stored readings.
        recordings: recordings of the run, if any. None may be in an earlier session of the account.
        account: the sessions to continue, and the listener of this session.
        clock: function that returns wall-clock seconds.

    Attributes:
        carried: evidence that the session continues.
        notices: notices about that evidence, once the session has begun.
        incomplete: whether the ledger lacks part of the session at the end.

    Raises:
        UsageError: no speaker is watched, ``on_change`` restarts the evidence, or a recording is in
            an earlier session.
        StoreError: the ledger cannot be read, or its sketches do not match the features.
    """

    def __init__(
        self,
        ledger: Ledger,
        monitor: Monitor,
        *,
        reading_seconds: float = READING_SECONDS,
        recordings: Iterable[Provenance] = (),
        account: Account = ALL_SESSIONS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every, self._of_account = reading_seconds, account
        self._ledger, self._monitor, self._clock = ledger, monitor, clock
        self._heard = list(recordings)
        self._features = {name: monitor.population.specs[name] for name in monitor.features}
        self._id: int | None = None
        self._begun: tuple[str, ...] = ()  # values of its row
        self._there = False  # whether the row has been written
        self._counts = False  # whether its speech was checked against other sessions
        self._written = dict.fromkeys(_ROWS, 0)
        self._waiting: deque[tuple[str, float, str]] = deque(maxlen=MOST_WAITING)
        self._due = self._saved_to = 0.0
        self._flushed: float | None = None
        self._last: KeptReading | None = None
        self._trouble = ""
        self._settled = self._closed = False
        self._charged: FeatureTotals | None = None
        self._account: int | None = None
        self.notices: list[Notice] = []
        self.incomplete = False
        try:
            with translated(ledger.path):
                self._speaker = ledger.spelling(check(monitor))
            self.carried = ledger.carried(
                self._speaker, self._features, headline=monitor.headline, account=account
            )
            if self.carried.totals is not None:
                monitor.resume_from(self.carried.totals, self.carried.peak_bits)
        except BaseException:
            ledger.close()
            raise

    def begin(self, start: RunStart) -> RunStart:
        """Begin the session, or resume it; return the start with the earlier evidence."""
        self._ledger.refuse_twice(self._speaker, self._heard, self._id, self._of_account)
        recordings = [[h.label, h.hashes, h.start_seconds, h.end_seconds] for h in self._heard]
        settings = SessionStart(
            start.version, start.features, start.speakers, start.ceiling, start.fingerprint,
            start.headline,
        )  # fmt: skip
        lists = map(json.dumps, (start.recordings, recordings, to_json(settings)))
        self._begun = (self._speaker, utc_time(), *lists)
        with translated(self._ledger.path), transaction(self._ledger.connection):
            if self._id is None:
                self._id = self._reserved()
            else:
                self._take_up()
        self._patience(WAIT_MS)
        self.notices += self._describe_carried()
        sessions, speech = self.carried.sessions, self.carried.speech / TICKS_PER_SECOND
        history = []
        if sessions:
            history = self._ledger.history(self._speaker, account=self._of_account)
        return replace(start, carried=CarriedEvidence(sessions, speech, tuple(history)))

    def _describe_carried(self) -> Iterator[Notice]:
        """Yield notices about the sessions that the evidence continues, and those it excludes."""
        carried, kind = self.carried, "carried on"
        if count := carried.sessions:
            speech = carried.speech / TICKS_PER_SECOND
            text = (
                f"the bits continue from {plural(count, 'earlier session')} of "
                f"{self._speaker}{self._of_account}, {speech:.0f} s of speech"
            )
            yield Notice(kind, text, level="info", fields={"sessions": count, "speech": speech})
        if count := carried.left_out:
            what = "session does" if count == 1 else "sessions do"
            features = "+".join(self._features)
            text = f"{count} earlier {what} not count, because {features} was not measured then"
            yield Notice(kind, text, fields={"sessions": count})
        if count := carried.expired:
            text = (
                f"{plural(count, 'session')} of {self._speaker} ended before the period and no "
                "longer count. Listeners may have kept the speech"
            )
            yield Notice(kind, text, fields={"sessions": count})

    def hold(self) -> None:
        """Lock the speaker's account for a budget until the session is closed.

        UsageError if another process has locked the account, or has added to it since this session
        was opened.
        """
        if self._account is not None:
            return
        name, speaker = self._ledger.path.name, self._speaker
        digest = hashlib.sha256(speaker.encode()).hexdigest()[:12]
        path = self._ledger.path.with_name(f"{name}-{digest}.lock")
        self._account = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            lock(self._account)
        except BlockingIOError:
            raise UsageError(
                f"{name}: another run spends the budget of {speaker}. End that run first"
            ) from None
        now = self._ledger.carried(
            speaker, self._features, without=self._id, account=self._of_account
        )
        if now.speech > self.carried.speech:
            raise UsageError(f"{name}: another run has just added speech of {speaker}. Start again")

    def charge(self, totals: FeatureTotals) -> bool:
        """Write these totals instead of the monitor's, before their audio is sent.

        Returns False if the write failed.
        """
        self._charged = totals
        self._flush()
        return self._id is not None and not self._trouble

    @property
    def _own(self) -> FeatureTotals:
        return self._charged or self._monitor.own_totals

    def write(self, event: Event) -> None:
        """Process one event of the run."""
        if isinstance(event, Reading):
            self._last = KeptReading.from_reading(event)
            if event.seconds >= self._due - 1e-6:
                self._due = event.seconds + self._every
                self._wait("readings", self._last)
            if self._flushed is None:  # only once there is a checkpoint to resume from
                self._flushed = self._clock()
            elif self._clock() - self._flushed >= FLUSH_SECONDS:
                self._flush()
        elif isinstance(event, Alert):
            self._wait("alerts", event)

    def drain(self) -> list[str]:
        """Write the remaining rows and mark the session as ended."""
        self._patience(LAST_WAIT_MS)
        self._flush(ended=True)
        self._settled = True
        if not self._trouble:
            return []
        self.incomplete = True
        lost = (0.0 if self._last is None else self._last.seconds) - self._saved_to
        return [
            f"ledger {self._ledger.path.name} lacks {max(lost, 0.0):.0f} s of this session: "
            f"{self._trouble}"
        ]

    def close(self) -> None:
        """Close the ledger. An interrupted session keeps its rows so far, without an end."""
        if self._closed:
            return
        self._closed = True
        if not self._settled:
            self._patience(LAST_WAIT_MS)
            self._flush()
        if self._account is not None:
            os.close(self._account)
        self._ledger.close()

    def state(self) -> Record:
        """Return the state for a checkpoint, as JSON values."""
        return {
            "session": self._id,
            "there": self._there,
            "due": self._due,
            "last": None if self._last is None else to_json(self._last),
            "written": dict(self._written),
            "waiting": list(self._waiting),
        }

    def restore(self, state: Record) -> None:
        """Continue the session of a ``state``. The monitor's state contains the totals."""
        if state["session"] is None:
            raise self._forgotten()
        self._id, self._due, last = int(state["session"]), float(state["due"]), state["last"]
        self._last = None if last is None else KeptReading.from_record(last)
        self._there = bool(state.get("there", True))
        self._written = {table: int(state["written"][table]) for table in _ROWS}
        self._waiting.extend((table, seconds, row) for table, seconds, row in state["waiting"])
        self.carried = self._ledger.carried(
            self._speaker, self._features, self._id, headline=self._monitor.headline,
            account=self._of_account,
        )  # fmt: skip

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
            "INSERT INTO sessions (id, speaker, started, recordings, heard, start, listener) "
            "VALUES (?, (SELECT id FROM speakers WHERE name = ?), ?, ?, ?, ?, ?)",
            (self._id, *self._begun, self._of_account.listener),
        )

    def _take_up(self) -> None:
        """Delete rows written after the checkpoint, which contains or will repeat them."""
        connection = self._ledger.connection
        row = connection.execute("SELECT 1 FROM sessions WHERE id = ?", (self._id,)).fetchone()
        if row is None and self._there:
            raise self._forgotten()
        self._there = row is not None
        self._drop_uncounted()

    def _drop_uncounted(self) -> None:
        """Delete the last reading if it is not due, and what followed the checkpoint."""
        for table, count in self._written.items():
            query = f"SELECT rowid FROM {table} WHERE session = ? ORDER BY seconds, rowid LIMIT ?"
            self._ledger.connection.execute(
                f"DELETE FROM {table} WHERE session = ? AND rowid NOT IN ({query})",
                (self._id, self._id, count),
            )

    def _forgotten(self) -> StoreError:
        name = self._ledger.path.name
        replace = Argument("replace", "True")
        return StoreError(
            Message(f"{name}: this run's session was forgotten. Use ", replace, " to start again")
        )  # fmt: skip

    def _wait(self, table: str, event: KeptReading | Alert) -> None:
        self._waiting.append((table, event.seconds, self._line(event)))

    def _line(self, event: KeptReading | Alert) -> str:
        return line_of(replace(event, time=utc_time()).record()).decode().rstrip()

    def _flush(self, *, ended: bool = False) -> None:
        """Write the waiting rows and the sketches, all or nothing; keep the reason of a failure."""
        is_empty = self._last is None and self._charged is None
        if self._id is None or not self._begun or (is_empty and not ended):
            return
        self._flushed, had_row = self._clock(), self._there
        try:
            with transaction(self._ledger.connection):
                if not self._counts and self._own.speech:
                    twice = self._ledger.heard_before(
                        self._speaker, self._heard, self._id, self._of_account
                    )
                    if twice is not None:  # another run has added it meanwhile
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
            self._trouble = "this session was forgotten while it ran"
        except sqlite3.Error as error:
            self._there, self._trouble = had_row, f"the file {reason_of(error)}"
        else:
            for table, *_ in self._waiting:
                self._written[table] += 1
            self._waiting.clear()
            self._trouble = ""
            self._saved_to = 0.0 if self._last is None else self._last.seconds

    def _store(self, ended: bool) -> None:
        connection, last, totals = self._ledger.connection, self._last, self._own
        rows = list(self._waiting)
        if last is not None and last.seconds > self._due - self._every:  # until the next is written
            rows.append(("readings", last.seconds, self._line(last)))
        self._drop_uncounted()
        for table, seconds, record in rows:
            connection.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", (self._id, seconds, record))
        if last is not None:
            figures = last.seconds, last.bits, last.bits_low, last.bits_high, last.peak_bits
            connection.execute(
                "UPDATE sessions SET seconds = ?, bits = ?, bits_low = ?, bits_high = ?, "
                "peak_bits = ? WHERE id = ?",
                (*figures, self._id),
            )
        if last is not None or self._charged is not None:
            connection.execute(
                "UPDATE sessions SET speech = ? WHERE id = ?", (totals.speech, self._id)
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
                        totals.frames[name],
                        totals.usable[name],
                        totals.totals[name].astype(spec.kind.stored).tobytes(),
                        spec.network,
                    ),
                )
        if ended:
            connection.execute("UPDATE sessions SET ended = ? WHERE id = ?", (utc_time(), self._id))

    def _patience(self, milliseconds: int) -> None:
        self._ledger.connection.execute(f"PRAGMA busy_timeout = {milliseconds}").fetchone()
