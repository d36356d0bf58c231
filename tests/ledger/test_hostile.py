"""A ledger that somebody else made: nothing in it runs, nothing in it is believed unseen."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from monitor.errors import StoreError
from monitor.ledger import Ledger
from tests.ledger.test_ledger import listen, path

__all__ = ["path"]


def change(path: Path, *statements: str, **values: Any) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        connection.execute(statement, values if ":" in statement else {})
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON sessions BEGIN DELETE FROM readings; END", "trigger t"),
        ("CREATE VIEW v AS SELECT * FROM sessions", "view v"),
        ("CREATE TABLE more (x)", "table more"),
        ("CREATE INDEX slow ON readings (abs(seconds))", "index slow"),
        ("ALTER TABLE sessions ADD COLUMN x DEFAULT 0", "table sessions"),
        ("DROP TABLE alerts", "alerts"),
        ("DROP INDEX readings_of", "index readings_of"),
        ("UPDATE sqlite_master SET sql = replace(sql, 'REAL', 'TEXT')", "table"),
    ],
)
@pytest.mark.parametrize("write", [True, False])
def test_anything_besides_our_own_tables_is_refused(path, statement, named, write):
    listen(path, 1)
    change(path, statement)
    before = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        Ledger(path, create=False, write=write)
    assert named in str(caught.value)
    assert str(caught.value).isprintable()
    assert path.read_bytes() == before


def test_a_view_in_place_of_a_table_is_refused(path):
    listen(path, 1)
    change(
        path,
        "ALTER TABLE readings RENAME TO hidden",
        "CREATE VIEW readings AS SELECT session, seconds, record FROM hidden",
    )
    with pytest.raises(StoreError, match="made to do harm"):
        Ledger(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sessions SET speech = 'much'",
        "UPDATE sessions SET speech = -1",
        "UPDATE sessions SET bits = x'00'",
        "UPDATE sessions SET seconds = 9e999",
        "UPDATE sessions SET heard = '[[1, 2]]'",
        "UPDATE sessions SET heard = '[[\"a\", 7, 0, null]]'",
        "UPDATE sessions SET start = '{}'",
        "UPDATE sessions SET start = '[' ",
        "UPDATE sessions SET recordings = '[\"\\udcff\"]'",
        "UPDATE sketches SET total = x'00'",
        "UPDATE sketches SET total = 3",
        "UPDATE sketches SET total = zeroblob(8 * size - 1)",
        "UPDATE sketches SET total = CAST(replace(hex(zeroblob(size)), '00', 'abcdefgh') AS BLOB)",
        "UPDATE sketches SET kind = 'pickle'",
        "UPDATE sketches SET frame_seconds = 'x'",
        "UPDATE sketches SET frames = -1",
        "UPDATE readings SET record = '3'",
        'UPDATE readings SET record = \'{"type": "reading", "seconds": 1e400}\'',
        "UPDATE readings SET record = replace(record, '\"time\"', '\"when\"')",
        "UPDATE speakers SET name = 's1' || char(27) || '[2J'",
    ],
)
def test_rows_that_nothing_wrote_are_named_in_one_line(path, statement):
    listen(path, 1)
    change(path, statement)
    with Ledger(path) as ledger, pytest.raises(StoreError, match=r"^ledger.db: is damaged") as told:
        list(ledger.export())
    assert str(told.value).isprintable()


def test_a_schema_that_is_no_text_is_refused(path):
    listen(path, 1)
    change(path, "UPDATE sqlite_master SET sql = CAST(x'43524541ff' AS TEXT) WHERE name = 'alerts'")
    with pytest.raises(StoreError, match=r"^ledger.db: is damaged; restore a copy$"):
        Ledger(path)
