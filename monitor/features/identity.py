"""Speaker embeddings: one for every three seconds of speech, by ECAPA-TDNN."""

from __future__ import annotations

import os

from monitor.features.ecapa import encoder, resolve
from monitor.features.embedding_windows import RATE, WINDOW_SECONDS, SpeechWindows, window_spec
from monitor.features.exported import exported_encoder
from monitor.kinds.following import Sensitivity

__all__ = ["RATE", "WINDOW_SECONDS", "Identity"]


class Identity(SpeechWindows):
    """Embeddings of the speech, three seconds at a time, by SpeechBrain's ECAPA-TDNN.

    Where onnxruntime is installed it runs the network, exported once to the user's cache, half of
    its work in whole numbers: 3.9 times as fast as torch, and the same to a cosine of 0.998.
    Otherwise torch does. Any cutting into blocks gives the same windows, and embeddings that differ
    by less than 1e-5 (torch's last bits depend on how many windows it computes at once). The
    network is loaded when the first feature is made, and shared by all.

    Args:
        source: a folder with SpeechBrain's spkrec-ecapa-voxceleb, or the file that was exported
            from one; None takes the environment's ``MONITOR_ECAPA``, else the model hub.
        device: where torch computes, such as ``"cuda:0"``; on ``"cpu"`` onnxruntime does, where it
            is there.

    Raises:
        UsageError: the extra ``identity`` is not installed, or there is no such folder.
        StoreError: the model is not complete, not the published one, broken or out of reach.

    Example:
        >>> Identity.spec.name, Identity.spec.rate, Identity.spec.size, Identity.spec.frame_seconds
        ('identity', 16000, 192, 3.0)

        feature = Identity("models/ecapa")
        track = feature.process(samples)  # at 16 kHz
    """

    spec = window_spec("identity", 192)
    # benchmarks/change.py chose it
    follow = Sensitivity(1, 2, 20.0, 3e-3, back_units=3, level=0.35)

    def __init__(
        self, source: str | os.PathLike[str] | None = None, *, device: str = "cpu"
    ) -> None:
        where = resolve(source)
        made = exported_encoder(where) if device == "cpu" else encoder(where, device)
        super().__init__(self.spec, made, self.follow)
