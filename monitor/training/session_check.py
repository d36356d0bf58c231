"""A check of enrolled sessions: do those of one speaker sound like one person?

Each session is heard as a stream whose template is made of the others, among people who are
somebody else, and the other way round. Where that leaves an attacker further from the speaker than
no evidence would, two people may have been enrolled as one. Pitch and phones can only tell some:
docs/measurements.md has the rates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.population.population import SLICE_SECONDS, Population, Speaker
from monitor.stream.assessment import RunningTotals
from monitor.stream.attacker import Attacker
from monitor.types import AnyArray, IntArray

__all__ = [
    "LEAST_SECONDS",
    "UNLIKE_BITS",
    "UnlikeSession",
    "unlike_additions",
    "unlike_sessions",
]

LEAST_SECONDS = 30.0
"""Speech of a session, and of the others together, that is worth comparing."""
UNLIKE_BITS = -1.0
"""Local bits, the mean of both directions, below which two sessions are of two people."""


@dataclass(frozen=True, slots=True)
class UnlikeSession:
    """A session that does not sound like the speaker's others.

    Attributes:
        speaker: whose it is said to be.
        session: its name.
        bits: local bits of the speaker, mean of both directions.
    """

    speaker: str
    session: str
    bits: float


def unlike_sessions(
    made: Population, sessions: Mapping[str, Sequence[tuple[str, int]]], others: Population
) -> list[UnlikeSession]:
    """Sessions that sound like somebody else than the rest of their speaker.

    Args:
        made: the speakers, freshly enrolled.
        sessions: names and slices of each speaker's sessions, in the order of the slices.
        others: people to compare with, with laws for the features of ``made``. Speakers who are
            among them are left to `unlike_additions`.

    Returns:
        those with enough speech to tell; nothing without a law.
    """
    found: list[UnlikeSession] = []
    try:
        for place, name in enumerate(made.names):
            rows = slice(made.offsets[place], made.offsets[place + 1])
            slices = {key: each.slices[rows] for key, each in made.features.items()}
            if name not in others.names:
                found += _of_one(name, sessions.get(name, ()), slices, made, others)
    except (StoreError, UsageError):  # no law, or nobody with so much speech
        return []
    return found


def unlike_additions(
    before: Population, after: Population, sessions: Mapping[str, Sequence[tuple[str, int]]]
) -> list[UnlikeSession]:
    """Further sessions that sound like somebody else than what was enrolled of their speaker.

    Args:
        before: the population without them, with laws.
        after: with them, each behind what was there.
        sessions: names and slices of the further sessions, by speaker.
    """
    found: list[UnlikeSession] = []
    for name in (name for name in sessions if name in before.names):
        place, old = after.index(name), before.index(name)
        rows = slice(after.offsets[place], after.offsets[place + 1])
        slices = {key: each.slices[rows] for key, each in after.features.items()}
        parts = (("", int(np.diff(before.offsets)[old])), *sessions[name])
        with suppress(StoreError, UsageError):  # no law, or nobody with so much speech
            unlike = _of_one(name, parts, slices, after, before.without(name))
            found += [each for each in unlike if each.session]
    return found


def _of_one(
    name: str,
    parts: Sequence[tuple[str, int]],
    slices: Mapping[str, AnyArray],
    made: Population,
    others: Population,
) -> list[UnlikeSession]:
    """The sessions that differ most, one after the other, until the rest is alike."""
    owner = np.repeat(np.arange(len(parts)), [count for _, count in parts])
    found: list[UnlikeSession] = []
    while True:
        bits = {}
        for i in np.unique(owner[owner >= 0]).tolist():
            mine, rest = np.flatnonzero(owner == i), np.flatnonzero((owner >= 0) & (owner != i))
            if min(mine.size, rest.size) * SLICE_SECONDS >= LEAST_SECONDS:
                both = [_bits(slices, *pair, made, others) for pair in ((rest, mine), (mine, rest))]
                bits[i] = float(np.mean(both))
        worst = min(bits, key=bits.__getitem__, default=None)
        if worst is None or bits[worst] >= UNLIKE_BITS:
            return found
        # of two there is no telling which is whose
        told = bits if len(bits) == 2 else [worst]
        found += [UnlikeSession(name, parts[i][0], bits[i]) for i in told]
        owner[np.isin(owner, list(told))] = -1


def _bits(
    slices: Mapping[str, AnyArray],
    template: IntArray,
    test: IntArray,
    made: Population,
    others: Population,
) -> float:
    """Local bits of a stream of the slices ``test`` under a template of the slices ``template``."""
    name = "the speaker"
    while name in others.names:
        name += "'"
    alone = Population(
        [Speaker(name)],
        np.array([0, template.size]),
        {key: replace(each, slices=slices[key][template]) for key, each in made.features.items()},
    )
    attacker = Attacker(others.joined(alone), tuple(made.features), name)
    if not attacker.watched:
        raise UsageError(attacker.withheld)
    heard = {}
    for key, each in made.features.items():
        total = slices[key][test].astype(float).sum(axis=0)[None]
        frames = np.abs(total).sum(axis=1).round().astype(np.int64)
        heard[key] = RunningTotals(total, frames, frames * each.spec.frame_seconds)
    seconds = np.array([test.size * SLICE_SECONDS])
    local = attacker.assess_each(heard, seconds)[0].local
    assert local is not None
    return local.value
