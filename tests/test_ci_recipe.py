"""The recipe of docs/ci.md, as it stands there: its steps are run, and fail on a budget alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitor.population import demo_frames
from monitor.sources import FramesFile, read_frames, write_frames
from monitor.types import Track
from tests.pages import fenced

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")


@pytest.fixture
def steps() -> list[dict[str, Any]]:
    (text,) = fenced(PAGE, "yaml")
    workflow = yaml.safe_load(text)
    assert set(workflow[True]) == {"push", "pull_request"}  # YAML 1.1 reads "on" so
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    return list(job["steps"])


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """A repository with the budget, a greeting and, on the PATH, what is installed here."""
    (tmp_path / "recordings").mkdir()
    (budget,) = fenced(PAGE, "toml")
    (tmp_path / "disclosure.toml").write_text(budget)
    for name in ("monitor", "pip"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {name} "$@"\n')
        program.chmod(0o700)
    spoken(tmp_path / "recordings" / "greeting.npz", 1200)
    (made,) = fenced(PAGE, "sh")
    env = {**os.environ, "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    command = made.replace("python", sys.executable, 1).replace("../product", str(tmp_path))
    subprocess.run(command, shell=True, cwd=ROOT, env=env, check=True, capture_output=True)
    return tmp_path


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
def test_the_steps_pass_under_the_budget_and_fail_over_it(steps, product):
    install, measure = (step for step in steps if "run" in step)
    # as it stands, but beside what is installed here, and nothing is fetched
    apart = {**install, "run": f"{install['run']} --no-deps --target {product / 'installed'}"}
    status, log = run_step(apart, product)
    assert status == 0, log
    assert "speaker_disclosure_monitor" in log
    assert "Successfully installed" in log
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
    (shown,) = fenced(PAGE, "text")
    speed = re.compile(r"\d+ times real time|^measuring: .*\n", re.M)  # where it takes long
    assert speed.sub("", shown).strip() == speed.sub("", log).strip()
    (kept,) = (step["with"]["path"] for step in steps if "upload" in step.get("uses", ""))
    assert (product / kept).read_text().count("\n") == 3


@pytest.mark.slow
def test_the_example_shows_both(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "09_a_build_that_fails_on_a_budget.py"],
        cwd=tmp_path, check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.findall(r"exit status (\d)", done.stdout) == ["0", "4", "3"]
    assert re.search(r"talk\.npz: .* over the budget after 43 s", done.stdout)
    assert not re.search(r"greeting\.npz: .* over", done.stdout)
