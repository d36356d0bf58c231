"""A population: who could be recognised, by which templates, under which rank models."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field, dataclass, field, fields, replace
from functools import partial
from operator import add
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.kinds import FeatureSpec, unlike_networks
from monitor.maths.condition import Condition, in_common
from monitor.maths.scores import SessionMixture, Similarity
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
    RankModel,
    RankModels,
    check_speakers,
    check_templates,
    spec_from,
)
from monitor.population.store import SCHEMA, read_store, write_store
from monitor.safe_text import printable
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
    write_store(path, "rank_model", header, arrays)


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
    with _refusing_incomplete(path):
        rank_models, note = RankModels.unpack(header["rank_models"], arrays), header.get("cohort")
        if note is None:
            return rank_models, None
        digest = str(note["sha256"])
    return rank_models, unpack_cohort(path, digest, header, arrays)


@contextmanager
def _refusing_incomplete(path: Path) -> Iterator[None]:
    """Say in one line that a store lacks something."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, StoreError) as error:
        raise StoreError(f"{path}: is incomplete ({printable(error)}); make it again") from error


# ------------------------------------------------------------------------------------------ people
# Everything that belongs to one person is a field of `Speaker` or `SourceNote`, declared once here.
# Storing, joining, adding a session and forgetting follow from the declaration: `monitor forget`
# leaves nothing behind because there is no second place where something could be.

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
        self.speakers = tuple(speakers)
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.features = dict(features)
        self.rank_models = rank_models or RankModels()
        self._mismatched = mismatched
        self.about = about
        self._cohort = cohort
        self.names = tuple(speaker.name for speaker in self.speakers)
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
        for speaker, count in zip(self.speakers, np.diff(self.offsets).tolist(), strict=True):
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

    @property
    def mismatched(self) -> bool:
        """Whether the rank models were learnt without some of these speakers."""
        taught = {name for rank_model in self.rank_models for name in rank_model.learnt_from}
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
        return float(have[have >= min(share * np.median(have), enough_seconds)].min())

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
            shape (members, M), or (members, S, M) where it compares with every slice.
        """
        by_slice = similarity.by_slice
        blocks = self._blocks(feature, scoring)
        made = (similarity.prepare(b if by_slice else b.sum(axis=1)) for b in blocks)
        return np.asarray(_joined(made, scoring))

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
        for place, index in enumerate(np.flatnonzero(scoring.members).tolist()):
            counts = self.speakers[index].sessions
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

    def fingerprint(self) -> str:
        """A hash over names and templates: two runs with the same one had the same population."""
        digest = hashlib.sha256("\n".join(self.names).encode())
        digest.update(self.offsets.tobytes())
        for name in sorted(self.features):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(self.features[name].slices).tobytes())
            digest.update((self.features[name].spec.network or "").encode())
        return digest.hexdigest()[:16]

    def overlapping(self, hashes: Iterable[str]) -> list[tuple[Speaker, SourceNote]]:
        """Enrolled sources that are the recording with these fingerprints."""
        wanted = set(hashes)
        return [
            (speaker, note)
            for speaker in self.speakers
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
            speakers=self.speakers + other.speakers,
            offsets=np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
            features=self._stacked(other),
            mismatched=self._mismatched or len(self.rank_models) > 0,
        )

    def _with(self, **changes: Any) -> Population:
        """The same but for some of the arguments."""
        kept = ("speakers", "offsets", "features", "rank_models", "about")
        more = {"mismatched": self._mismatched, "cohort": self._cohort}
        return Population(**({name: getattr(self, name) for name in kept} | more | changes))

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
            rank_models=RankModels(r for r in self.rank_models if set(r.features) <= set(kept)),
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

    def save(self, path: Path | str) -> None:
        """Write the store: npz without pickle, mode 0600, atomically.

        Raises:
            StoreError: it cannot be written; what was there before is untouched.
        """
        rank_models, arrays = self.rank_models.pack()
        people, more = pack_people(self.speakers)
        arrays |= more
        arrays["offsets"] = self.offsets
        features = {}
        for name, templates in self.features.items():
            features[name] = templates.spec.plain()
            arrays[f"slices/{name}"] = templates.slices
        header = {
            "slice_seconds": SLICE_SECONDS,
            "speakers": people,
            "features": features,
            "rank_models": rank_models,
            "mismatched": self._mismatched,
            "about": self.about,
        }
        if self.cohort is not None:
            header["cohort"], more = pack_cohort(self.cohort)
            arrays |= more
        several = any(speaker.sessions for speaker in self.speakers)
        write_store(Path(path), "population", header, arrays, schema=SCHEMA if several else 1)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a store made by ``save``.

        Raises:
            StoreError: missing, damaged or foreign; SchemaError where it is too new.
        """
        path = Path(path)
        header, arrays = read_store(path, "population", without=(COHORT,))
        with _refusing_incomplete(path):
            if header["slice_seconds"] != SLICE_SECONDS:
                raise StoreError(f"slices of {header['slice_seconds']} s, not {SLICE_SECONDS:g}")
            if arrays["offsets"].dtype.kind not in "iu":
                raise StoreError("the offsets of its slices are no whole numbers")
            features = {
                name: FeatureTemplates(spec_from(name, each), arrays[f"slices/{name}"])
                for name, each in header["features"].items()
            }
            note = header.get("cohort")
            made = cls(
                unpack_people(header["speakers"], arrays),
                arrays["offsets"],
                features,
                RankModels.unpack(header["rank_models"], arrays),
                mismatched=bool(header["mismatched"]),
                about=str(header["about"]),
                cohort=None if note is None else noted_cohort(path, note, features),
            )
            check_speakers(made.speakers)
            for templates in made.features.values():
                check_templates(templates)
            empty = set.intersection(*(set(made.empty(name)) for name in made.features))
            if empty:
                raise StoreError(f"the template of {min(empty)} has nothing in it")
        return made

    @classmethod
    def reference(cls) -> Self:
        """The population that ships with the package: readers of LibriSpeech, with their models.

        LibriVox volunteers, from LibriSpeech (Panayotov et al., 2015, CC BY 4.0); see ``about``.
        """
        return cls.load(REFERENCE)


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
