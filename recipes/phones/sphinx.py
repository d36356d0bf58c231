"""The peer: pocketsphinx's all-phone search, as the feature ``phones`` was before this network."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pocketsphinx

from monitor.networks.phones import PHONES
from monitor.types import FloatArray

__all__ = ["phones"]


def phones(sound: FloatArray) -> list[str]:
    """The phones of one utterance, shape (n,) at 16 kHz in -1 to 1; without silence and noise."""
    decoder = _decoder()
    decoder.reinit_feat()  # else the channel estimate of the utterance before is used
    decoder.start_utt()
    decoder.process_raw((sound * 32767).astype(np.int16).tobytes(), full_utt=True)
    decoder.end_utt()
    return [segment.word for segment in decoder.seg() or () if segment.word in PHONES]


@cache
def _decoder() -> pocketsphinx.Decoder:
    model = Path(pocketsphinx.get_model_path()) / "en-us"
    return pocketsphinx.Decoder(
        hmm=str(model / "en-us"),
        allphone=str(model / "en-us-phone.lm.bin"),
        lw=2.0,
        beam=0.0,  # a search that is pruned dies in the middle of an utterance
        pbeam=0.0,
        loglevel="FATAL",
    )
