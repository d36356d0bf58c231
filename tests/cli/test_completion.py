"""Completion in the shells themselves: what Tab makes of a line, in bash, zsh and fish."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from monitor.cli import COMMANDS, cli

PATIENCE_SECONDS = 30.0
TYPED = {
    "monitor exper": "monitor experiment ",
    "monitor replay --scal": None,
    "monitor replay --on-change sp": "monitor replay --on-change split ",
    "monitor replay --features f0,pho": "monitor replay --features f0,phones ",
    "monitor replay --watch 440": "monitor replay --watch 4406 ",
    "monitor protect talk-one.wav --method mca": "monitor protect talk-one.wav --method mcadams ",
    "monitor replay talk-o": "monitor replay talk-one.wav ",
    "monitor replay -p talk-o": "monitor replay -p talk-one.wav ",
    "monitor ledger sh": "monitor ledger show ",
}
"""A line, and what Tab makes of it; None where nothing can stand there."""
START = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
}
BEFORE = {
    "bash": "PS1='> '; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'",
    "zsh": "PS1='> '; unsetopt prompt_sp beep; autoload -U compinit; compinit -D",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with ``monitor`` on the PATH below it, and a file to be completed."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "monitor"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m monitor "$@"\n')
    program.chmod(0o700)
    (tmp_path / "talk-one.wav").touch()
    return tmp_path


def around(home: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PROMPT")}
    root = Path(__file__).resolve().parents[2]
    return {
        **kept,
        "HOME": str(home),
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(root),
        "TERM": "dumb",
    }


def shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs the shell {name}, which is not installed")
    return found


class Typist:
    """A shell on a terminal of its own, at which somebody types."""

    def __init__(self, name: str, home: Path) -> None:
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [shell(name), *START[name]],
            stdin=theirs, stdout=theirs, stderr=theirs,
            cwd=home, env=around(home), start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        for line in (BEFORE[name], f'eval "$(monitor doctor --completion {name})"'):
            self.type(f"{line}; echo rea''dy\n")
            self.until("ready\r")

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def until(self, words: str) -> str:
        """What is shown until these words are."""
        shown, end = "", time.monotonic() + PATIENCE_SECONDS
        while words not in shown:
            assert time.monotonic() < end, shown
            if select.select([self.ours], [], [], 0.05)[0]:
                shown += os.read(self.ours, 65536).decode(errors="replace")
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[\x00\x07]|.\x08", "", shown)

    def tab(self, line: str) -> str:
        """What Tab makes of a line, as the shell itself then has it."""
        # then, from its beginning, a command that shows each word between marks
        self.type(f"{line}\t\x01printf '<%s> ' \x05; echo e''nd\n")
        shown = self.until("end\r")
        return " ".join(re.findall(r"<([^>%]*)>", shown.rpartition("\n<")[2].join(["<", ""])))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_tab_completes_a_line(name, home):
    typist = Typist(name, home)
    try:
        for line, wanted in TYPED.items():
            assert typist.tab(line) == (wanted or line).rstrip(), line
    finally:
        typist.end()


@pytest.mark.slow
def test_fish_completes_a_line(home):
    script = subprocess.run(
        [home / "bin" / "monitor", "doctor", "--completion", "fish"],
        env=around(home), check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    place = home / ".config" / "fish" / "completions" / "monitor.fish"
    place.parent.mkdir(parents=True)
    place.write_text(script)
    ask = "\n".join(f"echo '>' (complete -C '{line}' | cut -f 1)" for line in TYPED)
    done = subprocess.run(
        [shell("fish"), "--private", "-c", ask],
        cwd=home, env=around(home), capture_output=True, text=True, check=True,
    )  # fmt: skip
    offered = [line.removeprefix(">").split() for line in done.stdout.splitlines()]
    assert len(offered) == len(TYPED)
    for found, (line, wanted) in zip(offered, TYPED.items(), strict=True):
        assert found == ([] if wanted is None else wanted.split()[-1:]), line


def test_every_file_of_every_command_is_offered():
    top = cli.make_context("monitor", [], resilient_parsing=True)

    def params(command: click.Command) -> list[click.Parameter]:
        parts = getattr(command, "commands", {}).values()
        return [*command.params, *(each for part in parts for each in params(part))]

    commands = [cli.get_command(top, name) for name in COMMANDS]
    found = [each for command in commands if command is not None for each in params(command)]
    files = [each for each in found if re.match(r"\[?(FILE|DIR|RECORDING)", each.metavar or "")]
    assert len(files) > 40
    for each in files:
        (item,) = each.shell_complete(top, "ta")
        assert item.type in ("file", "dir"), each.opts


def test_the_script_is_clicks_and_another_shell_is_refused(run):
    done = run("doctor", "--completion", "bash")
    assert (done.code, done.err) == (0, "")
    assert "complete -o nosort -F _monitor_completion monitor" in done.out
    refused = run("doctor", "--completion", "tcsh").complaint
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in refused
