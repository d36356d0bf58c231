"""What a voice discloses in the world: telephones, rooms, noise, and people's own microphones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, alike
from benchmarks.truth import Judged, costs, others_of, share_exceeding
from monitor import Monitor
from monitor.jobs import cores
from monitor.maths import likelihood_ratios as calibrated
from monitor.maths.evidence import ConditionEffects, with_misses
from monitor.maths.likelihood_ratios import ScorePairs, TemplateComparisons
from monitor.networks.layers import RATE
from monitor.plots.canvas import BLUE, GREY
from monitor.population.false_alarms import false_alarms
from monitor.population.population import Population
from monitor.types import FloatArray
from recipes.effects import OWN_SECONDS, TEMPLATE_SECONDS, Comparisons, HeardGroup, compare
from recipes.frames import GROUPS, hear_world, pairs, reader_sounds
from recipes.voice.world import ROWS, conditions

TEST_SECONDS = 10.0
EARLY = (("clean", "clean"), ("clean", "telephone"), ("telephone", "telephone"))
SHARE, HORIZON, LEAST_SPEECH = 0.05, 60.0, 3.0
"""Of false alarms, over so many seconds of audio; readings of less speech are not looked at."""
HEADS = "N, tested | first | mean bits | at the support | Cllr, least | mean LR of impostors"


@benchmark()
def world(
    page: Page, speech: Path, voices: Path, frames: Path,
    *, early: bool = False, jobs: int = cores(),
) -> None:  # fmt: skip
    """What a voice discloses in the world: telephones, rooms, noise, own microphones.

    FRAMES keeps what was heard. With --early the rows are of the first seconds at own
    microphones.
    """
    population, judge = Population.reference(), ("clean", "telephone")
    heard = {"judge-0": judge, "judge-1": judge} if early else GROUPS
    hear_world(speech, voices, frames, FEATURES, jobs, heard)
    effects, alone = effects_in(population, FEATURES), effects_in(population, ("voice",))

    def row(
        title: str, group: str, first: str, second: str, lengths: tuple[float, float]
    ) -> list[str]:
        enrolled = HeardGroup.read(frames, f"{group}-0", first, FEATURES)
        streams = HeardGroup.read(frames, f"{group}-1", second, FEATURES)
        made = compare(title, population, enrolled, streams, FEATURES, lengths)
        lines.append(judged_of(made, effects))
        bare = compare(title, population, enrolled, streams, ("voice",), lengths)
        voice = judged_of(bare, alone)
        first_of = f"{100 * voice.weights @ (voice.bits.argmax(axis=1) == voice.own):.0f} %"
        return [*figures(lines[-1]), f"{first_of}, {voice.weights @ voice.mated:.1f}"]

    lines = list[Judged]()
    if early:
        page.table(
            f"streams | templates, streams | {HEADS}",
            (
                [f"{test:g} s", ", ".join(pair), *row("", "judge", *pair, (OWN_SECONDS, test))[:-1]]
                for pair in EARLY
                for test in (1.0, 2.0, 3.0)
            ),
            keys=2,
        )
        return
    rows = [("readers", *pair, (TEMPLATE_SECONDS, TEST_SECONDS)) for pair in ROWS]
    rows += [("judge", *pair, (OWN_SECONDS, OWN_SECONDS)) for pair in pairs("judge")]

    def told() -> Iterator[list[str]]:
        for group, first, second, lengths in rows:
            title = f"{'own microphones, ' if group == 'judge' else ''}{first}, {second}"
            yield [title, *row(title, group, first, second, lengths)]

    page.table(f"templates, streams | {HEADS} | voice alone: first, bits", told())
    page.picture("world-truth.svg", partial(exceeded, lines), (11.0, 11.0))
    page.table(
        "streams under a condition | how many | others above the threshold for 5 % "
        "| speaker enrolled: said so | not enrolled: said to be",
        (alarms(speech, population, name) for name in GROUPS["readers-1"]),
        under="Alarms",
    )


def effects_in(population: Population, features: tuple[str, ...]) -> ConditionEffects | None:
    """What conditions do, as the population has it."""
    model = population.rank_models.find(features, "cross")
    assert model is not None
    assert model.evidence is not None
    return model.evidence.conditions


def judged_of(made: Comparisons, effects: ConditionEffects | None) -> Judged:
    """The bits that are told, and what supports them."""
    bits, support = made.intercept + made.parts.sum(axis=1), np.array(made.support)
    if effects is not None:
        shift, slope, most = effects.at_template(made.template_seconds).at(made.unlike)
        bits = made.intercept + (made.parts * np.moveaxis(slope, -1, 1)).sum(axis=1)
        bits = bits + max(-made.intercept, 0.0) * shift
        support = np.minimum(support, most)
    bits, support = with_misses(bits), np.broadcast_to(support, bits.shape)
    return Judged(made.title, bits, made.own, made.tester, support, made.owner)


def figures(judged: Judged) -> list[str]:
    """Cells of a line."""
    others, weight, _, _ = others_of(judged)
    mated, own = judged.mated, judged.weights
    first = judged.bits.argmax(axis=1) == judged.own
    cut = mated >= judged.support[np.arange(len(own)), judged.own] - 1e-9
    return [
        f"{judged.owner.size}, {np.unique(judged.speaker).size}",
        f"{100 * own @ first:.0f} %",
        f"{own @ mated:.1f}",
        f"{100 * own @ cut:.0f} %",
        costs(mated, others, own, weight),
        f"{weight @ np.exp2(others) / weight.sum():.2f}",
    ]


def alarms(speech: Path, population: Population, name: str) -> list[str]:
    """A line: whole streams under a condition, clean templates, the speaker enrolled and not."""
    limit = false_alarms(
        population.rank_models, FEATURES, "cross", "evidence_bits", SHARE, HORIZON,
        headline="evidence",
    )  # fmt: skip
    change = conditions(speech)[name]
    crossed, said = list[FloatArray](), ([], [])  # type: ignore[var-annotated]
    for number, (reader, sound) in enumerate(reader_sounds(speech, 1)):
        heard = np.asarray(change(sound, number), np.float32)
        for there, told in zip((population, population.without(reader)), said, strict=True):
            readings = list(Monitor(there, FEATURES).stream(heard, rate=RATE))
            told.append((readings[-1].enrolled or 0.0) >= 0.5)
            if there is not population:
                late = [r.ratios for r in readings if r.speech >= LEAST_SPEECH]
                most = np.max([ratios for ratios in late if ratios is not None], axis=0)
                crossed.append(most > limit.bits)
    own, strangers = (f"{100 * np.mean(told):.0f} %" for told in said)
    return [name, str(len(crossed)), f"{100 * np.mean(crossed):.1f} %", own, strangers]


def exceeded(lines: Sequence[Judged], figure: Figure) -> None:
    """Of each row, the share of impostors' and of mated comparisons at k bits or more."""
    grid = figure.subplots(-(-len(lines) // 4), 4, sharex=True, sharey=True, squeeze=False)
    steps = np.linspace(0.0, 13.0, 53)
    for axes, judged in zip(grid.flat, lines, strict=False):
        axes.plot(steps, 100 * np.exp2(-steps), color=GREY, linestyle=":", label="allowed: 2^-k")
        own = judged.weights
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


# ------------------------------------------------------------------------------------ a fitted tail

FITTED_SHARE = 0.02
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
    crowd = made_people(kind, CROWD, rng)
    one, other = sessions(crowd, rng), sessions(crowd, rng)
    others = np.sort(np.concatenate([np.delete(ratios(one[i], other), i) for i in range(TESTERS)]))
    mated, found = np.sort(ratios(one, other)), []
    for _ in range(DRAWS):
        some = made_people(kind, many, rng)
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
    theirs, speakers, pairs = of.weights(), round(own.sum()), calibrated.pair_count(of)
    elub = calibrated.supported_bits(mated, others, own, theirs, speakers, pairs, of)[0]
    return elub, max(elub, tail_bound_bits(mated, others, own, theirs, speakers, of))


def tail_bound_bits(
    mated: FloatArray, others: FloatArray, own: FloatArray, theirs: FloatArray,
    speakers: int, of: TemplateComparisons,
) -> float:  # fmt: skip
    """As ELUB, but no more misleading comparisons than the upper limit of a fitted tail."""
    begin = float(np.quantile(others, 1.0 - FITTED_SHARE))
    count = calibrated.effective_pairs(of, others, STEPS)
    there = calibrated.effective_pairs(of, others, np.array([begin]))[0]
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
    alarms = (count * calibrated.exceeding(others, theirs, STEPS) + 1.0) / (count + 1.0)
    alarms = np.where(beyond > 0, np.minimum(alarms, most.max(axis=0)), alarms)
    hits = speakers * calibrated.exceeding(mated, own, STEPS) / (speakers + 1.0)
    good = (np.exp2(STEPS) * alarms <= hits) & (point >= 0.1 / count[-1])
    return float(STEPS[max(int(np.argmin(good)) - 1, 0)])


def made_people(kind: str, many: int, rng: np.random.Generator) -> FloatArray:
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
