"""Calibration of likelihood ratios on people who are held out of the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
from scipy.stats import binom

from benchmarks.page import Page, benchmark
from benchmarks.readers import BACKGROUND, FEATURES, alike, around, collected, trainers, units_of
from monitor.corpus import find
from monitor.maths import ratio_checks as calibrated
from monitor.maths.evidence import bits_among, cap_bits, level_ratios, posterior_among, with_misses
from monitor.maths.statistics import limits, speaker_weights
from monitor.population.cohort import CohortScoring
from monitor.training.evidence import ComparisonChooser, FittedEvidence, fit_evidence
from monitor.training.grid import CellComparisons, plans
from monitor.training.voices import cohort_of, collect
from monitor.types import BoolArray, FloatArray, IntArray
from recipes.voice.corpus import recordings

TRAINED = frozenset({"phones", "voice"})
"""Features with networks that were trained on some of the non-native speakers."""
LENGTHS, TEMPLATE_SECONDS, SHIFTS = (1.0, 3.0, 10.0, 30.0), 30.0, 6
FOLDS, REPLICATES = 5, 20
FEWEST = 15
"""Minimum number of people per row."""
CROWDS, ENROLLED = (50, 100, 250, 300), (2, 5, 10, 20)
FIRST_FOREIGN = 50
"""Index of the first non-native speaker among the voices."""
UNLIKE = "non-native, by the rank model of LibriSpeech"
PEOPLE = "people | features | T"


@dataclass(frozen=True, slots=True)
class Judged:
    """Bits of streams from a fit without their speakers and candidates.

    Attributes:
        title: the people tested, and the model.
        bits: bits of each template for each mated stream, shape (n, N); NaN if not compared.
        own: index of each stream's own template, shape (n,).
        speaker: index of each stream's speaker, shape (n,).
        support: supported bits of each comparison, shape (n, N).
        owner: index of each template's speaker, shape (N,).
    """

    title: str
    bits: FloatArray
    own: IntArray
    speaker: IntArray
    support: FloatArray
    owner: IntArray

    @property
    def there(self) -> FloatArray:
        """Bits, with -inf for comparisons not made."""
        return np.where(np.isnan(self.bits), -np.inf, self.bits)

    @property
    def strangers(self) -> FloatArray:
        """Bits if the speaker were not enrolled: -inf for the own template."""
        there = self.there
        there[np.arange(len(there)), self.own] = -np.inf
        return there

    @property
    def impostors(self) -> FloatArray:
        """Reported bits of other people if the speaker is not enrolled, shape (n, N)."""
        return np.minimum(level_ratios(self.strangers), self.support)

    @property
    def mated(self) -> FloatArray:
        """Reported bits of the speaker if enrolled, shape (n,)."""
        shown = np.minimum(level_ratios(self.there), self.support)
        return np.asarray(shown[np.arange(len(shown)), self.own])

    @property
    def weights(self) -> FloatArray:
        """Weights of streams, equal in sum for each speaker, 1 in total."""
        weights = alike(self.speaker)
        return np.asarray(weights / weights.sum())

    def among(self, some: BoolArray) -> Judged:
        """Select these templates, and the streams with their own template among them."""
        rows = np.isin(self.speaker, self.owner[some])
        return replace(
            self,
            bits=self.bits[np.ix_(rows, some)],
            own=np.searchsorted(np.flatnonzero(some), self.own[rows]),
            speaker=self.speaker[rows],
            support=self.support[np.ix_(rows, some)],
            owner=self.owner[some],
        )

    def at_home(self) -> Judged:
        """Select the templates of the speakers' own corpus."""
        return self.among((self.owner < FIRST_FOREIGN) == (self.speaker.min() < FIRST_FOREIGN))


@benchmark()
def truth(
    page: Page, speech: Path, nonnative: Path, frames: Path, nonnative_frames: Path,
    *, features: tuple[str, ...] = FEATURES,
    sets: tuple[str, ...] = (*FEATURES, "+".join(FEATURES)),
) -> None:  # fmt: skip
    """Are likelihood ratios calibrated for people who are held out of the fit?

    FRAMES contains readers (`recipes.frames`), and NONNATIVE_FRAMES non-native speakers (`monitor
    enrol ../shared/nonnative -o people.npz --frames`).
    """
    readers, specs = collected(frames, features)
    foreign, _, _ = collect(find(nonnative_frames), features=features)
    voices = [*readers, *foreign]
    apart = {each.speaker for each in recordings(speech, nonnative) if each.role == "held out"}
    cohort, _ = cohort_of(find(frames / BACKGROUND), features=features)
    measures = {name: spec.kind.similarity() for name, spec in specs.items()}
    against = {name: CohortScoring(cohort, name, each) for name, each in measures.items()}
    known, lines = trainers(speech)["phones"], list[Judged]()
    for session, t, _, plan in plans(voices, LENGTHS, (TEMPLATE_SECONDS,), SHIFTS):
        units = units_of(LENGTHS[t], TEMPLATE_SECONDS)
        made = plan.run(measures, *units, cohort=against).compared
        assert made is not None
        for names in (each.split("+") for each in sets):
            axis = [features.index(name) for name in names]
            clean = [voice.name in apart or not TRAINED.intersection(names) for voice in voices]
            reader = np.arange(len(voices)) < len(readers)
            others = ~reader & np.array(clean)
            untaught = np.array(["phones" not in names or v.name not in known for v in voices])
            about = f"{'+'.join(names)} | {LENGTHS[t]:g} s"
            lines += judge(made, axis, reader, reader & untaught, others, session, about)
        page.note(f"{session} session, {LENGTHS[t]:g} s: judged")
    lines = [each for each in lines if np.unique(each.at_home().speaker).size >= FEWEST]
    heads = "mean bits | support | Cllr, least | mean LR of impostors | most at k bits over 2^-k"
    page.table(f"{PEOPLE} | {heads} | resolved | kept", map(row, lines), keys=3)
    unlike = [few(each) for each in lines if each.title.startswith(UNLIKE)]
    page.table(f"{PEOPLE} | {' | '.join(map(str, ENROLLED))}", unlike, keys=3)
    page.table(
        f"{PEOPLE} | N | bits among N: predicted, true | rank 1: predicted, true",
        (line for each in lines if "| 10 s" in each.title for line in crowds(each, len(readers))),
        keys=4,
    )


def judge(
    made: CellComparisons, axis: Sequence[int], reader: BoolArray, testing: BoolArray,
    others: BoolArray, session: str, about: str,
) -> list[Judged]:  # fmt: skip
    """Judge readers by their own models, non-native speakers by theirs and by that of readers."""
    folds = folded(made, testing, reader)
    title = f"LibriSpeech, {session} session | {about}"
    found = [crossed(made, axis, testing, folds, title, more=others)]
    if session == "same":
        folds = folded(made, others, others)
        title = f"non-native, same session | {about}"
        found.append(crossed(made, axis, others, folds, title, more=reader))
        model = fitted(made, axis, testing, reader)
        if model is not None:
            everybody = others | reader
            title = f"{UNLIKE} | {about}"
            found.append(_judged(made, axis, others, everybody, lambda *_: model, title))
    return [each for each in found if each is not None]


def folded(made: CellComparisons, testers: BoolArray, everybody: BoolArray) -> IntArray:
    """Return the fold of each voice, -1 for none; mated testers are spread evenly."""
    mated = np.zeros(testers.size, bool)
    mated[np.unique(made.tester[made.mated >= 0])] = True
    rank = np.where(testers & mated, 0, np.where(testers, 1, 2))
    order = np.lexsort((np.random.default_rng(0).permutation(testers.size), rank))
    order = order[everybody[order]]
    fold = np.full(testers.size, -1)
    fold[order] = np.arange(order.size) % FOLDS
    return fold


def subset(made: CellComparisons, testers: BoolArray, owners: BoolArray) -> CellComparisons:
    """Select streams of some speakers and templates of some."""
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
    """Fit evidence of these people; None if fewer than ten of them have mated comparisons."""
    found = ComparisonChooser(subset(made, testers, owners)).choose(axis, testers)
    if found is None or np.unique(found.streams[found.own_column >= 0]).size < 10:
        return None
    return fit_evidence(found, speaker_weights(testers.size, REPLICATES))


def crossed(
    made: CellComparisons, axis: Sequence[int], testers: BoolArray, fold: IntArray, title: str,
    *, more: BoolArray,
) -> Judged | None:  # fmt: skip
    """Judge each comparison by a model without its two people; ``more`` are templates only."""
    models: dict[tuple[int, int], FittedEvidence] = {}
    for one, two in combinations_with_replacement(range(FOLDS), 2):
        left = (fold >= 0) & (fold != one) & (fold != two)
        model = fitted(made, axis, left & testers, left)
        if model is None:
            return None
        models[one, two] = models[two, one] = model

    def pick(tester: int, owner: int) -> FittedEvidence:
        own = int(fold[tester])
        return models[own, own if fold[owner] < 0 else int(fold[owner])]

    return _judged(made, axis, testers, (fold >= 0) | more, pick, title)


def _judged(
    made: CellComparisons, axis: Sequence[int], testers: BoolArray, owners: BoolArray,
    pick: Callable[[int, int], FittedEvidence], title: str,
) -> Judged | None:  # fmt: skip
    """Compute owners' bits for the testers' mated streams, by the models that ``pick`` returns."""
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


def others_of(judged: Judged) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Return impostors' bits (n,), their weights, indices of pairs, and people, (2, n)."""
    table = judged.impostors
    there = np.isfinite(table)
    speaker = np.broadcast_to(judged.speaker[:, None], table.shape)[there]
    owner = np.broadcast_to(judged.owner[None], table.shape)[there]
    key = np.minimum(speaker, owner) * 100_000 + np.maximum(speaker, owner)
    _, place, counts = np.unique(key, return_inverse=True, return_counts=True)
    return table[there], (1.0 / counts)[place], place, np.stack([speaker, owner])


def row(judged: Judged) -> list[str]:
    """Return the cells of a row."""
    judged = judged.at_home()
    others, weight, place, people = others_of(judged)
    pairs, own, mated = int(place.max()) + 1, judged.weights, judged.mated
    support = judged.support[np.arange(len(own)), judged.own]
    steps = np.arange(1.0, np.floor(np.log2(pairs)) + 1)
    share = calibrated.exceeding(others, weight, steps)
    kept = share * pairs <= binom.ppf(0.975, pairs, np.exp2(-steps)) + 1e-9
    each = np.bincount(place, weight * np.exp2(others))
    first = np.unique(place, return_index=True)[1]
    drawn = speaker_weights(int(people.max()) + 1, 400)
    drawn = drawn[:, people[0][first]] * drawn[:, people[1][first]]
    total = drawn.sum(axis=1)
    low, high = limits((drawn @ each)[total > 0] / total[total > 0])
    return [
        *judged.title.split(" | "),
        f"{own @ mated:.1f}",
        f"{own @ support:.1f}",
        costs(mated, others, own, weight),
        around(float(each.mean()), low, high),
        f"{(share * np.exp2(steps)).max():.2f}",
        f"{steps[-1]:g} bits",
        "yes" if kept.all() and low <= 1 else "NO",
    ]


def costs(mated: FloatArray, others: FloatArray, own: FloatArray, weight: FloatArray) -> str:
    """Format Cllr, and Cllr after the best recalibration."""
    both = (calibrated.cost_bits, calibrated.least_cost_bits)
    return ", ".join(f"{cost(mated, others, own, weight):.2f}" for cost in both)


def few(judged: Judged) -> list[str]:
    """Judge a model from another corpus if few people are enrolled; means of 60 random choices."""
    judged, generator = judged.at_home(), np.random.default_rng(0)
    there, steps, cells = judged.strangers, np.arange(1.0, 9.0), list[str]()
    for many in ENROLLED:
        means, shares = [], []
        for _ in range(60):
            some = generator.permutation(there.shape[1])[:many]
            rows = ~np.isin(judged.own, some)
            levelled = level_ratios(there[np.ix_(rows, some)])
            shown = np.minimum(levelled, judged.support[rows][:, some])
            means.append(np.exp2(shown).mean())
            shares.append([(shown >= k).mean() for k in steps])
        most = (np.mean(shares, axis=0) * np.exp2(steps)).max()
        cells.append(f"{np.mean(means):.1f}, {most:.1f}")
    return [*judged.title.split(" | "), *cells]


def crowds(judged: Judged, readers: int) -> Iterator[list[str]]:
    """Yield bits and rank 1 among N real candidates, predicted by the posterior and true."""
    generator = np.random.default_rng(0)
    own = np.unique(judged.speaker)
    same = (np.arange(judged.owner.max() + 1) < readers) == (own.min() < readers)
    home = np.setdiff1d(np.intersect1d(judged.owner, np.flatnonzero(same)), own)
    away = np.setdiff1d(np.setdiff1d(judged.owner, own), home)
    rest = np.concatenate([generator.permutation(home), generator.permutation(away)])
    for many in CROWDS:
        if min(own.size, 50) <= many <= judged.owner.size:
            kept = np.concatenate([generator.permutation(own)[:many], rest])[:many]
            told, true, bits, real = predicted(judged.among(np.isin(judged.owner, kept)))
            both = f"{bits:.2f}, {real:.2f}", f"{told:.2f}, {true:.2f}"
            yield [*judged.title.split(" | "), str(many), *both]


def predicted(judged: Judged) -> tuple[float, float, float, float]:
    """Return rank 1 and mean bits among the candidates, each predicted and true."""
    ratios = cap_bits(level_ratios(judged.there), np.nanmean(judged.support, axis=1))
    posterior = posterior_among(ratios, ratios.shape[1])
    weight, n, rows = judged.weights, ratios.shape[1], np.arange(len(ratios))
    ratios = np.where(np.isfinite(ratios), ratios, -1e3)
    found = (
        posterior.max(axis=1),
        posterior.argmax(axis=1) == judged.own,
        bits_among(ratios, n, None),
        np.log2(n * np.maximum(posterior[rows, judged.own], 1e-300)),
    )
    first, true, bits, real = (float(weight @ each) for each in found)
    return first, true, bits, real


def share_exceeding(judged: Judged, steps: FloatArray) -> FloatArray:
    """Return the fraction of impostors with at least these bits, (K,); NaN if there are too few."""
    others, weight, place, _ = others_of(judged)
    share = calibrated.exceeding(others, weight, steps)
    share[share * (place.max() + 1) < 0.2] = np.nan
    return share
