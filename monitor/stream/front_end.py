"""The front end of a monitor: from blocks, words and ready-made frames to frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from monitor.errors import Argument, Message, UsageError
from monitor.features.framing import columns_of
from monitor.features.registry import (
    AS_ENVIRONMENT,
    FeatureSetup,
    get_change_sensitivity,
    make,
    takes,
)
from monitor.jobs import one_thread
from monitor.kinds import FeatureSpec, Sensitivity, unlike_networks
from monitor.population.population import Population
from monitor.protocols import Feature, Source, WindowFeature
from monitor.stream.accumulator import check_frames
from monitor.transcripts.transcript import Coverage, measure_coverage
from monitor.types import (
    TICKS_PER_SECOND,
    AnyArray,
    Block,
    BoolArray,
    FloatArray,
    Frames,
    IntArray,
    Track,
    Tracks,
    Words,
)


class FrontEnd:
    """Features of a monitor; those of audio are created at first use.

    A feature, or a source of ready-made frames, is refused (UsageError) unless its frames are of
    the same kind, size and network as the templates'. ``own`` are objects to use instead of the
    program's; a `FeatureSpec` for one whose frames come ready-made.
    """

    def __init__(
        self,
        population: Population,
        names: Sequence[str],
        own: Iterable[Feature | FeatureSpec] = (),
        setup: FeatureSetup = AS_ENVIRONMENT,
    ) -> None:
        self._population, self._names, self.setup = population, tuple(names), setup
        self._made: dict[str, Feature] = {}
        self._own: set[str] = set()
        self._stated: set[str] = set()  # they come ready-made, whatever the source
        for feature in own:
            if isinstance(feature, FeatureSpec):
                self._compare("this feature", feature)
                self._stated.add(feature.name)
                self._own.add(feature.name)
            else:
                self.use([feature])
        self.reset()

    def reset(self) -> None:
        """Expect of the next source only what every source was said to bring."""
        self._ready_made = set(self._stated)  # they come ready-made

    @property
    def by_name(self) -> bool:
        """True if another process can compute the same from names and setup alone."""
        return not self._own

    def use(self, features: Iterable[Feature]) -> None:
        """Compute these features with the given objects, before the first block."""
        for feature in features:
            name = feature.spec.name
            if name not in self._names:
                raise UsageError(f"{name} is not listened for, only {', '.join(self._names)}")
            self._compare("this feature", feature.spec)
            self._made[name] = feature
            self._own.add(name)

    def check(self, source: Source) -> None:
        """Refuse ready-made frames other than those of the templates."""
        stream_info = source.stream_info
        self.reset()
        for name in self._names:
            if name in stream_info.tracks:
                self._compare(source.label, stream_info.tracks[name])
                self._ready_made.add(name)
            elif self.takes(name) == "words" and name not in self._ready_made:
                if not stream_info.words:
                    advice = Argument(
                        "words", python="put them beside it (sources.SideInputSource)"
                    )
                    text = f"{name} is made of timed words, and {source.label} brings none: "
                    raise UsageError(Message(text, advice))
            elif not stream_info.audio or name in self._ready_made:
                others = f", only of {', '.join(stream_info.tracks)}" if stream_info.tracks else ""
                text = f"{source.label} holds no frames of {name}{others}; choose others ("
                raise UsageError(Message(text, Argument("features"), ")"))

    def make(self) -> list[Feature]:
        """Return the features of audio; created, and their networks loaded, once."""
        return self._create_features("audio")

    @property
    def audio_features(self) -> tuple[str, ...]:
        """Names of the features of audio."""
        return self._list_computed("audio")

    def word_features(self) -> list[Feature]:
        """Return the features of timed words; created once."""
        return self._create_features("words")

    def get_expected_specs(self, tracks: Mapping[str, Track]) -> dict[str, FeatureSpec]:
        """Return the specs of ready-made frames beside the clock, where they were announced."""
        for name in tracks:
            if name in self._names and name not in self._ready_made:
                raise UsageError(
                    f"{name} is made of this stream's {self.takes(name)}, and comes ready-made as "
                    "well: leave its frames out, or name its FeatureSpec among the features"
                )
        return {
            name: self._population.features[name].spec for name in self._ready_made & tracks.keys()
        }

    def _list_computed(self, what: str) -> tuple[str, ...]:
        """List the features that are computed here, of audio or of words."""
        return tuple(n for n in self._names if n not in self._ready_made and self.takes(n) == what)

    def _create_features(self, what: str) -> list[Feature]:
        return [self._create(name) for name in self._list_computed(what)]

    def _create(self, name: str) -> Feature:
        if name not in self._made:
            (feature,) = make([name], self.setup)
            self._compare_networks("this program", feature.spec)
            self._made[name] = feature
        return self._made[name]

    def embed_part(self, name: str, speech: FloatArray) -> AnyArray:
        """Embed part of a window of speech, as of `WindowFeature`."""
        feature = self._create(name)
        assert isinstance(feature, WindowFeature)  # only these keep their speech
        with one_thread():
            return feature.embed_part(speech)

    def takes(self, name: str) -> str:
        """Return what a feature is made of: ``"audio"`` or ``"words"``."""
        feature = self._made.get(name)
        return takes(name) if feature is None else feature.spec.takes

    def get_change_sensitivities(self) -> dict[str, Sensitivity]:
        """Return each feature's sensitivity to changes; others are not followed."""
        features = self._made
        stated = {
            n: features[n].follow if n in features else get_change_sensitivity(n)
            for n in self._names
        }
        return {name: how for name, how in stated.items() if how is not None}

    def _compare(self, label: str, spec: FeatureSpec) -> None:
        own = self._population.features[spec.name].spec
        if spec.kind is not own.kind or not own.kind.fits(spec.size, own.size):
            raise UsageError(
                f"{label}: {spec.name} comes as {spec}, the population has it "
                f"as {own}; make both with the same program"
            )
        self._compare_networks(label, spec)

    def _compare_networks(self, label: str, spec: FeatureSpec) -> None:
        enrolled = self._population.features[spec.name].spec.network
        if spec.network != enrolled and spec.takes == "words":
            raise UsageError(
                f"{spec.name} of the population was counted by another list of words than that of "
                f"{label}: give the one that it was made with (--word-list FILE), or enrol again"
            )
        if spec.network != enrolled:
            what = unlike_networks(spec.name, label, spec.network, "the population", enrolled)
            advice = "enrol and calibrate again with this version (monitor enrol), or leave"
            text = f"{what}; {advice} {spec.name} out ("
            raise UsageError(Message(text, Argument("features"), ")"))


class BlocksToTicks:
    """Converter of blocks of audio to runs of ticks, with each recording's place on the stream.

    Args:
        features: those of audio.
        channel: the channel to process, counted from 1; None mixes all of them.
        skip: frames complete by this tick need not be computed.
        levels, conditions: whether to compute these as well.
        landmarks: whether to compute these and the waveform, by which audio is known again.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        channel: int | None,
        skip: int,
        *,
        levels: bool = False,
        conditions: bool = False,
        landmarks: bool = False,
    ) -> None:
        # resampling and voice activity need libraries that ready-made frames do not
        from monitor.features.channel import Channel, Landmarks
        from monitor.features.extractor import Extractor
        from monitor.features.waveform import Waveform

        extracted = [*features, *([Channel()] if levels else [])]
        extracted += [Landmarks(), Waveform()] if landmarks else []
        index = None if channel is None else channel - 1
        self._extractor = Extractor(extracted, index, conditions=conditions, windows=True)
        self._extractor.skip_to(skip)
        self._ticks = 0  # that came out
        self._key: tuple[int, int] | None = None  # the recording and its rate
        self._began, self._samples = 0, 0  # ticks before it, samples of it

    @property
    def ticks(self) -> int:
        """Ticks of audio that went in: more than came out, as resampling takes its time."""
        if self._key is None:
            return self._ticks
        return self._began + -(-self._samples * TICKS_PER_SECOND // self._key[1])

    def process(self, block: Block) -> list[Frames]:
        """Return what a block completes, after the end of the recording before it.

        Raises SourceError where the block makes no sense; nothing has changed then.
        """
        columns_of(block, self._extractor.channel)
        key = (block.recording, block.rate)
        ended = []
        if key != self._key:
            if self._key is not None:
                ended.append(self.flush())
            self._key, self._began, self._samples = key, self._ticks, 0
        self._samples += block.samples.shape[0]
        return [*ended, self._counted(self._extractor.process(block))]

    def complete_before(self, recording: int) -> Frames | None:
        """Complete the recording before this one, where there is one."""
        another = self._key is not None and self._key[0] != recording
        return self.flush() if another else None

    def flush(self) -> Frames:
        """Complete the recording."""
        self._key = None
        return self._counted(self._extractor.flush())

    def _counted(self, frames: Frames) -> Frames:
        self._ticks += frames.speech.shape[0]
        # what was lost in a second is known, for any cutting, when the second is over
        gaps = [(tick + (self._began - tick) % TICKS_PER_SECOND, gap) for tick, gap in frames.gaps]
        return replace(frames, gaps=tuple(gaps))


KEPT_TICKS = 6 * 3600 * TICKS_PER_SECOND
"""Of a recording, or of a microphone, the last hours are looked at: 2 MB."""


@dataclass(frozen=True, slots=True)
class RecordingCoverage:
    """Fit of one recording's words to its speech; None without words or speech."""

    recording: int
    words: int
    coverage: Coverage | None


def find_coverage(words: Words, speech: BoolArray) -> Coverage | None:
    """Measure how words lie in speech, shape (ticks,); None without words or speech."""
    return measure_coverage(words, speech) if words.texts and speech.any() else None


_NO_TIMES = np.empty((2, 0), np.int64)


class WordCoverage:
    """Coverage of speech by words, of the last hours, as both arrive.

    Example:
        >>> coverage = WordCoverage()
        >>> coverage.add_words(Words(("so", "be"), *np.array([[0, 3], [2, 6], [2, 6]])))
        >>> coverage.add_speech(0, np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0], bool))
        >>> (recording,) = coverage.measure()
        >>> recording.words, recording.coverage.in_speech, recording.coverage.covered
        (2, 0.8, 0.8)
    """

    def __init__(self) -> None:
        self._over: list[RecordingCoverage] = []
        self._begin(0)

    def _begin(self, recording: int) -> None:
        self._recording, self._words = recording, 0
        self._first = self._ticks = 0  # ticks before what is kept, and ticks of that
        self._speech: list[BoolArray] = []
        self._times: list[IntArray] = []  # begins and ends, shape (2, k)

    def add_words(self, words: Words) -> None:
        """Further words; those of another recording end the one before."""
        self._turn(words.recording)
        self._words += len(words.texts)
        self._times.append(np.stack((words.begins, words.ends)))

    def add_speech(self, recording: int, speech: BoolArray) -> None:
        """Decisions on the next ticks of a recording."""
        self._turn(recording)
        self._speech.append(speech)
        self._ticks += speech.size
        if (ticks := self._ticks - KEPT_TICKS) > KEPT_TICKS:
            self._speech = [np.concatenate(self._speech)[ticks:].copy()]
            self._first, self._ticks = self._first + ticks, KEPT_TICKS
            times = np.concatenate([_NO_TIMES, *self._times], axis=1)
            self._times = [times[:, times[0] >= self._first]]

    def measure(self) -> tuple[RecordingCoverage, ...]:
        """Measure every recording so far."""
        return (*self._over, self._now()) if self._ticks or self._words else tuple(self._over)

    def _turn(self, recording: int) -> None:
        if recording != self._recording:
            self._over = [*self.measure()]
            self._begin(recording)

    def _now(self) -> RecordingCoverage:
        begins, ends = np.concatenate([_NO_TIMES, *self._times], axis=1)
        is_recent = begins >= self._first
        begins, ends = begins[is_recent] - self._first, ends[is_recent] - self._first
        words = Words(("",) * begins.size, begins, ends, ends)
        speech = np.concatenate(self._speech or [np.empty(0, np.bool_)])
        return RecordingCoverage(self._recording, self._words, find_coverage(words, speech))


class BesideClock:
    """Converter of words and ready-made frames to frames at their place on the clock."""

    def __init__(self, front_end: FrontEnd) -> None:
        self._front_end = front_end
        self._recording: int | None = None
        self._first = 0  # tick of the stream at which it began
        self.begun = False

    def check(self, item: Words | Tracks) -> None:
        """Refuse what could not be learnt, before anything of the stream changes."""
        if isinstance(item, Words):
            check_words(item)
        else:
            specs = self._front_end.get_expected_specs(item.tracks)
            check_frames(Frames(np.empty(0, np.bool_), item.tracks), specs)

    def begin_recording(self, recording: int, tick: int) -> Frames | None:
        """Begin a recording at this tick, and complete the one before."""
        if recording == self._recording:
            return None
        last = self.flush()
        self._recording, self._first = recording, tick
        return last

    def process(self, item: Words | Tracks) -> Frames:
        """Return frames at ticks of the stream; they take no time."""
        if not self.begun:  # what makes frames of words may have heard another stream
            for feature in self._front_end.word_features():
                feature.reset()
        self.begun = True
        if isinstance(item, Tracks):
            return self._frames(dict(item.tracks))
        tracks = {f.spec.name: f.process(item) for f in self._front_end.word_features()}
        return self._frames(tracks)

    def flush(self) -> Frames | None:
        """Complete the recording; then the next one begins."""
        features = self._front_end.word_features() if self.begun else []
        last = {feature.spec.name: feature.flush() for feature in features}
        for feature in features:
            feature.reset()
        return self._frames(last) if any(len(track.ticks) for track in last.values()) else None

    def _frames(self, tracks: dict[str, Track]) -> Frames:
        moved = {name: track.shifted(self._first) for name, track in tracks.items()}
        return Frames(np.empty(0, np.bool_), moved, (), self._recording or 0)


def check_words(words: Words) -> None:
    """Refuse words with impossible times."""
    times = (words.begins, words.ends, words.known)
    if any(
        column.shape != (len(words.texts),) or column.dtype.kind not in "iu" for column in times
    ):
        raise UsageError("words need as many begins, ends and knowns, in whole ticks")
    if not all(isinstance(text, str) for text in words.texts):
        raise UsageError("the texts of words must be strings")
    wrong = (words.begins < 0) | (words.begins >= words.ends) | (words.ends > words.known)
    if wrong.any() or np.any(words.known[1:] < words.known[:-1]):
        raise UsageError(
            "words must begin before they end and end before they are known, in the order in "
            "which they are known"
        )
