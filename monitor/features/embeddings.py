"""Speaker embeddings: one for every three seconds of speech, by our network or the user's."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Timer
from typing import Any, Self

import numpy as np
from scipy.fft import rfft

from monitor.errors import StoreError, UsageError
from monitor.features.extractor import VoiceActivity
from monitor.features.framing import AudioFeature, join_tracks
from monitor.kinds import EMBEDDING, SPEAKER_PREFIX, FeatureSpec, Sensitivity
from monitor.networks.layers import triangles
from monitor.networks.voice import SHA256, SIZE, shipped
from monitor.protocols import Embedder, MarkedEmbedder, RunEmbedder
from monitor.types import (
    TICKS_PER_SECOND,
    AnyArray,
    BoolArray,
    EarlyFrames,
    FloatArray,
    IntArray,
    SpeechWindow,
    Track,
)

RATE = 16000
WINDOW_SECONDS = 3.0
_TICK = RATE // TICKS_PER_SECOND
_WINDOW = round(WINDOW_SECONDS * RATE)
SLOTS = 6
"""Slots of a window. Runs of them are embedded too."""
EARLY_SECONDS = (1, 2)  # of speech in a window that still grows, in which it has early frames
EARLY_WINDOWS = 2  # the first windows have early frames: to more whole ones a part adds little
SHORTEST = RATE  # of less than a second the network makes little
_BATCH = 4  # more windows at a time leave the caches of a processor
_AT_ONCE = 60 * RATE  # an hour given at once is processed in minutes


def window_spec(name: str, size: int, network: str | None = None) -> FeatureSpec:
    """Return the spec of embeddings of such windows; ``network`` is the sha256 of its weights."""
    return FeatureSpec(name, EMBEDDING, size, WINDOW_SECONDS, RATE, network)


class SpeechWindows(AudioFeature):
    """Embedding feature: the speech of a recording, pauses left out, three seconds at a time.

    The rest at the end makes one more frame (`embed_part`). The first two windows are embedded at
    one and at two seconds too, as early frames. Windows that one call completes go to the network
    together.
    """

    def __init__(
        self, spec: FeatureSpec, embedder: Embedder, follow: Sensitivity | None = None
    ) -> None:
        self.spec, self.follow = spec, follow
        self._encoder = embedder
        self._window: FloatArray = np.zeros(_WINDOW, np.float32)
        self._spoken: IntArray = np.empty(0, np.intp)  # the ticks of it, so far
        self.activity = VoiceActivity()
        super().__init__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy what it has processed; the network is shared."""
        memo[id(self._encoder)] = self._encoder
        windows = object.__new__(type(self))
        windows.__dict__.update(deepcopy(self.__dict__, memo))
        return windows

    def process(self, samples: FloatArray) -> Track:
        """Embed the windows that these further samples, shape (n,), complete."""
        samples = np.asarray(samples, np.float32)
        track = self._no_windows()
        for start in range(0, samples.size, _AT_ONCE):
            track = join_tracks(track, self._embed_windows(samples[start : start + _AT_ONCE]))
        return track

    def flush(self) -> Track:
        """Embed the window that the recording cuts short, where it is a second or more."""
        silence = np.zeros(-self._rest.size % _TICK, np.float32)  # fills up the last tick
        track = self._embed_windows(silence)
        last = SpeechWindow(self._spoken, self._window[: self._filled].reshape(-1, _TICK).copy())
        self._spoken = self._spoken[:0]
        if self._ticks <= self._skip or not self._is_wanted(self._windows):
            return track
        values = self.embed_part(last.samples)
        ticks, windows = np.full(len(values), self._ticks), (last,) * len(values)
        return join_tracks(track, Track(ticks, values, windows=windows))

    def embed_part(self, speech: FloatArray) -> AnyArray:
        """Embed part of a window of speech, shape (n, 160), by its length.

        Returns:
            Shape (1, d); (0, d) where it is less than a second.
        """
        if speech.size < SHORTEST:
            return self._no_windows().values
        return np.float32(speech.size / _WINDOW) * self._encoder.embed(speech.reshape(1, -1))

    def _no_windows(self) -> Track:
        return Track(np.empty(0, np.intp), np.empty((0, self.spec.size), np.float32))

    @property
    def _filled(self) -> int:
        """Samples of the window so far."""
        return self._spoken.size * _TICK

    def reset(self) -> None:
        """Reset: the next sample is the first of a recording."""
        super().reset()
        self.activity.reset()
        self._rest: FloatArray = np.empty(0, np.float32)  # less than a tick
        self._spoken = np.empty(0, np.intp)
        self._ticks = 0
        self._windows = 0  # whole ones so far
        self._early_windows, self._most_speech = EARLY_WINDOWS, np.inf

    def skip_early(self, most_speech: float) -> None:
        """Skip early frames, and windows that begin after this many ticks of speech, until `reset`.

        A template is made of neither.
        """
        self._early_windows, self._most_speech = 0, most_speech

    def _is_wanted(self, window: IntArray | int) -> BoolArray:
        """Return True if a window after this many whole ones begins early enough."""
        return np.asarray(np.multiply(window, _WINDOW // _TICK) < self._most_speech)

    def _embed_windows(self, samples: FloatArray) -> Track:
        sound = np.concatenate((self._rest, samples))
        count = sound.size // _TICK
        ticks = sound[: count * _TICK].reshape(count, _TICK)
        self._rest = sound[count * _TICK :].copy()
        speech_ticks = np.flatnonzero(self.activity.process(samples))
        before = self._filled // _TICK
        speech = np.concatenate((self._window[: self._filled], ticks[speech_ticks].ravel()))
        window_count = speech.size // _WINDOW
        early = self._embed_early(speech, before, speech_ticks)
        is_wanted = self._is_wanted(self._windows + np.arange(window_count))
        self._windows += window_count
        spoken = np.concatenate((self._spoken, self._ticks + speech_ticks + 1))
        self._ticks += count
        whole = window_count * _WINDOW // _TICK
        self._spoken = spoken[whole:].copy()
        self._window[: self._filled] = speech[window_count * _WINDOW :]
        # a window is complete with the tick that brings its last samples
        spoken = spoken[:whole].reshape(window_count, _WINDOW // _TICK)
        is_new = is_wanted & (spoken[:, -1] > self._skip)
        windows = speech[: window_count * _WINDOW].reshape(window_count, _WINDOW)[is_new]
        if not len(windows):
            return replace(self._no_windows(), early=early)
        batches = [windows[start : start + _BATCH] for start in range(0, len(windows), _BATCH)]
        runs: list[FloatArray | None] = [None] * len(windows)
        if isinstance(self._encoder, RunEmbedder):
            embedded = [self._encoder.embed_runs(batch, SLOTS) for batch in batches]
            values = [whole for whole, _ in embedded]
            runs = [run for _, batch in embedded for run in batch]
        else:
            values = [self._encoder.embed(batch) for batch in batches]
        samples = windows.reshape(len(windows), -1, _TICK)
        made_of = map(SpeechWindow, spoken[is_new], samples, runs)
        return Track(spoken[is_new, -1], np.concatenate(values), None, early, tuple(made_of))

    def _embed_early(
        self, speech: FloatArray, before: int, speech_ticks: IntArray
    ) -> EarlyFrames | None:
        """Early frames that newly spoken ticks complete, the first after ``before`` of a window."""
        long = _WINDOW // _TICK
        ticks, values, seconds = [], [], []
        for window in range(-(-speech.size // _WINDOW)):
            index = self._windows + window
            if index >= self._early_windows:
                continue
            for length in EARLY_SECONDS:
                end = window * long + length * TICKS_PER_SECOND  # in ticks of this speech
                if not before < end <= before + speech_ticks.size:
                    continue
                tick = int(self._ticks + speech_ticks[end - before - 1] + 1)
                if tick > self._skip:
                    beginning = speech[window * _WINDOW : window * _WINDOW + length * RATE]
                    ticks.append(tick)
                    values.append(self._encoder.embed(beginning[None]))
                    seconds.append(length)
        if not ticks:
            return None
        return EarlyFrames(np.array(ticks), np.concatenate(values), np.array(seconds))


class Voice(SpeechWindows):
    """Embeddings of the speech, three seconds at a time, by the package's own voice network.

    Args:
        network: another one than `monitor.networks.voice`'s, such as a fine-tuned one
            (`monitor.lab.adapting`); its sha256 marks what it makes, and UsageError where it has
            none.
        name: of the feature, if it is used beside the shipped one.
    """

    spec = window_spec("voice", SIZE, SHA256)
    # benchmarks/change.py chose it
    follow = Sensitivity(1, 3, 20.0, 3e-3, back_units=3, level=0.3)

    def __init__(self, network: MarkedEmbedder | None = None, name: str = "voice") -> None:
        self._given = network, name
        network = shipped() if network is None else network
        if not network.sha256:
            raise UsageError("a network needs the sha256 of its weights, as a mark")
        self.spec = window_spec(name, network.size, network.sha256)
        super().__init__(self.spec, network, self.follow)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a recipe by which another process makes it."""
        return type(self), self._given


# ------------------------------------------------------------------- a network of one's own
# Not every network takes sound. Two front ends are computed for those that take energies: `Kaldi`
# (D. Povey et al., ASRU 2011), of WeSpeaker's and 3D-Speaker's networks, and `MelBanks`, of
# ReDimNet (I. Yakovlev et al., "Reshape dimensions network for speaker recognition", Interspeech
# 2024).

_FRAME, _STEP, _POINTS = 400, 160, 512
_LOWEST = 20.0
_HERTZ = np.arange(_POINTS // 2 + 1) * RATE / _POINTS
_EMPHASIS = 0.97
_FULL_SCALE = 32768.0


class Kaldi:
    """Energies equal to those of ``compute-fbank-feats`` without dither.

    Frames have 25 ms, every 10 ms, and lie entirely inside the sound (snip-edges). Each frame's
    mean is subtracted, and pre-emphasis 0.97 is applied. The transform has 512 points. Powers are
    weighted by 80 triangles in mel from 20 to 8000 Hz, and the natural logarithm is taken. The
    result equals ``torchaudio.compliance.kaldi.fbank`` to 1e-3.

    Args:
        hamming: Hamming's window, which WeSpeaker uses, instead of Povey's.
        whole_numbers: scale samples to 32768, as in a 16-bit file, instead of 1.
        centred: subtract from each band its mean over the window.
    """

    bands = 80

    def __init__(
        self, *, hamming: bool = False, whole_numbers: bool = True, centred: bool = True
    ) -> None:
        phase = 2 * np.pi * np.arange(_FRAME) / (_FRAME - 1)
        self._window = 0.54 - 0.46 * np.cos(phase)
        if not hamming:
            self._window = (0.5 - 0.5 * np.cos(phase)) ** 0.85
        self._scale = _FULL_SCALE if whole_numbers else 1.0
        self._centred = centred

    @staticmethod
    def samples(frames: int) -> int:
        """Count the samples that give this many frames."""
        return _FRAME + (frames - 1) * _STEP

    def energies(self, sound: FloatArray) -> FloatArray:
        """Compute energies of sound, shape (n,), at 16 kHz: shape (frames, 80), float32."""
        windows = np.lib.stride_tricks.sliding_window_view(sound, _FRAME)[::_STEP]
        frames = windows.astype(np.float64) * self._scale
        frames -= frames.mean(axis=1, keepdims=True)
        before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
        frames = (frames - _EMPHASIS * before) * self._window
        powers = _powers(frames) @ self._triangles()
        levels = np.log(np.maximum(powers, float(np.finfo(np.float32).eps)))
        if self._centred:
            levels -= levels.mean(axis=0)
        return np.asarray(levels, np.float32)

    @staticmethod
    @cache
    def _triangles() -> FloatArray:
        """Weights of the bins, shape (257, 80)."""
        lowest, highest = 1127.0 * np.log1p(np.array([_LOWEST, RATE / 2]) / 700.0)
        edges = np.linspace(lowest, highest, Kaldi.bands + 2)
        return triangles(1127.0 * np.log1p(_HERTZ / 700.0), edges)


class MelBanks:
    """Energies equal to those of ReDimNet's front end, its class of this name.

    Pre-emphasis 0.97 applies to the whole sound. Frames use Hamming's window of 25 ms every 10 ms
    and 512 points. They are centred, and the ends are mirrored. Powers are weighted by 72 triangles
    in Hz between mels from 20 to 7600 Hz. The natural logarithm of the energy plus 1e-6 is taken,
    and each band's mean over the window is subtracted. The result equals
    ``torchaudio.transforms.MelSpectrogram`` in its place to 1e-3. ``normalised`` sound first has
    its mean subtracted and is divided by its deviation (``norm_signal``).
    """

    bands = 72

    def __init__(self, *, normalised: bool = False) -> None:
        self._normalised = normalised
        window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(_FRAME) / _FRAME)
        self._window = np.pad(window, (_POINTS - _FRAME) // 2)

    @staticmethod
    def samples(frames: int) -> int:
        """Count the samples that give this many frames."""
        return (frames - 1) * _STEP

    def energies(self, sound: FloatArray) -> FloatArray:
        """Compute energies of sound, shape (n,), at 16 kHz: shape (72, frames), float32."""
        wave = sound.astype(np.float64)
        if self._normalised:
            wave = (wave - wave.mean()) / (wave.std() + 1e-6)
        wave = wave - _EMPHASIS * np.concatenate([wave[1:2], wave[:-1]])
        padded = np.pad(wave, _POINTS // 2, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(padded, _POINTS)[::_STEP]
        levels = np.log(_powers(frames * self._window) @ self._triangles() + 1e-6)
        levels -= levels.mean(axis=0)
        return np.ascontiguousarray(levels.T, np.float32)

    @staticmethod
    @cache
    def _triangles() -> FloatArray:
        """Weights of the bins, shape (257, 72)."""
        lowest, highest = 2595.0 * np.log10(1.0 + np.array([_LOWEST, 7600.0]) / 700.0)
        mels = np.linspace(lowest, highest, MelBanks.bands + 2)
        return triangles(_HERTZ, 700.0 * (10.0 ** (mels / 2595.0) - 1.0))


def _powers(frames: FloatArray) -> FloatArray:
    spectra = rfft(frames, _POINTS)
    return np.asarray(spectra.real**2 + spectra.imag**2)


RUN_SECONDS = 60.0  # for one window of a few seconds; a large network takes one
_MOST_BYTES = 512 << 20
_MOST_SIZE = 4096
_LEAST_SAMPLES, _MOST_SAMPLES = RATE // 2, 60 * RATE  # of a network that takes one length
_INSTALL = "pip install 'speaker-disclosure-monitor[onnx]'"
_TAKES = (
    "one input is needed, sound (batch, samples) at 16 kHz, or energies (batch, frames, 80) or "
    "(batch, 72, frames), and nothing else"
)


def network_bytes(path: Path) -> bytes:
    """Read the file of a network; StoreError of no plain file, or one that is far too large."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would never end
            raise StoreError(f"{path}: is no plain file")
        if status.st_size > _MOST_BYTES:
            raise StoreError(f"{path}: is far too large for a network, over 512 MiB")
        with path.open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from None


class Network:
    """Speaker embedding network from an ONNX file, run by onnxruntime.

    The shape of its only input determines what it accepts. It is sound (batch, samples) at 16 kHz,
    or log mel energies. For these the front end is computed by `Kaldi` (batch, frames, 80) or by
    `MelBanks` (batch, 72, frames). If the shape fixes the number of samples or frames, a shorter
    window is repeated to that length. A longer window gives the mean over the fewest parts that
    cover it.

    The file may come from anyone. Its size is bounded, it is read once, and only onnxruntime parses
    it. It cannot use custom operators or other files, and endless loops are stopped. StoreError if
    it is damaged, or has other inputs or outputs.
    """

    def __init__(self, data: bytes, label: str) -> None:
        if find_spec("onnxruntime") is None:
            raise UsageError(f"{label} needs onnxruntime: {_INSTALL}")
        self._label = label
        self._session = _session(data, label)
        inputs = self._session.get_inputs()
        self._output = self._session.get_outputs()[0].name
        self._front: Kaldi | MelBanks | None = None
        match [(node.type, *node.shape) for node in inputs]:
            case [("tensor(float)", _, length)]:
                pass
            case [("tensor(float)", _, length, Kaldi.bands)]:
                self._front = self._front_end(Kaldi.bands)
            case [("tensor(float)", _, MelBanks.bands, length)]:
                self._front = self._front_end(MelBanks.bands)
            case _:
                shapes = "; ".join(f"{node.type} {node.shape}" for node in inputs)
                takes = f"this one takes {shapes or 'nothing'}"[:200]
                raise StoreError(f"{label}: {_TAKES}; {takes}")
        self._input = inputs[0].name
        self._samples: int | None = None
        if isinstance(length, int):  # of samples or frames; otherwise any length
            self._samples = length if self._front is None else self._front.samples(length)
            if not _LEAST_SAMPLES <= self._samples <= _MOST_SAMPLES:
                raise StoreError(
                    f"{label} takes only {self._samples / RATE:.3g} s of sound: use a network for "
                    "any length, or for 0.5 to 60 s"
                )
        # a hum, since silence is no speech: what it gives, for the shortest window as well
        hum = np.sin(np.arange(3 * SHORTEST) * (2 * np.pi * 150 / RATE)).astype(np.float32)
        self.size = self._embed(hum).size
        if self._embed(hum[:SHORTEST]).size != self.size or not 2 <= self.size <= _MOST_SIZE:
            raise StoreError(f"{label}: gives no embedding of one size for windows of 1 to 3 s")

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed windows of one length, (b, n), one by one: shape (b, size), each of length 1."""
        return np.stack([self._embed(window) for window in windows])

    def _embed(self, window: FloatArray) -> FloatArray:
        if self._samples is None or self._samples == window.size:
            return self._run(window)
        if window.size < self._samples:
            return self._run(np.resize(window, self._samples))
        parts = -(-window.size // self._samples)
        starts = np.linspace(0, window.size - self._samples, parts).astype(int)
        embeddings = [self._run(window[start : start + self._samples]) for start in starts]
        return self._unit(np.sum(embeddings, axis=0))

    def _run(self, window: FloatArray) -> FloatArray:
        batch = window if self._front is None else self._front.energies(window)
        try:
            with _ended_in_time() as (options, expired):
                output = self._session.run([self._output], {self._input: batch[None]}, options)[0]
            embedding = np.asarray(output, np.float32).ravel()
        except Exception as error:
            if expired.is_set():
                raise StoreError(
                    f"{self._label} was stopped after {RUN_SECONDS:.0f} s with "
                    f"{window.size / RATE:.3g} s of sound. It may loop for ever. Use another "
                    "network."
                ) from None
            raise StoreError(f"cannot run {self._label}: {_brief(error)}") from None
        return self._unit(embedding)

    def _unit(self, embedding: FloatArray) -> FloatArray:
        length = float(np.linalg.norm(embedding))
        if not 0 < length < np.inf:
            raise StoreError(f"{self._label}: gives no finite embedding")
        unit: FloatArray = embedding / np.float32(length)
        return unit

    def _front_end(self, bands: int) -> Kaldi | MelBanks:
        """Make the front end that the file's metadata describe."""
        metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        rate = metadata.get("sample_rate", str(RATE))
        if rate != str(RATE):
            raise StoreError(f"{self._label}: is for {rate!a:.20} Hz, not {RATE}")
        if bands == MelBanks.bands:
            return MelBanks(normalised=metadata.get("norm_signal", "0") != "0")
        framework = metadata.get("framework", "wespeaker" if self._output == "embs" else "")
        return Kaldi(
            hamming=framework == "wespeaker",
            whole_numbers=metadata.get("normalize_samples", "0") == "0",
            centred=metadata.get("feature_normalize_type", "global-mean") == "global-mean",
        )


@contextmanager
def _ended_in_time() -> Iterator[tuple[Any, Event]]:
    """Yield options of a run that is ended where it takes too long; and whether it was."""
    import onnxruntime

    options, expired = onnxruntime.RunOptions(), Event()

    def end() -> None:
        expired.set()
        options.terminate = True  # looked at before each operator, within loops as well

    timer = Timer(RUN_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        yield options, expired
    finally:
        timer.cancel()


def _session(data: bytes, label: str) -> Any:
    # from version 1.29 on it reports every session to its makers, from its import on
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    # the key of where other files lie; onnxruntime would look for them beside this process
    if b"\x08location" in data:
        raise StoreError(f"{label} has weights in another file: use one file with all weights")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised as well
    options.inter_op_num_threads = 1
    options.intra_op_num_threads = 1  # the last bits depend on it; processes share out the work
    with tempfile.TemporaryDirectory(prefix="monitor-onnx-") as empty:
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", empty
        )
        try:
            return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise StoreError(
                f"{label} is damaged or not an ONNX network: {_brief(error)}"
            ) from None


def _brief(error: BaseException) -> str:
    """Return a library's error in one line."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]


class SpeakerModel(SpeechWindows):
    """Embeddings of the speech, three seconds at a time, from a network in an ONNX file.

    The feature's name is ``speaker_`` and the first 16 hexadecimal digits of the file's sha256. It
    keeps templates, rank models and streams of two networks apart. ``spec.network`` is the whole
    sha256. UsageError if the extra ``onnx`` is not installed, StoreError if the file contains no
    valid `Network`.
    """

    # benchmarks/change.py chose it for ECAPA-TDNN, which other strong networks resemble most
    follow = Sensitivity(1, 2, 20.0, 3e-3, back_units=3, level=0.35)

    def __init__(self, path: str | Path) -> None:
        data = network_bytes(Path(path))
        network = Network(data, Path(path).name)
        digest = hashlib.sha256(data).hexdigest()
        spec = window_spec(SPEAKER_PREFIX + digest[:16], network.size, digest)
        super().__init__(spec, network, self.follow)
        self._network = network

    def another(self) -> SpeechWindows:
        """Make a fresh feature with the same network."""
        return SpeechWindows(self.spec, self._network, self.follow)


@lru_cache(maxsize=1)
def speaker_model(path: Path) -> SpeakerModel:
    """Load the network of a file, once."""
    return SpeakerModel(path)
