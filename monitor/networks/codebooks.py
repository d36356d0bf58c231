"""Residual vector quantisation: what a latent is in codes, and codes as a latent again.

Codes are factorised and compared by direction (Yu et al., "Vector-quantized image modeling with
improved VQGAN", ICLR 2022): a latent is projected to few numbers, the code whose direction is
nearest is taken, and its projection back is what the next codebook no longer has to say (Zeghidour
et al., "SoundStream", TASLP 2021).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from monitor.errors import UsageError
from monitor.maths.laplace import clipped
from monitor.networks.separable import dense, product
from monitor.types import AnyArray, FloatArray, IntArray

__all__ = ["Codebooks"]


class Codebooks:
    """Several codebooks one behind the other; the first is C0.

    Args:
        weights: by name, for each book i: ``book.i.in``, shape (d, channels), and its bias,
            ``book.i.codes`` (size, d), ``book.i.out`` (channels, d) and its bias; ``clip``.

    Attributes:
        size: codes of a book.
        dimensions: d, of a projection.
        channels: of a latent.
        clip: C, the L1 norm that projections of length 1 are clipped to where noise is added.

    Raises:
        KeyError, ValueError: they do not fit.
    """

    def __init__(self, weights: Mapping[str, AnyArray]) -> None:
        count = sum(name.endswith(".codes") for name in weights)
        self._into, self._directions, self._tables = [], [], []
        for i in range(count):
            codes = np.asarray(weights[f"book.{i}.codes"], np.float32)
            matrix, bias = dense(weights, f"book.{i}.out")
            self._into.append(dense(weights, f"book.{i}.in"))
            self._directions.append(np.ascontiguousarray(_unit(codes).T))
            self._tables.append(np.asarray(codes @ matrix + bias, np.float32))
        self.channels, self.dimensions = self._into[0][0].shape
        self.size = len(self._tables[0])
        self.clip = float(weights["clip"])
        shapes = {each.shape for each in self._tables}
        if shapes != {(self.size, self.channels)} or not self.clip > 0:
            raise ValueError("the codebooks do not fit")

    def __len__(self) -> int:
        return len(self._tables)

    def codes(
        self, latents: FloatArray, books: int | None = None, *, noise: FloatArray | None = None
    ) -> IntArray:
        """The code of each latent in each book.

        Args:
            latents: shape (k, channels).
            books: how many of the books, from C0 on; all by default.
            noise: shape (k, d), added to C0's projections after they were brought to length 1 and
                clipped to the L1 norm `clip`; with Laplace noise of scale ``2 C / epsilon``
                (`monitor.maths.laplace`) C0 is (epsilon, 0)-private in the local sense, a latent
                at a time; the other books are not.

        Returns:
            shape (k, books), int64, codes from 0. What else is in a call changes nothing.

        Raises:
            UsageError: another shape.
        """
        books = len(self) if books is None else books
        if latents.ndim != 2 or latents.shape[1] != self.channels:
            raise UsageError(f"latents have the shape (k, {self.channels})")
        if not 0 < books <= len(self):
            raise UsageError(f"there are {len(self)} codebooks, not {books}")
        if noise is not None and noise.shape != (len(latents), self.dimensions):
            raise UsageError(f"noise has the shape (k, {self.dimensions})")
        rest = np.asarray(latents, np.float32)
        found = np.empty((len(rest), books), np.int64)
        for book in range(books):
            projected = self._projected(rest, book)
            if book == 0 and noise is not None:
                projected = np.asarray(clipped(_unit(projected), self.clip) + noise, np.float32)
            found[:, book] = product(projected, self._directions[book], 1).argmax(axis=1)
            rest = rest - self._tables[book][found[:, book]]
        return found

    def latents(self, codes: IntArray) -> FloatArray:
        """What codes say of a latent: the sum over books.

        Args:
            codes: shape (k, b), of the first b books.

        Returns:
            shape (k, channels), float32.

        Raises:
            UsageError: another shape, or codes that there are none of.
        """
        if codes.ndim != 2 or not 0 < codes.shape[1] <= len(self):
            raise UsageError(f"codes have the shape (k, b), b from 1 to {len(self)}")
        if codes.size and not 0 <= codes.min() <= codes.max() < self.size:
            raise UsageError(f"codes are from 0 to {self.size - 1}")
        made = np.zeros((len(codes), self.channels), np.float32)
        for book in range(codes.shape[1]):
            made += self._tables[book][codes[:, book]]
        return made

    def _projected(self, latents: FloatArray, book: int) -> FloatArray:
        matrix, bias = self._into[book]
        return product(latents, matrix, 1) + bias


def _unit(rows: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, np.float32(1e-9)))
