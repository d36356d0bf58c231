"""The peer: pocketsphinx's all-phone search on the utterances of those who judge, once.

    python -m recipes.phones.sphinx CACHE

So the feature ``phones`` was heard before this network. A run that is stopped goes on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pocketsphinx

from monitor.networks.phones import PHONES
from monitor.types import FloatArray
from recipes.phones.prepare import PEER, Spoken
from recipes.stages import add_row, stage

_LANGUAGE_WEIGHT = 2.0
_NO_PRUNING = 0.0  # a search that is pruned dies in the middle of an utterance


def main() -> None:
    given = stage("Hear those who judge with pocketsphinx.", "cache").parse_args()
    spoken = Spoken(given.cache)
    known, search = spoken.peer(), Search()
    for index, utterance in enumerate(spoken.utterances):
        if spoken.piece(utterance).role in ("choose", "report") and index not in known:
            row = {"utterance": index, "tokens": search.tokens(spoken.sound(utterance))}
            add_row(spoken.cache.folder / PEER, row)


class Search:
    """One decoder, one utterance after the other."""

    def __init__(self) -> None:
        model = Path(pocketsphinx.get_model_path()) / "en-us"
        self._decoder = pocketsphinx.Decoder(
            hmm=str(model / "en-us"),
            allphone=str(model / "en-us-phone.lm.bin"),
            lw=_LANGUAGE_WEIGHT,
            beam=_NO_PRUNING,
            pbeam=_NO_PRUNING,
            loglevel="FATAL",
        )

    def tokens(self, sound: FloatArray) -> list[tuple[int, int, int]]:
        """Phones, classes from 1, and the frames of 10 ms [begin, end) they were found in.

        Silence and noise are left out; what was heard before does not matter.
        """
        self._decoder.reinit_feat()  # else the channel estimate of the utterance before is used
        self._decoder.start_utt()
        self._decoder.process_raw((sound * 32767).astype(np.int16).tobytes(), full_utt=True)
        self._decoder.end_utt()
        return [
            (PHONES.index(each.word) + 1, each.start_frame, each.end_frame + 1)
            for each in self._decoder.seg() or ()
            if each.word in PHONES
        ]


if __name__ == "__main__":
    main()
