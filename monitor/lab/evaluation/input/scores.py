"""Reads scores and labels, of whatever format, into comparisons."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from monitor.arrays import names_or_numbers, real_numbers
from monitor.errors import UsageError
from monitor.features.registry import caveats
from monitor.lab.evaluation.comparisons import Comparisons, ScoreList, ScoreMatrix, describe_balance
from monitor.lab.evaluation.input.files import Progress, Rows, array_at, arrays_at, kind_of
from monitor.lab.evaluation.input.lists import (
    Labels,
    RawScores,
    labels_of_array,
    pairs_of_records,
    read_label_rows,
    read_text,
)
from monitor.lab.evaluation.input.matching import SCORINGS, match
from monitor.lab.evaluation.input.pairs import Pairs
from monitor.lab.evaluation.input.score_file import ScoreFile
from monitor.lab.evaluation.input.tables import (
    column_names,
    match_columns,
    read_frame,
    read_labels_of,
    read_parquet,
)
from monitor.lab.evaluation.memory import scratch
from monitor.lab.report.model import OneLine
from monitor.phrases import plural
from monitor.types import AnyArray, BoolArray, IntArray

UNMATED = ("count", "drop", "refuse")
"""Treatment of impostor trials, where the speaker is not enrolled. They count where no rank is
needed, are left out, or are refused."""


@dataclass(frozen=True, repr=False)
class EvaluationInput(OneLine):
    """Finite scores, and a sentence each on what is allowed and yet can mislead.

    Warnings are what makes all figures doubtful.
    """

    comparisons: Comparisons
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def matrix(self) -> ScoreMatrix:
        """Trials that have ranks."""
        if self.comparisons.matrix is None:
            raise UsageError(
                f"{self.comparisons.name} has no ranks: no trial was compared with every enrolled "
                "speaker"
            )
        return self.comparisons.matrix


def check_matrix(
    raw: RawScores, target: IntArray, name: str, *, spoken: Sequence[str] = (),
    notes: Sequence[str] = (), unmated: str = "count",
) -> EvaluationInput:  # fmt: skip
    """Check a matrix (T, N) in one pass, and keep it for its ranks.

    Targets are -1 if the speaker is not among the columns. `spoken` has the speakers of the rows,
    or is empty.
    """
    messages = list(notes)
    scores, speakers = raw.scores, raw.speakers
    called = raw.trials or tuple(str(row + 1) for row in range(len(target)))
    impostor = target < 0
    impostors = _impostors(impostor, called, name, unmated, messages)
    without_target = None
    if impostor.any():
        keep = np.flatnonzero(~impostor)
        if impostors:
            rows = np.flatnonzero(impostor)
            without_target = _list_impostors(_rows(scores, rows), rows, speakers, called, spoken)
        scores, target = _rows(scores, keep), target[keep]
        called = tuple(called[row] for row in keep.tolist())
    named = called if raw.trials and len(set(called)) == len(called) else ()
    matrix = ScoreMatrix(scores, target, speakers, name, tuple(named))
    comparisons = Comparisons(matrix.speakers, matrix, without_target, matrix.name)
    return EvaluationInput(comparisons, (*messages, *describe_balance(matrix, called)))


def check_list(
    listed: ScoreList, name: str, *, notes: Sequence[str], unmated: str
) -> EvaluationInput:
    """Collect the complete trials of a list into a matrix, and describe the rest."""
    messages = list(notes)
    impostor = listed.hits == 0
    if not _impostors(impostor, listed.trials, name, unmated, messages):
        listed = listed.of_trials(~impostor)
    several = np.flatnonzero(listed.hits > 1)
    if several.size:
        messages.append(
            f"{plural(several.size, 'trial')} with several targets (first: "
            f"{listed.trials[several[0]]}) count once per target. To merge the enrolments of a "
            "speaker, use --enrolment-labels"
        )
    count, met = len(listed.speakers), listed.met
    short = np.flatnonzero(met < count)
    if short.size:
        row = int(short[0])
        missing = np.setdiff1d(np.arange(count), listed.speaker[listed.trial == row])[0]
        messages.append(
            f"{short.size} of {plural(met.size, 'trial')} were not compared with every speaker "
            f"(first: trial {listed.trials[row]}, not with {listed.speakers[missing]}) and have no "
            "ranks"
        )
    comparisons = Comparisons.from_scores(listed, name)
    if comparisons.matrix is not None:
        messages += describe_balance(comparisons.matrix, comparisons.matrix.trial_names)
    return EvaluationInput(comparisons, tuple(messages))


def _impostors(
    impostor: BoolArray, trials: Sequence[str], name: str, unmated: str, notes: list[str]
) -> bool:
    """Return whether impostors count, and note how they are treated."""
    if unmated not in UNMATED:
        raise UsageError(f"unmated={unmated!r} is not one of {', '.join(UNMATED)}")
    lost = int(impostor.sum())
    if not lost:
        return True
    first = f"first: trial {trials[int(np.argmax(impostor))]}"
    if unmated == "refuse" or lost == impostor.size:
        cure = "name the speakers of enrolments (--enrolment-labels)"
        cure = cure if lost == impostor.size else "let impostors count (--unmated count)"
        raise UsageError(
            f"{lost} of {impostor.size} trials of {name} have no mated score, because their "
            f"speaker is not enrolled ({first}); check the names, or {cure}"
        )
    have = "has" if lost == 1 else "have"
    many = (
        f"{lost} of {impostor.size} trials {have} no score with the right speaker, as those of "
        f"impostors, who are not enrolled ({first}): "
    )
    if unmated == "drop":
        notes.append(f"{many}dropped, tools that count them as non-mated differ")
        return False
    notes.append(f"{many}ranks leave {'it' if lost == 1 else 'them'} out")
    return True


def _list_impostors(
    scores: AnyArray, rows: IntArray, speakers: tuple[str, ...], trials: Sequence[str],
    spoken: Sequence[str],
) -> ScoreList:  # fmt: skip
    """Convert impostor trials to a list; unnamed speakers are named by their trial."""
    if not np.isfinite(scores).all():
        row = int(np.argwhere(~np.isfinite(scores))[0, 0])
        raise UsageError(
            f"a score of trial {trials[rows[row]]} is not a finite number: drop that trial"
        )
    names = [(spoken[row] if spoken else "") or trials[row] for row in rows.tolist()]
    people = {person: i for i, person in enumerate(dict.fromkeys(names))}
    count = scores.shape[1]
    return ScoreList(
        scores.reshape(-1), np.zeros(scores.size, bool), np.repeat(np.arange(len(rows)), count),
        np.tile(np.arange(count), len(rows)), np.array([people[name] for name in names]),
        speakers or tuple(map(str, range(count))), tuple(people),
        tuple(trials[row] for row in rows.tolist()),
    )  # fmt: skip


def _rows(scores: AnyArray, keep: IntArray) -> AnyArray:
    selected = scratch((len(keep), scores.shape[1]), scores.dtype)
    return np.take(scores, keep, axis=0, out=selected, mode="clip")  # which needs no buffer


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
        name: of the system, by default of the file without its ending.
        unmated: ``"count"`` impostor trials for figures of pooled scores, ``"drop"`` or
            ``"refuse"`` them.
        enrolment_labels: speakers of enrolled models, in any form of `labels`, if speakers have
            several; an utt2spk of trials may include them.
        scoring: ``"average"`` or ``"max"``: mean or maximum score of a speaker's models.
        choose: words that select one matrix of a file of `monitor score`: ``voice``, ``cross``,
            ``T=10``, ``D=30``.
        progress: called with the characters read, and their total.

    Returns:
        The checked comparisons, and notes. Columns keep the order of the file; speakers of a list
        are sorted. Incomplete trials of a list have no ranks. A trial list with nontarget pairs
        selects its pairs.

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
        raise UsageError(f"scoring={scoring!r} is not one of {', '.join(SCORINGS)}")
    called = path.stem if name is None else name
    kind = kind_of(path)
    if kind == "npz" and (file := ScoreFile.from_file(path)) is not None:
        if labels is not None or enrolment_labels is not None:
            raise UsageError(f"{path.name} includes the speakers: leave out labels")
        return _read_matrix(file, choose, called)
    raw = _read_raw(path, kind, progress)
    stated = None if labels is None else read_labels(Path(labels))
    owners = None if enrolment_labels is None else read_labels(Path(enrolment_labels))
    return _compare(raw, stated, owners, path.name, called, unmated=unmated, scoring=scoring)


def scores_in_memory(scores: Any, labels: Any = None, name: str = "scores") -> EvaluationInput:
    """Take an array, trials x speakers, or a data frame, of any library.

    Args:
        scores: shape (T, N); or a frame as `monitor.lab.evaluation.input.tables.read_frame` reads.
        labels: each trial's column from 0, or speaker, (T,); not needed where a frame has it.
        name: of the system.
    """
    written = column_names(scores)
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
    return _compare(raw, stated, None, name, name)


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


def _compare(
    raw: RawScores | Pairs, stated: Labels | None, owners: Labels | None, label: str, called: str,
    *, unmated: str = "count", scoring: str = "average",
) -> EvaluationInput:  # fmt: skip
    notes: list[str] = []
    matched = match(raw, stated, owners, label, scoring, notes)
    if isinstance(matched, ScoreList):
        return check_list(matched, called, notes=notes, unmated=unmated)
    raw, target, spoken = matched
    return check_matrix(raw, target, called, spoken=spoken, notes=notes, unmated=unmated)


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


def _read_raw(path: Path, kind: str, progress: Progress | None) -> RawScores | Pairs:
    if kind == "npy":
        array = array_at(path)
        return pairs_of_records(path.name, array) if array.dtype.names else RawScores(array)
    if kind == "npz":
        return _archive(path)
    if kind == "parquet":
        return read_frame(read_parquet(path), path.name)
    return read_text(Rows.from_file(path), progress)


def _archive(path: Path) -> RawScores:
    arrays = arrays_at(path)
    if "scores" not in arrays:
        raise UsageError(
            f"{path.name} has no array called scores, but {', '.join(sorted(arrays)) or 'none'}; "
            "name it so"
        )
    names = arrays.get("speakers", np.array([], "U1"))
    names = names_or_numbers(names, f"{path.name}: speakers")
    key = next((key for key in ("target", "labels") if key in arrays), None)
    labels = None if key is None else labels_of_array(f"{path.name} {key}", arrays[key])
    return RawScores(arrays["scores"], tuple(map(str, names.tolist())), (), labels)
