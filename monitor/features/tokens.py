"""The feature ``tokens``: what a stream of tokens that are meant to be private tells of a voice.

The tokens are of C0, the codebook of `monitor.networks.usc` that is made private: one in 1,024,
each 40 ms. Nothing else of the voice goes in.
"""

from __future__ import annotations

from monitor.features.codes import Codes
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.networks.usc import UscNetwork, shipped
from monitor.networks.usc_encoder import BLOCK
from monitor.networks.usc_tokens import TokenStream

__all__ = ["Tokens"]

RATE = 16_000


class Tokens(Codes):
    """Histogram feature: the tokens of the codec's private codebook, in speech.

    A token counts where voice activity takes all of its 40 ms for speech; it comes out with the
    next 0.2 s that the network computes together. How often each token is said is all that is
    counted, so that it says least of what the order of tokens tells.

    Args:
        network: another one than the package's own.
        epsilon: of Laplace noise on each token, nats (`monitor.networks.usc_tokens`); None for no
            noise.
        whose: what the noise is drawn by: a secret seed, and the recording.

    Attributes:
        spec: with the mark of the weights: tokens of two networks have nothing in common.

    Raises:
        StoreError: the weights in the package are damaged.
    """

    follow = None  # how its margins vary was not measured

    def __init__(
        self,
        network: UscNetwork | None = None,
        epsilon: float | None = None,
        whose: tuple[object, ...] = (),
    ) -> None:
        network = shipped() if network is None else network
        spec = FeatureSpec(
            "tokens", HISTOGRAM, network.books.size, network.frame_seconds, RATE, network.sha256
        )
        stream = TokenStream(network, epsilon, *whose)
        super().__init__(spec, stream, BLOCK, network.encoder.late, None)
