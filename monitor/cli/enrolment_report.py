"""What was enrolled, what to mind and what to do next, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.phrases import plural

if TYPE_CHECKING:
    from monitor.population.population import Population
    from monitor.training.session_check import UnlikeSession

__all__ = ["in_words"]


def in_words(
    population: Population,
    new: Population,
    unlike: Iterable[UnlikeSession],
    output: Path,
    people: str,
) -> Iterator[str]:
    """A line for each thing to know.

    Args:
        population: what was stored.
        new: the speakers that were enrolled now.
        unlike: sessions of theirs that sound like somebody else.
        output: where it was stored.
        people: a corpus to calibrate with, as the user would write it.
    """
    from monitor.errors import UsageError
    from monitor.population.population import MISMATCH
    from monitor.training.calibrating import FEWEST_SPEAKERS

    for name, more in zip(new.names, new.template_seconds.tolist(), strict=True):
        total = float(population.template_seconds[population.index(name)])
        if total > more:
            yield f"{name}: {more:g} s of speech more, {total:g} s in all"
    have = new.template_seconds
    length = (
        f"{have.min():g} s" if have.min() == have.max() else f"{have.min():g} to {have.max():g} s"
    )
    count = plural(len(new), "speaker")
    yield f"{count} enrolled with {length} of speech; {output} holds {len(population)}"
    for each in unlike:
        yield (
            f"monitor: note: {each.session} of {each.speaker} sounds like somebody else than the "
            f"other sessions ({each.bits:.1f} bits); listen whether all of it is {each.speaker} "
            "(of ten who are one person one reads so too)"
        )
    if population.borrowed:
        yield (
            "monitor: note: the rank law is borrowed from the speakers that were there before; "
            "another microphone makes a voice easier to tell from the rest"
        )
    elif len(population) < 2:
        yield f"next: add whom it could be taken for:  monitor enroll PEOPLE --add -o {output}"
        return
    elif not len(population.laws) and len(population) < FEWEST_SPEAKERS:
        yield (
            f"next: {FEWEST_SPEAKERS} speakers or more can be calibrated; fewer go beside the "
            f"shipped readers (--speaker NAME --base reference). More:  monitor enroll PEOPLE "
            f"--add -o {output}"
        )
    elif not len(population.laws):
        yield f"next: learn what a rank means:  monitor calibrate {people} -o {output}"
    try:
        scoring = population.scoring()
    except UsageError as error:
        yield f"monitor: note: {error}; enrol more speech"
        return
    usual, have = population.common_seconds, population.template_seconds
    least = min((MISMATCH * law.template_lengths[0] for law in population.laws), default=0.0)
    named = list(zip(population.names, have.tolist(), scoring.members.tolist(), strict=True))
    little = [name for name, seconds, _ in named if seconds < least]
    if little:
        yield (
            f"monitor: note: {_some(little)}: too little speech to be compared, the rank law knows "
            f"no templates under {least / MISMATCH:g} s; enrol more"
        )
    out = [name for name, seconds, member in named if not member and seconds >= least]
    if out:
        yield (
            f"monitor: note: {_some(out)}: not among the {int(scoring.members.sum())} compared, "
            f"unless watched: cut to so little, the others' templates ({usual:g} s) would not say "
            "much; enrol more with --add"
        )
    if scoring.seconds < usual:
        short = [name for name, seconds, member in named if member and seconds < usual]
        yield (
            f"monitor: note: all templates are cut to {scoring.seconds:g} s, the shortest of them: "
            f"{_some(short)} {'has' if len(short) == 1 else 'have'} less than the others' "
            f"{usual:g} s; an attacker with more would know more: enrol more with --add"
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
