"""Train the codec: seeded; a run that is killed goes on from its last checkpoint.

    python -m recipes.usc.train CACHE OUT --minutes 35
    python -m recipes.usc.train CACHE OUT --minutes 6 --begin START --without reversal

With ``--steps`` equal seeds give equal weights; with ``--minutes`` the learning rate falls by the
time spent. ``--begin`` begins with the weights of another training; ``--without`` leaves out a part
of the method. OUT gets checkpoint.pt and log.jsonl.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection
from pathlib import Path

import numpy as np
import torch

from monitor.lab.adapting.training import Length, compute_rate
from monitor.networks.phones import shipped_recogniser
from monitor.networks.usc import DECODER_BANDS as FINE
from monitor.types import FloatArray
from recipes.training import keep, kept, length_given, length_options, log, trained
from recipes.usc.batches import Batches
from recipes.usc.listener import Content, Speakers
from recipes.usc.losses import PARTS, Losses
from recipes.usc.network import Codec
from recipes.usc.prepare import Cache

__all__ = ["load_losses", "train"]

_HIGHEST_RATE, _LOWEST_RATE = 2e-3, 1e-5
_DECAY = 1e-3
REVERSAL = 0.8
"""Of the guesser's gradient, turned round, beside the other losses."""
_RISE = 0.15  # share of a training in which the reversal comes to its weight
_REVIVED = 50  # steps from one look for unused codes to the next
_STILL = 0.7  # share of a training after which codes stay where they are


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the codec.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path)
    length_options(parser)
    parser.add_argument("--batch", type=int, default=24, help="stretches of 4 s a step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--without", action="append", default=[], choices=PARTS, help="leave a part out"
    )
    parser.add_argument(
        "--reversal", type=float, default=REVERSAL, help=f"its weight (default {REVERSAL})"
    )
    parser.add_argument("--begin", type=Path, help="a training to begin with the weights of")
    parser.add_argument(
        "--decoder", action="store_true", help="train the decoder alone, on the codes as they are"
    )
    parser.add_argument("--bfloat16", action="store_true", help="half precision in products")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    train(
        Cache(given.cache),
        given.out,
        length_given(given),
        batch=given.batch,
        seed=given.seed,
        without=given.without,
        reversal=given.reversal,
        begin=given.begin,
        half=given.bfloat16,
        decoder=given.decoder,
    )


def train(
    cache: Cache,
    out: Path,
    length: Length,
    *,
    batch: int = 24,
    seed: int = 1,
    without: Collection[str] = (),
    reversal: float = REVERSAL,
    begin: Path | None = None,
    half: bool = False,
    decoder: bool = False,
    every_seconds: float = 30.0,
) -> list[float]:
    """Train, or go on training, until the length is reached.

    Args:
        cache: prepared.
        out: a folder for the checkpoint and the log.
        length: of the whole training.
        batch: stretches of 4 s a step.
        seed: of the weights and of every batch.
        without: parts of the method to leave out, of `PARTS`.
        reversal: how much of the guesser's gradient comes to the codec, turned round.
        begin: the folder of another training, whose weights are the first of this.
        half: compute products in bfloat16.
        decoder: train it alone, on the codes as they are, as USC's last decoder was (section 3.1).
        every_seconds: between checkpoints.

    Returns:
        the loss of every step made now.

    Raises:
        StoreError: the checkpoint in the folder is of a training with another setting.
    """
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    batches = Batches(cache, seed)
    losses = _beginning(cache, len(batches.voices), without)
    parts = losses.parts
    earlier: list[dict[str, float]] = []
    if begin is not None:
        before = trained(begin)
        parts.load_state_dict(before["parts"])
        earlier = [*before["earlier"], {"step": before["step"], "seconds": before["seconds"]}]
    optimizer = torch.optim.AdamW(
        (losses.codec.decoder if decoder else parts).parameters(),
        lr=_HIGHEST_RATE,
        betas=(0.8, 0.99),
        weight_decay=_DECAY,
    )
    setting = {"seed": seed, "batch": batch, "without": sorted(without), "begun": begin is not None}
    setting |= {"decoder": True} if decoder else {"reversal": reversal}
    step, spent = 0, 0.0
    if (before_stop := kept(out, setting)) is not None:
        parts.load_state_dict(before_stop["parts"])
        optimizer.load_state_dict(before_stop["optimizer"])
        step, spent = before_stop["step"], before_stop["seconds"]
    rows: list[dict[str, float]] = []
    told = 0
    last = written = time.monotonic()
    parts.train(not decoder)
    losses.codec.decoder.train()
    while (done := length.done(step, spent)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = compute_rate(done, _HIGHEST_RATE, _LOWEST_RATE)
        torch.manual_seed((seed << 32) + step)  # what is drawn, whatever came before
        risen = 1.0 if begin is not None else min(1.0, done / _RISE)
        turned = 0.0 if "reversal" in without else reversal * risen
        drawn = batches.at(step, batch)
        if decoder:
            loss, parts_of = losses.decoding(drawn, half)
        else:
            if step % _REVIVED == 0 and done < _STILL:
                _revive(losses.codec, drawn.bands, drawn.centred)
            loss, parts_of = losses(drawn, turned, half)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parts.parameters(), 5.0)
        optimizer.step()
        rows.append({"loss": loss.item(), **parts_of})
        now = time.monotonic()
        step, spent, last = step + 1, spent + now - last, now
        if length.done(step, spent) >= 1 or now - written >= every_seconds:
            written = now
            keep(
                out,
                {
                    "setting": setting,
                    "earlier": earlier,
                    "parts": parts.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "voices": len(batches.voices),
                    "step": step,
                    "seconds": spent,
                },
            )
            _tell(out, step, spent, length.done(step, spent), rows[told:])
            told = len(rows)
    return [row["loss"] for row in rows]


def _beginning(cache: Cache, people: int, without: Collection[str]) -> Losses:
    """The codec before training, and those who hear along."""
    some = np.sort(np.random.default_rng(0).permutation(len(cache.parts["hidden"]))[:20_000])
    level = cache.parts["fine"][some].astype(np.float32).reshape(-1, FINE).mean(axis=0)
    hidden = torch.from_numpy(cache.parts["hidden"][some].astype(np.float32))
    codec = Codec(shipped_recogniser().usual, level)
    mean, deviation = hidden.mean(dim=0), hidden.std(dim=0).clamp_min(1e-3)
    content = Content(mean, deviation, codec.books.ins[0].in_features)
    return Losses(codec, Speakers(people), content, without)


def _revive(codec: Codec, bands: FloatArray, centred: FloatArray) -> None:
    codec.eval()
    with torch.no_grad():
        codec.books.revive(codec.encode(torch.from_numpy(bands), torch.from_numpy(centred)))
    codec.train()


def _tell(out: Path, step: int, seconds: float, done: float, rows: list[dict[str, float]]) -> None:
    means = {name: round(sum(row[name] for row in rows) / len(rows), 4) for name in rows[0]}
    log(out, {"step": step, "seconds": round(seconds, 1), **means})
    said = "  ".join(f"{name} {mean:.3f}" for name, mean in means.items())
    print(f"{done:4.0%}  step {step}  {said}  {seconds / 60:.1f} min", file=sys.stderr)


def load_losses(cache: Cache, out: Path) -> Losses:
    """The trained codec and those who heard along, for use.

    Raises:
        StoreError: nothing was trained there.
    """
    found = trained(out)
    losses = _beginning(cache, found["voices"], found["setting"]["without"])
    losses.parts.load_state_dict(found["parts"])
    losses.parts.eval()
    return losses


if __name__ == "__main__":
    main()
