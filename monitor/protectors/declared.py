"""What a protector declares itself to be: an epsilon for each window of what it lets through."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from monitor.errors import UsageError
from monitor.maths.privacyloss import DELTA
from monitor.protectors.promise import Promise, spent_on

__all__ = ["Declared"]

_MECHANISMS = ("laplace", "tokens")
"""Whose setting begins with an epsilon for each frame."""
_EXACT = 1000
"""Windows up to which the optimal composition is worked out anew for each number of them."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A mechanism that is (epsilon, 0)-private in each window, in the local sense.

    Whatever it lets through of a window is at most exp(epsilon) times as likely for one voice as
    for any other, with noise of its own in each: windows compose (docs/method.md section 6).

    Attributes:
        mechanism: what declares it, such as ``"usc:15"``.
        epsilon: of one window, nats, above 0.
        window_seconds: from one window to the next.
        ahead_seconds: how far beyond a moment the windows lie that what was let through until then
            depends on.
        delta: with which probability the optimal bound may fail.

    Raises:
        UsageError: epsilon or the window is none.

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
        for value, what in ((self.epsilon, "an epsilon"), (self.window_seconds, "a window")):
            if not 0 < value < math.inf:
                raise UsageError(f"{value:g} is not {what}: give a number above 0")

    @classmethod
    def of_noise(cls, noise: str, window_seconds: float) -> Self | None:
        """What noise on ready-made frames declares; None where nothing is known of it.

        Args:
            noise: as frames are marked with it, such as ``"laplace:15,1"``.
            window_seconds: of a frame.

        Example:
            >>> Declared.of_noise("laplace:15,1", 3.0).epsilon, Declared.of_noise("fog", 3.0)
            (15.0, None)
        """
        name, _, setting = noise.partition(":")
        try:
            epsilon = float(setting.partition(",")[0])
            return cls(noise, epsilon, window_seconds) if name in _MECHANISMS else None
        except (ValueError, UsageError):
            return None

    def windows(self, seconds: float) -> int:
        """How many windows what was let through in so many seconds depends on, at most."""
        if seconds <= 0:
            return 0
        return math.ceil(round((seconds + self.ahead_seconds) / self.window_seconds, 6))

    def after(self, windows: int) -> Promise:
        """What all of so many windows promise together; the optimal bound is rounded up.

        Beyond a thousand windows the optimal bound is that of the next number of two digits and
        zeros: it is a bound for fewer as well, and need not be worked out at each reading.
        """
        return _after(self, windows)


@lru_cache(maxsize=256)
def _after(declared: Declared, windows: int) -> Promise:
    step = 1 if windows <= _EXACT else 10 ** (len(str(windows)) - 2)
    spent = spent_on(
        declared.epsilon, windows, declared.delta, optimal_of=-(-windows // step) * step
    )
    seconds = windows * declared.window_seconds
    return Promise("", declared.epsilon, declared.delta, seconds, spent)
