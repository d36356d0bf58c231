"""The pretrained network that some tests need: no part of the repository."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import NoReturn

import pytest

from tests.conftest import ECAPA

__all__ = ["ecapa", "onnx_extra"]


def ecapa() -> str:
    """The folder with SpeechBrain's ECAPA-TDNN; without it the test is skipped, in CI it fails.

    Torch is left with one thread: on a machine that is shared more of them wait for one another.
    """
    if any(find_spec(name) is None for name in ("torch", "torchaudio", "speechbrain")):
        _missing("needs the extra identity: pip install -e '.[identity]'")
    if not ECAPA:
        _missing("needs MONITOR_ECAPA, a folder filled by ../shared/get-ecapa")
    import torch

    torch.set_num_threads(1)
    return ECAPA


def onnx_extra() -> None:
    """Without the extra the test is skipped, in CI it fails."""
    if any(find_spec(name) is None for name in ("onnx", "onnxruntime")):
        _missing("needs the extra onnx: pip install -e '.[onnx]'")


def _missing(what: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)
