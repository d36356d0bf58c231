"""monitor replay: what it prints, writes and leaves with; an anonymiser and several people."""

import csv
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import soundfile
from jsonschema import Draft202012Validator

from monitor.alerts.crossings import as_text
from monitor.events.declaration import from_json
from monitor.events.run import DelayRow
from monitor.events.schema import SCHEMA
from monitor.population.population import Population
from monitor.stream.checkpoint import state_path
from tests.records import read_records
from tests.settings import configured
from tests.sounds import RATE, synthetic

VALID = Draft202012Validator(SCHEMA)
PITCH = ("--features", "f0")
PROTECTED = ("--features", "f0", "--watch", "19", "--protect", "mcadams:0.8")


@pytest.fixture(scope="module")
def half(voice, tmp_path_factory) -> Path:
    """Forty seconds that end after about half."""
    path: Path = tmp_path_factory.mktemp("broken") / "half.flac"
    soundfile.write(path, voice(40.0), RATE)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


@pytest.mark.slow
def test_records_where_stdout_is_no_terminal_or_in_a_file_and_a_picture(run, wav, tmp_path):
    result = run("replay", wav, "--plot", tmp_path / "talk.SVG")
    assert result.code == 0
    for record in result.records:
        VALID.validate(record)
    start, *_, end = result.records
    readings = result.readings
    assert (start["type"], start["recordings"], start["watch"]) == ("start", ["talk.wav"], None)
    assert [reading["seconds"] for reading in readings] == [float(s) for s in range(1, 13)]
    assert (end["type"], end["complete"], end["gaps"], end["readings"]) == ("end", True, 0, 12)
    assert 0 < readings[-1]["bits"] <= readings[-1]["ceiling"]
    assert end["bits"] == readings[-1]["bits"]
    # for people, on stderr: what an attacker may do beyond this, and one line that sums up
    *notes, summary = result.err.splitlines()
    assert all(each.startswith(("monitor: note: ", "note at ")) for each in notes)
    assert summary.startswith("0:12 of 0:12 audio")
    assert (tmp_path / "talk.SVG").read_bytes().startswith(b"<?xml")
    path = tmp_path / "run.jsonl"
    written = run("replay", wav, "--jsonl", path, "--speed", 500)
    assert (written.code, written.out) == (0, "")
    assert [r for r in read_records(path) if r["type"] == "reading"] == readings
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not state_path(path).exists()
    assert run("replay", wav, "--jsonl", os.devnull).code == 0
    assert not state_path(path.with_name("null")).exists()


@pytest.mark.slow
def test_raw_samples_from_a_pipe(command, wav, run):
    samples, _ = soundfile.read(wav, dtype="int16")
    shell = [*command, "replay", "-", "--raw", "16000:2:s16le", "--channel", "2"]
    stereo = np.column_stack([0 * samples, samples])
    done = subprocess.run(shell, input=stereo.tobytes(), capture_output=True)
    assert done.returncode == 0
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert records[0]["recordings"] == ["-"]
    assert [r for r in records if r["type"] == "reading"] == run("replay", wav).readings


@pytest.mark.slow
def test_parts_and_steps(run, wav):
    plain = {reading["seconds"]: reading for reading in run("replay", wav).readings}
    for step, times in ((0.5, np.arange(0.5, 12.1, 0.5)), (5, [5, 10, 12])):
        readings = run("replay", wav, {"step": step}).readings
        assert [reading["seconds"] for reading in readings] == list(times)
        for reading in readings:
            if reading["seconds"] in plain:
                same = {**plain[reading["seconds"]], "peak_bits": reading["peak_bits"]}
                assert reading == same
    result = run("replay", wav, "--part", "2.5-0:09", "--jobs", 2)
    assert result.readings[-1]["seconds"] == 6.5


def test_watching_and_alerts(run, talk, population):
    options = ("-p", population, "--watch", "000003", {"template-seconds": 12})
    raised = run("replay", talk, *options, "--alert", "bits>0.1 for 2 s", "--alert", "bits>3.5")
    assert raised.code == 3
    start, last = raised.records[0], raised.readings[-1]
    assert (start["watch"], start["assumes_enrolled"]) == ("000003", False)
    assert start["template_seconds"] == 10.0
    assert last["bits"] == last["features"]["f0"]["local_bits"] > 0
    assert last["session"] == "cross"
    alerts = [record for record in raised.records if record["type"] == "alert"]
    assert alerts[0]["state"] == "raised"
    assert {alert["rule"] for alert in alerts} == {"bits>0.1 for 2 s"}
    assert "alert at 0:" in raised.err
    assert run("replay", talk, *options, "--alert", "bits>3.5 for 2 s").code == 0


def test_what_is_read_is_not_overwritten(run, wav, tmp_path, population):
    for name, source, options in (
        ("talk.wav", wav, []),
        ("us.npz", population, ["-p", tmp_path / "us.npz"]),
        ("me.db", wav, ["--ledger", tmp_path / "me.db"]),
    ):
        (tmp_path / name).write_bytes(source.read_bytes())
        recording = tmp_path / name if not options else wav
        result = run("replay", recording, *options, "--jsonl", tmp_path / name, "--replace")
        assert result.code == 2
        assert "is read by this run; write to another file" in result.complaint
        assert (tmp_path / name).read_bytes() == source.read_bytes()


@pytest.mark.slow
def test_a_table_on_a_terminal(terminal, talk, population, tmp_path):
    options = ("-p", population, "--watch", "000003", "--alert", "bits>0.1 for 2 s", {"bell": True})
    code, shown, err = terminal("replay", talk, *options, columns=80)
    assert code == 3
    assert '"type"' not in shown
    assert max(len(line) for line in re.sub("\x1b\\[[0-9;]*m", "", shown).splitlines()) <= 80
    for words in ("000003 disclosed", "of 3.6 bits, ", "bits>0.1 for 2 s at 0:", "95 % interval"):
        assert words in shown
    assert "alert at 0:" in err
    assert "\a" not in err
    path = tmp_path / "run.jsonl"
    code, shown, err = terminal("replay", talk, *options, "--jsonl", path, both=True)
    assert code == 3
    assert "\a" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1  # the cursor is back
    assert read_records(path)[-1]["type"] == "end"


def test_a_container_that_only_ffmpeg_reads(run, tmp_path):
    path = tmp_path / "Anna's  talk.m4a"
    path.write_bytes(b"\0\0\0\x20ftypM4A " + bytes(3000))
    said = run("replay", path).complaint
    assert f", or try ffmpeg -i {shlex.quote(str(path))} -f wav - | monitor replay -  (" in said
    assert said.endswith(f" {shlex.quote(str(path.with_suffix('.wav')))})")


@pytest.mark.slow
def test_what_is_raised_counts_before_what_is_lost(run, half, wav, tmp_path):
    lost = run("replay", half, "--features", "f0", "--plot", tmp_path / "a.png")
    assert lost.code == 4
    assert "audio lost at 0:" in lost.err
    (gap,) = [record for record in lost.records if record["type"] == "gap"]
    assert (gap["reason"], gap["recording"]) == ("broken file", "half.flac")
    heard = lost.readings[-1]["seconds"]
    assert 10 < heard < 25
    assert gap["lost_seconds"] == pytest.approx(40 - heard, abs=0.02)
    assert (lost.records[-1]["complete"], lost.records[-1]["gaps"]) == (False, 1)
    assert (tmp_path / "a.png").exists()
    rule = ("--features", "f0", "--alert", "bits>0.01 for 1 s after 0 s")
    result = run("replay", half, wav, *rule)
    assert result.code == 3
    assert result.records[0]["recordings"] == ["half.flac", "talk.wav"]
    assert result.records[-1]["alerts"]
    assert result.records[-1]["incomplete"] == ["audio was lost (1 gap)"]
    both = "an alert was raised. The run is incomplete: audio was lost (1 gap)"
    assert f"monitor: {both}\n" in result.err
    assert result.readings[-1]["seconds"] == pytest.approx(heard + 12, abs=0.02)


def test_silence_discloses_exactly_nothing(run, tmp_path, reference):
    path = tmp_path / "silence.wav"
    soundfile.write(path, np.zeros(8 * RATE), RATE)
    for options in ([], ["--watch", reference.names[0]]):
        result = run("replay", path, *options)
        assert result.code == 4  # somebody should look at it
        assert "monitor: note: silence.wav: no speech in it\n" in result.err
        assert result.records[-1]["notices"] == ["silence.wav: no speech in it"]
        assert len(result.readings) == 8
        for reading in result.readings:
            figures = {
                key: value
                for record in (reading, *reading["features"].values(), reading["guides"])
                for key, value in record.items()
                if "bits" in key or key in ("linear", "sqrt", "speech", "usable")
            }
            assert {value for value in figures.values() if value is not None} == {0.0}
            assert reading["top"][0][1] == pytest.approx(1 / len(reference), abs=1e-6)
        assert result.records[-1]["peak_bits"] == 0.0


def test_the_recording_that_was_enrolled(run, people, population):
    insisted = run("replay", people / "000003/s0.npz", "-p", population, {"allow-overlap": True})
    assert insisted.code == 0
    assert {reading["session"] for reading in insisted.readings} == {"same"}
    assert "monitor: note: This recording was also enrolled" in insisted.err


@pytest.mark.slow
def test_who_is_not_enrolled_is_not_disclosed_much(run, clips):
    """Whatever the attacker believes; and evidence against somebody is no comfort."""
    result = run("replay", clips / "kerstin/all.npz")
    assert result.code == 0
    last = result.readings[-1]
    assert last["seconds"] == 40.0
    assert 5 < last["features"]["f0"]["usable"] < last["speech"] <= 40
    assert 0 < last["bits"] <= last["ceiling"]
    assert all(VALID.is_valid(record) for record in result.records)
    other = run("replay", clips / "1462/170138.npz", "--watch", "1272")
    bits = other.records[-1]["bits"]
    assert bits < -2
    said = f"{bits:.1f} bits are evidence against 1272: another voice, or a changed one."
    assert f"monitor: note: {said}" in other.err
    assert said in " ".join(other.records[-1]["notices"])
    assert "evidence against" not in run("replay", clips / "1272/128104.npz", "--watch", "1272").err


@pytest.mark.speech
def test_two_people_on_two_channels_are_not_mixed_without_a_word(run, shared, tmp_path):
    two = [
        soundfile.read(shared / "speech" / name, frames=20 * RATE)[0]
        for name in ("train-clean-5/19/198.opus", "dev-clean/174/50561.opus")
    ]
    soundfile.write(tmp_path / "call.wav", np.stack(two, axis=1), RATE)
    result = run("replay", tmp_path / "call.wav", "--features", "f0")
    notices = [record for record in result.records if record["type"] == "notice"]
    (notice,) = [each for each in notices if each["kind"] == "channels differ"]
    assert notice["recording"] == "call.wav"
    for record in result.records:
        VALID.validate(record)
    assert any(notice["text"] in line for line in result.records[-1]["notices"])
    assert "--channel 2" in result.err
    alone = run("replay", tmp_path / "call.wav", "--features", "f0", "--channel", "2")
    assert "--channel" not in alone.err


@pytest.mark.slow
def test_interrupted_it_ends_every_process_and_goes_on(command, run, tmp_path):
    for name in ("a.wav", "b.wav"):
        soundfile.write(tmp_path / name, np.tile(synthetic(60.0), 12), RATE)
    path = tmp_path / "run.jsonl"
    shell = ["replay", tmp_path / "a.wav", tmp_path / "b.wav", "--features", "f0", {"step": "5"},
             "--jsonl", path, "--jobs", "2"]  # fmt: skip
    process = subprocess.Popen(
        [*command, *configured(shell, tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not state_path(path).exists():
        assert process.poll() is None, process.stderr
        time.sleep(0.02)
    workers = psutil.Process(process.pid).children()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "monitor: to continue later, run the same command with --resume" in err
    assert err.rstrip().endswith("monitor: interrupted")
    assert psutil.wait_procs(workers, timeout=20)[1] == []
    before = read_records(path)
    assert before[-1]["type"] != "end"
    other = run(*[each if each != {"step": "5"} else {"step": "1"} for each in shell], "--resume")
    assert other.code == 1
    assert "belongs to another run (different: step)" in other.complaint
    assert run(*shell, "--resume").code == 0
    assert [{**r, "time": 0} for r in read_records(path)[: len(before)]] == [
        {**r, "time": 0} for r in before
    ]
    assert not state_path(path).exists()
    nothing = run(*shell, "--resume")
    assert nothing.code == 1
    assert f"--replace to overwrite {path.name}" in nothing.complaint


@pytest.mark.slow
def test_averages_are_drawn_only_with_guides(run, wav, tmp_path):
    for asked in ((), ({"guides": True},)):
        path = tmp_path / f"talk{len(asked)}.svg"
        assert run("replay", wav, "--plot", path, *asked).code == 0
        text = path.read_text()
        assert "square-root growth" in text
        assert ("average plateau" in text) == bool(asked)


@pytest.mark.slow
def test_both_sides_of_an_anonymiser_and_for_whom_they_are(run, wav, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = tmp_path / "safe.npz"
    Population.reference().only(["f0"]).save(known)
    rule = ("--alert", "protected.bits>-60 for 2 s after 0 s")
    found = run("replay", wav, *PROTECTED, "--plot", "both.png", *rule)
    assert found.code == 3
    start = found.records[0]
    assert start["protected"]["method"] == "mcadams:0.8"
    assert list(start["protected"]["attackers"]) == ["ignorant"]
    assert all(record["protected"]["by"] == "ignorant" for record in found.readings)
    assert "for an attacker unaware of the anonymiser" in found.err
    (alert,) = [record for record in found.records if record["type"] == "alert"]
    (there,) = [r for r in found.readings if r["seconds"] == alert["seconds"]]
    assert (alert["field"], alert["value"]) == ("protected.bits", there["protected"]["bits"])
    assert (tmp_path / "both.png").stat().st_size > 10_000
    # nothing of the audio is stored
    assert {each.name for each in tmp_path.iterdir()} == {"both.png", "safe.npz"}
    knows = run("replay", wav, *PROTECTED, "--protected-population", known)
    assert list(knows.records[0]["protected"]["attackers"]) == ["ignorant", "lazy-informed"]
    assert "the stronger of an attacker with enrolled" in knows.err


@pytest.mark.slow
def test_the_protected_side_is_that_of_a_protected_file(run, tmp_path):
    """What a replay of monitor protect's file tells; --each has it in its line."""
    (tmp_path / "talks").mkdir()
    clear, safe, table = tmp_path / "talks/0.wav", tmp_path / "safe.wav", tmp_path / "out.csv"
    soundfile.write(clear, synthetic(8.0), RATE, subtype="FLOAT")
    (tmp_path / "talks/broken.wav").write_bytes(b"RIFF")
    who = ("--features", "f0,phones", "--watch", "19")
    method = ("--protect", "noise:6", {"protect-seed": "4"})
    both = run("replay", clear, *who, *method)
    done = run("protect", clear, "-o", safe, "--method", "noise:6", "--seed", "4")
    assert done.code == 0
    alone = run("replay", safe, *who)
    for here, there in zip(both.readings, alone.readings, strict=True):
        told = here["protected"]["attackers"]["ignorant"]
        assert {key: there[key] for key in told} == told
    options = ("replay", tmp_path / "talks", "--each", "--summary", table, *who)
    assert run(*options, *method).code == 1
    with table.open(newline="") as file:
        row, broken = csv.DictReader(file)
    assert broken["error"]
    assert broken["crossings"] == broken["protected_bits"] == ""
    assert float(row["protected_bits"]) == pytest.approx(both.records[-2]["protected"]["bits"])
    delays = [from_json(DelayRow, row) for row in both.records[-1]["disclosure_delay"]]
    assert (row["protected_by"], row["crossings"]) == ("ignorant", as_text(delays))
    other = run(*options, "--protect", "noise:7", {"protect-seed": "4"}, "--resume")
    assert "made with other options" in other.err


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
    found = run("replay", call, "--per-channel", *PITCH)
    assert found.code == 0
    own = [reading for reading in found.readings if reading.pop("label") == "channel 2"]
    assert own == run("replay", one, *PITCH).readings
    assert [row["label"] for row in found.records[-1]["people"]] == ["channel 1", "channel 2"]


@pytest.mark.slow
def test_turns_give_everybody_records_a_row_and_a_picture(run, meeting, tmp_path):
    sound, turns = meeting
    log, table, plot = (tmp_path / name for name in ("m.jsonl", "m.csv", "m.png"))
    alert = ("--alert", "bits>0.1 for 1 s after 0 s", "--warn", "5")
    outputs = ("--jsonl", log, "--summary", table, "--plot", plot)
    done = run("replay", sound, "--turns", turns, *PITCH, *alert, *outputs)
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
    drawn = run("show", log, "-o", tmp_path / "again.svg")
    assert drawn.code == 0
    text = (tmp_path / "again.svg").read_text()
    exported = run("show", log, "-o", tmp_path / "readings.csv")
    assert exported.code == 0
    with (tmp_path / "readings.csv").open(newline="") as file:
        assert {row["label"] for row in csv.DictReader(file)} == {"S0", "S1"}
    assert text.count('id="S0"') == text.count('id="S1"') == 1


def test_several_are_watched_in_a_part_of_a_meeting(run, meeting):
    sound, turns = meeting
    watched = ("--watch", "1272", "--watch", "19", "--part", "6-14")
    done = run("replay", sound, "--turns", turns, *PITCH, *watched)
    assert done.code == 0
    start = done.records[0]
    assert start["watched"] == ["1272", "19"]
    assert {(r["label"], r["watch"]) for r in done.readings} == {
        (label, name) for label in ("S0", "S1") for name in ("1272", "19")
    }
    assert [(each["label"], each["seconds"]) for each in start["people"]] == [("S1", 4), ("S0", 4)]
