"""Train all factors to embed any view of a window as the teacher embeds the clean window.

    python -m recipes.voice.train CACHE NOISE BEGUN.npz OUT --ecapa DIR --steps 3000 --rate 3e-4
    python -m recipes.voice.train CACHE NOISE OUT/weights.npz MORE --ecapa DIR --steps 5000

The loss has two terms. One is the cosine distance to the teacher's embedding of the clean window.
The other compares the softmax of cosines to anchors, the teacher's embeddings of all training
speakers, with the teacher's (relational distillation; W. Park et al., CVPR 2019). A moving mean of
the weights is written to OUT. An interrupted run resumes from its checkpoint.
"""

from __future__ import annotations

import argparse
import math
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import kl_div, normalize

from monitor.files import atomic_write
from monitor.lab.adapting.fine_tuning import TrainableVoice
from monitor.types import FloatArray
from recipes.stages import stage
from recipes.training import append_log, find_checkpoint, save_checkpoint
from recipes.voice.clips import Clips
from recipes.voice.targets import targets
from recipes.voice.windows import generate_in_parallel

BATCH, CLEAN = 16, 0.3
_SCALE, _COSINE = 15.0, 10.0
_RATE, _WARM_UP, _LEAST = 2e-4, 50, 0.02
_FADING = 0.995
_MOST_GRADIENT = 2.0
_EVERY = 250
WEIGHTS = "weights.npz"


def main() -> None:
    parser = stage("Train the factors of the voice network.", "cache", "noise", "begun", "out")
    parser.add_argument("--ecapa", type=Path, required=True)
    parser.add_argument("--also", type=Path, metavar="FILE.onnx", help="a second teacher")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--rate", type=float, default=_RATE)
    parser.add_argument("--clean", type=float, default=CLEAN, help="fraction of clean windows")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    clips = Clips(given.cache)
    teacher = targets(clips, given.noise, given.ecapa, given.also)
    given.out.mkdir(parents=True, exist_ok=True, mode=0o700)
    train(clips, teacher, given)


def train(clips: Clips, teacher: FloatArray, given: argparse.Namespace) -> None:
    """Train, and write checkpoints and finally the mean weights to ``given.out``."""
    setting = {
        "begun": given.begun.name, "steps": given.steps, "rate": given.rate,
        "clean": given.clean, "seed": given.seed,
    }  # fmt: skip
    if given.also is not None:
        setting["also"] = given.also.name
    torch.manual_seed(given.seed)
    with np.load(given.begun) as arrays:
        network, mean = (TrainableVoice(dict(arrays)) for _ in range(2))
    anchors, goals = _anchors(clips, teacher), torch.from_numpy(teacher)
    adam = torch.optim.Adam(network.parameters(), lr=given.rate, betas=(0.9, 0.99))
    first, before, began = 0, 0.0, time.monotonic()
    if (state := find_checkpoint(given.out, setting)) is not None:
        network.load_state_dict(state["network"])
        adam.load_state_dict(state["adam"])
        mean.load_state_dict(state["mean"])
        first, before = state["step"], state["seconds"]
    losses: list[float] = []
    seed = given.seed + first
    with closing(
        generate_in_parallel(given.cache, given.noise, seed, BATCH, given.clean)
    ) as batches:
        for step in range(first, given.steps):
            for group in adam.param_groups:
                group["lr"] = given.rate * _share(step, given.steps)
            bands, chosen = next(batches)
            with torch.autocast("cpu", torch.bfloat16):
                found = network(torch.from_numpy(bands))
            loss = _loss(normalize(found.float()), goals[torch.from_numpy(chosen)], anchors)
            adam.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), _MOST_GRADIENT)
            adam.step()
            _follow(mean, network, min(_FADING, (step + 1) / (step + 10)))
            losses.append(float(loss.detach()))
            if (step + 1) % _EVERY == 0 or step + 1 == given.steps:
                state = {
                    "setting": setting, "network": network.state_dict(), "adam": adam.state_dict(),
                    "mean": mean.state_dict(), "step": step + 1,
                    "seconds": before + time.monotonic() - began,
                }  # fmt: skip
                save_checkpoint(given.out, state)
                append_log(given.out, {"step": step + 1, "loss": float(np.mean(losses))})
                losses.clear()
    with atomic_write(given.out / WEIGHTS) as file:
        np.savez(file, **mean.plain())  # type: ignore[arg-type]


def _anchors(clips: Clips, teacher: FloatArray) -> Tensor:
    """Return the teacher's mean embedding per known speaker, and that of each other clip."""
    known = clips.voice >= 0
    people = [teacher[clips.voice == voice].mean(axis=0) for voice in np.unique(clips.voice[known])]
    return normalize(torch.from_numpy(np.stack([*people, *teacher[~known]]).astype(np.float32)))


def _loss(found: Tensor, goal: Tensor, anchors: Tensor) -> Tensor:
    log_likelihood, log_target = (
        torch.log_softmax(_SCALE * each @ anchors.T, dim=1) for each in (found, goal)
    )
    apart = 1 - (found * goal).sum(dim=1).mean()
    return (
        kl_div(log_likelihood, log_target, log_target=True, reduction="batchmean") + _COSINE * apart
    )


def _share(step: int, steps: int) -> float:
    """Return the fraction of the highest learning rate: a short rise, then half a cosine."""
    rise = min(1.0, (step + 1) / _WARM_UP)
    return rise * max(_LEAST, 0.5 * (1 + math.cos(math.pi * step / steps)))


def _follow(mean: TrainableVoice, network: TrainableVoice, fading: float) -> None:
    following = mean.state_dict()
    for name, value in network.state_dict().items():
        following[name].lerp_(value, 1 - fading)


if __name__ == "__main__":
    main()
