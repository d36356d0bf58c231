"""The codec's encoder: one latent of each 40 ms of sound, as the samples come."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from monitor.errors import UsageError
from monitor.networks.blocks import WholeBlocks
from monitor.networks.centre import Centre
from monitor.networks.mel import BANDS, FLOOR, HOP, RATE, WIDTH, log_mel
from monitor.networks.separable import Separable, dense, relu
from monitor.networks.tape import Tape, Tapes
from monitor.types import AnyArray, FloatArray

__all__ = ["BLOCK", "FRAME", "UscEncoder", "UscEncoderStream"]

FRAME = 4 * HOP
"""Samples of a latent: 40 ms."""
BLOCK = 5 * FRAME
"""Samples that are computed at once, 0.2 s, however the stream is cut: sums of floats depend on
the shapes of what is summed."""
_SOUND = 2 * HOP  # samples of before a block that its first two mel frames begin in
_ROWS = BLOCK // (2 * HOP)
_STEM = 5  # mel frames that a frame of 20 ms is made of
_STEM_LATE = 2  # frames of 20 ms
_SILENCE = np.float32(np.log(FLOOR))


class UscEncoder:
    """The encoder's weights: separable convolutions at 50 frames a second, then at 25.

    It hears log mel bands twice: as they are, and less their running mean.

    Args:
        weights: by name, as `recipes.usc.export` writes them.

    Attributes:
        channels: numbers in a latent.
        late: whole latents that one comes after its own, at the next end of a block.
        look_ahead: seconds of audio after its own that a latent depends on; besides, a stream
            waits for whole blocks of 0.2 s.

    Raises:
        KeyError, ValueError: they do not fit.
    """

    def __init__(self, weights: Mapping[str, AnyArray]) -> None:
        self.usual = np.asarray(weights["usual"], np.float32)
        self.stem, self.down = dense(weights, "stem"), dense(weights, "down")
        self.early, self.middle = (
            [
                Separable.named(weights, f"{part}.{i}", reach)
                for i, reach in enumerate(weights[f"{part}.reach"])
            ]
            for part in ("early", "middle")
        )
        early, middle = (sum(each.after for each in part) for part in (self.early, self.middle))
        if early % 2:
            raise ValueError("pairs of frames are torn apart")
        self.channels = self.middle[-1].channels
        self.late = (_STEM_LATE + early) // 2 + middle
        ahead = (early - 1) * 2 * HOP + middle * FRAME + _STEM // 2 * HOP + WIDTH
        self.look_ahead = ahead / RATE

    def stream(self) -> UscEncoderStream:
        """Begin to listen."""
        return UscEncoderStream(self)


class UscEncoderStream:
    """One stream of samples through an encoder.

    How the samples are cut into pushes changes nothing, to the last bit.
    """

    def __init__(self, encoder: UscEncoder) -> None:
        self._encoder = encoder
        self.reset()

    def reset(self) -> None:
        """Forget all that was heard: the next sample is the first."""
        encoder = self._encoder
        self._centre, self._begun = Centre(encoder.usual), False
        self._sound, self._bands = Tape(_SOUND, 1, 0), Tape(_STEM - 1, 2 * BANDS, 2)
        self._early = Tapes(encoder.early, _STEM_LATE)
        self._middle = Tapes(encoder.middle, self._early.late // 2)
        silence = np.zeros(BLOCK, np.float32)
        self._blocks = WholeBlocks(self._heard, silence, encoder.channels, unborn=encoder.late)

    def push(self, samples: FloatArray) -> FloatArray:
        """Hear more.

        Args:
            samples: shape (n,), mono at 16 kHz in -1 to 1.

        Returns:
            shape (k, channels), float32: the latents that are known now, and were not before;
            latent i is of samples [640 i, 640 (i + 1)).

        Raises:
            UsageError: another shape.
        """
        if samples.ndim != 1:
            raise UsageError("a stream of samples has one axis")
        return self._blocks.push(samples)

    def flush(self) -> FloatArray:
        """The latents that are still due, as if silence followed; then forget all."""
        rest = self._blocks.flush(due=self._blocks.taken // FRAME)
        self.reset()
        return rest

    def _heard(self, block: FloatArray) -> FloatArray:
        """A block's worth of latents, as late as they are; rows are frames throughout."""
        encoder = self._encoder
        bands = log_mel(self._sound(block[:, None])[:, 0])
        before = 0 if self._begun else _SOUND // HOP  # frames that are not all of the stream
        self._begun = True
        centred = np.zeros_like(bands)
        centred[before:] = self._centre(bands[before:])
        rows = self._bands(np.concatenate([bands - _SILENCE, centred], axis=1))
        windows = sliding_window_view(rows.reshape(-1), _STEM * 2 * BANDS)[:: 4 * BANDS]
        x = relu(windows[:_ROWS] @ encoder.stem[0] + encoder.stem[1])
        x = self._early(x).reshape(_ROWS // 2, -1)
        return self._middle(relu(x @ encoder.down[0] + encoder.down[1]))
