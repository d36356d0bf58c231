"""Reads scores and labels, of whatever format, into comparisons."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.input.evaluation_input import EvaluationInput, finished, finished_list
from monitor.evaluation.input.files import Progress, array_at, arrays_at, kind_of, text_chunks
from monitor.evaluation.input.labels import Labels, labels_of_array, labels_of_pairs, read_labels
from monitor.evaluation.input.layout import layout_of
from monitor.evaluation.input.listing import labelled
from monitor.evaluation.input.models import SCORINGS, merged_columns, merged_note, owners_of
from monitor.evaluation.input.pairs import Pairs, read_pairs
from monitor.evaluation.input.score_file import ScoreFile
from monitor.evaluation.input.table import read_table
from monitor.evaluation.input.targets import RawScores, targets
from monitor.features.registry import caveats

__all__ = ["read_scores"]

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
    r"""Read scores and who really spoke; what kind of file it is shows in its content.

    Args:
        path: ``.npy`` (mapped, never held in memory whole), ``.npz``, a table (CSV, TSV, blanks),
            or a list of pairs (Kaldi, ZEBRA, VoicePrivacy, or CSV). See docs/evaluate-input.md.
        labels: columns, names, names by trial, or a trial list; not needed where the scores say it.
        name: of the system; the file's without its ending where not given.
        unmated: impostor trials, whose speaker is not enrolled: ``"count"`` them where no rank is
            needed, ``"drop"`` or ``"refuse"`` them.
        enrolment_labels: whose each enrolled model is, in any form of `labels`, where speakers
            have several; an utt2spk of trials may speak of them as well.
        scoring: ``"average"`` or ``"max"``: the mean or the largest score of a speaker's models.
        choose: of a file of `monitor score`, which matrix: ``voice``, ``cross``, ``T=10``, ``D=30``
            as far as needed. Other files need none.
        progress: called with how much of the text is read, and its length.

    Returns:
        The comparisons, checked, and notes. Columns are as the file has them; of a list, in the
        order of their names. Trials are in the order of the file. Of a list that has not every pair
        the rest counts where no rank is needed; pairs that a trial list with nontarget pairs does
        not have are left out.

    Raises:
        UsageError: the content makes no sense; the message names the place.
        StoreError: a file cannot be opened, or is not what its name says.

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
    beside = None if labels is None else Path(labels)
    if scoring not in SCORINGS:
        raise UsageError(f"scoring={scoring!r} is not one of {', '.join(SCORINGS)}")
    models = None if enrolment_labels is None else Path(enrolment_labels)
    called = path.stem if name is None else name
    held = ScoreFile.at(path) if kind_of(path) == "npz" else None
    if held is not None:
        if beside is not None or models is not None:
            raise UsageError(f"{path.name} says itself who spoke: give no labels beside it")
        return _held(held, choose, called)
    raw = _raw(path, beside, progress)
    notes: list[str] = []
    if isinstance(raw, Pairs):
        return _listed(raw, beside, models, scoring, called, unmated, notes)
    if raw.scores.ndim != 2 or raw.scores.dtype.kind not in "fiu":
        raise UsageError(
            f"{path.name} holds {raw.scores.dtype} of shape {raw.scores.shape}; scores are "
            "numbers, trials x speakers"
        )
    if raw.labels is None:
        raise UsageError(f"{path.name} does not say who spoke: give labels, or a trial list")
    if not raw.scores.shape[0]:
        raise UsageError(f"{path.name} has no trial in it")
    key = raw.labels.pairs
    if key is not None and raw.trials and (models is not None or not _covers(key, raw)):
        pairs = _as_pairs(raw, path.name)
        return _listed(pairs, beside, models, scoring, called, unmated, notes, raw.labels)
    raw = _with_speakers(raw, models, scoring, notes)
    assert raw.labels is not None
    target, speakers, spoken = targets(raw, raw.labels, path.name, notes)
    return finished(
        raw.scores,
        target,
        speakers,
        called,
        trials=raw.trials,
        spoken=spoken,
        notes=notes,
        unmated=unmated,
        progress=progress,
    )


def _held(file: ScoreFile, choose: Sequence[str], name: str) -> EvaluationInput:
    """One matrix of a score file, which says everything itself."""
    entry, *others = file.chosen(choose)
    if others:
        raise UsageError(
            f"{file.path.name} has {len(others) + 1} matrices: choose one of {file.listed()}"
        )
    matrix = file.matrix(entry, name)
    notes = [_SAME_SESSION] if entry.session == "same" else []
    notes += caveats(entry.features)
    return finished(
        matrix.scores, matrix.target, matrix.speakers, name, trials=matrix.trial_names, notes=notes
    )


def _listed(
    pairs: Pairs,
    beside: Path | None,
    models: Path | None,
    scoring: str,
    name: str,
    unmated: str,
    notes: list[str],
    labels: Labels | None = None,
) -> EvaluationInput:
    """A list, with the labels that stand beside it or in it."""
    owners = None if models is None else read_labels(models)
    if owners is not None and owners.trials and not pairs.certain:
        pairs = replace(pairs, certain=True)
        pairs = pairs.swapped() if _named(pairs.trials, pairs.speakers, owners.trials) else pairs
    pairs = pairs.settled()
    if labels is None and beside is not None:
        labels = read_labels(beside, pairs.trials if pairs.certain else ())
        pairs = _turned(pairs, labels)
    elif labels is None and pairs.target is not None:
        labels = replace(labels_of_pairs(pairs), pairs=pairs)
    if labels is None:
        raise UsageError(f"{pairs.label} does not say who spoke: give labels, or a trial list")
    key = labels.pairs
    if key is not None and _named(key.trials, key.speakers, pairs.speakers):
        labels = labels_of_pairs(key.swapped())  # the list knows better which are its speakers
    made = labelled(pairs, labels, notes, owners, scoring)
    return finished_list(made, name, notes=notes, unmated=unmated)


def _covers(key: Pairs, raw: RawScores) -> bool:
    """Whether a trial list speaks of every cell of a table, and gives each trial one speaker."""
    assert key.target is not None
    hits = np.bincount(key.trial[key.target], minlength=1)
    return len(key.trial) >= raw.scores.size and int(hits.max()) == 1


def _as_pairs(raw: RawScores, label: str) -> Pairs:
    """A table as a list."""
    trials, count = raw.scores.shape
    return Pairs(
        label,
        raw.trials,
        raw.speakers,
        np.repeat(np.arange(trials), count),
        np.tile(np.arange(count), trials),
        np.asarray(raw.scores, np.float64).reshape(-1),
        None,
        certain=True,
    )


def _with_speakers(
    raw: RawScores, models: Path | None, scoring: str, notes: list[str]
) -> RawScores:
    """One column a speaker, where a speaker has several enrolments."""
    assert raw.labels is not None
    count = raw.scores.shape[1]
    columns = raw.speakers or tuple(map(str, range(count)))
    given = None if models is None else read_labels(models, raw.speakers)
    if given is None and not raw.speakers:
        return raw
    if given is not None and given.columns is not None:
        raise UsageError(f"{given.label}: give names of speakers, one for each enrolment")
    owners = owners_of(columns, raw.labels, given)
    if len(set(owners)) == count:
        return raw if given is None else replace(raw, speakers=owners)
    if given is None and len(set(columns)) < count:
        return raw  # two columns of one name: refused where they are matched
    notes.append(merged_note(count, len(set(owners)), scoring))
    scores, speakers = merged_columns(raw.scores, owners, scoring)
    return replace(raw, scores=scores, speakers=speakers)


def _raw(path: Path, beside: Path | None, progress: Progress | None) -> RawScores | Pairs:
    kind = kind_of(path)
    if kind == "npy":
        return RawScores(array_at(path), labels=None if beside is None else read_labels(beside))
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
        return RawScores(table.scores, layout.speakers, table.trials, given)
    if layout.score is None:
        raise UsageError(f"{path.name} is a trial list: give the scores first, it as labels")
    return read_pairs(path, layout, progress)


def _archive(path: Path, beside: Path | None) -> RawScores:
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
    return RawScores(arrays["scores"], tuple(map(str, names.tolist())), (), given)


def _turned(pairs: Pairs, labels: Labels) -> Pairs:
    """The list, turned where the labels name trials that it took for speakers."""
    known = labels.known or frozenset(labels.trials)
    if pairs.certain or not known:
        return pairs
    return pairs.swapped() if _named(pairs.speakers, pairs.trials, known) else pairs


def _named(some: Sequence[str], others: Sequence[str], known: Collection[str]) -> bool:
    """Whether a greater share of some names is known than of others."""
    among = frozenset(known)
    shares = [sum(name in among for name in names) / len(names) for names in (some, others)]
    return shares[0] > shares[1]
