"""Score files: matrices of several features and lengths in one .npz, written by monitor score."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.files import atomic_write, writing
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.input.files import arrays_at
from monitor.lab.evaluation.input.groups import Attribute
from monitor.lab.report.model import OneLine
from monitor.safe_text import is_name, is_number
from monitor.types import AnyArray, FloatArray
from monitor.version import __version__

SCHEMA = 1
_KIND = "scores"
_SESSIONS = ("same", "cross")
_MOST_LISTED = 6


@dataclass(frozen=True, slots=True)
class ScoreCell:
    """Matrices of one length of test and template, T and D, with the same trials and speakers.

    Matrices are by system: a feature, ``FEATURE-max``, or ``joint`` for all of them. `sessions` and
    `start_seconds`, (T,), locate the beginning of each trial, in seconds of speech.
    """

    session: str
    test_seconds: float
    template_seconds: float
    matrices: Mapping[str, ScoreMatrix]
    sessions: Sequence[str]
    start_seconds: FloatArray
    joint: tuple[str, ...] = ()

    @property
    def matrix(self) -> ScoreMatrix:
        """One of the matrices, for properties that all share."""
        return next(iter(self.matrices.values()))


@dataclass(frozen=True, slots=True)
class ScoreEntry:
    """One matrix of a score file: its system, lengths, `ScoreCell` by number, and features."""

    system: str
    session: str
    test_seconds: float
    template_seconds: float
    cell: int
    features: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, str, str, str]:
        """Words that select the entry."""
        lengths = f"T={self.test_seconds:g}", f"D={self.template_seconds:g}"
        return (self.system, self.session, *lengths)


def write_score_file(
    path: Path, cells: Iterable[ScoreCell], groups: Attribute | None = None
) -> None:
    """Write cells as a score file, mode 0600, whole or not at all."""
    arrays: dict[str, AnyArray] = {}
    listed: list[dict[str, object]] = []
    for i, cell in enumerate(cells):
        shared = cell.matrix
        facts = {key: getattr(cell, key) for key in ("session", "test_seconds", "template_seconds")}
        listed.append(facts | {"systems": list(cell.matrices), "joint": list(cell.joint)})
        cell_arrays: dict[str, AnyArray] = {
            "target": shared.target, "speakers": np.array(shared.speakers),
            "trials": np.array(shared.trial_names), "sessions": np.array(cell.sessions),
            "start_seconds": cell.start_seconds,
            **{f"scores_{name}": matrix.scores for name, matrix in cell.matrices.items()},
        }  # fmt: skip
        arrays |= {f"{i}_{name}": array for name, array in cell_arrays.items()}
    header: dict[str, object] = {
        "schema": SCHEMA, "kind": _KIND, "program": __version__, "cells": listed,
    }  # fmt: skip
    if groups is not None:
        header["groups"] = {"name": groups.name, "of": dict(groups.of)}
    with writing(path), atomic_write(path) as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)  # type: ignore[arg-type]


@dataclass(frozen=True, repr=False)
class ScoreFile(OneLine):
    """A score file with matrices read on demand."""

    path: Path
    entries: tuple[ScoreEntry, ...]
    groups: Attribute | None = field(default=None)

    @classmethod
    def from_file(cls, path: Path) -> ScoreFile | None:
        """Read a score file; None for any other ``.npz``."""
        array = arrays_at(path, "header").get("header")
        if array is None or array.ndim or array.dtype.kind != "U":
            return None
        try:
            header = json.loads(str(array))
        except (ValueError, RecursionError):
            return None
        if not isinstance(header, dict) or header.get("kind") != _KIND:
            return None
        if header.get("schema") != SCHEMA:
            raise StoreError(f"{path.name} was written by another version; make it again")
        try:
            entries = tuple(
                ScoreEntry(
                    _text(system),
                    _text(cell["session"], _SESSIONS),
                    float(cell["test_seconds"]),
                    float(cell["template_seconds"]),
                    i,
                    tuple(map(_text, cell.get("joint", ()))) if system == "joint" else (system,),
                )
                for i, cell in enumerate(header["cells"])
                for system in cell["systems"]
            )
            attribute = header.get("groups")
            groups = attribute and Attribute(
                path.name,
                _text(attribute["name"]),
                {_text(k): _text(v) for k, v in attribute["of"].items()},
            )
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            raise _incomplete(path) from None
        return cls(path, entries, groups)

    def choose(self, words: Sequence[str]) -> tuple[ScoreEntry, ...]:
        """Find matrices that fit the words: systems, ``same`` or ``cross``, ``T=``, ``D=``.

        Words of one sort are alternatives; one word of each given sort must fit.
        """
        sorts: dict[str, set[str]] = {}
        for word in words:
            name, equals, value = word.partition("=")
            sort = name if equals else "session" if word in _SESSIONS else "system"
            if equals:
                if not is_number(value):
                    raise UsageError(f"invalid {word!r}: give T and D in seconds, such as T=10")
                word = f"{name}={float(value):g}"
            sorts.setdefault(sort, set()).add(word)
        entries = tuple(e for e in self.entries if all(s & set(e.words) for s in sorts.values()))
        if not entries:
            raise UsageError(
                f"{self.path.name} has no scores of {' '.join(words)}; it has "
                f"{self.describe_choices()}"
            )
        return entries

    def describe_choices(self) -> str:
        """List the words to choose by."""
        sorts = [dict.fromkeys(e.words[i] for e in self.entries) for i in range(4)]
        parts = []
        for sort in sorts:
            shown = list(sort)[:_MOST_LISTED]
            more = f" and {len(sort) - len(shown)} more" if len(sort) > len(shown) else ""
            parts.append(" ".join(shown) + more)
        return "; ".join(parts)

    def matrix(self, entry: ScoreEntry, name: str) -> ScoreMatrix:
        """Read one of the matrices, and give it a name."""
        target = self._array(entry, "target")
        speakers, trials = self._array(entry, "speakers"), self._array(entry, "trials")
        scores = self._array(entry, f"scores_{entry.system}")
        try:
            columns, rows = (tuple(map(str, names.tolist())) for names in (speakers, trials))
            return ScoreMatrix(scores, target, columns, name, rows)
        except (UsageError, ValueError, TypeError) as error:
            raise StoreError(f"{self.path.name} is damaged ({error}); make it again") from None

    def _array(self, entry: ScoreEntry, name: str) -> AnyArray:
        member = f"{entry.cell}_{name}"
        array = arrays_at(self.path, member).get(member)
        if array is None or not array.ndim:
            raise _incomplete(self.path)
        return array


def _text(value: Any, among: Sequence[str] = ()) -> str:
    if not isinstance(value, str) or not is_name(value) or (among and value not in among):
        raise TypeError(value)
    return value


def _incomplete(path: Path) -> StoreError:
    return StoreError(f"{path.name} is incomplete; make it again")
