"""Reads a ledger, and forgets what is in it on request."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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
from monitor.ledger.database import (
    HeardPart,
    SessionRow,
    event_of_row,
    open_database,
    reason_of,
    session_of_row,
    total_of,
    transaction,
    translated,
)
from monitor.protocols import Provenance
from monitor.stream.accumulator import FeatureTotals
from monitor.types import TICKS_PER_SECOND, Record

HISTORY_POINTS = 300
_FIGURES = tuple(
    f"{name}bits{end}" for name in ("", "evidence_", "closed_set_") for end in ("", "_low", "_high")
)


@declared(kw_only=True)
class SessionSummary(Event):
    """A session of a speaker.

    Attributes:
        ended: None while it goes on, or where it was cut off.
        seconds, speech: of this session alone.
        bits, evidence_bits, closed_set_bits: with their limits, of all sessions up to then, at the
            last reading that is kept.
        readings, alerts: how many.
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


@dataclass(frozen=True, slots=True)
class Carried:
    """The sums of earlier sessions, which a new one goes on from.

    Attributes:
        totals: the sum over the sessions that count; None where there are none.
        sessions: how many these are.
        left_out: sessions that do not count, since a feature was not listened for in them.
        peak_bits: the largest headline in any of them whose headline was of the same kind.
    """

    totals: FeatureTotals | None
    sessions: int
    left_out: int
    peak_bits: float


class Ledger(Managed):
    """Disclosure of each watched speaker, session by session.

    A session keeps its own sketches: what a speaker has disclosed is their sum, whatever order or
    number of processes wrote them. Sketches are biometric data, as templates are; there is no
    audio. The file is a SQLite database in WAL mode, 0600.

    Args:
        path: the file.
        create: make it where there is none.
        write: False where reading is enough, so that it may lie on a read-only file system.

    Raises:
        StoreError: it cannot be opened, or is something else.
        SchemaError: a newer version wrote it.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, create: bool = True, write: bool = True
    ) -> None:
        self.path = Path(path)
        self.connection = open_database(self.path, create=create, write=write)
        self.connection.row_factory = sqlite3.Row

    def close(self) -> None:
        """Close the file; the last one to do so folds the WAL into it."""
        self.connection.close()

    def carried(
        self,
        speaker: str,
        features: Mapping[str, FeatureSpec],
        before: int | None = None,
        *,
        headline: str | None = None,
    ) -> Carried:
        """Sum the sessions that the next one of a speaker continues, with these features."""
        parts, left_out, peak = [], 0, 0.0
        with translated(self.path):
            for session in self._rows(speaker):
                if not session.speech or (before is not None and session.id >= before):
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
        return Carried(reduce(add, parts) if parts else None, len(parts), left_out, peak)

    def sessions(self, speaker: str | None = None) -> list[SessionSummary]:
        """List the sessions, oldest first."""
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
                )
                for row in rows
            ]

    def history(self, speaker: str, most: int = HISTORY_POINTS) -> list[HistoryPoint]:
        """List the longitudinal curve of a speaker, oldest first, the last reading always in it.

        It is thinned evenly to at most so many readings.
        """
        query = """
            SELECT r.session, r.record FROM readings r JOIN sessions s ON s.id = r.session
            JOIN speakers p ON p.id = s.speaker WHERE p.name = ? ORDER BY r.session, r.seconds
        """
        with translated(self.path):
            rows = self.connection.execute(query, (speaker,)).fetchall()
        every = max(1, -(-len(rows) // max(1, most)))
        points = []
        for row in rows[::-1][::every][::-1]:
            kept = event_of_row(self.path.name, row["session"], row["record"])
            names = ("time", "seconds", "speech", *_FIGURES)
            figures: Record = {name: getattr(kept, name, None) for name in names}
            points.append(HistoryPoint(session=row["session"], **figures))
        return points

    def export(self, speaker: str | None = None) -> Iterator[Record]:
        """Yield everything there is: by session, a record of it, its sketches, readings and alerts.

        Yields:
            plain values, ``type`` being ``session``, ``sketch``, ``reading`` or ``alert``; the
            three latter say of which ``session``.
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
        self, speaker: str, parts: Iterable[Provenance], own: int | None = None
    ) -> None:
        """Refuse audio that an earlier session heard: it would count twice."""
        with translated(self.path):
            twice = self.heard_before(speaker, parts, own)
        if twice is not None:
            raise UsageError(twice)

    def heard_before(
        self, speaker: str, parts: Iterable[Provenance], own: int | None = None
    ) -> str | None:
        """Return the error of ``refuse_twice``, or None."""
        parts = list(parts)
        for row in self._rows(speaker):
            if row.id == own or not row.speech:
                continue
            for heard in row.heard:
                for part in parts:
                    if set(heard.hashes) & set(part.hashes) and _overlap(heard, part):
                        return Message(
                            f"{part.label}: was heard as {heard.label} in session {row.id} of "
                            f"{self.path.name} and would count twice; leave ",
                            Argument("ledger", python="the ledger"),
                            " away, or first: monitor ledger forget "
                            f"{shlex.join((self.path.name, speaker))} --session {row.id}",
                        )
        return None

    def forget(self, speaker: str, session: int | None = None) -> int:
        """Remove a speaker, or one session, so that nothing of it is left in the files.

        Rows are overwritten (secure_delete), the file is built anew (VACUUM) and the WAL emptied.
        What a disk or a backup keeps of older versions of a file is beyond any program's reach.

        Returns:
            how many sessions were removed.

        Raises:
            StoreError: no such speaker or session; or another process is reading, so that old pages
                are still in the WAL (the rows are gone all the same).
        """
        sessions = [row.id for row in self._rows(speaker) if session in (None, row.id)]
        rows = self.connection.execute("SELECT id FROM speakers WHERE name = ?", (speaker,))
        row = rows.fetchone()
        if row is None or (session is not None and not sessions):
            what = "nobody is" if row is None else f"{speaker} has no session {session}"
            called = f" called {speaker}" if row is None else ""
            raise StoreError(f"{self.path.name}: {what}{called}; see: monitor ledger show")
        with translated(self.path), transaction(self.connection):
            for number in sessions:
                self.connection.execute("DELETE FROM sessions WHERE id = ?", (number,))
            if session is None or not self._rows(speaker):
                self.connection.execute("DELETE FROM speakers WHERE id = ?", (row["id"],))
        self.scrub()
        return len(sessions)

    def scrub(self) -> None:
        """Build the file anew and empty the WAL: no old page is left in either."""
        why = "another process is using it"
        try:
            self.connection.execute("VACUUM")
            busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as error:
            busy, why = True, reason_of(error)
        if busy:
            name = self.path.name
            raise StoreError(
                f"{name}: the rows are gone, but old pages may linger in {name} and {name}-wal, "
                f"for {why}; then: monitor ledger scrub {name}"
            )

    def _rows(self, speaker: str | None = None, *more: str) -> list[SessionRow]:
        columns = ", ".join(("s.*", "p.name", *more))
        query = f"SELECT {columns} FROM sessions s JOIN speakers p ON p.id = s.speaker"
        if speaker is None:
            rows = self.connection.execute(f"{query} ORDER BY s.id")
        else:
            rows = self.connection.execute(f"{query} WHERE p.name = ? ORDER BY s.id", (speaker,))
        return [session_of_row(self.path.name, row) for row in rows]

    def _figures_of(self, session: int) -> Record:
        """Return the figures of a session's last reading that is kept."""
        row = self.connection.execute(
            "SELECT record FROM readings WHERE session = ? "
            "ORDER BY seconds DESC, rowid DESC LIMIT 1",
            (session,),
        ).fetchone()
        kept = None if row is None else event_of_row(self.path.name, session, row["record"])
        return {name: getattr(kept, name, None) for name in ("headline", *_FIGURES)}

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
                    f"{self.path.name}: session {session.id} has {name} as {row['kind']} of "
                    f"size {row['size']}, the population as {spec}: they "
                    "do not add up; use another ledger"
                )
            if row["network"] != spec.network:
                where = f"session {session.id} in {self.path.name}"
                what = unlike_networks(name, where, row["network"], "the population", spec.network)
                raise StoreError(f"{what}, and do not add up; use another ledger")
        return FeatureTotals(
            session.speech,
            {name: total_of(self.path.name, row) for name, row in rows.items()},
            {name: row["frames"] for name, row in rows.items()},
            {name: row["usable"] for name, row in rows.items()},
        )


def _overlap(first: HeardPart, second: Provenance) -> bool:
    (a, b), (c, d) = ((part.start_seconds or 0.0, part.end_seconds) for part in (first, second))
    return (d is None or a < d) and (b is None or c < b)
