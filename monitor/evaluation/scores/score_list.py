"""Labelled comparisons one by one: pairs of a trial and an enrolled speaker, complete or not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from monitor.errors import UsageError
from monitor.types import AnyArray, BoolArray, IntArray

__all__ = ["ScoreList"]


@dataclass(frozen=True)
class ScoreList:
    """A list of labelled comparisons.

    Attributes:
        scores: shape (n,), finite; higher is more alike.
        mated: shape (n,), whether trial and enrolled speaker are one person.
        trial: shape (n,), index into `spoken`.
        speaker: shape (n,), index into `speakers`.
        spoken: shape (T,), whose trial each is, index into `people`.
        speakers: the N enrolled speakers.
        people: whose trials there are; a trial whose speaker nobody names is its own.
        trials: names of the T trials, all different; empty where they have none.

    Raises:
        UsageError: shapes that do not fit, or a score that is not finite.
    """

    scores: AnyArray
    mated: BoolArray
    trial: IntArray
    speaker: IntArray
    spoken: IntArray
    speakers: tuple[str, ...]
    people: tuple[str, ...]
    trials: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.scores.shape == self.mated.shape == self.trial.shape == self.speaker.shape:
            raise UsageError("give a score, a trial, a speaker and a label for each comparison")
        if not np.isfinite(self.scores).all():
            raise UsageError("a score is not finite: drop that comparison")

    def chosen(self, which: BoolArray) -> ScoreList:
        """Some of the comparisons: shape (n,); trials that are left without any are gone."""
        trials, trial = np.unique(self.trial[which], return_inverse=True)
        heard, spoken = np.unique(self.spoken[trials], return_inverse=True)
        return ScoreList(
            self.scores[which],
            self.mated[which],
            trial.ravel(),
            self.speaker[which],
            spoken.ravel(),
            self.speakers,
            tuple(self.people[i] for i in heard.tolist()),
            tuple(self.trials[i] for i in trials.tolist()) if self.trials else (),
        )

    @cached_property
    def hits(self) -> IntArray:
        """How many mated comparisons each trial has: shape (T,)."""
        return np.bincount(self.trial[self.mated], minlength=len(self.spoken))

    @cached_property
    def complete(self) -> BoolArray:
        """Which trials met every enrolled speaker, one of them their own: shape (T,)."""
        met = np.bincount(self.trial, minlength=len(self.spoken))
        return np.asarray((met == len(self.speakers)) & (self.hits == 1))
