"""How many phones a trained network gets wrong of readers that it never met.

    python -m recipes.phones.evaluate CACHE OUT [--sphinx 4]

Phone error rate: insertions, deletions and substitutions of the best path against the dictionary,
over utterances all of whose words it has. Prints a table and writes OUT/results.json. With
``--sphinx N`` pocketsphinx's all-phone search is measured as well, on every Nth utterance.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
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
from recipes.phones.prepare import Spoken, Utterance
from recipes.phones.train import load_recogniser

__all__ = ["RESULTS", "edits", "measure"]

RESULTS = "results.json"
Row = dict[str, Any]
Hear = Callable[[FloatArray], list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Phone error rates.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path, help="the folder of a training")
    parser.add_argument("--sphinx", type=int, metavar="N", help="pocketsphinx on every Nth")
    given = parser.parse_args()
    torch.set_num_threads(1)
    spoken, network = Spoken(given.cache), load_recogniser(given.out)
    rows = measure(spoken, "network", hearing(network))
    if given.sphinx:
        from recipes.phones.sphinx import phones

        rows += measure(spoken, "network, some", hearing(network), given.sphinx)
        rows += measure(spoken, "pocketsphinx", phones, given.sphinx)
    with written_whole(given.out / RESULTS) as file:
        file.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
    print(table(rows))


def hearing(network: Recogniser) -> Hear:
    """What a trained network says of a sound."""

    def hear(sound: FloatArray) -> list[str]:
        bands = torch.from_numpy(log_mel(np.pad(sound, (0, RATE // 2))))
        with torch.inference_mode():
            return [token.phone for token in tokens(network(bands[None])[0].numpy())]

    return hear


def measure(spoken: Spoken, name: str, hear: Hear, every: int = 1) -> list[Row]:
    """Phone errors of each half of the readers, and of the non-native speakers held out."""
    rows = []
    for role in ("choose", "report", "held out"):
        listed = [each for each in spoken.of(role) if each.known and each.phones][::every]
        wrong: list[int] = []
        right: list[int] = []
        for reader in _by_reader(spoken, listed):
            print(f"\r{name}: {role}, {len(wrong)}", end="\x1b[K", file=sys.stderr)
            errors = phones = 0
            for each in reader:
                said = [PHONES[phone - 1] for phone in each.phones]
                errors += edits(hear(spoken.sound(each)), said)
                phones += len(said)
            wrong.append(errors)
            right.append(phones)
        if wrong:
            rates = np.array(wrong) / np.array(right)
            rows.append(
                {
                    "who": name,
                    "role": role,
                    "readers": len(wrong),
                    "utterances": len(listed),
                    "phones": sum(right),
                    "error": sum(wrong) / sum(right),
                    "best_reader": float(rates.min()),
                    "worst_reader": float(rates.max()),
                }
            )
    print(file=sys.stderr)
    return rows


def _by_reader(spoken: Spoken, listed: Iterable[Utterance]) -> list[list[Utterance]]:
    def voice(each: Utterance) -> str:
        return spoken.piece(each).voice

    return [list(group) for _, group in groupby(sorted(listed, key=voice), voice)]


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
