"""Phone error rates of a trained network on readers who did not train it.

    python -m recipes.phones.evaluate CACHE OUT

The rate counts insertions, deletions and substitutions against the dictionary, over utterances with
all words in the dictionary. It is measured for the best path and for the likeliest path with a
trigram of phones. Readers with the role ``choose`` determine the trigram's weight and bonus. Tokens
of `recipes.phones.sphinx`, if any, are measured too. Prints a table and writes OUT/results.json and
OUT/use.json.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import orjson
import torch

from monitor.files import atomic_write
from monitor.lab.utility import count_edits
from monitor.networks.phones import PHONES, Trigram, likeliest
from monitor.types import FloatArray
from recipes.phones.network import CLASSES, Recogniser, compute_layers
from recipes.phones.prepare import Spoken, Utterance
from recipes.phones.train import load_recogniser
from recipes.stages import stage

RESULTS, USE = "results.json", "use.json"
WEIGHTS, MORE = (0.2, 0.3, 0.4, 0.5), (-0.3, 0.0, 0.3, 0.6)
_EVERY = 2  # step through the utterances that choose the trigram's weight and bonus
Row = dict[str, Any]


def best_path(log_posteriors: FloatArray) -> list[str]:
    """Return the phones of log posteriors, (k, 40), without repetitions and blanks."""
    best = log_posteriors.argmax(axis=1)
    first = np.flatnonzero(np.diff(best, prepend=-1))
    return [PHONES[place - 1] for place in best[first] if place]


def main() -> None:
    given = stage("Measure phone error rates.", "cache", "out").parse_args()
    torch.set_num_threads(1)
    spoken, network = Spoken(given.cache), load_recogniser(given.out)
    posteriors_by_index = cache(partial(posteriors, spoken, network))
    use = choose_trigram(spoken, posteriors_by_index)
    with atomic_write(given.out / USE) as file:
        file.write(orjson.dumps({"weight": use.weight, "bonus": use.bonus}))
    rows = measure(spoken, "best path", lambda i: best_path(posteriors_by_index(i)))
    rows += measure(spoken, "with trigram", lambda i: with_trigram(posteriors_by_index(i), use))
    if peer := spoken.peer():
        rows += measure(spoken, "pocketsphinx", lambda i: [PHONES[t - 1] for t in peer[i][:, 0]])
    with atomic_write(given.out / RESULTS) as file:
        file.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
    print(f"weight {use.weight}, bonus {use.bonus}\n\n{table(rows)}")


def posteriors(spoken: Spoken, network: Recogniser, index: int) -> FloatArray:
    """Return the log posteriors of an utterance by a trained network, shape (k, 40)."""
    utterance = spoken.utterances[index]
    logits = compute_layers(network, spoken.sound(utterance))["logits"]
    return np.asarray(torch.log_softmax(logits[: utterance.samples // 320], dim=1))


def with_trigram(log_posteriors: FloatArray, use: Trigram) -> list[str]:
    """Return the phones of the likeliest path with a trigram."""
    return [PHONES[phone - 1] for phone, _ in likeliest(log_posteriors, use)]


def choose_trigram(spoken: Spoken, posteriors_by_index: Callable[[int], FloatArray]) -> Trigram:
    """Choose the trigram's weight and bonus by the errors on half of the ``choose`` utterances."""
    logs = trigram(spoken)
    some = [i for i, each in enumerate(spoken.utterances) if _judges(spoken, each, "choose")]

    def wrong(use: Trigram) -> int:
        return sum(
            count_edits(
                with_trigram(posteriors_by_index(i), use),
                [PHONES[p - 1] for p in spoken.utterances[i].phones],
            )
            for i in some[::_EVERY]
        )

    uses = [Trigram(logs, weight, 2.5 * weight + more) for weight in WEIGHTS for more in MORE]
    return min(uses, key=wrong)


def trigram(spoken: Spoken) -> FloatArray:
    """Return `trigram_of` the training transcripts."""
    return trigram_of([each.phones for each in spoken.of("train")])


def trigram_of(sequences: list[list[int]], classes: int = CLASSES) -> FloatArray:
    """Return smoothed log probabilities of trigrams, shape (classes, classes, classes).

    Trigrams are interpolated with bigrams, and bigrams with unigrams. The weights depend on the
    number of distinct successors (I. Witten and T. Bell, "The zero-frequency problem", IEEE Trans.
    Inf. Theory 37, 1991).

    Args:
        sequences: sequences of classes from 1, to which 0 is added before and after.
        classes: number of classes, including 0.

    Example:
        >>> logs = trigram_of([[1, 2], [1, 2], [1, 2]], classes=3)
        >>> bool(np.exp(logs[0, 1, 2]) > 0.7), bool(np.allclose(np.exp(logs).sum(axis=2), 1))
        (True, True)
    """
    counts = np.zeros((classes, classes, classes))
    for phones in sequences:
        row = np.array([0, 0, *phones, 0])
        np.add.at(counts, (row[:-2], row[1:-1], row[2:]), 1)
    found = np.full(classes, 1 / classes)
    for seen in (counts.sum(axis=(0, 1)), counts.sum(axis=0), counts):
        totals, kinds = seen.sum(axis=-1, keepdims=True), (seen > 0).sum(axis=-1, keepdims=True)
        new = np.where(kinds, kinds / np.maximum(totals + kinds, 1), 1)
        found = seen / np.maximum(totals + kinds, 1) + new * found
    return np.asarray(np.log(found))


def _judges(spoken: Spoken, utterance: Utterance, role: str) -> bool:
    return bool(utterance.known and utterance.phones and spoken.piece(utterance).role == role)


def measure(spoken: Spoken, name: str, phones: Callable[[int], list[str]]) -> list[Row]:
    """Measure phone errors of each half of the readers, and of the held-out non-native speakers.

    Args:
        spoken: prepared corpus.
        name: name of the recogniser.
        phones: returns the phones of an utterance by its index. Utterances for which it raises
            KeyError are skipped.
    """
    rows = []
    for role in ("choose", "report", "held out"):
        wrong: dict[str, int] = {}
        right: dict[str, int] = {}
        count = 0
        for index, each in enumerate(spoken.utterances):
            piece = spoken.piece(each)
            if not _judges(spoken, each, role):
                continue
            try:
                found = phones(index)
            except KeyError:
                continue
            count += 1
            errors = count_edits(found, [PHONES[phone - 1] for phone in each.phones])
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


def table(rows: Sequence[Row]) -> str:
    """Format the results as Markdown."""
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
