"""How evidence grows with the speech heard, beside linear and square-root growth.

    python -m benchmarks.growth ../shared/speech [-o docs]

Readers of the shipped population speak another chapter than their template's, watched, with the
default features: the same readers at every length. The guides are those of the readings: from the
mean evidence of calibration's people at the first calibrated length, up to what calibration
supports, as SRD's figure 8 has them of ranks. Limits over resampled readers.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import soundfile
from matplotlib.figure import Figure

from benchmarks.hear import chapters
from monitor import Monitor
from monitor.maths.statistics import limits_of_each, speaker_weights
from monitor.networks.layers import RATE
from monitor.plots.canvas import BLUE, GREY, ORANGE, draw
from monitor.population.population import Population
from monitor.types import FloatArray

FEATURES = ("f0", "phones", "voice")
LENGTHS = np.array([1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0])
_AUDIO_SECONDS = 90.0


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("speech", type=Path)
    parser.add_argument("-o", "--output", type=Path, help="folder of the picture")
    given = parser.parse_args()
    population, curves = Population.reference(), list[FloatArray]()
    for name, sound in others_of_the_enrolled(given.speech, _AUDIO_SECONDS):
        curve = growth(population, name, sound)
        if not np.isnan(curve).any():
            curves.append(curve)
    rows = with_limits(np.array(curves))
    print(
        f"{len(curves)} readers.\n\n"
        "| speech | evidence, bits | linear growth | square-root growth | below the latter |\n"
        "| ---: | ---: | ---: | ---: | ---: |"
    )
    for seconds, row in zip(LENGTHS, rows, strict=True):
        mean, linear, root, below = (f"{m:.1f} ({low:.1f} to {high:.1f})" for m, low, high in row)
        print(f"| {seconds:g} s | {mean} | {linear} | {root} | {below} |")
    if given.output:
        draw(given.output / "growth.svg", partial(picture, rows), (7.0, 4.0))


def others_of_the_enrolled(speech: Path, seconds: float) -> Iterator[tuple[str, FloatArray]]:
    """Yield enrolled readers, and the beginning of the longest chapter that nobody enrolled."""
    population = Population.reference()
    taken = {(s.name, note.label) for s in population.speakers for note in s.sources}
    for name in population.names:
        others = [
            row for row in chapters(speech)
            if row["speaker"] == name and (name, Path(row["path"]).name) not in taken
        ]  # fmt: skip
        if others:
            path = speech / max(others, key=lambda row: float(row["seconds"]))["path"]
            yield name, soundfile.read(path, frames=round(seconds * RATE), dtype="float32")[0]


def growth(population: Population, watched: str, sound: FloatArray) -> FloatArray:
    """Evidence, linear and square-root guide at each of `LENGTHS`, bits: shape (3, 8).

    NaN beyond the end.
    """
    monitor = Monitor(population, FEATURES, watched, step_seconds=0.25)
    heard = [
        (reading.speech, reading.evidence_bits, *reading.evidence_guides)
        for reading in monitor.stream(sound, rate=RATE)
        if reading.evidence_bits is not None and reading.evidence_guides is not None
    ]
    speech, *figures = np.array([*heard, (np.inf, np.nan, np.nan, np.nan)]).T
    return np.array(figures)[:, np.searchsorted(speech, LENGTHS)]


def with_limits(curves: FloatArray) -> FloatArray:
    """Means of evidence, both guides, and how far evidence is below the second, with limits.

    Of curves (n, 3, T), in bits: shape (T, 4, 3), the last a mean and its limits.
    """
    figures = np.concatenate([curves, curves[:, 2:] - curves[:, :1]], axis=1)
    means = np.tensordot(speaker_weights(len(curves)) / len(curves), figures, 1)
    around = limits_of_each(np.moveaxis(means, 0, -1))
    return np.concatenate([figures.mean(axis=0)[..., None], around], axis=2).swapaxes(0, 1)


def picture(rows: FloatArray, figure: Figure) -> None:
    """Draw the means over length, the limits of the evidence as a band."""
    axes = figure.subplots()
    axes.fill_between(LENGTHS, *rows[:, 0, 1:].T, color=BLUE, alpha=0.2, linewidth=0)
    for place, (colour, style, label) in enumerate([
        (BLUE, "-", "evidence of the right person"),
        (GREY, ":", "linear growth"),
        (ORANGE, "--", "square-root growth"),
    ]):  # fmt: skip
        axes.plot(LENGTHS, rows[:, place, 0], color=colour, linestyle=style, label=label)
    axes.set(xscale="log", xlabel="speech heard, seconds", ylabel="bits")
    axes.set_xticks(LENGTHS, [f"{each:g}" for each in LENGTHS])
    axes.legend(frameon=False)


if __name__ == "__main__":
    main()
