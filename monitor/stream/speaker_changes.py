"""Changes of speaker or channel in a stream: has somebody else taken over?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.kinds import (
    FeatureSpec,
    FollowedVoice,
    Kind,
    Sensitivity,
    comparable_features,
)
from monitor.population.population import SLICE_SECONDS, Population, Scoring
from monitor.stream.accumulator import FeatureTotals, Moments
from monitor.stream.attacker import Attacker
from monitor.stream.reading import Change, Open
from monitor.types import TICKS_PER_SECOND, AnyArray

_LARGEST_DELTA = 0.95
FEWEST = 25
"""Of fewer speakers hardly one is like an impostor: a change would be missed."""


@cache
def shipped_readers() -> Population:
    """The shipped readers."""
    return Population.reference()


def background(
    population: Population, scoring: Scoring, features: Iterable[str]
) -> dict[str, AnyArray]:
    """Templates of each feature, shape (N, M), by which it is judged how much one voice stands out.

    A score counts by how far it exceeds those of others. Beside a small population the shipped
    readers are others, too, where the kind wants them and the same network made them.
    """
    made = {}
    for name in features:
        made[name] = population.templates(name, scoring)
        own = population.features[name].spec
        few = own.kind.wants_background and len(made[name]) < FEWEST
        if few and shipped_readers().specs.get(name) == own:
            more = shipped_readers().templates(name, shipped_readers().scoring())
            made[name] = np.concatenate([made[name], more])
    return made


def cohort(readers: Population, feature: str, speech_seconds: float) -> AnyArray:
    """Templates of all these readers, of about as much speech as that, shape (N, M)."""
    most = float(readers.template_seconds.min())
    return readers.templates(
        feature, readers.scoring(min(max(speech_seconds, SLICE_SECONDS), most))
    )


LEAST: Mapping[tuple[str, ...], float] = {
    ("voice",): 1.75,
    ("f0", "phones"): 0.7,
    ("f0",): 0.65,
}
"""By the features to judge by, the best ones first: two voices that are less `alike` are two.

One pair in twenty of one reader's recordings is below it, of the half of the readers that it was
chosen on (``benchmarks/recordings.py``).
"""


_MISSES = {
    ("voice",): ", which misses many of the same sex",
    ("f0", "phones"): ", which misses many of the same sex",
    ("f0",): ", which misses most of the same sex",
}


def alike(
    kind: Kind, one: AnyArray, other: AnyArray, like_one: AnyArray, like_other: AnyArray
) -> float:
    """How alike two voices are, in standard deviations beyond a cohort's likeness to them.

    The symmetric score normalisation of speaker verification (S-norm; Shum, Dehak, Dehak & Glass,
    Odyssey 2010): each, shape (M,), is scored against the other, less the mean over a cohort, shape
    (N, M), of about as much speech, by its spread.
    """
    how = kind.similarity()

    def side(heard: AnyArray, template: AnyArray, cohort: AnyArray) -> float:
        mine, *others = how.score(how.prepare(np.vstack([template, cohort])), heard)
        return float((mine - np.mean(others)) / np.std(others))

    return (side(one, other, like_other) + side(other, one, like_one)) / 2


def unlike(features: Mapping[str, FeatureSpec], one: FeatureTotals, other: FeatureTotals) -> bool:
    """Whether two voices sound like two people, as far as these features tell."""
    names = _judges(find_shared_features(features))
    if not names or not all(each.frames[name] for each in (one, other) for name in names):
        return False
    readers = shipped_readers()
    figures = []
    for name in names:
        cohorts = [cohort(readers, name, each.speech_seconds) for each in (one, other)]
        kind = features[name].kind
        figures.append(alike(kind, one.totals[name], other.totals[name], *cohorts))
    return float(np.mean(figures)) < LEAST[names]


def find_shared_features(features: Mapping[str, FeatureSpec]) -> set[str]:
    """Those that the shipped readers have too: of the same kind, by the same network."""
    return comparable_features(features, shipped_readers().specs)


def describe_criterion(features: Iterable[str]) -> str:
    """What ``unlike`` goes by, and what it is worth, in words."""
    names = _judges(features)
    return " and ".join(names) + _MISSES.get(names, "")


def _judges(features: Iterable[str]) -> tuple[str, ...]:
    have = set(features)
    return next((names for names in LEAST if have.issuperset(names)), ())


ON_CHANGE = ("ignore", "note", "reset", "split")
"""What a monitor can do at a change: not look, say so, forget the evidence, begin a new stream."""


class SpeakerTurns:
    """Has another speaker, or channel, taken over from one reading to the next?

    Attributes:
        open: the change since which it is not known whose evidence this is; None where it is.
    """

    def __init__(self, detector: ChangeDetector | None, on_change: str) -> None:
        self._detector, self._on_change = detector, on_change
        self._step: list[dict[str, AnyArray]] = []  # frames since the last reading
        self.open: Open | None = None

    @property
    def looks(self) -> bool:
        """Whether changes are looked for at all."""
        return self._detector is not None

    @property
    def afresh(self) -> bool:
        """Whether the evidence begins afresh at a change."""
        return self._on_change in ("reset", "split")

    def rest(self) -> None:
        """Look for no changes any more."""
        self._detector = None
        self._step = []

    def follow(self, moments: Moments, r: int) -> None:
        """Keep the frames that moment r brings, for the next reading."""
        if self._detector is not None:
            self._step.append(moments.step(r))

    def changed(self, tick: int) -> Change | None:
        """Whether somebody else speaks, as far as the reading at this tick tells."""
        if self._detector is None:
            return None
        step = {
            name: np.concatenate([part[name] for part in self._step]) for name in self._step[-1]
        }
        self._step = []
        change = self._detector.update(step, tick)
        if change is not None:
            self._note(change)
        return change

    def _note(self, change: Change) -> None:
        """A change opens, or closes, what is not known of the voice."""
        if change.back:
            self.open = None
        elif not self.afresh and self.open is None:
            self.open = Open(change.since_seconds, change.features)

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What a monitor must keep of it: plain values, and arrays."""
        plain: dict[str, Any] = {"open": None if self.open is None else self.open.record()}
        arrays: dict[str, AnyArray] = {}
        if self._detector is not None:
            plain["change"], arrays = self._detector.state()
        return plain, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state``."""
        if self._detector is not None:
            self._detector.restore(plain["change"], arrays)
        opened = plain["open"]
        self.open = (
            None if opened is None else Open(opened["since_seconds"], tuple(opened["features"]))
        )


class CopiedTurns(SpeakerTurns):
    """Looks for no changes itself: those of another monitor of the same voice hold here as well."""

    def __init__(self, on_change: str) -> None:
        super().__init__(None, on_change)
        self._told: tuple[int, Change] | None = None

    def tell(self, tick: int, change: Change) -> None:
        """The reading at this tick comes with a change."""
        self._told = tick, change

    def changed(self, tick: int) -> Change | None:
        """What was told of this tick."""
        if self._told is None or self._told[0] != tick:
            return None
        _, change = self._told
        self._told = None
        self._note(change)
        return change


@dataclass(frozen=True, slots=True)
class Followed:
    """A feature that is followed for changes; ``others`` are templates, (N, M), of levels none."""

    kind: Kind
    others: AnyArray
    how: Sensitivity


class ChangeDetector:
    """Notices that another person has taken over, or that the channel has changed.

    Each feature has a margin (`monitor.maths.margin`): how much better the voice since the last
    change explains its newest frames than the population does; levels are compared with their own
    past alone. Frames are put together to units, one margin each: neighbouring frames are alike. Of
    embeddings, which know how low is low, evidence is added up (`monitor.maths.margin.page_cusum`);
    of others `river.drift.ADWIN` looks for a moment from which on the mean is lower. Margins are
    neither independent nor in [0, 1]: `Sensitivity.delta` is a setting whose price was measured,
    not a probability of false alarm. ADWIN weighs a drop by the margins' variance, so that one
    setting serves every voice (``benchmarks/change.py --detectors``: PageHinkley needs an absolute
    drop fitted to each feature, KSWIN misses twice as many). Where it cuts is no good guess: the
    best split is.

    The first feature that notices reports; then all start afresh with the new voice. Where asked
    for, the voice that was left is remembered, and reported when it is ``back``: when an embedding
    says so, else all features that had noticed; where those were levels alone, any other feature
    may say that the voice has stayed the same. Beside an embedding histograms are ten thousand
    times more careful.

    Args:
        followed: by name; others are not followed.
        careful: divides every delta: above 1 fewer false alarms, more misses and later reports.
        returns: remember the first voice, and tell when it is back.

    Raises:
        UsageError: ``careful`` makes no sense.

    Example:
        >>> low, high = np.array([9, 1, 0]), np.array([0, 1, 9])
        >>> from monitor.features.f0 import F0
        >>> f0 = Followed(F0.spec.kind, np.array([low, high]), F0.follow)
        >>> detector = ChangeDetector({"f0": f0})
        >>> rng = np.random.default_rng(0)
        >>> for second in range(1, 200):
        ...     voice = low if second <= 100 else high
        ...     bins = rng.choice(3, 40, p=voice / 10)
        ...     if change := detector.update({"f0": bins}, 100 * second):
        ...         print(change.seconds, change.since_seconds, change.features)
        104.0 100.0 ('f0',)
    """

    def __init__(
        self, followed: Mapping[str, Followed], *, careful: float = 1.0, returns: bool = False
    ) -> None:
        if not careful > 0:
            raise UsageError(f"careful={careful:g} must be positive; 1 is the default")
        self._returns = returns
        self._asked: tuple[str, ...] = ()  # whether the voice that was left is back
        self._one_is_enough = False
        kinds = {name: followed[name].kind for name in sorted(followed)}
        self._discerning = tuple(name for name, kind in kinds.items() if kind.discerning)
        self._of_channel = {name for name, kind in kinds.items() if kind.own_past}
        self._voices: dict[str, FollowedVoice] = {}
        for name, kind in kinds.items():
            how = followed[name].how
            beside = kind.beside_discerning if self._discerning else 1.0
            how = replace(how, delta=min(how.delta * beside / careful, _LARGEST_DELTA))
            self._voices[name] = kind.follow(np.asarray(followed[name].others), how)
        self._tick = 0

    def update(self, step: Mapping[str, AnyArray], tick: int) -> Change | None:
        """Hear the frames of each feature since the last step, up to a tick."""
        began = self._tick
        self._tick = tick
        noticed = {
            name: fall
            for name, voice in self._voices.items()
            if name in step and (fall := voice.update(step[name], began)) is not None
        }
        if not noticed:
            return self._back(tick)
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

    def _back(self, tick: int) -> Change | None:
        found = {name: self._voices[name].back() for name in self._asked}
        falls = [fall for fall in found.values() if fall is not None]
        if not falls or (len(falls) < len(found) and not self._one_is_enough):
            return None
        change = Change(
            seconds=tick / TICKS_PER_SECOND,
            since_seconds=max(fall.began for fall in falls) / TICKS_PER_SECOND,
            features=tuple(name for name, fall in found.items() if fall is not None),
            margin_before=falls[0].before,
            margin_after=falls[0].after,
            back=True,
        )
        for voice in self._voices.values():
            voice.forget(take_up=True)
        self._asked = ()
        return change

    def reset(self) -> None:
        """Forget the stream."""
        self._tick, self._asked = 0, ()
        for voice in self._voices.values():
            voice.forget(take_up=False)
            voice.reset()

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Everything needed to go on as if never stopped: plain values and arrays."""
        arrays = {
            f"{name}/{key}": value
            for name, voice in self._voices.items()
            for key, value in voice.state().items()
        }
        asked = {"asked": list(self._asked), "one_is_enough": self._one_is_enough}
        return {"tick": self._tick, **asked}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state`` of a detector made with the same arguments."""
        if not set(plain["asked"]) <= set(self._voices):
            raise StoreError("the checkpoint does not fit: it asks for features that are not there")
        self._tick, self._asked = int(plain["tick"]), tuple(plain["asked"])
        self._one_is_enough = bool(plain["one_is_enough"])
        for name, voice in self._voices.items():
            try:
                voice.restore({key: arrays[f"{name}/{key}"] for key in voice.KEPT})
            except (KeyError, ValueError):
                raise StoreError(
                    f"the checkpoint does not fit: it has no such {name} to look for changes in"
                ) from None


def change_detector(
    population: Population, attacker: Attacker, on_change: str, follow: Mapping[str, Sensitivity]
) -> ChangeDetector:
    """What looks for changes in the features that are followed, and in the channel."""
    from monitor.features.channel import Channel  # brings the Fourier transform

    nobody = np.empty((0, Channel.spec.size))  # needed to compare with
    voices = {"channel": Followed(Channel.spec.kind, nobody, Channel.follow)}
    for name, others in background(population, attacker.scoring, follow).items():
        voices[name] = Followed(population.features[name].spec.kind, others, follow[name])
    returns = on_change == "note"  # fresh evidence needs nobody to be back
    return ChangeDetector(voices, returns=returns)
