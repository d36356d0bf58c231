"""monitor listen: a microphone in, bits against length out, as it is spoken."""

from __future__ import annotations

from dataclasses import dataclass

import click

from monitor.cli.help import HelpCommand
from monitor.cli.inputs import device_option, quiet_libraries
from monitor.cli.monitor_options import RunOptions, RunReporter, refuse_beside
from monitor.cli.options import Seconds, group, option, shared, with_options
from monitor.cli.transcript_options import LiveTurns
from monitor.errors import UsageError


@dataclass(frozen=True, slots=True)
class ListenOptions(RunOptions):
    """Options of the command."""

    device: str | None = shared(device_option)
    seconds: float | None = option(
        "--for LENGTH",
        "Stop after so much audio, such as 90, 10m or 1:30. [default: at Ctrl-C]",
        type=Seconds(),
    )
    reconnect: float = option(
        "--reconnect SECONDS",
        "How long a device that vanished is waited for.",
        type=Seconds(),
        default="60",
    )
    apart: LiveTurns = group(LiveTurns, "Words and turns")


@click.command("listen", cls=HelpCommand, short_help="Measure the voice at the microphone, live.")
@with_options(ListenOptions)
def command(asked: ListenOptions) -> int:
    """Measure how many bits of identity the voice at the microphone discloses.

    \b
    monitor listen                          until Ctrl-C
    monitor listen -p us.npz --watch me --alert 'bits>6'
    monitor listen --device usb --for 10m --jsonl talk.jsonl
    monitor listen -p us.npz --watch me --protect mcadams:0.8
    monitor listen --web 8000 -p us.npz --watch me --ledger me.db --budget 8bits
    my-recogniser | monitor listen -p us.npz --watch me --transcript -
    my-diariser | monitor listen -p us.npz --turns - --web 8000

    Audio is heard and forgotten: none is stored. Records are those of `monitor replay`, with the
    lag of every reading. Ctrl-C is a normal end. Should this machine be too slow, the feature that
    costs most hears less, and the records say so, before any audio is lost.
    """
    from monitor.alerts.rules import Forecast
    from monitor.protocols import LiveSource
    from monitor.sinks.live import LiveView, PeopleProgress
    from monitor.sources.registry import open_live_source

    if asked.seconds == 0:
        raise UsageError("--for 0 hears nothing; leave it out to listen until Ctrl-C")

    view: LiveView | PeopleProgress
    words = asked.transcribing.wanted(asked.options.features)
    split = asked.apart.turns is not None
    if split:
        refuse_beside(
            "--turns",
            {
                "--protect": asked.protecting.protect,
                "--ledger": asked.of_ledger.ledger,
                "style" if asked.transcribing.transcript is None else "--transcript": words,
            },
        )

    def microphone() -> LiveSource:
        source = open_live_source(
            f"mic:{asked.device or ''}",
            seconds=asked.seconds,
            channels=asked.options.channel,
            reconnect_seconds=asked.reconnect,
            report=lambda line: view.say(line),
        )
        if words:
            return asked.transcribing.live(source, lambda line: view.say(line))
        return asked.apart.split(source, lambda line: view.say(line))

    reporter = RunReporter(asked, split=split, alert_for=asked.apart.alert_for, bell=True)
    with quiet_libraries(), reporter.run(microphone) as run:
        if split:
            view = PeopleProgress(asked.seconds)
        else:
            view = LiveView(
                forecasts=[Forecast(bits, name) for name, bits in asked.alerting.thresholds]
            )
        reporter.follow(run, view)
    return reporter.status(run)
