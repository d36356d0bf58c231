"""Ledgers: reading them, forgetting speakers or sessions, and writing running sessions."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import add
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from monitor.errors import Argument, Message, StoreError, UsageError
from monitor.events.declaration import Event, declared, key, to_json
from monitor.events.reading import Reading
from monitor.events.run import Alert, CarriedEvidence, HistoryPoint, RunStart
from monitor.files import lock, open_private
from monitor.kinds import FeatureSpec, unlike_networks
from monitor.lazy import Managed
from monitor.ledger.database import (
    ANYONE,
    KeptReading,
    ProcessedInterval,
    SessionRow,
    SessionStart,
    event_of_row,
    open_database,
    reason_of,
    session_of_row,
    total_of,
    transaction,
    translated,
)
from monitor.phrases import plural
from monitor.protocols import Provenance
from monitor.safe_text import find_name
from monitor.sinks.jsonl import line_of
from monitor.stream.monitor import Monitor
from monitor.stream.totals import FeatureTotals
from monitor.types import TICKS_PER_SECOND, Notice, Record

HISTORY_POINTS = 300
_FIGURES = tuple(
    f"{name}bits{end}" for name in ("", "evidence_", "closed_set_") for end in ("", "_low", "_high")
)


@declared(kw_only=True)
class SessionSummary(Event):
    """Summary of one session of a speaker.

    Attributes:
        ended: time of the end; None while the session runs, or if it was interrupted.
        seconds, speech: of this session only.
        bits, evidence_bits, closed_set_bits: figures of all sessions up to this one, with limits,
            at the last stored reading.
        readings, alerts: number of readings and of alerts.
    """

    type: ClassVar[Literal["session"]] = "session"
    session: int = key("count")
    speaker: str = key()
    started: str = key()
    ended: str | None = key()
    recordings: tuple[str, ...] = key()
    features: tuple[str, ...] = key()
    seconds: float = key("seconds")
    speech: float = key("seconds")
    peak_bits: float | None = key("bits")
    headline: str | None = key()
    bits: float | None = key("bits")
    bits_low: float | None = key("bits")
    bits_high: float | None = key("bits")
    evidence_bits: float | None = key("bits")
    evidence_bits_low: float | None = key("bits")
    evidence_bits_high: float | None = key("bits")
    closed_set_bits: float | None = key("bits")
    closed_set_bits_low: float | None = key("bits")
    closed_set_bits_high: float | None = key("bits")
    readings: int = key("count")
    alerts: int = key("count")
    listener: str = key(default=ANYONE)


@dataclass(frozen=True, slots=True)
class Account:
    """Selection of a speaker's sessions that count together, and toward one budget.

    Sessions of all listeners count for ``"anyone"``, since listeners might share their audio.
    Sessions of ``"anyone"`` count for each listener.

    Attributes:
        listener: receiver of the speech.
        period_seconds: only sessions that ended within this time count; None counts all. A listener
            may still have audio from before this period.
    """

    listener: str = ANYONE
    period_seconds: float | None = None

    def __str__(self) -> str:
        with_whom = "" if self.listener == ANYONE else f" with {self.listener}"
        if self.period_seconds is None:
            return with_whom
        return f"{with_whom} in the last {self.period_seconds / 86_400:.3g} days"

    def takes(self, session: SessionRow) -> bool:
        """Return whether a session counts for this listener, in any period."""
        return ANYONE in (self.listener, session.listener) or self.listener == session.listener

    def counts(self, session: SessionRow) -> bool:
        """Return whether a session counts for this listener and period."""
        if not self.takes(session):
            return False
        if self.period_seconds is None:
            return True
        began = datetime.fromisoformat(session.started) + timedelta(seconds=session.seconds)
        end = began if session.ended is None else datetime.fromisoformat(session.ended)
        return (datetime.now(UTC) - end).total_seconds() < self.period_seconds


_ALL = Account()


@dataclass(frozen=True, slots=True)
class Carried:
    """Sum of the earlier sessions that a new session continues.

    Attributes:
        totals: sum over the sessions that count; None without any.
        sessions: number of sessions that count.
        left_out: number of sessions that do not count because they lack a feature.
        expired: number of the listener's sessions that ended before the period.
        peak_bits: largest headline of the sessions with the same kind of headline.
    """

    totals: FeatureTotals | None
    sessions: int
    left_out: int
    peak_bits: float
    expired: int = 0

    @property
    def speech(self) -> int:
        """Speech in ticks."""
        return 0 if self.totals is None else self.totals.speech


class Ledger(Managed):
    """Disclosure of each watched speaker, session by session.

    Each session has its own sketches. A speaker's disclosure is computed from their sum, so it does
    not depend on the order or number of the writing processes. Sketches are biometric data, like
    templates. No audio is stored. The file is a SQLite database in WAL mode, 0600.

    Args:
        path: the file.
        create: create the file if it is missing.
        write: whether to allow writing. False works on a read-only file system.

    Raises:
        StoreError: the file cannot be opened, or is not a ledger.
        SchemaError: a newer version wrote it.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, create: bool = True, write: bool = True
    ) -> None:
        self.path = Path(path)
        self.connection = open_database(self.path, create=create, write=write)
        self.connection.row_factory = sqlite3.Row

    def close(self) -> None:
        """Close the file. The last process to do so merges the WAL into it."""
        self.connection.close()

    def carried(
        self,
        speaker: str,
        features: Mapping[str, FeatureSpec],
        before: int | None = None,
        *,
        without: int | None = None,
        headline: str | None = None,
        account: Account = _ALL,
    ) -> Carried:
        """Add up the sessions that a speaker's next session continues, for these features.

        If the session number ``before`` is given, only earlier sessions count. The session
        ``without`` never counts.
        """
        parts, left_out, peak, expired = [], 0, 0.0, 0
        with translated(self.path):
            for session in self._rows(speaker):
                if not session.speech or (before is not None and session.id >= before):
                    continue
                if session.id == without:
                    continue
                if not account.counts(session):
                    expired += account.takes(session)
                    continue
                rows = {
                    row["feature"]: row
                    for row in self.connection.execute(
                        "SELECT * FROM sketches WHERE session = ?", (session.id,)
                    )
                }
                if not set(features) <= set(rows):
                    left_out += 1
                    continue
                sketches = {name: rows[name] for name in features}
                parts.append(self._heard_in(session, sketches, features))
                if headline in (None, session.start.headline or "closed-set"):
                    peak = max(peak, session.peak_bits or 0.0)
        total = reduce(add, parts) if parts else None
        return Carried(total, len(parts), left_out, peak, expired)

    def sessions(self, speaker: str | None = None) -> list[SessionSummary]:
        """List the sessions of one or all speakers, oldest first."""
        count = "(SELECT count(*) FROM {} t WHERE t.session = s.id) AS {}"
        with translated(self.path):
            rows = self._rows(speaker, *(count.format(t, t) for t in ("readings", "alerts")))
            return [
                SessionSummary(
                    session=row.id,
                    speaker=row.name,
                    started=row.started,
                    ended=row.ended,
                    recordings=row.recordings,
                    features=row.start.features,
                    seconds=row.seconds,
                    speech=row.speech / TICKS_PER_SECOND,
                    peak_bits=row.peak_bits,
                    **self._figures_of(row.id),
                    readings=row.readings,
                    alerts=row.alerts,
                    listener=row.listener,
                )
                for row in rows
            ]

    def history(
        self, speaker: str, maximum: int = HISTORY_POINTS, account: Account = _ALL
    ) -> list[HistoryPoint]:
        """List a speaker's stored readings over all sessions, oldest first.

        The list is thinned evenly to at most ``maximum`` readings, with the last one.
        """
        speaker = self.spelling(speaker)
        query = """
            SELECT r.session, r.record FROM readings r JOIN sessions s ON s.id = r.session
            JOIN speakers p ON p.id = s.speaker WHERE p.name = ? ORDER BY r.session, r.seconds
        """
        with translated(self.path):
            counted = {row.id for row in self._rows(speaker) if account.counts(row)}
            rows = self.connection.execute(query, (speaker,)).fetchall()
            rows = [row for row in rows if row["session"] in counted]
        every = max(1, -(-len(rows) // max(1, maximum)))
        points = []
        for row in rows[::-1][::every][::-1]:
            event = event_of_row(self.path.name, row["session"], row["record"])
            names = ("time", "seconds", "speech", *_FIGURES)
            figures: Record = {name: getattr(event, name, None) for name in names}
            points.append(HistoryPoint(session=row["session"], **figures))
        return points

    def export(self, speaker: str | None = None) -> Iterator[Record]:
        """Yield the whole content: the record, sketches, readings and alerts of each session.

        Yields:
            JSON values. ``type`` is ``session``, ``sketch``, ``reading`` or ``alert``. The last
                three types also have the number of their ``session``.
        """
        for session in self.sessions(speaker):
            number = session.session
            yield session.record()
            with translated(self.path):
                of = "WHERE session = ?"
                for row in self.connection.execute(f"SELECT * FROM sketches {of}", (number,)):
                    total = total_of(self.path.name, row).tolist()
                    plain = {k: row[k] for k in row.keys() if k != "total"}  # noqa: SIM118
                    yield {"type": "sketch", **plain, "total": total}
                for table in ("readings", "alerts"):
                    rows = self.connection.execute(
                        f"SELECT record FROM {table} {of} ORDER BY seconds, rowid", (number,)
                    ).fetchall()
                    for row in rows:
                        event = event_of_row(self.path.name, number, row["record"])
                        yield {**event.record(), "session": number}

    def refuse_twice(
        self, speaker: str, parts: Iterable[Provenance], session_id: int | None = None,
        account: Account = _ALL,
    ) -> None:  # fmt: skip
        """Raise UsageError for audio in an earlier session, because it would count twice."""
        with translated(self.path):
            twice = self.heard_before(speaker, parts, session_id, account)
        if twice is not None:
            raise UsageError(twice)

    def heard_before(
        self, speaker: str, parts: Iterable[Provenance], session_id: int | None = None,
        account: Account = _ALL,
    ) -> str | None:  # fmt: skip
        """Return the error of ``refuse_twice``, or None."""
        parts = list(parts)
        for row in self._rows(speaker):
            if row.id == session_id or not row.speech or not account.counts(row):
                continue
            for earlier in row.heard:
                for recording in parts:
                    if set(earlier.hashes) & set(recording.hashes) and _overlap(earlier, recording):
                        return Message(
                            f"{recording.label}: would count twice, since session {row.id} of "
                            f"{self.path.name} includes it as {earlier.label}. Leave ",
                            Argument("ledger", python="the ledger"),
                            " out, or first run monitor ledger forget "
                            f"{shlex.join((self.path.name, speaker))} --session {row.id}",
                        )
        return None

    def forget(self, speaker: str, session: int | None = None) -> int:
        """Remove a speaker or one session, and overwrite the data in the files.

        Rows are overwritten (secure_delete), the file is rebuilt (VACUUM) and the WAL is emptied.
        This cannot remove older versions of the file on the disk or in a backup.

        Returns:
            number of sessions removed.

        Raises:
            StoreError: the speaker or session does not exist. Also if another process is reading.
                The rows are then deleted, but old pages remain in the WAL.
        """
        speaker = self.spelling(speaker)
        sessions = [row.id for row in self._rows(speaker) if session in (None, row.id)]
        rows = self.connection.execute("SELECT id FROM speakers WHERE name = ?", (speaker,))
        row = rows.fetchone()
        if row is None or (session is not None and not sessions):
            what = "no speaker is" if row is None else f"{speaker} has no session {session}"
            called = f" called {speaker}" if row is None else ""
            raise StoreError(f"{self.path.name}: {what}{called}. List all with monitor ledger show")
        with translated(self.path), transaction(self.connection):
            for number in sessions:
                self.connection.execute("DELETE FROM sessions WHERE id = ?", (number,))
            if session is None or not self._rows(speaker):
                self.connection.execute("DELETE FROM speakers WHERE id = ?", (row["id"],))
        self.scrub()
        return len(sessions)

    def scrub(self) -> None:
        """Rebuild the file and empty the WAL, so that no old pages remain."""
        reason = "another process is using it"
        try:
            self.connection.execute("VACUUM")
            busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as error:
            busy, reason = True, reason_of(error)
        if busy:
            name = self.path.name
            raise StoreError(
                f"{name}: rows deleted, but old pages may remain in {name} and {name}-wal, because "
                f"{reason}. Run monitor ledger scrub {name} afterwards"
            )

    def spelling(self, speaker: str) -> str:
        """Return a name in the ledger's spelling. Unknown names are returned unchanged."""
        names = [row["name"] for row in self.connection.execute("SELECT name FROM speakers")]
        return find_name(speaker, names) or speaker

    def _rows(self, speaker: str | None = None, *more: str) -> list[SessionRow]:
        columns = ", ".join(("s.*", "p.name", *more))
        query = f"SELECT {columns} FROM sessions s JOIN speakers p ON p.id = s.speaker"
        if speaker is None:
            rows = self.connection.execute(f"{query} ORDER BY s.id")
        else:
            name = self.spelling(speaker)
            rows = self.connection.execute(f"{query} WHERE p.name = ? ORDER BY s.id", (name,))
        return [session_of_row(self.path.name, row) for row in rows]

    def _figures_of(self, session: int) -> Record:
        """Return the figures of a session's last reading that is kept."""
        row = self.connection.execute(
            "SELECT record FROM readings WHERE session = ? "
            "ORDER BY seconds DESC, rowid DESC LIMIT 1",
            (session,),
        ).fetchone()
        event = None if row is None else event_of_row(self.path.name, session, row["record"])
        return {name: getattr(event, name, None) for name in ("headline", *_FIGURES)}

    def _heard_in(
        self,
        session: SessionRow,
        rows: Mapping[str, sqlite3.Row],
        features: Mapping[str, FeatureSpec],
    ) -> FeatureTotals:
        for name, row in rows.items():
            spec = features[name]
            if (row["kind"], row["size"]) != (spec.kind.name, spec.size) or not np.isclose(
                row["frame_seconds"], spec.frame_seconds
            ):
                raise StoreError(
                    f"{self.path.name}: session {session.id} has {name} as {row['kind']} of size "
                    f"{row['size']}, but the population as {spec}. They cannot be added. Use "
                    "another ledger"
                )
            if row["network"] != spec.network:
                where = f"session {session.id} in {self.path.name}"
                what = unlike_networks(name, where, row["network"], "the population", spec.network)
                raise StoreError(f"{what}, and cannot be added. Use another ledger")
        return FeatureTotals(
            session.speech,
            {name: total_of(self.path.name, row) for name, row in rows.items()},
            {name: row["frames"] for name, row in rows.items()},
            {name: row["usable"] for name, row in rows.items()},
        )


def _overlap(first: ProcessedInterval, second: Provenance) -> bool:
    (a, b), (c, d) = (
        (interval.start_seconds or 0.0, interval.end_seconds) for interval in (first, second)
    )
    return (d is None or a < d) and (b is None or c < b)


# --- Write one session into the ledger while it runs.

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
        account: Account = _ALL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every, self._of_account = reading_seconds, account
        self._ledger, self._monitor, self._clock = ledger, monitor, clock
        self._heard = list(recordings)
        self._features = {name: monitor.population.specs[name] for name in monitor.features}
        self._id: int | None = None
        self._begun: tuple[str, ...] = ()  # the values of its row
        self._there = False  # whether the row has been written
        self._counts = False  # whether it has new speech that no other session includes
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
        """Begin the session, or resume it.

        Returns:
            the start with the earlier evidence, which `notices` report.
        """
        self._ledger.refuse_twice(self._speaker, self._heard, self._id, self._of_account)
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
        speech = carried.speech / TICKS_PER_SECOND
        if carried.sessions:
            s = "" if carried.sessions == 1 else "s"
            self.notices.append(
                Notice(
                    "carried on",
                    f"the bits continue from {carried.sessions} earlier session{s} of "
                    f"{self._speaker}{self._of_account}, {speech:.0f} s of speech",
                    level="info",
                    fields={"sessions": carried.sessions, "speech": speech},
                )
            )
        if carried.left_out:
            what = "session does" if carried.left_out == 1 else "sessions do"
            self.notices.append(
                Notice(
                    "carried on",
                    f"{carried.left_out} earlier {what} not count, because "
                    f"{'+'.join(self._features)} was not measured then",
                    fields={"sessions": carried.left_out},
                )
            )
        if carried.expired:
            self.notices.append(
                Notice(
                    "carried on",
                    f"{plural(carried.expired, 'session')} of {self._speaker} ended before the "
                    "period and no longer count. Listeners may have kept the speech",
                    fields={"sessions": carried.expired},
                )
            )
        history = []
        if carried.sessions:
            history = self._ledger.history(self._speaker, account=self._of_account)
        brought = CarriedEvidence(carried.sessions, speech, tuple(history))
        return replace(start, carried=brought)

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
            if self._flushed is None:  # not before there is a checkpoint to resume from
                self._flushed = self._clock()
            elif self._clock() - self._flushed >= FLUSH_SECONDS:
                self._flush()
        elif isinstance(event, Alert):
            self._wait("alerts", event)

    def drain(self) -> list[str]:
        """Write the remaining rows and mark the session as ended."""
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
            Message(f"{name}: this run's session was forgotten. Use ", replace, " to start again")
        )  # fmt: skip

    def _wait(self, table: str, event: KeptReading | Alert) -> None:
        text = line_of(replace(event, time=self._time()).record()).decode().rstrip()
        self._waiting.append((table, event.seconds, text))

    def _flush(self, *, ended: bool = False) -> None:
        """Write what waits and the sketches, all or nothing; trouble is kept for later."""
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
            self._trouble = "this session was forgotten while it ran"
        except sqlite3.Error as error:
            self._there, self._trouble = had_row, reason_of(error)
        else:
            for table, *_ in self._waiting:
                self._written[table] += 1
            self._waiting.clear()
            self._trouble = ""
            self._saved_to = 0.0 if self._last is None else self._last.seconds

    def _store(self, ended: bool) -> None:
        connection, last, totals = self._ledger.connection, self._last, self._own
        for table, seconds, record in self._waiting:
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
            connection.execute(
                "UPDATE sessions SET ended = ? WHERE id = ?", (self._time(), self._id)
            )

    def _patience(self, milliseconds: int) -> None:
        self._ledger.connection.execute(f"PRAGMA busy_timeout = {milliseconds}").fetchone()

    def _time(self) -> str:
        return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
