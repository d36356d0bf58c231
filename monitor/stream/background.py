"""Whom a voice is set against, to notice when another person takes over."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np

from monitor.population.population import Population, Scoring
from monitor.types import AnyArray

__all__ = ["FEWEST", "background", "shipped_readers"]

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
