"""Folding of batch norms into the adjacent convolutions, for inference with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from monitor.types import FloatArray

State = dict[str, FloatArray]
_LEAST_VARIANCE = 1e-5  # epsilon of torch's batch norms


def norm(state: State, name: str) -> tuple[FloatArray, FloatArray]:
    """Return the scale and the shift of a batch norm."""
    scale = state[f"{name}.weight"] / np.sqrt(state[f"{name}.running_var"] + _LEAST_VARIANCE)
    return scale, state[f"{name}.bias"] - state[f"{name}.running_mean"] * scale


def state_of(network: Any) -> State:
    """Return the weights of a torch module, float64."""
    return {name: each.detach().double().numpy() for name, each in network.state_dict().items()}


def conv(state: State, name: str) -> State:
    """Fold a convolution and the norm after it. A shorter norm is repeated over the outputs."""
    kernel = state[f"{name}.weight"][:, :, 0]
    scale, shift = (np.resize(each, len(kernel)) for each in norm(state, f"{name}_norm"))
    return {name: kernel * scale[:, None, None], f"{name}.bias": shift}


def separable(state: State, at: str, name: str) -> State:
    """Fold a torch block, ``at``, into ``name``'s depthwise and pointwise layers with biases."""
    first, shift = norm(state, f"{at}.first")
    second, bias = norm(state, f"{at}.second")
    return {
        f"{name}.depthwise": state[f"{at}.depthwise.weight"][:, 0, 0] * first[:, None],
        f"{name}.depthwise.bias": shift,
        f"{name}.pointwise": state[f"{at}.pointwise.weight"][:, :, 0, 0] * second[:, None],
        f"{name}.pointwise.bias": bias,
    }
