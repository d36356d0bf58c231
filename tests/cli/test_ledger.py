"""monitor ledger, and --ledger and --budget of replay."""

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


def test_bits_add_up_over_sessions_to_a_budget(replay, run, halves, ledger):
    results = [replay(half, "--budget", "2bits") for half in halves]
    first, second = results
    assert RAISED in (first.code, second.code)
    assert second.records[0]["carried"]["sessions"] == 1
    assert second.readings[0]["speech"] >= first.readings[-1]["speech"]
    assert "note: the bits continue from 1 earlier session of 000003" in second.err
    shown = run("ledger", "show", ledger).records
    assert [row["bits"] for row in shown] == [result.readings[-1]["bits"] for result in results]
    assert [row["recordings"] for row in shown] == [["s7.npz"], ["s8.npz"]]
    history = second.records[0]["carried"]["history"]
    assert [point["bits"] for point in history][-1] == first.readings[-1]["bits"]
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600
    rules = {r["rule"]: r["level"] for each in results for r in each.records if "rule" in r}
    assert rules == {"budget of 2 bits nearly spent": "warning", "budget of 2 bits spent": "alert"}


def test_the_same_recording_does_not_count_twice(replay, run, talk, ledger):
    assert replay(talk).code == 0
    before = ledger.read_bytes()
    again = replay(talk)
    assert again.code == 2
    assert "s1.npz: would count twice, since session 1 of me.db" in again.complaint
    assert ledger.read_bytes() == before
    assert run("ledger", "forget", ledger, "000003", "--session", "1").code == 0
    assert replay(talk).code == 0


@pytest.mark.slow
def test_on_a_terminal_a_table_and_no_sketches(replay, terminal, talk, ledger):
    replay(talk)
    code, shown, _ = terminal("ledger", "show", ledger, columns=120)
    assert code == 0
    assert "000003" in shown
    for more in ([], ["-o", "-"]):
        code, shown, err = terminal("ledger", "export", ledger, *more)
        assert (code, shown) == (2, "")
        assert "sketches are biometric data" in err


def test_export_and_forget(replay, run, talk, ledger, tmp_path):
    replay(talk, "--alert", "bits>-3 for 1 s after 0 s")
    replay(talk, watch="000004")
    out = run("ledger", "export", ledger, "--speaker", "000003", "-o", "-").records
    assert [r["type"] for r in out][:3] == ["session", "sketch", "reading"]
    assert out[-1]["type"] == "alert"
    run("ledger", "export", ledger, "-o", tmp_path / "all.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert [r["speaker"] for r in lines if r["type"] == "session"] == ["000003", "000004"]
    assert stat.S_IMODE((tmp_path / "all.jsonl").stat().st_mode) == 0o600
    assert b"000003" in ledger.read_bytes()
    result = run("ledger", "forget", ledger, "000003")
    assert (result.code, result.err) == (0, "monitor: 1 session of 000003 forgotten\n")
    assert b"000003" not in ledger.read_bytes()
    assert [row["speaker"] for row in run("ledger", "show", ledger).records] == ["000004"]
    assert run("ledger", "scrub", ledger).code == 0
    for part in ("show --speaker", "export -o - --speaker", "forget"):
        name, *options = part.split()
        other = run("ledger", name, ledger, *options, "000003")
        assert (other.code, other.out) == (1, "")
        assert "000003" in other.complaint
        assert "monitor ledger show" in other.complaint


def test_a_recording_without_speech_is_not_locked_out(replay, run, tmp_path, ledger):
    silent = tmp_path / "silent.npz"
    nothing = {"f0": Track(np.array([], np.intp), np.array([], np.intp))}
    write_frames(silent, np.zeros(500, bool), nothing, {"f0": 104}, {"f0": 0.01})
    for _ in range(2):
        result = replay(silent)
        assert "would count twice" not in result.err
        assert result.readings[-1]["speech"] == 0.0
    assert [row["speech"] for row in run("ledger", "show", ledger).records] == [0.0, 0.0]
