"""monitor listen: a microphone in, bits against length out, as it is spoken."""

from __future__ import annotations

import click

from monitor.cli.alerting import Alerting, alert_options
from monitor.cli.hearing import hearing_options, jsonl_options
from monitor.cli.keeping import Keeping, ledger_options
from monitor.cli.live import device_option, quiet_libraries
from monitor.cli.opening import Opening
from monitor.cli.options import Seconds
from monitor.cli.web import most_named, top_option, web_options

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
@jsonl_options
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
    among: tuple[int, ...] | None,
    enrolled_prior: float,
    bystanders: float | None,
    step: float,
    channel: int | None,
    template_seconds: float | None,
    on_change: str,
    alerting: Alerting,
    keeping: Keeping,
    jsonl: str | None,
    replace: bool,
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
    from monitor.cli.inputs import check_computed, check_model, with_laws_of
    from monitor.errors import UsageError
    from monitor.population.population import Population
    from monitor.sinks.live import LiveView
    from monitor.sources.registry import open_live_source
    from monitor.stream.monitor import Monitor
    from monitor.stream.shedding import LoadShedding, timed

    if seconds == 0:
        raise UsageError("--for 0 hears nothing; leave it out to listen until Ctrl-C")
    with Opening(
        jsonl=jsonl,
        replace=replace,
        reads=[store, law_file],
        alerting=alerting,
        keeping=keeping,
        web=web,
        token=web_token,
    ) as opening:
        population = Population.reference() if store is None else Population.load(store)
        population, laws = with_laws_of(population, law_file)
        check_model(population, store)
        monitor = Monitor(
            population,
            features,
            watch,
            among=among,
            enrolled_prior=enrolled_prior,
            bystanders=bystanders,
            step_seconds=step,
            laws=laws,
            template_seconds=template_seconds,
            channel=channel,
            on_change=on_change,
            top=most_named(top, web),
        )
        check_computed(monitor, ["-"])
        view: LiveView
        microphone = open_live_source(
            f"mic:{device or ''}",
            seconds=seconds,
            channels=channel,
            reconnect_seconds=reconnect,
            told=lambda line: view.say(line),
        )
        opening.enter_context(quiet_libraries())
        opening.enter_context(microphone)
        opening.begin(monitor, [microphone.label])
        parts = timed(monitor.features)
        monitor.front_end.use(parts)
        view = LiveView(forecasts=[Forecast(bits, field) for field, bits in opening.thresholds])
        opening.run(
            LoadShedding(microphone, parts),
            view,
            stop=microphone.stop,
            lag=microphone.behind_seconds,
        )
    return opening.status()
