"""Manifests of lhotse: cuts, or recordings and supervisions, as JSON lines, gzipped or not.

A supervision gives a speaker with start, end and channel. All speech of one speaker in a recording
is concatenated as one recording. Other audio is not read.
"""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from monitor.datasets.opening import byte_lines
from monitor.datasets.rows import (
    Columns,
    Listing,
    Problems,
    Row,
    cells_of,
    read_json_rows,
    refuse_column,
    text_of,
)
from monitor.errors import CorpusError, SourceError
from monitor.phrases import format_names
from monitor.safe_text import file_name
from monitor.types import FloatArray
from monitor.virtual_files import VirtualFile, spelled_path

_NAMED = re.compile(r"(?:^|.*[_.-])(cuts|recordings|supervisions)(?:[_.-].*)?\.jsonl(?:\.gz)?")
_CUTS = ("MonoCut", "MultiCut", "MixedCut", "PaddingCut")
_MOST_SECONDS = 1e9
_OF_SEGMENTS = {"id", "recording_id", "start", "duration", "channel", "text", "alignment", "custom"}
TOLERATED_SECONDS = 0.1  # manifests round lengths, and include the padding of MP3 and Opus
_MOST_BYTES = (1 << 32) - 64  # of the samples in a WAV
_BATCH_SECONDS = 30.0
_FLOAT = 3


def find_manifests(root: Path) -> list[Path]:
    """Find the manifests in a folder by lhotse's names, and check by their content."""
    paths = sorted(path for path in root.iterdir() if _NAMED.fullmatch(path.name))
    return [path for path in paths if kind_of(path)]


def kind_of(path: Path) -> str:
    """Return whether a manifest lists cuts, recordings or supervisions; "" for another file."""
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        return ""
    try:
        value = orjson.loads(next(byte_lines(path), b""))
    except (CorpusError, ValueError):
        return ""
    if not isinstance(value, dict):
        return ""
    if value.get("type") in _CUTS:
        return "cuts"
    if "sources" in value and "sampling_rate" in value:
        return "recordings"
    return "supervisions" if {"recording_id", "start", "duration"} <= value.keys() else ""


def read_manifests(paths: Sequence[Path], columns: Columns) -> Listing:
    """Read cuts, or recordings and their supervisions.

    Raises CorpusError if they cannot be read, do not go together, or lack a column.
    """
    if columns.audio is not None:
        raise CorpusError("manifests of lhotse have no column of audio: leave it out of --columns")
    by_kind: dict[str, list[Path]] = {"cuts": [], "recordings": [], "supervisions": []}
    for path in paths:
        by_kind[kind_of(path)].append(path)
    if len(paths) == 1 and not by_kind["cuts"]:
        partner = _partner(paths[0], kind_of(paths[0]))
        by_kind[kind_of(partner)].append(partner)
    cuts, recordings, supervisions = by_kind.values()
    if cuts and (recordings or supervisions):
        raise CorpusError(
            f"{file_name(cuts[0].parent)} holds cuts, recordings and supervisions: name one file, "
            f"such as {file_name(cuts[0])}"
        )
    if not cuts and not (recordings and supervisions):
        missing = "supervisions" if recordings else "recordings"
        raise CorpusError(
            f"{file_name(paths[0])} needs {missing} beside it: add them, or give cuts"
        )
    reader = _Reader(columns)
    if cuts:
        for path in cuts:
            reader.read_cuts(path)
    else:
        reader.read_supervisions(recordings, supervisions)
    return reader.listing(", ".join(map(file_name, cuts or supervisions)))


def _partner(path: Path, kind: str) -> Path:
    """Return the recordings of supervisions, or the other way round, by the file's name."""
    other = "supervisions" if kind == "recordings" else "recordings"
    names = [path.name.replace(kind, other)]
    stem = names[0].removesuffix(".gz")
    names += [stem, f"{stem}.gz"]
    partners = (path.with_name(name) for name in names if name != path.name)
    partner = next((partner for partner in partners if kind_of(partner) == other), None)
    if partner is None:
        raise CorpusError(
            f"{file_name(path)} lists {kind}: name them x_{kind}.jsonl and x_{other}.jsonl, side "
            "by side, or give cuts"
        )
    return partner


class _ManifestError(Exception):
    """The reason why a line cannot be used."""


@dataclass(frozen=True, slots=True)
class _Audio:
    """A file of a recording, and its channels in order."""

    path: Path
    channels: tuple[int, ...]


@dataclass(slots=True)
class _Segments:
    where: str
    audio: _Audio
    stretches: list[tuple[float, float]] = field(default_factory=list)


class _Reader:
    """Collector of segments by speaker, session, file and channels."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._speaker = columns.speaker or "speaker"
        self._session = columns.session or "recording_id"
        self._listing = Listing(identified_by=f"by {self._speaker}, session by {self._session}")
        self._known: dict[str, None] = {}
        self._has_speaker = self._has_session = False
        self._segments: dict[tuple[str, str, Path, tuple[int, ...]], _Segments] = {}

    def listing(self, label: str) -> Listing:
        """Return the rows; CorpusError if no segment has the columns."""
        if self._known and not self._has_speaker:
            if self._columns.speaker is None:
                others = [name for name in self._known if name not in _OF_SEGMENTS]
                advice = f", or name one of {format_names(others, 20)} with --columns speaker=NAME"
                raise CorpusError(
                    f"{label} has no supervision with a speaker: add the field speaker"
                    f"{advice if others else ''}"
                )
            refuse_column(label, self._known, self._speaker, "speaker")
        if self._known and not self._has_session:
            refuse_column(label, self._known, self._session, "session")
        self._listing.rows = self._rows()
        return self._listing

    def _rows(self) -> Iterator[Row]:
        for (speaker, session, path, channels), segments in self._segments.items():
            clip = Clip(path, join_stretches(segments.stretches), channels)
            is_whole = _is_whole(clip, segments.audio)
            yield Row(speaker, session, path if is_whole else clip, segments.where)

    def read_cuts(self, path: Path) -> None:
        for where, cut in self._lines(path):
            with _noted(where, self._listing.problems):
                self._read_cut(path.parent, where, cut)

    def read_supervisions(self, recordings: Iterable[Path], supervisions: Iterable[Path]) -> None:
        listed: dict[str, tuple[Path, dict[str, Any]]] = {}
        for path in recordings:
            for where, recording in self._lines(path):
                identifier = str(recording.get("id"))
                if identifier in listed:
                    self._listing.problems.append(f"{where}{identifier} is listed twice")
                else:
                    listed[identifier] = path.parent, recording
        for path in supervisions:
            for where, supervision in self._lines(path):
                with _noted(where, self._listing.problems):
                    identifier = str(supervision.get("recording_id"))
                    if identifier not in listed:
                        raise _ManifestError(f"recording {identifier} is in no list of recordings")
                    folder, recording = listed[identifier]
                    begin = _number(supervision, "start")
                    end = begin + _number(supervision, "duration", positive=True)
                    channels = _channels(supervision.get("channel", 0))
                    self._add(where, folder, recording, supervision, {}, begin, end, channels)

    def _lines(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        yield from read_json_rows(byte_lines(path), file_name(path), self._listing.problems)

    def _read_cut(self, folder: Path, where: str, cut: dict[str, Any]) -> None:
        kind = cut.get("type")
        if kind not in ("MonoCut", "MultiCut"):
            raise _ManifestError(
                f"is a {kind}, which has no audio file: save its audio (save_audios), and use the "
                "resulting cuts" if kind in _CUTS else "is not a cut"
            )  # fmt: skip
        recording = cut.get("recording")
        if not isinstance(recording, dict):
            raise _ManifestError("is a cut without its recording")
        begin = _number(cut, "start")
        end = begin + _number(cut, "duration", positive=True)
        cut_channels = _channels(cut.get("channel", 0))
        supervisions = cut.get("supervisions")
        if not isinstance(supervisions, list) or not supervisions:
            raise _ManifestError("has no supervision, which names the speaker")
        for supervision in supervisions:
            if not isinstance(supervision, dict):
                raise _ManifestError("has a supervision that is not a JSON object")
            # in lhotse, times are relative to the cut and may extend beyond it
            first = begin + _number(supervision, "start", negative=True)
            last = first + _number(supervision, "duration", positive=True)
            channels = cut_channels
            if kind == "MultiCut":
                spoken_channels = _channels(supervision.get("channel", list(cut_channels)))
                channels = tuple(channel for channel in spoken_channels if channel in cut_channels)
                if not channels:
                    raise _ManifestError("has a supervision of a channel that it lacks")
            if max(first, begin) < min(last, end):
                custom = cut.get("custom")
                self._add(
                    where, folder, recording, supervision,
                    custom if isinstance(custom, dict) else {},
                    max(first, begin), min(last, end), channels,
                )  # fmt: skip

    def _add(
        self, where: str, folder: Path, recording: dict[str, Any], supervision: dict[str, Any],
        custom: dict[str, Any], begin: float, end: float, channels: tuple[int, ...],
    ) -> None:  # fmt: skip
        supervision_custom = supervision.get("custom")
        values = {
            **custom,
            **(supervision_custom if isinstance(supervision_custom, dict) else {}),
            **supervision,
        }
        values.setdefault("recording_id", recording.get("id"))
        self._known.update(
            dict.fromkeys(name for name, value in values.items() if text_of(value) is not None)
        )
        speaker, session = text_of(values.get(self._speaker)), text_of(values.get(self._session))
        self._has_speaker |= speaker is not None
        self._has_session |= session is not None
        if not (speaker and speaker.strip() and session and session.strip()):
            named = self._session if speaker and speaker.strip() else self._speaker
            raise _ManifestError(f"{named} is empty, or neither text nor a whole number")
        audio, indices = _find_audio(folder, recording, channels)
        length = recording.get("duration")
        if not isinstance(length, int | float) or length <= 0:
            length = math.inf
        if end > length + TOLERATED_SECONDS:
            raise _ManifestError(
                f"ends at {end:.2f} s, after its recording ({length:.2f} s): correct the manifest"
            )
        key = (speaker, session, audio.path, indices)
        self._segments.setdefault(key, _Segments(where, audio)).stretches.append((begin, end))
        without = {self._speaker, self._session, *_OF_SEGMENTS}
        self._listing.attributes.add(speaker.strip(), cells_of(values, without))


@contextmanager
def _noted(where: str, problems: Problems) -> Iterator[None]:
    """Record an unusable line as a problem and skip it."""
    try:
        yield
    except _ManifestError as error:
        problems.append(f"{where}{error}")


def _number(
    values: Mapping[str, Any], name: str, *, positive: bool = False, negative: bool = False
) -> float:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _ManifestError(f"{name} is not a number")
    if abs(value) > _MOST_SECONDS:
        raise _ManifestError(f"{name} is {value:g} s, which is too long")
    if (value < 0 and not negative) or (value == 0 and positive):
        raise _ManifestError(f"{name} is {value:g}, which is too small")
    return float(value)


def _channels(value: object) -> tuple[int, ...]:
    channels = value if isinstance(value, list) else [value]
    if not channels or not all(type(c) is int and 0 <= c < 1024 for c in channels):
        raise _ManifestError("a channel is invalid: use whole numbers from 0 to 1023")
    return tuple(sorted(set(channels)))


def _find_audio(
    folder: Path, recording: Mapping[str, Any], channels: tuple[int, ...]
) -> tuple[_Audio, tuple[int, ...]]:
    """Find the file that contains these channels, and their indices in it."""
    if recording.get("transforms"):
        raise _ManifestError(
            "its recording is transformed when read (speed, volume ...): save its audio "
            "(save_audios), and use the resulting cuts"
        )
    sources = recording.get("sources")
    if not isinstance(sources, list) or not sources:
        raise _ManifestError("its recording has no source")
    for source in sources:
        if not isinstance(source, dict) or not isinstance(source.get("channels"), list):
            raise _ManifestError("its recording has no valid source")
        source_channels = _channels(source["channels"])
        if not set(channels) <= set(source_channels):
            continue
        kind, location = source.get("type"), source.get("source")
        if kind != "file":
            raise _ManifestError(
                f"its audio is of the type {str(kind)[:20]!a}: only files are read, and nothing "
                "is fetched or run"
            )
        if not isinstance(location, str) or not location.strip() or "\0" in location:
            raise _ManifestError("its recording names no file")
        if "://" in location:
            raise _ManifestError(f"{location} is a URL and is not fetched: use a file")
        path = Path(location)
        if not path.is_absolute():  # in lhotse, relative to the program's working folder
            sibling = spelled_path(folder / path)
            path = sibling if os.path.exists(sibling) else path.absolute()  # noqa: PTH110  # no error if too long
        audio = _Audio(path, tuple(source["channels"]))
        return audio, tuple(audio.channels.index(channel) for channel in channels)
    raise _ManifestError(
        f"no single source of its recording has channel {'+'.join(map(str, channels))}"
    )


def _is_whole(clip: Clip, audio: _Audio) -> bool:
    if len(clip.stretches) > 1 or len(clip.channels or ()) < len(audio.channels):
        return False
    frames, rate, channels = _header_of(clip.file)
    ((begin, end),) = clip.stretches
    return (
        channels == len(audio.channels)
        and begin == 0.0
        and abs(end * rate - frames) <= min(TOLERATED_SECONDS * rate, 1.0)
    )


@cache
def _header_of(path: Path) -> tuple[int, int, int]:
    import soundfile

    if not os.path.isfile(path):  # noqa: PTH113  # opening a pipe would block
        return 0, 0, 0
    try:
        info = soundfile.info(str(path))
    except (OSError, TypeError, ValueError, soundfile.LibsndfileError):
        return 0, 0, 0
    return info.frames, info.samplerate, info.channels


@dataclass(frozen=True, slots=True)
class Clip(VirtualFile):
    """Stretches of some channels of a recording, end to end, as a WAV in memory."""

    file: Path  # the recording
    # begin and end of each, in seconds; they are in order and do not overlap
    stretches: tuple[tuple[float, float], ...]
    channels: tuple[int, ...] | None = None  # from 0; None takes all of them

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the recording, with the channels and times of this part."""
        begin, end = self.stretches[0][0], self.stretches[-1][1]
        channels = "" if self.channels is None else f"-ch{'+'.join(map(str, self.channels))}"
        return f"{self.file.stem}{channels}@{begin:.7g}-{end:.7g}.wav"

    @property
    def span(self) -> tuple[float, float]:
        """Begin of the first and end of the last stretch, in seconds."""
        return self.stretches[0][0], self.stretches[-1][1]

    @property
    def seconds(self) -> float:
        """Seconds of all stretches."""
        return math.fsum(end - begin for begin, end in self.stretches)

    def content(self) -> bytes:
        """Return the WAV; SourceError if the recording lacks some of it."""
        return _cut(self)

    def files(self) -> tuple[Path, ...]:
        """Return the recording."""
        return (self.file,)

    def origin(self) -> Path:
        """Return the recording."""
        return self.file

    def absolute(self) -> Clip:
        """Return the clip with an absolute path."""
        return replace(self, file=self.file.absolute())


def join_stretches(stretches: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Sort stretches and join those that touch, so that no audio counts twice.

    Example:
        >>> join_stretches([(5.0, 7.0), (0.0, 1.0), (6.0, 8.0)])
        ((0.0, 1.0), (5.0, 8.0))
    """
    joined: list[tuple[float, float]] = []
    for begin, end in sorted(stretches):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return tuple(joined)


@lru_cache(maxsize=2)  # a recording is opened several times: for its header, its hashes, its sound
def _cut(clip: Clip) -> bytes:
    # imported when sound is read: a corpus can be listed without libsndfile
    from monitor.sources.file import Decoder

    with Decoder(clip.file) as decoder:
        rate, channels = decoder.rate, clip.channels
        if channels is not None and max(channels) >= decoder.channels:
            raise SourceError(
                f"{file_name(clip.file)} has {decoder.channels} channels, and no channel "
                f"{max(channels)} (from 0): correct the manifest"
            )
        bounds = [(round(begin * rate), round(end * rate)) for begin, end in clip.stretches]
        width = decoder.channels if channels is None else len(channels)
        if sum(end - begin for begin, end in bounds) * width * 4 > _MOST_BYTES:
            raise SourceError(f"{clip.name} is too long for memory; cut it into parts")
        pieces: list[FloatArray] = []
        position, last = 0, bounds[-1][1]
        while position < last:
            samples = decoder.read(min(round(_BATCH_SECONDS * rate), last - position))
            if not len(samples):
                break
            if channels is not None:
                samples = samples[:, list(channels)]
            for begin, end in bounds:
                piece = samples[max(0, begin - position) : max(0, end - position)]
                if len(piece):
                    pieces.append(piece.copy())
            position += len(samples)
        if position >= last and not pieces:
            raise SourceError(f"{clip.name} is shorter than one sample: leave it out")
        if position < last - TOLERATED_SECONDS * rate or not pieces:
            reason = f" ({decoder.broken})" if decoder.broken else ""
            raise SourceError(
                f"{file_name(clip.file)} ends at {position / rate:.2f} s{reason}. The manifest "
                f"lists speech in it up to {last / rate:.2f} s: correct the manifest"
            )
    samples = np.concatenate(pieces).astype("<f4")
    return _header(rate, samples.shape[1], samples.nbytes) + samples.tobytes()


def _header(rate: int, channels: int, size: int) -> bytes:
    """Return the header of a WAV of 32-bit floats; libsndfile would add the time of day."""
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16,
        _FLOAT, channels, rate, rate * channels * 4, channels * 4, 32, b"data", size,
    )  # fmt: skip
