"""The codec whose first codebook is made private: sound to codes, and codes to spectra.

A small Universal Speech Codec (Tura-Vecino et al., "Universal semantic disentangled
privacy-preserving speech representation learning", sections 2.1 to 2.5), by numpy alone:
`recipes.usc` trained and folded it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from monitor.errors import StoreError
from monitor.networks.codebooks import Codebooks
from monitor.networks.mel import RATE
from monitor.networks.usc_decoder import UscDecoder
from monitor.networks.usc_encoder import BLOCK, FRAME, UscEncoder
from monitor.networks.weights import read_weights, shipped_weights
from monitor.types import AnyArray

__all__ = ["SHA256", "UscNetwork", "shipped"]

SHA256 = "bc92bb4e696b73e07c7b0b7f095125bae1520206919d5e64accb3830edcfd2fe"
"""Of usc.npz beside this file: the mark of its codes."""


class UscNetwork:
    """The weights; streams of its own for each voice that is heard and each that is made.

    Args:
        weights: arrays by name, as `recipes.usc.export` writes them.
        sha256: of the file that they come from: codes of two networks cannot be compared.

    Attributes:
        encoder: samples to latents.
        books: latents to codes and back; the first codebook, C0, is the one that is made private.
        decoder: latents to log mel frames in 80 bands (`monitor.networks.mel.log_mel`).
        frame_seconds: from latent to latent; latent i covers samples [640 i, 640 (i + 1)).
        look_ahead: seconds of audio after its own that a decoded frame depends on; besides, streams
            wait for whole blocks of 0.2 s.

    Raises:
        StoreError: they are of another network.

    Example:
        >>> sound = np.zeros(RATE)
        >>> def there_and_back(network):
        ...     hears, speaks = network.encoder.stream(), network.decoder.stream()
        ...     latents = np.concatenate([hears.push(sound), hears.flush()])
        ...     private = network.books.codes(latents, books=1)
        ...     said = network.books.latents(private)
        ...     return np.concatenate([speaks.push(said), speaks.flush()])  # (100, 80)
    """

    frame_seconds = FRAME / RATE

    def __init__(self, weights: Mapping[str, AnyArray], sha256: str = "") -> None:
        self.sha256 = sha256
        try:
            self.encoder, self.decoder = UscEncoder(weights), UscDecoder(weights)
            self.books = Codebooks(weights)
            if {self.encoder.channels, self.decoder.channels} != {self.books.channels}:
                raise ValueError("its parts do not fit")
            latents = self.encoder.stream().push(np.zeros(8 * BLOCK, np.float32))
            self.decoder.stream().push(self.books.latents(self.books.codes(latents)))
        except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
            raise StoreError(f"weights of another network than usc's ({error})") from None

    @property
    def look_ahead(self) -> float:  # noqa: D102  # told above
        return self.encoder.look_ahead + self.decoder.late * FRAME / 4 / RATE

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file of weights.

        Raises:
            StoreError: it cannot be read, or holds something else.
        """
        return cls(*read_weights(path))


@cache
def shipped() -> UscNetwork:
    """The network that ships with the package, loaded once.

    Raises:
        StoreError: its file is missing or damaged.
    """
    return UscNetwork(*shipped_weights(Path(__file__).with_suffix(".npz"), SHA256))
