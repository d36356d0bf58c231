"""Templates of enrolled people, kept in slices and cut to one length."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.kinds import FeatureSpec, unlike_networks
from monitor.maths.scores import SessionMixture, Similarity
from monitor.maths.statistics import median
from monitor.npz import MAPPED, Rows
from monitor.population.cohort import FeatureTemplates
from monitor.population.rank_model import RankModel
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray, Record

SLICE_SECONDS = 5.0  # speech seconds per slice. Slices allow templates to be cut to one length.
MISMATCH = 0.8
"""Fraction of the median length below which a template breaks the model (docs/method.md section 4).
"""
_USEFUL_SECONDS = 30.0  # a template that short is excluded instead of shortening all others
_SAMPLED_SLICES = 2048
_BLOCK = 2048  # members converted to a wider type at a time


@dataclass(frozen=True, slots=True)
class Scoring:
    """Common template length, and the speakers who have it."""

    seconds: float  # D, speech seconds; every template is cut to it
    members: BoolArray  # shape (N,), False for shorter templates


_SHARED: WeakKeyDictionary[Templates, dict[Hashable, Any]] = WeakKeyDictionary()
_Table = TypeVar("_Table")


def share(templates: Templates, key: Hashable, make: Callable[[], _Table]) -> _Table:
    """Return the table with this key, made once and shared by all attackers on the templates."""
    tables = _SHARED.setdefault(templates, {})
    if key not in tables:
        tables[key] = make()
    table: _Table = tables[key]
    return table


class Templates:
    """Templates of N speakers by feature, each a number of slices."""

    def __init__(
        self,
        names: Sequence[str],  # of the speakers, unique
        offsets: IntArray,  # (N + 1,): speaker j owns slices ``offsets[j]:offsets[j + 1]``
        features: Mapping[str, FeatureTemplates],
        # number of slices of each session, by index of speakers with separate sessions
        sessions: Mapping[int, tuple[int, ...]],
    ) -> None:
        self.names = tuple(names)
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.features = dict(features)
        self._sessions = dict(sessions)
        # by feature, D and similarity, of a mapped store: shape (members, M), single precision
        self._prepared: dict[tuple[str, float, str], AnyArray] = {}
        if len(set(self.names)) != len(self.names):
            raise StoreError("a population cannot have two speakers of the same name")
        slices = {templates.slices.shape[0] for templates in self.features.values()}
        if (
            self.offsets.shape != (len(self.names) + 1,)
            or self.offsets[0] != 0
            or (np.diff(self.offsets) < 0).any()
            or slices != {int(self.offsets[-1])}
        ):
            raise StoreError("templates and speakers do not match")
        slice_counts = np.diff(self.offsets).tolist()
        for index, counts in self._sessions.items():
            is_sound = all(type(size) is int and size > 0 for size in counts)
            if not (is_sound and sum(counts) == slice_counts[index]):
                raise StoreError(
                    f"the sessions of {self.names[index]!a:.40} do not match its slices"
                )
        for name, templates in self.features.items():
            if templates.slices.ndim != 2 or templates.slices.shape[1] != templates.spec.size:
                raise StoreError(
                    f"templates of {name!r} must have shape (slices, {templates.spec.size})"
                )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def specs(self) -> dict[str, FeatureSpec]:
        """The format of each feature's frames."""
        return {name: templates.spec for name, templates in self.features.items()}

    def scorers(self, rank_model: RankModel) -> dict[str, Similarity]:
        """Return the similarity of each feature of a rank model, in its order."""
        named = zip(rank_model.features, rank_model.similarities, strict=True)
        return {name: self.features[name].spec.kind.similarity(method) for name, method in named}

    def empty(self, feature: str) -> tuple[str, ...]:
        """List speakers with a template without frames of this feature."""
        for (name, *_), matrix in self._prepared.items():
            is_complete = name == feature and len(matrix) == len(self)
            if is_complete and all(rows.any(axis=1).all() for rows in _split_rows(matrix)):
                return ()
        slices = self.features[feature].slices.any(axis=1)
        is_present = np.zeros(len(self), np.bool_)
        is_present[np.repeat(np.arange(len(self)), np.diff(self.offsets))[slices]] = True
        is_empty = ~is_present & (np.diff(self.offsets) > 0)
        return tuple(compress(self.names, is_empty.tolist()))

    def _voiced_shares(self, feature: str, index: int | None) -> tuple[float, ...]:
        """Return `Population.voiced_shares` of the speaker at an index; None for a sample."""
        templates = self.features[feature]
        rows, sizes = templates.slices, list[int]()
        if index is None:
            rows = rows[:: max(1, len(rows) // _SAMPLED_SLICES)]
        else:
            rows = rows[self.offsets[index] : self.offsets[index + 1]]
            sizes = list(self._sessions.get(index, ())[:-1])
        sessions = np.split(rows, np.cumsum(sizes, dtype=np.intp)) if len(rows) else []
        frame_seconds = templates.spec.frame_seconds / SLICE_SECONDS
        return tuple(
            float(session.sum(axis=1, dtype=float).mean()) * frame_seconds for session in sessions
        )

    @property
    def template_seconds(self) -> AnyArray:
        """Length of each template, speech seconds, shape (N,)."""
        return np.diff(self.offsets) * SLICE_SECONDS

    @property
    def common_seconds(self) -> float:
        """Length of all but much shorter templates, speech seconds; 0 without speakers."""
        return self._shortest(MISMATCH)

    def _shortest(self, fraction: float, enough_seconds: float = math.inf) -> float:
        """Return the shortest length that is at least this fraction of the median, or enough."""
        have = self.template_seconds
        if not len(self):
            return 0.0
        return float(have[have >= min(fraction * median(have), enough_seconds)].min())

    def _choose_scoring(self, seconds: float | None, index: int | None) -> Scoring:
        """Choose the common length like `Population.scoring`, with a watched speaker's index."""
        have = self.template_seconds
        if seconds is not None:
            if not SLICE_SECONDS <= seconds < math.inf:
                raise UsageError(f"template_seconds={seconds:g} must be at least {SLICE_SECONDS:g}")
            common = math.floor(seconds / SLICE_SECONDS) * SLICE_SECONDS
        else:
            common = self._shortest(MISMATCH, _USEFUL_SECONDS)
            if index is not None:
                common = min(self.common_seconds, float(have[index]))
        members = have >= common
        if common <= 0 or members.sum() < 2:
            raise UsageError(
                f"fewer than two templates have {common:g} speech seconds; the longest has "
                f"{have.max(initial=0.0):g}"
            )
        return Scoring(common, members)

    def templates(self, feature: str, scoring: Scoring, *, by_slice: bool = False) -> AnyArray:
        """Cut templates of the scoring's members to its length: shape (members, M).

        With ``by_slice``, return their slices, (members, S, M).
        """
        if feature not in self.features:
            names = ", ".join(sorted(self.features))
            raise UsageError(f"the population has no templates of {feature!r}, only of {names}")
        blocks = self._blocks(feature, scoring)
        return _join_blocks((b if by_slice else b.sum(axis=1) for b in blocks), scoring)

    def prepared(self, feature: str, scoring: Scoring, similarity: Similarity) -> FloatArray:
        """Prepare `templates` for a similarity, without holding both.

        The shape is (members, M), or (members, S, M) if the similarity compares with every slice. A
        mapped store uses single precision if the similarity bounds its error (see `exact`).
        """
        matrix = self._prepared.get((feature, scoring.seconds, similarity.name))
        if matrix is not None:
            return matrix
        single = bool(self._prepared) and similarity.bound is not None
        blocks = self._prepared_blocks(feature, scoring, similarity)
        if single:
            blocks = (block.astype(np.float32) for block in blocks)
        return np.asarray(_join_blocks(blocks, scoring))

    def _prepared_blocks(
        self, feature: str, scoring: Scoring, similarity: Similarity
    ) -> Iterator[FloatArray]:
        by_slice = similarity.by_slice
        for block in self._blocks(feature, scoring):
            yield similarity.prepare(block if by_slice else block.sum(axis=1))

    def exact(
        self, feature: str, scoring: Scoring, similarity: Similarity, places: IntArray
    ) -> FloatArray:
        """Prepare templates of members at these indices, in double precision: (K, M)."""
        slices, kind = self.features[feature].slices, self.features[feature].spec.kind
        firsts = self.offsets[:-1][scoring.members][places]
        slice_numbers = np.arange(round(scoring.seconds / SLICE_SECONDS))
        rows = slices[firsts[:, None] + slice_numbers].astype(kind.wide)
        if not np.isfinite(rows).all():
            raise StoreError(f"templates of {feature} are not numbers: the store is damaged")
        return similarity.prepare(rows.sum(axis=1))

    def sessions_apart(self, scoring: Scoring) -> SessionMixture | None:
        """Return the owners of `prepared_apart`, or None."""
        owner = [member for member, _ in self._apart(scoring)]
        people = int(scoring.members.sum())
        return SessionMixture(people, np.array(owner, np.int64)) if owner else None

    def prepared_apart(self, feature: str, scoring: Scoring, similarity: Similarity) -> FloatArray:
        """Prepare the further sessions of the members: shape (K, M) or (K, S, M).

        The template of a session is as long as all others. A shorter one is filled with speech of
        the speaker's other sessions, starting with the first.
        """
        slices, kind = self.features[feature].slices, self.features[feature].spec.kind
        stacked = np.stack([slices[places].astype(kind.wide) for _, places in self._apart(scoring)])
        return np.asarray(
            similarity.prepare(stacked if similarity.by_slice else stacked.sum(axis=1))
        )

    def _apart(self, scoring: Scoring) -> Iterator[tuple[int, IntArray]]:
        """Yield the index and the slices of each further session of a member."""
        size = round(scoring.seconds / SLICE_SECONDS)
        members = np.cumsum(scoring.members) - 1
        for index, counts in self._sessions.items():
            if not scoring.members[index]:
                continue
            member = int(members[index])
            every = np.arange(self.offsets[index], self.offsets[index + 1])
            begin = 0
            for number, count in enumerate(counts):
                session_slices = every[begin : begin + count]
                begin += count
                if number:
                    other_slices = np.setdiff1d(every, session_slices)
                    yield member, np.concatenate([session_slices, other_slices])[:size]

    def _blocks(self, feature: str, scoring: Scoring) -> Iterator[AnyArray]:
        """Yield slices of members, block by block: (block, S, M), wide enough to be summed."""
        slices, kind = self.features[feature].slices, self.features[feature].spec.kind
        firsts = self.offsets[:-1][scoring.members]
        places = np.arange(round(scoring.seconds / SLICE_SECONDS))
        for start in range(0, firsts.size, _BLOCK):
            yield slices[firsts[start : start + _BLOCK, None] + places].astype(kind.wide)

    def _list_mapped(self) -> tuple[dict[str, Rows], dict[str, dict[str, object]]]:
        """Return a mapped store's uncompressed arrays, and the settings of prepared ones."""
        rows: dict[str, Rows] = {}
        noted: dict[str, dict[str, object]] = {}
        for name, templates in self.features.items():
            rows[f"slices/{name}"] = Rows(
                templates.slices.shape, templates.slices.dtype, _split_rows(templates.slices)
            )
            similarity = templates.spec.kind.similarity()
            if similarity.bound is None or np.count_nonzero(self.template_seconds) < 2:
                continue
            scoring = self._choose_scoring(None, None)
            shape = int(scoring.members.sum()), templates.spec.size
            blocks = self._prepared_blocks(name, scoring, similarity)
            rows[f"prepared/{name}"] = Rows(shape, np.dtype("<f4"), blocks)
            noted[name] = {"seconds": scoring.seconds, "similarity": similarity.name}
        return rows, noted

    def _take_prepared(self, notes: Record, arrays: Mapping[str, AnyArray]) -> None:
        """Use the prepared templates of a mapped store; StoreError if they do not fit."""
        for name, note in notes.items():
            spec, matrix = self.features[name].spec, arrays[f"{MAPPED}prepared/{name}"]
            seconds, similarity = float(note["seconds"]), spec.kind.similarity(note["similarity"])
            shape = int(self._choose_scoring(seconds, None).members.sum()), spec.size
            if matrix.dtype != np.float32 or matrix.shape != shape or similarity.bound is None:
                raise StoreError(f"prepared templates of {name} do not match the others")
            self._prepared[name, seconds, similarity.name] = matrix
        for name, templates in self.features.items():
            if templates.slices.dtype.kind not in ("iu" if templates.spec.kind.counted else "f"):
                raise StoreError(f"templates of {name} are of the wrong type")

    def _selected(self, is_chosen: BoolArray) -> tuple[IntArray, dict[str, FeatureTemplates]]:
        """Select templates, (N,): offsets, and slices by feature."""
        counts = np.diff(self.offsets)
        slices = np.repeat(is_chosen, counts)
        return np.concatenate(([0], np.cumsum(counts[is_chosen]))), {
            name: replace(templates, slices=templates.slices[slices])
            for name, templates in self.features.items()
        }

    def _merged(
        self, other: Templates, places: Sequence[int]
    ) -> tuple[IntArray, dict[str, FeatureTemplates]]:
        """Add the slices of others at these indices: offsets, and slices by feature."""
        counts = np.concatenate([np.diff(self.offsets), np.diff(other.offsets)])
        owner = np.repeat([*range(len(self)), *places], counts)
        order = np.argsort(owner, kind="stable")
        totals = np.bincount(owner, minlength=max((len(self) - 1, *places)) + 1)
        return np.concatenate(([0], np.cumsum(totals))), {
            name: replace(templates, slices=templates.slices[order])
            for name, templates in self._stacked(other).items()
        }

    def _stacked(self, other: Templates) -> dict[str, FeatureTemplates]:
        """Stack the slices of both by feature; UsageError if the features do not match."""
        features = {}
        for name, current in self.features.items():
            added = other.features.get(name)
            spec, new = current.spec, None if added is None else added.spec
            if added is None or new is None or (new.kind, new.size) != (spec.kind, spec.size):
                raise UsageError(f"the new templates have no {name!r} of size {spec.size}")
            if new.network != spec.network:
                what = unlike_networks(
                    name, "the new templates", new.network, "the others", spec.network
                )
                raise UsageError(f"{what}; enrol all speakers again with this version")
            wide = np.result_type(current.slices, added.slices)
            slices = np.concatenate([current.slices.astype(wide), added.slices.astype(wide)])
            features[name] = replace(current, slices=slices)
        return features


def _split_rows(rows: AnyArray) -> Iterator[AnyArray]:
    """Yield the rows in blocks."""
    for first in range(0, len(rows), _BLOCK):
        yield rows[first : first + _BLOCK]


def _join_blocks(blocks: Iterator[AnyArray], scoring: Scoring) -> AnyArray:
    """Join rows of all members, block after block."""
    joined: AnyArray | None = None
    row = 0
    for block in blocks:
        if joined is None:
            joined = np.empty((int(scoring.members.sum()), *block.shape[1:]), block.dtype)
        joined[row : row + len(block)] = block
        row += len(block)
    assert joined is not None  # a scoring has two members or more
    return joined
