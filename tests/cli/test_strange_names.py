"""Names that are no text, or would steer a terminal, and terminals that know few characters."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

import monitor.cli
from monitor.sinks.summary import PlainConsole

pytestmark = pytest.mark.slow

HOSTILE = "es\x1b[2Jc\x07\x9b\u202e.npz"
NOT_UTF8 = os.fsdecode(b"t\xfflk.npz")
CONTROLS = {chr(code) for code in (*range(32), *range(127, 160))} - {"\n", "\r"}


def controls(text: str) -> set[str]:
    return CONTROLS & set(text)


@pytest.fixture(params=[NOT_UTF8, HOSTILE], ids=["not utf-8", "escapes"])
def strange(request, talk: Path, tmp_path: Path) -> Path:
    folder = tmp_path / os.fsdecode(b"f\xfe")
    folder.mkdir()
    path: Path = folder / request.param
    path.write_bytes(talk.read_bytes())
    return path


def test_a_recording_of_any_name_is_measured(command, strange, population, tmp_path):
    out = strange.parent / "run.jsonl"
    done = subprocess.run(
        [*command, "replay", strange, "-p", population, "--jsonl", out,
         "--ledger", tmp_path / "a.db", "-w", "000003", "--plot", strange.parent / "a.svg"],
        capture_output=True, check=True,
    )  # fmt: skip
    assert not controls(done.stderr.decode())
    records = [json.loads(line) for line in out.read_bytes().splitlines()]
    (name,) = records[0]["recordings"]
    assert name.isprintable()
    assert records[-1]["type"] == "end"
    shown = subprocess.run(
        [*command, "ledger", "show", tmp_path / "a.db"], capture_output=True, check=True, text=True
    ).stdout
    assert not controls(shown)


def test_a_terminal_of_ascii_shows_the_summary(terminal, strange, population):
    code, shown, err = terminal("replay", strange, "-p", population, both=True, encoding="ascii")
    assert (code, err) == (0, "")
    assert shown.isascii()
    assert "most probable" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("name", ["no-\x1b[2J\x07-such.wav", os.fsdecode(b"no-\xff-such.wav")])
@pytest.mark.parametrize(
    "what", [("replay",), ("evaluate",), ("show", "-o", "x.png"), ("enrol", "-o", "x.npz")]
)
def test_an_error_names_the_file_and_steers_nothing(command, tmp_path, name, what):
    done = subprocess.run([*command, *what, name], capture_output=True, cwd=tmp_path)
    said = done.stderr.decode()
    assert done.returncode in (1, 2)
    assert said.count("\n") == 1
    assert "such.wav" in said
    assert not controls(said)


def test_no_name_reaches_a_table_raw():
    from rich.table import Table
    from rich.text import Text

    console = PlainConsole(file=io.StringIO(), width=60)
    table = Table("a\x1b]0;title\x07")
    table.add_row(Text("b\x9b2J"))
    table.add_row("c\x1b[2J")
    console.print(table)
    console.print("d\x1b[1A", style="bold")
    assert isinstance(console.file, io.StringIO)
    assert not controls(console.file.getvalue())


def test_lines_for_people_are_said_in_one_place():
    """`click.echo` is for data alone: JSON, CSV, LaTeX, Markdown, a script."""
    data = {
        "label_markdown",
        "dumps",
        "line_of",
        "pairs_csv",
        "latex_table",
        "latex_pairs",
        "table",
        "script_for",
        "get_help",
        "getvalue",  # what the package declares
    }
    for path in Path(monitor.cli.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        said = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "say"]
        told = {id(n) for each in said for n in ast.walk(each) if path.name == "options.py"}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "click.echo":
                names = {getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(node.args[0])}
                assert names & data or id(node) in told, (path.name, ast.unparse(node))


@pytest.mark.parametrize("name", ["watch=me.wav", "features=f0", "resume=True,x.flac"])
def test_a_name_that_looks_like_an_argument_stays_a_name(tmp_path, name):
    for path in (tmp_path / name, tmp_path / "in" / f"{name}.wav"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"no audio")
    for given, shown in ((name, name), (f"in/{name}.wav", f"{name}.wav")):
        command = [sys.executable, "-m", "monitor", "replay", given, "--features", "f0"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode in (1, 2)
        assert shown in done.stderr
        assert "--watch me" not in done.stderr


def test_a_name_that_is_no_utf_8_is_protected(run, tmp_path):
    folder = tmp_path / "in" / os.fsdecode(b"s\xff")
    folder.mkdir(parents=True)
    soundfile.write(tmp_path / "a.wav", np.random.default_rng(0).normal(0, 0.1, 8000), 16000)
    name = os.fsdecode(b"t\xfe.wav")
    (tmp_path / "a.wav").rename(folder / name)
    done = run("protect", tmp_path / "in", "-o", tmp_path / "out", "--method", "noise:10")
    assert done.code == 0, done.err
    assert (tmp_path / "out" / folder.name / name).stat().st_size > 1000
