"""Scores and labels in data frames of pandas, polars and pyarrow, and in Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from monitor.arrays import name_of, names_or_numbers, real_numbers
from monitor.datasets.parquet_pages import declared_bytes
from monitor.errors import StoreError, UsageError
from monitor.lab.evaluation.input.files import check_names
from monitor.lab.evaluation.input.lists import (
    ROLES,
    SPEAKER,
    TARGET,
    TRIAL,
    WORDS,
    Labels,
    RawScores,
    check_columns,
    labels_of_array,
    labels_of_pairs,
    role_of,
)
from monitor.lab.evaluation.input.pairs import Pairs, places
from monitor.npz import FREE_BYTES, MOST_RATIO
from monitor.safe_text import printable
from monitor.tables import need
from monitor.types import AnyArray, BoolArray

_MOST_CELLS = 1 << 28  # cells of a Parquet file, which is read whole
_INDEX = "__index_level_0__"  # name that pandas gives an index without one in Parquet


def column_names(frame: Any) -> list[Any] | None:
    """Return a data frame's names of columns, unconverted; None for anything else."""
    names = getattr(frame, "column_names", None)  # of pyarrow
    names = getattr(frame, "columns", None) if names is None else names
    return None if names is None else list(names)


def read_parquet(path: Path) -> Any:
    """Read a Parquet file as a table of pyarrow."""
    parquet, arrow = need("pyarrow.parquet"), need("pyarrow")
    try:
        with parquet.ParquetFile(path) as file:
            rows, columns = file.metadata.num_rows, file.metadata.num_columns
            if rows * columns > _MOST_CELLS:
                raise UsageError(f"{path.name} has {rows} rows: save them as .npy")
            unpacked, size = declared_bytes(path, file.metadata), path.stat().st_size
            if unpacked > FREE_BYTES + MOST_RATIO * size:
                raise UsageError(
                    f"{path.name} claims {unpacked >> 20} MB in {size} bytes: save it as .npy"
                )
            return file.read()
    except UsageError:
        raise
    except (OSError, ValueError, arrow.ArrowException) as error:
        reason = printable(" ".join(str(error).split()))[:100]
        raise StoreError(
            f"{path.name} is damaged or cut short ({reason}): write it again"
        ) from None


def read_frame(frame: Any, label: str) -> RawScores | Pairs:
    """Read a list of pairs, or a table with a row for each trial and a column for each speaker.

    Columns have the names that a header has in a text. In a table without the column ``target``,
    speakers are in the only column of text, or in the index of a pandas frame. Raises UsageError if
    a score is not a number, or several columns are text.
    """
    written = column_names(frame) or []
    names = [name_of(name) or str(name) for name in written]
    trial, speaker, score, target = (role_of(names, role) for role in ROLES)
    if trial is not None and speaker is not None and (score is not None or target is not None):
        return _read_pairs(frame, label, (trial, speaker, score, target))
    apart = [index for index in (trial, target) if index is not None]
    if target is None and (spoken := _spoken_column(frame, names, apart, label)) is not None:
        target, apart = spoken, [*apart, spoken]
    columns = [column for column in range(len(names)) if column not in apart]
    speakers = tuple(names[column] for column in columns)
    check_columns(label, speakers)
    scores = _matrix(frame, columns, names, label)
    spoken_by = _column(frame, target) if target is not None else _index(frame)
    labels = None if spoken_by is None else labels_of_array(label, spoken_by)
    raw = RawScores(scores, speakers, _texts(frame, trial, label), labels)
    return raw if labels is None else replace(raw, labels=match_columns(labels, raw, written))


def read_labels_of(frame: Any, label: str) -> Labels:
    """Read labels from a frame: one column, a trial and a speaker, or a trial list."""
    names = [name_of(name) or str(name) for name in column_names(frame) or []]
    if len(names) == 1:
        return labels_of_array(label, _column(frame, 0))
    trial, speaker, target = (role_of(names, role) for role in (TRIAL, SPEAKER, TARGET))
    if trial is None or (speaker is None and target is None):
        raise UsageError(f"{label}: labels have the columns trial and speaker, or speaker alone")
    if speaker is not None and target is not None:
        return labels_of_pairs(_read_pairs(frame, label, (trial, speaker, None, target)))
    spoken = speaker if speaker is not None else target
    return Labels(label, names=_texts(frame, spoken, label), trials=_texts(frame, trial, label))


def match_columns(labels: Labels, raw: RawScores, written: Sequence[Any]) -> Labels:
    """Convert numeric labels to names if the columns of a frame have numbers as names.

    ``written`` has the frame's names of columns, as text or numbers.
    """
    names = raw.speakers
    if labels.columns is None or names == tuple(map(str, range(len(names)))):
        return labels
    called = tuple(map(str, labels.columns.tolist()))
    if any(isinstance(name, str) for name in written):
        if not set(called) <= set(names):
            return labels
        if ((labels.columns >= 0) & (labels.columns < len(names))).all():
            raise UsageError(
                f"{labels.label} are numbers, and so are the names of columns: give labels as text"
            )
    return replace(labels, columns=None, names=called)


def _read_pairs(frame: Any, label: str, at: tuple[int, int, int | None, int | None]) -> Pairs:
    """Read a list from its columns of trials, speakers, scores and targets."""
    trial, speaker, score, target = at
    trial_names, speaker_names = (_texts(frame, column, label) for column in (trial, speaker))
    scores = None
    if score is not None:
        scores = real_numbers(_column(frame, score), f"{label}: scores", np.float64)
    if not trial_names:
        raise UsageError(f"{label} has no rows")
    hits = None if target is None else _targets(_column(frame, target), label)
    trials, speakers = (tuple(dict.fromkeys(names)) for names in (trial_names, speaker_names))
    check_names(label, {"trial": trials, "speaker": speakers})
    index = places(trial_names, trials), places(speaker_names, speakers)
    return Pairs(label, trials, speakers, *index, scores, hits)


def _targets(column: Any, label: str) -> BoolArray:
    words = [str(value).lower() for value in np.asarray(column).tolist()]
    hits = [WORDS.get(word) for word in words]
    if None in hits:
        wrong = words[hits.index(None)]
        raise UsageError(f"{label}: {wrong!r:.40} is neither target nor nontarget")
    return np.array(hits, np.bool_)


def _column(frame: Any, column: int) -> Any:
    """Return a column by its index, because two may have the same name."""
    if hasattr(frame, "iloc"):  # of pandas
        return frame.iloc[:, column]
    return frame.column(column) if hasattr(frame, "column") else frame.to_series(column)


def _texts(frame: Any, column: int | None, label: str) -> tuple[str, ...]:
    if column is None:
        return ()
    values = names_or_numbers(_column(frame, column), f"{label}: names")
    return tuple(map(str, values.tolist()))


def _spoken_column(
    frame: Any, names: Sequence[str], apart: Sequence[int], label: str
) -> int | None:
    """Find the only column of text, or the saved index of a pandas frame."""
    if _INDEX in names:
        return names.index(_INDEX)
    if np.asarray(frame).dtype.kind in "fiub":
        return None
    others = (column for column in range(len(names)) if column not in apart)
    texts = [column for column in others if _is_text(np.asarray(_column(frame, column)))]
    if len(texts) > 1:
        called = " and ".join(names[column] for column in texts[:2])
        raise UsageError(
            f"{label}: the columns {called} are text. Call them trial and target, and drop others"
        )
    return texts[0] if texts else None


def _is_text(column: AnyArray) -> bool:
    if column.dtype.kind == "O":
        return any(isinstance(value, str | bytes) for value in column.flat)
    return column.dtype.kind in "UST"


def _index(frame: Any) -> Any | None:
    """Return the index of a frame of pandas, unless it only counts the rows."""
    index = getattr(frame, "index", None)
    if index is None or callable(index) or list(index) == list(range(len(index))):
        return None
    return index


def _matrix(frame: Any, chosen: Sequence[int], names: Sequence[str], label: str) -> AnyArray:
    if len(chosen) == len(names) and (array := np.asarray(frame)).dtype.kind in "fiu":
        return array
    columns = [real_numbers(_column(frame, i), f"{label}: column {names[i]}") for i in chosen]
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))
