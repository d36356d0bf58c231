"""Calibration of likelihood ratios on people who are held out of the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
from scipy.stats import binom

from benchmarks.page import Page, benchmark
from benchmarks.readers import (
    BACKGROUND,
    FEATURES,
    collect_readers,
    count_units,
    equal_speaker_weights,
    format_range,
    trainers,
)
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
class StreamBits:
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
    def finite_bits(self) -> FloatArray:
        """Bits, with -inf for comparisons not made."""
        return np.where(np.isnan(self.bits), -np.inf, self.bits)

    @property
    def unenrolled_bits(self) -> FloatArray:
        """Bits if the speaker were not enrolled: -inf for the own template."""
        finite_bits = self.finite_bits
        finite_bits[np.arange(len(finite_bits)), self.own] = -np.inf
        return finite_bits

    @property
    def impostors(self) -> FloatArray:
        """Reported bits of other people if the speaker is not enrolled, shape (n, N)."""
        return np.minimum(level_ratios(self.unenrolled_bits), self.support)

    @property
    def mated(self) -> FloatArray:
        """Reported bits of the speaker if enrolled, shape (n,)."""
        shown = np.minimum(level_ratios(self.finite_bits), self.support)
        return np.asarray(shown[np.arange(len(shown)), self.own])

    @property
    def weights(self) -> FloatArray:
        """Weights of streams, equal in sum for each speaker, 1 in total."""
        weights = equal_speaker_weights(self.speaker)
        return np.asarray(weights / weights.sum())

    def select(self, templates: BoolArray) -> StreamBits:
        """Select these templates, and the streams with their own template among them."""
        rows = np.isin(self.speaker, self.owner[templates])
        return replace(
            self,
            bits=self.bits[np.ix_(rows, templates)],
            own=np.searchsorted(np.flatnonzero(templates), self.own[rows]),
            speaker=self.speaker[rows],
            support=self.support[np.ix_(rows, templates)],
            owner=self.owner[templates],
        )

    def in_own_corpus(self) -> StreamBits:
        """Select the templates of the speakers' own corpus."""
        return self.select((self.owner < FIRST_FOREIGN) == (self.speaker.min() < FIRST_FOREIGN))


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
    readers, specs = collect_readers(frames, features)
    foreign, _, _ = collect(find(nonnative_frames), features=features)
    voices = [*readers, *foreign]
    held_out = {each.speaker for each in recordings(speech, nonnative) if each.role == "held out"}
    cohort, _ = cohort_of(find(frames / BACKGROUND), features=features)
    measures = {name: spec.kind.similarity() for name, spec in specs.items()}
    cohort_scoring = {name: CohortScoring(cohort, name, each) for name, each in measures.items()}
    trained_on_phones, lines = trainers(speech)["phones"], list[StreamBits]()
    for session, t, _, plan in plans(voices, LENGTHS, (TEMPLATE_SECONDS,), SHIFTS):
        units = count_units(LENGTHS[t], TEMPLATE_SECONDS)
        comparisons = plan.run(measures, *units, cohort=cohort_scoring).compared
        assert comparisons is not None
        for names in (each.split("+") for each in sets):
            axis = [features.index(name) for name in names]
            is_held_out = [
                voice.name in held_out or not TRAINED.intersection(names) for voice in voices
            ]
            is_reader = np.arange(len(voices)) < len(readers)
            is_foreign = ~is_reader & np.array(is_held_out)
            is_untrained = np.array(
                ["phones" not in names or v.name not in trained_on_phones for v in voices]
            )
            condition = f"{'+'.join(names)} | {LENGTHS[t]:g} s"
            lines += fit_and_compute(
                comparisons,
                axis,
                is_reader,
                is_reader & is_untrained,
                is_foreign,
                session,
                condition,
            )
        page.note(f"{session} session, {LENGTHS[t]:g} s: judged")
    lines = [each for each in lines if np.unique(each.in_own_corpus().speaker).size >= FEWEST]
    heads = "mean bits | support | Cllr, least | mean LR of impostors | most at k bits over 2^-k"
    page.table(f"{PEOPLE} | {heads} | resolved | kept", map(create_row, lines), keys=3)
    few_rows = [create_few_row(each) for each in lines if each.title.startswith(UNLIKE)]
    page.table(f"{PEOPLE} | {' | '.join(map(str, ENROLLED))}", few_rows, keys=3)
    page.table(
        f"{PEOPLE} | N | bits among N: predicted, true | rank 1: predicted, true",
        (
            line
            for each in lines
            if "| 10 s" in each.title
            for line in create_crowd_rows(each, len(readers))
        ),
        keys=4,
    )


def fit_and_compute(
    comparisons: CellComparisons, axis: Sequence[int], reader: BoolArray, testing: BoolArray,
    others: BoolArray, session: str, condition: str,
) -> list[StreamBits]:  # fmt: skip
    """Judge readers by their own models, non-native speakers by theirs and by that of readers."""
    folds = assign_folds(comparisons, testing, reader)
    title = f"LibriSpeech, {session} session | {condition}"
    found = [cross_validate(comparisons, axis, testing, folds, title, more=others)]
    if session == "same":
        folds = assign_folds(comparisons, others, others)
        title = f"non-native, same session | {condition}"
        found.append(cross_validate(comparisons, axis, others, folds, title, more=reader))
        model = fit_people(comparisons, axis, testing, reader)
        if model is not None:
            everybody = others | reader
            title = f"{UNLIKE} | {condition}"
            found.append(
                _compute_bits(comparisons, axis, others, everybody, lambda *_: model, title)
            )
    return [each for each in found if each is not None]


def assign_folds(
    comparisons: CellComparisons, testers: BoolArray, everybody: BoolArray
) -> IntArray:
    """Return the fold of each voice, -1 for none; mated testers are spread evenly."""
    mated = np.zeros(testers.size, bool)
    mated[np.unique(comparisons.tester[comparisons.mated >= 0])] = True
    rank = np.where(testers & mated, 0, np.where(testers, 1, 2))
    order = np.lexsort((np.random.default_rng(0).permutation(testers.size), rank))
    order = order[everybody[order]]
    fold = np.full(testers.size, -1)
    fold[order] = np.arange(order.size) % FOLDS
    return fold


def select_people(
    comparisons: CellComparisons, testers: BoolArray, owners: BoolArray
) -> CellComparisons:
    """Select streams of some speakers and templates of some."""
    rows, columns = testers[comparisons.tester], owners[comparisons.owner]
    new_column = np.append(np.where(columns, np.cumsum(columns) - 1, -1), -1)
    return CellComparisons(
        comparisons.z[np.ix_(rows, np.arange(comparisons.z.shape[1]), columns)],
        comparisons.has_frames[rows],
        comparisons.tester[rows],
        new_column[comparisons.mated[rows]],
        comparisons.owner[columns],
    )


def fit_people(
    comparisons: CellComparisons, axis: Sequence[int], testers: BoolArray, owners: BoolArray
) -> FittedEvidence | None:
    """Fit evidence of these people; None if fewer than ten of them have mated comparisons."""
    found = ComparisonChooser(select_people(comparisons, testers, owners)).choose(axis, testers)
    if found is None or np.unique(found.streams[found.own_column >= 0]).size < 10:
        return None
    return fit_evidence(found, speaker_weights(testers.size, REPLICATES))


def cross_validate(
    comparisons: CellComparisons, axis: Sequence[int], testers: BoolArray, fold: IntArray,
    title: str, *, more: BoolArray,
) -> StreamBits | None:  # fmt: skip
    """Judge each comparison by a model without its two people; ``more`` are templates only."""
    models: dict[tuple[int, int], FittedEvidence] = {}
    for first_fold, second_fold in combinations_with_replacement(range(FOLDS), 2):
        remaining = (fold >= 0) & (fold != first_fold) & (fold != second_fold)
        model = fit_people(comparisons, axis, remaining & testers, remaining)
        if model is None:
            return None
        models[first_fold, second_fold] = models[second_fold, first_fold] = model

    def pick(tester: int, owner: int) -> FittedEvidence:
        own = int(fold[tester])
        return models[own, own if fold[owner] < 0 else int(fold[owner])]

    return _compute_bits(comparisons, axis, testers, (fold >= 0) | more, pick, title)


def _compute_bits(
    comparisons: CellComparisons, axis: Sequence[int], testers: BoolArray, owners: BoolArray,
    pick: Callable[[int, int], FittedEvidence], title: str,
) -> StreamBits | None:  # fmt: skip
    """Compute owners' bits for the testers' mated streams, by the models that ``pick`` returns."""
    rows = (
        testers[comparisons.tester]
        & (comparisons.mated >= 0)
        & comparisons.has_frames[:, list(axis)].all(axis=1)
    )
    if not rows.any():
        return None
    chosen = replace(
        comparisons,
        z=comparisons.z[rows],
        has_frames=comparisons.has_frames[rows],
        tester=comparisons.tester[rows],
        mated=comparisons.mated[rows],
    )
    chosen = select_people(chosen, testers, owners)
    bits = np.empty((chosen.tester.size, chosen.owner.size))
    support = np.empty(bits.shape)
    for tester in np.unique(chosen.tester):
        streams_of_tester = np.flatnonzero(chosen.tester == tester)
        rank_models = [pick(int(tester), owner) for owner in chosen.owner.tolist()]
        for rank_model in {id(each): each for each in rank_models}.values():
            columns = np.flatnonzero([each is rank_model for each in rank_models])
            a, *b = rank_model.coefficients[0]
            z = chosen.z[np.ix_(streams_of_tester, np.array(axis), columns)]
            nats = a + np.einsum("f,nfj->nj", b, z)
            bits[np.ix_(streams_of_tester, columns)] = with_misses(nats / np.log(2.0))
            support[np.ix_(streams_of_tester, columns)] = rank_model.support
    other = chosen.owner[None] == chosen.tester[:, None]
    other[np.arange(len(other)), chosen.mated] = False
    bits[other] = np.nan
    return StreamBits(title, bits, chosen.mated, chosen.tester, support, chosen.owner)


def list_impostors(streams: StreamBits) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Return impostors' bits (n,), their weights, indices of pairs, and people, (2, n)."""
    table = streams.impostors
    is_compared = np.isfinite(table)
    speaker = np.broadcast_to(streams.speaker[:, None], table.shape)[is_compared]
    owner = np.broadcast_to(streams.owner[None], table.shape)[is_compared]
    key = np.minimum(speaker, owner) * 100_000 + np.maximum(speaker, owner)
    _, pair_index, counts = np.unique(key, return_inverse=True, return_counts=True)
    return table[is_compared], (1.0 / counts)[pair_index], pair_index, np.stack([speaker, owner])


def create_row(streams: StreamBits) -> list[str]:
    """Return the cells of a row."""
    streams = streams.in_own_corpus()
    others, weight, pair_index, people = list_impostors(streams)
    pairs, own, mated = int(pair_index.max()) + 1, streams.weights, streams.mated
    support = streams.support[np.arange(len(own)), streams.own]
    steps = np.arange(1.0, np.floor(np.log2(pairs)) + 1)
    exceeding = calibrated.exceeding(others, weight, steps)
    kept = exceeding * pairs <= binom.ppf(0.975, pairs, np.exp2(-steps)) + 1e-9
    each = np.bincount(pair_index, weight * np.exp2(others))
    first = np.unique(pair_index, return_index=True)[1]
    pair_weights = speaker_weights(int(people.max()) + 1, 400)
    pair_weights = pair_weights[:, people[0][first]] * pair_weights[:, people[1][first]]
    total = pair_weights.sum(axis=1)
    low, high = limits((pair_weights @ each)[total > 0] / total[total > 0])
    return [
        *streams.title.split(" | "),
        f"{own @ mated:.1f}",
        f"{own @ support:.1f}",
        format_costs(mated, others, own, weight),
        format_range(float(each.mean()), low, high),
        f"{(exceeding * np.exp2(steps)).max():.2f}",
        f"{steps[-1]:g} bits",
        "yes" if kept.all() and low <= 1 else "NO",
    ]


def format_costs(mated: FloatArray, others: FloatArray, own: FloatArray, weight: FloatArray) -> str:
    """Format Cllr, and Cllr after the best recalibration."""
    both = (calibrated.cost_bits, calibrated.least_cost_bits)
    return ", ".join(f"{cost(mated, others, own, weight):.2f}" for cost in both)


def create_few_row(streams: StreamBits) -> list[str]:
    """Judge a model from another corpus if few people are enrolled; means of 60 random choices."""
    streams, generator = streams.in_own_corpus(), np.random.default_rng(0)
    bits, steps, cells = streams.unenrolled_bits, np.arange(1.0, 9.0), list[str]()
    for size in ENROLLED:
        means, shares = [], []
        for _ in range(60):
            enrolled = generator.permutation(bits.shape[1])[:size]
            rows = ~np.isin(streams.own, enrolled)
            levelled = level_ratios(bits[np.ix_(rows, enrolled)])
            reported = np.minimum(levelled, streams.support[rows][:, enrolled])
            means.append(np.exp2(reported).mean())
            shares.append([(reported >= k).mean() for k in steps])
        worst = (np.mean(shares, axis=0) * np.exp2(steps)).max()
        cells.append(f"{np.mean(means):.1f}, {worst:.1f}")
    return [*streams.title.split(" | "), *cells]


def create_crowd_rows(streams: StreamBits, readers: int) -> Iterator[list[str]]:
    """Yield bits and rank 1 among N real candidates, predicted by the posterior and true."""
    generator = np.random.default_rng(0)
    own = np.unique(streams.speaker)
    same = (np.arange(streams.owner.max() + 1) < readers) == (own.min() < readers)
    own_corpus = np.setdiff1d(np.intersect1d(streams.owner, np.flatnonzero(same)), own)
    other_corpus = np.setdiff1d(np.setdiff1d(streams.owner, own), own_corpus)
    rest = np.concatenate([generator.permutation(own_corpus), generator.permutation(other_corpus)])
    for size in CROWDS:
        if min(own.size, 50) <= size <= streams.owner.size:
            kept = np.concatenate([generator.permutation(own)[:size], rest])[:size]
            predicted_first, true_first, predicted_bits, true_bits = predict(
                streams.select(np.isin(streams.owner, kept))
            )
            bits = f"{predicted_bits:.2f}, {true_bits:.2f}"
            first = f"{predicted_first:.2f}, {true_first:.2f}"
            yield [*streams.title.split(" | "), str(size), bits, first]


def predict(streams: StreamBits) -> tuple[float, float, float, float]:
    """Return rank 1 and mean bits among the candidates, each predicted and true."""
    ratios = cap_bits(level_ratios(streams.finite_bits), np.nanmean(streams.support, axis=1))
    posterior = posterior_among(ratios, ratios.shape[1])
    weight, n, rows = streams.weights, ratios.shape[1], np.arange(len(ratios))
    ratios = np.where(np.isfinite(ratios), ratios, -1e3)
    found = (
        posterior.max(axis=1),
        posterior.argmax(axis=1) == streams.own,
        bits_among(ratios, n, None),
        np.log2(n * np.maximum(posterior[rows, streams.own], 1e-300)),
    )
    first, true, bits, real = (float(weight @ each) for each in found)
    return first, true, bits, real


def compute_impostor_shares(streams: StreamBits, steps: FloatArray) -> FloatArray:
    """Return the fraction of impostors with at least these bits, (K,); NaN if there are too few."""
    others, weight, pair_index, _ = list_impostors(streams)
    share = calibrated.exceeding(others, weight, steps)
    share[share * (pair_index.max() + 1) < 0.2] = np.nan
    return share
