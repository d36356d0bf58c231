"""Hear one recording to its end (or as far as needed) and keep the frames on the speech clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from monitor.errors import MonitorError, SourceError, UsageError
from monitor.features.condition import CONDITION
from monitor.features.registry import FEATURES, defaults, make
from monitor.features.tracks import join_runs
from monitor.kinds import FeatureSpec
from monitor.maths.condition import ROW
from monitor.maths.landmarks import NAME, frames_of
from monitor.network_marks import unlike_networks
from monitor.protocols import Feature, Source
from monitor.sources.beside import Beside
from monitor.sources.frames import FramesFile
from monitor.sources.registry import open_source
from monitor.training.hearing_runs import heard_runs, told_of_words, with_their_words
from monitor.transcripts.choice import LIES_BESIDE, TranscriptChoice
from monitor.types import TICKS_PER_SECOND, AnyArray, BoolArray, Frames, IntArray

__all__ = ["Listener", "SpeechFrames", "SpeechTrack"]


@dataclass(frozen=True, slots=True)
class SpeechTrack:
    """The frames of one feature.

    Attributes:
        values: as in ``Track``.
        at: ticks of speech that had been heard when each was complete.
        since: ticks of speech that had been heard when its audio began; None where it is heard at
            once.
    """

    values: AnyArray
    at: IntArray
    since: IntArray | None = None


@dataclass(frozen=True, slots=True)
class SpeechFrames:
    """One recording, heard.

    Attributes:
        speech: shape (ticks,), the voice activity decisions.
        tracks: the usable frames by feature.
        lost: what could not be used of it, for people; mostly empty.
        told: what is to be said of it and of its transcript, a line each; mostly none.
        sound: shape (ROW,), what was heard of it for a template sounds like, as counts
            (`monitor.maths.condition`); None of ready-made frames, and of other speech.
        landmarks: peaks of its spectrogram, times and pitches (`monitor.maths.landmarks`), where
            they were asked for.
    """

    speech: BoolArray
    tracks: dict[str, SpeechTrack]
    lost: str = ""
    told: tuple[str, ...] = ()
    sound: AnyArray | None = None
    landmarks: tuple[IntArray, IntArray] | None = None

    @property
    def speech_ticks(self) -> int:
        """Ticks of speech."""
        return int(self.speech.sum())

    def audio_seconds_at(self, speech_ticks: int) -> float:
        """Audio seconds gone by before speech goes on after so many ticks of it."""
        place = np.searchsorted(np.cumsum(self.speech), speech_ticks, side="right")
        return float(place) / TICKS_PER_SECOND


class Listener:
    """Hears recordings with one set of features, and sees to it that they agree.

    Args:
        features: names, or features; None takes the defaults for audio, and whatever a frames file
            holds.
        channel: of audio, counted from 1; None mixes all of them.

    Attributes:
        specs: what the frames of each feature look like, once a recording was heard.
    """

    def __init__(
        self, features: Sequence[str | Feature] | None = None, channel: int | None = None
    ) -> None:
        self.channel = channel
        self._wanted = tuple(features) if features is not None else None
        self._made: list[Feature] | None = None
        self.specs: dict[str, FeatureSpec] = {}

    @property
    def names(self) -> tuple[str, ...] | None:
        """What is heard of audio, by name; None where it is objects that cannot be made anew."""
        own: tuple[str, ...] = tuple(self.specs) or defaults()
        chosen: tuple[str | Feature, ...] = self._wanted or own
        named = tuple(each for each in chosen if isinstance(each, str))
        return named if len(named) == len(chosen) else None

    def hear(
        self,
        path: Path,
        *,
        speech_seconds: float | None = None,
        words: TranscriptChoice = LIES_BESIDE,
        speaker: str | None = None,
        landmarks: bool = False,
    ) -> SpeechFrames:
        """Hear a recording.

        Args:
            path: audio or ready-made frames.
            speech_seconds: stop once more speech than that was heard.
            words: which transcript goes with it, where a feature is made of words.
            speaker: who speaks.
            landmarks: whether to take those of audio as well.

        Raises:
            SourceError: it cannot be read, breaks off, or lacks a feature or a transcript.
        """
        source = open_source(path)
        features: list[Feature] = []
        if isinstance(source, FramesFile):
            specs = {name: _completed(source, spec) for name, spec in source.brings.tracks.items()}
        else:
            features = self._features()
            specs = {each.spec.name: each.spec for each in features}
            source = with_their_words(source, path, features, words, speaker)
        self._agree(path, specs)
        wanted = np.inf if speech_seconds is None else round(speech_seconds * TICKS_PER_SECOND)
        with source:
            if isinstance(source, FramesFile):
                runs = _ready_made(source, wanted)
            else:
                channel = None if self.channel is None else self.channel - 1
                from monitor.features.landmarks import Landmarks  # brings the Fourier transform

                more = [Landmarks()] if landmarks else []
                runs = heard_runs(
                    source,
                    [*features, *more],
                    channel,
                    most_speech=wanted,
                    conditions=speech_seconds is not None,
                )
            heard = self._join(path, list(runs))
        if isinstance(source, FramesFile):
            heard = replace(heard, sound=_noted_sound(source))
        if isinstance(source, Beside) and source.words is not None:
            label = source.transcripts[0].label
            told = told_of_words(source.words, label, heard.speech, words, path)
            heard = replace(heard, told=heard.told + told)
        return heard

    def _features(self) -> list[Feature]:
        """Those for audio, made for the first of it and reset for each."""
        if self._made is None:
            try:
                chosen = self._wanted or self.specs or defaults()
                self._made = make(chosen)
            except MonitorError as error:  # the call cannot be met, whatever the recording
                raise UsageError(str(error)) from None
        return self._made

    def _agree(self, path: Path, specs: dict[str, FeatureSpec]) -> None:
        if not self.specs:
            names = [w if isinstance(w, str) else w.spec.name for w in self._wanted or specs]
            missing = [name for name in names if name not in specs]
            if missing:
                raise SourceError(f"{path.name}: holds no frames of {', '.join(missing)}")
            self.specs = {name: specs[name] for name in names}
        for name, spec in self.specs.items():
            mine = specs.get(name)
            if mine is not None and mine == replace(spec, network=mine.network) != spec:
                what = unlike_networks(name, path.name, mine.network, "the others", spec.network)
                raise SourceError(f"{what}; hear all of them again with one version")
            if mine != spec:
                raise SourceError(
                    f"{path.name}: its {name!r} is not like that of the others; frames files must "
                    "give the same sizes in their headers"
                )

    def _join(self, path: Path, runs: list[Frames]) -> SpeechFrames:
        if not runs:
            raise SourceError(f"{path.name}: nothing could be heard")
        whole = join_runs(runs)
        clock = np.concatenate([[0], np.cumsum(whole.speech)])

        def at(ticks: IntArray) -> IntArray:
            return np.asarray(clock[np.minimum(ticks, whole.speech.size)])

        tracks = {}
        for name in self.specs:
            track = whole.tracks[name]
            since = None if track.spans is None else at(track.spans[:, 0])
            tracks[name] = SpeechTrack(track.values, at(track.ticks.astype(np.int64)), since)
        gaps = [gap for _, gap in whole.gaps]
        lost = sum(gap.lost_seconds or 0.0 for gap in gaps)
        return SpeechFrames(
            whole.speech,
            tracks,
            f"{lost:.3g} s of {path.name}: {gaps[0].reason}" if gaps else "",
            tuple(f"{path.name}: {notice.text}" for _, notice in whole.notices),
            rows.values.sum(axis=0, dtype=np.int64)
            if (rows := whole.tracks.get(CONDITION))
            else None,
            frames_of(whole.tracks.get(NAME)),
        )


def _ready_made(source: Source, most_speech: float) -> Iterator[Frames]:
    """Frames of a file, until there were more ticks of speech than that."""
    heard = 0
    for item in source:
        if isinstance(item, Frames):
            yield item
            heard += int(item.speech.sum())
            if heard > most_speech:
                break


def _noted_sound(source: FramesFile) -> AnyArray | None:
    """What the maker of frames noted that the audio sounds like: a live enrolment does."""
    noted = source.header.heard.get("sound")
    if not isinstance(noted, list) or len(noted) != ROW:
        return None
    if not all(type(each) is int and 0 <= each < _MOST_COUNT for each in noted):
        return None
    return np.array(noted, np.int64)


_MOST_COUNT = 1 << 48


def _completed(source: FramesFile, spec: FeatureSpec) -> FeatureSpec:
    """Ready-made frames; what the file leaves open is as our own feature has it."""
    if spec.name not in FEATURES or not spec.kind.open_size:
        return spec
    own = make((spec.name,))[0].spec
    seconds = source.header.frame_seconds.get(spec.name, own.frame_seconds)
    return replace(spec, size=max(own.size, spec.size), frame_seconds=seconds)
