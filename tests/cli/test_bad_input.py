"""Whatever is wrong is said in one line, ends with the right status, and loses nothing."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
import soundfile

from monitor.population.population import Population
from monitor.sources import File, registry

RATE = 16_000


@pytest.fixture(scope="module")
def broken_flac(voice, tmp_path_factory):
    """Forty seconds that end after about half."""
    path = tmp_path_factory.mktemp("broken") / "half.flac"
    soundfile.write(path, voice(40.0), RATE)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    return path


def put(path, content: bytes):
    path.write_bytes(content)
    return path


def test_a_source_that_somebody_registers_is_heard(run, wav, monkeypatch):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    registry.register("tape:", lambda name: File(wav.with_name(name)))
    taped, plain = (
        run("replay", name, "--features", "f0") for name in (f"tape:{wav.name}", str(wav))
    )
    assert taped.code == 0
    assert [{**r, "time": None} for r in taped.records] == [
        {**r, "time": None} for r in plain.records
    ]


def test_what_is_heard_live_is_no_recording(run):
    result = run("replay", "mic:", "--features", "f0")
    assert result.code == 2
    assert result.complaint == "monitor: microphone is heard live: use monitor listen"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("no.wav", None, "cannot open no.wav: No such file or directory; check the name"),
        ("folder", "folder", "folder is a folder; give a recording"),
        ("empty.wav", b"", "empty.wav is empty"),
        ("empty.flac", b"", "empty.flac is empty"),
        ("empty.npz", b"", "empty.npz is no file of frames"),
        ("empty.jsonl", b"", "empty.jsonl holds no frames"),
        ("text.wav", b"this is a letter, not a recording\n" * 9, "text.wav is no recording"),
        ("text.npz", b"this is a letter, not a recording\n" * 9, "text.npz is no file of frames"),
        ("text.jsonl", b"this is a letter\n", "text.jsonl line 1"),
        ("pipe.wav", "fifo", "pipe.wav is not a plain file"),
    ],
)
def test_recordings_that_are_none(run, tmp_path, name, content, words):
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content == "fifo":
        os.mkfifo(path)
    elif content is not None:
        path.write_bytes(content)
    log = tmp_path / "run.jsonl"
    result = run("replay", path, "--jsonl", log, "--plot", tmp_path / "a.png")
    assert (result.code, result.out) == (1, "")
    assert words in result.complaint
    assert str(tmp_path) not in result.complaint
    assert not log.exists()


def test_a_container_that_only_ffmpeg_reads(run, tmp_path):
    path = tmp_path / "Anna's  talk.m4a"
    path.write_bytes(b"\0\0\0\x20ftypM4A " + bytes(3000))
    said = run("replay", path).complaint
    assert f"; or try ffmpeg -i {shlex.quote(str(path))} -f wav - | monitor replay -  (" in said
    assert said.endswith(f" {shlex.quote(str(path.with_suffix('.wav')))})")
    letter = tmp_path / "letter.m4a"
    letter.write_text("Dear Anna, née Müller,\n" * 40)
    assert "ffmpeg" not in run("replay", letter).complaint


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="needs ffmpeg (Debian: ffmpeg)")
def test_the_line_for_ffmpeg_works_as_it_is_printed(run, tmp_path, wav):
    path = tmp_path / "my talk.m4a"
    subprocess.run(["ffmpeg", "-v", "error", "-i", wav, path], check=True)
    (line,) = re.findall(r"; or try (.*)  \(to enrol", run("replay", path).complaint)
    monitor = shlex.join([sys.executable, "-m", "monitor"])
    done = subprocess.run(
        line.replace("| monitor", f"| {monitor}") + " --features f0",
        shell=True, capture_output=True, text=True, check=True,
    )  # fmt: skip
    end = json.loads(done.stdout.splitlines()[-1])
    assert end["complete"]
    assert end["seconds"] == pytest.approx(12, abs=0.2)


@pytest.mark.slow
def test_a_flac_that_ends_in_the_middle(run, broken_flac, tmp_path):
    result = run("replay", broken_flac, "--plot", tmp_path / "a.png")
    assert result.code == 4
    assert "Traceback" not in result.err
    assert "audio lost at 0:" in result.err
    (gap,) = [record for record in result.records if record["type"] == "gap"]
    end = result.records[-1]
    heard = result.readings[-1]["seconds"]
    assert 10 < heard < 25
    assert len(result.readings) == math.ceil(heard)
    assert gap["reason"] == "broken file"
    assert gap["recording"] == "half.flac"
    assert gap["lost_seconds"] == pytest.approx(40 - heard, abs=0.02)
    assert (end["complete"], end["gaps"]) == (False, 1)
    assert end["lost_seconds"] == gap["lost_seconds"]
    assert result.readings[-1]["bits"] > 0
    assert (tmp_path / "a.png").exists()


@pytest.mark.slow
def test_what_is_raised_counts_before_what_is_lost(run, broken_flac, wav, tmp_path):
    rule = ("--features", "f0", "--alert", "bits>0.01 for 1 s after 0 s")
    result = run("replay", broken_flac, wav, *rule)
    assert result.code == 3
    end = result.records[-1]
    assert end["alerts"]
    assert end["incomplete"] == ["audio was lost (1 gap)"]
    both = "an alert was raised, and the run is incomplete: audio was lost (1 gap)"
    assert f"monitor: {both}\n" in result.err
    table = tmp_path / "each.csv"
    talks = ("--each", "--summary", table, "--jobs", "1")
    of_each = run("replay", broken_flac, wav, *rule, *talks)
    assert of_each.code == 3
    assert "half.flac: an alert at 0:0" in of_each.err
    assert "; incomplete: audio was lost (1 gap)\n" in of_each.err
    assert run("replay", broken_flac, wav, *rule[:2]).code == 4
    assert result.records[0]["recordings"] == ["half.flac", "talk.wav"]
    whole = run("replay", wav).readings[-1]["seconds"]
    alone = run("replay", broken_flac).readings[-1]["seconds"]
    assert result.readings[-1]["seconds"] == pytest.approx(alone + whole, abs=0.02)


def test_samples_that_are_no_numbers(run, tmp_path, voice):
    samples = voice(10.0)
    samples[20_000:20_160] = np.nan
    samples[60_000] = np.inf
    samples[60_001] = -np.inf
    path = tmp_path / "a.wav"
    soundfile.write(path, samples, RATE, subtype="FLOAT")
    result = run("replay", path)
    assert result.code == 4
    gaps = [record for record in result.records if record["type"] == "gap"]
    assert [gap["reason"] for gap in gaps] == ["not finite"] * 2
    assert [gap["lost_seconds"] for gap in gaps] == [0.01, pytest.approx(2 / RATE, abs=1e-6)]
    for gap, at in zip(gaps, (1.25, 3.75), strict=True):
        assert at <= gap["seconds"] <= math.ceil(at)  # before the reading that misses it
    assert len(result.readings) == 10
    assert "NaN" not in result.out
    assert "Infinity" not in result.out
    assert not result.records[-1]["complete"]


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


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1.0, 0.3, 0.004])
def test_very_short_recordings(run, tmp_path, voice, seconds):
    path = tmp_path / "short.wav"
    soundfile.write(path, voice(1.0)[: round(seconds * RATE)], RATE)
    result = run("replay", path, "--plot", tmp_path / "a.png")
    (reading,) = result.readings
    assert result.code == (0 if reading["speech"] else 4)
    assert reading["seconds"] == max(seconds, 0.01)
    assert abs(reading["bits"]) < reading["ceiling"]


def test_no_samples_at_all(run, tmp_path):
    path = tmp_path / "none.wav"
    soundfile.write(path, np.zeros(0), RATE)
    result = run("replay", path)
    assert result.code == 1
    assert "none.wav holds no audio" in result.complaint


def test_a_population_without_a_rank_model(run, talk, people, tmp_path):
    run("enrol", people, "-o", tmp_path / "us.npz", "--seconds", 10)
    result = run("replay", talk, "-p", tmp_path / "us.npz")
    assert result.code == 1
    assert "no rank model for f0; learn one with: monitor calibrate" in result.complaint
    lent = run("replay", talk, "-p", tmp_path / "us.npz", "--rank-model", "reference")
    assert lent.code == 0, lent.complaint
    assert "alibration lacks some enrolled speakers" in lent.err


def test_stores_that_cannot_be_used(run, talk, people, population, tmp_path):
    with np.load(population) as file:
        arrays = dict(file)
    header = json.loads(bytes(arrays["header"]))

    def store(name: str, **changes: object):
        text = json.dumps({**header, **changes}).encode()
        np.savez(tmp_path / name, **{**arrays, "header": np.frombuffer(text, np.uint8)})
        return tmp_path / name

    content = population.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes(64) + content[middle + 64 :]
    cases = [
        (tmp_path / "no.npz", "does not exist"),
        (tmp_path, "is a directory"),
        (store("newer.npz", schema=99), "has schema 99, this version reads up to 4; upgrade"),
        (
            store("rank_model.npz", kind="rank_model"),
            "is a rank model file, a population file is needed",
        ),
        (put(tmp_path / "half.npz", content[:middle]), "is damaged"),
        (put(tmp_path / "flipped.npz", flipped), "is damaged"),
        (put(tmp_path / "empty.npz", b""), "is damaged"),
        (put(tmp_path / "text.npz", b"dear diary"), "is damaged"),
        (talk, "is damaged or not a population file"),
    ]
    for path, words in cases:
        for arguments in (
            ["replay", people / "000005/s1.npz", "-p", path],
            ["enrol", people, "--base", path, "-o", tmp_path / "new.npz"],
        ):
            result = run(*arguments)
            assert (result.code, result.out) == (1, ""), path
            assert words in result.complaint
            assert result.err.count("\n") == 1
    result = run("replay", talk, "-p", population, "--rank-model", population)
    assert result.code == 1
    assert "is a population file, a rank model file is needed" in result.complaint
    assert not (tmp_path / "new.npz").exists()


def test_places_that_cannot_be_written_to(run, wav, people, tmp_path, monkeypatch):
    no = tmp_path / "no"

    def long_work(*_: object, **__: object) -> None:
        raise AssertionError("this should have been refused before the long work")

    monkeypatch.setattr("monitor.training.enrolling.enrol", long_work)
    monkeypatch.setattr("monitor.training.voices.collect", long_work)
    monkeypatch.setattr("monitor.run.Run.to_end", long_work)
    for arguments in (
        ["replay", wav, "--jsonl", no / "run.jsonl"],
        ["replay", wav, "--jsonl", tmp_path],
        ["replay", wav, "--plot", no / "a.png"],
        ["enrol", people, "-o", no / "us.npz"],
        ["enrol", people, "-o", tmp_path, "--replace"],
        ["calibrate", people, "-o", no / "us.npz"],
        ["calibrate", people, "--plot", no / "a.png"],
    ):
        result = run(*arguments)
        assert (result.code, result.out) == (1, ""), arguments
        assert result.err.count("\n") == 1
        assert "write" in result.complaint or "written" in result.complaint
    for arguments in (
        ["replay", wav, "--plot", tmp_path / "a.jpg"],
        ["calibrate", people, "--plot", tmp_path / "a.jpg"],
    ):
        result = run(*arguments)
        assert result.code == 2
        assert "let the name end in .png, .svg or .pdf" in result.complaint
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(run, wav, people, monkeypatch):
    result = run("replay", wav, "--features", "f0", "--jsonl", "/dev/full")
    assert result.code == 1
    assert "cannot write /dev/full: No space left on device" in result.complaint
    result = run("enrol", people, "--replace", "-o", "/dev/full/us.npz", "--seconds", 10)
    assert result.code == 1
    assert "cannot write" in result.complaint


def test_a_full_disk_keeps_what_was_there(run, people, population, tmp_path, monkeypatch):
    path = put(tmp_path / "us.npz", population.read_bytes())

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("enrol", people, "--replace", "-o", path, "--seconds", 10)
    assert result.code == 1
    assert "No space left on device" in result.complaint
    assert path.read_bytes() == population.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["us.npz"]


@pytest.mark.parametrize("command", ["enrol", "calibrate"])
def test_corpora_that_are_none(run, tmp_path, command, wav):
    (tmp_path / "empty").mkdir()
    (tmp_path / "flat").mkdir()
    put(tmp_path / "flat" / "a.wav", wav.read_bytes())
    (tmp_path / "list.csv").write_text("path,speaker\nno.wav,ann\nnot.wav,bob\n")
    (tmp_path / "columns.csv").write_text("file,who\nno.wav,ann\n")
    for name, words in (
        ("no", "no does not exist; check the name"),
        ("empty", "no recording in empty"),
        ("flat", "does not say whose"),
        ("list.csv", "names no recording that can be used: list.csv line 2: no.wav is missing"),
        ("columns.csv", "needs a first line with the columns path and speaker"),
    ):
        result = run(command, tmp_path / name, "-o", tmp_path / "new.npz")
        assert (result.code, result.out) == (1, ""), name
        assert words in result.complaint
        assert not (tmp_path / "new.npz").exists()


def test_a_manifest_that_names_missing_files(run, tmp_path, people):
    lines = [f"{people}/00000{i}/s0.npz,person{i}\n" for i in range(3)]
    (tmp_path / "list.csv").write_text("path,speaker\n" + "".join(lines) + "lost.npz,person3\n")
    result = run("enrol", tmp_path / "list.csv", "-o", tmp_path / "us.npz")
    assert result.code == 4
    assert result.complaint == "monitor: skipped: list.csv line 5: lost.npz is missing"
    assert Population.load(tmp_path / "us.npz").names == ("person0", "person1", "person2")


def test_a_corpus_with_a_broken_file(run, tmp_path, people, broken_flac):
    for i in range(3):
        (tmp_path / "c" / f"p{i}").mkdir(parents=True)
        put(tmp_path / "c" / f"p{i}" / "a.npz", (people / f"00000{i}/s0.npz").read_bytes())
    put(tmp_path / "c" / "p2" / "a.npz", b"damaged")
    result = run("enrol", tmp_path / "c", "-o", tmp_path / "us.npz")
    assert result.code == 4
    skipped = [line for line in result.err.splitlines() if "skipped" in line]
    assert skipped[0].startswith("monitor: skipped: p2/a.npz is no file of frames")
    assert skipped[1] == "monitor: skipped: p2: less than 5 s of speech, not enrolled"
    assert len(Population.load(tmp_path / "us.npz")) == 2


@pytest.mark.parametrize(
    "arguments",
    [["--speed", "0"], ["--speed", "-1"], ["--speed", "fast"], ["--step", "0"], ["--step", "soon"],
     ["--start", "-1"], ["--end", "0"], ["--start", "9", "--end", "3"], ["--channel", "-1"],
     ["--template-seconds", "0"], ["--template-seconds", "1h"], ["--foo"], ["--raw", "16000"],
     ["--features", "f0,f0"], ["--watch", ""], ["--resume"]],
)  # fmt: skip
def test_options_that_make_no_sense(run, wav, tmp_path, arguments):
    log = tmp_path / "run.jsonl"
    options = [] if "--resume" in arguments else ["--jsonl", log]
    result = run("replay", wav, *options, *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.complaint
    assert result.err.count("\n") == 1
    assert not log.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "nothing came through the pipe"),
        (b"OggS" + bytes(100), "the pipe carries no WAV"),
        (b"RIFF\0\0\0\0WAVE", "ends before its samples"),
    ],
)
def test_pipes_that_carry_no_wav(command, content, words):
    done = subprocess.run([*command, "replay", "-"], input=content, capture_output=True)
    assert (done.returncode, done.stdout) == (1, b"")
    assert words in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


@pytest.mark.slow
def test_a_pipe_that_ends_early(command, wav):
    done = subprocess.run(
        [*command, "replay", "-"], input=wav.read_bytes()[:-100_000], capture_output=True
    )
    assert done.returncode == 4
    *_, gap, _reading, end = (json.loads(line) for line in done.stdout.splitlines())
    assert (gap["type"], gap["reason"], gap["recording"]) == ("gap", "broken pipe", "-")
    assert gap["lost_seconds"] == 3.125
    assert not end["complete"]


def test_standard_input_is_heard_once(run):
    result = run("replay", "-", "-")
    assert result.code == 2
    assert "can be heard once" in result.complaint


@pytest.mark.parametrize("command", ["evaluate", "calibrate"])
def test_resamples_without_end_are_a_usage_error(run, tmp_path, command):
    path = tmp_path / "s.npz"
    np.savez(path, scores=np.eye(3), target=np.arange(3))
    more = ["-o", tmp_path / "rank_model.npz"] if command == "calibrate" else []
    result = run(command, path, "--replicates", "99999999999", *more)
    assert (result.code, len(result.err.splitlines())) == (2, 1)
    assert "99999999999 is not in the range" in result.err
    assert [each.name for each in tmp_path.iterdir()] == ["s.npz"]


LENGTHS = ["5e-324", "1e-310", "1e308", "1e18"]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("option", ["--step", "--start", "--end", "--template-seconds", "--speed"])
def test_lengths_that_are_none_are_one_line(run, talk, population, option, length):
    result = run("replay", talk, "-p", population, "--features", "f0", option, length)
    if result.code == 0:  # faster than any machine, say
        assert (option, float(length) > 1) in {("--speed", True), ("--end", True)}
        return
    assert (result.code, len(result.err.splitlines())) in {(1, 1), (2, 1)}
    assert "unexpected" not in result.err


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(
    "arguments",
    [
        ["enrol", "--seconds"],
        ["calibrate", "--lengths"],
        ["calibrate", "--template-lengths"],
        ["score", "--lengths"],
    ],
    ids=" ".join,
)
def test_lengths_of_nothing_make_no_store(run, people, population, tmp_path, arguments, length):
    command, option = arguments
    more = ["-p", population] if command == "score" else []
    result = run(command, people, *more, option, length, "-o", tmp_path / "out.npz")
    assert result.code == 2
    assert "unexpected" not in result.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["-p", "--rank-model", "--transcript", "--word-list", "--plot"])
def test_names_too_long_for_a_file_are_one_line(run, talk, option):
    result = run("replay", talk, option, "1" * 400 + ".png")
    assert result.code in (1, 2)
    assert "unexpected" not in result.err
    assert len(result.err.splitlines()) == 1
    assert len(result.err) < 600


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize("limit", [10, 16])
def test_too_few_open_files_are_said_in_one_line(command, wav, tmp_path, limit):
    import resource

    for name in ("ann", "bob", "cyd"):
        (tmp_path / name).mkdir()
        shutil.copy(wav, tmp_path / name / "talk.wav")
    done = subprocess.run(
        [*command, "enrol", ".", "--features", "f0", "--jobs", "3", "-o", "us.npz"], cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("monitor: ")]
    assert "raise the limit (ulimit -n 1024)" in line
    assert "Traceback" not in done.stderr
