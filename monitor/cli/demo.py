"""monitor demo: show the monitor at work, without further files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.doctor import EXTRAS, extra, install
from monitor.cli.help import HelpCommand
from monitor.cli.options import among_option, option, say, shared, with_options
from monitor.errors import UsageError
from monitor.phrases import FEATURE_NAMES, plural, verdict

if TYPE_CHECKING:
    from monitor.events.declaration import Event

EVIDENCE_RULE, CLOSED_RULE = "bits>6", "bits>2"
"""Rules for a population with evidence, and for one without."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of the command."""

    speed: float = option("--speed", "Speed, in multiples of real time.", minimum=1.0, default=60.0)
    folder: Path = option(
        "-o, --output DIR",
        "Folder for demo.jsonl and demo.png. [default: the current folder]",
        default=".",
        show_default=False,
    )
    among: tuple[int, ...] | None = shared(among_option)


@click.command(
    "demo", cls=HelpCommand, short_help="Replay ten minutes of a real reader; needs nothing else."
)
@with_options(DemoOptions)
def command(options: DemoOptions) -> int:
    """Replay ten real minutes of a LibriVox reader and watch the bits grow.

    The reader belongs to the shipped population, was enrolled from another chapter, and trained
    none of the networks. The features were computed in advance. Every install computes the same
    values. Writes demo.jsonl and demo.png.
    """
    from monitor.alerts.early_warnings import Forecast
    from monitor.alerts.rules import Threshold
    from monitor.how_much import to_text
    from monitor.plots.curve import plot_run
    from monitor.population import DEMO_SPEAKER, demo_frames
    from monitor.population.population import Population
    from monitor.run import Run
    from monitor.sinks.buffer import RunBuffer
    from monitor.sinks.jsonl import JsonLines
    from monitor.sinks.live import LiveView
    from monitor.sources.base import Paced
    from monitor.sources.frames import FramesFile
    from monitor.stream.monitor import Monitor
    from monitor.stream.plan import MonitorSettings

    if not options.folder.is_dir():
        raise UsageError(f"{options.folder} is not a folder: create it, or leave out -o")
    population = Population.reference()
    source = FramesFile(demo_frames())
    monitor = Monitor(
        population,
        tuple(source.stream_info.tracks),
        watch=DEMO_SPEAKER,
        settings=MonitorSettings(among=options.among),
    )
    rule = Threshold.parse(EVIDENCE_RULE if monitor.headline == "evidence" else CLOSED_RULE)
    plain = {name: f"{name} ({words})" for name, words in FEATURE_NAMES.items()}
    names = ", ".join(plain.get(name, name) for name in source.stream_info.tracks)
    say(f"Replaying ten minutes of reader {DEMO_SPEAKER} from stored features: {names}.")
    others = [name for name in ("web", "notify") if extra(name).missing]
    if others:
        gives = ", ".join(EXTRAS[name] for name in others)
        say(f"Not installed, and not needed here: {gives}. Install: {install(*others)}")
    buffer = RunBuffer()
    view = LiveView(source.seconds, forecasts=[Forecast(rule.bits)])
    log = JsonLines(options.folder / "demo.jsonl")  # a sink, since a demo is not resumed
    with Run(Paced(source, options.speed), monitor, rules=[rule], sinks=[log, view, buffer]) as run:
        run.to_end()
    plot_run(buffer.events, options.folder / "demo.png")
    say(*_in_words(buffer.events, DEMO_SPEAKER, rule.bits), "", *to_text(), "", err=False)
    say(
        f"The run is in {options.folder / 'demo.jsonl'}, its picture in "
        f"{options.folder / 'demo.png'}.",
        err=False,
    )
    return 0


def _in_words(events: Sequence[Event], reader: str, threshold: float) -> Iterator[str]:
    from monitor.events.phrases import bits_or_more, narrowed_sentence
    from monitor.events.reading import Reading
    from monitor.events.run import Alert

    last = [event for event in events if isinstance(event, Reading)][-1]
    alerts = (event for event in events if isinstance(event, Alert))
    raised = next((alert for alert in alerts if alert.state == "raised"), None)
    closed, ceiling = last.closed_set_bits or 0.0, last.ceiling
    alone = ", ".join(
        f"{FEATURE_NAMES.get(name, name)} {feature.local_bits:.1f}"
        for name, feature in last.features.items()
    )
    length = plural(round(last.seconds / 60), "minute")
    if crowd := narrowed_sentence(last, reader):
        bits = bits_or_more(last, f"{last.bits:.1f} bits")
        yield (
            f"After {length}, {crowd}: {bits} of evidence. Evidence is not proof. It assumes "
            "recordings like the calibration's."
        )
    yield (
        f"Among the {2**ceiling:.0f} enrolled alone (closed-set) it is {closed:.1f} of "
        f"{ceiling:.1f} bits (by single features {alone}): {verdict(closed, ceiling, reader)}."
    )
    if raised is None:
        yield f"The alert at {threshold:g} bits stayed silent."
    else:
        yield (
            f"The alert at {threshold:g} bits was raised after {raised.seconds:.0f} s, "
            f"{raised.speech:.0f} s of them speech."
        )
