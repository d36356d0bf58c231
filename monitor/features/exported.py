"""ECAPA-TDNN exported once to the user's cache, and run by onnxruntime from there.

Half of its work is in whole numbers; ``benchmarks/encoders.py`` has what that gains and what it
changes.

The file is named by the sha256 of the weights and the version of the exporter. Its last bytes, a
field of text in the format of ONNX, hold the sha256 of all before: one that is damaged is made
again.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from monitor.atomic import atomic_write, sweep
from monitor.errors import StoreError
from monitor.features.ecapa import HUB, WEIGHTS, encoder, file_digest
from monitor.features.network import Network, network_bytes
from monitor.protocols import Embedder

__all__ = ["VERSION", "at_hand", "cache_folder", "exported_encoder", "is_sealed", "sealed"]

VERSION = 2
"""Of the exporter: another one makes another file."""
_MARK = f"speaker-disclosure-monitor ecapa {VERSION} sha256 ".encode()
_DOC_STRING = 6 << 3 | 2  # the field of an ONNX model
_SEAL = bytes([_DOC_STRING, len(_MARK) + 64]) + _MARK


@lru_cache(maxsize=2)
def exported_encoder(source: str) -> Embedder:
    """The encoder of a resolved source, by onnxruntime where it is there, else by torch.

    Args:
        source: a folder, a file that was exported before, or the hub's name; of the hub torch
            computes, since only its client knows where the weights are.

    Raises:
        UsageError: what it takes is not installed, or there is no such folder.
        StoreError: the model is not complete, not the published one, broken or out of reach.
    """
    if source == HUB or find_spec("onnxruntime") is None:
        return encoder(source)
    if Path(source).is_file():
        whole = network_bytes(Path(source))
        if not is_sealed(whole):
            raise StoreError(
                f"{source}: is damaged, or was not exported by this version; another network "
                "goes to --speaker-model"
            )
        return Network(whole, Path(source).name)
    data = _cached(source)
    if data is None:
        reference = encoder(source)
        if find_spec("onnx") is None:
            return reference
        from monitor.features.ecapa_graph import graph

        data = sealed(graph(reference))
        with suppress(OSError):  # without a place for it, it is made again next time
            _keep(_path(reference.digest), data)
    return Network(data, "ECAPA")


def at_hand(source: str) -> bool:
    """Whether onnxruntime can run this source without torch."""
    if find_spec("onnxruntime") is None:
        return False
    return Path(source).is_file() or _cached(source) is not None


def cache_folder() -> Path:
    """Where files are kept that can be made again: under ``XDG_CACHE_HOME``, or ``~/.cache``."""
    given = Path(os.environ.get("XDG_CACHE_HOME") or "")
    home = given if given.is_absolute() else Path.home() / ".cache"
    return home / "speaker-disclosure-monitor"


def sealed(data: bytes) -> bytes:
    """An ONNX file that knows its own digest.

    Example:
        >>> is_sealed(sealed(b"abc")), is_sealed(sealed(b"abc")[1:]), is_sealed(b"")
        (True, False, False)
    """
    return data + _SEAL + hashlib.sha256(data).hexdigest().encode()


def is_sealed(data: bytes) -> bool:
    """Whether these are the bytes that `sealed` made."""
    end = len(data) - len(_SEAL) - 64
    return end >= 0 and sealed(data[:end])[end:] == data[end:]


def _path(digest: str) -> Path:
    return cache_folder() / f"ecapa-{digest}-{VERSION}.onnx"


def _cached(source: str) -> bytes | None:
    """What was exported from this folder; None where nothing was, or it is no longer whole."""
    weights = Path(source) / WEIGHTS[0]
    with suppress(OSError, StoreError, RuntimeError):  # the loader says what is wrong with it
        if not stat.S_ISREG(weights.stat().st_mode):
            return None
        status = weights.stat()
        path = _path(_digest(weights, status.st_mtime_ns, status.st_size))
        if _is_private(path.parent):
            data = network_bytes(path)
            return data if is_sealed(data) else None
    return None


@lru_cache(maxsize=4)
def _digest(path: Path, _changed: int, _size: int) -> str:
    return file_digest(path)


def _keep(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _is_private(path.parent):
        sweep(path)
        with atomic_write(path) as file:
            file.write(data)


def _is_private(folder: Path) -> bool:
    """Whether nobody else can put a network there."""
    status = folder.stat()
    mine = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return mine and not status.st_mode & 0o022
