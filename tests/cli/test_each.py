"""monitor replay --each, as people use it: real processes, killed and gone on with."""

from __future__ import annotations

import csv
import subprocess
import time
from pathlib import Path

import pytest
import soundfile

from monitor.population import DEMO_SPEAKER, demo_frames
from tests.sounds import RATE

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 120.0
QUICK = ("--features", "f0", "--alert", "bits>0.1 for 1 s after 0 s")


@pytest.fixture
def talks(tmp_path: Path, voice) -> Path:
    folder = tmp_path / "talks"
    for number, seconds in enumerate((12.0, 8.0, 6.0, 9.0)):
        path = folder / f"day {number % 2}" / f"{number + 8}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, voice(seconds, 90.0 + 40 * number), RATE)
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_folder_is_a_table_whatever_the_number_of_processes(run, talks, tmp_path):
    tables = [tmp_path / f"{jobs}.csv" for jobs in (1, 2)]
    for jobs, table in enumerate(tables, 1):
        done = run("replay", talks, "--each", "--summary", table, *QUICK, "--jobs", jobs)
        assert (done.code, done.out) == (3, "")
        assert "measured 4 recordings (0.6 min" in done.err
        assert "an alert was raised in 4" in done.err
    assert tables[0].read_bytes() == tables[1].read_bytes()
    first = rows(tables[0])[0]
    assert first["recording"].endswith("day 0/8.wav")
    alone = run("replay", first["recording"], *QUICK)
    last = alone.readings[-1]
    assert float(first["bits"]) == pytest.approx(last["bits"], rel=1e-5)
    assert float(first["speech"]) == pytest.approx(last["speech"], rel=1e-5)
    assert first["exit_status"] == str(alone.code) == "3"


def test_the_status_is_the_worst_of_all_and_a_broken_file_no_end(run, talks, tmp_path, voice):
    table = tmp_path / "out.csv"
    plain = ("--each", "--summary", table, "--features", "f0", "--jobs", "1")
    assert run("replay", talks, *plain).code == 0
    soundfile.write(talks / "still.wav", 0 * voice(3.0), RATE)
    assert run("replay", talks, *plain, "--resume").code == 4
    (talks / "bad.wav").write_bytes(b"no audio")
    done = run("replay", talks, *plain, "--resume")
    assert done.code == 1
    assert "bad.wav is no recording" in done.err
    assert "measured 0 recordings (0.0 min); 1 could not be measured; 5 there already" in done.err
    assert [row["exit_status"] for row in rows(table)] == ["1", "0", "0", "0", "0", "4"]


def test_a_recording_too_short_to_decide_does_not_comfort(run, talks, tmp_path, voice):
    soundfile.write(talks / "short.wav", voice(5.0), RATE)
    table, rule = tmp_path / "out.csv", ("--features", "f0", "--alert", "bits>60 for 0 s")
    done = run("replay", talks, "--each", "--summary", table, *rule, "--jobs", "1")
    assert done.code == 4
    told = {Path(row["recording"]).name: row for row in rows(table)}
    assert (told["8.wav"]["undecided"], told["8.wav"]["exit_status"]) == ("", "0")  # 12 s
    short = told["short.wav"]
    assert short["exit_status"] == "4"
    assert short["undecided"].startswith("alert bits>60: not decided, 4.")
    assert f"short.wav: {short['undecided']}\n" in done.err
    assert "an alert was raised in 0, not decided in 4" in done.err
    alone = run("replay", talks / "short.wav", *rule)
    assert alone.code == 4
    assert alone.records[-1]["undecided"] == [short["undecided"]]
    assert f"monitor: {short['undecided']}\n" in alone.err
    (asked,) = alone.records[0]["alerts"]
    assert (asked["rule"], asked["least_speech_seconds"]) == ("bits>60 for 0 s", 0.0)
    at_once = run("replay", talks / "short.wav", *rule[:2], "--alert", "bits>60 for 0 s after 0 s")
    assert (at_once.code, at_once.records[-1]["undecided"]) == (0, [])


def test_no_alert_is_raised_about_somebody_who_is_probably_not_enrolled(run, clips, tmp_path):
    """A German reader, who is nobody enrolled, and one of the shipped readers."""
    table = tmp_path / "out.csv"
    done = run("replay", clips / "kerstin/all.npz", demo_frames(), "--each", "--summary", table,
               "--alert", "bits>1 after 20 s", "--jobs", 1)  # fmt: skip
    assert done.code == 3
    stranger, reader = sorted(rows(table), key=lambda row: float(row["enrolled"]))
    assert (stranger["watch"], reader["watch"]) == ("", "")
    assert (stranger["alerts"], stranger["exit_status"]) == ("0", "4")
    assert float(stranger["enrolled"]) < 0.2
    assert "it held, but probably nobody enrolled speaks" in stranger["undecided"]
    assert stranger["incomplete"] == stranger["undecided"]
    assert (reader["alerts"], reader["exit_status"], reader["incomplete"]) == ("1", "3", "")
    assert "bits at its end, if the speaker is enrolled (" in done.err
    assert "an alert was raised in 1, not decided in 1" in done.err
    watched = run("replay", clips / "kerstin/all.npz", "--watch", DEMO_SPEAKER,
                  "--alert", "bits>-90")  # fmt: skip
    assert watched.code == 3  # whoever is watched is whom the rule is about


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_and_gone_on_with_it_is_the_same_table(run, command, tmp_path, voice, jobs):
    talks = tmp_path / "talks"
    talks.mkdir()
    for number in range(12):
        soundfile.write(talks / f"{number}.wav", voice(30.0, 90.0 + 10 * number), RATE)
    whole, table = tmp_path / "whole.csv", tmp_path / "out.csv"
    run("replay", talks, "--each", "--summary", whole, *QUICK, "--jobs", "1")
    shell = [*command, "replay", talks, "--each", "--summary", table, *QUICK, "--jobs", jobs]
    until = time.monotonic() + PATIENCE_SECONDS
    with subprocess.Popen(shell, stderr=subprocess.PIPE) as process:
        while not table.exists() or table.read_bytes().count(b"\n") < 4:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.005)
        process.kill()
    assert 3 <= len(rows(table)) < 12
    time.sleep(3.0 if jobs == "2" else 0.0)  # its processes notice within moments, and end
    done = run("replay", talks, "--each", "--summary", table, *QUICK, "--jobs", jobs, "--resume")
    assert done.code == 3
    assert " there already" in done.err
    assert table.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--each"], "add --summary out.csv"),
        (["--summary", "out.csv"], "add --each"),
        ([], "is a folder; give a recording, or measure each in it: --each --summary out.csv"),
        (["--each", "--summary", "out.xlsx"], "name it .csv or .parquet"),
        (["--each", "--summary", "out.csv", "--jsonl", "r.jsonl"], "--jsonl is for one run"),
        (["--each", "--summary", "out.csv", "--plot", "r.png"], "--plot is for one run"),
        (["--each", "--summary", "out.csv", "--web", "0"], "--web is for one run"),
        (["--each", "--summary", "out.csv", "--speed", "2"], "--speed is for one run"),
        (["--each", "--summary", "out.csv", "--resume", "--replace"], "give one"),
        (["--each", "--summary", "out.csv", "--watch", "nobody here"], "nobody here"),
        (["--each", "--summary", "out.csv", "--stop-on-alert"], "needs an alert"),
        (["--each", "--summary", "out.csv", "-p", "no.npz"], "no.npz"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    run, talks, tmp_path, monkeypatch, options, words
):
    monkeypatch.chdir(tmp_path)
    done = run("replay", talks, "--features", "f0", *options)
    assert done.code in (1, 2)
    assert words in done.complaint
    assert not (tmp_path / "out.csv").exists()


def test_an_enrolled_recording_is_refused_in_words_of_the_command(
    run, people, population, tmp_path
):
    table = tmp_path / "out.csv"
    run("replay", people, "--each", "--summary", table, "-p", population, "--features", "f0")
    refused = [row["error"] for row in rows(table) if "were enrolled as" in row["error"]]
    assert refused
    assert all(error.endswith("or insist with --allow-overlap") for error in refused)
    assert all("(--start " in error for error in refused)


def test_the_rank_model_of_a_line_is_told_of_what_was_heard_alone(
    run, people, population, tmp_path
):
    table, first = tmp_path / "out.csv", people / "000003" / "s0.npz"
    other = people / "000003" / "s1.npz"
    asked = ("--each", "--summary", table, "-p", population, "--features", "f0", "--replace")
    refused = run("replay", first, other, *asked)
    assert "enrolled too" not in refused.err
    assert "measured 1 recording (" in refused.err
    assert "; 1 could not be measured; " in refused.err
    of = {Path(row["recording"]).name: row for row in rows(table)}
    told = {name: (row["session"], row["enrolled_too"]) for name, row in of.items()}
    assert told == {"s0.npz": ("", ""), "s1.npz": ("cross", "false")}
    heard = run("replay", first, other, *asked, "--allow-overlap")
    [line] = [line for line in heard.err.splitlines() if "enrolled too" in line]
    assert line.startswith(f"monitor: note: enrolled too: {first}: ")
    assert "s1.npz" not in line
    line = next(row for row in rows(table) if row["recording"].endswith("s0.npz"))
    assert line["enrolled_too"] == "true"
    rank_model = (
        "the same-session rank model is used" if line["session"] == "same" else "makes light of"
    )
    assert rank_model in heard.err


def test_a_truncated_file_is_named_on_stderr(run, talks, tmp_path, voice):
    """With what was lost; and so is one in which nobody speaks."""
    soundfile.write(tmp_path / "whole.flac", voice(9.0, 120.0), RATE)
    whole = (tmp_path / "whole.flac").read_bytes()
    (talks / "cut.flac").write_bytes(whole[: len(whole) // 2])
    soundfile.write(talks / "silence.wav", [0.0] * 2 * RATE, RATE)
    table = tmp_path / "all.csv"
    done = run("replay", talks, "--each", "--summary", table, "--features", "f0")
    assert done.code == 4
    (line,) = [line for line in done.err.splitlines() if "cut.flac" in line]
    assert "audio was lost" in line
    assert "could be read" in line
    (line,) = [line for line in done.err.splitlines() if "silence.wav" in line]
    assert line.endswith("silence.wav: no speech in it")
    by_name = {Path(row["recording"]).name: row for row in rows(table)}
    assert "audio was lost" in by_name["cut.flac"]["notices"]
    assert "audio was lost" not in by_name["8.wav"]["notices"]
