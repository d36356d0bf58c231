"""action.yml as GitHub's runner runs it, and the hook as pre-commit runs it."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import yaml

from monitor.corpus.recordings import CONTAINERS
from monitor.errors import UsageError
from monitor.population import DEMO_SPEAKER, demo_frames
from monitor.sources import FramesFile, read_frames, write_frames
from monitor.sources.registry import recording_suffixes
from monitor.types import TICKS_PER_SECOND, Track
from tests.pages import fenced
from tests.sounds import RATE, synthetic

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
INSTALL, MEASURE = ACTION["runs"]["steps"]
PACKAGES = sysconfig.get_path("purelib")
"""Where pip finds the dependencies, which .ci/run installs in an environment of their own."""


@dataclass(frozen=True)
class Job:
    """A job of the runner: the product's files, and a folder for the runner's own."""

    workspace: Path
    temporary: Path

    def step(self, step: dict[str, Any], **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run a step as the runner does: its script, with the environment that it names."""
        values = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
        known = {f"inputs.{name}": value for name, value in (values | inputs).items()}
        known["github.action_path"] = str(ROOT)
        environment = {
            name: re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: known[found[1]], text)
            for name, text in step["env"].items()
        }
        script = self.temporary / "script.sh"
        script.write_text(step["run"], encoding="utf-8")
        for name in ("output", "summary"):
            (self.temporary / name).write_text("")
        assert step["shell"] == "bash"
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=self.workspace, check=False, capture_output=True, text=True,
            env={
                **os.environ, **environment,
                "RUNNER_TEMP": str(self.temporary),
                "GITHUB_OUTPUT": str(self.temporary / "output"),
                "GITHUB_STEP_SUMMARY": str(self.temporary / "summary"),
            },
        )  # fmt: skip

    @property
    def outputs(self) -> dict[str, str]:
        """Outputs of the action, as the runner reads them."""
        text = (self.temporary / "output").read_text(encoding="utf-8")
        found = {name: value for name, _, value in re.findall(r"(\S+)<<(\w+)\n(.*?)\n\2\n", text)}
        prefix = f"steps.{MEASURE['id']}.outputs."
        names = {name: each["value"].strip("${} ") for name, each in ACTION["outputs"].items()}
        return {name: found.get(value.removeprefix(prefix), "") for name, value in names.items()}

    @property
    def summary(self) -> str:
        return (self.temporary / "summary").read_text(encoding="utf-8")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job with the package installed, and no recordings yet."""
    made = Job(tmp_path / "product", tmp_path / "runner")
    for folder in (made.workspace / "prompts", made.temporary):
        folder.mkdir(parents=True)
    (made.temporary / "disclosure-monitor").symlink_to(sys.prefix)
    return made


def spoken(job: Job, seconds: float, *names: str) -> None:
    """The first seconds of the shipped reader, under these names."""
    path, ticks = job.temporary / "spoken.npz", round(seconds * TICKS_PER_SECOND)
    whole, made = read_frames(demo_frames()), FramesFile(demo_frames()).stream_info.tracks
    tracks = {}
    for name, track in whole.tracks.items():
        some = slice(int(np.searchsorted(track.ticks, ticks, side="right")))
        spans = None if track.spans is None else track.spans[some]
        tracks[name] = Track(track.ticks[some], track.values[some], spans)
    sizes = {name: spec.size for name, spec in made.items()}
    frames = {name: spec.frame_seconds for name, spec in made.items()}
    networks = {name: spec.network for name, spec in made.items()}
    write_frames(path, whole.speech[:ticks], tracks, sizes, frames, networks=networks)
    for name in names:
        shutil.copy(path, job.workspace / name)


def test_no_input_is_part_of_a_script_and_the_hook_wants_every_sound_file():
    assert not [step for step in (INSTALL, MEASURE) if "${{" in step["run"]]
    wanted = (recording_suffixes() | CONTAINERS) - {".npz", ".jsonl"}
    for name in ("a", "talks/a b", "--on-alert=x"):
        assert all(re.search(HOOK["files"], name + suffix) for suffix in wanted)
        assert all(re.search(HOOK["files"], name + suffix.upper()) for suffix in wanted)
    assert set(re.findall(r"\w+", HOOK["files"])) - {"i"} == {s[1:] for s in wanted}
    assert HOOK["entry"].endswith(" --")
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    (workflow, config) = map(yaml.safe_load, fenced(text, "yaml"))
    (step,) = (s for s in workflow["jobs"]["budget"]["steps"] if s.get("id") == "disclosure")
    assert step["with"].keys() <= ACTION["inputs"].keys()
    used = re.findall(r"steps\.disclosure\.outputs\.([\w-]+)", text)
    assert used
    assert {*used} <= ACTION["outputs"].keys()
    assert config["repos"][0]["hooks"][0]["id"] == HOOK["id"]


@pytest.mark.slow
def test_the_action_installs_itself_and_passes_what_keeps_the_budget(job, monkeypatch):
    (job.temporary / "disclosure-monitor").unlink()
    spoken(job, 12, "prompts/greeting.npz")
    monkeypatch.setenv("PYTHONPATH", PACKAGES)
    installed = job.step(INSTALL, python=sys.executable)
    assert installed.returncode == 0, installed.stderr
    (package,) = (job.temporary / "disclosure-monitor").glob("lib/*/site-packages/monitor")
    (package.parent / "dependencies.pth").write_text(PACKAGES)
    done = job.step(MEASURE, recordings="prompts\n", budget="12", watch=DEMO_SPEAKER)
    assert done.returncode == 0, done.stderr
    assert job.outputs["status"] == "ok"
    assert 8 < float(job.outputs["worst-bits"]) < 12
    assert (job.temporary / "disclosure-monitor" / "bin" / "monitor").exists()


@pytest.mark.slow
def test_what_is_over_the_budget_fails_the_build_with_its_curve(job):
    spoken(job, 12, "prompts/greeting.npz")
    spoken(job, 20, "talk.npz")
    wanted = {"recordings": "prompts/**/*.npz\ntalk.npz", "output": "kept/here"}
    done = job.step(
        MEASURE, **wanted, budget="8", watch=DEMO_SPEAKER, args="--jobs=1\n--features=f0,voice"
    )
    outputs = job.outputs
    assert (done.returncode, outputs["status"], outputs["exit-status"]) == (3, "alert", "3")
    assert outputs["worst-recording"] == "talk.npz"
    assert outputs["table"] == "kept/here/disclosure.csv"
    assert (job.workspace / outputs["picture"]).read_bytes().startswith(b"\x89PNG")
    records = (job.workspace / outputs["json-lines"]).read_text().splitlines()
    assert json.loads(records[-1])["type"] == "end"
    peaks = [json.loads(line).get("peak_bits") or 0.0 for line in records]
    assert float(outputs["worst-bits"]) == pytest.approx(max(peaks))
    rows = re.findall(r"^\| .*over the budget at 0:\d\d \|$", job.summary, re.MULTILINE)
    assert len(rows) == 2
    assert f"{outputs['picture']}: keep its folder" in job.summary
    assert "::error::Disclosure of 2 recordings: over the budget (8 bits)" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seconds", "files", "more", "code", "status", "told"),
    [
        (2, {}, {}, 4, "incomplete", "not decided"),
        (2, {}, {"incomplete": "allow"}, 0, "incomplete", "not decided"),
        (12, {"bad.wav": b"no audio"}, {"budget": "8"}, 1, "error", "bad.wav is not"),
        (12, {}, {"watch": "$(touch pwned)"}, 2, "error", ""),
    ],
    ids=["not decided", "not decided, allowed", "damaged", "a watched person who is not there"],
)
def test_what_is_not_measured_passes_only_where_it_may(
    job, seconds, files, more, code, status, told
):
    spoken(job, seconds, "prompts/greeting.npz")
    for name, data in files.items():
        (job.workspace / "prompts" / name).write_bytes(data)
    wanted = {"recordings": "prompts", "budget": "12", "watch": DEMO_SPEAKER}
    done = job.step(MEASURE, **{**wanted, **more})
    assert (done.returncode, job.outputs["status"]) == (code, status), done.stderr
    assert told in job.summary
    if files:  # the others are measured all the same
        assert job.outputs["worst-recording"] == "prompts/greeting.npz"
        assert "over the budget at" in job.summary
    assert {path.name for path in job.workspace.iterdir()} <= {"prompts", "disclosure"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"recordings": "prompts"}, "no recording in prompts"),
        ({"recordings": " \n"}, "none are named"),
        ({"recordings": "$(touch pwned)"}, "matches nothing"),
        ({"budget": "12'; touch pwned; '"}, "is no number of bits"),
        ({"incomplete": "yes"}, "give fail or allow"),
        ({"args": "--on-alert=touch pwned"}, "--on-alert is not for this step"),
    ],
)
def test_inputs_that_measure_nothing_fail_in_a_line(job, inputs, told):
    done = job.step(MEASURE, **{"recordings": "prompts", "budget": "12", **inputs})
    assert (done.returncode, job.outputs["status"]) == (2, "error"), done.stderr
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    assert line.startswith("::error::")
    assert told in line
    assert [path.name for path in job.workspace.iterdir()] == ["prompts"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        *((name, f"{name} is not for this step")
          for name in ("--help", "--help-all", "--stop-on-alert", "--each")),
        ("--version", "--version"),
        ("--summary=x.csv", "--summary is not for this step"),
        ("--summary\nx.csv", "--summary is not for this step"),
        ("--jobs=1\n--jsonl=x.jsonl", "--jsonl is not for this step"),
        ("--plot\nx.png", "--plot is not for this step"),
        ("--turns=turns.rttm", "--turns is not for this step"),
        ("--channel", "requires an argument"),  # it would take the rule for its value
        ("other.wav", "name the files in recordings"),
        ("--", "name the files in recordings"),
    ],
)  # fmt: skip
def test_options_of_other_uses_are_refused(arguments, told):
    check_arguments = runpy.run_path(str(ROOT / "action.py"))["check_arguments"]
    with pytest.raises(UsageError, match=told):
        check_arguments(arguments.splitlines())


@pytest.mark.slow
def test_a_budget_that_cannot_be_exceeded_fails_the_build_unless_it_is_allowed(job):
    spoken(job, 12, "prompts/greeting.npz")
    for budget, watch in (("12", ""), ("14", DEMO_SPEAKER)):
        wanted = {"recordings": "prompts", "budget": budget, "watch": watch}
        done = job.step(MEASURE, **wanted)
        assert (done.returncode, job.outputs["status"]) == (2, "error"), done.stderr
        assert "can never be raised" in done.stdout
        assert job.outputs["table"] == ""
        done = job.step(MEASURE, **wanted, args="--allow-idle-alerts\n--jobs=1")
        assert (done.returncode, job.outputs["status"]) == (0, "ok"), done.stdout
        assert job.outputs["picture"]


@pytest.mark.slow
def test_the_action_passes_with_a_measured_row_for_each_recording_alone(job):
    """Another program called monitor, that measures nothing and is content."""
    (job.temporary / "disclosure-monitor").unlink()
    installed = job.temporary / "disclosure-monitor" / "bin"
    installed.mkdir(parents=True)
    (installed / "python").symlink_to(sys.executable)
    for name in ("lib", "pyvenv.cfg"):
        (installed.parent / name).symlink_to(Path(sys.prefix) / name)
    content = installed / "monitor"
    content.write_text("#!/bin/sh\nexit $CODE\n")
    content.chmod(0o700)
    for name in ("a", "b"):
        (job.workspace / "prompts" / f"{name}.wav").write_bytes(b"")
    for code in ("0", "4"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CODE", code)
            wanted = {"recordings": "prompts", "budget": "12", "incomplete": "allow"}
            done = job.step(MEASURE, **wanted)
        assert (done.returncode, job.outputs["status"]) == (2, "error"), done.stderr
        assert "::error::measured 0 of 2 recordings" in done.stdout


@pytest.mark.slow
def test_names_of_files_are_no_commands_of_a_shell_the_runner_or_the_page(job):
    names = [
        "--on-alert=touch pwned;.npz",
        "$(touch pwned).npz",
        "`touch pwned`'\";touch pwned;.npz",
        "a\n::error::b\n##[error]c|[d](e)<img>@f.npz",
    ]
    spoken(job, 11, *names)
    wanted = {"recordings": "*.npz", "budget": "6", "watch": DEMO_SPEAKER}
    done = job.step(MEASURE, **wanted)
    assert (done.returncode, job.outputs["status"]) == (3, "alert"), done.stderr
    assert {path.name for path in job.workspace.iterdir()} == {"prompts", "disclosure", *names}
    assert done.stderr == ""
    obeyed = re.sub(
        r"::stop-commands::(\w+)\n.*?^::\1::\n", "", done.stdout, flags=re.DOTALL | re.MULTILINE
    )
    assert obeyed == "::error::Disclosure of 4 recordings: over the budget (6 bits)\n"
    rows = [line for line in job.summary.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 4
    assert all(row.count("|") == 5 for row in rows)
    assert not re.search(r"[<>@`$\[\]]", job.summary)


@pytest.mark.slow
def test_the_hook_refuses_a_commit_over_the_budget(tmp_path, monkeypatch):
    pytest.importorskip("pre_commit")
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", PACKAGES)
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "cache"))
    for key in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{key}_NAME", "A")
        monkeypatch.setenv(f"GIT_{key}_EMAIL", "a@example.org")

    def git(folder: Path, *words: str, code: int | None = 0) -> str:
        done = subprocess.run(
            ["git", *words], cwd=folder, check=False, capture_output=True, text=True
        )
        if code is not None:
            assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    ours, product = tmp_path / "monitor", tmp_path / "product"
    for name in ("monitor", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        ours.mkdir(exist_ok=True)
        copy(ROOT / name, ours / name)
    product.mkdir()
    for folder in (ours, product):
        git(folder, "init", "-q")
    git(ours, "add", "--force", ".")
    git(ours, "commit", "-q", "-m", "A version")
    (product / ".pre-commit-config.yaml").write_text(
        json.dumps(
            {
                "repos": [
                    {
                        "repo": str(ours),
                        "rev": git(ours, "rev-parse", "HEAD").strip(),
                        "hooks": [{"id": HOOK["id"]}],
                    }
                ]
            }
        )
    )
    git(product, "add", ".")
    done = [sys.executable, "-m", "pre_commit", "install", "--install-hooks"]
    subprocess.run(done, cwd=product, check=True, capture_output=True)

    def commit(budget: float) -> str:
        text = f'[replay]\nfeatures = "f0"\nalert = ["bits>{budget} for 0 s after 2 s"]\n'
        (product / "disclosure.toml").write_text(text)
        git(product, "add", ".")
        return git(product, "commit", "-q", "-m", "Recordings", code=None)

    soundfile.write(product / "--on-alert=touch pwned;.wav", synthetic(5.0), RATE)
    refused = commit(0.1)
    assert "exit code: 3" in refused
    assert "an alert at" in refused
    soundfile.write(product / "short.wav", synthetic(1.0), RATE)
    assert "exit code: 4" in commit(5)
    (product / "short.wav").write_bytes(b"no audio")
    assert "exit code: 1" in commit(5)
    (product / "short.wav").unlink()
    never = commit(20)
    assert "exit code: 2" in never
    assert "can never be raised" in never
    assert "Passed" in commit(5)
    assert git(product, "log", "--oneline").count("\n") == 1
    assert git(product, "status", "--porcelain") == ""
