"""Households of a few people, made of the shipped readers' slices."""

from collections.abc import Sequence

import numpy as np

from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.types import IntArray

REFERENCE = Population.reference()


def household(*people: tuple[str, Sequence[IntArray]]) -> Population:
    """People with sessions of some slices of the shipped readers, and without rank models."""
    rows = np.concatenate([np.concatenate(sessions) for _, sessions in people])
    sizes = [[len(session) for session in sessions] for _, sessions in people]
    speakers = [
        Speaker(name, sessions=tuple(size) if len(size) > 1 else ())
        for (name, _), size in zip(people, sizes, strict=True)
    ]
    features = {
        name: FeatureTemplates(templates.spec, templates.slices[rows])
        for name, templates in REFERENCE.features.items()
    }
    return Population(speakers, np.cumsum([0, *map(sum, sizes)]), features)


def reader(number: int, first: int = 0, step: int = 1, most: int = 20) -> IntArray:
    """Slices of a shipped reader, every so manieth."""
    begin, end = REFERENCE.offsets[number : number + 2]
    return np.arange(begin + first, end, step)[:most]
