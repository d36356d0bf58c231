"""The command line itself: help, exit statuses, streams, and what options take."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import monitor.cli
from monitor.cli import COMMANDS, cli, main
from monitor.cli.options import Names, Numbers, Raw, Seconds, Speed
from monitor.errors import SourceError, StoreError
from monitor.version import __version__

HEAVY = ("numpy", "scipy", "matplotlib", "soundfile", "soxr", "rich", "_webrtcvad", "torch",
         "sounddevice")  # fmt: skip


def test_start_and_help_load_nothing_heavy_and_leave_a_program_its_own_output():
    program = f"""if True:
        import os, sys
        from monitor.cli import COMMANDS, main
        for arguments in [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]:
            try:
                main(arguments)
            except SystemExit as left:
                assert not left.code, left.code
        heavy = sorted(set({HEAVY!r}) & set(sys.modules))
        assert not heavy, heavy
        os.write(1, b"its own")
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Usage: monitor") == 1 + len(COMMANDS)
    assert f"monitor, version {__version__}\n" in done.stdout
    assert done.stdout.splitlines()[-1] == "its own"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(run, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    short, same = run(name, "-h"), run(name, "--help")
    assert (short.code, short.err, short.out) == (0, "", same.out)
    assert short.out.startswith(f"Usage: monitor {name} ")
    assert len(short.out.splitlines()) <= 70
    assert max(map(len, short.out.splitlines())) <= 100
    full = short.out if name == "ledger" else run(name, "--help-all").out  # that is a group
    made = cli.get_command(click.Context(cli), name)
    assert made.short_help in run().out.replace("\n", " ")
    for each in made.params:
        if isinstance(each, click.Option):
            assert each.help, each.name
            assert each.opts[0].removeprefix("--") in full


def test_debug_shows_where_it_failed():
    for arguments in (["--debug", "replay", "no.wav"], ["replay", "no.wav", "--debug"]):
        with pytest.raises(SourceError, match=r"no\.wav"):
            main(arguments)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (StoreError("a: is damaged; make it again"), 1, "a: is damaged; make it again"),
        (RuntimeError("something\nodd"), 1, "unexpected RuntimeError: something odd. Run again"),
        (OSError(28, "No space left on device"), 1, "cannot write: No space left on device"),
    ],
)
def test_exit_statuses(run, monkeypatch, error, code, words):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(monitor.cli.cli, "main", fail)
    result = run("demo")
    assert result.code == code
    assert words in result.complaint


@pytest.mark.slow
def test_a_reader_who_leaves_is_no_failure(command, talk, population):
    shell = (
        f"{' '.join(command)} replay {talk} -p {population} | head -n 3; echo ${{PIPESTATUS[*]}}"
    )
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert lines[-1] == "0 0"
    assert [line.split('"')[3] for line in lines[:-1]] == ["start", "reading", "reading"]
    assert "Error" not in done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("monitor: ")]
    assert [line for line in said if not line.startswith("monitor: note: ")] == []
    done = subprocess.run(
        ["bash", "-c", f"{' '.join(command)} replay --help | true; echo ${{PIPESTATUS[*]}}"],
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("0 0\n", "")


@pytest.mark.slow
def test_a_full_disk_behind_stdout(command, talk, population):
    for arguments in (["replay", str(talk), "-p", str(population)], ["replay", "--help"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [*command, *arguments], stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("monitor: cannot write")
        assert "Exception ignored" not in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["", "<&-", "2>&-", "<&- 2>&-"])
def test_what_libraries_print_is_not_among_the_data(tmp_path, closed):
    (tmp_path / "noisy.py").write_text(
        """if True:
        import ctypes, os, sys
        from monitor.cli import doctor, main

        def noise():
            os.write(1, b"by descriptor\\n")
            ctypes.CDLL(None).printf(b"by C, which keeps it to the end\\n")

        before = doctor.command.callback
        doctor.command.callback = lambda **given: (noise(), before(**given))[1]
        main()
    """
    )
    words = shlex.join([sys.executable, str(tmp_path / "noisy.py"), "doctor", "--json"])
    done = subprocess.run(f"{words} {closed}", shell=True, capture_output=True, text=True)
    assert isinstance(json.loads(done.stdout), list)
    if "2" not in closed:
        assert {"by descriptor", "by C, which keeps it to the end"} <= {*done.stderr.splitlines()}


def convert(kind, text: str):
    return kind.convert(text, None, None)


SECONDS = {"0": 0, "90": 90, "90s": 90, " 1.5m ": 90, "2h": 7200, "1:30": 90, "1:00:01.5": 3601.5,
           ".5": 0.5, "1e2": 100, "90:00": 5400}  # fmt: skip
NO_SECONDS = ("", "s", "x", "-1", "nan", "inf", "5ms", "5ss", "1:60", "1:-1", "1:", ":", "1:nan",
              "5e-324", "1e308", "5e-324h")  # fmt: skip


def test_lengths_lists_speeds_and_raw_formats():
    assert {text: convert(Seconds(), text) for text in SECONDS} == SECONDS
    assert convert(Numbers(), "10,1, 1,0.3") == (0.3, 1.0, 10.0)
    assert convert(Names(), "f0, phones,") == ("f0", "phones")
    assert (convert(Speed(), "max"), convert(Speed(), "0.5")) == (float("inf"), 0.5)
    assert convert(Raw(), "16000:1:s16le") == (16000, 1, "s16le")


@pytest.mark.parametrize(
    ("kind", "texts", "words"),
    [
        (Seconds(), NO_SECONDS, r"is not a length such as 90, 1\.5m or 1:30"),
        (Numbers(), ("", "1,,2", "0", "-1", "nan", "1,inf", "a", "5e-324", "10,1e308"), "seconds"),
        (Names(), (" , ",), "name at least one"),
        (Speed(), ("0", "-1", "nan", "inf", "fast", "", "5e-324", "1e-9"), "neither max nor a num"),
        (Raw(), ("16000", "16000:1", "x:1:s16le", "16000:1:s16le:1"), "is not like 16000:1:s16le"),
    ],
)
def test_values_that_are_none(kind, texts, words):
    for text in texts:
        with pytest.raises(click.BadParameter, match=words):
            convert(kind, text)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_number_is_larger_than_a_float(name):
    top = cli.make_context("monitor", [], resilient_parsing=True)

    def check(command: click.Command) -> None:
        for each in command.params:
            convert: Any = each.type.convert
            if isinstance(each.type, click.types.FloatParamType):
                for text in ("nan", "inf", "-inf", "1" * 400, "1e400"):
                    with pytest.raises(click.UsageError):
                        convert(text, each, top)
        for part in getattr(command, "commands", {}).values():
            check(part)

    command = cli.get_command(top, name)
    assert command is not None
    check(command)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("monitor exper", "plain,experiment"),
        ("monitor evaluate x.npy --scoring m", "plain,max"),
        ("monitor replay --features f0,pho", "plain,f0,phones"),
        ("monitor replay --watch 440", "plain,4406"),
        ("monitor protect talk.wav --method mca", "plain,mcadams"),
        ("monitor replay -p talk-o", "file,talk-o"),
        ("monitor ledger sh", "plain,show"),
    ],
)
def test_a_shell_is_offered_what_can_stand_there(run, monkeypatch, line, offered):
    """As the script of ``monitor doctor --completion`` asks for it."""
    assert "_monitor_completion" in run("doctor", "--completion", "bash").out
    for name, value in (
        ("_MONITOR_COMPLETE", "bash_complete"),
        ("COMP_WORDS", line),
        ("COMP_CWORD", len(line.split()) - 1),
    ):
        monkeypatch.setenv(name, str(value))
    assert offered in run().out.splitlines()
