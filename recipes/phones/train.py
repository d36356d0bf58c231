"""Train the recogniser: seeded; a run that is killed goes on from its last checkpoint.

    python -m recipes.phones.train CACHE OUT --minutes 60
    python -m recipes.phones.train CACHE OUT --steps 8000 --layout units

With ``--steps`` equal seeds give equal weights; with ``--minutes`` the learning rate falls by the
time spent, so that any machine ends well. OUT gets checkpoint.pt and log.jsonl. Products are
computed in bfloat16 where ``--bfloat16`` is given: half the time on a processor that has it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

from monitor.lab.adapting.training import Length, compute_rate
from recipes.phones.batches import UNKNOWN, Batch, Batches
from recipes.phones.network import LAYOUTS, Recogniser
from recipes.phones.prepare import Spoken
from recipes.training import keep, kept, length_given, length_options, log, trained

__all__ = ["load_recogniser", "train"]

_HIGHEST_RATE = 2e-3
_LOWEST_RATE = 1e-6
_DECAY = 1e-2
_FRAMES = 0.7  # weight of the frames' loss


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the phone network.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path)
    length_options(parser)
    parser.add_argument("--batch", type=float, default=60.0, help="seconds a step (default 60)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--layout", choices=LAYOUTS, default="phones", help="what it is for (default phones)"
    )
    parser.add_argument("--begin", type=Path, help="a training to begin with the weights of")
    parser.add_argument("--bfloat16", action="store_true", help="half precision in products")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    train(
        Spoken(given.cache),
        given.out,
        length_given(given),
        batch=given.batch,
        seed=given.seed,
        half=given.bfloat16,
        begin=given.begin,
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
    begin: Path | None = None,
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
        begin: the folder of another training, whose weights are the first of this.
        layout: of the network.
        every_seconds: between checkpoints.

    Returns:
        the loss of every step made now.

    Raises:
        StoreError: the checkpoint in the folder is of a training with another seed or batch.
    """
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    batches = Batches(spoken, seed, layout)
    network = Recogniser(layout) if begin is None else load_recogniser(begin).train()
    network.usual.copy_(torch.from_numpy(batches.usual))
    optimizer = torch.optim.AdamW(network.parameters(), lr=_HIGHEST_RATE, weight_decay=_DECAY)
    step, spent = 0, 0.0  # of this training
    setting = {
        "seed": seed,
        "batch": batch,
        "layout": layout,
        "utterances": batches.utterances,
        "aligned": batches.aligned,
    }
    if (before_stop := kept(out, setting)) is not None:
        network.load_state_dict(before_stop["network"])
        optimizer.load_state_dict(before_stop["optimizer"])
        step, spent = before_stop["step"], before_stop["seconds"]
    losses: list[float] = []
    told = 0
    before = written = time.monotonic()
    while (done := length.done(step, spent)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = compute_rate(done, _HIGHEST_RATE, _LOWEST_RATE)
        torch.manual_seed((seed << 32) + step)  # what is dropped, whatever came before
        loss = _loss(network, batches.at(step, batch), half)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
        now = time.monotonic()
        step, spent, before = step + 1, spent + now - before, now
        finished = length.done(step, spent) >= 1
        if finished or now - written >= every_seconds:
            written = now
            keep(
                out,
                {
                    "setting": setting,
                    "network": network.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "step": step,
                    "seconds": spent,
                },
            )
            _tell(out, step, spent, length.done(step, spent), losses[told:])
            told = len(losses)
    return losses


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


def _tell(out: Path, step: int, seconds: float, done: float, losses: list[float]) -> None:
    loss = sum(losses) / len(losses)
    log(out, {"step": step, "seconds": round(seconds, 1), "loss": round(loss, 4)})
    print(f"{done:4.0%}  step {step}  loss {loss:.3f}  {seconds / 60:.1f} min", file=sys.stderr)


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
