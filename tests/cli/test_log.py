"""Lines on standard error: for people, for a collector of logs, or only those that matter."""

from __future__ import annotations

import json
from datetime import datetime

ALERTING = "--features", "f0", "--alert", "expected_bits>0.1"


def test_lines_of_a_log_are_json(run, wav):
    text = run("replay", wav, *ALERTING)
    result = run("--log", "json", "replay", wav, *ALERTING)
    assert result.code == text.code == 3
    lines = [json.loads(line) for line in result.err.splitlines()]
    assert {"info", "alert"} <= {line["level"] for line in lines}
    for line in lines:
        assert datetime.fromisoformat(line["time"]).tzinfo is not None
        assert line["message"]
    last = run("--log", "json", "replay", "nothing.wav")
    (fault,) = [json.loads(line) for line in last.err.splitlines()]
    assert fault["level"] == "error"
    assert fault["message"].startswith("cannot open nothing.wav")


def test_a_quiet_log_has_alerts_and_errors(run, wav):
    result = run("--log", "quiet", "replay", wav, *ALERTING)
    levels = [
        json.loads(line)["level"]
        for line in run("--log", "json", "replay", wav, *ALERTING).err.splitlines()
    ]
    assert len(result.err.splitlines()) == len(levels) - levels.count("info")
    assert "expected_bits>0.1" in result.err
    assert "cannot open nothing.wav" in run("--log", "quiet", "replay", "nothing.wav").err


def test_the_option_goes_before_the_command(run):
    refused = run("replay", "--log", "json", "nothing.wav")
    assert refused.code == 2
    assert "monitor --log json replay" in refused.err
