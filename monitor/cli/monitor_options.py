"""Options of every command that hears a stream: whom to compare with, what to listen for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.options import (
    Features,
    Seconds,
    Share,
    among_option,
    ecapa_option,
    grouped,
    speaker_model_option,
)
from monitor.errors import UsageError
from monitor.phrases import plural

if TYPE_CHECKING:
    from monitor.population.law import Laws
    from monitor.population.population import Population
    from monitor.protocols import Source
    from monitor.stream.monitor import Monitor

__all__ = ["MonitorOptions", "hearing_options", "mark_of"]

_OPTIONS = (
    click.option(
        "-p",
        "--population",
        "store",
        metavar="FILE",
        help="Whom the attacker knows, from `monitor enroll`. [default: the shipped readers]",
    ),
    click.option(
        "--law",
        "law_file",
        metavar="FILE",
        help="What a rank means, from `monitor calibrate -o law.npz`. [default: what -p holds]",
    ),
    click.option(
        "-w",
        "--watch",
        metavar="NAME",
        help="The enrolled speaker whose bits are shown. [default: how sure an attacker is of "
        "somebody, right or wrong, if the speaker is enrolled]",
    ),
    click.option(
        "--features",
        type=Features(),
        help="What to listen for. [default: all that is installed and calibrated]",
    ),
    ecapa_option,
    speaker_model_option,
    among_option,
    click.option(
        "--enrolled-prior",
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        default=0.5,
        show_default=True,
        metavar="P",
        help="How likely it is, before anything is heard, that one of the N enrolled speaks: what "
        "`enrolled` starts from.",
    ),
    click.option(
        "--bystanders",
        type=Share(),
        help="Name everybody else enrolled whose probability in the largest crowd of --among lies "
        "above this, such as 1%: whoever speaks, everybody's probability moves.",
    ),
    click.option(
        "--step",
        type=Seconds(),
        default="1",
        show_default=True,
        help="Audio seconds between readings.",
    ),
    click.option(
        "--channel",
        type=click.IntRange(min=1),
        help="Hear this channel, from 1. [default: all, mixed]",
    ),
    click.option(
        "--template-seconds",
        type=Seconds(),
        metavar="D",
        help="Cut all templates to D speech seconds. [default: their common length, or that of "
        "--watch NAME where it is shorter]",
    ),
    click.option(
        "--on-change",
        type=click.Choice(["ignore", "note", "reset", "split"]),
        default="note",
        show_default=True,
        help="When another person, or another channel, takes over: do not look; say so and carry "
        "on, alerts resting until the first voice is back; begin the evidence afresh, keeping the "
        "peak; or begin another stream. Of turns of 20, 40 and 60 s between two people 83, 99 and "
        "96 % are noticed with voice, 96, 100 and 100 % with identity, 1, 10 and 21 % with f0; of "
        "replies of 20 s after two minutes of one voice 96, 100 and 63 %.",
    ),
)


@dataclass(frozen=True, slots=True)
class MonitorOptions:
    """What was asked for; a command gets it as ``options``.

    Attributes:
        store, law_file: names of files, or None.
        watch, features, among, enrolled_prior, bystanders, step, channel, template_seconds,
            on_change: as of a `Monitor`.
    """

    store: str | None
    law_file: str | None
    watch: str | None
    features: tuple[str, ...] | None
    among: tuple[int, ...] | None
    enrolled_prior: float
    bystanders: float | None
    step: float
    channel: int | None
    template_seconds: float | None
    on_change: str

    @property
    def files(self) -> list[str]:
        """What is read."""
        return [name for name in (self.store, self.law_file) if name]

    def monitor(self, source: Source, *, top: int, again: bool = False) -> Monitor:
        """The monitor for a source, with the population and the laws that it needs.

        Args:
            source: opened; of a microphone nothing need be open yet.
            top: how many speakers a reading names.
            again: this process has made, or will make, monitors of the same files: they are read
                once.

        Raises:
            MonitorError: a file cannot be read, or something in it does not fit the options.
        """
        from monitor.cli.inputs import check_model
        from monitor.features.registry import superseded, takes
        from monitor.stream.choosing import choose_features
        from monitor.stream.monitor import Monitor

        files = self.store, self.law_file
        population, laws = _once(*files, *map(mark_of, self.files)) if again else _read(*files)
        check_model(population, self.store)
        there = () if self.features or source.brings.audio else _offered(source, population)
        chosen = self.features
        used = population.laws if laws is None else laws
        if there:
            chosen = choose_features(used, there)
        elif source.brings.words and chosen is None:
            chosen = choose_features(used, words=True)
        made = Monitor(
            population,
            chosen,
            self.watch,
            among=self.among,
            enrolled_prior=self.enrolled_prior,
            bystanders=self.bystanders,
            step_seconds=self.step,
            laws=laws,
            template_seconds=self.template_seconds,
            channel=self.channel,
            on_change=self.on_change,
            top=top,
        )
        if source.brings.words and "words" not in map(takes, made.features):
            whose = "the shipped population" if self.store is None else self.store
            raise UsageError(
                f"{whose} knows nothing of what people say: leave out --transcript, or enrol and "
                "calibrate with words beside the recordings (--features f0,...,style)"
            )
        if there or source.brings.words:
            rest = [name for name in there or population.features if name not in made.features]
            made.unheard = tuple(name for name in rest if not superseded(name, made.features))
        return made

    def check_channel(self, source: Source) -> None:
        """Refuse a channel that a recording does not have."""
        has = source.brings.channels
        if self.channel is not None and (has is None or self.channel > has):
            what = "frames, no audio" if has is None else plural(has, "channel")
            raise UsageError(f"--channel {self.channel}: {source.label} has {what}")


def _read(store: str | None, law_file: str | None) -> tuple[Population, Laws | None]:
    """The population, with the cohort that the laws in a file were learnt against, and these."""
    from monitor.population.lawfile import load_laws
    from monitor.population.population import Population

    population = Population.reference() if store is None else Population.load(store)
    if law_file is None:
        return population, None
    laws, cohort = load_laws(Path(law_file))
    if cohort is not None:
        population = population.with_laws(population.laws, cohort)
    return population, laws


@lru_cache(maxsize=1)
def _once(
    store: str | None, law_file: str | None, *_marks: object
) -> tuple[Population, Laws | None]:
    """As `_read`, kept: nothing changes a population."""
    return _read(store, law_file)


def mark_of(name: str) -> object:
    """Of a file as it is now; None where reading it will say why it cannot be."""
    try:
        found = Path(name).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _offered(source: Source, population: Population) -> tuple[str, ...]:
    """The features that ready-made frames bring and the population has."""
    from monitor.features.registry import takes

    brings = source.brings
    words = [name for name in population.features if brings.words and takes(name) == "words"]
    return tuple(name for name in population.features if name in {*brings.tracks, *words})


hearing_options = grouped("options", MonitorOptions, _OPTIONS)
"""Adds them to a command, as its argument ``options``."""
