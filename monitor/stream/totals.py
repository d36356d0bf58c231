"""Totals of a voice, from which its bits are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from monitor.types import TICKS_PER_SECOND, AnyArray, FloatArray, IntArray


class TotalsState(TypedDict):
    """Plain values of `FeatureTotals`, in a checkpoint."""

    speech: int
    frames: dict[str, int]
    usable: dict[str, int]


@dataclass(frozen=True, slots=True)
class FeatureTotals:
    """Sums from which all bits of a voice are computed, without audio; they can be added."""

    speech: int  # ticks of speech: T
    # by feature the sketch's total, shape (M,): counts, or a sum of embeddings
    totals: Mapping[str, AnyArray]
    frames: Mapping[str, int]  # by feature, number of frames in the total
    usable: Mapping[str, int]  # by feature, ticks of audio in these frames

    @property
    def speech_seconds(self) -> float:
        """Seconds of speech."""
        return self.speech / TICKS_PER_SECOND

    def state(self, prefix: str) -> tuple[TotalsState, dict[str, AnyArray]]:
        """Return plain values, and the totals by name with a prefix, for `restored`."""
        plain: TotalsState = {
            "speech": self.speech,
            "frames": dict(self.frames),
            "usable": dict(self.usable),
        }
        return plain, {f"{prefix}/{name}": total for name, total in self.totals.items()}

    @classmethod
    def restored(
        cls, prefix: str, plain: TotalsState | None, arrays: Mapping[str, AnyArray]
    ) -> FeatureTotals | None:
        """Restore a ``state``; None without one."""
        if plain is None:
            return None
        return cls(totals={name: arrays[f"{prefix}/{name}"] for name in plain["frames"]}, **plain)

    def __add__(self, other: FeatureTotals) -> FeatureTotals:
        return self._combine(other, 1)

    def __sub__(self, other: FeatureTotals) -> FeatureTotals:
        """Return the totals beyond ``other``, which is part of these."""
        return self._combine(other, -1)

    def _combine(self, other: FeatureTotals, sign: int) -> FeatureTotals:
        return FeatureTotals(
            self.speech + sign * other.speech,
            {name: total + sign * other.totals[name] for name, total in self.totals.items()},
            {name: count + sign * other.frames[name] for name, count in self.frames.items()},
            {name: ticks + sign * other.usable[name] for name, ticks in self.usable.items()},
        )


@dataclass(frozen=True, slots=True)
class RunningTotals:
    """Totals of one feature by each of R moments."""

    totals: AnyArray  # shape (R, M), of its sketch
    frames: IntArray  # frames, usable_seconds: shape (R,), of these totals
    usable_seconds: FloatArray
    # shape (R, M), an early frame's addition to totals of at most one frame; None without any
    early: AnyArray | None = None
    # shape (R,), seconds of speech in both; 0 without an early frame
    early_seconds: IntArray | None = None

    def with_early(self, first_seconds: float) -> RunningTotals:
        """Add the early frame at moments at which it has at least this much speech."""
        if self.early is None or self.early_seconds is None:
            return self
        is_covered = self.early_seconds >= first_seconds
        return RunningTotals(
            self.totals + self.early * is_covered[:, None],
            self.frames + is_covered,
            np.where(is_covered, self.early_seconds, self.usable_seconds),
            early_seconds=self.early_seconds * is_covered,
        )

    @classmethod
    def joined(cls, several: Sequence[RunningTotals]) -> RunningTotals:
        """Join the moments of several totals, to which early frames have been added."""
        if len(several) == 1:
            return several[0]
        early = [
            np.zeros(len(p.frames)) if p.early_seconds is None else p.early_seconds for p in several
        ]
        return cls(
            np.concatenate([running.totals for running in several]),
            np.concatenate([running.frames for running in several]),
            np.concatenate([running.usable_seconds for running in several]),
            early_seconds=np.concatenate(early),
        )

    def length(self, seconds: FloatArray) -> FloatArray:
        """Return T of R moments; speech after an early frame does not count."""
        if self.early_seconds is None:
            return seconds
        return np.minimum(seconds, np.where(self.early_seconds > 0, self.early_seconds, np.inf))

    def select(self, rows: AnyArray | slice) -> RunningTotals:
        """Select some of the moments."""
        early = None if self.early is None else self.early[rows]
        seconds = None if self.early_seconds is None else self.early_seconds[rows]
        return RunningTotals(
            self.totals[rows], self.frames[rows], self.usable_seconds[rows], early, seconds
        )


@dataclass(frozen=True, slots=True)
class Moments:
    """Totals at each of R ticks."""

    ticks: list[int]  # ticks, speech: shape (R,), the ticks, and ticks of speech up to them
    speech: IntArray
    totals: dict[str, RunningTotals]  # by feature
    # shape (R,), ticks in the frames, for features with spans
    usable: dict[str, IntArray]
    # by feature the frames that are not in the totals yet, and how many of them each moment will
    # include, shape (R,)
    fresh: dict[str, tuple[AnyArray, IntArray]]

    def only(self, r: int) -> Moments:
        """Select moment r."""
        totals = {name: running.select(slice(r, r + 1)) for name, running in self.totals.items()}
        return Moments([self.ticks[r]], self.speech[[r]], totals, {}, {})

    def step(self, r: int) -> dict[str, AnyArray]:
        """Return the frames that moment r adds to the one before."""
        return {
            name: values[counts[r - 1] if r else 0 : counts[r]]
            for name, (values, counts) in self.fresh.items()
        }


def stack_totals(sums: Sequence[FeatureTotals]) -> tuple[dict[str, RunningTotals], IntArray]:
    """Stack several totals as moments for the attacker; also return ticks of speech, (R,)."""
    running = {
        name: RunningTotals(
            np.stack([total.totals[name] for total in sums]),
            np.array([total.frames[name] for total in sums]),
            np.array([total.usable[name] for total in sums]) / TICKS_PER_SECOND,
        )
        for name in sums[0].totals
    }
    return running, np.array([total.speech for total in sums])
