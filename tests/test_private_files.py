"""Files of another user where ours go: real ones, by chown or by a process of that user."""

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from monitor.anonymisers.recording import JOURNAL, Journal
from monitor.errors import StoreError
from monitor.lab.result_cache import ResultCache, result_key
from monitor.ledger import Ledger
from monitor.run.each import SummaryFile
from monitor.sinks.jsonl import JsonLines
from monitor.stream.checkpoint import Checkpoint, state_path

OTHER = 65534
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make files of others"
)

WRITERS = """
import os, sys
from monitor.errors import StoreError
from monitor.ledger import Ledger
from monitor.sinks.jsonl import JsonLines

Ledger("warm.db").close()  # imports all: another user may not reach the program
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
for make in (lambda: JsonLines("run.jsonl").write({"secret": 1}), lambda: Ledger("me.db")):
    try:
        make()
    except StoreError as error:
        print(error)
"""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def planted(path: Path, content: bytes = b"") -> Path:
    """A file of another user that everybody may read and write."""
    path.write_bytes(content)
    path.chmod(0o666)
    os.chown(path, OTHER, OTHER)
    return path


def write_run(folder: Path) -> None:
    with closing(JsonLines(folder / "file")) as lines:
        lines.write_record({"bits": 1.0})


def write_journal(folder: Path) -> None:
    (folder / "file").rename(folder / JOURNAL)
    try:
        Journal(folder, ("noise:10",), None).close()
    finally:
        (folder / JOURNAL).rename(folder / "file")


WRITES = pytest.mark.parametrize(
    "write",
    [
        write_run,
        write_journal,
        lambda folder: Ledger(folder / "file").close(),
        lambda folder: SummaryFile(folder / "file", "settings").close(),
    ],
    ids=["run", "journal", "ledger", "summary"],
)


@as_root
@WRITES
def test_a_file_of_another_user_is_not_written_to(write, tmp_path):
    file = planted(tmp_path / "file")
    before = file.stat()
    with pytest.raises(StoreError, match=r"belongs to .*65534 and not to you") as told:
        write(tmp_path)
    assert "\n" not in str(told.value)
    after = file.stat()
    assert (after.st_size, after.st_mode, after.st_uid) == (0, before.st_mode, OTHER)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@WRITES
def test_what_is_open_to_others_is_made_private_and_a_hard_link_refused(write, tmp_path):
    file, elsewhere = tmp_path / "file", tmp_path / "elsewhere"
    file.touch()
    file.chmod(0o666)
    write(tmp_path)
    assert mode_of(file) == 0o600
    file.unlink()
    elsewhere.touch()
    os.link(elsewhere, file)
    with pytest.raises(StoreError, match="hard link"):
        write(tmp_path)
    assert elsewhere.read_bytes() == b""


@as_root
@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("exists", [False, True], ids=["new", "old"])
def test_nor_is_a_ledger_with_anothers_file_beside_it(suffix, exists, tmp_path):
    if exists:
        Ledger(tmp_path / "me.db").close()
    spy = planted(tmp_path / f"me.db{suffix}")
    with pytest.raises(StoreError, match="belongs to"):
        Ledger(tmp_path / "me.db")
    assert spy.read_bytes() == b""
    # one's own link to the ledger does not hide what lies beside it
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "me.db"
    link.symlink_to(tmp_path / "me.db")
    with pytest.raises(StoreError, match="belongs to"):
        Ledger(link)


@as_root
def test_nor_where_it_is_put_there_while_the_ledger_is_opened(tmp_path, monkeypatch):
    Ledger(tmp_path / "me.db").close()
    real: Any = sqlite3.connect

    def slow(*given: Any, **named: Any) -> Any:
        planted(tmp_path / "me.db-wal")
        return real(*given, **named)

    monkeypatch.setattr(sqlite3, "connect", slow)
    with pytest.raises(StoreError, match="belongs to"):
        Ledger(tmp_path / "me.db")


@as_root
def test_of_another_user_a_ledger_is_read_and_no_link_nor_pipe_followed(tmp_path):
    ledger, link, pipe = (tmp_path / name for name in ("me.db", "link.db", "run.jsonl"))
    Ledger(ledger).close()
    link.symlink_to(ledger)
    os.chown(link, OTHER, OTHER, follow_symlinks=False)
    with pytest.raises(StoreError, match="belongs to"):
        Ledger(link)
    os.mkfifo(pipe)
    os.chown(pipe, OTHER, OTHER)
    with pytest.raises(StoreError, match="a pipe of another user"):
        JsonLines(pipe)
    os.chown(ledger, OTHER, OTHER)
    with Ledger(ledger, create=False, write=False) as opened:
        assert opened.sessions() == []
    with pytest.raises(StoreError, match="belongs to"):
        Ledger(ledger, create=False)
    assert {each.name for each in tmp_path.iterdir()} == {"me.db", "link.db", "run.jsonl"}


@as_root
def test_what_another_user_put_into_a_cache_or_to_go_on_from_is_not_believed(tmp_path):
    cache, key = ResultCache(tmp_path), result_key("a")
    cache.write(key, b"1.5")
    (kept,) = tmp_path.iterdir()
    assert cache.read(key) == b"1.5"
    os.chown(kept, OTHER, OTHER)
    assert cache.read(key) is None

    state: Any = None  # never looked at
    checkpoint = Checkpoint(state_path(tmp_path / "run.jsonl"), {})
    planted(checkpoint.path, b"PK")
    with pytest.raises(StoreError, match="belongs to"):
        checkpoint.load(state, state, [])


@as_root
def test_a_user_does_not_write_into_the_files_of_root_either(tmp_path):
    reachable = tmp_path
    while reachable != reachable.parent:  # pytest's folders are for one user
        reachable.chmod(reachable.stat().st_mode | 0o011)
        reachable = reachable.parent
    tmp_path.chmod(0o1777)
    for name in ("run.jsonl", "me.db"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o666)
    done = subprocess.run(
        [sys.executable, "-c", WRITERS, str(OTHER)], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout.count("belongs to root, 0") == 2, done.stderr
    assert not any((tmp_path / name).stat().st_size for name in ("run.jsonl", "me.db"))


def test_folders_above_are_private_too_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        ResultCache(tmp_path / "share" / "monitor" / "cache")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "share") == mode_of(tmp_path / "share" / "monitor") == 0o700
