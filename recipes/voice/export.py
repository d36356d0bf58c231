"""Export the trained network to its place in the package: weights for numpy, and a model card.

    python -m recipes.voice.export CACHE NOISE BEGUN.npz OUT MORE monitor/networks/voice.npz

The shipped weights are a weighted mean of the first factors and of the last training's weights. The
card describes the trainings, each of which started from the previous one's weights, and contains
the rows of `recipes.voice.world` (``--rows``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson

from monitor.networks.layers import restored
from monitor.networks.voice import BANDS, VoiceNetwork
from monitor.types import AnyArray, FloatArray
from recipes.shipping import SOURCES, describe_weights, pack_weights, quantise_matrices, ship
from recipes.stages import stage
from recipes.training import load_checkpoint
from recipes.voice.clips import Clips
from recipes.voice.teacher import NAME, SHA256
from recipes.voice.train import BATCH, WEIGHTS
from recipes.voice.windows import WINDOW, Windows

_LISTENED = 400
_BEGUN = 0.25  # weight of the first factors, which are closer to the teacher on clean speech
_SOURCES = (
    SOURCES["speechocean762"],
    SOURCES["background"],
    "Common Voice, people at their own microphones and clips of nobody known: CC0, Mozilla; nobody "
    "may try to find out who its speakers are",
)
"""Sources by number of the corpus in `Clips`."""


def main() -> None:
    parser = stage("Export the voice network.", "cache", "noise", "begun")
    parser.add_argument("outs", nargs="+", type=Path, help="folders of the trainings, in order")
    parser.add_argument("target", type=Path, help="the file of weights, .npz")
    parser.add_argument("--rows", type=Path, help="results of recipes.voice.world")
    given = parser.parse_args()
    clips = Clips(given.cache)
    with np.load(given.begun) as begun, np.load(given.outs[-1] / WEIGHTS) as learnt:
        weights = small(between(dict(begun), dict(learnt)), Windows(clips, given.noise, 0))
    content = pack_weights(weights)
    card = _card(content, weights, clips, [load_checkpoint(out) for out in given.outs])
    card["results"] = [] if given.rows is None else orjson.loads(given.rows.read_bytes())
    ship(given.target, content, card)
    print(f"{given.target}: {card['bytes']} bytes, sha256 {card['sha256']}")


def between(begun: dict[str, FloatArray], learnt: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Average the weights before and after training (Wortsman et al., CVPR 2022)."""
    return {
        name: np.asarray(_BEGUN * begun[name] + (1 - _BEGUN) * learnt[name], np.float32)
        for name in learnt
    }


def small(weights: dict[str, FloatArray], windows: Windows) -> dict[str, AnyArray]:
    """Round matrices to 8 bits, and scale attention to a geometric mean of 1 over windows."""
    halves = {name: each.astype(np.float16 if each.ndim else np.float32)
              for name, each in weights.items()}  # fmt: skip
    made = quantise_matrices(halves)
    network = VoiceNetwork(restored(made))
    sounds = np.stack([windows.clean(clip) for clip in range(min(_LISTENED, len(windows)))])
    norms = np.linalg.norm(network.embed(sounds), axis=1)
    made["attention"] = np.asarray(np.exp(np.log(norms).mean()), np.float32)
    return made


def _card(
    content: bytes, weights: dict[str, AnyArray], clips: Clips, checkpoints: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "name": "voice",
        "what": "speaker embedding: windows of 3 s at 16 kHz, log mel bands, to vectors whose "
        "length is how much they count",
        **describe_weights(content, restored(weights)),
        "precision": "int8 with a float16 scale a row, computed in float32",
        "bands": BANDS,
        "embedding": len(weights["embed.bias"]),
        "compressed_from": {
            "name": NAME,
            "sha256": SHA256,
            "licence": "Apache-2.0; modified: factored, at half the frame rate, trained further, "
            "rounded to 8 bits",
            "made_by": "SpeechBrain: M. Ravanelli and others, arXiv 2106.04624, 2021; trained on "
            "VoxCeleb 1 and 2 (A. Nagrani, J. S. Chung, A. Zisserman)",
            "architecture": "ECAPA-TDNN: B. Desplanques, J. Thienpondt, K. Demuynck, Interspeech "
            "2020",
        },
        "training": {
            "one_after_the_other": [
                {
                    **checkpoint["setting"],
                    "steps": checkpoint["step"],
                    "minutes": round(checkpoint["seconds"] / 60, 1),
                }
                for checkpoint in checkpoints
            ],
            "share_of_the_first_factors": _BEGUN,
            "batch": BATCH,
            "window_seconds": WINDOW / 16_000,
            "noise": "ESC-10: K. J. Piczak, ACM Multimedia 2015, CC BY 3.0",
            "data": _data(clips),
        },
        "not_for": [
            "Verifying, identifying or admitting people: it measures what a voice gives away, "
            "with far more errors than a system that decides about people may make.",
            "Finding out who the speakers of Common Voice are.",
            "Comparing embeddings with those of another file of weights.",
        ],
        "command": "python -m recipes.voice.export, after recipes.voice.clips, compress and train "
        "(recipes/README.md)",
        "licence": "Apache-2.0, as the weights that it was compressed from: Apache-2.0.txt and "
        "voice.NOTICE beside this file",
    }


def _data(clips: Clips) -> list[dict[str, Any]]:
    """Summarise the training data by corpus."""
    rows = []
    for corpus, source in enumerate(_SOURCES):
        mine = clips.corpus == corpus
        rows.append(
            {
                "source": source,
                "speakers": len(np.unique(clips.voice[mine & (clips.voice >= 0)])),
                "clips": int(mine.sum()),
                "minutes": round(float(clips.samples[mine].sum()) / 16_000 / 60, 1),
            }
        )
    return rows


if __name__ == "__main__":
    main()
