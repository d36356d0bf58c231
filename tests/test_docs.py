"""What the documents say is what the program does."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.simulation import SIZE, Simulation
from monitor.sources import write_frames
from tests.lab.experiment.made import score_file
from tests.pages import fenced
from tests.records import read_records

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def run_blocks(folder: Path, *codes: str) -> list[list[str]]:
    """What each block of Python prints, in a process of its own."""
    done = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True
        )
        for code in codes
    ]
    return [each.stdout.splitlines() for each in done]


@pytest.fixture(scope="module")
def python_blocks() -> list[str]:
    """One call, a stream, a run, people, a corpus, scores, an attack, a live source, notices."""
    return fenced((ROOT / "docs" / "python.md").read_text(encoding="utf-8"), "python")


@pytest.mark.slow
def test_the_ten_lines_and_the_run_run(python_blocks, tmp_path):
    assert len(python_blocks) == 9
    _, code, whole, *_, noticing = python_blocks
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    seconds = np.arange(5 * 16000) / 16000
    voice = np.sin(2 * np.pi * 120 * seconds + np.sin(2 * np.pi * 3 * seconds)) * 0.3
    soundfile.write(tmp_path / "talk.flac", voice, 16000)
    lines, alerts, notices = run_blocks(tmp_path, code, whole, noticing)
    assert notices == ["template length None interpolated between templates of 30 and 60 s"]
    told = [line for line in lines if line.startswith("alert")]
    assert told[0] == "alert raised: bits>0.1 for 1 s"
    readings = [line for line in lines if line not in told]
    assert len(readings) == 5
    assert all(re.fullmatch(r" +\d\.0 s +\d\.\d\d bits \(closed-set\)", line) for line in readings)
    assert alerts[0].startswith("bits>0.1 for 1 s raised at ")
    assert [each["type"] for each in read_records(tmp_path / "talk.jsonl")][-1] == "end"


@pytest.mark.slow
def test_the_corpus_is_scored_and_evaluated(python_blocks, tmp_path):
    simulation = Simulation(12)
    for name, first in (("voices", 0), ("anonymised", 2)):
        for person in range(12):
            for session in (first, first + 1):
                said = simulation.frames(person, session, 60.0)
                path = tmp_path / name / f"person{person:02d}" / f"{session}.npz"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_frames(path, said.speech, said.tracks, {"f0": SIZE}, {"f0": 0.01})
    enrolling, scoring, evaluating = python_blocks[3:6]
    assert run_blocks(tmp_path, enrolling) == [["evidence 12"]]
    (figures,) = run_blocks(tmp_path, evaluating)
    assert re.fullmatch(r"\d\.\d bits \(\d\.\d to \d\.\d\), ZEBRA [A-F0]", figures[0])
    ((trials, bits),) = run_blocks(tmp_path, scoring)
    assert re.fullmatch(r"f0: the right one first in \d+% of \d+ trials,", trials)
    assert 0.5 < float(re.findall(r"([\d.]+) of 3\.6 bits a trial", bits)[0]) < 3.6


@pytest.mark.slow
def test_the_live_source_is_heard_to_its_end(python_blocks, tmp_path):
    (lines,) = run_blocks(tmp_path, python_blocks[7])
    assert [line.split(" s ")[0] for line in lines] == ["1", "2", "3", "4", "5", "6"]
    assert all(re.search(r" \d\.\d\d bits, \d\.\d s late$", line) for line in lines)


@pytest.mark.slow
def test_the_command_that_evaluates_runs(tmp_path):
    page = (ROOT / "docs" / "evaluate.md").read_text(encoding="utf-8")
    command, _, validation = fenced(page, "sh")
    score_file(tmp_path / "scores.npz", {"voice": {(10.0, 30.0): (1.0, 30.0)}}, speakers=12)
    draw, names = np.random.default_rng(0), [f"s{i}" for i in range(10)]
    for name, lead in (("original", 3.0), ("anonymised", 0.5)):
        scores = draw.normal(size=(20, 10)) + lead * np.eye(10)[np.arange(20) % 10]
        np.save(tmp_path / f"{name}.npy", scores)
    (tmp_path / "speakers.txt").write_text("\n".join(names * 2) + "\n")
    for each, said, made in (
        (command, "anonymised", "report.html"), (validation, "Cllr cal", "voice.html")
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(each.replace("\\\n", " "))],
            cwd=tmp_path, check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
        assert (tmp_path / made).stat().st_size > 10_000


def test_ci_runs_the_test_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (install,) = re.findall(r"pip install -e '(\.\[[a-z,]+\])'", README)
    assert f"pip install -q -e '{install}'" in script
    assert "-m pytest -q -n 3" in script
