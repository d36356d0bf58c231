"""Conversion of blocks of audio to frames, with the same code for live audio and files."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from math import gcd
from typing import Any

import _webrtcvad  # of webrtcvad: that only asks importlib.metadata for a version number, slowly
import numpy as np
import soxr
from scipy.fft import rfft

from monitor.errors import UsageError
from monitor.features.channel import CONDITION, ConditionRows
from monitor.features.framing import (
    BadSamples,
    Framer,
    attributes_without,
    columns_of,
    join_frames,
    join_tracks,
)
from monitor.features.level import HighPass, Leveller
from monitor.jobs import one_thread
from monitor.protocols import Feature
from monitor.types import (
    TICKS_PER_SECOND,
    AnyArray,
    Block,
    BoolArray,
    FloatArray,
    Frames,
    Notice,
    Track,
)

VAD_RATE = 16_000
"""Sample rate of voice activity detection; WebRTC's detector halves it internally."""
# 10 ms: with 30 ms, the result for one recording in four depends on where in them words begin
_DECISION_SAMPLES = VAD_RATE // TICKS_PER_SECOND
_FULL_SCALE = 32768.0
# Mode 2 leaves out 1.9 % of ten readers' voiced frames, mode 0 1.6 % (mostly one recording's hum)
# and mode 3 2.7 %. White noise at -30 dBFS is speech to 0 and 1, not to 2.
_AGGRESSIVENESS = 2


class VoiceActivity:
    """WebRTC's voice activity detector, one decision for every tick of 10 ms.

    It adapts to its input, so it must process a recording from its first sample, at 16 kHz. The
    features of a stream and its clock of speech share one (`share`).
    """

    def __init__(self) -> None:
        self.reset()

    def process(self, samples: FloatArray) -> BoolArray:
        """Decide on the ticks that these further samples, (n,), complete: True for speech."""
        return self._detector.decide(self._reader, self._framer.push(samples))

    def reset(self) -> None:
        """Reset: the next sample is the first of a recording."""
        self._framer = Framer(_DECISION_SAMPLES, _DECISION_SAMPLES)
        self._detector, self._reader, self._at = VoiceDetector(), object(), 0
        self._detector.at[self._reader] = 0

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps."""
        at = self._detector.at[self._reader]
        return {"_framer": self._framer, "_detector": self._detector, "_at": at}

    def resume(self) -> None:
        """Continue from a snapshot's attributes."""
        self._detector.at[self._reader] = self._at

    def share(self, other: VoiceActivity) -> None:
        """Before the first sample, adopt another detector of the same samples."""
        self._detector = other._detector
        self._detector.at[self._reader] = 0


class VoiceDetector:
    """WebRTC's detector over one recording, which it processes once for all users.

    ``at`` has the index of each user's next decision.
    """

    def __init__(self) -> None:
        self.at: dict[object, int] = {}
        self._vad = _webrtcvad.create()
        _webrtcvad.init(self._vad)
        _webrtcvad.set_mode(self._vad, _AGGRESSIVENESS)
        self._first, self._decisions = 0, np.empty(0, np.bool_)  # requested decisions
        self._last, self._lingers = False, False
        self._has_adapted = False  # digital silence does not change the detector
        self._adapted: AnyArray = np.empty(0, np.uint8)  # state from a snapshot

    def __deepcopy__(self, memo: dict[int, Any]) -> VoiceDetector:
        """Copy it for the few ticks that end a stream, without its adapted state.

        If it has adapted, the copy repeats the last decision.
        """
        detector = VoiceDetector()
        detector.at = deepcopy(self.at, memo)
        detector._first, detector._decisions = self._first, self._decisions.copy()
        detector._last, detector._lingers = self._last, self._has_adapted or self._lingers
        return detector

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps, with what the detector has adapted to."""
        decisions = {"_first": self._first, "_decisions": self._decisions, "_last": self._last}
        lingers = {"_lingers": self._lingers, "_has_adapted": self._has_adapted}
        return {**decisions, **lingers, "_adapted": np.array(_adapted_state(self._vad))}

    def resume(self) -> None:
        """Continue from a snapshot's attributes; ValueError if they are invalid."""
        state = _adapted_state(self._vad)
        fixed = _VAD_SETTINGS
        if self._adapted.shape != state.shape or self._adapted.dtype != state.dtype:
            raise ValueError("the state of voice activity has another size")
        if not np.array_equal(self._adapted[fixed], state[fixed]):
            raise ValueError("the state of voice activity is another detector's")
        if not np.isin(self._adapted[_VAD_HANGOVER].view(np.int16), range(100)).all():
            raise ValueError("the state of voice activity is damaged")  # process would fail
        state[:] = self._adapted

    def decide(self, reader: object, frames: FloatArray) -> BoolArray:
        """Decide on further frames, shape (k, samples): shape (k,)."""
        begin = self.at[reader] - self._first
        self.at[reader] += len(frames)
        new = frames[len(self._decisions) - begin :]
        if len(new):
            further = np.full(len(new), self._last) if self._lingers else self._ask(new)
            self._has_adapted |= bool(new.any())
            self._decisions, self._last = np.append(self._decisions, further), bool(further[-1])
        decisions = self._decisions[begin : begin + len(frames)]
        passed = min(self.at.values()) - self._first
        self._first, self._decisions = self._first + passed, self._decisions[passed:]
        return decisions

    def _ask(self, frames: FloatArray) -> BoolArray:
        scaled = frames * np.float32(_FULL_SCALE)
        np.rint(scaled, out=scaled)
        np.clip(scaled, -_FULL_SCALE, _FULL_SCALE - 1, out=scaled)
        pcm = scaled.astype(np.int16).tobytes()
        decide, size = partial(_webrtcvad.process, self._vad, VAD_RATE), frames.shape[1]
        starts = range(0, len(pcm), 2 * size)
        decisions = [decide(pcm[start : start + 2 * size], size) for start in starts]
        return np.array(decisions, dtype=np.bool_)


_VAD_BYTES = 736
_VAD_SETTINGS = slice(708, _VAD_BYTES)  # thresholds, and the mark of an initialised detector
_VAD_HANGOVER = slice(280, 284)  # counts of hangover frames, and of speech frames in a row
_FIRST_NOISE = slice(180, 204), (6738, 4892, 7065, 6715, 6771, 3369, 7646, 3863, 7820, 7266, 5020,
                                 4362)  # fmt: skip


def _adapted_state(vad: object) -> AnyArray:
    """Return the memory of a WebRTC detector, (736,) uint8: a view, which writes to it.

    The library gives no access to its state. The state is a C structure without pointers or
    indices, so no value in it leads outside. UsageError if a new detector's state is not as known.
    """
    new = _webrtcvad.create()
    _webrtcvad.init(new)
    noise_slice, means = _FIRST_NOISE
    memory = _memory_of(new)
    is_known = tuple(memory[noise_slice].view(np.int16).tolist()) == means
    if not is_known or memory[-4:].view(np.int32) != 42:
        raise UsageError("this build of webrtcvad is unknown, so streams cannot move: use a wheel")
    return _memory_of(vad)


def _memory_of(vad: object) -> AnyArray:
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = get_pointer(vad, b"WebRtcVadPtr")
    return np.ctypeslib.as_array((ctypes.c_uint8 * _VAD_BYTES).from_address(address))


_RECENT_SECONDS = 0.3
"""More samples than a resampler holds: 0.16 s at 8 kHz and above, 0.23 s at 4 kHz."""
_FILTER_SECONDS, _MOST_STEP_SECONDS = 0.02, 0.05
"""Reach of its filter before those samples, and maximum interval of samples that rates share."""


class Resampler:
    """High-quality streaming resampler (libsoxr) of one recording.

    Its output is a few milliseconds late and comes in bursts. With ``flush``, it equals the
    whole recording resampled at once. Equal rates change nothing.
    """

    def __init__(self, rate_in: int, rate_out: int) -> None:
        if min(rate_in, rate_out) <= 0:
            raise UsageError(f"sample rates must be positive: {rate_in} to {rate_out} Hz")
        self._rates = rate_in, rate_out
        self._step = rate_in // gcd(rate_in, rate_out)
        self._stream: soxr.ResampleStream | None = None
        if rate_in != rate_out:
            self._stream = soxr.ResampleStream(rate_in, rate_out, 1, dtype="float32", quality="HQ")
        self._given = self._made = 0  # samples
        self._recent = np.empty(0, np.float32)
        self._due = np.empty(0, np.float32)  # output that the original had not returned yet
        self._surplus = 0  # output to drop, because the original had returned it

    def process(self, samples: FloatArray) -> FloatArray:
        """Resample further samples, shape (n,), as far as they allow: shape (m,), float32."""
        samples = np.ascontiguousarray(samples, np.float32)
        return self._feed(samples, last=False) if samples.size else samples

    def flush(self) -> FloatArray:
        """Return the rest, at the end of the recording; afterwards a new resampler is needed."""
        return self._feed(np.empty(0, np.float32), last=True)

    def __deepcopy__(self, memo: dict[int, Any]) -> Resampler:
        """Copy it for the end of a stream, with its state rebuilt from the last samples."""
        resampler = Resampler(*self._rates)
        missing = round(self._given * self._rates[1] / self._rates[0]) - self._made
        if self._stream is not None and missing > 0:
            resampler._due = soxr.resample(self._recent, *self._rates)[-missing:]
        return resampler

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps: counts, and the samples it holds."""
        rate_in, rate_out = self._rates
        reach = round(_FILTER_SECONDS * rate_in) + min(
            self._step, round(_MOST_STEP_SECONDS * rate_in)
        )
        retained = self._given - self._made * rate_in // rate_out + reach
        return {"_given": self._given, "_made": self._made, "_recent": self._recent[-retained:]}

    def resume(self) -> None:
        """Continue from a snapshot's attributes, with the filter filled from the last samples."""
        if self._stream is None or not self._given:
            return
        rate_in, rate_out = self._rates
        first = self._given - len(self._recent)
        # an output sample must coincide with the first input sample that is repeated
        start = -(-first // self._step) * self._step
        if self._step > _MOST_STEP_SECONDS * rate_in and first:
            start = first  # rare rates: up to half a sample off
        again = self._stream.resample_chunk(self._recent[start - first :])
        early = max(self._made - round(start * rate_out / rate_in), 0)
        self._surplus, self._due = max(early - len(again), 0), again[early:]

    def _feed(self, samples: FloatArray, *, last: bool) -> FloatArray:
        if self._stream is None:
            return samples
        resampled: FloatArray = self._stream.resample_chunk(samples, last=last)
        if self._surplus:
            count = min(self._surplus, len(resampled))
            self._surplus, resampled = self._surplus - count, resampled[count:]
        self._given += len(samples)
        count = round(self._rates[0] * _RECENT_SECONDS)
        self._recent = np.append(self._recent, samples[-count:])[-count:]
        if self._due.size:
            resampled, self._due = np.append(self._due, resampled), self._due[:0]
        self._made += len(resampled)
        return resampled


FRAME_TICKS = 10  # levels of each channel for each 100 ms: longer than a delay between channels
BANDS_HZ = (200, 500, 1000, 2000, 4000)
_WINDOW_FRAMES = 400  # the last 40 s, which are compared
_LEAST_FRAMES = 100  # minimum frames with sound in any channel for "channels differ": 10 s
_CANCELLED_FRAMES = 30
_ACTIVE_DECIBELS = 25.0  # frames further below a channel's loud frames are pauses
_FAINT_DECIBELS = 40.0  # floor of band levels below the loud ones
_LEAST_RANGE_DECIBELS = 15.0  # from faint frames to loud ones in speech; noise has less
_MOST_LAG_FRAMES = 5  # maximum delay of the same speech in another channel
_LEAST_CORRELATION = 0.5  # of channels with the same speech: ordinary stereo has at least 0.6
_CANCELLED_DECIBELS = 12.0  # excess of the channels over their mean if they cancel
_MOST_COMPARED = 8  # first channels, which are compared
_LOUD = 0.95
_SPREAD = (10.0, 90.0)
_SECOND = TICKS_PER_SECOND // FRAME_TICKS
_SILENCE = 1e-8  # 80 dB below full scale


class Mixer:
    """Mixer of the channels of one recording, with notices if they should not be mixed.

    Two people on the two channels of a call would mix into one false voice. Stereo of opposite
    phase becomes silence. Ordinary stereo rises and falls in both channels alike, band by band
    (benchmarks/channels.py). Notices do not depend on how the recording is cut. ``first_tick`` is
    the number of ticks of the stream before the recording.
    """

    def __init__(self, rate: int, recording: int, first_tick: int) -> None:
        self._rate, self._recording, self._first_tick = rate, recording, first_tick
        self._length = max(1, rate * FRAME_TICKS // TICKS_PER_SECOND)
        self._rest: FloatArray | None = None
        self._levels: deque[FloatArray] = deque(maxlen=_WINDOW_FRAMES)
        self._frames = 0
        self._open = {"channels differ", "channels cancel"}
        self._found: list[tuple[int, Notice]] = []

    def mix(self, columns: FloatArray) -> FloatArray:
        """Average the channels of further samples, shape (n, channels) float32: shape (n,)."""
        if columns.shape[1] == 1:
            return columns[:, 0]
        # added in order: numpy's own order depends on the shape
        total: FloatArray = sum(columns.T[1:], start=columns[:, 0])
        mixed = total / np.float32(columns.shape[1])
        if self._open:
            self._compare(columns[:, :_MOST_COMPARED], mixed)
        return mixed

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps; waiting samples become silence."""
        silence = None if self._rest is None else np.zeros_like(self._rest)
        return {**vars(self), "_rest": silence}

    def pop_notices(self) -> tuple[tuple[int, Notice], ...]:
        """Return the notices since the last call, as (tick, Notice), each once per recording."""
        notices, self._found = tuple(self._found), []
        return notices

    def _compare(self, columns: FloatArray, mixed: FloatArray) -> None:
        sound = np.column_stack((columns, mixed)).T
        if self._rest is not None and len(self._rest) == len(sound):
            sound = np.concatenate((self._rest, sound), axis=1)
        elif self._rest is not None:  # another number of channels
            self._levels.clear()
        count = sound.shape[1] // self._length
        self._rest = sound[:, count * self._length :].copy()
        for frame in np.split(sound[:, : count * self._length], count, axis=1) if count else ():
            self._levels.append(self._measure_levels(np.ascontiguousarray(frame)))
            self._frames += 1
            if self._frames % _SECOND == 0 and self._open:
                self._check_channels()

    def _measure_levels(self, frame: FloatArray) -> FloatArray:
        """Compute levels of channels and their mean, decibels, shape (channels + 1, 1 + bands)."""
        spectrum = rfft(frame)
        power = (spectrum.real**2 + spectrum.imag**2) * (2 / self._length**2)
        edges = [round(hertz * self._length / self._rate) for hertz in BANDS_HZ]
        bands = [power[:, low:high].sum(axis=1) for low, high in pairwise(edges)]
        totals = np.stack([power.sum(axis=1), *bands], axis=1, dtype=np.float64)
        return 10 * np.log10(totals + _SILENCE)

    def _check_channels(self) -> None:
        levels = np.stack(self._levels)
        channels, mixed = levels[:, :-1, 0], levels[:, -1, 0]
        loud = np.quantile(channels, _LOUD, axis=0)
        active = channels > np.maximum(loud - _ACTIVE_DECIBELS, 10 * np.log10(_SILENCE) + 20.0)
        sounding = active.any(axis=1)
        if "channels cancel" in self._open and np.count_nonzero(sounding) >= _CANCELLED_FRAMES:
            power = 10 * np.log10(np.mean(10 ** (channels[sounding] / 10), axis=1))
            if np.median(power - mixed[sounding]) > _CANCELLED_DECIBELS:
                best = int(np.argmax(loud)) + 1
                self._notify(
                    "channels cancel",
                    f"the channels cancel each other when mixed: use one (--channel {best})",
                )
        if "channels differ" in self._open and np.count_nonzero(sounding) >= _LEAST_FRAMES:
            low, high = np.percentile(channels[sounding], _SPREAD, axis=0)
            bands = levels[sounding, :-1, 1:]
            band_levels = np.maximum(bands, np.quantile(bands, _LOUD, axis=0) - _FAINT_DECIBELS)
            speech_channels = np.flatnonzero(high - low >= _LEAST_RANGE_DECIBELS).tolist()
            for a, b in combinations(speech_channels, 2):
                if _correlate(band_levels[:, a], band_levels[:, b]) < _LEAST_CORRELATION:
                    two = channels.shape[1] == 2
                    self._notify(
                        "channels differ",
                        f"{'the two channels' if two else f'channels {a + 1} and {b + 1}'} hold "
                        "different speech, which is mixed: use one of them "
                        f"(--channel {a + 1} or --channel {b + 1}), or each (--per-channel)",
                    )
                    break

    def _notify(self, kind: str, text: str) -> None:
        self._open.discard(kind)
        tick = -(-self._frames * self._length * TICKS_PER_SECOND // self._rate)
        self._found.append((self._first_tick + tick, Notice(kind, text, self._recording)))


def _correlate(a: FloatArray, b: FloatArray) -> float:
    """Return the mean correlation of two channels' bands, (n, bands) each; one may lag a little."""
    size, best = len(a), -1.0
    for lag in range(-_MOST_LAG_FRAMES, _MOST_LAG_FRAMES + 1):
        x, y = (a[lag:], b[: size - lag]) if lag >= 0 else (a[: size + lag], b[-lag:])
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        scale = np.sqrt((x * x).sum(axis=0) * (y * y).sum(axis=0))
        is_varying = scale > 0
        if not is_varying.any():  # nothing but silence in the bands of one of them
            return 1.0
        best = max(best, float(np.mean((x * y).sum(axis=0)[is_varying] / scale[is_varying])))
    return best


class Extractor:
    """Feeder of every feature and the voice activity detector, live and over files.

    The output is the same for any division of the stream into blocks. A tick comes out once all
    sample rates in use have reached it and voice activity is decided for it. A feature frame
    complete by that tick is in the same ``Frames`` or an earlier one. Ticks count from the start of
    the stream. Another recording, or another rate, resets everything at the next tick. The last
    tick of a recording is padded with silence. Samples that are not finite count as silence and are
    reported as a ``Gap``, one per second.
    """

    def __init__(
        self,
        features: Sequence[Feature],  # features to compute, with different names
        channel: int | None = None,  # channel to process, from 0; None for the mean of all
        *,
        conditions: bool = False,  # also describe the sound, in the track `CONDITION`
        windows: bool = False,  # Keep the speech of each embedding with it.
        # Ticks of speech per recording that a template uses. Only those are embedded. None makes no
        # template.
        template: float | None = None,
    ) -> None:
        names = [feature.spec.name for feature in features]
        if len(set(names)) < len(names):
            raise UsageError(f"features must have different names, not {', '.join(names)}")
        self.features = tuple(features)
        self.channel = channel
        self._conditions = conditions
        self._windows = windows
        self._template = template
        self._ticks = 0
        self._skip = 0
        self._current: RecordingFeatures | None = None

    def process(self, block: Block) -> Frames:
        """Return the ticks and frames that a further block completes.

        An invalid block is a SourceError and changes nothing.
        """
        samples = columns_of(block, self.channel)
        ended = None
        if self._current is None or self._current.key != (block.recording, block.rate):
            ended = self.flush()
            self._current = RecordingFeatures(
                self.features, block, self._ticks, self._skip, conditions=self._conditions
            )
            for skip in (getattr(feature, "skip_early", None) for feature in self.features):
                if skip is not None and self._template is not None:
                    skip(self._template)
        with one_thread():
            frames = self._selected(self._current.process(samples))
        self._ticks += frames.speech.size
        return frames if ended is None else join_frames(ended, frames)

    def flush(self) -> Frames:
        """Return what only the end of the recording, or of the stream, completes."""
        if self._current is None:
            tracks = {feature.spec.name: feature.spec.no_frames() for feature in self.features}
            return Frames(np.empty(0, np.bool_), tracks)
        with one_thread():
            frames = self._selected(self._current.flush())
        self._current = None
        self._ticks += frames.speech.size
        return frames

    def _selected(self, frames: Frames) -> Frames:
        """Return the frames without the speech that they were made of, unless it is wanted."""
        if self._windows:
            return frames
        tracks = {name: replace(track, windows=None) for name, track in frames.tracks.items()}
        return replace(frames, tracks=tracks)

    def skip_to(self, tick: int) -> None:
        """Skip the computation of frames complete by ``tick`` of the stream.

        Resampling and voice activity still run, so that later frames are the same to the last bit.
        """
        self._skip = tick
        if self._current is not None:
            self._current.skip_to(tick)


class RecordingFeatures:
    """Pipeline of one recording, from samples to frames."""

    def __init__(
        self,
        features: Sequence[Feature],
        block: Block,
        first_tick: int,
        skip: int,
        *,
        conditions: bool,
    ) -> None:
        self.key = (block.recording, block.rate)
        self._features = features
        self._first_tick = first_tick
        self._bad_samples = BadSamples(block.rate, block.recording, first_tick)
        self._conditions = ConditionRows(block.rate) if conditions else None
        self._mixer = Mixer(block.rate, block.recording, first_tick)
        self._high_pass, self._leveller = HighPass(block.rate), Leveller(block.rate)
        self._vad = VoiceActivity()
        rates = {VAD_RATE, *(_rate(feature) for feature in features)}
        self._resamplers = {rate: Resampler(block.rate, rate) for rate in rates}
        self._samples_in = dict.fromkeys(rates, 0)  # samples, at each rate
        self._source_rate = block.rate
        self._source_samples = 0
        self._waiting: BoolArray = np.empty(0, np.bool_)  # decisions not yet returned
        self._ticks = 0
        for feature in features:
            feature.reset()
        for activity in (getattr(feature, "activity", None) for feature in features):
            if isinstance(activity, VoiceActivity):
                activity.share(self._vad)
        self.skip_to(skip)

    def skip_to(self, tick: int) -> None:
        """Skip frames complete by ``tick`` of the stream."""
        for feature in self._features:
            feature.skip_to(max(0, tick - self._first_tick))
        if self._conditions is not None:
            self._conditions.skip_to(max(0, tick - self._first_tick))

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps; the extractor keeps the features."""
        return attributes_without(self, "_features")

    def resume(self) -> None:
        """Continue from a snapshot's attributes."""
        for feature in self._features:
            if (resume_at := getattr(feature, "resume_at", None)) is not None:
                resume_at(self._samples_in[_rate(feature)])

    def process(self, samples: FloatArray) -> Frames:
        """Return what further samples, shape (n, channels), complete."""
        columns = self._bad_samples.silence(samples)
        mono = self._high_pass.process(self._mixer.mix(columns))
        self._source_samples += mono.size
        level = self._leveller.process(mono)
        sounds = {rate: resampler.process(level) for rate, resampler in self._resamplers.items()}
        tracks = self._feed(sounds)
        if self._conditions is not None:
            rows = self._conditions.process(columns, mono)
            tracks[CONDITION] = rows.shifted(self._first_tick)
        complete = min(
            samples_in * TICKS_PER_SECOND // rate for rate, samples_in in self._samples_in.items()
        )
        speech = self._due(min(complete, self._ticks + self._waiting.size))
        losses = self._bad_samples.report(self._ticks)
        notices = (*self._mixer.pop_notices(), *self._bad_samples.pop_notices())
        return Frames(speech, tracks, losses, notices=notices)

    def flush(self) -> Frames:
        """Return what only the end of the recording completes."""
        tail = self._leveller.flush()
        sounds = {
            rate: np.concatenate((resampler.process(tail), resampler.flush()))
            for rate, resampler in self._resamplers.items()
        }
        tracks = self._feed(sounds)
        self._decide(np.zeros(-self._samples_in[VAD_RATE] % _DECISION_SAMPLES, np.float32))
        for feature in self._features:
            last = feature.flush().shifted(self._first_tick)
            name = feature.spec.name
            tracks[name] = join_tracks(tracks[name], last)
        ends = [(self._source_rate, self._source_samples), *self._samples_in.items()]
        total = max(-(-samples_in * TICKS_PER_SECOND // rate) for rate, samples_in in ends)
        missing = max(total - self._ticks - self._waiting.size, 0)
        self._waiting = np.concatenate((self._waiting, np.zeros(missing, np.bool_)))
        return Frames(self._due(total), tracks, self._bad_samples.finish())

    def _feed(self, sounds: Mapping[int, FloatArray]) -> dict[str, Track]:
        """Pass the resamplers' output to the detector and every feature."""
        for rate, sound in sounds.items():
            self._samples_in[rate] += sound.size
        self._decide(sounds[VAD_RATE])
        return {
            feature.spec.name: feature.process(sounds[_rate(feature)]).shifted(self._first_tick)
            for feature in self._features
        }

    def _decide(self, sound: FloatArray) -> None:
        self._waiting = np.concatenate((self._waiting, self._vad.process(sound)))

    def _due(self, complete: int) -> BoolArray:
        """Return the decisions not yet returned, up to this tick of the recording."""
        count = complete - self._ticks
        speech, self._waiting = self._waiting[:count], self._waiting[count:]
        self._ticks = complete
        return speech


def _rate(feature: Feature) -> int:
    """Return the sample rate of a feature's input; UsageError if it takes words."""
    if feature.spec.rate is None:
        raise UsageError(f"feature {feature.spec.name} is made from words, not from audio")
    return feature.spec.rate
