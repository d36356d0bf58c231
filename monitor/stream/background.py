"""Templates of other people, by which the change detector judges how much one voice stands out.

A score counts by how far it exceeds those of others; beside a small population the readers that
ship with the program are the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np

from monitor.population.population import SLICE_SECONDS, Population, Scoring
from monitor.types import AnyArray

__all__ = ["FEWEST", "background", "cohort", "shipped_readers"]

FEWEST = 25
"""Of fewer speakers hardly one is like a stranger: a change would be missed."""


@cache
def shipped_readers() -> Population:
    """The shipped readers."""
    return Population.reference()


def background(
    population: Population, scoring: Scoring, features: Iterable[str]
) -> dict[str, AnyArray]:
    """Templates of each feature, shape (N, M).

    Beside a small population the shipped readers, where the kind wants them and the same network
    made them.
    """
    made = {}
    for name in features:
        made[name] = population.templates(name, scoring)
        own = population.features[name].spec
        few = own.kind.wants_background and len(made[name]) < FEWEST
        if few and shipped_readers().specs.get(name) == own:
            more = shipped_readers().templates(name, shipped_readers().scoring())
            made[name] = np.concatenate([made[name], more])
    return made


def cohort(readers: Population, feature: str, speech_seconds: float) -> AnyArray:
    """Templates of all these readers, of about as much speech as that, shape (N, M)."""
    most = float(readers.template_seconds.min())
    return readers.templates(
        feature, readers.scoring(min(max(speech_seconds, SLICE_SECONDS), most))
    )
