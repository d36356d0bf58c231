"""A population: templates of enrolled people, their rank models, and the store of both."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.files import MAPPED, Rows
from monitor.kinds import FeatureSpec, unlike_networks
from monitor.maths.condition import Condition, average_condition, degradation
from monitor.maths.scores import SessionMixture, Similarity
from monitor.maths.statistics import median
from monitor.phrases import plural
from monitor.population.cohort import (
    COHORT,
    Cohort,
    FeatureTemplates,
    check_templates,
    pack_cohort,
    read_cohort_note,
    spec_from,
    unpack_cohort,
)
from monitor.population.people import (
    ManyPeople,
    SourceNote,
    Speaker,
    median_condition,
    nearest_spelling,
    pack_many,
    pack_people,
    unpack_people,
)
from monitor.population.rank_model import RANK_MODEL, RankModel, RankModels
from monitor.population.store import read_store, refusing_incomplete, write_store
from monitor.safe_text import is_name, spelled
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray, Record

REFERENCE = Path(__file__).parent / "reference" / "population.npz"
"""The population that ships, with its rank models: readers of LibriSpeech (LibriVox volunteers).

V. Panayotov, G. Chen, D. Povey, S. Khudanpur, "Librispeech: an ASR corpus based on public domain
audio books", ICASSP 2015, CC BY 4.0. Numbers derived from their speech, no audio; rebuilt by
``python -m recipes.reference``.
"""
DEMO_SPEAKER = "4406"
"""Reader of the demo, enrolled from another chapter and not in any network's training data."""


def demo_frames() -> Path:
    """Return ten minutes of the demo's reader as frames without audio."""
    return REFERENCE.with_name("demo.npz")


@dataclass(frozen=True, slots=True)
class Calibration:
    """Result of a calibration: rank models, and the table that explains them."""

    rank_models: RankModels  # a cross-session model that could not be fitted is the prior's
    rows: tuple[Record, ...]  # one per fitted cell
    several_sessions: int = 0  # speakers with two sessions or more
    cohort: Cohort | None = None  # background speakers that scores were set against
    population: Population | None = None  # the people enrolled, calibrated

    def save(self, path: Path | str) -> None:
        """Save the calibrated people, or without any the rank models alone."""
        if self.population is None:
            save_rank_models(Path(path), self.rank_models, self.cohort)
        else:
            self.population.save(path)


def save_rank_models(path: Path, rank_models: RankModels, cohort: Cohort | None = None) -> None:
    """Write rank models, without templates: npz without pickle, mode 0600, atomically."""
    packed, arrays = rank_models.pack()
    header: dict[str, object] = {"rank_models": packed}
    if cohort is not None:
        header["cohort"], more = pack_cohort(cohort)
        arrays |= more
    write_store(path, "rank_model", header, arrays)


def load_rank_models(path: Path) -> tuple[RankModels, Cohort | None]:
    """Read what ``save_rank_models`` wrote: models, and the cohort of their evidence, if any.

    Of `REFERENCE`, a population, those that ship are read. StoreError of a file that is damaged.
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


# -------------------------------------------------------------------------------------- population

SLICE_SECONDS = 5.0
"""Speech seconds per slice. Slices allow templates to be cut to one length."""
MISMATCH = 0.8
"""A template under this share of the others' length breaks the model (docs/method.md section 4)."""
_USEFUL_SECONDS = 30.0  # all are cut to the shortest, unless that has less: then it is left out
_BLOCK = 2048  # members converted to a wider type at a time
_MAPPED_BYTES = 1 << 30  # larger templates are stored uncompressed and mapped


@dataclass(frozen=True, slots=True)
class Scoring:
    """Common template length, and who has it."""

    seconds: float  # D, speech seconds; every template is cut to it
    members: BoolArray  # shape (N,), False where a template is shorter


class Population:
    """Templates of N speakers and, once calibrated, their rank models.

    Args:
        speakers: names must be unique.
        offsets: shape (N + 1,): speaker j owns slices ``offsets[j]:offsets[j + 1]``.
        features: templates by feature name.
        rank_models: may be empty.
        mismatched: True if some speakers were not in the calibration. Rank models that list their
            speakers override it.
        about: attribution of the voices, one paragraph.
        cohort: background speakers, or a function that reads them on first use.
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
        if isinstance(speakers, ManyPeople):
            self.speakers: Sequence[Speaker] = speakers
            self.names = speakers.names
            apart = speakers.apart.tolist()
        else:
            self.speakers = tuple(speakers)
            self.names = tuple(speaker.name for speaker in self.speakers)
            apart = [index for index, speaker in enumerate(self.speakers) if speaker.sessions]
        self._with_sessions: list[int] = apart
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.features = dict(features)
        self.rank_models = rank_models or RankModels()
        self._mismatched = mismatched
        self.about = about
        self._cohort = cohort
        # by feature, D and similarity, of a mapped store: shape (members, M), single precision
        self._prepared: dict[tuple[str, float, str], AnyArray] = {}
        self._known_fingerprint: str | None = None
        if len(set(self.names)) != len(self.names):
            raise StoreError("a population cannot have two speakers of the same name")
        slices = {templates.slices.shape[0] for templates in self.features.values()}
        if (
            self.offsets.shape != (len(self.names) + 1,)
            or self.offsets[0] != 0
            or (np.diff(self.offsets) < 0).any()
            or slices != {int(self.offsets[-1])}
        ):
            raise StoreError("templates and speakers do not belong together")
        counts = np.diff(self.offsets)
        for index in self._with_sessions:
            speaker, count = self.speakers[index], int(counts[index])
            sound = all(type(size) is int and size > 0 for size in speaker.sessions)
            if not (sound and sum(speaker.sessions) == count):
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
        """True if some of these speakers were not in the calibration."""
        taught = self.rank_models.learnt_from
        if not taught:  # the shipped ones do not list them
            return self._mismatched
        return not taught.issuperset(self.names)

    def index(self, name: str) -> int:
        """Return the position of a speaker; a UsageError names the nearest spelling."""
        for known in (name, spelled(name)):
            if known in self.names:
                return self.names.index(known)
        hint = nearest_spelling(name, self.names) or f"enrolled: {plural(len(self), 'speaker')}"
        raise UsageError(f"{name!r} is not enrolled; {hint}")

    def empty(self, feature: str) -> tuple[str, ...]:
        """List speakers with a template that has nothing of this feature."""
        for (name, *_), matrix in self._prepared.items():
            is_complete = name == feature and len(matrix) == len(self)
            if is_complete and all(rows.any(axis=1).all() for rows in _split_rows(matrix)):
                return ()
        slices = self.features[feature].slices.any(axis=1)
        is_present = np.zeros(len(self), np.bool_)
        is_present[np.repeat(np.arange(len(self)), np.diff(self.offsets))[slices]] = True
        nothing = ~is_present & (np.diff(self.offsets) > 0)
        return tuple(name for name, is_empty in zip(self.names, nothing, strict=True) if is_empty)

    @property
    def specs(self) -> dict[str, FeatureSpec]:
        """The format of each feature's frames."""
        return {name: templates.spec for name, templates in self.features.items()}

    def scorers(self, rank_model: RankModel) -> dict[str, Similarity]:
        """Return the similarity of each feature of a rank model, in its order."""
        named = zip(rank_model.features, rank_model.similarities, strict=True)
        return {name: self.features[name].spec.kind.similarity(method) for name, method in named}

    @property
    def cohort(self) -> Cohort | None:
        """Background speakers without templates, made like the templates; or None.

        Read from the store at first use; StoreError if it has been deleted or changed since.
        """
        cohort = self._cohort  # looked at once: several threads may share a population
        if callable(cohort):
            cohort = self._cohort = cohort()
        return None if cohort is None else cohort.only(self.features)

    def condition(self, name: str | None = None) -> Condition | None:
        """Return the conditions of one template, or of most; None if unknown."""
        if name is not None:
            return self.speakers[self.index(name)].condition
        if isinstance(self.speakers, ManyPeople) and (sounds := self.speakers.sounds) is not None:
            return median_condition(sounds)
        return average_condition([speaker.condition for speaker in self.speakers])

    def conditions(self, name: str | None = None) -> tuple[Condition | None, ...]:
        """Return the sound of each session of a speaker; without a name, that of most templates."""
        if name is None:
            return (self.condition(),)
        return self.speakers[self.index(name)].conditions

    def voiced_shares(self, feature: str, name: str | None = None) -> tuple[float, ...]:
        """Return the share of speech with frames of a counted feature, of each of their sessions.

        Without a name that of a sample of all templates; empty if there is no speech.
        """
        templates = self.features[feature]
        rows, sizes = templates.slices, list[int]()
        if name is None:
            rows = rows[:: max(1, len(rows) // _BLOCK)]
        else:
            index = self.index(name)
            rows = rows[self.offsets[index] : self.offsets[index + 1]]
            sizes = list(self.speakers[index].sessions[:-1])
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

    def _shortest(self, share: float, enough_seconds: float = math.inf) -> float:
        """Return the shortest length that is at least this fraction of the median, or enough."""
        have = self.template_seconds
        if not len(self):
            return 0.0
        return float(have[have >= min(share * median(have), enough_seconds)].min())

    def scoring(self, seconds: float | None = None, *, watch: str | None = None) -> Scoring:
        """Choose the common template length, the shortest, so that all speakers are compared.

        A template under 30 s that is much shorter than the others is excluded instead.

        Args:
            seconds: D to use instead, rounded down to a whole slice.
            watch: the watched speaker. D is then the length of all but much shorter templates, at
                most that of this speaker's.

        Raises:
            UsageError: fewer than two templates are that long.
        """
        have = self.template_seconds
        if seconds is not None:
            if not SLICE_SECONDS <= seconds < math.inf:
                raise UsageError(f"template_seconds={seconds:g} must be at least {SLICE_SECONDS:g}")
            common = math.floor(seconds / SLICE_SECONDS) * SLICE_SECONDS
        else:
            common = self._shortest(MISMATCH, _USEFUL_SECONDS)
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
        """Cut templates of the scoring's members to its length: shape (members, M).

        With ``by_slice`` the slices they are made of, (members, S, M).
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
        """Prepare templates of the members at some places, in double precision: (K, M)."""
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
        """Yield the place and the slices of each further session of a member."""
        size = round(scoring.seconds / SLICE_SECONDS)
        members = np.cumsum(scoring.members) - 1
        for index in self._with_sessions:
            if not scoring.members[index]:
                continue
            member, counts = int(members[index]), self.speakers[index].sessions
            every = np.arange(self.offsets[index], self.offsets[index + 1])
            begin = 0
            for number, count in enumerate(counts):
                session = every[begin : begin + count]
                begin += count
                if number:
                    others = np.setdiff1d(every, session)
                    yield member, np.concatenate([session, others])[:size]

    def _blocks(self, feature: str, scoring: Scoring) -> Iterator[AnyArray]:
        """Yield slices of members, block by block: (block, S, M), wide enough to be summed."""
        slices, kind = self.features[feature].slices, self.features[feature].spec.kind
        firsts = self.offsets[:-1][scoring.members]
        places = np.arange(round(scoring.seconds / SLICE_SECONDS))
        for start in range(0, firsts.size, _BLOCK):
            yield slices[firsts[start : start + _BLOCK, None] + places].astype(kind.wide)

    def degradations(self, scoring: Scoring) -> FloatArray:
        """Compute how far each template's sound is from a studio's (`degradation`): (K, 3).

        First sessions of the members, then further ones; one row where nothing is known of any.
        """
        places = np.flatnonzero(scoring.members)
        if isinstance(self.speakers, ManyPeople) and not self.speakers.apart.size:
            sounds = self.speakers.sounds
            if sounds is not None and np.isnan(sounds).all():
                return degradation(None)[None]
        sessions = [self.speakers[i].conditions for i in places.tolist()]
        every = [conditions[0] for conditions in sessions] + [
            condition for conditions in sessions for condition in conditions[1:]
        ]
        return np.stack([degradation(sound) for sound in every])

    def fingerprint(self) -> str:
        """Compute a hash over names and templates; of a mapped store as it was when written."""
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
        """Yield speakers with noted recordings, the one of that name before the others."""
        if first is not None:
            yield self.speakers[self.index(first)]
        people = self.speakers
        places = people.noted.tolist() if isinstance(people, ManyPeople) else range(len(people))
        for index in places:
            if self.names[index] != first:
                yield people[index]

    def overlapping(self, hashes: Iterable[str]) -> list[tuple[Speaker, SourceNote]]:
        """Find enrolled sources that are the recording with these fingerprints."""
        marks = set(hashes)
        people = self.speakers
        if isinstance(people, ManyPeople):
            places = sorted({index for mark in marks for index in people.mentioning(mark)})
            people = [people[index] for index in places]
        return [
            (speaker, note)
            for speaker in people
            for note in speaker.sources
            if marks.intersection(note.hashes)
        ]

    def joined(self, other: Population) -> Population:
        """Add further speakers; rank models of this one stay, marked as mismatched.

        UsageError if a name is enrolled already, or the features do not match.
        """
        twice = sorted(set(self.names) & set(other.names))
        if twice:
            raise UsageError(f"{', '.join(twice[:3])} enrolled already; choose another name")
        return self._added(other)

    def extended(self, other: Population) -> Population:
        """Add speech to existing speakers, and new speakers.

        Slices and sources of a new session are appended, and the session stays separate
        (`sessions_apart`). Rank models are unchanged, and mismatched for new speakers. Raises
        UsageError if some audio is already enrolled or the features do not match.
        """
        self.refuse_enrolled(other)
        return self._added(other)

    def refuse_enrolled(self, other: Population) -> None:
        """Raise a UsageError if some of the audio is enrolled already, by whatever name."""
        for note in (note for speaker in other.speakers for note in speaker.sources if note.used):
            if whose := [who.name for who, old in self.overlapping(note.hashes) if old.used]:
                raise UsageError(
                    f"{note.label} is enrolled already, as {whose[0]}: give other recordings"
                )

    def _added(self, other: Population) -> Population:
        people = {speaker.name: speaker for speaker in self.speakers}
        counts_before, added_counts = np.diff(self.offsets), np.diff(other.offsets)
        for later, count in zip(other.speakers, added_counts.tolist(), strict=True):
            if (speaker := people.get(later.name)) is not None:
                sizes = int(counts_before[self.index(later.name)]), count
                # all slices count as one session where none are kept apart
                before, later = (
                    replace(person, sessions=person.sessions or (size,) * (size > 0))
                    for person, size in zip((speaker, later), sizes, strict=True)
                )
                later = before.merged(later)
            people[later.name] = later
        indices = {name: i for i, name in enumerate(people)}
        counts = np.concatenate([counts_before, added_counts])
        owner = np.repeat([indices[name] for name in (*self.names, *other.names)], counts)
        order = np.argsort(owner, kind="stable")
        totals = np.bincount(owner, minlength=len(people))
        return self._with(
            speakers=tuple(people.values()),
            offsets=np.concatenate(([0], np.cumsum(totals))),
            features={
                name: replace(templates, slices=templates.slices[order])
                for name, templates in self._stacked(other).items()
            },
            mismatched=self._mismatched or (len(self.rank_models) > 0 and len(people) > len(self)),
        )

    def with_details(self, speakers: Sequence[Speaker]) -> Population:
        """Set other details of the same speakers, in their order: names, sources, sound."""
        return self._with(speakers=tuple(speakers))

    def _with(self, **changes: Any) -> Population:
        """Return a copy with some of the arguments changed."""
        names = ("speakers", "offsets", "features", "rank_models", "about")
        more = {"mismatched": self._mismatched, "cohort": self._cohort}
        population = Population(**({name: getattr(self, name) for name in names} | more | changes))
        if not {"speakers", "offsets"} & set(changes):
            prepared = self._prepared.items()
            population._prepared = {
                k: matrix for k, matrix in prepared if k[0] in population.features
            }
        if not {"speakers", "offsets", "features"} & set(changes):
            population._known_fingerprint = self._known_fingerprint
        return population

    def _stacked(self, other: Population) -> dict[str, FeatureTemplates]:
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

    def only(self, names: Iterable[str]) -> Population:
        """Select features and their rank models; UsageError for unknown features."""
        chosen = tuple(names)
        if missing := [name for name in chosen if name not in self.features]:
            raise UsageError(
                f"the population has no {', '.join(missing)}; it has {', '.join(self.features)}"
            )
        return self._with(
            features={name: self.features[name] for name in self.features if name in chosen},
            rank_models=self.rank_models.within(chosen),
        )

    def without(self, name: str) -> Population:
        """Remove a speaker and keep the rank models; UsageError for an unknown name."""
        gone = self.names[self.index(name)]
        return self.chosen(other for other in self.names if other != gone)

    def chosen(self, names: Iterable[str]) -> Population:
        """Select enrolled speakers in the population's order and keep the rank models."""
        is_chosen = np.zeros(len(self), np.bool_)
        is_chosen[[self.index(name) for name in names]] = True
        counts = np.diff(self.offsets)
        slices = np.repeat(is_chosen, counts)
        return self._with(
            speakers=[s for s, keep in zip(self.speakers, is_chosen.tolist(), strict=True) if keep],
            offsets=np.concatenate(([0], np.cumsum(counts[is_chosen]))),
            features={
                name: replace(templates, slices=templates.slices[slices])
                for name, templates in self.features.items()
            },
        )

    def calibrated(self, calibration: Calibration) -> Population:
        """Set the rank models of `monitor.calibrate` and their cohort."""
        return self.with_rank_models(calibration.rank_models, calibration.cohort)

    def with_rank_models(self, rank_models: RankModels, cohort: Cohort | None = None) -> Population:
        """Set other rank models; use `calibrated` for the result of `calibrate`.

        Args:
            rank_models: models of the same features.
            cohort: cohort of their evidence; None keeps the current one, with a warning if it is
                missing.
        """
        if (
            cohort is None
            and self._cohort is None
            and any(rank_model.evidence for rank_model in rank_models)
        ):
            warnings.warn(
                "Evidence and larger crowds are unavailable without the cohort of these rank "
                "models. Use calibrated(calibration), or pass the cohort.",
                stacklevel=2,
            )
        new_cohort = self._cohort if cohort is None else cohort
        return self._with(rank_models=rank_models, cohort=new_cohort)

    def save(self, path: Path | str, *, mapped: bool | None = None) -> None:
        """Write the store: npz without pickle, mode 0600, atomically.

        Args:
            path: of the store.
            mapped: store templates uncompressed, with the prepared embeddings, so that a store of
                any size can be mapped. None does so for more than 1 GiB of templates.

        Raises:
            StoreError: it cannot be written; an earlier file is unchanged.
        """
        rank_models, arrays = self.rank_models.pack()
        if mapped is None:
            large = sum(templates.slices.nbytes for templates in self.features.values())
            mapped = large > _MAPPED_BYTES
        header: dict[str, object] = {
            "slice_seconds": SLICE_SECONDS,
            "speakers": [],
            "features": {name: templates.spec.plain() for name, templates in self.features.items()},
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
        write_store(Path(path), "population", header, arrays, mapped=lying)

    def _lying(self) -> tuple[dict[str, Rows], dict[str, dict[str, object]]]:
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
            scoring = self.scoring()
            shape = int(scoring.members.sum()), templates.spec.size
            blocks = self._prepared_blocks(name, scoring, similarity)
            rows[f"prepared/{name}"] = Rows(shape, np.dtype("<f4"), blocks)
            noted[name] = {"seconds": scoring.seconds, "similarity": similarity.name}
        return rows, noted

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a store made by ``save``; templates of a large one are mapped.

        StoreError if it is missing, damaged or foreign; SchemaError if it is too new.
        """
        path = Path(path)
        header, arrays = read_store(path, "population", without=(COHORT,), later=(RANK_MODEL,))
        with refusing_incomplete(path):
            if header["slice_seconds"] != SLICE_SECONDS:
                raise StoreError(f"slices of {header['slice_seconds']} s, not {SLICE_SECONDS:g}")
            if arrays["offsets"].dtype.kind not in "iu":
                raise StoreError("the offsets of its slices are not whole numbers")
            mapped = "fingerprint" in header  # the templates lie in the file as they are
            lie = MAPPED if mapped else ""
            features = {
                name: FeatureTemplates(spec_from(name, spec), arrays[f"{lie}slices/{name}"])
                for name, spec in header["features"].items()
            }
            note = header.get("cohort")
            population = cls(
                ManyPeople(arrays) if mapped else unpack_people(header["speakers"], arrays),
                arrays["offsets"],
                features,
                RankModels.unpack(header["rank_models"], arrays, path),
                mismatched=bool(header["mismatched"]),
                about=str(header["about"]),
                cohort=None if note is None else read_cohort_note(path, note, features),
            )
            if mapped:  # numbers of which are looked at as they are used
                population._take_prepared(header, arrays)
                return population
            for templates in population.features.values():
                check_templates(templates)
            empty = set.intersection(*(set(population.empty(name)) for name in population.features))
            if empty:
                raise StoreError(f"the template of {min(empty)} is empty")
        return population

    def _take_prepared(self, header: Record, arrays: Mapping[str, AnyArray]) -> None:
        fingerprint = header["fingerprint"]
        if not isinstance(fingerprint, str) or not is_name(fingerprint):
            raise StoreError("its fingerprint is not text")
        self._known_fingerprint = fingerprint
        for name, note in header["prepared"].items():
            spec, matrix = self.features[name].spec, arrays[f"{MAPPED}prepared/{name}"]
            seconds, similarity = float(note["seconds"]), spec.kind.similarity(note["similarity"])
            shape = int(self.scoring(seconds).members.sum()), spec.size
            if matrix.dtype != np.float32 or matrix.shape != shape or similarity.bound is None:
                raise StoreError(f"what is prepared of {name} does not match its templates")
            self._prepared[name, seconds, similarity.name] = matrix
        for name, templates in self.features.items():
            if templates.slices.dtype.kind not in ("iu" if templates.spec.kind.counted else "f"):
                raise StoreError(f"templates of {name} are of the wrong type")

    @classmethod
    def reference(cls) -> Self:
        """Load the population that ships with the package, with models: see `REFERENCE`."""
        return cls.load(REFERENCE)


def _split_rows(rows: AnyArray) -> Iterator[AnyArray]:
    """Yield some thousand rows after the other."""
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
