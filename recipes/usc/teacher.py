"""What the codec is taught by: the deepest layer of the recogniser that ships."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from monitor.networks.layers import BANDS, HOP, WIDTH, Centre, Separable, log_mel, relu
from monitor.networks.phones import PhoneNetwork
from monitor.types import FloatArray

__all__ = ["centred", "heard", "hidden"]

_STEM = 5  # mel frames that a frame of the recogniser is made of


def centred(bands: FloatArray, usual: FloatArray) -> FloatArray:
    """Log mel bands less their running mean, as the recogniser and the codec hear them."""
    return Centre(usual)(bands)


def hidden(network: PhoneNetwork, bands: FloatArray) -> FloatArray:
    """What the last block at 25 frames a second says of a whole recording.

    Args:
        network: the recogniser.
        bands: shape (4 n, 40), centred.

    Returns:
        shape (n, 384), of 40 ms each.
    """
    reach = _STEM // 2
    rows = np.pad(bands, ((reach, reach), (0, 0))).reshape(-1)
    windows = sliding_window_view(rows, _STEM * BANDS)[:: 2 * BANDS]
    x = relu(windows @ network.stem[0] + network.stem[1])
    x = _through(network.early, x)
    x = relu(x.reshape(len(x) // 2, -1) @ network.down[0] + network.down[1])
    return _through(network.middle, x)


def heard(sound: FloatArray, bands: int = BANDS) -> FloatArray:
    """Log mel bands of whole latents of 40 ms, silence following: shape (4 n, bands)."""
    whole = len(sound) // (4 * HOP) * 4 * HOP
    return log_mel(np.pad(sound[:whole], (0, WIDTH - HOP)), bands)


def _through(blocks: list[Separable], x: FloatArray) -> FloatArray:
    for block in blocks:
        x = block(np.pad(x, ((block.before, block.after), (0, 0))))
    return x
