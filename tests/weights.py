"""The pretrained network that some tests need: no part of the repository."""

import os
from importlib.util import find_spec

import pytest

__all__ = ["ecapa", "onnx_extra"]

ECAPA = os.environ.get("MONITOR_ECAPA")
"""Kept here: a fixture takes it from the environment of all tests."""


def ecapa() -> str:
    """The folder with SpeechBrain's ECAPA-TDNN; without it the test is skipped.

    Torch is left with one thread: on a machine that is shared more of them wait for one another.
    """
    if any(find_spec(name) is None for name in ("torch", "torchaudio", "speechbrain")):
        pytest.skip("needs the extra training: pip install -e '.[training]'")
    if not ECAPA:
        pytest.skip("needs pretrained weights: MONITOR_ECAPA, a folder with SpeechBrain's ECAPA")
    import torch

    torch.set_num_threads(1)
    return ECAPA


def onnx_extra() -> None:
    """Without the extra the test is skipped."""
    if any(find_spec(name) is None for name in ("onnx", "onnxruntime")):
        pytest.skip("needs the extra onnx: pip install -e '.[onnx]'")
