"""Write the trained network where it ships: weights for numpy, and a model card beside them.

    python -m recipes.voice.export CACHE OUT... monitor/networks/voice.npz [--begun WEIGHTS.npz]
    python -m recipes.voice.export CACHE OUT monitor/networks/voice_warped.npz --as-it-is

Of several trainings that went on from one another the mean of the weights ships, with those that
the first began from if they are named: of people who trained nothing it ranks more first than any
of them does (M. Wortsman et al., 'Model soups', ICML 2022).

The last layer is turned first so that what changes within a voice counts less (within-class
covariance normalisation; A. Hatch, S. Kajarekar and A. Stolcke, Interspeech 2006): of views of the
people who trained, each view under a condition of its own, so that conditions count less as well.
``--as-it-is`` leaves that out: of people who choose, the network that a GPU trained ranks no more
first by it. The rows of `recipes.voice.world` go into the card beside the weights.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch

from monitor.adapting.adapted import turned, within
from monitor.adapting.fine_tuning import EMBEDDING, Student, folded, rounded, unfolded
from monitor.features.ecapa import HUB
from monitor.networks.layers import RATE, read_weights
from monitor.types import FloatArray
from recipes.shipping import NON_NATIVE, packed, ship
from recipes.training import trained
from recipes.voice.clips import Clips
from recipes.voice.distil import crops, student
from recipes.voice.views import BANDS, Ring

_VIEWS, _TOGETHER = 8000, 64
_FRAMES = 298
_SOURCES = (
    NON_NATIVE["speechocean762"],
    "LibriSpeech, background readers: CC BY 4.0, V. Panayotov, G. Chen, D. Povey, S. Khudanpur, "
    "ICASSP 2015",
    "Common Voice, people at their own microphones and clips of nobody known: CC0, Mozilla; nobody "
    "may try to find out who its speakers are",
)
"""By the number of the corpus in `Clips`."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Export the voice network.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path, nargs="+", help="the folder of a training")
    parser.add_argument("target", type=Path, help="the file of weights, .npz")
    parser.add_argument("--begun", type=Path, help="weights that the first training began from")
    parser.add_argument("--as-it-is", action="store_true", help="the last layer is not turned")
    parser.add_argument("--rows", type=Path, help="what recipes.voice.world measured of it")
    given = parser.parse_args()
    clips, ring = Clips(given.cache), Ring(given.cache)
    made = export(
        clips, ring, given.out, given.target, given.begun, given.rows, as_it_is=given.as_it_is
    )
    print(f"{given.target}: {made['bytes']} bytes, sha256 {made['sha256']}")


def export(
    clips: Clips,
    ring: Ring,
    out: Sequence[Path],
    target: Path,
    begun: Path | None = None,
    rows: Path | None = None,
    *,
    as_it_is: bool = False,
) -> dict[str, Any]:
    """Write weights and card; the card.

    Raises:
        StoreError: nothing was trained, or it is too large to ship.
    """
    clips.refresh()
    checkpoints = [trained(each) for each in out]
    members = [] if begun is None else [read_weights(begun)[0]]
    for each in checkpoints:
        network = student()
        network.load_state_dict(each["student"])
        members.append(folded(network.eval()))
    mean = {name: np.mean([each[name] for each in members], axis=0) for name in members[0]}
    weights = mean if as_it_is else finished(unfolded(mean), clips, ring)
    held = packed(rounded(weights))
    made: dict[str, Any] = {
        "name": target.stem,
        "what": "speaker embedding: windows of 3 s at 16 kHz, log mel bands, to unit vectors",
        "sha256": hashlib.sha256(held).hexdigest(),
        "bytes": len(held),
        "parameters": sum(each.size for each in weights.values()),
        "precision": "int8 with a float16 scale a row, computed in float32",
        "bands": BANDS,
        "rate_hz": RATE,
        "embedding": EMBEDDING,
        "teacher": HUB,
        "training": {
            "steps": [each["step"] for each in checkpoints],
            "minutes": [round(each["seconds"] / 60, 1) for each in checkpoints],
            "mean_of": len(members),
            "views": checkpoints[-1].get("views", int((ring.about[:, 0] > 0).sum())),
            "noise": "ESC-10: K. J. Piczak, ACM Multimedia 2015, CC BY 3.0",
            "data": _data(clips, own_speed_only=as_it_is),
        },
        "results": [] if rows is None else orjson.loads(rows.read_bytes()),
        "not_for": [
            "Verifying, identifying or admitting people: it measures what a voice gives away, "
            "with far more errors than a system that decides about people may make.",
            "Finding out who the speakers of Common Voice are.",
            "Comparing embeddings with those of another file of weights.",
        ],
        "licence": "MIT; learnt from the corpora named here and from the teacher (Apache 2.0)",
    }
    ship(target, held, made)
    return made


def finished(network: Student, clips: Clips, ring: Ring, seed: int = 0) -> dict[str, FloatArray]:
    """The folded weights of a trained student, its last layer turned."""
    rng = np.random.default_rng(seed)
    full = np.flatnonzero(ring.about[:, 0] > 0)
    voice = clips.voice[ring.about[full, 0] - 1]
    full, voice = full[voice >= 0], voice[voice >= 0]
    many = np.bincount(voice)[voice] > 1
    chosen = rng.permutation(np.flatnonzero(many))[:_VIEWS]
    full, voice = full[chosen], voice[chosen]
    with torch.inference_mode():
        embeddings = [
            network(torch.from_numpy(crops(ring, full[at : at + _TOGETHER], _FRAMES, rng)))
            for at in range(0, len(full), _TOGETHER)
        ]
    _, first, place = np.unique(voice, return_index=True, return_inverse=True)
    corpora = clips.corpus[ring.about[full[first], 0] - 1]
    turn, centre = within(torch.cat(embeddings).double().numpy(), place, corpora)
    return turned(folded(network), turn, centre)


def _data(clips: Clips, *, own_speed_only: bool) -> list[dict[str, Any]]:
    """What trained it, by corpus; each other speed of a voice counts as another voice."""
    found = []
    for corpus, source in enumerate(_SOURCES):
        mine = clips.corpus == corpus
        if own_speed_only:
            mine &= clips.speed == 1
        known = clips.voice[mine & (clips.voice >= 0)]
        found.append(
            {
                "source": source,
                "speakers": len(np.unique(known)),
                "clips": int(mine.sum()),
                "minutes": round(float(clips.samples[mine].sum()) / RATE / 60, 1),
            }
        )
    return found


if __name__ == "__main__":
    main()
