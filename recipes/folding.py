"""Batch norms folded into the convolutions beside them, as numpy runs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from monitor.types import FloatArray

State = dict[str, FloatArray]
_LEAST_VARIANCE = 1e-5  # of a batch norm; torch's default


def norm(state: State, name: str) -> tuple[FloatArray, FloatArray]:
    """What a batch norm multiplies by, and what it adds."""
    scale = state[f"{name}.weight"] / np.sqrt(state[f"{name}.running_var"] + _LEAST_VARIANCE)
    return scale, state[f"{name}.bias"] - state[f"{name}.running_mean"] * scale


def state_of(network: Any) -> State:
    """The weights of a module of torch's, float64."""
    return {name: each.detach().double().numpy() for name, each in network.state_dict().items()}


def conv(state: State, name: str) -> State:
    """A convolution and the norm behind it, which may be of several rows of it: with a bias."""
    kernel = state[f"{name}.weight"][:, :, 0]
    scale, shift = (np.resize(each, len(kernel)) for each in norm(state, f"{name}_norm"))
    return {name: kernel * scale[:, None, None], f"{name}.bias": shift}


def separable(state: State, at: str, name: str) -> State:
    """A block of torch's, ``at``, as depthwise and pointwise of ``name``, each with a bias."""
    first, shift = norm(state, f"{at}.first")
    second, bias = norm(state, f"{at}.second")
    return {
        f"{name}.depthwise": state[f"{at}.depthwise.weight"][:, 0, 0] * first[:, None],
        f"{name}.depthwise.bias": shift,
        f"{name}.pointwise": state[f"{at}.pointwise.weight"][:, :, 0, 0] * second[:, None],
        f"{name}.pointwise.bias": bias,
    }
