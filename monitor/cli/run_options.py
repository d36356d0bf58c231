"""Options of a run, and its report."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.cli.inputs import stopped_by_signals
from monitor.cli.monitor_options import (
    AlertOptions,
    JsonLog,
    LedgerOptions,
    MonitorOptions,
    ProtectedVoiceOptions,
)
from monitor.cli.options import check_picture, feature_setup, group, note, say, unlocked
from monitor.cli.page_options import DisplayOptions
from monitor.cli.transcript_options import TranscriptOptions
from monitor.errors import UsageError
from monitor.run import status_of

if TYPE_CHECKING:
    from monitor.protocols import AlertAction, Sink, Source
    from monitor.relay import Relay
    from monitor.run import Run
    from monitor.sinks.buffer import RunBuffer
    from monitor.stream.monitor import Monitor


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options that listen and replay share."""

    options: MonitorOptions = group(MonitorOptions, "Speaker and attacker")
    protecting: ProtectedVoiceOptions = group(ProtectedVoiceOptions, "Anonymiser")
    transcribing: TranscriptOptions = group(TranscriptOptions, "Words and turns")
    alerting: AlertOptions = group(AlertOptions, "Alerts")
    of_ledger: LedgerOptions = group(LedgerOptions, "Alerts")
    log: JsonLog = group(JsonLog, "Output")
    shown: DisplayOptions = group(DisplayOptions, "Output")


class RunReporter:
    """Opens the requested run, reports on it, and buffers events for pictures."""

    def __init__(
        self,
        options: RunOptions,
        read: Iterable[object | None] = (),
        *,
        plot: tuple[Path, bool] | None = None,
        resume: bool = False,
        split: bool = False,
        alert_for: Sequence[str] = (),
        relay: Relay | None = None,
        actions: Iterable[AlertAction] = (),
    ) -> None:
        self._split, self._alert_for = split, alert_for  # by person, with alerts for these labels
        self._relay, self._actions = relay, actions
        if options.alerting.open_rules and options.of_ledger.ledger is not None:
            raise UsageError(
                "--false-alarms covers one stream from its beginning, --ledger several: use "
                "--budget, or a rule with a threshold"
            )
        options.of_ledger.check(keeps=relay is not None)
        self._options = options
        self._protection = options.protecting.protection(
            options.of_ledger.ledger, later=relay is not None and relay.protects
        )
        if self._protection is not None and relay is not None:
            self._protection = replace(self._protection, on_block=relay.send_protected)
        files = *options.options.files, *options.protecting.files
        spared = [*read, *files, options.of_ledger.ledger]
        log = options.log.file(spared, resume=resume)
        self._log, self._plot = log, plot
        self._terminal = sys.stdout.isatty()
        if plot is not None:
            check_picture(plot[0])

    @cached_property
    def _kept(self) -> RunBuffer:
        """Events for the picture and the summary; imported here, since rich is slow to import."""
        from monitor.sinks.buffer import RunBuffer

        return RunBuffer()

    def run(
        self, source: Callable[[], Source], *, allow_overlap: bool = False, jobs: int | None = 1
    ) -> Run:
        """Make the run of a source, not yet entered."""
        from monitor.run import Run, RunSettings

        options, setup = self._options, feature_setup()
        relays = [] if self._relay is None else [self._relay]
        monitors: Sequence[Callable[[Source], Monitor]] = (
            options.options.monitors(setup=setup, top=options.shown.named)
            if self._split
            else [partial(options.options.monitor, setup=setup, top=options.shown.named)]
        )
        return Run(
            source,
            monitors,
            settings=RunSettings(
                until=options.alerting.until,
                allow_overlap=allow_overlap,
                allow_idle_alerts=options.alerting.allow_idle,
                protect=self._protection,
                jobs=jobs,
                alert_labels=self._alert_for,
            ),
            rules=lambda monitor: options.alerting.rules_for(
                monitor, [*options.of_ledger.rules(), *relays]
            ),
            actions=itertools.chain(options.alerting.actions(), relays, self._actions),
            sinks=options.shown.pages(options.alerting.thresholds, self._relay),
            log=self._log,
            ledger=options.of_ledger.file(),
        )

    def follow(self, run: Run, view: Sink) -> None:
        """Follow an opened run to its end, in a view; Ctrl-C ends a live source."""
        from monitor.protocols import LiveSource

        if self._log is not None and not run.locked:
            say(unlocked(str(self._log.path)))
        note(*run.notices)
        for page in run.sinks:
            say(f"monitor: the page is at {page.url}")  # type: ignore[attr-defined]
        run.sinks.append(view)
        if self._plot is not None or self._terminal:
            run.sinks.append(self._kept)
        if self._relay is not None:
            self._relay.begin(run.monitor, run.attackers, charge=run.hold_ledger())
        live = isinstance(run.source, LiveSource)
        try:
            with stopped_by_signals(run.stop) if live else nullcontext():
                run.to_end()
        except KeyboardInterrupt:
            if run.resumable:
                say("monitor: to continue later, run the same command with --resume")
            raise

    def status(self, run: Run) -> int:
        """Report the outcome of a closed run, and return its exit status."""
        totals = run.totals
        note(*totals.notices)
        say(*(f"monitor: {line}" for line in totals.undecided))
        say(*(f"monitor: failed: {failure}" for failure in totals.failures))
        if totals.alerts and run.shortfalls:
            say(f"monitor: an alert was raised. The run is incomplete: {'; '.join(run.shortfalls)}")
        if totals.alerts and self._relay is None and not self._terminal:
            from monitor.events.phrases import UNCHANGED

            say(f"monitor: {UNCHANGED}")
        if self._plot is not None:
            from monitor.events.schema import read_run
            from monitor.plots.curve import plot_run

            log = self._log  # only the file has the beginning of a resumed run
            events = read_run(str(log.path)) if log and log.resume else self._kept.events
            path, guides = self._plot
            plot_run(events, path, guides=guides)
        if self._terminal and (self._log is None or self._log.path != "-"):
            from monitor.sinks.summary import print_summary

            print_summary(self._kept.events)
        return status_of(run)
