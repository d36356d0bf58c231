"""Many recordings, a run each: which they are, and hearing them with several processes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from monitor.corpus.folders import recordings_below
from monitor.corpus.gathering import natural
from monitor.errors import SourceError, UsageError
from monitor.run.outcome import Opened, hear_one
from monitor.run.summary_file import SummaryFile, row_of
from monitor.sources.fingerprints import file_hash
from monitor.workers import Jobs, absolute, each_in_order

__all__ = ["SummaryRow", "hear_each", "known_already", "recordings_of"]

ReadBeside: TypeAlias = Callable[[Path], Sequence[Path]]
"""Gives the files that are read beside a recording."""


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A line of the summary.

    Attributes:
        path: the recording.
        cells: by column, as text.
    """

    path: Path
    cells: dict[str, str]

    @property
    def status(self) -> int:
        """The exit status of its run."""
        return int(self.cells["exit_status"])


@dataclass(frozen=True, slots=True)
class _Task:
    """A recording to be heard: what the summary calls it, and where it is."""

    name: str
    path: Path


def recordings_of(names: Sequence[str]) -> list[Path]:
    """The recordings that files and folders stand for, each once, in natural order.

    Raises:
        UsageError: there is no such file or folder, or no recording in a folder.
    """
    found: dict[str, Path] = {}
    for name in names:
        path = Path(name)
        if not path.exists():
            raise UsageError(f"{name} does not exist; --each hears files and folders")
        below = recordings_below(path) if path.is_dir() else [path]
        if not below:
            raise UsageError(f"no recording in {name}")
        for each in below:
            found.setdefault(os.path.realpath(each), each)
    return sorted(found.values(), key=lambda path: natural(path.as_posix()))


def known_already(
    recordings: Sequence[Path], summary: SummaryFile, beside: ReadBeside = lambda _: ()
) -> tuple[list[SummaryRow], list[Path]]:
    """Which recordings a summary has, known again by name and content, and which are to be heard.

    Args:
        recordings: from `recordings_of`.
        summary: opened.
        beside: as of `hear_each`.

    Returns:
        the lines of those that it has, and the others.
    """
    there, left = [], []
    for path in recordings:
        name = name_of(path)
        if name in summary.rows and summary.has(name, _fingerprint(path, beside)):
            there.append(SummaryRow(path, dict(summary.rows[name])))
        else:
            left.append(path)
    return there, left


def hear_each(
    recordings: Sequence[Path],
    opened: Opened,
    summary: SummaryFile,
    jobs: Jobs = 1,
    *,
    unfinished: Path | None = None,
    reads: Sequence[Path] = (),
    beside: ReadBeside = lambda _: (),
    alike: Callable[[], object] = lambda: None,
) -> Generator[SummaryRow, None, None]:
    """Hear every recording, and write its line; a broken one is a line with its error.

    The processes send their lines here, where each is written as it comes: a kill loses no more
    than what is just being heard, one recording a process. When all are done the summary is put in
    order.

    Args:
        recordings: those of `known_already` that are left.
        opened: gives the run of a recording, fresh; picklable where there are several processes.
        summary: opened.
        jobs: processes, or a cluster; the summary does not depend on it.
        unfinished: a folder where processes leave what recordings that take longer than
            `Unfinished.every_seconds` are gone on from; None heeds none.
        reads: files that every run needs beside the recording.
        beside: gives those that the run of one recording needs, such as its transcript; the line
            depends on them.
        alike: as of `monitor.workers.each_in_order`.

    Yields:
        each line, in the order of the recordings.

    Raises:
        StoreError: the summary cannot be written.
        MonitorError: a process was ended from outside, or workers elsewhere are lost or unfit.
    """
    work = partial(_hear, opened, summary.settings, unfinished, beside)
    tasks = [_Task(name_of(path), absolute(path)) for path in recordings]
    made = each_in_order(
        work,
        tasks,
        jobs,
        reads=lambda task: [task.path, *beside(task.path), *reads],
        alike=alike,
        arrived=summary.append,
    )
    with closing(made) as rows:
        for path, row in zip(recordings, rows, strict=True):
            yield SummaryRow(path, row)
    summary.finish()


def name_of(path: Path) -> str:
    r"""What the summary calls a recording: its path, on one line, no two the same.

    Example:
        >>> name_of(Path("talks/a\nb.wav"))
        'talks/a\\nb.wav'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in path.as_posix())


def _hear(
    opened: Opened, settings: str, unfinished: Path | None, beside: ReadBeside, task: _Task
) -> dict[str, str]:
    """The line of a recording; made in any process, on any machine that has the file."""
    fingerprint = _fingerprint(task.path, beside)
    state = None
    if unfinished is not None and fingerprint:
        mark = hashlib.sha256(f"{settings} {fingerprint} {task.name}".encode()).hexdigest()
        state = unfinished / f"{mark[:32]}.state"
    return row_of(task.name, hear_one(task.path, opened, state), fingerprint, settings)


def _fingerprint(path: Path, beside: ReadBeside) -> str:
    """Of the bytes, and of those of what lies beside it; empty where they cannot be read."""
    try:
        hashes = [file_hash(each) for each in (path, *beside(path))]
    except SourceError:
        return ""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
