"""Hears one recording of audio, with the words that lie beside it, run by run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from monitor.errors import SourceError
from monitor.features.extractor import Extractor
from monitor.protocols import Feature, Source
from monitor.sources.beside import with_words
from monitor.stream.coverage import worth_telling
from monitor.transcripts.choice import TranscriptChoice
from monitor.types import Block, BoolArray, Frames, Gap, Track, Words

__all__ = ["frames_of", "heard_runs", "of_words", "told_of_words", "with_their_words"]


def of_words(features: Sequence[Feature]) -> list[Feature]:
    """Those of the features that are made of words."""
    return [each for each in features if each.spec.takes == "words"]


def with_their_words(
    source: Source,
    path: Path,
    features: Sequence[Feature],
    words: TranscriptChoice,
    speaker: str | None = None,
    start_seconds: float = 0.0,
) -> Source:
    """A recording as these features hear it: with its transcript where one is made of words.

    Args:
        source: the recording.
        path: its file.
        features: what hears it.
        words: which transcript goes with it.
        speaker: who is heard.
        start_seconds: where the source begins in the file.

    Raises:
        SourceError: there is no transcript, or it cannot be used.
    """
    if not of_words(features):
        return source
    return with_words(source, path, words, own=speaker, start_seconds=start_seconds)


def told_of_words(
    words: Words, label: str, speech: BoolArray, choice: TranscriptChoice, path: Path
) -> tuple[str, ...]:
    """What is to be said of a transcript once its recording was heard: that it may be of another.

    Args:
        words: of the recording, on its clock.
        label: of the transcript.
        speech: shape (ticks,), as far as the recording was heard.
        choice: which transcript goes with it.
        path: of the recording.
    """
    heard = words.begins < speech.size
    texts = tuple(text for text, own in zip(words.texts, heard.tolist(), strict=True) if own)
    some = Words(texts, words.begins[heard], words.ends[heard], words.known[heard])
    found = worth_telling(some, speech)
    doubt = found.sentence(label) if found is not None and found.doubtful else ""
    return tuple(line for line in (doubt, choice.passed_over(path)) if line)


def heard_runs(
    source: Source,
    features: Sequence[Feature],
    channel: int | None = None,
    *,
    most_speech: float = np.inf,
    conditions: bool = False,
) -> Iterator[Frames]:
    """The frames of a recording of audio; those of words take no time by themselves.

    Args:
        source: the recording, with its words where a feature is made of them.
        features: fresh, or of any recording before.
        channel: to hear, from 0; None for the mean of all.
        most_speech: ticks of speech; no more is heard once there were more.
        conditions: describe what it sounds like as well.

    Raises:
        SourceError: it breaks off.
    """
    beside = of_words(features)
    by_ear = [each for each in features if each not in beside]
    extractor = Extractor(by_ear, channel, conditions=conditions)
    for each in beside:
        each.reset()
    heard = 0
    for item in source:
        if isinstance(item, Gap):
            raise SourceError(item.detail or f"{source.label}: {item.reason}")
        if isinstance(item, Words):
            yield frames_of(beside, [each.process(item) for each in beside])
        elif isinstance(item, Block):
            run = extractor.process(item)
            yield run
            heard += int(run.speech.sum())
            if heard > most_speech:  # only then are all frames of the wanted part complete
                break
    yield extractor.flush()
    yield frames_of(beside, [each.flush() for each in beside])


def frames_of(features: Sequence[Feature], tracks: Sequence[Track]) -> Frames:
    """Tracks that features made of words, as a run of no time."""
    named = {each.spec.name: track for each, track in zip(features, tracks, strict=True)}
    return Frames(np.empty(0, np.bool_), named)
