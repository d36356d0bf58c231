"""Speaker embeddings by a network of the user's own.

Some networks take energies instead of sound. They have one of three front ends: `Kaldi` (D. Povey
et al., ASRU 2011) for WeSpeaker's and 3D-Speaker's networks, `MelBanks` for ReDimNet (I. Yakovlev
et al., "Reshape dimensions network for speaker recognition", Interspeech 2024), and
`ReDimNet2Banks` for its successor (I. Yakovlev and A. Okhotnikov, arXiv 2603.11841).
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Timer
from typing import Any

import numpy as np
from scipy.fft import rfft

from monitor.errors import StoreError, UsageError
from monitor.features.embeddings import RATE, SHORTEST, SpeechWindows, window_spec
from monitor.kinds import SPEAKER_PREFIX, Sensitivity
from monitor.networks.layers import triangles
from monitor.types import FloatArray

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
    """

    bands = 80

    def __init__(
        self,
        *,
        hamming: bool = False,  # Hamming's window, which WeSpeaker uses, instead of Povey's
        whole_numbers: bool = True,  # scale samples to 32768, as in a 16-bit file, instead of 1
        centred: bool = True,  # subtract from each band its mean over the window
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
    """Energies equal to those of ReDimNet's front end, a class of the same name.

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


class ReDimNet2Banks:
    """Energies equal to those of ReDimNet2's front end, outside its graph.

    Sound has mean 0 and deviation 1, and pre-emphasis 0.97. Frames use Hamming's window of 25 ms
    every 10 ms, with half a step of zeros before and after the sound. The transform has 512 points.
    Powers are weighted by 72 triangles in mel from 20 to 7600 Hz, and the natural logarithm is
    taken. Each band's mean over the window is subtracted. The network needs a multiple of four
    frames, so up to three are cut off at the end. The result equals the front end of the package
    redimnet2-onnx to 1e-3.
    """

    bands = MelBanks.bands
    _floor, _multiple = 1e-8, 4

    @staticmethod
    def samples(frames: int) -> int:
        """Count the samples that give this many frames."""
        return _FRAME + (frames - 1) * _STEP - _STEP

    def energies(self, sound: FloatArray) -> FloatArray:
        """Compute energies of sound, shape (n,), at 16 kHz: shape (1, 72, frames), float32."""
        wave = sound.astype(np.float64)
        wave = (wave - wave.mean()) / (wave.std() + self._floor)
        wave = wave - _EMPHASIS * np.concatenate([wave[1:2], wave[:-1]])
        padded = np.pad(wave, _STEP // 2)
        frames = np.lib.stride_tricks.sliding_window_view(padded, _FRAME)[::_STEP]
        powers = _powers(frames * np.hamming(_FRAME))[:, : _POINTS // 2]
        energies = powers.clip(self._floor, 1 / self._floor) @ self._triangles()
        levels = np.log(energies.clip(self._floor, 1 / self._floor) + self._floor)
        levels -= levels.mean(axis=0)
        count = len(levels) // self._multiple * self._multiple
        return np.ascontiguousarray(levels[:count].T[None], np.float32)

    @staticmethod
    @cache
    def _triangles() -> FloatArray:
        """Weights of the bins, shape (256, 72)."""
        hertz = np.linspace(0, RATE / 2, _POINTS // 2)
        lowest, highest = 2595.0 * np.log10(1.0 + np.array([_LOWEST, 7600.0]) / 700.0)
        edges = np.linspace(lowest, highest, ReDimNet2Banks.bands + 2)
        return triangles(2595.0 * np.log10(1.0 + hertz / 700.0), edges)


def _powers(frames: FloatArray) -> FloatArray:
    spectra = rfft(frames, _POINTS)
    return np.asarray(spectra.real**2 + spectra.imag**2)


RUN_SECONDS = 60.0  # limit per window of a few seconds; a large network takes 1 s
_MOST_BYTES = 512 << 20
_MOST_SIZE = 4096
_LEAST_SAMPLES, _MOST_SAMPLES = RATE // 2, 60 * RATE  # of a network that takes one length
_INSTALL = "pip install 'speaker-disclosure-monitor[onnx]'"
_TAKES = (
    "the only input must be sound (batch, samples) at 16 kHz, or energies (batch, frames, 80), "
    "(batch, 72, frames) or (batch, 1, 72, frames)"
)


def network_bytes(path: Path) -> bytes:
    """Read the file of a network; StoreError if it is not a plain file or is too large."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would never end
            raise StoreError(f"{path} is not a plain file")
        if status.st_size > _MOST_BYTES:
            raise StoreError(f"{path} is far too large for a network, over 512 MiB")
        with path.open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from None


class Network:
    """Speaker embedding network from an ONNX file, run by onnxruntime.

    The shape of its only input determines what it accepts. It is sound (batch, samples) at 16 kHz,
    or log mel energies. For these the front end is computed by `Kaldi` (batch, frames, 80), by
    `MelBanks` (batch, 72, frames) or by `ReDimNet2Banks` (batch, 1, 72, frames). If the shape fixes
    the number of samples or frames, a shorter window is repeated to that length. A longer window
    gives the mean over the fewest parts that cover it.

    ``window_assumed`` is True if neither the metadata nor the name of the output gives the window.

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
        self._front: Kaldi | MelBanks | ReDimNet2Banks | None = None
        self.window_assumed = False
        match [(node.type, *node.shape) for node in inputs]:
            case [("tensor(float)", _, length)]:
                pass
            case [("tensor(float)", _, length, Kaldi.bands)]:
                self._front = self._front_end(Kaldi.bands)
            case [("tensor(float)", _, MelBanks.bands, length)]:
                self._front = self._front_end(MelBanks.bands)
            case [("tensor(float)", _, 1, ReDimNet2Banks.bands, length)]:
                self._front = ReDimNet2Banks()
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
        # test embeddings of a hum, which networks treat more like speech than silence
        hum = np.sin(np.arange(3 * SHORTEST) * (2 * np.pi * 150 / RATE)).astype(np.float32)
        self.size = self._embed(hum).size
        if self._embed(hum[:SHORTEST]).size != self.size or not 2 <= self.size <= _MOST_SIZE:
            raise StoreError(
                f"{label}: does not give embeddings of one size for windows of 1 to 3 s"
            )

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
        metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        rate = metadata.get("sample_rate", str(RATE))
        if rate != str(RATE):
            raise StoreError(f"{self._label} is for {rate!a:.20} Hz, not {RATE}")
        if bands == MelBanks.bands:
            return MelBanks(normalised=metadata.get("norm_signal", "0") != "0")
        framework = metadata.get("framework", "wespeaker" if self._output == "embs" else "")
        self.window_assumed = not framework
        return Kaldi(
            hamming=framework == "wespeaker",
            whole_numbers=metadata.get("normalize_samples", "0") == "0",
            centred=metadata.get("feature_normalize_type", "global-mean") == "global-mean",
        )


@contextmanager
def _ended_in_time() -> Iterator[tuple[Any, Event]]:
    """Yield options that end a run after `RUN_SECONDS`, and an event that is then set."""
    import onnxruntime

    options, expired = onnxruntime.RunOptions(), Event()

    def end() -> None:
        expired.set()
        options.terminate = True  # checked before each operator, also within loops

    timer = Timer(RUN_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        yield options, expired
    finally:
        timer.cancel()


def _session(data: bytes, label: str) -> Any:
    # from version 1.29 on, onnxruntime reports to its makers as soon as it is imported
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    # the key of external data, which onnxruntime would read from the working directory
    if b"\x08location" in data:
        raise StoreError(f"{label} has weights in another file: use one file with all weights")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are also raised
    options.inter_op_num_threads = 1
    options.intra_op_num_threads = 1  # the last bits depend on it, and processes share the work
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
        self.window_assumed = network.window_assumed

    def another(self) -> SpeechWindows:
        """Make a fresh feature with the same network."""
        return SpeechWindows(self.spec, self._network, self.follow)


@lru_cache(maxsize=1)
def speaker_model(path: Path) -> SpeakerModel:
    """Load the network of a file, once."""
    return SpeakerModel(path)
