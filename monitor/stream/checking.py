"""What ready-made frames must be; checked before anything of a stream changes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from monitor.errors import UsageError
from monitor.kinds import FeatureSpec
from monitor.types import Frames, Track

__all__ = ["check_frames"]


def check_frames(frames: Frames, features: Mapping[str, FeatureSpec]) -> None:
    """Refuse frames that could not be learnt.

    Args:
        frames: a run of a stream.
        features: those that are learnt of it.

    Raises:
        UsageError: shapes, kinds, bins or ticks do not fit.
    """
    speech = np.asarray(frames.speech)
    if speech.ndim != 1 or speech.dtype != np.bool_:
        raise UsageError(
            f"speech is {speech.dtype} of shape {speech.shape}: give one bool a tick, shape (n,)"
        )
    for name, track in frames.tracks.items():
        if name in features:
            _check_track(track, features[name])


def _check_track(track: Track, spec: FeatureSpec) -> None:
    name, ticks, values, spans = spec.name, track.ticks, track.values, track.spans
    if ticks.ndim != 1 or ticks.dtype.kind not in "iu" or np.any(ticks[1:] < ticks[:-1]):
        raise UsageError(f"the ticks of {name} must be whole numbers that do not decrease")
    if len(values) != len(ticks):
        raise UsageError(f"{name} has {len(values)} frames and {len(ticks)} ticks: one a frame")
    if spans is not None and (spans.shape != (len(ticks), 2) or spans.dtype.kind not in "iu"):
        raise UsageError(f"the spans of {name} must be pairs of whole numbers, one a frame")
    spec.kind.check(name, values, len(ticks), spec.size)
