"""Where commands write and how things are called: links, full and frozen disks, hostile names."""

import io
import json
import os
import re
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from monitor.errors import StoreError
from monitor.ledger import Ledger
from monitor.sinks.console import PlainConsole
from tests.cli.conftest import Result
from tests.settings import configured

VALUABLE = b"do not touch"
MOUNT = """
folders=$1; shift
for folder in $folders; do
    mount --bind "$folder" "$folder" && mount -o remount,bind,ro "$folder" "$folder" || exit 99
done
exec "$@"
"""
PATIENCE_SECONDS = 120
HOSTILE = "es\x1b[2Jc\x07\x9b\u202e.npz"
NOT_UTF8 = os.fsdecode(b"t\xfflk.npz")
CONTROLS = {chr(code) for code in (*range(32), *range(127, 160))} - {"\n", "\r"}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["html", "png"])
def test_pages_and_pictures_appear_whole_private_and_where_they_were_asked_for(
    run, tmp_path, scores, talk, population, suffix
):
    valuable, target = tmp_path / "valuable", tmp_path / "out" / f"a.{suffix}"
    valuable.write_bytes(VALUABLE)
    valuable.chmod(0o644)
    target.parent.mkdir()
    target.symlink_to(valuable)
    for pid in range(os.getpid() - 3, os.getpid() + 50):  # names that a writer could use
        for name in (f".{target.name}.{pid}.part", f"{target.name}.tmp", f".{target.name}.tmp"):
            if not (target.parent / name).is_symlink():
                (target.parent / name).symlink_to(valuable)
    if suffix == "html":
        labels = ("--labels", scores / "labels.txt")
        result = run("evaluate", scores / "weak.npy", *labels, "--html", target)
    else:
        result = run("replay", talk, "-p", population, "--plot", target)
    assert result.code == 0, result.err
    assert not target.is_symlink()
    assert target.stat().st_size > 1000
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert valuable.read_bytes() == VALUABLE
    assert stat.S_IMODE(valuable.stat().st_mode) == 0o644


def test_no_ledger_is_made_through_a_link(tmp_path):
    link = tmp_path / "me.db"
    link.symlink_to(tmp_path / "made.db")
    with pytest.raises(StoreError):
        Ledger(link)
    assert not (tmp_path / "made.db").exists()
    Ledger(tmp_path / "made.db").close()
    Ledger(link).close()  # one's own link to one's own ledger is fine


def test_full_disks_and_devices(run, talk, population, people):
    told = ("replay", talk, "-p", population, "--jsonl")
    assert run(*told, "/dev/null").code == 0
    result = run(*told, "/dev/full")
    assert result.code == 1
    assert "cannot write /dev/full (No space left on device)" in result.complaint
    result = run("enrol", people, "--replace", "-o", "/dev/full/us.npz", "--seconds", 10)
    assert result.code == 1
    assert "cannot write" in result.complaint


def test_places_that_cannot_be_written_to_are_refused_before_the_long_work(
    run, wav, people, tmp_path, monkeypatch
):
    no = tmp_path / "no"

    def long_work(*_: object, **__: object) -> None:
        raise AssertionError("this should have been refused before the long work")

    monkeypatch.setattr("monitor.training.enrolling.enrol", long_work)
    monkeypatch.setattr("monitor.training.voices.collect", long_work)
    monkeypatch.setattr("monitor.run.Run.to_end", long_work)
    for arguments in (
        ["replay", wav, "--jsonl", no / "run.jsonl"],
        ["replay", wav, "--plot", no / "a.png"],
        ["enrol", people, "-o", no / "us.npz"],
        ["calibrate", people, "-o", no / "us.npz"],
        ["calibrate", people, "--plot", no / "a.png"],
    ):
        result = run(*arguments)
        assert (result.code, result.out) == (1, ""), arguments
        assert "write" in result.complaint or "written" in result.complaint


@pytest.fixture
def frozen(command, tmp_path: Path) -> Callable[..., Result]:
    """The command line where the folder ``frozen``, or other ones, cannot be written."""

    def run(*arguments: object, folders: str = str(tmp_path / "frozen"), **more: str) -> Result:
        within = ["unshare", "--mount", "--map-root-user", "sh", "-c", MOUNT, "sh", folders]
        done = subprocess.run(
            [*within, *command, *map(str, arguments)], capture_output=True, text=True, check=False,
            env={**os.environ, **more},
        )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)

    (tmp_path / "frozen").mkdir()
    try:
        works = subprocess.run(
            ["unshare", "--mount", "--map-root-user", "sh", "-c", MOUNT, "sh",
             str(tmp_path / "frozen"), "touch", str(tmp_path / "frozen" / "a")],
            capture_output=True, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("needs unshare (Debian: util-linux)")
    if b"Read-only file system" not in works.stderr:
        pytest.skip("this machine lets nobody mount anything: " + works.stderr.decode().strip())
    return run


@pytest.fixture
def ledger(run, halves, population: Path, tmp_path: Path, frozen) -> Path:
    path = tmp_path / "frozen" / "me.db"
    result = run("replay", halves[0], "-p", population, "-w", "000003", "--ledger", path,
                 "--jsonl", "-", "--alert", "bits>-3 for 1 s after 0 s")  # fmt: skip
    assert result.code == 3
    return path


@pytest.mark.slow
def test_a_read_only_ledger_is_read_and_not_written(run, frozen, ledger, halves, population):
    before = ledger.read_bytes()
    for part in (("show",), ("export", "-o", "-")):
        plain, there = run("ledger", *part, ledger), frozen("ledger", *part, ledger)
        assert (there.code, there.err) == (0, "")
        assert there.records == plain.records
        assert there.records[0]["type"] == "session"
    assert [path.name for path in ledger.parent.iterdir()] == ["me.db"]
    for arguments in (["forget", ledger, "000003"], ["scrub", ledger]):
        result = frozen("ledger", *arguments)
        assert result.code == 1
        assert "me.db is read-only here. Copy it" in result.complaint
    result = frozen("replay", halves[1], "-p", population, "-w", "000003", "--ledger", ledger)
    assert (result.code, result.out) == (1, "")
    assert "me.db: cannot be opened (Read-only file system)" in result.complaint
    assert ledger.read_bytes() == before


@pytest.mark.slow
def test_what_a_killed_run_has_not_folded_in_is_not_passed_over(
    run, command, frozen, halves, talk, population, tmp_path
):
    """Its rows are in the WAL: they are read, or it is said that they cannot be."""
    path = tmp_path / "frozen" / "me.db"
    options = ["-p", population, "-w", "000003", "--ledger", path, {"ledger-every": "1"}]
    killed = subprocess.Popen(
        [*command, *configured(["replay", talk, *options, "--speed", 10, "--jsonl", "-"],
                               tmp_path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        assert killed.poll() is None
        assert time.monotonic() < until
        with suppress(StoreError), Ledger(path, create=False) as other:
            if any(session.speech > 0 for session in other.sessions()):
                break
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    there = frozen("ledger", "show", path)
    assert there.code == 0, there.err
    (session,) = there.records
    assert session["speech"] > 0
    path.with_name("me.db-shm").unlink()
    there = frozen("ledger", "show", path)
    assert (there.code, there.out) == (1, "")
    assert "Copy it and me.db-wal to a writable folder" in there.complaint
    assert run("ledger", "show", path).records == [session]


@pytest.mark.slow
def test_results_cannot_go_there(frozen, talk, population, people, tmp_path):
    no = tmp_path / "frozen"
    for arguments in (
        ["replay", talk, "-p", population, "--jsonl", no / "run.jsonl"],
        ["replay", talk, "-p", population, "--plot", no / "a.png"],
        ["demo", "-o", no],
        ["enrol", people, "-o", no / "us.npz"],
        ["calibrate", people, "-o", no / "us.npz"],
        ["serve", "--web", "0", "--data", no / "people"],
    ):
        result = frozen(*arguments)
        assert (result.code, result.out) == (1, ""), arguments
        (line,) = [line for line in result.err.splitlines() if line.startswith("monitor: ")]
        assert str(no) in line
        assert re.search("permission|read-only", line, re.IGNORECASE)
        assert "Traceback" not in result.err
    assert list(no.iterdir()) == []


def controls(text: str) -> set[str]:
    return CONTROLS & set(text)


@pytest.fixture(params=[NOT_UTF8, HOSTILE], ids=["not utf-8", "escapes"])
def strange(request, talk: Path, tmp_path: Path) -> Path:
    folder = tmp_path / os.fsdecode(b"f\xfe")
    folder.mkdir()
    path: Path = folder / request.param
    path.write_bytes(talk.read_bytes())
    return path


@pytest.mark.slow
def test_a_recording_of_any_name_is_measured(command, terminal, strange, population, tmp_path):
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
    show = [*command, "ledger", "show", tmp_path / "a.db"]
    assert not controls(subprocess.run(show, capture_output=True, check=True, text=True).stdout)
    code, shown, err = terminal("replay", strange, "-p", population, both=True, encoding="ascii")
    assert (code, err) == (0, "")
    assert shown.isascii()
    assert "most probable" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("name", ["no-\x1b[2J\x07-such.wav", os.fsdecode(b"no-\xff-such.wav")])
@pytest.mark.parametrize(
    "what", [("replay",), ("evaluate",), ("show", "-o", "x.png"), ("enrol", "-o", "x.npz")]
)
def test_an_error_names_the_file_and_steers_nothing(run, tmp_path, monkeypatch, name, what):
    monkeypatch.chdir(tmp_path)
    done = run(*what, name)
    assert done.code in (1, 2)
    assert "such.wav" in done.complaint
    assert not controls(done.err)


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
