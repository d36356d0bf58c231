"""How well does an embedder distinguish people across rooms, noise, telephones and microphones?

    python -m recipes.voice.world ../shared/speech VOICES OUT.json [--ecapa DIR] [--weights F]

Each row has templates of 30 s (15 s at people's own microphones) and tests of 10 s of another
session, each under one condition. It states how often the right person ranks first, and the EER.
Readers are those of the shipped population, none of whom trained the network. Tests at people's own
microphones are by people with the role ``judge``, among all people with several sessions. Two more
rows show overfitting. They compare two clips of a session, for people who trained the network and
for people who did not. The default is the shipped weights.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import soundfile

from monitor.anonymisers import Utterance, make
from monitor.files import atomic_write
from monitor.lab.evaluation import EvaluationSettings, ScoreMatrix, evaluate
from monitor.lab.evaluation.verification import NEAREST
from monitor.networks.layers import RATE
from monitor.networks.voice import VoiceNetwork, shipped
from monitor.types import FloatArray, IntArray
from recipes.sounds import (
    apply_amr_wb,
    apply_telephone_codec,
    babble,
    coded,
    in_room,
    loudspeaker,
    noisy,
)
from recipes.stages import stage
from recipes.voice.clips import hash_fraction, people
from recipes.voice.conditions import telephone
from recipes.voice.corpus import recordings
from recipes.voice.teacher import read_teacher

Embed = Callable[[FloatArray], FloatArray]
WINDOW = 3 * RATE
TEMPLATE, TEST, OWN_TEMPLATE = 30.0, 10.0, 15.0
TESTS = 4
"""Maximum number of tests per reader."""
CLIP, CLIPS_OF = 4.0, 220
"""Seconds of clips in the rows of two clips, and maximum number of people."""
ROWS = (
    ("clean", "clean"),
    ("clean", "telephone"),
    ("telephone", "telephone"),
    ("clean", "room 0.6 s"),
    ("room 0.6 s", "room 0.6 s"),
    ("clean", "babble 10 dB"),
    ("clean", "Opus 12 kb/s"),
)
"""Conditions of the template and of the test."""


def main() -> None:
    parser = stage("Evaluate an embedder under conditions.", "speech", "voices", "out")
    parser.add_argument("--ecapa", type=Path, help="folder of the teacher, to evaluate it instead")
    parser.add_argument("--weights", type=Path, help="weights, .npz (default: shipped)")
    given = parser.parse_args()
    if given.ecapa is not None:
        embed = VoiceNetwork(read_teacher(given.ecapa)).embed
    else:
        embed = (VoiceNetwork.load(given.weights) if given.weights else shipped()).embed
    found = [
        *_readers(given.speech, embed),
        _microphones(given.voices, embed),
        _clips(given.voices, embed, "who trained", ("train",)),
        _clips(given.voices, embed, "who did not", ("choose", "calibrate")),
    ]
    with atomic_write(given.out) as file:
        file.write(orjson.dumps(found, option=orjson.OPT_INDENT_2))
    for row in found:
        print(f"{row['row']:34} N {row['n']:4} tests {row['tests']:4}  "
              f"first {row['first']:6.1%}  EER {row['eer']:6.2%}")  # fmt: skip


def _readers(speech: Path, embed: Embed) -> list[dict[str, float | str]]:
    every = recordings(speech, speech.parent / "nonnative")
    listed = [each for each in every if each.role in ("choose", "report")]
    by_reader: dict[str, list[Path]] = {}
    for each in sorted(listed, key=lambda each: -each.seconds):
        by_reader.setdefault(each.speaker, []).append(each.path)
    clean = {name: _read(paths[0], 0, TEMPLATE) for name, paths in sorted(by_reader.items())}
    names = list(clean)
    tests = [
        (column, _read(path, 5 + 12 * at, TEST), 100 * column + at)
        for column, name in enumerate(names)
        for path in by_reader[name][1:2]
        for at in range(TESTS)
        if soundfile.info(path).duration > 17 + 12 * at
    ]

    by_condition = conditions(speech)
    found = []
    for first, second in ROWS:
        enrolled, tested = by_condition[first], by_condition[second]
        templates = np.stack(
            [_mean(enrolled(sound, 7 * i), embed) for i, sound in enumerate(clean.values())]
        )
        embeddings = np.stack([_mean(tested(sound, seed), embed) for _, sound, seed in tests])
        found.append(
            row(
                f"{first} -> {second}",
                embeddings @ templates.T,
                np.array([c for c, *_ in tests]),
                names,
            )
        )
    return found


def conditions(speech: Path) -> dict[str, Callable[[FloatArray, int], FloatArray]]:
    """Return functions by condition that change a sound; their seed selects the room or crowd."""

    def crowd(sound: FloatArray, seed: int) -> FloatArray:
        return noisy(sound, 10, babble(speech, len(sound), seed % 97))

    def telephone_call(sound: FloatArray, _seed: int) -> FloatArray:
        return telephone(sound / (np.abs(sound).max() + 1e-9) / 2)

    return {
        "clean": lambda sound, _seed: sound,
        "telephone": telephone_call,
        "room 0.6 s": lambda sound, seed: in_room(sound, 0.6, 2.0, seed % 97),
        "babble 10 dB": crowd,
        "Opus 12 kb/s": lambda sound, _seed: coded(sound, "opus", 12),
        "loudspeaker": lambda sound, seed: loudspeaker(sound, seed % 97),
        "GSM": lambda sound, _seed: apply_telephone_codec(sound, "gsm"),
        "AMR 12.2 kb/s": lambda sound, _seed: apply_telephone_codec(sound, "amr-nb", "-C", "7"),
        "AMR-WB 12.65 kb/s": lambda sound, _seed: apply_amr_wb(sound),
        "whisper": whisper,
    }


def whisper(sound: FloatArray, seed: int) -> FloatArray:
    """Apply the anonymiser ``whisper``, which differs from natural whispering."""
    anonymiser = make("whisper", Utterance(rate=RATE, name=str(seed), seed=seed))
    return np.concatenate([anonymiser.process(sound), anonymiser.flush()])


def _microphones(voices: Path, embed: Embed) -> dict[str, float | str]:
    several = [each for each in people(voices) if len(each.clips) > 1]
    templates, tests, columns = [], [], []
    for column, each in enumerate(several):
        order = sorted(each.clips, key=lambda session: -len(each.clips[session]))
        templates.append(_mean(_joined(each.clips[order[0]], OWN_TEMPLATE), embed))
        if each.role == "judge":
            rest = [path for session in order[1:] for path in each.clips[session]]
            tests.append(_mean(_joined(rest, TEST), embed))
            columns.append(column)
    scores = np.stack(tests) @ np.stack(templates).T
    return row("own microphone, another session", scores, np.array(columns),
                [each.name for each in several])  # fmt: skip


def _clips(
    voices: Path, embed: Embed, whose: str, roles: tuple[str, ...]
) -> dict[str, float | str]:
    longest: dict[str, list[Path]] = {}
    for each in people(voices):
        if each.role in roles:
            longest[each.name] = max(map(sorted, each.clips.values()), key=len)
    names = sorted((name for name in longest if len(longest[name]) > 1), key=hash_fraction)[
        :CLIPS_OF
    ]
    first, last = (
        np.stack([_mean(_joined([longest[name][at]], CLIP), embed) for name in names])
        for at in (0, -1)
    )
    return row(f"another clip, people {whose}", last @ first.T, np.arange(len(names)), names)


def row(
    name: str, scores: FloatArray, target: IntArray, names: list[str]
) -> dict[str, float | str]:
    matrix = ScoreMatrix(np.asarray(scores, float), target, tuple(names))
    figures = evaluate(matrix, settings=EvaluationSettings(replicates=0)).figures
    first = np.mean(scores.argmax(axis=1) == target)
    return {"row": name, "n": len(names), "tests": len(scores), "first": float(first),
            "eer": figures[NEAREST].value or 0.0}  # fmt: skip


def _read(path: Path, start: float, seconds: float) -> FloatArray:
    with soundfile.SoundFile(path) as file:
        file.seek(round(start * RATE))
        return np.asarray(file.read(round(seconds * RATE), dtype="float32"))


def _joined(paths: list[Path], seconds: float) -> FloatArray:
    sound = np.concatenate([soundfile.read(path, dtype="float32")[0] for path in sorted(paths)])
    return sound[: round(seconds * RATE)]


def _mean(sound: FloatArray, embed: Embed) -> FloatArray:
    windows = max(1, round(len(sound) / WINDOW))
    width = min(len(sound) // windows, 2 * WINDOW)
    cut = np.asarray(sound[: windows * width], np.float32).reshape(windows, width)
    mean = embed(cut).mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


if __name__ == "__main__":
    main()
