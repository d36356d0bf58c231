"""What is measured of a protected voice beside who it is, such as how well it is still understood.

A measure hears each trial piece twice, clear and protected, while the attackers' features hear it:
nothing is decoded or protected again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from monitor.evaluation.figure import Figure
from monitor.types import FloatArray

__all__ = ["MEASURES", "Measure"]


class Measure(ABC):
    """Compares clear with protected audio, piece by piece.

    Attributes:
        name: how it is called in tables.
        version: of what it computes: another one measures anew.
    """

    name: str
    version: str

    @abstractmethod
    def measure(self, clear: FloatArray, protected: FloatArray, rate: int) -> Mapping[str, Any]:
        """What is to be kept of one piece; anything that goes into JSON.

        Args:
            clear: shape (n,), one channel.
            protected: shape (m,), likewise.
            rate: samples per second of both.
        """

    @abstractmethod
    def figures(self, noted: Mapping[str, Sequence[Mapping[str, Any]]]) -> Sequence[Figure]:
        """What all pieces say together, with limits over readers where they can be had.

        Args:
            noted: by reader, what `measure` kept of each piece.
        """


def _utility() -> Measure:
    from monitor.attacks.usefulness import Usefulness

    return Usefulness()


MEASURES: dict[str, Callable[[], Measure]] = {"utility": _utility}
"""What makes each, by its name; called in the process that listens."""
