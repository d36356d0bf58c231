"""The ledger's file: private, migrated when opened, with errors in plain words."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from stat import S_IMODE

from monitor.errors import SchemaError, StoreError
from monitor.files import PRIVATE, check_private, is_ours
from monitor.ledger.rows import ANYONE
from monitor.safe_text import printable

APPLICATION = 0x5D15C105
"""SQLite's application_id: this file is a ledger."""
PATIENCE_SECONDS = 10.0
_WAL = ("-wal", "-shm")
_BESIDE = (*_WAL, "-journal")
"""Suffixes of files that SQLite creates beside a database."""

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
    f"""
    ALTER TABLE sessions ADD COLUMN listener TEXT NOT NULL DEFAULT '{ANYONE}';
    """,
)
"""Schema n consists of the first n migrations. Older ledgers get the missing ones."""


def open_database(
    path: Path, *, create: bool = True, write: bool = True, migrations: Sequence[str] = MIGRATIONS
) -> sqlite3.Connection:
    """Open or create a ledger: WAL, mode 0600, deleted rows overwritten, no copies elsewhere."""
    if not create and not path.is_file():
        raise StoreError(
            f"{path.name}: no such ledger. Create it with --ledger of listen or replay"
        )
    # a read-only file system denies writing to every user
    writable = os.access(path.parent, os.W_OK | os.X_OK) and os.access(path, os.W_OK)
    if not create and not write and not (writable and is_ours(path.stat())):
        return _open_read_only(path, migrations)
    if not create and not writable:
        raise StoreError(f"{path.name} is read-only here. Copy it to a writable folder")
    with translated(path):
        if create:
            _make(path)
        existing = [file for file in _list_files(path).values() if file.exists()]
        modes = {file: S_IMODE(file.stat().st_mode) for file in existing}
        _check_files(path)
        connection = sqlite3.connect(
            path, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            try:
                _check(connection, path.name, migrations)
            except BaseException:  # leave a foreign file unchanged, including its mode
                for file, mode in modes.items():
                    with suppress(OSError):
                        file.chmod(mode)
                raise
            _prepare(connection, path, migrations)
        except BaseException:
            connection.close()
            raise
        return connection


def _make(path: Path) -> None:
    try:
        with suppress(FileExistsError):  # EXCL does not follow a planted link
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))
        if not os.access(path, os.R_OK | os.W_OK):  # opened only for its error message
            os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        raise StoreError(
            f"{path.name}: cannot be opened ({error.strerror}). Use another file"
        ) from None


def _check_files(path: Path) -> list[str]:
    """Ensure that the file and SQLite's files beside it are private to the user."""
    return [suffix for suffix, file in _list_files(path).items() if check_private(file)]


def _list_files(path: Path) -> dict[str, Path]:
    """Return the file, and SQLite's files beside it, by suffix."""
    real = path.resolve()
    return {"": path, **{suffix: real.with_name(real.name + suffix) for suffix in _BESIDE}}


def _open_read_only(path: Path, migrations: Sequence[str]) -> sqlite3.Connection:
    """Open a ledger where SQLite cannot create the files that it needs to read the WAL."""
    wal = path.with_name(f"{path.name}-wal")
    waiting = wal.exists() and wal.stat().st_size > 0
    uri = f"{path.resolve().as_uri()}?{'mode=ro' if waiting else 'immutable=1'}"
    with translated(path):
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            _check(connection, path.name, migrations)
            if _schema(connection) < len(migrations):
                raise StoreError(
                    f"{path.name} is from an older version and read-only here. Copy it to a "
                    "writable folder"
                )
        except sqlite3.OperationalError as error:
            connection.close()
            if not waiting:
                raise
            raise StoreError(
                f"{path.name}: cannot be read here without {path.name}-shm ({error}). Copy it and "
                f"{wal.name} to a writable folder"
            ) from None
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, migrations: Sequence[str]) -> None:
    waits = _use_wal(connection)
    _schema(connection)  # makes SQLite open its files
    if waits and not set(_WAL) <= set(_check_files(path)):  # created by another user
        raise StoreError(
            f"{path.name}: other users can add files to its folder. Use a private folder"
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
            # another process may have migrated it meanwhile
            for number in range(_schema(connection), len(migrations)):
                for statement in migrations[number].split(";"):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {len(migrations)}")


def _use_wal(connection: sqlite3.Connection) -> bool:
    """Switch to WAL, and wait for other processes, unlike SQLite; return whether it is on."""
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
    """Check a file before any statement touches its tables, so that nothing in it can run."""
    newest = len(migrations)
    connection.text_factory = lambda raw: raw.decode(errors="replace")  # which fails all checks
    connection.execute("PRAGMA trusted_schema = OFF").fetchone()
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    connection.execute("BEGIN")  # another process may be creating it
    try:
        schema, objects = _schema(connection), _objects(connection)
        (application,) = connection.execute("PRAGMA application_id").fetchone()
    finally:
        if connection.in_transaction:  # a full disk has rolled it back already
            connection.execute("ROLLBACK")
    if application != APPLICATION and (objects or schema):
        raise StoreError(f"{name} is a database of another program. Use another file")
    if schema > newest:
        raise SchemaError(
            f"{name} has schema {schema}, but this version reads at most {newest}. Upgrade "
            "speaker-disclosure-monitor"
        )
    unexpected = objects ^ _objects_of(migrations[: max(schema, 0)])
    if unexpected:
        kind, called, *_ = min(unexpected, key=repr)
        raise StoreError(
            f"{name}: {printable(kind)[:20]} {printable(called)[:40]} does not belong in a ledger. "
            "The file is damaged or malicious. Restore a copy"
        )


def _objects(connection: sqlite3.Connection) -> set[tuple[object, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def _objects_of(migrations: Sequence[str]) -> set[tuple[object, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for migration in migrations:
            for statement in migration.split(";"):
                connection.execute(statement)
        return _objects(connection)


def _schema(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write all or nothing. It waits for other processes only at its beginning."""
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
    """Convert SQLite's errors to one line with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path.name} {reason_of(error)}") from None
    except UnicodeDecodeError:  # in SQLite's message, which quotes bytes
        raise StoreError(f"{path.name} is damaged. Restore a copy") from None


def reason_of(error: sqlite3.Error) -> str:
    """Explain an error and its remedy."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    reasons = {
        sqlite3.SQLITE_FULL: "cannot be written, because the disk is full. Make room",
        sqlite3.SQLITE_IOERR: "cannot be read or written. Make room, or check the disk",
        sqlite3.SQLITE_BUSY: "is in use by another process. Try again later",
        sqlite3.SQLITE_LOCKED: "is in use by another process. Try again later",
        sqlite3.SQLITE_READONLY: "cannot be written. Check its permissions and its folder's",
        sqlite3.SQLITE_CANTOPEN: "cannot be opened. Check its name, permissions and folder",
        sqlite3.SQLITE_PERM: "cannot be opened. Check its permissions",
        sqlite3.SQLITE_NOTADB: "is not a ledger of this program. Use another file",
        sqlite3.SQLITE_CORRUPT: "is damaged. Restore a copy",
    }
    return reasons.get(code, f"cannot be used ({printable(error)[:120]}). Check the file")
