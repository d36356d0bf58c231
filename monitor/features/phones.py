"""The feature ``phones``: counts which of 256 learnt units of sound a voice makes, every 20 ms.

Units are made by the network of `monitor.networks.units` (`monitor/networks/units.npz`). They are
finer than phones, the sounds of a language, which `monitor.networks.phones` recognises and
`monitor.features.said_phones` gives; those are not counted.
"""

from __future__ import annotations

from monitor.features.codes import Codes
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.kinds.following import Sensitivity
from monitor.networks.units import BLOCK, UnitNetwork, shipped

__all__ = ["Phones"]

RATE = 16_000


class Phones(Codes):
    """Histogram feature: the codes of the first layer of a phone recogniser, in speech.

    Two voices that say the same phones go through different codes: counting codes tells more of
    who speaks than counting what a recogniser takes them for (`monitor.features.said_phones`).

    A frame counts where voice activity takes all of it for speech. It comes out within 0.1 s of
    its end, the same for any cutting into blocks, and its span says which audio it was.

    Other units (another recogniser's, a codec's) are counted as ready-made frames of this name,
    with their own size: see `monitor.sources.FramesFile`.

    Args:
        network: another one than the package's own.

    Attributes:
        spec: with the mark of the weights: codes of two networks have nothing in common.

    Raises:
        StoreError: the weights in the package are damaged.

    Example:
        >>> import numpy as np
        >>> phones = Phones()
        >>> phones.process(np.zeros(32000)).values
        array([], dtype=int64)
    """

    # benchmarks/change.py chose it
    follow = Sensitivity(50, 300, 40.0, 0.05, back_units=20, held_units=3, min_units=3)

    def __init__(self, network: UnitNetwork | None = None) -> None:
        network = shipped() if network is None else network
        spec = FeatureSpec(
            "phones", HISTOGRAM, network.size, network.frame_seconds, RATE, network.mark
        )
        super().__init__(spec, network.stream(), BLOCK, network.late, network.memory)
