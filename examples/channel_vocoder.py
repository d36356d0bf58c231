"""The vocoder of a whistleblowing platform as an anonymiser: WAV on its input, WAV on its output.

    monitor protect voices/ -o safe/ --anonymiser-command 'python examples/channel_vocoder.py'
        [--seed N]

GlobaLeaks sends a spoken report through a channel vocoder in the browser. This is one of our own
after the description and the settings that its source gives (voice-recorder.component.ts, read in
2026); none of its code is here. 48 bands of one width on a logarithmic axis from 150 Hz to 16 kHz;
of each the envelope (rectified, low-passed at 50 Hz, fourth order), after what lies above 1.5 kHz
was raised by 6 dB. An envelope drives a sine of random phase, or noise in a band where that lies
above 6 kHz. The sines and noises lie at other frequencies than the bands: three points in between
are moved by up to 10 % each, drawn for each recording, and what lies between follows smoothly.
Pitch is gone, formants are moved a little; words, timing and loudness stay. Left out are the
browser's noise suppression and its codec; the limiter holds single samples, without attack or
release.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable

import numpy as np
import soundfile
from scipy.signal import butter, lfilter, sosfilt

BANDS, LOWEST_HZ, HIGHEST_HZ = 48, 150.0, 16_000.0
NOISE_ABOVE_HZ = 6000.0
ENVELOPE_HZ = 50.0
SHELF_HZ, SHELF_DB = 1500.0, 6.0
POINTS, MOST_SHIFT = 5, 0.10  # of the axis of carriers; natural logarithm of a ratio
LIMIT = 10 ** (-3 / 20)


def vocoded(samples: np.ndarray, rate: int, seed: int | None = None) -> np.ndarray:
    """What it makes of one channel, shape (n,); `seed` is that of its draws.

    Example:
        >>> voice = np.sin(2 * np.pi * 440 * np.arange(8000) / 16000)
        >>> made = vocoded(voice, 16000, seed=1)
        >>> made.shape, bool(np.abs(made).max() > 0.1), bool(np.abs(made - voice).max() > 0.1)
        ((8000,), True, True)
    """
    draw = np.random.default_rng(seed)
    edges = LOWEST_HZ * (HIGHEST_HZ / LOWEST_HZ) ** (np.arange(BANDS + 1) / BANDS)
    centres = np.sqrt(edges[1:] * edges[:-1])
    quality = float(centres[0] / (edges[1] - edges[0]))
    moved = warp(draw)
    raised = lfilter(*_shelf(rate), samples)
    low = butter(4, ENVELOPE_HZ, fs=rate, output="sos")
    time = np.arange(len(samples)) / rate
    made = np.zeros(len(samples))
    for centre in centres[edges[1:] < rate / 2]:
        band = lfilter(*_band_pass(centre, quality, rate), raised)
        envelope = sosfilt(low, np.abs(band))
        at = min(moved(centre), 0.49 * rate)
        if centre > NOISE_ABOVE_HZ:
            carrier = lfilter(*_band_pass(at, quality, rate), draw.normal(size=len(samples)))
            carrier *= np.sqrt(0.5) / max(float(np.std(carrier)), 1e-9)
        else:
            carrier = np.sin(2 * np.pi * (at * time + draw.random()))
        made += envelope * carrier
    return np.clip(made, -LIMIT, LIMIT)


def warp(draw: np.random.Generator) -> Callable[[float], float]:
    """Where the carrier of a band lies: the ends stay, the points between are drawn.

    Example:
        >>> moved = warp(np.random.default_rng(0))
        >>> round(moved(LOWEST_HZ), 3), round(moved(HIGHEST_HZ), 3), moved(1000) != 1000
        (150.0, 16000.0, True)
    """
    shifts = np.zeros(POINTS)
    shifts[1:-1] = draw.uniform(-MOST_SHIFT, MOST_SHIFT, POINTS - 2)

    def moved(hertz: float) -> float:
        place = (POINTS - 1) * np.log(hertz / LOWEST_HZ) / np.log(HIGHEST_HZ / LOWEST_HZ)
        left = int(min(max(place, 0), POINTS - 2))
        share = np.clip(place - left, 0, 1)
        share = share**2 * (3 - 2 * share)
        return float(hertz * np.exp(shifts[left] * (1 - share) + shifts[left + 1] * share))

    return moved


def _band_pass(centre: float, quality: float, rate: int) -> tuple[np.ndarray, np.ndarray]:
    """Second order, 0 dB at its centre (R. Bristow-Johnson's formulas, those of Web Audio)."""
    angle = 2 * np.pi * centre / rate
    alpha = np.sin(angle) / (2 * quality)
    return np.array([alpha, 0, -alpha]), np.array([1 + alpha, -2 * np.cos(angle), 1 - alpha])


def _shelf(rate: int) -> tuple[np.ndarray, np.ndarray]:
    """A high shelf of slope 1, from the same formulas."""
    gain = 10 ** (SHELF_DB / 40)
    angle = 2 * np.pi * SHELF_HZ / rate
    cos, root = np.cos(angle), np.sqrt(2 * gain) * np.sin(angle)
    above, below = gain + 1, gain - 1
    b = gain * np.array([above + below * cos + root, -2 * (below + above * cos),
                         above + below * cos - root])  # fmt: skip
    a = np.array([above - below * cos + root, 2 * (below - above * cos),
                  above - below * cos - root])  # fmt: skip
    return b, a


def main() -> None:
    words = argparse.ArgumentParser(description="A channel vocoder between two pipes.")
    words.add_argument("--seed", type=int, help="of the draws; a new one each time where left out")
    asked = words.parse_args()
    samples, rate = soundfile.read(io.BytesIO(sys.stdin.buffer.read()))
    made = io.BytesIO()
    soundfile.write(made, vocoded(samples, rate, asked.seed), rate, format="WAV", subtype="FLOAT")
    sys.stdout.buffer.write(made.getvalue())


if __name__ == "__main__":
    main()
