"""Ready-made frames: ``.npz`` arrays or JSON lines."""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from monitor.arrays import refuse_masked
from monitor.errors import SourceError, UsageError
from monitor.files import atomic_write, writing
from monitor.kinds import KINDS, FeatureSpec, is_mark
from monitor.maths.condition import ROW
from monitor.npz import read_arrays
from monitor.phrases import plural
from monitor.protocols import Provenance, StreamInfo
from monitor.safe_text import file_name, printable
from monitor.sources.base import BaseSource, file_hash
from monitor.types import (
    TICKS_PER_SECOND,
    AnyArray,
    BoolArray,
    EarlyFrames,
    Frames,
    Gap,
    Starts,
    Track,
    find_runs,
)

SCHEMA = 1
MOST_TICKS = 7 * 24 * 3600 * 100
MOST_NOISE = 80  # maximum characters of the description of the noise
RESERVED = frozenset(
    {"header", "speech", "seconds", "schema", "sizes", "frame_seconds", "networks"}
)
"""Names that a feature cannot have. A name cannot end in one of `SUFFIXES` either."""
SUFFIXES = ("_ticks", "_spans", "_span", "_early", "_early_seconds")
_SOUND, _LANDMARKS = "recording-sound", "recording-landmarks"
_STARTS, _OF_STARTS = "recording-starts", "starts-"
"""Names of a `Header`'s arrays, and prefix of arrays of `Starts`. No feature name has a hyphen."""
_HASH = re.compile(r"(file|audio):[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Header:
    """Description of a file of frames. Mappings are by feature, and may be incomplete."""

    sizes: Mapping[str, int] = field(default_factory=dict)  # bins or dimensions
    frame_seconds: Mapping[str, float] = field(default_factory=dict)  # usable seconds of one frame
    networks: Mapping[str, str] = field(default_factory=dict)  # sha256 of the frames' network
    hashes: tuple[str, ...] = ()  # fingerprints of the recording
    # settings of the extraction, in the form of its program
    settings: Mapping[str, Any] = field(default_factory=dict)
    noise: str = ""  # noise added to embeddings, such as ``"laplace:15"``; empty without noise
    # counts of the recording's seconds, shape (ROW,) of `monitor.maths.condition`
    sound: AnyArray | None = field(default=None, compare=False, repr=False)
    # landmarks of the recording, from `monitor.maths.landmarks.pack`
    landmarks: AnyArray | None = field(default=None, compare=False, repr=False)
    # frames of streams that begin within the recording
    starts: Starts | None = field(default=None, compare=False, repr=False)


def read_header(value: Any, label: str) -> Header:
    """Parse a header's JSON object; SourceError if it is malformed, or of another schema."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise SourceError(f"{label} is not of frames schema {SCHEMA}; write it with write_frames")
    sizes, seconds = value.get("sizes", {}), value.get("frame_seconds", {})
    if not isinstance(sizes, dict) or not isinstance(seconds, dict):
        raise SourceError(
            f"{label}: sizes and frame_seconds must be objects with one key per feature"
        )
    for name, size in sizes.items():
        if type(size) is not int or not 0 < size < 1 << 31:
            raise SourceError(f"{label}: the size of {printable(name)} must be a positive integer")
    for name, length in seconds.items():
        if type(length) not in (int, float) or not 0 < length < 3600:
            raise SourceError(
                f"{label}: frame_seconds of {printable(name)} must be positive seconds"
            )
    networks = value.get("networks", {})
    if not isinstance(networks, dict) or None in networks.values():
        raise SourceError(f"{label}: networks must be an object with one sha256 per feature")
    for name, network in networks.items():
        if not is_mark(network):
            raise SourceError(f"{label}: the network of {name} must be a sha256 in hexadecimal")
    hashes, settings = value.get("hashes", []), value.get("heard", {})
    if not isinstance(hashes, list) or not all(
        isinstance(mark, str) and _HASH.fullmatch(mark) for mark in hashes
    ):
        raise SourceError(f"{label}: hashes must be those of recording_hashes")
    if not isinstance(settings, dict):
        raise SourceError(f"{label}: heard must be an object")
    noise = value.get("noise", "")
    if not isinstance(noise, str) or not (noise.isprintable() and len(noise) <= MOST_NOISE):
        raise SourceError(f"{label}: noise must be a short text, such as laplace:15")
    lengths = {name: float(length) for name, length in seconds.items()}
    return Header(dict(sizes), lengths, dict(networks), tuple(hashes), settings, noise)


class PrecomputedFrames:
    """Checked frames of a whole recording; SourceError if they are inconsistent.

    ``speech`` has one decision per tick, (n,). ``tracks`` are unchecked, as read.
    """

    def __init__(
        self, label: str, header: Header, speech: BoolArray, tracks: Mapping[str, Track]
    ) -> None:
        self.speech = speech
        self.features: dict[str, FeatureSpec] = {}
        self._tracks: dict[str, tuple[Track, BoolArray]] = {}
        if not tracks:
            raise SourceError(f"{label} has no frames: add at least one feature")
        if not len(speech):
            raise SourceError(f"{label} has no duration: add ticks")
        refuse_masked(f"{label}: decisions of speech", speech, error=SourceError)
        for name, track in tracks.items():
            ticks, values = track.ticks, track.values
            refuse_masked(
                f"{label}: frames of {name}", ticks, values, track.spans, error=SourceError
            )
            spec = self.features[name] = _spec(label, name, values, header)
            _check_ticks(label, name, ticks, len(values), len(speech))
            spans = track.spans
            if spans is not None:
                _check_spans(label, name, spans, ticks)
                spans = spans.astype(np.int64)
            early = (
                None if track.early is None else _checked_early(label, spec, track.early, speech)
            )
            values, is_usable = spec.kind.usable(values, spec.size)
            self._tracks[name] = Track(ticks.astype(np.int64), values, spans, early), is_usable

    def runs(self, most_ticks: int, recording: int = 0) -> Iterator[Frames]:
        """Yield the frames in runs of at most ``most_ticks`` ticks. Unusable frames become gaps."""
        for low in range(0, len(self.speech), most_ticks):
            speech = self.speech[low : low + most_ticks]
            tracks: dict[str, Track] = {}
            gaps: list[tuple[int, Gap]] = []
            for name, (track, is_usable) in self._tracks.items():
                inside = slice(*track.ticks.searchsorted([low, low + len(speech)], side="right"))
                within, keep = track.within(low, low + len(speech)), is_usable[inside]
                tracks[name] = replace(within.select(keep), early=within.early)
                gaps += self._gaps(name, within, keep, recording)
            gaps.sort(key=lambda gap: gap[0])
            yield Frames(speech, tracks, tuple(gaps))

    def _gaps(
        self, name: str, track: Track, keep: BoolArray, recording: int
    ) -> Iterator[tuple[int, Gap]]:
        """Yield one gap for each stretch of unusable frames, at the tick of its last frame."""
        if keep.all():
            return
        spec = self.features[name]
        for begin, end in find_runs(~keep):
            detail = f"{name}: {end - begin} frames dropped"
            lost = (end - begin) * spec.frame_seconds
            if track.spans is not None:
                lost = int(np.diff(track.spans[begin:end]).sum()) / TICKS_PER_SECOND
            yield int(track.ticks[end - 1]), Gap(spec.kind.unusable, lost, recording, detail)


def _spec(label: str, name: str, values: AnyArray, header: Header) -> FeatureSpec:
    """Make the spec of frames from their shape, their type and the header."""
    kinds = (kind for kind in KINDS.values() if kind.enrolled and kind.holds(values))
    kind = next(kinds, None)
    if kind is None:
        raise SourceError(f"{label}: {name} must be integer bins (k,) or float embeddings (k, d)")
    try:
        size = kind.size_of(values, header.sizes.get(name))
    except ValueError as error:
        raise SourceError(f"{label}: {name} {error}") from None
    seconds = header.frame_seconds.get(name, 0.01)
    return FeatureSpec(name, kind, size, seconds, network=header.networks.get(name))


def _check_ticks(label: str, name: str, ticks: AnyArray, frames: int, maximum: int) -> None:
    if ticks.dtype.kind not in "iu" or ticks.shape != (frames,):
        raise SourceError(f"{label}: {name}_ticks must be {frames} integers, one per frame")
    if frames and (np.any(ticks[1:] < ticks[:-1]) or ticks[0] < 1 or ticks[-1] > maximum):
        raise SourceError(f"{label}: {name}_ticks must not decrease and lie in 1 to {maximum}")


def _checked_early(
    label: str, spec: FeatureSpec, early: EarlyFrames, speech: BoolArray
) -> EarlyFrames:
    """Check early frames; drop unusable ones silently."""
    ticks, values, seconds = early.ticks, early.values, early.seconds
    name = f"{spec.name}_early"
    _check_ticks(label, name, ticks, len(values), len(speech))
    if seconds.dtype.kind not in "iu" or seconds.shape != ticks.shape or np.any(seconds < 1):
        raise SourceError(f"{label}: {name}_seconds must be whole seconds, one per frame")
    if values.dtype.kind != spec.kind.none(1).dtype.kind or values.shape[1:] != (spec.size,):
        raise SourceError(f"{label}: {name} must be like the frames of {spec.name}")
    values, is_usable = spec.kind.usable(values, spec.size)
    checked = EarlyFrames(ticks.astype(np.int64), values, seconds.astype(np.int64))
    return checked.select(is_usable)


def _check_spans(label: str, name: str, spans: AnyArray, ticks: AnyArray) -> None:
    if spans.dtype.kind not in "iu" or spans.shape != (len(ticks), 2):
        raise SourceError(
            f"{label}: {name}_spans must be {plural(len(ticks), 'pair')} of integers, one per frame"
        )
    begins, ends = spans.T
    if np.any(begins < 0) or np.any(begins >= ends) or np.any(ends > ticks):
        raise SourceError(
            f"{label}: {name}_spans must be stretches [begin, end) that end by the frame's tick"
        )


_SLACK = 1e-6  # ticks: 0.07 s x 100 is a little more than 7


class _Lines:
    def __init__(self, label: str) -> None:
        self.label = label
        self.header = Header()
        self.tick = 0
        self.speech: list[tuple[int, bool]] = []  # (ticks, decision)
        self.ticks: dict[str, list[int]] = {}
        self.values: dict[str, list[Any]] = {}
        self.spans: dict[str, list[tuple[int, int]]] = {}

    def add(self, number: int, line: Mapping[str, object]) -> None:
        location = f"{self.label} line {number}"
        seconds: Any = line.get("seconds")
        if type(seconds) not in (int, float) or not abs(seconds) < math.inf:
            raise SourceError(f'{location}: needs "seconds", a number')
        if seconds > MOST_TICKS / TICKS_PER_SECOND:
            raise SourceError(f"{location}: later than 7 days. Cut the file")
        tick = math.ceil(seconds * TICKS_PER_SECOND - _SLACK)
        if tick < max(1, self.tick):
            raise SourceError(f"{location}: {seconds} s is out of order. Sort the lines by time")
        decision = line.get("speech", True)
        if not isinstance(decision, bool):
            raise SourceError(f"{location}: speech must be true or false")
        if tick > self.tick:
            self.speech.append((tick - self.tick, decision))
        self.tick = tick
        for name, value in line.items():
            if name in {"seconds", "speech"} or value is None:
                continue
            if name.endswith("_span") and name.removesuffix("_span") in line:
                continue
            if name in RESERVED or name.endswith(SUFFIXES) or not name.isidentifier():
                raise SourceError(f"{location}: invalid feature name {name!r}")
            self.ticks.setdefault(name, []).append(tick)
            self.values.setdefault(name, []).append(_frame(location, name, value))
            span = line.get(f"{name}_span")
            if span is not None:
                self.spans.setdefault(name, []).append(_span(location, name, span))

    def arrays(self) -> tuple[BoolArray, dict[str, Track]]:
        counts = [ticks for ticks, _ in self.speech]
        speech = np.repeat(np.array([decision for _, decision in self.speech], np.bool_), counts)
        tracks = {}
        for name, values in self.values.items():
            shapes = {len(value) if isinstance(value, list) else None for value in values}
            if len(shapes) > 1:
                raise SourceError(f"{self.label}: the frames of {name} differ in length or kind")
            array: AnyArray = np.array(values, np.int64 if shapes == {None} else np.float64)
            spans = self.spans.get(name)
            if spans is not None and len(spans) != len(values):
                raise SourceError(f"{self.label}: give {name}_span for all its frames or none")
            stretches = None if spans is None else np.array(spans, np.int64)
            tracks[name] = Track(np.array(self.ticks[name], np.int64), array, stretches)
        return speech, tracks


def _frame(location: str, name: str, value: Any) -> int | list[float]:
    if type(value) is int and abs(value) < 1 << 62:
        return value
    if isinstance(value, list) and value and all(type(x) in (int, float) for x in value):
        return [float(x) if abs(x) < 1e300 or x != x else math.inf for x in value]
    raise SourceError(f"{location}: {name} must be an integer bin or a list of numbers")


def _span(location: str, name: str, value: Any) -> tuple[int, int]:
    """Return the ticks [begin, end) that a stretch of seconds touches."""
    if isinstance(value, list) and [type(x) in (int, float) for x in value] == [True, True]:
        begin, end = value
        if 0 <= begin < end <= MOST_TICKS / TICKS_PER_SECOND:
            first = math.floor(begin * TICKS_PER_SECOND + _SLACK)
            return first, math.ceil(end * TICKS_PER_SECOND - _SLACK)
    raise SourceError(f"{location}: {name}_span must be [begin, end] in seconds")


def read_json_lines(path: Path) -> tuple[Header, BoolArray, dict[str, Track]]:
    """Read a file of frames; a SourceError names a malformed line."""
    lines = _Lines(path.name)
    first = True
    with path.open(encoding="utf-8-sig") as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                line = None
            if not isinstance(line, dict):
                raise SourceError(f"{path.name} line {number} is not a JSON object: correct it")
            if first and line.get("type") == "start":
                raise SourceError(f"{path.name} is a recorded run, not audio: use monitor show")
            if first and "schema" in line:
                lines.header = read_header(line, path.name)
            else:
                lines.add(number, line)
            first = False
    speech, tracks = lines.arrays()
    return lines.header, speech, tracks


RUN_TICKS = 10 * TICKS_PER_SECOND
MOST_HEADER = 1 << 20  # characters of a first line
_BESIDE = ("_ticks", "_spans")
_BROKEN = (
    *(OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, SyntaxError),
    *(RuntimeError, MemoryError, OverflowError, zipfile.BadZipFile, zlib.error),
)
"""Exceptions of numpy, zipfile and json for a malformed file."""


class FramesFile(BaseSource[Frames]):
    r"""Precomputed frames of one recording, from an ``.npz`` file or JSON lines.

    An ``.npz`` file has two arrays per feature NAME. ``NAME`` has (k,) integer bins or (k, d)
    floats. ``NAME_ticks`` has (k,) integers, the tick of 10 ms at which each frame is complete.
    Omit ``NAME_ticks`` if there is one frame per tick. The optional ``NAME_spans``, (k, 2)
    integers, has the ticks [begin, end) of each frame. The optional `EarlyFrames` are
    ``NAME_early``, (e, d) floats, with ``NAME_early_ticks`` and ``NAME_early_seconds``, (e,)
    integers. ``speech`` has (n,) booleans, one per tick (default: all speech, up to the last
    frame). ``header`` is an optional JSON string ``{"schema": 1, "sizes": {"f0": 107},
    "frame_seconds": {"f0": 0.01}}``. `Header` describes its other keys.

    JSON lines have one object per line, in order, such as ``{"seconds": 0.01, "speech": true, "f0":
    57}``. ``seconds`` is the time at which the frame is complete. ``speech`` (default true) applies
    to the time since the previous line. An embedding is a list, and null is an unusable frame. The
    optional ``"f0_span": [0.0, 0.01]`` has the seconds from which the frame was made. A first line
    with ``schema`` is the header.

    Embeddings are summed, so their norms are weights. Normalise them if their norms have no
    meaning. Frames that are not finite, or outside the bins, are dropped and reported as gaps.

    Args:
        path: an ``.npz`` file. Other files are read as JSON lines.
        recording: index of the recording for its gaps.

    Attributes:
        header: the file's header. Missing keys are completed from the frames, or by defaults.

    Raises:
        SourceError: the file is missing, damaged or malformed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.jsonl")
        ...     _ = path.write_text('{"seconds": 0.01, "f0": 57}\n{"seconds": 0.02, "f0": 58}\n')
        ...     source = FramesFile(path)
        >>> source.seconds, source.stream_info.tracks["f0"].size
        (0.02, 59)
        >>> [run.tracks["f0"].values.tolist() for run in source]
        [[57, 58]]
    """

    def __init__(self, path: str | os.PathLike[str], recording: int = 0) -> None:
        path = self._path = Path(path)
        self.label = file_name(path)
        self._recording = recording
        self._provenance: Provenance | None = None
        try:
            read = _read_npz if path.suffix.lower() == ".npz" else read_json_lines
            header, speech, tracks = read(path)
        except FileNotFoundError:
            raise SourceError(f"cannot open {self.label} (no such file): check the name") from None
        except IsADirectoryError:
            raise SourceError(f"{self.label} is a folder: use a file of frames") from None
        except _BROKEN as error:
            words = " ".join(str(error).replace(str(path), self.label).split())[:120]
            raise SourceError(
                f"{self.label} is not a file of frames ({words or type(error).__name__}); "
                "write it with write_frames"
            ) from None
        self._frames = PrecomputedFrames(self.label, header, speech, tracks)
        self.stream_info = StreamInfo(audio=False, tracks=self._frames.features, noise=header.noise)
        self.header = header

    @property
    def seconds(self) -> float:
        """Audio seconds that the frames cover."""
        return len(self._frames.speech) / TICKS_PER_SECOND

    def provenance(self) -> tuple[Provenance, ...]:
        """Return the file's provenance with the hashes of its recording. Reads the file again."""
        if self._provenance is None:
            hashes = (file_hash(self._path), *self.header.hashes)
            self._provenance = Provenance(self.label, hashes)
        return (self._provenance,)

    def items(self) -> Iterator[Frames]:
        """Yield runs of at most 10 s."""
        return self._frames.runs(RUN_TICKS, self._recording)

    def whole(self) -> Frames:
        """Return all frames in one piece."""
        return next(self._frames.runs(len(self._frames.speech), self._recording))


def read_frames(path: str | os.PathLike[str]) -> Frames:
    """Read all frames of a recording from an ``.npz`` file or JSON lines.

    `FramesFile` reads them in runs instead. SourceError if the file is missing or malformed.
    """
    return FramesFile(path).whole()


def header_of(path: str | os.PathLike[str]) -> Header:
    """Read the header of a file of frames; an unreadable file has an empty header."""
    path = Path(path)
    try:
        if path.suffix.lower() != ".npz":
            with path.open(encoding="utf-8-sig") as lines:
                first = json.loads(lines.readline(MOST_HEADER))
            return read_header(first, file_name(path))
        with path.open("rb") as file:
            return _npz_header(read_arrays(file, "header"), file_name(path))
    except (*_BROKEN, SourceError):
        return Header()


def write_frames(
    path: str | os.PathLike[str],
    speech: BoolArray,
    tracks: Mapping[str, Track],
    sizes: Mapping[str, int],
    frame_seconds: Mapping[str, float],
    *,
    networks: Mapping[str, str | None] | None = None,
    header: Header = Header(),
) -> None:
    """Write frames to an ``.npz`` file for `FramesFile`, atomically, mode 0600.

    Args:
        path: the file, with a name in ``.npz``.
        speech: shape (n,), one decision per tick of 10 ms.
        tracks: ticks, values and optional spans of each feature.
        sizes: bins or dimensions of each feature.
        frame_seconds: usable seconds of one frame of each feature.
        networks: sha256 of each feature's network; None or omitted if it has no network.
        header: source of further keys: hashes (`recording_hashes`), settings, noise and arrays.

    Raises:
        UsageError: the frames are inconsistent.
        StoreError: the file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() != ".npz":
        raise UsageError(f"{path.name} must end in .npz")
    for name in tracks:
        if name in RESERVED or name.endswith(SUFFIXES) or not name.isidentifier():
            raise UsageError(f"invalid feature name {name!r}: use letters and digits")
    marks = {name: mark for name, mark in (networks or {}).items() if mark is not None}
    fields = {
        "schema": SCHEMA,
        "sizes": dict(sizes),
        "frame_seconds": dict(frame_seconds),
        **({"networks": marks} if marks else {}),
        **({"hashes": list(header.hashes)} if header.hashes else {}),
        **({"heard": dict(header.settings)} if header.settings else {}),
        **({"noise": header.noise} if header.noise else {}),
    }
    try:
        PrecomputedFrames(path.name, read_header(fields, path.name), speech, tracks)
    except SourceError as error:
        raise UsageError(str(error)) from None
    arrays: dict[str, AnyArray] = {"header": np.array(json.dumps(fields)), "speech": speech}
    recording = {_SOUND: header.sound, _LANDMARKS: header.landmarks}
    arrays |= {name: array for name, array in recording.items() if array is not None}
    arrays |= _arrays_of(tracks)
    if (starts := header.starts) is not None and starts.ends.size and starts.frames.tracks:
        arrays[_STARTS] = np.column_stack((starts.at, starts.ends))
        beginnings = {"speech": starts.frames.speech, **_arrays_of(starts.frames.tracks)}
        arrays |= {f"{_OF_STARTS}{name}": array for name, array in beginnings.items()}
    with writing(path), atomic_write(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def _arrays_of(tracks: Mapping[str, Track]) -> dict[str, AnyArray]:
    arrays: dict[str, AnyArray] = {}
    for name, track in tracks.items():
        arrays[name], arrays[f"{name}_ticks"] = track.values, track.ticks
        if track.spans is not None:
            arrays[f"{name}_spans"] = track.spans
        if track.early is not None:
            arrays[f"{name}_early"] = track.early.values
            arrays[f"{name}_early_ticks"] = track.early.ticks
            arrays[f"{name}_early_seconds"] = track.early.seconds
    return arrays


def _read_npz(path: Path) -> tuple[Header, BoolArray, dict[str, Track]]:
    """Read arrays by name; `PrecomputedFrames` checks that they match."""
    with path.open("rb") as file:
        arrays = read_arrays(file)
    label = file_name(path)
    sound, landmarks = (_pop_recording(arrays, name, label) for name in (_SOUND, _LANDMARKS))
    header = replace(_npz_header(arrays, label), sound=sound, landmarks=landmarks)
    header = replace(header, starts=_pop_starts(arrays, header, label))
    return header, *_tracks_of(arrays, label)


def _pop_starts(arrays: MutableMapping[str, AnyArray], header: Header, label: str) -> Starts | None:
    names = [name for name in arrays if name.startswith(_OF_STARTS)]
    places = arrays.pop(_STARTS, None)
    beginnings = {name.removeprefix(_OF_STARTS): arrays.pop(name) for name in names}
    if places is None and not beginnings:
        return None
    is_valid = places is not None and places.dtype == np.int64 and places.shape[1:] == (2,)
    if places is not None and is_valid and "speech" in beginnings:
        speech, tracks = _tracks_of(beginnings, label)
        at, ends = places.T
        if np.all(np.diff(ends, prepend=0) > 0) and ends[-1:] == len(speech) and np.all(at >= 0):
            frames = next(PrecomputedFrames(label, header, speech, tracks).runs(len(speech)))
            return Starts(at, ends, frames)
    raise SourceError(f"{label} has invalid {_STARTS}: extract the frames again")


def _tracks_of(
    arrays: MutableMapping[str, AnyArray], label: str
) -> tuple[BoolArray, dict[str, Track]]:
    """Return the speech decisions and the tracks in these arrays."""
    speech = arrays.pop("speech", None)
    early = {
        name.removesuffix("_early"): _early_of(arrays, name, label)
        for name in [name for name in arrays if name.endswith("_early")]
    }
    names = [name for name in arrays if not name.endswith(_BESIDE)]
    for name in arrays.keys() - set(names):
        if name.rpartition("_")[0] not in names:
            raise SourceError(f"{label}: {name} belongs to no feature. Add its frames")
    if lost := sorted(early.keys() - set(names)):
        raise SourceError(f"{label}: {lost[0]}_early belongs to no feature. Add its frames")
    for name in names:
        if not arrays[name].ndim:
            raise SourceError(f"{label}: {name} must be integer bins (k,) or floats (k, d)")
    if speech is None:
        speech = np.ones(_last_tick(arrays, names, label), np.bool_)
    if speech.ndim != 1 or (speech.dtype != np.bool_ and not np.isin(speech, (0, 1)).all()):
        raise SourceError(f"{label}: speech must be (n,) booleans, one for each 10 ms")
    tracks = {}
    for name in names:
        ticks = arrays.get(f"{name}_ticks")
        if ticks is None:
            if len(arrays[name]) != len(speech):
                raise SourceError(
                    f"{label}: {name} has {len(arrays[name])} frames for {len(speech)} ticks. Add "
                    f"{name}_ticks"
                )
            ticks = np.arange(1, len(speech) + 1)
        spans = arrays.get(f"{name}_spans")
        tracks[name] = Track(ticks, arrays[name], spans, early.get(name))
    return speech.astype(np.bool_), tracks


def _early_of(arrays: MutableMapping[str, AnyArray], name: str, label: str) -> EarlyFrames:
    try:
        ticks, seconds = arrays.pop(f"{name}_ticks"), arrays.pop(f"{name}_seconds")
    except KeyError as error:
        raise SourceError(f"{label}: add {error.args[0]} beside {name}") from None
    return EarlyFrames(ticks, arrays.pop(name), seconds)


def _pop_recording(arrays: MutableMapping[str, AnyArray], name: str, label: str) -> AnyArray | None:
    array = arrays.pop(name, None)
    if array is None:
        return None
    if name == _LANDMARKS:
        is_valid = array.dtype == "<u2" and array.ndim == 1
    else:
        is_valid = array.dtype == np.int64 and array.shape == (ROW,) and array.min() >= 0
    if not is_valid:
        raise SourceError(f"{label} has an invalid {name}: extract the frames again")
    return array


def _npz_header(arrays: MutableMapping[str, AnyArray], label: str) -> Header:
    if "header" not in arrays:
        return Header()
    text = arrays.pop("header")
    if text.dtype == np.uint8:
        raise SourceError(
            f"{label} has no frames: it is another file of this program, such as a population"
        )
    if text.shape != () or text.dtype.kind != "U":
        raise SourceError(f"{label}: header must be one JSON string. Use write_frames")
    return read_header(json.loads(text.item()), label)


def _last_tick(arrays: Mapping[str, AnyArray], names: list[str], label: str) -> int:
    last = 0
    for name in names:
        ticks = arrays.get(f"{name}_ticks")
        if ticks is None:
            last = max(last, len(arrays[name]))
        elif ticks.size and ticks.dtype.kind in "iu":
            last = max(last, int(ticks.max()))
    if last > MOST_TICKS:
        raise SourceError(f"{label} is longer than 7 days; cut it")
    return last
