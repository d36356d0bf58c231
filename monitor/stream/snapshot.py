"""Snapshots of running streams as bytes without audio, which another process continues.

A snapshot has the attributes of the stream's parts. A part's method ``kept`` omits audio and
everything that the plan contains. Its method ``resume`` restores them. Bytes are decoded to plain
values and arrays, and cannot select classes.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec
import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.events.reading import OpenChange
from monitor.features.channel import Channel, ConditionRows
from monitor.features.embeddings import SpeechWindows
from monitor.features.extractor import (
    Extractor,
    Mixer,
    RecordingFeatures,
    Resampler,
    VoiceActivity,
    VoiceDetector,
)
from monitor.features.f0 import F0
from monitor.features.framing import BadSamples, Framer
from monitor.features.landmarks import Landmarks
from monitor.features.level import HighPass, Leveller, Syllables
from monitor.features.phones import Codes
from monitor.features.waveform import Waveform
from monitor.maths.condition import Condition
from monitor.maths.landmarks import StreamLandmarks
from monitor.maths.scores import EmbeddingSum, Histogram
from monitor.networks.layers import RATE, BlockStream, FrameBuffer
from monitor.phrases import plural
from monitor.protocols import Stateful
from monitor.safe_text import printable
from monitor.stream.clocks import BlocksToTicks
from monitor.stream.conditions import StreamConditions
from monitor.stream.copies import CopyFinder, LandmarkWindows
from monitor.stream.evidence import Evidence, Mark, PrefixSums
from monitor.stream.intake import Intake
from monitor.stream.plan import Plan
from monitor.stream.reading_builder import ReadingBuilder
from monitor.stream.repeat_gate import Correction, FrameChange, FrameLog, RepeatFinder, RepeatGate
from monitor.stream.second_voice import Mixture, SecondVoice, Turns
from monitor.stream.segments import SpeakerSegments
from monitor.stream.speaker_changes import ChangeDetector, Recordings, SpeakerChanges
from monitor.stream.stream import EventOrder, Observers, Stream
from monitor.stream.totals import FeatureTotals
from monitor.types import AnyArray, Block, EarlyFrames, Gap, Notice, SpeechWindow, Track
from monitor.version import __version__

_MAGIC = b"monitor-stream-1"
_MOST_BYTES = 64 << 20

_PARTS = (
    *(Stream, Intake, BlocksToTicks, Evidence, PrefixSums, EventOrder, ReadingBuilder, Observers),
    *(CopyFinder, LandmarkWindows, RepeatFinder, RepeatGate, FrameLog, StreamLandmarks),
    *(StreamConditions, Recordings, SpeakerChanges, ChangeDetector, SpeakerSegments, SecondVoice),
    *(Extractor, RecordingFeatures, BadSamples, ConditionRows, Mixer, HighPass, Leveller),
    *(Syllables, VoiceActivity, VoiceDetector, Framer, Resampler, F0, SpeechWindows, Codes),
    *(Channel, Landmarks, Waveform, BlockStream, FrameBuffer, Histogram, EmbeddingSum),
)
"""Classes with a state, and their subclasses. A new stream has their objects already."""
_VALUES: Mapping[str, type[Any]] = {
    value.__name__: value
    for value in (
        *(Condition, Correction, EarlyFrames, FeatureTotals, FrameChange, Gap, Mark, Mixture),
        *(Notice, OpenChange, SpeechWindow, Track, Turns),
    )
}
"""Classes of values, which are made from their fields."""
_SAME = ["same"]
"""Placeholder for objects that a new stream already has: settings, networks and templates."""


class _Content(msgspec.Struct):
    """Plain values of a snapshot; ``audio`` is the recording, its rate and the stream's seconds."""

    settings: dict[str, Any]
    rules: list[Any]
    audio: tuple[int, int, float] | None
    stream: list[Any]


def take_snapshot(plan: Plan, stream: Stream, rules: Sequence[Stateful] = ()) -> bytes:
    """Return a running stream, and the state of its rules, as bytes.

    UsageError if the stream cannot move, because of custom features, or words or ready-made frames
    beside audio.
    """
    _check_movable(plan, stream)
    reader = stream.intake.reader
    audio = None if reader is None else (*(reader.key or (0, 0)), reader.seconds)
    states = [rule.state() for rule in rules]
    content = _Content(_describe_settings(plan), states, audio, _encode(stream))
    packed = zlib.compress(msgspec.msgpack.encode(content), 1)
    return _MAGIC + hashlib.sha256(packed).digest() + packed


def resume_snapshot(
    plan: Plan, stream: Stream, data: bytes, rules: Sequence[Stateful] = ()
) -> float:
    """Continue a snapshot in an unused stream; return the audio seconds that it has processed.

    StoreError if the bytes are damaged, or of another version, population or settings.
    """
    if stream.phase != "opened":
        raise UsageError("a snapshot continues in a monitor without audio: make another one")
    content = _read(data)
    _compare(content.settings, _describe_settings(plan))
    if len(rules) != len(content.rules):
        raise StoreError(
            f"the snapshot has {plural(len(content.rules), 'alert rule')}, not {len(rules)}: "
            "restore it with the same rules"
        )
    before = [rule.state() for rule in rules]
    try:
        seconds = 0.0
        if content.audio is not None:
            recording, rate, seconds = content.audio
            for _ in stream.intake.process(Block(np.empty(0, np.float32), rate or RATE, recording)):
                pass  # creates the objects that process a recording
        _decode(content.stream, stream)
        _restore(rules, content.rules)
        return seconds
    except Exception as error:  # bytes may be forged, so any error refuses them
        _restore(rules, before)
        if isinstance(error, UsageError):  # of a rule
            raise StoreError(f"the snapshot is of another stream: {error}") from error
        raise StoreError(f"the snapshot is damaged ({type(error).__name__})") from error


def _restore(rules: Sequence[Stateful], states: Sequence[Any]) -> None:
    for rule, state in zip(rules, states, strict=True):
        rule.restore(state)


def read_seconds(data: bytes) -> float:
    """Return the audio seconds that a snapshot has processed; StoreError if it is damaged."""
    audio = _read(data).audio
    return 0.0 if audio is None else audio[2]


def _check_movable(plan: Plan, stream: Stream) -> None:
    if plan.own_features:
        raise UsageError("streams with features of your own cannot move: name built-in features")
    if stream.intake.coverage is not None or stream.intake.beside.begun:
        raise UsageError("streams with words or frames beside the audio cannot move")
    if stream.phase == "ended":
        raise UsageError("the stream has ended: there is nothing to move")


def _describe_settings(plan: Plan) -> dict[str, object]:
    """Return the settings with which alone a snapshot continues."""
    return {
        "version": __version__,
        "features": list(plan.features),
        "watch": plan.watch,
        "session": plan.session,
        "headline": plan.headline,
        "template_seconds": plan.settings.template_seconds,
        "second_voice": plan.settings.second_voice,
        **plan.fingerprint,
        **plan.configuration(),
    }


def _compare(saved: Mapping[str, object], now: Mapping[str, object]) -> None:
    if differs := [name for name in {**now, **saved} if now.get(name) != saved.get(name)]:
        what = printable(", ".join(differs)).replace("_", " ")
        raise StoreError(
            f"the snapshot is of another stream (different: {what}). Open it with the same "
            "version, population and settings"
        )


def _read(data: bytes) -> _Content:
    """Decode bytes to plain values; StoreError if they are not a snapshot."""
    begin = len(_MAGIC) + hashlib.sha256().digest_size
    if not data.startswith(_MAGIC):
        raise StoreError("not a snapshot of a stream by this version of the program")
    packed = data[begin:]
    if hashlib.sha256(packed).digest() != data[len(_MAGIC) : begin]:
        raise StoreError("the snapshot is damaged (checksum)")
    try:
        inflate = zlib.decompressobj()
        content = inflate.decompress(packed, _MOST_BYTES)
        if inflate.unconsumed_tail:
            raise StoreError(f"the snapshot is larger than {_MOST_BYTES >> 20} MB")
        return msgspec.msgpack.decode(content, type=_Content)
    except (zlib.error, msgspec.DecodeError, RecursionError) as error:
        raise StoreError(f"the snapshot is damaged ({type(error).__name__})") from error


def _encode(value: Any) -> Any:
    """Encode a value in plain values, arrays as bytes; `_SAME` if a new stream has it."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return ["array", array.dtype.str, list(array.shape), array.tobytes()]
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if _VALUES.get(type(value).__name__) is type(value):
        return ["value", type(value).__name__, _encode_value(value)]
    if isinstance(value, list | tuple | deque | set | frozenset):
        kind = "tuple" if isinstance(value, tuple) else "set" if isinstance(value, set) else "list"
        return [kind, [_encode(item) for item in value]]
    if isinstance(value, dict):
        return ["dict", [[_encode(key), _encode(item)] for key, item in value.items()]]
    feature = getattr(value, "feature", value)  # a wrapper may measure its cost
    if isinstance(feature, _PARTS):
        return ["part", {name: _encode(item) for name, item in _attributes(feature).items()}]
    return _SAME


def _encode_value(value: Any) -> dict[str, Any]:
    if isinstance(value, SpeechWindow):  # without its sound
        nothing = np.empty((value.ticks.size, 0), np.float32)
        value = SpeechWindow(value.ticks, nothing, value.runs)
    names = [field.name for field in fields(value)] if is_dataclass(value) else value._fields
    return {name: _encode(getattr(value, name)) for name in names}


def _attributes(component: Any) -> dict[str, Any]:
    if hasattr(component, "snapshot_attributes"):
        return dict(component.snapshot_attributes())
    if hasattr(component, "__dict__"):
        attributes: dict[str, Any] = vars(component)
        return attributes
    slots = [name for base in type(component).__mro__ for name in getattr(base, "__slots__", ())]
    return {name: getattr(component, name) for name in slots}


def _decode(node: Any, now: Any) -> Any:
    """Return the value of a node; parts, lists and dicts of ``now`` are changed in place."""
    if not isinstance(node, list):
        return node
    kind, *content = node
    if kind == "same":
        if now is None:
            raise ValueError("it has an object that this stream lacks")
        return now
    if kind == "array":
        return _decode_array(*content)
    if kind == "value":
        value = _VALUES[content[0]]
        return value(**{name: _decode(item, None) for name, item in content[1].items()})
    if kind == "part":
        return _decode_part(content[0], now)
    if kind == "dict":
        before = now if isinstance(now, dict) else {}
        keys = [_decode(key, None) for key, _ in content[0]]
        values = [
            _decode(item, before.get(k)) for k, (_, item) in zip(keys, content[0], strict=True)
        ]
        before.clear()
        before.update(zip(keys, values, strict=True))
        return before
    return _decode_series(kind, content[0], now)


def _decode_series(kind: str, nodes: Sequence[Any], now: Any) -> Any:
    is_alike = isinstance(now, list | tuple) and len(now) == len(nodes)
    items = [_decode(node, now[i] if is_alike else None) for i, node in enumerate(nodes)]
    if kind == "tuple":
        return tuple(items)
    if kind == "set":
        return set(items)
    if isinstance(now, deque):
        now.clear()
        now.extend(items)
        return now
    if isinstance(now, list):
        now[:] = items
        return now
    return items


def _decode_part(saved: Mapping[str, Any], now: Any) -> Any:
    component = getattr(now, "feature", now)
    if not isinstance(component, _PARTS):
        raise ValueError("it has a component that this stream lacks")
    before = _attributes(component)
    if saved.keys() != before.keys():
        raise ValueError(f"{type(component).__name__} has other attributes")
    for name, node in saved.items():
        value = _decode(node, getattr(component, name))
        old = before[name]
        if isinstance(old, int | float | np.generic | np.ndarray) and not _fits(value, old):
            raise ValueError(f"{name} is of another kind")
        setattr(component, name, value)
    if hasattr(component, "resume"):
        component.resume()
    return now


def _fits(value: Any, old: Any) -> bool:
    """Return whether a value can replace that of a new stream."""
    if isinstance(old, np.ndarray):
        return isinstance(value, np.ndarray) and (value.dtype.kind, value.ndim) == (
            old.dtype.kind,
            old.ndim,
        )
    return isinstance(value, int | float | np.generic)


def _decode_array(dtype: str, shape: Sequence[int], content: bytes) -> AnyArray:
    kind = np.dtype(dtype)
    if kind.kind not in "biuf" or min(shape, default=0) < 0:
        raise ValueError("an array of another kind")
    if math.prod(shape) * kind.itemsize != len(content):
        raise ValueError("an array of another length")
    array = np.frombuffer(content, kind).reshape(shape).copy()
    return array if shape else array[()]
