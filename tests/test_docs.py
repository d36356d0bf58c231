"""What the documents and examples say is what the program does: it is run as it stands there."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
import soundfile
import yaml

from benchmarks.simulation import SIZE, Simulation
from docs import check, english
from monitor.population import Population
from monitor.sources import write_frames
from monitor.version import __version__
from tests.lab.attacks.conftest import corpora
from tests.pages import fenced
from tests.records import read_records
from tests.sounds import synthetic

__all__ = ["corpora"]

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def output(folder: Path, *command: object, stderr: bool = False, **more: str) -> str:
    """What a command prints; it must be content."""
    done = subprocess.run(
        [*map(str, command)], cwd=folder, check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **more},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr * stderr


# ------------------------------------------------------------------------------ pages of the guides


def run_block(folder: Path, number: int) -> list[str]:
    """What one of the blocks prints."""
    blocks = fenced(page("docs/python.md"), "python")
    assert len(blocks) == 8
    return output(folder, sys.executable, "-c", blocks[number]).splitlines()


@pytest.mark.slow
def test_a_stream_and_a_run(tmp_path):
    soundfile.write(tmp_path / "talk.flac", synthetic(5.0), 16000)
    lines, alerts, notices = (run_block(tmp_path, n) for n in (1, 2, 7))
    assert "template length None interpolated between templates of 30 and 60 s" in notices
    told = [line for line in lines if line.startswith("alert")]
    assert told[0] == "alert raised: bits>0.1 for 1 s"
    readings = [line for line in lines if line not in told]
    assert len(readings) == 5
    assert all(re.fullmatch(r" +\d\.0 s +\d\.\d\d bits \(closed-set\)", line) for line in readings)
    assert alerts[0].startswith("bits>0.1 for 1 s raised at ")
    assert [each["type"] for each in read_records(tmp_path / "talk.jsonl")][-1] == "end"


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
          r".*talk\.npz: .* over the budget after \d+ s.*"]),
        ("10_words_beside_a_voice.py",
         [r"in the captions: Guide, Cem", r".*no times of their own.*",
          r" *\d+ s  pitch alone +-?[\d.]+ bits, with the words +[\d.]+; rank by style [12]"]),
        ("12_a_feature_of_your_own.py",
         [r" *[\d.]+ s +-?[\d.]+ bits  f0 +[\d.]+ s rank [\d.]+, little +\d\d[\d.]+ s rank .*"]),
        ("14_bits_by_turn.py",
         [rf" +{turn}  \d\.\d\d \(\d\.\d\d to \d\.\d\d\) +\d\.\d\d \(.*\)"
          for turn in range(1, 6)]),
        ("13_a_live_source.py",
         [rf"{second} s +-?\d\.\d\d bits, \d\.\d s late" for second in range(1, 7)]),
    ],
)  # fmt: skip
def test_an_example_shows_what_it_says(name, told, tmp_path):
    lines = output(tmp_path, sys.executable, EXAMPLES / name).splitlines()
    for form in told:
        assert [line for line in lines if re.fullmatch(form, line)], (form, lines)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_dialogues_may_be_numbered_over_a_corpus(tmp_path):
    """Each speaker's first dialogue enrols them, whatever its number."""
    draws = np.random.default_rng(0)
    speaker, dialogue = np.repeat(np.arange(12), 20), np.tile(np.repeat([1, 2], 10), 12)
    states = draws.standard_normal((12, 8))[speaker] + draws.standard_normal((240, 8))
    told: list[str] = []
    for numbers in (dialogue, dialogue + 2 * speaker):
        path = tmp_path / f"{len(told)}.npz"
        np.savez(path, states=states, speaker=speaker, dialogue=numbers, turn=np.ones(240, int))
        told.append(output(tmp_path, sys.executable, EXAMPLES / "14_bits_by_turn.py", path))
    assert told[0] == told[1]
    assert "nan" not in told[0]


@pytest.mark.slow
def test_an_anonymiser_that_protects_nobody_is_found_out(tmp_path, corpora):
    command = ["sh", EXAMPLES / "08_test_your_anonymiser.sh", corpora(readers=4), "out"]
    command += [f"{sys.executable} {EXAMPLES / 'quieter.py'}", "--template", "6", "--seconds", "2"]
    monitor = str(Path(sys.executable).with_name("monitor"))
    said = output(tmp_path, *command, "--features", "f0", MONITOR=monitor)
    bits = [float(re.findall(r"([\d.]+) bits", part)[0]) for part in said.split("Unprotected:")[:2]]
    assert bits[0] > 0.9 * bits[1] > 1.0, said
    assert (tmp_path / "out" / "index.html").stat().st_size > 10_000


# ------------------------------------------- adding oneself, word for word as shown, on real speech

ME = "1272"
PIECE_SECONDS = 30.0
"""Of speech and pauses: a template of 10 s of speech, a test, and windows of embeddings between."""


@pytest.mark.slow
def test_a_folder_of_ones_own(shared, tmp_path):
    program = tmp_path / ".venv" / "bin" / "monitor"  # where the guides have it
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m monitor "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    (tmp_path / "me").mkdir()
    chapters = sorted((shared / "speech" / "dev-clean" / ME).glob("*.opus"))
    for chapter, name in zip(chapters, ("me/talk.wav", "me/call.flac", "talk.flac"), strict=False):
        samples, rate = soundfile.read(chapter, dtype="float32")
        piece = samples[10 * rate :][: round(PIECE_SECONDS * rate)]
        soundfile.write(tmp_path / name, piece, rate)
    pages = [page(name) for name in ("README.md", "docs/own-people.md", "docs/monitoring.md")]
    codes = [code.replace("\\\n", "") for text in pages for code in fenced(text, "sh")]
    lines = [line for code in codes for line in code.splitlines()]
    shown = [line for line in lines if "monitor enrol me/ " in line]
    assert shown
    for line in shown:
        arguments = shlex.split(line, comments=True)
        made = tmp_path / arguments[arguments.index("-o") + 1]
        output(tmp_path, "bash", "-c", line, PATH=path)
        people = Population.load(made)
        assert people.names == (*Population.reference().names, "me")
        command = ["monitor", "replay", "talk.flac", "-p", made, "--watch", "me"]
        said = output(tmp_path, *command, PATH=path).splitlines()
        first, *_, last, end = map(json.loads, said)
        assert (first["watch"], end["type"]) == ("me", "end")
        assert first["rank_model"] == "mismatched"  # as the guide says
        assert last["speech"] > 3
        assert last["bits"] is not None
        assert last.get("withheld") is None
        assert last["features"]["phones"]["usable"] > 1
        made.unlink()


# ------------------------------------------------------------------------------- docs/check.py


def test_a_table_of_how_much_that_was_edited_is_made_again():
    pages = {ROOT / name: page(name) for name in ("README.md", "docs/how-much.md")}
    assert check.write_how_much(pages) == pages
    edited = {
        path: text.replace("| 10 | 1 in 1,000 |", "| 10 | 1 in 9 |") for path, text in pages.items()
    }
    assert all(edited[path] != text for path, text in pages.items())
    assert check.write_how_much(edited) == pages


def test_a_long_start_and_a_lost_picture_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "ROOT", tmp_path)
    start = tmp_path / "README.md"
    start.write_text(f'{"word " * 700}\n\n```sh\nmonitor {"-" * 80}\n```\n<img src="lost.png">\n')
    assert [line.split(":")[0] for line in check.find_long_start(start)] == [
        "706 words, over 600", "over 72 columns"]  # fmt: skip
    assert [*check.find_dead_links(start)] == ["dead link lost.png"]


@pytest.mark.slow
def test_the_site_is_built_without_what_only_the_tests_need():
    code = (
        "import sys; sys.modules['pytest'] = None; from docs.check import table_of_rooms as table"
    )
    rows = output(ROOT, sys.executable, "-c", f"{code}; print(table())").splitlines()
    assert "| 1 | `errors` |" in "\n".join(rows)
    assert len(rows) > 30


@pytest.mark.slow
def test_the_tutorial_shows_what_the_demo_prints(tmp_path):
    shown = [
        line for code in fenced(page("docs/tutorial.md"), "text") for line in code.splitlines()
    ]
    printed = output(
        tmp_path, sys.executable, "-m", "monitor", "demo", "--speed", "1e6", stderr=True
    )
    alerts = [line for line in printed.splitlines() if line.startswith("alert at")]
    assert alerts
    assert alerts[0] in shown


def test_commands_that_are_gone_and_examples_of_another_version_are_found(tmp_path, monkeypatch):
    text = tmp_path / "page.md"
    text.write_text("Use it in `hear`, `enrol`, `replay` and `listen`, with `speech` or `noise`.")
    assert [*check.find_unknown_commands(text)] == ["no command hear"]
    for name, value in (("DOCS", tmp_path), ("ROOT", tmp_path), ("PAGES", [text])):
        monkeypatch.setattr(check, name, value)
    for version in ("0.1.0", __version__):
        (tmp_path / f"{version}.html").write_text(f"<p>Made by monitor {version}.</p>")
    (tmp_path / "boxes.svg").write_text("<text>templates, laws</text>")
    assert [name for name, _ in check.find_old_examples()] == ["0.1.0.html"]
    assert [name for name, _ in check.find_old_words()] == ["boxes.svg"]


def test_odd_english_is_reported_with_its_place_and_patterns(tmp_path, monkeypatch):
    files = {
        "README.md": "# Title\n\nThis sentence is plain English.\nSomebody hears what it says.\n",
        "docs/page.md": "| a row a person is odd | `somebody hears what this says` |\n",
        "monitor/cli/command.py": "'A module of one command.'\n\n"
        'option("--for", help="Stop after so much of it.")\n'
        'raise ValueError(f"a rate of {rate} Hz is none")  # of whoever hears it\n',
        "monitor/web/static/page.js": "show('Nobody is in this.'); // it is learnt from the page\n",
        **dict.fromkeys(("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"), ""),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(english, "ROOT", tmp_path)
    monkeypatch.setattr(english, "LIMITS", dict.fromkeys(english.LIMITS, 0.0))
    monkeypatch.setattr(english, "WORDS", 10)
    found = list(english.find_too_many())
    places = {place: line for place, line in found if ":" in place}
    assert places["README.md:3"] == "[somebody, says, tells, hears] Somebody hears what it says."
    assert places["docs/page.md:1"] == "[a row a person] a row a person is odd"
    assert "so much" in places["monitor/cli/command.py:3"]
    assert places["monitor/web/static/page.js:1"].startswith("[learnt]")
    assert {group for group, _ in found} >= {*english.LIMITS}
    assert any("words, over 10" in line for group, line in found if group == "docs")
    monkeypatch.setattr(english, "LIMITS", dict.fromkeys(english.LIMITS, 100.0))
    monkeypatch.setattr(english, "WORDS", 100)
    assert list(english.find_too_many()) == []


# --------------------------------------------------------------------------------------- the Space


@pytest.mark.slow
def test_the_space_shows_the_demo_under_any_name_and_may_be_framed_by_its_site_alone():
    folder = EXAMPLES / "space"
    front = yaml.safe_load(page("examples/space/README.md").split("---\n")[1])
    assert f"EXPOSE {front['app_port']}\n" in page("examples/space/Dockerfile")
    assert front["sdk"] == "docker"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PORT": str(port)}
    with subprocess.Popen([sys.executable, folder / "app.py"], env=environment) as server:
        try:
            base, name = f"http://127.0.0.1:{port}", {"host": "owner-monitor.example.org"}
            for _ in range(600):
                try:
                    shown = httpx.get(base, headers=name)
                    break
                except httpx.TransportError:
                    assert server.poll() is None
                    time.sleep(0.1)
            assert shown.status_code == 200
            assert (
                "frame-ancestors https://huggingface.co;"
                in shown.headers["content-security-policy"]
            )
            assert "x-frame-options" not in shown.headers
            assert "microphone=()" in shown.headers["permissions-policy"]
            records = httpx.get(f"{base}/readings", headers=name).json()["records"]
            assert records[-1]["record"]["bits"] > 13
        finally:
            server.terminate()
