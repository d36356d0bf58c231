"""Teacher of the voice network: SpeechBrain's ECAPA-TDNN, with this package's names of weights.

The weights are ``speechbrain/spkrec-ecapa-voxceleb`` (Apache 2.0; trained on VoxCeleb 1 and 2).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from monitor.errors import StoreError
from monitor.types import FloatArray
from recipes.folding import State, norm

NAME = "speechbrain/spkrec-ecapa-voxceleb"
SHA256 = "0575cb64845e6b9a10db9bcb74d5ac32b326b8dc90352671d345e2ee3d0126a2"
"""Digest of the published embedding_model.ckpt."""
WIDE = 3072
_TAPS = np.array([3, 2, 3, 3, 3, 4])  # number of taps and dilation, per block


def read_teacher(folder: Path) -> dict[str, FloatArray]:
    """Read the published weights, with the names of `monitor.networks.voice.VoiceNetwork`.

    Raises:
        StoreError: the file is missing, or differs from the published one.
    """
    path = folder / "embedding_model.ckpt"
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise StoreError(f"{path}: no weights of {NAME} ({error.strerror})") from None
    if digest != SHA256:
        raise StoreError(f"{path}: other weights than those published as {NAME}")
    import torch  # here, so that `recipes.voice.world` runs without torch

    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    return _plain({name: each.numpy().astype(np.float64) for name, each in checkpoint.items()})


def _plain(state: State) -> dict[str, FloatArray]:
    """Rename the weights, and fold the norms before and after pooling into later layers."""
    weights: dict[str, FloatArray] = {}

    def add(name: str, conv: str, behind: str = "") -> None:
        weights[name] = _matrix(state[f"{conv}.weight"])
        weights[f"{name}.bias"] = state[f"{conv}.bias"]
        if behind:
            weights[f"{name}.gain"], weights[f"{name}.shift"] = norm(state, behind)

    add("stem", "blocks.0.conv.conv", "blocks.0.norm.norm")
    for block in range(3):
        of = f"blocks.{block + 1}"
        add(f"{block}.one", f"{of}.tdnn1.conv.conv", f"{of}.tdnn1.norm.norm")
        for group in range(1, 8):
            part = f"{of}.res2net_block.blocks.{group - 1}"
            add(f"{block}.group{group}", f"{part}.conv.conv", f"{part}.norm.norm")
        add(f"{block}.two", f"{of}.tdnn2.conv.conv", f"{of}.tdnn2.norm.norm")
        add(f"{block}.squeeze", f"{of}.se_block.conv1.conv")
        add(f"{block}.excite", f"{of}.se_block.conv2.conv")
    add("widen", "mfa.conv.conv")
    scale, shift = norm(state, "mfa.norm.norm")
    rows, mean, deviation = np.split(_matrix(state["asp.tdnn.conv.conv.weight"]), 3, axis=1)
    weights["attend"], weights["attend.mean"] = rows * scale, mean * scale
    weights["attend.deviation"] = deviation * np.abs(scale)
    weights["attend.bias"] = state["asp.tdnn.conv.conv.bias"] + (rows + mean) @ shift
    weights["attend.gain"], weights["attend.shift"] = norm(state, "asp.tdnn.norm.norm")
    add("weigh", "asp.conv.conv")
    embed, bias = _matrix(state["fc.conv.weight"]), state["fc.conv.bias"]
    pooled_scale, pooled_shift = norm(state, "asp_bn.norm")
    mean, deviation = np.split(embed * pooled_scale, 2, axis=1)
    weights["embed.mean"], weights["embed.deviation"] = mean * scale, deviation * np.abs(scale)
    weights["embed.bias"] = bias + embed @ pooled_shift + mean @ shift
    weights["taps"], weights["stride"], weights["attention"] = _TAPS, np.array(1), np.array(1.0)
    return {name: np.asarray(each, np.float32) for name, each in weights.items()}


def _matrix(kernel: FloatArray) -> FloatArray:
    """Reshape a kernel (out, in, taps) to a matrix (out, taps x in)."""
    return kernel.transpose(0, 2, 1).reshape(len(kernel), -1)


def at_half_rate(weights: State) -> dict[str, FloatArray]:
    """Adapt the kernels to frames at every second band row.

    Dilations 2 and 4 become exactly 1 and 2. Dilation 3 becomes 1.5, so each outer tap is split
    between the rows at 1 and at 2.
    """
    halved = dict(weights)
    halved["taps"] = np.array([3, 1, 5, 1, 3, 2], np.float32)
    halved["stride"] = np.array(2, np.float32)
    for name in (f"1.group{group}" for group in range(1, 8)):
        before, here, after = np.split(weights[name], 3, axis=1)
        halved[name] = np.concatenate(
            [before / 2, before / 2, here, after / 2, after / 2], axis=1, dtype=np.float32
        )
    return halved
