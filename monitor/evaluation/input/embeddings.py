"""Reads speaker embeddings of trials and enrolments into a score matrix of cosines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.input.evaluation_input import EvaluationInput, finished
from monitor.evaluation.input.files import Progress
from monitor.evaluation.input.layout import natural
from monitor.evaluation.input.models import SCORINGS
from monitor.evaluation.input.vectors import Vectors, read_vectors
from monitor.evaluation.scores.scratch import scratch
from monitor.maths.scale import near_one
from monitor.maths.scores import OF_VECTORS
from monitor.types import AnyArray, FloatArray

__all__ = ["SCORINGS", "read_embeddings"]

_BLOCK = 1 << 20


def read_embeddings(
    trials: str | os.PathLike[str],
    enrolment: str | os.PathLike[str],
    scoring: str = "average",
    *,
    name: str | None = None,
    unmated: str = "count",
    progress: Progress | None = None,
) -> EvaluationInput:
    """Score every trial embedding with every enrolled speaker (docs/method.md section 2).

    Args:
        trials: a file of embeddings, see `read_vectors`; each is one trial.
        enrolment: likewise; a speaker may have any number.
        scoring: ``"average"``, the cosine with the mean of the speaker's length-normalised
            embeddings, or ``"max"``, the largest cosine with any one of them (VoxGuard).
        name: of the system; the trials' file's where not given.
        unmated: impostor trials, as `read_scores`.
        progress: called with the trials scored, and all.

    Returns:
        float32 cosines, on disk where large, and notes. Columns are in the order of the names.

    Raises:
        UsageError: the files do not fit together.
        StoreError: a file cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "e.npz")
        ...     np.savez(path, embeddings=np.eye(2), speakers=["ann", "bob"])
        ...     read = read_embeddings(path, path)
        >>> read.matrix.scores.tolist(), read.notes
        ([[1.0, 0.0], [0.0, 1.0]],
         ('2 of 2 trials are enrolled themselves (first: trial 1): every figure is flattered',))
    """
    if scoring not in SCORINGS:
        raise UsageError(f"scoring={scoring!r} is not one of {', '.join(SCORINGS)}")
    heard, enrolled = read_vectors(Path(trials)), read_vectors(Path(enrolment))
    size, wanted = heard.values.shape[1], enrolled.values.shape[1]
    if size != wanted:
        raise UsageError(
            f"{heard.label} has {size} dimensions and {enrolled.label} {wanted}; "
            "take both from one network"
        )
    zero = np.flatnonzero(~enrolled.values.any(axis=1))
    if zero.size:
        i = int(zero[0])
        raise UsageError(
            f"{enrolled.label}: embedding {i + 1} (speaker {enrolled.speakers[i]}) is all zero: "
            "drop it"
        )
    speakers = tuple(sorted(set(enrolled.speakers), key=natural))
    if len(speakers) < 2:
        raise UsageError(f"{enrolled.label} has one speaker; a comparison needs at least two")
    index = {speaker: i for i, speaker in enumerate(speakers)}
    target = np.fromiter((index.get(s, -1) for s in heard.speakers), np.intp, len(heard.values))
    owner = np.fromiter((index[s] for s in enrolled.speakers), np.intp, len(enrolled.values))
    return finished(
        _cosines(heard.values, enrolled.values, owner, scoring, progress),
        target,
        speakers,
        Path(trials).stem if name is None else name,
        spoken=heard.speakers,
        notes=_shared(heard, enrolled),
        unmated=unmated,
        progress=progress,
    )


def _cosines(
    trials: FloatArray,
    enrolment: FloatArray,
    owner: AnyArray,
    scoring: str,
    progress: Progress | None,
) -> AnyArray:
    """Shape (T, N), float32."""
    cosine = OF_VECTORS["embedding-cosine"]
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(owner.max() + 1))
    prepared = cosine.prepare(near_one(enrolment[order]))
    if scoring == "average":
        prepared = cosine.prepare(np.add.reduceat(prepared, starts, axis=0))
    scores = scratch((len(trials), len(starts)), np.float32)
    step = max(1, _BLOCK // len(prepared))
    for first in range(0, len(trials), step):
        block = cosine.score(prepared, near_one(trials[first : first + step]))
        if scoring == "max":
            block = np.maximum.reduceat(block, starts, axis=1)
        scores[first : first + step] = block
        if progress is not None:
            progress(min(first + step, len(trials)), len(trials))
    return scores


def _shared(trials: Vectors, enrolment: Vectors) -> list[str]:
    """What the two files have in common and should not."""
    said = []
    known = set(_bytes(enrolment.values))
    same = [i for i, row in enumerate(_bytes(trials.values), 1) if row in known]
    if same:
        said.append(
            f"{len(same)} of {len(trials.values)} trials are enrolled themselves (first: trial "
            f"{same[0]}): every figure is flattered"
        )
    if trials.sessions and enrolment.sessions:
        met = set(zip(enrolment.speakers, enrolment.sessions, strict=True))
        pairs = zip(trials.speakers, trials.sessions, strict=True)
        same = [i for i, pair in enumerate(pairs, 1) if pair in met]
        if same:
            said.append(
                f"{len(same)} of {len(trials.values)} trials share a session with the enrolment of "
                f"their speaker (first: trial {same[0]}): that flatters the attacker"
            )
    return said


def _bytes(values: FloatArray) -> Iterator[bytes]:
    return (row.tobytes() for row in np.asarray(values, np.float64))
