"""Which reader is for what: those who choose or are reported never train the recogniser.

It needs transcripts, so that other readers train it than train the voice: all of train-clean-5.
The readers of dev-clean and train-clean-100 are split by sorted id, alternately. Of the
non-native speakers the same 50 are kept apart as from the voice.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from monitor.errors import CorpusError
from recipes.voice import corpus
from recipes.voice.corpus import ROLES, Recording

_TRAINING = "train-clean-5"
_APART = ("dev-clean", "train-clean-100")
_NON_NATIVE = "speechocean762"


class Line(NamedTuple):
    """An utterance of a recording: seconds, and its words."""

    start: float
    end: float
    text: str


def recordings(speech: Path, nonnative: Path) -> list[Recording]:
    """Every recording that the recipe hears, training first.

    Args:
        speech: a folder with ``manifest.csv``: path, corpus, speaker, gender, chapter, seconds.
        nonnative: likewise, with ``age`` instead of ``chapter``.

    Raises:
        CorpusError: a manifest is missing or not such a table.
    """
    listed = corpus.recordings(speech, nonnative)
    apart = sorted({int(each.speaker) for each in listed if each.corpus in _APART})
    role_of = {str(who): ("choose", "report")[i % 2] for i, who in enumerate(apart)}
    found = [each for each in listed if each.corpus == _NON_NATIVE]
    found += [replace(each, role="train") for each in listed if each.corpus == _TRAINING]
    found += [replace(each, role=role_of[each.speaker]) for each in listed if each.corpus in _APART]
    return sorted(found, key=lambda each: (ROLES.index(each.role), each.corpus, each.path))


def lines(recording: Path) -> list[Line]:
    """The utterances of a recording, from the table beside it: start, end, text; headed or not.

    Raises:
        CorpusError: there is none, or it is another table.
    """
    path = recording.with_suffix(".tsv")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        if rows and rows[0] == list(Line._fields):
            rows = rows[1:]
        return [Line(float(start), float(end), text) for start, end, text in rows]
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path}: no transcript ({error})") from None
