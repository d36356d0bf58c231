"""SpeechBrain's ECAPA-TDNN speaker encoder: found, checked, loaded once.

B. Desplanques, J. Thienpondt and K. Demuynck, "ECAPA-TDNN: emphasized channel attention,
propagation and aggregation in TDNN based speaker verification", Interspeech 2020; weights
``speechbrain/spkrec-ecapa-voxceleb``, trained on VoxCeleb 1 and 2.

SpeechBrain's loader evaluates the tags of ``hyperparams.yaml``, which can name any Python object,
and a pickle can hold one. So each file is copied to a private folder and checked there: the one
that is evaluated must be the published one, byte for byte, and weights must be nothing but
tensors. The model is then loaded from those copies, which nobody else can change.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import socket
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from monitor.errors import StoreError, UsageError
from monitor.features.logmel import log_mel
from monitor.types import FloatArray

__all__ = ["ENVIRONMENT", "HUB", "WEIGHTS", "Encoder", "encoder", "file_digest", "resolve"]

HUB = "speechbrain/spkrec-ecapa-voxceleb"
"""The model's name on the Hugging Face hub."""
ENVIRONMENT = "MONITOR_ECAPA"
"""The environment's variable for a folder to load from instead."""
_HYPERPARAMETERS = "hyperparams.yaml"
_EMBEDDING = "embedding_model"
WEIGHTS = (f"{_EMBEDDING}.ckpt", "mean_var_norm_emb.ckpt", "classifier.ckpt")
_FILES = (_HYPERPARAMETERS, *WEIGHTS, "label_encoder.txt")
# As published. Should the hub's ever change: read the new one, see that it names nothing but the
# same network, and add its digest.
_KNOWN = frozenset({"6f78854fa04ba59e761437b76a2575d3aba5e5016de3e9b69f0c9a5077fb1a41"})
_INSTALL = "pip install 'speaker-disclosure-monitor[identity]'"
_POINT = f"point --ecapa or {ENVIRONMENT} to a folder that holds {HUB}"
_PATIENCE_SECONDS = 5.0
_MOST_BYTES = 256 << 20  # the largest file has 83 MB


class Encoder:
    """The network, in evaluation mode, behind torchaudio's front end.

    Args:
        model: SpeechBrain's ``EncoderClassifier``.
        digest: sha256 of the file of its weights.
    """

    def __init__(self, model: Any, digest: str) -> None:
        self._model, self.digest = model, digest
        model.eval()
        front = log_mel(model.mods["compute_features"])
        model.mods["compute_features"] = front.to(model.device)

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed windows of one length.

        Args:
            windows: shape (b, n), mono at 16 kHz, float32.

        Returns:
            Shape (b, 192), float32, each of length 1. The others of its batch change an embedding
            by less than 1e-5.
        """
        import torch

        with torch.inference_mode():
            found = self._model.encode_batch(torch.from_numpy(windows))[:, 0]
            found = torch.nn.functional.normalize(found)
        embeddings: FloatArray = found.cpu().numpy()
        return embeddings


def resolve(source: str | os.PathLike[str] | None) -> str:
    """Where to load from: what was asked for, else ``MONITOR_ECAPA``, else the hub's name."""
    chosen = os.fspath(source) if source is not None else os.environ.get(ENVIRONMENT) or HUB
    return chosen if chosen == HUB else str(Path(chosen).expanduser().absolute())


@lru_cache(maxsize=2)
def encoder(source: str, device: str = "cpu") -> Encoder:
    """The encoder of a resolved source; asked again, the same one.

    Args:
        source: a folder, or the hub's name.
        device: where torch computes.

    Raises:
        UsageError: the extra ``identity`` is not installed, or there is no such folder.
        StoreError: the model is not complete, not the published one, broken or out of reach.
    """
    with _quiet():
        try:
            import torch
            import torchaudio  # noqa: F401
            from speechbrain.inference.classifiers import EncoderClassifier
        except Exception as error:  # missing, or libraries that do not go together
            raise UsageError(
                f"the feature identity needs more ({_brief(error)}): {_INSTALL}"
            ) from None
        _settle()
        if source != HUB and not Path(source).is_dir():
            raise UsageError(f"{source} is not a folder: {_POINT}")
        private = Path(tempfile.mkdtemp(prefix="monitor-ecapa-"))  # its owner's alone
        try:
            for name in _FILES:
                _fetch(name, source, private)
                _check(private / name, source)
            model = EncoderClassifier.from_hparams(
                source=str(private),
                savedir=str(private),
                overrides={"pretrained_path": str(private)},
                run_opts={"device": device},
            )
            weights = torch.load(private / WEIGHTS[0], map_location="cpu", weights_only=True)
            if weights.keys() != model.mods[_EMBEDDING].state_dict().keys():
                raise StoreError(f"{source}: {WEIGHTS[0]} is of another network: {_POINT}")
            return Encoder(model, file_digest(private / WEIGHTS[0]))
        except StoreError:
            raise
        except Exception as error:
            raise StoreError(f"{source}: cannot be loaded: {_brief(error)}: {_POINT}") from None
        finally:
            shutil.rmtree(private, ignore_errors=True)


def file_digest(path: Path) -> str:
    """Its sha256, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _settle() -> None:
    """Let SpeechBrain's stand-ins for optional modules be looked at.

    They import what they stand for, and fail, when somebody who goes through all modules (as
    hypothesis does) asks where they come from.
    """
    from speechbrain.utils.importutils import LazyModule

    for module in list(sys.modules.values()):
        if isinstance(module, LazyModule):
            vars(module).setdefault("__file__", None)


def _fetch(name: str, source: str, private: Path) -> None:
    """Copy one file, from a folder or from the hub."""
    if source == HUB:
        _download(name, private)
        return
    path = Path(source) / name
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would never end
            raise StoreError(f"{source}: {name} is no plain file: {_POINT}")
        if status.st_size > _MOST_BYTES:
            raise StoreError(f"{source}: {name} is far too large for it: {_POINT}")
        with path.open("rb") as file, (private / name).open("xb") as copy:
            copy.write(file.read(_MOST_BYTES))  # should it grow meanwhile
    except OSError as error:
        raise StoreError(f"{source}: {name}: {error.strerror or error}: {_POINT}") from None


def _download(name: str, private: Path) -> None:
    """Copy a file from what the hub's client has kept, else from the hub."""
    from huggingface_hub import constants
    from speechbrain.utils.fetching import (
        FetchConfig,
        FetchFrom,
        FetchSource,
        LocalStrategy,
        fetch,
    )

    hub = FetchSource(FetchFrom.HUGGING_FACE, HUB)  # a folder of that name is not the hub
    for network in (False, True):
        config = FetchConfig(allow_network=network)
        try:
            fetch(name, hub, private, local_strategy=LocalStrategy.COPY, fetch_config=config)
            return
        except Exception as error:
            unreachable = not network and not _reachable(constants.ENDPOINT)
            if network or unreachable:
                reason = "no connection" if unreachable else _brief(error)
                raise StoreError(
                    f"cannot fetch {HUB} from {constants.ENDPOINT} ({reason}): {_POINT}"
                ) from None


def _reachable(endpoint: str) -> bool:
    """Whether asking is worth the while: the hub's client tries for half a minute."""
    if getproxies():
        return True  # only the client knows the way
    parts = urlsplit(endpoint)
    port = parts.port or (80 if parts.scheme == "http" else 443)
    try:
        socket.create_connection((parts.hostname or "", port), _PATIENCE_SECONDS).close()
    except OSError:
        return False
    return True


def _check(path: Path, source: str) -> None:
    """Refuse what could run code."""
    import torch

    if path.name == _HYPERPARAMETERS:
        digest = file_digest(path)
        if digest not in _KNOWN:
            raise StoreError(
                f"{source}: its {path.name} is not the published one (sha256 {digest[:12]}...) "
                f"and could run code: {_POINT}"
            )
    elif path.name in WEIGHTS:
        try:
            torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            raise StoreError(
                f"{source}: {path.name} is damaged, or holds more than weights "
                f"({type(error).__name__}): {_POINT}"
            ) from None


def _brief(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of others: what went wrong is said once, by an error."""
    loggers = [logging.getLogger(name) for name in ("huggingface_hub", "speechbrain")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
