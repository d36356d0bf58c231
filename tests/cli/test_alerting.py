"""Alerts that do something, as the command line is asked for it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.alerts.receiver import receiving

RAISED = 3


@pytest.fixture
def replay(run, talk: Path, population: Path, monkeypatch):
    """Replay the talk of speaker 000003."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return lambda *more: run(
        "replay", talk, "-p", population, "-w", "000003", "--jsonl", "-", *more
    )


RULE = "bits>0.5 for 2 s after 4 s"


def alerts(records):
    return [record for record in records if record["type"] == "alert"]


@pytest.mark.slow
def test_a_command_and_a_webhook_get_every_alert(replay, tmp_path):
    said = tmp_path / "said.jsonl"
    with receiving() as receiver:
        result = replay(
            "--alert", RULE, "--warn", "10m", "--on-alert", f"cat >> '{said}'",
            "--webhook", receiver.url,
        )  # fmt: skip
    assert result.code == RAISED
    expected = alerts(result.records)
    assert {record["level"] for record in expected} >= {"alert"}
    for got in (receiver.got, [json.loads(line) for line in said.read_text().splitlines()]):
        assert [{k: v for k, v in r.items() if k not in ("time", "watch")} for r in got] == expected
        assert {record["watch"] for record in got} == {"000003"}
    end = result.records[-1]
    assert end["failures"] == []
    raised = [record["level"] for record in expected if record["state"] == "raised"]
    assert (end["alerts"], end["warnings"]) == (raised.count("alert"), raised.count("warning"))


def test_actions_that_fail_stop_nothing_and_are_told(replay):
    with receiving((404, {})) as receiver:
        plain = replay("--alert", RULE)
        result = replay(
            "--alert", RULE, "--on-alert", "exit 7", "--webhook", receiver.url,
            "--notify", f"json://127.0.0.1:{receiver.port}/secret",
        )  # fmt: skip
    assert result.code == plain.code == RAISED
    assert result.readings == plain.readings
    n = len(alerts(result.records))
    s = "" if n == 1 else "s"
    assert result.records[-1]["failures"] == [
        f"command exit: {n} of {n} alert{s} not delivered: exit status 7",
        f"webhook 127.0.0.1:{receiver.port}: {n} of {n} alert{s} not delivered: answered 404",
        f"notify json: {n} of {n} alert{s} not delivered: the service did not take it",
    ]
    for failure in result.records[-1]["failures"]:
        assert f"monitor: not done: {failure}\n" in result.err
    assert "secret" not in result.out + result.err
    assert "hush" not in result.out + result.err


def test_stop_on_alert_ends_the_stream(replay):
    whole = replay("--alert", RULE)
    (first, *_) = alerts(whole.records)
    result = replay("--alert", RULE, "--stop-on-alert")
    assert result.code == RAISED
    end = result.records[-1]
    assert (end["type"], end["stopped"], end["complete"]) == ("end", RULE, True)
    assert result.readings[-1]["seconds"] == end["seconds"] == first["seconds"]
    assert result.records[:-1][1:] == whole.records[1 : len(result.records) - 1]
    assert whole.records[-1]["stopped"] is None


def test_a_warning_does_not_end_it_and_gives_no_status(replay):
    """A threshold that nobody reaches, but that is forecast now and then."""
    result = replay("--alert", "sum_bits>3.5 for 40 s after 0 s", "--warn", "9m", "--stop-on-alert")
    warned = [r for r in alerts(result.records) if r["state"] == "raised"]
    assert {r["level"] for r in warned} == {"warning"}
    assert result.code == 0
    assert result.records[-1]["stopped"] is None
    assert re.search(r"^warning at 0:\d\d: 3.5 bits in about \d+ s \(sum_bits>", result.err, re.M)


def test_what_cannot_be_raised_is_said_beforehand(replay):
    result = replay("--alert", "bits>9")
    assert result.code == 0
    assert "can never be raised: among 12 speakers a voice can reach 3.5" in result.err
    assert any("can never be raised" in notice for notice in result.records[0]["notices"])


def test_a_receiver_without_an_alert_is_told_of(replay):
    with receiving() as receiver:
        result = replay("--webhook", receiver.url)
    assert result.code == 0
    assert "no --alert is set: nothing is sent to --webhook" in result.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--warn", "30s"], "--warn needs a threshold to warn of: add --alert 'bits>6'"),
        (["--on-alert", "true"], "--on-alert needs an alert: add --alert 'bits>6'"),
        (["--stop-on-alert"], "--stop-on-alert needs an alert: add --alert 'bits>6'"),
        (["--alert", "bots>3"], "did you mean bits?"),
        (["--alert", "bits>3", "--webhook", "example.org"], "--webhook needs an address"),
        (["--alert", "bits>3", "--notify", "what://"], "--notify needs an address"),
        (["--alert", "bits>3", "--on-alert", " "], "--on-alert needs a command"),
        (["--alert", "bits>3", "--warn", "0"], "must be a positive number of seconds"),
        (["--budget", "8bits"], "it needs --ledger FILE.db"),
        (["--budget", "many"], "is not a number of bits"),
        (["--budget", "0"], "is not a number of bits"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    run, talk, population, tmp_path, options, words
):
    result = run(
        "replay", talk, "-p", population, "-w", "000003", "--jsonl", tmp_path / "x", *options
    )
    assert result.code == 2
    assert words in result.complaint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_bell_rings_on_a_terminal(terminal, talk, population):
    arguments = ["replay", talk, "-p", population, "-w", "000003", "--alert", RULE]
    _, shown, _ = terminal(*arguments, "--bell", both=True)
    assert "\a" in shown
    assert "alert at 0:" in shown
    _, shown, _ = terminal(*arguments, both=True)
    assert "\a" not in shown
    _, _, err = terminal(*arguments, "--bell")
    assert "\a" not in err


def test_the_alert_takes_the_field_at_its_word(replay):
    """Bits that are shown above the threshold raise it, however unsure their lower limit is."""
    readings = replay().readings
    limit = max(reading["bits_low"] for reading in readings)
    shown = max(min(r["bits"] for r in readings[i : i + 6]) for i in range(len(readings) - 5))
    assert shown > limit + 0.05
    threshold = round((shown + limit) / 2, 3)
    raised = replay("--alert", f"bits>{threshold}")
    assert raised.code == RAISED
    assert [a["field"] for a in alerts(raised.records)][:1] == ["bits"]
    assert replay("--alert", f"bits_low>{threshold}").code == 0


def test_addresses_with_secrets_need_not_be_arguments(replay, tmp_path, monkeypatch):
    with receiving() as first, receiving() as second:
        addresses = tmp_path / "addresses"
        addresses.write_text(f"# where alerts go\n\n{first.url}\n")
        result = replay("--alert", RULE, "--webhook", f"@{addresses}")
        assert result.code == RAISED
        monkeypatch.setenv("MONITOR_WEBHOOK", second.url)
        assert replay("--alert", RULE).code == RAISED
    assert first.got
    assert [each["rule"] for each in first.got] == [each["rule"] for each in second.got]
    refused = replay("--alert", RULE, "--webhook", "@/nowhere/at/all")
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "--webhook @/nowhere/at/all: cannot be read: No such file" in refused.err
