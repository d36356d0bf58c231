"""What a voice discloses in the world: telephones, rooms, noise, and people's own microphones.

    MONITOR_ECAPA=DIR python -m benchmarks.world ../shared/speech VOICES

Every row: templates under one condition, streams of another session under another, ranked and
weighed by the shipped population's rank models of the default features and of those with ECAPA.
Templates of 30 s and streams of 10 s of speech; of people at their own microphones 5 s and 5 s.
Readers are those of the shipped population: none trained a network, but their clean speech is part
of its calibration. People at their own microphones are those who judge (`recipes.voice.clips`):
neither trained nor calibrated anything. Conditions are simulated (`recipes.voice.world`).
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.hear import chapters
from benchmarks.truth import Judged, others_of
from monitor.corpus.finding import find
from monitor.jobs import cores
from monitor.maths import likelihood_ratios as calibrated
from monitor.maths.evidence import log2_ratios
from monitor.maths.posterior import weighted_evidence
from monitor.networks.layers import RATE
from monitor.population.cohort import CohortScoring
from monitor.population.population import Population
from monitor.training.cells import Plan
from monitor.training.voices import UNITS_PER_SECOND, SessionFrames, SpeakerSpeech, collect
from monitor.types import FloatArray
from recipes.voice.clips import people
from recipes.voice.world import ROWS, conditions

SETS = (("f0", "phones", "voice"), ("f0", "phones", "identity"))
TEMPLATE_SECONDS, TEST_SECONDS, OWN_SECONDS = 30.0, 10.0, 5.0
_TEMPLATE_AUDIO, _TEST_AUDIO = 50.0, 60.0
SHIFTS = 4

Frames = dict[str, SessionFrames]
Heard = dict[str, Frames]
Change = Callable[[FloatArray, int], FloatArray]
HEAD = (
    "| templates, streams | N, tested | features | first | mean bits | at least "
    "| Cllr, least | Cllr without misses | mean LR of impostors |\n"
    "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
)


class Across(Plan):
    """Templates of one condition, tests of another session under another."""

    def __init__(self, templates: Sequence[Frames], tests: Sequence[Frames | None], test: int):
        self._templates, self._tests, self._units = templates, tests, test
        mated = np.flatnonzero([_length(each) >= test for each in tests])
        super().__init__(np.arange(len(templates)), mated, SHIFTS)

    def template(self, voice: int, shift: int) -> tuple[Frames, int]:  # noqa: ARG002
        """Its beginning."""
        return self._templates[voice], 0

    def test(self, voice: int, shift: int) -> tuple[Frames, int]:
        """Evenly spread."""
        frames = self._tests[voice]
        assert frames is not None
        return frames, shift * (_length(frames) - self._units) // SHIFTS


def main() -> None:
    parser = argparse.ArgumentParser(description="Disclosure in the world, row by row.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("voices", type=Path)
    parser.add_argument("--default", action="store_true", help="without ECAPA")
    parser.add_argument("--jobs", type=int, default=cores())
    given = parser.parse_args()
    sets = SETS[: 1 if given.default else 2]
    features = tuple(dict.fromkeys(name for each in sets for name in each))
    population = Population.reference()
    hear = partial(heard, features=features, jobs=given.jobs)
    print(HEAD, flush=True)
    changes = conditions(given.speech)
    templates, tests = {}, {}
    for first, second in ROWS:
        if first not in templates:
            templates[first] = hear(_readers(given.speech, 0), changes[first])
        if second not in tests:
            tests[second] = hear(_readers(given.speech, 1), changes[second])
        lengths = TEMPLATE_SECONDS, TEST_SECONDS
        report(f"{first}, {second}", population, templates[first], tests[second], sets, lengths)
    for second in ("clean", "telephone"):
        one, two = (
            hear(_own(given.voices, part), changes[c]) for part, c in ((0, "clean"), (1, second))
        )
        lengths = OWN_SECONDS, OWN_SECONDS
        report(f"own microphone, another session, {second}", population, one, two, sets, lengths)


def _readers(speech: Path, chapter: int) -> Iterator[tuple[str, FloatArray]]:
    """The longest chapter of everybody, or the next: as much as is needed."""
    by_reader: dict[str, list[dict[str, str]]] = {}
    for row in sorted(chapters(speech), key=lambda row: -float(row["seconds"])):
        by_reader.setdefault(row["speaker"], []).append(row)
    most = (_TEMPLATE_AUDIO, _TEST_AUDIO)[chapter]
    for name, rows in sorted(by_reader.items()):
        for row in rows[chapter : chapter + 1]:
            sound, _ = soundfile.read(
                speech / row["path"], frames=round(most * RATE), dtype="float32"
            )
            yield name, sound


def _own(voices: Path, session: int) -> Iterator[tuple[str, FloatArray]]:
    """The longest session of everybody who judges, or all the others together."""
    for each in people(voices):
        if each.role == "judge":
            order = sorted(each.clips, key=lambda name: -len(each.clips[name]))
            names = order[:1] if session == 0 else order[1:]
            clips = [clip for name in names for clip in sorted(each.clips[name])]
            yield each.name, np.concatenate([soundfile.read(c, dtype="float32")[0] for c in clips])


def heard(
    sounds: Iterator[tuple[str, FloatArray]],
    change: Change,
    features: Sequence[str],
    jobs: int,
) -> Heard:
    """Frames of everybody under a condition, by name."""
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for number, (name, sound) in enumerate(sounds):
            path = Path(folder) / f"{number}.wav"
            changed = np.asarray(change(sound, number), np.float32)
            soundfile.write(path, changed, RATE, subtype="FLOAT")
            rows.append([path.name, name, "1"])
        with (Path(folder) / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["path", "speaker", "session"], *rows])
        voices, _, problems = collect(find(Path(folder)), features=features, jobs=jobs)
        for problem in problems:
            print(problem, file=sys.stderr)
    return {voice.name: _whole(voice) for voice in voices}


def _whole(voice: SpeakerSpeech) -> Frames:
    (session,) = voice.sessions
    return session


def _length(frames: Frames | None) -> int:
    return 0 if frames is None else next(iter(frames.values())).length


def report(
    title: str,
    population: Population,
    enrolled: Heard,
    streams: Heard,
    sets: Sequence[tuple[str, ...]],
    lengths: tuple[float, float],
) -> None:
    """Print a row for each set of features."""
    template, test = (round(each * UNITS_PER_SECOND) for each in lengths)
    names = sorted(name for name, each in enrolled.items() if _length(each) >= template)
    plan = Across([enrolled[name] for name in names], [streams.get(name) for name in names], test)
    for features in sets:
        rank_model = population.rank_models.find(features, "cross")
        assert rank_model is not None
        assert rank_model.evidence is not None
        assert population.cohort is not None
        scorers = {name: population.scorers(rank_model)[name] for name in features}
        against = {n: CohortScoring(population.cohort, n, each) for n, each in scorers.items()}
        made = plan.run(scorers, test, template, cohort=against).compared
        assert made is not None
        point = rank_model.evidence.at_template(lengths[0]).at(np.array([lengths[1]]))
        rows = made.heard.all(axis=1)
        a, b = point.intercept[0, :1], point.slopes[0, :1]
        z = made.z[rows].astype(float)
        own, tester = made.mated[rows], made.tester[rows]
        support = np.full(z[:, 0].shape, point.support[0])
        bits = log2_ratios(z, a, b)
        judged = Judged(title, bits, own, tester, support, made.owner)
        bare = replace(judged, bits=(a[:, None] + weighted_evidence(z, b)) / np.log(2.0))
        print(row(judged, bare, "+".join(features)), flush=True)


def row(judged: Judged, bare: Judged, features: str) -> str:
    """One line of the table; ``bare`` is the same without a share of misses."""
    others, weight, _, _ = others_of(judged)
    mated, own = judged.mated, 1.0 / np.bincount(judged.speaker)[judged.speaker]
    own = own / own.sum()
    first = judged.bits.argmax(axis=1) == judged.own
    costs = [
        cost(mated, others, own, weight)
        for cost in (calibrated.cost_bits, calibrated.least_cost_bits)
    ]
    without = calibrated.cost_bits(bare.mated, others_of(bare)[0], own, weight)
    ratio = weight @ np.exp2(others) / weight.sum()
    return (
        f"| {judged.title} | {judged.owner.size}, {np.unique(judged.speaker).size} | {features} "
        f"| {100 * own @ first:.0f} % | {own @ mated:.1f} | "
        f"{100 * own @ (mated >= judged.support[0, 0] - 1e-9):.0f} % "
        f"| {costs[0]:.2f}, {costs[1]:.2f} | {without:.2f} | {ratio:.2f} |"
    )


if __name__ == "__main__":
    main()
