"""Disclosure by voices over telephones, in rooms, in noise, and at people's own microphones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import soundfile
from matplotlib.figure import Figure

from benchmarks.by_length import HEADS as HEADS_BY_LENGTH
from benchmarks.by_length import keep, measure, rows_of
from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES
from benchmarks.truth import Judged, costs, others_of, share_exceeding
from monitor import Monitor
from monitor.corpus import find
from monitor.jobs import cores
from monitor.maths import ratio_checks as calibrated
from monitor.maths.evidence import ConditionEffects, with_misses
from monitor.networks.layers import RATE
from monitor.plots.canvas import BLACK, BLUE, GREEN, GREY
from monitor.population.false_alarms import false_alarms
from monitor.population.population import Population
from monitor.training.enrolling import enrol
from monitor.types import FloatArray
from recipes.effects import OWN_SECONDS, TEMPLATE_SECONDS, Comparisons, HeardGroup, compare
from recipes.frames import GROUPS, hear_world, pairs, reader_sounds
from recipes.voice.world import ROWS, conditions

TEST_SECONDS = 10.0
SHARE, HORIZON, LEAST_SPEECH = 0.05, 60.0, 3.0
"""Fraction of false alarms, seconds of audio that it refers to, and minimum speech of a reading."""
UNFITTED = ("loudspeaker", "GSM", "AMR 12.2 kb/s", "AMR-WB 12.65 kb/s", "whisper")
"""Conditions that no fit used."""
GROUPS_JUDGED = ("readers-0", "readers-1", "judge-0", "judge-1")
STEPS, LEVEL = np.linspace(0.0, 13.0, 53), 6.0
SHOWN = (
    "clean, clean", "clean, telephone", "own microphones, clean, clean",
    "own microphones, telephone, babble 10 dB", "whisper, whisper",
)  # fmt: skip
"""Rows of the picture, from the easiest condition to one that no fit used."""
UNVOICED = ("phones", "voice")
"""Features of a whisper, which has no pitch."""
HEADS = "N, tested | first | mean bits | at the support | Cllr, least | mean LR of impostors"


@benchmark()
def world(
    page: Page, speech: Path, voices: Path, frames: Path,
    *, by_length: bool = False, readers: tuple[str, ...] = (), starts: int = 6,
    jobs: int = cores(),
) -> None:  # fmt: skip
    """What does a voice disclose over telephones, in rooms, in noise and at one's own microphone?

    FRAMES keeps the extracted frames. With --by-length it is a JSON file, and the monitor processes
    --starts streams per person: all readers or --readers, and people at their own microphones.
    """
    if by_length:
        found = measure(speech, voices, readers=readers, starts=starts, jobs=jobs)
        keep(found, frames)
        page.table(HEADS_BY_LENGTH, rows_of(found), keys=2, under="The first seconds")
        return
    population = Population.reference()
    hear_world(speech, voices, frames, FEATURES, jobs, GROUPS)
    hear_world(speech, voices, frames, FEATURES, jobs, dict.fromkeys(GROUPS_JUDGED, UNFITTED))
    effects = {each: effects_in(population, each) for each in (FEATURES, UNVOICED, ("voice",))}

    def row(
        title: str, group: str, first: str, second: str, lengths: tuple[float, float]
    ) -> list[str]:
        features = UNVOICED if second == "whisper" else FEATURES
        enrolled = HeardGroup.read(frames, f"{group}-0", first, features)
        streams = HeardGroup.read(frames, f"{group}-1", second, features)
        made = compare(title, population, enrolled, streams, features, lengths)
        lines.append(judged_of(made, effects[features]))
        bare = compare(title, population, enrolled, streams, ("voice",), lengths)
        voice = judged_of(bare, effects["voice",])
        first_of = f"{100 * voice.weights @ (voice.bits.argmax(axis=1) == voice.own):.0f} %"
        return [*figures(lines[-1]), f"{first_of}, {voice.weights @ voice.mated:.1f}"]

    lines = list[Judged]()
    own = (OWN_SECONDS, OWN_SECONDS)
    rows = [("readers", *pair, (TEMPLATE_SECONDS, TEST_SECONDS)) for pair in ROWS]
    rows += [("judge", *pair, own) for pair in pairs("judge")]
    for group, lengths in (("readers", (TEMPLATE_SECONDS, TEST_SECONDS)), ("judge", own)):
        rows += [(group, first, name, lengths) for name in UNFITTED for first in ("clean", name)]

    def told() -> Iterator[list[str]]:
        for group, first, second, lengths in rows:
            title = f"{'own microphones, ' if group == 'judge' else ''}{first}, {second}"
            yield [title, *row(title, group, first, second, lengths)]

    page.table(f"templates, streams | {HEADS} | voice alone: first, bits", told())
    page.picture("world-truth.svg", partial(picture, exceeded(lines)), (6.2, 7.0))
    page.table(
        "streams under a condition | how many | others above the threshold for 5 % "
        "| speaker enrolled: said so | not enrolled: said to be",
        (alarms(speech, population, name) for name in GROUPS["readers-1"]),
        under="Alarms",
    )
    enrolled = read_aloud(speech, population, jobs)
    page.table(
        "streams under a condition | how many | speech found | pitch in | bits of 10 s | first "
        "| told that it is no safety | figures that differ",
        (told_of(speech, enrolled, name) for name in (*GROUPS["readers-1"], *UNFITTED)),
        under="What the monitor says",
    )


def effects_in(population: Population, features: tuple[str, ...]) -> ConditionEffects | None:
    """Return the effects of conditions that a population's rank model contains."""
    model = population.rank_models.find(features, "cross")
    assert model is not None
    assert model.evidence is not None
    return model.evidence.conditions


def judged_of(made: Comparisons, effects: ConditionEffects | None) -> Judged:
    """Compute the reported bits and their support."""
    bits, support = made.intercept + made.parts.sum(axis=1), np.array(made.support)
    if effects is not None:
        shift, slope, most = effects.at_template(made.template_seconds).evaluate_at(made.unlike)
        bits = made.intercept + (made.parts * np.moveaxis(slope, -1, 1)).sum(axis=1)
        bits = bits + max(-made.intercept, 0.0) * shift
        support = np.minimum(support, most)
    bits, support = with_misses(bits), np.broadcast_to(support, bits.shape)
    return Judged(made.title, bits, made.own, made.tester, support, made.owner)


def figures(judged: Judged) -> list[str]:
    """Return the cells of a row."""
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
    """Return a row on streams in a condition with clean templates, speaker enrolled and not."""
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


def read_aloud(speech: Path, population: Population, jobs: int) -> Population:
    """Enrol readers from another chapter than the streams', as `monitor enrol` does."""
    with TemporaryDirectory() as folder:
        for name, sound in reader_sounds(speech, 0):
            path = Path(folder) / name / "1.wav"
            path.parent.mkdir()
            soundfile.write(path, sound, RATE)
        corpus = find(Path(folder))
        made = enrol(corpus, features=FEATURES, seconds=TEMPLATE_SECONDS, jobs=jobs).population
    return Population(
        *(made.speakers, made.offsets, made.features, population.rank_models),
        about="",
        cohort=population.cohort,
    )


def told_of(speech: Path, population: Population, name: str) -> list[str]:
    """Return a row on streams in a condition with clean templates, each reader watched."""
    change, rows, figures = conditions(speech)[name], list[tuple[float, ...]](), Counter[str]()
    for number, (reader, sound) in enumerate(reader_sounds(speech, 1)):
        monitor = Monitor(population, FEATURES, reader)
        heard = np.asarray(change(sound, number), np.float32)
        readings = list(monitor.stream(heard, rate=RATE))
        long = next(each for each in readings if each.speech >= TEST_SECONDS)
        last = readings[-1]
        share = last.speech / last.seconds, last.features["f0"].usable / last.speech
        told = [n for n in monitor.noticed if n.kind in ("conditions differ", "poor sound")]
        figures.update({figure for notice in told for figure in notice.fields["figures"]})
        rows.append((*share, long.bits or 0.0, long.top[0][0] == reader, bool(told)))
    found, voiced, bits, first, warned = np.mean(rows, axis=0)
    return [
        name,
        str(len(rows)),
        f"{100 * found:.0f} %",
        f"{100 * voiced:.1f} %",
        f"{bits:.1f}",
        f"{100 * first:.0f} %",
        f"{100 * warned:.0f} %",
        ", ".join(f"{figure} {count}" for figure, count in figures.most_common()),
    ]


def exceeded(lines: Sequence[Judged]) -> dict[str, FloatArray]:
    """Return each row's fractions of mated and impostor scores that reach `STEPS`: (2, 53)."""
    return {
        judged.title: np.array([
            calibrated.exceeding(judged.mated, judged.weights, STEPS),
            share_exceeding(judged, STEPS),
        ])
        for judged in lines
    }  # fmt: skip


def picture(shares: Mapping[str, FloatArray], figure: Figure) -> None:
    """Plot five rows, and print a table of all."""
    figure.set_layout_engine("constrained")
    grid = figure.subplots(3, 2, sharex=True, sharey=True).flatten()
    *panels, last = grid
    allowed = np.exp2(-STEPS)
    for axes, title in zip(panels, SHOWN, strict=True):
        mated, others = 100 * shares[title]
        for y, colour, dashes in (
            (100 * allowed, GREY, ":"), (mated, GREEN, "-"), (others, BLUE, "-"),
        ):  # fmt: skip
            axes.plot(STEPS, np.where(y > 0, y, np.nan), color=colour, linestyle=dashes)
        axes.set_title(title.replace("own microphones, ", "own microphones:\n"), fontsize=10,
                       loc="left")  # fmt: skip
        axes.set(yscale="log", ylim=(0.02, 130), xlim=(0, 13), xticks=(0, 3, 6, 10, 13))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(axis="y", color="#E6E6E6")
    for text, x, y, colour in (
        ("the right person", 6, 35, GREEN), ("other people", 0.2, 0.03, BLUE),
        ("allowed: 2^-k", 5.6, 5, GREY),
    ):  # fmt: skip
        panels[0].text(x, y, text, color=colour, fontsize=9)
    panels[3].tick_params(labelbottom=True)  # no panel below
    last.set_axis_off()
    last.text(
        -0.05, 1, "\n".join(table_of(shares)), transform=last.transAxes, va="top", fontsize=9.5
    )
    kept = sum(bool((others <= allowed + 1e-6).all()) for _, others in shares.values())
    title = f"In {kept} of {len(shares)} rows, at most 2^-k of other people show k bits"
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, weight="bold", color=BLACK)
    figure.supxlabel("k: bits shown, at least", fontsize=10)
    figure.supylabel("share of comparisons, %", fontsize=10)


def table_of(shares: Mapping[str, FloatArray]) -> Iterator[str]:
    """Yield a table: the largest fraction of other people, and the smallest of the right person."""
    groups: dict[str, list[FloatArray]] = {}
    for title, each in shares.items():
        name = "own microphones" if title.startswith("own") else "simulated"
        unfitted = any(condition in title for condition in UNFITTED)
        groups.setdefault(f"{name}, nothing fitted" if unfitted else name, []).append(each)
    place = int(np.searchsorted(STEPS, LEVEL))
    yield f"With {LEVEL:g} bits or more ({100 * 2**-LEVEL:.1f} % allowed):"
    for name, rows in groups.items():
        (mated, _), (_, others) = np.min(rows, axis=0), np.max(rows, axis=0)
        yield f"\n{name} ({len(rows)} rows)"
        yield f"  others: at most {100 * others[place]:.1f} %"
        yield f"  the right person: at least {100 * mated[place]:.0f} %"
