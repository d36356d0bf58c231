"""Sound to the tokens of the codec's private codebook, with Laplace noise or without."""

from __future__ import annotations

import numpy as np

from monitor.maths.laplace import laplace, noise_scale, secret_uniform
from monitor.networks.usc import UscNetwork
from monitor.types import FloatArray, IntArray

__all__ = ["TokenStream"]


class TokenStream:
    """One stream of samples to tokens of C0, one of each 40 ms.

    How the samples are cut into pushes changes nothing.

    Args:
        network: whose codebook it is.
        epsilon: nats, above 0: Laplace noise of scale 2 C / epsilon is added to what the codebook
            is asked with, clipped to an L1 norm of C. A token is then (epsilon, 0)-private in the
            local sense: it is at most exp(epsilon) times as likely for one voice as for any other
            (USC section 2.5; there the noise is left out once the network is trained, and so is
            the promise). None for no noise.
        whose: what the noise is drawn by: a secret seed, and the recording. Whoever knows it all
            can take the noise off.

    Example:
        >>> def tokens(network, sound):  # shape (len(sound) // 640,)
        ...     stream = TokenStream(network, 15.0, secrets.randbits(128))
        ...     return np.concatenate([stream.push(sound), stream.flush()])
    """

    def __init__(self, network: UscNetwork, epsilon: float | None = None, *whose: object) -> None:
        self._books, self._whose = network.books, whose
        self._scale = None if epsilon is None else noise_scale(epsilon, network.books.clip)
        self._latents = network.encoder.stream()
        self._made = 0

    def reset(self) -> None:
        """Forget all that was heard: the next sample is the first, with the same noise."""
        self._latents.reset()
        self._made = 0

    def push(self, samples: FloatArray) -> IntArray:
        """Hear more.

        Args:
            samples: shape (n,), mono at 16 kHz in -1 to 1.

        Returns:
            shape (k,), int64, codes from 0; token i is of samples [640 i, 640 (i + 1)).

        Raises:
            UsageError: another shape.
        """
        return self._tokens(self._latents.push(samples))

    def flush(self) -> IntArray:
        """The tokens that are still due, as if silence followed; then `reset`."""
        rest = self._tokens(self._latents.flush())
        self.reset()
        return rest

    def _tokens(self, latents: FloatArray) -> IntArray:
        noise = self._noise(len(latents))
        self._made += len(latents)
        return self._books.codes(latents, 1, noise=noise)[:, 0]

    def _noise(self, count: int) -> FloatArray | None:
        """Of each token its own, wherever the stream is cut."""
        if self._scale is None:
            return None
        size = self._books.dimensions
        drawn = [secret_uniform(size, "token", *self._whose, self._made + i) for i in range(count)]
        return laplace(np.reshape(drawn, (count, size)), self._scale)
