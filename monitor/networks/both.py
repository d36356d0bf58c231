"""Two networks heard as one: their embeddings side by side."""

from __future__ import annotations

import hashlib

import numpy as np

from monitor.networks.voice import VoiceNetwork
from monitor.types import FloatArray

__all__ = ["BothNetworks"]


class BothNetworks:
    """Embeddings of two networks side by side: cosines are the mean of the two networks' cosines.

    Args:
        one: a network.
        other: another one.

    Attributes:
        size: numbers in an embedding.
        sha256: marks what this pair makes.

    Example:
        >>> from monitor.networks.voice import shipped
        >>> both = BothNetworks(shipped(), shipped())
        >>> both.embed(np.zeros((1, 16000), np.float32)).shape
        (1, 384)
    """

    def __init__(self, one: VoiceNetwork, other: VoiceNetwork) -> None:
        self._networks = one, other
        self.size = one.size + other.size
        self.sha256 = hashlib.sha256(f"{one.sha256} {other.sha256}".encode()).hexdigest()

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed windows of one length, shape (b, n): shape (b, size), each of length 1."""
        found = [each.embed(windows) for each in self._networks]
        return np.concatenate(found, axis=1) / np.float32(np.sqrt(2))
