"""Do likelihood ratios keep what they promise, on people whom the fit has not seen?

    monitor enrol ../shared/nonnative -o people.npz --frames NONNATIVE --features f0,phones,voice
    python -m benchmarks.truth ../shared/speech ../shared/nonnative FRAMES NONNATIVE -o docs
    python -m benchmarks.truth ... --features f0,phones,voice --sets voice,f0+phones+voice

FRAMES is a folder that `benchmarks.build_reference` heard; the cohort is its background readers.
Rank models of LibriSpeech's readers are fitted on three or four fifths of them and judged on
comparisons of two people who are both left out, until every pair was judged once; likewise those of
non-native speakers, who are judged by the rank model of all of LibriSpeech's readers as well.
`voice` and the units of `phones` were trained on 200 of the non-native speakers: sets with them are
judged on the other 50. Templates of 30 s. An impostor's stream is one of somebody whose own
template is taken away.

Of other people's comparisons a share of at most 2^-k may show k bits or more, beyond the limit of a
binomial of as many draws as there are pairs of people; their mean ratio may be at most 1 within its
limits, over resampled people.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import binom

from benchmarks.hear import BACKGROUND, trainers
from benchmarks.template_length import collected
from monitor.corpus import find
from monitor.maths import likelihood_ratios as calibrated
from monitor.maths.evidence import bits_among, cap_bits, level_ratios, posterior_among, with_misses
from monitor.maths.statistics import limits, speaker_weights
from monitor.plots.canvas import BLUE, GREEN, GREY, ORANGE, PURPLE, draw
from monitor.population.cohort import CohortScoring
from monitor.training.fitted import ComparisonChooser, FittedEvidence, fit_evidence
from monitor.training.voices import (
    UNITS_PER_SECOND,
    CellComparisons,
    SpeakerSpeech,
    cohort_of,
    collect,
    plans,
)
from monitor.types import BoolArray, FloatArray, IntArray
from recipes.voice.corpus import recordings

FEATURES = ("f0", "phones", "voice")
SETS = (("f0",), ("phones",), ("voice",), FEATURES)
TRAINED = frozenset({"phones", "voice"})
"""Features whose networks some of the non-native speakers trained."""
LENGTHS = (1.0, 3.0, 10.0, 30.0)
TEMPLATE_SECONDS = 30.0
SHIFTS = 6
FOLDS = 5
CROWDS = (50, 100, 250, 300)
REPLICATES = 20
FEWEST = 15
"""People of a line."""
COLOURS = (BLUE, GREEN, ORANGE, PURPLE)


@dataclass(frozen=True, slots=True)
class Judged:
    """Bits of streams whose speakers, and whose candidates, a fit has not seen.

    Attributes:
        title: what was judged by what.
        bits: of every template in every mated stream, shape (n, N); NaN where there is none.
        own: place of each stream's own template, shape (n,).
        speaker: whose stream, shape (n,).
        support: of each comparison, shape (n, N).
        owner: whose template, shape (N,).
    """

    title: str
    bits: FloatArray
    own: IntArray
    speaker: IntArray
    support: FloatArray
    owner: IntArray

    @property
    def impostors(self) -> FloatArray:
        """What is shown of everybody else where the speaker is not enrolled."""
        there = np.where(np.isnan(self.bits), -np.inf, self.bits)
        there[np.arange(len(there)), self.own] = -np.inf
        return np.minimum(level_ratios(there), self.support)

    @property
    def mated(self) -> FloatArray:
        """What is shown of the speaker who is enrolled, shape (n,)."""
        there = level_ratios(np.where(np.isnan(self.bits), -np.inf, self.bits))
        rows = np.arange(len(there))
        return np.minimum(there, self.support)[rows, self.own]

    def among(self, some: BoolArray) -> Judged:
        """The same with these templates alone, the speakers' own among them."""
        kept = self.owner[some]
        rows = np.isin(self.speaker, kept)
        place = np.flatnonzero(some)
        return replace(
            self,
            bits=self.bits[np.ix_(rows, some)],
            own=np.searchsorted(place, self.own[rows]),
            speaker=self.speaker[rows],
            support=self.support[np.ix_(rows, some)],
            owner=kept,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Likelihood ratios, judged on others.")
    for name in ("speech", "nonnative", "frames", "nonnative_frames"):
        parser.add_argument(name, type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--features", default=",".join(FEATURES))
    parser.add_argument("--sets", default=",".join(map("+".join, SETS)), help="to be judged")
    given = parser.parse_args()
    heard = tuple(given.features.split(","))
    asked = [tuple(names.split("+")) for names in given.sets.split(",")]
    readers, specs = collected(given.frames, heard)
    foreign, _, _ = collect(find(given.nonnative_frames), features=heard)
    apart = {
        each.speaker
        for each in recordings(given.speech, given.nonnative)
        if each.role == "held out"
    }
    cohort, _ = cohort_of(find(given.frames / BACKGROUND), features=heard)
    measures = {n: s.kind.similarity() for n, s in specs.items()}
    against = {name: CohortScoring(cohort, name, each) for name, each in measures.items()}
    voices = [*readers, *foreign]
    known = trainers(given.speech)["phones"]
    lines: list[Judged] = []
    for session, t, _, plan in plans(voices, LENGTHS, (TEMPLATE_SECONDS,), SHIFTS):
        units = [round(x * UNITS_PER_SECOND) for x in (LENGTHS[t], TEMPLATE_SECONDS)]
        made = plan.run(measures, *units, cohort=against).compared
        assert made is not None
        for features in (each for each in asked if set(each) <= set(heard)):
            axis = [heard.index(name) for name in features]
            lines += judge(
                made, voices, len(readers), features, axis, session, LENGTHS[t], apart, known
            )
        print(f"{session} session, {LENGTHS[t]:g} s: judged", file=sys.stderr, flush=True)
    lines = [each for each in lines if np.unique(at_home(each).speaker).size >= FEWEST]
    print(HEAD, *(row(each) for each in lines), sep="\n", flush=True)
    print(FEW_HEAD, *(few(each) for each in lines if each.title.startswith(UNLIKE)), sep="\n")
    print(CROWD_HEAD, *(line for each in lines for line in crowds(each, len(readers))), sep="\n")
    if given.output is not None:
        shown = [each for each in lines if "f0+phones+voice | 10 s" in each.title]
        draw(given.output / "evidence-exceeded.svg", partial(exceeded, shown), (7.0, 4.5))
        draw(given.output / "evidence-reliable.svg", partial(reliable, shown), (6.0, 4.8))


def judge(
    made: CellComparisons,
    voices: Sequence[SpeakerSpeech],
    readers: int,
    features: Sequence[str],
    axis: Sequence[int],
    session: str,
    seconds: float,
    apart: set[str],
    known: set[str],
) -> list[Judged]:
    """Readers by their own models; non-native speakers by theirs, and by that of the readers."""
    names = np.array([voice.name for voice in voices])
    reader = np.arange(len(voices)) < readers
    taught = np.isin(names, list(known)) & ("phones" in features)
    clean = np.isin(names, list(apart)) | (not TRAINED.intersection(features))
    about = f"{'+'.join(features)} | {seconds:g} s"
    folds = folded(made, reader & ~taught, reader)
    found = [
        crossed(made, axis, reader & ~taught, folds, f"LibriSpeech, {session} session | {about}",
                more=~reader & clean)
    ]  # fmt: skip
    if session == "same":
        others = ~reader & clean
        folds = folded(made, others, others)
        title = f"non-native, same session | {about}"
        found.append(crossed(made, axis, others, folds, title, more=reader))
        rank_model = fitted(made, axis, reader & ~taught, reader)
        if rank_model is not None:
            title = f"non-native, by the rank model of LibriSpeech | {about}"
            found.append(applied(made, axis, others, rank_model, title, more=reader))
    return [each for each in found if each is not None]


def folded(made: CellComparisons, testers: BoolArray, everybody: BoolArray) -> IntArray:
    """Fold of each voice, -1 of those who are in none; mated testers are spread evenly."""
    mated = np.zeros(testers.size, bool)
    mated[np.unique(made.tester[made.mated >= 0])] = True
    rank = np.where(testers & mated, 0, np.where(testers, 1, 2))
    order = np.lexsort((np.random.default_rng(0).permutation(testers.size), rank))
    order = order[everybody[order]]
    fold = np.full(testers.size, -1)
    fold[order] = np.arange(order.size) % FOLDS
    return fold


def subset(made: CellComparisons, testers: BoolArray, owners: BoolArray) -> CellComparisons:
    """Some streams against some templates."""
    rows, columns = testers[made.tester], owners[made.owner]
    place = np.append(np.where(columns, np.cumsum(columns) - 1, -1), -1)
    return CellComparisons(
        made.z[np.ix_(rows, np.arange(made.z.shape[1]), columns)],
        made.has_frames[rows],
        made.tester[rows],
        place[made.mated[rows]],
        made.owner[columns],
    )


def fitted(
    made: CellComparisons, axis: Sequence[int], testers: BoolArray, owners: BoolArray
) -> FittedEvidence | None:
    """A rank model of these people; None where fewer than ten of them are in a mated comparison."""
    found = ComparisonChooser(subset(made, testers, owners)).choose(axis, testers)
    if found is None or np.unique(found.streams[found.own >= 0]).size < 10:
        return None
    return fit_evidence(found, speaker_weights(testers.size, REPLICATES))


def crossed(
    made: CellComparisons,
    axis: Sequence[int],
    testers: BoolArray,
    fold: IntArray,
    title: str,
    *,
    more: BoolArray,
) -> Judged | None:
    """Every comparison by a model that saw neither of its people; ``more`` only as templates."""
    rank_models: dict[tuple[int, int], FittedEvidence] = {}
    for one in range(FOLDS):
        for two in range(one, FOLDS):
            left = (fold >= 0) & (fold != one) & (fold != two)
            rank_model = fitted(made, axis, left & testers, left)
            if rank_model is None:
                return None
            rank_models[one, two] = rank_models[two, one] = rank_model

    def pick(tester: int, owner: int) -> FittedEvidence:
        own = int(fold[tester])
        return rank_models[own, own if fold[owner] < 0 else int(fold[owner])]

    return _judged(made, axis, testers, (fold >= 0) | more, pick, title)


def applied(
    made: CellComparisons,
    axis: Sequence[int],
    testers: BoolArray,
    rank_model: FittedEvidence,
    title: str,
    *,
    more: BoolArray,
) -> Judged | None:
    """Every comparison by one rank model."""
    return _judged(made, axis, testers, testers | more, lambda *_: rank_model, title)


def _judged(
    made: CellComparisons,
    axis: Sequence[int],
    testers: BoolArray,
    owners: BoolArray,
    pick: Callable[[int, int], FittedEvidence],
    title: str,
) -> Judged | None:
    """Bits of everybody in the mated streams of those testers, each by the model that is picked."""
    rows = testers[made.tester] & (made.mated >= 0) & made.has_frames[:, list(axis)].all(axis=1)
    if not rows.any():
        return None
    part = replace(made, z=made.z[rows], has_frames=made.has_frames[rows], tester=made.tester[rows],
                   mated=made.mated[rows])  # fmt: skip
    part = subset(part, testers, owners)
    bits = np.empty((part.tester.size, part.owner.size))
    support = np.empty(bits.shape)
    for tester in np.unique(part.tester):
        mine = np.flatnonzero(part.tester == tester)
        rank_models = [pick(int(tester), owner) for owner in part.owner.tolist()]
        for rank_model in {id(each): each for each in rank_models}.values():
            columns = np.flatnonzero([each is rank_model for each in rank_models])
            a, *b = rank_model.coefficients[0]
            z = part.z[np.ix_(mine, np.array(axis), columns)]
            nats = a + np.einsum("f,nfj->nj", b, z)
            bits[np.ix_(mine, columns)] = with_misses(nats / np.log(2.0))
            support[np.ix_(mine, columns)] = rank_model.support
    other = part.owner[None] == part.tester[:, None]
    other[np.arange(len(other)), part.mated] = False
    bits[other] = np.nan
    return Judged(title, bits, part.mated, part.tester, support, part.owner)


HEAD = (
    "| people | features | T | mean bits | support | Cllr, least | mean LR of impostors "
    "| most at k bits over 2^-k | resolved | kept |\n"
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
)
UNLIKE = "non-native, by the rank model of LibriSpeech"
ENROLLED = (2, 5, 10, 20)
FEW_HEAD = (
    "\nMean LR of impostors, and the most at k bits over 2^-k, by how many of their crowd are "
    "enrolled:\n\n| people | features | T | " + " | ".join(map(str, ENROLLED)) + " |\n"
    "| --- | --- | ---: |" + " ---: |" * len(ENROLLED)
)
CROWD_HEAD = (
    "\n| people | features | T | N | bits among N: told, true | rank 1: told, true |\n"
    "| --- | --- | ---: | ---: | ---: | ---: |"
)


def at_home(judged: Judged) -> Judged:
    """Among the people of their own corpus alone."""
    testers = np.unique(judged.speaker)
    readers = testers.min() < FIRST_FOREIGN
    return judged.among((judged.owner < FIRST_FOREIGN) == readers)


FIRST_FOREIGN = 50
"""Place of the first non-native speaker among the voices."""


def others_of(judged: Judged) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Impostors' bits; weight, pair of people of each; and weights of mated streams."""
    table = judged.impostors
    there = np.isfinite(table)
    speaker = np.broadcast_to(judged.speaker[:, None], table.shape)[there]
    owner = np.broadcast_to(judged.owner[None], table.shape)[there]
    key = np.minimum(speaker, owner) * 100_000 + np.maximum(speaker, owner)
    _, place, counts = np.unique(key, return_inverse=True, return_counts=True)
    return table[there], (1.0 / counts)[place], place, np.stack([speaker, owner])


def row(judged: Judged) -> str:
    """One line of the table."""
    judged = at_home(judged)
    others, weight, place, people = others_of(judged)
    pairs = int(place.max()) + 1
    mated, rows = judged.mated, np.arange(len(judged.own))
    support = judged.support[rows, judged.own]
    own = (1.0 / np.bincount(judged.speaker))[judged.speaker]
    steps = np.arange(1.0, np.floor(np.log2(pairs)) + 1)
    share = calibrated.exceeding(others, weight, steps)
    kept = share * pairs <= binom.ppf(0.975, pairs, np.exp2(-steps)) + 1e-9
    each = np.bincount(place, weight * np.exp2(others))
    first = np.unique(place, return_index=True)[1]
    drawn = speaker_weights(int(people.max()) + 1, 400)
    drawn = drawn[:, people[0][first]] * drawn[:, people[1][first]]
    total = drawn.sum(axis=1)
    means = (drawn @ each)[total > 0] / total[total > 0]
    low, high = limits(means)
    costs = [
        cost(mated, others, own, weight)
        for cost in (calibrated.cost_bits, calibrated.least_cost_bits)
    ]
    verdict = "yes" if kept.all() and low <= 1 else "NO"
    return (
        f"| {judged.title} | {own @ mated / own.sum():.1f} | {own @ support / own.sum():.1f} | "
        f"{costs[0]:.2f}, {costs[1]:.2f} | {each.mean():.2f} ({low:.2f} to {high:.2f}) | "
        f"{(share * np.exp2(steps)).max():.2f} | {steps[-1]:g} bits | {verdict} |"
    )


def few(judged: Judged) -> str:
    """What a model learnt elsewhere says where few of a crowd are enrolled; means of 60 draws."""
    judged, generator = at_home(judged), np.random.default_rng(0)
    there = np.where(np.isnan(judged.bits), -np.inf, judged.bits)
    there[np.arange(len(there)), judged.own] = -np.inf
    steps, cells = np.arange(1.0, 9.0), []
    for many in ENROLLED:
        means, shares = [], []
        for _ in range(60):
            some = generator.permutation(there.shape[1])[:many]
            rows = ~np.isin(judged.own, some)
            shown = np.minimum(
                level_ratios(there[np.ix_(rows, some)]), judged.support[rows][:, some]
            )
            means.append(np.exp2(shown).mean())
            shares.append([(shown >= k).mean() for k in steps])
        most = (np.mean(shares, axis=0) * np.exp2(steps)).max()
        cells.append(f"{np.mean(means):.1f}, {most:.1f}")
    return f"| {judged.title} | " + " | ".join(cells) + " |"


def crowds(judged: Judged, readers: int) -> list[str]:
    """Rank 1 and bits among N real candidates, as the posterior tells and as it is."""
    generator = np.random.default_rng(0)
    own = np.unique(judged.speaker)
    rest = np.setdiff1d(judged.owner, own)
    home = np.intersect1d(judged.owner, np.flatnonzero(
        (np.arange(judged.owner.max() + 1) < readers) == (own.min() < readers)))  # fmt: skip
    rest = np.concatenate(
        [
            generator.permutation(np.setdiff1d(home, own)),
            generator.permutation(np.setdiff1d(rest, home)),
        ]
    )
    lines = []
    for many in CROWDS:
        if many > judged.owner.size or many < min(own.size, 50):
            continue
        kept = np.concatenate([generator.permutation(own)[:many], rest])[:many]
        part = judged.among(np.isin(judged.owner, kept))
        told, true, bits, real = predicted(part)
        lines.append(
            f"| {judged.title} | {many} | {bits:.2f}, {real:.2f} | {told:.2f}, {true:.2f} |"
        )
    return lines


def posterior_of(judged: Judged) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Ratios and posterior among the candidates, and weights of streams."""
    there = np.where(np.isnan(judged.bits), -np.inf, judged.bits)
    ratios = cap_bits(level_ratios(there), np.nanmean(judged.support, axis=1))
    own = (1.0 / np.bincount(judged.speaker))[judged.speaker]
    return ratios, posterior_among(ratios, ratios.shape[1]), own / own.sum()


def predicted(judged: Judged) -> tuple[float, float, float, float]:
    """Rank 1 and mean bits among the candidates: told, true."""
    ratios, posterior, weight = posterior_of(judged)
    n, rows = ratios.shape[1], np.arange(len(ratios))
    ratios = np.where(np.isfinite(ratios), ratios, -1e3)
    first = posterior.argmax(axis=1) == judged.own
    true = np.log2(n * np.maximum(posterior[rows, judged.own], 1e-300))
    told = bits_among(ratios, n, None)
    return (
        float(weight @ posterior.max(axis=1)),
        float(weight @ first),
        float(weight @ told),
        float(weight @ true),
    )


def share_exceeding(judged: Judged, steps: FloatArray) -> FloatArray:
    """Share of impostors' comparisons at these bits, (K,), or more; NaN where too few show them."""
    others, weight, place, _ = others_of(judged)
    share = calibrated.exceeding(others, weight, steps)
    share[share * (place.max() + 1) < 0.2] = np.nan
    return share


def exceeded(lines: Sequence[Judged], figure: Figure) -> None:
    """Share of impostors' comparisons at k bits or more, beside 2^-k."""
    axes = figure.subplots()
    steps = np.linspace(0, 10, 41)
    axes.plot(steps, 100 * np.exp2(-steps), color=GREY, linestyle="--", label="allowed: 2^-k")
    for judged, colour in zip(lines, COLOURS, strict=False):
        share = share_exceeding(at_home(judged), steps)
        axes.plot(steps, 100 * share, color=colour, label=judged.title.split(" | ")[0])
    axes.set(yscale="log", ylim=(0.02, 110), xlabel="bits shown of somebody else, at least",
             ylabel="share of comparisons, %")  # fmt: skip
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)


def reliable(lines: Sequence[Judged], figure: Figure) -> None:
    """Of candidates given a probability, how many are the speaker."""
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", label="as told")
    edges = np.array([0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0 + 1e-9])
    for judged, colour in zip(lines, COLOURS, strict=False):
        _, posterior, weight = posterior_of(at_home(judged))
        label = np.arange(posterior.shape[1]) == at_home(judged).own[:, None]
        mass = np.broadcast_to(weight[:, None], posterior.shape)
        place = np.digitize(posterior, edges) - 1
        total = np.bincount(place.ravel(), mass.ravel(), edges.size)
        given = np.bincount(place.ravel(), (mass * posterior).ravel(), edges.size)
        true = np.bincount(place.ravel(), (mass * label).ravel(), edges.size)
        some = total > 0
        axes.plot(given[some] / total[some], true[some] / total[some], color=colour, marker="o",
                  label=judged.title.split(" | ")[0])  # fmt: skip
    axes.set(xlabel="probability given to a candidate", ylabel="share who are the speaker")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)


if __name__ == "__main__":
    main()
