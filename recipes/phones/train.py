"""Seeded training of the recogniser, which resumes from its last checkpoint.

    python -m recipes.phones.train CACHE OUT --minutes 60
    python -m recipes.phones.train CACHE OUT --steps 8000 --layout units

With ``--steps`` equal seeds give equal weights. With ``--minutes`` the learning rate falls with the
time spent, so that it reaches its minimum at any speed. OUT gets checkpoint.pt and log.jsonl.
``--bfloat16`` computes products in bfloat16: half the time on a processor that supports it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from recipes.phones.batches import UNKNOWN, Batch, Batches
from recipes.phones.network import LAYOUTS, Recogniser
from recipes.phones.prepare import Spoken
from recipes.training import Training, load_checkpoint, options

_RATES = 2e-3, 1e-6
_DECAY = 1e-2
_FRAMES = 0.7  # weight of the loss of frames


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = options("Train the phone network.", 60.0, "seconds of audio")
    parser.add_argument(
        "--layout", choices=LAYOUTS, default="phones", help="layout of the network (default phones)"
    )
    return parser


def main() -> None:
    torch.set_num_threads(1)
    train(arguments().parse_args())


def train(given: argparse.Namespace, every_seconds: float = 60.0) -> list[float]:
    """Train or resume, and return the loss of each step of this run.

    Args:
        given: options by `arguments`.
        every_seconds: seconds between checkpoints.

    Raises:
        StoreError: the folder has a checkpoint with other settings.
    """
    torch.manual_seed(given.seed)
    batches = Batches(Spoken(given.cache), given.seed, given.layout)
    network = Recogniser(given.layout)
    network.usual.copy_(torch.from_numpy(batches.usual))
    setting = {name: getattr(given, name) for name in ("seed", "batch", "layout")}
    setting |= {"utterances": batches.utterances, "aligned": batches.aligned}
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=_DECAY)

    def loss_of(step: int, _done: float) -> tuple[torch.Tensor, dict[str, float]]:
        return _loss(network, batches.create_batch(step, given.batch), given.bfloat16), {}

    return Training(given, setting, network, optimizer, _RATES, every_seconds).run(loss_of)


def _loss(network: Recogniser, batch: Batch, half: bool) -> torch.Tensor:
    """Return the CTC loss, nats per phone, plus the weighted loss of frames, nats per frame.

    CTC alone (Graves et al., ICML 2006) needs many hours of speech to learn when phones occur.
    Alignments train an earlier layer from the first step.
    """
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        layers = network.layers(torch.from_numpy(batch.bands))
    spelled = torch.nn.functional.ctc_loss(
        torch.log_softmax(layers["logits"].float(), dim=-1).transpose(0, 1),
        torch.from_numpy(batch.phones),
        torch.from_numpy(batch.frames),
        torch.from_numpy(batch.counts),
        zero_infinity=True,
    )
    if (batch.frame_classes == UNKNOWN).all():
        return spelled
    named = torch.nn.functional.cross_entropy(
        layers["frames"].float().flatten(0, 1),
        torch.from_numpy(batch.frame_classes).flatten(),
        ignore_index=UNKNOWN,
    )
    return spelled + _FRAMES * named


def load_recogniser(out: Path) -> Recogniser:
    """Return the trained network in evaluation mode.

    Raises:
        StoreError: the folder has no checkpoint.
    """
    found = load_checkpoint(out)
    network = Recogniser(found["setting"]["layout"])
    network.load_state_dict(found["network"])
    network.eval()
    return network


if __name__ == "__main__":
    main()
