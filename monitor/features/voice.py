"""Speaker embeddings by the network that ships with the package: no torch, nothing to fetch."""

from __future__ import annotations

from typing import Any

from monitor.errors import UsageError
from monitor.features.embedding_windows import SpeechWindows, window_spec
from monitor.kinds.following import Sensitivity
from monitor.networks.both import BothNetworks
from monitor.networks.voice import SHA256, VoiceNetwork, shipped

__all__ = ["Voice"]


class Voice(SpeechWindows):
    """Embeddings of the speech, three seconds at a time, by the package's own voice network.

    A student of ECAPA-TDNN, run by numpy (`monitor.networks.voice`). It hears less than its teacher
    (`monitor.features.identity`), and is in every install. Any cutting into blocks gives the same
    bits. The network is loaded when the first feature is made, and shared by all.

    Args:
        network: another one of the same make, such as one that `monitor.adapting` has fine-tuned;
            its sha256 marks what it makes. None: the one that ships.
        name: of the feature, where it is heard beside the one that ships.

    Raises:
        StoreError: the weights in the package are damaged.
        UsageError: a network that has no mark: what it makes could be taken for another's.

    Example:
        >>> import numpy as np
        >>> voice = Voice()
        >>> voice.process(np.zeros(48000)).values.shape  # silence
        (0, 192)
    """

    spec = window_spec("voice", 192, SHA256)
    # benchmarks/change.py chose it
    follow = Sensitivity(1, 3, 20.0, 1e-2, back_units=3, level=0.25)

    def __init__(
        self, network: VoiceNetwork | BothNetworks | None = None, name: str = "voice"
    ) -> None:
        self._given = network, name
        network = shipped() if network is None else network
        if not network.sha256:
            raise UsageError("a network needs the sha256 of its weights, as a mark")
        self.spec = window_spec(name, network.size, network.sha256)
        super().__init__(self.spec, network, self.follow)

    def __reduce__(self) -> tuple[Any, ...]:
        """As another process is given it: afresh."""
        return type(self), self._given
