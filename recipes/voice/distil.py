"""Train the student on views: under any condition it is to say what the teacher says of the clip.

    python -m recipes.voice.distil CACHE OUT --minutes 100 [--begin WEIGHTS.npz|TRAINING]

Every view of a clip has the same target: the teacher's embedding of the clean clip (where the
speaker is known, halfway to the mean of all of hers), less what its corpus has in common. The loss
is the cosine to it, where it lies among anchors (relational distillation; W. Park et al., CVPR
2019), and the similarities within the batch. ``--begin`` trains a network that ships further, or
one of another folder, by a schedule of its own. A run that is stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from monitor.adapting.adapted import Length, rate
from monitor.adapting.fine_tuning import Student, masked, unfolded
from monitor.networks.layers import read_weights
from monitor.types import AnyArray, FloatArray
from recipes.training import (
    CHECKPOINT,
    keep,
    length_given,
    length_options,
    log,
    trained,
)
from recipes.voice.clips import Clips
from recipes.voice.views import BANDS, Ring

CHANNELS, WIDE, BLOCKS = 512, 1024, 6
_HIGHEST, _LOWEST, _DECAY = 4e-4, 1e-5, 1e-4
_ANCHORS, _SCALE = 4096, 15.0
_FRAMES = (148, 298)
"""Of a crop: 1.5 or 3 s; a step is of one length, for each of which it is compiled."""
_WARM = 100


def student() -> Student:
    """The network that is trained."""
    return Student(bands=BANDS, channels=CHANNELS, wide=WIDE, blocks=BLOCKS)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the voice network on views.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path)
    length_options(parser)
    parser.add_argument("--clips", type=int, default=32, help="a step, two views of each")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--begin", type=Path, help="weights, or another training, to begin with")
    parser.add_argument(
        "--compile", action="store_true", help="half the time a step; wants a C++ compiler"
    )
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    train(
        Clips(given.cache),
        Ring(given.cache),
        given.out,
        length_given(given),
        given.clips,
        given.begin,
        given.compile,
    )


class Targets:
    """What each clip is to be embedded as: shape (n, 192), and which clips have one."""

    def __init__(self, clips: Clips) -> None:
        clips.refresh()
        said = clips.teacher / np.linalg.norm(clips.teacher, axis=1, keepdims=True)
        corpus, voice = clips.corpus[clips.known], clips.voice[clips.known]
        for each in np.unique(corpus):
            said[corpus == each] -= said[corpus == each].mean(axis=0)
        said /= np.linalg.norm(said, axis=1, keepdims=True)
        for each in np.unique(voice[voice >= 0]):
            own = voice == each
            mean = said[own].mean(axis=0)
            said[own] = 0.5 * said[own] + 0.5 * mean / np.linalg.norm(mean)
        said /= np.linalg.norm(said, axis=1, keepdims=True)
        self.of = np.zeros((len(clips.start), said.shape[1]), np.float32)
        self.of[clips.known] = said
        self.known = clips.known


def train(
    clips: Clips,
    ring: Ring,
    out: Path,
    length: Length,
    together: int,
    begin: Path | None,
    compiled: bool = False,
) -> list[float]:
    """Train, or go on training, until the length is reached; the loss of every step made now."""
    torch.manual_seed(1)
    network, step, spent = student(), 0, 0.0
    optimizer = torch.optim.AdamW(network.parameters(), lr=_HIGHEST, weight_decay=_DECAY)
    rng = np.random.default_rng(int(time.time()))
    origin = out if (out / CHECKPOINT).exists() else begin
    if origin is not None and origin.is_dir():
        before = trained(origin)
        network.load_state_dict(before["student"])
        optimizer.load_state_dict(before["optimizer"])
        if origin == out:
            step, spent = before["step"], before["seconds"]
    elif begin is not None:
        network.load_state_dict(unfolded(read_weights(begin)[0]).state_dict())
        calibrated(network, torch.from_numpy(crops(ring, pairs(ring, 32, rng), 298, rng)))
    targets, refreshed = Targets(clips), time.monotonic()
    losses: list[float] = []
    shown: list[tuple[float, float]] = []
    now = written = time.monotonic()
    network.train()
    run = torch.compile(network, dynamic=False) if compiled else network
    while (done := length.done(step, spent)) < 1:
        if time.monotonic() - refreshed > 300 and len(targets.known) < len(clips.order):
            targets, refreshed = Targets(clips), time.monotonic()
        for group in optimizer.param_groups:
            group["lr"] = rate(done, _HIGHEST, _LOWEST) * min(1, (step + 1) / _WARM)
        slots = pairs(ring, together, rng)
        clip = ring.about[slots, 0] - 1
        meant = torch.from_numpy(targets.of[clip])
        frames = int(rng.choice(_FRAMES))
        drawn = masked(crops(ring, slots, frames, rng), rng)
        with torch.autocast("cpu", torch.bfloat16):
            found = run(torch.from_numpy(drawn))
        some = rng.choice(targets.known, min(_ANCHORS, len(targets.known)), replace=False)
        total, alike = loss(
            nn.functional.normalize(found.float()), meant, torch.from_numpy(targets.of[some])
        )
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        losses.append(total.item())
        shown.append((losses[-1], alike.item()))
        spent, now, step = spent + time.monotonic() - now, time.monotonic(), step + 1
        if now - written > 60 or length.done(step, spent) >= 1:
            written = now
            keep(
                out,
                {
                    "student": network.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "step": step,
                    "seconds": spent,
                },
            )
            means = [round(float(each), 4) for each in np.mean(shown, axis=0)]
            log(out, {"step": step, "seconds": round(spent), "loss": means[0], "like": means[1]})
            print(f"{spent / 60:.0f} min, step {step}, {means}", file=sys.stderr, flush=True)
            shown.clear()
    return losses


def pairs(ring: Ring, count: int, rng: np.random.Generator) -> AnyArray:
    """Slots of the two views of so many clips, one after the other."""
    full = int((ring.about[:, 0] > 0).sum()) // 2
    while full < count:
        time.sleep(5)
        full = int((ring.about[:, 0] > 0).sum()) // 2
    first = 2 * rng.choice(full, count, replace=False)
    return np.asarray(np.stack([first, first + 1], axis=1).ravel())


def crops(ring: Ring, slots: AnyArray, frames: int, rng: np.random.Generator) -> FloatArray:
    """A stretch of each view; what is too short is repeated."""
    made = np.empty((len(slots), frames, BANDS), np.float32)
    for row, slot in enumerate(slots):
        long = int(ring.about[slot, 1])
        start = rng.integers(max(1, long - frames + 1))
        made[row] = np.resize(ring.bands[slot, start : min(long, start + frames)], made[row].shape)
    return made


def loss(found: Tensor, meant: Tensor, anchors: Tensor) -> tuple[Tensor, Tensor]:
    """How far from the teacher, and the mean cosine to it."""
    alike = (found * meant).sum(dim=1).mean()
    among = nn.functional.kl_div(
        torch.log_softmax(_SCALE * found @ anchors.T, dim=1),
        torch.log_softmax(_SCALE * meant @ anchors.T, dim=1),
        log_target=True,
        reduction="batchmean",
    )
    within = ((found @ found.T - meant @ meant.T) ** 2).mean()
    return among + 10 * (1 - alike) + 20 * within, alike.detach()


def calibrated(network: Student, bands: Tensor) -> None:
    """Batch norms that normalise, of a network whose norms had been folded away: the same outputs.

    Layer by layer: each norm gets the mean and the variance of what comes to it, and gives them
    back by its weight and bias.
    """

    def before(norm: nn.Module, given: tuple[Tensor, ...]) -> None:
        if isinstance(norm, (nn.BatchNorm1d, nn.BatchNorm2d)):
            x = given[0]
            axes = [axis for axis in range(x.dim()) if axis != 1]
            mean, variance = x.mean(axes), x.var(axes, unbiased=False)
            norm.running_mean.copy_(mean)
            norm.running_var.copy_(variance)
            norm.weight.copy_((variance + norm.eps).sqrt())
            norm.bias.add_(mean)

    hooks = [each.register_forward_pre_hook(before) for each in network.modules()]
    network.eval()
    with torch.no_grad():
        network(bands)
    for hook in hooks:
        hook.remove()


if __name__ == "__main__":
    main()
