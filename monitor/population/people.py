"""Enrolled people and their data in a store, for up to a million people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import date
from functools import cached_property, partial
from itertools import pairwise
from typing import overload

import numpy as np

from monitor.errors import StoreError
from monitor.maths.condition import Condition, degradation
from monitor.safe_text import LONGEST_NAME, is_name, is_printable, spelled_all
from monitor.types import AnyArray, FloatArray, IntArray, Record

_FIGURES = "bandwidth_hz", "snr_db", "reverberation_seconds", "clipping", "level_db"
_WIDTH = 1 + len(_FIGURES)  # numbers of a session's sound: seconds, then the figures
_MOST_SOUND = 1e6


@dataclass(frozen=True, slots=True)
class SourceNote:
    """Source of a template. It identifies a recording, but contains no audio."""

    label: str  # the file's name
    session: str
    hashes: tuple[str, ...]  # fingerprints of the recording
    start_seconds: float  # of the interval used, audio seconds
    end_seconds: float
    # peaks of its spectrogram (`monitor.maths.landmarks.pack`), by which copies are recognised
    landmarks: AnyArray = field(
        default_factory=partial(np.empty, 0, "<u2"), compare=False, repr=False
    )

    @property
    def used(self) -> bool:
        """True if part of the recording is in the template."""
        return self.end_seconds > self.start_seconds


@dataclass(frozen=True, slots=True)
class Speaker:
    """Enrolled speaker: a name, the template's sources, and their sound conditions."""

    name: str
    sources: tuple[SourceNote, ...] = ()
    # from `sound_of`, for each session in order; empty if unknown
    sound: AnyArray = field(default_factory=partial(np.empty, 0, "<f4"), compare=False)
    # slices of each separate session; empty for one session of all slices
    sessions: tuple[int, ...] = ()
    # first and last enrolment, as 2026-11-28; empty if unknown
    days: tuple[str, str] = ("", "")

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", *spelled_all([self.name]))

    @property
    def condition(self) -> Condition | None:
        """Mean sound conditions of all sessions, weighted by speech; None if unknown."""
        sounds = self.session_sounds.astype(float)
        if len(sounds) < 2:
            return _read_condition(sounds[0]) if len(sounds) else None
        weights = np.where(np.isnan(sounds), 0.0, sounds[:, :1])
        sums, total = (weights * np.nan_to_num(sounds)).sum(axis=0), weights.sum(axis=0)
        means = np.divide(sums, total, out=np.full(total.shape, np.nan), where=total > 0)
        return _read_condition(means)

    @property
    def conditions(self) -> tuple[Condition | None, ...]:
        """Sound conditions of each session."""
        sounds, count = self.session_sounds, max(len(self.sessions), 1)
        if len(sounds) != count:  # some are unknown
            return (self.condition,) * count
        return tuple(map(_read_condition, sounds))

    @property
    def session_sounds(self) -> AnyArray:
        """Rows of `sound_of`, one per session: shape (sessions, figures)."""
        return self.sound[: len(self.sound) // _WIDTH * _WIDTH].reshape(-1, _WIDTH)

    def merged(self, later: Speaker) -> Speaker:
        """Add the sources, sounds and sessions of a further enrolment."""
        return Speaker(
            self.name,
            self.sources + later.sources,
            np.concatenate([self.sound, later.sound]),
            self.sessions + later.sessions,
            (min(self.days[0], later.days[0]), max(self.days[1], later.days[1])),
        )


def sound_of(condition: Condition, seconds: float) -> AnyArray:
    """Pack conditions for ``Speaker.sound``: seconds, then the figures."""
    record = condition.record()
    figures = (np.nan if record[name] is None else record[name] for name in _FIGURES)
    return np.array([seconds, *figures], "<f4")


def is_day(value: object) -> bool:
    """Return whether a value is a day, such as 2026-11-28, or empty."""
    if not isinstance(value, str):
        return False
    with suppress(ValueError):
        return not value or date.fromisoformat(value).isoformat() == value
    return False


def _read_condition(sound: AnyArray) -> Condition:
    figures = (None if np.isnan(figure) else float(figure) for figure in sound[1:])
    return Condition.parse(dict(zip(_FIGURES, figures, strict=True))) or Condition()


def median_condition(sounds: AnyArray) -> Condition | None:
    """Return the median of each figure that most sounds have; None if no sound has figures."""
    figures = sounds[:, 1:].astype(float)
    has_figure = 2 * np.count_nonzero(~np.isnan(figures), axis=0) > len(figures)
    if not has_figure.any():
        return None
    medians = np.full(figures.shape[1], np.nan)
    medians[has_figure] = np.nanmedian(figures[:, has_figure], axis=0)
    return _read_condition(np.concatenate(([0.0], medians)))


def nearest_spelling(name: str, names: Iterable[str]) -> str:
    """Suggest a similar name, or return an empty text."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else ""


_SOUND, _LANDMARKS, _ROWS = "people/speaker/sound", "people/source/landmarks", "/rows"
"""Names of the arrays of all people in a store, and the suffix of the arrays of lengths."""
_TYPES = {_SOUND: "<f4", _LANDMARKS: "<u2"}
_NAMES, _ENTRIES, _NOTES = "people/names", "people/entries", "people/notes"
_SESSIONS = "people/sessions"


def pack_people(people: Sequence[Speaker]) -> tuple[list[Record], dict[str, AnyArray]]:
    """Return the people's entries in a store's header, and their arrays by name."""
    plain = [column.name for column in fields(SourceNote) if column.name != "landmarks"]
    entries: list[Record] = []
    for person in people:
        notes = [{name: getattr(note, name) for name in plain} for note in person.sources]
        sessions = {"sessions": person.sessions} if person.sessions else {}
        days = {"days": person.days} if any(person.days) else {}
        entries.append({"name": person.name, "sources": notes, **sessions, **days})
    landmarks = [note.landmarks for person in people for note in person.sources]
    arrays: dict[str, AnyArray] = {}
    for name, parts in ((_SOUND, [person.sound for person in people]), (_LANDMARKS, landmarks)):
        if any(map(len, parts)):
            arrays[name] = np.concatenate([np.asarray(array, _TYPES[name]) for array in parts])
            arrays[name + _ROWS] = np.array(list(map(len, parts)), np.int64)
    return entries, arrays


def unpack_people(entries: Sequence[Record], arrays: Mapping[str, AnyArray]) -> list[Speaker]:
    """Reverse ``pack_people``; StoreError, KeyError or TypeError if the entries are invalid."""
    sounds = _split_rows(_SOUND, arrays, len(entries))
    count = sum(len(entry["sources"]) for entry in entries)
    landmarks = iter(_split_rows(_LANDMARKS, arrays, count))
    return [
        _make_speaker(entry, sound, [next(landmarks) for _ in entry["sources"]])
        for entry, sound in zip(entries, sounds, strict=True)
    ]


def _make_speaker(entry: Record, sound: AnyArray, landmarks: Iterable[AnyArray]) -> Speaker:
    """Make a speaker; StoreError for values that enrolment cannot produce."""
    sources = tuple(
        SourceNote(**{**note, "hashes": tuple(note["hashes"])}, landmarks=peaks)
        for note, peaks in zip(entry["sources"], landmarks, strict=True)
    )
    first, last = entry.get("days", ("", ""))  # older versions kept none
    sessions = tuple(entry.get("sessions", ()))
    speaker = Speaker(entry["name"], sources, sound, sessions, (first, last))
    name = speaker.name
    if not is_name(name):
        raise StoreError(f"the name {name!a:.40} of a speaker cannot be printed")
    if not (is_day(first) and is_day(last) and first <= last):
        raise StoreError(f"invalid enrolment days of {name}")
    sounds = speaker.session_sounds
    if (
        sounds.size != sound.size
        or not (np.isnan(sound) | (np.abs(sound) <= _MOST_SOUND)).all()
        or not (sounds[:, 0] >= 0).all()
    ):
        raise StoreError(f"invalid sound conditions of {name}")
    for note in sources:
        if not (is_name(note.label) and is_name(note.session)):
            raise StoreError(f"a recording of {name} has a name that cannot be printed")
        seconds = (note.start_seconds, note.end_seconds)
        if not all(isinstance(s, int | float) and 0 <= s < float("inf") for s in seconds):
            raise StoreError(f"an interval of {name} is not a pair of seconds")
        if not all(isinstance(mark, str) for mark in note.hashes):
            raise StoreError(f"a fingerprint of {name} is not text")
    return speaker


def _row_ends(name: str, arrays: Mapping[str, AnyArray], count: int) -> IntArray:
    """Return the end of each person's rows in a store's array, after 0, shape (count + 1,)."""
    values, rows = arrays[name], arrays[name + _ROWS]
    fits = rows.dtype.kind in "iu" and rows.shape == (count,) and values.ndim == 1
    fits = fits and values.dtype == _TYPES.get(name, values.dtype)
    if not fits or rows.min(initial=0) < 0 or int(rows.sum()) != len(values):
        raise StoreError(f"{name} does not match the enrolled people")
    return np.concatenate(([0], np.cumsum(rows)))


def _split_rows(name: str, arrays: Mapping[str, AnyArray], count: int) -> list[AnyArray]:
    if name not in arrays:
        return [np.empty(0, _TYPES[name])] * count
    ends = _row_ends(name, arrays, count).tolist()
    return [arrays[name][first:last] for first, last in pairwise(ends)]


def pack_many(people: Sequence[Speaker]) -> dict[str, AnyArray]:
    """Return very many people as arrays only, for a store that `ManyPeople` reads."""
    entries, arrays = pack_people(people)
    details = ({key: e[key] for key in ("sources", "days") if e.get(key)} for e in entries)
    texts = [json.dumps(entry).encode() if entry else b"" for entry in details]
    sessions = [person.sessions for person in people]
    arrays[_SESSIONS] = np.array([count for person in sessions for count in person], np.int64)
    arrays[_SESSIONS + _ROWS] = np.array(list(map(len, sessions)), np.int64)
    names = "\n".join(person.name for person in people).encode()
    arrays[_NAMES] = np.frombuffer(names, np.uint8)
    arrays[_ENTRIES] = np.frombuffer(b"".join(texts), np.uint8)
    arrays[_ENTRIES + _ROWS] = np.array(list(map(len, texts)), np.int64)
    arrays[_NOTES] = np.array([len(person.sources) for person in people], np.int64)
    return arrays


class ManyPeople(Sequence[Speaker]):
    """People of a store, each created on access, so that a million need only their names' memory.

    ``apart`` has the indices of people with separate sessions, and ``noted`` those of people with
    recordings. StoreError if the arrays of `pack_many` do not match these people. An error in the
    data of one person is raised on access.
    """

    def __init__(self, arrays: Mapping[str, AnyArray]) -> None:
        text = bytes(arrays[_NAMES]).decode()
        names = text.split("\n")
        self.names = tuple(names) if text.isascii() else spelled_all(names)
        if not is_printable(" ".join(self.names)) or not all(map(str.strip, self.names)):
            raise StoreError("the name of a speaker cannot be printed")
        if max(map(len, self.names)) > LONGEST_NAME:
            raise StoreError("the name of a speaker is too long")
        self._arrays = {name: array for name, array in arrays.items() if name.startswith("people/")}
        count = len(self.names)
        notes = np.cumsum(arrays[_NOTES])
        if notes.shape != (count,) or arrays[_NOTES].dtype.kind not in "iu" or notes.min() < 0:
            raise StoreError("the recordings do not match the enrolled people")
        self._notes = np.concatenate(([0], notes))
        counts = {_ENTRIES: count, _SESSIONS: count, _SOUND: count, _LANDMARKS: int(notes[-1])}
        self._ends = {
            name: _row_ends(name, arrays, owners)
            for name, owners in counts.items()
            if name in arrays or name not in _TYPES
        }
        self.apart: IntArray = np.flatnonzero(np.diff(self._ends[_SESSIONS]))
        self.noted: IntArray = np.flatnonzero(np.diff(self._notes))

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> Speaker: ...

    @overload
    def __getitem__(self, index: slice) -> list[Speaker]: ...

    def __getitem__(self, index: int | slice) -> Speaker | list[Speaker]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        text = bytes(self._part(_ENTRIES, index))
        entry = {
            "sources": [],
            **(json.loads(text) if text else {}),
            "name": self.names[index],
            "sessions": self._part(_SESSIONS, index).tolist(),
        }
        first, last = self._notes[index : index + 2].tolist()
        if len(entry["sources"]) != last - first:
            raise StoreError(f"the number of recordings of {self.names[index]} does not match")
        landmarks = [self._part(_LANDMARKS, i) for i in range(first, last)]
        return _make_speaker(entry, self._part(_SOUND, index), landmarks)

    def mentioning(self, text: str) -> list[int]:
        """Find people by a text in their recordings' notes, which may match another field."""
        places, every = set(), self._arrays[_ENTRIES].tobytes()
        position = every.find(text.encode())
        while position >= 0:
            places.add(int(np.searchsorted(self._ends[_ENTRIES], position, side="right")) - 1)
            position = every.find(text.encode(), position + 1)
        return sorted(places)

    @cached_property
    def sounds(self) -> AnyArray | None:
        """Sounds, shape (N, figures), NaN if unknown; None if some have several sessions."""
        sounds = np.full((len(self), _WIDTH), np.nan, "<f4")
        if _SOUND not in self._arrays:
            return sounds
        rows = np.diff(self._ends[_SOUND])
        if not np.isin(rows, (0, _WIDTH)).all():
            return None
        sounds[rows > 0] = self._arrays[_SOUND].reshape(-1, _WIDTH)
        return sounds

    def _part(self, name: str, index: int) -> AnyArray:
        if name not in self._ends:
            return np.empty(0, _TYPES[name])
        first, last = self._ends[name][index : index + 2].tolist()
        return self._arrays[name][first:last]


def find_recordings(
    people: Sequence[Speaker], hashes: Iterable[str]
) -> list[tuple[Speaker, SourceNote]]:
    """Find enrolled sources with one of these fingerprints."""
    marks = set(hashes)
    if isinstance(people, ManyPeople):
        indices = sorted({index for mark in marks for index in people.mentioning(mark)})
        people = [people[index] for index in indices]
    return [
        (speaker, note)
        for speaker in people
        for note in speaker.sources
        if marks.intersection(note.hashes)
    ]


def compute_degradations(people: Sequence[Speaker], places: IntArray) -> FloatArray:
    """Compute the `degradation` of each session of people at these indices: (K, 3).

    First sessions come first, then further ones. If all conditions are unknown, there is one row.
    """
    if isinstance(people, ManyPeople) and not people.apart.size:
        sounds = people.sounds
        if sounds is not None and np.isnan(sounds).all():
            return degradation(None)[None]
    sessions = [people[i].conditions for i in places.tolist()]
    every = [conditions[0] for conditions in sessions] + [
        condition for conditions in sessions for condition in conditions[1:]
    ]
    return np.stack([degradation(sound) for sound in every])
