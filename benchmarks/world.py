"""What a voice discloses in the world: telephones, rooms, noise, and people's own microphones.

    python -m benchmarks.world ../shared/speech VOICES FRAMES [--early] [-o docs]

Every row: templates under one condition, streams of another session under another, ranked and
weighed by the shipped population's rank model of the default features. Templates of 30 s and
streams of 10 s of speech; of people at their own microphones 5 s and 5 s.
Readers are those of the shipped population: none trained a network, but they are part of its
calibration, and of what it knows of conditions. People at their own microphones are those who judge
(`recipes.voice.clips`): neither trained nor calibrated anything. Conditions are simulated
(`recipes.voice.world`). FRAMES keeps what was heard; `benchmarks.build_reference` learns from it
what conditions do (`with_effects`). With ``--early`` the rows are
of the first seconds at people's own microphones.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import orjson
import soundfile
from matplotlib.figure import Figure
from scipy.optimize import brentq

from benchmarks.hear import chapters
from benchmarks.truth import Judged, others_of, share_exceeding
from monitor import Monitor
from monitor.corpus import find
from monitor.features.channel import CONDITION
from monitor.features.extractor import Extractor
from monitor.features.registry import make
from monitor.jobs import cores
from monitor.maths import likelihood_ratios as calibrated
from monitor.maths.condition import ROW, Condition, condition_of, degradation, unlike
from monitor.maths.evidence import ConditionEffects, with_misses
from monitor.maths.likelihood_ratios import ConditionComparisons, fit_condition_effects
from monitor.networks.layers import RATE
from monitor.plots.canvas import BLUE, GREY, draw
from monitor.population.cohort import CohortScoring
from monitor.population.false_alarms import false_alarms
from monitor.population.population import Population
from monitor.population.rank_model import RankModel, RankModels
from monitor.sources.file import File
from monitor.sources.frames import header_of
from monitor.training.feature_extraction import HearingOptions, HearingOrder, keep, write_manifest
from monitor.training.voices import UNITS_PER_SECOND, Plan, SessionFrames, SpeakerSpeech, collect
from monitor.types import Block, FloatArray, IntArray
from recipes.voice.clips import people
from recipes.voice.world import ROWS, conditions

FEATURES, ALONE = ("f0", "phones", "voice"), ("voice",)
TEMPLATE_SECONDS, TEST_SECONDS, OWN_SECONDS = 30.0, 10.0, 5.0
EARLY_SECONDS = (1.0, 2.0, 3.0)
EARLY_ROWS = (("clean", "clean"), ("clean", "telephone"), ("telephone", "telephone"))
_READER_AUDIO, _OWN_AUDIO, _CONDITION_SECONDS = 48.0, 12.0, 15.0
_MOST_OWN = 150
_MOST_OTHERS = 6000
"""Comparisons of two people that are fitted on, of each pair of conditions."""
_CONDITIONS = "conditions.json"
GROUPS = {
    "readers-0": ("clean", "telephone", "room 0.6 s"),
    "readers-1": ("clean", "telephone", "room 0.6 s", "babble 10 dB", "Opus 12 kb/s"),
    "judge-0": ("clean", "telephone", "room 0.6 s"),
    "judge-1": ("clean", "telephone", "room 0.6 s", "babble 10 dB"),
    "calibrate-0": ("clean", "telephone", "room 0.6 s"),
    "calibrate-1": ("clean", "telephone", "room 0.6 s", "babble 10 dB"),
}
"""Who is heard under what: first what is enrolled, then what is tested."""
SHIFTS = 4
_DRAWS = 50
SHARE, HORIZON, _LEAST_SPEECH = 0.05, 60.0, 3.0
"""Of false alarms, over so many seconds of audio; readings of less speech are not looked at."""
ALARMS_HEAD = (
    "| templates, streams | features | streams | others above the threshold for 5 % "
    "| speaker enrolled: said so | not enrolled: said to be |\n"
    "| --- | --- | ---: | ---: | ---: | ---: |"
)

Frames = dict[str, SessionFrames]
Heard = dict[str, Frames]
Change = Callable[[FloatArray, int], FloatArray]
HEAD = (
    "| templates, streams | N, tested | features | first | as if clean | mean bits | at least "
    "| Cllr as if clean | Cllr, least | above it by chance | mean LR of impostors "
    "| voice alone: first, bits |\n"
    "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def across(templates: Sequence[Frames], tests: Sequence[Frames | None], test: int) -> Plan:
    """Templates of one condition, tests of another session under another, evenly spread."""

    def locate_test(voice: int, shift: int) -> tuple[Frames, int]:
        frames = tests[voice]
        assert frames is not None
        return frames, shift * (_length(frames) - test) // SHIFTS

    return Plan(
        np.arange(len(templates)),
        np.flatnonzero([_length(each) >= test for each in tests]),
        SHIFTS,
        template=lambda voice, _: (templates[voice], 0),
        test=locate_test,
        heard=lambda _, shift: (0, shift),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Disclosure in the world, row by row.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("voices", type=Path)
    parser.add_argument("frames", type=Path)
    parser.add_argument(
        "--early", action="store_true", help="first seconds at own microphones, alone"
    )
    parser.add_argument("-o", "--output", type=Path, help="folder of the picture")
    parser.add_argument("--jobs", type=int, default=cores())
    given = parser.parse_args()
    population = Population.reference()
    heard = GROUPS
    if given.early:
        heard = {"judge-0": ("clean", "telephone"), "judge-1": ("clean", "telephone")}
    hear_world(given.speech, given.voices, given.frames, FEATURES, given.jobs, heard)
    print(HEAD, flush=True)
    reader, own = (TEMPLATE_SECONDS, TEST_SECONDS), (OWN_SECONDS, OWN_SECONDS)
    rows = [("readers", *pair, reader, "") for pair in ROWS]
    rows += [("judge", *pair, own, "own microphones, ") for pair in pairs("judge")]
    if given.early:
        rows = [
            ("judge", *pair, (OWN_SECONDS, test), f"own microphones, {test:g} s, ")
            for pair in EARLY_ROWS
            for test in EARLY_SECONDS
        ]
    effects, lines = effects_in(population, FEATURES), list[Judged]()
    for group, first, second, lengths, before in rows:
        enrolled = HeardGroup.read(given.frames, f"{group}-0", first, FEATURES)
        streams = HeardGroup.read(given.frames, f"{group}-1", second, FEATURES)
        title = f"{before}{first}, {second}"
        made = compare(title, population, enrolled, streams, FEATURES, lengths)
        alone = compare(title, population, enrolled, streams, ALONE, lengths)
        print(row(made, effects, alone.judged(effects_in(population, ALONE))), flush=True)
        lines.append(made.judged(effects))
    if given.early:
        return
    if given.output:
        draw(given.output / "world-truth.svg", partial(exceeded, lines), (11.0, 11.0))
    print(f"\n{ALARMS_HEAD}", flush=True)
    for name in GROUPS["readers-1"]:
        print(alarms(given.speech, population, name), flush=True)


def alarms(speech: Path, population: Population, name: str) -> str:
    """A line: whole streams under a condition, clean templates, the speaker enrolled and not."""
    limit = false_alarms(
        population.rank_models, FEATURES, "cross", "evidence_bits", SHARE, HORIZON,
        headline="evidence",
    )  # fmt: skip
    change, streams = conditions(speech)[name], 0
    crossed, strangers, own = list[FloatArray](), list[bool](), list[bool]()
    for number, (reader, sound) in enumerate(_readers(speech, 1)):
        heard = np.asarray(change(sound, number), np.float32)
        streams += 1
        for there in (population.without(reader), population):
            readings = list(Monitor(there, FEATURES).stream(heard, rate=RATE))
            told = [
                r.ratios for r in readings if r.speech >= _LEAST_SPEECH and r.ratios is not None
            ]
            enrolled = (readings[-1].enrolled or 0.0) >= 0.5
            if there is population:
                own.append(enrolled)
            else:
                strangers.append(enrolled)
                crossed.append(np.max(told, axis=0) > limit.bits)
    return (
        f"| clean, {name} | {'+'.join(FEATURES)} | {streams} | {100 * np.mean(crossed):.1f} % "
        f"| {100 * np.mean(own):.0f} % | {100 * np.mean(strangers):.0f} % |"
    )


def pairs(group: str) -> list[tuple[str, str]]:
    """Conditions of templates and of streams of a group."""
    return list(product(GROUPS[f"{group}-0"], GROUPS[f"{group}-1"]))


def effects_in(population: Population, features: tuple[str, ...]) -> ConditionEffects | None:
    """What conditions do, as the population has it."""
    rank_model = population.rank_models.find(features, "cross")
    assert rank_model is not None
    assert rank_model.evidence is not None
    return rank_model.evidence.conditions


def with_effects(population: Population, frames: Path) -> Population:
    """The same population, its rank models with what conditions do to them.

    Learnt of what `hear_world` kept of readers and of those who calibrate.
    """
    rank_models = []
    for rank_model in population.rank_models:
        evidence = rank_model.evidence
        if rank_model.session == "cross" and evidence is not None:
            effects = fit_condition_effects(list(_learnt_from(population, frames, rank_model)))
            rank_model = replace(rank_model, evidence=replace(evidence, conditions=effects))
        rank_models.append(rank_model)
    return Population(
        population.speakers,
        population.offsets,
        population.features,
        RankModels(rank_models),
        mismatched=population.mismatched,
        about=population.about,
        cohort=population.cohort,
    )


def _learnt_from(
    population: Population, frames: Path, rank_model: RankModel
) -> Iterator[ConditionComparisons]:
    """Comparisons under every pair of conditions, at several lengths."""
    names = rank_model.features
    for group, template, tests in (
        ("readers", TEMPLATE_SECONDS, (5.0, 10.0, 20.0)),
        ("calibrate", OWN_SECONDS, (3.0, 5.0)),
    ):
        for first, second in pairs(group):
            enrolled = HeardGroup.read(frames, f"{group}-0", first, names)
            streams = HeardGroup.read(frames, f"{group}-1", second, names)
            for test in tests:
                made = compare(group, population, enrolled, streams, names, (template, test))
                yield made.flat()


def hear_world(
    speech: Path,
    voices: Path,
    frames: Path,
    features: Sequence[str],
    jobs: int,
    groups: Mapping[str, Sequence[str]] = GROUPS,
) -> None:
    """Hear what is not there yet of every group under every condition.

    FRAMES/GROUP/CONDITION/NAME.npz, and what each sounds like in conditions.json beside them.
    """
    changes = conditions(speech)
    for group, named in groups.items():
        for name in named:
            folder = frames / group / name.replace(" ", "-")
            if _is_heard(folder, features):
                continue
            sounds = list(_sounds(group, speech, voices))
            _heard(sounds, changes[name], folder, features, jobs)
            print(f"{group}, {name}: {len(sounds)} recordings", file=sys.stderr, flush=True)


def _is_heard(folder: Path, features: Sequence[str]) -> bool:
    """Whether a folder was finished, with these features and the networks of today."""
    if not (folder / _CONDITIONS).exists():
        return False
    made = HearingOptions(tuple(features)).note(make(features))["features"]
    assert isinstance(made, dict)
    kept = [header_of(path).settings.get("features", {}) for path in folder.glob("*.npz")]
    return bool(kept) and all(made.items() <= each.items() for each in kept)


def _sounds(group: str, speech: Path, voices: Path) -> Iterator[tuple[str, FloatArray]]:
    who, _, part = group.rpartition("-")
    if who == "readers":
        return _readers(speech, int(part))
    return _own(voices, who, int(part))


def _readers(speech: Path, chapter: int) -> Iterator[tuple[str, FloatArray]]:
    """The longest chapter of everybody, or the next: as much as is needed."""
    by_reader: dict[str, list[dict[str, str]]] = {}
    for row in sorted(chapters(speech), key=lambda row: -float(row["seconds"])):
        by_reader.setdefault(row["speaker"], []).append(row)
    most = round(_READER_AUDIO * RATE)
    for name, rows in sorted(by_reader.items()):
        for row in rows[chapter : chapter + 1]:
            yield name, soundfile.read(speech / row["path"], frames=most, dtype="float32")[0]


def _own(voices: Path, role: str, session: int) -> Iterator[tuple[str, FloatArray]]:
    """The longest session of people at their own microphones, or all the others together."""
    chosen = [each for each in people(voices) if each.role == role and len(each.clips) > 1]
    for each in chosen[:_MOST_OWN]:
        order = sorted(each.clips, key=lambda name: -len(each.clips[name]))
        names = order[:1] if session == 0 else order[1:]
        clips = [clip for name in names for clip in sorted(each.clips[name])]
        sound = np.concatenate([soundfile.read(c, dtype="float32")[0] for c in clips])
        yield each.name, sound[: round(_OWN_AUDIO * RATE)]


def _heard(
    sounds: Sequence[tuple[str, FloatArray]],
    change: Change,
    target: Path,
    features: Sequence[str],
    jobs: int,
) -> None:
    """Keep the frames of everybody under a condition, and what they sound like."""
    found: dict[str, dict[str, float | None]] = {}
    with tempfile.TemporaryDirectory() as folder:
        orders = []
        for number, (name, sound) in enumerate(sounds):
            path = Path(folder) / f"{name}.wav"
            changed = np.asarray(change(sound, number), np.float32)
            soundfile.write(path, changed, RATE, subtype="FLOAT")
            orders.append(HearingOrder(path, target / f"{name}.npz", name, "1"))
            found[name] = _condition(path).record()
        for kept in keep(orders, HearingOptions(tuple(features)), jobs):
            if kept.problem:
                print(f"{kept.order.target}: {kept.problem}", file=sys.stderr)
    write_manifest(target, [each for each in orders if each.target.exists()])
    (target / _CONDITIONS).write_bytes(orjson.dumps(found))


def _condition(path: Path) -> Condition:
    """What the first seconds sound like: as much as a stream has when it is weighed."""
    extractor, total = Extractor([], conditions=True), np.zeros(ROW, np.int64)
    with File(path, end_seconds=_CONDITION_SECONDS) as file:
        for block in file:
            if isinstance(block, Block):
                total += extractor.process(block).tracks[CONDITION].values.sum(axis=0)
    return condition_of(total)


@dataclass(frozen=True, slots=True)
class HeardGroup:
    """Frames of everybody of a group under a condition, and what each sounds like, by name."""

    frames: Heard
    conditions: dict[str, Condition]

    @classmethod
    def read(cls, frames: Path, group: str, name: str, features: Sequence[str]) -> HeardGroup:
        """What `hear_world` kept."""
        folder = frames / group / name.replace(" ", "-")
        voices, _, problems = collect(find(folder), features=features)
        for problem in problems:
            print(problem, file=sys.stderr)
        told = orjson.loads((folder / _CONDITIONS).read_bytes())
        made = {each: Condition.parse(record) or Condition() for each, record in told.items()}
        return cls({voice.name: _whole(voice) for voice in voices}, made)


def _whole(voice: SpeakerSpeech) -> Frames:
    (session,) = voice.sessions
    return session


def _length(frames: Frames | None) -> int:
    return 0 if frames is None else next(iter(frames.values())).length


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Streams against templates, weighed by rank models of clean speech.

    Attributes:
        title: which condition of the templates, and which of the streams.
        parts: what each feature adds to the log2 of a likelihood ratio, shape (n, F, N).
        intercept: of these ratios, bits.
        own: place of each stream's own template, shape (n,).
        tester, owner: whose stream, shape (n,); whose template, shape (N,).
        support: bits.
        unlike: how their conditions differ, shape (n, N, 10).
        template_seconds: D of the templates.
    """

    title: str
    parts: FloatArray
    intercept: float
    own: IntArray
    tester: IntArray
    owner: IntArray
    support: float
    unlike: FloatArray
    template_seconds: float

    def judged(self, effects: ConditionEffects | None) -> Judged:
        """The bits that are told, and what supports them."""
        bits, support = self.intercept + self.parts.sum(axis=1), np.array(self.support)
        if effects is not None:
            effect = effects.at_template(self.template_seconds)
            shift, slope, most = effect.at(self.unlike)
            bits = self.intercept + (self.parts * np.moveaxis(slope, -1, 1)).sum(axis=1)
            bits = bits + max(-self.intercept, 0.0) * shift
            support = np.minimum(support, most)
        bits, support = with_misses(bits), np.broadcast_to(support, bits.shape)
        return Judged(self.title, bits, self.own, self.tester, support, self.owner)

    def flat(self) -> ConditionComparisons:
        """All comparisons of two people, and those of one; every speaker and every pair alike."""
        people = np.broadcast_arrays(self.tester[:, None], self.owner[None])
        tester, owner = (np.char.add(self.title, each.astype(str)) for each in people)
        mated = np.zeros(people[0].shape, np.bool_)
        there = np.flatnonzero(self.own >= 0)
        mated[there, self.own[there]] = True
        some = np.flatnonzero(mated | (people[0] != people[1]))
        others = some[~mated.ravel()[some]]
        step = -(-others.size // _MOST_OTHERS)
        some = np.sort(np.concatenate([some[mated.ravel()[some]], others[::step]]))
        mated, tester, owner = mated.ravel()[some], tester.ravel()[some], owner.ravel()[some]
        keys = np.where(mated, tester, np.char.add(np.char.add(tester, " "), owner))
        _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
        weight = 1.0 / counts[place]
        for each in (mated, ~mated):
            weight[each] /= 2.0 * weight[each].sum()
        unlike_each = self.unlike.reshape(-1, self.unlike.shape[-1])[some]
        return ConditionComparisons(
            np.moveaxis(self.parts, 1, -1).reshape(-1, self.parts.shape[1])[some],
            *(self.intercept, mated, weight, unlike_each, tester, owner, self.template_seconds),
        )


def compare(
    title: str,
    population: Population,
    enrolled: HeardGroup,
    streams: HeardGroup,
    features: tuple[str, ...],
    lengths: tuple[float, float],
) -> Comparisons:
    """Templates and streams of these lengths, speech seconds."""
    template, test = (round(each * UNITS_PER_SECOND) for each in lengths)
    names = sorted(name for name, each in enrolled.frames.items() if _length(each) >= template)
    tests = [streams.frames.get(name) for name in names]
    plan = across([enrolled.frames[name] for name in names], tests, test)
    rank_model = population.rank_models.find(features, "cross")
    assert rank_model is not None
    assert rank_model.evidence is not None
    assert population.cohort is not None
    scorers = {name: population.scorers(rank_model)[name] for name in features}
    against = {n: CohortScoring(population.cohort, n, each) for n, each in scorers.items()}
    made = plan.run(scorers, test, template, cohort=against).compared
    assert made is not None
    point = rank_model.evidence.at_template(lengths[0]).at(np.array([lengths[1]]))
    rows = made.has_frames.all(axis=1)
    z, tester = made.z[rows].astype(float), made.tester[rows]
    intercept = float(point.intercept[0, 0] / np.log(2.0))
    parts = z * point.slopes[0, 0, :, None] / np.log(2.0)
    sound = [
        np.stack([degradation(group.conditions[names[each]]) for each in whose])
        for group, whose in ((streams, tester), (enrolled, made.owner))
    ]
    own = made.mated[rows]
    return Comparisons(
        *(title, parts, intercept, own, tester, made.owner),
        *(float(point.support[0]), unlike(*sound), lengths[0]),
    )


def row(made: Comparisons, effects: ConditionEffects | None, alone: Judged) -> str:
    """One line of the table: of all features, and of ``voice`` alone."""
    judged, bare = made.judged(effects), made.judged(None)
    others, weight, _, _ = others_of(judged)
    mated, own = judged.mated, 1.0 / np.bincount(judged.speaker)[judged.speaker]
    own = own / own.sum()
    rows = np.arange(len(judged.own))
    first = judged.bits.argmax(axis=1) == judged.own
    theirs = 1.0 / np.bincount(alone.speaker)[alone.speaker]
    theirs = theirs / theirs.sum()
    first_alone = alone.bits.argmax(axis=1) == alone.own
    cut = mated >= judged.support[rows, judged.own] - 1e-9
    costs = [
        cost(mated, others, own, weight)
        for cost in (calibrated.cost_bits, calibrated.least_cost_bits)
    ]
    without = calibrated.cost_bits(bare.mated, others_of(bare)[0], own, weight)
    ratio = weight @ np.exp2(others) / weight.sum()
    return (
        f"| {judged.title} | {judged.owner.size}, {np.unique(judged.speaker).size} "
        f"| {'+'.join(FEATURES)} | {100 * own @ first:.0f} % | {own @ bare.mated:.1f} "
        f"| {own @ mated:.1f} | {100 * own @ cut:.0f} % "
        f"| {without:.2f} | {costs[0]:.2f}, {costs[1]:.2f} "
        f"| {excess_by_chance(costs[0], own, weight):.2f} | {ratio:.2f} "
        f"| {100 * theirs @ first_alone:.0f} %, {theirs @ alone.mated:.1f} |"
    )


def excess_by_chance(cost: float, own: FloatArray, theirs: FloatArray) -> float:
    """How far Cllr of calibrated ratios lies above min Cllr, which overfits small samples.

    Ln ratios that are normal with variance s^2 around s^2/2 (mated) and -s^2/2 (others) are their
    own ratios (van Leeuwen and Brummer, 2013). With the spread that gives this
    Cllr, one ratio is drawn for each weight, `_DRAWS` times, all independent; that comparisons
    share people, which makes the sample smaller still, is not simulated.
    """
    points, mass = np.polynomial.hermite_e.hermegauss(64)
    mass = mass / mass.sum()

    def beyond(spread: float) -> float:
        expected = mass @ np.logaddexp(0.0, -spread * points - spread**2 / 2)
        return float(expected / np.log(2.0)) - cost

    spread = brentq(beyond, 0.01, 20.0) if cost < 1.0 else 0.01  # as good as no evidence
    rng = np.random.default_rng(0)
    found = list[float]()
    for _ in range(_DRAWS):
        mated, others = (
            (spread * rng.standard_normal(weights.size) + sign * spread**2 / 2) / np.log(2.0)
            for weights, sign in ((own, 1), (theirs, -1))
        )
        perfect = calibrated.cost_bits(mated, others, own, theirs)
        found.append(perfect - calibrated.least_cost_bits(mated, others, own, theirs))
    return float(np.mean(found))


def exceeded(lines: Sequence[Judged], figure: Figure) -> None:
    """Of each row, the share of impostors' and of mated comparisons at k bits or more."""
    grid = figure.subplots(-(-len(lines) // 4), 4, sharex=True, sharey=True, squeeze=False)
    steps = np.linspace(0.0, 13.0, 53)
    for axes, judged in zip(grid.flat, lines, strict=False):
        axes.plot(steps, 100 * np.exp2(-steps), color=GREY, linestyle=":", label="allowed: 2^-k")
        own = 1.0 / np.bincount(judged.speaker)[judged.speaker]
        mated = calibrated.exceeding(judged.mated, own, steps)
        axes.plot(steps, 100 * mated, color=BLUE, linestyle="--", label="the right person")
        share = share_exceeding(judged, steps)
        axes.plot(steps, 100 * share, color=BLUE, label="other people")
        axes.set_title(judged.title.replace("own microphones,", "own:"), fontsize=9)
        axes.set(yscale="log", ylim=(0.02, 130))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.3)
    for axes in list(grid.flat)[len(lines) :]:
        axes.set_axis_off()
    figure.supxlabel("bits shown, at least")
    figure.supylabel("share of comparisons, %")
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)


if __name__ == "__main__":
    main()
