"""Laplace noise on speaker embeddings (USC section 2.5), and the bits that an epsilon allows."""

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
    PrivacySpent,
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

CLIP = 1.0  # the smallest L1 norm of a unit vector: clipping keeps only the direction


def _check_positive(*values: tuple[float, str]) -> None:
    for value, what in values:
        if not 0 < value < math.inf:
            raise UsageError(f"invalid {what} {value:g}: use a number above 0")


@dataclass(frozen=True, slots=True)
class Laplace:
    """Laplace noise of scale 2 C / epsilon on embeddings, each clipped to an L1 norm of C.

    The noise of each number is independent. A frame is therefore (epsilon, 0)-private in the local
    sense, in exact arithmetic. Any output is at most exp(epsilon) times as likely for one voice as
    for any other. The noise comes from SHAKE-256, keyed by a secret seed. The low bits of its
    floats can disclose more (Mironov, CCS 2012), so the bound is not proved for the written file.
    A ``clip`` (C) chosen from the protected data would disclose something about them.
    """

    epsilon: float
    clip: float = CLIP

    def __post_init__(self) -> None:
        _check_positive((self.epsilon, "epsilon"), (self.clip, "clipping norm C"))

    @classmethod
    def parse(cls, setting: str) -> Laplace:
        """Parse ``EPSILON`` or ``EPSILON,C``; raise UsageError if invalid."""
        try:
            return cls(*map(float, setting.split(",", 1)))
        except ValueError:
            raise UsageError(
                f"invalid setting {setting!r}: use laplace:15 (epsilon) or laplace:15,1 (epsilon, "
                "clipping norm C)"
            ) from None

    @property
    def scale(self) -> float:
        """Scale of the noise on each number."""
        return noise_scale(self.epsilon, self.clip)

    def noisy(self, values: FloatArray, *whose: object) -> FloatArray:
        """Return noisy embeddings, shape (k, d), float32.

        ``whose`` is the seed and any further keys of the noise.
        """
        uniform = secret_uniform(values.size, "laplace", *whose).reshape(values.shape)
        noise = laplace(uniform, self.scale)
        noisy = clipped(unit_vectors(values), self.clip) + noise  # lengths disclose too
        return np.asarray(noisy, np.float32)

    def protect(
        self, frames: Frames, tracks: Mapping[str, FeatureSpec], *, name: str, seed: int
    ) -> Frames:
        """Add noise to the embeddings of frames, and remove everything else of the voice.

        Other features, such as pitch and phones, are dropped because the bound does not cover them.
        Speech marks and frame times are unchanged. The noise differs by recording name. The bound
        holds only while the seed is secret.
        """
        tracks_out = {
            # early frames disclose more of the same speech, and the bound does not cover them
            feature: replace(
                track, values=self.noisy(track.values, seed, name, feature), early=None
            )
            for feature, track in frames.tracks.items()
            if tracks[feature].kind.pointed
        }
        return replace(frames, tracks=tracks_out)


EVERYBODY_BITS = 33.0  # enough to identify one person alive: 2 ** 33 exceeds 8 billion


@dataclass(frozen=True, slots=True)
class PrivacyGuarantee:
    """Bound on what all frames of one speaker can disclose together.

    ``epsilon`` is the nats per frame. ``spent`` has the number of frames and the bounds of the
    three compositions, in nats (docs/method.md section 6).
    """

    speaker: str
    epsilon: float
    delta: float
    seconds: float
    spent: PrivacySpent

    @property
    def most_bits(self) -> float:
        """Maximum evidence of an attacker who sees every frame, in bits: k epsilon / ln 2."""
        return self.spent.basic_nats / math.log(2)

    @property
    def empty(self) -> bool:
        """True if the bound allows the bits that identify one person among all people alive."""
        return self.most_bits >= EVERYBODY_BITS


def promises(
    frames: Mapping[str, tuple[int, float]], epsilon: float, delta: float = DELTA
) -> list[PrivacyGuarantee]:
    """Compute the bound for each speaker, over all recordings and features.

    ``frames`` has each speaker's number of frames and seconds of speech. ``epsilon`` is the nats
    per frame.

    Example:
        >>> (ann,) = promises({"ann": (10, 30.0)}, 0.5)
        >>> ann.spent.basic_nats, round(ann.most_bits, 1), ann.empty
        (5.0, 7.2, False)
    """
    return [
        PrivacyGuarantee(speaker, epsilon, delta, seconds, compute_spent(epsilon, count, delta))
        for speaker, (count, seconds) in frames.items()
    ]


def compute_spent(
    epsilon: float, count: int, delta: float, *, optimal_count: int | None = None
) -> PrivacySpent:
    """Compute each composition's bound for ``count`` frames; ``epsilon`` is per frame.

    ``optimal_count`` is the number of frames in the optimal composition, at least ``count``. A
    bound for more frames also bounds fewer.
    """
    optimal_nats = optimal(epsilon, count if optimal_count is None else optimal_count, delta)
    basic_nats = basic(epsilon, count)
    return PrivacySpent(
        count, basic_nats, advanced(epsilon, count, delta), min(basic_nats, optimal_nats)
    )


def empty_after(epsilon: float) -> int:
    """Return the number of frames after which the bound is vacuous."""
    return math.ceil(EVERYBODY_BITS * math.log(2) / epsilon)


_MECHANISMS = ("laplace", "tokens")  # their settings begin with an epsilon per frame
_EXACT = 1000  # maximum windows for which the optimal composition is computed exactly


@dataclass(frozen=True, slots=True)
class DeclaredGuarantee:
    """A mechanism that is (epsilon, 0)-private in each window, in the local sense.

    Any output for a window is at most exp(epsilon) times as likely for one voice as for any other.
    The noise is independent in each window, so windows compose (docs/method.md section 6). Output
    up to a moment depends on windows that are up to ``ahead_seconds`` later.

    Example:
        >>> token = DeclaredGuarantee("usc:15", 15.0, 0.04)
        >>> token.windows(1.0), round(token.compose(25).most_bits), token.compose(25).empty
        (25, 541, True)
    """

    mechanism: str
    epsilon: float
    window_seconds: float
    ahead_seconds: float = 0.0
    delta: float = DELTA

    def __post_init__(self) -> None:
        _check_positive((self.epsilon, "epsilon"), (self.window_seconds, "window"))

    @classmethod
    def parse_noise(cls, noise: str, window_seconds: float) -> Self | None:
        """Return the guarantee of noise such as ``"laplace:15,1"``; None if unknown."""
        name, _, setting = noise.partition(":")
        try:
            epsilon = float(setting.partition(",")[0])
            return cls(noise, epsilon, window_seconds) if name in _MECHANISMS else None
        except (ValueError, UsageError):
            return None

    def windows(self, seconds: float) -> int:
        """Return the maximum number of windows that the output of these seconds depends on."""
        if seconds <= 0:
            return 0
        return math.ceil(round((seconds + self.ahead_seconds) / self.window_seconds, 6))

    @lru_cache(maxsize=256)  # noqa: B019  # few are ever made
    def compose(self, windows: int) -> PrivacyGuarantee:
        """Compute the bound for this many windows together.

        Above a thousand windows the optimal bound is computed for the count rounded up to two
        significant digits. That also bounds fewer windows, and saves a computation per reading.
        """
        step = 1 if windows <= _EXACT else 10 ** (len(str(windows)) - 2)
        spent = compute_spent(
            self.epsilon, windows, self.delta, optimal_count=-(-windows // step) * step
        )
        seconds = windows * self.window_seconds
        return PrivacyGuarantee("", self.epsilon, self.delta, seconds, spent)
