"""Reads scores and labels of any format into comparisons."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from monitor.arrays import names_or_numbers, real_numbers
from monitor.errors import UsageError
from monitor.features.registry import caveats
from monitor.lab.evaluation.input.enrolments import SCORINGS
from monitor.lab.evaluation.input.files import Progress, Rows, array_at, arrays_at, kind_of
from monitor.lab.evaluation.input.lists import (
    Labels,
    RawScores,
    labels_of_array,
    pairs_of_records,
    read_label_rows,
    read_text,
)
from monitor.lab.evaluation.input.matching import EvaluationInput, check_matrix, match
from monitor.lab.evaluation.input.pairs import Pairs
from monitor.lab.evaluation.input.score_file import ScoreFile
from monitor.lab.evaluation.input.tables import (
    column_names,
    match_columns,
    read_frame,
    read_labels_of,
    read_parquet,
)

_SAME_SESSION = (
    "tests and templates are parts of one session each, where a voice is easier to recognise than "
    "on another day"
)


def read_scores(
    path: str | os.PathLike[str],
    labels: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    unmated: str = "count",
    enrolment_labels: str | os.PathLike[str] | None = None,
    scoring: str = "average",
    choose: Sequence[str] = (),
    progress: Progress | None = None,
) -> EvaluationInput:
    r"""Read scores and the speakers of trials; the format is detected.

    Args:
        path: ``.npy`` (a memory-mapped matrix, or records of a list), ``.npz``, Parquet, a table,
            or a list of pairs (Kaldi, ZEBRA, VoicePrivacy, CSV). See docs/evaluate-input.md.
        labels: columns, names, names by trial, or a trial list; optional if the scores have them.
        name: name of the system, by default the file's name without suffix.
        unmated: treatment of impostor trials: ``"count"`` them for figures of pooled scores,
            ``"drop"`` or ``"refuse"`` them.
        enrolment_labels: speakers of enrolled models, in any form of ``labels``, if a speaker has
            several models. An utt2spk of trials may include them.
        scoring: ``"average"`` or ``"max"``: mean or maximum score of a speaker's models.
        choose: words that select one matrix of a file of `monitor score`: ``voice``, ``cross``,
            ``T=10``, ``D=30``.
        progress: called with the numbers of characters read and in total.

    Returns:
        The checked comparisons, and notes. Columns keep the order of the file, and speakers of a
            list are sorted. Incomplete trials of a list have no ranks. A trial list with nontarget
            pairs restricts the scores to its pairs. One of targets alone labels all pairs.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scores, trials = Path(folder, "scores"), Path(folder, "trials")
        ...     _ = scores.write_text("A u1 0.9\nB u1 0.2\nA u2 0.3\nB u2 0.4\n")
        ...     _ = trials.write_text("A u1 target\nB u1 nontarget\nA u2 nontarget\nB u2 target\n")
        ...     read = read_scores(scores, trials)
        >>> read.matrix.speakers, read.matrix.mated.tolist(), read.notes
        (('A', 'B'), [0.9, 0.4], ())
    """
    path = Path(path)
    if scoring not in SCORINGS:
        raise UsageError(f"invalid scoring={scoring!r}: use one of {', '.join(SCORINGS)}")
    called = path.stem if name is None else name
    kind = kind_of(path)
    if kind == "npz" and (file := ScoreFile.from_file(path)) is not None:
        if labels is not None or enrolment_labels is not None:
            raise UsageError(f"{path.name} includes the speakers: leave out labels")
        return _read_matrix(file, choose, called)
    raw: RawScores | Pairs
    if kind == "text":
        raw = read_text(Rows.from_file(path), progress)
    elif kind == "parquet":
        raw = read_frame(read_parquet(path), path.name)
    elif kind == "npz":
        raw = _archive(path)
    else:
        array = array_at(path)
        raw = pairs_of_records(path.name, array) if array.dtype.names else RawScores(array)
    stated = None if labels is None else read_labels(Path(labels))
    owners = None if enrolment_labels is None else read_labels(Path(enrolment_labels))
    return match(raw, stated, owners, path.name, called, unmated=unmated, scoring=scoring)


def scores_in_memory(scores: Any, labels: Any = None) -> EvaluationInput:
    """Convert an array, trials x speakers, or a data frame of any library.

    Args:
        scores: shape (T, N); or a frame as `monitor.lab.evaluation.input.tables.read_frame` reads.
        labels: each trial's column from 0, or speaker, (T,); not needed if a frame has it.
    """
    written, name = column_names(scores), "scores"
    raw: RawScores | Pairs
    raw = RawScores(real_numbers(scores, name)) if written is None else read_frame(scores, name)
    stated = None
    if labels is None and (raw.labels if isinstance(raw, RawScores) else raw.target) is None:
        raise UsageError(
            "an array of scores has no speakers: give labels=, the column (from 0) or name of each "
            "trial's speaker"
        )
    if labels is not None:
        is_frame = column_names(labels) is not None
        stated = read_labels_of(labels, "labels") if is_frame else labels_of_array("labels", labels)
        if written is not None and isinstance(raw, RawScores):
            stated = match_columns(stated, raw, written)
    return match(raw, stated, None, name, name)


def read_labels(path: Path) -> Labels:
    """Read labels: a ``.npy`` of columns or names, Parquet, or text (`read_label_rows`)."""
    kind = kind_of(path)
    if kind == "npy":
        return labels_of_array(path.name, array_at(path))
    if kind == "npz":
        raise UsageError(f"{path.name} is an archive: save labels as .npy or text")
    if kind == "parquet":
        return read_labels_of(read_parquet(path), path.name)
    return read_label_rows(Rows.from_file(path))


def _read_matrix(file: ScoreFile, choose: Sequence[str], name: str) -> EvaluationInput:
    """Read one matrix of a score file, which contains its own labels."""
    entry, *others = file.choose(choose)
    if others:
        raise UsageError(
            f"{file.path.name} has {len(others) + 1} matrices: choose one of "
            f"{file.describe_choices()}"
        )
    matrix = file.matrix(entry, name)
    notes = [_SAME_SESSION] if entry.session == "same" else []
    notes += caveats(entry.features)
    raw = RawScores(matrix.scores, matrix.speakers, matrix.trial_names)
    return check_matrix(raw, matrix.target, name, notes=notes)


def _archive(path: Path) -> RawScores:
    arrays = arrays_at(path)
    if "scores" not in arrays:
        raise UsageError(
            f"{path.name} has no array called scores, only "
            f"{', '.join(sorted(arrays)) or 'none'}: rename one"
        )
    names = arrays.get("speakers", np.array([], "U1"))
    names = names_or_numbers(names, f"{path.name}: speakers")
    key = next((key for key in ("target", "labels") if key in arrays), None)
    labels = None if key is None else labels_of_array(f"{path.name} {key}", arrays[key])
    return RawScores(arrays["scores"], tuple(map(str, names.tolist())), (), labels)
