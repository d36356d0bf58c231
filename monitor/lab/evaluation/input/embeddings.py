"""Reads speaker embeddings of trials and enrolments into a score matrix of cosines."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from monitor.contents import ARCHIVES
from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import natural
from monitor.lab.evaluation.input.enrolments import SCORINGS
from monitor.lab.evaluation.input.files import (
    Progress,
    Rows,
    arrays_at,
    check_names,
    kind_of,
    text_lines,
)
from monitor.lab.evaluation.input.kaldi import read_archive
from monitor.lab.evaluation.input.lists import SPEAKER, RawScores, role_of
from monitor.lab.evaluation.input.matching import EvaluationInput, check_matrix
from monitor.lab.evaluation.input.pairs import places
from monitor.lab.evaluation.memory import scratch
from monitor.lab.normalisation import CLOSEST, score_normalised
from monitor.maths.scores import OF_VECTORS, near_one
from monitor.phrases import format_names, plural
from monitor.types import FloatArray, IntArray

_SESSION = frozenset({"session", "session_id", "chapter"})


@dataclass(frozen=True)
class Vectors:
    """Embeddings (n, d) of a file, with n speakers and n or no sessions."""

    label: str
    values: FloatArray
    speakers: tuple[str, ...]
    sessions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        values, count = self.values, len(self.speakers)
        if values.ndim != 2 or values.dtype.kind not in "fiu" or not values.shape[-1]:
            raise UsageError(
                f"{self.label}: embeddings are numbers of shape (n, d), not {values.dtype} of "
                f"shape {values.shape}"
            )
        if not len(values):
            raise UsageError(f"{self.label} has no embeddings")
        if count != len(values) or len(self.sessions) not in (0, count):
            raise UsageError(
                f"{self.label} has {plural(len(values), 'embedding')}, {plural(count, 'speaker')} "
                f"and {plural(len(self.sessions), 'session')}; give one of each for each embedding"
            )
        finite = np.logical_and.reduce(np.isfinite(values), axis=1)
        if not finite.all():
            i = int(np.argmin(finite))
            raise UsageError(
                f"{self.label}: embedding {i + 1} (speaker {self.speakers[i]}) is not finite. "
                "Drop it"
            )
        if "" in self.speakers:
            nobody = self.speakers.index("") + 1
            raise UsageError(f"{self.label}: embedding {nobody} has no speaker. Add the name")


def read_vectors(path: Path) -> Vectors:
    """Read embeddings.

    One format is an ``.npz`` with ``embeddings`` (n, d) and ``speakers`` (n,). Another is JSON
    lines ``{"speaker": "ann", "session": "1", "embedding": [0.1, ...]}``. The third is a table with
    a column ``speaker`` and d columns of numbers. Sessions are optional in each. The fourth is an
    archive of Kaldi (``.ark``, ``.scp``), with ``utt2spk`` beside it.
    """
    if path.suffix.lower() in ARCHIVES:
        return Vectors(path.name, *read_archive(path))
    kind = kind_of(path)
    if kind == "npy":
        raise UsageError(f"{path.name} has no speakers; save them with the embeddings as .npz")
    if kind == "npz":
        arrays = arrays_at(path)
        if not {"embeddings", "speakers"} <= arrays.keys():
            raise UsageError(
                f"{path.name} needs embeddings (n, d) and speakers (n,), not "
                f"{', '.join(sorted(arrays)) or 'nothing'}"
            )
        names = [arrays.get(key, np.array([], "U1")) for key in ("speakers", "sessions")]
        if any(column.ndim != 1 or column.dtype.kind not in "iuU" for column in names):
            raise UsageError(
                f"{path.name}: give the name of a speaker, and of a session, for each embedding"
            )
        speakers, sessions = (tuple(map(str, column.tolist())) for column in names)
        return Vectors(path.name, arrays["embeddings"], speakers, sessions)
    if not next((line for _, line in text_lines(path)), "").lstrip().startswith("{"):
        return _read_table(Rows.from_file(path))
    speakers, sessions, values = zip(*_json_lines(path), strict=True)
    sizes = {len(value) for value in values}
    if len(sizes) > 1:
        raise UsageError(
            f"{path.name}: embeddings have {min(sizes)} to {max(sizes)} dimensions. "
            "Use one network for all"
        )
    return Vectors(path.name, np.stack(values), speakers, sessions if any(sessions) else ())


def _json_lines(path: Path) -> Iterator[tuple[str, str, FloatArray]]:
    """Yield speaker, session and embedding."""
    for number, line in text_lines(path):
        where = f"{path.name} line {number}"
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise UsageError(f"{where} is not a JSON object; correct it")
        speaker, session = value.get("speaker"), value.get("session", "")
        values = value.get("embedding")
        if type(speaker) not in (str, int) or type(session) not in (str, int):
            raise UsageError(f'{where}: needs "speaker", a name (and perhaps "session")')
        if not isinstance(values, list) or any(type(x) not in (int, float) for x in values):
            raise UsageError(f'{where}: needs "embedding", a list of numbers')
        yield str(speaker), str(session), np.array(values, np.float64)


def _read_table(rows: Rows) -> Vectors:
    speaker, session = role_of(rows.head, SPEAKER), role_of(rows.head, _SESSION)
    if speaker is None:
        others = ", ".join(sorted(SPEAKER - {"speaker"}))
        raise rows.refuse(
            rows.number, f"name the columns: speaker (or {others}), perhaps session, and numbers"
        )
    columns = [i for i in range(len(rows.head)) if i not in (speaker, session)]
    named = {"speaker": speaker} | ({} if session is None else {"session": session})
    values, names = rows.read_matrix(
        columns, named, "all other columns are numbers", header=True, what="value"
    )
    sessions = names.get("session", ())
    return Vectors(rows.path.name, values, names["speaker"], sessions if any(sessions) else ())


_BLOCK = 1 << 20
_DECIMALS = 12  # so that equal templates tie, whatever the order of summation
_COSINE = OF_VECTORS["embedding-cosine"]
_Scorer: TypeAlias = Callable[[FloatArray], FloatArray]


def read_embeddings(
    trials: str | os.PathLike[str],
    enrolment: str | os.PathLike[str],
    scoring: str = "average",
    *,
    name: str | None = None,
    unmated: str = "count",
    progress: Progress | None = None,
    normalise: str | None = None,
    cohort: str | os.PathLike[str] | None = None,
) -> EvaluationInput:
    """Score every trial embedding with every enrolled speaker (docs/method.md section 2).

    Args:
        trials: a file of embeddings (`read_vectors`), one per trial.
        enrolment: a file of embeddings, any number per speaker.
        scoring: ``"average"``, the cosine with the mean of the speaker's length-normalised
            embeddings, or ``"max"``, the largest cosine with any one of them (VoxGuard).
        name: name of the system, by default that of the trials' file.
        unmated: treatment of impostor trials, as in `read_scores`.
        progress: called with the numbers of scored and of all trials.
        normalise: ``"z"``, ``"t"``, ``"s"`` or ``"as"`` for scores normalised against a cohort
            (`ScoreNormalisation`).
        cohort: embeddings of the cohort's speakers, who must be neither trials nor enrolled.

    Returns:
        Scores, on disk if large, and notes. Columns are sorted by name.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "e.npz")
        ...     np.savez(path, embeddings=np.eye(2), speakers=["ann", "bob"])
        ...     read = read_embeddings(path, path)
        >>> read.matrix.scores.tolist(), read.notes
        ([[1.0, 0.0], [0.0, 1.0]],
         ('2 of 2 trials are enrolled themselves (first: trial 1), which biases every figure
         upwards',))
    """
    if scoring not in SCORINGS:
        raise UsageError(f"invalid scoring={scoring!r}: use one of {', '.join(SCORINGS)}")
    if (normalise is None) != (cohort is None):
        raise UsageError("normalise and cohort go together: give both, or neither")
    if normalise is not None and scoring != "average":
        raise UsageError("normalise needs scoring=average")
    tested, enrolled = read_vectors(Path(trials)), read_vectors(Path(enrolment))
    _check_comparable(tested, enrolled)
    everybody = {*tested.speakers, *enrolled.speakers}
    check_names(f"{tested.label} and {enrolled.label}", {"speaker": everybody})
    speakers = tuple(sorted(set(enrolled.speakers), key=natural))
    if len(speakers) < 2:
        raise UsageError(f"{enrolled.label} has one speaker; a comparison needs at least two")
    index = {speaker: i for i, speaker in enumerate(speakers)}
    target = np.fromiter((index.get(s, -1) for s in tested.speakers), np.intp, len(tested.values))
    notes = _shared(tested, enrolled)
    if cohort is not None and normalise is not None:
        background = _cohort_templates(tested, enrolled, read_vectors(Path(cohort)))
        notes.append(
            f"scores are normalised ({normalise}-norm) by {len(background)} speakers of "
            f"{Path(cohort).name}" + ", too few for stable scores" * (len(background) < CLOSEST)
        )
        scorer = _normaliser(normalise, enrolled, background)
    else:
        background, scorer = enrolled.values, _scorer(enrolled, scoring)
    scores = scratch((len(tested.values), len(speakers)))
    step = max(1, _BLOCK // max(len(enrolled.values), len(background)))
    for first in range(0, len(scores), step):
        cosines = scorer(near_one(tested.values[first : first + step]))
        scores[first : first + step] = cosines.round(_DECIMALS)
        if progress is not None:
            progress(min(first + step, len(scores)), len(scores))
    return check_matrix(
        RawScores(scores, speakers), target, Path(trials).stem if name is None else name,
        spoken=tested.speakers, notes=notes, unmated=unmated,
    )  # fmt: skip


def _check_comparable(tested: Vectors, enrolled: Vectors) -> None:
    """Refuse embeddings of another network, and those without a direction."""
    size, expected = tested.values.shape[1], enrolled.values.shape[1]
    if size != expected:
        raise UsageError(
            f"{tested.label} has {size} dimensions and {enrolled.label} {expected}: use one "
            "network for both"
        )
    zero = np.flatnonzero(~enrolled.values.any(axis=1))
    if zero.size:
        i = int(zero[0])
        raise UsageError(
            f"{enrolled.label}: embedding {i + 1} (speaker {enrolled.speakers[i]}) is all zero. "
            "Drop it"
        )


def _cohort_templates(tested: Vectors, enrolled: Vectors, cohort: Vectors) -> FloatArray:
    """Check a cohort, and sum the unit embeddings of each of its C speakers: (C, d)."""
    _check_comparable(tested, cohort)
    if doubles := {*cohort.speakers} & {*tested.speakers, *enrolled.speakers}:
        raise UsageError(
            f"{format_names(sorted(doubles))} of {cohort.label} would be scored against "
            "themselves: use other people"
        )
    check_names(cohort.label, {"speaker": {*cohort.speakers, *tested.speakers, *enrolled.speakers}})
    rows, starts = _unit_rows(cohort)
    if len(starts) < 2:
        raise UsageError(f"{cohort.label} has one speaker; normalisation needs at least two")
    return np.add.reduceat(rows, starts, axis=0)


def _unit_rows(vectors: Vectors) -> tuple[FloatArray, IntArray]:
    """Return unit embeddings sorted by speaker, (n, d), and the first row of each, (N,)."""
    speakers = sorted(set(vectors.speakers), key=natural)
    owner = places(vectors.speakers, speakers)
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(speakers)))
    return _COSINE.prepare(near_one(vectors.values[order])), starts


def _scorer(enrolled: Vectors, scoring: str) -> _Scorer:
    """Return the function that scores trials (n, d) with every enrolled speaker: (n, N)."""
    rows, starts = _unit_rows(enrolled)
    if scoring == "max":
        return lambda block: np.maximum.reduceat(_COSINE.score(rows, block), starts, axis=1)
    return partial(_COSINE.score, _COSINE.prepare(np.add.reduceat(rows, starts, axis=0)))


def _normaliser(method: str, enrolled: Vectors, cohort: FloatArray) -> _Scorer:
    """Return `_scorer` with scores relative to a cohort (C, d)."""
    templates = np.add.reduceat(*_unit_rows(enrolled), axis=0)
    return lambda block: score_normalised(method, block, templates, (cohort, cohort), _COSINE)


def _shared(trials: Vectors, enrolment: Vectors) -> list[str]:
    """Describe trials and sessions that both files contain."""
    notes = []
    enrolled_rows = set(_bytes(enrolment.values))
    same = [i for i, row in enumerate(_bytes(trials.values), 1) if row in enrolled_rows]
    if same:
        notes.append(
            f"{len(same)} of {len(trials.values)} trials are enrolled themselves (first: trial "
            f"{same[0]}), which biases every figure upwards"
        )
    if trials.sessions and enrolment.sessions:
        met = set(zip(enrolment.speakers, enrolment.sessions, strict=True))
        pairs = zip(trials.speakers, trials.sessions, strict=True)
        same = [i for i, pair in enumerate(pairs, 1) if pair in met]
        if same:
            notes.append(
                f"{len(same)} of {len(trials.values)} trials share a session with the enrolment of "
                f"their speaker (first: trial {same[0]}), which favours the attacker"
            )
    return notes


def _bytes(values: FloatArray) -> Iterator[bytes]:
    return (row.tobytes() for row in np.asarray(values, np.float64))
