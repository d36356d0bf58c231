"""The baseline: pocketsphinx's all-phone search on the utterances of evaluation readers.

    python -m recipes.phones.sphinx CACHE

Before this network, the feature ``phones`` used this search. An interrupted run resumes.
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
_NO_PRUNING = 0.0  # a pruned search fails in the middle of an utterance


def main() -> None:
    given = stage("Run pocketsphinx on evaluation readers.", "cache").parse_args()
    spoken = Spoken(given.cache)
    known, search = spoken.peer(), Search()
    for index, utterance in enumerate(spoken.utterances):
        if spoken.piece(utterance).role in ("choose", "report") and index not in known:
            row = {"utterance": index, "tokens": search.tokens(spoken.sound(utterance))}
            add_row(spoken.cache.folder / PEER, row)


class Search:
    """Decoder of one utterance at a time."""

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
        """Return the phones of a sound: classes from 1, with frames of 10 ms [begin, end).

        Silence and noise are omitted. Earlier utterances have no influence.
        """
        self._decoder.reinit_feat()  # otherwise it keeps the channel estimate
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
