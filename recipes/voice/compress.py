"""Factor each of the teacher's wide layers into two matrices, without training.

    python -m recipes.voice.compress CACHE NOISE BEGUN.npz --ecapa DIR [--ranks 512 256]

Each layer's factors map the output of the compressed layers before it to the output of the
teacher's layer for the same sound (reduced-rank regression, in closed form). Layers that change
with half the frame rate are fitted in the same way, at full rank.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from monitor.files import atomic_write
from monitor.lab.adapting.fine_tuning import TrainableVoice
from monitor.types import FloatArray
from recipes.stages import stage
from recipes.voice.clips import Clips
from recipes.voice.teacher import at_half_rate, read_teacher
from recipes.voice.windows import Windows, bands_of

_WINDOWS, _BATCH = 480, 16
_EVERY = 3  # step between the rows of a window that are used: neighbours are similar
_RIDGE = 3e-3
_REFITTED = tuple(f"1.group{group}" for group in range(1, 8))


def main() -> None:
    parser = stage("Factor the teacher's wide layers.", "cache", "noise", "begun")
    parser.add_argument("--ecapa", type=Path, required=True)
    parser.add_argument("--ranks", type=int, nargs=2, default=(512, 256))
    given = parser.parse_args()
    clips = Clips(given.cache)
    windows, rng = Windows(clips, given.noise, 0), np.random.default_rng(0)
    chosen = rng.permutation(len(clips))[:_WINDOWS].tolist()
    sounds = [(windows.view if n % 2 else windows.clean)(clip) for n, clip in enumerate(chosen)]
    bands = [
        torch.from_numpy(bands_of(sounds[at : at + _BATCH])) for at in range(0, _WINDOWS, _BATCH)
    ]
    weights = compress(read_teacher(given.ecapa), bands, *given.ranks)
    with atomic_write(given.begun) as file:
        np.savez(file, **weights)  # type: ignore[arg-type]


def compress(
    teacher: dict[str, FloatArray], bands: Sequence[Tensor], widest: int, wide: int
) -> dict[str, FloatArray]:
    """Factor the seven wide layers on batches of bands, (b, t, 80) each."""
    names = [
        name for block in range(3)
        for name in (f"{block}.one", *(_REFITTED if block == 1 else ()), f"{block}.two")
    ] + ["widen"]  # fmt: skip
    goals = _compute_layer_outputs(TrainableVoice(teacher), names, bands)
    weights = at_half_rate(teacher)
    for name in names:
        layer_input = _compute_layer_input(TrainableVoice(weights), name, bands)
        rank = None if name in _REFITTED else widest if name == "widen" else wide
        lost = _fit(weights, name, layer_input, goals.pop(name), rank)
        print(f"{name}: {100 * lost:.1f} % of the variance lost", file=sys.stderr, flush=True)
    return weights


def _compute_layer_outputs(
    network: TrainableVoice, names: Iterable[str], bands: Sequence[Tensor]
) -> dict[str, Tensor]:
    """Return the output of each layer, shape (n, out), at the rows of the compressed network."""
    outputs: dict[str, list[Tensor]] = {name: [] for name in names}
    dense = network._dense

    def record(x: Tensor, name: str) -> Tensor:
        y = dense(x, name)
        if name in outputs:
            outputs[name].append(_rows(y[:, ::2]).half())
        return y

    network._dense = record  # type: ignore[method-assign]
    with torch.inference_mode():
        for batch in bands:
            network.frames(batch)
    return {name: torch.cat(parts) for name, parts in outputs.items()}


class _LayerReached(Exception):  # noqa: N818
    """Raised at a layer to skip the computation of all later layers."""


def _compute_layer_input(network: TrainableVoice, wanted: str, bands: Sequence[Tensor]) -> Tensor:
    """Return the input of a layer, shape (n, in)."""
    batches: list[Tensor] = []
    dense = network._dense

    def record(x: Tensor, name: str) -> Tensor:
        if name == wanted:
            batches.append(_rows(x))
            raise _LayerReached
        return dense(x, name)

    network._dense = record  # type: ignore[method-assign]
    with torch.inference_mode():
        for batch in bands:
            try:
                network.frames(batch)
            except _LayerReached:
                continue
    return torch.cat(batches)


def _rows(x: Tensor) -> Tensor:
    return x[:, ::_EVERY].reshape(-1, x.shape[2])


def _fit(
    weights: dict[str, FloatArray], name: str, layer_input: Tensor, goal: Tensor, rank: int | None
) -> float:
    """Replace a layer by factors, or by a matrix, and return the fraction of variance lost."""
    x, y = layer_input.double(), goal.double()
    centre, middle = x.mean(dim=0), y.mean(dim=0)
    x, y = x - centre, y - middle
    square = x.T @ x / len(x)
    square += _RIDGE * square.diagonal().mean() * torch.eye(len(square), dtype=torch.float64)
    matrix = torch.linalg.solve(square, x.T @ y / len(x)).T
    lost = 0.0
    if rank is None:
        weights[name] = matrix.float().numpy()
    else:
        values, vectors = torch.linalg.eigh(matrix @ square @ matrix.T)
        outer = vectors.flip(1)[:, :rank]
        inner = outer.T @ matrix
        lost = float(1 - values.flip(0)[:rank].sum() / values.sum())
        del weights[name]
        weights[f"{name}.out"], weights[f"{name}.in"] = outer.float().numpy(), inner.float().numpy()
        matrix = outer @ inner
    weights[f"{name}.bias"] = (middle - matrix @ centre).float().numpy()
    return lost


if __name__ == "__main__":
    main()
