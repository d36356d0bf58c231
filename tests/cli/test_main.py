from __future__ import annotations

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
from monitor.cli.options import Names, Numbers, Raw, Seconds, Speed, check_output
from monitor.errors import SourceError, StoreError
from monitor.version import __version__

HEAVY = ("numpy", "scipy", "matplotlib", "soundfile", "soxr", "rich", "_webrtcvad", "torch")


def test_help_imports_nothing_heavy(command):
    program = f"""
import sys
from monitor.cli import COMMANDS, main
for arguments in [["--help"], *([name, "--help"] for name in COMMANDS)]:
    try:
        main(arguments)
    except SystemExit as left:
        assert not left.code, left.code
heavy = sorted(set({HEAVY!r}) & set(sys.modules))
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Usage: monitor") == 1 + len(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(run, name):
    for flag in ("-h", "--help"):
        result = run(name, flag)
        assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"Usage: monitor {name} ")
    full = result.out if name == "ledger" else run(name, "--help-all").out  # that is a group
    made = cli.get_command(click.Context(cli), name)
    assert made is not None
    assert made.short_help
    assert made.short_help in run("--help").out.replace("\n", " ")
    for option in made.params:
        if isinstance(option, click.Option):
            assert option.help, option.name
            assert option.opts[0] in full
    assert max(map(len, result.out.splitlines())) <= 100


def test_without_arguments_there_is_help(run):
    assert run() == run("--help")
    assert run("--version").out == f"monitor, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lisen"], "No such command 'lisen' (did you mean 'listen'?); see monitor --help"),
        (["xyz"], "No such command 'xyz'; see monitor --help"),
        (["ledger"], "Missing command; see monitor ledger --help"),
        (["--foo"], "No such option '--foo'; see monitor --help"),
        (["replay", "--wach", "me", "a.wav"], "No such option '--wach'"),
        (["replay"], "Missing argument 'RECORDING...'; see monitor replay --help"),
        (["replay", "a.wav", "--step"], "Option '--step' requires an argument"),
        (["enrol", "people"], "Missing option '-o' / '--output'"),
    ],
)
def test_wrong_usage_is_one_line_and_two(run, arguments, words):
    result = run(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert words in result.complaint
    assert result.err.count("\n") == 1


def test_debug_shows_where_it_failed():
    for arguments in (["--debug", "replay", "no.wav"], ["replay", "no.wav", "--debug"]):
        with pytest.raises(SourceError, match=r"no\.wav"):
            main(arguments)


def test_the_unexpected_is_one_line_too(run, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("something\nodd")

    monkeypatch.setattr(monitor.cli.cli, "main", fail)
    result = run("demo")
    assert result.code == 1
    assert result.complaint == (
        "monitor: unexpected RuntimeError: something odd; run again with --debug and report it"
    )
    with pytest.raises(RuntimeError):
        main(["demo", "--debug"])


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (StoreError("a: is damaged; make it again"), 1, "a: is damaged; make it again"),
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
@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be removed there")
def test_a_current_folder_that_is_gone(command, tmp_path):
    for words in ("enroll voices -o us.npz", "protect voices -o safe.wav --method none"):
        shell = f"mkdir gone; cd gone; rmdir ../gone; {' '.join(command)} {words}"
        done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True)
        line = "monitor: the current folder no longer exists; go to another\n"
        assert (done.returncode, done.stderr) == (1, line)


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
def test_streams_that_the_shell_has_closed(command, talk, population):
    replay = f"{' '.join(command)} replay -p {population}"
    shell = f"{replay} {talk} >&-; echo $?; {replay} - <&-; echo $?; {replay} {talk} 2>&- | wc -l"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert done.stdout.split() == ["0", "1", "52"]
    assert "Traceback" not in done.stderr
    assert "nothing came through the pipe" in done.stderr


def convert(kind, text: str):
    return kind.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("90", 90), ("90s", 90), (" 1.5m ", 90), ("2h", 7200), ("1:30", 90),
     ("1:00:01.5", 3601.5), (".5", 0.5), ("1e2", 100), ("90:00", 5400)],
)  # fmt: skip
def test_seconds(text, seconds):
    assert convert(Seconds(), text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s",
        "x",
        "-1",
        "nan",
        "inf",
        "5ms",
        "5ss",
        "1:60",
        "1:-1",
        "1:",
        ":",
        "1:nan",
        "5e-324",
        "1e308",
        "5e-324h",
    ],
)
def test_seconds_that_are_none(text):
    with pytest.raises(click.BadParameter, match=r"is not a length such as 90, 1\.5m or 1:30"):
        convert(Seconds(), text)


def test_lists():
    assert convert(Numbers(), "10,1, 1,0.3") == (0.3, 1.0, 10.0)
    assert convert(Names(), "f0, phones,") == ("f0", "phones")
    for text in ("", "1,,2", "0", "-1", "nan", "1,inf", "a", "5e-324", "10,1e308"):
        with pytest.raises(click.BadParameter):
            convert(Numbers(), text)
    with pytest.raises(click.BadParameter):
        convert(Names(), " , ")


def test_speeds_and_raw_formats():
    assert convert(Speed(), "max") == float("inf")
    assert convert(Speed(), "0.5") == 0.5
    for text in ("0", "-1", "nan", "inf", "fast", "", "5e-324", "1e-9"):
        with pytest.raises(click.BadParameter, match="neither max nor a number"):
            convert(Speed(), text)
    assert convert(Raw(), "16000:1:s16le") == (16000, 1, "s16le")
    for text in ("16000", "16000:1", "x:1:s16le", "16000:1:s16le:1"):
        with pytest.raises(click.BadParameter, match="is not like 16000:1:s16le"):
            convert(Raw(), text)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_number_is_larger_than_a_float(name):
    top = cli.make_context("monitor", [], resilient_parsing=True)

    def check(command: click.Command) -> None:
        for option in command.params:
            convert: Any = option.type.convert
            if isinstance(option.type, click.types.FloatParamType):
                for text in ("nan", "inf", "-inf", "1" * 400, "1e400"):
                    with pytest.raises(click.UsageError):
                        convert(text, option, top)
        for part in getattr(command, "commands", {}).values():
            check(part)

    command = cli.get_command(top, name)
    assert command is not None
    check(command)


def test_places_to_write_to(tmp_path):
    check_output(tmp_path / "new.npz")
    with pytest.raises(StoreError, match=r"there is no folder .*make it first"):
        check_output(tmp_path / "no" / "new.npz")
    with pytest.raises(StoreError, match="it is a folder"):
        check_output(tmp_path)


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


def test_stdout_of_a_program_that_calls_it_is_left_alone():
    code = """if True:
        import os, sys
        from monitor.cli import main
        try:
            main(["--version"])
        except SystemExit:
            pass
        os.write(1, b"its own")
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "its own"
    assert done.stderr == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_short(run, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert len(run(name, "--help").out.splitlines()) <= 90
