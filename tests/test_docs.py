"""What the documents and examples say is what the program does: it is run as it stands there."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import yaml

from benchmarks.simulation import SIZE, Simulation
from monitor.population import Population, demo_frames
from monitor.sources import FramesFile, read_frames, write_frames
from monitor.types import Track
from tests.lab.attacks.conftest import corpora
from tests.lab.experiment.made import score_file
from tests.pages import fenced
from tests.records import read_records

__all__ = ["corpora"]

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def output(folder: Path, *command: object, **more: str) -> str:
    """What a command prints; it must be content."""
    done = subprocess.run(
        [*map(str, command)], cwd=folder, check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **more},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ci_runs_the_test_command_of_the_readme():
    (install,) = re.findall(r"pip install -e '(\.\[[a-z,]+\])'", page("README.md"))
    assert f"pip install -q -e '{install}'" in page(".ci/run")
    assert "-m pytest -q -n 3" in page(".ci/run")


# ------------------------------------------------------------------------------ pages of the guides


def run_block(folder: Path, number: int) -> list[str]:
    """What one of the blocks prints."""
    blocks = fenced(page("docs/python.md"), "python")
    assert len(blocks) == 9
    return output(folder, sys.executable, "-c", blocks[number]).splitlines()


@pytest.mark.slow
def test_a_stream_a_run_and_a_live_source(tmp_path):
    seconds = np.arange(5 * 16000) / 16000
    voice = np.sin(2 * np.pi * 120 * seconds + np.sin(2 * np.pi * 3 * seconds)) * 0.3
    soundfile.write(tmp_path / "talk.flac", voice, 16000)
    lines, alerts, notices, live = (run_block(tmp_path, n) for n in (1, 2, 8, 7))
    assert notices == ["template length None interpolated between templates of 30 and 60 s"]
    told = [line for line in lines if line.startswith("alert")]
    assert told[0] == "alert raised: bits>0.1 for 1 s"
    readings = [line for line in lines if line not in told]
    assert len(readings) == 5
    assert all(re.fullmatch(r" +\d\.0 s +\d\.\d\d bits \(closed-set\)", line) for line in readings)
    assert alerts[0].startswith("bits>0.1 for 1 s raised at ")
    assert [each["type"] for each in read_records(tmp_path / "talk.jsonl")][-1] == "end"
    assert [line.split(" s ")[0] for line in live] == ["1", "2", "3", "4", "5", "6"]
    assert all(re.search(r" \d\.\d\d bits, \d\.\d s late$", line) for line in live)


@pytest.mark.slow
def test_a_corpus_is_scored_and_evaluated(tmp_path):
    simulation = Simulation(12)
    for name, first in (("voices", 0), ("anonymised", 2)):
        for person in range(12):
            for session in (first, first + 1):
                said = simulation.frames(person, session, 60.0)
                path = tmp_path / name / f"person{person:02d}" / f"{session}.npz"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_frames(path, said.speech, said.tracks, {"f0": SIZE}, {"f0": 0.01})
    assert run_block(tmp_path, 3) == ["evidence 12"]
    trials, bits = run_block(tmp_path, 4)
    assert re.fullmatch(r"f0: the right one first in \d+% of \d+ trials,", trials)
    assert 0.5 < float(re.findall(r"([\d.]+) of 3\.6 bits a trial", bits)[0]) < 3.6
    figures = run_block(tmp_path, 5)
    assert re.fullmatch(r"\d\.\d bits \(\d\.\d to \d\.\d\), ZEBRA [A-F0]", figures[0])


@pytest.mark.slow
def test_the_commands_that_evaluate_run(tmp_path):
    command, _, validation = fenced(page("docs/evaluate.md"), "sh")
    score_file(tmp_path / "scores.npz", {"voice": {(10.0, 30.0): (1.0, 30.0)}}, speakers=12)
    draw, names = np.random.default_rng(0), [f"s{i}" for i in range(10)]
    for name, lead in (("original", 3.0), ("anonymised", 0.5)):
        scores = draw.normal(size=(20, 10)) + lead * np.eye(10)[np.arange(20) % 10]
        np.save(tmp_path / f"{name}.npy", scores)
    (tmp_path / "speakers.txt").write_text("\n".join(names * 2) + "\n")
    for each, said, made in (
        (command, "anonymised", "report.html"), (validation, "Cllr cal", "voice.html")
    ):  # fmt: skip
        words = shlex.split(each.replace("\\\n", " "))
        assert said in output(tmp_path, sys.executable, "-m", *words)
        assert (tmp_path / made).stat().st_size > 10_000


# --------------------------------------------------------------------------------------- examples


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("01_ten_lines.py", [r" *alert raised: bits>0\.5 for 30 s"]),
        ("04_alert_your_own_function.py",
         [r" +\d+ s  0\.8 bits in about \d+ s", r".*ALERT bits>0\.8 for 5 s: .*"]),
        ("09_a_build_that_fails_on_a_budget.py",
         [r".*exit status 0", r".*exit status 4", r".*exit status 3",
          r".*talk\.npz: .* over the budget after 43 s.*"]),
        ("10_words_beside_a_voice.py",
         [r"in the captions: Guide, Cem", r".*no times of their own.*",
          r" *\d+ s  pitch alone +-?[\d.]+ bits, with the words +[\d.]+; rank by style [12]"]),
        ("12_a_feature_of_your_own.py",
         [r" *[\d.]+ s +-?[\d.]+ bits  f0 +[\d.]+ s rank [\d.]+, little +\d\d[\d.]+ s rank .*"]),
    ],
)  # fmt: skip
def test_an_example_shows_what_it_says(name, told, tmp_path):
    lines = output(tmp_path, sys.executable, EXAMPLES / name).splitlines()
    for form in told:
        assert [line for line in lines if re.fullmatch(form, line)], (form, lines)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_anonymiser_that_protects_nobody_is_found_out(tmp_path, corpora):
    command = ["sh", EXAMPLES / "08_test_your_anonymiser.sh", corpora(readers=4), "out"]
    command += [f"{sys.executable} {EXAMPLES / 'quieter.py'}", "--template", "6", "--seconds", "2"]
    monitor = str(Path(sys.executable).with_name("monitor"))
    said = output(tmp_path, *command, "--features", "f0", MONITOR=monitor)
    bits = [float(re.findall(r"([\d.]+) bits", part)[0]) for part in said.split("Unprotected:")[:2]]
    assert bits[0] > 0.9 * bits[1] > 1.0, said
    assert (tmp_path / "out" / "index.html").stat().st_size > 10_000


# ------------------------------------------------------- the recipe of docs/ci.md fails on a budget


def spoken(path: Path, ticks: int) -> None:
    """The beginning of the reader who ships."""
    whole, made = read_frames(demo_frames()), FramesFile(demo_frames()).stream_info.tracks
    tracks = {}
    for name, track in whole.tracks.items():
        some = track.ticks <= ticks
        spans = None if track.spans is None else track.spans[some]
        tracks[name] = Track(track.ticks[some], track.values[some], spans)
    write_frames(
        path, whole.speech[:ticks], tracks,
        {name: spec.size for name, spec in made.items()},
        {name: spec.frame_seconds for name, spec in made.items()},
        networks={name: spec.network for name, spec in made.items()},
    )  # fmt: skip


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """A repository with the budget, a greeting and, on the PATH, what is installed here."""
    (tmp_path / "recordings").mkdir()
    (budget,) = fenced(page("docs/ci.md"), "toml")
    (tmp_path / "disclosure.toml").write_text(budget)
    for name in ("monitor", "pip"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {name} "$@"\n')
        program.chmod(0o700)
    spoken(tmp_path / "recordings" / "greeting.npz", 1200)
    (made,) = fenced(page("docs/ci.md"), "sh")
    command = made.replace("python", sys.executable, 1).replace("../product", str(tmp_path))
    output(ROOT, "sh", "-c", command, PIP_NO_INDEX="1", PIP_NO_BUILD_ISOLATION="0")
    return tmp_path


def run_step(step: dict[str, Any], product: Path) -> tuple[int, str]:
    """A step as a runner takes it: its exit status, and its log."""
    path = f"{product / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=product, check=False, capture_output=True, text=True,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "PIP_NO_INDEX": "1"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_the_steps_pass_under_the_budget_and_fail_over_it(product):
    workflow = yaml.safe_load(fenced(page("docs/ci.md"), "yaml")[0])
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    install, measure = (step for step in job["steps"] if "run" in step)
    # as it stands, but beside what is installed here, and nothing is fetched
    apart = {**install, "run": f"{install['run']} --no-deps --target {product / 'installed'}"}
    status, log = run_step(apart, product)
    assert (status, "Successfully installed" in log) == (0, True), log
    status, log = run_step(measure, product)
    assert status == 0, log
    spoken(product / "recordings" / "beep.npz", 200)
    status, log = run_step(measure, product)
    assert status == 4, log
    assert re.search(r"beep\.npz: alert bits>12: not decided, \d\.\d s of speech of", log)
    (product / "recordings" / "beep.npz").unlink()
    shutil.copy(demo_frames(), product / "recordings" / "talk.npz")
    status, log = run_step(measure, product)
    assert status == 3, log
    (shown,) = fenced(page("docs/ci.md"), "text")
    speed = re.compile(r"\d+ times real time|^measuring: .*\n", re.M)  # where it takes long
    assert speed.sub("", shown).strip() == speed.sub("", log).strip()
    (kept,) = (step["with"]["path"] for step in job["steps"] if "upload" in step.get("uses", ""))
    assert (product / kept).read_text().count("\n") == 3


# ------------------------------------------- adding oneself, word for word as shown, on real speech

ME = "1272"
PEOPLE = 9
"""Beside me: a rank model takes ten."""
PIECE_SECONDS = 30.0
"""Of speech and pauses: a template of 10 s of speech, a test, and windows of embeddings between."""
PATIENCE_SECONDS = 120.0

Shell = Callable[[str], subprocess.CompletedProcess[str]]


def enrolling(words: str) -> list[list[str]]:
    """From each place the line that enrols so, and those that use what it made."""
    pages = [page(name) for name in ("README.md", "docs/own-people.md", "docs/monitoring.md")]
    blocks = [code.replace("\\\n", "") for text in pages for code in fenced(text, "sh")]
    inline = [re.findall(r"`((?:\.venv/bin/)?monitor [^`]+)`", text) for text in pages]
    blocks += [" ".join(code.split()) for codes in inline for code in codes]
    found = []
    for lines in map(str.splitlines, blocks):
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
        path = f"{place / '.venv' / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-c", line], cwd=place, env={**os.environ, "PATH": path}, check=False,
            capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip

    return run


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


def watched(text: str) -> dict[str, Any]:
    """The run followed ``me``, and said how many bits; how it began."""
    found = [json.loads(line) for line in text.splitlines()]
    assert found[0]["watch"] == "me"
    last = [record for record in found if record["type"] == "reading"][-1]
    assert last["speech"] > 3
    assert last["bits"] is not None
    assert last.get("withheld") is None
    assert last["features"]["phones"]["usable"] > 1
    assert found[-1]["type"] == "end"
    return found[0]


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
        assert watched(done.stdout)["rank_model"] == "mismatched"  # as the guide says
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
        watched((place / "talk.jsonl").read_text())
