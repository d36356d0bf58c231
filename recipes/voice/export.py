"""Write the trained network where it ships: weights for numpy, and a model card beside them.

    python -m recipes.voice.export CACHE OUT monitor/networks/voice.npz

After `recipes.voice.evaluate`, whose results go into the card (voice.json).
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from monitor.adapting.fine_tuning import EMBEDDING, rounded
from monitor.errors import StoreError
from monitor.features.ecapa import HUB
from monitor.networks.layers import BANDS, RATE
from recipes.shipping import NON_NATIVE, packed, ship
from recipes.voice.augment import SPEEDS
from recipes.voice.cache import Cache
from recipes.voice.evaluate import RESULTS
from recipes.voice.train import load_student, past
from recipes.voice.within import finished


def main() -> None:
    parser = argparse.ArgumentParser(description="Export the voice network.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path, help="the folder of a training")
    parser.add_argument("target", type=Path, help="the file of weights, .npz")
    given = parser.parse_args()
    made = export(Cache(given.cache), given.out, given.target)
    print(f"{given.target}: {made['bytes']} bytes, sha256 {made['sha256']}")


def export(cache: Cache, out: Path, target: Path) -> dict[str, Any]:
    """Write weights and card; the card.

    Raises:
        StoreError: it was not evaluated, or is too large to ship.
    """
    results = out / RESULTS
    if not results.exists():
        raise StoreError(f"{out}: not evaluated: python -m recipes.voice.evaluate")
    weights = finished(cache, load_student(out))
    held = packed(rounded(weights))
    made: dict[str, Any] = {
        "name": "voice",
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
            "one_after_the_other": past(out),
            "threads": 1,
            "speeds": list(SPEEDS),
            "pseudo_speakers": len(cache.pseudo().voices),
            "data": _data(cache),
        },
        "results": orjson.loads(results.read_bytes()),
        "not_for": [
            "Verifying, identifying or admitting people: it measures what a voice gives away, "
            "with far more errors than a system that decides about people may make.",
            "Children, and speech in other languages or from far away: see the results.",
            "Comparing embeddings with those of another file of weights.",
        ],
        "licence": "MIT; learnt from the corpora named here and from the teacher (Apache 2.0)",
    }
    ship(target, held, made)
    return made


_CORPORA = {
    "background": "LibriSpeech, one utterance a reader: CC BY 4.0, V. Panayotov, G. Chen, "
    "D. Povey, S. Khudanpur, ICASSP 2015",
    **NON_NATIVE,
}


def _data(cache: Cache) -> list[dict[str, Any]]:
    """What trained it."""
    pieces = cache.of("train")
    minutes: Counter[str] = Counter()
    people: dict[str, dict[str, str]] = {}
    for piece in pieces:
        minutes[piece.corpus] += piece.samples
        people.setdefault(piece.corpus, {})[piece.voice] = piece.gender
    return [
        {
            "corpus": corpus,
            "source": _CORPORA.get(corpus, corpus),
            "speakers": dict(sorted(Counter(people[corpus].values()).items())),
            "minutes": round(minutes[corpus] / RATE / 60, 1),
        }
        for corpus in sorted(people)
    ]


if __name__ == "__main__":
    main()
