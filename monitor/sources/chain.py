"""Several recordings, one after the other, as one stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from monitor.brings import Brings
from monitor.errors import SourceError, UsageError
from monitor.kinds import FeatureSpec
from monitor.managed import Managed
from monitor.protocols import Source
from monitor.sources.provenance import Provenance, stated_provenance
from monitor.sources.transcript_note import TranscriptNote, stated_transcripts
from monitor.types import Block, Frames, Gap, Track, Tracks, Words

__all__ = ["Chain"]


class Chain(Managed):
    """One stream out of several sources; what they yield is numbered by their place.

    A source that breaks loses only its own rest. Ticks of ready-made frames go on counting.

    Args:
        sources: at least one, in the order in which they are heard.

    Attributes:
        label: the first label, and how many more there are.
        labels: the label of each source; ``Gap.recording`` is an index into it.
        seconds: the sum, None where one of them does not know.
        brings: what all of them bring.

    Raises:
        UsageError: there is no source, or they do not go together.

    Example:
        >>> import io
        >>> from monitor.sources import Pipe
        >>> pipes = [Pipe(io.BytesIO(bytes(320)), raw=(16000, 1, "s16le")) for _ in range(2)]
        >>> [(block.recording, len(block.samples)) for block in Chain(pipes)]
        [(0, 160), (1, 160)]
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise UsageError("a chain needs at least one source")
        self._sources = tuple(sources)
        self.labels = tuple(source.label for source in sources)
        more = len(sources) - 1
        self.brings = _common(sources)
        self.label = f"{self.labels[0]} and {more} more" if more else self.labels[0]

    @property
    def seconds(self) -> float | None:
        """Audio seconds promised by all sources together."""
        total = 0.0
        for source in self._sources:
            if source.seconds is None:
                return None
            total += source.seconds
        return total

    @property
    def sources(self) -> tuple[Source, ...]:
        """What is chained."""
        return self._sources

    @property
    def provenance(self) -> tuple[Provenance, ...] | None:
        """What all of it was made of; None where a source does not know."""
        parts: list[Provenance] = []
        for source in self._sources:
            known = stated_provenance(source)
            if known is None:
                return None
            parts += known
        return tuple(parts)

    @property
    def transcripts(self) -> tuple[TranscriptNote, ...]:
        """Notes on the words of its recordings, in order."""
        return tuple(each for source in self._sources for each in stated_transcripts(source))

    def __iter__(self) -> Iterator[Block | Frames | Gap | Words | Tracks]:
        heard = 0
        for recording, source in enumerate(self._sources):
            before = heard
            try:
                with source:
                    for item in source:
                        if isinstance(item, Frames):
                            heard += len(item.speech)
                            yield _moved(item, before, recording)
                        else:
                            yield replace(item, recording=recording)
            except SourceError as error:
                yield Gap("broken file", None, recording, str(error))

    def close(self) -> None:
        """Close every source."""
        for source in self._sources:
            source.__exit__(None, None, None)


def _common(sources: Sequence[Source]) -> Brings:
    """What all of them bring; the channels are those that each has."""
    channels = [source.brings.channels for source in sources]
    return replace(
        sources[0].brings,
        tracks=_common_features(sources),
        channels=None if None in channels else min(each for each in channels if each is not None),
        noise=next(filter(None, (source.brings.noise for source in sources)), ""),
    )


def _common_features(sources: Sequence[Source]) -> dict[str, FeatureSpec]:
    """Features of ready-made frames; a histogram is as long as the longest one seen."""
    first, *others = sources
    common: Mapping[str, FeatureSpec] = first.brings.tracks
    for source in others:
        features: Mapping[str, FeatureSpec] = source.brings.tracks
        joined = {}
        for name, spec in features.items() if features.keys() == common.keys() else ():
            larger = max(spec, common[name], key=lambda each: each.size)
            if spec.kind.open_size and spec.kind is larger.kind:
                spec = replace(spec, size=larger.size)
            if spec.like(larger):
                joined[name] = spec
        alike = (source.brings.audio, source.brings.words) == (
            first.brings.audio,
            first.brings.words,
        )
        if joined.keys() != features.keys() or len(joined) != len(common) or not alike:
            raise UsageError(
                f"{source.label} does not hold the same features as {first.label}; "
                "chain recordings of one kind"
            )
        if any(spec.network != common[name].network for name, spec in joined.items()):
            raise UsageError(
                f"{source.label} and {first.label} were heard by different networks; hear "
                "both again with this version"
            )
        common = joined
    return dict(common)


def _moved(frames: Frames, ticks: int, recording: int) -> Frames:
    """The same frames, that many ticks later."""
    tracks = {}
    for name, track in frames.tracks.items():
        spans = None if track.spans is None else track.spans + ticks
        tracks[name] = Track(track.ticks + ticks, track.values, spans)
    gaps = tuple((tick + ticks, replace(gap, recording=recording)) for tick, gap in frames.gaps)
    notices = tuple((tick + ticks, notice) for tick, notice in frames.notices)
    return Frames(frames.speech, tracks, gaps, recording, notices)
