"""What changes a voice so that it tells less about its owner: `Protector`."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from monitor.types import FloatArray

__all__ = ["Protector"]


@runtime_checkable
class Protector(Protocol):
    """Audio in, audio out: one channel of one recording, piece by piece.

    Any cutting into pieces gives the same samples, bit for bit. Without ``flush`` the last
    ``latency_samples`` may be missing; what ships gives as many samples in all as it was given.

    Attributes:
        rate: samples per second, in and out.
        latency_samples: by how many samples what came out may lag behind what went in, at most;
            None where nothing comes out before ``flush``.

    One that promises an epsilon for each window of what it lets through says so by an attribute
    ``declares``, a `monitor.protectors.declared.Declared`: runs compose it.

    Raises:
        monitor.errors.UsageError: from ``process``, where a sample is no number.

    Example:
        >>> import numpy as np
        >>> class Half:
        ...     rate, latency_samples = 16000, 0
        ...
        ...     def process(self, samples):
        ...         return samples / 2
        ...
        ...     def flush(self):
        ...         return np.empty(0, np.float32)
        ...
        ...     def reset(self):
        ...         pass
        >>> isinstance(Half(), Protector)
        True
    """

    rate: int

    @property
    def latency_samples(self) -> int | None:
        """By how many samples what came out may lag behind what went in."""

    def process(self, samples: FloatArray) -> FloatArray:
        """What can be said after these further samples: shape (n,) to (m,), float32."""
        ...

    def flush(self) -> FloatArray:
        """The rest, at the end of the recording; then ``reset`` before anything else."""
        ...

    def reset(self) -> None:
        """Begin the same recording anew, with the same draws."""
