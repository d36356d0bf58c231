"""monitor demo: see it work, with nothing but the install."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__ = ["command"]

THRESHOLD_BITS = 2.0


@click.command("demo", short_help="See it work: ten real minutes of a reader, nothing else needed.")
@click.option(
    "--speed",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=1.0),
    help="Times real time.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    default=".",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to leave demo.jsonl and demo.png. [default: here]",
)
def command(speed: float, folder: Path) -> int:
    """Replay ten real minutes of a LibriVox reader and watch the bits add up.

    The reader is one of the shipped population, enrolled from another chapter. Leaves demo.jsonl
    and demo.png behind.
    """
    from monitor.alerts.rules import Threshold
    from monitor.errors import UsageError
    from monitor.figures.curve import plot_run
    from monitor.population.population import Population
    from monitor.population.reference import DEMO_SPEAKER, demo_frames
    from monitor.sinks.jsonl import JsonLines
    from monitor.sinks.kept import Kept
    from monitor.sinks.terminal import LiveCurve
    from monitor.sources.frames import FramesFile
    from monitor.sources.paced import Paced
    from monitor.stream.monitor import Monitor
    from monitor.stream.run import run

    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; make it first, or leave -o out")
    population = Population.reference()
    source = FramesFile(demo_frames())
    monitor = Monitor(population, tuple(source.features), watch=DEMO_SPEAKER)
    log, kept = JsonLines(folder / "demo.jsonl"), Kept()
    view = LiveCurve(source.seconds, threshold_bits=THRESHOLD_BITS)
    try:
        run(
            monitor,
            Paced(source, speed),
            [source.label],
            sinks=[view, kept],
            rules=[Threshold("bits", THRESHOLD_BITS)],
            log=log,
        )
    finally:
        view.close()
        log.close()
    plot_run(kept.records, folder / "demo.png")
    click.echo(_in_words(kept.records, DEMO_SPEAKER))
    click.echo(f"The run is in {folder / 'demo.jsonl'}, its picture in {folder / 'demo.png'}.")
    return 0


_PLAIN = {"f0": "pitch", "phones": "the sounds of the language", "identity": "speaker embedding"}


def _in_words(records: list[dict[str, Any]], reader: str) -> str:
    """Two sentences: what was just seen."""
    readings = [record for record in records if record["type"] == "reading"]
    raised = next((r for r in records if r["type"] == "alert" and r["state"] == "raised"), None)
    last = readings[-1]
    minutes = last["seconds"] / 60
    speakers = round(2 ** last["ceiling"])
    left = speakers / 2 ** last["bits"]
    alone = ", ".join(
        f"{_PLAIN.get(name, name)} {feature['local_bits']:.1f}"
        for name, feature in last["features"].items()
    )
    first = (
        f"In {minutes:.0f} minutes reader {reader} gave away {last['bits']:.1f} of "
        f"{last['ceiling']:.1f} bits (each feature alone: {alone}): of {speakers} people an "
        f"attacker would consider, about {max(left, 1.0):.1f} {'is' if left < 1.5 else 'are'} left."
    )
    if raised is None:
        return f"{first} The alert at {THRESHOLD_BITS:g} bits stayed silent."
    return (
        f"{first} The alert at {THRESHOLD_BITS:g} bits was raised after {raised['seconds']:.0f} s, "
        f"{raised['speech']:.0f} s of them speech."
    )
