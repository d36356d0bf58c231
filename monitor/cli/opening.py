"""What a run writes to and acts through, opened before anything is written.

A command that hears a stream makes an `Opening`, then what it hears, then calls ``begin`` and
``run``. Whatever can refuse does so before ``run``: until the first record comes, every file is as
it was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitor.cli.options import check_output, unlocked
from monitor.cli.saying import say

if TYPE_CHECKING:
    from monitor.cli.alerting import Alerting
    from monitor.cli.keeping import Keeping
    from monitor.ledger import LedgerSession
    from monitor.ledger.ledger import HeardPart
    from monitor.protocols import Sink, Source, Stateful
    from monitor.sinks.jsonl import JsonLines
    from monitor.stream.checkpoint import Checkpoint
    from monitor.stream.monitor import Monitor
    from monitor.stream.records import RunTotals

__all__ = ["Opening"]


class Opening(ExitStack):
    """Opens, in the order in which it is cheap to refuse, and closes what was opened.

    Args:
        jsonl: from ``--jsonl``; standard output where there is none, and no terminal.
        replace: overwrite what ``jsonl`` holds.
        resume: go on with the run that ``jsonl`` holds.
        plot: the picture to draw when the run is over.
        reads: files that the run reads, which it may not write over.
        alerting: the rules, and what alerts do.
        keeping: the ledger.
        web: host and port of the page.
        token: its token.

    Attributes:
        thresholds: field and bits that views say the time left for.

    Raises:
        UsageError: the options do not go together, ``jsonl`` holds something already, or a rule, an
            address or a picture makes no sense.
        StoreError: a file cannot be written, or another run writes to it.
    """

    def __init__(
        self,
        *,
        jsonl: str | None,
        replace: bool,
        resume: bool = False,
        plot: Path | None = None,
        reads: Iterable[str | None] = (),
        alerting: Alerting,
        keeping: Keeping,
        web: tuple[str, int] | None,
        token: str | None,
    ) -> None:
        super().__init__()
        alerting.check_ledger(keeping.path)
        self._terminal = sys.stdout.isatty()
        self._jsonl = "-" if jsonl is None and not self._terminal else jsonl
        self._resume, self._plot = resume, plot
        self._alerting, self._keeping = alerting, keeping
        self._log: JsonLines | None = None
        self._checkpoint: Checkpoint | None = None
        self._session: LedgerSession | None = None
        self.thresholds = alerting.thresholds  # not the budget's
        self._start: dict[str, Any] = {}
        self._of_files = False
        try:
            ledger = None if keeping.path is None else str(keeping.path)
            self._open_files([*reads, ledger], replace=replace)
            self._rules = alerting.rules
            self._rules += keeping.rules()
            self._actions = alerting.actions()
            for action in self._actions:
                self.callback(action.close)
            self._page = None if web is None else self._open_page(web, token)
        except BaseException:
            self.close()
            raise

    def begin(
        self,
        monitor: Monitor,
        labels: Sequence[str],
        *,
        heard: Iterable[HeardPart] = (),
        configuration: Mapping[str, Any] | None = None,
    ) -> None:
        """See to it that everything fits the stream, and take up what the run goes on from.

        Args:
            monitor: fresh.
            labels: of the recordings.
            heard: the recordings as a ledger knows them.
            configuration: what must be the same when the run is resumed; None where it cannot be.

        Raises:
            UsageError: a rule does not fit, or a recording is in the ledger already.
            StoreError: the ledger or the checkpoint cannot be used.
        """
        from monitor.stream.checkpoint import Checkpoint, state_path
        from monitor.stream.records import RunTotals, start_record

        self._monitor, self._labels, self._tally = monitor, list(labels), RunTotals()
        self._of_files = configuration is not None
        start = start_record(monitor, labels)
        if worked_out := self._alerting.settle(monitor):
            start["alarms"] = worked_out
        start["notices"] += self._alerting.check(start)
        session = self._session = self._keeping.session(monitor, heard, resume=self._resume)
        if session is not None:
            self.callback(session.close)
            self._actions.append(session)
        if self._log is not None and self._log.plain:
            whole = {
                **(configuration or {}),
                **start["fingerprint"],
                "alerts": [rule.rule for rule in self._rules],
                "ledger": self._keeping.path is not None,
            }
            self._checkpoint = Checkpoint(state_path(Path(str(self._jsonl))), whole)
            self._checkpoint.check()
            if self._resume:
                kept = [*self._rules, *self._stateful]
                self._log.go_on_at(self._checkpoint.load(monitor, self._tally, kept))
        self._start = start if session is None else session.begin(start)

    def run(
        self,
        source: Source,
        view: Sink,
        *,
        stop: Callable[[], None] | None = None,
        lag: Callable[[float], float] | None = None,
    ) -> RunTotals:
        """Hear the source to its end.

        Args:
            source: what to hear.
            view: what people see meanwhile.
            stop: ends the source at Ctrl-C, or a polite kill; None lets it interrupt.
            lag: as in `monitor.stream.run.run`.

        Returns:
            the counts of the run.
        """
        from monitor.cli.live import stopped_by_signals
        from monitor.sinks.run_buffer import RunBuffer
        from monitor.stream.run import run

        if self._checkpoint is not None and not self._resume:
            self._checkpoint.remove()  # of the run that is overwritten now
        for notice in self._start["notices"]:
            say(f"monitor: note: {notice}")
        self._kept = RunBuffer()
        sinks: list[Sink] = [] if self._page is None else [self._page]
        if self._page is not None:
            say(f"monitor: the page is at {self._page.url}")
        sinks.append(view)
        self.callback(view.close)
        if self._plot is not None or self._terminal:
            sinks.append(self._kept)
        checkpoint = self._checkpoint if self._of_files else None
        try:
            with nullcontext() if stop is None else stopped_by_signals(stop):
                return run(
                    self._monitor,
                    source,
                    self._labels,
                    sinks=sinks,
                    rules=self._rules,
                    actions=self._actions,
                    until=self._alerting.until,
                    stateful=self._stateful,
                    tally=self._tally,
                    start=self._start,
                    resumed=self._resume,
                    log=self._log,
                    checkpoint=checkpoint,
                    lag=lag,
                )
        except KeyboardInterrupt:
            if checkpoint is not None and checkpoint.path.exists():
                say("monitor: to go on later, run the same command with --resume")
            raise

    def status(self) -> int:
        """When all is closed: tell what came of it.

        Returns:
            the exit status.
        """
        from monitor.cli import INCOMPLETE, RAISED

        for notice in self._tally.notices:
            say(f"monitor: note: {notice}")
        for failure in self._tally.failures:
            say(f"monitor: not done: {failure}")
        if self._plot is not None:
            self._draw(self._plot)
        if self._terminal and self._jsonl != "-":
            from monitor.sinks.summary import print_summary

            print_summary(self._kept.records)
        lost = self._tally.gaps or (self._session is not None and self._session.incomplete)
        # a microphone that nobody speaks into is no failure, a recording is something to look at
        if lost or (self._of_files and self._tally.silent):
            return INCOMPLETE
        return RAISED if self._tally.alerts else 0

    @property
    def _stateful(self) -> list[Stateful]:
        return [] if self._session is None else [self._session]

    def _open_files(self, reads: Sequence[str | None], *, replace: bool) -> None:
        from monitor.cli.inputs import spare
        from monitor.errors import UsageError
        from monitor.plots.canvas import check_drawing, check_suffix
        from monitor.sinks.jsonl import JsonLines

        if self._resume and self._jsonl in (None, "-"):
            raise UsageError("--resume needs the file of the interrupted run: --jsonl FILE")
        if self._resume and replace:
            raise UsageError("--resume goes on with a run, --replace begins it anew: give one")
        if self._plot is not None:
            check_suffix(self._plot)
            check_output(self._plot)
            check_drawing()
        if self._jsonl is None:
            return
        if self._jsonl != "-":
            spare(Path(self._jsonl), reads)
        self._log = JsonLines(self._jsonl)
        self.callback(self._log.close)
        if self._log.plain and not (self._resume or replace):
            self._refuse_overwriting(Path(self._jsonl))
        if not self._log.locked:
            say(unlocked(self._jsonl))

    def _refuse_overwriting(self, path: Path) -> None:
        from monitor.errors import StoreError, UsageError
        from monitor.sinks.standing import standing
        from monitor.stream.checkpoint import state_path

        try:
            what = standing(path)
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}; name another") from None
        if what is None:
            return
        resumable = what == "an unfinished run" and state_path(path).exists()
        raise UsageError(
            f"{path} holds {what}: {'go on with it (--resume), ' if resumable else ''}name another "
            "file, or overwrite it (--replace)"
        )

    def _open_page(self, web: tuple[str, int], token: str | None) -> Any:
        from monitor.cli.web import open_page

        page = open_page(web, token, thresholds=self.thresholds)
        self.callback(page.close)
        return page

    def _draw(self, path: Path) -> None:
        """Draw the run; a resumed one from its file, since only that has the beginning."""
        from monitor.plots.curve import plot_run
        from monitor.records.schema import read_run

        plot_run(read_run(str(self._jsonl)) if self._resume else self._kept.records, path)
