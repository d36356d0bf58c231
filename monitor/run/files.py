"""The files that a run writes: its JSON lines and the ledger, and when they may be opened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.errors import StoreError, UsageError
from monitor.protocols import Stateful
from monitor.sinks.jsonl import JsonLines, spare, standing
from monitor.stream.checkpoint import state_path
from monitor.stream.monitor import Monitor

if TYPE_CHECKING:
    from monitor.ledger import LedgerSession
    from monitor.sources.provenance import Provenance

__all__ = ["LedgerFile", "LogFile", "Unfinished"]


@dataclass(frozen=True, slots=True)
class LogFile:
    """The JSON lines of a run.

    Attributes:
        path: the file; ``-`` for standard output.
        replace: overwrite what it holds.
        resume: go on with the run that it holds.
        spared: files that the run reads, which it may not write over.
    """

    path: str | os.PathLike[str]
    replace: bool = False
    resume: bool = False
    spared: Sequence[str | os.PathLike[str]] = ()

    def open(self) -> JsonLines:
        """The file, locked and as it stands: only the first record changes it.

        Raises:
            UsageError: it holds something that is to be kept, or is one that the run reads.
            StoreError: it cannot be written, or another run writes to it.
        """
        name = os.fspath(self.path)
        if self.resume and name == "-":
            raise UsageError("resume=True needs the file of the interrupted run, not -")
        if self.resume and self.replace:
            raise UsageError(
                "resume=True goes on with a run, replace=True begins it anew: give one"
            )
        if name != "-":
            spare(self.path, self.spared)
        log = JsonLines(name)
        try:
            if log.plain and not (self.resume or self.replace):
                self._refuse_overwriting()
        except BaseException:
            log.close()
            raise
        return log

    def _refuse_overwriting(self) -> None:
        path = Path(self.path)
        try:
            what = standing(path)
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}; name another") from None
        if what is None:
            return
        resumable = what == "an unfinished run" and state_path(path).exists()
        go_on = "go on with it (LogFile(path, resume=True)), " if resumable else ""
        raise UsageError(
            f"{path} holds {what}: {go_on}name another file, or overwrite it "
            "(LogFile(path, replace=True))"
        )


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """The ledger that a run adds its session to.

    Attributes:
        path: the file.
        reading_seconds: stream seconds from one kept reading to the next.
    """

    path: str | os.PathLike[str]
    reading_seconds: float = 10.0

    def session(
        self, monitor: Monitor, heard: Iterable[Provenance], *, resume: bool
    ) -> LedgerSession:
        """Open the ledger, and make a fresh monitor go on from what it holds.

        No file is made where one must be there (``resume``), or where the monitor does not go with
        a ledger.

        Raises:
            UsageError: nobody is watched, or the monitor begins afresh at a change of speaker.
            StoreError: the ledger cannot be read, or does not fit.
        """
        from monitor.ledger import Ledger, LedgerSession
        from monitor.ledger.session import check

        check(monitor)
        ledger = Ledger(Path(self.path), create=not resume)
        return LedgerSession(ledger, monitor, reading_seconds=self.reading_seconds, heard=heard)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Where a run without a log leaves what it goes on from, should it be killed.

    Attributes:
        path: of its checkpoint: taken up where there is one, removed when the run has ended.
        kept: what goes on with the run, beside what is its own.
        every_seconds: wall seconds between checkpoints, of which the first is as late.
    """

    path: Path
    kept: Sequence[Stateful] = ()
    every_seconds: float = 10.0
