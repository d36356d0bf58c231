"""Expected bits along a stream: the law's MeanD with its limits, without refitting every second."""

from __future__ import annotations

import numpy as np

from monitor.maths.bootstrap import limits
from monitor.population.interpolation import LengthLaw
from monitor.stream.reading import ZERO, Bits

__all__ = ["ExpectedBits"]

_NODES_PER_OCTAVE = 8
_LAW = slice(0, 1)
_DRAWS = slice(1, None)


class ExpectedBits:
    """MeanD(T, D) of a law at N.

    The figure itself is exact at every T. Its limits need MeanD under every draw, which is dear for
    thousands of speakers: they are worked out at eight lengths an octave, when first needed, and
    interpolated in log T between them.

    Args:
        law: the law at one template length.
        speakers: N.
    """

    def __init__(self, law: LengthLaw, speakers: int) -> None:
        self._law, self._speakers = law, speakers
        self._limits: dict[int, tuple[float, float]] = {}
        self._cache: dict[float, Bits] = {}
        first, last = float(law.lengths[0]), float(law.lengths[-1])
        count = max(int(np.ceil(np.log2(last / first) * _NODES_PER_OCTAVE)), 1) + 1
        self._nodes = np.geomspace(first, last, count)
        self.first_bits = self._value(first)
        self.plateau_bits = max(self._value(float(t)) for t in law.lengths)

    def at(self, seconds: float) -> Bits:
        """Expected bits with limits at T speech seconds; zero at T = 0."""
        first, last = float(self._nodes[0]), float(self._nodes[-1])
        if seconds <= 0:
            return ZERO
        if seconds >= last:
            if last not in self._cache:
                self._cache[last] = Bits(self._value(last), *self._limits_at(self._nodes.size - 1))
            return self._cache[last]
        value = self._value(seconds)
        if seconds <= first:
            low, high = self._limits_at(0)
            share = value / self.first_bits if self.first_bits > 0 else 0.0
            return Bits(value, low * share, high * share)
        right = int(np.searchsorted(self._nodes, seconds, side="right"))
        t0, t1 = self._nodes[right - 1], self._nodes[right]
        w = float(np.log(seconds / t0) / np.log(t1 / t0))
        (low0, high0), (low1, high1) = self._limits_at(right - 1), self._limits_at(right)
        return Bits(value, (1 - w) * low0 + w * low1, (1 - w) * high0 + w * high1)

    def _value(self, seconds: float) -> float:
        return float(self._law.at(seconds).expected_bits(self._speakers, _LAW)[0])

    def _limits_at(self, node: int) -> tuple[float, float]:
        if node not in self._limits:
            point = self._law.at(float(self._nodes[node]))
            self._limits[node] = limits(point.expected_bits(self._speakers, _DRAWS))
        return self._limits[node]
