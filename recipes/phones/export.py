"""Write a trained network where it ships: weights for numpy, and a model card beside them.

    python -m recipes.phones.export CACHE OUT monitor/networks/phones.npz
    python -m recipes.phones.export CACHE OUT monitor/networks/units.npz --layer early.0

The first after `recipes.phones.evaluate`, whose results go into the card (phones.json); the second
of a training of the layout ``units``: its first block, and codes of what that says.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch

from monitor.errors import StoreError
from monitor.networks.layers import BANDS, RATE
from monitor.networks.phones import PHONES, PhoneNetwork, UnitNetwork
from monitor.types import AnyArray
from recipes.phones.codebook import codebook, heard
from recipes.phones.evaluate import RESULTS, USE
from recipes.phones.network import folded, layer
from recipes.phones.prepare import Spoken
from recipes.phones.train import load_recogniser
from recipes.phones.trigram import trigram
from recipes.shipping import NON_NATIVE, int8, packed, ship
from recipes.training import LOG

UNITS = 256
LAYER = "early.0"
"""Whose codes the units are: what discloses most of all that `recipes.phones.bits` measures."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Export a phone network.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path, help="the folder of a training")
    parser.add_argument("target", type=Path, help="the file of weights, .npz")
    parser.add_argument("--layer", choices=[LAYER], help="export units: codes of this layer")
    given = parser.parse_args()
    torch.set_num_threads(1)
    spoken = Spoken(given.cache)
    made = (export_units if given.layer else export)(spoken, given.out, given.target)
    print(f"{given.target}: {made['bytes']} bytes, sha256 {made['sha256']}")


def export(spoken: Spoken, out: Path, target: Path) -> dict[str, Any]:
    """Write the recogniser's weights and card; the card.

    Raises:
        StoreError: it was not evaluated, or is too large to ship.
    """
    results, use = out / RESULTS, out / USE
    if not results.exists() or not use.exists():
        raise StoreError(f"{out}: not evaluated: python -m recipes.phones.evaluate")
    chosen = orjson.loads(use.read_bytes())
    made = int8(folded(load_recogniser(out)) | {"trigram": trigram(spoken)})
    made = {name: _half(each) for name, each in made.items()}
    made["trigram.use"] = np.array([chosen["weight"], chosen["bonus"]])
    held = packed(made)
    ship(target, held, {})
    network = PhoneNetwork.load(target)
    card = {
        "name": "phones",
        "what": "streaming phone recogniser: CTC posteriors of 39 phones, 50 frames a second, and "
        "a trigram of phones",
        **_common(spoken, out, held, made),
        "precision": "matrices int8 with a float16 scale a row, the rest float16; computed in "
        "float32",
        "phones": list(PHONES),
        "trigram": chosen,
        "frame_seconds": network.frame_seconds,
        "look_ahead_seconds": network.look_ahead,
        "results": orjson.loads(results.read_bytes()),
        "not_for": [
            "Transcribing: it is wrong in as many phones as the results say.",
            "Telling speakers apart: monitor.networks.phones is for that.",
            "Speech in other languages: it knows the phones of English alone.",
        ],
    }
    ship(target, held, card)
    return card


def export_units(spoken: Spoken, out: Path, target: Path, units: int = UNITS) -> dict[str, Any]:
    """Write the first block, a codebook and a card; the card.

    Raises:
        StoreError: the training is of another layout than units'.
    """
    trained = load_recogniser(out)
    if trained.layout.centred:
        raise StoreError(f"{out}: units come from a training with --layout units")
    codes = codebook(heard(trained, spoken, [LAYER])[LAYER], units)
    made = {name: _half(each) for name, each in (layer(trained) | {"codebook": codes}).items()}
    held = packed(made)
    network = UnitNetwork(made)
    card = {
        "name": "units",
        "what": "codes (k-means) of the first block of a phone recogniser, 50 frames a second: "
        "what the feature `phones` counts",
        **_common(spoken, out, held, made),
        "precision": "float16, computed in float32",
        "layer": LAYER,
        "units": network.size,
        "frame_seconds": network.frame_seconds,
        "look_ahead_seconds": network.look_ahead,
        "not_for": [
            "Knowing what was said: monitor.networks.phones says that.",
            "Comparing units with those of another file of weights.",
            "Speech in other languages: units are given, what they disclose was hardly measured.",
        ],
    }
    ship(target, held, card)
    return card


def _half(each: AnyArray) -> AnyArray:
    return each.astype(np.float16) if each.dtype.kind == "f" else each


def _common(spoken: Spoken, out: Path, held: bytes, made: Mapping[str, AnyArray]) -> dict[str, Any]:
    """What every card says."""
    last = orjson.loads((out / LOG).read_bytes().splitlines()[-1])
    aside = ("reach", ".scale", ".use")
    return {
        "sha256": hashlib.sha256(held).hexdigest(),
        "bytes": len(held),
        "parameters": sum(each.size for name, each in made.items() if not name.endswith(aside)),
        "bands": BANDS,
        "rate_hz": RATE,
        "training": {
            "steps": last["step"],
            "minutes": round(last["seconds"] / 60, 1),
            "threads": 1,
            "data": _data(spoken),
        },
        "licence": "MIT; learnt from the corpora named here, with CMUdict's pronunciations (BSD) "
        "and, for alignments, the acoustic model of pocketsphinx (BSD)",
    }


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
