"""Evidence of shipped readers by length and level of speech, in chapters that are not enrolled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, chapters, format_range, read
from monitor import Monitor, measure
from monitor.crowds import LEVELS
from monitor.events.phrases import level_as_people
from monitor.maths.statistics import limits, limits_of_each, speaker_weights
from monitor.networks.layers import RATE
from monitor.plots.canvas import BLACK, BLUE, GREY
from monitor.plots.sheet import BOX, HATCH, Frame, Sheet, Spot
from monitor.population.population import Population
from monitor.run import MeasurementSettings
from monitor.types import FloatArray

Change = Callable[[FloatArray], FloatArray]
LENGTHS = np.array([1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0])


def read_other_chapters(speech: Path, seconds: float) -> Iterator[tuple[str, FloatArray]]:
    """Yield shipped readers with the beginning of their longest chapter that is not enrolled."""
    population = Population.reference()
    enrolled = {(s.name, note.label) for s in population.speakers for note in s.sources}
    rows = [r for r in chapters(speech) if (r["speaker"], Path(r["path"]).name) not in enrolled]
    for name in population.names:
        own = [row for row in rows if row["speaker"] == name]
        if own:
            longest = max(own, key=lambda row: float(row["seconds"]))
            yield name, read(speech / longest["path"], seconds)


@benchmark()
def growth(page: Page, speech: Path) -> None:
    """How does evidence grow with speech, compared with linear and square-root growth?"""
    population, curves = Population.reference(), list[FloatArray]()
    for name, sound in read_other_chapters(speech, 90.0):
        monitor = Monitor(population, FEATURES, name, step_seconds=0.25)
        readings = [
            (reading.speech, reading.evidence_bits, *reading.evidence_guides)
            for reading in monitor.stream(sound, rate=RATE)
            if reading.evidence_bits is not None and reading.evidence_guides is not None
        ]
        speech_seconds, *figures = np.array([*readings, (np.inf, np.nan, np.nan, np.nan)]).T
        curve = np.array(figures)[:, np.searchsorted(speech_seconds, LENGTHS)]  # NaN beyond the end
        if not np.isnan(curve).any():
            curves.append(curve)
    page.note(f"{len(curves)} readers")
    rows = compute_limits(np.array(curves))
    page.table(
        "speech | evidence, bits | linear growth | square-root growth | below the latter",
        (
            [f"{seconds:g} s", *(format_range(m, low, high, 1) for m, low, high in row)]
            for seconds, row in zip(LENGTHS, rows, strict=True)
        ),
    )
    page.picture("growth.svg", partial(draw_picture, rows), create_frame(rows).inches)


def compute_limits(curves: FloatArray) -> FloatArray:
    """Return means of evidence, both guides and square-root guide minus evidence, with limits.

    ``curves`` has shape (n, 3, T), in bits. The result has shape (T, 4, 3). Its last axis is the
    mean and its limits.
    """
    figures = np.concatenate([curves, curves[:, 2:] - curves[:, :1]], axis=1)
    means = np.tensordot(speaker_weights(len(curves)) / len(curves), figures, 1)
    limits = limits_of_each(np.moveaxis(means, 0, -1))
    return np.concatenate([figures.mean(axis=0)[..., None], limits], axis=2).swapaxes(0, 1)


GUIDES = {"linear": (0, (5, 3)), "square-root": (0, (1, 2))}


def create_frame(rows: FloatArray) -> Frame:
    """Return the picture's frame for rows (T, 4, 3) of `compute_limits`."""
    most, below = float(rows[:, 1:3, 0].max()), bool((rows[:, 0, 0] < rows[:, 2, 0]).all())
    last, (low, high) = rows[-1, 0, 0], rows[-1, 0, 1:]
    return Frame(
        "Evidence stays below square-root growth" if below else "Evidence beside composition",
        f"Means of readers. After a minute: {last:.1f} bits ({low:.1f} to {high:.1f}). Linear: if "
        "every second disclosed as much as the first.",
        {float(bits): level_as_people(bits) for bits in LEVELS if bits < most},
        "people who match", "speech (log scale), with 95 % interval",
        (float(LENGTHS[0]), float(LENGTHS[-1])), (-0.3, most), width=480,
    )  # fmt: skip


def draw_picture(rows: FloatArray, figure: Figure) -> None:
    """Draw the means over length, and the limits of the evidence as a band."""
    sheet = Sheet(figure, frame := create_frame(rows))
    axes, most = sheet.axes, frame.y_range[1]
    axes.fill_between(LENGTHS, most, sheet.highest, facecolor="none", edgecolor=HATCH,
                      hatch="////", linewidth=0)  # fmt: skip
    axes.fill_between(LENGTHS, *rows[:, 0, 1:].T, color=BLUE, alpha=0.2, linewidth=0)
    sheet.line(LENGTHS, rows[:, 0, 0], BLUE, 2.4)
    text = f"calibration supports\nno more than {most:.1f} bits"
    sheet.label(text, [Spot(sheet.right, sheet.top, 1, 1)], GREY, bbox=BOX)
    for (name, dashes), line in zip(GUIDES.items(), rows[:, 1:3, 0].T, strict=True):
        grows = slice(int(np.argmax(line > most - 0.05)) + 1)  # flat beyond, at the cap
        sheet.line(LENGTHS[grows], line[grows], BLACK, 0.9, linestyle=dashes)
        top, _ = sheet.place_of(LENGTHS[grows][-1], most)
        spots = [Spot(top + side, sheet.top - 3, part, 1) for side, part in ((4, 0), (-4, 1))]
        sheet.label(name, spots[:: -1 if name == "linear" else 1], BLACK, bbox=BOX)
    x, y = sheet.place_of(LENGTHS[-1], rows[-1, 0, 0])
    spots = [Spot(x - 6, y + d, 1, float(d < 0)) for d in (-10, 10, -24, 24)]
    sheet.label("evidence of the right person", spots, BLUE, weight="bold")
    sheet.place_labels()


@benchmark()
def levels(page: Page, speech: Path, *, seconds: float = 20.0) -> None:
    """Do level, offset, hum, clipping and lost packets change the measured disclosure?"""
    readers = list(read_other_chapters(speech, seconds))
    page.note(f"{len(readers)} readers")

    def measure_change(change: Change) -> FloatArray:
        """Return bits of evidence and seconds of speech of each watched reader: shape (n, 2)."""
        found = []
        for name, sound in readers:
            settings = MeasurementSettings(allow_overlap=True)
            measurement = measure((change(sound), RATE), settings=settings, watch=name)
            assert measurement.evidence_bits is not None
            found.append((measurement.evidence_bits, measurement.speech))
        return np.array(found)

    def rows() -> Iterator[list[str]]:
        same = measure_change(CHANGES["-20 dBFS"])
        for name, change in CHANGES.items():
            measured = measure_change(change)
            lost = same[:, 0] - measured[:, 0]
            speech_percent = 100 * measured[:, 1].sum() / same[:, 1].sum()
            most, bits = f"{lost.max():.2f}", f"{measured[:, 0].mean():.2f}"
            weights = speaker_weights(len(lost)) / len(lost)
            less = format_range(float(lost.mean()), *limits(weights @ lost))
            yield [name, bits, less, most, f"{speech_percent:.1f} %"]

    page.table(
        "sound | evidence, bits | less than at -20 dBFS | one reader, at most "
        "| speech, of that at -20 dBFS",
        rows(),
    )


def set_level(level: float, steps: float | None = 32768.0) -> Change:
    """Return a change to a level in dBFS RMS, clipped and quantised unless ``steps`` is None."""

    def change(sound: FloatArray) -> FloatArray:
        loud = sound * np.float32(10 ** (level / 20) / np.sqrt(np.mean(sound**2)))
        return loud if steps is None else quantise(loud, steps)

    return change


def quantise(sound: FloatArray, steps: float = 32768.0) -> FloatArray:
    """Clip to full scale 1, and quantise to ``steps`` per unit; returns float32."""
    return np.asarray(np.round(np.clip(sound, -1, 1) * steps) / steps, np.float32)


def add_hum(sound: FloatArray) -> FloatArray:
    """Add 50 Hz hum with a peak of 0.1 to sound at -23 dBFS; both have the same level."""
    hum = 0.1 * np.sin(2 * np.pi * 50 / RATE * np.arange(len(sound)))
    return quantise(set_level(-23)(sound) + hum)


PACKET = RATE // 50  # samples, 20 ms


def drop_packets(fraction: float) -> Change:
    """Return a change that replaces a random fraction of the 20 ms packets by zeros."""

    def change(sound: FloatArray) -> FloatArray:
        packets = quantise(set_level(-20)(sound))[: sound.size // PACKET * PACKET].reshape(
            -1, PACKET
        )
        packets[np.random.default_rng(0).random(len(packets)) < fraction] = 0
        return packets.ravel()

    return change


CHANGES: dict[str, Change] = {
    **{f"{level} dBFS": set_level(level) for level in (-20, -10, -30, -35, -40, -45, -50)},
    "-10 dBFS, not cut off": set_level(-10, None),
    "-50 dBFS, not rounded": set_level(-50, None),
    "offset of 0.01": lambda sound: quantise(set_level(-23)(sound) + 0.01),
    "offset of 0.1": lambda sound: quantise(set_level(-23)(sound) + 0.1),
    "whole numbers as float": lambda sound: np.round(set_level(-20)(sound) * np.float32(32768)),
    "hum of 50 Hz, as loud as the voice": add_hum,
    **{
        f"{percent} % of packets lost": drop_packets(percent / 100) for percent in (1, 2, 5, 10, 20)
    },
}
