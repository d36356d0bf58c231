"""The feature ``f0_robust``: the fundamental frequency where protection has moved the formants.

YIN takes a frame for voiced where the wave repeats itself closely, harmonics and all. A protector
that filters every 20 ms otherwise disturbs that and leaves the pitch as it was: `F0` then calls
most frames unvoiced and takes harmonics of some others for the pitch, and its bits understate what
the pitch tells (docs/attacks.md). Below 350 Hz there is little but the fundamental.
"""

from __future__ import annotations

import numpy as np

from monitor.features.f0 import F0, RATE
from monitor.kinds import FeatureSpec
from monitor.types import FloatArray, Track

__all__ = ["RobustF0"]

LOWPASS_HERTZ = 350
ORDER = 4


class RobustF0(F0):
    """Histogram feature: the lags of `F0`, found behind a low-pass filter.

    The filter is a Butterworth of order 4, as a stream: it looks at nothing to come.

    Example:
        >>> wave = np.sin(2 * np.pi * 100 * np.arange(800) / 8000)
        >>> set((RobustF0().process(wave).values + 19).tolist())
        {80}
    """

    spec = FeatureSpec("f0_robust", F0.spec.kind, F0.spec.size, F0.spec.frame_seconds, RATE)
    _state: FloatArray

    def process(self, samples: FloatArray) -> Track:
        """The voiced frames that these further samples, shape (n,), complete."""
        from scipy.signal import sosfilt  # slow to import

        if not len(samples):  # scipy refuses to filter nothing
            return super().process(samples)
        low, self._state = sosfilt(self._filter, samples, zi=self._state)
        return super().process(low.astype(np.float32))

    def reset(self) -> None:
        """Forget everything heard: the next sample is the first of a recording."""
        from scipy.signal import butter

        super().reset()
        self._filter = butter(ORDER, LOWPASS_HERTZ, fs=RATE, output="sos")
        self._state = np.zeros((len(self._filter), 2))
