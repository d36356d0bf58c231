"""Bits per conversational turn, from frames of any model: the table of a paper.

python examples/14_bits_by_turn.py [hidden.npz]

The file has one row per frame, such as hidden states of one layer of a dialogue model:

    states    (n, d)  a vector per frame
    speaker   (n,)    who speaks
    dialogue  (n,)    the speaker's dialogue: the first one enrols, the others are attacked
    turn      (n,)    the speaker's turn in that dialogue, from 1

Without a file, one of 40 made-up speakers is written and used.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from monitor.lab.evaluation import ScoreMatrix, evaluate
from monitor.lab.evaluation.family import EvaluationSettings

TURNS = 5


def make_file(path: Path, speakers: int = 40, dialogues: int = 3, size: int = 64) -> None:
    """Write states in which a voice is faint, and grows no stronger from turn to turn."""
    generator = np.random.default_rng(0)
    voice = generator.standard_normal((speakers, size))
    rows = [
        (who, dialogue, turn)
        for who in range(speakers)
        for dialogue in range(1, dialogues + 1)
        for turn in range(1, TURNS + 1)
        for _ in range(generator.integers(5, 15))
    ]
    speaker, dialogue, turn = np.array(rows).T
    states = voice[speaker] + 8.0 * generator.standard_normal((len(rows), size))
    np.savez(path, states=states, speaker=speaker, dialogue=dialogue, turn=turn)


def attack(file: dict[str, np.ndarray], turns: list[int]) -> ScoreMatrix:
    """Compare these turns of each later dialogue with every speaker's first dialogue.

    Attackers that train on such states may learn more than these cosines of means.
    """
    names, who = np.unique(file["speaker"], return_inverse=True)
    states = file["states"] - file["states"].mean(axis=0)
    firsts = np.stack([np.sort(file["dialogue"][who == i])[0] for i in range(len(names))])
    first = file["dialogue"] == firsts[who]
    templates = np.stack([states[first & (who == i)].mean(axis=0) for i in range(len(names))])
    inside = ~first & np.isin(file["turn"], turns)
    trials = sorted({*zip(who[inside].tolist(), file["dialogue"][inside].tolist(), strict=True)})
    tests = np.stack(
        [states[inside & (who == i) & (file["dialogue"] == d)].mean(axis=0) for i, d in trials]
    )
    for vectors in (templates, tests):
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return ScoreMatrix(
        tests @ templates.T, np.array([i for i, _ in trials]), tuple(map(str, names))
    )


def bits(file: dict[str, np.ndarray], turns: list[int]) -> str:
    """Bits of an average trial (MeanD) with the 95 % interval over speakers."""
    report = evaluate(attack(file, turns), settings=EvaluationSettings(only=("srd",)))
    figure = report["srd.mean_bits_model"]
    low, high = figure.limits
    return f"{figure.value:.2f} ({low:.2f} to {high:.2f})"


with tempfile.TemporaryDirectory() as folder:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "hidden.npz"
    if len(sys.argv) == 1:
        make_file(path)
    with np.load(path) as stored:
        frames = {name: stored[name] for name in ("states", "speaker", "dialogue", "turn")}

each = sorted({int(turn) for turn in frames["turn"]})
ceiling = np.log2(len(np.unique(frames["speaker"])))
print(f"Bits of {ceiling:.2f}, with 95 % interval over speakers")
print(f"{'turn':>4}  {'this turn':22}  all turns so far")
for turn in each:
    print(f"{turn:4}  {bits(frames, [turn]):22}  {bits(frames, each[: each.index(turn) + 1])}")
