"""monitor listen: measure the voice at the microphone, live."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from monitor.cli.help import HelpCommand
from monitor.cli.inputs import device_option, quiet_libraries
from monitor.cli.monitor_options import refuse_beside
from monitor.cli.options import Seconds, group, option, setting, shared, with_options
from monitor.cli.page_options import HouseOptions
from monitor.cli.run_options import RunOptions, RunReporter
from monitor.cli.transcript_options import LiveTurns
from monitor.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from monitor.protocols import AlertAction
    from monitor.relay import Relay


@dataclass(frozen=True, slots=True)
class RelayOptions:
    """Options of the output."""

    through: str | None = option(
        "--through DEVICE",
        "Send your voice to this output until --budget is spent. Other programs use it as a "
        "microphone (see `monitor doctor`).",
    )
    then: str | None = option(
        "--then mute|METHOD",
        "Send silence, or sound protected by METHOD, once the budget is spent. The method must "
        "work live, such as mcadams:random. [default: mute]",
    )
    delay: float | None = option(
        "--delay SECONDS",
        "Buffer sound this long, so that speech over the budget is never sent. With 0 it is sent "
        "at once and muted one reading late. [default: 0.56]",
        type=Seconds(),
    )
    mute_on_alert: bool = setting("mute-on-alert", "Treat an --alert like a spent budget.")

    def relay(self, options: RunOptions) -> Relay | None:
        """Open the output; None without ``--through``."""
        if self.through is None:
            dependent = {
                "--then": self.then,
                "--delay": self.delay,
                "mute-on-alert": self.mute_on_alert,
            }
            for name, value in dependent.items():
                if value not in (None, False):
                    raise UsageError(f"{name} applies only to sent sound: add --through DEVICE")
            return None
        from monitor.relay import DELAY_SECONDS, MUTE, OutputDevice, Relay, RelaySettings

        terms, protecting = options.of_ledger.budget, options.protecting
        budget = None if terms is None else terms.bits
        if self.then is not None and budget is None:
            raise UsageError("--then applies after a spent budget: add --budget BITS")
        if self.then not in (None, MUTE) and protecting.protect is not None:
            raise UsageError("--protect applies from the beginning: leave out --then")
        settings = RelaySettings(
            budget,
            self.then or MUTE,
            DELAY_SECONDS if self.delay is None else self.delay,
            protecting.population(),
            protecting.protect_seed,
            self.mute_on_alert,
            protecting.protect or "",
        )
        return Relay(OutputDevice(self.through), settings)


@dataclass(frozen=True, slots=True)
class ListenOptions(RunOptions):
    """Options of the command."""

    device: str | None = shared(device_option)
    seconds: float | None = option(
        "--for LENGTH",
        "Stop after this much audio, such as 90, 10m or 1:30. [default: at Ctrl-C]",
        type=Seconds(),
    )
    reconnect: float = setting(
        "reconnect SECONDS", "How long to wait for a lost device.", type=Seconds(), default="60"
    )
    apart: LiveTurns = group(LiveTurns, "Words and turns")
    relaying: RelayOptions = group(RelayOptions, "Output")
    house: HouseOptions = group(HouseOptions, "Output")

    def actions(self, relay: Relay | None) -> Iterator[AlertAction]:
        """Open actions beyond `AlertOptions`: the default bell and Home Assistant."""
        from monitor.alerts.actions.receivers import Bell

        if self.alerting.bell is None:
            yield Bell()
        yield from self.house.devices(relay)


def _check_split(options: ListenOptions, *, words: bool) -> None:
    refuse_beside(
        "--turns",
        {
            "--protect": options.protecting.protect,
            "--ledger": options.of_ledger.ledger,
            "--through": options.relaying.through,
            "style" if options.transcribing.transcript is None else "--transcript": words,
        },
    )


@click.command("listen", cls=HelpCommand, short_help="Measure the voice at the microphone, live.")
@with_options(ListenOptions)
def command(options: ListenOptions) -> int:
    """Measure how many bits of identity the voice at the microphone discloses.

    \b
    monitor listen                          until Ctrl-C
    monitor listen -p us.npz --watch me --alert 'bits>6'
    monitor listen --device usb --for 10m --jsonl talk.jsonl

    \b
    monitor listen --web 8000 -p us.npz --watch me --ledger me.db --budget 8bits
    monitor listen -p us.npz --watch me --through meeting --budget 6

    Audio is processed in memory and never stored. Records are those of `monitor replay`, plus the
    lag of each reading. Ctrl-C ends normally. If the machine is too slow, the slowest feature skips
    some audio, and the records show how much.
    """
    from monitor.alerts.early_warnings import Forecast
    from monitor.protocols import LiveSource
    from monitor.sinks.live import LiveView
    from monitor.sinks.progress import PeopleProgress
    from monitor.sources.microphone import PORTAUDIO, Microphone

    if options.seconds == 0:
        raise UsageError(
            "invalid --for 0: use more than 0 seconds, or leave it out to listen until Ctrl-C"
        )

    view: LiveView | PeopleProgress
    words = options.transcribing.wanted(options.options.features)
    split = options.apart.turns is not None
    if split:
        _check_split(options, words=words)
    with quiet_libraries():
        relay = options.relaying.relay(options)

    def microphone() -> LiveSource:
        source: LiveSource = Microphone(
            options.device or None,
            seconds=options.seconds,
            channels=options.options.channel,
            reconnect_seconds=options.reconnect,
            report=lambda line: view.say(line),
            system=PORTAUDIO if relay is None else relay.system,
        )
        if relay is not None and options.protecting.protect is None:
            source = relay.source(source)
        if words:
            return options.transcribing.live(source, lambda line: view.say(line))
        return options.apart.split(source, lambda line: view.say(line))

    with ExitStack() as stack, quiet_libraries():
        if relay is not None:
            stack.callback(relay.close)
        reporter = RunReporter(
            options, split=split, alert_for=options.apart.alert_for, relay=relay,
            actions=options.actions(relay),
        )  # fmt: skip
        run = stack.enter_context(reporter.run(microphone))
        if split:
            view = PeopleProgress(options.seconds)
        else:
            view = LiveView(
                forecasts=[Forecast(bits, name) for name, bits in options.alerting.thresholds],
                relay=relay,
            )
        if relay is not None:
            relay.report = view.say
        reporter.follow(run, view)
    return reporter.status(run)
