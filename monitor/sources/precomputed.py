"""Frames of a whole recording that somebody else made, checked: what both file formats give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from monitor.errors import SourceError
from monitor.kinds import KINDS, FeatureSpec
from monitor.network_marks import is_mark
from monitor.phrases import plural
from monitor.types import TICKS_PER_SECOND, AnyArray, BoolArray, Frames, Gap, IntArray, Track

__all__ = [
    "MOST_TICKS",
    "RESERVED",
    "SCHEMA",
    "SUFFIXES",
    "Header",
    "PrecomputedFrames",
    "read_header",
]

SCHEMA = 1
MOST_TICKS = 7 * 24 * 3600 * 100
MOST_NOISE = 80
"""Characters of what is said of the noise."""
RESERVED = frozenset(
    {"header", "speech", "seconds", "schema", "sizes", "frame_seconds", "networks"}
)
"""What no feature can be called; nor can its name end in one of `SUFFIXES`."""
SUFFIXES = ("_ticks", "_spans", "_span")
_HASH = re.compile(r"(file|audio):[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Header:
    """What the maker of the frames says about them.

    Attributes:
        sizes: bins or dimensions of a feature, where stated.
        frame_seconds: usable seconds of one frame of a feature, where stated.
        networks: sha256 of the network that made a feature, where stated.
        hashes: fingerprints of the recording that was heard.
        heard: how it was heard, in words and numbers of whoever did.
        noise: what noise was added to embeddings, as ``"laplace:15"``; empty where none was.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    frame_seconds: Mapping[str, float] = field(default_factory=dict)
    networks: Mapping[str, str] = field(default_factory=dict)
    hashes: tuple[str, ...] = ()
    heard: Mapping[str, Any] = field(default_factory=dict)
    noise: str = ""


def read_header(value: Any, label: str) -> Header:
    """A header from its JSON object.

    Raises:
        SourceError: it is of another schema, or malformed.
    """
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise SourceError(f"{label} is not of frames schema {SCHEMA}; write it with write_frames")
    sizes, seconds = value.get("sizes", {}), value.get("frame_seconds", {})
    if not isinstance(sizes, dict) or not isinstance(seconds, dict):
        raise SourceError(f"{label}: sizes and frame_seconds must be objects, one key a feature")
    for name, size in sizes.items():
        if type(size) is not int or not 0 < size < 1 << 31:
            raise SourceError(f"{label}: the size of {name} must be a positive integer")
    for name, length in seconds.items():
        if type(length) not in (int, float) or not 0 < length < 3600:
            raise SourceError(f"{label}: frame_seconds of {name} must be positive seconds")
    networks = value.get("networks", {})
    if not isinstance(networks, dict) or None in networks.values():
        raise SourceError(f"{label}: networks must be an object, one sha256 a feature")
    for name, network in networks.items():
        if not is_mark(network):
            raise SourceError(f"{label}: the network of {name} must be a sha256 in hexadecimal")
    hashes, heard = value.get("hashes", []), value.get("heard", {})
    if not isinstance(hashes, list) or not all(map(_is_hash, hashes)):
        raise SourceError(f"{label}: hashes must be those of recording_hashes")
    if not isinstance(heard, dict):
        raise SourceError(f"{label}: heard must be an object")
    noise = value.get("noise", "")
    if not isinstance(noise, str) or not (noise.isprintable() and len(noise) <= MOST_NOISE):
        raise SourceError(f"{label}: noise must be a short text, such as laplace:15")
    lengths = {name: float(length) for name, length in seconds.items()}
    return Header(dict(sizes), lengths, dict(networks), tuple(hashes), heard, noise)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


class PrecomputedFrames:
    """Checked frames of a whole recording.

    Args:
        label: how messages call the file.
        header: what the maker says.
        speech: shape (n,), one decision a tick.
        tracks: ticks, values and spans of each feature as they were read, not yet trusted.

    Attributes:
        features: what the frames of each feature look like.

    Raises:
        SourceError: shapes, kinds or ticks do not fit together.
    """

    def __init__(
        self, label: str, header: Header, speech: BoolArray, tracks: Mapping[str, Track]
    ) -> None:
        self.speech = speech
        self.features: dict[str, FeatureSpec] = {}
        self._tracks: dict[str, tuple[Track, BoolArray]] = {}
        if not tracks:
            raise SourceError(f"{label} holds no frames; add at least one feature")
        if not len(speech):
            raise SourceError(f"{label} holds no time at all; add ticks")
        for name, track in tracks.items():
            ticks, values = track.ticks, track.values
            spec = self.features[name] = _spec(label, name, values, header)
            _check_ticks(label, name, ticks, len(values), len(speech))
            spans = track.spans
            if spans is not None:
                _check_spans(label, name, spans, ticks)
                spans = spans.astype(np.int64)
            values, good = spec.kind.usable(values, spec.size)
            self._tracks[name] = Track(ticks.astype(np.int64), values, spans), good

    def runs(self, most_ticks: int, recording: int = 0) -> Iterator[Frames]:
        """The frames in runs of at most that many ticks; unusable ones become gaps."""
        for low in range(0, len(self.speech), most_ticks):
            speech = self.speech[low : low + most_ticks]
            tracks: dict[str, Track] = {}
            gaps: list[tuple[int, Gap]] = []
            for name, (track, good) in self._tracks.items():
                a, b = track.ticks.searchsorted([low, low + len(speech)], side="right")
                ticks, values, keep = track.ticks[a:b], track.values[a:b], good[a:b]
                spans = None if track.spans is None else track.spans[a:b]
                tracks[name] = Track(ticks[keep], values[keep], _only(spans, keep))
                gaps += self._gaps(name, Track(ticks, values, spans), keep, recording)
            gaps.sort(key=lambda gap: gap[0])
            yield Frames(speech, tracks, tuple(gaps))

    def _gaps(
        self, name: str, track: Track, keep: BoolArray, recording: int
    ) -> Iterator[tuple[int, Gap]]:
        """One gap for each stretch of unusable frames, at the tick of its last one."""
        if keep.all():
            return
        spec = self.features[name]
        edges = np.flatnonzero(np.diff(keep, prepend=True, append=True))
        for begin, end in list(pairwise(edges.tolist()))[::2]:
            detail = f"{name}: {end - begin} frames dropped"
            lost = (end - begin) * spec.frame_seconds
            if track.spans is not None:
                lost = int(np.diff(track.spans[begin:end]).sum()) / TICKS_PER_SECOND
            yield int(track.ticks[end - 1]), Gap(spec.kind.unusable, lost, recording, detail)


def _spec(label: str, name: str, values: AnyArray, header: Header) -> FeatureSpec:
    """What frames look like, by their shape and type and by what the header states."""
    kind = next((each for each in KINDS.values() if each.enrolled and each.holds(values)), None)
    if kind is None:
        raise SourceError(f"{label}: {name} must be integer bins (k,) or float embeddings (k, d)")
    try:
        size = kind.size_of(values, header.sizes.get(name))
    except ValueError as error:
        raise SourceError(f"{label}: {name} {error}") from None
    seconds = header.frame_seconds.get(name, 0.01)
    return FeatureSpec(name, kind, size, seconds, network=header.networks.get(name))


def _check_ticks(label: str, name: str, ticks: AnyArray, frames: int, most: int) -> None:
    if ticks.dtype.kind not in "iu" or ticks.shape != (frames,):
        raise SourceError(f"{label}: {name}_ticks must be {frames} integers, one a frame")
    if frames and (np.any(ticks[1:] < ticks[:-1]) or ticks[0] < 1 or ticks[-1] > most):
        raise SourceError(f"{label}: {name}_ticks must not decrease and lie in 1 to {most}")


def _check_spans(label: str, name: str, spans: AnyArray, ticks: AnyArray) -> None:
    if spans.dtype.kind not in "iu" or spans.shape != (len(ticks), 2):
        raise SourceError(
            f"{label}: {name}_spans must be {plural(len(ticks), 'pair')} of integers, one a frame"
        )
    begins, ends = spans.T
    if np.any(begins < 0) or np.any(begins >= ends) or np.any(ends > ticks):
        raise SourceError(
            f"{label}: {name}_spans must be stretches [begin, end) that end by the frame's tick"
        )


def _only(spans: IntArray | None, keep: BoolArray) -> IntArray | None:
    return None if spans is None else spans[keep]
