"""The logistic function as NumPy computes it, for fits whose results are stored or printed in full.

Elsewhere `scipy.special.expit`, ``softmax`` and ``log_softmax`` are used as they are. They may
round the last bit otherwise than NumPy's exponential does, and a law or a report shows every digit:
the fits here, and the softmaxes of `monitor.maths.logit`, `monitor.maths.lid` and
`monitor.evaluation.lid.replicates`, keep NumPy's, so that numbers that were published can be made
again to the last digit (they would move by some 1e-15 of themselves, a reliability by 1e-13).
"""

from __future__ import annotations

import numpy as np

from monitor.types import FloatArray

__all__ = ["logistic"]

_FAR = 700.0  # exp does not overflow


def logistic(log_odds: FloatArray) -> FloatArray:
    """The probability ``1 / (1 + exp(-x))`` of log odds, any shape, nats.

    Example:
        >>> logistic(np.array([0.0, np.log(3.0), 1e9]))
        array([0.5 , 0.75, 1.  ])
    """
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -_FAR, _FAR))))
