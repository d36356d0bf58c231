"""What one protected piece of speech gives: frames of features, and what was measured beside them.

The clock is the clear recording's speech, so that a trial is the same stretch of talk whatever a
protector did to it; that it fell silent is then no trial less, but a trial without evidence.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from monitor.archives import read_arrays
from monitor.training.listening import SpeechFrames, SpeechTrack
from monitor.types import AnyArray, BoolArray, Frames

__all__ = ["HeardPiece", "on_clock", "pack", "unpack"]


@dataclass(frozen=True, slots=True)
class HeardPiece:
    """One piece, protected and heard.

    Attributes:
        frames: on the clock of the clear speech.
        measured: by measure (`monitor.attacks.measures`), what it noted of this piece.
    """

    frames: SpeechFrames
    measured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def on_clock(frames: Frames, clear: BoolArray) -> SpeechFrames:
    """Frames of a protected piece, on the clock of its clear speech.

    Args:
        frames: of the protected audio. Where it has another length, time is stretched to fit.
        clear: shape (ticks,), the decisions on the clear audio.
    """
    clock = np.concatenate([[0], np.cumsum(clear)])
    scale = clear.size / max(frames.speech.size, 1)

    def at(ticks: AnyArray) -> AnyArray:
        placed = ticks if scale == 1.0 else np.ceil(ticks * scale).astype(np.int64)
        return np.asarray(clock[np.minimum(placed, clear.size)])

    tracks = {
        name: SpeechTrack(
            each.values, at(each.ticks), None if each.spans is None else at(each.spans[:, 0])
        )
        for name, each in frames.tracks.items()
    }
    return SpeechFrames(clear, tracks)


def pack(heard: HeardPiece) -> bytes:
    """As bytes, for `monitor.result_cache`."""
    frames = heard.frames
    arrays: dict[str, AnyArray] = {"speech": frames.speech}
    for i, track in enumerate(frames.tracks.values()):
        arrays[f"values{i}"], arrays[f"at{i}"] = track.values, track.at
        if track.since is not None:
            arrays[f"since{i}"] = track.since
    said = {"tracks": list(frames.tracks), "lost": frames.lost, "measured": heard.measured}
    arrays["said"] = np.array(json.dumps(said))
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpack(data: bytes) -> HeardPiece:
    """The reverse of `pack`."""
    arrays = read_arrays(io.BytesIO(data))
    said = json.loads(arrays["said"].item())
    tracks = {
        name: SpeechTrack(arrays[f"values{i}"], arrays[f"at{i}"], arrays.get(f"since{i}"))
        for i, name in enumerate(said["tracks"])
    }
    frames = SpeechFrames(arrays["speech"], tracks)
    return HeardPiece(replace(frames, lost=said["lost"]), said["measured"])
