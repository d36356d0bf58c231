"""Whatever refuses a run does so before anything is written: nothing of an earlier run is lost."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import soundfile

from monitor.population.store import write_store
from monitor.stream.checkpoint import state_path
from tests.records import read_records
from tests.sounds import RATE

PATIENCE_SECONDS = 120


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that something else listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield int(other.getsockname()[1])


@pytest.fixture
def finished(run, talk: Path, population: Path, tmp_path: Path) -> Path:
    """The folder of a finished run, and of an interrupted one that can be resumed."""
    folder = tmp_path / "runs"
    folder.mkdir()
    assert run("replay", talk, "-p", population, "--jsonl", folder / "run.jsonl").code == 0
    lines = (folder / "run.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "cut.jsonl").write_bytes(b"".join(lines[:9]))
    write_store(state_path(folder / "cut.jsonl"), "checkpoint", {}, {})
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def wrong(folder: Path, port: int) -> list[tuple[list[object], str]]:
    """Options that are refused, and the words for it."""
    (folder.parent / "foreign.db").write_bytes(b"no database at all" * 99)
    return [
        (["--web", port], "something else listens there"),
        (["--web", "0.0.0.0:0"], "give a --web-token"),
        (["--webhook", "example.org", "--alert", "bits>1"], "--webhook needs an address"),
        (["--notify", "what://", "--alert", "bits>1"], "--notify needs an address"),
        (["--alert", "style.gain_bits>1"], "names a feature this stream does not have"),
        (["-p", folder / "no.npz"], "does not exist"),
        (["--rank-model", folder / "no.npz"], "does not exist"),
        (["--watch", "nobody at all"], "nobody called"),
        (["--ledger", folder / "me.db"], "name them with --watch"),
        (["--watch", "000003", "--ledger", folder / "no" / "me.db"], "cannot be opened"),
        (["--watch", "000003", "--ledger", folder.parent / "foreign.db"], "is no ledger"),
    ]


@pytest.mark.slow
def test_a_refused_replay_changes_nothing(run, talk, population, finished, taken):
    before = content(finished)
    more = [
        (["--plot", finished / "a.jpg"], "let the name end in .png, .svg or .pdf"),
        (["--plot", finished / "no" / "a.png"], "there is no folder"),
        (["--resume", "--replace"], "give one"),
    ]
    for options, words in wrong(finished, taken) + more:
        for name in ("run.jsonl", "cut.jsonl", "new.jsonl"):
            result = run(
                "replay", talk, "-p", population, "--jsonl", finished / name, "--replace", *options
            )
            assert result.code in (1, 2), options
            assert words in result.complaint, options
            assert content(finished) == before, options
    for source in (finished / "no.wav", finished / "run.jsonl"):
        result = run("replay", source, "-p", population, "--jsonl", finished / "run.jsonl",
                     "--replace")  # fmt: skip
        assert result.code in (1, 2)
        assert content(finished) == before


def test_a_refused_listener_changes_nothing(run, population, finished, taken):
    before = content(finished)
    for options, words in wrong(finished, taken):
        if "--alert" in options and "style.gain_bits>1" in options:
            continue  # needs a microphone first
        for name in ("run.jsonl", "cut.jsonl", "new.jsonl"):
            result = run(
                "listen", "-p", population, "--jsonl", finished / name, "--replace",
                "--device", "no such device", *options,
            )  # fmt: skip
            assert result.code in (1, 2), options
            if "--ledger" not in options:  # those come after the microphone
                assert words in result.complaint, options
            assert content(finished) == before, options


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run.jsonl", "holds a finished run: name another file, or overwrite it (--replace)"),
        ("cut.jsonl", "holds an unfinished run: go on with it (--resume), name another"),
        ("diary.txt", "holds something else: name another file, or overwrite it (--replace)"),
    ],
)
def test_what_is_there_is_overwritten_only_when_asked(run, talk, population, finished, name, words):
    (finished / "diary.txt").write_text("dear diary\n")
    before = content(finished)
    for command in (["replay", talk], ["listen"]):
        result = run(*command, "-p", population, "--jsonl", finished / name)
        assert result.code == 2
        assert words in result.complaint
        assert content(finished) == before
    result = run("replay", talk, "-p", population, "--jsonl", finished / name, "--replace")
    assert result.code == 0, result.err
    assert read_records(finished / name)[-1]["type"] == "end"
    assert not state_path(finished / name).exists()


def test_an_empty_file_is_nothing_to_lose(run, talk, population, tmp_path):
    (tmp_path / "run.jsonl").touch()
    assert run("replay", talk, "-p", population, "--jsonl", tmp_path / "run.jsonl").code == 0


@pytest.mark.slow
def test_two_runs_do_not_write_to_one_file(run, command, talk, population, tmp_path):
    """The second is refused; the first, killed and resumed, misses nothing."""
    path = tmp_path / "run.jsonl"
    options = [str(talk), "-p", str(population), "--jsonl", str(path), "--step", "0.1"]

    def going(*more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*command, "replay", *options, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    with going("--speed", "10") as first:
        until(lambda: state_path(path).exists(), first)
        for more in ([], ["--replace"], ["--resume"]):
            result = run("replay", *options, *more)
            assert result.code == 1
            assert "another run is writing to it" in result.complaint
        first.send_signal(signal.SIGKILL)
        first.communicate()
    assert run("replay", *options, "--resume").code == 0
    records = read_records(path)
    assert [r["seconds"] for r in records if r["type"] == "reading"] == [
        round(0.1 * n, 1) for n in range(1, 501)
    ]
    assert [record["type"] for record in records].count("start") == 1


def test_without_locks_it_is_said_and_goes_on(run, talk, population, tmp_path, monkeypatch):
    monkeypatch.setattr("monitor.files.fcntl", None)
    path = tmp_path / "run.jsonl"
    result = run("replay", talk, "-p", population, "--jsonl", path)
    assert result.code == 0
    assert f"note: the file system of {path} knows no locks; let nothing else write" in result.err
    assert read_records(path)[-1]["type"] == "end"


@pytest.mark.slow
def test_a_ledger_that_is_gone_is_not_made_anew_to_resume_with(
    run, command, talk, population, tmp_path
):
    path, ledger = tmp_path / "run.jsonl", tmp_path / "me.db"
    options = [str(talk), "-p", str(population), "-w", "000003", "--jsonl", str(path),
               "--ledger", str(ledger)]  # fmt: skip
    with subprocess.Popen(
        [*command, "replay", *options, "--speed", "5"], stderr=subprocess.PIPE, text=True
    ) as first:
        until(lambda: state_path(path).exists(), first)
        first.kill()
        first.communicate()
    for each in tmp_path.glob("me.db*"):
        each.unlink()
    before = content(tmp_path)
    result = run("replay", *options, "--resume")
    assert result.code == 1
    assert "me.db: there is no such ledger" in result.complaint
    assert content(tmp_path) == before


@pytest.mark.slow
def test_a_run_is_not_resumed_on_another_recording_of_the_same_name_and_size(
    run, command, voice, tmp_path
):
    recording, path = tmp_path / "talk.wav", tmp_path / "run.jsonl"
    soundfile.write(recording, voice(60.0), RATE)
    size = recording.stat().st_size
    options = [str(recording), "--features", "f0", "--jsonl", str(path)]
    with subprocess.Popen(
        [*command, "replay", *options, "--speed", "5"], stderr=subprocess.PIPE, text=True
    ) as first:
        until(lambda: state_path(path).exists(), first)
        first.kill()
        first.communicate()
    before = content(tmp_path)
    soundfile.write(recording, voice(60.0, pitch=200.0), RATE)
    assert recording.stat().st_size == size
    refused = run("replay", *options, "--resume")
    assert refused.code == 1
    assert "is of another run (not the same: recordings)" in refused.complaint
    recording.write_bytes(before["talk.wav"])
    assert content(tmp_path) == before
    assert run("replay", *options, "--resume").code == 0


def until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_file_of_somebody_elses_beside_the_run_is_left_alone(run, talk, population, tmp_path):
    notes = tmp_path / "run.jsonl.state"
    notes.write_text("my notes")
    result = run("replay", talk, "-p", population, "--jsonl", tmp_path / "run.jsonl")
    assert result.code == 1
    assert "run.jsonl.state lies where the checkpoint belongs" in result.complaint
    assert notes.read_text() == "my notes"
    assert not (tmp_path / "run.jsonl").exists()
