"""Export a trained network to its place in the package: weights for numpy, and a model card.

    python -m recipes.phones.export CACHE OUT monitor/networks/phones.npz
    python -m recipes.phones.export CACHE OUT monitor/networks/units.npz --layer early.0

The first command runs after `recipes.phones.evaluate`, and its card (phones.json) contains the
results. The second takes a training with the layout ``units``, and exports its first block with a
codebook of that block's outputs.
"""

from __future__ import annotations

from collections import Counter
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
from recipes.phones.evaluate import RESULTS, USE, trigram
from recipes.phones.network import fold_norms, layer
from recipes.phones.prepare import Spoken
from recipes.phones.train import load_recogniser
from recipes.phones.units import fit_codebook, sample_frames
from recipes.shipping import (
    ROUNDED,
    describe_weights,
    pack_weights,
    round_to_float16,
    round_weights,
    ship,
    summarise_data,
)
from recipes.stages import stage
from recipes.training import LOG

UNITS = 256
LAYER = "early.0"
"""Layer of the units: it discloses most of all that `recipes.phones.bits` measures."""


def main() -> None:
    parser = stage("Export a phone network.", "cache", "out", "target")
    parser.add_argument("--layer", choices=[LAYER], help="export units, the codes of this layer")
    given = parser.parse_args()
    torch.set_num_threads(1)
    spoken = Spoken(given.cache)
    made = (export_units if given.layer else export)(spoken, given.out, given.target)
    print(f"{given.target}: {made['bytes']} bytes, sha256 {made['sha256']}")


def export(spoken: Spoken, out: Path, target: Path) -> dict[str, Any]:
    """Write the recogniser's weights and card; return the card.

    Raises:
        StoreError: the network was not evaluated, or is too large to ship.
    """
    results, use = out / RESULTS, out / USE
    if not results.exists() or not use.exists():
        raise StoreError(f"{out}: not evaluated: run python -m recipes.phones.evaluate")
    chosen = orjson.loads(use.read_bytes())
    made = round_weights(fold_norms(load_recogniser(out)) | {"trigram": trigram(spoken)})
    made["trigram.use"] = np.array([chosen["weight"], chosen["bonus"]])
    content = pack_weights(made)
    ship(target, content, {})
    network = PhoneNetwork.load(target)
    card = {
        "name": "phones",
        "what": "streaming phone recogniser: CTC posteriors of 39 phones, 50 frames a second, and "
        "a trigram of phones",
        **_common(spoken, out, content, made),
        "precision": ROUNDED,
        "phones": list(PHONES),
        "trigram": chosen,
        "frame_seconds": network.frame_seconds,
        "look_ahead_seconds": network.look_ahead,
        "results": orjson.loads(results.read_bytes()),
        "not_for": [
            "Transcribing: it is wrong in as many phones as the results say.",
            "Telling speakers apart: monitor.networks.voice is for that.",
            "Speech in other languages: it knows the phones of English alone.",
        ],
    }
    ship(target, content, card)
    return card


def export_units(spoken: Spoken, out: Path, target: Path, units: int = UNITS) -> dict[str, Any]:
    """Write the first block, a codebook and a card; return the card.

    Raises:
        StoreError: the training has another layout than ``units``.
    """
    recogniser = load_recogniser(out)
    if recogniser.layout.centred:
        raise StoreError(f"{out}: units need a training with --layout units")
    codes = fit_codebook(sample_frames(recogniser, spoken, [LAYER])[LAYER], units)
    made = round_to_float16(layer(recogniser) | {"codebook": codes})
    content = pack_weights(made)
    network = UnitNetwork(made)
    card = {
        "name": "units",
        "what": "codes (k-means) of the first block of a phone recogniser, 50 frames a second: "
        "what the feature `phones` counts",
        **_common(spoken, out, content, made),
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
    ship(target, content, card)
    return card


def _common(
    spoken: Spoken, out: Path, content: bytes, made: Mapping[str, AnyArray]
) -> dict[str, Any]:
    """Return the entries of both cards."""
    last = orjson.loads((out / LOG).read_bytes().splitlines()[-1])
    return {
        **describe_weights(content, made),
        "bands": BANDS,
        "training": {
            "steps": last["step"],
            "minutes": round(last["seconds"] / 60, 1),
            "threads": 1,
            "data": _data(spoken),
        },
        "licence": "MIT; learnt from the corpora named here, with CMUdict's pronunciations (BSD) "
        "and, for alignments, the acoustic model of pocketsphinx (BSD)",
    }


def _data(spoken: Spoken) -> list[dict[str, Any]]:
    """Summarise the training data by corpus."""
    train = [(spoken.piece(each), each.samples / RATE) for each in spoken.of("train")]
    aligned: Counter[str] = Counter()
    for index in spoken.aligned():
        each = spoken.utterances[index]
        aligned[spoken.piece(each).corpus] += each.samples
    rows = summarise_data(train)
    for row in rows:
        row["minutes_aligned"] = round(aligned[row["corpus"]] / RATE / 60, 1)
    return rows


if __name__ == "__main__":
    main()
