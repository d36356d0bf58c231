"""Reporter of a run: notices before it; a summary, a picture and a status after it."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from monitor.cli.inputs import stopped_by_signals
from monitor.cli.options import check_output, feature_setup, say, unlocked
from monitor.protocols import LiveSource, Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from monitor.cli.monitor_options import (
        Alerting,
        DisplayOptions,
        JsonLog,
        LedgerOptions,
        MonitorOptions,
        Protecting,
    )
    from monitor.protocols import Source
    from monitor.run import Run
    from monitor.sinks.console import RunBuffer
    from monitor.stream.monitor import Monitor


class TurnOptions(Protocol):
    """Options of turns, of which a run needs the labels that alerts are asked for."""

    @property
    def alert_for(self) -> tuple[str, ...]:
        """Labels that alerts are asked for."""


class RunOptions(Protocol):
    """Options of a command that makes a run: listen, replay."""

    @property
    def options(self) -> MonitorOptions:
        """Speaker and attacker."""

    @property
    def alerting(self) -> Alerting:
        """Alerts."""

    @property
    def protecting(self) -> Protecting:
        """The anonymised side."""

    @property
    def of_ledger(self) -> LedgerOptions:
        """The ledger."""

    @property
    def log(self) -> JsonLog:
        """The file of JSON lines."""

    @property
    def shown(self) -> DisplayOptions:
        """Display."""

    @property
    def apart(self) -> TurnOptions:
        """Turns."""


class RunReporter:
    """Opens the run that was asked for, tells people of it, and keeps what is to be drawn."""

    def __init__(
        self,
        asked: RunOptions,
        read: Iterable[object | None] = (),
        *,
        plot: Path | None = None,
        resume: bool = False,
        split: bool = False,
    ) -> None:
        self._split = split  # by person
        asked.alerting.check_ledger(asked.of_ledger.ledger)
        self._asked = asked
        self._protection = asked.protecting.protection(asked.of_ledger.ledger)
        spared = [*read, *asked.options.files, *asked.protecting.files, asked.of_ledger.ledger]
        log = asked.log.file(spared, resume=resume)
        self._log, self._plot = log, plot
        self._terminal = sys.stdout.isatty()
        if plot is not None:
            from monitor.plots.canvas import check_drawing, check_suffix

            check_suffix(plot)
            check_output(plot)
            check_drawing()

    @cached_property
    def _kept(self) -> RunBuffer:
        """Buffer of what is drawn and summed up; it brings rich, which is slow to import."""
        from monitor.sinks.console import RunBuffer

        return RunBuffer()

    def run(
        self, source: Callable[[], Source], *, allow_overlap: bool = False, jobs: int | None = 1
    ) -> Run:
        """The run of a source, not yet entered."""
        from monitor.run import Run, RunSettings

        asked, setup = self._asked, feature_setup()
        named = asked.shown.named
        monitors: Sequence[Callable[[Source], Monitor]] = (
            asked.options.monitors(setup=setup, top=named)
            if self._split
            else [partial(asked.options.monitor, setup=setup, top=named)]
        )
        return Run(
            source,
            monitors,
            settings=RunSettings(
                until=asked.alerting.until,
                allow_overlap=allow_overlap,
                protect=self._protection,
                jobs=jobs,
                alert_labels=asked.apart.alert_for,
            ),
            rules=lambda monitor: asked.alerting.rules_for(monitor, asked.of_ledger.rules()),
            actions=asked.alerting.actions(),
            sinks=asked.shown.pages(asked.alerting.thresholds),
            log=self._log,
            ledger=asked.of_ledger.file(),
        )

    def follow(self, run: Run, view: Sink) -> None:
        """Hear an opened run to its end, in a view; Ctrl-C ends a live source."""
        if self._log is not None and not run.locked:
            say(unlocked(str(self._log.path)))
        for notice in run.notices:
            say(f"monitor: note: {notice}")
        for page in run.sinks:
            say(f"monitor: the page is at {page.url}")  # type: ignore[attr-defined]
        run.sinks.append(view)
        if self._plot is not None or self._terminal:
            run.sinks.append(self._kept)
        live = isinstance(run.source, LiveSource)
        try:
            with stopped_by_signals(run.stop) if live else nullcontext():
                run.to_end()
        except KeyboardInterrupt:
            if run.resumable:
                say("monitor: to go on later, run the same command with --resume")
            raise

    def status(self, run: Run) -> int:
        """When all is closed: tell what came of it."""
        from monitor.run import status_of

        totals = run.totals
        for notice in totals.notices:
            say(f"monitor: note: {notice}")
        for line in totals.undecided:
            say(f"monitor: {line}")
        for failure in totals.failures:
            say(f"monitor: not done: {failure}")
        if totals.alerts and run.shortfalls:
            say(
                f"monitor: an alert was raised, and the run is incomplete: "
                f"{'; '.join(run.shortfalls)}"
            )
        if self._plot is not None:
            self._draw(self._plot)
        if self._terminal and (self._log is None or self._log.path != "-"):
            from monitor.sinks.summary import print_summary

            print_summary(self._kept.records)
        return status_of(run)

    def _draw(self, path: Path) -> None:
        """Draw the run; a resumed one from its file, since only that has the beginning."""
        from monitor.events.schema import read_run
        from monitor.plots.curve import plot_run

        log = self._log
        resumed = log is not None and log.resume
        plot_run(read_run(str(log.path)) if log and resumed else self._kept.records, path)
