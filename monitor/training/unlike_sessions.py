"""Sessions of a speaker that sound like two people.

Each session is a stream against a template of the others, among other people, and the reverse.
Where that leaves an attacker further from the speaker than no evidence would, two people may have
been enrolled as one (benchmarks/results/sessions.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.templates import SLICE_SECONDS
from monitor.stream.attacker import Attacker
from monitor.stream.totals import RunningTotals
from monitor.types import AnyArray, IntArray

LEAST_SECONDS = 30.0  # speech of a session, and of the others together, worth comparing
UNLIKE_BITS = -1.0  # mean local bits of both directions: below, they are of two people


@dataclass(frozen=True, slots=True)
class UnlikeSession:
    """A session that does not sound like the speaker's others."""

    speaker: str
    session: str
    bits: float  # local bits of the speaker, mean of both directions


def find_outlier_sessions(
    population: Population, sessions: Mapping[str, Sequence[tuple[str, int]]], others: Population
) -> list[UnlikeSession]:
    """Find sessions that sound unlike their speaker's others."""
    outliers: list[UnlikeSession] = []
    try:
        for name in population.names:
            if name not in others.names:
                slices = _slices_of(population, name)
                outliers += _find_unlike(name, sessions.get(name, ()), slices, population, others)
    except (StoreError, UsageError):  # no rank model, or no speaker with enough speech
        return []
    return outliers


def unlike_additions(
    before: Population, after: Population, sessions: Mapping[str, Sequence[tuple[str, int]]]
) -> list[UnlikeSession]:
    """Find additional sessions that sound unlike the earlier ones."""
    additions: list[UnlikeSession] = []
    for name in (name for name in sessions if name in before.names):
        parts = (("", int(np.diff(before.offsets)[before.index(name)])), *sessions[name])
        with suppress(StoreError, UsageError):  # no rank model, or no speaker with enough speech
            slices = _slices_of(after, name)
            outliers = _find_unlike(name, parts, slices, after, before.without(name))
            additions += [session for session in outliers if session.session]
    return additions


def _slices_of(population: Population, name: str) -> dict[str, AnyArray]:
    index = population.index(name)
    rows = slice(population.offsets[index], population.offsets[index + 1])
    return {key: templates.slices[rows] for key, templates in population.features.items()}


def _find_unlike(
    name: str,
    parts: Sequence[tuple[str, int]],
    slices: Mapping[str, AnyArray],
    population: Population,
    others: Population,
) -> list[UnlikeSession]:
    """Find the sessions that differ most, one after the other, until the rest is alike."""
    owner = np.repeat(np.arange(len(parts)), [count for _, count in parts])
    outliers: list[UnlikeSession] = []
    while True:
        bits = {}
        for i in np.unique(owner[owner >= 0]).tolist():
            session_rows, other_rows = (
                np.flatnonzero(owner == i),
                np.flatnonzero((owner >= 0) & (owner != i)),
            )
            if min(session_rows.size, other_rows.size) * SLICE_SECONDS >= LEAST_SECONDS:
                directions = [
                    _compute_bits(slices, *pair, population, others)
                    for pair in ((other_rows, session_rows), (session_rows, other_rows))
                ]
                bits[i] = float(np.mean(directions))
        lowest = min(bits, key=bits.__getitem__, default=None)
        if lowest is None or bits[lowest] >= UNLIKE_BITS:
            return outliers
        # two sessions do not show which one is wrong
        suspects = bits if len(bits) == 2 else [lowest]
        outliers += [UnlikeSession(name, parts[i][0], bits[i]) for i in suspects]
        owner[np.isin(owner, list(suspects))] = -1


def _compute_bits(
    slices: Mapping[str, AnyArray],
    template: IntArray,
    test: IntArray,
    population: Population,
    others: Population,
) -> float:
    name = "the speaker"
    while name in others.names:
        name += "'"
    alone = Population(
        [Speaker(name)],
        np.array([0, template.size]),
        {
            key: replace(templates, slices=slices[key][template])
            for key, templates in population.features.items()
        },
    )
    attacker = Attacker(others.joined(alone), tuple(population.features), name)
    if not attacker.watched:
        raise UsageError(attacker.withheld)
    totals = {}
    for key, templates in population.features.items():
        total = slices[key][test].astype(float).sum(axis=0)[None]
        frames = np.abs(total).sum(axis=1).round().astype(np.int64)
        totals[key] = RunningTotals(total, frames, frames * templates.spec.frame_seconds)
    seconds = np.array([test.size * SLICE_SECONDS])
    local = attacker.assess_each(totals, seconds)[0].local
    assert local is not None
    return local.value
