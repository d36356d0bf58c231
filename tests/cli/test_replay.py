from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import time

import numpy as np
import psutil
import pytest
import soundfile
from jsonschema import Draft202012Validator

from monitor.errors import SourceError
from monitor.events.schema import SCHEMA
from monitor.population.population import Population
from monitor.run import run as running
from monitor.sources.frames import write_frames
from monitor.stream.checkpoint import state_path
from monitor.stream.records import RunTotals
from monitor.types import Track
from tests.records import read_records
from tests.sounds import synthetic

RATE = 16_000
VALID = Draft202012Validator(SCHEMA)


@pytest.mark.slow
def test_json_lines_where_stdout_is_no_terminal(run, wav):
    result = run("replay", wav)
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
    assert run("replay", wav).readings == readings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "form", "subtype", "exact"),
    [
        ("a.flac", "FLAC", "PCM_16", True),
        ("a.opus", "OGG", "OPUS", False),
        ("a.ogg", "OGG", "VORBIS", False),
        ("a.mp3", "MP3", "MPEG_LAYER_III", False),
    ],
)
def test_formats(run, tmp_path, wav, name, form, subtype, exact):
    samples, _ = soundfile.read(wav)
    soundfile.write(tmp_path / name, samples, RATE, format=form, subtype=subtype)
    result, plain = run("replay", tmp_path / name), run("replay", wav)
    assert result.code == 0
    if exact:
        assert result.readings == plain.readings
    last, other = result.readings[-1], plain.readings[-1]
    assert last["seconds"] == pytest.approx(other["seconds"], abs=0.1)
    assert last["speech"] == pytest.approx(other["speech"], rel=0.1)
    assert last["features"]["f0"]["usable"] == pytest.approx(
        other["features"]["f0"]["usable"], rel=0.15
    )


@pytest.mark.slow
@pytest.mark.parametrize("rate", [8000, 11_025, 44_100, 48_000])
def test_sample_rates(run, tmp_path, wav, rate):
    import soxr

    samples, _ = soundfile.read(wav)
    soundfile.write(tmp_path / "a.wav", soxr.resample(samples, RATE, rate), rate)
    last, other = (
        run("replay", path, "--features", "f0").readings[-1] for path in (tmp_path / "a.wav", wav)
    )
    assert last["seconds"] == other["seconds"] == 12.0
    assert last["speech"] == pytest.approx(other["speech"], rel=0.05)
    assert last["features"]["f0"]["usable"] == pytest.approx(
        other["features"]["f0"]["usable"], rel=0.1
    )
    assert last["bits"] == pytest.approx(other["bits"], abs=0.3)


@pytest.mark.slow
def test_channels(run, tmp_path, wav):
    samples, _ = soundfile.read(wav)
    path = tmp_path / "stereo.wav"
    soundfile.write(path, np.column_stack([samples, 0 * samples]), RATE)
    left, right, both = (
        run("replay", path, *options) for options in (["--channel", 1], ["--channel", 2], [])
    )
    assert left.readings == run("replay", wav).readings
    assert {reading["bits"] for reading in right.readings} == {0.0}
    assert both.readings[-1]["speech"] > 1.0
    third = run("replay", path, "--channel", 3)
    assert third.code == 2
    assert "--channel 3: stereo.wav has 2 channels" in third.complaint
    assert "talk.wav has 1 channel" in run("replay", wav, "--channel", 2).complaint
    assert run("replay", path, "--channel", 0).code == 2


@pytest.mark.slow
def test_a_wav_from_a_pipe(run, command, wav):
    content = bytearray(wav.read_bytes())
    assert content[36:40] == b"data"
    content[4:8] = content[40:44] = struct.pack("<I", 0xFFFFFFFF)  # as ffmpeg writes to a pipe
    done = subprocess.run([*command, "replay", "-"], input=bytes(content), capture_output=True)
    assert done.returncode == 0
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert records[0]["recordings"] == ["-"]
    assert [r for r in records if r["type"] == "reading"] == run("replay", wav).readings


@pytest.mark.slow
def test_raw_samples_from_a_pipe(command, wav, run):
    samples, _ = soundfile.read(wav, dtype="int16")
    shell = [*command, "replay", "-", "--raw", "16000:2:s16le", "--channel", "2"]
    stereo = np.column_stack([0 * samples, samples])
    done = subprocess.run(shell, input=stereo.tobytes(), capture_output=True)
    assert done.returncode == 0
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r for r in records if r["type"] == "reading"] == run("replay", wav).readings
    wrong = run("replay", wav, "--raw", "16000:1:s16le")
    assert wrong.code == 2
    assert "give - as the file" in wrong.complaint


def test_frames_in_both_formats(run, talk, population, tmp_path):
    with np.load(talk) as file:
        speech, ticks, bins = file["speech"], file["f0_ticks"], file["f0"]
    found = dict(zip(ticks.tolist(), bins.tolist(), strict=True))
    header = {"schema": 1, "sizes": {"f0": 104}, "frame_seconds": {"f0": 0.01}}
    lines = [json.dumps(header)] + [
        json.dumps({"seconds": t / 100, "speech": bool(speech[t - 1]), "f0": found.get(t)})
        for t in range(1, speech.size + 1)
    ]
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(lines))
    options = ("-p", population, "--watch", "000003")
    one, two = run("replay", talk, *options), run("replay", path, *options)
    assert (one.code, two.code) == (0, 0)
    assert one.readings == two.readings
    assert one.readings[-1]["features"]["f0"]["rank"] >= 1
    assert one.records[0]["headline"] == "closed-set"


@pytest.mark.slow
def test_several_recordings_are_one_long_one(run, wav, tmp_path, voice):
    soundfile.write(tmp_path / "b.flac", voice(5.5, 180.0), 44_100 // 2)
    result = run("replay", wav, tmp_path / "b.flac")
    assert result.records[0]["recordings"] == ["talk.wav", "b.flac"]
    assert result.readings[11] == run("replay", wav).readings[-1]
    seconds = 12 + 5.5 * RATE / 22_050
    assert result.readings[-1]["seconds"] == pytest.approx(seconds, abs=0.011)


@pytest.mark.slow
def test_processes_change_nothing(run, wav, tmp_path, voice):
    soundfile.write(tmp_path / "b.flac", voice(5.5, 180.0), 44_100 // 2)
    recordings = (wav, tmp_path / "b.flac", "--features", "f0")
    one, two = (run("replay", *recordings, "--jobs", jobs) for jobs in (1, 2))
    assert two.records[1:-1] == one.records[1:-1]
    part = ("--start", "2.53", "--end", "0:09", "--features", "f0")
    assert run("replay", wav, *part, "--jobs", 2).readings == run("replay", wav, *part).readings


@pytest.mark.slow
def test_ctrl_c_ends_every_process_and_the_run_goes_on(command, tmp_path):
    for name in ("a.wav", "b.wav"):
        soundfile.write(tmp_path / name, np.tile(synthetic(60.0), 60), RATE)
    arguments = ["a.wav", "b.wav", "--features", "f0", "--step", "0.2", "--jsonl", "run.jsonl"]
    process = subprocess.Popen(
        [*command, "replay", *arguments, "--jobs", "2"], cwd=tmp_path, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    while not state_path(tmp_path / "run.jsonl").exists():
        assert process.poll() is None, process.stderr
        time.sleep(0.02)
    workers = psutil.Process(process.pid).children()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "monitor: to go on later, run the same command with --resume" in err
    assert err.splitlines()[-1] == "monitor: interrupted"
    assert "Traceback" not in err
    assert psutil.wait_procs(workers, timeout=20)[1] == []


@pytest.mark.slow
def test_an_interval(run, wav):
    result = run("replay", wav, "--start", "2.5", "--end", "0:09")
    assert result.readings[-1]["seconds"] == 6.5
    assert run("replay", wav, "--end", "12", "--start", "0").readings == run("replay", wav).readings
    assert run("replay", wav, wav, "--start", 1).code == 2
    assert "talk.wav ends at 12.00 s" in run("replay", wav, "--start", 13).complaint
    assert run("replay", wav, "--start", 5, "--end", 4).code == 2


@pytest.mark.slow
def test_steps(run, wav):
    plain = {reading["seconds"]: reading for reading in run("replay", wav).readings}
    for step, times in ((0.5, np.arange(0.5, 12.1, 0.5)), (5, [5, 10, 12])):
        readings = run("replay", wav, "--step", step).readings
        assert [reading["seconds"] for reading in readings] == list(times)
        for reading in readings:
            if reading["seconds"] in plain:
                same = {**plain[reading["seconds"]], "peak_bits": reading["peak_bits"]}
                assert reading == same
    for wrong in ("0", "0.005", "nan", "x"):
        assert run("replay", wav, "--step", wrong).code == 2


@pytest.mark.slow
def test_speed_changes_nothing_but_the_time(run, wav):
    assert run("replay", wav, "--speed", 500).readings == run("replay", wav).readings


def test_watching(run, talk, population):
    result = run("replay", talk, "-p", population, "--watch", "000003")
    start = result.records[0]
    assert (start["watch"], start["assumes_enrolled"]) == ("000003", False)
    last = result.readings[-1]
    assert last["bits"] > 0
    assert last["features"]["f0"]["local_bits"] == last["bits"]
    assert last["session"] == "cross"
    wrong = run("replay", talk, "-p", population, "--watch", "00003")
    assert wrong.code == 2
    assert "nobody called '00003' is enrolled; did you mean '0000" in wrong.complaint


def test_features(run, wav, talk, population, tmp_path):
    assert run("replay", wav, "--features", "f0").code == 0
    wrong = run("replay", wav, "--features", "f1")
    assert wrong.code == 2
    assert "no templates of f1" in wrong.complaint
    # frames of something else would be no evidence, silently
    np.savez(tmp_path / "other.npz", phones=np.array([1, 2, 3]))
    other = run("replay", tmp_path / "other.npz", "-p", population)
    assert other.code == 2
    assert "other.npz holds no frames of f0, only of phones" in other.complaint
    np.savez(tmp_path / "vectors.npz", f0=np.ones((3, 4)))
    vectors = run("replay", tmp_path / "vectors.npz", "-p", population)
    assert vectors.code == 2
    assert "f0 comes as embedding of size 4, the population has it as" in vectors.complaint


def test_alerts(run, talk, population, tmp_path):
    options = ("-p", population, "--watch", "000003")
    raised = run("replay", talk, *options, "--alert", "bits>0.1 for 2 s", "--alert", "bits>60")
    assert raised.code == 3
    alerts = [record for record in raised.records if record["type"] == "alert"]
    assert alerts[0]["state"] == "raised"
    assert {alert["rule"] for alert in alerts} == {"bits>0.1 for 2 s"}
    assert raised.records[-1]["alerts"] >= 1
    assert "alert at 0:" in raised.err
    silent = run("replay", talk, *options, "--alert", "bits>60 for 2 s")
    assert silent.code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("bits", "cannot read the alert rule"),
        ("bitz>3", "did you mean bits?"),
        ("f0.rank_bits>1", "needs a watched speaker"),
        ("style.gain_bits>1", "names a feature this stream does not have"),
    ],
)
def test_rules_that_do_not_fit_are_refused_before_anything_is_written(
    run, wav, tmp_path, rule, words
):
    path = tmp_path / "run.jsonl"
    path.write_text("an earlier run\n")
    result = run("replay", wav, "--alert", rule, "--jsonl", path, "--replace")
    assert result.code == 2
    assert words in result.complaint
    assert path.read_text() == "an earlier run\n"


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("SVG", b"<?xml"), ("pdf", b"%PDF")]
)
@pytest.mark.slow
def test_plots(run, wav, tmp_path, suffix, start):
    result = run("replay", wav, "--plot", tmp_path / f"talk.{suffix}")
    assert result.code == 0
    assert (tmp_path / f"talk.{suffix}").read_bytes().startswith(start)
    assert result.readings  # the data goes to stdout all the same


def test_two_files_for_one_run_are_refused(run, wav, tmp_path):
    files = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    result = run("replay", wav, "--jsonl", files[0], "--jsonl", files[1])
    assert result.code == 2
    assert "'--jsonl': given 2 times" in result.complaint
    assert not any(file.exists() for file in files)


@pytest.mark.slow
def test_json_lines_in_a_file(run, wav, tmp_path):
    path = tmp_path / "run.jsonl"
    result = run("replay", wav, "--jsonl", path)
    assert (result.code, result.out) == (0, "")
    plain = run("replay", wav, "--jsonl", "-")
    assert [r for r in read_records(path) if r["type"] == "reading"] == plain.readings
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not state_path(path).exists()
    assert run("replay", wav, "--jsonl", os.devnull).code == 0
    assert not state_path(path.with_name("null")).exists()


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
    options = ("-p", population, "--watch", "000003", "--alert", "bits>0.1 for 2 s")
    code, shown, err = terminal("replay", talk, *options, columns=80)
    assert code == 3
    assert '"type"' not in shown
    assert max(len(line) for line in re.sub("\x1b\\[[0-9]*m", "", shown).splitlines()) <= 80
    for words in (
        *("000003 disclosed", "of 3.6 bits, ", "average at this length", "at rank"),
        *("most probable", "of it speech", "bits>0.1 for 2 s at 0:", "95 % interval"),
    ):
        assert words in shown
    assert "not known: it takes a speaker embedding (voice)" in shown
    assert "alert at 0:" in err
    path = tmp_path / "run.jsonl"
    code, shown, err = terminal("replay", talk, *options[:2], "--jsonl", path, both=True)
    assert code == 0
    assert "attacker's confidence" in shown
    assert "assumes that the speaker is enrolled" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1  # the cursor is back
    assert len(read_records(path)) == 52


@pytest.mark.slow
def test_a_terminal_gets_its_cursor_back_after_an_error(terminal, talk, population, tmp_path):
    for options in (["--jsonl", tmp_path / "no" / "run.jsonl"], ["--jsonl", "/dev/full"]):
        code, shown, _ = terminal("replay", talk, "-p", population, *options, both=True)
        assert code == 1
        assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h")
        assert shown.splitlines()[-1].startswith("monitor: cannot write")


@pytest.mark.slow
def test_interrupted_and_resumed(run, command, talk, population, tmp_path):
    path = tmp_path / "run.jsonl"
    options = [str(talk), "-p", str(population), "--watch", "000003", "--step", "0.5",
               "--alert", "bits>0.1 for 2 s", "--jsonl", str(path)]  # fmt: skip
    process = subprocess.Popen(
        [*command, "replay", *options, "--speed", "2"], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not state_path(path).exists():
        assert process.poll() is None, process.stderr
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert out == ""
    assert "monitor: to go on later, run the same command with --resume" in err
    assert err.splitlines()[-1] == "monitor: interrupted"
    assert "Traceback" not in err
    before = read_records(path)
    assert 1 <= sum(r["type"] == "reading" for r in before) < 90
    assert before[-1]["type"] != "end"

    other = run("replay", *options, "--resume", "--channel", "1")
    assert other.code == 2  # frames have no channels
    other = run("replay", *[o if o != "0.5" else "1" for o in options], "--resume")
    assert other.code == 1
    assert "is of another run (not the same: step)" in other.complaint
    assert run("replay", *options, "--resume", "--plot", tmp_path / "a.png").code == 3
    whole = tmp_path / "whole.jsonl"
    assert run("replay", *options[:-1], str(whole)).code == 3

    def timeless(file):
        return [{**record, "time": None} for record in read_records(file)]

    assert timeless(path) == timeless(whole)
    assert not state_path(path).exists()
    assert (tmp_path / "a.png").exists()
    nothing = run("replay", *options, "--resume")
    assert nothing.code == 1
    assert "nothing to resume" in nothing.complaint
    assert f"with --replace to overwrite {path.name}" in nothing.complaint
    assert timeless(path) == timeless(whole)
    assert run("replay", talk, "--resume").code == 2


def test_a_rank_model_that_has_changed_is_another_run(run, talk, population, tmp_path):
    """What was said before the break and after it must come from one rank model."""
    path, us = tmp_path / "run.jsonl", tmp_path / "us.npz"
    us.write_bytes(population.read_bytes())
    command = ["replay", talk, "-p", us, "--jsonl", path]

    def stop(*_: object, **__: object) -> None:
        raise SourceError("the end of the world")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "CHECKPOINT_SECONDS", -1.0)
        patch.setattr(RunTotals, "end_event", stop)
        assert run(*command).code == 1
    assert state_path(path).exists()
    loaded = Population.load(us)
    for rank_model in loaded.rank_models:
        rank_model.alpha[0] *= 1.5
    loaded.save(us)
    result = run(*command, "--resume")
    assert result.code == 1
    assert "is of another run (not the same: rank model)" in result.complaint
    us.write_bytes(population.read_bytes())
    assert run(*command, "--resume").code == 0


def test_the_recording_that_was_enrolled(run, people, population):
    enrolled = people / "000003" / "s0.npz"
    result = run("replay", enrolled, "-p", population)
    assert (result.code, result.out) == (1, "")
    assert "were enrolled as 000003" in result.complaint
    assert "--allow-overlap" in result.complaint
    insisted = run("replay", enrolled, "-p", population, "--allow-overlap")
    assert insisted.code == 0
    assert {reading["session"] for reading in insisted.readings} == {"same"}
    assert "monitor: note: This recording was also enrolled" in insisted.err


def test_shorter_templates(run, talk, population):
    result = run("replay", talk, "-p", population, "--template-seconds", 12)
    assert result.records[0]["template_seconds"] == 10.0
    long = run("replay", talk, "-p", population, "--template-seconds", 60)
    assert long.code == 2
    assert "the longest has 20" in long.complaint


@pytest.mark.slow
def test_a_real_reader_among_the_shipped_ones(run, clips, reference):
    """Somebody who is not enrolled is not disclosed much, whatever the attacker believes."""
    result = run("replay", clips / "kerstin/all.npz")
    assert result.code == 0
    last = result.readings[-1]
    assert last["seconds"] == 40.0
    assert 20 < last["speech"] <= 40
    assert 5 < last["features"]["f0"]["usable"] < last["speech"]
    assert 0 < last["bits"] <= last["ceiling"]
    assert all(VALID.is_valid(record) for record in result.records)


@pytest.mark.slow
def test_several_people_in_one_stream_are_warned_of(run, clips, tmp_path):
    """A woman's chapter after a man's: the alert names the file it fell in, a note the odd one."""
    man, woman, nobody = (tmp_path / f"{name}.npz" for name in ("man", "woman", "nobody"))
    shutil.copy(clips / "1272/135031.npz", man)
    shutil.copy(clips / "1462/170138.npz", woman)
    silence = Track(np.empty(0, int), np.empty(0, int))
    write_frames(nobody, np.zeros(100, bool), {"f0": silence}, {"f0": 104}, {"f0": 0.01})
    result = run(
        "replay", man, woman, nobody, "--features", "f0",
        "--alert", "sum_bits>-99 for 62 s", "--on-alert", f"cat >> '{tmp_path}/said'",
    )  # fmt: skip
    assert result.code == 3
    assert result.records[-1]["incomplete"] == ["no speech in nobody.npz"]
    alert = next(record for record in result.records if record["type"] == "alert")
    assert (alert["seconds"], alert["recording"]) == (63.0, "woman.npz")
    said = json.loads((tmp_path / "said").read_text().splitlines()[0])
    assert said["recording"] == "woman.npz"
    end = result.records[-1]
    VALID.validate(end)
    assert end["recordings"] == ["man.npz", "woman.npz", "nobody.npz"]
    silent, strange = end["notices"]
    assert silent == "nobody.npz: no speech in it"
    assert strange.startswith("woman.npz: sounds like another person than what was heard before")
    for notice in end["notices"]:
        assert f"monitor: note: {notice}\n" in result.err
    same = run("replay", man, clips / "1272/128104.npz", "--features", "f0")
    assert same.records[-1]["notices"] == []


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
