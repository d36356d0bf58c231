"""A cohort of the people of a corpus: one short sketch of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from monitor.maths.sketch import make_sketch
from monitor.population.cohort import Cohort
from monitor.population.templates import FeatureTemplates
from monitor.training.listening import Shape
from monitor.training.voices import UNITS_PER_SECOND, Voice
from monitor.types import AnyArray

__all__ = ["cohort_of"]


def cohort_of(voices: Sequence[Voice], shapes: Mapping[str, Shape], about: str = "") -> Cohort:
    """All that each voice said in one sketch, in the order of the voices.

    Args:
        voices: from ``collect``: people who are nobody's template.
        shapes: what the features look like, from ``collect``.
        about: whose voices these are.

    Returns:
        counts in as few bytes as hold them, and means of embeddings in half precision: a cosine
        moves by less than 1e-4.
    """
    seconds = [sum(map(voice.length, range(len(voice.sessions)))) for voice in voices]
    return Cohort(
        np.array(seconds) / UNITS_PER_SECOND,
        {
            name: FeatureTemplates(
                shape.kind,
                shape.size,
                shape.frame_seconds,
                _compact(np.stack([_sketched(voice, name, shape) for voice in voices])),
                shape.network,
            )
            for name, shape in shapes.items()
        },
        about,
    )


def _sketched(voice: Voice, name: str, shape: Shape) -> AnyArray:
    """Counts, or the mean of embeddings."""
    sketch = make_sketch(shape.kind, shape.size)
    for session in voice.sessions:
        sketch.learn_many(session[name].values)
    mean = shape.kind == "embedding" and sketch.frames
    return sketch.total / sketch.frames if mean else sketch.total


def _compact(rows: AnyArray) -> AnyArray:
    if rows.dtype.kind == "f":
        return rows.astype(np.float16)
    return rows.astype(np.min_scalar_type(int(rows.max(initial=0))))
