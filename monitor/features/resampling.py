"""Changes the sample rate of a stream; the same samples come out for any cutting."""

from __future__ import annotations

import numpy as np
import soxr

from monitor.errors import UsageError
from monitor.types import FloatArray

__all__ = ["Resampler"]


class Resampler:
    """High-quality streaming resampling (libsoxr), one recording long.

    Samples come out a few milliseconds after they went in, in bursts; together with ``flush``
    they are those of resampling the whole recording at once. Equal rates pass straight through.

    Args:
        rate_in: samples per second that go in.
        rate_out: samples per second that come out.

    Raises:
        UsageError: if a rate is not positive.

    Example:
        >>> import numpy as np
        >>> resampler = Resampler(16000, 8000)
        >>> sizes = [resampler.process(np.zeros(1600)).size for _ in range(10)]
        >>> sum(sizes) + resampler.flush().size
        8000
    """

    def __init__(self, rate_in: int, rate_out: int) -> None:
        if min(rate_in, rate_out) <= 0:
            raise UsageError(f"sample rates must be positive: {rate_in} to {rate_out} Hz")
        self._stream = (
            soxr.ResampleStream(rate_in, rate_out, 1, dtype="float32", quality="HQ")
            if rate_in != rate_out
            else None
        )

    def process(self, samples: FloatArray) -> FloatArray:
        """What can be said after these further samples, shape (n,): shape (m,), float32."""
        samples = np.ascontiguousarray(samples, np.float32)
        return self._feed(samples, last=False) if samples.size else samples

    def flush(self) -> FloatArray:
        """The rest, at the end of the recording; afterwards a new resampler is needed."""
        return self._feed(np.empty(0, np.float32), last=True)

    def _feed(self, samples: FloatArray, *, last: bool) -> FloatArray:
        if self._stream is None:
            return samples
        resampled: FloatArray = self._stream.resample_chunk(samples, last=last)
        return resampled
