"""The Laplace mechanism on vectors: local differential privacy of what a vector says.

Dwork, McSherry, Nissim and Smith, Calibrating noise to sensitivity in private data analysis, TCC
2006; on clipped features as in USC section 2.5.
"""

from __future__ import annotations

import hashlib

import numpy as np

from monitor.types import FloatArray

__all__ = ["clipped", "laplace", "noise_scale", "secret_uniform"]


def clipped(vectors: FloatArray, bound: float) -> FloatArray:
    """Vectors whose L1 norm is above a bound, shortened to it; the others as they are.

    Args:
        vectors: shape (..., d).
        bound: C, above 0.

    Example:
        >>> clipped(np.array([[3.0, -1.0], [0.25, 0.5]]), 1.0).tolist()
        [[0.75, -0.25], [0.25, 0.5]]
    """
    norms = np.abs(vectors).sum(axis=-1, keepdims=True)
    return np.asarray(
        vectors * np.divide(bound, norms, out=np.ones_like(norms), where=norms > bound)
    )


def noise_scale(epsilon: float, bound: float) -> float:
    """``2 C / epsilon``: two vectors clipped to C are at most 2 C apart.

    Args:
        epsilon: of one vector, nats.
        bound: C.
    """
    return 2 * bound / epsilon


def laplace(uniform: FloatArray, scale: float) -> FloatArray:
    """Laplace noise from uniform numbers, by the inverse of its distribution function.

    Args:
        uniform: strictly between 0 and 1, shape (...).
        scale: b of the density ``exp(-|x| / b) / (2 b)``; its standard deviation is sqrt(2) b.

    Example:
        >>> laplace(np.array([0.25, 0.5, 0.75]), 2.0).round(3).tolist()
        [-1.386, -0.0, 1.386]
    """
    tail = np.minimum(uniform, 1 - uniform)
    return np.asarray(-scale * np.sign(uniform - 0.5) * np.log(2 * tail))


def secret_uniform(count: int, *whose: object) -> FloatArray:
    """Numbers strictly between 0 and 1 that nobody can guess who lacks one of ``whose``.

    A keyed hash in counter mode (SHAKE-256), 52 bits a number.

    Args:
        count: how many.
        whose: a secret seed, and whatever else they are drawn by; compared by ``repr``.

    Example:
        >>> one, other = secret_uniform(3, 7, "ann"), secret_uniform(2, 7, "ann")
        >>> bool((one[:2] == other).all()), bool((one == secret_uniform(3, 8, "ann")).any())
        (True, False)
    """
    key = repr(whose).encode("utf-8", "replace")
    drawn = np.frombuffer(hashlib.shake_256(key).digest(8 * count), "<u8") >> np.uint64(12)
    return np.asarray((drawn + 0.5) * 2.0**-52)
