"""A population: who could be recognised, by which templates, under which rank models."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import cached_property, partial
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, overload

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.files import MAPPED, Rows
from monitor.kinds import FeatureSpec, unlike_networks
from monitor.maths.condition import Condition, degradation, in_common
from monitor.maths.scores import SessionMixture, Similarity
from monitor.maths.statistics import median
from monitor.phrases import plural
from monitor.population.cohort import (
    COHORT,
    Cohort,
    FeatureTemplates,
    noted_cohort,
    pack_cohort,
    unpack_cohort,
)
from monitor.population.rank_model import (
    RANK_MODEL,
    RankModel,
    RankModels,
    check_speakers,
    check_templates,
    spec_from,
)
from monitor.population.store import SCHEMA, read_store, refusing_incomplete, write_store
from monitor.safe_text import LONGEST_NAME, is_name
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

REFERENCE = Path(__file__).parent / "reference" / "population.npz"
"""The population that ships, with its rank models."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What calibration brings a population: rank models, and the table that explains them.

    Attributes:
        rank_models: of every set of features and kind of session; a cross-session rank model that
            could not be learnt is the prior's, its ``origin`` "shipped".
        rows: one a cell that was fitted.
        several_sessions: speakers with two sessions or more.
        cohort: background speakers that scores were set against; None without.
    """

    rank_models: RankModels
    rows: tuple[Mapping[str, Any], ...]
    several_sessions: int = 0
    cohort: Cohort | None = None


def save_rank_models(path: Path, rank_models: RankModels, cohort: Cohort | None = None) -> None:
    """Write rank models, without templates: npz without pickle, mode 0600, atomically."""
    packed, arrays = rank_models.pack()
    header: dict[str, Any] = {"rank_models": packed}
    if cohort is not None:
        header["cohort"], more = pack_cohort(cohort)
        arrays |= more
    write_store(path, "rank_model", header, arrays, schema=SCHEMA)


def load_rank_models(path: Path) -> tuple[RankModels, Cohort | None]:
    """Read what ``save_rank_models`` wrote: models, and the cohort of their evidence, if any.

    Of `REFERENCE`, a population, those that ship are read.

    Raises:
        StoreError: it is no such file, incomplete or damaged.
        SchemaError: a newer version wrote it.
    """
    if path == REFERENCE:
        reference = Population.reference()
        return reference.rank_models, reference.cohort
    header, arrays = read_store(path, "rank_model")
    with refusing_incomplete(path):
        # all are read: a file of nothing else is looked through as a whole
        rank_models = RankModels(RankModels.unpack(header["rank_models"], arrays, path))
        note = header.get("cohort")
        if note is None:
            return rank_models, None
        digest = str(note["sha256"])
    return rank_models, unpack_cohort(path, digest, header, arrays)


# ------------------------------------------------------------------------------------------ people
# Everything that belongs to one person is a field of `Speaker` or `SourceNote`, declared once here.
# Storing, joining, adding a session and forgetting follow from the declaration: `monitor people
# FILE.npz --forget NAME` leaves nothing behind because there is no second place where something
# could be.

_MERGE, _DTYPE = "merge", "dtype"
_OF_SPEAKERS, _OF_SOURCES, _ROWS = "people/speaker/", "people/source/", "/rows"
"""What the names of their arrays in a store begin with, and how that of their lengths ends."""


def merged_by(rule: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """Metadata of a field of `Speaker`: what was there and a further session, merged."""
    return {_MERGE: rule}


def stored_as(dtype: str) -> dict[str, Any]:
    """Metadata of a field that a store keeps as one array of this type, any number of rows.

    The field is best empty by default, and ``compare=False``.
    """
    return {_DTYPE: dtype}


@dataclass(frozen=True, slots=True)
class SourceNote:
    """What a template was made from: enough to recognise the recording, not to hear it.

    Attributes:
        label: the file's name.
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
        default_factory=partial(np.empty, 0, "<u2"), metadata=stored_as("<u2"),
        compare=False, repr=False,
    )  # fmt: skip

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


def _one_after_the_other(mine: AnyArray, later: AnyArray) -> AnyArray:
    return np.concatenate([mine, later])


def _condition(sound: AnyArray) -> Condition:
    figures = (None if np.isnan(each) else float(each) for each in sound[1:])
    return Condition.of(dict(zip(_SOUND, figures, strict=True))) or Condition()


@dataclass(frozen=True, slots=True)
class Speaker:
    """An enrolled speaker: a name, where the template comes from, and what that sounds like.

    Attributes:
        name: unique among those enrolled.
        sources: the recordings.
        sound: as `sound_of` makes it, of one session after the other; empty where nobody knows.
        sessions: how many slices each session has that was enrolled apart, in order; empty for one
            session, of all slices.
    """

    name: str
    sources: tuple[SourceNote, ...] = field(default=(), metadata=merged_by(add))
    sound: AnyArray = field(
        default_factory=lambda: np.zeros(0, "<f4"),
        compare=False,
        metadata=stored_as("<f4") | merged_by(_one_after_the_other),
    )
    sessions: tuple[int, ...] = field(default=(), metadata=merged_by(add))

    @property
    def condition(self) -> Condition | None:
        """What the speech of all sessions sounds like, their mean; None where nobody knows."""
        each = self._sounds.astype(float)
        if len(each) < 2:
            return _condition(each[0]) if len(each) else None
        weights = np.where(np.isnan(each), 0.0, each[:, :1])
        sums, total = (weights * np.nan_to_num(each)).sum(axis=0), weights.sum(axis=0)
        made = np.divide(sums, total, out=np.full(total.shape, np.nan), where=total > 0)
        return _condition(made)

    @property
    def conditions(self) -> tuple[Condition | None, ...]:
        """What each session sounds like."""
        each, count = self._sounds, max(len(self.sessions), 1)
        if len(each) != count:  # of some nobody knows
            return (self.condition,) * count
        return tuple(map(_condition, each))

    @property
    def _sounds(self) -> AnyArray:
        """Shape (sessions, figures)."""
        width = 1 + len(_SOUND)
        return self.sound[: len(self.sound) // width * width].reshape(-1, width)


def nearest_spelling(name: str, known: Iterable[str]) -> str:
    """Asks whether another name was meant; empty where none is alike."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else ""


_S = TypeVar("_S", bound=Speaker)


def extended(speaker: _S, later: _S) -> _S:
    """A speaker with what a further session brings, each field by its own rule."""
    values = {
        each.name: each.metadata[_MERGE](getattr(speaker, each.name), getattr(later, each.name))
        for each in fields(speaker)
        if each.name != "name"
    }
    return type(speaker)(name=speaker.name, **values)


def pack_people(people: Sequence[Speaker]) -> tuple[list[dict[str, Any]], dict[str, AnyArray]]:
    """What a store keeps of people: entries of its header, and arrays by name.

    An array of each is kept as one for all, with how many rows are whose.
    """
    entries = [_plain(each) | {"sources": list(map(_plain, each.sources))} for each in people]
    for entry in entries:
        if not entry["sessions"]:  # earlier versions do not know it
            del entry["sessions"]
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
    made = (
        source(**{**note, "hashes": tuple(note["hashes"])}, **more)
        for note, more in zip(notes, of_notes, strict=True)
    )
    people = [
        speaker(
            **{
                **entry,
                "sources": tuple(next(made) for _ in entry["sources"]),
                "sessions": tuple(entry.get("sessions", ())),
            },
            **more,
        )
        for entry, more in zip(entries, of_people, strict=True)
    ]
    for each in people:
        try:
            _ = each.condition
            known = each._sounds
            sane = known.size == len(each.sound) and bool((known[:, 0] >= 0).all())
            sane = sane and bool(np.isfinite(known[:, 0]).all())
        except ValueError:
            sane = False
        if not sane:
            raise StoreError(f"what the template of {each.name!a:.40} sounds like is no sound's")
    return people


_NAMES, _ENTRIES, _NOTES = "people/names", "people/entries", "people/notes"
_SESSIONS = "people/sessions"


def pack_many(people: Sequence[Speaker]) -> dict[str, AnyArray]:
    """What a store keeps of very many people, arrays alone: `ManyPeople` reads it."""
    entries, arrays = pack_people(people)
    texts = []
    for entry in entries:
        told = {k: value for k, value in entry.items() if value and k not in ("name", "sessions")}
        texts.append(json.dumps(told).encode() if told else b"")
    sessions = [each.sessions for each in people]
    arrays[_SESSIONS] = np.array([count for each in sessions for count in each], np.int64)
    arrays[_SESSIONS + _ROWS] = np.array(list(map(len, sessions)), np.int64)
    names = "\n".join(each.name for each in people).encode()
    arrays[_NAMES] = np.frombuffer(names, np.uint8)
    arrays[_ENTRIES] = np.frombuffer(b"".join(texts), np.uint8)
    arrays[_ENTRIES + _ROWS] = np.array(list(map(len, texts)), np.int64)
    arrays[_NOTES] = np.array([len(each.sources) for each in people], np.int64)
    return arrays


class ManyPeople(Sequence[Speaker]):
    """People of a store, each made when asked for: a million of them take their names' memory.

    Args:
        arrays: as `pack_many` makes them.

    Attributes:
        names: of everybody.
        apart: places of those with sessions that are kept apart, shape (K,).
        noted: places of those with recordings, shape (K,).

    Raises:
        StoreError: the arrays are not of these people; of one of them, when asked for.
    """

    def __init__(self, arrays: Mapping[str, AnyArray]) -> None:
        self.names = tuple(bytes(arrays[_NAMES]).decode().split("\n"))
        if not "".join(self.names).isprintable() or not all(map(str.strip, self.names)):
            raise StoreError("the name of a speaker cannot be printed")
        if max(map(len, self.names)) > LONGEST_NAME:
            raise StoreError("the name of a speaker is too long")
        self._arrays = {name: each for name, each in arrays.items() if name.startswith("people/")}
        count = len(self.names)
        self._ends = {
            name: self._ends_of(name, arrays[name + _ROWS], count) for name in (_ENTRIES, _SESSIONS)
        }
        notes = np.cumsum(arrays[_NOTES])
        if notes.shape != (count,) or arrays[_NOTES].dtype.kind not in "iu" or notes.min() < 0:
            raise StoreError("the recordings are not of the people that are enrolled")
        self._notes = np.concatenate(([0], notes))
        for place, many in ((_OF_SPEAKERS, count), (_OF_SOURCES, int(notes[-1]))):
            for name in list(self._arrays):
                if name.startswith(place) and not name.endswith(_ROWS):
                    rows = self._arrays[f"{name}{_ROWS}"]
                    self._ends[name] = self._ends_of(name, rows, many)
        self.apart: IntArray = np.flatnonzero(np.diff(self._ends[_SESSIONS]))
        self.noted: IntArray = np.flatnonzero(np.diff(self._notes))

    def _ends_of(self, name: str, rows: AnyArray, count: int) -> IntArray:
        sound = rows.dtype.kind in "iu" and rows.shape == (count,) and self._arrays[name].ndim == 1
        if not sound or rows.min(initial=0) < 0 or int(rows.sum()) != len(self._arrays[name]):
            raise StoreError(f"{name} is not of the people that are enrolled")
        return np.concatenate(([0], np.cumsum(rows)))

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, place: int) -> Speaker: ...

    @overload
    def __getitem__(self, place: slice) -> list[Speaker]: ...

    def __getitem__(self, place: int | slice) -> Speaker | list[Speaker]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        text = bytes(self._part(_ENTRIES, place))
        entry = {
            "sources": [],
            **(json.loads(text) if text else {}),
            "name": self.names[place],
            "sessions": self._part(_SESSIONS, place).tolist(),
        }
        first, last = self._notes[place : place + 2].tolist()
        if len(entry["sources"]) != last - first:
            raise StoreError(f"the recordings of {self.names[place]} are not as many as they were")
        arrays: dict[str, AnyArray] = {}
        for name in self._ends:
            if name.startswith(_OF_SPEAKERS):
                parts = [self._part(name, place)]
            elif name.startswith(_OF_SOURCES):
                parts = [self._part(name, i) for i in range(first, last)]
            else:
                continue
            values = self._arrays[name]
            arrays[name] = np.concatenate([values[:0], *parts])
            arrays[f"{name}{_ROWS}"] = np.array(list(map(len, parts)), np.int64)
        (made,) = unpack_people([entry], arrays)
        check_speakers([made])
        return made

    def mentioning(self, text: str) -> list[int]:
        """Places of those in whose recordings' notes a text stands; it may stand for another."""
        found, every = set(), self._arrays[_ENTRIES].tobytes()
        place = every.find(text.encode())
        while place >= 0:
            found.add(int(np.searchsorted(self._ends[_ENTRIES], place, side="right")) - 1)
            place = every.find(text.encode(), place + 1)
        return sorted(found)

    @cached_property
    def sounds(self) -> AnyArray | None:
        """Shape (N, figures): NaN where nobody knows; None where some have several sessions'."""
        name, width = f"{_OF_SPEAKERS}sound", 1 + len(_SOUND)
        made = np.full((len(self), width), np.nan, "<f4")
        if name not in self._arrays:
            return made
        rows = np.diff(self._ends[name])
        if not np.isin(rows, (0, width)).all():
            return None
        made[rows > 0] = self._arrays[name].reshape(-1, width)
        return made

    def _part(self, name: str, place: int) -> AnyArray:
        first, last = self._ends[name][place : place + 2].tolist()
        return self._arrays[name][first:last]


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


# -------------------------------------------------------------------------------------- population

SLICE_SECONDS = 5.0
"""Templates are kept in slices of so many speech seconds, so that they can be cut to one length."""
MISMATCH = 0.8
"""A template under this share of the others' length breaks the model (docs/method.md section 4)."""
USEFUL_SECONDS = 30.0
"""Templates are all cut to the shortest, unless that has less: then it is left out, and told."""
_BLOCK = 2048  # members whose slices are made wide at once
MAPPED_BYTES = 1 << 30
"""A store with more templates keeps them as they are, to be mapped and not read."""


class Prepared(NamedTuple):
    """What a store keeps beside the slices: templates as a similarity compares them.

    Attributes:
        seconds: D that they are cut to.
        similarity: its name.
        matrix: shape (members, M), single precision.
    """

    seconds: float
    similarity: str
    matrix: AnyArray


@dataclass(frozen=True, slots=True)
class Scoring:
    """One common template length, and who has it.

    Attributes:
        seconds: D, speech seconds; every template is cut to it.
        members: shape (N,), False where a template is shorter: too short to cut the others to, or
            than the D that was asked for, or that of the watched speaker.
    """

    seconds: float
    members: BoolArray


class Population:
    """Templates of N speakers and, once calibrated, the rank models that say what a rank means.

    Args:
        speakers: names must be unique.
        offsets: shape (N + 1,): speaker j owns slices ``offsets[j]:offsets[j + 1]``.
        features: templates by feature name.
        rank_models: may be empty.
        mismatched: True where the rank models were learnt without some of the speakers. Rank models
            that say whom they were learnt from know better.
        about: whose voices these are: attribution, one paragraph.
        cohort: background speakers, or what reads them once they are asked for.

    Example:
        >>> reference = Population.reference()
        >>> len(reference) >= 45
        True
    """

    def __init__(
        self,
        speakers: Sequence[Speaker],
        offsets: IntArray,
        features: Mapping[str, FeatureTemplates],
        rank_models: RankModels | None = None,
        *,
        mismatched: bool = False,
        about: str = "",
        cohort: Cohort | Callable[[], Cohort] | None = None,
    ) -> None:
        many = isinstance(speakers, ManyPeople)
        self.speakers: Sequence[Speaker] = speakers if many else tuple(speakers)
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.features = dict(features)
        self.rank_models = rank_models or RankModels()
        self._mismatched = mismatched
        self.about = about
        self._cohort = cohort
        self._prepared: dict[str, Prepared] = {}
        self._known_fingerprint: str | None = None
        self.names = (
            speakers.names
            if isinstance(speakers, ManyPeople)
            else tuple(speaker.name for speaker in self.speakers)
        )
        if len(set(self.names)) != len(self.names):
            raise StoreError("a population may not enrol two speakers of the same name")
        slices = {templates.slices.shape[0] for templates in self.features.values()}
        if (
            self.offsets.shape != (len(self.names) + 1,)
            or self.offsets[0] != 0
            or (np.diff(self.offsets) < 0).any()
            or slices != {int(self.offsets[-1])}
        ):
            raise StoreError("templates and speakers do not belong together")
        counts = np.diff(self.offsets)
        for place in self._with_sessions():
            speaker, count = self.speakers[place], int(counts[place])
            sound = all(type(each) is int and each > 0 for each in speaker.sessions)
            if speaker.sessions and not (sound and sum(speaker.sessions) == count):
                raise StoreError(
                    f"the sessions of {speaker.name!a:.40} are not those of its slices"
                )
        for name, templates in self.features.items():
            if templates.slices.ndim != 2 or templates.slices.shape[1] != templates.spec.size:
                raise StoreError(
                    f"templates of {name!r} must have shape (slices, {templates.spec.size})"
                )

    def __len__(self) -> int:
        return len(self.speakers)

    def _with_sessions(self) -> list[int]:
        """Places of those whose sessions are kept apart."""
        if isinstance(self.speakers, ManyPeople):
            return [int(place) for place in self.speakers.apart]
        return [place for place, each in enumerate(self.speakers) if each.sessions]

    @property
    def mismatched(self) -> bool:
        """Whether the rank models were learnt without some of these speakers."""
        taught = self.rank_models.learnt_from
        if not taught:  # a rank model of an earlier version, or the shipped one
            return self._mismatched
        return not taught.issuperset(self.names)

    def index(self, name: str) -> int:
        """Position of a speaker; a UsageError names the nearest spelling."""
        if name in self.names:
            return self.names.index(name)
        hint = nearest_spelling(name, self.names) or f"enrolled: {plural(len(self), 'speaker')}"
        raise UsageError(f"nobody called {name!r} is enrolled; {hint}")

    def empty(self, feature: str) -> tuple[str, ...]:
        """Speakers with a template in which there is nothing of this feature."""
        if feature in self._prepared:
            matrix = self._prepared[feature].matrix
            told = np.concatenate([part.any(axis=1) for part in _parts(matrix)])
            if told.all() and len(told) == len(self):
                return ()
        slices = self.features[feature].slices.any(axis=1)
        some = np.zeros(len(self), np.bool_)
        some[np.repeat(np.arange(len(self)), np.diff(self.offsets))[slices]] = True
        nothing = ~some & (np.diff(self.offsets) > 0)
        return tuple(name for name, none in zip(self.names, nothing, strict=True) if none)

    @property
    def specs(self) -> dict[str, FeatureSpec]:
        """What the frames of each feature look like."""
        return {name: each.spec for name, each in self.features.items()}

    def scorers(self, rank_model: RankModel) -> dict[str, Similarity]:
        """The similarity of each feature of a rank model, in its order."""
        named = zip(rank_model.features, rank_model.similarities, strict=True)
        return {name: self.features[name].spec.kind.similarity(how) for name, how in named}

    @property
    def cohort(self) -> Cohort | None:
        """Background speakers who are nobody's template, made as the templates are; None without.

        Read from the store at first use. Nobody of them is a candidate, and nothing of theirs
        leaves the store.

        Raises:
            StoreError: the store has gone or changed meanwhile, or what it holds is no cohort.
        """
        if callable(self._cohort):
            self._cohort = self._cohort()
        return None if self._cohort is None else self._cohort.only(self.features)

    def condition(self, name: str | None = None) -> Condition | None:
        """What a template sounds like, or what most of them do; None where nobody knows."""
        if name is not None:
            return self.speakers[self.index(name)].condition
        if isinstance(self.speakers, ManyPeople) and (sounds := self.speakers.sounds) is not None:
            figures = sounds[:, 1:].astype(float)
            known = 2 * np.count_nonzero(~np.isnan(figures), axis=0) > len(figures)
            most = [float(np.nanmedian(row)) if is_known else np.nan
                    for row, is_known in zip(figures.T, known, strict=True)]  # fmt: skip
            return _condition(np.array([0.0, *most])) if known.any() else None
        return in_common([speaker.condition for speaker in self.speakers])

    def conditions(self, name: str | None = None) -> tuple[Condition | None, ...]:
        """What each session of somebody sounds like; of nobody, what most templates do."""
        if name is None:
            return (self.condition(),)
        return self.speakers[self.index(name)].conditions

    @property
    def template_seconds(self) -> AnyArray:
        """Length of each template, speech seconds, shape (N,)."""
        return np.diff(self.offsets) * SLICE_SECONDS

    @property
    def common_seconds(self) -> float:
        """What all but much shorter templates have, speech seconds; 0 with nobody enrolled."""
        return self._shortest(MISMATCH)

    def _shortest(self, share: float, enough_seconds: float = math.inf) -> float:
        """The shortest template that has this share of the median, or as much as is enough."""
        have = self.template_seconds
        if not len(self):
            return 0.0
        return float(have[have >= min(share * median(have), enough_seconds)].min())

    def scoring(self, seconds: float | None = None, *, watch: str | None = None) -> Scoring:
        """The common template length: the shortest one's, so that everybody is compared.

        A template under 30 s that is much shorter than the others is left out instead: cut to as
        little, nobody's would say much.

        Args:
            seconds: D to use instead, rounded down to a whole slice.
            watch: whom all is about: D is what all but much shorter templates have, and at most
                what that one has.

        Raises:
            UsageError: fewer than two templates are that long.
        """
        have = self.template_seconds
        if seconds is not None:
            if not SLICE_SECONDS <= seconds < math.inf:
                raise UsageError(f"template_seconds={seconds:g} must be at least {SLICE_SECONDS:g}")
            common = math.floor(seconds / SLICE_SECONDS) * SLICE_SECONDS
        else:
            common = self._shortest(MISMATCH, USEFUL_SECONDS)
            if watch is not None:
                common = min(self.common_seconds, float(have[self.index(watch)]))
        members = have >= common
        if common <= 0 or members.sum() < 2:
            raise UsageError(
                f"fewer than two templates have {common:g} speech seconds; the longest has "
                f"{have.max(initial=0.0):g}"
            )
        return Scoring(common, members)

    def templates(self, feature: str, scoring: Scoring, *, by_slice: bool = False) -> AnyArray:
        """Templates of the scoring's members cut to its length.

        Returns:
            shape (members, M); with ``by_slice`` the slices they are made of, (members, S, M).
        """
        if feature not in self.features:
            known = ", ".join(sorted(self.features))
            raise UsageError(f"the population has no templates of {feature!r}, only of {known}")
        blocks = self._blocks(feature, scoring)
        return _joined((b if by_slice else b.sum(axis=1) for b in blocks), scoring)

    def prepared(self, feature: str, scoring: Scoring, similarity: Similarity) -> FloatArray:
        """What `templates` gives as a similarity compares it, without holding both.

        Returns:
            shape (members, M), or (members, S, M) where it compares with every slice. In single
            precision of a store that is mapped, where the similarity has a bound on what that errs
            by: `exact` gives some of them in double.
        """
        known = self._prepared.get(feature)
        if known is not None and (known.seconds, known.similarity) == (
            scoring.seconds,
            similarity.name,
        ):
            return known.matrix
        single = bool(self._prepared) and similarity.bound is not None
        made = self._prepared_blocks(feature, scoring, similarity)
        if single:
            made = (block.astype(np.float32) for block in made)
        return np.asarray(_joined(made, scoring))

    def _prepared_blocks(
        self, feature: str, scoring: Scoring, similarity: Similarity
    ) -> Iterator[FloatArray]:
        by_slice = similarity.by_slice
        for block in self._blocks(feature, scoring):
            yield similarity.prepare(block if by_slice else block.sum(axis=1))

    def exact(
        self, feature: str, scoring: Scoring, similarity: Similarity, places: IntArray
    ) -> FloatArray:
        """As `prepared`, of the members at some places alone, in double precision: (K, M)."""
        slices, kind = self.features[feature].slices, self.features[feature].spec.kind
        firsts = self.offsets[:-1][scoring.members][places]
        each = np.arange(round(scoring.seconds / SLICE_SECONDS))
        rows = slices[firsts[:, None] + each].astype(kind.wide)
        if not np.isfinite(rows).all():
            raise StoreError(f"templates of {feature} are no numbers: the store is damaged")
        return similarity.prepare(rows.sum(axis=1))

    def sessions_apart(self, scoring: Scoring) -> SessionMixture | None:
        """Whose the templates of `prepared_apart` are; None where nobody has any."""
        owner = [place for place, _ in self._apart(scoring)]
        people = int(scoring.members.sum())
        return SessionMixture(people, np.array(owner, np.int64)) if owner else None

    def prepared_apart(self, feature: str, scoring: Scoring, similarity: Similarity) -> FloatArray:
        """As `prepared`, of the further sessions of the members: shape (K, M) or (K, S, M).

        The template of a session is as long as all others; where the session is shorter, speech of
        the speaker's other sessions is added to it, the first one's first.
        """
        slices, kind = self.features[feature].slices, self.features[feature].spec.kind
        each = np.stack([slices[places].astype(kind.wide) for _, places in self._apart(scoring)])
        return np.asarray(similarity.prepare(each if similarity.by_slice else each.sum(axis=1)))

    def _apart(self, scoring: Scoring) -> Iterator[tuple[int, IntArray]]:
        """Of each further session of a member: the member's place, and the slices."""
        size = round(scoring.seconds / SLICE_SECONDS)
        members = np.cumsum(scoring.members) - 1
        for index in self._with_sessions():
            if not scoring.members[index]:
                continue
            place, counts = int(members[index]), self.speakers[index].sessions
            every = np.arange(self.offsets[index], self.offsets[index + 1])
            begin = 0
            for number, count in enumerate(counts):
                own = every[begin : begin + count]
                begin += count
                if number:
                    rest = np.setdiff1d(every, own)
                    yield place, np.concatenate([own, rest])[:size]

    def _blocks(self, feature: str, scoring: Scoring) -> Iterator[AnyArray]:
        """Slices of some members after the other, shape (some, S, M); wide, so that they add up."""
        slices, kind = self.features[feature].slices, self.features[feature].spec.kind
        firsts = self.offsets[:-1][scoring.members]
        places = np.arange(round(scoring.seconds / SLICE_SECONDS))
        for start in range(0, firsts.size, _BLOCK):
            yield slices[firsts[start : start + _BLOCK, None] + places].astype(kind.wide)

    def degradations(self, scoring: Scoring) -> FloatArray:
        """How far the sound of each template is from a studio's (`degradation`): shape (K, 3).

        The first sessions of the members, then their further ones; a single row where nothing is
        known of any.
        """
        places = np.flatnonzero(scoring.members)
        if isinstance(self.speakers, ManyPeople) and not self.speakers.apart.size:
            sounds = self.speakers.sounds
            if sounds is not None and np.isnan(sounds).all():
                return degradation(None)[None]
        each = [self.speakers[i].conditions for i in places.tolist()]
        every = [own[0] for own in each] + [one for own in each for one in own[1:]]
        return np.stack([degradation(sound) for sound in every])

    def fingerprint(self) -> str:
        """A hash over names and templates: two runs with the same one had the same population.

        Of a store that is mapped as it was when that was written.
        """
        if self._known_fingerprint is not None:
            return self._known_fingerprint
        digest = hashlib.sha256("\n".join(self.names).encode())
        digest.update(self.offsets.tobytes())
        for name in sorted(self.features):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(self.features[name].slices).tobytes())
            digest.update((self.features[name].spec.network or "").encode())
        return digest.hexdigest()[:16]

    def recorded(self, first: str | None = None) -> Iterator[Speaker]:
        """Speakers of whom recordings are noted, the one of that name before the others."""
        if first is not None:
            yield self.speakers[self.index(first)]
        people = self.speakers
        places = people.noted.tolist() if isinstance(people, ManyPeople) else range(len(people))
        for place in places:
            if self.names[place] != first:
                yield people[place]

    def overlapping(self, hashes: Iterable[str]) -> list[tuple[Speaker, SourceNote]]:
        """Enrolled sources that are the recording with these fingerprints."""
        wanted = set(hashes)
        people = self.speakers
        if isinstance(people, ManyPeople):
            places = sorted({place for each in wanted for place in people.mentioning(each)})
            people = [people[place] for place in places]
        return [
            (speaker, note)
            for speaker in people
            for note in speaker.sources
            if wanted.intersection(note.hashes)
        ]

    def joined(self, other: Population) -> Population:
        """This population and further speakers; rank models of this one stay, marked as mismatched.

        Raises:
            UsageError: a name is enrolled already, or the features do not match.
        """
        twice = sorted(set(self.names) & set(other.names))
        if twice:
            raise UsageError(f"{', '.join(twice[:3])} enrolled already; choose another name")
        return self._with(
            speakers=(*self.speakers, *other.speakers),
            offsets=np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
            features=self._stacked(other),
            mismatched=self._mismatched or len(self.rank_models) > 0,
        )

    def _with(self, **changes: Any) -> Population:
        """The same but for some of the arguments."""
        kept = ("speakers", "offsets", "features", "rank_models", "about")
        more = {"mismatched": self._mismatched, "cohort": self._cohort}
        made = Population(**({name: getattr(self, name) for name in kept} | more | changes))
        if not {"speakers", "offsets"} & set(changes):
            same = {name: each for name, each in self._prepared.items() if name in made.features}
            made._prepared = same
        if not {"speakers", "offsets", "features"} & set(changes):
            made._known_fingerprint = self._known_fingerprint
        return made

    def extended(self, other: Population) -> Population:
        """This population with further speech of speakers who are there, and further speakers.

        Slices and sources of a further session stand behind those that are there, and the session
        is kept apart (`sessions_apart`). Rank models stay; of further speakers they are mismatched.

        Raises:
            UsageError: some of the audio is enrolled already, or the features do not match.
        """
        for note in (note for speaker in other.speakers for note in speaker.sources if note.used):
            if whose := [who.name for who, old in self.overlapping(note.hashes) if old.used]:
                raise UsageError(
                    f"{note.label} is enrolled already, as {whose[0]}: give other recordings"
                )
        people = {each.name: each for each in self.speakers}
        for each, count in zip(other.speakers, np.diff(other.offsets).tolist(), strict=True):
            known = people.get(each.name)
            if known is None:
                people[each.name] = each
                continue
            there = int(np.diff(self.offsets)[self.index(each.name)])
            people[each.name] = extended(
                *(
                    replace(one, sessions=one.sessions or (size,) * (size > 0))
                    for one, size in ((known, there), (each, count))
                )
            )
        place = {name: i for i, name in enumerate(people)}
        counts = np.concatenate([np.diff(self.offsets), np.diff(other.offsets)])
        owner = np.repeat([place[name] for name in (*self.names, *other.names)], counts)
        order = np.argsort(owner, kind="stable")
        totals = np.bincount(owner, minlength=len(people))
        features = self._stacked(other).items()
        return self._with(
            speakers=tuple(people.values()),
            offsets=np.concatenate(([0], np.cumsum(totals))),
            features={name: replace(each, slices=each.slices[order]) for name, each in features},
            mismatched=self._mismatched or (len(self.rank_models) > 0 and len(people) > len(self)),
        )

    def _stacked(self, other: Population) -> dict[str, FeatureTemplates]:
        """The slices of both by feature, those of the other one behind.

        Raises:
            UsageError: the features do not match.
        """
        features = {}
        for name, mine in self.features.items():
            theirs = other.features.get(name)
            own, new = mine.spec, None if theirs is None else theirs.spec
            if theirs is None or new is None or (new.kind, new.size) != (own.kind, own.size):
                raise UsageError(f"the new templates have no {name!r} of size {own.size}")
            if new.network != own.network:
                what = unlike_networks(
                    name, "the new templates", new.network, "the others", own.network
                )
                raise UsageError(f"{what}; enrol everybody again with this version")
            wide = np.result_type(mine.slices, theirs.slices)
            slices = np.concatenate([mine.slices.astype(wide), theirs.slices.astype(wide)])
            features[name] = replace(mine, slices=slices)
        return features

    def only(self, names: Iterable[str]) -> Population:
        """The same speakers with these features alone, and the rank models about no others.

        Raises:
            UsageError: there is no such feature.
        """
        kept = tuple(names)
        if missing := [name for name in kept if name not in self.features]:
            raise UsageError(
                f"the population has no {', '.join(missing)}; it has {', '.join(self.features)}"
            )
        return self._with(
            features={name: self.features[name] for name in self.features if name in kept},
            rank_models=self.rank_models.within(kept),
        )

    def without(self, name: str) -> Population:
        """Everybody else, under the same rank models.

        Raises:
            UsageError: nobody is called so.
        """
        self.index(name)
        return self.chosen(each for each in self.names if each != name)

    def chosen(self, names: Iterable[str]) -> Population:
        """These speakers alone, in the order of the population, under the same rank models.

        Raises:
            UsageError: one of them is not enrolled.
        """
        kept = np.zeros(len(self), np.bool_)
        kept[[self.index(name) for name in names]] = True
        counts = np.diff(self.offsets)
        slices = np.repeat(kept, counts)
        features = self.features.items()
        return self._with(
            speakers=[s for s, keep in zip(self.speakers, kept.tolist(), strict=True) if keep],
            offsets=np.concatenate(([0], np.cumsum(counts[kept]))),
            features={name: replace(each, slices=each.slices[slices]) for name, each in features},
        )

    def calibrated(self, made: Calibration) -> Population:
        """The same speakers with what `monitor.calibrate` learnt: models, and the cohort of these.

        Example::

            people = enrol(recordings)
            people.population.calibrated(calibrate(people)).save("us.npz")
        """
        return self.with_rank_models(made.rank_models, made.cohort)

    def with_rank_models(self, rank_models: RankModels, cohort: Cohort | None = None) -> Population:
        """The same speakers under other rank models; what `calibrate` learnt goes to `calibrated`.

        Args:
            rank_models: any of the same features.
            cohort: that their evidence was learnt against; None leaves the one that is there.

        Warns:
            UserWarning: a rank model has evidence, and there is no cohort to weigh it with.
        """
        if (
            cohort is None
            and self._cohort is None
            and any(rank_model.evidence for rank_model in rank_models)
        ):
            warnings.warn(
                "without the cohort that these rank models were learnt against nothing is said of "
                "evidence, nor of other crowds: use calibrated(calibration), or give the cohort",
                stacklevel=2,
            )
        kept = self._cohort if cohort is None else cohort
        return self._with(rank_models=rank_models, cohort=kept)

    def save(self, path: Path | str, *, mapped: bool | None = None) -> None:
        """Write the store: npz without pickle, mode 0600, atomically.

        Args:
            path: of the store.
            mapped: leave the templates in it as they are, beside what embeddings are compared by,
                so that a store of any size is mapped and not read; None for those with more than
                1 GiB of templates.

        Raises:
            StoreError: it cannot be written; what was there before is untouched.
        """
        rank_models, arrays = self.rank_models.pack()
        if mapped is None:
            large = sum(templates.slices.nbytes for templates in self.features.values())
            mapped = large > MAPPED_BYTES
        header: dict[str, Any] = {
            "slice_seconds": SLICE_SECONDS,
            "speakers": [],
            "features": {name: each.spec.plain() for name, each in self.features.items()},
            "rank_models": rank_models,
            "mismatched": self._mismatched,
            "about": self.about,
        }
        arrays["offsets"] = self.offsets
        lying: dict[str, Rows] = {}
        if mapped:
            arrays |= pack_many(self.speakers)
            lying, header["prepared"] = self._lying()
            header["fingerprint"] = self.fingerprint()
        else:
            header["speakers"], more = pack_people(self.speakers)
            arrays |= more
            for name, templates in self.features.items():
                arrays[f"slices/{name}"] = templates.slices
        if self.cohort is not None:
            header["cohort"], more = pack_cohort(self.cohort)
            arrays |= more
        schema = 3 if mapped else 2 if self._with_sessions() else 1
        if len(self.rank_models):
            schema = SCHEMA
        write_store(Path(path), "population", header, arrays, mapped=lying, schema=schema)

    def _lying(self) -> tuple[dict[str, Rows], dict[str, Any]]:
        """What lies in a mapped store as it is, and how what is prepared was."""
        rows: dict[str, Rows] = {}
        noted = {}
        for name, each in self.features.items():
            rows[f"slices/{name}"] = Rows(each.slices.shape, each.slices.dtype, _parts(each.slices))
            how = each.spec.kind.similarity()
            if how.bound is None or np.count_nonzero(self.template_seconds) < 2:
                continue
            scoring = self.scoring()
            shape = int(scoring.members.sum()), each.spec.size
            made = self._prepared_blocks(name, scoring, how)
            rows[f"prepared/{name}"] = Rows(shape, np.dtype("<f4"), made)
            noted[name] = {"seconds": scoring.seconds, "similarity": how.name}
        return rows, noted

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a store made by ``save``; templates of a large one are mapped.

        Raises:
            StoreError: missing, damaged or foreign; SchemaError where it is too new.
        """
        path = Path(path)
        header, arrays = read_store(path, "population", without=(COHORT,), later=(RANK_MODEL,))
        with refusing_incomplete(path):
            if header["slice_seconds"] != SLICE_SECONDS:
                raise StoreError(f"slices of {header['slice_seconds']} s, not {SLICE_SECONDS:g}")
            if arrays["offsets"].dtype.kind not in "iu":
                raise StoreError("the offsets of its slices are no whole numbers")
            mapped = _NAMES in arrays
            lie = MAPPED if mapped else ""
            features = {
                name: FeatureTemplates(spec_from(name, each), arrays[f"{lie}slices/{name}"])
                for name, each in header["features"].items()
            }
            note = header.get("cohort")
            made = cls(
                ManyPeople(arrays) if mapped else unpack_people(header["speakers"], arrays),
                arrays["offsets"],
                features,
                RankModels.unpack(header["rank_models"], arrays, path),
                mismatched=bool(header["mismatched"]),
                about=str(header["about"]),
                cohort=None if note is None else noted_cohort(path, note, features),
            )
            if mapped:  # numbers of which are looked at as they are used
                made._take_prepared(header, arrays)
                return made
            check_speakers(made.speakers)
            for templates in made.features.values():
                check_templates(templates)
            empty = set.intersection(*(set(made.empty(name)) for name in made.features))
            if empty:
                raise StoreError(f"the template of {min(empty)} has nothing in it")
        return made

    def _take_prepared(self, header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        fingerprint = header["fingerprint"]
        if not isinstance(fingerprint, str) or not is_name(fingerprint):
            raise StoreError("its fingerprint is no text")
        self._known_fingerprint = fingerprint
        for name, note in header["prepared"].items():
            spec, matrix = self.features[name].spec, arrays[f"{MAPPED}prepared/{name}"]
            seconds, how = float(note["seconds"]), spec.kind.similarity(note["similarity"])
            shape = int(self.scoring(seconds).members.sum()), spec.size
            if matrix.dtype != np.float32 or matrix.shape != shape or how.bound is None:
                raise StoreError(f"what is prepared of {name} is not of its templates")
            self._prepared[name] = Prepared(seconds, how.name, matrix)
        for name, each in self.features.items():
            if each.slices.dtype.kind not in ("iu" if each.spec.kind.counted else "f"):
                raise StoreError(f"templates of {name} are of the wrong type")

    @classmethod
    def reference(cls) -> Self:
        """The population that ships with the package: readers of LibriSpeech, with their models.

        LibriVox volunteers, from LibriSpeech (Panayotov et al., 2015, CC BY 4.0); see ``about``.
        """
        return cls.load(REFERENCE)


def _parts(rows: AnyArray) -> Iterator[AnyArray]:
    """Some thousand rows after the other."""
    for first in range(0, len(rows), _BLOCK):
        yield rows[first : first + _BLOCK]


def _joined(blocks: Iterator[AnyArray], scoring: Scoring) -> AnyArray:
    """Rows for all members, block after block."""
    made: AnyArray | None = None
    row = 0
    for block in blocks:
        if made is None:
            made = np.empty((int(scoring.members.sum()), *block.shape[1:]), block.dtype)
        made[row : row + len(block)] = block
        row += len(block)
    assert made is not None  # a scoring has two members or more
    return made
