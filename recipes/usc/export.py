"""Export the trained codec to its place in the package: weights for numpy, and a model card.

    python -m recipes.usc.export CACHE OUT monitor/networks/usc.npz

Run `recipes.usc.evaluate` first: the card (usc.json) contains its results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch

from monitor.errors import StoreError
from monitor.networks.layers import BANDS, RATE, restored
from monitor.networks.phones import SHA256 as TEACHER
from monitor.networks.usc import DECODER_BANDS as FINE
from monitor.networks.usc import UscNetwork
from recipes.shipping import (
    ROUNDED,
    describe_weights,
    pack_weights,
    round_weights,
    ship,
    summarise_data,
)
from recipes.stages import stage
from recipes.training import load_checkpoint
from recipes.usc.evaluate import RESULTS
from recipes.usc.losses import EPSILON, PARTS
from recipes.usc.network import fold_norms
from recipes.usc.prepare import FRAME, Cache
from recipes.usc.train import load_losses


def main() -> None:
    given = stage("Export the codec.", "cache", "out", "target").parse_args()
    torch.set_num_threads(1)
    made = export(Cache(given.cache), given.out, given.target)
    print(f"{given.target}: {made['bytes']} bytes, sha256 {made['sha256']}")


def export(cache: Cache, out: Path, target: Path) -> dict[str, Any]:
    """Write weights and card; return the card.

    Raises:
        StoreError: the codec was not evaluated, or is too large to ship.
    """
    results = out / RESULTS
    if not results.exists():
        raise StoreError(f"{out}: not evaluated: run python -m recipes.usc.evaluate")
    weights = round_weights(fold_norms(load_losses(cache, out).codec))
    content = pack_weights(weights)
    network, found = UscNetwork(restored(weights)), load_checkpoint(out)
    without = found["setting"]["without"]
    made: dict[str, Any] = {
        "name": "usc",
        "what": "speech codec of six residual codebooks, the first of which is taught content and "
        "not the speaker: 16 kHz to 25 latents a second, and back to log mel spectra",
        **describe_weights(content, weights),
        "precision": ROUNDED,
        "bands": {"heard": BANDS, "said": FINE},
        "frame_seconds": network.frame_seconds,
        "look_ahead_seconds": round(network.look_ahead, 4),
        "books": len(network.books),
        "codes": network.books.size,
        "bits_per_second": {
            "c0": round(np.log2(network.books.size) * RATE / FRAME),
            "all": round(len(network.books) * np.log2(network.books.size) * RATE / FRAME),
        },
        "clip": round(network.books.clip, 4),
        "teacher": f"the deepest layer of phones.npz (sha256 {TEACHER})",
        "training": {
            "parts": [part for part in PARTS if part not in without],
            "epsilon": None if "noise" in without else EPSILON,
            "one_after_the_other": [
                {"steps": each["step"], "minutes": round(each["seconds"] / 60, 1)}
                for each in (*found["earlier"], found)
            ],
            "threads": 1,
            "data": summarise_data(
                (each, each.length * FRAME / RATE) for each in cache.of("train")
            ),
        },
        "results": orjson.loads(results.read_bytes()),
        "not_for": [
            "Hiding who speaks from somebody who tries: docs/anonymisers.md says what each "
            "attacker learns from what it makes.",
            "Sending speech as it sounded: with all its codebooks it is a rough codec.",
            "Speech in other languages than English, music, several people at once: not measured.",
            "Comparing codes with those of another file of weights.",
        ],
        "licence": "MIT; learnt from the corpora named here and from the recogniser of this "
        "package",
    }
    ship(target, content, made)
    return made


if __name__ == "__main__":
    main()
