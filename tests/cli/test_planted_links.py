"""Links that somebody left where a command is about to write: nothing behind them changes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from monitor.errors import StoreError
from monitor.ledger import Ledger

VALUABLE = b"do not touch"


@pytest.fixture
def valuable(tmp_path: Path) -> Path:
    path = tmp_path / "valuable"
    path.write_bytes(VALUABLE)
    path.chmod(0o644)
    return path


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    path = tmp_path / "scores.npz"
    labels = np.repeat(np.arange(6), 5)
    matrix = np.random.default_rng(0).standard_normal((30, 6))
    matrix[np.arange(30), labels] += 2.0
    np.savez(path, scores=matrix, labels=labels)
    return path


def predictable(target: Path, valuable: Path) -> None:
    """Names that a writer could use for its parts, all leading elsewhere."""
    for pid in (os.getpid(), *range(os.getpid() - 3, os.getpid() + 50)):
        for name in (f".{target.name}.{pid}.part", f"{target.name}.tmp", f".{target.name}.tmp"):
            if not (target.parent / name).is_symlink():
                (target.parent / name).symlink_to(valuable)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["html", "png"])
def test_pages_and_pictures_appear_whole_private_and_where_they_were_asked_for(
    run, tmp_path, valuable, scores, talk, population, suffix
):
    target = tmp_path / "out" / f"a.{suffix}"
    target.parent.mkdir()
    predictable(target, valuable)
    target.symlink_to(valuable)
    if suffix == "html":
        result = run("evaluate", scores, "--html", target)
    else:
        result = run("replay", talk, "-p", population, "--plot", target)
    assert result.code == 0, result.err
    assert not target.is_symlink()
    assert target.stat().st_size > 1000
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert valuable.read_bytes() == VALUABLE
    assert stat.S_IMODE(valuable.stat().st_mode) == 0o644


def test_records_are_not_written_through_a_link(run, tmp_path, valuable, talk, population):
    link = tmp_path / "run.jsonl"
    link.symlink_to(valuable)
    result = run("replay", talk, "-p", population, "--jsonl", link, "--replace")
    assert result.code == 1
    assert "it is a link; name the file itself" in result.complaint
    assert valuable.read_bytes() == VALUABLE
    dangling = tmp_path / "new.jsonl"
    dangling.symlink_to(tmp_path / "made")
    assert run("replay", talk, "-p", population, "--jsonl", dangling).code == 1
    assert not (tmp_path / "made").exists()


def test_devices_are_written_to_all_the_same(run, talk, population):
    assert run("replay", talk, "-p", population, "--jsonl", "/dev/null").code == 0


def test_no_ledger_is_made_through_a_link(tmp_path):
    link = tmp_path / "me.db"
    link.symlink_to(tmp_path / "made.db")
    with pytest.raises(StoreError):
        Ledger(link)
    assert not (tmp_path / "made.db").exists()
    Ledger(tmp_path / "made.db").close()
    Ledger(link).close()  # one's own link to one's own ledger is fine
