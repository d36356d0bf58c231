"""Roles of readers: those who choose or are reported never train the recogniser.

Training needs transcripts, so its readers differ from the voice recipe's: all of train-clean-5. The
readers of dev-clean and train-clean-100, sorted by id, alternately choose and are reported. The
same 50 non-native speakers are held out as by the voice recipe.
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
    """An utterance of a recording: start and end in seconds, and its words."""

    start: float
    end: float
    text: str


def recordings(speech: Path, nonnative: Path) -> list[Recording]:
    """Return all recordings that the recipe uses, training first.

    Args:
        speech: a folder with ``manifest.csv``: path, corpus, speaker, gender, chapter, seconds.
        nonnative: a folder with such a manifest, but ``age`` instead of ``chapter``.

    Raises:
        CorpusError: a manifest is missing or invalid.
    """
    listed = corpus.recordings(speech, nonnative)
    apart = sorted({int(each.speaker) for each in listed if each.corpus in _APART})
    role_of = {str(who): ("choose", "report")[i % 2] for i, who in enumerate(apart)}
    found = [each for each in listed if each.corpus == _NON_NATIVE]
    found += [replace(each, role="train") for each in listed if each.corpus == _TRAINING]
    found += [replace(each, role=role_of[each.speaker]) for each in listed if each.corpus in _APART]
    return sorted(found, key=lambda each: (ROLES.index(each.role), each.corpus, each.path))


def lines(recording: Path) -> list[Line]:
    """Read the utterances of a recording from its .tsv file: start, end, text, header or not.

    Raises:
        CorpusError: the file is missing or invalid.
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
