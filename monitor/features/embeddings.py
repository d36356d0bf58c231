"""Speaker embeddings: one for every three seconds of speech, by any network."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Timer
from typing import Any

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.features.extractor import VoiceActivity
from monitor.features.framing import AudioFeature, join_tracks
from monitor.kinds import EMBEDDING, FeatureSpec, Sensitivity
from monitor.maths.spectra import rfft
from monitor.networks.voice import MARK, JoinedNetworks, VoiceNetwork, shipped_together
from monitor.protocols import Embedder
from monitor.types import TICKS_PER_SECOND, EarlyFrames, FloatArray, IntArray, Track

RATE = 16000
WINDOW_SECONDS = 3.0
_TICK = RATE // TICKS_PER_SECOND
_WINDOW = round(WINDOW_SECONDS * RATE)
EARLY_SECONDS = (1, 2)
"""Of speech in a window that still grows: what it says by then is an early frame."""
EARLY_WINDOWS = 2
"""The first windows have early frames: to more whole ones a part adds little."""
EARLY_EVERY = 3
"""Calibration speech has its tests anywhere: of every so many windows the first have early frames.
Those of all would cost as much as the windows themselves."""
SHORTEST = RATE
"""Of less than a second the network makes little."""
_BATCH = 4
"""More at a time is no faster on a processor, and 16 are slower: they leave its caches
(benchmarks/identity.py)."""
_AT_ONCE = 60 * RATE
"""An hour given at once is heard a minute at a time: memory does not grow with it."""


def window_spec(name: str, size: int, network: str | None = None) -> FeatureSpec:
    """What embeddings of such windows look like; ``network`` is the sha256 of its weights."""
    return FeatureSpec(name, EMBEDDING, size, WINDOW_SECONDS, RATE, network)


class SpeechWindows(AudioFeature):
    """Embedding feature: the speech of a recording, pauses left out, three seconds at a time.

    A frame is complete once three seconds of speech are together; they may lie far apart. Of what
    is left at the end one more is made, if it is a second or more. The first two windows are
    embedded at one and at two seconds too, as early frames. Any cutting into blocks gives the same
    windows; those that one call completes go to the network together, so that a replay is batched
    and a live stream is not.

    Attributes:
        activity: the detector of what is speech.
        early_every: of every so many windows the first two have early frames; 0: of all.
    """

    early_every = 0

    def __init__(
        self, spec: FeatureSpec, embedder: Embedder, follow: Sensitivity | None = None
    ) -> None:
        self.spec, self.follow = spec, follow
        self._encoder = embedder
        self._window: FloatArray = np.zeros(_WINDOW, np.float32)
        self._filled = 0  # samples of it
        self.activity = VoiceActivity(RATE, ticks=1)
        self.reset()

    def process(self, samples: FloatArray) -> Track:
        """The windows that these further samples, shape (n,), complete, embedded."""
        samples = np.asarray(samples, np.float32)
        made = self.spec.no_frames()
        for start in range(0, samples.size, _AT_ONCE):
            made = join_tracks(made, self._embed_windows(samples[start : start + _AT_ONCE]))
        return made

    def _has_early(self, window: int) -> bool:
        place = window % self.early_every if self.early_every else window
        return place < EARLY_WINDOWS

    def flush(self) -> Track:
        """The window that the recording cuts short, where it is a second or more."""
        last = self._window[: self._filled].copy()
        self._filled = 0
        if last.size < SHORTEST or self._ticks <= self._skip:
            return self.spec.no_frames()
        return Track(np.array([self._ticks]), self._encoder.embed(last[None]))

    def reset(self) -> None:
        """Forget everything heard: the next sample is the first of a recording."""
        super().reset()
        self.activity.reset()
        self._rest: FloatArray = np.empty(0, np.float32)  # less than a tick
        self._filled = 0
        self._ticks = 0
        self._windows = 0  # whole ones so far

    def _embed_windows(self, samples: FloatArray) -> Track:
        heard = np.concatenate((self._rest, samples))
        count = heard.size // _TICK
        ticks = heard[: count * _TICK].reshape(count, _TICK)
        self._rest = heard[count * _TICK :].copy()
        spoken = np.flatnonzero(self.activity.process(samples))
        before = self._filled // _TICK
        speech = np.concatenate((self._window[: self._filled], ticks[spoken].ravel()))
        whole = speech.size // _WINDOW
        early = self._embed_early(speech, before, spoken)
        self._windows += whole
        self._filled = speech.size - whole * _WINDOW
        self._window[: self._filled] = speech[whole * _WINDOW :]
        # a window is complete with the tick that brings its last samples
        last = np.arange(1, whole + 1) * (_WINDOW // _TICK) - before - 1
        complete = self._ticks + spoken[last] + 1
        self._ticks += count
        wanted = complete > self._skip
        windows = speech[: whole * _WINDOW].reshape(whole, _WINDOW)[wanted]
        values = [
            self._encoder.embed(windows[start : start + _BATCH])
            for start in range(0, len(windows), _BATCH)
        ]
        if not values:
            return replace(self.spec.no_frames(), early=early)
        return Track(complete[wanted], np.concatenate(values), early=early)

    def _embed_early(self, speech: FloatArray, before: int, spoken: IntArray) -> EarlyFrames | None:
        """Early frames that newly spoken ticks complete, the first after ``before`` of a window."""
        long = _WINDOW // _TICK
        ticks, values, seconds = [], [], []
        for window in range(-(-speech.size // _WINDOW)):
            if not self._has_early(self._windows + window):
                continue
            for each in EARLY_SECONDS:
                end = window * long + each * TICKS_PER_SECOND  # in ticks of this speech
                if not before < end <= before + spoken.size:
                    continue
                tick = int(self._ticks + spoken[end - before - 1] + 1)
                if tick > self._skip:
                    part = speech[window * _WINDOW : window * _WINDOW + each * RATE]
                    ticks.append(tick)
                    values.append(self._encoder.embed(part[None]))
                    seconds.append(each)
        if not ticks:
            return None
        return EarlyFrames(np.array(ticks), np.concatenate(values), np.array(seconds))


_RATE = 16000
_FRAME, _STEP, _POINTS = 400, 160, 512
_LOWEST = 20.0
_EMPHASIS = 0.97
_FLOOR = float(np.finfo(np.float32).eps)
_FULL_SCALE = 32768.0


class Kaldi:
    """Energies as ``compute-fbank-feats`` gives them without dither (D. Povey et al., ASRU 2011).

    The front end of WeSpeaker's and 3D-Speaker's networks. Frames of 25 ms every 10 ms that lie
    wholly inside (snip-edges), each less its mean, pre-emphasis 0.97, 512 points, 80 triangles in
    mel from 20 to 8000 Hz over powers, natural logarithm. Equal to
    ``torchaudio.compliance.kaldi.fbank`` to 1e-3.

    Args:
        hamming: Hamming's window, as WeSpeaker takes, in place of Povey's.
        whole_numbers: samples count up to 32768, as in a file of 16 bits, and not up to 1.
        centred: each band less its mean over the window.

    Example:
        >>> Kaldi().energies(np.zeros(16000, np.float32)).shape
        (98, 80)
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

    def energies(self, sound: FloatArray) -> FloatArray:
        """Energies of sound, shape (n,), at 16 kHz: shape (frames, 80), float32."""
        every = np.lib.stride_tricks.sliding_window_view(sound, _FRAME)[::_STEP]
        frames = every.astype(np.float64) * self._scale
        frames -= frames.mean(axis=1, keepdims=True)
        before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
        frames = (frames - _EMPHASIS * before) * self._window
        spectra = rfft(frames, _POINTS)[:, :-1]
        powers = spectra.real**2 + spectra.imag**2
        levels = np.log(np.maximum(powers @ _triangles(), _FLOOR))
        if self._centred:
            levels -= levels.mean(axis=0)
        made: FloatArray = levels.astype(np.float32)
        return made


@cache
def _triangles() -> FloatArray:
    """Weights of the bins, shape (256, 80)."""
    edges = np.linspace(_mel(_LOWEST), _mel(_RATE / 2), Kaldi.bands + 2)
    at = _mel(np.arange(_POINTS // 2) * _RATE / _POINTS)[:, None]
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    made: FloatArray = np.maximum(
        0.0, np.minimum((at - left) / (centre - left), (right - at) / (right - centre))
    )
    return made


def _mel(hertz: float | FloatArray) -> FloatArray:
    return np.asarray(1127.0 * np.log1p(np.asarray(hertz) / 700.0))


RUN_SECONDS = 60.0
"""For one window of a few seconds; a large network takes one."""
_MOST_BYTES = 512 << 20
_MOST_SIZE = 4096
_INSTALL = "pip install 'speaker-disclosure-monitor[onnx]'"
_TAKES = (
    "one input is needed, sound (batch, samples) at 16 kHz or energies (batch, frames, 80), and "
    "nothing else"
)


def network_bytes(path: Path) -> bytes:
    """What a file of a network holds; StoreError of no plain file, or one that is far too large."""
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
    """A network that makes speaker embeddings, from an ONNX file, run by onnxruntime.

    What it takes is told by the shape of its only input: sound (batch, samples) at 16 kHz, or 80
    log mel energies (batch, frames, 80), for which `Kaldi` computes the front end. The file may
    come from anybody: its size is bounded, it is read once, and nothing but onnxruntime looks
    into it; no library of custom operators is registered, no other file is read for it, and a loop
    in it that never ends is ended.

    Args:
        data: the file.
        label: what errors call it.

    Attributes:
        size: dimensions of its embeddings.

    Raises:
        UsageError: onnxruntime is not installed.
        StoreError: it is damaged, takes or gives something else, or has parts in other files.
    """

    def __init__(self, data: bytes, label: str) -> None:
        if find_spec("onnxruntime") is None:
            raise UsageError(f"{label} needs onnxruntime: {_INSTALL}")
        self._label = label
        self._session = _session(data, label)
        given = self._session.get_inputs()
        shape = given[0].shape if given else []
        if len(given) != 1 or given[0].type != "tensor(float)" or len(shape) not in (2, 3):
            raise StoreError(f"{label}: {_TAKES}; {_found(given)}")
        self._input = given[0].name
        self._output = self._session.get_outputs()[0].name
        self._front: Kaldi | None = None
        if len(shape) == 3:
            if shape[2] != Kaldi.bands:
                raise StoreError(f"{label}: {_TAKES}; {_found(given)}")
            self._front = self._kaldi()
        # a hum, since silence is no speech: what it gives, for the shortest window as well
        hum = np.sin(np.arange(3 * SHORTEST) * (2 * np.pi * 150 / RATE)).astype(np.float32)
        self.size = self._run(hum).size
        if self._run(hum[:SHORTEST]).size != self.size or not 2 <= self.size <= _MOST_SIZE:
            raise StoreError(f"{label}: gives no embedding of one size for windows of 1 to 3 s")

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed windows of one length, (b, n), one after the other: together is no faster.

        Shape (b, size), each of length 1; StoreError where the network fails or gives what is no
        number.
        """
        return np.stack([self._run(window) for window in windows])

    def _run(self, window: FloatArray) -> FloatArray:
        given = window if self._front is None else self._front.energies(window)
        try:
            with _ended_in_time() as (options, late):
                made = self._session.run([self._output], {self._input: given[None]}, options)[0]
            found = np.asarray(made, np.float32).ravel()
        except Exception as error:
            if late.is_set():
                raise StoreError(
                    f"{self._label}: was ended after {RUN_SECONDS:.0f} s with "
                    f"{window.size / RATE:.3g} s of sound: a loop in it may never end; give another"
                ) from None
            raise StoreError(f"{self._label}: cannot be run: {brief(error)}") from None
        length = float(np.linalg.norm(found))
        if not 0 < length < np.inf:
            raise StoreError(f"{self._label}: gives no finite embedding")
        unit: FloatArray = found / np.float32(length)
        return unit

    def _kaldi(self) -> Kaldi:
        said = self._session.get_modelmeta().custom_metadata_map
        rate = said.get("sample_rate", str(RATE))
        if rate != str(RATE):
            raise StoreError(f"{self._label}: is for {rate!a:.20} Hz, not {RATE}")
        framework = said.get("framework", "wespeaker" if self._output == "embs" else "")
        return Kaldi(
            hamming=framework == "wespeaker",
            whole_numbers=said.get("normalize_samples", "0") == "0",
            centred=said.get("feature_normalize_type", "global-mean") == "global-mean",
        )


@contextmanager
def _ended_in_time() -> Iterator[tuple[Any, Event]]:
    """Options of a run that is ended where it takes too long; and whether it was."""
    import onnxruntime

    options, late = onnxruntime.RunOptions(), Event()

    def end() -> None:
        late.set()
        options.terminate = True  # looked at before each operator, within loops as well

    timer = Timer(RUN_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        yield options, late
    finally:
        timer.cancel()


def _session(data: bytes, label: str) -> Any:
    # from version 1.29 on it would tell its makers of every session, from its import on
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    # the key of where other files lie; onnxruntime would look for them beside this process
    if b"\x08location" in data:
        raise StoreError(f"{label}: has weights in another file; one file with all is needed")
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
            raise StoreError(f"{label}: is damaged, or no ONNX network: {brief(error)}") from None


def _found(inputs: Any) -> str:
    shapes = [f"{each.type} {each.shape}" for each in inputs]
    return f"this one takes {'; '.join(shapes) or 'nothing'}"[:200]


def brief(error: BaseException) -> str:
    """What went wrong in a library, in one line."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]


class Voice(SpeechWindows):
    """Embeddings of the speech, three seconds at a time, by the package's own voice networks.

    Three students of ECAPA-TDNN side by side, run by numpy (`monitor.networks.voice`). They hear
    less than their teacher (`monitor.features.ecapa`), and are in every install. They are loaded
    once, and shared by all.

    Args:
        network: another one of the same make, such as one that `monitor.adapting` has fine-tuned;
            its sha256 marks what it makes. None: those that ship.
        name: of the feature, where it is heard beside the one that ships.

    Raises:
        StoreError: the weights in the package are damaged.
        UsageError: a network that has no mark: what it makes could be taken for another's.

    Example:
        >>> import numpy as np
        >>> voice = Voice()
        >>> voice.process(np.zeros(48000)).values.shape  # silence
        (0, 576)
    """

    spec = window_spec("voice", 576, MARK)
    # benchmarks/change.py chose it
    follow = Sensitivity(1, 3, 20.0, 1e-2, back_units=3, level=0.25)

    def __init__(
        self, network: VoiceNetwork | JoinedNetworks | None = None, name: str = "voice"
    ) -> None:
        self._given = network, name
        network = shipped_together() if network is None else network
        if not network.sha256:
            raise UsageError("a network needs the sha256 of its weights, as a mark")
        self.spec = window_spec(name, network.size, network.sha256)
        super().__init__(self.spec, network, self.follow)

    def __reduce__(self) -> tuple[Any, ...]:
        """As another process is given it: afresh."""
        return type(self), self._given
