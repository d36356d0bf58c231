"""Small real speaker-embedding networks, as ONNX files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

SIZE = 8
_Step = tuple[str, list[str], list[str], dict[str, Any]]


def of_energies(
    seed: int = 0,
    metadata: Mapping[str, str] | None = None,
    bands: int = 80,
    output: str = "embedding",
) -> bytes:
    """From energies (batch, frames, 80): what its random directions have of their deviation."""
    steps: list[_Step] = [
        ("ReduceMean", ["x"], ["mean"], {"axes": [1], "keepdims": 1}),
        ("Sub", ["x", "mean"], ["rest"], {}),
        ("MatMul", ["rest", "weights"], ["seen"], {}),
        ("Relu", ["seen"], ["some"], {}),
        ("ReduceMean", ["some"], [output], {"axes": [1], "keepdims": 0}),
    ]
    weights = np.random.default_rng(seed).normal(size=(bands, SIZE)).astype(np.float32)
    return _model(steps, ["batch", "frames", bands], weights, output, metadata)


def of_sound(seed: int = 0, dimensions: Sequence[Any] = ("batch", "samples")) -> bytes:
    """From sound (batch, samples): deviations behind random filters of 64 samples."""
    steps: list[_Step] = [
        ("Unsqueeze", ["x", "one"], ["channel"], {}),
        ("Conv", ["channel", "weights"], ["waves"], {"strides": [16]}),
        ("Abs", ["waves"], ["loud"], {}),
        ("ReduceMean", ["loud"], ["embedding"], {"axes": [2], "keepdims": 0}),
    ]
    weights = np.random.default_rng(seed).normal(size=(SIZE, 1, 64)).astype(np.float32)
    return _model(steps, dimensions, weights, "embedding", None)


def _model(
    steps: Sequence[_Step],
    dimensions: Sequence[Any],
    weights: np.ndarray,
    output: str,
    metadata: Mapping[str, str] | None,
) -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [helper.make_node(kind, given, made, **more) for kind, given, made, more in steps],
        "speaker",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(dimensions))],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", SIZE])],
        [
            numpy_helper.from_array(weights, "weights"),
            numpy_helper.from_array(np.array([1], np.int64), "one"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    helper.set_model_props(model, dict(metadata or {}))
    made: bytes = model.SerializeToString()
    return made
