"""monitor replay --turns and --per-channel, as people use them."""

from __future__ import annotations

import csv
import json
import stat
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.sounds import RATE

QUICK = ("--features", "f0")


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


def test_each_channel_of_a_call_is_what_a_run_of_it_alone_says(run, voice, tmp_path):
    call, one = tmp_path / "call.wav", tmp_path / "2.wav"
    both = np.stack([voice(12.0, 95.0), voice(12.0, 190.0)], axis=1)
    soundfile.write(call, both, RATE, subtype="FLOAT")
    soundfile.write(one, both[:, 1], RATE, subtype="FLOAT")
    found = run("replay", call, "--per-channel", *QUICK)
    assert found.code == 0
    own = [reading for reading in found.readings if reading.pop("label") == "channel 2"]
    assert own == run("replay", one, *QUICK).readings
    assert [row["label"] for row in found.records[-1]["people"]] == ["channel 1", "channel 2"]


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


def test_several_are_watched_in_a_part_of_a_meeting(run, meeting):
    sound, turns = meeting
    watched = ("--watch", "1272", "--watch", "19", "--start", "6", "--end", "14")
    done = run("replay", sound, "--turns", turns, *QUICK, *watched)
    assert done.code == 0
    start = done.records[0]
    assert start["watched"] == ["1272", "19"]
    assert {(r["label"], r["watch"]) for r in done.readings} == {
        (label, name) for label in ("S0", "S1") for name in ("1272", "19")
    }
    assert [(each["label"], each["seconds"]) for each in start["people"]] == [("S1", 4), ("S0", 4)]
