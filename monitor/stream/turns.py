"""Follows who speaks: has another speaker or channel taken over?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from monitor.kinds import FeatureSpec, Kind, Sensitivity, comparable_features
from monitor.population.population import SLICE_SECONDS, Population, Scoring
from monitor.stream.accumulator import HeardTotals, Moments
from monitor.stream.attacker import Attacker
from monitor.stream.reading import Change, ChangeDetector, Followed, Open
from monitor.types import AnyArray

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
    ("identity",): 3.0,
    ("voice",): 1.3,
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


def unlike(features: Mapping[str, FeatureSpec], one: HeardTotals, other: HeardTotals) -> bool:
    """Whether two voices sound like two people, as far as these features tell."""
    names = _judges(comparable(features))
    if not names or not all(each.frames[name] for each in (one, other) for name in names):
        return False
    readers = shipped_readers()
    figures = []
    for name in names:
        cohorts = [cohort(readers, name, each.speech_seconds) for each in (one, other)]
        kind = features[name].kind
        figures.append(alike(kind, one.totals[name], other.totals[name], *cohorts))
    return float(np.mean(figures)) < LEAST[names]


def comparable(features: Mapping[str, FeatureSpec]) -> set[str]:
    """Those that the shipped readers have too: of the same kind, by the same network."""
    return comparable_features(features, shipped_readers().specs)


def judged_by(features: Iterable[str]) -> str:
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


class ToldTurns(SpeakerTurns):
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
