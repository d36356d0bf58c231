"""A voice rebuilt from its private tokens, which are the codec's first codebook only."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import irfft, rfft

from monitor.anonymisers.filters import Utterance, check_samples
from monitor.anonymisers.laplace import DeclaredGuarantee
from monitor.errors import UsageError
from monitor.features.extractor import Resampler
from monitor.networks.layers import BLOCK, FFT, FLOOR, HOP, RATE, WIDTH, filters, window
from monitor.networks.usc import DECODER_BANDS, FRAME, TokenStream, UscNetwork
from monitor.types import AnyArray, FloatArray

# Griffin and Lim, IEEE TASSP 1984. Momentum: Perraudin, Balazs and Soendergaard, WASPAA 2013.
# Streaming with lookahead: Zhu, Beauregard and Wyse, IEEE TASLP 2007. Initial phases from
# continued spectral peaks: Beauregard, Harish and Wyse, DSP 2015.

SOUND_BLOCK = 4  # frames completed together, for any chunking of the stream: 40 ms
AHEAD = 8  # lookahead in frames: 80 ms
_FRAMES = SOUND_BLOCK + AHEAD
_SPAN = (_FRAMES - 1) * HOP + WIDTH
_ROUNDS = 8
_MOMENTUM = np.float32(0.99)
_GUESSES = 10
_OVERLAPS = -(-WIDTH // HOP)
_TINY = np.float32(1e-9)


def magnitudes(bands: FloatArray) -> FloatArray:
    """Estimate amplitudes of spectra, (t, 257), from log mel energies, (t, bands).

    Ten rounds of expectation maximisation minimise the Poisson deviance (Richardson, JOSA 1972).
    The model is a mixture of triangles, so no energy becomes negative.
    """
    triangles = filters(bands.shape[1])
    energies = np.maximum(np.exp(np.asarray(bands, np.float32)) - np.float32(FLOOR), 0)
    weights = triangles.sum(axis=1) + _TINY
    powers = energies @ triangles.T / weights
    for _ in range(_GUESSES):
        powers *= (energies / (powers @ triangles + _TINY)) @ triangles.T / weights
    return np.asarray(np.sqrt(powers), np.float32)


class GriffinLim:
    """Converts log mel energies to sound, a few frames late.

    The samples do not depend on the chunking of the input. Each block of 40 ms waits for 80 ms
    more. The initial phases continue the spectral peaks of the frame before. Then three times
    eight rounds overlap-add the frames, keep the phases of the sum, and restore the given energies.
    """

    def __init__(self, bands: int) -> None:
        self._bands = bands
        self._window = window()
        weight = np.zeros(_OVERLAPS * HOP, np.float32)
        weight[:WIDTH] = self._window**2
        self._whole = weight.reshape(_OVERLAPS, HOP).sum(axis=0)
        starts = np.arange(-_OVERLAPS, _FRAMES) * HOP
        weights = np.zeros(_SPAN + 2 * _OVERLAPS * HOP, np.float32)
        for start in starts + _OVERLAPS * HOP:
            weights[start : start + WIDTH] += weight[:WIDTH]
        self._weights = np.maximum(weights[_OVERLAPS * HOP :][:_SPAN], 1e-2)
        self.reset()

    def reset(self) -> None:
        """Restart: the next frame is the first."""
        bins = FFT // 2 + 1
        self._waiting: FloatArray = np.empty((0, self._bands), np.float32)
        self._asked: FloatArray = np.zeros((_FRAMES, bins), np.float32)
        self._phases: AnyArray = np.ones((_FRAMES, bins), np.complex64)
        self._final: FloatArray = np.zeros(_SPAN, np.float32)  # final frames, partly overlapped
        self._taken, self._unborn = 0, AHEAD // SOUND_BLOCK

    def push(self, bands: FloatArray) -> FloatArray:
        """Return the samples that these frames complete, shape (n,), float32.

        ``bands`` has shape (t, bands). Frame i begins at sample 160 i.
        """
        if bands.ndim != 2 or bands.shape[1] != self._bands:
            raise UsageError(f"invalid shape {bands.shape} of frames: use (t, {self._bands})")
        self._taken += len(bands)
        frames = np.concatenate([self._waiting, bands], dtype=np.float32)
        count = len(frames) - len(frames) % SOUND_BLOCK
        self._waiting = frames[count:].copy()
        blocks = frames[:count].reshape(-1, SOUND_BLOCK, self._bands)
        sounds = [self._block(magnitudes(block)) for block in blocks]
        unborn = min(self._unborn, len(sounds))
        self._unborn -= unborn
        return np.concatenate([np.empty(0, np.float32), *sounds[unborn:]])

    def flush(self) -> FloatArray:
        """Return the remaining samples, as if silence followed; then `reset`."""
        size = self._taken * HOP + (WIDTH - HOP if self._taken else 0)
        blocks = -(-self._taken // SOUND_BLOCK) + 1
        silence = np.full((blocks * SOUND_BLOCK + AHEAD - self._taken, self._bands), np.log(FLOOR))
        before = max(0, self._taken // SOUND_BLOCK - AHEAD // SOUND_BLOCK) * SOUND_BLOCK * HOP
        remainder = self.push(silence)[: size - before]
        self.reset()
        return remainder

    def _block(self, targets: FloatArray) -> FloatArray:
        """Complete the oldest block, given the magnitudes of the newest."""
        phases = _continue_phases(targets, np.angle(self._phases[-1]))
        self._asked = np.concatenate([self._asked[SOUND_BLOCK:], targets])
        spectra = self._asked * np.concatenate([self._phases[SOUND_BLOCK:], phases])
        before = None
        for _ in range(_ROUNDS):
            sound = (self._final + self._added(spectra, _SPAN)) / self._weights
            projected = rfft(sliding_window_view(sound, WIDTH)[::HOP] * self._window, FFT)
            spectra = projected if before is None else projected + _MOMENTUM * (projected - before)
            before = projected
            spectra = spectra * (self._asked / np.maximum(np.abs(spectra), _TINY))
        self._phases = spectra / np.maximum(self._asked, _TINY)
        final = np.zeros(_SPAN + SOUND_BLOCK * HOP, np.float32)
        final[:_SPAN] = self._final
        final += self._added(spectra[:SOUND_BLOCK], final.size)
        self._final = final[SOUND_BLOCK * HOP :]
        output: FloatArray = (final[: SOUND_BLOCK * HOP].reshape(-1, HOP) / self._whole).ravel()
        return output

    def _added(self, spectra: AnyArray, size: int) -> FloatArray:
        """Overlap-add windowed frames to sound, from the start of the first frame."""
        frames = np.zeros((len(spectra), _OVERLAPS, HOP), np.float32)
        flat = frames.reshape(len(spectra), -1)
        flat[:, :WIDTH] = irfft(spectra, FFT)[:, :WIDTH] * self._window
        added = np.zeros((max(len(spectra) + _OVERLAPS, -(-size // HOP)), HOP), np.float32)
        for step in range(_OVERLAPS):
            added[step : step + len(spectra)] += frames[:, step]
        return added.ravel()[:size]


def _continue_phases(targets: FloatArray, phases: FloatArray) -> AnyArray:
    """Compute the phases of frames by continuing their spectral peaks as tones.

    ``targets`` are magnitudes, shape (k, 257). ``phases`` are those of the previous frame, in
    radians, shape (257,).
    """
    bins = np.arange(targets.shape[1])
    logs = np.log(np.maximum(targets, _TINY))
    phasors = np.empty(targets.shape, np.complex64)
    for i, log in enumerate(logs):
        peaks = np.flatnonzero((log[1:-1] > log[:-2]) & (log[1:-1] >= log[2:])) + 1
        if peaks.size:
            lower, top, upper = log[peaks - 1], log[peaks], log[peaks + 1]
            centre = peaks + 0.5 * (lower - upper) / np.minimum(lower - 2 * top + upper, -_TINY)
            turned = phases[peaks] + 2 * np.pi * HOP / FFT * centre
            nearest = np.searchsorted((peaks[:-1] + peaks[1:] + 1) // 2, bins, side="right")
            # the transform of a window advances from bin to bin by the phase of its centre
            phases = turned[nearest] - np.pi * WIDTH / FFT * (bins - centre[nearest])
        phasors[i] = np.exp(1j * phases)
    return phasors


# Tura-Vecino et al., Universal semantic disentangled privacy-preserving speech representation
# learning, sections 2.1 to 2.5. The network, `monitor.networks.usc`, is a small one of ours.

_TOKENS = BLOCK // FRAME
_USC_FRAMES = FRAME // HOP
_RESAMPLING_SECONDS = 0.24  # latency of two resamplers at 8 kHz and above; longer below that
_LOW_RATE = 8000


class Usc:
    """Encodes sound as tokens of C0 and decodes it again, so only one token per 40 ms passes.

    Tokens are decoded to spectra in 80 mel bands and these to sound (`GriffinLim`), at 16 kHz for
    any rate. Nothing above 7.6 kHz remains. Silence is decoded from tokens too, so it is not quite
    silent. ``epsilon`` is the Laplace noise on each token, in nats, or None for no noise.
    ``declares`` has the guarantee that follows.
    """

    def __init__(self, epsilon: float | None, utterance: Utterance, network: UscNetwork) -> None:
        if epsilon is not None and not 0 < epsilon < math.inf:
            raise UsageError(f"invalid epsilon {epsilon:g}: use a number above 0")
        self.epsilon, self.rate = epsilon, utterance.rate
        self.declares = None
        delay = network.decoder.late
        if epsilon is not None:
            ahead = (delay + AHEAD + SOUND_BLOCK) * HOP / RATE
            self.declares = DeclaredGuarantee(f"usc:{epsilon:g}", epsilon, FRAME / RATE, ahead)
        self._books, self._decoder = network.books, network.decoder
        noise_key = (utterance.seed, utterance.name, utterance.channel)
        self._tokens = TokenStream(network, epsilon, *noise_key)
        # whole blocks of the encoder, the decoder and `GriffinLim`
        encoder_frames = -(-network.encoder.late // _TOKENS) * _TOKENS
        frames = encoder_frames - (-delay // _USC_FRAMES) + AHEAD // _USC_FRAMES
        waits = (frames * FRAME + BLOCK - 1) / RATE
        if self.rate != RATE:
            waits += _RESAMPLING_SECONDS * max(1, _LOW_RATE / self.rate)
        self.latency_samples = math.ceil(waits * self.rate)
        self.reset()

    def process(self, samples: FloatArray) -> FloatArray:
        """Return the output that these samples complete."""
        samples = check_samples(samples)
        self._taken += samples.size
        sound_in = self._into.process(samples)
        self._heard += sound_in.size
        tokens = self._tokens.push(sound_in)
        sound = self._sound.push(self._latents.push(self._books.latents(tokens[:, None])))
        output = self._back.process(sound).astype(np.float32)
        self._out += output.size
        return output

    def flush(self) -> FloatArray:
        """Return the remaining output, as if silence followed."""
        last = self._into.flush()
        padding = np.zeros(-(self._heard + last.size) % FRAME, np.float32)
        tokens = [self._tokens.push(np.concatenate((last, padding))), self._tokens.flush()]
        latents = [self._latents.push(self._books.latents(block[:, None])) for block in tokens]
        latents.append(self._latents.flush())
        sound = [*map(self._sound.push, latents), self._sound.flush()]
        remainder = np.concatenate([*map(self._back.process, sound), self._back.flush()])
        missing = self._taken - self._out
        silence = np.zeros(max(0, missing - remainder.size))
        return np.append(remainder, silence)[:missing].astype(np.float32)

    def reset(self) -> None:
        """Restart, with the same noise."""
        self._into, self._back = Resampler(self.rate, RATE), Resampler(RATE, self.rate)
        self._latents, self._sound = self._decoder.stream(), GriffinLim(DECODER_BANDS)
        self._tokens.reset()
        self._taken = self._heard = self._out = 0
