"""monitor replay --turns and --per-channel, as people use them."""

from __future__ import annotations

import csv
import json
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.sounds import RATE

QUICK = ("--features", "f0")


@pytest.fixture
def call(tmp_path: Path, voice) -> Path:
    """Two voices, one on each channel."""
    path = tmp_path / "call.wav"
    both = np.stack([voice(20.0, 95.0), voice(20.0, 190.0)], axis=1)
    soundfile.write(path, both, RATE, subtype="FLOAT")
    for channel in (0, 1):
        soundfile.write(tmp_path / f"{channel + 1}.wav", both[:, channel], RATE, subtype="FLOAT")
    return path


@pytest.fixture
def meeting(tmp_path: Path, voice) -> tuple[Path, Path]:
    """The same voices in turn, four seconds each, and an RTTM of them."""
    path, turns = tmp_path / "meeting.wav", tmp_path / "meeting.rttm"
    own = voice(20.0, 95.0), voice(20.0, 190.0)
    size = 4 * RATE
    parts = [own[k % 2][(k // 2) * size : (k // 2 + 1) * size] for k in range(8)]
    soundfile.write(path, np.concatenate(parts), RATE, subtype="FLOAT")
    rttm = (f"SPEAKER meeting 1 {4 * k} 4 <NA> <NA> S{k % 2} <NA> <NA>\n" for k in range(8))
    turns.write_text("".join(rttm))
    return path, turns


def of(found, label):
    return [
        {key: value for key, value in reading.items() if key != "label"}
        for reading in found.readings
        if reading["label"] == label
    ]


def test_each_channel_of_a_call_is_what_a_run_of_it_alone_says(run, call, tmp_path):
    both = run("replay", call, "--per-channel", *QUICK)
    assert both.code == 0
    for channel in (1, 2):
        alone = run("replay", tmp_path / f"{channel}.wav", *QUICK)
        assert of(both, f"channel {channel}") == alone.readings
    assert [row["label"] for row in both.records[-1]["people"]] == ["channel 1", "channel 2"]


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--turns", "--rttm"])
def test_turns_give_everybody_records_a_row_and_a_picture(run, meeting, tmp_path, option):
    sound, turns = meeting
    log, table, plot = (tmp_path / name for name in ("m.jsonl", "m.csv", "m.png"))
    alert = ("--alert", "bits>0.1 for 1 s after 0 s", "--warn", "5")
    outputs = ("--jsonl", log, "--summary", table, "--plot", plot)
    done = run("replay", sound, option, turns, *QUICK, *alert, *outputs)
    assert done.code == 3
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["recording"], row["label"]) for row in rows] == [
        ("meeting.wav", "S0"), ("meeting.wav", "S1"),
    ]  # fmt: skip
    end = json.loads(log.read_text().splitlines()[-1])
    for row, said in zip(rows, end["people"], strict=True):
        assert float(row["bits"]) == pytest.approx(said["bits"])
        assert int(row["alerts"]) == said["alerts"] > 0
        assert float(row["seconds"]) == 16.0
    assert "S0: alert at" in done.err
    assert "2 people, most: S" in done.err
    assert plot.stat().st_size > 10_000
    assert {stat.S_IMODE(path.stat().st_mode) for path in (log, table, plot)} == {0o600}
    again = run("replay", sound, option, turns, *QUICK, "--summary", table)
    assert "exists; name another file" in again.complaint
    drawn = run("show", log, "-o", tmp_path / "again.svg")
    assert drawn.code == 0
    text = (tmp_path / "again.svg").read_text()
    crowds = run("show", log, "-o", tmp_path / "b.svg", "--among", "1e6")
    assert "--among draws one voice" in crowds.complaint
    exported = run("show", log, "-o", tmp_path / "readings.csv")
    assert exported.code == 0
    with (tmp_path / "readings.csv").open(newline="") as file:
        assert {row["label"] for row in csv.DictReader(file)} == {"S0", "S1"}
    assert text.count('id="S0"') == text.count('id="S1"') == 1


@pytest.mark.slow
def test_on_a_terminal_everybody_has_a_line_and_then_a_row(terminal, meeting):
    sound, turns = meeting
    code, shown, _ = terminal("replay", sound, "--turns", turns, *QUICK)
    assert code == 0
    assert "most probably" in shown
    assert "Brackets: 95 % interval" in shown
    assert "S0" in shown
    assert "S1" in shown


@pytest.mark.slow
def test_turns_come_through_a_pipe_as_from_a_file(run, command, meeting):
    sound, turns = meeting
    done = run("replay", sound, "--turns", turns, *QUICK)
    arguments = [*command, "replay", str(sound), "--turns", "-", *QUICK]
    with turns.open("rb") as lines:
        piped = subprocess.run(arguments, stdin=lines, capture_output=True, check=True)
    assert [r for r in map(json.loads, piped.stdout.splitlines()) if r["type"] == "reading"] == (
        done.readings
    )
    both = subprocess.run(
        [*command, "replay", "-", "--turns", "-"], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert both.returncode == 2
    assert "standard input (-) is the recording or that of --turns" in both.stderr


def test_several_are_watched(run, meeting):
    sound, turns = meeting
    watched = ("--watch", "1272", "--watch", "19")
    done = run("replay", sound, "--turns", turns, *QUICK, *watched)
    assert done.code == 0
    assert done.records[0]["watched"] == ["1272", "19"]
    assert {(r["label"], r["watch"]) for r in done.readings} == {
        (label, name) for label in ("S0", "S1") for name in ("1272", "19")
    }


def test_a_part_of_a_meeting(run, meeting):
    sound, turns = meeting
    done = run("replay", sound, "--turns", turns, *QUICK, "--start", "6", "--end", "14")
    assert done.code == 0
    seconds = [person["seconds"] for person in done.records[0]["people"]]
    assert seconds == [4.0, 4.0]
    assert [person["label"] for person in done.records[0]["people"]] == ["S1", "S0"]


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (["--per-channel"], "both tell people apart"),
        (["--protect", "mcadams:0.8"], "--protect is for one voice"),
        (["--ledger", "l.db", "--watch", "19"], "--ledger is for one voice"),
        (["--jsonl", "a.jsonl", "--resume"], "--resume is for one voice"),
        (["--transcript", "a.vtt"], "--transcript is for one voice"),
        (["--each", "--summary", "a.csv"], "--turns is for one run"),
        (["--summary", "a.txt"], "a summary is a table"),
        (["--watch", "19", "--watch", "19"], "watch each person once"),
        (
            ["--watch", "19", "--watch", "84", "--alert", "bits", "--false-alarms", "10%"],
            "a threshold for one --watch",
        ),
        (["--watch", "nobody", "--watch", "19"], "nobody"),
    ],
)
def test_what_does_not_go_together_is_refused(run, meeting, more, what):
    sound, turns = meeting
    done = run("replay", sound, "--turns", turns, *more)
    assert done.code == 2
    assert what in done.complaint


def test_what_is_wrong_with_turns_is_one_line(run, meeting, call, tmp_path):
    sound, turns = meeting
    turns.write_text("SPEAKER meeting 1 0 x <NA> <NA> S0\n")
    assert (
        "meeting.rttm line 1: 'x' is no number" in run("replay", sound, "--turns", turns).complaint
    )
    assert (
        "cannot read the turns" in run("replay", sound, "--turns", tmp_path / "no.rttm").complaint
    )
    two = run("replay", sound, call, "--per-channel").complaint
    assert "--per-channel is of one recording" in two
    assert "has one channel" in run("replay", sound, "--per-channel").complaint
    twice = run("replay", sound, "--watch", "19", "--watch", "1272").complaint
    assert "--watch several where people are told apart" in twice
