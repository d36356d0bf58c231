"""Each listener has an account of its own, and a period after which sessions no longer count."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from monitor import Monitor
from monitor.alerts import budget
from monitor.errors import UsageError
from monitor.ledger import Ledger, LedgerSession
from monitor.ledger.database import MIGRATIONS, open_database
from monitor.ledger.ledger import Account
from monitor.ledger.rows import ANYONE
from monitor.protocols import Provenance
from monitor.run import LedgerFile
from monitor.sinks.buffer import RunBuffer
from tests.records import as_records
from tests.stream.streams import Listed, run_through, two_features
from tests.stream.test_heard import both

POPULATION = two_features()
DAY = 86_400.0


@pytest.fixture
def file(tmp_path: Path) -> LedgerFile:
    return LedgerFile(tmp_path / "ledger.db")


def listen(
    file: LedgerFile, seed: int, heard: tuple[Provenance, ...] = (), rules=(), watch: str = "s1"
):
    """One session: the monitor, and the records of its run."""
    monitor, kept = Monitor(POPULATION, watch=watch), RunBuffer()
    source = Listed([both(20.0, seed)], ["talk"], heard)
    run_through(source, monitor, sinks=[kept], rules=rules, ledger=file)
    return monitor, as_records(kept.events)


def carried(file: LedgerFile) -> int:
    """Number of sessions that the next one of this account continues."""
    features = {name: POPULATION.specs[name] for name in ("f0", "timbre")}
    account = Account(file.listener, file.period_seconds)
    with Ledger(file.path) as ledger:
        return ledger.carried("s1", features, account=account).sessions


def end_days_ago(file: LedgerFile, days: float, session: int) -> None:
    with sqlite3.connect(file.path) as connection:
        connection.execute(
            "UPDATE sessions SET started = datetime('now', ?) || 'Z', ended = "
            "datetime('now', ?) || 'Z' WHERE id = ?",
            (f"-{days + 1} days", f"-{days} days", session),
        )
    connection.close()


def test_a_listener_has_the_speech_sent_to_it_and_to_anyone(file):
    for seed, listener in enumerate(("acme", "acme", "beta", ANYONE)):
        listen(replace(file, listener=listener), seed)
    counted = {name: carried(replace(file, listener=name)) for name in ("acme", "beta", "new")}
    assert counted == {"acme": 3, "beta": 2, "new": 1}
    assert carried(file) == 4  # all might share
    with Ledger(file.path) as ledger:
        listeners = [session.listener for session in ledger.sessions()]
    assert listeners == ["acme", "acme", "beta", ANYONE]


def test_a_curve_is_of_the_listener_alone(file):
    listen(replace(file, listener="acme"), 1)
    _, (start, *_) = listen(replace(file, listener="beta"), 2)
    assert start["carried"]["history"] == []
    _, (start, *_) = listen(replace(file, listener="acme"), 3)
    assert {point["session"] for point in start["carried"]["history"]} == {1}
    assert "of s1 with acme, " in start["notices"][-1]


def test_sessions_of_an_earlier_period_no_longer_count(file):
    monthly = replace(file, listener="acme", period_seconds=30 * DAY)
    for seed in range(3):
        listen(replace(file, listener="acme"), seed)
    end_days_ago(file, 40.0, session=1)
    end_days_ago(file, 29.5, session=2)  # it began before the period, and ended within
    assert carried(monthly) == 2
    assert carried(replace(monthly, period_seconds=None)) == 3
    _, (start, *_) = listen(monthly, 4)
    (expired,) = [line for line in start["notices"] if "no longer count" in line]
    assert expired.startswith("1 session of s1")


def test_an_interrupted_session_counts_from_its_last_reading(file):
    listen(file, 1)
    with sqlite3.connect(file.path) as connection:
        connection.execute(
            "UPDATE sessions SET ended = NULL, seconds = ?, started = "
            "datetime('now', '-3 days') || 'Z'",
            (2 * DAY,),
        )
    connection.close()
    assert carried(replace(file, period_seconds=1.5 * DAY)) == 1
    assert carried(replace(file, period_seconds=0.5 * DAY)) == 0


def test_each_listener_has_a_budget(file, tmp_path):
    who = listen(LedgerFile(tmp_path / "another.db"), 1)[0].standing().top[0][0]
    bits = listen(replace(file, listener="acme"), 1, watch=who)[0].standing().bits
    assert bits is not None
    rules = budget(bits - 0.1)
    for listener, is_spent in (("acme", True), ("beta", False), (ANYONE, True)):
        _, records = listen(replace(file, listener=listener), 2, rules=rules, watch=who)
        at_start = [each for each in records if each["type"] == "alert" and not each["seconds"]]
        assert bool(at_start) is is_spent
        for alert in at_start:
            assert alert["spent_bits"] == alert["value"]
            assert alert["left_bits"] == max(0.0, round(bits - 0.1 - alert["value"], 3))


def test_one_recording_may_go_to_two_listeners_but_once_to_each(file):
    heard = (Provenance("talk.wav", ("a" * 64,), 0.0, None),)
    listen(replace(file, listener="acme"), 1, heard)
    listen(replace(file, listener="beta"), 1, heard)
    for listener in ("acme", "beta", ANYONE):
        with pytest.raises(UsageError, match="would count twice"):
            listen(replace(file, listener=listener), 1, heard)


def test_an_older_ledger_is_of_anyone(file):
    old = open_database(Path(file.path), migrations=MIGRATIONS[:3])
    old.execute("INSERT INTO speakers VALUES (1, 's1')")
    old.execute(
        "INSERT INTO sessions (speaker, started, recordings, heard, start) "
        "VALUES (1, '2026-01-01T00:00:00Z', '[]', '[]', '{\"features\": [\"f0\"]}')"
    )
    old.close()
    with Ledger(file.path) as ledger:
        (session,) = ledger.sessions()
    assert session.listener == ANYONE


def test_listeners_of_one_speaker_are_charged_one_at_a_time(file):
    """What goes to anyone counts for each, so two could spend the same bits."""
    first, second = (Ledger(file.path) for _ in range(2))
    monitors = [Monitor(POPULATION, watch="s1") for _ in range(2)]
    with_acme = LedgerSession(first, monitors[0], account=Account("acme"))
    with_all = LedgerSession(second, monitors[1])
    with_acme.hold()
    with pytest.raises(UsageError, match="another run spends the budget of s1"):
        with_all.hold()
    with pytest.raises(UsageError, match="another run spends the budget of s1"):
        listen(file, 1, rules=budget(2.0))
    with_acme.close()
    with_all.close()
