"""Report of an enrolment, with cautions and the next command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.cli.options import NOTE
from monitor.errors import UsageError
from monitor.phrases import format_names, plural

if TYPE_CHECKING:
    from monitor.population.population import Population
    from monitor.training.unlike_sessions import UnlikeSession


def describe_enrolment(
    population: Population,
    new: Population,
    outliers: Iterable[UnlikeSession],
    output: Path,
    people: Sequence[str],
) -> Iterator[str]:
    """Format a line for each thing to know; ``people`` are arguments that calibrate takes."""
    from monitor.training.calibrating import FEWEST_SPEAKERS

    for name, more in zip(new.names, new.template_seconds.tolist(), strict=True):
        index = population.index(name)
        total, sessions = population.template_seconds[index], population.speakers[index].sessions
        if total > more:
            yield (
                f"{name}: {more:g} s of speech added, {total:g} s in all, in "
                f"{plural(len(sessions), 'session')} with one template each"
            )
    if not len(new):
        yield (
            f"all were already enrolled under other names; {output} has "
            f"{plural(len(population), 'speaker')}"
        )
        return
    ends = dict.fromkeys(
        f"{end:g}" for end in (min(new.template_seconds), max(new.template_seconds))
    )
    yield (
        f"{plural(len(new), 'speaker')} enrolled with {' to '.join(ends)} s of speech; {output} "
        f"has {plural(len(population), 'speaker')}"
    )
    for session in outliers:
        yield (
            f"{NOTE} {session.session} of {session.speaker} sounds unlike the other sessions "
            f"({session.bits:.1f} bits). Check by ear that all of it is {session.speaker}."
        )
    if population.mismatched:
        yield (
            f"{NOTE} the new speakers are not calibrated. People who share their microphone may "
            "read 1 to 2 bits too high. Calibrate on your own speakers (monitor calibrate)."
        )
    elif len(population) < 2:
        more = shlex.join(["monitor", "enrol", "PEOPLE", "--add", "-o", str(output)])
        yield f"next:  {more}  # add people to compare with"
        return
    elif not len(population.rank_models) and len(population) < FEWEST_SPEAKERS:
        more = shlex.join(["monitor", "enrol", "PEOPLE", "--add", "-o", str(output)])
        yield (
            f"next:  {more}  # add people\n"
            f"      Calibration needs at least {FEWEST_SPEAKERS} speakers. Enrol fewer beside the "
            "shipped readers (--speaker NAME --base reference)."
        )
    elif not len(population.rank_models):
        calibrate = shlex.join(["monitor", "calibrate", *people, "-o", str(output)])
        yield f"next:  {calibrate}  # fit the rank model"
        if "--frames" in people:
            yield (
                "      The frames that it keeps there are biometric and private to you. score can "
                "reuse them."
            )
    yield from _describe_lengths(population)


def _describe_lengths(population: Population) -> Iterator[str]:
    """Format a line on each group of speakers with too little speech."""
    from monitor.population.templates import MISMATCH

    try:
        scoring = population.scoring()
    except UsageError as error:
        yield f"{NOTE} {error}. Enrol more speech."
        return
    usual, have = population.common_seconds, population.template_seconds
    shortest = min((model.template_lengths[0] for model in population.rank_models), default=0.0)
    minimum = MISMATCH * shortest
    speakers = list(zip(population.names, have.tolist(), scoring.members.tolist(), strict=True))
    if unscored := [name for name, seconds, _ in speakers if seconds < minimum]:
        yield (
            f"{NOTE} {format_names(unscored)}: too little speech to compare. The rank model needs "
            f"templates of at least {shortest:g} s. Enrol more."
        )
    if excluded := [n for n, seconds, member in speakers if not member and seconds >= minimum]:
        yield (
            f"{NOTE} {format_names(excluded)}: excluded unless watched, and "
            f"{int(scoring.members.sum())} are compared. To compare templates this short, the "
            f"others ({usual:g} s) would be cut, and disclose little. Enrol more with --add."
        )
    if scoring.seconds < usual:
        short = [name for name, seconds, member in speakers if member and seconds < usual]
        yield (
            f"{NOTE} all templates are cut to {scoring.seconds:g} s, the shortest. "
            f"{format_names(short)} {'has' if len(short) == 1 else 'have'} less than the others' "
            f"{usual:g} s. An attacker with longer templates would learn more. Enrol more with "
            "--add."
        )
