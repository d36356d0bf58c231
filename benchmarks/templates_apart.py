"""One template of two sessions, or two templates: what an attacker learns by either."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, chapters, read
from benchmarks.truth import costs
from monitor.features.channel import CONDITION
from monitor.features.extractor import Extractor
from monitor.features.registry import make
from monitor.jobs import cores
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

OWN_SECONDS, READER_SECONDS = 8.0, 24.0
"""Audio of a session."""
LEAST_SPEECH = 2.0
HEARD = (("A", "clean"), ("B", "clean"), ("B", "telephone"), ("C", "clean"), ("C", "telephone"))
GROUPS = {"choose": "Who choose", "readers": "Readers", "judge": "Who judge"}
"""Sections of the page."""


@dataclass(frozen=True)
class Stretch:
    """What was heard of one session: sums by feature, speech seconds, how it sounds."""

    totals: dict[str, AnyArray]
    seconds: float
    sound: AnyArray


Person = dict[tuple[str, str], Stretch]


@benchmark()
def templates_apart(
    page: Page, speech: Path, voices: Path, kept: Path, *, jobs: int = cores()
) -> None:
    """Two sessions: one template or two?

    KEPT is a folder for what was heard.
    """
    kept.mkdir(parents=True, exist_ok=True)
    population = Population.reference()
    for group, title in GROUPS.items():
        everybody = heard(group, speech, voices, kept, jobs)
        page.note(f"{title}: {len(everybody)} people")
        page.table(
            "second session, stream | rule | first | mean bits | Cllr, least "
            "| mean LR of impostors",
            (
                line
                for pair in product(("clean", "telephone"), repeat=2)
                for line in rows(everybody, population, *pair)
            ),
            keys=2,
            under=title,
        )


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
                joined = (np.concatenate([read(c) for c in each.clips[s]]) for s in order)
                most = round(OWN_SECONDS * RATE)
                yield {name: sound[:most] for name, sound in zip("ABC", joined, strict=False)}
        return
    by_reader: dict[str, list[dict[str, str]]] = {}
    for row in sorted(chapters(speech), key=lambda row: -float(row["seconds"])):
        by_reader.setdefault(row["speaker"], []).append(row)
    size = round(READER_SECONDS * RATE)
    for _, own in sorted(by_reader.items()):
        if len(own) > 1:
            first, other = (read(speech / row["path"], 2 * READER_SECONDS) for row in own[:2])
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
    everybody: Sequence[Person], population: Population, second: str, stream: str
) -> Iterator[list[str]]:
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
        hit = np.mean(told.argmax(axis=1) == np.arange(len(everybody)))
        yield [
            f"{second}, {stream}",
            rule,
            f"{100 * hit:.0f} %",
            f"{own.mean():.1f}",
            costs(own, others, *weights),
            f"{np.exp2(others).mean():.2f}",
        ]
