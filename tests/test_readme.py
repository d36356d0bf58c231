"""The ways of adding oneself that the README and its guides show, word for word, on real speech."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from markdown_it import MarkdownIt
from markdown_it.token import Token

from monitor.population.population import Population
from tests.virtual_microphone import VirtualMicrophone, virtual_microphone

pytestmark = pytest.mark.slow

__all__ = ["virtual_microphone"]

ROOT = Path(__file__).resolve().parents[1]
GUIDES = ("README.md", "docs/own-people.md", "docs/monitoring.md")
"""Pages whose commands enrol somebody and use what it made."""
ME = "1272"
PEOPLE = 9
"""Beside me: a rank model takes ten."""
PIECE_SECONDS = 30.0
"""Of speech and pauses: a template of 10 s of speech, a test, and windows of embeddings between."""
ENROLLED_SECONDS = 10
PATIENCE_SECONDS = 120.0

Shell = Callable[[str], subprocess.CompletedProcess[str]]


def blocks() -> list[list[str]]:
    """The commands of all guides."""
    pages = [(ROOT / page).read_text(encoding="utf-8") for page in GUIDES]
    return [lines for page in pages for lines in of_page(page)]


def of_page(text: str) -> list[list[str]]:
    """Its commands: the lines of each block of shell, and each one within a sentence."""

    def of(tokens: list[Token]) -> Iterator[list[str]]:
        for token in tokens:
            if token.type == "fence" and token.info == "sh":
                yield token.content.replace("\\\n", "").splitlines()
            elif token.type == "code_inline" and re.match(r"(\.venv/bin/)?monitor ", token.content):
                yield [" ".join(token.content.split())]
            yield from of(token.children or [])

    return list(of(MarkdownIt().parse(text)))


def enrolling(words: str) -> list[list[str]]:
    """From each block the line that enrols so, and those that use what it made."""
    found = []
    for lines in blocks():
        for i, line in enumerate(lines):
            if "monitor enrol " in line and words in line:
                arguments = shlex.split(line, comments=True)
                made = arguments[arguments.index("-o") + 1]
                found.append([line, *(later for later in lines[i + 1 :] if made in later)])
    assert found, f"no guide shows how to enroll {words}"
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the program where the guides have it."""
    program = tmp_path / ".venv" / "bin" / "monitor"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m monitor "$@"\n')
    program.chmod(0o755)
    return tmp_path


@pytest.fixture
def shell(place: Path) -> Shell:
    """Runs a line as it stands."""

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line], cwd=place, env=environment(place, os.environ), check=False,
            capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip

    return run


def environment(place: Path, others: Any) -> dict[str, str]:
    return {**others, "PATH": f"{place / '.venv' / 'bin'}:{others['PATH']}"}


def chapters(shared: Path) -> dict[str, list[Path]]:
    """The recordings of each reader of dev-clean."""
    found: dict[str, list[Path]] = {}
    with (shared / "speech" / "manifest.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["corpus"] == "dev-clean":
                found.setdefault(row["speaker"], []).append(shared / "speech" / row["path"])
    return found


def piece(source: Path, target: Path, start_seconds: float = 10.0) -> None:
    """A part of a recording, as a file of its own."""
    rate = soundfile.info(source).samplerate
    samples, _ = soundfile.read(
        source, round(PIECE_SECONDS * rate), round(start_seconds * rate), dtype="float32"
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(target, samples, rate)


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def watched(found: list[dict[str, Any]]) -> None:
    """The run followed ``me``, and said how many bits."""
    assert found[0]["watch"] == "me"
    last = [record for record in found if record["type"] == "reading"][-1]
    assert last["speech"] > 3
    assert last["bits"] is not None
    assert last.get("withheld") is None
    assert last["features"]["phones"]["usable"] > 1
    assert found[-1]["type"] == "end"


def test_every_way_of_adding_oneself_is_run_here():
    shown = [line for lines in blocks() for line in lines if "monitor enrol " in line]
    # protected people are not oneself, and a further session is tests/cli/test_forget.py's
    shown = [line for line in shown if " safe/ " not in line and " --add " not in line]
    run = [line for words in ("me/ ", "voices/ ", "--microphone") for line, *_ in enrolling(words)]
    assert sorted(shown) == sorted(run)


@pytest.mark.slow
def test_a_folder_of_ones_own(shared, place, shell):
    first, second, third = chapters(shared)[ME]
    piece(first, place / "me" / "talk.wav")
    piece(second, place / "me" / "call.flac")
    piece(third, place / "talk.flac")
    for line, *_ in enrolling("me/ "):
        done = shell(line)
        assert done.returncode == 0, done.stderr
        assert "me              2      2      1.0" in done.stderr.splitlines()[2]
        people = Population.load(place / "me.npz")
        assert people.names == (*Population.reference().names, "me")
        done = shell("monitor replay talk.flac -p me.npz --watch me")
        assert done.returncode == 0, done.stderr
        found = records(done.stdout)
        watched(found)
        assert found[0]["rank_model"] == "mismatched"  # as the guide says
        (place / "me.npz").unlink()


@pytest.mark.slow
def test_a_folder_for_each_of_several_people(shared, place, shell):
    of = chapters(shared)
    mine = of.pop(ME)
    piece(mine[0], place / "voices" / "me" / "a.flac")
    piece(mine[1], place / "talk.flac")
    for name in list(of)[:PEOPLE]:
        piece(of[name][0], place / "voices" / name / "a.flac")
    for lines in enrolling("voices/ "):
        for line in lines:
            if "--resume" in line:  # after a crash, which this is not
                continue
            done = shell(line)
            assert done.returncode in (0, 3), (line, done.stderr)
        rank_models = Population.load(place / "us.npz").rank_models
        sets = [
            each for size in (1, 2, 3) for each in combinations(("f0", "phones", "voice"), size)
        ]
        assert {rank_model.features for rank_model in rank_models} == set(sets)
        # their own of the one session, and the shipped readers' for another day
        assert {(rank_model.session, rank_model.origin) for rank_model in rank_models} == {
            ("same", "own"),
            ("cross", "shipped"),
        }
        watched(records((place / "talk.jsonl").read_text()))


@pytest.mark.slow
def test_what_monitoring_shows(shared, place, shell):
    """The first block of its page, but for the live command, which `test_a_microphone` has."""
    of = chapters(shared)
    piece(of[ME][0], place / "me" / "a.flac")
    piece(of[ME][1], place / "talk.flac")
    piece(next(iter(of.values()))[0], place / "b.wav")
    (one, rate), (other, _) = (soundfile.read(place / name) for name in ("talk.flac", "b.wav"))
    soundfile.write(place / "call.wav", np.stack([one, other], axis=1), rate)
    soundfile.write(place / "meeting.wav", np.concatenate([one, other]), rate)
    turns = enumerate((len(one) / rate, len(other) / rate))
    said = (f"SPEAKER m 1 {k * len(one) / rate} {t} <NA> <NA> S{k} <NA> <NA>\n" for k, t in turns)
    (place / "meeting.rttm").write_text("".join(said))
    piece(of[ME][1], place / "talks" / "one.flac")
    made = shell("monitor enrol me/ --speaker me --base reference -o us.npz")
    assert made.returncode == 0, made.stderr
    film = "ffmpeg -loglevel error -i talk.flac film.mkv"
    has_ffmpeg = shell(film).returncode == 0
    page = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    shown = next(lines for lines in of_page(page) if len(lines) > 1)
    run = 0
    for line in shown:
        if "listen" in line or "--resume" in line or ("ffmpeg" in line and not has_ffmpeg):
            continue
        done = shell(line)
        assert done.returncode in (0, 3), (line, done.stderr)
        run += 1
    assert run >= 3
    watched(records((place / "talk.jsonl").read_text()))
    assert (place / "talk.svg").read_text().startswith("<?xml")


def test_a_microphone(shared, place, virtual_microphone: VirtualMicrophone):
    for enrol, *then in enrolling("--microphone"):
        virtual_microphone.play_file(shared / "speech" / "dev-clean" / ME / "128104.opus", 90.0)
        process = start(enrol, place, virtual_microphone)
        for line in process.stderr or ():
            heard = re.match(r"(\d+) of 60 s", line)
            if heard and int(heard[1]) >= ENROLLED_SECONDS:
                break
        err = interrupt(process)  # the minute is not waited for: Ctrl-C is a normal end
        assert process.returncode == 0, err
        people = Population.load(place / "me.npz")
        assert people.names[-1] == "me"
        assert people.template_seconds[-1] >= ENROLLED_SECONDS
        (listen,) = then
        process = start(listen, place, virtual_microphone)
        lines = []
        for line in process.stdout or ():
            lines.append(line)
            if line.startswith('{"type":"reading","seconds":12.'):
                break
        err = interrupt(process, lines)
        # a busy machine may have thinned
        assert process.returncode in (0, 3, 4), err
        found = records("".join(lines))
        watched(found)
        assert found[0]["template_seconds"] == people.template_seconds[-1]


def start(line: str, place: Path, microphone: VirtualMicrophone) -> subprocess.Popen[str]:
    """Begin a command that hears the microphone, in a process group of its own."""
    return subprocess.Popen(
        ["bash", "-c", line], cwd=place, env=environment(place, microphone.environment), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def interrupt(process: subprocess.Popen[str], lines: list[str] | None = None) -> str:
    """Ctrl-C; its last words on stderr, and what was left of stdout."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    if lines is not None:
        lines += out.splitlines(keepends=True)
    return err
