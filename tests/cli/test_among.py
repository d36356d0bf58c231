"""Evidence on the command line: --among, --enrolled-prior, alerts on it, its pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.sources.frames import write_frames
from tests.stream.streams import heard_by_both, two_features, with_evidence


@pytest.fixture
def talk(tmp_path):
    heard = heard_by_both()
    lengths = {"f0": 0.01, "timbre": 0.5}
    write_frames(
        tmp_path / "talk.npz", heard.speech, heard.tracks, {"f0": 10, "timbre": 3}, lengths
    )
    with_evidence().save(tmp_path / "told.npz")
    two_features().save(tmp_path / "plain.npz")
    return tmp_path


def replay(run, talk: Path, *options: object, store: str = "told.npz"):
    return run("replay", talk / "talk.npz", "-p", talk / store, *options)


def test_a_run_says_what_the_voice_is_worth_among_so_many(run, talk):
    default = replay(run, talk, "--watch", "s2")
    assert default.code == 0
    assert default.records[0]["among"] == [6, 1_000_000]
    asked = replay(run, talk, "--watch", "s2", "--among", "1e4,6,1e9", "--enrolled-prior", "0.1")
    start, *_, last = asked.records[:-1]
    assert start["among"] == [6, 10_000, 1_000_000_000]
    assert start["enrolled_prior"] == 0.1
    assert [each["people"] for each in last["among"]] == start["among"]
    assert last["evidence_bits"] == default.readings[-1]["evidence_bits"]
    assert last["among"][0] == default.readings[-1]["among"][0]
    assert last["enrolled"] < default.readings[-1]["enrolled"]
    nobody = replay(run, talk).readings[-1]
    assert nobody["evidence_bits"] is None
    assert nobody["among"][-1]["favourite"][0] in with_evidence().names


def test_jobs_change_nothing(run, talk):
    one, two = (replay(run, talk, "--watch", "s2", "--jobs", jobs) for jobs in (1, 2))
    assert one.out.splitlines()[1:-1] == two.out.splitlines()[1:-1]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--among", "5"], "no room for the 6 enrolled; ask for 6 or more"),
        (["--among", "many"], "'many' is not a list of people such as 1e4,1e6"),
        (["--among", "1e4,-3"], "-3 is no size of a crowd"),
        (["--among", "1e12"], "from 2 to 1e+10"),
        (["--among", ""], "is not a list of people"),
        (["--enrolled-prior", "1"], "not in the range 0.0<x<1.0"),
        (["--alert", "evidence_bits>3"], "needs a watched speaker: name one"),
        (["--watch", "s2", "--alert", "among.1e5.bits>3"], "add --among 100000"),
        (["--watch", "s2", "--alert", "among.x.bits>3"], "'x' is no number of people"),
    ],
)
def test_what_makes_no_sense_is_said_on_one_line(run, talk, options, says):
    result = replay(run, talk, *options)
    assert result.code == 2
    assert says in result.complaint
    assert result.out == ""


def test_an_alert_on_evidence_and_on_a_crowd(run, talk):
    reached = max(r["evidence_bits"] for r in replay(run, talk, "--watch", "s2").readings)
    rules = [
        f"evidence_bits>{reached - 0.01:.6f} for 0 s after 0 s",
        f"among.1e6.bits>{reached - 0.1:.6f} for 0s after 0 s",
    ]
    for rule in rules:
        result = replay(run, talk, "--watch", "s2", "--alert", rule)
        assert result.code == 3, rule
        alert = next(record for record in result.records if record["type"] == "alert")
        assert alert["field"] == rule.split(">")[0]
    never = replay(run, talk, "--watch", "s2", "--alert", "evidence_bits>60 after 0 s")
    assert never.code == 0
    assert "can never be raised: calibration can support" in never.err


def test_a_population_without_evidence_goes_on_as_before(run, talk):
    result = replay(run, talk, "--watch", "s2", store="plain.npz")
    assert result.code == 0
    assert "nothing can be said beyond the 6 enrolled: the rank model of f0+timbre" in result.err
    assert all(reading["among"] is None for reading in result.readings)
    refused = replay(run, talk, "--watch", "s2", "--alert", "evidence_bits>3", store="plain.npz")
    assert refused.code == 2
    assert "calibrate again" in refused.complaint


def test_pictures_of_one_voice_among_crowds(run, talk):
    for name, store in (("told", "told.npz"), ("plain", "plain.npz")):
        code = replay(
            run, talk, "--watch", "s2", "--jsonl", talk / f"{name}.jsonl", store=store
        ).code
        assert code == 0
    picture = talk / "crowds.svg"
    assert run("show", talk / "told.jsonl", "-o", picture, "--among", "6,1e4,1e6").code == 0
    assert "a town of ten thousand" in picture.read_text()
    assert run("show", talk / "told.jsonl", "-o", talk / "run.svg").code == 0
    assert "Evidence that this is s2" in (talk / "run.svg").read_text()
    refused = run("show", talk / "plain.jsonl", "-o", picture, "--among", "6")
    assert refused.code == 2
    assert "this run has no evidence to draw" in refused.complaint
    assert run("show", talk / "told.jsonl", "-o", picture, "--among", "3").code == 2
