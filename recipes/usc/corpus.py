"""Which reader is for what: those who choose or are reported never train the codec.

The readers of dev-clean are reported, and none of them chooses. Of the non-native speakers the
same 50 are kept apart as from the other networks. A few readers of the corpora that train it
choose its settings.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from recipes.voice import corpus
from recipes.voice.corpus import ROLES, Recording

__all__ = ["recordings"]

_REPORTED = "dev-clean"
_CHOOSE = {"train-clean-5": 2, "speechocean762": 10}
"""Readers of each corpus."""
_SEED = 20261123


def recordings(speech: Path, nonnative: Path) -> list[Recording]:
    """Every recording that the recipe hears, training first.

    Args:
        speech: a folder with ``manifest.csv``: path, corpus, speaker, gender, chapter, seconds.
        nonnative: likewise, with ``age`` instead of ``chapter``.

    Raises:
        CorpusError: a manifest is missing or not such a table.
    """
    listed = corpus.recordings(speech, nonnative)
    free = [each for each in listed if each.role != "held out" and each.corpus != _REPORTED]
    choosing = {
        (name, who)
        for name, count in _CHOOSE.items()
        for who in _drawn({each.speaker for each in free if each.corpus == name}, count)
    }

    def role(each: Recording) -> str:
        if each.role == "held out":
            return each.role
        if each.corpus == _REPORTED:
            return "report"
        return "choose" if (each.corpus, each.speaker) in choosing else "train"

    found = [replace(each, role=role(each)) for each in listed]
    return sorted(found, key=lambda each: (ROLES.index(each.role), each.corpus, each.path))


def _drawn(people: set[str], count: int) -> list[str]:
    ordered = sorted(people)
    return [ordered[i] for i in np.random.default_rng(_SEED).permutation(len(ordered))[:count]]
