"""Does a tail fitted to other people's ratios support more than ELUB? On people of known truth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, alike
from benchmarks.truth import others_of
from benchmarks.world import judged_of
from monitor.maths.likelihood_ratios import (
    ScorePairs,
    TemplateComparisons,
    effective_pairs,
    exceeding,
    pair_count,
    supported_bits,
)
from monitor.population.population import Population
from monitor.types import FloatArray
from recipes.effects import OWN_SECONDS, HeardGroup, compare

SHARE = 0.02
"""Of comparisons whose excess is fitted."""

SLACK = 1.353
"""Of log-likelihood: the upper limit is passed once in 20."""

_EXPONENTS, _RATES = np.append(1e-3, np.arange(0.025, 1.0, 0.025)), np.geomspace(1e-3, 10.0, 80)

STEPS = np.arange(0.0, 25.0, 0.01)

DRAWS, CROWD, TESTERS, SIZE = 30, 6000, 1500, 20

NOISE = 0.45


@benchmark()
def tail(page: Page, frames: Path | None = None) -> None:
    """Does a fitted tail support more evidence than ELUB? On people of known truth.

    With FRAMES, which `world` keeps, of those who calibrate as well.
    """

    def rows() -> Iterator[list[str]]:
        for kind in ("even", "alike", "heavy"):
            for many in (30, 100, 250):
                found = [f"{each:.2f}" for each in simulated(kind, many)]
                yield [kind, str(many), *found]
        if frames:
            yield heard(frames)

    heads = "ELUB | with a tail | at ELUB, true 2^t alarms / hits"
    page.table(f"people | with two sessions | {heads}", rows(), keys=2)


def simulated(kind: str, many: int) -> FloatArray:
    """Bounds by so many people, and how far from the truth ELUB lies."""
    rng = np.random.default_rng(0)
    crowd = people(kind, CROWD, rng)
    one, other = sessions(crowd, rng), sessions(crowd, rng)
    others = np.sort(np.concatenate([np.delete(ratios(one[i], other), i) for i in range(TESTERS)]))
    mated, found = np.sort(ratios(one, other)), []
    for _ in range(DRAWS):
        some = people(kind, many, rng)
        table = ratios(sessions(some, rng)[:, None], sessions(some, rng)[None])
        tester, owner = np.nonzero(~np.eye(many, dtype=bool))
        of = TemplateComparisons(table[tester, owner][:, None], ScorePairs(tester, owner))
        both = bounds(np.diag(table), table[tester, owner], of, np.ones(many))
        alarms, hits = (1 - np.searchsorted(x, both[0]) / x.size for x in (others, mated))
        found.append((*both, alarms * 2 ** both[0] / max(hits, 1e-9)))
    return np.asarray(np.mean(found, axis=0))


def heard(frames: Path) -> list[str]:
    """A line: people at their own microphones who calibrate, clean, 5 s against 5 s."""
    one, other = (HeardGroup.read(frames, f"calibrate-{k}", "clean", FEATURES) for k in (0, 1))
    made = compare("", Population.reference(), one, other, FEATURES, (OWN_SECONDS, OWN_SECONDS))
    judged = judged_of(made, None)
    bits, _, _, who = others_of(judged)
    of = TemplateComparisons(bits[:, None], ScorePairs(*who))
    elub, tail = bounds(judged.mated, bits, of, alike(judged.speaker))
    count = np.unique(judged.speaker).size
    return ["+".join(FEATURES), str(count), f"{elub:.2f}", f"{tail:.2f}", ""]


def bounds(
    mated: FloatArray, others: FloatArray, of: TemplateComparisons, own: FloatArray
) -> tuple[float, float]:
    """ELUB, and the larger of it and what a tail supports, bits."""
    theirs, speakers, pairs = of.weights(), round(own.sum()), pair_count(of)
    elub = supported_bits(mated, others, own, theirs, speakers, pairs, of)[0]
    return elub, max(elub, tail_bound_bits(mated, others, own, theirs, speakers, of))


def tail_bound_bits(
    mated: FloatArray, others: FloatArray, own: FloatArray, theirs: FloatArray,
    speakers: int, of: TemplateComparisons,
) -> float:  # fmt: skip
    """As ELUB, but no more misleading comparisons than the upper limit of a fitted tail."""
    begin = float(np.quantile(others, 1.0 - SHARE))
    count = effective_pairs(of, others, STEPS)
    there = effective_pairs(of, others, np.array([begin]))[0]
    excess, weight = others[others > begin] - begin, theirs[others > begin]
    zeta = weight.sum() / theirs.sum()
    log_sums = np.log1p(_RATES[:, None] * excess) @ weight / weight.sum()
    exponent, rate = _EXPONENTS[:, None], _RATES[None]
    likely = -there * zeta * (np.log(exponent / rate) + (1.0 + 1.0 / exponent) * log_sums)
    beyond = np.maximum(STEPS - begin, 0.0)
    best = np.unravel_index(likely.argmax(), likely.shape)
    point = zeta * (1.0 + _RATES[best[1]] * beyond) ** (-1.0 / _EXPONENTS[best[0]])
    kept = likely > likely.max() - SLACK
    exponents, rates = (np.broadcast_to(each, kept.shape)[kept] for each in (exponent, rate))
    most = zeta * (1.0 + rates[:, None] * beyond) ** (-1.0 / exponents[:, None])
    alarms = (count * exceeding(others, theirs, STEPS) + 1.0) / (count + 1.0)
    alarms = np.where(beyond > 0, np.minimum(alarms, most.max(axis=0)), alarms)
    hits = speakers * exceeding(mated, own, STEPS) / (speakers + 1.0)
    good = (np.exp2(STEPS) * alarms <= hits) & (point >= 0.1 / count[-1])
    return float(STEPS[max(int(np.argmin(good)) - 1, 0)])


def people(kind: str, many: int, rng: np.random.Generator) -> FloatArray:
    """Vectors of people: even, some of them alike, or of a heavier kind."""
    made = rng.standard_normal((many, SIZE))
    if kind == "alike":
        twins = max(many // 50, 1)
        made[-twins:] = made[:twins] + 0.3 * rng.standard_normal((twins, SIZE))
    if kind == "heavy":
        made *= np.sqrt(5.0 / rng.chisquare(5, (many, 1)))
    return made


def sessions(of: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A noisy copy of everybody."""
    return of + NOISE * rng.standard_normal(of.shape)


def ratios(one: FloatArray, other: FloatArray) -> FloatArray:
    """log2 of the likelihood ratio of one person to two, of even people: shape (..., SIZE)."""
    whole = 1.0 + NOISE**2
    rest = whole**2 - 1.0
    squares = one * one + other * other
    apart = 0.5 * squares / whole - 0.5 * (whole * squares - 2.0 * one * other) / rest
    nats = apart.sum(axis=-1) + SIZE * (np.log(whole) - 0.5 * np.log(rest))
    return np.asarray(nats / np.log(2.0))
