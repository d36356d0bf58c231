"""The headline over sessions, evidence and closed-set figure: kept, shown, and a budget of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from monitor import Monitor
from monitor.alerts import budget
from monitor.ledger import Ledger
from monitor.run import LedgerFile
from monitor.sinks.jsonl import RunBuffer
from monitor.types import Frames, Track
from tests.stream.streams import (
    Listed,
    heard_by_both,
    run_reporter,
    run_through,
    two_features,
    with_evidence,
)

FEATURES = ["f0", "timbre"]
LIMITED = ("bits", "bits_low", "bits_high")


def like(name: str) -> Frames:
    """Three seconds of a voice such as that template's."""
    population, generator, ticks = with_evidence(), np.random.default_rng(4), 300
    row = population.offsets[population.index(name)]
    counts = population.features["f0"].slices[row]
    bins = generator.choice(counts.size, ticks, p=counts / counts.sum())
    late = np.arange(50, ticks + 1, 50)
    near = np.tile(population.features["timbre"].slices[row], (late.size, 1))
    return Frames(
        np.ones(ticks, np.bool_),
        {"f0": Track(np.arange(1, ticks + 1), bins), "timbre": Track(late, near)},
    )


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
    again.begin_with(once)
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


def test_a_budget_of_evidence_is_spent_over_sessions(tmp_path):
    """One that the first session alone leaves standing, and both together spend."""
    population, own = run_reporter(), like("s1")
    for name in ("dry.db", "me.db"):
        first = session(tmp_path / name, population, stream=own)
    dry = session(tmp_path / "dry.db", population, stream=own)
    most = max(r["evidence_bits"] for r in readings(first))
    bits = (most + max(r["evidence_bits"] for r in readings(dry))) / 2
    assert bits > most
    once = budget(bits)
    alone = session(tmp_path / "other.db", population, once, stream=own)
    assert not [r for r in alone if r["type"] == "alert" and r["level"] == "alert"]
    spent = budget(bits)
    for rule in spent:
        rule.hold_seconds = 0.0
    both = session(tmp_path / "me.db", population, spent, stream=own)
    raised = [r for r in both if r["type"] == "alert" and r["state"] == "raised"]
    assert {r["field"] for r in raised} == {"bits"}
    assert any(r["level"] == "alert" for r in raised)
    assert all(r["value"] >= r["threshold"] for r in raised)


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
