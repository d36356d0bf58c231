"""Expected bits along a stream: the law's MeanD with its limits, without refitting every second.

Source: docs/method.md section 5.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from monitor.maths.quantiles import limits
from monitor.population.interpolation import LengthLaw
from monitor.stream.reading import ZERO, Bits
from monitor.types import FloatArray

__all__ = ["ExpectedBits"]

_NODES_PER_OCTAVE = 6
_NODES_PER_OCTAVE_MIXED = 12
_LAW = slice(0, 1)
_REPLICATES = slice(1, None)
_LATEST = 64


class ExpectedBits:
    """MeanD(T, D) of a law at N.

    The figure itself is exact at every T. Its limits need MeanD under every replicate, dear for
    thousands of speakers: how far they lie from the figure is worked out at six lengths an
    octave (twelve beside a degenerate law), the grid of the law among them, when first needed, and
    interpolated in log T between (``benchmarks/update.py``).

    Args:
        law: the law at one template length.
        speakers: N.
    """

    def __init__(self, law: LengthLaw, speakers: int) -> None:
        self._law, self._speakers = law, speakers
        self._offsets: dict[int, tuple[float, float]] = {}
        self._latest: dict[float, Bits] = {}  # of one block: a law may be asked twice
        self._nodes = _nodes(law)
        grid = [self._value(float(t)) for t in law.lengths]
        self.first_bits = grid[0]
        self.plateau_bits = max(grid)

    def at(self, seconds: float) -> Bits:
        """Expected bits with limits at T speech seconds; zero at T = 0."""
        seconds = min(max(seconds, 0.0), float(self._nodes[-1]))
        if seconds not in self._latest:
            if len(self._latest) >= _LATEST:
                self._latest.clear()
            self._latest[seconds] = self._at(seconds) if seconds else ZERO
        return self._latest[seconds]

    def _at(self, seconds: float) -> Bits:
        value = self._value(seconds)
        if seconds <= self._nodes[0]:
            low, high = self._exact(seconds, value)
        else:
            right = int(np.searchsorted(self._nodes, seconds))
            t0, t1 = self._nodes[right - 1], self._nodes[right]
            w = float(np.log(seconds / t0) / np.log(t1 / t0))
            (low0, high0), (low1, high1) = self._at_node(right - 1), self._at_node(right)
            low, high = (1 - w) * low0 + w * low1, (1 - w) * high0 + w * high1
        ceiling = float(np.log2(self._speakers))
        return Bits(value, max(value + low, 0.0), min(value + high, ceiling))

    def _value(self, seconds: float) -> float:
        return float(self._law.at(seconds).expected_bits(self._speakers, _LAW)[0])

    def _exact(self, seconds: float, value: float) -> tuple[float, float]:
        low, high = limits(self._law.at(seconds).expected_bits(self._speakers, _REPLICATES))
        return low - value, high - value

    def _at_node(self, node: int) -> tuple[float, float]:
        if node not in self._offsets:
            seconds = float(self._nodes[node])
            self._offsets[node] = self._exact(seconds, self._value(seconds))
        return self._offsets[node]


def _nodes(law: LengthLaw) -> FloatArray:
    """The grid of the law, and lengths between: more where pmfs are mixed, which bends faster."""
    nodes = [float(law.lengths[0])]
    for left, (low, high) in enumerate(pairwise(law.lengths.tolist())):
        mixed = law.degenerate[left : left + 2].any()
        dense = _NODES_PER_OCTAVE_MIXED if mixed else _NODES_PER_OCTAVE
        count = int(np.ceil(np.log2(high / low) * dense))
        nodes += np.geomspace(low, high, count + 1)[1:].tolist()
    return np.array(nodes)
