"""Phones by pocketsphinx, with the acoustic and the phone language model that its wheel carries."""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path

import pocketsphinx

from monitor.types import IntArray

__all__ = ["PHONES", "Token", "phone_tokens"]

_NAMES = """
AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH
"""
PHONES = tuple(_NAMES.split())
"""The model's units, without silence and noise: ARPAbet without stress."""
_UNITS = {phone: unit for unit, phone in enumerate(PHONES)}
_LANGUAGE_WEIGHT = 2.0
# A beam of 1e-10 lets the search die in the middle of an utterance: its last phone is drawn out to
# the end and half of the tokens are lost without a word. Without pruning that cannot happen, the
# tokens are those of 1e-20, and with so few units it takes no longer.
_NO_PRUNING = 0.0
_lock = threading.Lock()

Token = tuple[int, int, int]
"""A unit, and the frames of 10 ms [begin, end) it was found in."""


def phone_tokens(samples: IntArray) -> list[Token]:
    """The phones of one utterance, in order.

    What was decoded before does not matter. The whole utterance's mean spectrum is taken out
    (``full_utt``): against transcripts of ten readers 57 % of the phones are wrong so, 65 % with
    the fixed mean that a decoder begins with otherwise, which keeps the microphone in.

    Args:
        samples: shape (n,), 16-bit integers at 16 kHz, at most some 8 s (memory grows by 10 MB a
            minute while an utterance lasts).

    Returns:
        A token for each phone; silence and noise are left out.

    Example:
        >>> import numpy as np
        >>> t = np.arange(8000) / 16000
        >>> buzz = sum(np.sin(2 * np.pi * 120 * k * t) / k for k in range(1, 9))
        >>> hiss = np.random.default_rng(0).standard_normal(12000)
        >>> samples = np.concatenate([hiss, 3000 * buzz, hiss]).astype(np.int16)
        >>> [(PHONES[unit], begin, end) for unit, begin, end in phone_tokens(samples)]
        [('AO', 75, 113)]
    """
    if not samples.size:
        return []
    with _lock:
        try:
            decoder = _decoder()
            decoder.reinit_feat()  # else the channel estimate of the utterance before is used
            decoder.start_utt()
            decoder.process_raw(samples.tobytes(), full_utt=True)
            decoder.end_utt()
            segments = decoder.seg() or ()  # None where there is nothing to say
            return [
                (_UNITS[segment.word], segment.start_frame, segment.end_frame + 1)
                for segment in segments
                if segment.word in _UNITS
            ]
        except BaseException:  # Ctrl-C, say: its utterance has begun, and no other one could
            _decoder.cache_clear()
            raise


@cache
def _decoder() -> pocketsphinx.Decoder:
    model = Path(pocketsphinx.get_model_path()) / "en-us"
    return pocketsphinx.Decoder(
        pocketsphinx.Config(
            hmm=str(model / "en-us"),
            allphone=str(model / "en-us-phone.lm.bin"),
            lw=_LANGUAGE_WEIGHT,
            beam=_NO_PRUNING,
            pbeam=_NO_PRUNING,
            loglevel="FATAL",
        )
    )
