"""A cohort of the people of a corpus: one short sketch of each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import groupby

import numpy as np

from monitor.corpus.recordings import Corpus
from monitor.maths.sketch import AnySketch, make_sketch
from monitor.population.cohort import Cohort
from monitor.population.templates import FeatureTemplates
from monitor.training.hearing import hear_in_order
from monitor.training.listening import Heard, Listener, Shape
from monitor.types import TICKS_PER_SECOND, AnyArray

__all__ = ["cohort_of"]


def cohort_of(
    corpus: Corpus, *, features: Sequence[str] | None = None, about: str = "", jobs: int = 1
) -> tuple[Cohort, tuple[str, ...]]:
    """All that each speaker of a corpus said in one sketch, in the order of the speakers.

    Args:
        corpus: people who are nobody's template.
        features: names; None takes all that are ready for audio, and what a frames file holds.
        about: whose voices these are.
        jobs: processes that listen.

    Returns:
        counts in as few bytes as hold them, and means of embeddings in half precision (a cosine
        moves by less than 1e-4); and one line for each file that was skipped or has unusable parts.

    Raises:
        UsageError: there is no such feature.
        StoreError: nobody could be heard.
    """
    listener = Listener(features)
    problems = list(corpus.problems)
    seconds, rows = [], []
    with closing(hear_in_order(corpus.recordings, listener, jobs=jobs)) as outcomes:
        for _, of_speaker in groupby(outcomes, key=lambda o: o.recording.speaker):
            heard = []
            for outcome in of_speaker:
                heard += [outcome.heard] if outcome.heard is not None else []
                problems += [outcome.problem] if outcome.problem else []
            if heard:
                seconds.append(sum(each.speech_ticks for each in heard) / TICKS_PER_SECOND)
                rows.append({f: _sketched(heard, f, s) for f, s in listener.shapes.items()})
    made = {
        name: FeatureTemplates(
            shape.kind,
            shape.size,
            shape.frame_seconds,
            _compact(np.stack([row[name] for row in rows])),
            shape.network,
        )
        for name, shape in listener.shapes.items()
    }
    return Cohort(np.array(seconds), made, about), tuple(problems)


def _sketched(heard: Sequence[Heard], name: str, shape: Shape) -> AnyArray:
    """Counts, or the mean of embeddings."""
    sketch: AnySketch = make_sketch(shape.kind, shape.size)
    for each in heard:
        sketch.learn_many(each.tracks[name].values)
    mean = shape.kind == "embedding" and sketch.frames
    return sketch.total / sketch.frames if mean else sketch.total


def _compact(rows: AnyArray) -> AnyArray:
    if rows.dtype.kind == "f":
        return rows.astype(np.float16)
    return rows.astype(np.min_scalar_type(int(rows.max(initial=0))))
