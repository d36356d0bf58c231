"""monitor ledger, and --ledger and --budget of replay."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pytest

from monitor.sources.frames import write_frames
from monitor.types import Track

RAISED = 3


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "me.db"


@pytest.fixture
def replay(run, population: Path, ledger: Path):
    def replay(recording: Path, *more: object, watch: str = "000003"):
        return run(
            "replay", recording, "-p", population, "-w", watch, "--ledger", ledger, "--jsonl", "-",
            *more,
        )  # fmt: skip

    return replay


def test_bits_add_up_over_sessions(replay, run, halves, ledger):
    results = [replay(half) for half in halves]
    assert [result.code for result in results] == [0, 0], results[1].err
    first, second = results
    assert second.records[0]["carried"]["sessions"] == 1
    assert second.readings[0]["speech"] >= first.readings[-1]["speech"]
    assert "note: the bits go on from 1 earlier session of 000003" in second.err
    shown = run("ledger", "show", ledger).records
    assert [row["bits"] for row in shown] == [result.readings[-1]["bits"] for result in results]
    assert [row["recordings"] for row in shown] == [["s7.npz"], ["s8.npz"]]
    history = second.records[0]["carried"]["history"]
    assert [point["bits"] for point in history][-1] == first.readings[-1]["bits"]
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600


def test_the_same_recording_does_not_count_twice(replay, run, talk, ledger):
    assert replay(talk).code == 0
    before = ledger.read_bytes()
    again = replay(talk)
    assert again.code == 2
    assert "s1.npz: was heard as s1.npz in session 1 of me.db and would count" in again.complaint
    assert ledger.read_bytes() == before
    assert run("ledger", "forget", ledger, "000003", "--session", "1").code == 0
    assert replay(talk).code == 0


def test_a_budget_over_sessions(replay, halves):
    first, second = (replay(half, "--budget", "2bits") for half in halves)
    rules = {r["rule"]: r["level"] for h in (first, second) for r in h.records if "rule" in r}
    assert rules == {
        "budget of 2 bits nearly spent": "warning",
        "budget of 2 bits spent": "alert",
    }
    assert RAISED in (first.code, second.code)


def test_a_budget_that_cannot_be_spent(replay, talk):
    result = replay(talk, "--budget", "8bits")
    assert result.code == 0
    assert "note: budget of 8 bits spent: can never be raised: among 12 speakers" in result.err


@pytest.mark.slow
def test_show_on_a_terminal(replay, terminal, talk, ledger):
    replay(talk)
    code, shown, _ = terminal("ledger", "show", ledger, columns=120)
    assert code == 0
    header, row = shown.splitlines()
    assert "bits so far" in header
    assert [cell.strip() for cell in row.split()][:2] == ["1", "000003"]


def test_export(replay, run, talk, ledger, tmp_path):
    replay(talk, "--alert", "bits>-3 for 1 s after 0 s")
    replay(talk, watch="000004")
    out = run("ledger", "export", ledger, "--speaker", "000003", "-o", "-").records
    assert [r["type"] for r in out][:3] == ["session", "sketch", "reading"]
    assert out[-1]["type"] == "alert"
    run("ledger", "export", ledger, "-o", tmp_path / "all.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert [r["speaker"] for r in lines if r["type"] == "session"] == ["000003", "000004"]
    assert stat.S_IMODE((tmp_path / "all.jsonl").stat().st_mode) == 0o600


def test_sketches_come_to_no_terminal_nor_log_unasked(replay, run, terminal, talk, ledger):
    replay(talk)
    result = run("ledger", "export", ledger)
    assert (result.code, result.out) == (2, "")
    assert "sketches are biometric data: name a private file, -o FILE.jsonl, or" in result.complaint
    for more in ([], ["-o", "-"]):
        code, shown, err = terminal("ledger", "export", ledger, *more)
        assert (code, shown) == (2, "")
        assert "sketches are biometric data" in err
    assert "biometric" in run("ledger", "export", "--help").out


def test_forget(replay, run, talk, ledger):
    replay(talk, watch="000003")
    replay(talk, watch="000004")
    assert b"000003" in ledger.read_bytes()
    result = run("ledger", "forget", ledger, "000003")
    assert (result.code, result.err) == (0, "monitor: 1 session of 000003 forgotten\n")
    assert b"000003" not in ledger.read_bytes()
    assert [row["speaker"] for row in run("ledger", "show", ledger).records] == ["000004"]
    assert run("ledger", "scrub", ledger).code == 0
    for part in (["show", ledger, "--speaker"], ["export", ledger, "-o", "-", "--speaker"]):
        other = run("ledger", *part, "000003")
        assert (other.code, other.out) == (1, "")
        assert "nobody is called 000003" in other.complaint
    again = run("ledger", "forget", ledger, "000003")
    assert (again.code, again.complaint) == (
        1,
        "monitor: me.db: nobody is called 000003; see: monitor ledger show",
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-w", "000003", "--on-change", "reset"], "a ledger adds up one voice"),
        ([], "a ledger remembers one speaker: name them with --watch"),
    ],
)
def test_what_a_ledger_cannot_add_up(run, talk, population, ledger, options, words):
    result = run("replay", talk, "-p", population, "--ledger", ledger, "--jsonl", "-", *options)
    assert (result.code, result.out) == (2, "")
    assert words in result.complaint


@pytest.mark.parametrize("part", ["show", "export -o -", "scrub"])
def test_no_ledger(run, tmp_path, part):
    result = run("ledger", *part.split(), tmp_path / "none.db")
    assert result.code == 1
    assert "none.db: there is no such ledger" in result.complaint
    assert list(tmp_path.iterdir()) == []


def test_a_recording_without_speech_is_not_locked_out(replay, run, tmp_path, ledger):
    silent = tmp_path / "silent.npz"
    nothing = {"f0": Track(np.array([], np.intp), np.array([], np.intp))}
    write_frames(silent, np.zeros(500, bool), nothing, {"f0": 104}, {"f0": 0.01})
    for _ in range(2):
        result = replay(silent)
        assert "would count twice" not in result.err
        assert result.readings[-1]["speech"] == 0.0
    assert [row["speech"] for row in run("ledger", "show", ledger).records] == [0.0, 0.0]
