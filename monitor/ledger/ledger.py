"""Sessions of speakers in a ledger: read, added up, exported and forgotten."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import add
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from monitor.errors import Argument, Message, StoreError, UsageError
from monitor.events.declaration import Event, declared, key
from monitor.events.run import HistoryPoint
from monitor.kinds import FeatureSpec, unlike_networks
from monitor.lazy import Managed
from monitor.ledger.database import open_database, reason_of, transaction, translated
from monitor.ledger.rows import (
    ANYONE,
    ProcessedInterval,
    SessionRow,
    event_of_row,
    session_of_row,
    total_of,
)
from monitor.protocols import Provenance
from monitor.safe_text import find_name
from monitor.stream.totals import FeatureTotals
from monitor.types import TICKS_PER_SECOND, Record

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
    """

    listener: str = ANYONE  # receiver of the speech
    # only sessions that ended within this time count; None counts all. A listener may still have
    # audio from before this period.
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


ALL_SESSIONS = Account()


@dataclass(frozen=True, slots=True)
class Carried:
    """Sum of the earlier sessions that a new session continues."""

    totals: FeatureTotals | None  # sum over the sessions that count; None without any
    sessions: int  # number of sessions that count
    left_out: int  # number of sessions that do not count because they lack a feature
    peak_bits: float  # largest headline of the sessions with the same kind of headline
    expired: int = 0  # number of the listener's sessions that ended before the period

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
        account: Account = ALL_SESSIONS,
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
        self, speaker: str, maximum: int = HISTORY_POINTS, account: Account = ALL_SESSIONS
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
        account: Account = ALL_SESSIONS,
    ) -> None:  # fmt: skip
        """Raise UsageError for audio in an earlier session, because it would count twice."""
        with translated(self.path):
            twice = self.heard_before(speaker, parts, session_id, account)
        if twice is not None:
            raise UsageError(twice)

    def heard_before(
        self, speaker: str, parts: Iterable[Provenance], session_id: int | None = None,
        account: Account = ALL_SESSIONS,
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
            busy, reason = True, f"the file {reason_of(error)}"
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
