"""How long a training is, how fast it learns at each moment of it, and what keeps its state."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from monitor.errors import UsageError

__all__ = ["FINE_TUNING_STEPS", "KeptTraining", "Length", "rate"]

FINE_TUNING_STEPS = 200
"""Of a network that has learnt already, where nobody says."""
_WARM_UP = 0.05


@dataclass(frozen=True, slots=True)
class Length:
    """How long a training is: by steps or by seconds spent, one of them.

    Example:
        >>> Length(steps=40).done(10, 99.0), Length(seconds=60).done(10, 99.0)
        (0.25, 1.0)
    """

    steps: int | None = None
    seconds: float | None = None

    def done(self, step: int, seconds: float) -> float:
        """Which share of it has been done, 1 at the end.

        Raises:
            UsageError: it has neither.
        """
        if self.steps is not None:
            return min(1.0, step / self.steps) if self.steps else 1.0
        if self.seconds is None:
            raise UsageError("a training has --steps or --minutes")
        return min(1.0, seconds / self.seconds)


class KeptTraining(ABC):
    """Keeps the state of a training that may be interrupted."""

    @abstractmethod
    def read(self) -> bytes | None:
        """What was written last; None where nothing was."""

    @abstractmethod
    def write(self, state: bytes) -> None:
        """Keep a state in the place of the one before."""


def rate(done: float, highest: float, lowest: float) -> float:
    """Of learning: a short rise, then half a cosine.

    Args:
        done: share of the training, 0 to 1.
        highest: rate, after the rise.
        lowest: rate, at the end.

    Example:
        >>> [round(rate(done, 1.0, 0.0), 2) for done in (0, 0.05, 0.5, 1)]
        [0.02, 1.0, 0.54, 0.0]
    """
    if done < _WARM_UP:
        return highest * max(0.02, done / _WARM_UP)
    fall = 0.5 * (1 + math.cos(math.pi * (done - _WARM_UP) / (1 - _WARM_UP)))
    return lowest + (highest - lowest) * fall
