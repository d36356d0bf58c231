"""Forced alignment, by a trained network, of training utterances that are not aligned yet.

    python -m recipes.phones.forced CACHE OUT

OUT is a training with some aligned utterances (`recipes.phones.align`). Its frame classifier aligns
the rest, a hundred times as fast.
"""

from __future__ import annotations

import numpy as np
import torch

from monitor.types import FloatArray, IntArray
from recipes.phones.network import Recogniser, compute_layers
from recipes.phones.prepare import ALIGNED, Spoken
from recipes.phones.train import load_recogniser
from recipes.stages import add_row, stage

_EVERY = 40  # step through the utterances that estimate the priors of classes


def main() -> None:
    given = stage("Align the rest with a trained network.", "cache", "out").parse_args()
    torch.set_num_threads(1)
    print(f"{align(Spoken(given.cache), load_recogniser(given.out))} utterances aligned")


def align(spoken: Spoken, network: Recogniser) -> int:
    """Append the phone times of further training utterances to the cache; return their number.

    Likelihoods of frames are posteriors divided by class priors (H. Bourlard and N. Morgan,
    "Connectionist speech recognition", 1994).
    """
    known = spoken.aligned()
    train = [i for i, each in enumerate(spoken.utterances) if spoken.piece(each).role == "train"]

    def named(index: int) -> FloatArray:
        utterance = spoken.utterances[index]
        frames = compute_layers(network, spoken.sound(utterance))["frames"][
            : utterance.samples // 320
        ]
        return np.asarray(torch.log_softmax(frames, dim=1))

    share = np.exp(np.concatenate([named(i) for i in train[::_EVERY]])).mean(axis=0)
    count = 0
    path = spoken.cache.folder / ALIGNED.replace("*", "forced")
    for index in (each for each in train if each not in known):
        times = aligned(named(index) - np.log(share), spoken.utterances[index].phones)
        if times is not None:
            add_row(path, {"utterance": index, "times": (2 * times).tolist()})
            count += 1
    return count


def aligned(scores: FloatArray, phones: list[int]) -> IntArray | None:
    """Align phones (Viterbi, 1967), each with at least one frame, and optional silence around it.

    Args:
        scores: shape (k, classes), log likelihoods of frames; class 0 is silence.
        phones: classes, in order.

    Returns:
        shape (phones, 2), frames [begin, end); None without phones or if frames are fewer.

    Example:
        >>> scores = np.log(np.full((6, 3), 0.1))
        >>> scores[range(6), [0, 1, 1, 2, 2, 0]] = 0
        >>> aligned(scores, [1, 2]).tolist()
        [[1, 3], [3, 5]]
    """
    if len(scores) < len(phones) or not phones:
        return None
    states = np.zeros(2 * len(phones) + 1, np.int64)
    states[1::2] = phones
    heard = scores[:, states]
    best = np.full(len(states), -np.inf)
    best[:2] = heard[0, :2]
    steps = np.zeros(heard.shape, np.int8)
    for frame in range(1, len(heard)):
        moves = np.full((3, len(states)), -np.inf)
        moves[0] = best
        moves[1, 1:] = best[:-1]
        moves[2, 3::2] = best[1:-2:2]  # no silence between
        steps[frame] = moves.argmax(axis=0)
        best = moves.max(axis=0) + heard[frame]
    state = len(states) - (1 if best[-1] >= best[-2] else 2)
    times = np.zeros((len(phones), 2), np.int64)
    for frame in range(len(heard) - 1, -1, -1):
        if state % 2:
            times[state // 2, 0] = frame
            times[state // 2, 1] = max(times[state // 2, 1], frame + 1)
        state -= int(steps[frame, state])
    return times


if __name__ == "__main__":
    main()
