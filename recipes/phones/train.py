"""Train the recogniser: seeded; a run that is killed goes on from its last checkpoint.

    python -m recipes.phones.train CACHE OUT --minutes 60
    python -m recipes.phones.train CACHE OUT --steps 8000 --layout units

With ``--steps`` equal seeds give equal weights; with ``--minutes`` the learning rate falls by the
time spent, so that any machine ends well. OUT gets checkpoint.pt and log.jsonl. Products are
computed in bfloat16 where ``--bfloat16`` is given: half the time on a processor that has it.
"""

from __future__ import annotations

from pathlib import Path

import torch

from monitor.lab.adapting.training import Length
from recipes.phones.batches import UNKNOWN, Batch, Batches
from recipes.phones.network import LAYOUTS, Recogniser
from recipes.phones.prepare import Spoken
from recipes.training import Training, length_given, options, trained

__all__ = ["load_recogniser", "train"]

_RATES = 2e-3, 1e-6
_DECAY = 1e-2
_FRAMES = 0.7  # weight of the frames' loss


def main() -> None:
    parser = options("Train the phone network.", 60.0, "seconds")
    parser.add_argument(
        "--layout", choices=LAYOUTS, default="phones", help="what it is for (default phones)"
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    train(
        Spoken(given.cache),
        given.out,
        length_given(given),
        batch=given.batch,
        seed=given.seed,
        half=given.bfloat16,
        layout=given.layout,
    )


def train(
    spoken: Spoken,
    out: Path,
    length: Length,
    *,
    batch: float = 60.0,
    seed: int = 1,
    half: bool = False,
    layout: str = "phones",
    every_seconds: float = 60.0,
) -> list[float]:
    """Train, or go on training, until the length is reached.

    Args:
        spoken: prepared.
        out: a folder for the checkpoint and the log.
        length: of the whole training.
        batch: seconds of audio a step.
        seed: of the weights and of every batch.
        half: compute products in bfloat16.
        layout: of the network.
        every_seconds: between checkpoints.

    Returns:
        the loss of every step made now.

    Raises:
        StoreError: the checkpoint in the folder is of a training with another setting.
    """
    torch.manual_seed(seed)
    batches = Batches(spoken, seed, layout)
    network = Recogniser(layout)
    network.usual.copy_(torch.from_numpy(batches.usual))
    setting = {
        "seed": seed,
        "batch": batch,
        "layout": layout,
        "utterances": batches.utterances,
        "aligned": batches.aligned,
    }
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=_DECAY)
    training = Training(out, length, setting, network, optimizer, _RATES, every_seconds)
    return training.run(lambda step, _: (_loss(network, batches.at(step, batch), half), {}))


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
