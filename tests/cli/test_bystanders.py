"""Everybody else enrolled, and a budget over sessions, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.sources.frames import write_frames
from tests.stream.streams import heard_by_both, run_reporter, two_features


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    heard = heard_by_both()
    lengths = {"f0": 0.01, "timbre": 0.5}
    write_frames(
        tmp_path / "talk.npz", heard.speech, heard.tracks, {"f0": 10, "timbre": 3}, lengths
    )
    run_reporter().save(tmp_path / "told.npz")
    two_features().save(tmp_path / "plain.npz")
    return tmp_path


@pytest.fixture
def replay(run, talk: Path):
    return lambda *options, store="told.npz", watch="s1": run(
        "replay", talk / "talk.npz", "-p", talk / store, "--watch", watch, "--jsonl", "-", *options
    )


ASK = ("--among", "30", "--bystanders", "4%", "--on-change", "ignore")


def test_they_are_named_in_records_and_words(replay):
    result = replay(*ASK)
    assert result.code == 0
    start, *readings, end = result.records
    assert start["bystanders"] == {"above": 0.04, "people": 30}
    last = readings[-1]["bystanders"]
    assert last
    assert "s1" not in {each["name"] for each in last}
    assert {each["name"] for each in last} <= {each["name"] for each in end["bystanders"]}
    assert f"also narrowed down: {last[0]['name']}, " in result.err
    assert all("bystanders" not in record for record in replay().records)


def test_alerts_are_about_the_watched_one_alone(replay):
    rule = ("--alert", "evidence_bits>1 for 0 s after 0 s", "--on-change", "ignore")
    with_them, without = (
        [r for r in replay(*rule, *more).records if r["type"] == "alert"] for more in (ASK, ())
    )
    assert with_them == without


@pytest.mark.slow
def test_the_terminal_says_it(terminal, talk):
    options = ("replay", talk / "talk.npz", "-p", talk / "told.npz", "--watch", "s1", *ASK)
    code, shown, _ = terminal(*options)
    assert code == 0
    assert "also narrowed down" in shown


@pytest.mark.parametrize(
    ("options", "store", "words"),
    [
        (["--bystanders", "1%"], "plain.npz", "bystanders cannot be told: "),
        (["--bystanders", "5"], "told.npz", "is not a share such as 5% or 0.05"),
        (["--among", "30", "--bystanders", "1%"], "told.npz", "over 1 in 30, which everybody"),
        (["--budget", "8bits"], "told.npz", "use --alert 'bits>8'"),
    ],
)
def test_what_makes_no_sense_is_refused(replay, tmp_path, monkeypatch, options, store, words):
    monkeypatch.chdir(tmp_path)
    result = replay(*options, store=store)
    assert result.code == 2
    assert words in result.complaint
    assert not (tmp_path / "me.db").exists()


def test_a_budget_stands_on_the_headline_over_sessions(run, replay, talk, tmp_path):
    most = max(r["evidence_bits"] for r in replay(watch="s4").readings)
    budget = f"{most / 8:.4f}"
    quiet = ("--on-change", "ignore")
    result = replay("--ledger", tmp_path / "me.db", "--budget", budget, *quiet, watch="s4")
    nearly = [r for r in result.records if r["type"] == "alert" and r["state"] == "raised"]
    assert {alert["field"] for alert in nearly} == {"bits"}
    (row,) = run("ledger", "show", tmp_path / "me.db").records
    last = result.readings[-1]
    assert last["bits"] == last["evidence_bits"]
    for name in ("bits", "evidence_bits", "closed_set_bits"):
        assert row[name] == pytest.approx(last[name], abs=1e-6)
    never = replay("--ledger", tmp_path / "more.db", "--budget", "60")
    assert "can never be raised: calibration can support" in never.err
