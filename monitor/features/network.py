"""An embedding network from an ONNX file, run by onnxruntime.

The file may come from a stranger: its size is bounded, it is read once, and nothing but onnxruntime
looks into it; no library of custom operators is registered, and no other file is read for it. A
loop in it that never ends is ended.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Timer
from typing import Any

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.features.embedding_windows import RATE, SHORTEST
from monitor.features.kaldi import Kaldi
from monitor.types import FloatArray

__all__ = ["Network", "network_bytes"]

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
    """What a file of a network holds.

    Raises:
        StoreError: it cannot be read, is no plain file or far too large.
    """
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
    """A network that makes speaker embeddings.

    What it takes is told by the shape of its only input: sound (batch, samples) at 16 kHz, or 80
    log mel energies (batch, frames, 80), for which `monitor.features.kaldi` computes the front end.

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
        """Embed windows of one length, one after the other: together is no faster.

        Args:
            windows: shape (b, n), mono at 16 kHz, float32.

        Returns:
            Shape (b, size), float32, each of length 1.

        Raises:
            StoreError: the network fails, or gives what is no number.
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
            raise StoreError(f"{self._label}: cannot be run: {_brief(error)}") from None
        length = float(np.linalg.norm(found))
        if not 0 < length < np.inf:
            raise StoreError(f"{self._label}: gives no finite embedding")
        unit: FloatArray = found / np.float32(length)
        return unit

    def _kaldi(self) -> Kaldi:
        """The front end that the file's metadata ask for."""
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
            raise StoreError(f"{label}: is damaged, or no ONNX network: {_brief(error)}") from None


def _found(inputs: Any) -> str:
    shapes = [f"{each.type} {each.shape}" for each in inputs]
    return f"this one takes {'; '.join(shapes) or 'nothing'}"[:200]


def _brief(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]
