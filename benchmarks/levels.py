"""Do level, offset, hum and clipping change what a voice is said to disclose?

    python -m benchmarks.levels ../shared/speech [--seconds 20]

Readers of the shipped population speak another chapter than their template's, watched, with the
default features; the same speech at other levels, as 16 bits keep it, and with what microphones
add. Limits over resampled readers.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.growth import others_of_the_enrolled
from monitor import measure
from monitor.maths.statistics import limits, speaker_weights
from monitor.networks.layers import RATE
from monitor.run import MeasurementSettings
from monitor.types import FloatArray

Change = Callable[[FloatArray], FloatArray]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("speech", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    readers = list(others_of_the_enrolled(given.speech, given.seconds))
    same = np.array([heard(name, CHANGES["-20 dBFS"](sound)) for name, sound in readers])
    weights = speaker_weights(len(readers)) / len(readers)
    print(
        f"{len(readers)} readers.\n\n"
        "| sound | evidence, bits | less than at -20 dBFS | one reader, at most "
        "| speech, of that at -20 dBFS |\n| --- | ---: | ---: | ---: | ---: |"
    )
    for change, make in CHANGES.items():
        made = np.array([heard(name, make(sound)) for name, sound in readers])
        bits, lost = made[:, 0].mean(), same[:, 0] - made[:, 0]
        low, high = limits(weights @ lost)
        speech = 100 * made[:, 1].sum() / same[:, 1].sum()
        print(
            f"| {change} | {bits:.2f} | {lost.mean():.2f} ({low:.2f} to {high:.2f}) "
            f"| {lost.max():.2f} | {speech:.1f} % |",
            flush=True,
        )


def heard(watched: str, sound: FloatArray) -> tuple[float, float]:
    """Evidence of the watched reader, bits, and seconds of speech."""
    measurement = measure(
        (sound, RATE), settings=MeasurementSettings(allow_overlap=True), watch=watched
    )
    assert measurement.evidence_bits is not None
    return measurement.evidence_bits, measurement.speech


def at(level: float, steps: float | None = 32768.0) -> Change:
    """Give sound a level in dBFS RMS, cut off and rounded as whole numbers are, or as it is."""

    def change(sound: FloatArray) -> FloatArray:
        loud = sound * np.float32(10 ** (level / 20) / np.sqrt(np.mean(sound**2)))
        return loud if steps is None else rounded(loud, steps)

    return change


def rounded(sound: FloatArray, steps: float = 32768.0) -> FloatArray:
    """Keep what whole numbers up to so many say of it; full scale 1, float32."""
    return np.asarray(np.round(np.clip(sound, -1, 1) * steps) / steps, np.float32)


def with_hum(sound: FloatArray) -> FloatArray:
    """Add 50 Hz at 10 % of full scale to half the level."""
    hum = 0.1 * np.sin(2 * np.pi * 50 / RATE * np.arange(len(sound)))
    return rounded(at(-23)(sound) + hum)


CHANGES: dict[str, Change] = {
    **{f"{level} dBFS": at(level) for level in (-20, -10, -30, -35, -40, -45, -50)},
    "-10 dBFS, not cut off": at(-10, None),
    "-50 dBFS, not rounded": at(-50, None),
    "offset of 0.01": lambda sound: rounded(at(-23)(sound) + 0.01),
    "offset of 0.1": lambda sound: rounded(at(-23)(sound) + 0.1),
    "whole numbers as float": lambda sound: np.round(at(-20)(sound) * np.float32(32768)),
    "hum of 50 Hz, as loud as the voice": with_hum,
}


if __name__ == "__main__":
    main()
