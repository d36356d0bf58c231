"""Laplace noise on speaker embeddings, with a declared epsilon (USC section 2.5)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from monitor.errors import UsageError
from monitor.kinds import FeatureSpec
from monitor.maths.composition import clipped, laplace, noise_scale, secret_uniform
from monitor.maths.scores import unit_vectors
from monitor.types import FloatArray, Frames

CLIP = 1.0
"""No vector of length 1 has a smaller L1 norm: all are clipped, whoever speaks, and only their
direction is left. A larger C adds more noise than signal."""


@dataclass(frozen=True, slots=True)
class Laplace:
    """Clips each embedding to an L1 norm of C and adds Laplace noise of scale 2 C / epsilon.

    Each number of each embedding has noise of its own. So in exact arithmetic a frame is
    (epsilon, 0)-private in the local sense: whatever comes out is at most exp(epsilon) times as
    likely for one voice as for any other. The noise is a keyed hash in counter mode (SHAKE-256), so
    that nobody without the seed can tell it from random. Its numbers are floats, whose last bits
    can tell more (Mironov, CCS 2012): nothing is proved of what is written.

    Attributes:
        epsilon: of one frame, nats, above 0.
        clip: C, above 0. To choose it by the data that it protects would tell of them.

    Raises:
        UsageError: one of them makes no sense.

    Example:
        >>> Laplace.of("15"), Laplace.of("15,0.5").scale
        (Laplace(epsilon=15.0, clip=1.0), 0.06666666666666667)
    """

    epsilon: float
    clip: float = CLIP

    def __post_init__(self) -> None:
        for value, what in ((self.epsilon, "an epsilon"), (self.clip, "a clipping norm C")):
            if not 0 < value < math.inf:
                raise UsageError(f"{value:g} is not {what}: give a number above 0")

    @classmethod
    def of(cls, setting: str) -> Laplace:
        """As ``EPSILON`` or ``EPSILON,C`` say.

        Raises:
            UsageError: they do not.
        """
        try:
            return cls(*map(float, setting.split(",", 1)))
        except ValueError:
            raise UsageError(
                f"{setting!r} is not a setting such as laplace:15 (epsilon) or laplace:15,1 "
                "(epsilon, clipping norm C)"
            ) from None

    @property
    def scale(self) -> float:
        """Of the noise of each number."""
        return noise_scale(self.epsilon, self.clip)

    def noisy(self, values: FloatArray, *whose: object) -> FloatArray:
        """Embeddings, shape (k, d), with noise, float32.

        Args:
            values: the embeddings.
            whose: the seed, and whatever else the noise is to be drawn by.
        """
        uniform = secret_uniform(values.size, "laplace", *whose).reshape(values.shape)
        noise = laplace(uniform, self.scale)
        noisy = clipped(unit_vectors(values), self.clip) + noise  # a length would tell, too
        return np.asarray(noisy, np.float32)

    def protect(
        self, frames: Frames, tracks: Mapping[str, FeatureSpec], *, name: str, seed: int
    ) -> Frames:
        """Frames whose embeddings have noise, and in which nothing else is said of the voice.

        Features of other kinds (pitch, phones) are left out: for them nothing is promised. What is
        speech, and when a frame is complete, stays.

        Args:
            frames: of one recording.
            tracks: what its frames look like.
            name: of the recording; each has noise of its own.
            seed: secret wherever the promise counts.
        """
        kept = {
            # early frames would tell more of the same speech: nothing is promised of them
            feature: replace(
                track, values=self.noisy(track.values, seed, name, feature), early=None
            )
            for feature, track in frames.tracks.items()
            if tracks[feature].kind.pointed
        }
        return replace(frames, tracks=kept)
