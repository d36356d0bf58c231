"""The settings of a monitor, checked: what is the same at every second of a stream."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from monitor.errors import UsageError
from monitor.stream.turns import ON_CHANGE
from monitor.types import TICKS_PER_SECOND

__all__ = ["MonitorSettings"]


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    """What a `Monitor` was asked for, beside a population, features and a speaker to watch.

    Attributes:
        step_seconds, channel, on_change, top, among, enrolled_prior, bystanders: as of `Monitor`.

    Raises:
        UsageError: one of them makes no sense.
    """

    step_seconds: float = 1.0
    channel: int | None = None
    on_change: str = "ignore"
    top: int = 5
    among: Sequence[float] | None = None
    enrolled_prior: float = 0.5
    bystanders: float | None = None

    def __post_init__(self) -> None:
        step = self.step_seconds
        if (
            not math.isfinite(step * TICKS_PER_SECOND)
            or self.step_ticks < 1
            or abs(step * TICKS_PER_SECOND - self.step_ticks) > 1e-6
        ):
            raise UsageError(f"step_seconds={step:g} must be a positive multiple of 0.01")
        if self.channel is not None and self.channel < 1:
            raise UsageError(
                f"channel={self.channel} must be 1 or more: channels are counted from 1"
            )
        if self.top < 1:
            raise UsageError(f"top={self.top} must be 1 or more")
        if self.on_change not in ON_CHANGE:
            raise UsageError(f"on_change={self.on_change!r} must be one of {', '.join(ON_CHANGE)}")

    @property
    def step_ticks(self) -> int:
        """Ticks from one reading to the next."""
        return round(self.step_seconds * TICKS_PER_SECOND)

    def record(self) -> dict[str, Any]:
        """As JSON-able values: a run is resumed with the same alone."""
        return {
            # a run that was begun before there were these is resumed without them
            "among": None if self.among is None else list(self.among),
            "bystanders": self.bystanders,
            "enrolled_prior": None if self.enrolled_prior == 0.5 else self.enrolled_prior,
            "step": self.step_seconds,
            "channel": self.channel,
            "on_change": self.on_change,
            "top": self.top,
        }
