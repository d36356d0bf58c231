"""Frames that somebody else made: ``.npz`` arrays or JSON lines."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.archives import read_arrays
from monitor.atomic import atomic_write, not_written
from monitor.brings import Brings
from monitor.errors import SourceError, UsageError
from monitor.managed import Managed
from monitor.safe_text import file_name
from monitor.sources.jsonframes import read_json_lines
from monitor.sources.precomputed import (
    MOST_TICKS,
    RESERVED,
    SCHEMA,
    SUFFIXES,
    Header,
    PrecomputedFrames,
    read_header,
)
from monitor.types import TICKS_PER_SECOND, AnyArray, BoolArray, Frames, Track

if TYPE_CHECKING:
    from monitor.sources.provenance import Provenance

__all__ = ["FramesFile", "header_of", "read_frames", "write_frames"]

RUN_TICKS = 10 * TICKS_PER_SECOND
MOST_HEADER = 1 << 20
"""Characters of a first line."""
_BESIDE = ("_ticks", "_spans")
_BROKEN = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    TypeError,
    AttributeError,
    NotImplementedError,
    SyntaxError,
    RuntimeError,
    MemoryError,
    OverflowError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What numpy, zipfile and json raise on a file that is not what it says."""


class FramesFile(Managed):
    r"""Ready-made frames of one recording, in runs of at most 10 s.

    An ``.npz`` holds, for each feature NAME, ``NAME`` as (k,) integer bins or (k, d) floats and
    ``NAME_ticks`` as (k,) integers: the frame is complete once so many ticks of 10 ms have been
    heard. ``speech`` is (n,) booleans, one a tick (default: all speech, up to the last frame). The
    ticks may be left out where there is one frame a tick. ``NAME_spans``, (k, 2) integers, may say
    which ticks [begin, end) each frame was made of. ``header`` is an optional JSON string
    ``{"schema": 1, "sizes": {"f0": 107}, "frame_seconds": {"f0": 0.01}}``; ``networks`` in it say
    which network made a feature, by its sha256, ``hashes`` (of `recording_hashes`) which recording
    was heard, and ``noise`` (``"laplace:15"``) what was added to its embeddings.

    JSON lines hold one object a line, in order: ``{"seconds": 0.01, "speech": true, "f0": 57}``.
    ``seconds`` is when the frame is complete, ``speech`` (default true) is of the time since the
    line before, an embedding is a list, null is no usable frame; ``"f0_span": [0.0, 0.01]`` may say
    which seconds it was made of. A first line with ``schema`` is the header.

    Frames that are not finite, or not a bin, are dropped and reported as gaps.

    Args:
        path: a ``.npz`` file, else JSON lines.
        recording: number given to its gaps.

    Attributes:
        label: the name of the file, without its folder.
        brings: what the frames of each feature look like, by name, among its ``tracks``.
        header: what of that the file states; the rest was seen, or is the default.

    Raises:
        SourceError: the file is missing, damaged or malformed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.jsonl")
        ...     _ = path.write_text('{"seconds": 0.01, "f0": 57}\n{"seconds": 0.02, "f0": 58}\n')
        ...     source = FramesFile(path)
        >>> source.seconds, source.brings.tracks["f0"].size
        (0.02, 59)
        >>> [run.tracks["f0"].values.tolist() for run in source]
        [[57, 58]]
    """

    def __init__(self, path: str | os.PathLike[str], recording: int = 0) -> None:
        path = self._path = Path(path)
        self.label = file_name(path)
        self._recording = recording
        try:
            read = _read_npz if path.suffix.lower() == ".npz" else read_json_lines
            header, speech, tracks = read(path)
        except FileNotFoundError:
            raise SourceError(f"cannot open {self.label}: no such file; check the name") from None
        except IsADirectoryError:
            raise SourceError(f"{self.label} is a folder; give a file of frames") from None
        except _BROKEN as error:
            words = " ".join(str(error).replace(str(path), self.label).split())[:120]
            raise SourceError(
                f"{self.label} is no file of frames ({words or type(error).__name__}); "
                "write it with write_frames"
            ) from None
        self._frames = PrecomputedFrames(self.label, header, speech, tracks)
        self.brings = Brings(audio=False, tracks=self._frames.features, noise=header.noise)
        self.header = header

    @property
    def seconds(self) -> float:
        """Audio seconds that the frames stand for."""
        return len(self._frames.speech) / TICKS_PER_SECOND

    @cached_property
    def provenance(self) -> tuple[Provenance, ...]:
        """The file, and the recording that its frames were made of; reads the file again."""
        from monitor.sources.provenance import provenance_of  # which reads headers of frames

        return (provenance_of(self._path),)

    def __iter__(self) -> Iterator[Frames]:
        return self._frames.runs(RUN_TICKS, self._recording)


def read_frames(path: str | os.PathLike[str]) -> Frames:
    """All frames of a recording in one piece; `FramesFile` gives them in runs, and their sizes.

    Args:
        path: as `write_frames` wrote it, or JSON lines.

    Raises:
        SourceError: the file is missing, damaged or malformed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "a.npz")
        ...     pitch = {"f0": Track(np.array([1, 3]), np.array([57, 58]))}
        ...     write_frames(file, np.ones(4, bool), pitch, {"f0": 107}, {"f0": 0.01})
        ...     frames = read_frames(file)
        >>> frames.speech.size, frames.tracks["f0"].values.tolist()
        (4, [57, 58])
    """
    source = FramesFile(path)
    runs = source._frames.runs(max(1, len(source._frames.speech)))
    return next(runs, Frames(np.zeros(0, np.bool_), {}))


def header_of(path: str | os.PathLike[str]) -> Header:
    """What the maker of a file of frames says; nothing of a file that cannot be read."""
    path = Path(path)
    try:
        if path.suffix.lower() != ".npz":
            with path.open(encoding="utf-8") as lines:
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
    hashes: Sequence[str] = (),
    heard: Mapping[str, Any] | None = None,
    noise: str = "",
) -> None:
    """Write frames as an ``.npz`` that `FramesFile` reads; whole or not at all, mode 0600.

    Args:
        path: where to; must end in ``.npz``.
        speech: shape (n,), one decision for each tick of 10 ms.
        tracks: ticks, values and, where there are any, spans of each feature.
        sizes: bins or dimensions of each feature.
        frame_seconds: usable seconds of one frame of each feature.
        networks: sha256 of the network that made a feature; None, or left out, where none did.
        hashes: fingerprints of the recording (`recording_hashes`), so that it is known again.
        heard: how it was heard; anything that goes into JSON.
        noise: what was added to the embeddings, as ``"laplace:15"``: whoever reads them is told.

    Raises:
        UsageError: the frames do not fit together.
        StoreError: the file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() != ".npz":
        raise UsageError(f"{path.name} must end in .npz")
    for name in tracks:
        if name in RESERVED or name.endswith(SUFFIXES) or not name.isidentifier():
            raise UsageError(f"a feature cannot be called {name!r}; use letters and digits")
    marks = {name: mark for name, mark in (networks or {}).items() if mark is not None}
    header = {
        "schema": SCHEMA,
        "sizes": dict(sizes),
        "frame_seconds": dict(frame_seconds),
        **({"networks": marks} if marks else {}),
        **({"hashes": list(hashes)} if hashes else {}),
        **({"heard": dict(heard)} if heard else {}),
        **({"noise": noise} if noise else {}),
    }
    try:
        PrecomputedFrames(path.name, read_header(header, path.name), speech, tracks)
    except SourceError as error:
        raise UsageError(str(error)) from None
    arrays: dict[str, AnyArray] = {"header": np.array(json.dumps(header)), "speech": speech}
    for name, track in tracks.items():
        arrays[name], arrays[f"{name}_ticks"] = track.values, track.ticks
        if track.spans is not None:
            arrays[f"{name}_spans"] = track.spans
    try:
        with atomic_write(path) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise not_written(path, error) from None


def _read_npz(path: Path) -> tuple[Header, BoolArray, dict[str, Track]]:
    """Arrays by name; whether they fit together is for `PrecomputedFrames` to say."""
    with path.open("rb") as file:
        arrays = read_arrays(file)
    label = file_name(path)
    header = _npz_header(arrays, label)
    speech = arrays.pop("speech", None)
    names = [name for name in arrays if not name.endswith(_BESIDE)]
    for name in arrays.keys() - set(names):
        if name.rpartition("_")[0] not in names:
            raise SourceError(f"{label}: {name} belongs to no feature; add its frames")
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
                    f"{label}: {name} has {len(arrays[name])} frames for {len(speech)} ticks; "
                    f"add {name}_ticks"
                )
            ticks = np.arange(1, len(speech) + 1)
        tracks[name] = Track(ticks, arrays[name], arrays.get(f"{name}_spans"))
    return header, speech.astype(np.bool_), tracks


def _npz_header(arrays: dict[str, AnyArray], label: str) -> Header:
    """The header, taken out of the arrays."""
    if "header" not in arrays:
        return Header()
    text = arrays.pop("header")
    if text.shape != () or text.dtype.kind != "U":
        raise SourceError(f"{label}: header must be one JSON string; use write_frames")
    return read_header(json.loads(text.item()), label)


def _last_tick(arrays: Mapping[str, AnyArray], names: list[str], label: str) -> int:
    """The tick at which the last frame is complete."""
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
