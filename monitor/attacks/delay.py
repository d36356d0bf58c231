"""How long protected speech may be heard before so many bits of evidence are out.

Among N judged readers no more than log2 N bits can be told apart. Likelihood ratios have no such
end: each attacker calibrates the scores of one feature, at every second of speech, on readers of
the background, and on those of the judged who are not just then judged, treated as the attacker has
them (docs/method.md section 10). What is beyond their support is not claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.attacks.attackers import Bench, ThreatModel, apart, segments_of, speech
from monitor.errors import CorpusError, UsageError
from monitor.features.registry import make
from monitor.maths.evidence import log2_ratios
from monitor.maths.likelihood_ratios import TemplateComparisons, fit_each, upper_bound_bits
from monitor.maths.statistics import Crossing, FirstCrossing, median_seconds
from monitor.training.voices import SessionFrames, units_of
from monitor.types import FloatArray, IntArray

FEATURE = "voice"
LONGEST_SECONDS = 40
_FOLDS = 8


@dataclass(frozen=True, slots=True)
class EvidenceOverTime:
    """What an attacker has against each judged reader, at each second of speech.

    Attributes:
        names: of the R readers.
        bits: evidence, shape (R, T), at 1, 2, ... T seconds; NaN where a reader says no more.
        support: bits that the calibration supports at each second, shape (T,).
        others: ratios of the judged readers' streams against other people, shape (T, n): their mean
            is to be at most 1.
    """

    names: tuple[str, ...]
    bits: FloatArray
    support: FloatArray
    others: FloatArray

    def crossings(self, level: float) -> list[Crossing]:
        """Of each reader, when so many bits were out and stayed so."""
        found = []
        for row in self.bits:
            crossing = FirstCrossing(level)
            for second, bits in enumerate(row, 1):
                if np.isfinite(bits):
                    most = self.support[second - 1]
                    crossing.update(second, min(bits, most), cut=bits > most)
            found.append(crossing.so_far())
        return found


def evidence_over_time(
    bench: Bench, method: str, attacker: ThreatModel, seconds: int = LONGEST_SECONDS
) -> EvidenceOverTime:
    """Follow every judged reader's trials as one stream.

    Raises:
        UsageError: there is no background to calibrate on, or the attacker does not hear `FEATURE`.
        CorpusError: too few readers could be heard.
    """
    held = None if bench.background is None else apart(bench.background)[0]
    if held is None:
        raise UsageError("evidence is calibrated on readers of a background: give --background")
    heard_with = bench.heard_with(attacker, method)
    if FEATURE not in heard_with:
        raise UsageError(f"evidence over time is of {FEATURE}, which is not among the features")
    feature = heard_with[FEATURE]
    spec = make([feature], bench.hearing.setup)[0].spec
    specs, features = {spec.name: spec}, (feature,)
    enrolled = bench.enrolment(attacker, method, features)
    enrolled |= bench.own(held.pieces("enrolment"), attacker, method, features)
    spoken = bench.trials(method, features)
    spoken |= bench.own(held.pieces("trials"), attacker, method, features)
    count = bench.amounts.least_segments
    names, templates, streams = [], [], []
    judged = 0
    for place, reader in enumerate((*bench.judged.everybody, *held.everybody)):
        segments = segments_of(reader, enrolled, specs)
        stream = speech(reader.trials, spoken, specs)
        if segments is not None and stream is not None:
            names.append(reader.name)
            templates.append(segments[spec.name][:count].sum(axis=0))
            streams.append(stream[spec.name])
            judged += place < len(bench.judged)
    if judged < 2 or len(names) - judged < 2:
        raise CorpusError("too few readers could be heard to calibrate evidence on")
    way = spec.kind.similarity()
    prepared = way.prepare(np.stack(templates))
    bits = np.full((judged, seconds), np.nan)
    support, others = np.zeros(seconds), np.full((seconds, judged * (judged - 1)), np.nan)
    known: list[FloatArray] = []
    for second in range(1, seconds + 1):
        long = np.array([each.length >= units_of(second) for each in streams])
        totals = [_total(each, second) for each in streams]
        z = _normalised(way.score_each(prepared, np.stack(totals)), judged)
        if long[judged:].sum() >= _FOLDS or not known:
            known, support[second - 1] = _fitted(z, long)
        else:
            support[second - 1] = support[second - 2]
        for r in np.flatnonzero(long[:judged]):
            a, b = known[r]
            found = log2_ratios(z[r][None], a, np.array([b]))
            bits[r, second - 1] = found[r]
            others[second - 1, r * (judged - 1) : (r + 1) * (judged - 1)] = np.exp2(
                np.delete(found[:judged], r)
            )
    return EvidenceOverTime(tuple(names[:judged]), bits, support, others)


def _total(stream: SessionFrames, second: int) -> FloatArray:
    return np.asarray(stream.total(0, min(units_of(second), stream.length)))


def _normalised(scores: FloatArray, judged: int) -> FloatArray:
    """Less each stream's mean against the background's templates, by their spread; (R, R).

    Nobody's own template, nor the one that is scored, counts in the mean.
    """
    own = np.eye(len(scores), dtype=bool)
    cohort = scores[:, judged:]
    mine = own[:, judged:]
    spread = float(cohort[judged:][~mine[judged:]].std())
    if not spread:
        return np.zeros_like(scores)
    size = cohort.shape[1]
    total = np.where(mine, 0.0, cohort).sum(axis=1)
    mean = np.repeat((total / (size - mine.sum(axis=1)))[:, None], len(scores), axis=1)
    left = size - mine.sum(axis=1)[:, None] - ~mine
    mean[:, judged:] = np.where(mine, mean[:, judged:], (total[:, None] - cohort) / left)
    return np.asarray((scores - mean) / spread)


def _fitted(z: FloatArray, long: np.ndarray) -> tuple[list[FloatArray], float]:
    """Coefficients for each reader, fitted without the reader's fold, and the support (ELUB)."""
    people = len(z)
    fold: IntArray = np.arange(people) % _FOLDS
    tester, owner = (each.ravel() for each in np.indices(z.shape))
    known: list[FloatArray] = [np.zeros(2)] * people
    left_out = np.full(z.shape, np.nan)
    for k in range(_FOLDS):
        inside = fold != k
        some = (inside & long)[tester] & inside[owner]
        fit = fit_each(TemplateComparisons(z.ravel()[some, None], tester[some], owner[some]))[0]
        for r in np.flatnonzero(fold == k):
            known[r] = fit
            left_out[r] = log2_ratios(z[r][None], fit[0], fit[1:])
    there = long[tester]
    comparisons = TemplateComparisons(z.ravel()[there, None], tester[there], owner[there])
    weights, bits, mated = comparisons.weights(), left_out.ravel()[there], comparisons.mated
    pairs = len(np.unique(comparisons.pair[~mated]))
    most = upper_bound_bits(
        bits[mated], bits[~mated], weights[mated], weights[~mated], int(mated.sum()), pairs,
        comparisons.some(~mated),
    )  # fmt: skip
    return known, most


def median_in_words(crossings: Sequence[Crossing]) -> str:
    """The median of seconds, or until when half had not got there."""
    found = median_seconds(crossings)
    return f"> {max(c.seconds for c in crossings):.0f} s" if found is None else f"{found:.0f} s"
