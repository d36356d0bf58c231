"""The measure of utility: what a protected voice is still good for (`monitor.utility`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from monitor.attacks.measures import Measure
from monitor.evaluation.figure import Figure
from monitor.result_cache import code_mark
from monitor.types import FloatArray
from monitor.utility import Utility, compare, figures, understand

__all__ = ["Usefulness"]


class Usefulness(Measure):
    """Phone error, pitch correlation, voiced frames, loudness and length of protected pieces.

    Attributes:
        name: how it is called in tables.
        version: of the code.

    Example:
        >>> import numpy as np
        >>> noted = Usefulness().measure(np.ones(800), np.ones(1600) / 10, 8000)
        >>> round(noted["louder_db"], 3), noted["longer"]
        (-20.0, 2.0)
    """

    name = "utility"

    def __init__(self) -> None:
        self.version = code_mark("monitor.utility")

    def measure(self, clear: FloatArray, protected: FloatArray, rate: int) -> Mapping[str, Any]:
        """What one protected piece keeps."""
        return asdict(compare(understand(clear, rate), understand(protected, rate)))

    def figures(self, noted: Mapping[str, Sequence[Mapping[str, Any]]]) -> Sequence[Figure]:
        """What all pieces keep, with limits over readers."""
        each = [(who, Utility(**one)) for who, pieces in noted.items() for one in pieces]
        if not each:
            return ()
        return figures([one for _, one in each], [who for who, _ in each])
