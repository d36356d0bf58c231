"""Write the trained network where it ships: weights for numpy, and a model card beside them.

    python -m recipes.phones.export CACHE OUT monitor/networks/phones.npz --layer up

After `recipes.phones.evaluate`, whose results go into the card (phones.json).
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch

from monitor.errors import StoreError
from monitor.networks.mel import BANDS, RATE
from monitor.networks.phones import PHONES, PhoneNetwork
from monitor.types import AnyArray
from recipes.phones.codebook import codebook, heard
from recipes.phones.evaluate import RESULTS
from recipes.phones.network import LAYERS, Recogniser, rounded
from recipes.phones.prepare import Spoken
from recipes.phones.train import load_recogniser
from recipes.shipping import NON_NATIVE, packed, ship
from recipes.training import LOG

UNITS = 256


def main() -> None:
    parser = argparse.ArgumentParser(description="Export the phone network.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path, help="the folder of a training")
    parser.add_argument("target", type=Path, help="the file of weights, .npz")
    parser.add_argument("--layer", choices=LAYERS, default="up", help="whose codes the units are")
    parser.add_argument("--begin", type=Path, help="the training that this one began with")
    parser.add_argument("--units", type=int, default=UNITS, help=f"(default {UNITS})")
    given = parser.parse_args()
    torch.set_num_threads(1)
    spoken = Spoken(given.cache)
    made = export(spoken, given.out, given.target, given.layer, given.units, given.begin)
    print(f"{given.target}: {made['bytes']} bytes, sha256 {made['sha256']}")


def weights(
    network: Recogniser, spoken: Spoken, layer: str, units: int = UNITS
) -> dict[str, AnyArray]:
    """All that ships, the codebook included."""
    codes = codebook(heard(network, spoken, [layer])[layer], units)
    return rounded(network) | {f"codebook.{layer}": codes.astype(np.float16)}


def export(
    spoken: Spoken,
    out: Path,
    target: Path,
    layer: str,
    units: int = UNITS,
    begin: Path | None = None,
) -> dict[str, Any]:
    """Write weights and card; the card.

    Raises:
        StoreError: it was not evaluated, or is too large to ship.
    """
    results = out / RESULTS
    if not results.exists():
        raise StoreError(f"{out}: not evaluated: python -m recipes.phones.evaluate")
    made = weights(load_recogniser(out), spoken, layer, units)
    held = packed(made)
    network = PhoneNetwork(made, hashlib.sha256(held).hexdigest())
    logs = [
        orjson.loads((each / LOG).read_bytes().splitlines()[-1]) for each in (begin, out) if each
    ]
    card: dict[str, Any] = {
        "name": "phones",
        "what": "streaming phone recogniser: CTC posteriors of 39 phones, and codes of a hidden "
        "layer (units), 50 frames a second",
        "sha256": network.sha256,
        "bytes": len(held),
        "parameters": sum(each.size for name, each in made.items() if not name.endswith("reach")),
        "precision": "float16, computed in float32",
        "bands": BANDS,
        "rate_hz": RATE,
        "phones": list(PHONES),
        "layer": layer,
        "units": units,
        "frame_seconds": network.frame_seconds,
        "look_ahead_seconds": network.look_ahead,
        "training": {
            "steps": [last["step"] for last in logs],
            "minutes": [round(last["seconds"] / 60, 1) for last in logs],
            "threads": 1,
            "data": _data(spoken),
        },
        "results": orjson.loads(results.read_bytes()),
        "not_for": [
            "Transcribing: it is wrong in as many phones as the results say.",
            "Comparing units with those of another file of weights.",
            "Speech in other languages: units are given, what they disclose was hardly measured.",
        ],
        "licence": "MIT; learnt from the corpora named here, with CMUdict's pronunciations (BSD) "
        "and, for alignments, the acoustic model of pocketsphinx (BSD)",
    }
    ship(target, held, card)
    return card


_CORPORA = {
    "train-clean-5": "LibriSpeech: CC BY 4.0, V. Panayotov, G. Chen, D. Povey, S. Khudanpur, "
    "ICASSP 2015",
    **NON_NATIVE,
}


def _data(spoken: Spoken) -> list[dict[str, Any]]:
    """What trained it."""
    aligned, made = spoken.aligned(), []
    train = [
        (spoken.piece(each), each.samples, i in aligned)
        for i, each in enumerate(spoken.utterances)
        if spoken.piece(each).role == "train"
    ]
    for corpus in sorted({piece.corpus for piece, _, _ in train}):
        own = [each for each in train if each[0].corpus == corpus]
        people = {piece.voice: piece.gender for piece, _, _ in own}
        made.append(
            {
                "corpus": corpus,
                "source": _CORPORA.get(corpus, corpus),
                "speakers": {g: list(people.values()).count(g) for g in sorted({*people.values()})},
                "minutes": round(sum(samples for _, samples, _ in own) / RATE / 60, 1),
                "minutes_aligned": round(
                    sum(samples for _, samples, timed in own if timed) / RATE / 60, 1
                ),
            }
        )
    return made


if __name__ == "__main__":
    main()
