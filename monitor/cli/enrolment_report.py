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
    elif not len(population.laws):
        yield f"next: learn what a rank means:  monitor calibrate {people} -o {output}"
    try:
        population.scoring()
    except UsageError as error:
        yield f"monitor: note: {error}; enrol more speech"
        return
    usual, have = population.common_seconds, population.template_seconds
    least = min((MISMATCH * law.template_lengths[0] for law in population.laws), default=0.0)
    little = [name for name, seconds in zip(population.names, have, strict=True) if seconds < least]
    if little:
        yield (
            f"monitor: note: {_some(little)}: too little speech to be compared, the rank law knows "
            f"no templates under {least / MISMATCH:g} s; enrol more"
        )
    short = [
        name
        for name, seconds in zip(population.names, have, strict=True)
        if least <= seconds < usual
    ]
    if short:
        verb = "has" if len(short) == 1 else "have"
        yield (
            f"monitor: note: {len(short)} of {len(population)} {verb} much less speech than the "
            f"rest ({usual:g} s): {_some(short)}; --watch one, and all templates are cut to that "
            "length: enrol more to learn what an attacker with more would know"
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
