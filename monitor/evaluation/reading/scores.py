"""A score matrix from whatever file a researcher has."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.reading.files import Progress, array_at, arrays_at, kind_of, text_chunks
from monitor.evaluation.reading.input import Input, finished
from monitor.evaluation.reading.labels import Labels, labels_of_array, labels_of_pairs, read_labels
from monitor.evaluation.reading.layout import layout_of
from monitor.evaluation.reading.pairs import Pairs, read_pairs
from monitor.evaluation.reading.square import matrix_of
from monitor.evaluation.reading.table import read_table
from monitor.evaluation.reading.targets import Raw, targets

__all__ = ["read_scores"]


def read_scores(
    path: str | os.PathLike[str],
    labels: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    unmated: str = "refuse",
    progress: Progress | None = None,
) -> Input:
    r"""Read scores and who really spoke; what kind of file it is shows in its content.

    Args:
        path: ``.npy`` (mapped, never held in memory whole), ``.npz``, a table (CSV, TSV, blanks),
            or a list of pairs (Kaldi, ZEBRA, VoicePrivacy, or CSV). See docs/evaluate-input.md.
        labels: columns, names, names by trial, or a trial list; not needed where the scores say it.
        name: of the system; the file's without its ending where not given.
        unmated: ``"refuse"`` trials of speakers who are not enrolled, or ``"drop"`` them.
        progress: called with how much of the text is read, and its length.

    Returns:
        The matrix, checked, and notes. Columns are as the file has them; of a list, in the order of
        their names. Trials are in the order of the file.

    Raises:
        UsageError: the content makes no sense; the message names the place.
        StoreError: a file cannot be opened, or is not what its name says.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scores, trials = Path(folder, "scores"), Path(folder, "trials")
        ...     _ = scores.write_text("A u1 0.9\nB u1 0.2\nA u2 0.3\nB u2 0.4\n")
        ...     _ = trials.write_text("A u1 target\nB u1 nontarget\nB u2 target\n")
        ...     read = read_scores(scores, trials)
        >>> read.matrix.speakers, read.matrix.mated.tolist(), read.notes
        (('A', 'B'), [0.9, 0.4], ())
    """
    path = Path(path)
    beside = None if labels is None else Path(labels)
    raw = _raw(path, beside, progress)
    if raw.scores.ndim != 2 or raw.scores.dtype.kind not in "fiu":
        raise UsageError(
            f"{path.name} holds {raw.scores.dtype} of shape {raw.scores.shape}; scores are "
            "numbers, trials x speakers"
        )
    if raw.labels is None:
        raise UsageError(f"{path.name} does not say who spoke: give labels, or a trial list")
    if not raw.scores.shape[0]:
        raise UsageError(f"{path.name} has no trial in it")
    notes: list[str] = []
    target, speakers = targets(raw, raw.labels, path.name, notes)
    return finished(
        raw.scores,
        target,
        speakers,
        path.stem if name is None else name,
        trials=raw.trials,
        notes=notes,
        unmated=unmated,
        progress=progress,
    )


def _raw(path: Path, beside: Path | None, progress: Progress | None) -> Raw:
    kind = kind_of(path)
    if kind == "npy":
        return Raw(array_at(path), labels=None if beside is None else read_labels(beside))
    if kind == "npz":
        return _archive(path, beside)
    lines = (line for chunk in text_chunks(path) for line in chunk if line.strip())
    first, second = [*islice(lines, 2), "", ""][:2]
    if not first:
        raise UsageError(f"{path.name} is empty")
    layout = layout_of(path.name, first, second)
    if not layout.list:
        table = read_table(path, layout, progress)
        given = Labels(path.name, names=table.target) if table.target else None
        given = given if beside is None else read_labels(beside, table.trials)
        return Raw(table.scores, layout.speakers, table.trials, given)
    if layout.score is None:
        raise UsageError(f"{path.name} is a trial list: give the scores first, it as labels")
    pairs = read_pairs(path, layout, progress).settled()
    if beside is not None:
        given = read_labels(beside, pairs.trials if pairs.certain else ())
        pairs = _turned(pairs, given)
    elif pairs.target is not None:
        given = labels_of_pairs(pairs)
    else:
        given = None
    scores, speakers = matrix_of(pairs)
    return Raw(scores, speakers, pairs.trials, given)


def _archive(path: Path, beside: Path | None) -> Raw:
    arrays = arrays_at(path)
    if "scores" not in arrays:
        raise UsageError(
            f"{path.name} has no array called scores, but {', '.join(sorted(arrays)) or 'none'}; "
            "name it so"
        )
    names = arrays.get("speakers", np.array([], "U1"))
    if names.ndim != 1 or names.dtype.kind not in "iuU":
        raise UsageError(f"{path.name}: speakers are names, one for each column")
    key = next((key for key in ("target", "labels") if key in arrays), None)
    given = None if key is None else labels_of_array(f"{path.name} {key}", arrays[key])
    given = given if beside is None else read_labels(beside)
    return Raw(arrays["scores"], tuple(map(str, names.tolist())), (), given)


def _turned(pairs: Pairs, labels: Labels) -> Pairs:
    """The list, turned where the labels name trials that it took for speakers."""
    known = labels.known or frozenset(labels.trials)
    if pairs.certain or not known:
        return pairs
    wrong = sum(name in known for name in pairs.speakers) > sum(n in known for n in pairs.trials)
    return pairs.swapped() if wrong else pairs
