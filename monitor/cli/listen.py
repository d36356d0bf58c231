"""monitor listen: a microphone in, bits against length out, as it is spoken."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.alerting import Alerting, alert_options
from monitor.cli.hearing import hearing_options, jsonl_option
from monitor.cli.keeping import Keeping, ledger_options
from monitor.cli.live import device_option, quiet_libraries, stopped_by_signals
from monitor.cli.options import Seconds, check_output
from monitor.cli.web import most_named, open_page, top_option, web_options

if TYPE_CHECKING:
    from monitor.protocols import Sink

__all__ = ["command"]


@click.command("listen", short_help="Hear a microphone: bits of identity, as it is spoken.")
@device_option
@click.option(
    "--for",
    "seconds",
    type=Seconds(),
    metavar="LENGTH",
    help="Stop after so much audio, such as 90, 10m or 1:30. [default: at Ctrl-C]",
)
@hearing_options
@alert_options(bell=True)
@ledger_options
@jsonl_option
@click.option(
    "--reconnect",
    type=Seconds(),
    default="60",
    show_default=True,
    metavar="SECONDS",
    help="How long a device that vanished is waited for.",
)
@top_option
@web_options
def command(
    device: str | None,
    seconds: float | None,
    store: str | None,
    law_file: str | None,
    watch: str | None,
    features: tuple[str, ...] | None,
    step: float,
    channel: int | None,
    template_seconds: float | None,
    on_change: str,
    alerting: Alerting,
    keeping: Keeping,
    jsonl: str | None,
    reconnect: float,
    top: int | None,
    web: tuple[str, int] | None,
    web_token: str | None,
) -> int:
    """Measure how many bits of identity the voice at the microphone discloses.

    \b
    monitor listen                          until Ctrl-C
    monitor listen -p us.npz --watch me --alert 'bits>3'
    monitor listen --device usb --for 10m --jsonl talk.jsonl
    monitor listen --web 8000 -p us.npz --watch me --ledger me.db --budget 8bits

    In the view: the ceiling is what naming one person is worth, the plateau what voices disclose
    on average however long they speak; the guides show how bits would add up if every second
    counted in full (linear) or less and less (root). They are a scale, no promise.

    Audio is heard and forgotten: none is stored. Records are those of `monitor replay`, with the
    lag of every reading. Ctrl-C is a normal end. Should this machine be too slow, the feature that
    costs most hears less, and the records say so, before any audio is lost.
    """
    from monitor.alerts.forecast import Forecast
    from monitor.cli import INCOMPLETE, RAISED
    from monitor.cli.inputs import load_identity, spare
    from monitor.errors import UsageError
    from monitor.population.lawfile import load_laws
    from monitor.population.population import Population
    from monitor.sinks.jsonl import JsonLines
    from monitor.sinks.kept import Kept
    from monitor.sinks.live import LiveView
    from monitor.sources.microphone import Microphone
    from monitor.stream.monitor import Monitor
    from monitor.stream.records import start_record
    from monitor.stream.run import run
    from monitor.stream.thinning import KeepingUp, timed

    if seconds == 0:
        raise UsageError("--for 0 hears nothing; leave it out to listen until Ctrl-C")
    terminal = sys.stdout.isatty()
    if jsonl is None and not terminal:
        jsonl = "-"
    if jsonl is not None and jsonl != "-":
        check_output(Path(jsonl))
        spare(Path(jsonl), [store, law_file])
    rules = alerting.rules
    thresholds = alerting.thresholds  # not the budget's
    rules += keeping.rules()
    population = Population.reference() if store is None else Population.load(store)
    monitor = Monitor(
        population,
        features,
        watch,
        step_seconds=step,
        laws=None if law_file is None else load_laws(Path(law_file)),
        template_seconds=template_seconds,
        channel=channel,
        on_change=on_change,
        top=most_named(top, web),
    )
    load_identity(monitor.features, ["-"])
    microphone = Microphone(
        device,
        seconds=seconds,
        channels=channel,
        reconnect_seconds=reconnect,
        told=lambda line: view.say(line),
    )
    with ExitStack() as stack:
        stack.enter_context(quiet_libraries())
        stack.enter_context(microphone)
        start = start_record(monitor, [microphone.label])
        start["notices"] += alerting.check(start)
        actions = alerting.actions()
        session = keeping.session(monitor)
        if session is not None:
            actions.append(session)
            start = session.begin(start)
        parts = timed(monitor.features)
        monitor.compute_with(parts)
        log = None if jsonl is None else JsonLines(jsonl)
        for notice in start["notices"]:
            click.echo(f"monitor: note: {notice}", err=True)
        kept = Kept()
        sinks: list[Sink] = [kept]
        if web is not None:
            page = open_page(web, web_token, thresholds=thresholds)
            click.echo(f"monitor: the page is at {page.url}", err=True)
            sinks.append(page)
        view = LiveView(forecasts=[Forecast(bits) for bits in thresholds])
        sinks.append(view)
        for sink in [*sinks, *actions, *([] if log is None else [log])]:
            stack.callback(sink.close)
        with stopped_by_signals(microphone.stop):
            tally = run(
                monitor,
                KeepingUp(microphone, parts),
                [microphone.label],
                sinks=sinks,
                rules=rules,
                actions=actions,
                until=alerting.until,
                start=start,
                log=log,
                lag=microphone.behind_seconds,
            )
    if terminal and jsonl != "-":
        from monitor.sinks.summary import print_summary

        print_summary(kept.records)
    for failure in tally.failures:
        click.echo(f"monitor: not done: {failure}", err=True)
    if tally.gaps or (session is not None and session.incomplete):
        return INCOMPLETE
    return RAISED if tally.alerts else 0
