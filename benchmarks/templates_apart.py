"""One template of two sessions, or two templates: what an attacker learns by either.

    python -m benchmarks.templates_apart ../shared/speech VOICES KEPT

Everybody is enrolled from two sessions and tested by a third. The second session, and the stream,
are clean or over a telephone (`recipes.voice.world`). Ratios are those of the shipped rank models
of f0, phones and voice. By each rule of scoring: whose template comes first, the evidence of the
enrolled, its Cllr and the mean ratio of impostors, who may show 1. People at their own microphones
(Common Voice) are those who choose and those who judge (`recipes.voice.clips`); the rule was chosen
by the first and by readers, the judges had no part in it, nor in any network or calibration. KEPT
is a folder in which what was heard is kept.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.hear import chapters
from monitor.features.channel import CONDITION
from monitor.features.extractor import Extractor
from monitor.features.registry import make
from monitor.jobs import cores
from monitor.maths import likelihood_ratios as calibrated
from monitor.maths.condition import ROW, condition_of
from monitor.networks.layers import RATE
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker, sound_of
from monitor.population.population import SLICE_SECONDS, Population
from monitor.sources.base import Samples
from monitor.stream.attacker import Attacker
from monitor.stream.posterior import LikelihoodRatioScorer
from monitor.types import AnyArray, FloatArray
from recipes.voice.clips import people
from recipes.voice.world import conditions

FEATURES = ("f0", "phones", "voice")
OWN_SECONDS, READER_SECONDS = 8.0, 24.0
"""Audio of a session."""
LEAST_SPEECH = 2.0
HEARD = (("A", "clean"), ("B", "clean"), ("B", "telephone"), ("C", "clean"), ("C", "telephone"))


@dataclass(frozen=True)
class Stretch:
    """What was heard of one session: sums by feature, speech seconds, how it sounds."""

    totals: dict[str, AnyArray]
    seconds: float
    sound: AnyArray


Person = dict[tuple[str, str], Stretch]


def main() -> None:
    parser = argparse.ArgumentParser(description="Two sessions: one template or two.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("voices", type=Path)
    parser.add_argument("kept", type=Path)
    parser.add_argument("--jobs", type=int, default=cores())
    given = parser.parse_args()
    given.kept.mkdir(parents=True, exist_ok=True)
    population = Population.reference()
    print(
        "| people | N | second session, stream | rule | first | mean bits | Cllr, least "
        "| mean LR of impostors |\n| --- | ---: | --- | --- | ---: | ---: | ---: | ---: |"
    )
    for group in ("choose", "readers", "judge"):
        everybody = heard(group, given.speech, given.voices, given.kept, given.jobs)
        for second in ("clean", "telephone"):
            for stream in ("clean", "telephone"):
                for line in rows(group, everybody, population, second, stream):
                    print(line, flush=True)


def heard(group: str, speech: Path, voices: Path, kept: Path, jobs: int) -> list[Person]:
    """Everybody of a group with three sessions of enough speech."""
    path = kept / f"{group}.pickle"
    if not path.exists():
        changes = conditions(speech)
        found: list[Person] = []
        with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(jobs) as pool:
            keys, files = [], []
            for number, sessions in enumerate(sounds(group, speech, voices)):
                found.append({})
                for session, condition in HEARD:
                    file = Path(folder) / f"{number}-{session}-{condition}.npy"
                    np.save(file, changes[condition](sessions[session], number).astype(np.float32))
                    keys.append((number, session, condition))
                    files.append(file)
            for (number, *key), one in zip(keys, pool.map(hear, files, chunksize=4), strict=True):
                found[number][key[0], key[1]] = one
        path.write_bytes(pickle.dumps(found))
    everybody: list[Person] = pickle.loads(path.read_bytes())
    return [each for each in everybody if min(one.seconds for one in each.values()) >= LEAST_SPEECH]


def sounds(group: str, speech: Path, voices: Path) -> Iterator[dict[str, FloatArray]]:
    """Three sessions of each: at their own microphones, or two chapters of a reader."""
    if group != "readers":
        for each in people(voices):
            if each.role == group and len(each.clips) > 2:
                order = sorted(each.clips, key=lambda name: -len(each.clips[name]))
                yield {
                    name: np.concatenate(
                        [soundfile.read(clip, dtype="float32")[0] for clip in each.clips[session]]
                    )[: round(OWN_SECONDS * RATE)]
                    for name, session in zip("ABC", order, strict=False)
                }
        return
    by_reader: dict[str, list[dict[str, str]]] = {}
    for row in sorted(chapters(speech), key=lambda row: -float(row["seconds"])):
        by_reader.setdefault(row["speaker"], []).append(row)
    size = round(READER_SECONDS * RATE)
    for _, own in sorted(by_reader.items()):
        if len(own) > 1:
            first, other = (
                soundfile.read(speech / row["path"], frames=2 * size, dtype="float32")[0]
                for row in own[:2]
            )
            yield {"A": first[:size], "B": first[size:], "C": other[:size]}


def hear(file: Path) -> Stretch:
    """One stretch of sound."""
    features = make(FEATURES)
    extractor = Extractor(features, conditions=True)
    sketches = {each.spec.name: each.spec.sketch() for each in features}
    sound, speech = np.zeros(ROW, np.int64), 0
    frames = [extractor.process(block) for block in Samples(np.load(file), RATE)]
    for some in (*frames, extractor.flush()):
        speech += int(some.speech.sum())
        for name, track in some.tracks.items():
            if name == CONDITION:
                sound += track.values.sum(axis=0)
            else:
                sketches[name].learn_many(track.values)
    totals = {name: sketch.total for name, sketch in sketches.items()}
    return Stretch(totals, speech / 100, sound_of(condition_of(sound), speech / 100))


def enrolled(
    everybody: Sequence[Person], keys: Sequence[tuple[str, str]], population: Population
) -> tuple[Attacker, LikelihoodRatioScorer]:
    """An attacker who knows one template of each, made of these sessions together."""
    seconds = sum(np.median([each[key].seconds for each in everybody]) for key in keys)
    slices = max(round(seconds / SLICE_SECONDS), 1)
    features = {}
    for name in FEATURES:
        spec = population.specs[name]
        sums = np.stack([sum(each[key].totals[name] for key in keys) for each in everybody])
        rows = np.zeros((len(everybody), slices, sums.shape[1]), sums.dtype)
        rows[:, 0] = sums
        features[name] = FeatureTemplates(spec, rows.reshape(-1, sums.shape[1]))
    made = Population(
        [Speaker(f"{i:03}", (), each[keys[0]].sound) for i, each in enumerate(everybody)],
        np.arange(len(everybody) + 1) * slices,
        features,
        population.rank_models,
        cohort=population.cohort,
    )
    attacker = Attacker(made, FEATURES)
    assert attacker.joint.ratios is not None
    return attacker, attacker.joint.ratios


def rows(
    group: str, everybody: Sequence[Person], population: Population, second: str, stream: str
) -> Iterator[str]:
    """A line for each rule."""
    keys = ("A", "clean"), ("B", second)
    first, other, both = (
        enrolled(everybody, some, population) for some in (keys[:1], keys[1:], keys)
    )
    streams = [each["C", stream] for each in everybody]
    seconds = np.array([one.seconds for one in streams])
    totals = {name: np.stack([one.totals[name] for one in streams]) for name in FEATURES}
    sounds_of = [Speaker("", (), one.sound).condition for one in streams]

    def scores(attacker: Attacker) -> FloatArray:
        return np.stack([attacker._scores(name, totals[name]) for name in FEATURES], axis=1)

    def bits(ratios: LikelihoodRatioScorer, scored: FloatArray) -> FloatArray:
        point = ratios.rank_model.at(seconds)
        effect = ratios._effect(point, sounds_of)
        made = ratios._bits(point, ratios.compute_score_stats(totals), scored, effect)
        most = np.broadcast_to(point.support[:, None], made.shape)
        return np.asarray(
            np.minimum(made, most if effect is None else np.minimum(most, effect.support))
        )

    one, two = scores(first[0]), scores(other[0])
    alone = bits(first[1], one), bits(other[1], two)
    found = {
        "the first alone": alone[0],
        "the second alone": alone[1],
        "one template of both": bits(both[1], scores(both[0])),
        "mean score": bits(first[1], (one + two) / 2),
        "best score": bits(first[1], np.maximum(one, two)),
        "best ratio": np.maximum(*alone),
        "mean ratio": np.logaddexp2(*alone) - 1.0,
    }
    mated = np.eye(len(everybody), dtype=np.bool_)
    for rule, told in found.items():
        own, others = told[mated], told[~mated]
        weights = np.full(own.size, 1 / own.size), np.full(others.size, 1 / others.size)
        costs = [
            cost(own, others, *weights)
            for cost in (calibrated.cost_bits, calibrated.least_cost_bits)
        ]
        hit = np.mean(told.argmax(axis=1) == np.arange(len(everybody)))
        yield (
            f"| {group} | {len(everybody)} | {second}, {stream} | {rule} | {100 * hit:.0f} % "
            f"| {own.mean():.1f} | {costs[0]:.2f}, {costs[1]:.2f} | {np.exp2(others).mean():.2f} |"
        )


if __name__ == "__main__":
    main()
