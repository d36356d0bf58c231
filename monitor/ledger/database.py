"""Opens the ledger's file: private, brought up to date, errors in plain words."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from monitor.errors import SchemaError, StoreError
from monitor.private_files import check_private, is_ours
from monitor.safe_text import printable

__all__ = ["MIGRATIONS", "open_database", "reason_of", "transaction", "translated"]

APPLICATION = 0x5D15C105
"""SQLite's application_id: this file is a ledger."""
PATIENCE_SECONDS = 10.0
_WAL = ("-wal", "-shm")
_BESIDE = (*_WAL, "-journal")
"""Of files that SQLite makes beside a database."""

MIGRATIONS: Sequence[str] = (
    """
    CREATE TABLE speakers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        speaker INTEGER NOT NULL REFERENCES speakers ON DELETE CASCADE,
        started TEXT NOT NULL,
        ended TEXT,
        recordings TEXT NOT NULL,
        heard TEXT NOT NULL,
        start TEXT NOT NULL,
        seconds REAL NOT NULL DEFAULT 0,
        speech INTEGER NOT NULL DEFAULT 0,
        bits REAL,
        bits_low REAL,
        bits_high REAL,
        peak_bits REAL
    );
    CREATE TABLE sketches (
        session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
        feature TEXT NOT NULL,
        kind TEXT NOT NULL,
        size INTEGER NOT NULL,
        frame_seconds REAL NOT NULL,
        frames INTEGER NOT NULL,
        usable INTEGER NOT NULL,
        total BLOB NOT NULL,
        PRIMARY KEY (session, feature)
    );
    """,
    """
    CREATE TABLE readings (
        session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
        seconds REAL NOT NULL,
        record TEXT NOT NULL
    );
    CREATE INDEX readings_of ON readings (session, seconds);
    CREATE TABLE alerts (
        session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
        seconds REAL NOT NULL,
        record TEXT NOT NULL
    );
    CREATE INDEX alerts_of ON alerts (session, seconds);
    """,
    """
    ALTER TABLE sketches ADD COLUMN network TEXT;
    """,
)
"""Schema n is the first n of these; a ledger of an older schema gets those it lacks."""


def open_database(
    path: Path, *, create: bool = True, write: bool = True, migrations: Sequence[str] = MIGRATIONS
) -> sqlite3.Connection:
    """Open a ledger, or make one: WAL, mode 0600, deleted rows overwritten, no copies elsewhere.

    Args:
        path: the file.
        create: make it where there is none.
        write: False where reading is enough: then it may be one that cannot be written.
        migrations: the schema.

    Raises:
        SchemaError: a newer version wrote it.
        StoreError: it is no ledger, damaged, another user's, not allowed, or does not exist.
    """
    if not create and not path.is_file():
        raise StoreError(f"{path.name}: there is no such ledger; listen or replay with --ledger")
    # a read-only file system answers so to everybody
    writable = os.access(path.parent, os.W_OK | os.X_OK) and os.access(path, os.W_OK)
    if not create and not write and not (writable and is_ours(path.stat())):
        return _open_read_only(path, migrations)
    if not create and not writable:
        raise StoreError(f"{path.name}: may not be written here; copy it to where it may be")
    with translated(path):
        if create:
            _make(path)
        _check_files(path)
        connection = sqlite3.connect(
            path, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, path, migrations)
        except BaseException:
            connection.close()
            raise
        return connection


def _make(path: Path) -> None:
    """An empty file, where there is none."""
    try:
        with suppress(FileExistsError):  # EXCL: a link that somebody left is not followed
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        if not os.access(path, os.R_OK | os.W_OK):  # opened only to learn why it cannot be
            os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        raise StoreError(
            f"{path.name}: cannot be opened ({error.strerror}); choose another file"
        ) from None


def _check_files(path: Path) -> list[str]:
    """See to it that the file and those beside it, which hold the same, are ours alone.

    Returns:
        what the names of those that are there end with.

    Raises:
        StoreError: one is another user's, or a hard link.
    """
    real = path.resolve()
    places = {suffix: real.with_name(real.name + suffix) for suffix in _BESIDE}
    return [suffix for suffix, place in {"": path, **places}.items() if check_private(place)]


def _open_read_only(path: Path, migrations: Sequence[str]) -> sqlite3.Connection:
    """A ledger in a place where SQLite cannot make the files that it reads the WAL with."""
    wal = path.with_name(f"{path.name}-wal")
    waiting = wal.exists() and wal.stat().st_size > 0
    uri = f"{path.resolve().as_uri()}?{'mode=ro' if waiting else 'immutable=1'}"
    with translated(path):
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            _check(connection, path.name, migrations)
            if _schema(connection) < len(migrations):
                raise StoreError(
                    f"{path.name}: is of an older version; copy it to where it may be written"
                )
        except sqlite3.OperationalError as error:
            connection.close()
            if not waiting:
                raise
            raise StoreError(
                f"{path.name}: cannot be read here without {path.name}-shm ({error}); copy it and "
                f"{wal.name} to where they may be written"
            ) from None
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, migrations: Sequence[str]) -> None:
    _check(connection, path.name, migrations)
    waits = _use_wal(connection)
    _schema(connection)  # opens the files beside it
    if waits and not set(_WAL) <= set(_check_files(path)):  # somebody was faster than SQLite
        raise StoreError(
            f"{path.name}: other users can put files beside it; choose a folder of your own"
        )
    for pragma in (
        "synchronous = NORMAL",
        "foreign_keys = ON",
        "secure_delete = ON",
        "temp_store = MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchone()
    if _schema(connection) < len(migrations):
        with transaction(connection):
            for number in range(_schema(connection), len(migrations)):  # another may have been here
                for statement in migrations[number].split(";"):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {len(migrations)}")


def _use_wal(connection: sqlite3.Connection) -> bool:
    """SQLite does not wait by itself where two processes do this at once.

    Returns:
        False where the file system cannot.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return bool(mode == "wal")
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _check(connection: sqlite3.Connection, name: str, migrations: Sequence[str]) -> None:
    """Look at a file before any statement touches its tables: nothing in it may run.

    Raises:
        SchemaError: a newer version wrote it.
        StoreError: it is of another program, or holds anything besides our own tables.
    """
    newest = len(migrations)
    connection.text_factory = lambda raw: raw.decode(errors="replace")  # which no check passes
    connection.execute("PRAGMA trusted_schema = OFF").fetchone()
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    connection.execute("BEGIN")  # another process may be making it
    try:
        schema, found = _schema(connection), _objects(connection)
        (application,) = connection.execute("PRAGMA application_id").fetchone()
    finally:
        connection.execute("ROLLBACK")
    if application != APPLICATION and (found or schema):
        raise StoreError(f"{name}: is a database of another program; name another file")
    if schema > newest:
        raise SchemaError(
            f"{name}: has schema {schema}, this version reads up to {newest}; "
            "upgrade speaker-disclosure-monitor"
        )
    strange = found ^ _objects_of(migrations[: max(schema, 0)])
    if strange:
        kind, called, *_ = min(strange, key=repr)
        raise StoreError(
            f"{name}: {printable(kind)[:20]} {printable(called)[:40]} is not as a ledger has it; "
            "it is damaged, or made to do harm: restore a copy"
        )


def _objects(connection: sqlite3.Connection) -> set[tuple[object, ...]]:
    """Every table, index, view and trigger, with its definition."""
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def _objects_of(migrations: Sequence[str]) -> set[tuple[object, ...]]:
    """What a ledger of that schema holds."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for migration in migrations:
            for statement in migration.split(";"):
                connection.execute(statement)
        return _objects(connection)


def _schema(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; waits for another process's turn at its beginning, not in its middle."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has rolled it back already
            connection.execute("ROLLBACK")
        raise


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """SQLite's errors as one line that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path.name}: {reason_of(error)}") from None
    except UnicodeDecodeError:  # SQLite's own message quotes bytes that are no text
        raise StoreError(f"{path.name}: is damaged; restore a copy") from None


def reason_of(error: sqlite3.Error) -> str:
    """What is the matter, and what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    known = {
        sqlite3.SQLITE_FULL: "the disk is full; make room",
        sqlite3.SQLITE_IOERR: "the disk cannot be read or written; make room, or check it",
        sqlite3.SQLITE_BUSY: "another process holds it; try again when that has ended",
        sqlite3.SQLITE_LOCKED: "another process holds it; try again when that has ended",
        sqlite3.SQLITE_READONLY: "may not be written; check its permissions and its folder's",
        sqlite3.SQLITE_CANTOPEN: "cannot be opened; check its name, permissions and folder",
        sqlite3.SQLITE_PERM: "may not be opened; check its permissions",
        sqlite3.SQLITE_NOTADB: "is no ledger of this program; name another file",
        sqlite3.SQLITE_CORRUPT: "is damaged; restore a copy",
    }
    return known.get(code, f"{printable(error)[:120]}; check the file")
