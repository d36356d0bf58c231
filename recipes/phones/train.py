"""Train the recogniser: seeded; a run that is killed goes on from its last checkpoint.

    python -m recipes.phones.train CACHE OUT --minutes 60
    python -m recipes.phones.train CACHE OUT --steps 8000 --layout units

With ``--steps`` equal seeds give equal weights; with ``--minutes`` the learning rate falls by the
time spent, so that any machine ends well. OUT gets checkpoint.pt and log.jsonl. Products are
computed in bfloat16 where ``--bfloat16`` is given: half the time on a processor that has it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from recipes.phones.batches import UNKNOWN, Batch, Batches
from recipes.phones.network import LAYOUTS, Recogniser
from recipes.phones.prepare import Spoken
from recipes.training import Training, options, trained

_RATES = 2e-3, 1e-6
_DECAY = 1e-2
_FRAMES = 0.7  # weight of the frames' loss


def arguments() -> argparse.ArgumentParser:
    """What the command takes."""
    parser = options("Train the phone network.", 60.0, "seconds of audio")
    parser.add_argument(
        "--layout", choices=LAYOUTS, default="phones", help="what it is for (default phones)"
    )
    return parser


def main() -> None:
    torch.set_num_threads(1)
    train(arguments().parse_args())


def train(given: argparse.Namespace, every_seconds: float = 60.0) -> list[float]:
    """Train, or go on training; the loss of every step made now.

    Args:
        given: by `arguments`.
        every_seconds: between checkpoints.

    Raises:
        StoreError: the checkpoint in the folder is of a training with another setting.
    """
    torch.manual_seed(given.seed)
    batches = Batches(Spoken(given.cache), given.seed, given.layout)
    network = Recogniser(given.layout)
    network.usual.copy_(torch.from_numpy(batches.usual))
    setting = {name: getattr(given, name) for name in ("seed", "batch", "layout")}
    setting |= {"utterances": batches.utterances, "aligned": batches.aligned}
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=_DECAY)

    def loss_of(step: int, _done: float) -> tuple[torch.Tensor, dict[str, float]]:
        return _loss(network, batches.at(step, given.batch), given.bfloat16), {}

    return Training(given, setting, network, optimizer, _RATES, every_seconds).run(loss_of)


def _loss(network: Recogniser, drawn: Batch, half: bool) -> torch.Tensor:
    """Connectionist temporal classification, nats a phone, and frames by name, nats a frame.

    CTC alone (Graves et al., ICML 2006) takes many hours of speech to find out what is said when;
    what is aligned teaches an earlier layer from the first step.
    """
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        layers = network.layers(torch.from_numpy(drawn.bands))
    spelled = torch.nn.functional.ctc_loss(
        torch.log_softmax(layers["logits"].float(), dim=-1).transpose(0, 1),
        torch.from_numpy(drawn.phones),
        torch.from_numpy(drawn.frames),
        torch.from_numpy(drawn.counts),
        zero_infinity=True,
    )
    if (drawn.said == UNKNOWN).all():
        return spelled
    named = torch.nn.functional.cross_entropy(
        layers["frames"].float().flatten(0, 1),
        torch.from_numpy(drawn.said).flatten(),
        ignore_index=UNKNOWN,
    )
    return spelled + _FRAMES * named


def load_recogniser(out: Path) -> Recogniser:
    """The trained network, for use.

    Raises:
        StoreError: nothing was trained there.
    """
    found = trained(out)
    network = Recogniser(found["setting"]["layout"])
    network.load_state_dict(found["network"])
    network.eval()
    return network


if __name__ == "__main__":
    main()
