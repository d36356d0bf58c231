"""Alerts, crowds, bystanders and thresholds of other people's streams, as a replay is asked."""

import json
import re
from pathlib import Path

import pytest

from monitor import Monitor
from monitor.population.population import Population
from tests.alerts.receiver import receiving

RAISED = 3
RULE = "bits>0.5 for 2 s after 4 s"
ASK = ("--alert", "bits", "--false-alarms", "10%", {"horizon": "1m"})


@pytest.fixture
def replay(run, talk: Path, population: Path, monkeypatch):
    """Replay the talk of speaker 000003."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return lambda *more, us=population: run(
        "replay", talk, "-p", us, "-w", "000003", "--jsonl", "-", *more
    )


@pytest.fixture
def heard(run, crowds):
    """Replay the talk among people of whom there is evidence, or is none."""
    return lambda *options, store="told.npz", watch="s2": run(
        "replay", crowds / "talk.npz", "-p", crowds / store, "--watch", watch, *options
    )


def alerts(records):
    return [record for record in records if record["type"] == "alert"]


def test_actions_get_every_alert_and_stop_nothing_where_they_fail(replay, tmp_path):
    said = tmp_path / "said.jsonl"
    rules = ("--alert", RULE, "--warn", "10m")
    with receiving() as receiver, receiving((404, {})) as failing:
        addresses = tmp_path / "addresses"
        addresses.write_text(f"{receiver.url}\n{failing.url}\n")
        plain = replay(*rules)
        result = replay(
            *rules, "--on-alert", f"cat >> '{said}'", "--webhook", f"@{addresses}",
            "--on-alert", "exit 7",
            "--notify", f"json://127.0.0.1:{failing.port}/secret",
        )  # fmt: skip
    assert result.code == plain.code == RAISED
    assert result.readings == plain.readings
    expected = alerts(result.records)
    assert {record["level"] for record in expected} >= {"alert"}
    for got in (receiver.got, [json.loads(line) for line in said.read_text().splitlines()]):
        assert [{k: v for k, v in r.items() if k not in ("time", "watch")} for r in got] == expected
        assert {record["watch"] for record in got} == {"000003"}
    raised = [record["level"] for record in expected if record["state"] == "raised"]
    end = result.records[-1]
    assert (end["alerts"], end["warnings"]) == (raised.count("alert"), raised.count("warning"))
    assert len(end["failures"]) == 3
    for failure, words in zip(
        end["failures"],
        ("exit status 7", "answered 404", "the service did not take it"),
        strict=True,
    ):
        assert f"{len(expected)} of {len(expected)} alert" in failure
        assert words in failure
        assert f"{failure}\n" in result.err
    assert "secret" not in result.out + result.err


def test_addresses_with_secrets_need_not_be_arguments(replay, tmp_path, monkeypatch):
    with receiving() as first, receiving() as second:
        addresses = tmp_path / "addresses"
        addresses.write_text(f"# where alerts go\n\n{first.url}\n")
        assert replay("--alert", RULE, "--webhook", f"@{addresses}").code == RAISED
        monkeypatch.setenv("MONITOR_WEBHOOK", second.url)
        assert replay("--alert", RULE).code == RAISED
    assert first.got
    assert [each["rule"] for each in first.got] == [each["rule"] for each in second.got]


def test_what_can_never_be_is_said_beforehand(replay):
    result = replay("--webhook", "http://127.0.0.1:9/")
    assert result.code == 0
    assert "no --alert is set: nothing is sent to --webhook" in result.err


IDLE = [
    "--alert bits>9",
    "--alert bits>1 --alert bits>9",
    "--alert bits_low>3.55",
    "--alert closed_set_bits>9 --warn 30s",
    "--alert gain_bits>9",
    "--alert expected_bits>3.5",
    "--alert sum_bits>9",
    "--alert f0.rank_bits>3.5",
    "--alert f0.local_bits_high>9",
    "--budget 8bits",
]


@pytest.mark.parametrize("options", IDLE)
def test_a_rule_that_can_never_be_raised_is_refused_before_audio_is_read(replay, tmp_path, options):
    log = tmp_path / "run.jsonl"
    ledger = ("--ledger", tmp_path / "me.db") if "--budget" in options else ()
    asked = (*options.split(), *ledger)
    refused = replay(*asked)
    assert refused.code == 2
    assert "can never be raised: " in refused.complaint
    assert "--allow-idle-alerts" in refused.complaint
    assert not refused.out
    assert not list(tmp_path.iterdir())
    allowed = replay(*asked, "--allow-idle-alerts")
    assert allowed.code in (0, RAISED)
    assert "can never be raised: " in allowed.records[0]["notices"][-1]
    assert not log.exists()


def test_many_recordings_and_a_configuration_refuse_it_too(run, talk, population, tmp_path):
    """The summary of --each is not begun; the option may come from the file."""
    config, summary = tmp_path / "budget.toml", tmp_path / "all.csv"
    text = f'[replay]\npopulation = "{population}"\nfeatures = "f0"\nalert = ["bits>9 for 0 s"]\n'
    config.write_text(text)
    asked = ("--config", config, "replay", talk, "--each")
    for more in ((), ("--summary", summary), ("--watch", "000003")):
        refused = run(*asked, *more)
        assert refused.code == 2
        assert "can never be raised: among 12 speakers" in refused.complaint
    assert not summary.exists()
    config.write_text(text + "allow-idle-alerts = true\n")
    assert run(*asked).code == 0


def test_a_warning_does_not_end_it_and_gives_no_status(replay):
    """A threshold that nobody reaches, but that is forecast now and then."""
    result = replay("--alert", "sum_bits>3.5 for 40 s after 0 s", "--warn", "9m", "--stop-on-alert")
    warned = [r for r in alerts(result.records) if r["state"] == "raised"]
    assert {r["level"] for r in warned} == {"warning"}
    assert result.code == 0
    assert result.records[-1]["stopped"] is None
    assert re.search(r"^warning at 0:\d\d: 3.5 bits in about \d+ s \(sum_bits>", result.err, re.M)


def test_a_rule_of_other_peoples_streams_says_what_it_rests_on(replay, known):
    more = ("--alert", "bits>0.5", "--alert", "f0.rank_bits for 2 s", "--warn", "5m")
    result = replay(*ASK, *more, us=known)
    assert result.code == RAISED
    quote = Monitor(Population.load(known), ["f0"], "000003").false_alarms("bits", 0.1, 60.0)
    said, other = result.records[0]["alarms"]
    assert other["field"] == "f0.rank_bits"
    assert said["threshold"] == pytest.approx(quote.bits, abs=1e-6)
    assert said["false_alarms"] == {
        "share": 0.1, "horizon_seconds": 60.0, "speakers": 11, "repeated": 0, "session": "cross",
    }  # fmt: skip
    raised = next(each for each in alerts(result.records) if each["rule"] == said["rule"])
    assert raised["false_alarms"] == {**said["false_alarms"], "beyond": False}
    over = [r["seconds"] for r in result.readings if r["bits"] > said["threshold"]]
    assert over[0] == raised["seconds"]
    plain = [alert for alert in alerts(result.records) if alert["rule"] == "bits>0.5 for 5 s"]
    assert "false_alarms" not in plain[0]
    words = (
        f"monitor: note: bits > {quote.bits:.2f} bits: at most 10 of a hundred other people's "
        "streams of 1 minute raise it, according to 11 speakers\n"
    )
    assert words in result.err


def test_a_run_says_what_the_voice_is_worth_among_so_many(heard):
    default = heard()
    assert default.code == 0
    assert default.records[0]["among"] == [6, 1_000_000]
    asked = heard("--among", "1e4,6,1e9", {"enrolled-prior": "0.1"})
    start, *_, last = asked.records[:-1]
    assert start["among"] == [6, 10_000, 1_000_000_000]
    assert start["enrolled_prior"] == 0.1
    assert [each["people"] for each in last["among"]] == start["among"]
    assert last["evidence_bits"] == default.readings[-1]["evidence_bits"]
    assert last["enrolled"] < default.readings[-1]["enrolled"]
    plain = heard(store="plain.npz")
    assert plain.code == 0
    assert "the 6 enrolled: the rank model of f0+timbre" in plain.err
    assert all(reading["among"] is None for reading in plain.readings)


def test_bystanders_are_named_in_records_and_words(heard):
    quiet = ("--alert", "evidence_bits>1 for 0 s after 0 s", {"on-change": "ignore"})
    ask = ("--among", "30", {"bystanders": "4%"})
    result = heard(*ask, *quiet, store="more.npz", watch="s1")
    start, *_, end = result.records
    assert start["bystanders"] == {"above": 0.04, "people": 30}
    last = result.readings[-1]["bystanders"]
    assert last
    assert "s1" not in {each["name"] for each in last}
    assert {each["name"] for each in last} <= {each["name"] for each in end["bystanders"]}
    assert f"also narrowed down: {last[0]['name']}, " in result.err
    without = heard(*quiet, store="more.npz", watch="s1")
    assert all("bystanders" not in record for record in without.records)
    assert alerts(without.records) == alerts(result.records)  # of the watched one alone
