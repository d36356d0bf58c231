"""Who is enrolled: whatever a population keeps of one person beside the slices of the template.

Everything that belongs to one person is a field of `Speaker` or `SourceNote`, declared once here.
Storing, joining, adding a session and forgetting follow from the declaration: `monitor forget`
leaves nothing behind because there is no second place where something could be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import partial
from operator import add
from typing import Any, TypeVar

import numpy as np

from monitor.errors import StoreError
from monitor.maths.condition import Condition
from monitor.types import AnyArray

__all__ = [
    "SourceNote",
    "Speaker",
    "extended",
    "merged_by",
    "pack_people",
    "sound_of",
    "stored_as",
    "unpack_people",
]

_MERGE, _DTYPE = "merge", "dtype"
_OF_SPEAKERS, _OF_SOURCES, _ROWS = "people/speaker/", "people/source/", "/rows"
"""What the names of their arrays in a store begin with, and how that of their lengths ends."""


def merged_by(rule: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """Metadata of a field of `Speaker`: what becomes of it when a further session is added.

    Args:
        rule: of what was there and what the new session has. Notes of recordings are never merged.
    """
    return {_MERGE: rule}


def stored_as(dtype: str) -> dict[str, Any]:
    """Metadata of a field of `Speaker` or `SourceNote` that is one array, any number of rows.

    Args:
        dtype: as a store keeps it. The field is best empty by default, and ``compare=False``.
    """
    return {_DTYPE: dtype}


@dataclass(frozen=True, slots=True)
class SourceNote:
    """What a template was made from: enough to recognise the recording, not to hear it.

    Attributes:
        label: the file's name.
        session: the session it belongs to.
        hashes: fingerprints of the recording.
        start_seconds, end_seconds: the interval used, audio seconds.
        landmarks: peaks of the spectrogram of that interval, by which a copy of it is known again
            (`monitor.maths.landmarks.pack`); empty where nobody took any.
    """

    label: str
    session: str
    hashes: tuple[str, ...]
    start_seconds: float
    end_seconds: float
    landmarks: AnyArray = field(
        default_factory=partial(np.empty, 0, "<u2"),
        metadata=stored_as("<u2"),
        compare=False,
        repr=False,
    )

    @property
    def used(self) -> bool:
        """Whether anything of it is in the template."""
        return self.end_seconds > self.start_seconds


_SOUND = tuple(each.name for each in fields(Condition))


def sound_of(condition: Condition, seconds: float) -> AnyArray:
    """What a `Speaker` keeps of how enrolment speech sounds: seconds heard, and the figures."""
    known = condition.record()
    figures = (np.nan if known[name] is None else known[name] for name in _SOUND)
    return np.array([seconds, *figures], "<f4")


def _both_sounds(mine: AnyArray, later: AnyArray) -> AnyArray:
    """The mean, of what both sessions know by their seconds."""
    if not len(mine) or not len(later):
        return later if len(later) else mine
    both = np.stack([mine, later])
    weights = np.where(np.isnan(both), 0.0, both[:, :1])
    sums = (weights * np.nan_to_num(both)).sum(axis=0)
    with np.errstate(invalid="ignore"):
        made = sums / weights.sum(axis=0)
    made[0] = both[:, 0].sum()
    return np.asarray(made, "<f4")


@dataclass(frozen=True, slots=True)
class Speaker:
    """An enrolled speaker: a name, where the template comes from, and what that sounds like.

    Attributes:
        name: unique among those enrolled.
        sources: the recordings.
        sound: as `sound_of` makes it; empty where nobody knows.
    """

    name: str
    sources: tuple[SourceNote, ...] = field(default=(), metadata=merged_by(add))
    sound: AnyArray = field(
        default_factory=lambda: np.zeros(0, "<f4"),
        compare=False,
        metadata=stored_as("<f4") | merged_by(_both_sounds),
    )

    @property
    def condition(self) -> Condition | None:
        """What the speech of the template sounds like; None where nobody knows."""
        if len(self.sound) != 1 + len(_SOUND):
            return None
        figures = (None if np.isnan(each) else float(each) for each in self.sound[1:])
        return Condition.of(dict(zip(_SOUND, figures, strict=True)))


_S = TypeVar("_S", bound=Speaker)


def extended(speaker: _S, later: _S) -> _S:
    """A speaker with what a further session brings, each field by its own rule."""
    known = fields(speaker)
    rules = {each.name: each.metadata.get(_MERGE) for each in known if each.name != "name"}
    values = {
        name: rule(getattr(speaker, name), getattr(later, name))
        for name, rule in rules.items()
        if rule is not None
    }
    assert values.keys() == rules.keys(), "a field of a speaker says how sessions are merged"
    return type(speaker)(name=speaker.name, **values)


def pack_people(people: Sequence[Speaker]) -> tuple[list[dict[str, Any]], dict[str, AnyArray]]:
    """What a store keeps of people: entries of its header, and arrays by name.

    An array of each is kept as one for all, with how many rows are whose.
    """
    entries = [_plain(each) | {"sources": list(map(_plain, each.sources))} for each in people]
    arrays: dict[str, AnyArray] = {}
    notes = [note for each in people for note in each.sources]
    for place, ones in ((_OF_SPEAKERS, people), (_OF_SOURCES, notes)):
        for each in _arrays_of(type(ones[0])) if ones else ():
            parts = [np.asarray(getattr(one, each.name), each.metadata[_DTYPE]) for one in ones]
            if any(map(len, parts)):
                arrays[f"{place}{each.name}"] = np.concatenate(parts)
                arrays[f"{place}{each.name}{_ROWS}"] = np.array(list(map(len, parts)), np.int64)
    return entries, arrays


def unpack_people(
    entries: Iterable[Mapping[str, Any]],
    arrays: Mapping[str, AnyArray],
    *,
    speaker: type[Speaker] = Speaker,
    source: type[SourceNote] = SourceNote,
) -> list[Speaker]:
    """The reverse of ``pack_people``.

    Raises:
        StoreError: the arrays are not of these people.
        KeyError, TypeError: an entry is incomplete.
    """
    entries = list(entries)
    notes = [note for entry in entries for note in entry["sources"]]
    of_notes = _rows(_OF_SOURCES, source, arrays, len(notes))
    of_people = _rows(_OF_SPEAKERS, speaker, arrays, len(entries))
    made = iter(
        [
            source(**{**note, "hashes": tuple(note["hashes"])}, **more)
            for note, more in zip(notes, of_notes, strict=True)
        ]
    )
    people = [
        speaker(**{**entry, "sources": tuple(next(made) for _ in entry["sources"])}, **more)
        for entry, more in zip(entries, of_people, strict=True)
    ]
    for each in people:
        try:
            _ = each.condition
            sane = not len(each.sound) or 0 <= float(each.sound[0]) < np.inf
        except ValueError:
            sane = False
        if not sane:
            raise StoreError(f"what the template of {each.name!a:.40} sounds like is no sound's")
    return people


def _arrays_of(kind: type) -> list[Field[Any]]:
    return [each for each in fields(kind) if _DTYPE in each.metadata]


def _plain(one: Speaker | SourceNote) -> dict[str, Any]:
    """The fields that are no arrays, JSON-able."""
    return {
        each.name: getattr(one, each.name) for each in fields(one) if _DTYPE not in each.metadata
    }


def _rows(
    place: str, kind: type, arrays: Mapping[str, AnyArray], count: int
) -> list[dict[str, Any]]:
    """The arrays of each of so many, by field."""
    made: list[dict[str, Any]] = [{} for _ in range(count)]
    for each in _arrays_of(kind):
        name = f"{place}{each.name}"
        if name not in arrays:
            continue
        values, rows = arrays[name], arrays[f"{name}{_ROWS}"]
        fits = rows.dtype.kind in "iu" and rows.shape == (count,) and values.ndim == 1
        fits = fits and bool((rows >= 0).all())
        if not fits or int(rows.sum()) != len(values) or values.dtype != each.metadata[_DTYPE]:
            raise StoreError(f"{each.name} is not of the people that are enrolled")
        for one, part in zip(made, np.split(values, np.cumsum(rows)[:-1]), strict=True):
            one[each.name] = part
    return made
