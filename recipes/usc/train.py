"""Seeded training of the codec, which resumes from its last checkpoint.

    python -m recipes.usc.train CACHE OUT --minutes 35
    python -m recipes.usc.train CACHE OUT --minutes 6 --begin START --without reversal

With ``--steps`` equal seeds give equal weights. With ``--minutes`` the learning rate falls with the
time spent. ``--begin`` starts from the weights of another training. ``--without`` disables a part
of the method. OUT gets checkpoint.pt and log.jsonl.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import torch

from monitor.networks.phones import shipped_recogniser
from monitor.networks.usc import DECODER_BANDS as FINE
from monitor.types import FloatArray
from recipes.training import Training, load_checkpoint, options
from recipes.usc.batches import Batches
from recipes.usc.losses import PARTS, Content, Losses, Speakers
from recipes.usc.network import Codec
from recipes.usc.prepare import Cache

_RATES = 2e-3, 1e-5
_DECAY = 1e-3
REVERSAL = 0.8
"""Weight of the speaker classifier's reversed gradient relative to the other losses."""
_RISE = 0.15  # fraction of a training over which the reversal rises to its weight
_REVIVED = 50  # steps between replacements of unused codes
_STILL = 0.7  # fraction of a training after which unused codes are not replaced


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = options("Train the codec.", 24, "segments of 4 s")
    parser.add_argument(
        "--without", action="append", default=[], choices=PARTS, help="part to disable; repeatable"
    )
    parser.add_argument(
        "--reversal", type=float, default=REVERSAL, help=f"reversal weight (default {REVERSAL})"
    )
    parser.add_argument("--begin", type=Path, help="start from the weights of this training")
    parser.add_argument(
        "--decoder", action="store_true", help="train only the decoder, on fixed codes"
    )
    return parser


def main() -> None:
    torch.set_num_threads(1)
    train(arguments().parse_args())


def train(given: argparse.Namespace, every_seconds: float = 30.0) -> list[float]:
    """Train or resume, and return the loss of each step of this run.

    ``--decoder`` trains only the decoder, on fixed codes, as USC's last one was (section 3.1).

    Args:
        given: options by `arguments`.
        every_seconds: seconds between checkpoints.

    Raises:
        StoreError: the folder has a checkpoint with other settings.
    """
    torch.manual_seed(given.seed)
    cache = Cache(given.cache)
    batches = Batches(cache, given.seed)
    losses = _beginning(cache, len(batches.voices), given.without)
    parts, begun = losses.parts, given.begin is not None
    more: dict[str, Any] = {"earlier": [], "voices": len(batches.voices)}
    if begun:
        before = load_checkpoint(given.begin)
        parts.load_state_dict(before["network"])
        last = {"step": before["step"], "seconds": before["seconds"]}
        more["earlier"] = [*before["earlier"], last]
    setting = {"seed": given.seed, "batch": given.batch, "begun": begun}
    setting |= {"without": sorted(given.without)}
    setting |= {"decoder": True} if given.decoder else {"reversal": given.reversal}
    learning = (losses.codec.decoder if given.decoder else parts).parameters()
    optimizer = torch.optim.AdamW(learning, betas=(0.8, 0.99), weight_decay=_DECAY)
    parts.train(not given.decoder)
    losses.codec.decoder.train()

    def loss_of(step: int, done: float) -> tuple[torch.Tensor, dict[str, float]]:
        batch = batches.create_batch(step, given.batch)
        if given.decoder:
            return losses.decoding(batch, given.bfloat16)
        if step % _REVIVED == 0 and done < _STILL:
            _revive(losses.codec, batch.bands, batch.centred)
        risen = 1.0 if begun else min(1.0, done / _RISE)
        turned = 0.0 if "reversal" in given.without else given.reversal * risen
        return losses(batch, turned, given.bfloat16)

    return Training(given, setting, parts, optimizer, _RATES, every_seconds, more).run(loss_of)


def _beginning(cache: Cache, people: int, without: Collection[str]) -> Losses:
    """Return the untrained codec with its auxiliary networks."""
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


def load_losses(cache: Cache, out: Path) -> Losses:
    """Return the trained codec with its auxiliary networks, in evaluation mode.

    Raises:
        StoreError: the folder has no checkpoint.
    """
    found = load_checkpoint(out)
    losses = _beginning(cache, found["voices"], found["setting"]["without"])
    losses.parts.load_state_dict(found["network"])
    losses.parts.eval()
    return losses


if __name__ == "__main__":
    main()
