"""A feature by any speaker-embedding network in an ONNX file.

The feature's name holds the digest of the file, so that templates, laws and streams of two networks
never meet under one name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from monitor.features.ecapa import Identity
from monitor.features.embeddings import Network, SpeechWindows, network_bytes, window_spec
from monitor.features.registry import FEATURES, MODEL, Registered

__all__ = ["SpeakerModel", "offered_model", "speaker_model"]

_DIGITS = 16


class SpeakerModel(SpeechWindows):
    """Embeddings of the speech, three seconds at a time, by the network of an ONNX file.

    Args:
        path: the file; its network takes sound (batch, samples) at 16 kHz, or 80 log mel energies
            (batch, frames, 80).

    Attributes:
        spec: its name is ``speaker_`` and the first 16 hexadecimal digits of the file's sha256, its
            network the whole sha256, the mark of templates and laws.

    Raises:
        UsageError: the extra ``onnx`` is not installed.
        StoreError: the file cannot be read, or holds no such network.

    Example:
        feature = SpeakerModel("campplus.onnx")
        track = feature.process(samples)  # at 16 kHz
    """

    # chosen for ECAPA-TDNN, whose embeddings those of other strong networks resemble most
    follow = Identity.follow

    def __init__(self, path: str | Path) -> None:
        data = network_bytes(Path(path))
        network = Network(data, Path(path).name)
        digest = hashlib.sha256(data).hexdigest()
        spec = window_spec(MODEL + digest[:_DIGITS], network.size, digest)
        super().__init__(spec, network, self.follow)
        self._network = network

    def another(self) -> SpeechWindows:
        """A fresh feature with the same network."""
        return SpeechWindows(self.spec, self._network, self.follow)


@lru_cache(maxsize=1)
def speaker_model(path: str) -> SpeakerModel:
    """The network of a file, loaded once."""
    return SpeakerModel(path)


@contextmanager
def offered_model(path: str | Path) -> Iterator[str]:
    """The network of a file is among the features, for the time of a block.

    Yields:
        the feature's name.

    Raises:
        UsageError: the extra ``onnx`` is not installed.
        StoreError: the file cannot be read, or holds no such network.
    """
    model = SpeakerModel(path)
    name = model.spec.name
    FEATURES[name] = Registered(lambda: SpeakerModel, model.another)
    os.environ["MONITOR_OFFERED"] = f"{name}={Path(path).absolute()}"  # to child processes
    try:
        yield name
    finally:
        del FEATURES[name], os.environ["MONITOR_OFFERED"]
