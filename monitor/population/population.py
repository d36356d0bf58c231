"""The N enrolled speakers an attacker could compare a voice with, and their templates."""

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
from monitor.kinds import FeatureSpec
from monitor.maths.condition import Condition, in_common
from monitor.maths.scores import Similarity
from monitor.network_marks import unlike_networks
from monitor.phrases import plural
from monitor.population.calibration import Calibration
from monitor.population.checking import check_speakers, check_templates, spec_from
from monitor.population.cohort import COHORT, Cohort, noted_cohort, pack_cohort
from monitor.population.law import Laws, RankLaw
from monitor.population.people import SourceNote, Speaker, extended, pack_people, unpack_people
from monitor.population.storing import read_store, write_store
from monitor.population.templates import FeatureTemplates
from monitor.safe_text import printable
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

__all__ = [
    "MISMATCH",
    "SLICE_SECONDS",
    "FeatureTemplates",
    "Population",
    "Scoring",
    "SourceNote",
    "Speaker",
]

SLICE_SECONDS = 5.0
"""Templates are kept in slices of so many speech seconds, so that they can be cut to one length."""

MISMATCH = 0.8
"""A template under this share of the others' length breaks the law (docs/method.md section 4)."""

USEFUL_SECONDS = 30.0
"""Templates are all cut to the shortest, unless that has less: then it is left out, and told."""


_BLOCK = 2048
"""Members whose slices are made wide at once."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """One common template length, and who has it.

    Attributes:
        seconds: D, speech seconds; every template is cut to it.
        members: shape (N,), False where a template is shorter: nobody's is, but where it is too
            short to cut the others to, where D was asked for, or is that of the watched speaker.
    """

    seconds: float
    members: BoolArray


class Population:
    """Templates of N speakers and, once calibrated, the laws that say what a rank means.

    Args:
        speakers: names must be unique.
        offsets: shape (N + 1,): speaker j owns slices ``offsets[j]:offsets[j + 1]``.
        features: templates by feature name.
        laws: rank laws; may be empty.
        borrowed: True where the laws were learnt without some of the speakers. Laws that say whom
            they were learnt from know better.
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
        laws: Laws | None = None,
        *,
        borrowed: bool = False,
        about: str = "",
        cohort: Cohort | Callable[[], Cohort] | None = None,
    ) -> None:
        self.speakers = tuple(speakers)
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.features = dict(features)
        self.laws = laws or Laws()
        self._borrowed = borrowed
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
        for name, templates in self.features.items():
            if templates.slices.ndim != 2 or templates.slices.shape[1] != templates.spec.size:
                raise StoreError(
                    f"templates of {name!r} must have shape (slices, {templates.spec.size})"
                )

    def __len__(self) -> int:
        return len(self.speakers)

    @property
    def borrowed(self) -> bool:
        """Whether the laws were learnt without some of these speakers."""
        taught = {name for law in self.laws for name in law.learnt_from}
        if not taught:  # a law of an earlier version, or the shipped one
            return self._borrowed
        return not taught.issuperset(self.names)

    def index(self, name: str) -> int:
        """Position of a speaker; a UsageError names the nearest spelling."""
        if name in self.names:
            return self.names.index(name)
        from difflib import get_close_matches

        near = get_close_matches(name, self.names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"enrolled: {plural(len(self), 'speaker')}"
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

    def scorers(self, law: RankLaw) -> dict[str, Similarity]:
        """The similarity of each feature of a law, in its order."""
        named = zip(law.features, law.similarities, strict=True)
        return {name: self.features[name].spec.kind.similarity(how) for name, how in named}

    @property
    def cohort(self) -> Cohort | None:
        """Background speakers who are nobody's template, made as the templates are; None without.

        Read from the store at first use. They are for comparison: nobody of them is a candidate,
        and nothing of theirs leaves the store.

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
        """This population and further speakers; laws of this one stay, marked as borrowed.

        Raises:
            UsageError: a name is enrolled already, or the features do not match.
        """
        twice = sorted(set(self.names) & set(other.names))
        if twice:
            raise UsageError(f"{', '.join(twice[:3])} enrolled already; choose another name")
        return Population(
            self.speakers + other.speakers,
            np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
            self._stacked(other),
            self.laws,
            borrowed=self._borrowed or len(self.laws) > 0,
            about=self.about,
            cohort=self._cohort,
        )

    def extended(self, other: Population) -> Population:
        """This population with further speech of speakers who are there, and further speakers.

        Slices of a further session stand behind those that are there, and sources behind sources.
        Laws stay; of further speakers they are borrowed.

        Raises:
            UsageError: some of the audio is enrolled already, or the features do not match.
        """
        for note in (note for speaker in other.speakers for note in speaker.sources if note.used):
            if whose := [who.name for who, old in self.overlapping(note.hashes) if old.used]:
                raise UsageError(
                    f"{note.label} is enrolled already, as {whose[0]}: give other recordings"
                )
        people = {each.name: each for each in self.speakers}
        for each in other.speakers:
            known = people.get(each.name)
            people[each.name] = each if known is None else extended(known, each)
        place = {name: i for i, name in enumerate(people)}
        counts = np.concatenate([np.diff(self.offsets), np.diff(other.offsets)])
        owner = np.repeat([place[name] for name in (*self.names, *other.names)], counts)
        order = np.argsort(owner, kind="stable")
        totals = np.bincount(owner, minlength=len(people))
        return Population(
            tuple(people.values()),
            np.concatenate(([0], np.cumsum(totals))),
            {
                name: replace(each, slices=each.slices[order])
                for name, each in self._stacked(other).items()
            },
            self.laws,
            borrowed=self._borrowed or (len(self.laws) > 0 and len(people) > len(self)),
            about=self.about,
            cohort=self._cohort,
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
        """The same speakers with these features alone, and the laws about no others.

        Raises:
            UsageError: there is no such feature.
        """
        kept = tuple(names)
        if missing := [name for name in kept if name not in self.features]:
            raise UsageError(
                f"the population has no {', '.join(missing)}; it has {', '.join(self.features)}"
            )
        return Population(
            self.speakers,
            self.offsets,
            {name: self.features[name] for name in self.features if name in kept},
            Laws(law for law in self.laws if set(law.features) <= set(kept)),
            borrowed=self._borrowed,
            about=self.about,
            cohort=self._cohort,
        )

    def without(self, name: str) -> Population:
        """Everybody else, under the same laws.

        Raises:
            UsageError: nobody is called so.
        """
        self.index(name)
        return self.chosen(each for each in self.names if each != name)

    def chosen(self, names: Iterable[str]) -> Population:
        """These speakers alone, in the order of the population, under the same laws.

        Raises:
            UsageError: one of them is not enrolled.
        """
        kept = np.zeros(len(self), np.bool_)
        kept[[self.index(name) for name in names]] = True
        counts = np.diff(self.offsets)
        slices = np.repeat(kept, counts)
        return Population(
            [each for each, keep in zip(self.speakers, kept.tolist(), strict=True) if keep],
            np.concatenate(([0], np.cumsum(counts[kept]))),
            {
                name: replace(each, slices=each.slices[slices])
                for name, each in self.features.items()
            },
            self.laws,
            borrowed=self._borrowed,
            about=self.about,
            cohort=self._cohort,
        )

    def calibrated(self, made: Calibration) -> Population:
        """The same speakers with what `monitor.calibrate` learnt: laws, and the cohort of these.

        Example::

            made = calibrate(*collect(recordings)[:2], alarms=people)
            people.calibrated(made).save("us.npz")
        """
        return self.with_laws(made.laws, made.cohort)

    def with_laws(self, laws: Laws, cohort: Cohort | None = None) -> Population:
        """The same speakers under other laws; what `calibrate` learnt goes to `calibrated`.

        Args:
            laws: any of the same features.
            cohort: that their evidence was learnt against; None leaves the one that is there.

        Warns:
            UserWarning: a law has evidence, and there is no cohort to weigh it with.
        """
        if cohort is None and self._cohort is None and any(law.evidence for law in laws):
            warnings.warn(
                "without the cohort that these laws were learnt against nothing is said of "
                "evidence, nor of other crowds: use calibrated(calibration), or give the cohort",
                stacklevel=2,
            )
        return Population(
            self.speakers,
            self.offsets,
            self.features,
            laws,
            borrowed=self._borrowed,  # counts only where the laws do not say whom they know
            about=self.about,
            cohort=self._cohort if cohort is None else cohort,
        )

    def save(self, path: Path | str) -> None:
        """Write the store: npz without pickle, mode 0600, atomically.

        Raises:
            StoreError: it cannot be written; what was there before is untouched.
        """
        laws, arrays = self.laws.pack()
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
            "laws": laws,
            "borrowed": self._borrowed,
            "about": self.about,
        }
        if self.cohort is not None:
            header["cohort"], more = pack_cohort(self.cohort)
            arrays |= more
        write_store(Path(path), "population", header, arrays)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a store made by ``save``.

        Raises:
            StoreError: missing, damaged or foreign; SchemaError where it is too new.
        """
        path = Path(path)
        header, arrays = read_store(path, "population", without=(COHORT,))
        try:
            if header["slice_seconds"] != SLICE_SECONDS:
                raise StoreError(f"slices of {header['slice_seconds']} s, not {SLICE_SECONDS:g}")
            if arrays["offsets"].dtype.kind not in "iu":
                raise StoreError("the offsets of its slices are no whole numbers")
            features = {
                name: FeatureTemplates(spec_from(name, each), arrays[f"slices/{name}"])
                for name, each in header["features"].items()
            }
            made = cls(
                unpack_people(header["speakers"], arrays),
                arrays["offsets"],
                features,
                Laws.unpack(header["laws"], arrays),
                borrowed=bool(header["borrowed"]),
                about=str(header["about"]),
                cohort=_cohort_of(path, header, features),
            )
            check_speakers(made.speakers)
            for templates in made.features.values():
                check_templates(templates)
            empty = set.intersection(*(set(made.empty(name)) for name in made.features))
            if empty:
                raise StoreError(f"the template of {min(empty)} has nothing in it")
            return made
        except (KeyError, TypeError, ValueError, AttributeError, StoreError) as error:
            raise StoreError(
                f"{path}: is incomplete ({printable(error)}); make it again"
            ) from error

    @classmethod
    def reference(cls) -> Self:
        """The population that ships with the package: readers of LibriSpeech, with their laws.

        LibriVox volunteers, from LibriSpeech (Panayotov et al., 2015, CC BY 4.0); see ``about``.
        """
        return cls.load(Path(__file__).parent / "reference" / "population.npz")


def _cohort_of(
    path: Path, header: Mapping[str, Any], features: Mapping[str, FeatureTemplates]
) -> Callable[[], Cohort] | None:
    """What reads the cohort that a header notes; None where it notes none."""
    note = header.get("cohort")
    return None if note is None else noted_cohort(path, note, features)


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
