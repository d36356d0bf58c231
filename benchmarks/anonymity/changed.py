"""An excerpt as it is published."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.types import FloatArray

__all__ = ["Changed"]


@dataclass(frozen=True, slots=True)
class Changed:
    """An excerpt as it is published.

    Attributes:
        sound: shape (n,), at 16 kHz.
        bits: that were sent; None where nothing is coded.
    """

    sound: FloatArray
    bits: float | None = None
