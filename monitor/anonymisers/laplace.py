"""Laplace noise on speaker embeddings (USC section 2.5), and the bits a declared epsilon allows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np

from monitor.errors import UsageError
from monitor.kinds import FeatureSpec
from monitor.maths.composition import (
    DELTA,
    Spent,
    advanced,
    basic,
    clipped,
    laplace,
    noise_scale,
    optimal,
    secret_uniform,
)
from monitor.maths.scores import unit_vectors
from monitor.types import FloatArray, Frames

CLIP = 1.0  # no vector of length 1 has a smaller L1 norm: of all only the direction is left


def _check_positive(*values: tuple[float, str]) -> None:
    for value, what in values:
        if not 0 < value < math.inf:
            raise UsageError(f"{value:g} is not {what}: give a number above 0")


@dataclass(frozen=True, slots=True)
class Laplace:
    """Laplace noise of scale 2 C / epsilon on embeddings, each clipped to an L1 norm of C.

    Each number of each embedding has noise of its own. So in exact arithmetic a frame is (epsilon,
    0)-private in the local sense: whatever comes out is at most exp(epsilon) times as likely for
    one voice as for any other. The noise is a keyed hash in counter mode (SHAKE-256). Its numbers
    are floats, whose last bits can tell more (Mironov, CCS 2012): nothing is proved of what is
    written. To choose C, ``clip``, by the data that it protects would tell of them.
    """

    epsilon: float
    clip: float = CLIP

    def __post_init__(self) -> None:
        _check_positive((self.epsilon, "an epsilon"), (self.clip, "a clipping norm C"))

    @classmethod
    def parse(cls, setting: str) -> Laplace:
        """Parse ``EPSILON`` or ``EPSILON,C``; UsageError where they do not make sense."""
        try:
            return cls(*map(float, setting.split(",", 1)))
        except ValueError:
            raise UsageError(
                f"{setting!r} is not a setting such as laplace:15 (epsilon) or laplace:15,1 "
                "(epsilon, clipping norm C)"
            ) from None

    @property
    def scale(self) -> float:
        """Scale of the noise of each number."""
        return noise_scale(self.epsilon, self.clip)

    def noisy(self, values: FloatArray, *whose: object) -> FloatArray:
        """Return embeddings, shape (k, d), with noise, float32.

        ``whose`` is the seed, and whatever else the noise is to be drawn by.
        """
        uniform = secret_uniform(values.size, "laplace", *whose).reshape(values.shape)
        noise = laplace(uniform, self.scale)
        noisy = clipped(unit_vectors(values), self.clip) + noise  # a length would tell, too
        return np.asarray(noisy, np.float32)

    def protect(
        self, frames: Frames, tracks: Mapping[str, FeatureSpec], *, name: str, seed: int
    ) -> Frames:
        """Add noise to the embeddings of frames, and leave nothing else of the voice in them.

        Features of other kinds (pitch, phones) are left out: for them nothing is promised. What is
        speech, and when a frame is complete, stays. Each recording, by its name, has noise of its
        own; the seed is secret wherever the promise counts.
        """
        tracks_out = {
            # early frames would tell more of the same speech: nothing is promised of them
            feature: replace(
                track, values=self.noisy(track.values, seed, name, feature), early=None
            )
            for feature, track in frames.tracks.items()
            if tracks[feature].kind.pointed
        }
        return replace(frames, tracks=tracks_out)


# ----------------------------------------------------------------------------------------- promise

EVERYBODY_BITS = 33.0  # tell one person from all others alive: 2 ** 33 is more than 8 billion


@dataclass(frozen=True, slots=True)
class Promise:
    """Bound on how much all frames of one speaker can give away together.

    ``epsilon`` is of one frame, nats; ``spent`` has frames, and the bounds of the three
    compositions, in nats (docs/method.md section 6).
    """

    speaker: str
    epsilon: float
    delta: float
    seconds: float
    spent: Spent

    @property
    def most_bits(self) -> float:
        """Evidence in bits that no attacker exceeds who sees all of it: k epsilon / ln 2."""
        return self.spent.basic_nats / math.log(2)

    @property
    def empty(self) -> bool:
        """Flag: as much is allowed as tells one person from all others alive."""
        return self.most_bits >= EVERYBODY_BITS


def promises(
    frames: Mapping[str, tuple[int, float]], epsilon: float, delta: float = DELTA
) -> list[Promise]:
    """Compute the promise to each speaker, over all recordings and features.

    ``frames`` says how many each has, and seconds of speech; ``epsilon`` is of one frame, nats.

    Example:
        >>> (ann,) = promises({"ann": (10, 30.0)}, 0.5)
        >>> ann.spent.basic_nats, round(ann.most_bits, 1), ann.empty
        (5.0, 7.2, False)
    """
    return [
        Promise(speaker, epsilon, delta, seconds, compute_spent(epsilon, count, delta))
        for speaker, (count, seconds) in frames.items()
    ]


def compute_spent(
    epsilon: float, count: int, delta: float, *, optimal_count: int | None = None
) -> Spent:
    """Compute what so many frames of an epsilon each spend, by each composition.

    ``optimal_count``, as many frames or more, gives an optimal composition that bounds fewer, too.
    """
    optimal_nats = optimal(epsilon, count if optimal_count is None else optimal_count, delta)
    basic_nats = basic(epsilon, count)
    return Spent(count, basic_nats, advanced(epsilon, count, delta), min(basic_nats, optimal_nats))


def empty_after(epsilon: float) -> int:
    """Return the number of frames after which the bound is vacuous."""
    return math.ceil(EVERYBODY_BITS * math.log(2) / epsilon)


_MECHANISMS = ("laplace", "tokens")  # whose setting begins with an epsilon for each frame
_EXACT = 1000  # windows up to which the optimal composition is worked out for each number of them


@dataclass(frozen=True, slots=True)
class Declared:
    """A mechanism that is (epsilon, 0)-private in each window, in the local sense.

    Whatever it lets through of a window is at most exp(epsilon) times as likely for one voice as
    for any other, with noise of its own in each: windows compose (docs/method.md section 6). What
    was let through until a moment depends on windows that lie ``ahead_seconds`` beyond it.

    Example:
        >>> token = Declared("usc:15", 15.0, 0.04)
        >>> token.windows(1.0), round(token.after(25).most_bits), token.after(25).empty
        (25, 541, True)
    """

    mechanism: str
    epsilon: float
    window_seconds: float
    ahead_seconds: float = 0.0
    delta: float = DELTA

    def __post_init__(self) -> None:
        _check_positive((self.epsilon, "an epsilon"), (self.window_seconds, "a window"))

    @classmethod
    def parse_noise(cls, noise: str, window_seconds: float) -> Self | None:
        """Return what noise on frames, such as ``"laplace:15,1"``, declares; None if unknown."""
        name, _, setting = noise.partition(":")
        try:
            epsilon = float(setting.partition(",")[0])
            return cls(noise, epsilon, window_seconds) if name in _MECHANISMS else None
        except (ValueError, UsageError):
            return None

    def windows(self, seconds: float) -> int:
        """Count, at most, the windows that what was let through in so many seconds depends on."""
        if seconds <= 0:
            return 0
        return math.ceil(round((seconds + self.ahead_seconds) / self.window_seconds, 6))

    @lru_cache(maxsize=256)  # noqa: B019  # few are ever made
    def after(self, windows: int) -> Promise:
        """Compute the promise of so many windows together.

        Beyond a thousand windows the optimal bound is that of the next number of two digits and
        zeros: it is a bound for fewer as well, and need not be worked out at each reading.
        """
        step = 1 if windows <= _EXACT else 10 ** (len(str(windows)) - 2)
        spent = compute_spent(
            self.epsilon, windows, self.delta, optimal_count=-(-windows // step) * step
        )
        seconds = windows * self.window_seconds
        return Promise("", self.epsilon, self.delta, seconds, spent)
