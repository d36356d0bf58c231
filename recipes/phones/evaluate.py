"""How many phones a trained network gets wrong of readers that it never met.

    python -m recipes.phones.evaluate CACHE OUT

Phone error rate: insertions, deletions and substitutions of the best path against the dictionary,
over utterances all of whose words it has. Prints a table and writes OUT/results.json. What
`recipes.phones.sphinx` has heard is measured as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch

from monitor.networks.mel import RATE, log_mel
from monitor.networks.phones import PHONES, tokens
from monitor.types import FloatArray
from monitor.whole import written_whole
from recipes.phones.network import Recogniser
from recipes.phones.prepare import Spoken
from recipes.phones.train import load_recogniser

__all__ = ["RESULTS", "edits", "measure"]

RESULTS = "results.json"
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description="Phone error rates.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path, help="the folder of a training")
    given = parser.parse_args()
    torch.set_num_threads(1)
    spoken, network = Spoken(given.cache), load_recogniser(given.out)
    hear, peer = hearing(network), spoken.peer()
    rows = measure(spoken, "network", lambda i: hear(spoken.sound(spoken.utterances[i])))
    if peer:
        rows += measure(spoken, "pocketsphinx", lambda i: [PHONES[t - 1] for t in peer[i][:, 0]])
    with written_whole(given.out / RESULTS) as file:
        file.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
    print(table(rows))


def hearing(network: Recogniser) -> Callable[[FloatArray], list[str]]:
    """What a trained network says of a sound."""

    def hear(sound: FloatArray) -> list[str]:
        bands = torch.from_numpy(log_mel(np.pad(sound, (0, RATE // 2))))
        with torch.inference_mode():
            return [token.phone for token in tokens(network(bands[None])[0].numpy())]

    return hear


def measure(spoken: Spoken, name: str, phones: Callable[[int], list[str]]) -> list[Row]:
    """Phone errors of each half of the readers, and of the non-native speakers held out.

    Args:
        spoken: prepared.
        name: who heard.
        phones: of an utterance by its number; a KeyError where it was not heard.
    """
    rows = []
    for role in ("choose", "report", "held out"):
        wrong: dict[str, int] = {}
        right: dict[str, int] = {}
        count = 0
        for index, each in enumerate(spoken.utterances):
            piece = spoken.piece(each)
            if piece.role != role or not each.known or not each.phones:
                continue
            try:
                found = phones(index)
            except KeyError:
                continue
            count += 1
            errors = edits(found, [PHONES[phone - 1] for phone in each.phones])
            wrong[piece.voice] = wrong.get(piece.voice, 0) + errors
            right[piece.voice] = right.get(piece.voice, 0) + len(each.phones)
        if count:
            rates = [wrong[voice] / right[voice] for voice in wrong]
            rows.append(
                {
                    "who": name,
                    "role": role,
                    "readers": len(wrong),
                    "utterances": count,
                    "phones": sum(right.values()),
                    "error": sum(wrong.values()) / sum(right.values()),
                    "best_reader": min(rates),
                    "worst_reader": max(rates),
                }
            )
    return rows


def edits(found: Sequence[str], said: Sequence[str]) -> int:
    """Insertions, deletions and substitutions, as few as will do (Levenshtein, 1966)."""
    names = np.array(said, dtype=object)
    places = np.arange(len(said) + 1)
    row = places.copy()
    for i, phone in enumerate(found, 1):
        either = np.minimum(row[1:] + 1, row[:-1] + (names != phone))
        row = np.minimum.accumulate(np.append(i, either) - places) + places
    return int(row[-1])


def table(rows: Sequence[Row]) -> str:
    """The results as Markdown."""
    lines = [
        "| | readers, utterances, phones | phone error rate | readers from, to |",
        "| --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {row['who']}, {row['role']} | {row['readers']}, {row['utterances']}, {row['phones']} "
        f"| {100 * row['error']:.1f} % "
        f"| {100 * row['best_reader']:.0f} to {100 * row['worst_reader']:.0f} % |"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
