"""Detection of changes of speaker or channel in a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict

import numpy as np

from monitor.errors import StoreError
from monitor.events.declaration import from_json, to_json
from monitor.events.reading import OpenChange
from monitor.events.run import Change
from monitor.kinds import FeatureSpec, FollowedVoice, Kind, Sensitivity, comparable_features
from monitor.lazy import once
from monitor.population.population import Population
from monitor.population.templates import SLICE_SECONDS, Scoring
from monitor.stream.attacker import Attacker
from monitor.stream.totals import FeatureTotals, Moments, TotalsState
from monitor.types import TICKS_PER_SECOND, AnyArray, Record

_LARGEST_DELTA = 0.95
FEWEST = 25
"""Minimum speakers to compare with. With fewer, hardly any resembles an impostor, so that changes
are missed."""


@once
def shipped_readers() -> Population:
    """Load the shipped readers, once."""
    return Population.reference()


def collect_others(
    population: Population, scoring: Scoring, features: Iterable[str]
) -> dict[str, AnyArray]:
    """Return each feature's templates, (N, M), of other people, to detect a new voice.

    A score is compared with those of other people. If few are enrolled, the shipped readers are
    added for a discerning feature with the same spec.
    """
    templates = {}
    for name in features:
        templates[name] = population.templates(name, scoring)
        spec = population.features[name].spec
        is_small = spec.kind.discerning and len(templates[name]) < FEWEST
        if is_small and shipped_readers().specs.get(name) == spec:
            more = shipped_readers().templates(name, shipped_readers().scoring())
            templates[name] = np.concatenate([templates[name], more])
    return templates


def select_cohort(readers: Population, feature: str, speech_seconds: float) -> AnyArray:
    """Return templates of all these readers, (N, M), of about this many seconds of speech."""
    longest = float(readers.template_seconds.min())
    return readers.templates(
        feature, readers.scoring(min(max(speech_seconds, SLICE_SECONDS), longest))
    )


LEAST_LIKENESS: Mapping[tuple[str, ...], float] = {
    ("voice",): 1.75,
    ("f0", "phones"): 0.7,
    ("f0",): 0.65,
}
"""Thresholds by features, the best first: a lower `score_likeness` means two people.

One in twenty pairs of a reader's recordings is below it, for the half of the readers on which it
was chosen (``benchmarks/change.py``).
"""


_MISSES = {
    ("voice",): ", which misses many of the same sex",
    ("f0", "phones"): ", which misses many of the same sex",
    ("f0",): ", which misses most of the same sex",
}


def score_likeness(
    kind: Kind, first: AnyArray, second: AnyArray, first_cohort: AnyArray, second_cohort: AnyArray
) -> float:
    """Score how alike two voices are, in standard deviations beyond a cohort's likeness.

    This is the symmetric score normalisation of speaker verification (S-norm; Shum, Dehak, Dehak &
    Glass, Odyssey 2010). Each voice, shape (M,), is scored against the other. The mean over a
    cohort, shape (N, M), of about as much speech is subtracted, and the rest divided by its spread.
    """
    similarity = kind.similarity()

    def side(total: AnyArray, template: AnyArray, cohort: AnyArray) -> float:
        score, *others = similarity.score(similarity.prepare(np.vstack([template, cohort])), total)
        return float((score - np.mean(others)) / np.std(others))

    return (side(first, second, second_cohort) + side(second, first, first_cohort)) / 2


def are_different_people(
    features: Mapping[str, FeatureSpec], first: FeatureTotals, second: FeatureTotals
) -> bool:
    """Return whether two voices sound like two people, by these features."""
    names = _choose_criterion(find_shared_features(features))
    if not names or not all(voice.frames[name] for voice in (first, second) for name in names):
        return False
    readers = shipped_readers()
    figures = []
    for name in names:
        cohorts = [select_cohort(readers, name, voice.speech_seconds) for voice in (first, second)]
        kind = features[name].kind
        figures.append(score_likeness(kind, first.totals[name], second.totals[name], *cohorts))
    return float(np.mean(figures)) < LEAST_LIKENESS[names]


def find_shared_features(features: Mapping[str, FeatureSpec]) -> set[str]:
    """Select features that the shipped readers have too, by the same network."""
    return comparable_features(features, shipped_readers().specs)


def describe_criterion(features: Iterable[str]) -> str:
    """Describe the criterion of `are_different_people`, and its misses."""
    names = _choose_criterion(features)
    return " and ".join(names) + _MISSES.get(names, "")


def _choose_criterion(features: Iterable[str]) -> tuple[str, ...]:
    have = set(features)
    return next((names for names in LEAST_LIKENESS if have.issuperset(names)), ())


_LEAST_SECONDS = 25.0
"""Minimum seconds of speech on both sides for comparing two recordings."""


class RecordingsState(TypedDict):
    """Plain values of `Recordings`, in a checkpoint."""

    judged: int
    strange: list[int]
    start: NotRequired[TotalsState]
    voice: NotRequired[TotalsState]


class Recordings:
    """Recordings of a stream, with checks for missing speech and for another person.

    ``is_mismatch`` decides whether two voices sound like two people; None for no check.
    """

    def __init__(self, is_mismatch: Callable[[FeatureTotals, FeatureTotals], bool] | None) -> None:
        self._is_mismatch = is_mismatch
        self.number = 0  # index of the current recording
        self.silent: list[int] = []  # earlier recordings without speech
        # earlier recordings that sound like another person than all before them
        self.mismatches: list[int] = []
        self._speech = 0  # ticks of speech in the current recording
        self._begun = self._judged = 0
        self._start: FeatureTotals | None = None  # all totals before this one
        self._voice: FeatureTotals | None = None  # of the earlier ones, without mismatches

    def add_speech(self, speech: int) -> None:
        """Add ticks of speech."""
        self._speech += speech

    def begin_recording(self, number: int, get_totals: Callable[[], FeatureTotals]) -> None:
        """Begin the next recording, with the totals before it; do nothing if it continues."""
        if self._begun and number == self.number:
            return
        if self._begun:
            self.silent += self.silent_now
            if self._begun > self._judged:  # not one that ended before the run was stopped
                self._judged = self._begun
                self._add(get_totals())
        self.number, self._speech = number, 0
        self._begun += 1

    @property
    def silent_now(self) -> list[int]:
        """The current recording, if it has no speech yet."""
        return [] if self._speech else [self.number]

    def find_mismatch(self, totals: FeatureTotals) -> list[int]:
        """Return the current recording, if it sounds like another person by these totals."""
        if self._is_mismatch is None or self._voice is None:
            return []
        recording = self._subtract_start(totals)
        short = min(recording.speech, self._voice.speech) < _LEAST_SECONDS * TICKS_PER_SECOND
        return [] if short or not self._is_mismatch(self._voice, recording) else [self.number]

    def state(self) -> tuple[RecordingsState, dict[str, AnyArray]]:
        """Return what a replay of the stream would not restore: plain values and arrays."""
        plain: RecordingsState = {"judged": self._judged, "strange": self.mismatches}
        arrays: dict[str, AnyArray] = {}
        if self._start is not None:
            plain["start"], arrays = self._start.state("start")
        if self._voice is not None:
            plain["voice"], more = self._voice.state("voice")
            arrays |= more
        return plain, arrays

    def restore(self, plain: RecordingsState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``."""
        self._judged, self.mismatches = int(plain["judged"]), list(plain["strange"])
        self._start = FeatureTotals.restored("start", plain.get("start"), arrays)
        self._voice = FeatureTotals.restored("voice", plain.get("voice"), arrays)

    def _add(self, totals: FeatureTotals) -> None:
        """End a recording: record a mismatch, or add it to the voice."""
        if self._is_mismatch is None:
            return
        mismatch, recording = self.find_mismatch(totals), self._subtract_start(totals)
        self.mismatches += mismatch
        if not mismatch:
            self._voice = recording if self._voice is None else self._voice + recording
        self._start = totals

    def _subtract_start(self, totals: FeatureTotals) -> FeatureTotals:
        return totals if self._start is None else totals - self._start


ON_CHANGE = ("ignore", "note", "reset", "split")
"""Actions at a change: do not detect it, report it, reset the evidence, begin a new stream."""


class DetectorState(TypedDict):
    """Plain values of a `ChangeDetector`, in a checkpoint."""

    tick: int
    asked: list[str]
    one_is_enough: bool


class SpeakerChangesState(TypedDict):
    """Plain values of `SpeakerChanges`, in a checkpoint."""

    open: Record | None
    change: NotRequired[DetectorState]


class SpeakerChanges:
    """Detection of another speaker or channel; ``open`` is the last unresolved change."""

    def __init__(self, detector: ChangeDetector | None, on_change: str) -> None:
        self._detector, self.on_change = detector, on_change
        self._step: list[dict[str, AnyArray]] = []  # frames since the last reading
        self.open: OpenChange | None = None

    @property
    def is_active(self) -> bool:
        """True if changes are detected."""
        return self._detector is not None

    @property
    def begins_afresh(self) -> bool:
        """True if the evidence restarts at a change."""
        return self.on_change in ("reset", "split")

    def rest(self) -> None:
        """Stop detecting changes."""
        self._detector = None
        self._step = []

    def follow(self, moments: Moments, r: int) -> None:
        """Store the frames that moment r adds, for the next reading."""
        if self._detector is not None:
            self._step.append(moments.step(r))

    def find_change(self, tick: int) -> Change | None:
        """Return the change, if any, by the reading at this tick."""
        if self._detector is None:
            return None
        step = {
            name: np.concatenate([frames[name] for frames in self._step]) for name in self._step[-1]
        }
        self._step = []
        change = self._detector.update(step, tick)
        if change is not None:
            self._note(change)
        return change

    def _note(self, change: Change) -> None:
        """Open or close the doubt about the identity of the voice."""
        if change.back:
            self.open = None
        elif not self.begins_afresh and self.open is None:
            self.open = OpenChange(change.since_seconds, change.features)

    def state(self) -> tuple[SpeakerChangesState, dict[str, AnyArray]]:
        """Return the state for a checkpoint: plain values and arrays."""
        plain: SpeakerChangesState = {"open": None if self.open is None else to_json(self.open)}
        arrays: dict[str, AnyArray] = {}
        if self._detector is not None:
            plain["change"], arrays = self._detector.state()
        return plain, arrays

    def restore(self, plain: SpeakerChangesState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``."""
        if self._detector is not None:
            self._detector.restore(plain["change"], arrays)
        self.open = None if plain["open"] is None else from_json(OpenChange, plain["open"])


class CopiedChanges(SpeakerChanges):
    """Changes copied from another monitor of the same voice."""

    def __init__(self, on_change: str) -> None:
        super().__init__(None, on_change)
        self._change: tuple[int, Change] | None = None

    def set_change(self, tick: int, change: Change) -> None:
        """Set the change that comes with the reading at this tick."""
        self._change = tick, change

    def find_change(self, tick: int) -> Change | None:
        """Return the change set for this tick."""
        if self._change is None or self._change[0] != tick:
            return None
        _, change = self._change
        self._change = None
        self._note(change)
        return change


@dataclass(frozen=True, slots=True)
class FollowedFeature:
    """Feature that is followed for changes; ``others`` are templates, (N, M), none for levels."""

    kind: Kind
    others: AnyArray
    sensitivity: Sensitivity


class ChangeDetector:
    """Detector of another person, or another channel.

    Each feature has a margin (`monitor.maths.scores`): how much better the voice since the last
    change explains its newest frames than the population does. Levels are compared with their own
    past alone. Neighbouring frames are alike, so they are joined to units with one margin each. For
    embeddings, evidence is summed (`monitor.maths.scores.page_cusum`). For other features,
    `river.drift.ADWIN` searches for a moment after which the mean is lower. It weighs a drop by the
    margins' variance, so that one setting serves every voice (``benchmarks/change.py
    --detectors``). `Sensitivity.delta` is a setting with a measured price, not a probability of
    false alarm.

    The first feature to notice a change reports it, and all restart with the new voice. With
    ``returns``, the previous voice is stored, and its return is reported as ``back``. An embedding
    decides this. Without one, all features that noticed the change must agree. If only levels did,
    any other feature may report that the voice has stayed the same.

    Example:
        >>> low, high = np.array([9, 1, 0]), np.array([0, 1, 9])
        >>> from monitor.features.f0 import F0
        >>> f0 = FollowedFeature(F0.spec.kind, np.array([low, high]), F0.follow)
        >>> detector = ChangeDetector({"f0": f0})
        >>> rng = np.random.default_rng(0)
        >>> for second in range(1, 200):
        ...     voice = low if second <= 100 else high
        ...     bins = rng.choice(3, 40, p=voice / 10)
        ...     if change := detector.update({"f0": bins}, 100 * second):
        ...         print(change.seconds, change.since_seconds, change.features)
        104.0 100.0 ('f0',)
    """

    def __init__(self, followed: Mapping[str, FollowedFeature], *, returns: bool = False) -> None:
        self._returns = returns
        self._asked: tuple[str, ...] = ()  # features that decide if the previous voice is back
        self._one_is_enough = False
        kinds = {name: followed[name].kind for name in sorted(followed)}
        self._discerning = tuple(name for name, kind in kinds.items() if kind.discerning)
        self._of_channel = {name for name, kind in kinds.items() if not kind.enrolled}
        self._voices: dict[str, FollowedVoice] = {}
        for name, kind in kinds.items():
            sensitivity = followed[name].sensitivity
            factor = kind.beside_discerning if self._discerning else 1.0
            delta = min(sensitivity.delta * factor, _LARGEST_DELTA)
            sensitivity = replace(sensitivity, delta=delta)
            self._voices[name] = kind.follow(np.asarray(followed[name].others), sensitivity)
        self._tick = 0
        self._saved: tuple[DetectorState, dict[str, AnyArray]] | None = None  # from a snapshot

    def update(self, step: Mapping[str, AnyArray], tick: int) -> Change | None:
        """Add the frames of each feature since the last step, up to a tick."""
        began = self._tick
        self._tick = tick
        noticed = {
            name: fall
            for name, voice in self._voices.items()
            if name in step and (fall := voice.update(step[name], began)) is not None
        }
        if not noticed:
            return self._find_return(tick)
        if self._returns and not self._asked:
            able = {n for n, voice in self._voices.items() if voice.leave(noticed.get(n))}
            self._asked = tuple(n for n in self._discerning if n in able) or tuple(noticed)
            self._one_is_enough = self._of_channel.issuperset(self._asked)
            if self._one_is_enough:
                self._asked = tuple(sorted(able))
        for voice in self._voices.values():
            voice.reset()
        first = next(iter(noticed.values()))
        return Change(
            seconds=tick / TICKS_PER_SECOND,
            since_seconds=min(fall.began for fall in noticed.values()) / TICKS_PER_SECOND,
            features=tuple(noticed),
            margin_before=first.before,
            margin_after=first.after,
        )

    def _find_return(self, tick: int) -> Change | None:
        candidates = {name: self._voices[name].back() for name in self._asked}
        falls = [fall for fall in candidates.values() if fall is not None]
        if not falls or (len(falls) < len(candidates) and not self._one_is_enough):
            return None
        change = Change(
            seconds=tick / TICKS_PER_SECOND,
            since_seconds=max(fall.began for fall in falls) / TICKS_PER_SECOND,
            features=tuple(name for name, fall in candidates.items() if fall is not None),
            margin_before=falls[0].before,
            margin_after=falls[0].after,
            back=True,
        )
        for voice in self._voices.values():
            voice.take_up()
        self._asked = ()
        return change

    def state(self) -> tuple[DetectorState, dict[str, AnyArray]]:
        """Return everything needed to resume as if never stopped: plain values and arrays."""
        arrays = {
            f"{name}/{key}": value
            for name, voice in self._voices.items()
            for key, value in voice.state().items()
        }
        plain: DetectorState = {
            "tick": self._tick,
            "asked": list(self._asked),
            "one_is_enough": self._one_is_enough,
        }
        return plain, arrays

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps: its ``state``."""
        return {"_saved": self.state()}

    def resume(self) -> None:
        """Continue from a snapshot's attributes."""
        if self._saved is not None:
            self.restore(*self._saved)
            self._saved = None

    def restore(self, plain: DetectorState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state`` of a detector made with the same arguments."""
        if not set(plain["asked"]) <= set(self._voices):
            raise StoreError("the checkpoint does not fit: it uses features that this run lacks")
        self._tick, self._asked = int(plain["tick"]), tuple(plain["asked"])
        self._one_is_enough = bool(plain["one_is_enough"])
        for name, voice in self._voices.items():
            try:
                voice.restore({key: arrays[f"{name}/{key}"] for key in voice.KEPT})
            except (KeyError, ValueError):
                raise StoreError(
                    f"the checkpoint does not fit: it has no matching {name} for detecting changes"
                ) from None


def create_change_detector(
    population: Population, attacker: Attacker, on_change: str, follow: Mapping[str, Sensitivity]
) -> ChangeDetector:
    """Create a detector for the features that are followed, and for the channel."""
    from monitor.features.channel import Channel  # imports the Fourier transform

    none = np.empty((0, Channel.spec.size))  # levels are compared with their own past alone
    voices = {"channel": FollowedFeature(Channel.spec.kind, none, Channel.follow)}
    for name, others in collect_others(population, attacker.scoring, follow).items():
        voices[name] = FollowedFeature(population.features[name].spec.kind, others, follow[name])
    returns = on_change == "note"  # evidence that restarts needs no returns
    return ChangeDetector(voices, returns=returns)
