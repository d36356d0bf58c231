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
from benchmarks.by_length import create_length_rows, measure_streams, write_figures
from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES
from benchmarks.truth import StreamBits, compute_impostor_shares, format_costs, list_impostors
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
from recipes.effects import OWN_SECONDS, TEMPLATE_SECONDS, Comparisons, ExtractedGroup, compare
from recipes.frames import GROUPS, extract_groups, pairs, reader_sounds
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
        found = measure_streams(speech, voices, readers=readers, starts=starts, jobs=jobs)
        write_figures(found, frames)
        page.table(HEADS_BY_LENGTH, create_length_rows(found), keys=2, under="The first seconds")
        return
    population = Population.reference()
    extract_groups(speech, voices, frames, FEATURES, jobs, GROUPS)
    extract_groups(speech, voices, frames, FEATURES, jobs, dict.fromkeys(GROUPS_JUDGED, UNFITTED))
    effects = {each: find_effects(population, each) for each in (FEATURES, UNVOICED, ("voice",))}

    def row(
        title: str, group: str, first: str, second: str, lengths: tuple[float, float]
    ) -> list[str]:
        features = UNVOICED if second == "whisper" else FEATURES
        enrolled = ExtractedGroup.read(frames, f"{group}-0", first, features)
        streams = ExtractedGroup.read(frames, f"{group}-1", second, features)
        comparisons = compare(title, population, enrolled, streams, features, lengths)
        bits_of_rows.append(compute_bits(comparisons, effects[features]))
        voice_comparisons = compare(title, population, enrolled, streams, ("voice",), lengths)
        voice = compute_bits(voice_comparisons, effects["voice",])
        first_of = f"{100 * voice.weights @ (voice.bits.argmax(axis=1) == voice.own):.0f} %"
        return [*create_cells(bits_of_rows[-1]), f"{first_of}, {voice.weights @ voice.mated:.1f}"]

    bits_of_rows = list[StreamBits]()
    own = (OWN_SECONDS, OWN_SECONDS)
    rows = [("readers", *pair, (TEMPLATE_SECONDS, TEST_SECONDS)) for pair in ROWS]
    rows += [("judge", *pair, own) for pair in pairs("judge")]
    for group, lengths in (("readers", (TEMPLATE_SECONDS, TEST_SECONDS)), ("judge", own)):
        rows += [(group, first, name, lengths) for name in UNFITTED for first in ("clean", name)]

    def create_rows() -> Iterator[list[str]]:
        for group, first, second, lengths in rows:
            title = f"{'own microphones, ' if group == 'judge' else ''}{first}, {second}"
            yield [title, *row(title, group, first, second, lengths)]

    page.table(f"templates, streams | {HEADS} | voice alone: first, bits", create_rows())
    page.picture(
        "world-truth.svg", partial(draw_picture, compute_exceeding(bits_of_rows)), (6.2, 7.0)
    )
    page.table(
        "streams under a condition | how many | others above the threshold for 5 % "
        "| speaker enrolled: said so | not enrolled: said to be",
        (create_alarm_row(speech, population, name) for name in GROUPS["readers-1"]),
        under="Alarms",
    )
    enrolled = enrol_other_chapters(speech, population, jobs)
    page.table(
        "streams under a condition | how many | speech found | pitch in | bits of 10 s | first "
        "| told that it is no safety | figures that differ",
        (create_monitor_row(speech, enrolled, name) for name in (*GROUPS["readers-1"], *UNFITTED)),
        under="What the monitor says",
    )


def find_effects(population: Population, features: tuple[str, ...]) -> ConditionEffects | None:
    """Return the effects of conditions that a population's rank model contains."""
    model = population.rank_models.find(features, "cross")
    assert model is not None
    assert model.evidence is not None
    return model.evidence.conditions


def compute_bits(comparisons: Comparisons, effects: ConditionEffects | None) -> StreamBits:
    """Compute the reported bits and their support."""
    bits = comparisons.intercept + comparisons.parts.sum(axis=1)
    support = np.array(comparisons.support)
    if effects is not None:
        shift, slope, most_support = effects.at_template(comparisons.template_seconds).evaluate_at(
            comparisons.unlike
        )
        bits = comparisons.intercept + (comparisons.parts * np.moveaxis(slope, -1, 1)).sum(axis=1)
        bits = bits + max(-comparisons.intercept, 0.0) * shift
        support = np.minimum(support, most_support)
    bits, support = with_misses(bits), np.broadcast_to(support, bits.shape)
    return StreamBits(
        comparisons.title, bits, comparisons.own, comparisons.tester, support, comparisons.owner
    )


def create_cells(streams: StreamBits) -> list[str]:
    """Return the cells of a row."""
    others, weight, _, _ = list_impostors(streams)
    mated, own = streams.mated, streams.weights
    first = streams.bits.argmax(axis=1) == streams.own
    is_limited = mated >= streams.support[np.arange(len(own)), streams.own] - 1e-9
    return [
        f"{streams.owner.size}, {np.unique(streams.speaker).size}",
        f"{100 * own @ first:.0f} %",
        f"{own @ mated:.1f}",
        f"{100 * own @ is_limited:.0f} %",
        format_costs(mated, others, own, weight),
        f"{weight @ np.exp2(others) / weight.sum():.2f}",
    ]


def create_alarm_row(speech: Path, population: Population, name: str) -> list[str]:
    """Return a row on streams in a condition with clean templates, speaker enrolled and not."""
    limit = false_alarms(
        population.rank_models, FEATURES, "cross", "evidence_bits", SHARE, HORIZON,
        headline="evidence",
    )  # fmt: skip
    change = conditions(speech)[name]
    crossed, enrolled_flags = list[FloatArray](), ([], [])  # type: ignore[var-annotated]
    for number, (reader, sound) in enumerate(reader_sounds(speech, 1)):
        degraded = np.asarray(change(sound, number), np.float32)
        for people, is_enrolled in zip(
            (population, population.without(reader)), enrolled_flags, strict=True
        ):
            readings = list(Monitor(people, FEATURES).stream(degraded, rate=RATE))
            is_enrolled.append((readings[-1].enrolled or 0.0) >= 0.5)
            if people is not population:
                late_ratios = [r.ratios for r in readings if r.speech >= LEAST_SPEECH]
                maximum = np.max([ratios for ratios in late_ratios if ratios is not None], axis=0)
                crossed.append(maximum > limit.bits)
    own, not_enrolled = (f"{100 * np.mean(is_enrolled):.0f} %" for is_enrolled in enrolled_flags)
    return [name, str(len(crossed)), f"{100 * np.mean(crossed):.1f} %", own, not_enrolled]


def enrol_other_chapters(speech: Path, population: Population, jobs: int) -> Population:
    """Enrol readers from another chapter than the streams', as `monitor enrol` does."""
    with TemporaryDirectory() as folder:
        for name, sound in reader_sounds(speech, 0):
            path = Path(folder) / name / "1.wav"
            path.parent.mkdir()
            soundfile.write(path, sound, RATE)
        corpus = find(Path(folder))
        enrolled = enrol(corpus, features=FEATURES, seconds=TEMPLATE_SECONDS, jobs=jobs).population
    return Population(
        *(enrolled.speakers, enrolled.offsets, enrolled.features, population.rank_models),
        about="",
        cohort=population.cohort,
    )


def create_monitor_row(speech: Path, population: Population, name: str) -> list[str]:
    """Return a row on streams in a condition with clean templates, each reader watched."""
    change, rows, figures = conditions(speech)[name], list[tuple[float, ...]](), Counter[str]()
    for number, (reader, sound) in enumerate(reader_sounds(speech, 1)):
        monitor = Monitor(population, FEATURES, reader)
        degraded = np.asarray(change(sound, number), np.float32)
        readings = list(monitor.stream(degraded, rate=RATE))
        long = next(each for each in readings if each.speech >= TEST_SECONDS)
        last = readings[-1]
        share = last.speech / last.seconds, last.features["f0"].usable / last.speech
        warnings = [n for n in monitor.noticed if n.kind in ("conditions differ", "poor sound")]
        figures.update({figure for notice in warnings for figure in notice.fields["figures"]})
        rows.append((*share, long.bits or 0.0, long.top[0][0] == reader, bool(warnings)))
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


def compute_exceeding(lines: Sequence[StreamBits]) -> dict[str, FloatArray]:
    """Return each row's fractions of mated and impostor scores that reach `STEPS`: (2, 53)."""
    return {
        streams.title: np.array([
            calibrated.exceeding(streams.mated, streams.weights, STEPS),
            compute_impostor_shares(streams, STEPS),
        ])
        for streams in lines
    }  # fmt: skip


def draw_picture(shares: Mapping[str, FloatArray], figure: Figure) -> None:
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
        -0.05,
        1,
        "\n".join(create_text_table(shares)),
        transform=last.transAxes,
        va="top",
        fontsize=9.5,
    )
    kept = sum(bool((others <= allowed + 1e-6).all()) for _, others in shares.values())
    title = f"In {kept} of {len(shares)} rows, at most 2^-k of other people show k bits"
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, weight="bold", color=BLACK)
    figure.supxlabel("k: bits shown, at least", fontsize=10)
    figure.supylabel("share of comparisons, %", fontsize=10)


def create_text_table(shares: Mapping[str, FloatArray]) -> Iterator[str]:
    """Yield a table: the largest fraction of other people, and the smallest of the right person."""
    groups: dict[str, list[FloatArray]] = {}
    for title, each in shares.items():
        name = "own microphones" if title.startswith("own") else "simulated"
        unfitted = any(condition in title for condition in UNFITTED)
        groups.setdefault(f"{name}, nothing fitted" if unfitted else name, []).append(each)
    level_index = int(np.searchsorted(STEPS, LEVEL))
    yield f"With {LEVEL:g} bits or more ({100 * 2**-LEVEL:.1f} % allowed):"
    for name, rows in groups.items():
        (mated, _), (_, others) = np.min(rows, axis=0), np.max(rows, axis=0)
        yield f"\n{name} ({len(rows)} rows)"
        yield f"  others: at most {100 * others[level_index]:.1f} %"
        yield f"  the right person: at least {100 * mated[level_index]:.0f} %"
