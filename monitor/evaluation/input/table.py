"""Reads tables of scores: one row a trial, one column a speaker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.input.files import Progress, fields, text_chunks, to_number
from monitor.evaluation.input.layout import Layout
from monitor.evaluation.scores.scratch import scratch
from monitor.phrases import plural
from monitor.types import AnyArray, FloatArray

__all__ = ["Table", "read_table"]


@dataclass(frozen=True)
class Table:
    """A table as it was read.

    Attributes:
        scores: shape (T, N).
        trials: the names of its rows, empty where it has none.
        target: the true speaker in each row, empty where it does not say.
    """

    scores: AnyArray
    trials: tuple[str, ...]
    target: tuple[str, ...]


def read_table(path: Path, layout: Layout, progress: Progress | None = None) -> Table:
    """Read a table row by row: the text is never held whole.

    Raises:
        UsageError: a row has too few columns, or a score is no number.
    """
    apart = [i for i in (layout.trial, layout.target) if i is not None]
    columns = [i for i in range(layout.width) if i not in apart]
    if len(columns) < 2:
        raise UsageError(
            f"{path.name} has {plural(len(columns), 'column')} of scores; a table has one "
            f"for each speaker, "
            "and a comparison needs at least two"
        )
    scores = scratch((_count_lines(path), len(columns)))
    names: list[list[str]] = [[] for _ in apart]
    done, begin = 0, 0
    for lines in text_chunks(path, progress):
        after = begin + len(lines)
        if begin == 0 and layout.header:
            begin = 1 + next(i for i, line in enumerate(lines) if line.strip())
            del lines[:begin]
        block = _fast(lines, layout, columns)
        if block is None:
            rows = list(_rows(lines, layout, path.name, begin))
            block = _slow(rows, columns, path.name)
        else:
            rows = [(0, line.split(layout.separator, max(apart) + 1)) for line in lines if apart]
        for kept, place in zip(names, apart, strict=True):
            kept.extend(row[place].strip() for _, row in rows)
        scores[done : done + len(block)] = block
        done += len(block)
        begin = after
    if not done:
        raise UsageError(f"{path.name} has no line of data")
    found = dict(zip(apart, map(tuple, names), strict=True))
    trials = found.get(layout.trial, ()) if layout.trial is not None else ()
    target = found.get(layout.target, ()) if layout.target is not None else ()
    return Table(scores[:done], trials, target)


def _fast(lines: list[str], layout: Layout, columns: list[int]) -> FloatArray | None:
    """Scores by NumPy, three times as fast, where every line is as it should be; else None."""
    separator, width = layout.separator, layout.width
    if separator is None:
        even = len(columns) == width and all(map(str.strip, lines))  # NumPy counts the columns
    else:
        even = set(map(str.count, lines, repeat(separator))) == {width - 1}
    if not lines or not even or any('"' in line for line in lines):
        return None
    if separator != "," and any("," in line for line in lines):
        return None  # decimal commas
    try:
        block = np.loadtxt(
            lines,
            delimiter=separator,
            comments=None,
            usecols=None if len(columns) == width else columns,
            ndmin=2,
        )
    except ValueError:
        return None
    return block if block.shape == (len(lines), len(columns)) else None


def _rows(
    lines: list[str], layout: Layout, label: str, begin: int
) -> Iterator[tuple[int, list[str]]]:
    """Number and columns of every line that is not blank."""
    for number, line in enumerate(lines, begin + 1):
        if line.strip():
            row = fields(line, layout.separator)
            if len(row) != layout.width:
                raise UsageError(
                    f"{label} line {number}: has {plural(len(row), 'column')} and not "
                    f"{layout.width}"
                )
            yield number, row


def _slow(rows: list[tuple[int, list[str]]], columns: list[int], label: str) -> FloatArray:
    block = np.empty((len(rows), len(columns)))
    for into, (number, row) in zip(block, rows, strict=True):
        try:
            into[:] = [to_number(row[i]) for i in columns]
        except ValueError as error:
            raise UsageError(
                f"{label} line {number}: a score is no number ({error}); a table has one row a "
                "trial and one score a speaker, a list has trial, speaker and score in each line"
            ) from None
    return block


def _count_lines(path: Path) -> int:
    """At least as many as there are rows."""
    count = 1
    with path.open("rb") as file:
        while block := file.read(1 << 24):
            count += block.count(b"\n") + block.count(b"\r")
    return count
