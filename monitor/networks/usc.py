"""The small private tokenizer (USC): encoder, codebooks, noise and decoder."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import monitor.networks.layers as nn
from monitor.errors import UsageError
from monitor.lazy import once
from monitor.maths.composition import clipped, laplace, noise_scale, secret_uniform
from monitor.types import AnyArray, FloatArray, IntArray


class Codebooks:
    """Codebooks applied one after another (residual vector quantisation). The first is C0.

    Codes are factorised and compared by direction (Yu et al., "Vector-quantized image modeling with
    improved VQGAN", ICLR 2022). A latent is projected to few numbers, and the code nearest in
    direction is taken. Its projection back is subtracted, and the next codebook encodes the
    remainder (Zeghidour et al., "SoundStream", TASLP 2021).

    ``weights`` has for each book i ``book.i.in``, shape (d, channels), and its bias,
    ``book.i.codes`` (size, d), ``book.i.out`` (channels, d) and its bias. Also ``clip``.
    """

    def __init__(self, weights: Mapping[str, AnyArray]) -> None:
        count = sum(name.endswith(".codes") for name in weights)
        self._into, self._directions, self._tables = [], [], []
        for i in range(count):
            codes = np.asarray(weights[f"book.{i}.codes"], np.float32)
            matrix, bias = nn.dense(weights, f"book.{i}.out")
            self._into.append(nn.dense(weights, f"book.{i}.in"))
            self._directions.append(np.ascontiguousarray(_unit(codes).T))
            self._tables.append(np.asarray(codes @ matrix + bias, np.float32))
        # channels of a latent, and dimensions d of a projection
        self.channels, self.dimensions = self._into[0][0].shape
        self.size = len(self._tables[0])  # number of codes in a book
        # C, the maximum L1 norm of projections of length 1 when noise is added
        self.clip = float(weights["clip"])
        shapes = {table.shape for table in self._tables}
        if shapes != {(self.size, self.channels)} or not self.clip > 0:
            raise ValueError("the codebooks do not fit")

    def __len__(self) -> int:
        return len(self._tables)

    def codes(
        self, latents: FloatArray, books: int | None = None, *, noise: FloatArray | None = None
    ) -> IntArray:
        """Encode each latent, (k, channels), in each of the first books: (k, books), int64, from 0.

        Each latent is encoded by itself. ``noise``, (k, d), is added to C0's projections after they
        are scaled to length 1 and clipped to the L1 norm `clip`. Laplace noise of scale ``2 C /
        epsilon`` (`monitor.maths.composition`) makes C0 (epsilon, 0)-private in the local sense,
        per latent. The other books are not private.
        """
        books = len(self) if books is None else books
        if latents.ndim != 2 or latents.shape[1] != self.channels:
            raise UsageError(f"latents have the shape (k, {self.channels})")
        if not 0 < books <= len(self):
            raise UsageError(f"there are {len(self)} codebooks, not {books}")
        if noise is not None and noise.shape != (len(latents), self.dimensions):
            raise UsageError(f"noise has the shape (k, {self.dimensions})")
        residual = np.asarray(latents, np.float32)
        codes = np.empty((len(residual), books), np.int64)
        for book in range(books):
            matrix, bias = self._into[book]
            projected = nn.product(residual, matrix, 1) + bias
            if book == 0 and noise is not None:
                projected = np.asarray(clipped(_unit(projected), self.clip) + noise, np.float32)
            codes[:, book] = nn.product(projected, self._directions[book], 1).argmax(axis=1)
            residual = residual - self._tables[book][codes[:, book]]
        return codes

    def latents(self, codes: IntArray) -> FloatArray:
        """Sum the vectors of codes of the first b books, shape (k, b): shape (k, channels)."""
        if codes.ndim != 2 or not 0 < codes.shape[1] <= len(self):
            raise UsageError(f"codes have the shape (k, b), b from 1 to {len(self)}")
        if codes.size and not 0 <= codes.min() <= codes.max() < self.size:
            raise UsageError(f"codes are from 0 to {self.size - 1}")
        latents = np.zeros((len(codes), self.channels), np.float32)
        for book in range(codes.shape[1]):
            latents += self._tables[book][codes[:, book]]
        return latents


def _unit(rows: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, np.float32(1e-9)))


FRAME = 4 * nn.HOP  # samples of a latent: 40 ms
_SILENCE = np.float32(np.log(nn.FLOOR))


class UscEncoder:
    """The codec's encoder: one latent per 40 ms of sound, as the samples arrive.

    It has separable convolutions at 50 frames per second, then at 25. Their input is log mel bands,
    both unchanged and minus their running mean. A latent is ``late`` latents late, and appears at
    the next end of a block. It depends on ``look_ahead`` seconds of audio after its own.
    """

    def __init__(self, weights: Mapping[str, AnyArray]) -> None:
        self.usual = np.asarray(weights["usual"], np.float32)
        self.stem, self.down = nn.dense(weights, "stem"), nn.dense(weights, "down")
        self.early, self.middle = (
            nn.Separable.each_of(weights, name) for name in ("early", "middle")
        )
        early, middle = (
            sum(block.after for block in blocks) for blocks in (self.early, self.middle)
        )
        if early % 2:
            raise ValueError("its delay splits pairs of frames")
        self.channels = self.middle[-1].channels
        self.late = (nn.STEM_LATE + early) // 2 + middle
        ahead = (early - 1) * 2 * nn.HOP + middle * FRAME + nn.STEM // 2 * nn.HOP + nn.WIDTH
        self.look_ahead = ahead / nn.RATE

    def stream(self) -> UscEncoderStream:
        """Start a stream."""
        return UscEncoderStream(self)


class UscEncoderStream(nn.SoundStream):
    """Samples to latents, shape (k, channels), float32; any cutting gives the same.

    Latent i covers samples [640 i, 640 (i + 1)).
    """

    def __init__(self, encoder: UscEncoder) -> None:
        self._encoder = encoder
        super().__init__(encoder.usual, 2 * nn.BANDS, encoder.channels, (FRAME, 1))

    def _begin(self) -> int:
        super()._begin()
        self._early = nn.Tapes(self._encoder.early, nn.STEM_LATE)
        self._middle = nn.Tapes(self._encoder.middle, self._early.late // 2)
        return self._encoder.late

    def _block(self, block: FloatArray) -> FloatArray:
        bands, centred = self._bands(block)
        features = np.concatenate([bands - _SILENCE, centred], axis=1)
        x = self._early(self._stem(features, self._encoder.stem)).reshape(nn.ROWS // 2, -1)
        return self._middle(nn.relu(nn.linear(x, self._encoder.down)))


DECODER_BANDS = 80  # mel bands of a decoded frame
_LATENTS = 5  # latents that are computed at once
_FRAMES = 4  # of a latent


class UscDecoder:
    """The codec's decoder, which turns each latent into four log mel frames as latents arrive.

    It has separable convolutions at 25, 50 and 100 frames a second. A frame of 10 ms appears
    ``late`` frames after its own time. A stream also waits until five latents are complete.
    """

    def __init__(self, weights: Mapping[str, AnyArray]) -> None:
        self.up, self.again, self.head = (
            nn.dense(weights, name) for name in ("up", "again", "head")
        )
        parts = [nn.Separable.each_of(weights, name) for name in ("deep", "late", "last")]
        self.deep, self.late_blocks, self.last = parts
        deep, late, last = (sum(block.after for block in blocks) for blocks in parts)
        self.late = 4 * deep + 2 * late + last
        self.channels = self.deep[0].channels
        if len(self.head[1]) != DECODER_BANDS:
            raise ValueError("other bands")

    def stream(self) -> UscDecoderStream:
        """Start a stream."""
        return UscDecoderStream(self)


class UscDecoderStream(nn.BlockStream):
    """Latents to log mel frames in 80 bands, shape (n, 80), float32; any cutting gives the same."""

    def __init__(self, decoder: UscDecoder) -> None:
        self._decoder = decoder
        nothing = np.zeros((_LATENTS, decoder.channels), np.float32)
        super().__init__(nothing, np.empty((0, DECODER_BANDS), np.float32), (1, _FRAMES))

    def _begin(self) -> int:
        decoder = self._decoder
        self._deep = nn.Tapes(decoder.deep, 0)
        self._late = nn.Tapes(decoder.late_blocks, 2 * self._deep.late)
        self._last = nn.Tapes(decoder.last, 2 * self._late.late)
        return decoder.late

    def _block(self, block: FloatArray) -> FloatArray:
        decoder = self._decoder
        x = self._deep(block.copy())
        x = self._late(nn.relu(nn.linear(x, decoder.up)).reshape(2 * _LATENTS, -1))
        x = self._last(nn.relu(nn.linear(x, decoder.again)).reshape(4 * _LATENTS, -1))
        return nn.linear(x, decoder.head)


SHA256 = "bc92bb4e696b73e07c7b0b7f095125bae1520206919d5e64accb3830edcfd2fe"
"""Mark of the codes of usc.npz beside this file."""


class UscNetwork(nn.StoredNetwork):
    """Codec with a private first codebook, C0: sound to codes, codes to spectra.

    It is a small Universal Speech Codec in NumPy alone. See Tura-Vecino et al., "Universal semantic
    disentangled privacy-preserving speech representation learning", sections 2.1 to 2.5.
    `recipes.usc` trained and folded it. Latent i covers samples [640 i, 640 (i + 1)). A decoded
    frame depends on ``look_ahead`` seconds of audio after its own.
    """

    of, frame_seconds = "usc's", FRAME / nn.RATE

    def _fit(self, weights: Mapping[str, AnyArray]) -> None:
        self.encoder, self.decoder = UscEncoder(weights), UscDecoder(weights)
        self.books = Codebooks(weights)
        if {self.encoder.channels, self.decoder.channels} != {self.books.channels}:
            raise ValueError("its parts do not fit")
        latents = self.encoder.stream().push(np.zeros(8 * nn.BLOCK, np.float32))
        self.decoder.stream().push(self.books.latents(self.books.codes(latents)))
        self.look_ahead = self.encoder.look_ahead + self.decoder.late * FRAME / 4 / nn.RATE


@once
def shipped_codec() -> UscNetwork:
    """Load the network that ships with the package, once."""
    return UscNetwork(*nn.shipped_weights("usc.npz", SHA256))


class TokenStream:
    """Stream of samples to tokens of C0, one per 40 ms, however the samples are divided.

    With ``epsilon``, nats above 0, the codebook's input is clipped to an L1 norm of C. Laplace
    noise of scale 2 C / epsilon is added. A token is then (epsilon, 0)-private in the local sense.
    It is at most exp(epsilon) times as likely for one voice as for any other (USC section 2.5).
    In USC, noise and guarantee end with training. ``whose`` is the seed of the noise, from a secret
    and the recording. Anyone who knows it can remove the noise.
    """

    def __init__(self, network: UscNetwork, epsilon: float | None = None, *whose: object) -> None:
        self._books, self._whose = network.books, whose
        self._scale = None if epsilon is None else noise_scale(epsilon, network.books.clip)
        self._latents = network.encoder.stream()
        self._made = 0

    def reset(self) -> None:
        """Reset: the next sample is the first, with the same noise."""
        self._latents.reset()
        self._made = 0

    def push(self, samples: FloatArray) -> IntArray:
        """Return new tokens, int64, of samples. Token i covers samples [640 i, 640 (i + 1))."""
        return self._tokens(self._latents.push(samples))

    def flush(self) -> IntArray:
        """Return the tokens still due, as if silence followed; then `reset`."""
        tokens = self._tokens(self._latents.flush())
        self.reset()
        return tokens

    def _tokens(self, latents: FloatArray) -> IntArray:
        noise = self._noise(len(latents))
        self._made += len(latents)
        return self._books.codes(latents, 1, noise=noise)[:, 0]

    def _noise(self, count: int) -> FloatArray | None:
        """Draw noise by the index of each token, which no division of the stream changes."""
        if self._scale is None:
            return None
        size, places = self._books.dimensions, range(self._made, self._made + count)
        uniform = [secret_uniform(size, "token", *self._whose, index) for index in places]
        return laplace(np.reshape(uniform, (count, size)), self._scale)
