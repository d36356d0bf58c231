"""A real SQLite file: sessions add up, whoever writes them, and are really forgotten."""

from __future__ import annotations

import itertools
import json
import sqlite3
import stat
from pathlib import Path

import numpy as np
import pytest

from monitor import Monitor, Population
from monitor.alerts import Threshold, budget
from monitor.errors import SchemaError, StoreError, UsageError
from monitor.ledger import Ledger, LedgerSession
from monitor.ledger.database import MIGRATIONS, open_database
from monitor.protocols import Provenance
from monitor.run import LedgerFile, Run, status_of
from monitor.sinks.buffer import RunBuffer
from monitor.stream.records import start_event
from tests.records import as_records
from tests.stream.streams import (
    Listed,
    heard_by_both,
    run_through,
    two_features,
    with_evidence,
    with_speakers,
)
from tests.stream.test_heard import both

POPULATION = two_features()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def listen(
    path: Path,
    seed: int,
    seconds: float = 30.0,
    watch: str = "s1",
    features: tuple[str, ...] = ("f0", "timbre"),
    heard: tuple[Provenance, ...] = (),
    population: Population = POPULATION,
) -> tuple[Monitor, RunBuffer]:
    """One session, as a command runs it."""
    monitor, kept = Monitor(population, features, watch=watch), RunBuffer()
    source = Listed([both(seconds, seed)], ["talk"], heard)
    run_through(source, monitor, sinks=[kept], rules=[Threshold("bits", -9.0, 1.0)], ledger=path)
    return monitor, kept


def total(path: Path, watch: str = "s1") -> tuple[int, np.ndarray]:
    with Ledger(path) as ledger:
        features = {name: POPULATION.specs[name] for name in ("f0", "timbre")}
        heard = ledger.carried(watch, features).totals
    assert heard is not None
    return heard.speech, heard.totals["f0"]


def contents(path: Path) -> bytes:
    """Every byte of the database and of what lies beside it."""
    return b"".join(each.read_bytes() for each in sorted(path.parent.glob(path.name + "*")))


def test_the_next_session_goes_on_where_the_last_one_ended(path):
    first, kept = listen(path, 1)
    assert as_records(kept.events)[0]["carried"] == {"sessions": 0, "speech": 0.0, "history": []}
    second, kept = listen(path, 2)
    start, begun = as_records(kept.events)[0], as_records(kept.events)[1]
    speech = first.totals.speech
    assert start["carried"]["sessions"] == 1
    assert start["carried"]["speech"] == speech / 100
    assert begun["seconds"] == 1.0
    assert begun["speech"] > speech / 100
    assert start["notices"][-1] == (
        f"the bits continue from 1 earlier session of s1, {speech / 100:.0f} s of speech"
    )
    # and what is stored is each session's own, so that their sum is the whole
    ticks, counts = total(path)
    assert ticks == second.totals.speech
    assert np.array_equal(counts, second.totals.totals["f0"])
    with Ledger(path) as ledger:
        one, two = ledger.sessions("s1")
        history = ledger.history("s1")
        thin = ledger.history("s1", maximum=5)
        assert ledger.history("nobody") == []
    assert [point.seconds for point in history] == [1, 11, 21, 30] * 2
    assert [point.session for point in history] == [1] * 4 + [2] * 4
    spoken = [point.speech for point in history]
    assert spoken == sorted(spoken)
    assert len(thin) <= 5
    assert thin[-1] == history[-1]
    assert one.speech + two.speech == pytest.approx(ticks / 100)
    assert (one.session, one.readings, one.alerts) == (1, 4, 1)
    assert one.ended is not None
    assert one.features == ("f0", "timbre")


def test_sessions_of_others_and_without_a_feature_do_not_count(path):
    """Who else is enrolled is no matter: sketches do not depend on it."""
    listen(path, 1, features=("f0",))
    _, kept = listen(path, 2, watch="s2")
    assert as_records(kept.events)[0]["carried"]["sessions"] == 0
    _, kept = listen(path, 3)
    start = as_records(kept.events)[0]
    assert start["carried"]["sessions"] == 0
    assert "1 earlier session does not count, because f0+timbre" in start["notices"][-1]
    # f0 alone was heard in both
    _, kept = listen(path, 4, features=("f0",), population=with_speakers(POPULATION, other=()))
    assert as_records(kept.events)[0]["carried"]["sessions"] == 2


def test_the_file_is_private_and_in_wal_mode(path):
    ledger = Ledger(path)
    with ledger.connection:
        ledger.connection.execute("INSERT INTO speakers (name) VALUES ('me')")
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == {f"ledger.db{end}": 0o600 for end in ("", "-wal", "-shm")}
    assert ledger.connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    ledger.close()
    assert [each.name for each in path.parent.iterdir()] == ["ledger.db"]


def test_an_interrupted_session_shows_its_last_reading(path: Path) -> None:
    monitor, clock = Monitor(POPULATION, ("f0", "timbre"), watch="s1"), itertools.count(0.0, 2.0)
    session = LedgerSession(Ledger(path), monitor, clock=lambda: next(clock))
    session.begin(start_event(monitor, ("talk",)))
    for reading in monitor.push(both(37.0, 1)):
        session.write(reading)
        with Ledger(path) as ledger:  # as another process finds it, should this one be killed now
            for shown in ledger.sessions():
                assert shown.seconds == reading.seconds
                assert shown.bits == pytest.approx(reading.bits)
                assert shown.readings == 1 + -(-(shown.seconds - 1) // 10)
    assert reading.seconds == shown.seconds == 37.0
    session.drain()
    session.close()


def test_export_holds_everything_and_that_is_no_audio_and_no_frames(path):
    monitor, _ = listen(path, 1, seconds=300.0)
    with Ledger(path) as ledger:
        records = json.loads(json.dumps(list(ledger.export("s1"))))
        assert list(ledger.export("nobody")) == []
    session, f0, timbre, *rest = records
    assert session["type"] == "session"
    assert f0["total"] == monitor.totals.totals["f0"].tolist()
    assert timbre["total"] == pytest.approx(monitor.totals.totals["timbre"].tolist())
    assert [r["type"] for r in rest] == ["reading"] * 31 + ["alert"]
    assert {r["session"] for r in rest} == {1}
    size = path.stat().st_size
    assert size < 100_000  # five minutes; a second of audio would be 32 kB
    listen(path, 2, seconds=300.0)
    assert path.stat().st_size < size + 30_000


def needles(monitor: Monitor) -> list[bytes]:
    heard = monitor.totals
    return [
        NAME.encode(),
        b"hush-hash",
        heard.totals["f0"].astype("<i8").tobytes(),
        heard.totals["timbre"].astype("<f8").tobytes(),
    ]


NAME = "Mx_Watched"
NAMED = with_speakers(POPULATION, Mx_Watched=())
"""A speaker whose name is nowhere by accident."""


def test_forgetting_leaves_no_byte(path):
    part = Provenance("secret-talk.flac", ("hush-hash",))
    listen(path, 7, watch="s2")
    monitor, _ = listen(path, 1, watch=NAME, heard=(part,), population=NAMED)
    found = needles(monitor)
    keeper = Ledger(path)  # open all the while, so that there is a WAL to search
    keeper.sessions()
    assert all(needle in contents(path) for needle in found)
    with Ledger(path) as ledger:
        assert ledger.forget(NAME) == 1
        left = contents(path)
        assert [needle in left for needle in [*found, b"secret-talk", NAME.encode()]] == [False] * 6
    left = contents(path)
    assert not any(needle in left for needle in [*found, b"secret-talk", NAME.encode()])
    assert [row.speaker for row in keeper.sessions()] == ["s2"]
    keeper.close()
    assert not any(needle in contents(path) for needle in found)
    with Ledger(path) as ledger, pytest.raises(StoreError, match=rf"{NAME}\b"):
        ledger.forget(NAME)


def test_forgetting_one_session_keeps_the_others(path):
    first, _ = listen(path, 1)
    listen(path, 2)
    with Ledger(path) as ledger:
        assert ledger.forget("s1", 2) == 1
        assert [row.session for row in ledger.sessions("s1")] == [1]
        with pytest.raises(StoreError, match="s1 has no session 2"):
            ledger.forget("s1", 2)
    assert total(path)[0] == first.totals.speech
    listen(path, 3)
    with Ledger(path) as ledger:  # a number is never given twice
        assert [row.session for row in ledger.sessions("s1")] == [1, 3]


def test_forgetting_while_somebody_reads_says_what_is_left_to_do(path):
    listen(path, 1)
    reader = sqlite3.connect(path)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM sketches").fetchone()
    with Ledger(path) as ledger:
        ledger.connection.execute("PRAGMA busy_timeout = 50")
        with pytest.raises(StoreError, match=r"old pages may remain.*ledger scrub"):
            ledger.forget("s1")
        assert ledger.sessions() == []
        reader.rollback()
        reader.close()
        ledger.scrub()


def test_a_session_forgotten_while_it_goes_on_stays_forgotten(path):
    monitor = Monitor(POPULATION, ["f0", "timbre"], watch="s1")
    session = LedgerSession(Ledger(path), monitor, clock=itertools.count().__next__)
    session.write(session.begin(start_event(monitor, ["talk"])))
    first, second, *rest = monitor.push(both(5.0, 1))
    for reading in (first, second):  # from the second one on it is in the ledger
        session.write(reading)
    with Ledger(path) as other:
        other.forget("s1")
    for reading in rest:
        session.write(reading)
    (line,) = session.drain()
    session.close()
    assert line.endswith("s of this session: this session was forgotten while it ran")
    with Ledger(path) as ledger:
        assert ledger.sessions() == []
        assert list(ledger.export()) == []


def test_audio_is_not_counted_twice(path):
    one = Provenance("talk.flac", ("a", "b"), 0.0, 60.0)
    listen(path, 1, heard=(one,))
    with pytest.raises(UsageError, match=r"copy.wav: would count twice, since session 1 of"):
        listen(path, 1, heard=(Provenance("copy.wav", ("c", "b"), 30.0, None),))
    listen(path, 2, heard=(Provenance("copy.wav", ("c", "b"), 60.0, None),))  # another part of it
    listen(path, 3, watch="s2", heard=(one,))  # of somebody else
    with Ledger(path) as ledger, ledger.connection as connection:
        connection.execute("UPDATE speakers SET name = 'O''Brien' WHERE name = 's1'")
        with pytest.raises(UsageError, match=r"""forget ledger\.db 'O'"'"'Brien' --session 1"""):
            ledger.refuse_twice("O'Brien", (one,))
    with Ledger(path) as ledger:
        assert len(ledger.sessions()) == 3


def test_an_older_schema_is_brought_up_to_date(path):
    old = open_database(path, migrations=MIGRATIONS[:1])
    old.execute("INSERT INTO speakers VALUES (1, 's1')")
    start = json.dumps({"features": ["f0", "timbre"]})
    old.execute(
        "INSERT INTO sessions (speaker, started, recordings, heard, start, speech) "
        "VALUES (1, '2026-01-01T00:00:00Z', '[]', '[]', ?, 500)",
        (start,),
    )
    f0, timbre = np.arange(10), np.arange(3.0)
    rows = [("f0", "histogram", 10, 0.01, f0), ("timbre", "embedding", 3, 0.5, timbre)]
    for name, kind, size, seconds, sketch in rows:
        old.execute(
            "INSERT INTO sketches VALUES (1, ?, ?, ?, ?, 45, 45, ?)",
            (name, kind, size, seconds, sketch.tobytes()),
        )
    tables = "SELECT count(*) FROM sqlite_master WHERE name = 'readings'"
    assert old.execute(tables).fetchone() == (0,)
    old.close()
    ticks, counts = total(path)
    assert ticks == 500
    assert np.array_equal(counts, f0)
    _, kept = listen(path, 1)
    assert as_records(kept.events)[0]["carried"]["speech"] == 5.0


def test_what_is_no_ledger_or_a_newer_one_is_left_alone(path, tmp_path):
    listen(path, 1)
    newest = len(MIGRATIONS)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {newest + 1}")
    connection.close()
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("dear diary " * 100)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    for each, error, words in (
        (path, SchemaError, f" has schema {newest + 1}, but this version reads at most {newest}"),
        (text, StoreError, " is not a ledger"),
        (other, StoreError, " is a database of another program"),
    ):
        each.chmod(0o644)
        before = each.read_bytes()
        with pytest.raises(error, match=f"^{each.name}{words}"):
            Ledger(each)
        assert each.read_bytes() == before
        assert stat.S_IMODE(each.stat().st_mode) == 0o644
    with pytest.raises(StoreError, match="no such ledger"):
        Ledger(tmp_path / "none.db", create=False)
    with pytest.raises(StoreError, match="cannot be opened"):
        Ledger(tmp_path / "no" / "folder.db")
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["ledger.db", "notes.txt", "other.db"]


def test_a_damaged_ledger_says_so(path):
    listen(path, 1)
    data = bytearray(path.read_bytes())
    data[200:-1] = bytes(len(data) - 201)
    path.write_bytes(data)
    with pytest.raises(StoreError, match=r"^ledger\.db is damaged"), Ledger(path) as ledger:
        list(ledger.export())


def test_sketches_of_another_make_are_not_added_and_no_connection_is_left_open(path):
    listen(path, 1, 12.0)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE sketches SET size = 9 WHERE feature = 'f0'")
    connection.close()
    for watch, words in ((None, "use watch="), ("s1", "session 1 has f0 as histogram")):
        ledger = Ledger(path)
        with pytest.raises((UsageError, StoreError), match=words):
            LedgerSession(ledger, Monitor(two_features(), ("f0", "timbre"), watch=watch))
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            ledger.connection.execute("SELECT 1")
    with pytest.raises(UsageError, match='use on_change="note"'):
        LedgerSession(Ledger(path), Monitor(POPULATION, watch="s1", on_change="reset"))


def test_a_budget_that_earlier_sessions_spent_says_so_at_second_0(path, tmp_path):
    who = listen(tmp_path / "another.db", 1)[0].standing().top[0][0]
    bits = listen(path, 1, watch=who)[0].standing().bits
    assert bits is not None
    assert bits > 0.5
    source, kept = Listed([both(20.0, 2)], ["talk"]), RunBuffer()
    monitor, rules = Monitor(POPULATION, watch=who), budget(bits - 0.1)
    with Run(source, monitor, rules=rules, sinks=[kept], ledger=path) as run:
        run.to_end()
    start, *first = as_records(kept.events)[:3]
    assert start["type"] == "start"
    assert [(each["type"], each["level"], each["seconds"]) for each in first] == [
        ("alert", "warning", 0.0),
        ("alert", "alert", 0.0),
    ]
    assert first[1]["value"] == pytest.approx(bits)
    assert status_of(run) == 3


# ------------------------------------------------- one that somebody else made: nothing in it runs


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        connection.execute(statement)
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
    with Ledger(path) as ledger, pytest.raises(StoreError, match=r"^ledger.db is damaged") as told:
        list(ledger.export())
    assert str(told.value).isprintable()


def test_a_view_in_place_of_a_table_and_a_schema_that_is_no_text_are_refused(path):
    listen(path, 1)
    whole = path.read_bytes()
    view = "CREATE VIEW readings AS SELECT session, seconds, record FROM hidden"
    change(path, "ALTER TABLE readings RENAME TO hidden", view)
    with pytest.raises(StoreError, match="damaged or malicious"):
        Ledger(path)
    path.write_bytes(whole)
    change(path, "UPDATE sqlite_master SET sql = CAST(x'43524541ff' AS TEXT) WHERE name = 'alerts'")
    with pytest.raises(StoreError, match=r"^ledger.db is damaged\. Restore a copy$"):
        Ledger(path)


# ---------------------------------------------- the headline over sessions: evidence, and a budget

FEATURES = ["f0", "timbre"]
LIMITED = ("bits", "bits_low", "bits_high")


def session(path, population, rules=(), watch="s1", stream=None):
    """One session of that speaker: its readings and alerts."""
    kept, source = RunBuffer(), Listed([stream or heard_by_both()])
    monitor = Monitor(population, FEATURES, watch)
    run_through(source, monitor, sinks=[kept], rules=rules, ledger=LedgerFile(path, 1.0))
    return [event.record() for event in kept.events]


def readings(records):
    return [record for record in records if record["type"] == "reading"]


def test_evidence_is_of_all_that_was_heard(tmp_path):
    """As of one stream: its length is that of both sessions together."""
    path = tmp_path / "me.db"
    first, second = (session(path, with_evidence()) for _ in range(2))
    monitor = Monitor(with_evidence(), FEATURES, "s1")
    alone = list(monitor.push(heard_by_both()))
    once = monitor.totals
    again = Monitor(with_evidence(), FEATURES, "s1")
    again.resume_from(once)
    both = again.push(heard_by_both())
    for records, made in ((first, alone), (second, both)):
        assert readings(records)[-1]["evidence_bits"] == made[-1].record()["evidence_bits"]
    assert readings(second)[-1]["speech"] == pytest.approx(2 * readings(first)[-1]["speech"])
    with Ledger(path) as ledger:
        rows = ledger.sessions()
        history = ledger.history("s1")
    told = [readings(each)[-1] for each in (first, second)]
    for name in ("evidence_bits", "evidence_bits_low", "evidence_bits_high"):
        assert [getattr(row, name) for row in rows] == pytest.approx(
            [r[name] for r in told], abs=1e-6
        )
    assert history[-1].evidence_bits == pytest.approx(told[-1]["evidence_bits"], abs=1e-6)


def test_sessions_without_evidence_tell_nothing_of_it(tmp_path):
    """A ledger from before there was any goes on; a closed-set peak says nothing of evidence."""
    path = tmp_path / "me.db"
    closed = readings(session(path, two_features()))[-1]
    told = readings(session(path, with_evidence()))
    assert closed["evidence_bits"] is None
    assert (closed["headline"], told[-1]["headline"]) == ("closed-set", "evidence")
    assert told[-1]["peak_bits"] == max(0.0, *(r["bits"] for r in told))
    with Ledger(path) as ledger:
        one, two = ledger.sessions()
    assert one.evidence_bits is None
    assert two.evidence_bits == pytest.approx(told[-1]["evidence_bits"], abs=1e-6)
    again = readings(session(path, with_evidence()))
    assert again[0]["peak_bits"] >= told[-1]["peak_bits"]


def test_a_reading_of_before_the_headline_was_the_evidence_is_read_right(tmp_path):
    path = tmp_path / "me.db"
    session(path, with_evidence())
    with Ledger(path) as ledger:
        (now,) = ledger.history("s1")[-1:]
        gone = ("headline", *(f"closed_set_{name}" for name in LIMITED))
        for row in ledger.connection.execute("SELECT rowid, record FROM readings").fetchall():
            record = json.loads(row["record"])
            old = {key: value for key, value in record.items() if key not in gone}
            old |= {name: record[f"closed_set_{name}"] for name in LIMITED}
            ledger.connection.execute(
                "UPDATE readings SET record = ? WHERE rowid = ?", (json.dumps(old), row["rowid"])
            )
        assert ledger.history("s1")[-1] == now
