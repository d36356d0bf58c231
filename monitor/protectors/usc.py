"""A voice made anew from its private tokens: what the codec's first codebook says, and no more.

Tura-Vecino et al., Universal semantic disentangled privacy-preserving speech representation
learning, sections 2.1 to 2.5; the network is `monitor.networks.usc`, a small one of our own.
"""

from __future__ import annotations

import math

import numpy as np

from monitor.errors import UsageError
from monitor.features.resampling import Resampler
from monitor.networks.mel import HOP, RATE
from monitor.networks.usc import UscNetwork
from monitor.networks.usc_decoder import BANDS
from monitor.networks.usc_encoder import BLOCK, FRAME
from monitor.networks.usc_tokens import TokenStream
from monitor.protectors.declared import Declared
from monitor.protectors.griffin_lim import AHEAD, GriffinLim
from monitor.protectors.griffin_lim import BLOCK as TOGETHER
from monitor.protectors.samples import checked
from monitor.protectors.utterance import Utterance
from monitor.types import FloatArray

__all__ = ["Usc"]

_TOKENS = BLOCK // FRAME
_FRAMES = FRAME // HOP
_RESAMPLING_SECONDS = 0.24
"""That two resamplers hold back together, at 8 kHz and above; below it longer."""
_LOW_RATE = 8000


class Usc:
    """Sound to tokens of C0, and back: a token of each 40 ms is all that passes.

    Tokens are decoded to spectra in 80 mel bands, and these to sound (`GriffinLim`), at 16 kHz
    whatever the rate: nothing above 7.6 kHz is left. Silence is what its tokens say, too, and so
    not quite silent.

    Args:
        epsilon: of Laplace noise on each token, nats; None for no noise, and no promise.
        utterance: its rate, and what the noise is drawn by: seed, name and channel.
        network: the codec.

    Attributes:
        epsilon: as given.
        rate: samples per second.
        latency_samples: of some three quarters of a second.
        declares: what is promised of each token; None without noise.

    Raises:
        UsageError: epsilon is none.
    """

    def __init__(self, epsilon: float | None, utterance: Utterance, network: UscNetwork) -> None:
        if epsilon is not None and not 0 < epsilon < math.inf:
            raise UsageError(f"an epsilon of {epsilon:g} is none: give a number above 0")
        self.epsilon, self.rate = epsilon, utterance.rate
        self.declares = None
        late = network.decoder.late
        if epsilon is not None:
            ahead = (late + AHEAD + TOGETHER) * HOP / RATE
            self.declares = Declared(f"usc:{epsilon:g}", epsilon, FRAME / RATE, ahead)
        self._books, self._decoder = network.books, network.decoder
        whose = (utterance.seed, utterance.name, utterance.channel)
        self._tokens = TokenStream(network, epsilon, *whose)
        # whole blocks of the encoder, of the decoder and of what makes sound of spectra
        heard = -(-network.encoder.late // _TOKENS) * _TOKENS
        whole = heard - (-late // _FRAMES) + AHEAD // _FRAMES
        waits = (whole * FRAME + BLOCK - 1) / RATE
        if self.rate != RATE:
            waits += _RESAMPLING_SECONDS * max(1, _LOW_RATE / self.rate)
        self.latency_samples = math.ceil(waits * self.rate)
        self.reset()

    def process(self, samples: FloatArray) -> FloatArray:
        """What is whole after these samples."""
        samples = checked(samples)
        self._taken += samples.size
        heard = self._into.process(samples)
        self._heard += heard.size
        tokens = self._tokens.push(heard)
        sound = self._sound.push(self._latents.push(self._books.latents(tokens[:, None])))
        made = self._back.process(sound).astype(np.float32)
        self._out += made.size
        return made

    def flush(self) -> FloatArray:
        """The rest, as if silence followed."""
        last = self._into.flush()
        padding = np.zeros(-(self._heard + last.size) % FRAME, np.float32)
        tokens = [self._tokens.push(np.concatenate((last, padding))), self._tokens.flush()]
        said = [self._latents.push(self._books.latents(each[:, None])) for each in tokens]
        said.append(self._latents.flush())
        sound = [*map(self._sound.push, said), self._sound.flush()]
        rest = np.concatenate([*map(self._back.process, sound), self._back.flush()])
        missing = self._taken - self._out
        rest = np.append(rest, np.zeros(max(0, missing - rest.size)))[:missing]
        return rest.astype(np.float32)

    def reset(self) -> None:
        """Begin again, with the same noise."""
        self._into, self._back = Resampler(self.rate, RATE), Resampler(RATE, self.rate)
        self._latents, self._sound = self._decoder.stream(), GriffinLim(BANDS)
        self._tokens.reset()
        self._taken = self._heard = self._out = 0
