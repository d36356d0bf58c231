"""Small real speaker-embedding networks, as ONNX files."""

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
    frames: int | str = "frames",
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
    return _model(steps, ["batch", frames, bands], weights, output, metadata)


def of_mel_banks(
    seed: int = 0,
    metadata: Mapping[str, str] | None = None,
    dimensions: Sequence[Any] = ("batch", 72, "frames"),
) -> bytes:
    """From energies in ReDimNet's layout (batch, 72, frames): means behind random directions."""
    steps: list[_Step] = [
        ("MatMul", ["weights", "x"], ["waves"], {}),
        ("Relu", ["waves"], ["loud"], {}),
        ("ReduceMean", ["loud"], ["embedding"], {"axes": [-1], "keepdims": 0}),
    ]
    weights = np.random.default_rng(seed).normal(size=(SIZE, 72)).astype(np.float32)
    return _model(steps, dimensions, weights, "embedding", metadata)


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


def endless(only_long: bool = False) -> bytes:
    """From sound: a loop without an end, or one that only windows of over a second keep in."""
    from onnx import TensorProto, helper, numpy_helper

    def value(name: str, kind: int, shape: list[Any] | None) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [
            helper.make_node("Identity", ["goes on"], ["goes on still"]),
            helper.make_node("Sin", ["v"], ["w"]),
        ],
        "body",
        [value("i", TensorProto.INT64, []), value("goes on", TensorProto.BOOL, []),
         value("v", TensorProto.FLOAT, None)],
        [value("goes on still", TensorProto.BOOL, []), value("w", TensorProto.FLOAT, None)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Size", ["x"], ["samples"]),
        helper.make_node("Greater", ["samples", "few"], ["first"]),
        helper.make_node("Slice", ["x", "none", "size", "axis"], ["head"]),
        helper.make_node("Loop", ["", "first", "head"], ["embedding"], body=body),
    ]
    few = 16_000 if only_long else 0
    constants = {"few": few, "none": [0], "size": [SIZE], "axis": [1]}
    graph = helper.make_graph(
        nodes,
        "speaker",
        [value("x", TensorProto.FLOAT, ["batch", "samples"])],
        [value("embedding", TensorProto.FLOAT, ["batch", SIZE])],
        [numpy_helper.from_array(np.array(each, np.int64), n) for n, each in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    made: bytes = model.SerializeToString()
    return made


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
