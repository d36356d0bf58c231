"""monitor listen: a microphone in, bits against length out, as it is spoken."""

from __future__ import annotations

import click

from monitor.cli.inputs import device_option, quiet_libraries
from monitor.cli.monitor_options import (
    Alerting,
    JsonLog,
    LedgerOptions,
    MonitorOptions,
    Protecting,
    Shown,
    alert_options,
    hearing_options,
    jsonl_options,
    ledger_options,
    protecting_options,
    shown_options,
)
from monitor.cli.options import Seconds
from monitor.cli.transcript_options import Transcribing, transcribing_options


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
@protecting_options
@transcribing_options
@alert_options(bell=True)
@ledger_options
@jsonl_options
@click.option(
    "--reconnect",
    type=Seconds(),
    default="60",
    show_default=True,
    metavar="SECONDS",
    help="How long a device that vanished is waited for.",
)
@shown_options
def command(
    device: str | None,
    seconds: float | None,
    options: MonitorOptions,
    protecting: Protecting,
    transcribing: Transcribing,
    alerting: Alerting,
    of_ledger: LedgerOptions,
    log: JsonLog,
    reconnect: float,
    shown: Shown,
) -> int:
    """Measure how many bits of identity the voice at the microphone discloses.

    \b
    monitor listen                          until Ctrl-C
    monitor listen -p us.npz --watch me --alert 'bits>3'
    monitor listen --device usb --for 10m --jsonl talk.jsonl
    monitor listen -p us.npz --watch me --protect mcadams:0.8
    monitor listen --web 8000 -p us.npz --watch me --ledger me.db --budget 8bits
    my-recogniser | monitor listen -p us.npz --watch me --transcript -

    In the view: the ceiling is what naming one person is worth, the plateau what voices disclose
    on average however long they speak; the guides show how bits would add up if every second
    counted in full (linear) or less and less (root). They are a scale, no promise.

    Audio is heard and forgotten: none is stored. Records are those of `monitor replay`, with the
    lag of every reading. Ctrl-C is a normal end. Should this machine be too slow, the feature that
    costs most hears less, and the records say so, before any audio is lost.
    """
    from monitor.alerts.rules import Forecast
    from monitor.cli.run_reporter import RunReporter
    from monitor.errors import UsageError
    from monitor.protocols import LiveSource
    from monitor.run import Run
    from monitor.sinks.live import LiveView
    from monitor.sources.registry import open_live_source

    if seconds == 0:
        raise UsageError("--for 0 hears nothing; leave it out to listen until Ctrl-C")

    view: LiveView
    words = transcribing.wanted(options.features)

    def microphone() -> LiveSource:
        source = open_live_source(
            f"mic:{device or ''}",
            seconds=seconds,
            channels=options.channel,
            reconnect_seconds=reconnect,
            told=lambda line: view.say(line),
        )
        return transcribing.live(source, lambda line: view.say(line)) if words else source

    alerting.check_ledger(of_ledger.ledger)
    protection = protecting.protection(of_ledger.ledger)
    file = log.file([*options.files, *protecting.files, of_ledger.ledger])
    run_reporter = RunReporter(file)
    with (
        quiet_libraries(),
        Run(
            microphone,
            lambda source: options.monitor(source, top=shown.named),
            rules=lambda monitor: alerting.rules_for(monitor, of_ledger.rules()),
            actions=alerting.actions(),
            sinks=shown.pages(alerting.thresholds),
            log=file,
            ledger=of_ledger.file(),
            until=alerting.until,
            protect=protection,
        ) as run,
    ):
        view = LiveView(forecasts=[Forecast(bits, name) for name, bits in alerting.thresholds])
        run_reporter.hear(run, view)
    return run_reporter.status(run)
