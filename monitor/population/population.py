"""`Population` has the templates of enrolled people and their rank models, and stores both."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, Self

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.maths.condition import Condition, average_condition
from monitor.npz import MAPPED, Rows
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
    compute_degradations,
    find_recordings,
    median_condition,
    nearest_spelling,
    pack_many,
    pack_people,
    unpack_people,
)
from monitor.population.rank_model import RANK_MODEL, RankModels
from monitor.population.store import read_store, refusing_incomplete, write_store
from monitor.population.templates import SLICE_SECONDS, Scoring, Templates
from monitor.safe_text import is_name, spelled
from monitor.types import FloatArray, IntArray, Record

REFERENCE = Path(__file__).parent / "reference" / "population.npz"
"""The shipped population with its rank models: readers of LibriSpeech (LibriVox volunteers).

V. Panayotov, G. Chen, D. Povey, S. Khudanpur, "Librispeech: an ASR corpus based on public domain
audio books", ICASSP 2015, CC BY 4.0. It contains numbers derived from their speech, and no audio.
It is rebuilt by ``python -m recipes.reference``.
"""
DEMO_SPEAKER = "4406"
"""Speaker of the demo, enrolled from another chapter and not in any network's training data."""


def demo_frames() -> Path:
    """Return ten minutes of the demo's speaker, as frames without audio."""
    return REFERENCE.with_name("demo.npz")


@dataclass(frozen=True, slots=True)
class Calibration:
    """Result of a calibration: rank models, and a table of their cells."""

    rank_models: RankModels  # a cross-session model that could not be fitted is the prior's
    rows: tuple[Record, ...]  # one per fitted cell
    several_sessions: int = 0  # speakers with two sessions or more
    cohort: Cohort | None = None  # background speakers that normalised the scores
    population: Population | None = None  # the people enrolled, calibrated

    def save(self, path: Path | str) -> None:
        """Save the calibrated population, or the rank models if ``population`` is None."""
        if self.population is None:
            save_rank_models(Path(path), self.rank_models, self.cohort)
        else:
            self.population.save(path)


def save_rank_models(path: Path, rank_models: RankModels, cohort: Cohort | None = None) -> None:
    """Write rank models without templates: npz without pickle, mode 0600, atomically."""
    packed, arrays = rank_models.pack()
    header: dict[str, object] = {"rank_models": packed}
    if cohort is not None:
        header["cohort"], more = pack_cohort(cohort)
        arrays |= more
    write_store(path, "rank_model", header, arrays)


def load_rank_models(path: Path) -> tuple[RankModels, Cohort | None]:
    """Read a file of `save_rank_models`: the models, and the cohort of their evidence or None.

    `REFERENCE` reads the shipped models. StoreError if the file is damaged.
    """
    if path == REFERENCE:
        reference = Population.reference()
        return reference.rank_models, reference.cohort
    header, arrays = read_store(path, "rank_model")
    with refusing_incomplete(path):
        # all are read, because the file contains nothing else
        rank_models = RankModels(RankModels.unpack(header["rank_models"], arrays, path))
        note = header.get("cohort")
        if note is None:
            return rank_models, None
        digest = str(note["sha256"])
    return rank_models, unpack_cohort(path, digest, header, arrays)


_MAPPED_BYTES = 1 << 30  # larger templates are stored uncompressed and mapped


class Population(Templates):
    """Templates of N speakers and, once calibrated, their rank models.

    Args:
        speakers: enrolled speakers, with unique names.
        offsets: shape (N + 1,): speaker j owns slices ``offsets[j]:offsets[j + 1]``.
        features: templates by feature name.
        rank_models: calibrated rank models; None before calibration.
        mismatched: whether some speakers were not in the calibration. Ignored if the rank models
            list their speakers.
        about: attribution of the voices, in one paragraph.
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
            names, apart = speakers.names, speakers.apart.tolist()
        else:
            self.speakers = tuple(speakers)
            names = tuple(speaker.name for speaker in self.speakers)
            apart = [index for index, speaker in enumerate(self.speakers) if speaker.sessions]
        sessions = {index: self.speakers[index].sessions for index in apart}
        super().__init__(names, offsets, features, sessions)
        self.rank_models = rank_models or RankModels()
        self._mismatched = mismatched
        self.about = about
        self._cohort = cohort
        self._known_fingerprint: str | None = None

    @property
    def mismatched(self) -> bool:
        """True if some of these speakers were not in the calibration."""
        taught = self.rank_models.training_speakers
        if not taught:  # the shipped ones do not list them
            return self._mismatched
        return not taught.issuperset(self.names)

    def index(self, name: str) -> int:
        """Return a speaker's index; a UsageError suggests the nearest spelling."""
        for spelling in (name, spelled(name)):
            if spelling in self.names:
                return self.names.index(spelling)
        hint = nearest_spelling(name, self.names) or f"enrolled: {plural(len(self), 'speaker')}"
        raise UsageError(f"{name!r} is not enrolled; {hint}")

    @property
    def cohort(self) -> Cohort | None:
        """Background speakers, who are not enrolled; None without a cohort.

        It is read from the store at first use. StoreError if the store was deleted or changed
        since.
        """
        cohort = self._cohort  # read once, because several threads may share a population
        if callable(cohort):
            cohort = self._cohort = cohort()
        return None if cohort is None else cohort.only(self.features)

    def condition(self, name: str | None = None) -> Condition | None:
        """Return one template's sound conditions, or the typical ones; None if unknown."""
        if name is not None:
            return self.speakers[self.index(name)].condition
        if isinstance(self.speakers, ManyPeople) and (sounds := self.speakers.sounds) is not None:
            return median_condition(sounds)
        return average_condition([speaker.condition for speaker in self.speakers])

    def conditions(self, name: str | None = None) -> tuple[Condition | None, ...]:
        """Return conditions per session of a speaker; without a name, the typical conditions."""
        if name is None:
            return (self.condition(),)
        return self.speakers[self.index(name)].conditions

    def voiced_shares(self, feature: str, name: str | None = None) -> tuple[float, ...]:
        """Return the fraction of speech with frames of a counted feature, per session.

        Without a name, the sessions are a sample of all templates. Empty if there is no speech.
        """
        return self._voiced_shares(feature, None if name is None else self.index(name))

    def scoring(self, seconds: float | None = None, *, watch: str | None = None) -> Scoring:
        """Choose the length to which all templates are cut, the shortest template's.

        All speakers are then compared. However, a template under 30 s that is much shorter than the
        others is excluded.

        Args:
            seconds: requested length D, rounded down to a whole slice.
            watch: the watched speaker. D is then the length of this speaker's template, or of all
                but much shorter templates if less.

        Raises:
            UsageError: fewer than two templates have this length.
        """
        return self._choose_scoring(seconds, None if watch is None else self.index(watch))

    def degradations(self, scoring: Scoring) -> FloatArray:
        """Compute each template's degradation from studio sound (`degradation`): shape (K, 3).

        First sessions come first, then further sessions. If all conditions are unknown, there is
        one row.
        """
        return compute_degradations(self.speakers, np.flatnonzero(scoring.members))

    def fingerprint(self) -> str:
        """Compute a hash of names and templates. A mapped store keeps the hash from its writing."""
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
        """Yield speakers with notes of their recordings, beginning with ``first``."""
        if first is not None:
            yield self.speakers[self.index(first)]
        people = self.speakers
        places = people.noted.tolist() if isinstance(people, ManyPeople) else range(len(people))
        for index in places:
            if self.names[index] != first:
                yield people[index]

    def overlapping(self, hashes: Iterable[str]) -> list[tuple[Speaker, SourceNote]]:
        """Find enrolled sources with one of these fingerprints."""
        return find_recordings(self.speakers, hashes)

    def joined(self, other: Population) -> Population:
        """Add new speakers. This population's rank models stay, marked as mismatched.

        UsageError if a name is enrolled already, or the features do not match.
        """
        twice = sorted(set(self.names) & set(other.names))
        if twice:
            raise UsageError(f"{', '.join(twice[:3])} enrolled already; choose another name")
        return self._added(other)

    def extended(self, other: Population) -> Population:
        """Add speech to existing speakers, and new speakers.

        Slices and sources of a new session are appended, and the session stays separate
        (`sessions_apart`). Rank models are unchanged. New speakers make them mismatched. UsageError
        if some audio is already enrolled, or the features do not match.
        """
        self.refuse_enrolled(other)
        return self._added(other)

    def refuse_enrolled(self, other: Population) -> None:
        """Raise a UsageError if some of the audio is already enrolled under any name."""
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
                # all slices count as one session if sessions are not separate
                before, later = (
                    replace(person, sessions=person.sessions or (size,) * (size > 0))
                    for person, size in zip((speaker, later), sizes, strict=True)
                )
                later = before.merged(later)
            people[later.name] = later
        index = {name: i for i, name in enumerate(people)}
        offsets, features = self._merged(other, [index[name] for name in other.names])
        return self._with(
            speakers=tuple(people.values()),
            offsets=offsets,
            features=features,
            mismatched=self._mismatched or (len(self.rank_models) > 0 and len(people) > len(self)),
        )

    def with_details(self, speakers: Sequence[Speaker]) -> Population:
        """Replace the details (names, sources, sound) of the same speakers, in their order."""
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
        offsets, features = self._selected(is_chosen)
        speakers = list(compress(self.speakers, is_chosen.tolist()))
        return self._with(speakers=speakers, offsets=offsets, features=features)

    def calibrated(self, calibration: Calibration) -> Population:
        """Set the rank models of `monitor.calibrate` and their cohort."""
        return self.with_rank_models(calibration.rank_models, calibration.cohort)

    def with_rank_models(self, rank_models: RankModels, cohort: Cohort | None = None) -> Population:
        """Set other rank models; use `calibrated` for the result of `calibrate`.

        Args:
            rank_models: models of the same features.
            cohort: cohort of their evidence. None keeps the current cohort, and warns if it is
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
            path: the file.
            mapped: whether to store templates uncompressed, with prepared embeddings, so that a
                file of any size can be mapped. None maps more than 1 GiB of templates.

        Raises:
            StoreError: the file cannot be written. An existing file is then unchanged.
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
            lying, header["prepared"] = self._list_mapped()
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

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a file made by `save`; templates of a large file are mapped.

        StoreError if the file is missing, damaged or of another kind. SchemaError if a newer
        version wrote it.
        """
        path = Path(path)
        header, arrays = read_store(path, "population", without=(COHORT,), later=(RANK_MODEL,))
        with refusing_incomplete(path):
            if header["slice_seconds"] != SLICE_SECONDS:
                raise StoreError(f"slices of {header['slice_seconds']} s, not {SLICE_SECONDS:g}")
            if arrays["offsets"].dtype.kind not in "iu":
                raise StoreError("the offsets of its slices are not whole numbers")
            mapped = "fingerprint" in header  # templates are stored uncompressed
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
            if mapped:  # its numbers are checked when they are used
                fingerprint = header["fingerprint"]
                if not isinstance(fingerprint, str) or not is_name(fingerprint):
                    raise StoreError("its fingerprint is not text")
                population._known_fingerprint = fingerprint
                population._take_prepared(header["prepared"], arrays)
                return population
            for templates in population.features.values():
                check_templates(templates)
            empty = set.intersection(*(set(population.empty(name)) for name in population.features))
            if empty:
                raise StoreError(f"the template of {min(empty)} is empty")
        return population

    @classmethod
    def reference(cls) -> Self:
        """Load the shipped population with its rank models (`REFERENCE`)."""
        return cls.load(REFERENCE)
